// A hidden Markov chain over text positions, whatever the tokens are.
#pragma once

#include "sim/foundation/math/alias_table.h"
#include "sim/rounds/families/context_process.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::families {

class HiddenChain final : public ContextProcess {
 public:
  // transition: row i is the distribution of the next position's context after context i; start: of the first position's.
  // request_tokens: as in ContextShape.
  HiddenChain(const std::vector<std::vector<double>>& transition, std::vector<double> start, int depths,
              std::uint64_t request_tokens = 0);
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override;
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
            const std::uint32_t* text_position, const Token* token, std::uint32_t* context) const override;

 private:
  std::vector<math::AliasTable> row_tables_;
  math::AliasTable start_table_;
  ContextShape shape_;
};

}  // namespace specsim::families
