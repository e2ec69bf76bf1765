#include "sim/hardware/placement/lockstep.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/overloaded.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::placement {

namespace {

// The mean and percentiles of values given as (value, count); sorts them.
template <typename Ps>
MeanAndPercentiles mean_and_percentiles(std::vector<std::pair<Ps, std::uint64_t>>& values) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t count = 0;
  double sum = 0.0;
  for (const auto& [value, times] : values) {
    count += times;
    sum += static_cast<double>(value) * static_cast<double>(times);
  }
  if (count == 0) return {kNaN, kNaN, kNaN};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (const auto& [value, times] : values) {
      seen += times;
      if (seen >= rank) return 1e-12 * static_cast<double>(value);
    }
    return 1e-12 * static_cast<double>(values.back().first);
  };
  return {1e-12 * sum / static_cast<double>(count), at(0.5), at(0.99)};
}

// Adds a share of a block's work to the work of a batch.
void add(draft::BlockWork& all, double share, const draft::BlockWork& block) {
  const auto add_rows = [&](std::vector<double>& sum, const std::vector<double>& rows) {
    sum.resize(std::max(sum.size(), rows.size()), 0.0);
    for (std::size_t p = 0; p < rows.size(); ++p) sum[p] += share * rows[p];
  };
  add_rows(all.pass_rows, block.pass_rows);
  add_rows(all.meanwhile_rows, block.meanwhile_rows);
  all.verified_rows += share * block.verified_rows;
  all.reused += share * block.reused;
}

}  // namespace

int most_drafted(const Drafting& drafting, int draft_length) {
  return std::visit(Overloaded{[&](TokenByToken /*drafts*/) { return draft_length; },
                               [](const draft::BlockDrafter& drafter) { return drafter.shape().nodes; }},
                    drafting);
}

draft::BlockWork work_of(const Drafting& drafting, int drafted) {
  return std::visit(
      Overloaded{[&](TokenByToken /*drafts*/) {
                   return draft::BlockWork{std::vector<double>(static_cast<std::size_t>(drafted), 1.0), drafted + 1.0};
                 },
                 [&](const draft::BlockDrafter& drafter) { return drafter.work(drafted); }},
      drafting);
}

PassLatency pass_latency(const cost::PassTime& time, double more_host) {
  const double model = time.weights + time.compute + time.kv + time.communication + time.launch;
  return {Duration::from_seconds(std::max(model, 0.0)), Duration::from_seconds(time.sampling),
          Duration::from_seconds(time.host + more_host)};
}

Lockstep::Lockstep(const Generation& generation, engine::Timeline* timeline)
    : generation_(generation),
      drafted_(most_drafted(generation.drafting, generation.accepted->draft_length)),
      whole_(work_of(generation.drafting, drafted_)),
      timeline_(timeline) {
  const std::size_t sequences = generation.accepted->of_sequence.size();
  SPECSIM_CHECK(sequences >= 1 && generation.prompt_tokens >= 1 && generation.output_tokens.size() == sequences,
                "{} sequences, {} tokens, {} outputs", sequences, generation.prompt_tokens, generation.output_tokens.size());
  result_.sequences = sequences;
  emitted_.assign(sequences, 0);
  ended_ps_.assign(sequences, 0);
  for (std::size_t i = 0; i < sequences; ++i) running_.push_back(static_cast<std::uint32_t>(i));
  engine_.record_fingerprint();
}

double Lockstep::context() const {
  return static_cast<double>(generation_.prompt_tokens) + static_cast<double>(emitted_in_batch_) / static_cast<double>(size()) -
         1.0;
}

double Lockstep::catch_up_share() const {
  return generation_.accepted->bonus == decode::Bonus::emitted ? static_cast<double>(full_) / static_cast<double>(size()) : 0.0;
}

PassLatency Lockstep::prefill_latency(cost::Role role) const {
  return pass_latency(generation_.cost->pass(
      role, {static_cast<double>(result_.sequences), static_cast<double>(generation_.prompt_tokens), 0.0, 1.0}));
}

cost::PassTime Lockstep::draft_pass(std::uint64_t batch, const draft::BlockWork& block, std::size_t index, double context,
                                    double extra) const {
  return generation_.cost->draft_level({static_cast<double>(batch), context}, static_cast<int>(index), block.pass_rows[index],
                                       extra);
}

PassLatency Lockstep::draft_pass_latency(std::uint64_t batch, const draft::BlockWork& block, std::size_t index,
                                         double context) const {
  return pass_latency(draft_pass(batch, block, index, context, 0.0));
}

PassLatency Lockstep::draft_latency(std::uint64_t batch, const draft::BlockWork& block, double context, double extra) const {
  cost::PassTime sum;
  for (std::size_t i = 0; i < block.pass_rows.size(); ++i) sum += draft_pass(batch, block, i, context, i == 0 ? extra : 0.0);
  return pass_latency(sum);
}

int Lockstep::drafted_in(std::uint32_t sequence, std::size_t round) const {
  const std::vector<std::vector<std::uint16_t>>& drafted = generation_.accepted->drafted;
  if (drafted.empty()) return drafted_;
  SPECSIM_CHECK(round < drafted[sequence].size(), "sequence {} has {} rounds", sequence, drafted[sequence].size());
  return drafted[sequence][round];
}

draft::BlockWork Lockstep::block_of(std::uint32_t sequence, std::size_t round) const {
  draft::BlockWork block = work_of(generation_.drafting, drafted_in(sequence, round));
  if (generation_.accepted->pass_rows.empty()) return block;
  const std::vector<std::uint16_t>& counted = generation_.accepted->pass_rows[sequence][round];
  block.pass_rows.assign(counted.begin(), counted.end());
  return block;
}

Lockstep::Upcoming Lockstep::mean_of(std::span<const std::uint32_t> sequences) const {
  if (generation_.accepted->drafted.empty()) return {whole_, static_cast<double>(drafted_)};
  Upcoming all{{{}, 0.0}, 0.0};
  const double share = 1.0 / static_cast<double>(sequences.size());
  for (const std::uint32_t i : sequences) {
    all.drafted += share * drafted_in(i, result_.rounds);
    add(all.work, share, block_of(i, result_.rounds));
  }
  return all;
}

Lockstep::Upcoming Lockstep::upcoming() const { return mean_of(running_); }
Lockstep::Upcoming Lockstep::upcoming_of_missed() const { return mean_of(missed_); }

draft::BlockWork Lockstep::ahead() const {
  const AcceptedCounts& counts = *generation_.accepted;
  if (counts.drafted.empty()) return whole_;
  draft::BlockWork all{{}, 0.0};
  const double share = 1.0 / static_cast<double>(running_.size());
  for (const std::uint32_t i : running_) {
    const std::size_t round = result_.rounds;
    if (counts.ahead[i][round] == 0) continue;
    if (!counts.is_whole(i, round) && !counts.drafted_ahead.empty())
      add(all, share, work_of(generation_.drafting, counts.drafted_ahead[i][round]));
    else  // a text that ends with this round has only this block
      add(all, share, block_of(i, std::min(round + 1, counts.drafted[i].size() - 1)));
  }
  return all;
}

double Lockstep::ahead_context() const {
  const AcceptedCounts& counts = *generation_.accepted;
  if (counts.ahead.empty()) return context() + draft_length();
  double depth = 0.0;
  for (const std::uint32_t i : running_) depth += counts.ahead[i][result_.rounds];
  return context() + depth / static_cast<double>(running_.size());
}

std::uint64_t Lockstep::Upcoming::drafted_by(std::uint64_t sequences) const {
  return static_cast<std::uint64_t>(std::llround(drafted * static_cast<double>(sequences)));
}

bool Lockstep::draft_runs() const {
  return std::holds_alternative<TokenByToken>(generation_.drafting) || !whole_.pass_rows.empty();
}

Duration Lockstep::link_time(std::uint64_t sequences, double verified_rows) const {
  return Duration::from_seconds(generation_.cost->link_seconds(static_cast<double>(sequences), verified_rows));
}

PassLatency Lockstep::verify_latency() const {
  const draft::BlockWork work = upcoming().work;
  const double rows = work.verified_rows;
  const auto batch = static_cast<double>(size());
  cost::PassTime time = generation_.cost->pass(cost::Role::target, {batch, rows, context(), rows});
  const auto plain = [&] { return generation_.cost->pass(cost::Role::target, {batch, 1.0, context(), 1.0}); };
  if (work.reused > 0.0) {
    cost::PassTime rest;
    rest.add(1.0 - work.reused, time);
    rest.add(work.reused, plain());
    time = rest;
  }
  double more = rows > 1.0 || !work.pass_rows.empty() ? generation_.cost->round_overhead(batch) : 0.0;
  if (generation_.round_cost > 0.0) more += generation_.round_cost * plain().total();
  return pass_latency(time, more);
}

void Lockstep::emit_first() {
  result_.time_to_first_token = engine_.now() - SimTime();
  last_burst_ = engine_.now();
  for (std::uint64_t& emitted : emitted_) emitted = 1;
  emitted_in_batch_ = emitted_.size();
  result_.emitted = emitted_.size();
  std::erase_if(running_, [&](std::uint32_t i) {
    if (generation_.output_tokens[i] > 1) return false;
    end_now(i);
    return true;
  });
}

void Lockstep::end_now(std::uint32_t sequence) {
  ended_ps_[sequence] = engine_.now().ps();
  if (generation_.shrink) emitted_in_batch_ -= emitted_[sequence];
}

std::uint64_t Lockstep::emitted_by_round() const {
  const AcceptedCounts& counts = *generation_.accepted;
  if (counts.draft_length == 0) return running_.size();
  std::uint64_t sum = 0;
  for (const std::uint32_t i : running_) sum += static_cast<std::uint64_t>(counts.emitted(i, result_.rounds));
  return sum;
}

Lockstep::BatchRound Lockstep::finish_round() {
  BatchRound outcome;
  outcome.round = result_.rounds;
  outcome.batch = running_.size();
  outcome.drafted = upcoming().drafted_by(outcome.batch);
  const AcceptedCounts& counts = *generation_.accepted;
  std::size_t kept = 0;
  missed_.clear();
  for (const std::uint32_t i : running_) {
    const std::vector<std::uint8_t>& own = counts.of_sequence[i];
    SPECSIM_CHECK(counts.draft_length == 0 || result_.rounds < own.size(), "sequence {} has {} rounds", i, own.size());
    const int accepted = counts.draft_length == 0 ? 0 : own[result_.rounds];
    const auto whole = counts.draft_length == 0 ? 1 : static_cast<std::uint64_t>(counts.emitted(i, result_.rounds));
    const std::uint64_t room = generation_.output_tokens[i] - emitted_[i];
    const std::uint64_t emitted = std::min(whole, room);
    outcome.accepted += std::min(static_cast<std::uint64_t>(accepted), emitted);
    emitted_[i] += emitted;
    emitted_in_batch_ += emitted;
    result_.emitted += emitted;
    if (whole > room) {
      ++result_.cut_rounds;
      result_.cut_tokens += whole - room;
    }
    if (emitted_[i] < generation_.output_tokens[i]) {
      running_[kept++] = i;
      const bool full = counts.draft_length == 0 || counts.is_whole(i, result_.rounds);
      ++(full ? outcome.full : outcome.rejected);
      if (!full) missed_.push_back(i);
    } else {
      end_now(i);
    }
  }
  running_.resize(kept);
  full_ = outcome.full;
  const std::int64_t gap = (engine_.now() - last_burst_).ps();
  last_burst_ = engine_.now();
  if (!gaps_.empty() && gaps_.back().first == gap)
    gaps_.back().second += outcome.batch;
  else
    gaps_.emplace_back(gap, outcome.batch);
  ++result_.rounds;
  result_.sequence_rounds += outcome.batch;
  result_.drafted += outcome.drafted;
  result_.accepted += outcome.accepted;
  return outcome;
}

void Lockstep::spend(Duration Parts::*part, Duration wall, const PassLatency& pass) {
  const Duration sampling = std::min(pass.sampling, wall);
  const Duration host = std::min(pass.host, wall - sampling);
  result_.parts.sampling += sampling;
  result_.parts.host += host;
  result_.parts.*part += wall - sampling - host;
}

void Lockstep::waste(Duration block, std::uint64_t used, std::uint64_t drafted) {
  SPECSIM_CHECK(used <= drafted, "{} of {} drafts", used, drafted);
  if (drafted == 0) return;
  const double share = static_cast<double>(drafted - used) / static_cast<double>(drafted);
  result_.wasted_draft += Duration::from_ps(static_cast<double>(block.ps()) * share);
}

void Lockstep::add_wasted_ahead(Duration stretch) {
  result_.wasted_ahead += stretch;
  result_.wasted_draft += stretch;
}

void Lockstep::span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration) const {
  if (timeline_ != nullptr) timeline_->span(lane, name, start, duration);
}

void Lockstep::span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration, std::uint64_t round,
                    std::uint64_t batch, std::string_view colour) const {
  if (timeline_ == nullptr) return;
  timeline_->span(lane, name, start, duration,
                  {{"round", static_cast<std::int64_t>(round)}, {"batch", static_cast<std::int64_t>(batch)}}, colour);
}

void Lockstep::span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration,
                    const BatchRound& outcome) const {
  if (timeline_ == nullptr) return;
  const std::uint64_t drafted = outcome.drafted;
  const std::string_view colour = outcome.accepted == drafted       ? "good"
                                  : 2 * outcome.accepted >= drafted ? "olive"
                                  : 4 * outcome.accepted >= drafted ? "yellow"
                                  : outcome.accepted > 0            ? "bad"
                                                                    : "terrible";
  timeline_->span(lane, name, start, duration,
                  {{"round", static_cast<std::int64_t>(outcome.round)},
                   {"accepted", static_cast<std::int64_t>(outcome.accepted)},
                   {"batch", static_cast<std::int64_t>(outcome.batch)}},
                  colour);
}

Result Lockstep::run() {
  engine_.run();
  SPECSIM_CHECK(done(), "{} sequences did not finish", running_.size());
  result_.fingerprint = engine_.fingerprint();
  result_.end = Duration::from_ps(*std::max_element(ended_ps_.begin(), ended_ps_.end()));
  SPECSIM_CHECK(result_.parts.total() == result_.end, "parts {} ps, end {} ps", result_.parts.total().ps(), result_.end.ps());
  const std::uint64_t asked =
      std::accumulate(generation_.output_tokens.begin(), generation_.output_tokens.end(), std::uint64_t{0});
  SPECSIM_CHECK(result_.emitted == asked, "{} tokens of {}", result_.emitted, asked);
  result_.inter_token = mean_and_percentiles(gaps_);
  std::vector<std::pair<double, std::uint64_t>> per_token;
  for (std::size_t i = 0; i < ended_ps_.size(); ++i)
    if (generation_.output_tokens[i] > 1)
      per_token.emplace_back(static_cast<double>(ended_ps_[i] - result_.time_to_first_token.ps()) /
                                 static_cast<double>(generation_.output_tokens[i] - 1),
                             1);
  result_.time_per_output_token = mean_and_percentiles(per_token);
  return result_;
}

}  // namespace specsim::placement
