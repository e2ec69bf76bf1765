#include "sim/foundation/config/safetensors_header.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace specsim::config {

namespace {

constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kMaxHeader = std::size_t{16} << 20;  // a hundred times the header of a model of 100 layers

struct Dtype {
  std::string_view word;
  std::size_t bits;
};
constexpr std::array<Dtype, 18> kDtypes = {{{"F32", 32},
                                            {"F16", 16},
                                            {"BF16", 16},
                                            {"F64", 64},
                                            {"F8_E4M3", 8},
                                            {"F8_E5M2", 8},
                                            {"F8_E8M0", 8},
                                            {"F6_E2M3", 6},
                                            {"F6_E3M2", 6},
                                            {"F4", 4},
                                            {"I8", 8},
                                            {"U8", 8},
                                            {"I16", 16},
                                            {"U16", 16},
                                            {"I32", 32},
                                            {"U32", 32},
                                            {"I64", 64},
                                            {"BOOL", 8}}};

// Non-negative integers in the list under `key`; nullopt for anything else.
std::optional<std::vector<std::size_t>> sizes(const Value& entry, const char* key) {
  const Value* const list = entry.find(key);
  if (list == nullptr || !list->is_list()) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (const Value& item : list->items) {
    const std::optional<std::int64_t> size = as_integer(item);
    if (!size || *size < 0) return std::nullopt;
    sizes.push_back(static_cast<std::size_t>(*size));
  }
  return sizes;
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
                   fmt::format("the file states a header of {} bytes, allowed: at most {} ({})", size, std::min(rest, kMaxHeader),
                               rest < kMaxHeader ? "the file ends there" : "16 MiB"));
  std::vector<std::byte> header(size);
  file.read(kSizeBytes, header);
  return header;
}

// The range of a tensor's bytes in the data.
struct Range {
  std::size_t begin;
  std::size_t end;
  std::string name;
};

// Throws BadInput if tensors overlap, or if bytes belong to no tensor.
void check_covered(std::vector<Range> ranges, std::size_t data_size, const std::string& path) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::size_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin != covered)
      throw BadInput({path, 0, 0},
                     fmt::format("tensor {}: begins at byte {} of the data, allowed: {}, where the one before it ends",
                                 quote_for_message(range.name), range.begin, covered));
    covered = range.end;
  }
  if (covered != data_size)
    throw BadInput({path, 0, 0}, fmt::format("{} bytes after the last tensor, allowed: none", data_size - covered));
}

}  // namespace

std::size_t bits_of_dtype(std::string_view dtype) {
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& one) { return one.word == dtype; });
  return found == kDtypes.end() ? 0 : found->bits;
}

std::map<std::string, SafeTensor> read_safetensors_header(const InputFile& file) {
  const std::string& path = file.path();
  const std::vector<std::byte> header = header_of(file);
  const std::size_t size = header.size();
  const std::size_t data_size = file.size() - kSizeBytes - size;
  Diagnostics diagnostics;
  constexpr JsonLimits kLimits{.values = std::size_t{1} << 21U, .depth = 64};
  const Value root = parse_json({reinterpret_cast<const char*>(header.data()), header.size()}, path, diagnostics, 1, kLimits);
  diagnostics.throw_if_any();
  if (!root.is_map()) throw BadInput({path, 0, 0}, "the header is not a JSON object, allowed: a map of tensors");

  std::map<std::string, SafeTensor> tensors;
  std::vector<Range> ranges;
  for (const Field& entry : root.fields) {
    const std::string& name = entry.key;
    if (name == "__metadata__") continue;
    const auto wrong = [&](const std::string& what) {
      diagnostics.add({path, 0, 0}, fmt::format("tensor {}: {}", quote_for_message(name), what));
    };
    const Value* const dtype = entry.value.find("dtype");
    const std::size_t bits = dtype != nullptr && dtype->is_scalar() ? bits_of_dtype(dtype->text) : 0;
    const auto shape = sizes(entry.value, "shape");
    const auto offsets = sizes(entry.value, "data_offsets");
    if (bits == 0) {
      std::vector<std::string_view> words;
      for (const Dtype& one : kDtypes) words.push_back(one.word);
      wrong(fmt::format("dtype is {}, allowed: {}", dtype != nullptr ? description_of_found(*dtype) : "missing",
                        fmt::join(words, ", ")));
      continue;
    }
    if (!shape || !offsets || offsets->size() != 2) {
      wrong("shape or data_offsets is missing or not a list of counts, allowed: [rows, columns] and [begin, end]");
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
    if (too_many || elements > 2 * data_size || (elements * bits + 7) / 8 != end - begin) {
      wrong(fmt::format("a {} tensor of shape [{}] has {} bytes, allowed: as many as its elements take", dtype->text,
                        fmt::join(*shape, ", "), end - begin));
      continue;
    }
    ranges.push_back({begin, end, name});
    tensors[name] = {dtype->text, *shape, kSizeBytes + size + begin, end - begin};
  }
  diagnostics.throw_if_any();
  if (ranges.empty()) throw BadInput({path, 0, 0}, "no tensor in the header, allowed: the tensors of a model");
  check_covered(std::move(ranges), data_size, path);
  return tensors;
}

}  // namespace specsim::config
