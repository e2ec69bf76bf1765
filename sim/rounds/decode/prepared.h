// The tables of every context of a cell, prepared once. A draft token, the decision on it and the final token take one or two
// memory accesses each, whatever the vocabulary.
#pragma once

#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/math/alias_table.h"
#include "sim/rounds/decode/output_classes.h"
#include "sim/rounds/verify/position_rule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::decode {

// An entry of the accept table holds the threshold in its high bits and the token's output class in the low ones.
constexpr int kClassBits = 10;
static_assert(kMaxClasses <= 1 << kClassBits);

class PreparedContexts {
 public:
  // depths: draft distributions of each context; 1 unless the draft depends on the position in the block (by_depth).
  PreparedContexts(int vocab, int contexts, int depths);
  static std::size_t bytes_needed(std::size_t vocab, std::size_t contexts, std::size_t depths);

  // Fills one context's tables at one depth. The `classes` of depth 0 apply to the whole context.
  void prepare(int context, int depth, const verify::PositionRule& rule, const verify::PositionDistributions& distributions,
               const OutputClasses& classes, math::AliasScratch& scratch);

  [[nodiscard]] std::uint64_t vocab() const { return vocab_; }
  [[nodiscard]] std::uint64_t depths() const { return depths_; }
  [[nodiscard]] const std::uint64_t* draft(std::uint64_t context, std::uint64_t depth) const {
    return at(draft_, context, depth);
  }
  [[nodiscard]] const std::uint64_t* accept(std::uint64_t context, std::uint64_t depth) const {
    return at(accept_, context, depth);
  }
  [[nodiscard]] const std::uint64_t* rejected(std::uint64_t context, std::uint64_t depth) const {
    return at(rejected_, context, depth);
  }
  [[nodiscard]] const std::uint64_t* bonus(std::uint64_t context) const { return bonus_.data() + context * vocab_; }

 private:
  [[nodiscard]] const std::uint64_t* at(const HugeArray& array, std::uint64_t context, std::uint64_t depth) const {
    return array.data() + (context * depths_ + depth) * vocab_;
  }
  std::uint64_t vocab_;
  std::uint64_t depths_;
  HugeArray draft_;
  HugeArray accept_;
  HugeArray rejected_;
  HugeArray bonus_;
};

}  // namespace specsim::decode
