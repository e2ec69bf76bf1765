#include "sim/llm/json.h"

#include "sim/base/error.h"
#include "sim/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace specsim::llm {

namespace {

constexpr int kDeepest = 64;

Location place_of(std::string_view text, std::size_t byte, const std::string& path) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {path, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(before.size() - line_start) + 1};
}

}  // namespace

Json parse_json(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> keys;  // of the maps that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest)
      throw BadInput({path, 0, 0}, fmt::format("lists and maps within one another {} deep, allowed: {}", depth, kDeepest));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw BadInput({path, 0, 0}, fmt::format("key {} is given twice, allowed: once",
                                               config::quote_for_message(parsed.get_ref<const std::string&>())));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::parse_error& error) {
    throw BadInput(place_of(text, error.byte, path), "broken JSON from here on, allowed: one JSON value");
  } catch (const nlohmann::json::exception& error) {  // a number beyond the range
    throw BadInput({path, 0, 0}, fmt::format("JSON with {}, allowed: numbers of 64 bits", error.what()));
  }
}

std::string json_text(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_string()) return config::quote_for_message(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "a list" : "a map";
  return value.dump().substr(0, kMost);
}

}  // namespace specsim::llm
