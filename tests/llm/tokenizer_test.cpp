// Tokenizers compared with the tokens of Hugging Face's library (scripts/golden/tokenizer_golden.mjs), and broken files.
#include "sim/lab/llm/tokenizer.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/text_pieces.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace specsim::tokenizer_test {

using nlohmann::ordered_json;

namespace {

const std::string kFolder = "tests/data/tokenizers/";

// The reader's error message for the tokenizer `name` with its JSON changed; "" if it accepts it.
std::string refused(const std::string& name, const std::function<void(ordered_json&)>& change) {
  ordered_json root = ordered_json::parse(read_whole_file(kFolder + name + ".json"));
  change(root);
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("specsim_tokenizer_{}.json", getpid())).string();
  write_whole_file(path, root.dump());
  std::string said;
  try {
    llm::read_tokenizer_json(path);
  } catch (const BadInput& bad) {
    said = bad.what();
  }
  std::filesystem::remove(path);
  return said;
}

}  // namespace

TEST_CASE("tokens are those of Hugging Face's library", "[llm]") {
  std::map<std::string, std::unique_ptr<llm::Tokenizer>> tokenizers;
  std::size_t compared = 0;
  for (const ordered_json& one : ordered_json::parse(read_whole_file("tests/data/tokenizer_golden.json"))) {
    const std::string name = one["tokenizer"];
    if (!tokenizers.contains(name)) tokenizers[name] = llm::read_tokenizer_json(kFolder + name + ".json");
    CAPTURE(name, one["text"].dump());
    REQUIRE(tokenizers[name]->encode(one["text"].get<std::string>()) == one["ids"].get<std::vector<Token>>());
    REQUIRE(tokenizers[name]->before_text(77) == one["before"].get<std::vector<Token>>());
    ++compared;
  }
  CHECK(tokenizers.size() == 8);
  CHECK(compared > 1000);
}

// SPECSIM_TOKENIZERS names a folder with NAME.json and NAME.golden.jsonl of vocabularies too large to keep here.
TEST_CASE("tokens of whole vocabularies are those of Hugging Face's library", "[llm]") {
  const char* const folder = std::getenv("SPECSIM_TOKENIZERS");
  if (folder == nullptr) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string golden = entry.path().string();
    if (!golden.ends_with(".golden.jsonl")) continue;
    const auto tokenizer = llm::read_tokenizer_json(golden.substr(0, golden.size() - 13) + ".json");
    std::istringstream lines(read_whole_file(golden));
    for (std::string line; std::getline(lines, line);) {
      const ordered_json one = ordered_json::parse(line);
      CAPTURE(golden, one["text"].dump());
      REQUIRE(tokenizer->encode(one["text"].get<std::string>()) == one["ids"].get<std::vector<Token>>());
    }
  }
}

TEST_CASE("tokenizers of another kind are refused by name", "[llm]") {
  using Catch::Contains;
  CHECK(refused("llama3", [](auto&) {}).empty());
  CHECK_THAT(refused("llama3", [](auto& t) { t["model"]["type"] = "Unigram"; }),
             Contains("model.type is \"Unigram\", allowed: \"BPE\""));
  CHECK_THAT(refused("llama3", [](auto& t) { t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+"; }),
             Contains("Split by the expression \"\\\\w+\", allowed: those of GPT-2, Llama 3 and Qwen2"));
  CHECK_THAT(refused("llama3",
                     [](auto& t) {
                       t["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
                     }),
             Contains("pre_tokenizer is \"BertPreTokenizer\""));
  CHECK_THAT(refused("qwen2", [](auto& t) { t["normalizer"]["type"] = "NFKC"; }), Contains("normalizer is \"NFKC\""));
  CHECK_THAT(refused("qwen2", [](auto& t) { t["added_tokens"][0]["single_word"] = true; }), Contains("single_word"));
  CHECK_THAT(refused("gpt2",
                     [](auto& t) {
                       t["model"]["merges"].push_back({"qqq", "zzz"});
                     }),
             Contains("is not in the vocabulary"));
  CHECK_THAT(refused("gpt2", [](auto& t) { t["model"]["merges"].push_back("one"); }),
             Contains("a merge is \"one\", allowed: two tokens"));
  CHECK_THAT(refused("gpt2", [](auto& t) { t["model"]["merges"].push_back("one"); }), Contains(".json:1:"));  // its place
  CHECK_THAT(refused("gpt2", [](auto& t) { t["model"]["vocab"]["a"] = -1; }), Contains("a token's id is -1"));
  CHECK_THAT(refused("gpt2", [](auto& t) { t["model"]["dropout"] = 0.1; }), Contains("model.dropout is 0.1"));
  CHECK_THAT(refused("llama2", [](auto& t) { t["model"]["unk_token"] = "<none>"; }), Contains("model.unk_token is \"<none>\""));
  CHECK_THAT(refused("llama2", [](auto& t) { t = {1, 2}; }), Contains("no JSON object"));
}

TEST_CASE("any bytes at all become tokens", "[llm]") {
  rng::Stream random(rng::make_key(3, rng::hash_text("bytes")), rng::Purpose::distribution, 0, 0);
  const auto tokenizer = llm::read_tokenizer_json(kFolder + "llama3.json");
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += static_cast<char>(random());
    for (const llm::SplitPattern pattern : {llm::SplitPattern::gpt2, llm::SplitPattern::llama3, llm::SplitPattern::qwen2}) {
      std::string again;
      for (const std::string& piece : llm::split(text, pattern)) again += piece;
      REQUIRE(again == text);
    }
    REQUIRE(tokenizer->encode(text).size() <= text.size());
  }
}

}  // namespace specsim::tokenizer_test
