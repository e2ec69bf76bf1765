// Converts a Hugging Face config.json to a description of a model: the keys that the files of configs/models have.
#pragma once

#include "sim/foundation/config/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::cost {

// The model's file that `text` names: the file itself if it ends in .json, .gguf or .safetensors; for a directory its
// config.json, params.json, GGUF file or safetensors file. None for other texts.
std::optional<std::string> model_file_path(const std::string& text);

// The model that `path` describes: a config.json or a file that model_file_path() returns. Each value keeps its place in the
// JSON. Properties that the file leaves open are those of its architecture, or of most architectures, and are listed in
// `assumed`. Null after reporting a file that cannot be read, a key that is missing or wrong, or an unknown key about layers.
// `module`: return the MTP module in the model's checkpoint instead of the model. Bytes by part of the
// weight files in the same folder are under `stored`.
config::Value read_model_file(const std::string& path, Diagnostics& diagnostics, bool module = false);

// ---- parts of the reader ----

// A layer as the file describes it.
struct FileLayer {
  enum class Mixer { full, windowed, chunked, state, none };
  enum class FeedForward { dense, mixture, none };
  Mixer mixer = Mixer::full;
  FeedForward feed_forward = FeedForward::dense;
  bool borrows = false;  // reads the keys and values of another layer
  double width = 0.0;    // of a dense feed-forward part, if the file gives it for this layer; 0: the usual one
};

// The layers of the language model's part `text` of model_type `type`; `mixture`: it has experts. Reports impossible lists and
// numbers. `left_out`: the default number of layers, 0 if there is none.
std::vector<FileLayer> read_file_layers(const config::Value& text, std::string_view type, bool mixture, std::int64_t left_out,
                                        Diagnostics& diagnostics);

// Reports every key about layers that has a value and is not understood, because it would otherwise be ignored silently.
void check_layer_keys(const config::Value& text, std::int64_t layers, std::vector<std::string>& assumed,
                      Diagnostics& diagnostics);

// Keys of `text` that have a value, were not read, and may affect a pass's cost.
std::vector<std::string> unread_layer_keys(const config::Value& text, const std::set<std::string>& read);

// A matrix of the model, with the names that checkpoints give it.
struct StoredMatrix {
  const char* part;    // a key of dtype: attention, state, dense, shared, experts, head, embeddings
  double parameters;   // element count, relative to the others
  std::string prefix;  // "layers.7."
  std::vector<std::string> names;
};

// Widths of a model as its file gives them, and properties of its layers.
struct FileWidths {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t latent = 0;
  std::int64_t rope = 0;
  std::int64_t query_rank = 0;
  std::int64_t state_inner = 0;
  std::int64_t experts = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_ffn = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  bool gated = true;
  bool one_vector = false;
  bool parallel = false;           // a state in parallel with attention
  bool dense_and_experts = false;  // the part that every token passes besides the experts has a dense part's names (Gemma 4)
  bool tied = false;
};
// The matrices that a checkpoint may store in types of their own, layer by layer from `first_layer` on.
std::vector<StoredMatrix> stored_matrices(const std::vector<FileLayer>& layers, const FileWidths& widths,
                                          std::size_t first_layer);

// Sources of the types of the weights besides a config: a file of its own, or dtype from a GGUF file.
struct WeightTypeSources {
  const config::Value* quantization = nullptr;
  const config::Value* dtype = nullptr;
};
// The model of `root`, which was read from `path`.
config::Value model_of_config(const std::string& path, const config::Value& root, const WeightTypeSources& beside, bool module,
                              Diagnostics& diagnostics);

// The value of `dtype` that describes a checkpoint's quantisation config, or null for 16 bits. Unknown entries are listed in
// `assumed`. `type`: the model_type; `expert_dtype`: the key of that name, or empty.
config::Value dtype_of_quantization(const config::Value& quantization, const std::vector<StoredMatrix>& matrices,
                                    const std::string& expert_dtype, std::vector<std::string>& assumed, Diagnostics& diagnostics);

// A drafter as its config describes it.
struct FileDrafter {
  const char* word;                   // as a model's `drafter` names it
  std::vector<config::Field> fields;  // keys of a model's description
  bool whole_model = false;           // embeddings and LM head are its own, as in a model that runs alone
  bool heads_alone = false;           // no layers: the file has none of their keys
  std::vector<std::string> assumed;
  std::set<std::string> read;  // keys that were read
};
// The drafter that the file describes; none: an ordinary model. Reports an unknown architecture of drafters.
std::optional<FileDrafter> read_drafter(const config::Value& root, const config::Value& text, Diagnostics& diagnostics);

}  // namespace specsim::cost
