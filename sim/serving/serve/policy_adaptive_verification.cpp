#include "sim/foundation/base/index.h"
#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/shared_rows.h"
#include "sim/serving/serve/policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

using draft::Confidence;
using draft::RowBudget;

// Times of passes as the server measures them when it starts: of the target by its rows, and of the draft by its sequences. Up to
// the largest captured graph a pass takes the time of the next captured one; beyond, where none is padded, the time is
// interpolated between the timed sizes.
class TimedPasses {
 public:
  TimedPasses(TimedStep step, int draft_length, double context, std::uint32_t largest)
      : step_(std::move(step)), draft_length_(draft_length), context_(context), largest_(largest) {
    for (std::uint32_t size = 1; size < largest; size = size < 8 ? 2 * size : size + 8) sizes_.push_back(size);
    if (largest > 0) sizes_.push_back(largest);
  }

  [[nodiscard]] double target(std::uint32_t rows) {
    if (largest_ == 0) return timed(rows).target;
    if (rows <= largest_) {
      const auto at = static_cast<std::size_t>(std::lower_bound(sizes_.begin(), sizes_.end(), rows) - sizes_.begin());
      return rising(at);
    }
    // Timed sizes beyond the largest graph: 1.5, 2 and 4 times as large.
    const std::uint32_t first = largest_ + largest_ / 2;
    std::uint32_t below = first;
    std::uint32_t above = first;
    while (above < rows) below = std::exchange(above, above == first ? 2 * largest_ : 2 * above);
    const double least = rising(sizes_.size() - 1);
    const double low = std::max(least, timed(below).target);
    const double high = std::max(low, timed(above).target);
    return above == below ? low : low + (high - low) * (rows - below) / (above - below);
  }

  [[nodiscard]] double draft(std::uint32_t sequences) {
    if (largest_ == 0) return timed(sequences * (static_cast<std::uint32_t>(draft_length_) + 1)).draft;
    for (const std::uint32_t size : sizes_)
      if (sequences_of(size) >= sequences) return timed(size).draft;
    // Beyond the largest size the time is extrapolated from the last two timed sizes.
    const std::uint32_t last = sizes_.back();
    std::uint32_t before = last;
    for (const std::uint32_t size : sizes_)
      if (sequences_of(size) < sequences_of(last)) before = size;
    const auto more = static_cast<double>(sequences - sequences_of(last));
    if (before == last) return timed(last).draft;
    return timed(last).draft + more * (timed(last).draft - timed(before).draft) / (sequences_of(last) - sequences_of(before));
  }

 private:
  // Sequences of a step of this many rows, if all of their drafts are verified.
  [[nodiscard]] std::uint32_t sequences_of(std::uint32_t rows) const {
    const std::uint32_t each = static_cast<std::uint32_t>(draft_length_) + 1;
    return (rows + each - 1) / each;
  }
  const PassSeconds& timed(std::uint32_t rows) {
    const auto [at, fresh] = known_.try_emplace(rows);
    if (fresh) at->second = step_(sequences_of(rows), rows, context_, draft_length_);
    return at->second;
  }
  // The time of captured graph number `at`, but at least that of any smaller one.
  double rising(std::size_t at) {
    while (rising_.size() <= at)
      rising_.push_back(std::max(rising_.empty() ? 0.0 : rising_.back(), timed(sizes_[rising_.size()]).target));
    return rising_[at];
  }

  TimedStep step_;
  int draft_length_;
  double context_;
  std::uint32_t largest_;
  std::vector<std::uint32_t> sizes_;            // rows of captured graphs
  std::vector<double> rising_;                  // [graph]
  std::map<std::uint32_t, PassSeconds> known_;  // [rows]
};

class SharesRows final : public ServerPolicy {
 public:
  struct Params {
    int draft_length = 0;
    draft::SharedRows sharing;
    double context = 8192.0;
    std::uint32_t largest_graph = 512;
    DisableAbove disable;
  };
  SharesRows(const Params& params, const PolicySetting& server)
      : params_(params),
        length_(index_of(params.draft_length)),
        passes_(server.passes, params.draft_length, params.context, params.largest_graph) {
    const bool estimates = server.knows && server.knows(Confidence::estimate);
    goes_by_ =
        params_.sharing.confidence.value_or(estimates ? Confidence::estimate : Confidence::history);  // but not by a perfect head
    learnt_ = draft::AcceptanceFit::start(length_, goes_by_);
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    return params_.disable.holds(batch) ? 0 : params_.draft_length;
  }
  [[nodiscard]] int longest() const override { return params_.draft_length; }
  [[nodiscard]] std::vector<int> lengths() const override { return {params_.draft_length}; }
  [[nodiscard]] bool shares_rows() const override { return true; }
  [[nodiscard]] std::optional<Confidence> confidence() const override { return goes_by_; }

  void share(const SharedStep& step, std::span<const DraftedChain> chains, std::span<std::uint32_t> verified) override {
    const auto time = [&](std::size_t drafts) {
      return passes_.draft(step.requests) + passes_.target(step.rows + static_cast<std::uint32_t>(drafts));
    };
    std::size_t drafts = 0;
    for (const DraftedChain& chain : chains) drafts += chain.drafted;
    // The budget uses the estimates of the step before; its distribution among sequences uses the new estimates.
    std::size_t budget = 0;
    if (params_.sharing.budget == RowBudget::previous) budget = draft::best_budget(slots_of(chains), step.emitting, time);
    estimate(chains);
    const std::vector<draft::DraftSlot> slots = slots_of(chains);
    if (params_.sharing.budget == RowBudget::early_stop) budget = draft::budget_stopped_early(slots, step.emitting, time);
    if (params_.sharing.budget == RowBudget::rows) budget = params_.sharing.fixed_budget(chains.size());
    std::fill(verified.begin(), verified.end(), 0);
    for (std::size_t i = 0; i < std::min(budget, drafts); ++i) ++verified[slots[i].chain];
  }

  void observe_shared(std::span<const DraftedChain> chains, std::span<const std::uint32_t> verified,
                      std::span<const std::uint32_t> accepted) override {
    if (goes_by_ == Confidence::head) return;
    draft::AcceptanceFit fit = fit_of();
    for (std::size_t i = 0; i < chains.size(); ++i)
      if (!chains[i].ended) fit.observe(chains[i].forecasts, verified[i], accepted[i]);
    if (++steps_ % params_.sharing.refit == 0) fit.refit();
  }
  void forget(arrivals::RequestId request) override { earlier_.erase(request); }

 private:
  [[nodiscard]] draft::AcceptanceFit fit_of() { return {learnt_, length_, goes_by_}; }
  // Replaces the estimates of each sequence's drafts by the new ones. Estimates of requests that have ended are never read.
  void estimate(std::span<const DraftedChain> chains) {
    const draft::AcceptanceFit fit = fit_of();
    for (const DraftedChain& chain : chains) {
      if (chain.ended) continue;
      std::vector<double>& own = earlier_[chain.request];
      own.resize(length_, 1.0);
      for (std::size_t k = 0; k < chain.drafted; ++k) own[k] = params_.sharing.smoothed(own[k], fit.chance(chain.forecasts, k));
    }
  }
  // The drafts with the current estimates; a sequence without estimates counts as sure.
  [[nodiscard]] std::vector<draft::DraftSlot> slots_of(std::span<const DraftedChain> chains) const {
    std::vector<draft::DraftSlot> slots;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const auto own = earlier_.find(chains[i].request);
      double survival = 1.0;
      for (std::size_t k = 0; k < chains[i].drafted; ++k) {
        survival *= own != earlier_.end() ? own->second[k] : 1.0;
        slots.push_back({survival, k, i});
      }
    }
    draft::sort_slots(slots);
    return slots;
  }

  Params params_;
  std::size_t length_;
  TimedPasses passes_;
  Confidence goes_by_ = Confidence::history;
  std::vector<double> learnt_;
  int steps_ = 0;                                                         // that verified
  std::unordered_map<arrivals::RequestId, std::vector<double>> earlier_;  // probability of each token once it is reached
};

}  // namespace

ServerPolicyEntry adaptive_verification_policy() {
  using P = SharesRows::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens that every sequence drafts", config::between(1, kMaxDraftLength),
       config::required},
      {&P::sharing, draft::shared_rows_fields(draft::Sharer::server)},
      {"context", &P::context,
       "cached tokens of each request of the timed steps (VLLM_ADAPTIVE_VERIFICATION_PROFILE_CONTEXT_LEN)",
       config::between(0, 1e9)},
      {"largest_graph", &P::largest_graph,
       "rows of the largest captured graph (max_cudagraph_capture_size), up to which steps are timed as padded; 0: each number "
       "of rows is timed",
       config::between(0, 1e6)},
      {&P::disable, disable_fields()},
  };
  return {
      {"adaptive_verification",
       "every sequence drafts the full length, and the step verifies the tokens that are likeliest to be accepted, within one "
       "budget of rows",
       "vLLM, enable_adaptive_verification (pull requests 47808, 52228): "
       "vllm/v1/worker/gpu/spec_decode/adaptive_verification.py, commit 057929c; DeepSeek (DSpark), arXiv 2607.05147",
       fields,
       "Decode's policy of that name, for batches that change from step to step. The scheduler puts all drafts into a step, "
       "and they count fully against its budget and the cache; when the step begins, drafts that are not verified are dropped "
       "from the pass and treated as rejected. All passes of the draft take time, and its first one has as many rows as the "
       "target's. The policy's step time is that of passes which the server timed at its start: the target's by rows, "
       "including prompts, the draft's by requests, each at the next captured size and one context; beyond the largest graph "
       "between the sizes 1.5, 2, 4, ... times as large. vLLM times 8,192 tokens of context whatever the load's, and also "
       "limits the budget by the logits of 1 GiB, which is not modelled (2,092 rows of Llama 3's vocabulary). A request's "
       "first drafts count as sure. Only verified drafts count as drafted; vLLM's counter has all drafts. estimate needs "
       "executed distributions, head needs these or a trace of overlaps; history is one rate for each position, over all "
       "requests."},
      [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
        return [params = fields.read(arguments)](const PolicySetting& server) {
          return std::make_unique<SharesRows>(params, server);
        };
      },
      "draft_length"};
}

}  // namespace specsim::serve
