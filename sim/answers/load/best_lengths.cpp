#include "sim/answers/load/best_lengths.h"

#include "sim/foundation/base/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::load {

using plan::LengthRange;

LengthTable length_table(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, plan::Rise rise) {
  constexpr double kMostRequests = 1024.0;  // no server has larger steps, and the table's work grows with them
  LengthTable table;
  double prompts = 0.0;
  double outputs = 0.0;
  for (const arrivals::Request& request : workload.requests) {
    prompts += request.prompt;
    outputs += request.output;
  }
  table.cached = (prompts + 0.5 * outputs) / static_cast<double>(workload.requests.size());
  const Speculation& speculation = *experiment.speculation;
  const auto acceptance = make_acceptance(experiment, workload);
  table.longest = speculation.longest;
  table.stated =
      std::min(table.longest, speculation.stated() != nullptr ? serve::stated_places(*speculation.stated()) : kMaxDraftLength);
  table.running = experiment.scheduler()->running_limit().requests;
  double most = std::min(static_cast<double>(table.running), kMostRequests);
  const serve::BlockPool pool(experiment.pool.blocks, experiment.pool.block_tokens, false);
  if (!pool.unlimited()) {
    const auto tokens = static_cast<std::uint64_t>(std::ceil(table.cached)) + acceptance->widest(table.stated);
    const double fitting = std::max(1.0, std::floor(pool.usable() / static_cast<double>(pool.blocks_for(tokens))));
    if (fitting < most) table.fitting = static_cast<std::uint32_t>(most = fitting);
  }
  if (table.stated > 0)
    table.best = best_lengths(experiment, *acceptance, table.cached, static_cast<std::uint32_t>(most), table.stated, rise);
  return table;
}

int length_at(const BestLengths& best, double requests) {
  int length = best.ranges.front().draft_length;
  for (const LengthRange& range : best.ranges)
    if (range.from <= requests) length = range.draft_length;
  return length;
}

namespace {

constexpr double kAlike = 0.01;  // servers that differ by less count as equal: latency errors are larger, and graphs are padded

// The ranges of concurrent requests in which a server without a draft is faster.
std::vector<LengthRange> plain_ranges(const BestLengths& best) {
  std::vector<LengthRange> ranges;
  for (int requests = 1; requests <= static_cast<int>(best.plain_gain.size()); ++requests) {
    if (best.plain_gain[static_cast<std::size_t>(requests) - 1] <= kAlike) continue;
    if (!ranges.empty() && ranges.back().to + 1 == requests)
      ranges.back().to = requests;
    else
      ranges.push_back({requests, requests, 0});
  }
  return ranges;
}

}  // namespace

bool baseline_is_faster(const BestLengths& best, double requests) {
  if (best.plain_gain.empty()) return false;
  const auto at = static_cast<std::size_t>(std::clamp(requests, 1.0, static_cast<double>(best.plain_gain.size())));
  return best.plain_gain[at - 1] > kAlike;
}

bool baseline_is_faster(const BestLengths& best) {
  return !best.plain_gain.empty() &&
         std::all_of(best.plain_gain.begin(), best.plain_gain.end(), [](double gain) { return gain > kAlike; });
}

std::string plain_text(const BestLengths& best) {
  const std::vector<LengthRange> ranges = plain_ranges(best);
  if (ranges.empty()) return "";
  if (baseline_is_faster(best)) return "a server without a draft is faster at every concurrency: do not speculate";
  std::string text;
  for (const LengthRange& range : ranges) {
    const std::string separator = text.empty() ? "" : ", ";
    if (range.to == static_cast<int>(best.plain_gain.size()))
      text += fmt::format("{}from {} concurrent requests on", separator, range.from);
    else if (range.from == range.to)
      text += fmt::format("{}with {} concurrent requests", separator, range.from);
    else
      text += fmt::format("{}with {} to {} concurrent requests", separator, range.from, range.to);
  }
  return text + " a server without a draft is faster: do not speculate if your load stays there";
}

BestLengths best_lengths(const ServeExperiment& experiment, const serve::Acceptance& acceptance, double cached,
                         std::uint32_t most, int longest, plan::Rise rise) {
  const serve::HostTime host = experiment.scheduler()->host_time();
  // Even a step in a range of length 0 updates the draft's cache, since steps of other ranges need it.
  const serve::StepLatency latency(*experiment.cost, experiment.speculation->method, host, longest > 0);
  const serve::StepLatency plain_latency(*experiment.cost, serve::DraftMethod::ngram, host);
  const auto lengths = static_cast<std::size_t>(longest) + 1;
  // [requests - 1][length]: share of the best length's tokens per second that is lost.
  std::vector<std::vector<double>> lost(most, std::vector<double>(lengths));
  // [requests - 1]: tokens per second of a server without a draft, relative to the best length's
  std::vector<double> plain(most);
  for (std::uint32_t requests = 1; requests <= most; ++requests) {
    std::vector<double>& own = lost[requests - 1];
    double best = 0.0;
    for (std::size_t length = 0; length < lengths; ++length) {
      const auto drafted = static_cast<int>(length);
      if (!acceptance.offers(drafted)) continue;
      const double emitted = acceptance.tokens_per_round(drafted);
      const serve::BatchState batch{requests, 0, requests * cached};
      own[length] = emitted / step_seconds(latency, acceptance, batch, requests * (cached + emitted), drafted);
      best = std::max(best, own[length]);
    }
    plain[requests - 1] =
        1.0 / step_seconds(plain_latency, acceptance, {requests, 0, requests * cached}, requests * (cached + 1.0), 0) / best;
    for (double& rate : own) rate = 1.0 - rate / best;  // 1 if the length is not offered
  }
  BestLengths best;
  const std::vector<int> chosen = plan::choose_lengths(lost, rise);
  for (std::size_t step = 0; step < most; ++step) {
    const double loss = lost[step][static_cast<std::size_t>(chosen[step])];
    best.worst_loss = std::max(best.worst_loss, loss);
    best.plain_gain.push_back(plain[step] / (1.0 - loss) - 1.0);
  }
  best.ranges = plan::ranges_of(chosen);
  return best;
}

}  // namespace specsim::load
