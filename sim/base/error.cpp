#include "sim/base/error.h"

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
        diagnostic.where.line > 0 ? diagnostic.where.line : std::numeric_limits<int>::max();  // what has no line is said last
    return std::pair(std::find(files.begin(), files.end(), diagnostic.where.file), line);
  };
  std::stable_sort(list.begin(), list.end(), [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
  return list;
}

BadInput::BadInput(std::vector<Diagnostic> list) : std::runtime_error(join(list)), list_(std::move(list)) {}

BadInput::BadInput(Location where, std::string message)
    : BadInput(std::vector<Diagnostic>{{std::move(where), std::move(message)}}) {}

std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates) {
  // Nobody means "exponent" by a word of a thousand letters, and the edit distance costs time.
  constexpr std::size_t kLongestMeant = 100;
  std::string best;
  if (word.size() > kLongestMeant) return best;
  std::size_t best_distance = word.size() / 3 + 2;  // farther than this is another word, not a slip
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(lower(word), lower(candidate));
    constexpr std::size_t kStem = 4;  // an abbreviation, or the word in full: vocabulary, vocab
    const std::size_t common = std::min(word.size(), candidate.size());
    if (common >= kStem && lower(word).substr(0, common) == lower(candidate).substr(0, common)) distance = 0;
    // Of several that begin with the word the shortest is the nearest: h100-sxm before h100-pcie.
    if (distance < best_distance || (distance == 0 && best_distance == 0 && candidate.size() < best.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest_name(word, candidates);
  return near.empty() ? "," : ", did you mean \"" + near + "\"?";
}

std::string not_among(const std::string& found, const std::string& word, const std::vector<std::string>& allowed) {
  std::string all;
  for (const std::string& name : allowed) all += (all.empty() ? "" : ", ") + name;
  return found + did_you_mean(word, allowed) + " allowed: " + (all.empty() ? "none" : all);
}

}  // namespace specsim
