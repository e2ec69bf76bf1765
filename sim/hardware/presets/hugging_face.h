// A Hugging Face config.json as a description of a model: the keys that the files of configs/models have.
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

// The model's file that `text` names: itself where it ends in .json, .gguf or .safetensors, or of a directory its config.json,
// params.json, GGUF file or safetensors file. None for other texts.
std::optional<std::string> model_file_path(const std::string& text);

// The model that `path` describes, a config.json or what model_file_path() gives. Each value stands where the JSON says it. What
// the file leaves open is taken as its architecture has it, or as most have it, and `assumed` says so. Null after reporting a
// file that cannot be read, a key that is missing or wrong, or a key about layers that is not understood. `module`: the module
// for further tokens (MTP) in the model's checkpoint, in place of the model. Bytes by part of the weight files that lie there are
// under `stored`.
config::Value read_model_file(const std::string& path, Diagnostics& diagnostics, bool module = false);

// ---- parts of the reader ----

// A layer as the file describes it.
struct FileLayer {
  enum class Mixer { full, windowed, chunked, state, none };
  enum class FeedForward { dense, mixture, none };
  Mixer mixer = Mixer::full;
  FeedForward feed_forward = FeedForward::dense;
  bool borrows = false;  // reads the keys and values of another layer
  double width = 0.0;    // of a dense feed-forward part, where the file says it for this layer; 0: the usual one
};

// The layers of the language model's part `text` of model_type `type`; `mixture`: it has experts. Reports lists and numbers that
// cannot be. `left_out`: their number by default, 0 where there is none.
std::vector<FileLayer> read_file_layers(const config::Value& text, std::string_view type, bool mixture, std::int64_t left_out,
                                        Diagnostics& diagnostics);

// Reports every key about layers that has a value and is not understood: it would be read past.
void check_layer_keys(const config::Value& text, std::int64_t layers, std::vector<std::string>& assumed,
                      Diagnostics& diagnostics);

// Keys of `text` that have a value, were not looked for, and are none of those that say nothing of a pass's cost.
std::vector<std::string> unread_layer_keys(const config::Value& text, const std::set<std::string>& read);

// A matrix of the model, with the names that checkpoints give it.
struct StoredMatrix {
  const char* part;    // a key of dtype: attention, state, dense, shared, experts, head, embeddings
  double parameters;   // relative to the others
  std::string prefix;  // "layers.7."
  std::vector<std::string> names;
};

// Widths of a model as its file says them, and what its layers are like.
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
  bool parallel = false;              // a state beside attention
  bool dense_beside_experts = false;  // what every token passes beside the experts has a dense part's names (Gemma 4)
  bool tied = false;
};
// The matrices that a checkpoint may store in types of their own, layer by layer from `first_layer` on.
std::vector<StoredMatrix> stored_matrices(const std::vector<FileLayer>& layers, const FileWidths& widths,
                                          std::size_t first_layer);

// What says how the weights are stored, beside a config: a file of its own, or dtype where a GGUF file has it.
struct ConfigBeside {
  const config::Value* quantization = nullptr;
  const config::Value* dtype = nullptr;
};
// The model of `root`, which `path` held.
config::Value model_of_config(const std::string& path, const config::Value& root, const ConfigBeside& beside, bool module,
                              Diagnostics& diagnostics);

// How a checkpoint is quantised: the value of `dtype` that its quantisation config amounts to, or null for 16 bits. What is not
// known is told in `assumed`. `type`: the model_type; `expert_dtype`: the key of that name, or empty.
config::Value dtype_of_quantization(const config::Value& quantization, const std::vector<StoredMatrix>& matrices,
                                    const std::string& expert_dtype, std::vector<std::string>& assumed, Diagnostics& diagnostics);

// What a config says of a drafter.
struct FileDrafter {
  const char* word;                   // as a model's `drafter` names it
  std::vector<config::Field> fields;  // of a model's description
  bool whole_model = false;           // embeddings and LM head are its own, as another model's
  bool heads_alone = false;           // no layers: the file has none of their keys
  std::vector<std::string> assumed;
  std::set<std::string> read;  // keys that were looked for
};
// The drafter that the file describes; none: a model by itself. Reports an architecture of drafters that is not known.
std::optional<FileDrafter> read_drafter(const config::Value& root, const config::Value& text, Diagnostics& diagnostics);

}  // namespace specsim::cost
