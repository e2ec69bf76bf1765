#include "sim/llm/tensor_file.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/whole_file.h"
#include "sim/config/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
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

TensorFile::TensorFile(std::string path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a fifo is no reason to wait
  struct stat facts {};
  int error = file_ < 0 || fstat(file_, &facts) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(facts.st_mode)) error = EISDIR;
  if (error == 0 && !S_ISREG(facts.st_mode)) error = EINVAL;
  try {
    if (error != 0)
      throw BadInput({path_, 0, 0},
                     fmt::format("cannot be read: {}, allowed: a readable safetensors file", std::strerror(error)));
    size_ = static_cast<std::size_t>(facts.st_size);
    read_header();
  } catch (...) {  // no destructor runs for what was not constructed
    if (file_ >= 0) close(file_);
    throw;
  }
}

TensorFile::~TensorFile() { close(file_); }

void TensorFile::read_at(std::size_t offset, std::span<std::byte> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t got = pread(file_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
    if (got == 0)
      throw BadInput({path_, 0, 0},
                     fmt::format("ends at byte {} and had {} when it was opened, allowed: a file that nobody changes "
                                 "while it is read",
                                 offset + done, size_));
    done += static_cast<std::size_t>(got);
  }
}

void TensorFile::read(const Tensor& tensor, std::size_t first, std::span<std::byte> to) const {
  SPECSIM_CHECK(first + to.size() <= tensor.bytes, "bytes {} to {} of {}", first, first + to.size(), tensor.bytes);
  read_at(tensor.offset + first, to);
}

void TensorFile::read_header() {
  if (size_ < kSizeBytes)
    throw BadInput({path_, 0, 0},
                   fmt::format("{} bytes, allowed: at least the {} that hold the header's size", size_, kSizeBytes));
  std::array<std::byte, kSizeBytes> prefix{};
  read_at(0, prefix);
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) size |= std::to_integer<std::uint64_t>(prefix[i]) << 8 * i;
  const std::size_t rest = size_ - kSizeBytes;
  if (size > std::min(rest, kMaxHeader))
    throw BadInput({path_, 0, 0}, fmt::format("a header of {} bytes is announced, allowed: at most {} ({})", size,
                                              std::min(rest, kMaxHeader), rest < kMaxHeader ? "the file ends there" : "16 MiB"));
  std::vector<std::byte> header(size);
  read_at(kSizeBytes, header);
  const std::size_t data_size = rest - size;
  Diagnostics diagnostics;
  const config::Value root =
      config::parse_json({reinterpret_cast<const char*>(header.data()), header.size()}, path_, diagnostics);
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
    ranges.push_back({begin, end, field.key});
    tensors_[field.key] = {*precision, *shape, kSizeBytes + size + begin, end - begin};
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
  if (covered != data_size)
    throw BadInput({path_, 0, 0}, fmt::format("{} bytes behind the last tensor, allowed: none", data_size - covered));
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
  const config::Value root = config::parse_json(read_whole_file(index_), index_, diagnostics);
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
    if (file == nullptr) file = std::make_unique<TensorFile>(fmt::format("{}/{}", directory, name));
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
