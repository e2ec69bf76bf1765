#include "sim/rounds/draft/ngram_map.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::draft {

namespace {

constexpr std::size_t kMapValues = 4;  // distinct values counted per key
constexpr int kMostCounted = 16380;    // counts stop here

// The slot of an n-gram, out of 262,144.
std::uint32_t map_slot(std::span<const Token> ngram) {
  constexpr std::uint32_t kFactor = 2654435761U;
  constexpr std::uint32_t kSlots = 262144U;
  std::uint32_t hash = 0;
  for (const Token token : ngram) hash = hash * kFactor + static_cast<std::uint32_t>(token);
  return hash % kSlots;
}

}  // namespace

struct NgramMap::Value {
  std::size_t place = 0;  // place of its tokens; 0: none
  int times = 0;
  int accepted = 0;  // accepted tokens of its last draft; no later draft is longer
};

struct NgramMap::Key {
  int hits = 0;             // rounds that found it
  std::size_t counted = 0;  // where the counting of values continues, including this place
  std::array<Value, kMapValues> values;
};

struct NgramMap::MapMemory final : BlockDrafter::Memory {
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<MapMemory>(*this); }
  bool begun = false;
  std::size_t prompt = 0;                                 // tokens of the list at the start of the first round
  std::unordered_map<std::uint32_t, std::size_t> places;  // [slot]: place of the first n-gram with this slot
  std::size_t indexed = 0;                                // the last place that was offered to `places`
  std::map<std::vector<Token>, Key> keys;
  // The last draft.
  std::vector<Token> key;
  std::size_t value = 0;
  std::size_t drafted = 0;  // tokens; 0: there was no draft, or it has been judged
  std::size_t length = 0;   // tokens of the text at that time
};

NgramMap::NgramMap(const NgramMapRule& rule)
    : TextDrafter(rule.draft_length, rule.draft_length),
      rule_(rule),
      n_(static_cast<std::size_t>(rule.size_n)),
      m_(static_cast<std::size_t>(rule.draft_length)) {}

std::unique_ptr<BlockDrafter::Memory> NgramMap::start() const { return std::make_unique<MapMemory>(); }

void NgramMap::update_memory(const DrafterInput& input, Memory* memory) const {
  auto& kept = static_cast<MapMemory&>(*memory);
  const std::size_t length = input.text().size();
  if (!std::exchange(kept.begun, true)) kept.prompt = length > 0 ? length - 1 : 0;
  const std::size_t drafted = std::exchange(kept.drafted, 0);
  if (drafted == 0 || length <= kept.length) return;
  kept.keys.at(kept.key).values.at(kept.value).accepted = static_cast<int>(std::min(drafted, length - kept.length - 1));
}

void NgramMap::choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const {
  update_memory(input, memory);
  auto& kept = static_cast<MapMemory&>(*memory);
  const std::span<const Token> text = input.text();
  // The program's list is the text without its newest token, though the key ends with that token.
  if (text.size() < 2 * n_ + m_ + 1) return;
  const std::size_t last = text.size() - 1 - n_ - m_ - 1;  // later places are followed by less than one value
  const std::size_t place = place_of(kept, text, last);
  index(kept, text, last);
  if (place == 0) return;
  const std::span<const Token> end = text.last(n_);
  const auto [found, fresh] = kept.keys.try_emplace({end.begin(), end.end()});
  Key& key = found->second;
  if (fresh)
    for (Value& value : key.values) value.accepted = rule_.draft_length;
  key.hits = std::min(key.hits + 1, kMostCounted);
  std::size_t chosen = 0;
  if (rule_.values) {
    if (key.hits < rule_.min_hits) return;
    count_values(key, text, place);
    int all = 0;
    for (std::size_t v = 0; v < kMapValues; ++v) {
      if (key.values.at(v).times > key.values.at(chosen).times) chosen = v;
      all += key.values.at(v).times;
    }
    const int most = key.values.at(chosen).times;
    if (most < 2 * (all - most)) return;
  }
  // The copy is taken from after the key's place, whether that is this value or another.
  const std::span<const Token> copy =
      text.subspan(place + n_, std::min(m_, static_cast<std::size_t>(key.values.at(chosen).accepted)));
  if (copy.empty()) return;
  kept.key = found->first;
  kept.value = chosen;
  kept.drafted = copy.size();
  kept.length = text.size();
  add_paths(block, {std::vector<Token>(copy.begin(), copy.end())});
}

bool NgramMap::occurs_at(std::span<const Token> text, std::size_t place, std::span<const Token> key) const {
  return std::equal(key.begin(), key.end(), text.begin() + static_cast<std::ptrdiff_t>(place));
}

// The last place (not after `last`) at which the text's last tokens occur; 0: nowhere, or at the very beginning. The table is
// searched first. A key that is not in the table is searched from the end in the tokens that have not been offered to the table
// yet: the prompt, then the emitted tokens. N-grams that span the end of the prompt are never searched.
std::size_t NgramMap::place_of(const MapMemory& kept, std::span<const Token> text, std::size_t last) const {
  const std::span<const Token> key = text.last(n_);
  const auto found = kept.places.find(map_slot(key));
  if (found != kept.places.end() && found->second < last && occurs_at(text, found->second, key)) return found->second;
  if (kept.prompt > n_ + m_ + 1)
    for (std::size_t at = kept.prompt - n_ - m_ - 1; at > kept.indexed; --at)
      if (occurs_at(text, at, key)) return at;
  for (std::size_t at = last; at > std::max(kept.prompt, kept.indexed); --at)
    if (occurs_at(text, at, key)) return at;
  return 0;
}

// Offers the same places to the table, in the same order; a slot that is taken is kept, whatever n-gram took it.
void NgramMap::index(MapMemory& kept, std::span<const Token> text, std::size_t last) const {
  if (kept.prompt > n_ + m_ + 1)
    for (std::size_t at = kept.prompt - n_ - m_ - 1; at > kept.indexed; --at)
      kept.places.try_emplace(map_slot(text.subspan(at, n_)), at);
  for (std::size_t at = last; at > std::max(kept.prompt, kept.indexed); --at)
    kept.places.try_emplace(map_slot(text.subspan(at, n_)), at);
  kept.indexed = std::max(kept.indexed, last);
}

// Counts the values that followed the key, from where the last counting ended up to `place`. A fifth value is not counted.
void NgramMap::count_values(Key& key, std::span<const Token> text, std::size_t place) const {
  for (std::size_t at = key.counted; at <= place; ++at) {
    if (!occurs_at(text, at, text.last(n_))) continue;
    const auto same = std::find_if(key.values.begin(), key.values.end(), [&](const Value& value) {
      return value.place == 0 || occurs_at(text, at + n_, text.subspan(value.place, m_));
    });
    if (same == key.values.end()) continue;
    if (same->place == 0) *same = {at + n_, 0, rule_.draft_length};
    same->times = std::min(same->times + 1, kMostCounted);
  }
  key.counted = place;
}

}  // namespace specsim::draft
