#include "sim/rounds/theory/copied_drafts.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace specsim::theory {
namespace {

// The place behind the first stretch of `sequence` that is the text's last `length` tokens.
std::optional<std::size_t> behind_first(std::span<const int> sequence, std::span<const int> text, std::size_t length) {
  if (length > text.size()) return std::nullopt;
  const std::span<const int> end = text.last(length);
  const auto at = std::search(sequence.begin(), sequence.end(), end.begin(), end.end());
  if (at == sequence.end()) return std::nullopt;
  return static_cast<std::size_t>(at - sequence.begin()) + length;
}

std::size_t longest_end(std::span<const int> sequence, std::span<const int> text) {
  std::size_t length = 0;
  while (length < sequence.size() && behind_first(sequence, text, length + 1)) ++length;
  return length;
}

std::vector<int> tokens_from(std::span<const int> sequence, std::size_t place, int most) {
  const std::span<const int> rest = sequence.subspan(place);
  const std::span<const int> taken = rest.first(std::min(rest.size(), index_of(most)));
  return {taken.begin(), taken.end()};
}

}  // namespace

TextDraft sam_draft(const SamDraft& rule) {
  return [rule](std::span<const int> text) -> std::vector<int> {
    if (text.empty()) return {};
    const std::span<const int> history = text.first(text.size() - 1);
    const std::size_t own = longest_end(history, text);
    std::size_t other = 0;
    std::span<const int> document;
    for (const std::vector<int>& one : rule.corpus) {
      const std::size_t length = longest_end(one, text);
      if (length > other) document = one;
      other = std::max(other, length);
    }
    const double beyond = static_cast<double>(other) - rule.bias;
    if (static_cast<double>(own) < rule.threshold && beyond < rule.threshold) return {};
    if (beyond > static_cast<double>(own)) return tokens_from(document, *behind_first(document, text, other), rule.draft_length);
    std::size_t place = history.size();
    for (std::size_t length = own; length > 0; --length) {
      place = *behind_first(history, text, length);
      if (history.size() - place > index_of(rule.draft_length)) break;
    }
    return tokens_from(history, place, rule.draft_length);
  };
}

}  // namespace specsim::theory
