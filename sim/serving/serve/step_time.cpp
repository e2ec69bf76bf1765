#include "sim/serving/serve/step_time.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::serve {

namespace {

// Kinds of what TimeMemo keeps by tokens. Larger batches seldom have the same number of tokens again.
constexpr double kMostSequences = 64.0;
constexpr std::uint32_t kLengths = kMaxDraftLength + 2;

// A step of this many sequences, each with `rows_each` rows, after so many cached tokens of all.
std::uint32_t decoding_kind(std::uint32_t sequences, std::uint32_t rows_each, int draft_length) {
  return (sequences * kLengths + rows_each) * kLengths + static_cast<std::uint32_t>(draft_length);
}
// A step of the first so many tokens of one prompt. No decoding step has 0 sequences.
std::uint32_t prompt_kind(double logits, int draft_length) {
  return decoding_kind(0, 1 + static_cast<std::uint32_t>(logits), draft_length);
}
// Pass number `index` of the draft, with so many cached tokens of all. No step has 0 rows.
std::uint32_t pass_kind(std::uint32_t sequences, int index) { return decoding_kind(sequences, 0, index); }

bool is_kept(double sequences, double tokens) {
  return sequences <= kMostSequences && std::floor(sequences) == sequences && std::floor(tokens) == tokens &&
         tokens < static_cast<double>(TimeMemo::kMostTokens);
}

}  // namespace

StepLatency::Parts StepLatency::parts(const StepWork& work, int draft_length) const {
  const bool one_prompt = work.prompts.sequences == 1.0 && work.prompts.cached == 0.0 && work.decoding.sequences == 0.0 &&
                          work.draft_only.rows == 0.0 && work.draft_rows == nullptr && !work.peers.rows && work.logits <= 1.0;
  Parts parts = one_prompt && is_kept(1.0, work.prompts.rows)
                    ? kept_parts(prompt_kind(work.logits, draft_length), static_cast<std::uint64_t>(work.prompts.rows),
                                 draft_length, [&] { return work; })
                    : first_parts(work, draft_length);
  if (work.draft_rows == nullptr) add_later_passes(work.requests(), work.cached_after, draft_length, parts);
  return parts;
}

template <class Work>
StepLatency::Parts StepLatency::kept_parts(std::uint32_t kind, std::uint64_t tokens, int draft_length, const Work& work) const {
  if (const TimeMemo::Times* const known = memo_->find(kind, tokens)) return {known->target, known->draft, known->work_joules};
  const Parts parts = first_parts(work(), draft_length);
  memo_->keep(kind, tokens, {parts.target, parts.draft, parts.work_joules});
  return parts;
}

void StepLatency::add_later_passes(double sequences, double cached_after, int draft_length, Parts& parts) const {
  if (draft_length < 2 || method_ == DraftMethod::ngram) return;
  const cost::Workload workload{sequences, cached_after / sequences};
  if (!is_kept(sequences, cached_after)) {
    for (int j = 1; j < draft_length; ++j) add_draft(cost_->draft_pass(workload, j, 0.0), parts);
    return;
  }
  const auto tokens = static_cast<std::uint64_t>(cached_after);
  for (int j = 1; j < draft_length; ++j) {
    const std::uint32_t kind = pass_kind(static_cast<std::uint32_t>(sequences), j);
    if (const TimeMemo::Times* const known = memo_->find(kind, tokens)) {
      parts.draft += known->draft;
      parts.work_joules += known->work_joules;
      continue;
    }
    const cost::PassTime pass = cost_->draft_pass(workload, j, 0.0);
    memo_->keep(kind, tokens, {0.0, pass.total(), draft_gpus_ * pass.work_joules});
    add_draft(pass, parts);
  }
}

StepLatency::Parts StepLatency::first_parts(const StepWork& work, int draft_length) const {
  const double n = work.requests();
  const cost::PassTime target = cost_->mixed_pass(cost::Role::target, work.prompts, work.decoding, work.logits, work.peers);
  Parts parts{target.total(), 0.0, target.work_joules};
  if (host_ == HostTime::between_steps) parts.target += target.overlapped;
  // If some of the host's time is hidden by the GPU's, the engine's figures already are those of overlapped steps.
  if (host_ == HostTime::overlapped && target.overlapped == 0.0) parts.target = std::max(parts.target - target.host, target.host);
  if (draft_length == 0) {
    if (keeps_draft_) add_draft(cost_->mixed_draft_pass(work.draft_prompts(), work.decoding), parts);
    return parts;
  }
  parts.draft = cost_->round_overhead(n) + cost_->link_seconds(n, draft_length + 1.0);
  if (method_ == DraftMethod::ngram) return parts;
  if (work.draft_rows != nullptr) {
    add_passes(work, parts);
    return parts;
  }
  add_draft(cost_->mixed_draft_pass(work.draft_prompts(), work.decoding), parts);
  return parts;
}

void StepLatency::add_passes(const StepWork& work, Parts& parts) const {
  const std::vector<double>& rows = *work.draft_rows;
  const double n = work.requests();
  for (std::size_t j = 0; j < rows.size(); ++j) {
    if (j == 0) {
      // Its own rows beyond one per sequence are those of the first drafts.
      cost::Segment decoding = work.decoding;
      const double more = std::max(rows[0], n) - n;
      if (decoding.sequences > 0.0) decoding.pairs += more * (decoding.cached / decoding.sequences);
      decoding.rows += more;
      add_draft(cost_->mixed_draft_pass(work.draft_prompts(), decoding), parts);
      continue;
    }
    const double sequences = std::min(n, rows[j]);  // sequences that draft no further add no row to the pass
    if (sequences == 0.0) break;
    add_draft(cost_->draft_level({sequences, work.cached_after / n}, static_cast<int>(j), rows[j] / sequences, 0.0), parts);
  }
}

StepTime StepLatency::time(const StepWork& work, int draft_length) const { return rounded(parts(work, draft_length)); }

StepTime StepLatency::decoding_time(std::uint32_t sequences, std::uint32_t rows_each, std::uint64_t cached,
                                    std::uint64_t cached_after, int draft_length) const {
  const auto work = [&] {
    StepWork all;
    const std::uint64_t rows = std::uint64_t{sequences} * rows_each;
    all.decoding = {static_cast<double>(sequences), static_cast<double>(rows), static_cast<double>(cached),
                    0.5 * static_cast<double>(rows_each * (2 * cached + sequences + rows))};
    all.logits = static_cast<double>(rows);
    all.cached_after = static_cast<double>(cached_after);
    return all;
  };
  if (!is_kept(sequences, static_cast<double>(cached)) || rows_each >= kLengths) return time(work(), draft_length);
  Parts parts = kept_parts(decoding_kind(sequences, rows_each, draft_length), cached, draft_length, work);
  add_later_passes(sequences, static_cast<double>(cached_after), draft_length, parts);
  return rounded(parts);
}

StepTime StepLatency::rounded(const Parts& time) {
  if (!(time.target + time.draft < arrivals::kLongestRun))
    throw BadInput({"", 0, 0},
                   fmt::format("a step takes {:.4g} s by the cost model, allowed: less than {:g} s, where simulated time ends",
                               time.target + time.draft, arrivals::kLongestRun));
  const arrivals::Picoseconds target = std::llround(arrivals::kPicosecondsPerSecond * time.target);
  return {target, std::llround(arrivals::kPicosecondsPerSecond * (time.target + time.draft)) - target, time.work_joules};
}

double StepLatency::seconds(const StepWork& work, int draft_length) const {
  const Parts time = parts(work, draft_length);
  return time.target + time.draft;
}

}  // namespace specsim::serve
