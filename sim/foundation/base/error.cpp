#include "sim/foundation/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <utility>

namespace specsim {

namespace {

std::string join(const std::vector<Diagnostic>& list) {
  std::string text;
  for (const Diagnostic& diagnostic : list) {
    if (!text.empty()) text += '\n';
    const std::string where = to_string(diagnostic.where);
    text += where.empty() ? diagnostic.message : fmt::format("{}: {}", where, diagnostic.message);
  }
  // what() would end at a NUL.
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at)) text.replace(at, 1, "\\x00");
  return text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The parts of a name between dashes: llama-8b has llama and 8b.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name)
    if (c == '-' || c == '_' || c == '.' || c == ' ')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// Whether each part of the word is a part of the name: 4090 of rtx-4090, llama-8b of llama-3.1-8b.
bool has_parts(const std::string& word, const std::string& name) {
  constexpr std::size_t kTold = 3;  // fewest letters that identify a name
  if (word.size() < kTold) return false;
  const std::vector<std::string> own = parts_of(name);
  const std::vector<std::string> wanted = parts_of(word);
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const std::string& part) { return std::find(own.begin(), own.end(), part) != own.end(); });
}

// The distance of a name from the unknown word, both in lower case.
std::size_t distance_of(const std::string& word, const std::string& name) {
  constexpr std::size_t kStem = 4;  // letters that an abbreviation shares with the full word: vocabulary, vocab
  const std::size_t common = std::min(word.size(), name.size());
  if (common >= kStem && word.substr(0, common) == name.substr(0, common)) return 0;
  const std::size_t spelt = edit_distance(word, name);
  return has_parts(word, name) ? std::min<std::size_t>(spelt, 1) : spelt;
}

// The candidates nearest to `word` by edit distance, at most three; none if no candidate is close enough to be meant. Candidates
// that begin with the word, or contain all its parts, come before those with similar spelling.
std::vector<std::string> nearest_names(const std::string& word, const std::vector<std::string>& candidates) {
  // Nobody means "exponent" by a word of a thousand letters, and computing the edit distance takes time.
  constexpr std::size_t kLongestMeant = 100;
  constexpr std::size_t kMost = 3;
  if (word.size() > kLongestMeant) return {};
  const std::string own = lower(word);
  std::size_t best = word.size() / 3 + 1;  // a larger distance is another word, not a typing error
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = distance_of(own, lower(candidate));
    if (distance > best) continue;
    if (distance < best) near.clear();
    best = distance;
    near.emplace_back(distance, candidate);
  }
  // Among several, those with the word's length are the nearest: h100-sxm before h100-pcie.
  const auto longer = [&](const auto& one) {
    return std::max(one.second.size(), own.size()) - std::min(one.second.size(), own.size());
  };
  std::stable_sort(near.begin(), near.end(), [&](const auto& a, const auto& b) { return longer(a) < longer(b); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(near.size(), kMost); ++i) names.push_back(near[i].second);
  return names;
}

}  // namespace

std::string to_string(const Location& where) {
  if (where.file.empty()) return "";
  if (where.line <= 0) return where.file;
  if (where.column <= 0) return fmt::format("{}:{}", where.file, where.line);
  return fmt::format("{}:{}:{}", where.file, where.line, where.column);
}

void Diagnostics::add(Location where, std::string message) { list_.push_back({std::move(where), std::move(message)}); }

void Diagnostics::throw_if_any() const {
  if (!list_.empty()) throw BadInput(list_);
}

std::vector<Diagnostic> by_place(std::vector<Diagnostic> list) {
  std::vector<std::string> files;
  for (const Diagnostic& diagnostic : list)
    if (std::find(files.begin(), files.end(), diagnostic.where.file) == files.end()) files.push_back(diagnostic.where.file);
  const auto place = [&](const Diagnostic& diagnostic) {
    const int line =
        diagnostic.where.line > 0 ? diagnostic.where.line : std::numeric_limits<int>::max();  // errors without a line come last
    return std::pair(std::find(files.begin(), files.end(), diagnostic.where.file), line);
  };
  std::stable_sort(list.begin(), list.end(), [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
  return list;
}

BadInput::BadInput(std::vector<Diagnostic> list) : std::runtime_error(join(list)), list_(std::move(list)) {}

BadInput::BadInput(Location where, std::string message)
    : BadInput(std::vector<Diagnostic>{{std::move(where), std::move(message)}}) {}

std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest_names(word, candidates);
  return near.empty() ? "" : near.front();
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest_names(word, candidates);
  std::string list;
  for (std::size_t i = 0; i < near.size(); ++i)
    list += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 < near.size() ? ", " : " or ", near[i]);
  return near.empty() ? "," : ", did you mean " + list + "?";
}

std::string not_allowed(const std::string& found, const std::string& word, const std::vector<std::string>& allowed) {
  std::string all;
  for (const std::string& name : allowed) all += (all.empty() ? "" : ", ") + name;
  return found + did_you_mean(word, allowed) + " allowed: " + (all.empty() ? "none" : all);
}

}  // namespace specsim
