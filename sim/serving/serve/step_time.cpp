#include "sim/serving/serve/step_time.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::serve {

StepLatency::Parts StepLatency::parts(const StepWork& work, int draft_length) const {
  Parts parts = first_parts(work, draft_length);
  if (!drafts_by_token(draft_length) || work.draft_rows != nullptr) return parts;
  const double n = work.requests();
  for (int j = 1; j < draft_length; ++j) add_draft(cost_->draft_pass({n, work.cached_after / n}, j, 0.0), parts);
  return parts;
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
  constexpr std::uint32_t kMostSequences = 64;  // larger batches seldom have the same number of tokens again
  constexpr std::uint32_t kLengths = kMaxDraftLength + 2;
  const double n = sequences;
  const auto work = [&] {
    StepWork all;
    const std::uint64_t rows = std::uint64_t{sequences} * rows_each;
    all.decoding = {n, static_cast<double>(rows), static_cast<double>(cached),
                    0.5 * static_cast<double>(rows_each * (2 * cached + sequences + rows))};
    all.logits = static_cast<double>(rows);
    all.cached_after = static_cast<double>(cached_after);
    return all;
  };
  if (sequences > kMostSequences || rows_each >= kLengths || cached_after >= TimeMemo::kMostTokens)
    return time(work(), draft_length);
  const auto length = static_cast<std::uint32_t>(draft_length);
  Parts parts;
  const std::uint32_t step = (sequences * kLengths + rows_each) * kLengths + length;
  if (const TimeMemo::Times* const known = memo_->find(step, cached)) {
    parts = {known->target, known->draft, known->work_joules};
  } else {
    parts = first_parts(work(), draft_length);
    memo_->keep(step, cached, {parts.target, parts.draft, parts.work_joules});
  }
  if (!drafts_by_token(draft_length)) return rounded(parts);
  for (std::uint32_t j = 1; j < length; ++j) {
    const std::uint32_t pass = sequences * kLengths * kLengths + j;  // no step has 0 rows
    if (const TimeMemo::Times* const known = memo_->find(pass, cached_after)) {
      parts.draft += known->draft;
      parts.work_joules += known->work_joules;
      continue;
    }
    const cost::PassTime time = cost_->draft_pass({n, static_cast<double>(cached_after) / n}, static_cast<int>(j), 0.0);
    memo_->keep(pass, cached_after, {0.0, time.total(), draft_gpus_ * time.work_joules});
    add_draft(time, parts);
  }
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
