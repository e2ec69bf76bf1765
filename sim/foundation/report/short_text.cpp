#include "sim/foundation/report/short_text.h"

#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace specsim::report {

namespace {

constexpr std::size_t kShort = 36;  // longest text that is shown unchanged

bool bracketed(const std::string& text) {
  return text.size() >= 2 && ((text.front() == '{' && text.back() == '}') || (text.front() == '[' && text.back() == ']'));
}

// The entries of a map or list; otherwise the text itself.
std::vector<std::string> entries_of(const std::string& value) {
  if (!bracketed(value)) return {value};
  const std::string inner = value.substr(1, value.size() - 2);
  std::vector<std::string> entries;
  for (const std::string& entry : config::split_outside_brackets(inner, ',')) {
    const std::size_t begin = entry.find_first_not_of(' ');
    entries.push_back(begin == std::string::npos ? "" : entry.substr(begin));
  }
  return entries;
}

// "key: " of a map's entry; "" for a list's.
std::string key_of(const std::string& entry) {
  const std::vector<std::string> parts = config::split_outside_brackets(entry, ':');
  return parts.size() < 2 ? "" : parts[0] + ": ";
}

// Whether `other` has the entry: at the same place in a list, anywhere in a map.
bool has_entry(const std::vector<std::string>& other, const std::string& entry, std::size_t place, bool list) {
  return list ? place < other.size() && other[place] == entry : std::find(other.begin(), other.end(), entry) != other.end();
}

std::string short_word(const std::string& word, const std::vector<std::string>& others) {
  constexpr std::size_t kHead = 14;
  constexpr std::size_t kBefore = 6;  // letters shown before the first different one
  std::size_t common = 0;
  for (const std::string& other : others) {
    if (other == word) continue;
    const auto differ = std::mismatch(word.begin(), word.end(), other.begin(), other.end()).first;
    common = std::max(common, static_cast<std::size_t>(differ - word.begin()));
  }
  const std::size_t from = std::min(common, word.size() - 1);
  std::string text = from > kHead + kBefore ? word.substr(0, kHead) + ".." + word.substr(from - kBefore) : word;
  return text.size() > kShort ? text.substr(0, kShort - 2) + ".." : text;
}

// An entry whose value is shortened, compared with the same entry of the others.
std::string short_entry(const std::string& entry, std::size_t place, const std::vector<std::vector<std::string>>& others) {
  if (entry.size() <= kShort) return entry;
  const std::string key = key_of(entry);
  std::vector<std::string> values;
  for (const std::vector<std::string>& other : others) {
    if (key.empty()) {
      if (place < other.size()) values.push_back(other[place]);
      continue;
    }
    for (const std::string& own : other)
      if (key_of(own) == key) values.push_back(own.substr(std::min(own.size(), key.size())));
  }
  return key + short_value(entry.substr(std::min(entry.size(), key.size())), values);
}

}  // namespace

std::string short_value(const std::string& value, const std::vector<std::string>& others) {
  if (value.size() <= kShort) return value;
  if (!bracketed(value)) return short_word(value, others);
  const bool list = value.front() == '[';
  const std::vector<std::string> entries = entries_of(value);
  std::vector<std::vector<std::string>> ambiguous;  // values that the entries shown so far do not distinguish from this one
  std::vector<std::vector<std::string>> all;
  for (const std::string& other : others)
    if (other != value) all.push_back(entries_of(other));
  ambiguous = all;
  std::string text(1, value.front());
  bool left_out = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto differs = [&](const std::vector<std::string>& other) { return !has_entry(other, entries[i], i, list); };
    const std::size_t before = ambiguous.size();
    ambiguous.erase(std::remove_if(ambiguous.begin(), ambiguous.end(), differs), ambiguous.end());
    const bool shown = i == 0 || ambiguous.size() < before;
    if (!shown && left_out) continue;
    text += fmt::format("{}{}", i > 0 ? ", " : "", shown ? short_entry(entries[i], i, all) : "..");
    left_out = !shown;
  }
  return text + value.back();
}

std::string short_method(const std::string& method, std::size_t most) {
  std::vector<std::string> words = config::split_outside_brackets(method, ' ');
  std::size_t letters = method.size();
  while (letters > most) {
    const auto size = [](const std::string& word) { return bracketed(word) ? word.size() : 0; };
    const auto longest = std::max_element(words.begin(), words.end(),
                                          [&](const std::string& a, const std::string& b) { return size(a) < size(b); });
    const std::string instead = fmt::format("{}..{}", longest->front(), longest->back());
    if (size(*longest) <= instead.size()) break;
    letters -= longest->size() - instead.size();
    *longest = instead;
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace specsim::report
