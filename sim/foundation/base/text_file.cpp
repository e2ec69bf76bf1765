#include "sim/foundation/base/text_file.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace specsim {

namespace {

std::filesystem::path next_to(const Location& where, const std::string& name) {
  return std::filesystem::path(where.file).parent_path() / name;
}

}  // namespace

std::string file_next_to(const Location& where, const std::string& name) {
  std::error_code ignored;
  if (name.empty() || !std::filesystem::exists(next_to(where, name), ignored)) return name;
  return next_to(where, name).string();
}

std::string looked_for(const Location& where, const std::string& name) {
  const std::filesystem::path here = name;
  std::error_code ignored;
  const bool one_place = next_to(where, name).lexically_normal() == here.lexically_normal();
  if (name.empty() || one_place || std::filesystem::exists(next_to(where, name), ignored) ||
      std::filesystem::exists(here, ignored))
    return "";
  return "; looked for next to the config and in the working directory";
}

std::string without_byte_order_mark(std::string text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

std::string read_text_file(const std::string& path) { return without_byte_order_mark(read_whole_file(path)); }

}  // namespace specsim
