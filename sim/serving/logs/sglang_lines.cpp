// SGLang's log lines (python/sglang/srt/managers/scheduler_metrics_mixin.py, log_decode_stats):
//   Decode batch. #running-req: 1, #token: 2041, token usage: 0.06, accept len: 3.14, accept rate: 0.63, cuda graph: True, gen
//   throughput (token/s): 500.21, #queue-req: 0,
// "accept len" is emitted tokens per verification, bonus included, over the steps since the line before (--decode-log-interval,
// 40 by default); early versions print no rate. The rate has had two meanings: emitted tokens / (verifications x
// num_draft_tokens), where num_draft_tokens counts the root too, and accepted drafts / (verifications x (num_draft_tokens - 1))
// in newer ones. Which it is, and the draft length, follow from the printed figures where only one whole number fits all lines.
// How many verifications a line stands for is not printed: they are taken as the interval's steps times #running-req.
//
// Its /metrics (python/sglang/srt/observability/metrics_collector.py) has the same two averages as gauges, set when the line is
// printed, and in newer versions the draft's shape:
//   sglang:spec_accept_length{engine_type="unified",tp_rank="0",...} 3.14
//   sglang:spec_accept_rate{...} 0.7133
//   sglang:spec_num_steps{...} 3.0                   the draft's depth
//   sglang:spec_num_draft_tokens{...} 4.0            tokens verified, the root included: depth + 1 for a chain, else a tree
//   sglang:num_running_reqs{...} 2.0
// A scrape is one such interval of each set of labels (a rank of data parallelism). Gauges that have not moved since the scrape
// before are the same interval, and count once; 0 is an interval without drafts.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/readers.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::logs {

namespace {

constexpr int kLongestSglangDraft = 128;
constexpr std::size_t kMostShapes = 2;                           // more than one are kept without a draft length
constexpr std::size_t kMostSglangLines = std::size_t{1} << 22U;  // all of them are kept: the draft length is one that fits all

}  // namespace

void LogReader::take_sglang(const Reader& /*reader*/, Report& report) {
  const double length = report.number(Role::rough_length);
  if (length < 1.0) {  // no step of this interval had a draft
    ++contents_.idle;
    return;
  }
  if (sglang_.size() == kMostSglangLines) {
    cannot_read(fmt::format("more than {} lines of SGLang in one log", kMostSglangLines));
    return;
  }
  seen(of(LogKind::sglang_log, 0));
  sglang_.push_back({std::max(report.number(Role::running), 1.0), length, report.number(Role::rate)});
}

void LogReader::finish_sglang() { finish_sglang_lines(LogKind::sglang_log, sglang_, 0.0051, 0); }

bool LogReader::read_sglang_gauge(std::string_view line) {
  const auto read = metric_line(line, "sglang:");
  if (!read || read->beginning) return false;
  const auto gauge = [&]() -> double SglangGauges::* {
    if (read->metric == "sglang:num_running_reqs") return &SglangGauges::requests;
    if (read->metric == "sglang:spec_accept_length") return &SglangGauges::length;
    if (read->metric == "sglang:spec_accept_rate") return &SglangGauges::rate;
    if (read->metric == "sglang:spec_num_steps") return &SglangGauges::steps;
    if (read->metric == "sglang:spec_num_draft_tokens") return &SglangGauges::draft_tokens;
    return nullptr;
  }();
  if (gauge == nullptr) return false;
  if (std::isnan(read->value)) {
    cannot_read(fmt::format("no number after \"{}\"", read->metric));
    return true;
  }
  if (read->labels.size() > kLongestName || (!gauges_now_.contains(read->labels) && gauges_now_.size() == kMostLabelSets)) {
    cannot_read(fmt::format("more than {} sets of labels, or one of more than {} bytes", kMostLabelSets, kLongestName));
    return true;
  }
  if (!std::isnan(gauges_now_[read->labels].*gauge)) end_scrape(read->labels);
  gauges_now_[read->labels].*gauge = read->value;
  if (gauge == &SglangGauges::length) seen(of(LogKind::sglang_gauges, 0));
  return true;
}

void LogReader::end_scrape(const std::string& labels) {
  const SglangGauges now = std::exchange(gauges_now_[labels], {});
  const SglangGauges before = std::exchange(gauges_before_[labels], now);
  if (now.length == 0.0) ++contents_.idle;
  if (!(now.length >= 1.0)) return;  // missing, or an interval without drafts
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  if (same(now.length, before.length) && same(now.rate, before.rate)) return;
  if (sglang_scrapes_.size() == kMostSglangLines) {
    cannot_read(fmt::format("more than {} scrapes of SGLang in one log", kMostSglangLines));
    return;
  }
  sglang_scrapes_.push_back({std::isnan(now.requests) ? 1.0 : std::max(now.requests, 1.0), now.length, now.rate});
  if (!std::isnan(now.steps) && !std::isnan(now.draft_tokens) && sglang_shapes_.size() < kMostShapes)
    sglang_shapes_.emplace(now.steps, now.draft_tokens);
}

void LogReader::finish_sglang_gauges() {
  std::vector<std::string> open;
  for (const auto& [labels, now] : gauges_now_) open.push_back(labels);
  for (const std::string& labels : open) end_scrape(labels);
  int told = 0;  // the draft length, if the gauges give it
  if (!sglang_shapes_.empty()) {
    const auto [steps, draft_tokens] = *sglang_shapes_.begin();
    const bool chains =
        sglang_shapes_.size() == 1 && draft_tokens == steps + 1.0 && steps >= 1.0 && steps <= double{kLongestSglangDraft};
    told = chains ? static_cast<int>(steps) : -1;
  }
  finish_sglang_lines(LogKind::sglang_gauges, sglang_scrapes_, 1e-4, told);
}

// `rounding`: largest rounding error of a printed figure. `told`: the draft length in the text; -1 if the text shows that there
// is none (a tree, or lengths that change); 0 if it is not in the text.
void LogReader::finish_sglang_lines(LogKind kind, const std::vector<SglangLine>& lines, double rounding, int told) {
  if (lines.empty()) return;
  // The draft length K for which every line's rate follows from its length, up to the rounding of both.
  const auto fits = [&](int length, bool with_root) {
    return std::all_of(lines.begin(), lines.end(), [&](const SglangLine& one) {
      if (std::isnan(one.rate)) return true;
      const double rate = with_root ? one.length / (length + 1.0) : (one.length - 1.0) / length;
      return std::abs(rate - one.rate) <= rounding + rounding / (with_root ? length + 1.0 : length);
    });
  };
  const bool rated = std::any_of(lines.begin(), lines.end(), [](const SglangLine& one) { return !std::isnan(one.rate); });
  double longest = 0.0;
  for (const SglangLine& one : lines) longest = std::max(longest, one.length);
  std::optional<int> draft_length;
  int fitting = 0;
  for (int length = 1; rated && told >= 0 && length <= kLongestSglangDraft; ++length)
    if ((told == 0 || length == told) && longest <= length + 1.0 + rounding && (fits(length, true) || fits(length, false))) {
      if (fitting++ == 0) draft_length = length;
    }
  ReportedAcceptance& all = of(kind, 0);
  all.rounds_counted = false;
  for (const SglangLine& one : lines) {
    const double rounds = one.requests * static_cast<double>(options_.sglang_interval);
    all.rounds += rounds;
    all.accepted += rounds * (one.length - 1.0);
    add_sample(all, {rounds, rounds * (one.length - 1.0), 0.0});
  }
  if (told > 0 && !rated && longest <= told + 1.0 + rounding) {
    fitting = 1;
    draft_length = told;
  }
  if (fitting == 1) {
    all.draft_length = *draft_length;
    all.drafts_whole = true;
    all.drafted = all.rounds * static_cast<double>(*draft_length);
  } else if ((rated || told > 0) && told >= 0 && fitting == 0) {
    all.contradictions = lines.size();
    all.first_contradiction =
        rated ? fmt::format("line {}: no draft length makes both the accept lengths and the accept rates (several in one log?)",
                            all.first_line)
              : fmt::format("line {}: accept length {} at draft length {}", all.first_line, longest, told);
  }
}

}  // namespace specsim::logs
