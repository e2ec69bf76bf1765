#include "sim/experiments/audit/every_choice.h"

#include "sim/experiments/audit/bit_space.h"
#include "sim/foundation/base/check.h"

#include <boost/iterator/counting_iterator.hpp>

#include <algorithm>

namespace specsim::audit {

void ReplayedBits::set(rng::Purpose purpose, std::uint32_t position, bool second, std::uint64_t bits) {
  rng::BitsPair& own = bits_[{purpose, position}];
  (second ? own.second : own.first) = bits;
}

rng::BitsPair ReplayedBits::at(rng::Purpose purpose, std::uint32_t position, std::uint32_t /*word1*/,
                               std::uint64_t /*sequence*/) {
  const auto found = bits_.find({purpose, position});
  return found != bits_.end() ? found->second : rng::BitsPair{};
}

void ReplayedBits::batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
                         const std::uint32_t* /*lanes*/, std::size_t count, std::uint64_t* first, std::uint64_t* second) {
  const rng::BitsPair bits = at(purpose, position, word1, first_sequence);
  std::fill_n(first, count, bits.first);
  std::fill_n(second, count, bits.second);
}

// Alias tables are split into one column per token; running sums can change anywhere. More columns than tokens, with a bisection
// in each, cover both.
constexpr std::size_t kColumnsPerToken = 4;

EveryChoice::EveryChoice(int vocab, Finals finals)
    : columns_(kColumnsPerToken * static_cast<std::size_t>(vocab)), finals_(finals) {}

EveryChoice::Choice EveryChoice::addressed(Use use, int node, int depth) const {
  Choice choice;
  const auto number = static_cast<std::uint32_t>(node);
  switch (use) {
    case Use::token:
    case Use::target_sample:
      choice.purpose = rng::Purpose::draft_accept;
      choice.position = number - 1;
      choice.second = use == Use::target_sample;
      break;
    case Use::redraft:
      choice.purpose = rng::Purpose::redraft;
      choice.position = number;
      break;
    case Use::child:
      choice.purpose = rng::Purpose::child;
      choice.position = number;
      break;
    case Use::final_token:
      choice.purpose = rng::Purpose::final_token;
      choice.position = finals_ == Finals::by_depth ? static_cast<std::uint32_t>(depth) : 0;
      break;
  }
  return choice;
}

Token EveryChoice::pick(Use use, int node, int depth, const verify::Pickable& distribution) {
  if (at_ == made_.size()) {
    Choice choice = addressed(use, node, depth);
    for (std::size_t i = 0; i < columns_; ++i) add_pieces(distribution, column(i, columns_), choice);
    made_.push_back(std::move(choice));
  }
  return made_[at_++].option().token;
}

bool EveryChoice::accept(int node, verify::Odds odds) {
  if (at_ == made_.size()) {
    // Uniforms m / 2^53 pass if m is below this count; the others fail.
    using Count = boost::counting_iterator<std::uint64_t>;  // Debian's emscripten has no std::views::iota
    const std::uint64_t bar = *std::partition_point(
        Count(0), Count(verify::kAcceptAlways), [&](std::uint64_t m) { return verify::accepts(rng::to_unit(m << 11), odds); });
    Choice choice;
    choice.position = static_cast<std::uint32_t>(node) - 1;
    choice.second = true;
    if (bar > 0) choice.add(1, {0, (bar << 11) - 1});
    if (bar < verify::kAcceptAlways) choice.add(0, {bar << 11, ~std::uint64_t{0}});
    made_.push_back(std::move(choice));
  }
  return made_[at_++].option().token == 1;
}

long double EveryChoice::probability() const {
  long double product = 1.0L;
  for (const Choice& choice : made_) product *= share(choice.option().size);
  return product;
}

void EveryChoice::script(bool highest, ReplayedBits& bits) const {
  for (const Choice& choice : made_) {
    const std::uint64_t own = highest ? choice.option().highest : choice.option().lowest;
    bits.set(choice.purpose, choice.position, choice.second, own);
    // If all final tokens of a round share an address, two sequences must share it as well.
    if (choice.purpose == rng::Purpose::final_token && finals_ == Finals::one)
      bits.set(choice.purpose, choice.position, true, own);
  }
}

bool EveryChoice::advance() {
  SPECSIM_CHECK(at_ == made_.size(), "{} choices requested of {} made", at_, made_.size());
  at_ = 0;
  while (!made_.empty() && ++made_.back().at == made_.back().options.size()) made_.pop_back();
  return !made_.empty();
}

void EveryChoice::Choice::add(Token token, const Piece& piece) {
  auto own = std::find_if(options.begin(), options.end(), [&](const Option& option) { return option.token == token; });
  if (own == options.end()) own = options.insert(options.end(), Option{token, 0, piece.first, piece.last});
  own->size += piece.size();
  own->lowest = std::min(own->lowest, piece.first);
  own->highest = std::max(own->highest, piece.last);
}

void EveryChoice::add_pieces(const verify::Pickable& distribution, const Piece& piece, Choice& choice) {
  const Token first = distribution.pick(piece.first);
  const Token last = distribution.pick(piece.last);
  const std::uint64_t third = (piece.last - piece.first) / 3;
  if (first == last && distribution.pick(piece.first + third) == first && distribution.pick(piece.first + 2 * third) == first) {
    choice.add(first, piece);
    return;
  }
  const std::uint64_t middle = piece.first + (piece.last - piece.first) / 2;
  add_pieces(distribution, {piece.first, middle}, choice);
  add_pieces(distribution, {middle + 1, piece.last}, choice);
}

}  // namespace specsim::audit
