#include "sim/experiments/fit/fitted_process.h"

#include "sim/foundation/base/error.h"
#include "sim/rounds/families/acceptance_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace specsim::fit {

std::vector<RecordedLength> read_draft_lengths(const std::string& path, const std::string& kind) {
  using families::RecordForm;
  Diagnostics diagnostics;
  const std::vector<families::AcceptanceRecord> records =
      families::read_acceptance_records(path, {path, 0, 0}, kind, {RecordForm::rounds, RecordForm::accepted}, diagnostics);
  std::vector<RecordedLength> lengths;
  if (!records.empty() && records[0].form == RecordForm::accepted) {
    int longest = records[0].draft_length;
    for (const families::AcceptanceRecord& record : records) longest = std::min(longest, record.draft_length);
    for (int length = 1; length <= longest; ++length) {
      lengths.push_back({length, {}});
      for (const families::AcceptanceRecord& record : records) {
        RecordedRequest request;
        for (const int accepted : families::walked_rounds(record, length)) request.rounds.push_back({accepted, length});
        if (!request.rounds.empty()) lengths.back().requests.push_back(std::move(request));
      }
    }
  } else {
    lengths.emplace_back();
    for (const families::AcceptanceRecord& record : records) {
      RecordedRequest request;
      for (std::size_t i = 0; i < record.accepted.size(); ++i) request.rounds.push_back({record.accepted[i], record.drafted[i]});
      if (!request.rounds.empty()) lengths.back().requests.push_back(std::move(request));
    }
  }
  constexpr std::size_t kFewest = 10;
  const std::size_t requests = lengths.empty() ? 0 : lengths.back().requests.size();
  if (diagnostics.empty() && requests < kFewest)
    diagnostics.add({path, 0, 0}, fmt::format("{} requests{}, allowed: at least {}", requests,
                                              kind.empty() ? "" : " of kind " + kind, kFewest));
  diagnostics.throw_if_any();
  RecordedLength& last = lengths.back();
  last.draft_length = last.requests[0].rounds[0].drafted;
  for (const RecordedRequest& request : last.requests)
    for (const RecordedRound& round : request.rounds)
      if (round.drafted != last.draft_length)
        throw BadInput({path, 0, 0},
                       fmt::format("rounds that drafted {} and {} tokens, allowed: one draft length, at which the processes are "
                                   "simulated",
                                   last.draft_length, round.drafted));
  if (last.draft_length == 0) throw BadInput({path, 0, 0}, "rounds that drafted nothing, allowed: at least one token");
  return lengths;
}

std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind) {
  return std::move(read_draft_lengths(path, kind).back().requests);
}

FitData read_fit_data(const std::string& path, const std::string& other, const std::string& kind, int draft_length) {
  FitData data;
  std::vector<RecordedLength> recorded = read_draft_lengths(path, kind);
  const int longest = recorded.back().draft_length;
  if (draft_length == 0) draft_length = longest;
  for (RecordedLength& one : recorded) {
    if (one.draft_length == draft_length)
      data.requests = std::move(one.requests);
    else if (one.draft_length > draft_length)
      data.held_out.push_back(std::move(one));
  }
  if (data.requests.empty())
    throw BadInput({"--draft-length", 0, 0},
                   fmt::format("{}, allowed: {} (lengths in {})", draft_length,
                               recorded.size() > 1 ? fmt::format("1 to {}", longest) : std::to_string(longest), path));
  if (other.empty()) return data;
  for (RecordedLength& one : read_draft_lengths(other, kind))
    if (one.draft_length != draft_length) data.held_out.push_back(std::move(one));
  return data;
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

std::vector<std::size_t> spread_choice(std::size_t requests, std::size_t most) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / 1.618..
  const double share = requests > most ? static_cast<double>(most) / static_cast<double>(requests) : 1.0;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < requests; ++i)
    if (static_cast<double>((i * kGolden) >> 11) * 0x1.0p-53 < share) chosen.push_back(i);
  return chosen;
}

}  // namespace specsim::fit
