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
constexpr std::string_view kModelLabel = "model_name=\"";

}  // namespace

bool LogReader::read_counter(std::string_view line) {
  for (const auto& [prefix, kind] : {std::pair{kVllmMetrics, Kind::vllm_counters}, {kTrtllmMetrics, Kind::trtllm_counters}}) {
    if (line.find(prefix) == std::string_view::npos) continue;
    const auto read = metric_line(line, prefix);
    if (!read) return false;
    // Servers of several models may be scraped into one file: each is told for itself.
    std::string model;
    if (const auto text = behind(read->labels, kModelLabel))
      model = std::string(kModelLabel) + std::string(text->substr(0, text->find('"') + 1));
    ReportedAcceptance& lines = counter_lines_[{kind, model}];
    lines.kind = kind;
    seen(lines);
    grown(read->metric + read->labels, read->value, lines);
    return true;
  }
  return false;
}

// What the metric's counters grew by, of all labels that hold `model` and `label` ("": all).
double LogReader::total(const std::string& metric, const std::string& model, const std::string& label) const {
  double sum = 0.0;
  for (auto one = totals_.lower_bound(metric); one != totals_.end() && one->first.starts_with(metric); ++one) {
    const std::string_view labels = std::string_view(one->first).substr(metric.size());
    if (!labels.empty() && labels.front() != '{') continue;  // the line of a metric with a longer name
    const auto held = [&](const std::string& part) { return part.empty() || labels.find(part) != std::string_view::npos; };
    if (held(model) && held(label)) sum += one->second.grown;
  }
  return sum;
}

void LogReader::finish_counters() {
  for (const Kind kind : {Kind::vllm_counters, Kind::trtllm_counters}) {
    std::vector<std::pair<std::string, ReportedAcceptance>> models;
    for (const auto& [place, lines] : counter_lines_)
      if (place.first == kind) models.emplace_back(place.second, lines);
    for (auto& [model, lines] : models) {
      if (models.size() > 1) lines.name = model.empty() ? "without a model_name" : model;
      if (kind == Kind::trtllm_counters)
        finish_trtllm_counters(std::move(lines), model);
      else if (total(fmt::format("{}num_drafts", kVllmMetrics), model) > 0.0)
        finish_vllm_counters(std::move(lines), model);
      else
        finish_vllm_v0_counters(std::move(lines), model);
    }
  }
}

void LogReader::finish_vllm_counters(ReportedAcceptance all, const std::string& model) {
  const std::string prefix(kVllmMetrics);
  const double rounds = total(prefix + "num_drafts", model);
  all.rounds = rounds;
  all.drafted = total(prefix + "num_draft_tokens", model);
  all.accepted = total(prefix + "num_accepted_tokens", model);
  std::size_t positions = 0;
  for (const auto& [name, one] : totals_) {
    if (!name.starts_with(prefix + "num_accepted_tokens_per_pos{") || name.find(model) == std::string::npos) continue;
    const auto position = number_behind(name, "position=\"");
    if (position && *position < static_cast<double>(kMostPositions))
      positions = std::max(positions, static_cast<std::size_t>(*position) + 1);
  }
  for (std::size_t i = 0; i < positions; ++i)
    all.accepted_at.push_back(total(prefix + "num_accepted_tokens_per_pos", model, fmt::format("position=\"{}\"", i)));
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

void LogReader::finish_vllm_v0_counters(ReportedAcceptance all, const std::string& model) {
  const std::string prefix(kVllmMetrics);
  all.kind = Kind::vllm_v0_counters;
  all.drafted = total(prefix + "num_draft_tokens", model);
  all.alone_accepted = total(prefix + "num_accepted_tokens", model);
  all.rounds_counted = false;  // the draft length is not among the counters
  contents_.found.push_back(std::move(all));
}

void LogReader::finish_trtllm_counters(ReportedAcceptance all, const std::string& model) {
  const std::string prefix(kTrtllmMetrics);
  all.drafted = total(prefix + "num_draft_tokens", model);
  all.accepted = total(prefix + "num_accepted_tokens", model);
  all.rounds_counted = false;  // rounds are not among the counters
  contents_.found.push_back(std::move(all));
}

}  // namespace specsim::logs
