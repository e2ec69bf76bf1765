// How a checkpoint is quantised: one type per part of the model, whichever file and format describes it.
#include "sim/foundation/config/arguments.h"
#include "sim/foundation/config/words.h"
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <unordered_map>
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return copy;
}

const Value* find(const Value& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Value* value = map.find(key); value != nullptr && !value->is_null()) return value;
  return nullptr;
}

std::string lower_text(const Value* value) { return value != nullptr && value->is_scalar() ? lower(value->text) : ""; }
bool truth(const Value* value) { return value != nullptr && value->text == "true"; }

// ---- names of modules ----

// Removes prefixes that multimodal and older classes put before "layers" and "lm_head".
std::string bare_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"model.",       "language_model.", "backbone.",
                                                         "transformer.", "decoder.",        "text_model."};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : kPrefixes)
      if (name.starts_with(prefix)) {
        name.remove_prefix(prefix.size());
        again = true;
      }
  }
  while (name.ends_with('.')) name.remove_suffix(1);
  while (name.starts_with('.')) name.remove_prefix(1);
  std::string bare(name);
  if (bare.starts_with("h.")) bare = "layers." + bare.substr(2);
  if (bare.starts_with("blocks.")) bare = "layers." + bare.substr(7);
  return bare;
}

// As Python's fnmatch, without ranges of characters.
bool wildcard(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// A pattern of module names, as the engines match it: a regular expression from the beginning of the full name
// (compressed-tensors, GPTQModel), wildcards (modelopt), or any part of the name (AWQ). Plain names are kept separately, see
// Scheme::named.
class Pattern {
 public:
  enum class Kind { expression, wildcard, substring };
  Pattern(Kind kind, const std::string& text, const Location& where, Diagnostics& diagnostics) : kind_(kind), text_(text) {
    if (kind == Kind::wildcard) text_ = text.starts_with('*') ? text : bare_name(text) + (text.ends_with('.') ? "." : "");
    if (kind != Kind::expression) return;
    any_layer_ = std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    try {
      std::string portable = text;  // an inline flag that std::regex does not support
      bool folded = false;
      if (portable.starts_with("(?i)")) {
        portable.erase(0, 4);
        folded = true;
      }
      expression_ = std::regex(portable, folded ? std::regex::ECMAScript | std::regex::icase : std::regex::ECMAScript);
    } catch (const std::regex_error&) {
      diagnostics.add(where, fmt::format("{} is no regular expression, allowed: one that matches names of modules",
                                         config::quote_for_message(text)));
      kind_ = Kind::wildcard;
      text_.clear();
    }
  }

  [[nodiscard]] bool matches(const std::string& prefix, const std::string& name) const {
    if (kind_ == Kind::substring) return ("model." + prefix + name).find(text_) != std::string::npos;
    if (kind_ == Kind::wildcard) return wildcard(text_, (text_.starts_with('*') ? "model." : "") + prefix + name);
    if (!any_layer_) return by_expression(prefix + name);
    const auto [at, fresh] = known_.try_emplace(name, false);
    if (fresh) at->second = by_expression(prefix + name);
    return at->second;
  }

 private:
  [[nodiscard]] bool by_expression(const std::string& bare) const {
    for (const char* before : {"model.", "", "model.language_model.", "language_model.model.", "backbone."})
      if (std::regex_search(before + bare, expression_, std::regex_constants::match_continuous)) return true;
    return false;
  }

  Kind kind_;
  std::string text_;
  std::regex expression_;
  bool any_layer_ = false;
  mutable std::unordered_map<std::string, bool> known_;
};

// ---- types ----

// A type as dtype's parts name it, "WEIGHTS/ACTIVATIONS"; a number of bits if no word fits; empty: 16 bits.
using Word = std::string;

constexpr double kScaleBits = 16.0;

Word of_integers(double bits, double group, const std::string& activations) {
  if (bits >= 16.0) return "";
  if (bits == 8.0) return activations.empty() ? "int8/bf16" : "int8/int8";
  if (bits == 4.0) {
    if (activations == "float") return "int4/fp8";
    return group == 32.0 ? "int4_g32/bf16" : group == 64.0 ? "int4_g64/bf16" : "int4/bf16";
  }
  const bool whole = bits == std::floor(bits);  // fractions are means that count the scales
  return fmt::format("{:g}", bits + (whole && group > 0.0 ? kScaleBits / group : 0.0));
}

Word of_floats(double bits, double group, bool micro, bool blocks, const std::string& activations) {
  if (bits >= 16.0) return "";
  if (bits == 8.0) {
    if (group == 32.0) return "mxfp8/fp8";
    return std::string(blocks ? "fp8_block" : "fp8") + (activations.empty() ? "/bf16" : "/fp8");
  }
  if (bits != 4.0) return fmt::format("{:g}", bits + (group > 0.0 ? 8.0 / group : 0.0));
  if (micro || group == 32.0) return activations == "8" ? "mxfp4/fp8" : "mxfp4/bf16";
  return activations.empty() ? "nvfp4/bf16" : "nvfp4/nvfp4";
}

// Of one of modelopt's names of algorithms.
std::optional<Word> of_algorithm(const std::string& name) {
  static constexpr std::pair<std::string_view, const char*> kAlgorithms[] = {
      {"fp8 fp8_per_channel_per_token", "fp8/fp8"},
      {"fp8_pb_wo fp8_pb_real fp8_block_scales", "fp8_block/fp8"},
      {"nvfp4 nvfp4_awq nvfp4_svdquant", "nvfp4/nvfp4"},
      {"w4a16_nvfp4", "nvfp4/bf16"},
      {"mxfp8", "mxfp8/fp8"},
      {"mxfp4 w4a16_mxfp4", "mxfp4/bf16"},
      {"w4a8_mxfp4_fp8 w4a8_mxfp4_mxfp8", "mxfp4/fp8"},
      {"w4a16 w4a16_awq w4a16_gptq", "int4/bf16"},
      {"w4a8_awq", "int4/fp8"},
      {"w8a16 w8a16_gptq int8_wo", "int8/bf16"},
      {"int8_sq w8a8_sq_per_channel", "int8/int8"},
      {"none no_quant", ""},
  };
  for (const auto& [names, word] : kAlgorithms)
    if (config::is_among(name, config::words_of(names))) return word;
  return std::nullopt;
}

// The types of a checkpoint's modules.
struct Scheme {
  // Types by module name, without the prefixes of classes; any run of components of a module's name may match, the longest wins.
  std::unordered_map<std::string, Word> named;
  std::vector<std::pair<Pattern, Word>> patterns;  // the first that matches counts
  Word rest;                                       // of linear layers that nothing names
  std::optional<Word> experts;                     // of routed experts that nothing names
  bool head = false;                               // `rest` also holds for the LM head
  bool embeddings = false;
  Word cache;

  [[nodiscard]] const Word* find_named(const std::string& name) const {
    std::vector<std::size_t> ends = {0};  // where components begin, and one past the end
    for (std::size_t i = 0; i < name.size(); ++i)
      if (name[i] == '.') ends.push_back(i + 1);
    ends.push_back(name.size() + 1);
    for (std::size_t length = ends.size() - 1; length > 0; --length)
      for (std::size_t from = 0; from + length < ends.size(); ++from)
        if (const auto at = named.find(name.substr(ends[from], ends[from + length] - 1 - ends[from])); at != named.end())
          return &at->second;
    return nullptr;
  }

  [[nodiscard]] const Word& word_of(const StoredMatrix& matrix) const {
    static const Word plain;
    if (!named.empty())
      for (const std::string& name : matrix.names)
        if (const Word* word = find_named(matrix.prefix + name)) return *word;
    for (const auto& [pattern, word] : patterns)
      for (const std::string& name : matrix.names)
        if (pattern.matches(matrix.prefix, name)) return word;
    const std::string_view part = matrix.part;
    if ((part == "head" && !head) || (part == "embeddings" && !embeddings)) return plain;
    return part == "experts" && experts ? *experts : rest;
  }
};

class Resolver {
 public:
  Resolver(const Value& file, std::vector<std::string>& assumed, Diagnostics& diagnostics)
      : file_(file),
        inner_(file.find("quantization") != nullptr && file.find("quantization")->is_map() ? *file.find("quantization") : file),
        assumed_(assumed),
        diagnostics_(diagnostics) {}

  // Whether the form is known.
  bool read() {
    method_ = lower_text(find(file_, {"quant_method", "quantization_method", "quant_type"}));
    for (const char* key : {"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules",
                            "exclude", "skip_modules", "not_quantized"})
      if (const Value* list = find(inner_, {key})) exclude(*list);
    read_cache();
    return read_method();
  }
  [[nodiscard]] const Scheme& scheme() const { return scheme_; }
  [[nodiscard]] const std::string& method() const { return method_; }
  [[nodiscard]] bool experts_alone() const { return method_ == "mxfp4" || method_ == "gpt_oss_mxfp4"; }

 private:
  void pattern(Pattern::Kind kind, const std::string& text, const Location& where, const Word& word) {
    scheme_.patterns.emplace_back(Pattern(kind, text, where, diagnostics_), word);
  }
  // A module's name, a pattern with wildcards, or "re:" and a regular expression.
  void name(const std::string& text, const Location& where, const Word& word) {
    if (text.starts_with("re:"))
      pattern(Pattern::Kind::expression, text.substr(3), where, word);
    else if (text.find('*') != std::string::npos)
      pattern(Pattern::Kind::wildcard, text, where, word);
    else if (const std::string bare = bare_name(text); !bare.empty())
      scheme_.named.emplace(bare, word);
  }
  void exclude(const Value& list) {
    const auto one = [&](const Value& item) {
      if (method_ == "awq" && item.text.find('*') == std::string::npos)
        pattern(Pattern::Kind::substring, item.text, item.where, "");
      else
        name(item.text, item.where, "");
    };
    if (list.is_scalar()) one(list);
    for (const Value& item : list.items) one(item);
  }

  void read_cache() {
    if (const Value* scheme = find(inner_, {"kv_cache_scheme"}); scheme != nullptr && scheme->is_map()) {
      const bool narrow = lower_text(scheme->find("num_bits")) == "4";
      scheme_.cache = narrow ? "nvfp4" : lower_text(scheme->find("type")) == "int" ? "int8" : "fp8";
    }
    const std::string algorithm = lower_text(find(inner_, {"kv_cache_quant_algo", "kv_cache_quant_type"}));
    if (algorithm == "fp8" || algorithm == "int8" || algorithm == "nvfp4") scheme_.cache = algorithm;
    if (algorithm == "nvfp4_affine" || algorithm == "fp4") scheme_.cache = "nvfp4";
  }

  [[nodiscard]] double number(const Value& map, std::initializer_list<const char*> keys, double fallback) {
    const Value* value = find(map, keys);
    if (value == nullptr) return fallback;
    const auto read = config::as_number(value->text);
    return read ? *read : fallback;
  }

  // Bits and groups as GPTQ, AWQ and similar methods write them.
  Word of_bits(const Value& map, double group) {
    const Value* bits = find(map, {"bits", "w_bit", "wbits", "weight_bits", "nbits"});
    if (bits == nullptr) return scheme_.rest;
    const auto read = config::read_number(*bits, config::between(1, 16), "bits", diagnostics_);
    if (!read) return "";
    const std::string kind = lower_text(find(map, {"data_type", "format", "mode"}));
    const double own = number(map, {"group_size", "q_group_size"}, group);
    if (kind.starts_with("mx_fp") || kind == "mxfp4" || kind == "mxfp8") return of_floats(*read, 32.0, true, false, "");
    if (kind.starts_with("nv_fp") || kind == "nvfp4") return of_floats(*read, 16.0, false, false, "");
    if (kind.starts_with("fp8") || kind == "fp") return of_floats(*read, 0.0, false, false, "8");
    return of_integers(*read, own, "");
  }

  // One of compressed-tensors' groups.
  Word of_group(const Value& group) {
    const Value* weights = group.find("weights");
    if (weights == nullptr || !weights->is_map()) return "";
    const double bits = number(*weights, {"num_bits"}, 16.0);
    const double size = number(*weights, {"group_size"}, 0.0);
    const Value* activations = group.find("input_activations");
    const bool both = activations != nullptr && activations->is_map();
    const std::string format = lower_text(group.find("format")) + lower_text(file_.find("format"));
    if (lower_text(weights->find("type")) == "float")
      return of_floats(bits, size, format.starts_with("mxfp4"), lower_text(weights->find("strategy")) == "block",
                       both ? fmt::format("{:g}", number(*activations, {"num_bits"}, 8.0)) : "");
    return of_integers(bits, size, both ? lower_text(activations->find("type")) : "");
  }

  void read_groups(const Value& groups) {
    if (!groups.is_map()) return;
    for (const config::Field& field : groups.fields) {
      const Value* targets = field.value.find("targets");
      const Word word = of_group(field.value);
      if (targets == nullptr || targets->items.empty()) scheme_.rest = word;
      if (targets == nullptr) continue;
      for (const Value& target : targets->items) {
        const std::string& text = target.text;
        // A class of modules: all modules of that class.
        if (text == "Linear" || (text.find('.') == std::string::npos && !text.empty() &&
                                 std::isupper(static_cast<unsigned char>(text.front())) != 0)) {
          if (text == "Embedding" || text == "VocabParallelEmbedding")
            scheme_.named.emplace("embed_tokens", word);
          else if (text.find("MoE") != std::string::npos || text.find("Expert") != std::string::npos)
            scheme_.experts = word;
          else
            scheme_.rest = word;
          scheme_.head = scheme_.head || text == "Linear";
        } else {
          name(text, target.where, word);
        }
      }
    }
  }

  // {module: {quant_algo: NVFP4, ...}}
  void read_named(const Value& map) {
    for (const config::Field& field : map.fields) {
      const std::string algorithm = lower_text(field.value.is_map() ? field.value.find("quant_algo") : &field.value);
      if (const auto word = of_algorithm(algorithm))
        name(field.key, field.where, *word);
      else
        unknown(field.where, algorithm);
    }
  }
  void unknown(const Location& where, const std::string& algorithm) {
    diagnostics_.add(where, fmt::format("the algorithm is {}, allowed: those of modelopt, FP8, NVFP4, W4A16_AWQ and similar",
                                        config::quote_for_message(algorithm)));
  }

  // GPTQModel's map of regular expressions; "-:" leaves modules as they are.
  void read_dynamic(const Value& map, double group) {
    for (const config::Field& field : map.fields) {
      const bool no = field.key.starts_with("-:");
      const std::string text = no || field.key.starts_with("+:") ? field.key.substr(2) : field.key;
      pattern(Pattern::Kind::expression, text, field.where, no || !field.value.is_map() ? "" : of_bits(field.value, group));
    }
  }
  // Modules or blocks by name with bits of their own (AutoRound, MLX); false leaves one as it is.
  void read_extra(const Value& map, double group) {
    for (const config::Field& field : map.fields) {
      const Word word = field.value.is_map() ? of_bits(field.value, group) : "";
      const bool expression = field.key.find_first_of("*^$|()[]+\\") != std::string::npos;
      if (expression)
        pattern(Pattern::Kind::expression, ".*(?:" + field.key + ")", field.where, word);
      else
        name(field.key, field.where, word);
    }
  }

  bool read_method() {
    const std::string algorithm = lower_text(find(inner_, {"quant_algo"}));
    if (const Value* layers = find(inner_, {"quantized_layers"}); layers != nullptr && layers->is_map()) {
      scheme_.patterns.clear();  // keys that are not in the map have the method's default
      scheme_.named.clear();
      read_named(*layers);
      if (const Value* moe = find(inner_, {"moe_quant_algo"})) scheme_.experts = of_algorithm(lower_text(moe)).value_or("");
      if (method_ == "fp8") scheme_.rest = block_or_tensor();
      return true;
    }
    if (method_ == "modelopt" || method_ == "modelopt_fp4" || method_ == "modelopt_mixed" ||
        (method_.empty() && !algorithm.empty())) {
      if (const Value* groups = find(inner_, {"config_groups"});
          groups != nullptr && algorithm != "nvfp4" && algorithm != "fp8") {
        read_groups(*groups);
        scheme_.head = true;
        return true;
      }
      const auto word = of_algorithm(algorithm);
      if (!word && !algorithm.empty()) unknown(find(inner_, {"quant_algo"})->where, algorithm);
      scheme_.rest = word.value_or("");
      if (const Value* moe = find(inner_, {"moe_quant_algo"})) scheme_.experts = of_algorithm(lower_text(moe)).value_or("");
      scheme_.head = true;
      return word.has_value();
    }
    if (method_ == "fp8" || method_ == "fbgemm_fp8" || method_ == "deepspeed_fp8" || method_ == "finegrained_fp8") {
      scheme_.rest = block_or_tensor();
      return true;
    }
    if (experts_alone()) {
      scheme_.experts = "mxfp4/bf16";
      return true;
    }
    if (method_ == "bitsandbytes") {
      const bool four = truth(file_.find("load_in_4bit")) || truth(file_.find("_load_in_4bit"));
      scheme_.rest = four ? "int4/bf16" : "int8/bf16";
      if (four)
        assumed_.emplace_back("weights of bitsandbytes, nf4 or fp4, are estimated as int4; its own kernels are not measured");
      return true;
    }
    if (const Value* groups = find(file_, {"config_groups"})) {
      read_groups(*groups);
      return true;
    }
    if (method_ == "quark") return read_quark();
    if (method_ == "torchao" || method_ == "quanto" || method_ == "eetq" || method_ == "experts_int8" || method_ == "hqq" ||
        method_ == "fp_quant" || method_ == "higgs")
      return read_words();
    if (method_ == "bitnet") {
      scheme_.rest = "2";  // four weights of three values in a byte
      return true;
    }
    if (const std::string format = lower_text(inner_.find("qformat_weight"));
        format.starts_with("fp8")) {  // Mistral's params.json
      scheme_.rest = "fp8/fp8";
      return true;
    }
    const Value* bits = find(inner_, {"bits", "w_bit", "wbits", "weight_bits"});
    if (bits == nullptr) return false;
    const double group = number(inner_, {"group_size", "q_group_size"}, 0.0);
    if (method_.empty() && find(inner_, {"group_size"}) != nullptr &&
        find(inner_, {"desc_act", "sym", "zero_point", "checkpoint_format", "q_group_size", "true_sequential", "static_groups",
                      "damp_percent"}) == nullptr)
      return read_mlx(group);
    scheme_.rest = of_bits(inner_, group);
    scheme_.head = truth(inner_.find("lm_head")) || truth(inner_.find("quant_lm_head"));
    if (const Value* map = find(inner_, {"dynamic"}); map != nullptr && map->is_map()) read_dynamic(*map, group);
    if (const Value* map = find(inner_, {"extra_config"}); map != nullptr && map->is_map()) read_extra(*map, group);
    if (const Value* head = find(inner_, {"head_bits"})) {  // exl2 and exl3
      const auto own = config::read_number(*head, config::between(1, 16), "head_bits", diagnostics_);
      if (own) scheme_.named.emplace("lm_head", *own == 16.0 ? "" : fmt::format("{:g}", *own));
    }
    if (method_ == "exl2" || method_ == "exl3") scheme_.rest = fmt::format("{:g}", number(inner_, {"bits"}, 16.0));
    const double count = number(inner_, {"bits", "w_bit", "wbits", "weight_bits"}, 16.0);
    if (count != 4.0 && count != 8.0 && count != 16.0)
      assumed_.push_back(fmt::format("weights of {:g} bits are estimated by their bytes, with arithmetic in 16 bits", count));
    return true;
  }

  Word block_or_tensor() {
    const Value* block = find(inner_, {"weight_block_size"});
    return block != nullptr ? "fp8_block/fp8" : "fp8/fp8";
  }

  // MLX: scale and offset of each group in 16 bits; LM head and embeddings are quantised like the layers, except for modules with
  // their own entry.
  bool read_mlx(double group) {
    const double bits = number(inner_, {"bits"}, 16.0);
    const std::string mode = lower_text(inner_.find("mode"));
    const auto word = [&](double own_bits, double own_group) {
      if (mode == "mxfp4") return Word("4.25");
      if (mode == "nvfp4") return Word("4.5");
      if (mode == "mxfp8") return Word("8.25");
      return fmt::format("{:g}", own_bits + (own_group > 0.0 ? 2.0 * kScaleBits / own_group : 0.0));
    };
    scheme_.rest = word(bits, group);
    scheme_.head = scheme_.embeddings = true;
    for (const config::Field& field : inner_.fields) {
      if (field.value.is_map())
        name(field.key, field.where, word(number(field.value, {"bits"}, bits), number(field.value, {"group_size"}, group)));
      else if (field.value.text == "false" && field.key.find('.') != std::string::npos)
        name(field.key, field.where, "");
    }
    return true;
  }

  Word of_quark(const Value* config) {
    const Value* weight = config == nullptr ? nullptr : config->find("weight");
    if (weight != nullptr && weight->is_list() && !weight->items.empty()) weight = &weight->items.front();
    if (weight == nullptr || !weight->is_map()) return "";
    const std::string type = lower_text(weight->find("dtype"));
    const Value* input = config->find("input_tensors");
    const bool both = input != nullptr && !input->is_null();
    const double group = number(*weight, {"group_size"}, 0.0);
    if (type.starts_with("fp8")) return of_floats(8.0, group, false, false, both ? "8" : "");
    if (type == "fp4") return of_floats(4.0, group, true, false, "");
    if (type == "int4" || type == "uint4") return of_integers(4.0, group, "");
    if (type == "int8") return of_integers(8.0, group, both ? "int" : "");
    return "";
  }
  bool read_quark() {
    scheme_.rest = of_quark(file_.find("global_quant_config"));
    for (const char* key : {"layer_quant_config", "layer_type_quant_config"})
      if (const Value* map = file_.find(key); map != nullptr && map->is_map())
        for (const config::Field& field : map->fields)
          if (!field.value.is_null()) name(field.key, field.where, of_quark(&field.value));
    return !scheme_.rest.empty() || !scheme_.named.empty() || !scheme_.patterns.empty();
  }

  // Methods whose name is the type.
  bool read_words() {
    if (const Value* inner = find(file_, {"quant_config"}); inner != nullptr && method_ == "hqq") {
      const Value* weights = inner->find("weight_quant_params");
      const Value& own = weights != nullptr && weights->is_map() ? *weights : *inner;
      scheme_.rest = of_bits(own, 64.0);
      return true;
    }
    std::string word = lower_text(find(file_, {"weights", "forward_dtype"}));
    if (const Value* type = find(file_, {"quant_type"}); word.empty() && type != nullptr)
      word = lower(config::to_flow_text(*type));
    if (method_ == "eetq" || method_ == "experts_int8") word = "int8";
    if (method_ == "higgs") word = "int" + std::string(lower_text(file_.find("bits")));
    const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
    const bool plain = method_ == "quanto" || has("weight_only") || has("weightonly");
    if (has("nvfp4"))
      scheme_.rest = "nvfp4/nvfp4";
    else if (has("mxfp4"))
      scheme_.rest = "mxfp4/bf16";
    else if (has("float8") || has("fp8"))
      scheme_.rest = plain ? "fp8/bf16" : "fp8/fp8";
    else if (has("int4"))
      scheme_.rest = "int4/bf16";
    else if (has("int8"))
      scheme_.rest = plain || method_ != "torchao" ? "int8/bf16" : "int8/int8";
    else
      return false;
    if (method_ == "experts_int8") scheme_.experts = std::exchange(scheme_.rest, "");
    return true;
  }

  const Value& file_;
  const Value& inner_;  // place of the keys in modelopt's side file
  std::vector<std::string>& assumed_;
  Diagnostics& diagnostics_;
  std::string method_;
  Scheme scheme_;
};

}  // namespace

Value dtype_of_quantization(const Value& quantization, const std::vector<StoredMatrix>& matrices, const std::string& expert_dtype,
                            std::vector<std::string>& assumed, Diagnostics& diagnostics) {
  if (!quantization.is_map()) {
    diagnostics.add(quantization.where,
                    fmt::format("quantization_config is {}, allowed: a map or null", config::description_of_found(quantization)));
    return {};
  }
  Resolver resolver(quantization, assumed, diagnostics);
  const std::size_t before = diagnostics.list().size();
  if (!resolver.read()) {
    if (diagnostics.list().size() == before)
      assumed.push_back(
          fmt::format("quantization_config {} is not known: weights are estimated with 16 bits; set dtype to change this",
                      resolver.method().empty() ? "without quant_method" : resolver.method()));
    return {};
  }
  Scheme scheme = resolver.scheme();
  if (expert_dtype == "fp4" && !scheme.experts) scheme.experts = "mxfp4/fp8";  // DeepSeek-V4
  // Parameters of each part by type.
  std::map<std::string_view, std::map<Word, double>> parts;
  std::map<Word, double> layers;  // of all but experts, LM head and embeddings
  for (const StoredMatrix& matrix : matrices) {
    const Word& word = scheme.word_of(matrix);
    parts[matrix.part][word] += matrix.parameters;
    const std::string_view part = matrix.part;
    if (part != "experts" && part != "head" && part != "embeddings") layers[word] += matrix.parameters;
  }
  const auto largest = [](const std::map<Word, double>& types) {
    return std::max_element(types.begin(), types.end(),
                            [](const auto& one, const auto& other) { return one.second < other.second; })
        ->first;
  };
  const Location& where = quantization.where;
  std::vector<std::pair<std::string, Value>> fields;
  const Word main = layers.empty() ? "" : largest(layers);
  if (!main.empty()) {
    const std::size_t slash = main.find('/');
    fields.emplace_back("weights", config::scalar(main.substr(0, slash), where));
    if (slash != Word::npos) fields.emplace_back("activations", config::scalar(main.substr(slash + 1), where));
  }
  const auto text_of = [](const Word& word) { return word.empty() ? Word("bf16") : word; };
  for (const auto& [part, types] : parts) {
    const bool end = part == "head" || part == "embeddings";
    const Word usual = end ? Word() : main;
    // A word for attention would also apply to layers with a state.
    const bool told = part == "state" && parts.contains("attention") && parts.at("attention") != types;
    if (types.size() == 1 && types.begin()->first == usual && !told) continue;
    double sum = 0.0;
    for (const auto& [word, parameters] : types) sum += parameters;
    if (types.size() == 1) {
      fields.emplace_back(part, config::scalar(text_of(types.begin()->first), where));
      continue;
    }
    std::vector<std::pair<std::string, Value>> shares;
    for (const auto& [word, parameters] : types)
      shares.emplace_back(text_of(word), config::scalar(fmt::format("{:.9f}", parameters / sum), where));
    fields.emplace_back(part, config::map(std::move(shares), where));
  }
  if (!scheme.cache.empty()) fields.emplace_back("cache", config::scalar(scheme.cache, where));
  return fields.empty() ? Value() : config::map(std::move(fields), where);
}

}  // namespace specsim::cost
