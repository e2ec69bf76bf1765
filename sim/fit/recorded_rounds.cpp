#include "sim/fit/recorded_rounds.h"

#include "sim/base/error.h"
#include "sim/families/acceptance_record.h"

#include <fmt/format.h>

namespace specsim::fit {

std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind) {
  using families::RecordForm;
  Diagnostics diagnostics;
  std::vector<RecordedRequest> requests;
  for (const families::AcceptanceRecord& record :
       families::read_acceptance_records(path, {path, 0, 0}, kind, {RecordForm::rounds, RecordForm::accepted}, diagnostics)) {
    RecordedRequest request;
    if (record.form == RecordForm::accepted)
      for (const int accepted : families::walked_rounds(record, record.draft_length))
        request.rounds.push_back({accepted, record.draft_length});
    else
      for (std::size_t i = 0; i < record.accepted.size(); ++i) request.rounds.push_back({record.accepted[i], record.drafted[i]});
    if (!request.rounds.empty()) requests.push_back(std::move(request));
  }
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
