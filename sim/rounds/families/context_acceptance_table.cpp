#include "sim/rounds/families/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specsim::families {

namespace {

constexpr std::size_t kMostRanks = 64;

// Every round starts before its first draft token, and moves one row on with each accepted token.
class TableProcess final : public ContextProcess {
 public:
  TableProcess(std::size_t depths, bool drawn) {
    shape_.kind = ContextShape::Kind::by_rank;
    shape_.drawn = drawn;
    shape_.contexts = static_cast<int>(depths);
  }
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const override { return shape_.contexts > 1; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t*, const Token*,
            std::uint32_t* context) const override {
    const auto last = static_cast<std::uint32_t>(shape_.contexts) - 1;
    for (std::size_t i = 0; i < count; ++i) context[lanes[i]] = std::min(context[lanes[i]] + 1, last);
  }

 private:
  ContextShape shape_;
};

class GivenMasses final : public Distribution {
 public:
  explicit GivenMasses(std::vector<double> masses) : masses_(std::move(masses)) {}
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    std::fill(distribution.begin(), distribution.end(), 0.0);
    std::copy(masses_.begin(), masses_.end(), distribution.begin());
  }

 private:
  std::vector<double> masses_;
};

// The draft's probabilities, which only order the ranks: acceptance must not depend on them. For chosen drafts each is half the
// one before. For drawn drafts the first has all mass but rounding, so that a chain that draws gets the first rank.
std::vector<double> order_of(std::size_t ranks, bool drawn) {
  constexpr int kSurely = 60;  // binary digits: 1 + 2^-60 rounds to 1
  constexpr int kBelow = 14;   // with 64 ranks no number underflows
  std::vector<double> order(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    order[rank] = std::ldexp(1.0, -static_cast<int>(rank) * (drawn ? kBelow : 1) - (drawn && rank > 0 ? kSurely : 0));
  math::normalise(order);
  return order;
}

// The mistake in the table, or "".
std::string mistake_in(const std::vector<std::vector<double>>& table, int vocab) {
  if (table.empty() || table.size() > static_cast<std::size_t>(kMaxDraftLength))
    return fmt::format("acceptance has {} rows, allowed: 1 to {}, one for each depth", table.size(), kMaxDraftLength);
  for (std::size_t depth = 0; depth < table.size(); ++depth) {
    const double sum = std::accumulate(table[depth].begin(), table[depth].end(), 0.0);
    if (table[depth].empty() || table[depth].size() > kMostRanks || sum > 1.0 + 1e-9)
      return fmt::format("acceptance at depth {} has {} ranks that sum to {:.9g}, allowed: 1 to {} that sum to at most 1",
                         depth + 1, table[depth].size(), sum, kMostRanks);
    if (table[depth].size() >= static_cast<std::size_t>(vocab))
      return fmt::format("acceptance at depth {} has {} ranks, allowed by pair.vocab {}: {}, plus one token for all others",
                         depth + 1, table[depth].size(), vocab, vocab - 1);
  }
  return "";
}

}  // namespace

ContextEntry acceptance_table_context() {
  struct P {
    std::vector<std::vector<double>> acceptance;
    bool drawn = false;
  };
  static const config::Fields<P> fields = {
      {"acceptance", &P::acceptance,
       "[[rank 1, rank 2, ...] at depth 1, ...]: P(this child is the accepted one), given that its parent is; the last row holds "
       "beyond",
       config::between(0, 1), config::required},
      {"selection", &P::drawn, "how the recorded drafts were chosen: the draft's likeliest tokens, or drawn from it",
       config::one_of<bool>({{"sampled", true}, {"argmax", false}})},
  };
  return {{"acceptance_table", "acceptance by depth and rank, as papers, model cards and logs publish it; no distributions",
           "Cai et al. (Medusa), arXiv 2401.10774; Chen et al. (Sequoia), arXiv 2402.12374; Li et al. (EAGLE), arXiv 2401.15077",
           fields,
           "Every round begins in the first row, whatever came before. The target gives the token of rank r the mass that the "
           "table has for it, and one more token the rest; the draft ranks the tokens in that order. Such a record shows how "
           "often a ranked token was accepted, not how a drawn one would be: drafters choose (selection: argmax, siblings: "
           "top_k, medusa, parallel), trees have one shape, verifiers are lossless. With selection: sampled it is the "
           "opposite: chains draw (selection: sampled) under verifier token, as in the record, and the ranks of a tree "
           "(siblings: top_k) are siblings in the order in which they were drawn. pair's distributions are not used; vocab is "
           "above the number of ranks. Divide acceptances of positions, reached or not (vLLM's per-position rates), by "
           "those of the position before.",
           "acceptance: [[0.5, 0.2], [0.4]]"},
          [](const config::Arguments& arguments, ContextBuilder& builder) {
            const P params = fields.read(arguments);
            ContextModel model;
            const std::vector<std::vector<double>>& table = params.acceptance;
            const auto before = builder.diagnostics().list().size();
            builder.refuse_sampling("acceptance_table", "the recorded acceptance already includes the sampling settings");
            if (std::string mistake = mistake_in(table, builder.vocab()); !mistake.empty())
              builder.diagnostics().add(arguments.where("acceptance"), mistake);
            if (builder.diagnostics().list().size() != before) return model;
            std::size_t ranks = 0;
            for (const std::vector<double>& row : table) ranks = std::max(ranks, row.size());
            const std::vector<double> order = order_of(ranks, params.drawn);
            for (const std::vector<double>& row : table) {
              std::vector<double> target = row;
              target.resize(ranks, 0.0);
              target.push_back(std::max(0.0, 1.0 - std::accumulate(row.begin(), row.end(), 0.0)));
              math::normalise(target);
              std::vector<std::unique_ptr<Distribution>> drafts;
              drafts.push_back(std::make_unique<GivenMasses>(order));
              model.pairs.emplace_back(std::make_unique<GivenMasses>(std::move(target)), std::move(drafts), math::Sampling(),
                                       math::Sampling());
            }
            model.process = std::make_unique<TableProcess>(table.size(), params.drawn);
            return model;
          }};
}

}  // namespace specsim::families
