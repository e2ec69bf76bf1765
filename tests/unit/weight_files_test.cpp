// Headers of weight files: GGUF and safetensors files made here, the values read from them, and broken files.
#include "sim/hardware/presets/weight_files.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/hardware/presets/hugging_face.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace specsim::weight_files_test {

using namespace specsim::cost;
using specsim::tests::all_messages;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string bytes_of(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &number, sizeof(T));
  return bytes;
}
std::string gguf_text(const std::string& text) { return bytes_of<std::uint64_t>(text.size()) + text; }

// A GGUF file: tensors of zeros, one after the other.
class GgufMaker {
 public:
  explicit GgufMaker(std::string architecture) : architecture_(std::move(architecture)) {
    text("general.architecture", architecture_);
    text("general.name", "made here");
  }
  void text(const std::string& key, const std::string& value) { add(key, 8, gguf_text(value)); }
  void number(const std::string& key, std::uint32_t value) { add(architecture_ + "." + key, 4, bytes_of(value)); }
  void list(const std::string& key, const std::vector<std::uint32_t>& values) {
    std::string all = bytes_of<std::uint32_t>(4) + bytes_of<std::uint64_t>(values.size());
    for (const std::uint32_t value : values) all += bytes_of(value);
    add(architecture_ + "." + key, 9, all);
  }
  // A text for each token, as vocabularies have.
  void vocabulary(std::size_t tokens) {
    std::string all = bytes_of<std::uint32_t>(8) + bytes_of<std::uint64_t>(tokens);
    for (std::size_t i = 0; i < tokens; ++i) all += gguf_text(fmt::format("token {}", i));
    add("tokenizer.ggml.tokens", 9, all);
  }
  void tensor(const std::string& name, std::uint32_t type, std::vector<std::uint64_t> shape, std::uint64_t size) {
    table_ += gguf_text(name) + bytes_of(static_cast<std::uint32_t>(shape.size()));
    for (auto it = shape.rbegin(); it != shape.rend(); ++it) table_ += bytes_of(*it);
    table_ += bytes_of(type) + bytes_of<std::uint64_t>(data_);
    data_ += (size + 31) / 32 * 32;
    ++tensors_;
  }
  // Types Q4_K, Q6_K and F32: rows of a multiple of 256 values.
  void q4(const std::string& name, std::vector<std::uint64_t> shape) { quantised(name, 12, 144, std::move(shape)); }
  void q6(const std::string& name, std::vector<std::uint64_t> shape) { quantised(name, 14, 210, std::move(shape)); }
  void f32(const std::string& name, std::uint64_t size) { tensor(name, 0, {size}, 4 * size); }

  [[nodiscard]] std::string file() const {
    std::string all = "GGUF" + bytes_of<std::uint32_t>(3) + bytes_of<std::uint64_t>(tensors_) + bytes_of<std::uint64_t>(keys_);
    all += metadata_ + table_;
    all.resize((all.size() + 31) / 32 * 32, '\0');
    return all + std::string(data_, '\0');
  }

 private:
  void add(const std::string& key, std::uint32_t type, const std::string& value) {
    metadata_ += gguf_text(key) + bytes_of(type) + value;
    ++keys_;
  }
  void quantised(const std::string& name, std::uint32_t type, std::uint64_t block, std::vector<std::uint64_t> shape) {
    std::uint64_t elements = 1;
    for (const std::uint64_t n : shape) elements *= n;
    tensor(name, type, std::move(shape), elements / 256 * block);
  }

  std::string architecture_;
  std::string metadata_;
  std::string table_;
  std::uint64_t keys_ = 0;
  std::uint64_t tensors_ = 0;
  std::uint64_t data_ = 0;
};

// Three layers with attention of four heads of 64, two of keys and values.
void add_attention(GgufMaker& maker, std::size_t layer) {
  const std::string before = fmt::format("blk.{}.", layer);
  maker.q4(before + "attn_q.weight", {256, 256});
  maker.q4(before + "attn_k.weight", {128, 256});
  maker.q6(before + "attn_v.weight", {128, 256});
  maker.q4(before + "attn_output.weight", {256, 256});
  maker.f32(before + "attn_norm.weight", 256);
}
GgufMaker started(const std::string& architecture) {
  GgufMaker maker(architecture);
  maker.number("block_count", 3);
  maker.number("context_length", 32768);
  maker.number("embedding_length", 256);
  maker.number("feed_forward_length", 512);
  maker.number("attention.head_count", 4);
  maker.number("attention.head_count_kv", 2);
  maker.number("attention.key_length", 64);
  maker.number("attention.value_length", 64);
  maker.vocabulary(1000);
  maker.q4("token_embd.weight", {1000, 256});
  return maker;
}
std::string dense_file(bool tied, const std::string& architecture = "llama", std::uint32_t window = 0) {
  GgufMaker maker = started(architecture);
  if (window > 0) maker.number("attention.sliding_window", window);
  if (!tied) maker.q6("output.weight", {1000, 256});
  for (std::size_t layer = 0; layer < 3; ++layer) {
    add_attention(maker, layer);
    maker.q4(fmt::format("blk.{}.ffn_gate.weight", layer), {512, 256});
    maker.q4(fmt::format("blk.{}.ffn_up.weight", layer), {512, 256});
    maker.q6(fmt::format("blk.{}.ffn_down.weight", layer), {256, 512});
  }
  return maker.file();
}

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / fmt::format("specsim_weights_{}_{}", getpid(), ++count())).string()) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string put(const std::string& name, const std::string& bytes) const {
    write_whole_file(path_ + "/" + name, bytes);
    return path_ + "/" + name;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static int& count() {
    static int made = 0;
    return made;
  }
  std::string path_;
};

ModelShape shape_of(const std::string& path) {
  Diagnostics diagnostics;
  ModelShape shape = read_model(config::scalar(path, {"t", 1, 1}), "model", diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return shape;
}
// The errors of a file with these bytes.
std::string mistakes_of(const std::string& name, const std::string& bytes) {
  const Folder folder;
  Diagnostics diagnostics;
  read_model(config::scalar(folder.put(name, bytes), {"t", 1, 1}), "model", diagnostics);
  return all_messages(diagnostics);
}
double stored_bytes(const ModelShape& shape, const std::string& part) {
  double sum = 0.0;
  for (const StoredTensors& own : shape.stored)
    if (own.part == part) sum += own.bytes;
  return sum;
}

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;
  std::size_t bytes;
};
std::string safetensors(const std::vector<Tensor>& tensors) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
  std::size_t at = 0;
  for (const Tensor& one : tensors) {
    header += fmt::format(", \"{}\": {{\"dtype\": \"{}\", \"shape\": [{}], \"data_offsets\": [{}, {}]}}", one.name, one.dtype,
                          fmt::join(one.shape, ", "), at, at + one.bytes);
    at += one.bytes;
  }
  header += "}";
  return bytes_of<std::uint64_t>(header.size()) + header + std::string(at, '\0');
}

const char* const kConfig =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4,
    "num_hidden_layers": 2, "vocab_size": 100, "tie_word_embeddings": false})";
std::vector<Tensor> layer_tensors(int layer, const std::string& type, std::size_t width) {
  std::vector<Tensor> list;
  const std::string before = fmt::format("model.layers.{}.", layer);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    list.push_back({before + "self_attn." + name + ".weight", type, {64, 64}, 4096 * width});
  list.push_back({before + "mlp.gate_proj.weight", type, {128, 64}, 8192 * width});
  list.push_back({before + "mlp.up_proj.weight", type, {128, 64}, 8192 * width});
  list.push_back({before + "mlp.down_proj.weight", type, {64, 128}, 8192 * width});
  list.push_back({before + "input_layernorm.weight", "BF16", {64}, 128});
  return list;
}
std::vector<Tensor> model_tensors(const std::string& type, std::size_t width) {
  std::vector<Tensor> list = {{"model.embed_tokens.weight", "BF16", {100, 64}, 12800},
                              {"lm_head.weight", "BF16", {100, 64}, 12800}};
  for (int layer = 0; layer < 2; ++layer)
    for (Tensor& one : layer_tensors(layer, type, width)) list.push_back(std::move(one));
  return list;
}

}  // namespace

TEST_CASE("a GGUF file's shape, types and bytes come from its header", "[cost][models][weight_files]") {
  const Folder folder;
  const ModelShape shape = shape_of(folder.put("model.gguf", dense_file(false)));
  CHECK(shape.name == "made here");
  CHECK(shape.layers == 3);
  CHECK(shape.hidden == 256);
  CHECK(shape.heads == 4);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.head_dim == 64);
  CHECK(shape.ffn == 512);
  CHECK(shape.vocab == 1000);
  CHECK(shape.context == 32768.0);
  CHECK(shape.architecture == "llama");
  CHECK(shape.gated);
  CHECK(shape.gguf);
  CHECK_FALSE(shape.tied_embeddings);
  CHECK(shape.assumed.empty());
  const double attention = 3.0 * ((2.0 * 256 * 256 + 128 * 256) / 256 * 144 + 128.0 * 256 / 256 * 210);
  const double dense = 3.0 * (2.0 * 512 * 256 / 256 * 144 + 512.0 * 256 / 256 * 210);
  const double ends = 1000.0 * 256 / 256 * (144 + 210);
  CHECK(stored_bytes(shape, "attention") == attention);
  CHECK(stored_bytes(shape, "dense") == dense);
  CHECK(shape.weight_bytes() == Approx(attention + dense + ends).epsilon(1e-9));
  CHECK(shape_of(folder.path()).weight_bytes() == shape.weight_bytes());  // a folder with one GGUF file
  // Tied embeddings are the LM head, once.
  const ModelShape tied = shape_of(folder.put("tied.gguf", dense_file(true)));
  CHECK(tied.tied_embeddings);
  CHECK(tied.weight_bytes() == Approx(attention + dense + 1000.0 * 144).epsilon(1e-9));
  // Windows by the architecture's pattern, if the file has none.
  CHECK(shape_of(folder.put("w.gguf", dense_file(true, "gemma2", 128))).window_layers == 2);
  CHECK_FALSE(shape_of(folder.put("w.gguf", dense_file(true, "mistral", 128))).window_layers);  // all of them
}

TEST_CASE("experts, states and latent attention of a GGUF file", "[cost][models][weight_files]") {
  const Folder folder;
  GgufMaker moe = started("qwen3moe");
  moe.number("expert_count", 8);
  moe.number("expert_used_count", 2);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    add_attention(moe, layer);
    const std::string before = fmt::format("blk.{}.", layer);
    if (layer == 0) {
      moe.q4(before + "ffn_gate.weight", {512, 256});
      moe.q4(before + "ffn_up.weight", {512, 256});
      moe.q4(before + "ffn_down.weight", {256, 512});
      continue;
    }
    moe.f32(before + "ffn_gate_inp.weight", 2048);
    moe.q4(before + "ffn_gate_exps.weight", {8, 256, 256});
    moe.q4(before + "ffn_up_exps.weight", {8, 256, 256});
    moe.q6(before + "ffn_down_exps.weight", {8, 256, 256});
    moe.q4(before + "ffn_gate_shexp.weight", {256, 256});
    moe.q4(before + "ffn_up_shexp.weight", {256, 256});
    moe.q4(before + "ffn_down_shexp.weight", {256, 256});
  }
  const ModelShape mixture = shape_of(folder.put("moe.gguf", moe.file()));
  CHECK(mixture.experts == 8);
  CHECK(mixture.experts_per_token == 2);
  CHECK(mixture.expert_ffn == 256);
  CHECK(mixture.shared_ffn == 256);
  CHECK(mixture.dense_layers == 1);
  CHECK(mixture.module_parameters(Module::experts) == 2.0 * 3 * 8 * 256 * 256);
  CHECK(mixture.tied_embeddings);

  GgufMaker hybrid = started("qwen3next");
  hybrid.number("ssm.inner_size", 512);
  hybrid.number("ssm.state_size", 64);
  hybrid.number("ssm.time_step_rank", 8);
  hybrid.number("ssm.group_count", 4);
  hybrid.number("ssm.conv_kernel", 4);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const std::string before = fmt::format("blk.{}.", layer);
    if (layer == 2) {
      add_attention(hybrid, layer);
    } else {
      hybrid.q4(before + "attn_qkv.weight", {1024, 256});
      hybrid.q4(before + "attn_gate.weight", {512, 256});
      hybrid.q4(before + "ssm_out.weight", {256, 512});
      hybrid.f32(before + "ssm_beta.weight", 2048);
    }
    hybrid.q4(before + "ffn_gate.weight", {512, 256});
    hybrid.q4(before + "ffn_up.weight", {512, 256});
    hybrid.q4(before + "ffn_down.weight", {256, 512});
  }
  const ModelShape states = shape_of(folder.put("hybrid.gguf", hybrid.file()));
  CHECK(states.linear_layers == 2);
  REQUIRE(states.state);
  CHECK(states.state->value_heads == 8);
  CHECK(states.state->key_heads == 4);
  CHECK(states.state->value_dim == 64);
  CHECK(states.kv_bytes_per_token() == 2.0 * 2 * 64 * 2);
  CHECK(stored_bytes(states, "state") > 0.0);

  GgufMaker latent("deepseek2");
  latent.number("block_count", 1);
  latent.number("embedding_length", 256);
  latent.number("feed_forward_length", 512);
  latent.number("attention.head_count", 4);
  latent.number("attention.head_count_kv", 1);
  latent.number("attention.key_length", 320);
  latent.number("attention.value_length", 256);
  latent.number("attention.key_length_mla", 192);
  latent.number("attention.value_length_mla", 128);
  latent.number("attention.kv_lora_rank", 256);
  latent.number("rope.dimension_count", 64);
  latent.q4("token_embd.weight", {1000, 256});
  latent.q4("output.weight", {1000, 256});
  latent.q4("blk.0.attn_q.weight", {768, 256});
  latent.q4("blk.0.attn_kv_a_mqa.weight", {320, 256});
  latent.q4("blk.0.ffn_gate.weight", {512, 256});
  latent.q4("blk.0.ffn_up.weight", {512, 256});
  latent.q4("blk.0.ffn_down.weight", {256, 512});
  const ModelShape mla = shape_of(folder.put("mla.gguf", latent.file()));
  REQUIRE(mla.latent);
  CHECK(mla.latent->width == 256);
  CHECK(mla.latent->rope_dim == 64);
  CHECK(mla.head_dim == 192);
  CHECK(mla.value_dim == 128.0);
}

TEST_CASE("broken and hostile GGUF files are refused by name", "[cost][models][weight_files]") {
  using Catch::Contains;
  const std::string good = dense_file(false);
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK_THAT(mistakes_of("a.gguf", "GGML" + good.substr(4)), Contains("it does not begin with GGUF, allowed: a GGUF file"));
  CHECK_THAT(mistakes_of("a.gguf", good.substr(0, 300)), Contains("and the file ends at 300"));
  CHECK_THAT(mistakes_of("a.gguf", good.substr(0, good.size() - 4096)), Contains("allowed: within the"));
  CHECK_THAT(mistakes_of("a.gguf", replaced(good, "llama.block_count", "llama.block_kount")),
             Contains("llama.block_count is missing or 0"));
  CHECK_THAT(mistakes_of("a.gguf", replaced(good, "token_embd.weight", "token_emby.weight")),
             Contains("tensor \"token_embd.weight\" is missing"));
  CHECK_THAT(mistakes_of("a.gguf", replaced(good, "general.architecture", "general.arkhitecture")),
             Contains("general.architecture is missing"));
  GgufMaker states("mamba");
  states.number("block_count", 1);
  CHECK_THAT(mistakes_of("a.gguf", states.file()), Contains("general.architecture mamba has no attention"));
  GgufMaker other = started("llama");
  CHECK_THAT(mistakes_of("a.gguf", other.file()), Contains("layer 0 has no tensors of attention, state or feed-forward"));
  GgufMaker uneven = started("llama");
  uneven.list("attention.head_count_kv_of_layers", {1, 2, 3});
  CHECK_THAT(mistakes_of("a.gguf", uneven.file()), Contains("layer 0"));
  // Stated sizes that no file has.
  std::string huge = good;
  huge.replace(8, 8, bytes_of<std::uint64_t>(std::uint64_t{1} << 60U));
  CHECK_THAT(mistakes_of("a.gguf", huge), Contains("tensors, allowed: at most"));
  huge = good;
  huge.replace(16, 8, bytes_of<std::uint64_t>(std::uint64_t{1} << 60U));
  CHECK_THAT(mistakes_of("a.gguf", huge), Contains("keys, allowed: at most"));
  // One part of three.
  CHECK_THAT(mistakes_of("m-00001-of-00003.gguf", good), Contains("m-00002-of-00003.gguf: cannot be read"));
}

TEST_CASE("safetensors next to a config.json give the bytes of each part", "[cost][models][weight_files]") {
  const Folder folder;
  folder.put("config.json", kConfig);
  const ModelShape described = shape_of(folder.path());
  CHECK(described.stored.empty());
  const std::string file = folder.put("model.safetensors", safetensors(model_tensors("BF16", 2)));
  const ModelShape shape = shape_of(folder.path());
  CHECK(shape.assumed.empty());
  CHECK(shape.weight_bytes() == described.weight_bytes());
  CHECK(stored_bytes(shape, "attention") == 2.0 * 4 * 4096 * 2);
  CHECK(stored_bytes(shape, "small") == 2.0 * 128);
  CHECK(shape_of(file).weight_bytes() == shape.weight_bytes());  // the file itself names its model
  // Weights in 8 bits that the config does not mention: the files' bytes count, with a note.
  folder.put("model.safetensors", safetensors(model_tensors("F8_E4M3", 1)));
  const ModelShape narrow = shape_of(folder.path());
  REQUIRE(narrow.assumed.size() == 2);
  CHECK(narrow.assumed[0].find("attention: the weight files hold") == 0);
  CHECK(narrow.weight_bytes() == Approx(described.weight_bytes() - 2.0 * (4 * 4096 + 3 * 8192)));
  // Stored in 32 bits, served in 16.
  folder.put("model.safetensors", safetensors(model_tensors("F32", 4)));
  CHECK(shape_of(folder.path()).weight_bytes() == described.weight_bytes());
  // Layers beyond the model's belong to the multi-token prediction module.
  std::vector<Tensor> more = model_tensors("BF16", 2);
  for (Tensor& one : layer_tensors(2, "BF16", 2)) more.push_back(std::move(one));
  folder.put("model.safetensors", safetensors(more));
  CHECK(shape_of(folder.path()).weight_bytes() == described.weight_bytes());
  CHECK(stored_bytes(shape_of(folder.path()), "mtp") == 2.0 * (4 * 4096 + 3 * 8192 + 64));
}

TEST_CASE("safetensors in several files, some of them missing or broken", "[cost][models][weight_files]") {
  const Folder folder;
  folder.put("config.json", kConfig);
  folder.put("a.safetensors", safetensors(layer_tensors(0, "BF16", 2)));
  std::string index = "{\"weight_map\": {";
  for (const Tensor& one : layer_tensors(0, "BF16", 2)) index += fmt::format("\"{}\": \"a.safetensors\", ", one.name);
  folder.put("model.safetensors.index.json", index + "\"lm_head.weight\": \"b.safetensors\"}}");
  const ModelShape half = shape_of(folder.path());
  REQUIRE(half.assumed.size() == 1);
  CHECK(half.assumed[0] == "1 of 2 weight files are missing, b.safetensors among them: bytes are those of config.json");
  CHECK(half.stored.empty());
  folder.put("b.safetensors", safetensors({{"lm_head.weight", "BF16", {100, 64}, 12800}}));
  CHECK(stored_bytes(shape_of(folder.path()), "head") == 12800);
  Diagnostics diagnostics;
  folder.put("b.safetensors", safetensors({{"lm_head.weight", "BF16", {100, 64}, 12800}}).substr(0, 90));
  read_model(config::scalar(folder.path(), {"t", 1, 1}), "model", diagnostics);
  CHECK(all_messages(diagnostics).find("b.safetensors") != std::string::npos);
  Diagnostics elsewhere;
  folder.put("model.safetensors.index.json", "{\"weight_map\": {\"lm_head.weight\": \"../b.safetensors\"}}");
  read_model(config::scalar(folder.path(), {"t", 1, 1}), "model", elsewhere);
  CHECK(all_messages(elsewhere).find("allowed: the name of a file next to the index") != std::string::npos);

  using Catch::Contains;
  CHECK_THAT(mistakes_of("lone.safetensors", safetensors({{"a", "BF16", {4, 4}, 32}})),
             Contains("does not state how many heads a model has, allowed: one next to its config.json"));
}

TEST_CASE("tensors are counted by part under the names of many classes", "[cost][models][weight_files]") {
  const std::vector<std::pair<const char*, const char*>> names = {
      {"model.layers.3.self_attn.q_proj.weight", "attention"},
      {"transformer.h.3.attn.c_attn.weight", "attention"},
      {"model.layers.3.self_attn.kv_a_proj_with_mqa.weight", "attention"},
      {"model.layers.3.self_attn.q_norm.weight", "small"},
      {"model.layers.3.mlp.gate_proj.weight_scale_inv", "dense"},
      {"model.layers.3.mlp.gate.weight", "small"},
      {"model.layers.3.mlp.experts.7.down_proj.weight", "experts"},
      {"model.layers.3.mlp.shared_experts.down_proj.weight", "shared"},
      {"model.layers.3.block_sparse_moe.experts.1.w2.weight", "experts"},
      {"backbone.layers.3.mixer.in_proj.weight", "state"},
      {"backbone.layers.3.mixer.q_proj.weight", "attention"},
      {"model.layers.3.linear_attn.in_proj_qkvz.weight", "state"},
      {"model.language_model.layers.3.mlp.up_proj.weight", "dense"},
      {"model.visual.blocks.3.attn.qkv.weight", "other"},
      {"model.vision_tower.encoder.layers.9.mlp.fc1.weight", "other"},
      {"mtp.layers.0.mlp.up_proj.weight", "mtp"},
      {"model.layers.61.mlp.up_proj.weight", "mtp"},
      {"lm_head.weight", "head"},
      {"output.weight", "head"},
      {"model.embed_tokens.weight", "embeddings"},
      {"blk.3.ffn_gate_inp.weight", "small"},
      {"blk.3.ffn_down_exps.weight", "experts"},
      {"blk.3.ffn_down_shexp.weight", "shared"},
      {"blk.3.attn_output.weight", "attention"},
      {"blk.3.ssm_out.weight", "state"},
      {"blk.61.nextn.eh_proj.weight", "mtp"}};
  for (const auto& [name, part] : names) {
    INFO(name);
    CHECK(part_of_tensor(name, 2, 61) == part);
  }
  CHECK(part_of_tensor("model.layers.3.self_attn.q_proj.bias", 1, 61) == "small");
}

}  // namespace specsim::weight_files_test
