#include "sim/serving/serve/step_time.h"

#include "sim/foundation/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::serve {

StepLatency::Parts StepLatency::parts(const StepWork& work, int draft_length) const {
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
  for (int j = 1; j < draft_length; ++j) add_draft(cost_->draft_pass({n, work.cached_after / n}, j, 0.0), parts);
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
