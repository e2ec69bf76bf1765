// GGUF files written by scripts/golden/gguf_golden.py from the public description of the format: the models that they hold, and
// files that are broken.
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/gguf_model.h"
#include "tests/llm/fixtures.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace specsim::gguf_test {

namespace {

const std::string kModels = "tests/data/models/";

std::vector<float> logits_of(const std::string& model_name, const std::vector<Token>& tokens) {
  const auto weights = std::make_shared<llm::Weights>(llm::load_weights(kModels + model_name));
  const auto model = tests::model_of(weights);
  const auto cache = model->make_cache(1, weights->config.context);
  return tests::all_logits(*model, *cache, tokens);
}

// The reader's error message for a file with these bytes; "" if it accepts them.
std::string refused(const std::string& bytes) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("specsim_{}.gguf", getpid())).string();
  write_whole_file(path, bytes);
  std::string said;
  try {
    llm::load_weights(path);
  } catch (const BadInput& bad) {
    said = bad.what();
  }
  std::filesystem::remove(path);
  return said;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a GGUF file in F32 gives the logits of the safetensors model to the last bit", "[llm]") {
  const std::vector<Token> tokens = {1, 5, 9, 33, 2, 7, 39, 0, 12, 20};
  CHECK(logits_of("tiny-qwen.gguf", tokens) == logits_of("tiny-qwen", tokens));
}

TEST_CASE("a GGUF file of architecture llama has its heads turned back and its own rotary factors", "[llm]") {
  const llm::Weights ours = llm::load_weights(kModels + "tiny-llama3");
  const llm::Weights theirs = llm::load_weights(kModels + "tiny-llama3.gguf");
  const llm::Matrix& qkv = ours.layers[1].qkv;
  REQUIRE(theirs.layers[1].qkv.bytes() == qkv.bytes());
  CHECK(std::equal(qkv.row(0), qkv.row(0) + qkv.bytes(), theirs.layers[1].qkv.row(0)));
  CHECK(theirs.config.rope_scaling.method == llm::RopeScaling::Method::factors);
  const std::vector<Token> tokens = tests::some_tokens(ours.config, 40);
  const std::vector<float> a = logits_of("tiny-llama3", tokens);
  const std::vector<float> b = logits_of("tiny-llama3.gguf", tokens);
  const float largest = *std::max_element(a.begin(), a.end());
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) < 1e-4F * largest);
}

TEST_CASE("logits of quantised blocks are those of the values that they stand for", "[llm]") {
  Diagnostics diagnostics;
  const config::Value golden = config::parse_file("tests/data/gguf_golden.json", diagnostics).items.at(0);
  std::vector<Token> tokens;
  for (const config::Value& item : golden.find("tokens")->items) tokens.push_back(static_cast<Token>(*config::as_integer(item)));
  const std::vector<float> logits = logits_of(golden.find("model")->text, tokens);
  for (const config::Value& row : golden.find("rows")->items) {
    const auto first = static_cast<std::size_t>(*config::as_integer(*row.find("row"))) * 40;
    for (std::size_t i = 0; i < 40; ++i)
      REQUIRE(static_cast<double>(logits[first + i]) == Approx(*config::as_number(row.find("logits")->items.at(i))).margin(2e-4));
  }
}

TEST_CASE("broken GGUF files are refused by name", "[llm]") {
  const std::string good = read_whole_file(kModels + "tiny-qwen.gguf");
  using Catch::Contains;
  CHECK(refused(good).empty());
  CHECK_THAT(refused(""), Contains("it does not begin with GGUF, allowed: a GGUF file"));
  CHECK_THAT(refused("GGML" + good.substr(4)), Contains("it does not begin with GGUF"));
  CHECK_THAT(refused(replaced(good, "GGUF\x03", "GGUF\x09")), Contains("version 9 of GGUF, allowed: 2, 3"));
  CHECK_THAT(refused(good.substr(0, good.size() - 64)), Contains("allowed: within the"));
  CHECK_THAT(refused(good.substr(0, 200)), Contains("and the file ends at 200"));
  CHECK_THAT(refused(replaced(good, "qwen2", "qwen9")), Contains("general.architecture is \"qwen9\", allowed: llama, qwen2"));
  CHECK_THAT(refused(replaced(good, "qwen2.rope.freq_base", "qwen2.rope.frex_base")),
             Contains("key \"qwen2.rope.frex_base\" is unknown"));
  CHECK_THAT(refused(replaced(good, "qwen2.block_count", "qwen3.block_count")), Contains("qwen2.block_count is missing"));
  CHECK_THAT(refused(replaced(good, "blk.1.ffn_up.weight", "blk.1.ffn_ub.weight")),
             Contains("tensor \"blk.1.ffn_ub.weight\" is unknown"));
  CHECK_THAT(refused(replaced(good, "linear", "lineax")), Contains("rope.scaling.type is \"lineax\", allowed: none, linear"));
}

// Bytes of the tables flipped and the file cut: 24 files, or as many as SPECSIM_FUZZ_SECONDS allows.
TEST_CASE("mutated GGUF files are taken or refused, and nothing else happens", "[llm]") {
  const char* const wish = std::getenv("SPECSIM_FUZZ_SECONDS");
  const double seconds = wish == nullptr ? 0.0 : std::atof(wish);
  constexpr std::size_t kFiles = 24;
  rng::Stream random(rng::make_key(2, rng::hash_text("mutations of GGUF")), rng::Purpose::distribution, 0, 0);
  const std::vector<std::string> good = {read_whole_file(kModels + "tiny-qwen.gguf"),
                                         read_whole_file(kModels + "tiny-mixed.gguf")};
  std::size_t taken = 0;
  std::size_t tried = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (tried < kFiles || std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    std::string bytes = good[tried % good.size()];
    for (std::size_t edits = 1 + random() % 3; edits > 0 && !bytes.empty(); --edits) {
      const std::size_t at = random() % std::min<std::size_t>(bytes.size(), 2600);  // in the tables, mostly
      const std::uint64_t how = random() % 4;
      if (how == 0) bytes[at] = static_cast<char>(random());
      if (how == 1) bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      if (how == 2) bytes.erase(at, 1 + random() % 8);
      if (how == 3 && random() % 8 == 0) bytes.resize(at);
    }
    taken += refused(bytes).empty() ? 1 : 0;
    ++tried;
  }
  CHECK(taken < tried);
}

}  // namespace specsim::gguf_test
