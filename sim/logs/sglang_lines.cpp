// SGLang's log lines (python/sglang/srt/managers/scheduler_metrics_mixin.py, log_decode_stats):
//   Decode batch. #running-req: 1, #token: 2041, token usage: 0.06, accept len: 3.14, accept rate: 0.63, cuda graph: True, gen
//   throughput (token/s): 500.21, #queue-req: 0,
// "accept len" is emitted tokens per verification, bonus included, over the steps since the line before (--decode-log-interval,
// 40 by default); early versions print no rate. The rate has had two meanings: emitted tokens / (verifications x
// num_draft_tokens), where num_draft_tokens counts the root too, and accepted drafts / (verifications x (num_draft_tokens - 1))
// in newer ones. Which it is, and the draft length, follow from the printed figures where only one whole number fits all lines.
// How many verifications a line stands for is not printed: they are taken as the interval's steps times #running-req.
#include "sim/logs/line_scan.h"
#include "sim/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace specsim::logs {

namespace {

constexpr int kLongestSglangDraft = 128;

}  // namespace

bool LogReader::read_sglang(std::string_view line) {
  const auto text = behind(line, "Decode batch");
  if (!text || text->find("accept len:") == std::string_view::npos) return false;
  const auto length = number_behind(*text, "accept len:");
  const auto requests = number_behind(*text, "#running-req:");
  if (!length || !requests) {
    cannot_read(fmt::format("no number behind \"{}\"", length ? "#running-req:" : "accept len:"));
    return true;
  }
  if (*length < 1.0) return true;  // no step of this interval had a draft
  const auto rate = number_behind(*text, "accept rate:");
  Acceptance& all = of(Kind::sglang_log, 0);
  seen(all);
  sglang_.push_back({std::max(*requests, 1.0), *length, rate.value_or(std::numeric_limits<double>::quiet_NaN())});
  return true;
}

void LogReader::finish_sglang() {
  if (sglang_.empty()) return;
  // The draft length K for which every line's rate follows from its length, to two decimals each.
  const auto fits = [&](int length, bool with_root) {
    return std::all_of(sglang_.begin(), sglang_.end(), [&](const SglangLine& one) {
      if (std::isnan(one.rate)) return true;
      const double rate = with_root ? one.length / (length + 1.0) : (one.length - 1.0) / length;
      return std::abs(rate - one.rate) <= 0.0051 + 0.0051 / (with_root ? length + 1.0 : length);
    });
  };
  const bool rated = std::any_of(sglang_.begin(), sglang_.end(), [](const SglangLine& one) { return !std::isnan(one.rate); });
  double longest = 0.0;
  for (const SglangLine& one : sglang_) longest = std::max(longest, one.length);
  std::optional<int> draft_length;
  int fitting = 0;
  for (int length = 1; rated && length <= kLongestSglangDraft; ++length)
    if (longest <= length + 1.0051 && (fits(length, true) || fits(length, false))) {
      if (fitting++ == 0) draft_length = length;
    }
  Acceptance& all = of(Kind::sglang_log, 0);
  all.rounds_counted = false;
  for (const SglangLine& one : sglang_) {
    const double rounds = one.requests * static_cast<double>(options_.sglang_interval);
    all.rounds += rounds;
    all.accepted += rounds * (one.length - 1.0);
    all.samples.push_back({rounds, rounds * (one.length - 1.0), 0.0});
  }
  if (fitting == 1) {
    all.draft_length = *draft_length;
    all.drafts_whole = true;
    all.drafted = all.rounds * static_cast<double>(*draft_length);
  } else if (rated && fitting == 0) {
    all.contradictions = sglang_.size();
    all.first_contradiction = fmt::format(
        "line {}: no draft length makes both the accept lengths and the accept rates (several in one log?)", all.first_line);
  }
}

}  // namespace specsim::logs
