// What benchmark clients print at the end of a run.
//
// vllm bench serve (vllm/benchmarks/serve.py), counters of the server before and behind the run:
//   ---------------Speculative Decoding---------------
//   Acceptance rate (%):                     73.47
//   Acceptance length:                       3.20
//   Drafts:                                  6393
//   Draft tokens:                            19179
//   Accepted tokens:                         14090
//   Per-position acceptance (%):
//     Position 0:                            83.42
// and in the JSON that it saves (--save-result): "spec_decode_num_drafts", "spec_decode_draft_tokens",
// "spec_decode_accepted_tokens", "spec_decode_per_position_acceptance_rates": [0.8342, ...].
//
// sglang.bench_serving (python/sglang/bench_serving.py) prints "Accept length: 2.93", the server's mean, below "Total generated
// tokens: 19000"; TensorRT-LLM's benchmark_serving (tensorrt_llm/serve/scripts/benchmark_serving.py) below the same line "Mean
// Avg Decoded Tokens per Iter: 2.71", a mean over requests. Rounds are taken as the generated tokens by that length.
//
// trtllm-bench (tensorrt_llm/bench/dataclasses/reporting.py), figures of its requests as MINIMUM, MAXIMUM, AVERAGE, P50, ...:
//   Number of requests:             80
//   [DT] AVERAGE: 1023.75     draft tokens: iterations of the request, its prompt's among them, times the draft length
//   [ADT] AVERAGE: 700.20     of them accepted
//   [DAR] AVERAGE: 0.68       accepted / drafted of a request
//   [AL] AVERAGE: 3.05        emitted tokens by iterations
// AL = 1 + draft length * DAR in every request, from which the draft length follows.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::logs {

namespace {

constexpr int kLongestBenchDraft = 128;
constexpr std::size_t kMostStatistics = 64;  // trtllm-bench prints eight
constexpr double kTwoDecimals = 0.0051;      // how far a figure with two decimals may be from what it stands for

}  // namespace

bool LogReader::read_benchmark(std::string_view line) {
  if (read_benchmark_json(line)) return true;
  if (line.find(':') == std::string_view::npos) {
    // A line of nothing but '=' ends the report.
    const std::string_view text = trimmed(line);
    if (text.size() >= 20 && text.find_first_not_of('=') == std::string_view::npos) end_report();
    if (text.find("Serving Benchmark Result") != std::string_view::npos) end_report();
    return false;
  }
  const auto take = [&](std::string_view key, double& into) {
    const auto value = &into == &report_.length ? number_behind(line, key) : count_behind(line, key);
    if (value) into = *value;
    return value.has_value();
  };
  if (line.find("tokens:") != std::string_view::npos)
    return take("Total generated tokens:", report_.emitted) || take("Draft tokens:", report_.drafted) ||
           take("Accepted tokens:", report_.accepted);
  if (line.find("Acceptance rate (%):") != std::string_view::npos && !std::isnan(report_.drafts)) end_report();
  if (take("Drafts:", report_.drafts) || take("Acceptance length:", report_.length)) return true;
  if (line.find("Per-position acceptance (%):") != std::string_view::npos) {
    report_.positions = true;
    return true;
  }
  if (report_.positions)
    if (const auto rate = behind(line, fmt::format("Position {}:", report_.rates.size()))) {
      const auto value = number_behind(*rate, "");
      if (!value && !bad_number_behind(*rate, "")) return false;
      report_.rates_bad |= !value || *value > 100.0 || report_.rates.size() == kMostPositions;
      if (report_.rates.size() < kMostPositions) report_.rates.push_back(value.value_or(0.0) / 100.0);
      return true;
    }
  const auto length = [&](Kind kind, std::string_view key) {
    const auto value = number_behind(line, key);
    if (!value || *value < 1.0) return value.has_value();
    if (std::isnan(report_.emitted)) {
      cannot_read(fmt::format("\"{}\" without \"Total generated tokens:\" before it", key));
      return true;
    }
    const double emitted = std::exchange(report_.emitted, kNotSaid);
    if (*value > std::max(emitted, 1.0)) {
      cannot_read(fmt::format("\"{}\" {} of {} generated tokens", key, *value, emitted));
      return true;
    }
    ReportedAcceptance& all = of(kind, 0);
    seen(all);
    all.rounds_counted = false;
    const double rounds = emitted / *value;
    all.rounds += rounds;
    all.accepted += rounds * (*value - 1.0);
    add_sample(all, {rounds, rounds * (*value - 1.0), 0.0});
    return true;
  };
  return length(Kind::sglang_bench, "Accept length:") || length(Kind::trtllm_bench_serving, "Mean Avg Decoded Tokens per Iter:");
}

bool LogReader::read_benchmark_json(std::string_view line) {
  if (line.find("\"spec_decode_") == std::string_view::npos) return false;
  const auto field = [&](std::string_view key, double& into) {
    const auto rest = behind(line, key);
    if (!rest) return;
    const auto value = &into == &report_.length ? number_behind(*rest, ":") : count_behind(*rest, ":");
    if (value) into = *value;
  };
  // A run a line; saved with indents, a field a line.
  field("\"spec_decode_num_drafts\"", report_.drafts);
  field("\"spec_decode_draft_tokens\"", report_.drafted);
  field("\"spec_decode_accepted_tokens\"", report_.accepted);
  field("\"spec_decode_acceptance_length\"", report_.length);
  if (const auto rest = behind(line, "\"spec_decode_per_position_acceptance_rates\"")) {
    auto rates = rates_behind(*rest, "[");
    report_.rates_bad = !rates;
    if (rates) report_.rates = std::move(*rates);
    end_report();
  }
  return true;
}

void LogReader::end_report() {
  const Report report = std::exchange(report_, {});
  if (std::isnan(report.drafts) && std::isnan(report.drafted)) return;
  if (!(report.drafts > 0.0) || !(report.drafted > 0.0) || !(report.accepted <= report.drafted)) {
    if (report.drafts == 0.0)
      ++contents_.idle;
    else
      cannot_read("a benchmark's report without numbers of drafts, draft tokens and accepted tokens");
    return;
  }
  if (report.rates_bad) {
    cannot_read("a benchmark's report with acceptance by position that is no share of its drafts");
    return;
  }
  add_report(report);
}

void LogReader::add_report(const Report& report) {
  ReportedAcceptance& all = of(Kind::vllm_bench, static_cast<int>(report.rates.size()));
  if (all.lines == 0) all.drafts_whole = !report.rates.empty();
  seen(all);
  all.rounds += report.drafts;
  all.drafted += report.drafted;
  all.accepted += report.accepted;
  if (!(std::abs(1.0 + report.accepted / report.drafts - report.length) <= kTwoDecimals) && !std::isnan(report.length))
    contradict(all, fmt::format("acceptance length {:.2f} beside {} accepted tokens of {} drafts", report.length, report.accepted,
                                report.drafts));
  const auto positions = static_cast<double>(report.rates.size());
  if (std::abs(report.drafts * positions - report.drafted) > 0.5) all.drafts_whole = false;
  all.accepted_at.resize(std::max(all.accepted_at.size(), report.rates.size()), 0.0);
  double sum = 0.0;
  for (std::size_t i = 0; i < report.rates.size(); ++i) {
    sum += report.rates[i];
    all.accepted_at[i] += std::round(report.rates[i] * report.drafts);
  }
  if (!report.rates.empty() && std::abs(1.0 + sum - report.length) > kTwoDecimals * (1.0 + 0.01 * positions))
    contradict(all, fmt::format("acceptance length {:.2f} beside rates that add up to {:.3f}", report.length, 1.0 + sum));
  const double rejected = report.rates.empty() ? 0.0 : report.drafts - std::round(report.rates.back() * report.drafts);
  add_sample(all, {report.drafts, report.accepted, report.rates.empty() ? 0.0 : report.accepted + rejected});
}

bool LogReader::read_trtllm_bench(std::string_view line) {
  if (const auto requests = count_behind(line, "Number of requests:")) {
    end_trtllm_report();
    trtllm_report_.requests = *requests;
    return true;
  }
  for (auto& [key, figures] : {std::pair{"[DT] ", &trtllm_report_.drafted},
                               {"[ADT] ", &trtllm_report_.accepted},
                               {"[DAR] ", &trtllm_report_.rate},
                               {"[AL] ", &trtllm_report_.length}}) {
    const auto text = behind(line, key);
    const auto value = text ? number_behind(*text, ":") : std::nullopt;
    if (!value) continue;
    const std::string name(trimmed(text->substr(0, text->find(':'))));
    if (name.size() <= kLongestName && (figures->contains(name) || figures->size() < kMostStatistics)) (*figures)[name] = *value;
    trtllm_report_.line = contents_.lines;
    return true;
  }
  return false;
}

void LogReader::end_trtllm_report() {
  const TrtllmReport report = std::exchange(trtllm_report_, {});
  const auto drafted = report.drafted.find("AVERAGE");
  const auto accepted = report.accepted.find("AVERAGE");
  if (drafted == report.drafted.end() || accepted == report.accepted.end()) return;
  if (accepted->second > drafted->second) {
    cannot_read("more draft tokens accepted than drafted in trtllm-bench's report");
    return;
  }
  // The draft length with which every AL follows from its DAR, and which divides the draft tokens of each request.
  const auto fits = [&](int length) {
    for (const auto& [name, rate] : report.rate)
      if (const auto al = report.length.find(name);
          al != report.length.end() && std::abs(al->second - 1.0 - length * rate) > kTwoDecimals * (1.0 + length))
        return false;
    for (const auto& [name, tokens] : report.drafted)
      if (name != "AVERAGE" && std::abs(std::remainder(tokens, length)) > 0.01) return false;
    return true;
  };
  int found = 0;
  int fitting = 0;
  for (int length = 1; length <= kLongestBenchDraft && !report.rate.empty() && !report.length.empty(); ++length)
    if (fits(length) && fitting++ == 0) found = length;
  ReportedAcceptance& all = of(Kind::trtllm_bench, fitting == 1 ? found : 0);
  if (all.lines++ == 0) all.first_line = report.line;
  all.last_line = report.line;
  const double requests = report.requests > 0.0 ? report.requests : 1.0;
  all.drafted += requests * drafted->second;
  all.accepted += requests * accepted->second;
  if (fitting != 1) {
    all.rounds_counted = false;
    if (fitting == 0 && !report.rate.empty())
      contradict(all, "no draft length makes both the acceptance rates [DAR] and the acceptance lengths [AL]");
    return;
  }
  all.drafts_whole = true;
  const double rounds = requests * drafted->second / found;
  all.rounds += rounds;
  add_sample(all, {rounds, requests * accepted->second, 0.0});
}

}  // namespace specsim::logs
