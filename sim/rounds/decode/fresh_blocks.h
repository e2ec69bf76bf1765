// Blocks over text positions with their own distributions: a window of positions has tables, as if positions were contexts.
#pragma once

#include "sim/rounds/decode/preparation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace specsim::decode {

class FreshBlocks {
 public:
  // Whether rounds begin only at the window's first position or at any position.
  enum class Rounds { from_first, from_any };

  // `plan` must outlive this object, and must judge blocks.
  FreshBlocks(const PreparationPlan& plan, int positions, Rounds rounds);
  FreshBlocks(const FreshBlocks&) = delete;
  FreshBlocks& operator=(const FreshBlocks&) = delete;

  // Draws the distributions of the positions from `first` on and replaces their tables; context i is position first + i.
  void draw(std::uint64_t sequence, std::uint64_t first);
  // The tables of the positions drawn last; the reference stays valid over draws. Call draw() first.
  [[nodiscard]] const BlockTables& tables() const { return *tables_; }
  // Each token leads from a position to the next.
  [[nodiscard]] const families::ContextProcess& process() const { return process_; }
  // The distributions at position `i` of the window: the target's, and the one from which a draft token is drawn.
  [[nodiscard]] const std::vector<double>& target(std::size_t i) const { return targets_[i]; }
  [[nodiscard]] const std::vector<double>& drafted(std::size_t i) const { return drafted_[i]; }

 private:
  class Positions final : public families::ContextProcess {
   public:
    explicit Positions(int positions);
    [[nodiscard]] const families::ContextShape& shape() const override { return shape_; }
    void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override;
    [[nodiscard]] bool moves() const override { return true; }
    void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
              const std::uint32_t* text_position, const Token* token, std::uint32_t* context) const override;
    [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override;

   private:
    families::ContextShape shape_;
  };

  const PreparationPlan* plan_;
  DistributionDrawer drawer_;
  Positions process_;
  bool by_place_;  // each position occurs at only one depth of the block
  std::optional<BlockTables> tables_;
  std::vector<std::vector<double>> targets_;  // [position]
  std::vector<std::vector<double>>
      drafted_;  // [position], at the depth at which rounds that begin at the first position reach it
  math::AliasScratch scratch_;
};

}  // namespace specsim::decode
