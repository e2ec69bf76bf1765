// Broken models, prompts and headers: each is refused with the file and the fault, and nothing crashes.
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/prompts.h"
#include "sim/lab/llm/tensor_file.h"
#include "sim/lab/llm/weights.h"
#include "tests/llm/fixtures.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

namespace specsim::readers_test {

namespace {

const std::string kTiny = "tests/data/models/tiny-qwen";

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("specsim_readers_{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The reader's error message for the tiny model with its files changed; "" if it accepts them. The folder's name is cut off.
std::string refusal(const std::function<void(std::string& config, std::string& tensors)>& change) {
  const Folder folder;
  std::string config = read_whole_file(kTiny + "/config.json");
  std::string tensors = read_whole_file(kTiny + "/model.safetensors");
  change(config, tensors);
  write_whole_file(folder.file("config.json"), config);
  write_whole_file(folder.file("model.safetensors"), tensors);
  try {
    llm::load_weights(folder.path());
    return "";
  } catch (const BadInput& bad) {
    std::string text = bad.what();
    for (std::size_t at = 0; (at = text.find(folder.path() + "/")) != std::string::npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
}

// Replaces text in the header and keeps its length field right.
void edit_header(std::string& tensors, const std::string& from, const std::string& to) {
  std::uint64_t size = 0;
  std::memcpy(&size, tensors.data(), 8);
  const std::size_t at = tensors.find(from);
  REQUIRE(at < 8 + size);
  tensors.replace(at, from.size(), to);
  size += to.size() - from.size();
  std::memcpy(tensors.data(), &size, 8);
}

std::function<void(std::string&, std::string&)> in_header(const std::string& from, const std::string& to) {
  return [=](std::string&, std::string& tensors) { edit_header(tensors, from, to); };
}

std::function<void(std::string&, std::string&)> in_config(const std::string& from, const std::string& to) {
  return [=](std::string& text, std::string&) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
}

}  // namespace

TEST_CASE("broken model files are refused by name", "[llm]") {
  CHECK(refusal([](auto&, auto&) {}).empty());
  CHECK(refusal([](auto&, auto& tensors) { tensors.resize(5); }) ==
        "model.safetensors: 5 bytes, allowed: at least the 8 that hold the header's size");
  CHECK(refusal([](auto&, auto& tensors) { tensors.clear(); }) ==
        "model.safetensors: 0 bytes, allowed: at least the 8 that hold the header's size");
  CHECK(refusal([](auto&, auto& tensors) { tensors.resize(tensors.size() - 4); }).find("allowed: from 0 to the ") !=
        std::string::npos);
  CHECK(refusal([](auto&, auto& tensors) { tensors += "1234"; }) ==
        "model.safetensors: 4 bytes after the last tensor, allowed: none");
  CHECK(refusal([](auto&, auto& tensors) { tensors[7] = '\x7f'; }).find("a header of 9151314442816") != std::string::npos);
  CHECK(refusal(in_header("\"F32\"", "\"I32\"")) ==
        "model.safetensors: tensor \"lm_head.weight\": dtype is \"I32\", allowed: F32, F16, BF16; for quantised weights take the "
        "original model, or a GGUF file");
  CHECK(refusal(in_header("\"F32\"", "\"X32\"")).find("dtype is \"X32\", allowed: F32, F16, BF16") != std::string::npos);
  CHECK(refusal(in_header("[40,24]", "[40,25]")) ==
        "model.safetensors: tensor \"lm_head.weight\": a F32 tensor of shape [40, 25] has 3840 bytes, allowed: as "
        "many as its elements take");
  CHECK(refusal(in_header("[40,24]", "[9223372036854775807,9223372036854775807]")).find("has 3840 bytes") != std::string::npos);
  CHECK(refusal(in_header("[0,3840]", "[3840,0]")).find("data_offsets are [3840, 0], allowed: from 0 to") != std::string::npos);
  CHECK(refusal(in_header("[0,3840]", "[-1,3840]")).find("not a list of counts") != std::string::npos);
  CHECK(refusal(in_header("[3840,7680]", "[3836,7676]"))
            .find("begins at byte 3836 of the data, allowed: 3840, where the one before it ends") != std::string::npos);
  CHECK(refusal(in_header("model.norm.weight", "model.nerm.weight")) ==
        "model.safetensors: tensor \"model.norm.weight\" is missing, allowed: every tensor of the model");
  CHECK(refusal(in_header("layers.1.self_attn.q_proj.bias", "layers.7.self_attn.q_proj.bias"))
            .find("layers.1.self_attn.q_proj.bias\" is missing") != std::string::npos);
  CHECK(refusal(in_header("lm_head.weight", "model.norm.weight")).find("model.norm.weight") !=
        std::string::npos);  // a name twice
  CHECK(refusal([](auto&, auto& tensors) {
          const float nan = std::nanf("");
          std::memcpy(tensors.data() + tensors.size() - 400, &nan, 4);
        }).find("holds nan, allowed: finite numbers") != std::string::npos);
}

TEST_CASE("a tensor's file that is cut while it is read is refused", "[llm]") {
  const Folder folder;
  const std::string path = folder.file("model.safetensors");
  write_whole_file(path, read_whole_file(kTiny + "/model.safetensors"));
  const llm::TensorFile file(path);
  const llm::Tensor& norm = file.tensor("model.norm.weight", {24});
  std::vector<std::byte> bytes(norm.bytes);
  file.read(norm, 0, bytes);
  CHECK(std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; }));
  std::filesystem::resize_file(path, norm.offset + norm.bytes - 1);
  CHECK_THROWS_WITH(file.read(norm, 0, bytes), Catch::Contains("allowed: a file that does not change while it is read"));
  std::filesystem::resize_file(path, 0);
  CHECK_THROWS_WITH(file.read(norm, 0, bytes), Catch::Contains("ends at byte " + std::to_string(norm.offset)));
}

TEST_CASE("a model's type and the size of its weights are known before they are read", "[llm]") {
  const llm::WeightsFacts facts = llm::inspect_weights(kTiny);
  const llm::Weights weights = llm::load_weights(kTiny);
  CHECK(facts.config == weights.config);
  CHECK(facts.precision == weights.embedding.precision());
  std::size_t bytes = weights.embedding.bytes() + weights.head.bytes() + weights.final_norm.size() * sizeof(float);
  for (const llm::LayerWeights& layer : weights.layers)
    bytes += layer.qkv.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes() +
             (layer.attention_norm.size() + layer.ffn_norm.size() + layer.qkv_bias.size()) * sizeof(float);
  CHECK(llm::weight_bytes(facts.config, facts.precision) == bytes);
}

TEST_CASE("a model in several files is the model in one", "[llm]") {
  // All tensors are in one file except the last norm, which is in the other; the first file holds it too, with other values.
  const std::string all = read_whole_file(kTiny + "/model.safetensors");
  std::uint64_t size = 0;
  std::memcpy(&size, all.data(), 8);
  Diagnostics diagnostics;
  const config::Value header = config::parse_text(all.substr(8, size), "header", diagnostics);
  std::string norm = R"({"model.norm.weight":{"dtype":"F32","shape":[24],"data_offsets":[0,96]}})";
  const std::uint64_t own_size = norm.size();
  norm.insert(0, reinterpret_cast<const char*>(&own_size), 8);
  const std::vector<float> twos(24, 2.0F);
  norm.append(reinterpret_cast<const char*>(twos.data()), 96);
  std::string map;
  for (const config::Field& field : header.fields)
    if (field.key != "__metadata__")
      map += fmt::format("{}\"{}\": \"{}\"", map.empty() ? "" : ", ", field.key,
                         field.key == "model.norm.weight" ? "b.safetensors" : "a.safetensors");
  const auto load = [&](const std::string& index) {
    const Folder folder;
    write_whole_file(folder.file("config.json"), read_whole_file(kTiny + "/config.json"));
    write_whole_file(folder.file("a.safetensors"), all);
    write_whole_file(folder.file("b.safetensors"), norm);
    write_whole_file(folder.file("model.safetensors.index.json"), index);
    return llm::load_weights(folder.path());
  };
  const auto refused = [&](const std::string& index) -> std::string {
    try {
      load(index);
    } catch (const BadInput& bad) {
      return std::string(bad.what());
    }
    return "";
  };
  const llm::Weights split = load("{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + "}}");
  const llm::Weights whole = llm::load_weights(kTiny);
  CHECK(split.final_norm == twos);
  CHECK(whole.final_norm != twos);
  CHECK(std::memcmp(split.embedding.row(0), whole.embedding.row(0), whole.embedding.bytes()) == 0);
  CHECK(std::memcmp(split.layers[1].down.row(0), whole.layers[1].down.row(0), whole.layers[1].down.bytes()) == 0);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = map;
    changed.replace(changed.find(from), from.size(), to);
    return refused("{\"weight_map\": {" + changed + "}}");
  };
  using Catch::Contains;
  CHECK_THAT(refused("{}"), Contains("index.json: no \"weight_map\", allowed: {"));
  CHECK_THAT(refused("{\"weight_map\": [1]}"), Contains("no \"weight_map\""));
  CHECK_THAT(refused("{\"weight"), Contains("model.safetensors.index.json:1:"));
  CHECK_THAT(
      with("b.safetensors", "../b.safetensors"),
      Contains("tensor \"model.norm.weight\" lies in \"../b.safetensors\", allowed: the name of a file next to the index"));
  CHECK_THAT(with("b.safetensors", "c.safetensors"), Contains("c.safetensors: cannot be read: No such file"));
  CHECK_THAT(with("model.norm.weight", "model.nerm.weight"),
             Contains("index.json: tensor \"model.norm.weight\" is missing, allowed: every tensor of the model"));
  CHECK_THAT(with("model.embed_tokens.weight\": \"a", "model.embed_tokens.weight\": \"b"),
             Contains("b.safetensors: tensor \"model.embed_tokens.weight\" is missing"));
}

TEST_CASE("a config.json that the forward pass cannot honour is refused at its place", "[llm]") {
  CHECK(refusal(in_config("\"qwen2\"", "\"mamba\"")).find("config.json:2:17: model_type is \"mamba\", allowed:") == 0);
  CHECK(refusal(in_config("\"silu\"", "\"gelu\"")).find("hidden_act is \"gelu\"") != std::string::npos);
  CHECK(refusal(in_config("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4"))
            .find("num_key_value_heads is 4 of 6 heads, allowed: a divisor") != std::string::npos);
  CHECK(refusal(in_config("\"vocab_size\": 40", "\"vocab_size\": 41")) ==
        "model.safetensors: tensor \"model.embed_tokens.weight\" has shape [40, 24], allowed by config.json: [41, 24]");
  CHECK(refusal(in_config("\"vocab_size\": 40,", "")).find("vocab_size") != std::string::npos);
  CHECK(refusal(in_config("\"linear\"", "\"yarn\"")).find("rope_type is \"yarn\", allowed: default, linear, llama3") !=
        std::string::npos);
  CHECK(refusal(in_config("\"head_dim\": 6", "\"head_dim\": 5")).find("head_dim is 5, allowed: an even number") !=
        std::string::npos);
  const auto with = [](const std::string& more) { return refusal(in_config("\"hidden_size\"", more + ",\n  \"hidden_size\"")); };
  using Catch::Contains;
  CHECK_THAT(with("\"partial_rotary_factor\": 0.5"),
             Contains("config.json:3:28: partial_rotary_factor is 0.5, allowed: 1 or null"));
  CHECK_THAT(with("\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}"),
             Contains("quantization_config with quant_method \"gptq\", allowed: weights in F32, F16 or BF16"));
  CHECK_THAT(with("\"final_logit_softcapping\": 30.0"), Contains("final_logit_softcapping is 30.0, allowed: null"));
  CHECK_THAT(with("\"embedding_multiplier\": 12.0"), Contains("embedding_multiplier is 12.0, allowed: 1 or null"));
  CHECK_THAT(with("\"sliding_window\": 32, \"use_sliding_window\": true"), Contains("sliding_window is 32, allowed: null"));
  CHECK_THAT(with("\"layer_types\": [\"full_attention\", \"linear_attention\"]"),
             Contains("layer_types has \"linear_attention\""));
  CHECK_THAT(with("\"num_experts\": 8"), Contains("num_experts is 8, allowed: 0 or null"));
  CHECK_THAT(with("\"gate_twist\": 1"), Contains("config.json:3:3: key \"gate_twist\" is unknown and may change what"));
  CHECK_THAT(with("\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"default\"}"),
             Contains("rope_theta is 1e+06 and that of rope_parameters 500000"));
  CHECK_THAT(with("\"query_pre_attn_scalar\": 7"), Contains("query_pre_attn_scalar is 7, allowed: head_dim, 6"));
  CHECK(with("\"partial_rotary_factor\": 1.0").empty());
  CHECK(with("\"quantization_config\": null").empty());
  CHECK(with("\"sliding_window\": 32, \"use_sliding_window\": false").empty());
  CHECK(with("\"sliding_window\": 64, \"use_sliding_window\": true").empty());
  CHECK(with("\"torch_dtype\": \"float32\", \"eos_token_id\": [3, 4], \"use_cache\": true").empty());
  CHECK(with("\"layer_types\": [\"full_attention\", \"full_attention\"]").empty());
  CHECK(refusal([](auto& text, auto&) { text = "[1, 2]"; }) == "config.json:1:1: no JSON object, allowed: a model's config.json");
  CHECK(refusal([](auto& text, auto&) { text.resize(100); }).find("config.json:") == 0);
}

TEST_CASE("broken prompts are refused by line", "[llm]") {
  const Folder folder;
  llm::ModelConfig model;
  model.vocab = 50;
  model.context = 16;
  const auto says = [&](const std::string& text) {
    write_whole_file(folder.file("p"), text);
    try {
      llm::read_prompts(folder.file("p"), nullptr, model, 5);
      return std::string();
    } catch (const BadInput& bad) {
      return std::string(bad.what()).substr(folder.file("p").size());
    }
  };
  CHECK(says("{\"tokens\": [1, 2]}\n\n{\"tokens\": [49], \"kind\": \"code\"}\n").empty());
  CHECK(says("") == ": no prompt, allowed: at least one, one per line");
  CHECK(says("{\"tokens\": [1]}\n{\"tokens\": []}\n") == ":2: no token, allowed: at least one");
  CHECK(says("{\"tokens\": [50]}\n") == ":1: token 50, allowed: an integer in [0, 49]");
  CHECK(says("{\"tokens\": [1,1,1,1,1,1,1,1,1,1,1,1]}\n") ==
        ":1: a prompt of 12 tokens, allowed: at most 11 (a context of 16, 5 of it for the output); --overlong skip leaves such "
        "prompts out, --overlong cut keeps the first tokens of each");
  CHECK(says("{\"prompt\": \"x\"}\n") == ":1: a text, allowed for a model without a tokenizer: {\"tokens\": [ids]}");
  CHECK(says("{\"a\": 1}\n") == ":1: neither or both of \"prompt\" and \"tokens\", allowed: one of them");
  CHECK(says("hello\n").find(":1:1: this is not JSON") == 0);
  CHECK(says("{\"tokens\": [1], \"kind\": \"a b\"}\n").find(":1: kind is \"a b\"") == 0);
  write_whole_file(folder.file("p"), "{\"tokens\": [1,2,3,4,5,6,7,8,9,10,11,12]}\n{\"tokens\": [7]}\n");
  const llm::PromptFile skipped = llm::read_prompts(folder.file("p"), nullptr, model, 5, llm::Overlong::skip);
  REQUIRE(skipped.prompts.size() == 1);
  CHECK(skipped.overlong == 1);
  CHECK(skipped.prompts[0].tokens == std::vector<Token>{7});
  const llm::PromptFile cut = llm::read_prompts(folder.file("p"), nullptr, model, 5, llm::Overlong::cut);
  REQUIRE(cut.prompts.size() == 2);
  CHECK(cut.overlong == 1);
  CHECK(cut.prompts[0].tokens == std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK_THROWS_AS(llm::read_prompts(folder.file("p"), nullptr, model, 16, llm::Overlong::cut), BadInput);
  write_whole_file(folder.file("tokenizer.model"), "not a model");
  CHECK_THROWS_AS(llm::read_sentencepiece(folder.file("tokenizer.model")), BadInput);
  CHECK_THROWS_AS(llm::read_sentencepiece(folder.file("absent")), BadInput);
}

TEST_CASE("transformers 5 writes the rotary base within rope_parameters", "[llm]") {
  const auto read = [](const std::string& rope) {
    const Folder folder;
    std::string text = read_whole_file(kTiny + "/config.json");
    const std::size_t theta = text.find("\"rope_theta\"");
    text.erase(theta, text.find(',', theta) + 1 - theta);
    const std::size_t scaling = text.find("\"rope_scaling\"");
    text.replace(scaling, text.find('}', scaling) + 1 - scaling, rope);
    write_whole_file(folder.file("config.json"), text);
    return llm::read_model_config(folder.file("config.json"));
  };
  CHECK(read("\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}").rope_theta == 5e5);
  CHECK(read("\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 3e6, \"rope_type\": \"default\"}}").rope_theta == 3e6);
  const llm::ModelConfig llama = read(
      "\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"llama3\", \"factor\": 32.0, \"low_freq_factor\": 1.0, "
      "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}");
  CHECK(llama.rope_theta == 5e5);
  CHECK(llama.rope_scaling.method == llm::RopeScaling::Method::llama3);
  CHECK(llama.rope_scaling.factor == 32.0);
  using Catch::Contains;
  CHECK_THROWS_WITH(read("\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"yarn\", \"factor\": 4.0}"),
                    Contains("rope_type is \"yarn\", allowed: default, linear, llama3"));
  CHECK_THROWS_WITH(read("\"rope_parameters\": {\"rope_theta\": 5e5, \"partial_rotary_factor\": 0.25}"),
                    Contains("partial_rotary_factor is 0.25, allowed: 1 or null"));
  CHECK_THROWS_WITH(read("\"rope_parameters\": {\"rope_theta\": 5e5, \"beta_fast\": 32}"),
                    Contains("key \"beta_fast\" is unknown"));
}

TEST_CASE("finite weights that no pass can add up are refused with the model's name", "[llm]") {
  const Folder folder;
  std::string tensors = read_whole_file(kTiny + "/model.safetensors");
  const float huge = 3.4e38F;
  for (std::size_t i = 0; i < 40 * 24; ++i) std::memcpy(tensors.data() + tensors.find("}}") + 2 + 4 * i, &huge, 4);
  write_whole_file(folder.file("config.json"), read_whole_file(kTiny + "/config.json"));
  write_whole_file(folder.file("model.safetensors"), tensors);
  const auto weights = std::make_shared<llm::Weights>(llm::load_weights(folder.path()));
  const auto model = tests::model_of(weights);
  const auto cache = model->make_cache(1, 8);
  CHECK_THROWS_WITH(tests::all_logits(*model, *cache, {1, 2}), Catch::Contains(folder.path() + ": a pass ends in the logit"));
  CHECK_THROWS_WITH(llm::load_weights(folder.path(), llm::Precision::bf16), Catch::Contains("allowed in BF16: up to 3.3895"));
}

// Mutations of a good model: bytes flipped, cut, doubled, digits replaced; 300 of them, or as many as SPECSIM_FUZZ_SECONDS
// allows.
TEST_CASE("mutated headers and configs are taken or refused, and nothing else happens", "[llm]") {
  const char* const wish = std::getenv("SPECSIM_FUZZ_SECONDS");
  const double seconds = wish == nullptr ? 0.0 : std::atof(wish);
  constexpr std::size_t kModelsTried = 300;
  rng::Stream random(rng::make_key(1, rng::hash_text("mutations")), rng::Purpose::distribution, 0, 0);
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t taken = 0;
  std::size_t tried = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (tried < kModelsTried || std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    const std::string said = refusal([&](std::string& config_text, std::string& tensors) {
      const bool of_config = below(3) == 0;
      std::string& text = of_config ? config_text : tensors;
      constexpr std::size_t kHeader = 3300;  // the place of nearly all of the tiny model's header
      const std::size_t reach = of_config ? text.size() : std::min(text.size(), kHeader);
      for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
        const std::size_t at = below(std::min(reach, text.size()));
        switch (below(6)) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.erase(at, 1 + below(8));
            break;
          case 2:
            text.insert(at, text.substr(at, 1 + below(40)));
            break;
          case 3:
            text[at] = "0123456789-[]{},:\"eE. "[below(22)];
            break;
          case 4:
            text.resize(at);
            break;
          default:
            text.insert(at, "[{\"99999999999999999999e-\\u0000"[below(30)] + std::string(below(3), '9'));
            break;
        }
      }
    });
    ++tried;
    if (said.empty()) ++taken;
  }
  CHECK(tried > 10);
  CHECK(taken < tried);  // the mutations reach the checked bytes
  WARN(tried << " mutants, " << taken << " still good models");
}

}  // namespace specsim::readers_test
