// Prometheus text: vLLM's /metrics and TensorRT-LLM's, scraped once or many times into one file.
//
//   vllm:spec_decode_num_drafts_total{engine="0",model_name="..."} 1234.0                    (V1: vllm/v1/spec_decode/metrics.py,
//   vllm:spec_decode_num_draft_tokens_total{...} 3702.0                                      SpecDecodingProm; without
//   vllm:spec_decode_num_accepted_tokens_total{...} 2100.0                                   _total where vLLM's own reader
//   prints) vllm:spec_decode_num_accepted_tokens_per_pos_total{...,position="0"} 990.0
//   vllm:spec_decode_num_emitted_tokens_total{...} 3300.0                                    (V0: vllm/engine/metrics.py)
//   trtllm_spec_decode_num_draft_tokens_total{...} 800.0                                     (tensorrt_llm/metrics/collector.py)
//   trtllm_spec_decode_num_accepted_tokens_total{...} 500.0
#include "sim/logs/line_scan.h"
#include "sim/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostPositions = 512;

constexpr std::string_view kVllmMetrics = "vllm:spec_decode_";
constexpr std::string_view kTrtllmMetrics = "trtllm_spec_decode_";

}  // namespace

Acceptance* LogReader::counters(Kind kind) {
  Acceptance& lines = counter_lines_[kind];
  lines.kind = kind;
  return &lines;
}

bool LogReader::read_counter(std::string_view line) {
  for (const auto& [prefix, kind] : {std::pair{kVllmMetrics, Kind::vllm_counters}, {kTrtllmMetrics, Kind::trtllm_counters}}) {
    if (line.find(prefix) == std::string_view::npos) continue;
    const auto read = metric_line(line, prefix);
    if (!read) return false;
    Acceptance* const lines = counters(kind);
    seen(*lines);
    grown(read->metric + read->labels, read->value, *lines);
    return true;
  }
  return false;
}

// What the metric's counters grew by, of all labels that hold `label` ("": all).
double LogReader::total(const std::string& metric, const std::string& label) const {
  double sum = 0.0;
  for (auto one = totals_.lower_bound(metric); one != totals_.end() && one->first.starts_with(metric); ++one) {
    const std::string_view labels = std::string_view(one->first).substr(metric.size());
    if (!labels.empty() && labels.front() != '{') continue;  // of a longer name
    if (label.empty() || labels.find(label) != std::string_view::npos) sum += one->second.grown;
  }
  return sum;
}

void LogReader::finish_vllm_counters() {
  const auto lines = counter_lines_.find(Kind::vllm_counters);
  if (lines == counter_lines_.end()) return;
  const std::string prefix(kVllmMetrics);
  const double rounds = total(prefix + "num_drafts");
  if (rounds <= 0.0) return;
  Acceptance all = lines->second;
  all.rounds = rounds;
  all.drafted = total(prefix + "num_draft_tokens");
  all.accepted = total(prefix + "num_accepted_tokens");
  std::size_t positions = 0;
  for (const auto& [name, one] : totals_) {
    const auto position =
        name.starts_with(prefix + "num_accepted_tokens_per_pos{") ? number_behind(name, "position=\"") : std::nullopt;
    if (position && *position < static_cast<double>(kMostPositions))
      positions = std::max(positions, static_cast<std::size_t>(*position) + 1);
  }
  for (std::size_t i = 0; i < positions; ++i)
    all.accepted_at.push_back(total(prefix + "num_accepted_tokens_per_pos", fmt::format("position=\"{}\"", i)));
  all.draft_length = static_cast<int>(positions);
  all.drafts_whole = positions > 0 && all.drafted == rounds * static_cast<double>(positions);
  if (positions > 0)
    all.samples.push_back({rounds, all.accepted, all.accepted + rounds - all.accepted_at.back()});
  else
    all.samples.push_back({rounds, all.accepted, 0.0});
  double sum = 0.0;
  for (const double count : all.accepted_at) sum += count;
  if (positions > 0 && std::abs(sum - all.accepted) > 1e-6 * std::max(sum, 1.0)) {
    all.contradictions = 1;
    all.first_contradiction =
        fmt::format("line {}: {} accepted tokens, but {} over the positions", all.last_line, all.accepted, sum);
  }
  contents_.found.push_back(std::move(all));
}

void LogReader::finish_vllm_v0_counters() {
  const auto lines = counter_lines_.find(Kind::vllm_counters);
  const std::string prefix(kVllmMetrics);
  if (lines == counter_lines_.end() || total(prefix + "num_drafts") > 0.0) return;
  const double drafted = total(prefix + "num_draft_tokens");
  if (drafted <= 0.0) return;
  Acceptance all = lines->second;
  all.kind = Kind::vllm_v0_counters;
  all.drafted = drafted;
  all.alone_accepted = total(prefix + "num_accepted_tokens");
  all.rounds_counted = false;  // the draft length is not among the counters
  contents_.found.push_back(std::move(all));
}

void LogReader::finish_trtllm_counters() {
  const auto lines = counter_lines_.find(Kind::trtllm_counters);
  if (lines == counter_lines_.end()) return;
  Acceptance all = lines->second;
  const std::string prefix(kTrtllmMetrics);
  all.drafted = total(prefix + "num_draft_tokens");
  all.accepted = total(prefix + "num_accepted_tokens");
  all.rounds_counted = false;  // rounds are not among the counters
  contents_.found.push_back(std::move(all));
}

}  // namespace specsim::logs
