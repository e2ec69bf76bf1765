#include "sim/placement/accepted.h"
#include "sim/run/runner.h"
#include "sim/serve/acceptance.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class ExecutedAcceptance final : public Acceptance {
 public:
  explicit ExecutedAcceptance(const placement::AcceptedCounts& counts)
      : draft_length_(counts.draft_length), left_(counts.of_sequence.size()) {
    double rounds = 0.0;
    reached_.resize(static_cast<std::size_t>(draft_length_) + 1);
    for (std::size_t i = 0; i < left_.size(); ++i)
      for (const std::uint8_t accepted : counts.of_sequence[i]) {
        // Behind the last token of the round before: so many drafts are accepted here, one fewer behind each of them.
        for (int rest = accepted; rest >= 0; --rest) left_[i].push_back(static_cast<std::uint8_t>(rest));
        rounds += 1.0;
        for (std::size_t place = 1; place <= accepted; ++place) reached_[place] += 1.0;
      }
    for (double& share : reached_) share = rounds > 0.0 ? share / rounds : 0.0;
  }
  [[nodiscard]] std::uint32_t accepted(RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const std::vector<std::uint8_t>& left = left_[request % left_.size()];
    // The first token comes with the prompt: rounds begin behind it.
    const std::size_t at = emitted - 1;
    return at < left.size() ? std::min<std::uint32_t>(left[at], drafted) : 0;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double tokens = 1.0;
    for (int place = 1; place <= std::min(draft_length, draft_length_); ++place)
      tokens += reached_[static_cast<std::size_t>(place)];
    return tokens;
  }

 private:
  int draft_length_;
  std::vector<std::vector<std::uint8_t>> left_;  // [sequence][tokens behind the first]: drafts accepted there
  std::vector<double> reached_;                  // [place]: share of rounds that accept so many at least
};

}  // namespace

std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, std::size_t requests, std::uint32_t tokens) {
  const decode::Prepared tables = run::prepare_cell(cell, nullptr, true);
  return std::make_unique<ExecutedAcceptance>(
      placement::record_accepted({spec::plan_of(cell), &tables, spec::draw_key(cell), cell.draft_length()},
                                 decode::Bonus::emitted, std::min(requests, kMostExecuted), tokens));
}

}  // namespace specsim::serve
