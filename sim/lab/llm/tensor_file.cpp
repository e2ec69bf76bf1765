#include "sim/lab/llm/tensor_file.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/safetensors_header.h"
#include "sim/foundation/config/value.h"
#include "sim/lab/llm/matrix.h"
#include "sim/lab/llm/model_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace specsim::llm {

namespace {

constexpr std::array<Precision, 3> kPrecisions = {Precision::f32, Precision::f16, Precision::bf16};

// Explains what to do with a directory that has no safetensors.
void refuse_other_weights(const std::string& directory) {
  constexpr std::array kPickled = {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"};
  for (const char* const name : kPickled)
    if (std::filesystem::exists(directory + "/" + name))
      throw BadInput({directory + "/" + name, 0, 0},
                     "a PyTorch pickle, which may run code, allowed: model.safetensors, as transformers writes it with "
                     "model.save_pretrained(DIR)");
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().extension() == ".gguf")
      throw BadInput({directory, 0, 0}, fmt::format("no model.safetensors, allowed: the GGUF file itself in the directory's "
                                                    "place, {}",
                                                    entry.path().string()));
}

}  // namespace

const char* to_text(Precision precision) {
  return precision == Precision::f32 ? "F32" : precision == Precision::f16 ? "F16" : "BF16";
}

std::size_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

TensorFile::TensorFile(std::string path) : file_(std::move(path), "a readable safetensors file") {
  Diagnostics diagnostics;
  for (const auto& [name, tensor] : config::read_safetensors_header(file_)) {
    const auto* const precision =
        std::find_if(kPrecisions.begin(), kPrecisions.end(), [&type = tensor.dtype](Precision p) { return type == to_text(p); });
    if (precision == kPrecisions.end())
      diagnostics.add(
          {file_.path(), 0, 0},
          fmt::format("tensor {}: dtype is {}, allowed: F32, F16, BF16; for quantised weights take the original model, or a "
                      "GGUF file",
                      config::quote_for_message(name), config::quote_for_message(tensor.dtype)));
    else
      tensors_[name] = {*precision, tensor.shape, tensor.offset, tensor.bytes};
  }
  diagnostics.throw_if_any();
}

void TensorFile::read(const Tensor& tensor, std::size_t first, std::span<std::byte> to) const {
  SPECSIM_CHECK(first + to.size() <= tensor.bytes, "bytes {} to {} of {}", first, first + to.size(), tensor.bytes);
  file_.read(tensor.offset + first, to);
}

const Tensor& TensorFile::tensor(const std::string& name, const std::vector<std::size_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw BadInput({path(), 0, 0}, fmt::format("tensor \"{}\" is missing, allowed: every tensor of the model", name));
  if (found->second.shape != shape)
    throw BadInput({path(), 0, 0}, fmt::format("tensor \"{}\" has shape [{}], allowed by config.json: [{}]", name,
                                               fmt::join(found->second.shape, ", "), fmt::join(shape, ", ")));
  return found->second;
}

TensorFiles::TensorFiles(const std::string& directory) {
  const std::string whole = directory + "/model.safetensors";
  const std::string index = whole + ".index.json";
  if (!std::filesystem::exists(whole) && !std::filesystem::exists(index)) refuse_other_weights(directory);
  if (std::filesystem::exists(whole) || !std::filesystem::exists(index)) {
    files_.try_emplace("", std::make_unique<TensorFile>(whole));
    return;
  }
  index_ = index;
  Diagnostics diagnostics;
  const config::Value root = parse_model_json(read_regular_file(index_), index_);
  const config::Value* const map = root.find("weight_map");
  if (map == nullptr || !map->is_map())
    throw BadInput({index_, 0, 0}, "no \"weight_map\", allowed: {\"weight_map\": {TENSOR: FILE, ...}}");
  for (const config::Field& entry : map->fields) {
    const std::string name = entry.value.quoted ? entry.value.text : "";
    if (name.empty() || std::filesystem::path(name).filename() != name) {
      diagnostics.add(entry.value.where,
                      fmt::format("tensor {} lies in {}, allowed: the name of a file next to the index",
                                  config::quote_for_message(entry.key), config::description_of_found(entry.value)));
      continue;
    }
    std::unique_ptr<TensorFile>& file = files_[name];
    if (file == nullptr) file = std::make_unique<TensorFile>(fmt::format("{}/{}", directory, name));
    file_by_tensor_[entry.key] = file.get();
  }
  diagnostics.throw_if_any();
}

const TensorFile& TensorFiles::file_of(const std::string& name) const {
  if (index_.empty()) return *files_.begin()->second;
  const auto found = file_by_tensor_.find(name);
  if (found == file_by_tensor_.end())
    throw BadInput({index_, 0, 0}, fmt::format("tensor \"{}\" is missing, allowed: every tensor of the model", name));
  return *found->second;
}

TensorRows TensorFiles::rows(const std::string& name, const std::vector<std::size_t>& shape) const {
  const TensorFile& file = file_of(name);
  const Tensor& tensor = file.tensor(name, shape);
  return {file.path(), tensor.precision, [&file, &tensor](std::size_t row, std::span<float> values) {
            std::vector<std::byte> bytes(values.size() * bytes_of(tensor.precision));
            file.read(tensor, row * bytes.size(), bytes);
            to_floats(bytes.data(), tensor.precision, values);
          }};
}

}  // namespace specsim::llm
