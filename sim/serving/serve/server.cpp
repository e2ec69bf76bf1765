#include "sim/serving/serve/server.h"

#include "sim/foundation/base/token.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace specsim::serve {

namespace {

constexpr std::uint32_t kMostGraphRows = 512;  // the largest size that vLLM captures
// Beyond this number, gaps are sorted and equal ones joined.
constexpr std::size_t kGapsKept = std::size_t{1} << 22;

}  // namespace

const std::array<const char*, kCauses>& cause_names() {
  static const std::array<const char*, kCauses> names = {"frontend",     "queue",   "prefill",   "decode",    "draft",
                                                         "interference", "stalled", "preempted", "recompute", "transfer"};
  return names;
}

Server::Server(std::uint32_t index, Parts parts, const arrivals::RequestTrace& workload, Sequence* sequences,
               StepObserver* observer)
    : index_(index),
      parts_(std::move(parts)),
      observer_(observer),
      common_gap_(kMaxDraftLength + 2),
      verified_(kMaxDraftLength + 1),
      accepted_(kMaxDraftLength + 1) {
  state_.first_sequence = sequences;
  state_.workload = &workload;
  state_.pool = parts_.pool.get();
  state_.policy = parts_.policy.get();
  if (parts_.policy) {
    state_.acceptance = parts_.acceptance;
    state_.widest = parts_.acceptance->widest(parts_.policy->longest());
    per_request_ = parts_.policy->per_request();
    state_.uneven = per_request_ || parts_.acceptance->uneven();
    if (parts_.policy->shares_rows()) rounds_ = parts_.acceptance->rounds();
  }
  state_.lookahead = parts_.lookahead;
  state_.extra_rows = parts_.extra_rows;
  state_.drafts_cached = parts_.drafts_cached;
  state_.saves_states = parts_.saves_states;
  state_.loses_drafts = parts_.loses_drafts;
  totals_.fewest_free_blocks = parts_.pool->free();
}

void Server::arrive(arrivals::RequestId request, arrivals::Picoseconds now) {
  state_.now = now;
  Sequence& sequence = state_.at(request);
  state_.spend(sequence, sequence.moved ? Cause::transfer : Cause::frontend);
  parts_.scheduler->arrive(request, state_);
}

std::uint32_t Server::known_hashes(const arrivals::Request& request) const {
  std::uint32_t known = 0;
  while (known < request.hashes && remembered_.contains(state_.workload->hashes[request.first_hash + known])) ++known;
  return known;
}

void Server::remember(const arrivals::Request& request) {
  const auto first = state_.workload->hashes.begin() + request.first_hash;
  remembered_.insert(first, first + request.hashes);
}

ServerTotals Server::totals() const {
  ServerTotals totals = totals_;
  if (const HostCache* const host = parts_.pool->host(); host != nullptr) {
    totals.host = host->totals();
    totals.host_block_bytes = host->setting().block_bytes;
  }
  return totals;
}

void Server::begin_steps(arrivals::Picoseconds now) {
  state_.now = now;
  wakes_ = arrivals::kNever;
  if (ends_ == arrivals::kNever && !composed_) {
    parts_.scheduler->schedule(state_, current_);
    // A request that gave up its own blocks can be admitted again by the next scheduling. An idle engine schedules again at once.
    if (current_.items.empty() && current_.preempted > 0) parts_.scheduler->schedule(state_, current_);
    if (current_.items.empty()) {
      wakes_ = state_.wakes;
      return;
    }
    begin_pass(now);
  }
  if (!parts_.scheduler->asynchronous() || has_queued_) return;
  parts_.scheduler->schedule(state_, queued_);
  has_queued_ = !queued_.items.empty();
}

// Sums up the rows of the draft's passes in the running step, from the block that each sequence drafts.
void Server::sum_draft_rows() {
  draft_rows_.clear();
  for (const Item& item : current_.items) {
    if (parts_.acceptance->looks_up(item.request)) continue;
    const std::uint32_t emitted = item.emits ? item.emitted_before + item.accepted + 1 : 0;
    const std::uint32_t rows = item.emits ? state_.drafts(item.request, emitted, current_.draft_length)
                                          : state_.drafts_ahead(item.request, current_.draft_length);
    const std::vector<double>* const passes =
        item.emits ? parts_.acceptance->passes_of(item.request, emitted, rows) : parts_.acceptance->passes(rows);
    const std::size_t count = passes != nullptr ? passes->size() : rows;
    if (draft_rows_.size() < count) draft_rows_.resize(count, 0.0);
    for (std::size_t pass = 0; pass < count; ++pass) draft_rows_[pass] += passes != nullptr ? (*passes)[pass] : 1.0;
  }
}

void Server::begin_pass(arrivals::Picoseconds now) {
  compose();
  if (parts_.in_step) {
    composed_ = true;
    return;
  }
  time_ = step_time();
  run(now);
}

arrivals::Picoseconds Server::together_with(const cost::OtherEngines& peers) {
  work_.peers = peers;
  time_ = step_time();
  return time_.total();
}

void Server::begin_together(arrivals::Picoseconds now, arrivals::Picoseconds longest) {
  composed_ = false;
  time_.target += longest - time_.total();  // it waits for the others' rows
  run(now);
}

// How many of each sequence's drafts the step verifies, as the policy shares out the rows.
void Server::share_rows() {
  SharedStep step{static_cast<std::uint32_t>(current_.items.size())};
  const bool looks = parts_.policy->confidence() != draft::Confidence::history;
  chains_.clear();
  for (const Item& item : current_.items) {
    step.rows += item.rows - item.drafts;
    step.emitting += item.emits ? 1 : 0;
    if (item.drafts == 0) continue;
    const Sequence& sequence = state_.at(item.request);
    DraftedChain chain{item.request, item.drafts, {}, sequence.status == Status::finished};
    if (looks && !chain.ended) chain.forecasts = rounds_->forecasts(item.request, sequence.emitted, item.drafts);
    chains_.push_back(chain);
  }
  of_chains_.assign(chains_.size(), 0);
  if (!chains_.empty()) parts_.policy->share(step, chains_, of_chains_);
  std::size_t chain = 0;
  for (Item& item : current_.items) item.verified = item.drafts > 0 ? of_chains_[chain++] : 0;
}

// The accepted part of an item's drafts. Rounds that are played continue from the end of the request's last one, also without
// drafts.
void Server::play(Item& item, const Sequence& sequence) {
  if (sequence.status == Status::finished) return;
  if (rounds_ == nullptr)
    item.accepted = item.drafts > 0 ? parts_.acceptance->accepted(item.request, sequence.emitted, item.drafts) : 0;
  else if (item.emits && sequence.emitted > 0)  // the first token comes with the prompt
    item.accepted = rounds_->play(item.request, sequence.emitted, item.verified);
}

// The draft computes the tokens whose cache it lost together with its rows of this item, after `before` tokens of the target.
void Server::recompute_draft(const Item& item, std::uint32_t before) {
  Sequence& sequence = state_.at(item.request);
  const double lost = std::exchange(sequence.draft_lost, 0);
  const auto pairs = [](double rows, double cached) { return rows * (cached + 0.5 * (rows + 1.0)); };
  work_.draft_only.rows += lost;
  work_.draft_only.cached -= lost;
  work_.draft_only.pairs += pairs(lost + item.rows, before - lost) - pairs(item.rows, before);
  sequence.draft_recomputed += static_cast<std::uint32_t>(lost);
}

void Server::compose() {
  if (rounds_ != nullptr)
    share_rows();
  else
    for (Item& item : current_.items) item.verified = item.drafts;
  work_ = {};
  sums_ = {};
  sums_.rows_each = current_.items.front().computed();
  for (Item& item : current_.items) {
    const Sequence& sequence = state_.at(item.request);
    item.emitted_before = sequence.emitted;
    play(item, sequence);
    if (sequence.status != Status::finished) {
      sums_.rejected += item.verified - item.accepted;
      if (per_request_ && !item.prefill) observe_round(item, sequence);
    }
    const std::uint32_t before = sequence.computed - std::min(item.rows, sequence.computed);
    if (item.prefill)
      add_prompt(item, before);
    else
      sums_.add_round(item, before);
  }
  finish_work();
}

// The policy also observes rounds without drafts of a request that has stopped drafting, so that it can start again.
void Server::observe_round(const Item& item, const Sequence& sequence) {
  ServerPolicy& policy = *parts_.policy;
  if (item.drafts > 0 || policy.of_request(state_.drafting(item.request, sequence.emitted), policy.longest()) == 0)
    policy.observe_request(item.request, static_cast<int>(item.drafts), static_cast<int>(item.accepted));
}

void Server::add_prompt(const Item& item, std::uint32_t before) {
  sums_.uniform = false;
  sums_.prompt_rows += item.rows;
  if (item.emits) work_.logits += 1.0;
  work_.prompts.sequences += 1.0;
  work_.prompts.rows += item.rows;
  work_.prompts.cached += before;
  work_.prompts.pairs += item.rows * (before + 0.5 * (item.rows + 1.0));
  if (state_.at(item.request).draft_lost > 0) recompute_draft(item, before);
}

void StepSums::add_round(const Item& item, std::uint32_t before) {
  const std::uint32_t computed = item.computed();
  uniform = uniform && computed == rows_each;
  verified_drafts += item.verified;
  round_rows += computed;
  cached += before;
  twice_pairs += computed * (2 * std::uint64_t{before} + computed + 1);
}

void Server::finish_work() {
  const double prompts = work_.prompts.sequences;
  work_.decoding = {static_cast<double>(current_.items.size()) - prompts, static_cast<double>(sums_.round_rows),
                    static_cast<double>(sums_.cached), 0.5 * static_cast<double>(sums_.twice_pairs)};
  work_.logits += sums_.round_rows;
  const auto rows = static_cast<double>(sums_.prompt_rows + sums_.round_rows);
  work_.cached_after = work_.prompts.cached + work_.decoding.cached + (rows - static_cast<double>(sums_.rejected));
  sums_.cached_after = sums_.cached + sums_.prompt_rows + sums_.round_rows - sums_.rejected;
  if (state_.uneven && current_.draft_length > 0 && !current_.drafts_sequentially) {
    sum_draft_rows();
    work_.draft_rows = &draft_rows_;
  }
}

StepTime Server::step_time() const {
  if (current_.drafts_sequentially)
    return parts_.latency->sequential_time(work_, current_.sequential_drafts, current_.batch_rows, current_.pass_rows);
  if (sums_.uniform && work_.draft_rows == nullptr && !parts_.in_step)
    return parts_.latency->decoding_time(static_cast<std::uint32_t>(current_.items.size()), sums_.rows_each, sums_.cached,
                                         sums_.cached_after, current_.draft_length);
  return parts_.latency->time(work_, current_.draft_length);
}

void Server::run(arrivals::Picoseconds now) {
  const auto decode_rows = static_cast<std::uint32_t>(work_.decoding.sequences);
  const auto rows = sums_.prompt_rows + static_cast<std::uint32_t>(work_.decoding.rows);
  began_ = now;
  time_.target += std::max<arrivals::Picoseconds>(0, current_.loaded_at - now - time_.total());
  ends_ = now + time_.total();
  mixed_ = sums_.prompt_rows > 0;

  if (observer_ != nullptr)
    observer_->began({index_, totals_.steps, now, time_, sums_.prompt_rows, decode_rows, sums_.verified_drafts, &current_,
                      state_.first_sequence, parts_.pool.get()});
  ++totals_.steps;
  ++(rows > kMostGraphRows ? totals_.eager_steps : sums_.uniform ? totals_.uniform_steps : totals_.mixed_steps);
  totals_.prefill_steps += mixed_ ? 1 : 0;
  totals_.rows += rows;
  totals_.draft_rows += sums_.verified_drafts;
  totals_.rounds += decode_rows;
  totals_.largest_batch = std::max(totals_.largest_batch, static_cast<std::uint32_t>(current_.items.size()));
  totals_.fewest_free_blocks = std::min(totals_.fewest_free_blocks, current_.free_blocks);
  totals_.batch_ps += work_.requests() * static_cast<double>(time_.total());
  totals_.busy += time_.total();
  totals_.drafting += time_.draft;
  if (sums_.verified_drafts > 0) {
    totals_.verifying_ps += static_cast<double>(time_.total());
    totals_.verifying_batch_ps += work_.requests() * static_cast<double>(time_.total());
  }
  totals_.work_joules += time_.work_joules;
}

void Server::add_gap(const Gap& gap) {
  if (gaps_.size() >= kGapsKept && gaps_.size() == gaps_.capacity()) {
    const auto order = [](const Gap& a, const Gap& b) {
      return a.length != b.length ? a.length < b.length : a.tokens < b.tokens;
    };
    std::sort(gaps_.begin(), gaps_.end(), order);
    std::size_t kept = 0;
    for (std::size_t i = 1; i < gaps_.size(); ++i) {
      if (gaps_[i].length == gaps_[kept].length && gaps_[i].tokens == gaps_[kept].tokens)
        gaps_[kept].count += gaps_[i].count;
      else
        gaps_[++kept] = gaps_[i];
    }
    gaps_.resize(kept + 1);
  }
  gaps_.push_back(gap);
}

// The chunk of tokens that a sequence got, if it did not run when its step began.
void Server::account_chunk(Sequence& sequence, std::uint32_t got, arrivals::Picoseconds now) {
  if (got == 0) return;
  if (sequence.first_token == arrivals::kNever) {
    sequence.first_token = now;
    sequence.spent_first = sequence.spent;
  } else if (sequence.last_token == began_) {
    ++common_gap_[got];
    largest_chunk_ = std::max(largest_chunk_, got);
  } else {
    add_gap({now - sequence.last_token, got, 1});
  }
  sequence.last_token = now;
}

// Records the causes of the step's time for each of its sequences, and their chunks of tokens.
void Server::account(arrivals::Picoseconds now) {
  const StepTime time = time_;
  const arrivals::Picoseconds began = began_;
  const auto cause = static_cast<std::size_t>(mixed_ ? Cause::interference : Cause::decode);
  std::uint32_t single = 0;  // chunks of one token, the usual ones
  for (const Item& item : current_.items) {
    Sequence& sequence = state_.at(item.request);
    const std::uint32_t got = sequence.emitted - item.emitted_before;
    // It ended with the step before, after this step was scheduled.
    if (sequence.status == Status::finished && sequence.last_token == began && got == 0) continue;
    if (item.prefill) {
      sequence.spent[static_cast<std::size_t>(sequence.resumed ? Cause::recompute : Cause::prefill)] += now - sequence.since;
      if (item.emits) sequence.resumed = false;
    } else {
      if (sequence.since != began) {
        // A request whose cache came over a link waits for the running step to end; its own first step is already scheduled next.
        const Cause waited = sequence.moved && sequence.rounds == 0 ? Cause::queue : Cause::stalled;
        sequence.spent[static_cast<std::size_t>(waited)] += began - sequence.since;
      }
      sequence.spent[cause] += time.target;
      sequence.spent[static_cast<std::size_t>(Cause::draft)] += time.draft;
      ++sequence.rounds;
      sequence.drafted += item.verified;
      sequence.accepted += item.accepted;
    }
    sequence.since = now;
    if (got == 1 && sequence.last_token == began) {
      ++single;
      sequence.last_token = now;
    } else {
      account_chunk(sequence, got, now);
    }
  }
  if (single == 0) return;
  common_gap_[1] += single;
  largest_chunk_ = std::max(largest_chunk_, 1U);
}

// Reports the accepted counts to the policy. A request that ended may still be in the step that was already scheduled next, and
// is forgotten after that step.
void Server::observe_shared_rounds(const std::vector<arrivals::RequestId>& finished) {
  taken_.clear();
  for (const Item& item : current_.items)
    if (item.drafts > 0) taken_.push_back(item.accepted);
  if (!chains_.empty()) parts_.policy->observe_shared(chains_, of_chains_, taken_);
  for (const arrivals::RequestId request : ended_) {
    parts_.policy->forget(request);
    rounds_->forget(request);
  }
  ended_ = finished;
}

// The gaps of sequences that got a chunk when this step began and at its end, up to chunks of `largest` tokens.
void Server::add_common_gaps(std::uint32_t largest) {
  for (std::uint32_t tokens = 1; tokens <= largest; ++tokens)
    if (common_gap_[tokens] > 0) add_gap({time_.total(), tokens, std::exchange(common_gap_[tokens], 0)});
}

void Server::finish_step(arrivals::Picoseconds now, std::vector<arrivals::RequestId>& finished) {
  state_.now = now;
  wakes_ = arrivals::kNever;
  if (idle()) return;
  parts_.scheduler->update(state_, current_, finished);
  account(now);
  add_common_gaps(std::exchange(largest_chunk_, 0));
  if (parts_.policy) {
    std::size_t longest = 0;
    std::uint32_t sequences = 0;
    const auto most = static_cast<std::uint32_t>(parts_.policy->longest());  // tokens of a tree's longest path
    for (const Item& item : current_.items) {
      sequences += item.prefill ? 0 : 1;
      for (std::uint32_t at = 0; at < std::min(item.verified, most) && at <= item.accepted; ++at) {
        ++verified_[at];
        accepted_[at] += at < item.accepted ? 1 : 0;
      }
      longest = std::max<std::size_t>(longest, std::min(item.verified, most));
    }
    if (sequences > 0) parts_.policy->observe({sequences, {verified_.data(), longest}, {accepted_.data(), longest}});
    std::fill_n(verified_.begin(), longest, 0);
    std::fill_n(accepted_.begin(), longest, 0);
    if (rounds_ != nullptr) observe_shared_rounds(finished);
    if (per_request_)
      for (const arrivals::RequestId request : finished) parts_.policy->forget(request);
  }
  ends_ = arrivals::kNever;
  if (!has_queued_) return;
  std::swap(current_, queued_);
  has_queued_ = false;
  begin_pass(now);
}

// How the next steps go on without a scheduler, a policy or an observer; no steps if these have anything to do.
SameSteps Server::same_steps() const {
  if (observer_ != nullptr || parts_.in_step || mixed_ || !sums_.uniform || rounds_ != nullptr || state_.uneven ||
      current_.drafts_sequentially || (parts_.policy && !parts_.policy->by_requests_alone()))
    return {};
  const bool ahead = parts_.scheduler->asynchronous();
  if (ahead && !has_queued_) return {};
  const Step& last = ahead ? queued_ : current_;
  if (last.items.size() != current_.items.size() || last.waiting != 0) return {};
  const std::uint32_t drafts = sums_.rows_each - 1;
  for (const Step* const step : {&current_, &last})
    if (step->draft_length != static_cast<int>(drafts) || step->loaded_at != 0) return {};
  for (std::size_t i = 0; i < current_.items.size(); ++i) {
    const Item& now = current_.items[i];
    const Item& next = last.items[i];
    const Sequence& sequence = state_.at(now.request);
    if (!now.emits || now.drafts != drafts || sequence.since != began_ || sequence.last_token != began_ ||
        next.request != now.request || next.prefill || !next.emits || next.drafts != drafts || next.rows != sums_.rows_each)
      return {};
  }
  return parts_.scheduler->same_steps(state_, last);
}

// The step of `item` has ended and the next one begins: takes its tokens, and draws how many drafts of the next one are accepted.
std::uint32_t Server::take_accepted(Sequence& sequence, Item& item) {
  const std::uint32_t got = item.accepted + 1;
  ++common_gap_[got];
  sequence.emitted += got;
  sequence.computed += got;
  sequence.accepted += item.accepted;
  if (item.drafts > 0) item.accepted = parts_.acceptance->accepted(item.request, sequence.emitted, item.drafts);
  return item.accepted;
}

void Server::decode_same(const SameSteps& same, arrivals::Picoseconds limit) {
  BlockPool& pool = *parts_.pool;
  const bool limited = !pool.unlimited();
  const std::uint64_t block = pool.block_tokens();
  const auto sequences = static_cast<std::uint32_t>(current_.items.size());
  StepTime spent;
  std::uint32_t steps = 0;
  for (; steps < same.steps && ends_ < limit; ++steps) {
    spent.target += time_.target;
    spent.draft += time_.draft;
    std::uint32_t accepted = 0;
    for (Item& item : current_.items) {
      Sequence& sequence = state_.at(item.request);
      accepted += take_accepted(sequence, item);
      if (!limited || std::uint64_t{sequence.computed} + same.slots <= sequence.held * block) continue;
      const std::uint32_t more = pool.blocks_for(std::uint64_t{sequence.computed} + same.slots) - sequence.held;
      pool.take(more);
      sequence.held += more;
    }
    add_common_gaps(sums_.rows_each);
    // A step that is scheduled ahead was scheduled before these blocks were taken.
    current_.free_blocks = has_queued_ ? std::exchange(queued_.free_blocks, pool.free()) : pool.free();
    sums_.cached = sums_.cached_after;
    sums_.cached_after += sequences + accepted;
    const arrivals::Picoseconds now = ends_;
    time_ = step_time();
    run(now);
  }
  for (Item& item : current_.items) {
    Sequence& sequence = state_.at(item.request);
    item.emitted_before = sequence.emitted;
    sequence.spent[static_cast<std::size_t>(Cause::decode)] += spent.target;
    sequence.spent[static_cast<std::size_t>(Cause::draft)] += spent.draft;
    sequence.rounds += steps;
    sequence.drafted += steps * item.drafts;
    sequence.since = sequence.last_token = began_;
  }
  parts_.scheduler->skipped(steps);
}

void Server::decode_until(arrivals::Picoseconds limit) {
  limit = std::min(limit, arrivals::kLastMoment);
  while (ends_ < limit) {
    const SameSteps same = same_steps();
    if (same.steps == 0) return;
    decode_same(same, limit);
  }
}

// Plays the steps that decode_same() will do, without doing them.
arrivals::Picoseconds Server::quiet_until() {
  if (idle()) return wakes_;
  const SameSteps same = same_steps();
  if (same.steps == 0) return ends_;
  const auto sequences = static_cast<std::uint32_t>(current_.items.size());
  played_.clear();
  for (const Item& item : current_.items) played_.push_back({state_.at(item.request).emitted, item.accepted});
  arrivals::Picoseconds until = ends_;
  std::uint64_t cached_after = sums_.cached_after;
  for (std::uint32_t step = 0; step < same.steps && until < arrivals::kLastMoment; ++step) {
    const std::uint64_t cached = cached_after;
    cached_after += sequences;
    for (std::size_t i = 0; i < played_.size() && sums_.rows_each > 1; ++i) {
      SequenceRound& round = played_[i];
      round.emitted += round.accepted + 1;
      round.accepted = parts_.acceptance->accepted(current_.items[i].request, round.emitted, sums_.rows_each - 1);
      cached_after += round.accepted;
    }
    until += parts_.latency->decoding_time(sequences, sums_.rows_each, cached, cached_after, current_.draft_length).total();
  }
  return until;
}

}  // namespace specsim::serve
