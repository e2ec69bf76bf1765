#include "sim/hardware/placement/accepted.h"

#include "sim/foundation/base/check.h"

#include <algorithm>

namespace specsim::placement {

namespace {

// Records each lane's counts until the lane has emitted enough.
class Recorder final : public decode::RoundSink {
 public:
  Recorder(AcceptedCounts& counts, std::size_t first, std::size_t count, std::uint64_t tokens)
      : counts_(&counts), first_(first), left_(count, tokens) {
    for (std::size_t i = 0; i < count; ++i) counts.of_sequence[first + i].clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (!counts.drafted.empty()) counts.drafted[first + i].clear();
      if (!counts.whole.empty()) counts.whole[first + i].clear();
      if (!counts.pass_rows.empty()) counts.pass_rows[first + i].clear();
      if (!counts.ahead.empty()) counts.ahead[first + i].clear();
      if (!counts.drafted_ahead.empty()) counts.drafted_ahead[first + i].clear();
    }
  }
  void round(std::uint32_t, std::uint32_t, std::span<const Token>, std::uint32_t) override {}
  void drafted(std::uint32_t, std::uint32_t, std::uint32_t nodes, bool whole) override {
    nodes_ = nodes;
    whole_ = whole;
  }
  void ahead(std::uint32_t depth, std::optional<std::uint32_t> nodes) override {
    ahead_ = depth;
    drafted_ahead_ = nodes.value_or(0);
  }
  void passes(std::span<const std::uint32_t> rows) override { pass_rows_.assign(rows.begin(), rows.end()); }
  void accepted(std::uint32_t lane, std::uint32_t, std::uint32_t drafts) override {
    if (lane >= left_.size() || left_[lane] == 0) return;
    if (!counts_->drafted.empty()) counts_->drafted[first_ + lane].push_back(static_cast<std::uint16_t>(nodes_));
    if (!counts_->whole.empty()) counts_->whole[first_ + lane].push_back(whole_ ? 1 : 0);
    if (!counts_->pass_rows.empty()) counts_->pass_rows[first_ + lane].push_back(pass_rows_);
    if (!counts_->ahead.empty()) counts_->ahead[first_ + lane].push_back(static_cast<std::uint8_t>(ahead_));
    if (!counts_->drafted_ahead.empty())
      counts_->drafted_ahead[first_ + lane].push_back(static_cast<std::uint16_t>(drafted_ahead_));
    counts_->of_sequence[first_ + lane].push_back(static_cast<std::uint8_t>(drafts));
    const int emitted = counts_->emitted(first_ + lane, counts_->of_sequence[first_ + lane].size() - 1);
    left_[lane] -= std::min<std::uint64_t>(left_[lane], static_cast<std::uint64_t>(emitted));
  }
  [[nodiscard]] bool whole() const {
    return std::all_of(left_.begin(), left_.end(), [](std::uint64_t left) { return left == 0; });
  }

 private:
  AcceptedCounts* counts_;
  std::size_t first_;
  std::vector<std::uint64_t> left_;
  std::uint32_t nodes_ = 0;  // nodes of the current round
  bool whole_ = false;
  std::uint32_t ahead_ = 0;
  std::uint32_t drafted_ahead_ = 0;
  std::vector<std::uint16_t> pass_rows_;
};

}  // namespace

AcceptedCounts record_accepted(const RoundSource& source, decode::Bonus bonus, std::size_t sequences, std::uint64_t tokens) {
  AcceptedCounts result;
  result.draft_length = source.draft_length;
  result.bonus = bonus;
  result.of_sequence.resize(sequences);
  if (const auto* const blocks = std::get_if<decode::BlockJudging>(&source.plan.judging)) {
    const tokens::Tree* const tree = blocks->drafter->tree();
    const bool differ = blocks->policy != nullptr || tree == nullptr;
    if (differ) result.drafted.resize(sequences);
    if (differ || !tree->is_chain()) result.whole.resize(sequences);
    if (bonus == decode::Bonus::none && !result.whole.empty()) {
      result.ahead.resize(sequences);
      if (blocks->policy != nullptr && !blocks->policy->looks()) result.drafted_ahead.resize(sequences);
    }
    if (blocks->drafter->shape().counts_passes) result.pass_rows.resize(sequences);
  }
  if (tokens == 0) return result;
  const families::ContextShape& shape = source.plan.contexts->process->shape();
  const bool requests = shape.request_tokens > 0;
  SPECSIM_CHECK(!requests || tokens <= shape.request_tokens, "{} tokens of requests of {}", tokens, shape.request_tokens);
  const std::size_t lanes = shape.contexts == 0 ? 1 : decode::kLanes;  // sequences that a chunk holds
  const std::uint64_t fewest = tokens / (static_cast<std::uint64_t>(source.draft_length) + 1) + 8;
  for (std::size_t first = 0; first < sequences; first += lanes) {
    const std::size_t count = std::min(lanes, sequences - first);
    for (std::uint64_t rounds = std::min(tokens, 2 * fewest);; rounds = std::min(tokens, 2 * rounds)) {
      const decode::Simulator simulator(source.plan, *source.prepared, source.draw_key, source.draft_length,
                                        static_cast<std::uint32_t>(rounds), bonus);
      Recorder recorder(result, first, count, tokens);
      decode::Counts counts = simulator.empty_counts();
      simulator.run(first / lanes, requests ? sequences : sequences * rounds, counts, &recorder);
      if (recorder.whole()) break;
      SPECSIM_CHECK(!requests && rounds < tokens, "{} rounds do not emit {} tokens", rounds, tokens);
    }
  }
  return result;
}

}  // namespace specsim::placement
