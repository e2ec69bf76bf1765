#include "sim/cli/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace specsim::cli {

namespace {

// A number of `text` by `read`, as_number or as_integer; `noun` and `more` are for the message.
template <class Read>
auto checked(const Read& read, const std::string& text, const std::string& option, const config::Interval& interval,
             const char* noun, const char* more) {
  const auto x = read(text);
  if (!x || !interval.contains(static_cast<double>(*x)))
    throw BadInput({option, 0, 0},
                   fmt::format("{}, allowed: {} {}{}", config::quote_for_message(text), noun, interval.to_text(), more));
  return *x;
}

constexpr auto kNumber = [](const std::string& text) { return config::as_number(text); };
constexpr auto kInteger = [](const std::string& text) { return config::as_integer(text); };
constexpr const char* kInList = " with commas between";

}  // namespace

double read_number(const std::string& text, const std::string& option, const config::Interval& interval) {
  return checked(kNumber, text, option, interval, "a number", "");
}

std::int64_t read_integer(const std::string& text, const std::string& option, const config::Interval& interval) {
  return checked(kInteger, text, option, interval, "an integer", "");
}

std::vector<std::string> read_texts(const std::string& list, const std::string& option) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    if (parts.back().empty())
      throw BadInput({option, 0, 0}, fmt::format("{}, allowed: values with commas between", config::quote_for_message(list)));
    at = end + 1;
  }
  return parts;
}

std::vector<double> read_numbers(const std::string& list, const std::string& option, const config::Interval& interval) {
  std::vector<double> numbers;
  for (const std::string& text : read_texts(list, option))
    numbers.push_back(checked(kNumber, text, option, interval, "numbers", kInList));
  return numbers;
}

std::vector<std::int64_t> read_integers(const std::string& list, const std::string& option, const config::Interval& interval) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : read_texts(list, option))
    numbers.push_back(checked(kInteger, text, option, interval, "integers", kInList));
  return numbers;
}

unsigned read_threads(const std::string& text) {
  constexpr unsigned kMost = 1024;
  const auto threads = static_cast<unsigned>(read_integer(text, "--threads", config::between(0, kMost)));
  return threads > 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

}  // namespace specsim::cli
