// Chains that are prepared for likely outcomes. If the draft drafts again after a miss, the tokens are those of a drawn chain,
// whatever was prepared. If it does not, a round depends on whether the one before ended as prepared.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/outcome_cache.h"

#include <algorithm>
#include <numeric>

namespace specsim::judge {

namespace {

class PreparedRounds final : public CellTheory {
 public:
  explicit PreparedRounds(const spec::Cell& cell) {
    const config::Arguments& own = drafter_arguments(cell);
    fan_outs_.assign(index_of(draft_length(cell)) + 1, static_cast<std::size_t>(own.integer("fan_out")));
    if (own.has("fan_outs"))
      std::transform(own.numbers("fan_outs").begin(), own.numbers("fan_outs").end(), fan_outs_.begin(),
                     [](double count) { return static_cast<std::size_t>(count); });
    outcomes_ = std::accumulate(fan_outs_.begin(), fan_outs_.end(), std::size_t{0});
  }

  std::vector<double> see(int /*context*/, int depth, const verify::PositionDistributions& distributions) override {
    const auto& [target, drafted, ranked, looked_at] = distributions;
    if (depth == 0) {
      contexts_ += 1.0;
      ready_alone_ += theory::prepared_mass(target, ranked, outcomes_);
    }
    depths_.resize(std::max(depths_.size(), index_of(depth) + 1));
    At& at = depths_[index_of(depth)];
    at.positions.resize(fan_outs_.size() - 1);
    for (std::size_t i = 0; i + 1 < fan_outs_.size(); ++i) {
      const theory::PreparedPosition one = theory::prepared_position(target, ranked, drafted, fan_outs_[i]);
      at.positions[i].accepted += one.accepted;
      at.positions[i].ready_rejected += one.ready_rejected;
    }
    at.ready_whole += theory::prepared_mass(target, ranked, fan_outs_.back());
    return {};
  }

  [[nodiscard]] RoundTheory answer(const spec::Cell& /*cell*/) const override {
    std::vector<theory::PreparedPosition> chain;
    const auto at = [&](std::size_t depth) -> const At& { return depths_[std::min(depth, depths_.size() - 1)]; };
    for (std::size_t i = 0; i + 1 < fan_outs_.size(); ++i) {
      const theory::PreparedPosition& sum = at(i).positions[i];
      chain.push_back({sum.accepted / contexts_, sum.ready_rejected / contexts_});
    }
    const theory::RoundKernel kernel =
        theory::prepared_rounds(chain, at(chain.size()).ready_whole / contexts_, ready_alone_ / contexts_, false);
    RoundTheory theory;
    theory.sequence = [kernel](int rounds) {
      return theory::run_moments({kernel}, nullptr, std::vector<double>{0.0, 1.0}, rounds);
    };
    return theory;
  }

 private:
  // Sums over contexts at one depth.
  struct At {
    std::vector<theory::PreparedPosition> positions;  // [position], with its own fan-out
    double ready_whole = 0.0;
  };
  std::vector<std::size_t> fan_outs_;
  std::size_t outcomes_ = 0;
  double contexts_ = 0.0;
  double ready_alone_ = 0.0;
  std::vector<At> depths_;
};

Coverage cover_prepared(const spec::Cell& cell) {
  using Kind = families::ContextShape::Kind;
  if (drafter_arguments(cell).text("fallback") == "draft") return walk_drawn_chain(cell);
  const Kind kind = context_shape(cell).kind;
  if (kind != Kind::fixed && kind != Kind::by_depth && kind != Kind::iid_pool)
    return {nullptr, "theory covers drafter saguaro with fallback none in context processes fixed, by_depth and a pool of iid"};
  return {std::make_unique<PreparedRounds>(cell), ""};
}

}  // namespace

TheoryEntry saguaro_theory() {
  return {{"saguaro",
           "rounds by whether the outcome before was prepared; a chain's, if the draft drafts again where it was not",
           "Kumar, Dao and May, arXiv 2603.03251; Leviathan et al., arXiv 2211.17192",
           {},
           ""},
          {"token", "multi_draft_recursive"},
          {"saguaro"},
          cover_prepared};
}

}  // namespace specsim::judge
