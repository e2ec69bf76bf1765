#include "sim/rounds/theory/engine_drafts.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace specsim::theory {
namespace {

using Tokens = std::vector<int>;

// The polynomial modulo 2^18 of an n-gram, the last token's factor 1.
std::uint32_t slot_of(std::span<const int> ngram) {
  constexpr std::uint64_t kModulus = std::uint64_t{1} << 18U;
  std::uint64_t sum = 0;
  for (const int token : ngram) sum = (sum * (2654435761ULL % kModulus) + static_cast<std::uint64_t>(token)) % kModulus;
  return static_cast<std::uint32_t>(sum);
}

// When a place is looked at: the round, then prompt places before the others, later ones first.
struct Turn {
  int round = 0;
  bool emitted = false;
  int before = 0;  // minus the place
  bool operator<(const Turn& other) const {
    return std::tie(round, emitted, before) < std::tie(other.round, other.emitted, other.before);
  }
};

// The state of one n-gram.
struct Known {
  struct Follower {
    Tokens tokens;
    int times = 0;
    int most = 0;  // most drafted tokens
  };
  int found = 0;                    // rounds
  int counted = 0;                  // the place at which counting continues
  std::vector<Follower> followers;  // in order of appearance; without `values` one follower without tokens
};

// A sequence's rounds, computed from the whole text.
class MapRounds {
 public:
  MapRounds(const NgramMap& rule, std::span<const int> text, std::span<const int> lengths)
      : rule_(rule), text_(text), lengths_(lengths), prompt_(std::max(lengths[0] - 1, 0)) {}

  // The last round's draft.
  Tokens draft() {
    Tokens path;
    Known::Follower* last = nullptr;
    for (int round = 0; round < static_cast<int>(lengths_.size()); ++round) {
      if (!path.empty())
        last->most = std::min(static_cast<int>(path.size()), lengths_[index_of(round)] - lengths_[index_of(round - 1)] - 1);
      path.clear();
      const std::optional<int> place = place_in(round);
      if (!place) continue;
      last = follower_of(round, *place);
      if (last != nullptr) path = at(*place + rule_.n, last->most);
    }
    return path;
  }

 private:
  [[nodiscard]] Tokens at(int place, int length) const {
    const auto from = text_.begin() + place;
    return {from, from + length};
  }
  // The last place with room for the key and the tokens that follow it in the round; nothing if the text is too short.
  [[nodiscard]] std::optional<int> limit(int round) const {
    const int list = lengths_[index_of(round)] - 1;  // without the newest token
    if (list < 2 * rule_.n + rule_.draft_length) return std::nullopt;
    return list - rule_.n - rule_.draft_length - 1;
  }
  // When a place is looked at and added to the table: in the first round with room for it. Never for the text's beginning, nor
  // for a place that begins within the prompt but has no room there.
  [[nodiscard]] std::optional<Turn> turn_of(int place) const {
    if (place < 1 || (place <= prompt_ && place > prompt_ - rule_.n - rule_.draft_length - 1)) return std::nullopt;
    for (int round = 0; round < static_cast<int>(lengths_.size()); ++round)
      if (const std::optional<int> last = limit(round); last && place <= *last) return Turn{round, place > prompt_, -place};
    return std::nullopt;
  }
  // The earliest of the places whose turn was in an earlier round, or is in this one.
  template <class Fits>
  [[nodiscard]] std::optional<int> earliest(int round, bool before, const Fits& fits) const {
    std::optional<Turn> first;
    for (int place = 1; place + rule_.n <= lengths_[index_of(round)]; ++place) {
      const std::optional<Turn> turn = turn_of(place);
      if (turn && (before ? turn->round < round : turn->round == round) && fits(place) && (!first || *turn < *first))
        first = turn;
    }
    return first ? std::optional(-first->before) : std::nullopt;
  }
  [[nodiscard]] Tokens key(int round) const { return at(lengths_[index_of(round)] - rule_.n, rule_.n); }

  [[nodiscard]] std::optional<int> place_in(int round) const {
    const std::optional<int> last = limit(round);
    if (!last) return std::nullopt;
    const Tokens end = key(round);
    const std::uint32_t slot = slot_of(end);
    const std::optional<int> kept = earliest(round, true, [&](int place) { return slot_of(at(place, rule_.n)) == slot; });
    if (kept && *kept < *last && at(*kept, rule_.n) == end) return kept;
    return earliest(round, false, [&](int place) { return at(place, rule_.n) == end; });
  }

  // nullptr: nothing is drafted.
  Known::Follower* follower_of(int round, int place) {
    Known& known = known_[key(round)];
    ++known.found;
    if (!rule_.values) {
      if (known.followers.empty()) known.followers.push_back({{}, 0, rule_.draft_length});
      return known.followers.data();
    }
    if (known.found < rule_.min_hits) return nullptr;
    for (int one = known.counted; one <= place; ++one) {
      if (at(one, rule_.n) != key(round)) continue;
      const Tokens tokens = at(one + rule_.n, rule_.draft_length);
      auto same = std::find_if(known.followers.begin(), known.followers.end(),
                               [&](const Known::Follower& follower) { return follower.tokens == tokens; });
      if (same == known.followers.end()) {
        if (known.followers.size() == 4) continue;
        same = known.followers.insert(same, {tokens, 0, rule_.draft_length});
      }
      ++same->times;
    }
    known.counted = place;
    const auto most = std::max_element(known.followers.begin(), known.followers.end(),
                                       [](const auto& a, const auto& b) { return a.times < b.times; });
    int others = -most->times;
    for (const Known::Follower& follower : known.followers) others += follower.times;
    return most->times >= 2 * others ? &*most : nullptr;
  }

  const NgramMap& rule_;
  std::span<const int> text_;
  std::span<const int> lengths_;
  int prompt_;
  std::map<Tokens, Known> known_;
};

}  // namespace

HistoryDraft ngram_map_draft(const NgramMap& rule) {
  return [rule](std::span<const int> text, std::span<const int> lengths) -> std::vector<Tokens> {
    const Tokens path = MapRounds(rule, text, lengths).draft();
    return path.empty() ? std::vector<Tokens>() : std::vector<Tokens>{path};
  };
}

}  // namespace specsim::theory
