#include "sim/foundation/config/gguf_file.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

namespace specsim::config {

namespace {

// From ggml.h and ggml-common.h of ggml-org/llama.cpp.
constexpr std::array<GgufFormat, 33> kFormats = {
    {{0, "F32", 1, 4},        {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},
     {7, "Q5_1", 32, 24},     {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},    {10, "Q2_K", 256, 84},  {11, "Q3_K", 256, 110},
     {12, "Q4_K", 256, 144},  {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66},
     {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50}, {20, "IQ4_NL", 32, 18}, {21, "IQ3_S", 256, 110},
     {22, "IQ2_S", 256, 82},  {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},       {25, "I16", 1, 2},      {26, "I32", 1, 4},
     {27, "I64", 1, 8},       {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56}, {30, "BF16", 1, 2},     {34, "TQ1_0", 256, 54},
     {35, "TQ2_0", 256, 66},  {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36}}};

enum ValueType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kList, kU64, kI64, kF64 };

// Reads from the front of the file; never beyond its end.
class Cursor {
 public:
  Cursor(const InputFile& file, std::size_t longest_list) : file_(file), longest_list_(longest_list) {}
  [[nodiscard]] std::size_t at() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const { throw BadInput({file_.path(), 0, 0}, what); }

  template <class T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }
  std::string text(const char* what) {
    const auto size = number<std::uint64_t>(what);
    constexpr std::uint64_t kLongestText = std::uint64_t{1} << 24U;
    if (size > kLongestText && size <= file_.size() - at_)
      fail(fmt::format("{} is a text of {} bytes, allowed: at most {}", quote_for_message(what), size, kLongestText));
    const std::byte* const begin = take(size, what);
    return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(size)};
  }
  GgufValue value(std::uint32_t type, const std::string& key, int depth) {
    const char* const what = key.c_str();
    switch (type) {
      case kU8:
        return {std::uint64_t{number<std::uint8_t>(what)}};
      case kI8:
        return {std::int64_t{number<std::int8_t>(what)}};
      case kU16:
        return {std::uint64_t{number<std::uint16_t>(what)}};
      case kI16:
        return {std::int64_t{number<std::int16_t>(what)}};
      case kU32:
        return {std::uint64_t{number<std::uint32_t>(what)}};
      case kI32:
        return {std::int64_t{number<std::int32_t>(what)}};
      case kF32:
        return {static_cast<double>(number<float>(what))};
      case kBool:
        return {number<std::uint8_t>(what) != 0};
      case kText:
        return {text(what)};
      case kU64:
        return {number<std::uint64_t>(what)};
      case kI64:
        return {number<std::int64_t>(what)};
      case kF64:
        return {number<double>(what)};
      case kList:
        return list(key, depth);
      default:
        fail(fmt::format("{} has values of type {}, allowed: 0 to 12", quote_for_message(key), type));
    }
  }

 private:
  GgufValue list(const std::string& key, int depth) {
    constexpr int kDeepest = 4;
    if (depth >= kDeepest) fail(fmt::format("{} has lists within lists, allowed: {} deep", quote_for_message(key), kDeepest));
    const auto type = number<std::uint32_t>(key.c_str());
    const auto size = number<std::uint64_t>(key.c_str());
    GgufValue::List items;
    for (std::uint64_t i = 0; i < size; ++i) {  // ends with the file at the latest
      GgufValue item = value(type, key, depth + 1);
      if (size <= longest_list_) items.push_back(std::move(item));
    }
    return {std::move(items)};
  }
  // Valid until the next call.
  const std::byte* take(std::uint64_t size, const char* what) {
    if (size > file_.size() - at_)
      fail(fmt::format("{} is {} bytes at byte {} and the file ends at {}, allowed: data within the file",
                       quote_for_message(what), size, at_, file_.size()));
    if (at_ + size > begin_ + buffer_.size()) {
      constexpr std::size_t kAtOnce = std::size_t{1} << 20;
      buffer_.resize(std::min(std::max<std::size_t>(size, kAtOnce), file_.size() - at_));
      file_.read(at_, buffer_);
      begin_ = at_;
    }
    at_ += static_cast<std::size_t>(size);
    return buffer_.data() + (at_ - size - begin_);
  }

  const InputFile& file_;
  std::size_t longest_list_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;          // position of the buffer in the file
  std::vector<std::byte> buffer_;  // bytes read ahead
};

std::optional<double> number_of(const GgufValue& value) {
  if (const auto* n = std::get_if<std::uint64_t>(&value.value)) return static_cast<double>(*n);
  if (const auto* n = std::get_if<std::int64_t>(&value.value)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&value.value)) return *x;
  return std::nullopt;
}

constexpr std::uint64_t kMostTensors = 1 << 20;
constexpr std::uint64_t kMostKeys = 1 << 16;
constexpr std::uint32_t kMostDimensions = 4;

// One tensor's entry in the table, before its bytes are located.
struct Entry {
  std::string name;
  GgufTensor tensor;
  std::uint64_t offset = 0;
  std::size_t size = 0;
};

Entry read_entry(Cursor& cursor, std::size_t file_size) {
  Entry entry;
  entry.name = cursor.text("a tensor's name");
  const std::string quoted = quote_for_message(entry.name);
  const auto dimensions = cursor.number<std::uint32_t>("a tensor's dimensions");
  if (dimensions == 0 || dimensions > kMostDimensions)
    cursor.fail(fmt::format("tensor {} has {} dimensions, allowed: 1 to {}", quoted, dimensions, kMostDimensions));
  std::size_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto n = cursor.number<std::uint64_t>("a tensor's shape");
    if (n == 0 || __builtin_mul_overflow(elements, static_cast<std::size_t>(n), &elements) || elements > 8 * file_size)
      cursor.fail(fmt::format("tensor {} has a dimension of {}, allowed: shapes whose elements the file can hold", quoted, n));
    entry.tensor.shape.insert(entry.tensor.shape.begin(), static_cast<std::size_t>(n));
  }
  entry.tensor.type = cursor.number<std::uint32_t>("a tensor's type");
  entry.offset = cursor.number<std::uint64_t>("a tensor's offset");
  const GgufFormat* const format = gguf_format(entry.tensor.type);
  if (format == nullptr)
    cursor.fail(
        fmt::format("tensor {} has the unknown ggml type {}, allowed: types up to 40 (NVFP4)", quoted, entry.tensor.type));
  if (entry.tensor.shape.back() % format->block_values != 0)
    cursor.fail(fmt::format("tensor {} of type {} has rows of {}, allowed: multiples of {}", quoted, format->name,
                            entry.tensor.shape.back(), format->block_values));
  entry.size = elements / format->block_values * format->block_bytes;
  return entry;
}

}  // namespace

const GgufFormat* gguf_format(std::uint32_t type) {
  const auto* const found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const GgufFormat& one) { return one.type == type; });
  return found == kFormats.end() ? nullptr : found;
}

GgufFile::GgufFile(std::string path, std::size_t longest_list) : file_(std::move(path), "a readable GGUF file") {
  Cursor cursor(file_, longest_list);
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
  if (file_.size() < 24 || cursor.number<std::uint32_t>("the first bytes") != kMagic)
    cursor.fail("it does not begin with GGUF, allowed: a GGUF file");
  if (const auto version = cursor.number<std::uint32_t>("the version"); version != 2 && version != 3)
    cursor.fail(fmt::format("version {} of GGUF, allowed: 2, 3 (little-endian)", version));
  const auto tensors = cursor.number<std::uint64_t>("the number of tensors");
  const auto entries = cursor.number<std::uint64_t>("the number of keys");
  if (tensors > kMostTensors) cursor.fail(fmt::format("{} tensors, allowed: at most {}", tensors, kMostTensors));
  if (entries > kMostKeys) cursor.fail(fmt::format("{} keys, allowed: at most {}", entries, kMostKeys));
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string key = cursor.text("a key");
    const auto type = cursor.number<std::uint32_t>(key.c_str());
    if (!metadata_.emplace(key, cursor.value(type, key, 0)).second)
      cursor.fail(fmt::format("key {} is given twice, allowed: once", quote_for_message(key)));
  }
  std::vector<Entry> table;
  for (std::uint64_t i = 0; i < tensors; ++i) table.push_back(read_entry(cursor, file_.size()));
  const std::size_t alignment = count("general.alignment", 32, 1, 1 << 16);
  const std::size_t start = (cursor.at() + alignment - 1) / alignment * alignment;
  for (Entry& entry : table) {
    const std::size_t room = start < file_.size() ? file_.size() - start : 0;
    if (entry.offset > room || entry.size > room - entry.offset)
      cursor.fail(
          fmt::format("tensor {} of {} bytes begins at byte {} of the data, allowed: within the {} bytes that the file has",
                      quote_for_message(entry.name), entry.size, entry.offset, room));
    entry.tensor.offset = start + static_cast<std::size_t>(entry.offset);
    entry.tensor.bytes = entry.size;
    if (!tensors_.emplace(entry.name, std::move(entry.tensor)).second)
      cursor.fail(fmt::format("tensor {} is given twice, allowed: once", quote_for_message(entry.name)));
  }
}

const std::string* GgufFile::text(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : std::get_if<std::string>(&found->second.value);
}

const GgufValue::List* GgufFile::list(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : std::get_if<GgufValue::List>(&found->second.value);
}

double GgufFile::number(const std::string& key, double fallback, double low, double high) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return fallback;
  const std::optional<double> x = number_of(found->second);
  if (!x || !(*x >= low && *x <= high))
    throw BadInput({path(), 0, 0},
                   fmt::format("{} is {}, allowed: {:g} to {:g}", key, x ? fmt::format("{:g}", *x) : "not a number", low, high));
  return *x;
}

std::size_t GgufFile::count(const std::string& key, std::size_t fallback, double low, double high) const {
  const double x = number(key, static_cast<double>(fallback), low, high);
  if (x != std::floor(x)) throw BadInput({path(), 0, 0}, fmt::format("{} is {:g}, allowed: whole numbers", key, x));
  return static_cast<std::size_t>(x);
}

bool GgufFile::flag(const std::string& key, bool fallback) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return fallback;
  const bool* const value = std::get_if<bool>(&found->second.value);
  if (value == nullptr) throw BadInput({path(), 0, 0}, fmt::format("{} is not a truth value, allowed: true or false", key));
  return *value;
}

}  // namespace specsim::config
