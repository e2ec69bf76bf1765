// vLLM's log lines.
//
// V1 (vllm/v1/spec_decode/metrics.py, SpecDecodingLogging.log, commit 016a8587 and later), every figure of the time since the
// line before:
//   SpecDecoding metrics: Mean acceptance length: 2.71, Accepted throughput: 0.68 tokens/s, Drafted throughput: 0.80 tokens/s,
//   Accepted: 169 tokens, Drafted: 198 tokens, Per-position acceptance rate: 0.919, 0.788, Avg Draft acceptance rate: 85.4%
// Earlier versions begin with "Draft acceptance rate: 85.4%" and have no throughputs, the first neither length nor positions; the
// very first (before vllm-project/vllm#15902) are "Speculative metrics: Draft acceptance rate: 1.000, Number of accepted tokens:
// 66, Number of draft tokens: 66, ". The length is 1 + accepted / drafts, the rates are of all drafts; the number of drafts
// itself is not printed.
//
// V0 (vllm/spec_decode/metrics.py, of v0.6.3), totals since the engine started:
//   Speculative metrics: Draft acceptance rate: 0.642, System efficiency: 0.598, Number of speculative tokens: 3, Number of
//   accepted tokens: 8547, Number of draft tokens: 13311, Number of emitted tokens: 10616.
// Accepted tokens are counted there whatever became of those before them (spec_decode_base_sampler.py: num_accepted_tokens +=
// accepted.sum()), so that accepted / drafted is an estimate of alpha, and emitted / rounds the acceptance length.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::logs {

namespace {

// The rounds that a line of V1 stands for: a whole number that all its figures are consistent with, to their rounding. No more
// than drafted tokens, since each round has one.
double rounds_of(double length, double accepted, double drafted, const std::vector<double>& rates) {
  const auto positions = static_cast<double>(rates.size());
  const double fewest = positions > 0.0 ? std::ceil(drafted / positions - 1e-9) : 1.0;
  if (accepted <= 0.0) return fewest;
  const double by_length = accepted / std::max(length - 1.0, 1e-9);
  // The length has two decimals; where every round drafted all positions, their number is exact.
  const double low = std::max(fewest, accepted / (length - 1.0 + 0.0051));
  const double high = length > 1.0051 ? std::min(drafted, accepted / (length - 1.0 - 0.0051)) : drafted;
  if (positions > 0.0 && fewest * positions == drafted && low <= fewest + 1e-9 && fewest <= high + 1e-9) return fewest;
  double best = std::clamp(std::round(by_length), fewest, std::max(fewest, drafted));
  double least = std::numeric_limits<double>::infinity();
  constexpr int kMostTried = 4096;  // beyond, one more or less is nothing
  for (int tried = 0; tried <= kMostTried; ++tried) {
    const double n = std::ceil(low - 1e-9) + tried;
    if (n > high) break;
    double off = 0.0;  // rates are whole numbers of rounds
    for (std::size_t i = 0; i < rates.size() && off < least; ++i)
      off = std::max(off, std::abs(rates[i] - std::round(rates[i] * n) / n));
    if (off < least - 1e-12) {
      least = off;
      best = n;
    }
  }
  return best;
}

}  // namespace

bool LogReader::read_vllm(std::string_view line) {
  const auto text = behind(line, "SpecDecoding metrics:");
  if (!text) return false;
  const auto accepted = count_behind(*text, "Accepted:");
  const auto drafted = count_behind(*text, "Drafted:");
  if (!accepted || !drafted) {
    cannot_read(fmt::format("no number behind \"{}\"", accepted ? "Drafted:" : "Accepted:"));
    return true;
  }
  if (*accepted > *drafted) {
    cannot_read(fmt::format("{} accepted of {} drafted tokens", *accepted, *drafted));
    return true;
  }
  if (*drafted <= 0.0) {  // no draft in this interval
    ++contents_.idle;
    return true;
  }
  const auto told_rates = rates_behind(*text, "Per-position acceptance rate:");
  if (!told_rates) {
    cannot_read("no rates in [0, 1] behind \"Per-position acceptance rate:\"");
    return true;
  }
  const std::vector<double>& rates = *told_rates;
  if (bad_number_behind(*text, "Mean acceptance length:")) {
    cannot_read("no number behind \"Mean acceptance length:\"");
    return true;
  }
  const auto length = number_behind(*text, "Mean acceptance length:");
  ReportedAcceptance& all = of(Kind::vllm_log, static_cast<int>(rates.size()));
  if (all.lines == 0) all.drafts_whole = !rates.empty();
  seen(all);
  all.drafted += *drafted;
  all.accepted += *accepted;
  if (!length || rates.empty()) {
    all.rounds_counted = false;
    return true;
  }
  const double rounds = rounds_of(*length, *accepted, *drafted, rates);
  if (std::abs(1.0 + *accepted / rounds - *length) > 0.0051)
    contradict(all,
               fmt::format("mean acceptance length {:.2f} beside {} accepted tokens of {} rounds", *length, *accepted, rounds));
  double sum = 0.0;
  for (const double rate : rates) sum += rate;
  if (std::abs(1.0 + sum - *length) > 0.0051 + 0.00051 * static_cast<double>(rates.size()))
    contradict(all, fmt::format("mean acceptance length {:.2f} beside rates that add up to {:.3f}", *length, 1.0 + sum));
  if (all.accepted_at.empty()) all.accepted_at.resize(rates.size(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) all.accepted_at[i] += std::round(rates[i] * rounds);
  all.rounds += rounds;
  if (std::abs(rounds * static_cast<double>(rates.size()) - *drafted) > 0.5) all.drafts_whole = false;
  add_sample(all, {rounds, *accepted, *accepted + rounds - std::round(rates.back() * rounds)});
  return true;
}

bool LogReader::read_vllm_v0(std::string_view line) {
  const auto text = behind(line, "Speculative metrics:");
  if (!text) return false;
  const auto length = count_behind(*text, "Number of speculative tokens:");
  const auto accepted = count_behind(*text, "Number of accepted tokens:");
  const auto drafted = count_behind(*text, "Number of draft tokens:");
  const auto emitted = count_behind(*text, "Number of emitted tokens:");
  if (accepted && drafted && *accepted > *drafted) {
    cannot_read(fmt::format("{} accepted of {} drafted tokens", *accepted, *drafted));
    return true;
  }
  if (accepted && drafted && text->find("Number of speculative tokens:") == std::string_view::npos &&
      text->find("Number of emitted tokens:") == std::string_view::npos) {  // V1's, of an interval
    if (*drafted <= 0.0) {
      ++contents_.idle;
      return true;
    }
    ReportedAcceptance& all = of(Kind::vllm_log, 0);
    seen(all);
    all.drafted += *drafted;
    all.accepted += *accepted;
    all.rounds_counted = false;
    return true;
  }
  if (!length || !accepted || !drafted || !emitted || *length < 1.0 || *length > static_cast<double>(kMostPositions)) {
    cannot_read("not all of speculative, accepted, draft and emitted tokens are numbers");
    return true;
  }
  if (*emitted > *drafted / *length * (1.0 + *length) + 0.5) {
    cannot_read(fmt::format("{} emitted tokens beside {} drafted ones at draft length {}", *emitted, *drafted, *length));
    return true;
  }
  ReportedAcceptance& all = of(Kind::vllm_v0_log, static_cast<int>(*length));
  all.drafts_whole = true;
  seen(all);
  RisingCounts& server = servers_[fmt::format("v0 log {}", *length)];
  double new_drafted = 0.0;
  double new_emitted = 0.0;
  server.see("drafted", *drafted, new_drafted);
  server.see("emitted", *emitted, new_emitted);
  server.see("accepted", *accepted, all.alone_accepted);
  server.settle(options_.growth_alone);
  all.restarts = server.restarts();
  const double rounds = new_drafted / *length;
  all.drafted += new_drafted;
  all.rounds += rounds;
  all.accepted += std::max(new_emitted - rounds, 0.0);
  if (rounds > 0.0) add_sample(all, {rounds, std::max(new_emitted - rounds, 0.0), 0.0});
  const auto rate = number_behind(*text, "Draft acceptance rate:");
  if (rate && *drafted > 0.0 && std::abs(*rate - *accepted / *drafted) > 0.00051)
    contradict(all, fmt::format("acceptance rate {:.3f} beside {} accepted of {} draft tokens", *rate, *accepted, *drafted));
  return true;
}

}  // namespace specsim::logs
