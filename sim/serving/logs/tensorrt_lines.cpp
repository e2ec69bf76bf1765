// trtllm-bench (tensorrt_llm/bench/dataclasses/reporting.py), figures of its requests as MINIMUM, MAXIMUM, AVERAGE, P50, ...:
//   Number of requests:             80
//   [DT] AVERAGE: 1023.75     draft tokens: iterations of the request, its prompt's among them, times the draft length
//   [ADT] AVERAGE: 700.20     of them accepted
//   [DAR] AVERAGE: 0.68       accepted / drafted of a request
//   [AL] AVERAGE: 3.05        emitted tokens by iterations
// AL = 1 + draft length * DAR in every request, from which the draft length follows.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/server_log.h"

#include <cmath>
#include <utility>

namespace specsim::logs {

namespace {

constexpr int kLongestBenchDraft = 128;
constexpr std::size_t kMostStatistics = 64;  // trtllm-bench prints eight
constexpr double kTwoDecimals = 0.0051;      // largest rounding error of a figure with two decimals

}  // namespace

bool LogReader::read_trtllm_bench(std::string_view line) {
  if (const auto requests = count_after(line, "Number of requests:")) {
    end_trtllm_report();
    trtllm_report_.requests = *requests;
    return true;
  }
  for (auto& [key, figures] : {std::pair{"[DT] ", &trtllm_report_.drafted},
                               {"[ADT] ", &trtllm_report_.accepted},
                               {"[DAR] ", &trtllm_report_.rate},
                               {"[AL] ", &trtllm_report_.length}}) {
    const auto text = text_after(line, key);
    const auto value = text ? number_after(*text, ":") : std::nullopt;
    if (!value) continue;
    const std::string name(trimmed(text->substr(0, text->find(':'))));
    if (name.size() <= kLongestName && (figures->contains(name) || figures->size() < kMostStatistics)) (*figures)[name] = *value;
    trtllm_report_.line = line_;
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
  ReportedAcceptance& all = of(LogKind::trtllm_bench, fitting == 1 ? found : 0);
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
