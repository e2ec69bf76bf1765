// TensorRT-LLM's iteration statistics as /metrics, LLM.get_stats() and the executor's log give them, one or many a line:
//   "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "numRequestsWithDraftTokens": 5,
//   "acceptanceLength": 4.0, ...}
// Each is of one step; acceptanceLength = (accepted + requests) / requests. Fields stand in any order.
#include "sim/logs/line_scan.h"
#include "sim/logs/server_log.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::logs {

bool LogReader::read_trtllm(std::string_view line) {
  bool read = false;
  for (auto rest = behind(line, "\"specDecodingStats\""); rest; rest = behind(*rest, "\"specDecodingStats\"")) {
    read = true;
    const std::size_t from = rest->find_first_not_of(" \t:\\");
    if (from == std::string_view::npos || (*rest)[from] != '{') continue;  // null: a step without drafts
    const std::string_view fields = rest->substr(from, rest->find('}') - from);
    const auto field = [&](std::string_view key) {
      const auto value = behind(fields, key);
      return value ? number_behind(*value, ":") : std::nullopt;
    };
    const auto drafted = field("numDraftTokens\"");
    const auto accepted = field("numAcceptedTokens\"");
    const auto requests = field("numRequestsWithDraftTokens\"");
    const auto length = field("acceptanceLength\"");
    if (!drafted || !accepted || *accepted > *drafted) {
      cannot_read("specDecodingStats without numbers of draft and accepted tokens");
      continue;
    }
    if (*drafted <= 0.0) continue;
    ReportedAcceptance& all = of(Kind::trtllm_steps, 0);
    seen(all);
    double rounds = requests.value_or(0.0);
    if (rounds <= 0.0 && length && *length > 1.0) rounds = std::round(*accepted / (*length - 1.0));
    if (rounds > 0.0 && length && *length > 0.0 && std::abs(1.0 + *accepted / rounds - *length) > 0.006 * *length)
      contradict(all, fmt::format("acceptance length {} beside {} accepted tokens of {} requests", *length, *accepted, rounds));
    if (rounds <= 0.0) all.rounds_counted = false;
    all.rounds += rounds;
    all.drafted += *drafted;
    all.accepted += *accepted;
    all.samples.push_back({rounds, *accepted, 0.0});
  }
  return read;
}

}  // namespace specsim::logs
