// The weights that lie with a model, by the headers of its safetensors or GGUF files.
#pragma once

#include "sim/foundation/config/gguf_file.h"
#include "sim/foundation/config/value.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::cost {

// The parts that tensors are counted by: those of dtype, the module for further tokens (mtp), norms, routers and biases (small),
// and encoders of images and sound (other).
std::string_view part_of_tensor(std::string_view name, std::size_t dimensions, std::size_t layers);

// Tensors of a part, by their type's word: "BF16", "Q4_K".
struct TensorSum {
  std::size_t tensors = 0;
  double elements = 0.0;
  double bytes = 0.0;
};
using StoredParts = std::map<std::string, std::map<std::string, TensorSum>>;  // [part][type]

// The safetensors files that `path` names: itself, or those of a folder. Empty: it has none. Where an index names files that are
// missing, these are in `missing`.
std::vector<std::string> safetensors_files(const std::string& path, std::vector<std::string>& missing, Diagnostics& diagnostics);

// What their headers say. `layers`: the model's, 0 where they are not known; those from this number on are the module's for
// further tokens. Reports a file that is none.
StoredParts stored_parts(const std::vector<std::string>& files, std::size_t layers, Diagnostics& diagnostics);

// {part: {type: {tensors, elements, bytes}}}
config::Value to_value(const StoredParts& parts, const Location& where);

// A GGUF file: its metadata with the keys that a config.json has, the types of its parts as dtype has them, and its tensors. Its
// other parts (-00002-of-00003.gguf) are read as well. Null after reporting.
struct GgufDescription {
  config::Value config;
  config::Value dtype;
  StoredParts parts;
};
std::optional<GgufDescription> describe_gguf(const std::string& path, Diagnostics& diagnostics);

}  // namespace specsim::cost
