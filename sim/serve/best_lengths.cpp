#include "sim/serve/best_lengths.h"

#include <fmt/format.h>

namespace specsim::serve {

std::vector<LengthRange> best_lengths(const ServeExperiment& experiment, const Acceptance& acceptance, double cached,
                                      std::uint32_t most, int longest) {
  Diagnostics none;
  const bool overlapped = experiment.scheduler.entry->make(experiment.scheduler.arguments, none)->asynchronous();
  const StepPricer pricer(*experiment.cost, experiment.speculation->method, overlapped);
  std::vector<LengthRange> ranges;
  for (std::uint32_t requests = 1; requests <= most; ++requests) {
    int best = 0;
    double best_rate = 0.0;
    for (int length = 0; length <= longest; ++length) {
      const double emitted = acceptance.tokens_per_round(length);
      StepWork work;
      work.requests = requests;
      work.rows = requests * (1.0 + length);
      work.logits = work.rows;
      work.cached = requests * cached;
      work.cached_after = requests * (cached + emitted);
      const double rate = emitted / pricer.seconds(work, length);
      if (rate <= best_rate * (1.0 + 1e-12)) continue;
      best = length;
      best_rate = rate;
    }
    if (!ranges.empty() && ranges.back().draft_length == best)
      ranges.back().to = requests;
    else
      ranges.push_back({requests, requests, best});
  }
  return ranges;
}

std::string ranges_text(const std::vector<LengthRange>& ranges) {
  std::string text;
  for (const LengthRange& range : ranges)
    text += fmt::format("{}[{}, {}, {}]", text.empty() ? "" : ", ", range.from, range.to, range.draft_length);
  return "[" + text + "]";
}

}  // namespace specsim::serve
