#include "sim/experiments/audit/watched_round.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace specsim::audit {

namespace {

class OneRound final : public decode::RoundSink {
 public:
  void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) override {
    SPECSIM_CHECK(lane == 0 && round == 0 && rounds_++ == 0, "lane {}, round {}", lane, round);
    seen.emitted.assign(emitted.begin(), emitted.end());
    seen.next_context = next_context;
  }
  SeenRound seen;

 private:
  int rounds_ = 0;
};

}  // namespace

// A cell's context process with another first context.
class WatchedRound::StartsAt final : public families::ContextProcess {
 public:
  explicit StartsAt(const families::ContextProcess& process) : process_(&process) {}
  void set(std::uint32_t context) { context_ = context; }
  [[nodiscard]] const families::ContextShape& shape() const override { return process_->shape(); }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, context_);
  }
  [[nodiscard]] bool moves() const override { return process_->moves(); }
  void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
            const std::uint32_t* position, const Token* token, std::uint32_t* context) const override {
    process_->step(key, first_sequence, lanes, count, position, token, context);
  }
  [[nodiscard]] std::span<const Token> prompt() const override { return process_->prompt(); }
  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override { return process_->next(context, token); }

 private:
  const families::ContextProcess* process_;
  std::uint32_t context_ = 0;
};

WatchedRound::WatchedRound(const decode::PreparationPlan& plan, const decode::Prepared& prepared, rng::Key key,
                           int draft_length) {
  auto process = std::make_unique<StartsAt>(*plan.contexts->process);
  starts_at_ = process.get();
  started_.process = std::move(process);
  decode::PreparationPlan own = plan;
  const bool fresh = plan.contexts->process->shape().contexts == 0;  // distributions are drawn during the run
  if (!fresh) own.contexts = &started_;
  simulator_.emplace(own, prepared, key, draft_length, 1);
  empty_ = simulator_->empty_counts();
}

WatchedRound::~WatchedRound() = default;

void WatchedRound::run(std::uint32_t context, decode::BitSource& random_bits, decode::Counts& counts, decode::RoundSink* sink) {
  starts_at_->set(context);
  if (loop_)
    loop_({0, 1, 1}, random_bits, counts, sink);
  else
    simulator_->run_scripted(1, random_bits, counts, sink);
}

SeenRound WatchedRound::watch(std::uint32_t context, decode::BitSource& random_bits) {
  OneRound sink;
  watched_ = empty_;
  run(context, random_bits, watched_, &sink);
  SeenRound& seen = sink.seen;
  SPECSIM_CHECK(watched_.rounds == 1 && watched_.emitted == seen.emitted.size(), "{} rounds, {} emitted, {} seen",
                watched_.rounds, watched_.emitted, seen.emitted.size());
  const std::vector<std::uint64_t>& accepted = watched_.accepted_distribution;
  const auto counted = std::find(accepted.begin(), accepted.end(), std::uint64_t{1});
  SPECSIM_CHECK(counted != accepted.end(), "no accepted count from context {}", context);
  const std::size_t lengths = watched_.accepted.size() + 1;
  seen.accepted = static_cast<std::uint32_t>(static_cast<std::size_t>(counted - accepted.begin()) % lengths);
  for (const std::uint64_t reached : watched_.reached) seen.judged += static_cast<std::uint32_t>(reached);
  return std::move(seen);
}

void WatchedRound::check_unwatched(std::uint32_t context, decode::BitSource& random_bits) {
  decode::Counts counts = empty_;
  run(context, random_bits, counts, nullptr);
  SPECSIM_CHECK(counts == watched_, "a round from context {} counts differently without a sink", context);
}

}  // namespace specsim::audit
