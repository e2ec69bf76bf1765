#include "sim/rounds/families/hidden_chain.h"

#include "sim/rounds/families/context_steps.h"

#include <utility>

namespace specsim::families {

HiddenChain::HiddenChain(const std::vector<std::vector<double>>& transition, std::vector<double> start, int depths,
                         std::uint64_t request_tokens)
    : start_table_(start) {
  shape_.kind = ContextShape::Kind::regimes;
  shape_.depths = depths;
  shape_.contexts = static_cast<int>(transition.size());
  for (const std::vector<double>& row : transition) {
    shape_.transition.insert(shape_.transition.end(), row.begin(), row.end());
    row_tables_.emplace_back(row);
  }
  shape_.start = std::move(start);
  shape_.request_tokens = request_tokens;
}

void HiddenChain::start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const {
  for (std::size_t i = 0; i < count; ++i)
    context[i] = start_table_.pick(first_bits(key, rng::Purpose::start, first_sequence + i));
}

void HiddenChain::step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
                       const std::uint32_t* text_position, const Token* /*token*/, std::uint32_t* context) const {
  each_step(key, first_sequence, lanes, count, text_position,
            [&](std::uint32_t lane, std::uint64_t bits) { context[lane] = row_tables_[context[lane]].pick(bits); });
}

}  // namespace specsim::families
