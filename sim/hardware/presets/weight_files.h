// The weight files of a model, read from the headers of its safetensors or GGUF files.
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

// The parts that tensors are counted by: those of dtype, the MTP module (mtp), norms, routers and biases (small),
// and encoders of images and sound (other).
std::string_view part_of_tensor(std::string_view name, std::size_t dimensions, std::size_t layers);

// Tensors of a part, by their type's word: "BF16", "Q4_K".
struct TensorSum {
  std::size_t tensors = 0;
  double elements = 0.0;
  double bytes = 0.0;
};
using StoredParts = std::map<std::string, std::map<std::string, TensorSum>>;  // [part][type]

// The safetensors files that `path` names: the file itself, or those of a folder. Empty: there are none. If an index names files
// that do not exist, these are in `missing`.
std::vector<std::string> safetensors_files(const std::string& path, std::vector<std::string>& missing, Diagnostics& diagnostics);

// Sums of the tensors in the files' headers. `layers`: number of the model's layers, 0 if unknown; layers from this number on
// belong to the MTP module. Reports a file that is not safetensors.
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
