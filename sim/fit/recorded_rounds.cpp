#include "sim/fit/recorded_rounds.h"

#include "sim/base/error.h"
#include "sim/base/token.h"
#include "sim/config/json.h"

#include <fmt/format.h>

#include <optional>

namespace specsim::fit {

namespace {

std::optional<int> count_of(const config::Value* value, int most) {
  if (value == nullptr) return std::nullopt;
  const auto n = config::as_integer(*value);
  if (!n || *n < 0 || *n > most) return std::nullopt;
  return static_cast<int>(*n);
}

// What is wrong with the line, or nothing.
std::optional<std::string> read_request(const config::Value& line, RecordedRequest& request) {
  const std::optional<int> draft_length = count_of(line.find("draft_length"), kMaxDraftLength);
  const config::Value* const rounds = line.find("rounds");
  const config::Value* const drafted = line.find("drafted");
  if (line.find("tree") != nullptr) return "rounds of trees, allowed: of chains, which the processes describe";
  if (!draft_length || *draft_length == 0 || rounds == nullptr || rounds->items.empty())
    return fmt::format("no record of rounds, allowed: {{\"draft_length\": 1 to {}, \"rounds\": [accepted, ...]}}",
                       kMaxDraftLength);
  if (drafted != nullptr && drafted->items.size() != rounds->items.size())
    return fmt::format("{} rounds and {} entries of \"drafted\", allowed: as many", rounds->items.size(), drafted->items.size());
  for (std::size_t i = 0; i < rounds->items.size(); ++i) {
    const std::optional<int> n = drafted != nullptr ? count_of(&drafted->items[i], *draft_length) : draft_length;
    const std::optional<int> accepted = n ? count_of(&rounds->items[i], *n) : std::nullopt;
    if (!accepted)
      return fmt::format("round {} accepted {}, allowed: an integer up to what was drafted", i + 1,
                         config::found_text(rounds->items[i]));
    request.rounds.push_back({*accepted, *n});
  }
  return std::nullopt;
}

}  // namespace

std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind) {
  Diagnostics diagnostics;
  std::vector<RecordedRequest> requests;
  config::read_json_lines(path, {}, "one a line", diagnostics, [&](const config::Value& object, const Location& where) {
    if (const config::Value* const own = object.find("kind"); !kind.empty() && (own == nullptr || own->text != kind)) return;
    RecordedRequest request;
    if (const std::optional<std::string> mistake = read_request(object, request)) diagnostics.add(where, *mistake);
    requests.push_back(std::move(request));
  });
  constexpr std::size_t kFewest = 10;
  if (diagnostics.empty() && requests.size() < kFewest)
    diagnostics.add({path, 0, 0}, fmt::format("{} requests{}, allowed: at least {}", requests.size(),
                                              kind.empty() ? "" : " of kind " + kind, kFewest));
  diagnostics.throw_if_any();
  return requests;
}

std::uint64_t judged_positions(const RecordedRequest& request) {
  std::uint64_t sum = 0;
  for (const RecordedRound& round : request.rounds)
    sum += static_cast<std::uint64_t>(round.accepted) + (round.accepted < round.drafted ? 1 : 0);
  return sum;
}

std::uint64_t emitted(const RecordedRequest& request) {
  std::uint64_t sum = 0;
  for (const RecordedRound& round : request.rounds) sum += static_cast<std::uint64_t>(round.accepted) + 1;
  return sum;
}

double tokens_per_round(const std::vector<RecordedRequest>& requests) {
  double tokens = 0.0;
  double rounds = 0.0;
  for (const RecordedRequest& request : requests) {
    tokens += static_cast<double>(emitted(request));
    rounds += static_cast<double>(request.rounds.size());
  }
  return tokens / rounds;
}

}  // namespace specsim::fit
