// Recorded acceptance: the drafted and accepted tokens of each round of a request.
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

// Reads rounds_t*.jsonl of specsim calibrate, a log of the same form, or accepted prefixes by position. `kind`: the only kind to
// read, or "". Throws BadInput with the line of the error, also if rounds drafted different numbers of tokens. Prefixes
// determine the rounds of every shorter draft length exactly; all are returned, the shortest first. Rounds determine only their
// own draft length.
std::vector<RecordedLength> read_draft_lengths(const std::string& path, const std::string& kind);

// The data of a fit, and the data that test it.
struct FitData {
  std::vector<RecordedRequest> requests;
  std::vector<RecordedLength> held_out;  // recorded at other draft lengths
};

// Reads the rounds of `path` that drafted `draft_length` tokens (0: the longest recorded). The longer rounds, and those of
// `other` ("": none), are held out. Throws BadInput as read_draft_lengths does, and for a draft length that the file does not
// hold.
FitData read_fit_data(const std::string& path, const std::string& other, const std::string& kind, int draft_length);

// The longest draft length of read_draft_lengths(), the default of fits.
std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind);

// Positions with an accepted or rejected draft; and tokens, including the bonus token.
std::uint64_t judged_positions(const RecordedRequest& request);
std::uint64_t emitted(const RecordedRequest& request);
double tokens_per_round(const std::vector<RecordedRequest>& requests);
// The indices of about `most` requests (all, if there are no more), in order. The choice is spread so that it follows no period
// in which kinds of requests may alternate: it takes those whose multiple of the golden ratio has a small enough fraction.
std::vector<std::size_t> spread_choice(std::size_t requests, std::size_t most);

}  // namespace specsim::fit
