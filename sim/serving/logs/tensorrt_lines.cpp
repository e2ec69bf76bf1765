// TensorRT-LLM's iteration statistics as /metrics, LLM.get_stats() and the executor's log give them, one or many a line:
//   "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "numRequestsWithDraftTokens": 5,
//   "acceptanceLength": 4.0, ...}
// Each is of one step; acceptanceLength = (accepted + requests) / requests. Fields stand in any order.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::logs {

bool LogReader::read_trtllm(std::string_view line) {
  bool read = false;
  for (auto rest = behind(line, "\"specDecodingStats\""); rest; rest = behind(*rest, "\"specDecodingStats\"")) {
    read = true;
    const std::size_t from = rest->find_first_not_of(" \t:\\");
    if (from == std::string_view::npos || (*rest)[from] != '{') continue;  // null: a step without drafts
    // No further than the next one: a long line is gone through once.
    const std::string_view own = rest->substr(from, rest->find("\"specDecodingStats\"") - from);
    const std::string_view fields = own.substr(0, own.find('}'));
    const auto count = [&](std::string_view key) {
      const auto value = behind(fields, key);
      return value ? count_behind(*value, ":") : std::nullopt;
    };
    const auto drafted = count("numDraftTokens\"");
    const auto accepted = count("numAcceptedTokens\"");
    const auto requests = count("numRequestsWithDraftTokens\"");
    if (!drafted || !accepted || *accepted > *drafted) {
      cannot_read("specDecodingStats without numbers of draft and accepted tokens");
      continue;
    }
    if (requests && *requests > *drafted) {
      cannot_read(fmt::format("{} requests with draft tokens beside {} draft tokens", *requests, *drafted));
      continue;
    }
    const auto length_text = behind(fields, "acceptanceLength\"");
    const double length = (length_text ? number_behind(*length_text, ":") : std::nullopt).value_or(0.0);  // 0: not said
    if (length_text && bad_number_behind(*length_text, ":")) {
      cannot_read("no number behind \"acceptanceLength\"");
      continue;
    }
    if (*drafted <= 0.0) continue;
    ReportedAcceptance& all = of(Kind::trtllm_steps, 0);
    seen(all);
    double rounds = requests.value_or(0.0);
    if (rounds <= 0.0 && length > 1.0) rounds = std::min(*drafted, std::round(*accepted / (length - 1.0)));
    if (rounds > 0.0 && length > 0.0 && std::abs(1.0 + *accepted / rounds - length) > 0.006 * length)
      contradict(all, fmt::format("acceptance length {} beside {} accepted tokens of {} requests", length, *accepted, rounds));
    if (rounds <= 0.0) all.rounds_counted = false;
    all.rounds += rounds;
    all.drafted += *drafted;
    all.accepted += *accepted;
    add_sample(all, {rounds, *accepted, 0.0});
  }
  return read;
}

}  // namespace specsim::logs
