// Recorded acceptance: what each round of a request drafted and accepted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::fit {

struct RecordedRound {
  int accepted = 0;
  int drafted = 0;
};
struct RecordedRequest {
  std::vector<RecordedRound> rounds;
};

// One draft length of a record.
struct RecordedLength {
  int draft_length = 0;
  std::vector<RecordedRequest> requests;
};

// Reads rounds_t*.jsonl of specsim calibrate, a log of the same form, or accepted prefixes by position; `kind`: "" or the only
// one to take. Throws BadInput with the line of what is wrong, or where rounds drafted different numbers of tokens. Prefixes hold
// the rounds of every draft length up to their own exactly, and each is returned, the shortest first; rounds hold the one.
std::vector<RecordedLength> read_draft_lengths(const std::string& path, const std::string& kind);

// What processes are fitted to, and what the fits are judged by.
struct FitData {
  std::vector<RecordedRequest> requests;
  std::vector<RecordedLength> held_out;  // recorded at other draft lengths
};

// The rounds of `path` that drafted `draft_length` tokens (0: the longest recorded); held out are its longer ones, and those of
// `other` ("": none). Throws BadInput: a draft length that the file does not hold, and as read_draft_lengths does.
FitData read_fit_data(const std::string& path, const std::string& other, const std::string& kind, int draft_length);

// The longest of read_draft_lengths(), as fits take it by default.
std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind);

// Positions at which a draft was accepted or rejected, and tokens, the bonus included.
std::uint64_t judged_positions(const RecordedRequest& request);
std::uint64_t emitted(const RecordedRequest& request);
double tokens_per_round(const std::vector<RecordedRequest>& requests);
// The places of about `most` of so many requests (all, where they are no more), in order and spread so that they follow no period
// in which kinds of requests may take turns: those whose multiple of the golden ratio has a small enough fraction.
std::vector<std::size_t> spread_choice(std::size_t requests, std::size_t most);

}  // namespace specsim::fit
