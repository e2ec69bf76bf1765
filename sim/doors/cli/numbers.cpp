#include "sim/doors/cli/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace specsim::cli {

namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// A share as in logs: "0.723", or "72.3%" with or without a space.
std::optional<double> share_of(const std::string& text) {
  if (text.empty() || text.back() != '%') return config::as_number(text);
  const auto percent = config::as_number(trimmed(text.substr(0, text.size() - 1)));
  return percent ? std::optional<double>(*percent / 100.0) : std::nullopt;
}

// Reads a number from `text` with `read` (as_number or as_integer); `noun` and `more` are for the message.
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
constexpr auto kShare = [](const std::string& text) { return share_of(text); };
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
  for (const std::string& part : config::split_outside_brackets(list, ',')) {
    parts.push_back(trimmed(part));
    if (parts.back().empty())
      throw BadInput({option, 0, 0}, fmt::format("{}, allowed: values with commas between", config::quote_for_message(list)));
  }
  return parts;
}

std::vector<double> read_numbers(const std::string& list, const std::string& option, const config::Interval& interval) {
  std::vector<double> numbers;
  for (const std::string& text : read_texts(list, option))
    numbers.push_back(checked(kNumber, text, option, interval, "numbers", kInList));
  return numbers;
}

double read_share(const std::string& text, const std::string& option) {
  return checked(kShare, trimmed(text), option, config::between(0, 1), "a number", ", or a percentage");
}

std::vector<double> read_shares(const std::string& list, const std::string& option) {
  std::vector<double> shares;
  for (const std::string& text : read_texts(list, option))
    shares.push_back(checked(kShare, text, option, config::between(0, 1), "numbers", " or percentages, with commas between"));
  return shares;
}

std::vector<std::int64_t> read_integers(const std::string& list, const std::string& option, const config::Interval& interval) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : read_texts(list, option))
    numbers.push_back(checked(kInteger, text, option, interval, "integers", kInList));
  return numbers;
}

std::string directory_name(const std::string& text, const std::string& option) {
  if (text.empty()) throw BadInput({option, 0, 0}, "\"\", allowed: a directory");
  return text;
}

std::string file_name(const std::string& text, const std::string& option) {
  if (text.empty()) throw BadInput({option, 0, 0}, "\"\", allowed: a file");
  return text;
}

std::size_t read_word(const std::string& text, const std::string& option, const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end())
    throw BadInput({option, 0, 0}, fmt::format("{}, allowed: {}", config::quote_for_message(text), fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

unsigned read_threads(const std::string& text, const std::string& option) {
  constexpr unsigned kMost = 1024;
  const auto threads = static_cast<unsigned>(read_integer(text, option, config::between(0, kMost)));
  return threads > 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

}  // namespace specsim::cli
