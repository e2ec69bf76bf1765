#include "sim/llm/tokenizer_json.h"

#include "sim/base/error.h"
#include "sim/base/whole_file.h"
#include "sim/llm/bpe_tokenizer.h"
#include "sim/llm/json.h"

#include <fmt/format.h>

namespace specsim::llm {

namespace {

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const Json kNothing;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  BpeParts read(const Json& root) {
    if (!root.is_object()) fail("no JSON object", "a tokenizer.json");
    BpeParts parts;
    parts.path = path_;
    const Json& model = at(root, "model");
    if (const Json& type = at(model, "type"); type != "BPE" && !(type.is_null() && at(model, "merges").is_array()))
      fail("model.type is " + json_text(type), "\"BPE\", or a tokenizer.model beside it without tokenizer.json");
    read_vocab(model, parts);
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json& text = at(model, key); !text.is_null() && text != "")
        fail(fmt::format("model.{} is {}", key, json_text(text)), "null");
    if (const Json& dropout = at(model, "dropout"); !dropout.is_null() && dropout != 0.0)
      fail("model.dropout is " + json_text(dropout), "null");
    parts.fuse_unknown = flag(model, "fuse_unk", false);
    parts.byte_fallback = flag(model, "byte_fallback", false);
    parts.whole_words = flag(model, "ignore_merges", false);
    read_added(at(root, "added_tokens"), parts);
    if (const Json& unknown = at(model, "unk_token"); unknown.is_string()) {
      const auto found = parts.vocab.find(unknown.get<std::string>());
      if (found == parts.vocab.end()) fail("model.unk_token is " + json_text(unknown), "a token of the vocabulary");
      parts.unknown = found->second;
    }
    read_normaliser(at(root, "normalizer"), parts);
    read_step(at(root, "pre_tokenizer"), parts);
    parts.before_text = std::vector<Token>();
    read_processor(at(root, "post_processor"), parts);
    return parts;
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& allowed) const {
    throw BadInput({path_, 0, 0}, fmt::format("{}, allowed: {}", found, allowed));
  }
  [[nodiscard]] static const Json& at(const Json& object, const char* key) {
    return object.is_object() && object.contains(key) ? object[key] : kNothing;
  }
  [[nodiscard]] bool flag(const Json& object, const char* key, bool fallback) const {
    const Json& value = at(object, key);
    if (value.is_null()) return fallback;
    if (!value.is_boolean()) fail(fmt::format("{} is {}", key, json_text(value)), "true or false");
    return value.get<bool>();
  }
  [[nodiscard]] std::string text(const Json& object, const char* key) const {
    const Json& value = at(object, key);
    if (!value.is_string()) fail(fmt::format("{} is {}", key, json_text(value)), "a text");
    return value.get<std::string>();
  }
  [[nodiscard]] Token id(const Json& value) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxVocab)
      fail("a token's id is " + json_text(value), fmt::format("integers below {}", static_cast<std::uint64_t>(kMaxVocab)));
    return value.get<Token>();
  }

  void read_vocab(const Json& model, BpeParts& parts) const {
    const Json& vocab = at(model, "vocab");
    if (!vocab.is_object() || vocab.empty()) fail("model.vocab is " + json_text(vocab), "a map of tokens to ids");
    for (const auto& entry : vocab.items()) parts.vocab.emplace(entry.key(), id(entry.value()));
    const Json& merges = at(model, "merges");
    if (!merges.is_array()) fail("model.merges is " + json_text(merges), "a list");
    for (const Json& merge : merges) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        parts.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      const std::string both = merge.is_string() ? merge.get<std::string>() : "";
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
        fail("a merge is " + json_text(merge), "two tokens, as [A, B] or \"A B\"");
      parts.merges.emplace_back(both.substr(0, space), both.substr(space + 1));
    }
  }

  void read_added(const Json& list, BpeParts& parts) const {
    if (list.is_null()) return;
    if (!list.is_array()) fail("added_tokens is " + json_text(list), "a list");
    for (const Json& item : list) {
      AddedToken token;
      token.id = id(at(item, "id"));
      token.text = text(item, "content");
      token.strip_left = flag(item, "lstrip", false);
      token.strip_right = flag(item, "rstrip", false);
      token.normalised = flag(item, "normalized", !flag(item, "special", false));
      if (flag(item, "single_word", false)) fail("an added token has single_word", "tokens without it");
      parts.vocab.emplace(token.text, token.id);
      parts.added.push_back(std::move(token));
    }
  }

  void read_normaliser(const Json& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Json& item : at(value, "normalizers")) read_normaliser(item, parts);
    } else if (type == "NFC") {
      parts.normalisers.emplace_back(Compose());
    } else if (type == "Prepend") {
      parts.normalisers.emplace_back(Prepend{text(value, "prepend")});
    } else if (type == "Replace") {
      const std::string from = text(at(value, "pattern"), "String");
      if (from.empty()) fail("normalizer Replace of an empty text", "one that is not empty");
      parts.normalisers.emplace_back(Replace{from, text(value, "content")});
    } else {
      fail("normalizer is " + json_text(at(value, "type")), "null, NFC, Prepend, Replace of a text, Sequence of these");
    }
  }

  void read_step(const Json& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Json& item : at(value, "pretokenizers")) read_step(item, parts);
    } else if (type == "ByteLevel") {
      parts.steps.emplace_back(SplitBytes{flag(value, "add_prefix_space", true), flag(value, "use_regex", true)});
    } else if (type == "Digits") {
      parts.steps.emplace_back(SplitDigits{flag(value, "individual_digits", false)});
    } else if (type == "Metaspace") {
      read_metaspace(value, parts);
    } else if (type == "Split") {
      read_split(value, parts);
    } else {
      fail("pre_tokenizer is " + json_text(at(value, "type")), "null, ByteLevel, Digits, Metaspace, Split, Sequence of these");
    }
  }

  void read_metaspace(const Json& value, BpeParts& parts) const {
    Metaspace space;
    space.replacement = text(value, "replacement");
    if (space.replacement.empty()) fail("Metaspace with an empty replacement", "a character");
    const std::string scheme = at(value, "prepend_scheme").is_null() ? flag(value, "add_prefix_space", true) ? "always" : "never"
                                                                     : text(value, "prepend_scheme");
    if (scheme != "always" && scheme != "never" && scheme != "first")
      fail("prepend_scheme is " + json_text(at(value, "prepend_scheme")), "always, first, never");
    space.prefix = scheme == "always"  ? Metaspace::Prefix::always
                   : scheme == "first" ? Metaspace::Prefix::first
                                       : Metaspace::Prefix::never;
    space.cut = flag(value, "split", true);
    parts.steps.emplace_back(space);
  }

  void read_split(const Json& value, BpeParts& parts) const {
    const Json& pattern = at(value, "pattern");
    const std::string behaviour = text(value, "behavior");
    if (flag(value, "invert", false)) fail("Split with invert", "false");
    if (const Json& expression = at(pattern, "Regex"); expression.is_string()) {
      if (behaviour != "Isolated")
        fail("Split of an expression with behavior " + json_text(at(value, "behavior")), "\"Isolated\"");
      if (expression == kGpt2)
        parts.steps.emplace_back(SplitPattern::gpt2);
      else if (expression == kLlama3)
        parts.steps.emplace_back(SplitPattern::llama3);
      else if (expression == kQwen2)
        parts.steps.emplace_back(SplitPattern::qwen2);
      else
        fail("Split by the expression " + json_text(expression),
             "those of GPT-2, Llama 3 and Qwen2; for another model give prompts as {\"tokens\": [ids]}");
      return;
    }
    const std::string mark = text(pattern, "String");
    if (behaviour != "MergedWithPrevious" || mark.empty())
      fail("Split by a text with behavior " + json_text(at(value, "behavior")), "MergedWithPrevious");
    parts.steps.emplace_back(SplitBehind{mark});
  }

  // What is put in front of a text; what a template puts behind it would end the prompt and is left out.
  void read_processor(const Json& value, BpeParts& parts) const {
    if (value.is_null()) return;
    const std::string type = text(value, "type");
    if (type == "Sequence") {
      for (const Json& item : at(value, "processors")) read_processor(item, parts);
    } else if (type == "TemplateProcessing") {
      for (const Json& item : at(value, "single")) {
        if (!at(item, "SpecialToken").is_object()) break;
        const std::string name = text(at(item, "SpecialToken"), "id");
        const Json& ids = at(at(at(value, "special_tokens"), name.c_str()), "ids");
        if (!ids.is_array())
          fail("post_processor has no ids of " + json_text(at(at(item, "SpecialToken"), "id")), "special_tokens");
        for (const Json& one : ids) parts.before_text->push_back(id(one));
      }
    } else if (type != "ByteLevel") {  // which moves offsets alone
      fail("post_processor is " + json_text(at(value, "type")), "null, ByteLevel, TemplateProcessing, Sequence of these");
    }
  }

  const std::string& path_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& path) {
  constexpr std::size_t kLargest = std::size_t{256} << 20;
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const IoError& error) {
    throw BadInput({"", 0, 0}, fmt::format("{}, allowed: a tokenizer.json", error.what()));
  }
  if (text.size() > kLargest) throw BadInput({path, 0, 0}, fmt::format("{} bytes, allowed: {}", text.size(), kLargest));
  return make_bpe_tokenizer(Reader(path).read(parse_json(text, path)));
}

}  // namespace specsim::llm
