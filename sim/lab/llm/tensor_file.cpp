#include "sim/lab/llm/tensor_file.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "sim/lab/llm/matrix.h"
#include "sim/lab/llm/model_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

namespace specsim::llm {

namespace {

constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kMaxHeader = std::size_t{16} << 20;  // a hundred times the header of a model of 100 layers
constexpr std::array<Precision, 3> kPrecisions = {Precision::f32, Precision::f16, Precision::bf16};

// Non-negative integers of the list under `key`; nullopt for anything else.
std::optional<std::vector<std::size_t>> sizes(const config::Value& entry, const char* key) {
  const config::Value* const list = entry.find(key);
  if (list == nullptr || !list->is_list()) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (const config::Value& item : list->items) {
    const std::optional<std::int64_t> size = config::as_integer(item);
    if (!size || *size < 0) return std::nullopt;
    sizes.push_back(static_cast<std::size_t>(*size));
  }
  return sizes;
}

// What to do with a directory that has no safetensors.
void refuse_other_weights(const std::string& directory) {
  constexpr std::array kPickled = {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"};
  for (const char* const name : kPickled)
    if (std::filesystem::exists(directory + "/" + name))
      throw BadInput({directory + "/" + name, 0, 0},
                     "a PyTorch pickle, which is a program, allowed: model.safetensors, as transformers writes it with "
                     "model.save_pretrained(DIR)");
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().extension() == ".gguf")
      throw BadInput({directory, 0, 0}, fmt::format("no model.safetensors, allowed: the GGUF file itself in the directory's "
                                                    "place, {}",
                                                    entry.path().string()));
}

// The header's text.
std::vector<std::byte> header_of(const InputFile& file) {
  if (file.size() < kSizeBytes)
    throw BadInput({file.path(), 0, 0},
                   fmt::format("{} bytes, allowed: at least the {} that hold the header's size", file.size(), kSizeBytes));
  std::array<std::byte, kSizeBytes> prefix{};
  file.read(0, prefix);
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) size |= std::to_integer<std::uint64_t>(prefix[i]) << 8 * i;
  const std::size_t rest = file.size() - kSizeBytes;
  if (size > std::min(rest, kMaxHeader))
    throw BadInput({file.path(), 0, 0},
                   fmt::format("a header of {} bytes is announced, allowed: at most {} ({})", size, std::min(rest, kMaxHeader),
                               rest < kMaxHeader ? "the file ends there" : "16 MiB"));
  std::vector<std::byte> header(size);
  file.read(kSizeBytes, header);
  return header;
}

// A tensor's bytes of the data.
struct Range {
  std::size_t begin;
  std::size_t end;
  std::string name;
};

// Throws BadInput where tensors overlap, or bytes belong to none.
void check_covered(std::vector<Range> ranges, std::size_t data_size, const std::string& path) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::size_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin != covered)
      throw BadInput({path, 0, 0},
                     fmt::format("tensor {}: begins at byte {} of the data, allowed: {}, where the one before it ends",
                                 config::quote_for_message(range.name), range.begin, covered));
    covered = range.end;
  }
  if (covered != data_size)
    throw BadInput({path, 0, 0}, fmt::format("{} bytes behind the last tensor, allowed: none", data_size - covered));
}

}  // namespace

const char* to_text(Precision precision) {
  return precision == Precision::f32 ? "F32" : precision == Precision::f16 ? "F16" : "BF16";
}

std::size_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

TensorFile::TensorFile(std::string path) : file_(std::move(path), "a readable safetensors file") { read_header(); }

void TensorFile::read(const Tensor& tensor, std::size_t first, std::span<std::byte> to) const {
  SPECSIM_CHECK(first + to.size() <= tensor.bytes, "bytes {} to {} of {}", first, first + to.size(), tensor.bytes);
  file_.read(tensor.offset + first, to);
}

void TensorFile::read_header() {
  const std::vector<std::byte> header = header_of(file_);
  const std::size_t size = header.size();
  const std::size_t data_size = file_.size() - kSizeBytes - size;
  Diagnostics diagnostics;
  const config::Value root = parse_model_json({reinterpret_cast<const char*>(header.data()), header.size()}, path());
  if (!root.is_map()) throw BadInput({path(), 0, 0}, "the header is no JSON object, allowed: a map of tensors");

  std::vector<Range> ranges;
  for (const config::Field& entry : root.fields) {
    const std::string& name = entry.key;
    if (name == "__metadata__") continue;
    const auto wrong = [&](const std::string& what) {
      diagnostics.add({path(), 0, 0}, fmt::format("tensor {}: {}", config::quote_for_message(name), what));
    };
    const config::Value* const dtype = entry.value.find("dtype");
    const std::string_view type = dtype != nullptr ? std::string_view(dtype->text) : "";
    const auto* const precision =
        std::find_if(kPrecisions.begin(), kPrecisions.end(), [&](Precision p) { return type == to_text(p); });
    const auto shape = sizes(entry.value, "shape");
    const auto offsets = sizes(entry.value, "data_offsets");
    if (precision == kPrecisions.end()) {
      wrong(fmt::format("dtype is {}, allowed: F32, F16, BF16{}", dtype != nullptr ? config::found_text(*dtype) : "missing",
                        type == "I32" || type == "U8" || type == "I8" || type == "F8_E4M3"
                            ? "; for quantised weights take the original model, or a GGUF file"
                            : ""));
      continue;
    }
    if (!shape || !offsets || offsets->size() != 2) {
      wrong("shape or data_offsets is missing or no list of counts, allowed: [rows, columns] and [begin, end]");
      continue;
    }
    const std::size_t begin = (*offsets)[0];
    const std::size_t end = (*offsets)[1];
    if (begin > end || end > data_size) {
      wrong(fmt::format("data_offsets are [{}, {}], allowed: from 0 to the {} bytes that follow the header", begin, end,
                        data_size));
      continue;
    }
    std::size_t elements = 1;
    bool too_many = false;
    for (const std::size_t n : *shape) too_many = __builtin_mul_overflow(elements, n, &elements) || too_many;
    if (too_many || elements > data_size || elements * bytes_of(*precision) != end - begin) {
      wrong(fmt::format("a {} tensor of shape [{}] is said to lie in {} bytes, allowed: as many as its elements take",
                        to_text(*precision), fmt::join(*shape, ", "), end - begin));
      continue;
    }
    ranges.push_back({begin, end, name});
    tensors_[name] = {*precision, *shape, kSizeBytes + size + begin, end - begin};
  }
  diagnostics.throw_if_any();
  if (ranges.empty()) throw BadInput({path(), 0, 0}, "no tensor in the header, allowed: a model's");
  check_covered(std::move(ranges), data_size, path());
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
  const config::Value root = parse_model_json(read_whole_file(index_), index_);
  const config::Value* const map = root.find("weight_map");
  if (map == nullptr || !map->is_map())
    throw BadInput({index_, 0, 0}, "no \"weight_map\", allowed: {\"weight_map\": {TENSOR: FILE, ...}}");
  for (const config::Field& entry : map->fields) {
    const std::string name = entry.value.quoted ? entry.value.text : "";
    if (name.empty() || std::filesystem::path(name).filename() != name) {
      diagnostics.add(entry.value.where, fmt::format("tensor {} lies in {}, allowed: a file's name, beside the index",
                                                     config::quote_for_message(entry.key), config::found_text(entry.value)));
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
