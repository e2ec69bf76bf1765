// Prometheus text: vLLM's /metrics and TensorRT-LLM's, scraped once or many times into one file.
//
//   vllm:spec_decode_num_drafts_total{engine="0",model_name="..."} 1234.0                    (V1: vllm/v1/spec_decode/metrics.py,
//   vllm:spec_decode_num_draft_tokens_total{...} 3702.0                                      SpecDecodingProm; without
//   vllm:spec_decode_num_accepted_tokens_total{...} 2100.0                                   _total where vLLM's own reader
//   prints) vllm:spec_decode_num_accepted_tokens_per_pos_total{...,position="0"} 990.0
//   vllm:spec_decode_num_emitted_tokens_total{...} 3300.0                                    (V0: vllm/engine/metrics.py)
//   trtllm_spec_decode_num_draft_tokens_total{...} 800.0                                     (tensorrt_llm/metrics/collector.py)
//   trtllm_spec_decode_num_accepted_tokens_total{...} 500.0
//   lmdeploy:spec_decode_* as vLLM's of V1                                                   (lmdeploy/metrics/loggers.py)
// The same as Prometheus answers queries: JSON, "NAME{...} => 22 @[time]" of promtool, "NAME{...} | 22" of its page.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/readers.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostModels = 256;
constexpr std::size_t kMostCounters = std::size_t{1} << 16U;
constexpr std::size_t kMostTimedValues = std::size_t{1}
                                         << 23U;  // of all counters: a month of eleven counters every 15 s takes 2 million

constexpr std::string_view kVllmMetrics = "vllm:spec_decode_";
constexpr std::string_view kTrtllmMetrics = "trtllm_spec_decode_";
constexpr std::string_view kLmdeployMetrics = "lmdeploy:spec_decode_";
constexpr std::string_view kModelLabel = "model_name";
constexpr std::string_view kPositionLabel = "position";
constexpr std::string_view kEngineLabel = "engine";  // of one server's processes

constexpr std::string_view kDrafts = "num_drafts";
constexpr std::string_view kDrafted = "num_draft_tokens";
constexpr std::string_view kAccepted = "num_accepted_tokens";
constexpr std::string_view kAcceptedAt = "num_accepted_tokens_per_pos";

double grown_of(const std::map<std::string, double, std::less<>>& grown, std::string_view metric) {
  const auto found = grown.find(metric);
  return found == grown.end() ? 0.0 : found->second;
}

}  // namespace

LogReader::FoundCounter LogReader::find_counter(std::string_view line, std::optional<MetricLine>& read) {
  for (const auto& [prefix, kind] : {std::pair{kVllmMetrics, LogKind::vllm_counters},
                                     {kTrtllmMetrics, LogKind::trtllm_counters},
                                     {kLmdeployMetrics, LogKind::lmdeploy_counters}}) {
    if (line.find(prefix) == std::string_view::npos) continue;
    read = metric_line(line, prefix);
    if (!read || read->metric.size() < prefix.size()) return {};  // "vllm:spec_decode_total" is not a count
    const auto beyond = [&](const std::string& what) {
      cannot_read(what);
      return FoundCounter{true, nullptr, nullptr};
    };
    const std::string name = (read->beginning ? "created " : "") + read->metric + read->labels;
    if (name.size() > kLongestName)
      return beyond(fmt::format("a counter whose name and labels are longer than {} bytes", kLongestName));
    if (const auto known = known_counters_.find(name); known != known_counters_.end())
      return {true, &known->first, &known->second};
    // Several models may be scraped into one file: each is reported separately.
    std::string model;
    if (const auto value = read->label(kModelLabel)) model = fmt::format("{}={}", kModelLabel, *value);
    const std::pair place{kind, std::move(model)};
    if (!counters_.contains(place) && counters_.size() == kMostModels)
      return beyond(fmt::format("counters of more than {} models", kMostModels));
    // A server has one model, and may have several engines.
    const std::string server = std::string(prefix) + read->labels_without({kEngineLabel, kPositionLabel});
    if (!scraped_.contains(server) && scraped_.size() == kMostLabelSets)
      return beyond(fmt::format("counters of more than {} servers", kMostLabelSets));
    if (known_counters_.size() == kMostCounters) return beyond(fmt::format("more than {} counters", kMostCounters));
    const auto made = known_counters_.try_emplace(name).first;
    Counter& counter = made->second;
    counter.index = static_cast<std::uint32_t>(counter_list_.size());
    counter_list_.push_back(&*made);
    counter.server = &scraped_[server];
    counter.engine = &counter.server->counts.engine(read->label(kEngineLabel).value_or(""));
    counter.beginning = read->beginning;
    counter.sums = counter.server->sums = &counters_[place];
    counter.sums->lines.kind = kind;
    const std::string_view metric = std::string_view(read->metric).substr(prefix.size());
    counter.whole = metric.starts_with("num_");  // V0 has rates too, as gauges
    std::optional<double> position;
    if (metric == kAcceptedAt)
      position = count_after(read->label(kPositionLabel).value_or(""), "\"").value_or(double{kMostPositions});
    if (!position)
      counter.total = &counter.sums->grown[std::string(metric)];
    else if (*position < double{kMostPositions})
      counter.total = &counter.sums->accepted_at[static_cast<std::size_t>(*position)];
    return {true, &made->first, &counter};
  }
  return {};
}

bool LogReader::read_counter(std::string_view line) {
  std::optional<MetricLine> read;
  const FoundCounter found = find_counter(line, read);
  if (found.counter != nullptr) take_count(found, read->value, read->time);
  return found.is_counter;
}

void LogReader::on_metric(double time, const std::string& series, std::string_view value) {
  if (series != series_) {  // an answer lists the values of one counter after the other
    series_ = series;
    std::optional<MetricLine> read;
    series_counter_ = {};
    if (series.size() <= kLongestName)
      series_counter_ = find_counter(series + " 0", read);
    else if (series.find("spec_decode_") != std::string::npos)
      cannot_read(fmt::format("a counter whose name and labels are longer than {} bytes", kLongestName));
  }
  if (series_counter_.counter != nullptr)
    take_count(series_counter_, number_after(value, "").value_or(std::numeric_limits<double>::quiet_NaN()), time);
}

void LogReader::take_count(const FoundCounter& found, double value, double time) {
  Counter& counter = *found.counter;
  if (counter.beginning) {
    if (std::isnan(value)) return;
  } else {
    if (!counter.whole && std::isnan(value)) return;
    if ((counter.whole && value != std::floor(value)) || counter.total == nullptr) {
      cannot_read(fmt::format("no count of tokens or drafts after \"{}\"", found.name->substr(0, found.name->find('{'))));
      counter.sums->broken = true;
      return;
    }
    seen(counter.sums->lines);
  }
  if (std::isnan(time)) {
    see_count(*found.name, counter, value);
  } else if (timed_.size() < kMostTimedValues) {
    timed_.push_back({time, value, counter.index, static_cast<std::uint32_t>(std::min<std::size_t>(line_, UINT32_MAX))});
  } else {
    cannot_read(fmt::format("more than {} values of counters with their times", kMostTimedValues));
    counter.sums->broken = true;
  }
}

void LogReader::see_count(const std::string& name, Counter& counter, double value) {
  RisingCounts::Engine& engine = *counter.engine;
  if (counter.beginning ? engine.has_beginning(name) : engine.has(name)) settle_scrape(*counter.server);
  counter.server->line = line_;
  if (counter.beginning) {
    engine.began(name, value);
  } else {
    engine.see(name, value, *counter.total);
    counter.server->counts.note(engine);
  }
}

void LogReader::settle_scrape(Scraped& server) {
  server.counts.settle(options_.growth_alone);
  report_left_out(server);
}

void LogReader::report_left_out(Scraped& server) {
  const std::size_t now = std::exchange(line_, server.line);
  for (std::size_t left = server.counts.take_left_out(); left > 0; --left)
    cannot_read("a scrape without counters that others have, left out");
  line_ = now;
}

// Counters may come one after the other, each with all its values: their times give the scrapes.
void LogReader::read_timed_values() {
  std::sort(timed_.begin(), timed_.end(), [](const TimedValue& a, const TimedValue& b) {
    return std::tie(a.time, a.counter, a.value) < std::tie(b.time, b.counter, b.value);
  });
  for (const TimedValue& one : timed_) {
    Counter& counter = counter_list_[one.counter]->second;
    if (one.time > counter.time) counter.server->spacing = std::min(counter.server->spacing, one.time - counter.time);
    counter.time = one.time;
  }
  for (auto* const counter : counter_list_) counter->second.time = kNotSaid;
  for (const TimedValue& one : timed_) {
    auto& [name, counter] = *counter_list_[one.counter];
    line_ = one.line;
    if (one.time == counter.time) continue;  // the same value in two answers
    counter.time = one.time;
    // Answers to queries that were sent one after the other have slightly different times.
    Scraped& server = *counter.server;
    if (one.time - server.moment > 0.5 * server.spacing || std::isinf(server.moment)) {
      settle_scrape(server);
      server.moment = one.time;
    }
    see_count(name, counter, one.value);
  }
  timed_.clear();
}

void LogReader::finish_counters() {
  for (auto& [key, server] : scraped_) settle_scrape(server);
  read_timed_values();
  for (auto& [key, server] : scraped_) {
    settle_scrape(server);
    server.counts.finish();
    report_left_out(server);
    if (server.sums == nullptr) continue;
    server.sums->lines.restarts += server.counts.restarts();
    if (!server.counts.apart() || std::exchange(server.sums->broken, true)) continue;
    ++contents_.unread;  // explains the scrapes that were left out, so it comes first
    contents_.first_unread = fmt::format(
        "line {}: counters that do not come scrape by scrape, allowed: whole scrapes, or values with their times", server.line);
  }
  for (const LogKind kind : {LogKind::vllm_counters, LogKind::trtllm_counters, LogKind::lmdeploy_counters}) {
    const auto several =
        std::count_if(counters_.begin(), counters_.end(), [&](const auto& one) { return one.first.first == kind; }) > 1;
    for (auto& [place, counters] : counters_) {
      if (place.first != kind || counters.broken) continue;
      if (grown_of(counters.grown, kDrafted) == 0.0) contents_.idle += counters.lines.lines;
      if (several) counters.lines.name = place.second.empty() ? "without a model_name" : place.second;
      if (kind == LogKind::trtllm_counters)
        finish_trtllm_counters(counters);
      else if (grown_of(counters.grown, kDrafts) > 0.0)
        finish_vllm_counters(counters);
      else
        finish_vllm_v0_counters(counters);
    }
  }
}

// Impossible counts, and drafts without a counter of accepted tokens, are reported at their last line, like a line that cannot be
// read.
bool LogReader::refuse_counters(const Counters& counters, const ReportedAcceptance& all, double accepted) {
  std::string why;
  if (std::max(all.rounds, all.drafted) > 0.0 && !counters.grown.contains(kAccepted) && counters.accepted_at.empty())
    why = fmt::format("drafts without a counter of accepted tokens, allowed: {} next to it", kAccepted);
  if (all.drafted > 0.0 && accepted > all.drafted) why = fmt::format("{} accepted of {} drafted tokens", accepted, all.drafted);
  for (std::size_t i = 0; i < all.accepted_at.size() && why.empty(); ++i)
    if (all.accepted_at[i] > all.rounds)
      why = fmt::format("{} tokens accepted at position {} of {} drafts", all.accepted_at[i], i, all.rounds);
  if (why.empty()) return false;
  const std::string model = all.name.empty() ? "" : ", " + all.name;
  if (contents_.unread++ == 0) contents_.first_unread = fmt::format("line {}{}: {}", all.last_line, model, why);
  return true;
}

void LogReader::finish_vllm_counters(const Counters& counters) {
  ReportedAcceptance all = counters.lines;
  const double rounds = grown_of(counters.grown, kDrafts);
  all.rounds = rounds;
  all.drafted = grown_of(counters.grown, kDrafted);
  if (!counters.accepted_at.empty()) all.accepted_at.resize(counters.accepted_at.rbegin()->first + 1, 0.0);
  for (const auto& [position, accepted] : counters.accepted_at) all.accepted_at[position] = accepted;
  double sum = 0.0;
  for (const double count : all.accepted_at) sum += count;
  all.accepted = counters.grown.contains(kAccepted) ? grown_of(counters.grown, kAccepted) : sum;
  if (refuse_counters(counters, all, all.accepted)) return;
  const std::size_t positions = all.accepted_at.size();
  all.draft_length = static_cast<int>(positions);
  all.drafts_whole = positions > 0 && all.drafted == rounds * static_cast<double>(positions);
  if (positions > 0)
    all.samples.push_back({rounds, all.accepted, all.accepted + rounds - all.accepted_at.back()});
  else
    all.samples.push_back({rounds, all.accepted, 0.0});
  if (positions > 0 && std::abs(sum - all.accepted) > 1e-6 * std::max(sum, 1.0)) {
    all.contradictions = 1;
    all.first_contradiction =
        fmt::format("line {}: {} accepted tokens, but {} over the positions", all.last_line, all.accepted, sum);
  }
  contents_.found.push_back(std::move(all));
}

void LogReader::finish_vllm_v0_counters(const Counters& counters) {
  ReportedAcceptance all = counters.lines;
  all.kind = LogKind::vllm_v0_counters;
  all.drafted = grown_of(counters.grown, kDrafted);
  all.alone_accepted = grown_of(counters.grown, kAccepted);
  all.rounds_counted = false;  // the draft length is not among the counters
  if (!refuse_counters(counters, all, all.alone_accepted)) contents_.found.push_back(std::move(all));
}

void LogReader::finish_trtllm_counters(const Counters& counters) {
  ReportedAcceptance all = counters.lines;
  all.drafted = grown_of(counters.grown, kDrafted);
  all.accepted = grown_of(counters.grown, kAccepted);
  all.rounds_counted = false;  // rounds are not among the counters
  if (!refuse_counters(counters, all, all.accepted)) contents_.found.push_back(std::move(all));
}

// V0 counts the accepted tokens at each position regardless of those before them (spec_decode_base_sampler.py:
// num_accepted_tokens += accepted.sum()). accepted / drafted is therefore an estimate of alpha, and emitted / rounds the
// acceptance length.
void LogReader::take_vllm_v0(const Reader& /*reader*/, Report& report) {
  const double length = report.number(Role::draft_length);
  const double accepted = report.number(Role::accepted);
  const double drafted = report.list(Role::drafted).front();
  if (length < 1.0 || length > static_cast<double>(kMostPositions)) {
    cannot_read(fmt::format("{} speculative tokens, allowed: 1 to {}", length, kMostPositions));
    return;
  }
  ReportedAcceptance& all = of(LogKind::vllm_v0_log, static_cast<int>(length));
  all.drafts_whole = true;
  seen(all);
  RisingCounts& server = servers_[fmt::format("v0 log {}", length)];
  double new_drafted = 0.0;
  double new_emitted = 0.0;
  RisingCounts::Engine& counts = server.engine();
  counts.see("drafted", drafted, new_drafted);
  counts.see("emitted", report.number(Role::emitted), new_emitted);
  counts.see("accepted", accepted, all.alone_accepted);
  server.note(counts);
  server.settle(options_.growth_alone);
  all.restarts = server.restarts();
  const double rounds = new_drafted / length;
  all.drafted += new_drafted;
  all.rounds += rounds;
  all.accepted += std::max(new_emitted - rounds, 0.0);
  if (rounds > 0.0) add_sample(all, {rounds, std::max(new_emitted - rounds, 0.0), 0.0});
  const double rate = report.number(Role::rate);
  if (drafted > 0.0 && std::abs(rate - accepted / drafted) > 0.00051)
    contradict(all, fmt::format("acceptance rate {:.3f}, but {} accepted of {} draft tokens", rate, accepted, drafted));
}

}  // namespace specsim::logs
