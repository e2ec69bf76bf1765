#include "sim/serving/serve/step_time.h"

#include <algorithm>
#include <cmath>

namespace specsim::serve {

namespace {

// This share of the rows; at least one whole sequence if there is any.
cost::Segment part(cost::Segment segment, double share) {
  const double sequences = std::max(share * segment.sequences, std::min(segment.sequences, 1.0));
  if (segment.sequences > 0.0) segment.cached *= sequences / segment.sequences;
  segment.sequences = sequences;
  segment.rows *= share;
  segment.pairs *= share;
  return segment;
}

}  // namespace

StepTime StepLatency::sequential_time(const StepWork& work, const std::vector<SequentialDraft>& drafts, double batch_rows,
                                      double pass_rows) const {
  Parts parts;
  const double rows = work.prompts.rows + work.decoding.rows;
  for (double left = rows; left > 0.0; left -= batch_rows)
    for (double piece = std::min(left, batch_rows); piece > 0.0; piece -= pass_rows) {
      const double share = std::min(piece, pass_rows) / rows;
      const cost::PassTime pass = cost_->mixed_pass(cost::Role::target, part(work.prompts, share), part(work.decoding, share),
                                                    work.logits * share, work.peers);
      parts.target += pass.total();
      parts.work_joules += pass.work_joules;
    }
  const auto add = [&](const cost::PassTime& pass) { add_draft(pass, parts); };
  for (const SequentialDraft& one : drafts) {
    parts.draft += cost_->round_overhead(1.0) + cost_->link_seconds(1.0, one.drafts + 1.0);
    if (method_ == DraftMethod::ngram || one.looked_up) continue;
    add(cost_->draft_pass({1.0, static_cast<double>(one.cached)}, 0, one.first_rows - 1.0));
    for (std::uint32_t j = 1; j < one.drafts; ++j)
      add(cost_->draft_pass({1.0, static_cast<double>(one.cached + one.first_rows) - 1.0}, static_cast<int>(j), 0.0));
  }
  return rounded(parts);
}

}  // namespace specsim::serve
