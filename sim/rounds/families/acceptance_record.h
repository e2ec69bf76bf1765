// Recorded acceptance: JSONL, one request per line, in the four forms that specsim and servers' logs write. All commands use this
// reader. Each accepts the forms that hold what it needs; errors name the commands that accept the other forms.
#pragma once

#include "sim/foundation/base/error.h"

#include <string>
#include <vector>

namespace specsim::families {

enum class RecordForm {
  // {"draft_length": D, "accepted": [a0, a1, ...]}: the number of tokens that a round would have accepted if it started at each
  // output position and drafted D tokens. Contains the results of every draft length up to D, and all dependence on context.
  accepted,
  // {"draft_length": D, "rounds": [accepted, ...]}, and "drafted": [...] if rounds were cut: the rounds as they happened.
  // Contains draft length D; shorter lengths are the same rounds cut short. Answers of Spec-Bench, vLLM and AIPerf are such
  // rounds.
  rounds,
  // {"overlap": [o0, o1, ...]}: the probability that a draft token for this position is accepted if it is reached. Contains no
  // dependence of acceptance on the depth in the block.
  overlap,
  // {"target": [DISTRIBUTION, ...], "draft": [DISTRIBUTION, ...]}: both models' distributions at each position.
  distributions,
};

struct RecordedPair {
  std::vector<double> target;
  std::vector<double> draft;
};

// One request. `form` decides which of the lists is filled.
struct AcceptanceRecord {
  RecordForm form = RecordForm::overlap;
  int draft_length = 0;                 // tokens drafted per entry of `accepted` or per round of `rounds`
  std::vector<int> accepted;            // [position] if `form` is accepted, [round] if it is rounds
  std::vector<int> drafted;             // [round]
  std::vector<double> overlap;          // [position]
  std::vector<RecordedPair> positions;  // [position], with both distributions
};

// Reads the requests of `path` that are of `kind` ("": all). Errors go to `diagnostics`. A broken record, a form that `taken`
// lacks (with the commands that accept it) and a form that differs from the first are reported at their line. A file that cannot
// be read or has no request is reported at `named`.
std::vector<AcceptanceRecord> read_acceptance_records(const std::string& path, const Location& named, const std::string& kind,
                                                      const std::vector<RecordForm>& taken, Diagnostics& diagnostics);

// The rounds that a server drafting `draft_length` tokens would have run on an `accepted` record, as accepted tokens per round.
// The record determines them exactly. Each round starts after the last one ends; a round that the record's end could cut is
// omitted.
std::vector<int> walked_rounds(const AcceptanceRecord& record, int draft_length);

}  // namespace specsim::families
