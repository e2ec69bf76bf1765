#include "sim/llm/tensor_file.h"

#include "sim/base/error.h"
#include "sim/base/whole_file.h"
#include "sim/config/value.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

namespace specsim::llm {

namespace {

constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kMaxHeader = std::size_t{16} << 20;  // a hundred times the header of a model of 100 layers
constexpr std::array<Precision, 3> kPrecisions = {Precision::f32, Precision::f16, Precision::bf16};

// Non-negative integers of a JSON list; nullopt for anything else.
std::optional<std::vector<std::size_t>> sizes(const config::Value* value) {
  if (value == nullptr || !value->is_list()) return std::nullopt;
  std::vector<std::size_t> list;
  for (const config::Value& item : value->items) {
    const std::optional<std::int64_t> n = config::as_integer(item);
    if (!n || *n < 0) return std::nullopt;
    list.push_back(static_cast<std::size_t>(*n));
  }
  return list;
}

}  // namespace

const char* to_text(Precision precision) {
  return precision == Precision::f32 ? "F32" : precision == Precision::f16 ? "F16" : "BF16";
}

std::size_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 2; }

TensorFile::TensorFile(std::string path) : path_(std::move(path)) {
  const auto fail = [&](int error) {
    throw BadInput({path_, 0, 0}, fmt::format("cannot be read: {}, allowed: a readable safetensors file", std::strerror(error)));
  };
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(errno);
  struct stat facts {};
  void* memory = MAP_FAILED;
  int error = fstat(file, &facts) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(facts.st_mode)) error = EISDIR;
  if (error == 0 && facts.st_size > 0) {
    memory = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(file);
  if (error != 0) fail(error);
  if (memory != MAP_FAILED) file_ = {static_cast<const std::byte*>(memory), static_cast<std::size_t>(facts.st_size)};
  try {
    read_header();
  } catch (...) {  // no destructor runs for what was not constructed
    if (!file_.empty()) munmap(memory, file_.size());
    throw;
  }
}

TensorFile::~TensorFile() {
  if (!file_.empty())
    munmap(const_cast<std::byte*>(file_.data()), file_.size());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

void TensorFile::read_header() {
  if (file_.size() < kSizeBytes)
    throw BadInput({path_, 0, 0},
                   fmt::format("{} bytes, allowed: at least the {} that hold the header's size", file_.size(), kSizeBytes));
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) size |= std::to_integer<std::uint64_t>(file_[i]) << 8 * i;
  const std::size_t rest = file_.size() - kSizeBytes;
  if (size > std::min(rest, kMaxHeader))
    throw BadInput({path_, 0, 0}, fmt::format("a header of {} bytes is announced, allowed: at most {} ({})", size,
                                              std::min(rest, kMaxHeader), rest < kMaxHeader ? "the file ends there" : "16 MiB"));
  const std::span<const std::byte> header = file_.subspan(kSizeBytes, size);
  const std::span<const std::byte> data = file_.subspan(kSizeBytes + size);
  Diagnostics diagnostics;
  const config::Value root =
      config::parse_text({reinterpret_cast<const char*>(header.data()), header.size()}, path_, diagnostics);
  diagnostics.throw_if_any();
  if (!root.is_map()) throw BadInput({path_, 0, 0}, "the header is no JSON object, allowed: a map of tensors");

  struct Range {
    std::size_t begin;
    std::size_t end;
    std::string name;
  };
  std::vector<Range> ranges;
  for (const config::Field& field : root.fields) {
    if (field.key == "__metadata__") continue;
    const auto wrong = [&](const std::string& what) {
      diagnostics.add({path_, 0, 0}, fmt::format("tensor {}: {}", config::quote_for_message(field.key), what));
    };
    const config::Value* dtype = field.value.find("dtype");
    const auto* const precision = std::find_if(kPrecisions.begin(), kPrecisions.end(), [&](Precision p) {
      return dtype != nullptr && dtype->is_scalar() && dtype->text == to_text(p);
    });
    const auto shape = sizes(field.value.find("shape"));
    const auto offsets = sizes(field.value.find("data_offsets"));
    if (precision == kPrecisions.end()) {
      wrong(fmt::format("dtype is {}, allowed: F32, F16, BF16", dtype == nullptr ? "missing" : config::found_text(*dtype)));
      continue;
    }
    if (!shape || !offsets || offsets->size() != 2) {
      wrong("shape or data_offsets is missing or no list of counts, allowed: [rows, columns] and [begin, end]");
      continue;
    }
    const std::size_t begin = (*offsets)[0];
    const std::size_t end = (*offsets)[1];
    if (begin > end || end > data.size()) {
      wrong(fmt::format("data_offsets are [{}, {}], allowed: from 0 to the {} bytes that follow the header", begin, end,
                        data.size()));
      continue;
    }
    std::size_t elements = 1;
    bool too_many = false;
    for (const std::size_t n : *shape) too_many = __builtin_mul_overflow(elements, n, &elements) || too_many;
    if (too_many || elements > data.size() || elements * bytes_of(*precision) != end - begin) {
      wrong(fmt::format("a {} tensor of shape [{}] is said to lie in {} bytes, allowed: as many as its elements take",
                        to_text(*precision), fmt::join(*shape, ", "), end - begin));
      continue;
    }
    ranges.push_back({begin, end, field.key});
    tensors_[field.key] = {*precision, *shape, data.subspan(begin, end - begin)};
  }
  diagnostics.throw_if_any();
  if (ranges.empty()) throw BadInput({path_, 0, 0}, "no tensor in the header, allowed: a model's");
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::size_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin != covered)
      throw BadInput({path_, 0, 0},
                     fmt::format("tensor {}: begins at byte {} of the data, allowed: {}, where the one before it ends",
                                 config::quote_for_message(range.name), range.begin, covered));
    covered = range.end;
  }
  if (covered != data.size())
    throw BadInput({path_, 0, 0}, fmt::format("{} bytes behind the last tensor, allowed: none", data.size() - covered));
}

const Tensor& TensorFile::tensor(const std::string& name, const std::vector<std::size_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw BadInput({path_, 0, 0}, fmt::format("tensor \"{}\" is missing, allowed: every tensor of the model", name));
  if (found->second.shape != shape)
    throw BadInput({path_, 0, 0}, fmt::format("tensor \"{}\" has shape [{}], allowed by config.json: [{}]", name,
                                              fmt::join(found->second.shape, ", "), fmt::join(shape, ", ")));
  return found->second;
}

TensorFiles::TensorFiles(const std::string& directory) {
  const std::string whole = directory + "/model.safetensors";
  const std::string index = whole + ".index.json";
  if (std::filesystem::exists(whole) || !std::filesystem::exists(index)) {
    files_.try_emplace("", std::make_unique<TensorFile>(whole));
    return;
  }
  index_ = index;
  Diagnostics diagnostics;
  const config::Value root = config::parse_text(read_whole_file(index_), index_, diagnostics);
  diagnostics.throw_if_any();
  const config::Value* map = root.find("weight_map");
  if (map == nullptr || !map->is_map())
    throw BadInput({index_, 0, 0}, "no \"weight_map\", allowed: {\"weight_map\": {TENSOR: FILE, ...}}");
  for (const config::Field& field : map->fields) {
    const std::string& name = field.value.text;
    if (!field.value.is_scalar() || name.empty() || std::filesystem::path(name).filename() != name) {
      diagnostics.add(field.value.where, fmt::format("tensor {} lies in {}, allowed: a file's name, beside the index",
                                                     config::quote_for_message(field.key), config::found_text(field.value)));
      continue;
    }
    std::unique_ptr<TensorFile>& file = files_[name];
    if (file == nullptr) file = std::make_unique<TensorFile>(directory + "/" + name);
    file_of_[field.key] = file.get();
  }
  diagnostics.throw_if_any();
}

const TensorFile& TensorFiles::file_of(const std::string& name) const {
  if (index_.empty()) return *files_.begin()->second;
  const auto found = file_of_.find(name);
  if (found == file_of_.end())
    throw BadInput({index_, 0, 0}, fmt::format("tensor \"{}\" is missing, allowed: every tensor of the model", name));
  return *found->second;
}

}  // namespace specsim::llm
