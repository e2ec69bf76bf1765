// Acceptance by depth and rank as papers, model cards and logs publish it: files of the user's, and those of configs/acceptance.
#pragma once

#include "sim/foundation/config/value.h"

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::spec {

// How the drafts of a table were chosen, by the words of drafter chain's selection. At temperature 0 the two accept alike.
enum class Selection {
  unsaid,
  argmax,  // the draft's likeliest tokens
  sampled  // drawn from the draft's distribution; siblings one after the other, without replacement
};

struct AcceptanceTable {
  // [depth][rank]: P(the draft's candidate of this rank is the accepted one), given that its parent is.
  std::vector<std::vector<double>> acceptance;
  // What the file says of itself; "" where it says nothing.
  std::string about;   // "Vicuna-7B with its EAGLE head on MT-bench, temperature 0"
  std::string note;    // how the figures are to be taken
  std::string source;  // publication that the rates come from
  bool unverified = false;
  // What drafted, as cost.draft takes it: a model, or none for n-grams and for heads inside the target; "" where it is unsaid.
  std::string draft;
  Location draft_where;  // where the file names it
  std::string target;    // what it drafted for, as cost.target takes it; "" where it is unsaid
  Location target_where;
  std::int64_t tensor_parallel = 1;  // GPUs that target and draft are cut over, where the target is the file's
  bool one_pass = false;             // one draft pass guesses all positions
  std::string temperature;           // as the file says it, "unknown" or "" where it does not
  Location temperature_where;        // where it does, else the file
  Selection selection = Selection::unsaid;
  std::string selection_from = {};  // what says so, for people; "" where nothing does
  std::string derived = {};         // what rates by depth were worked out from, which the file does not have; "" where it does
  Location where;                   // where the file has its figures

  // All of it but the note, for a heading; "" where there is nothing.
  [[nodiscard]] std::string origin() const;
  // What a chain meets: the first rank at each depth.
  [[nodiscard]] std::vector<double> of_chain() const;
  // Says of rows that rise with the rank what they look like; "" where none does.
  [[nodiscard]] std::string rising() const;
};

// A list with an entry for each depth, of a number or a list of numbers by rank, as it stands or under the key acceptance; under
// top_k: of the likeliest 1, 2, ... tokens together, as accuracies of heads are published; or under rates: of each position
// whether it is reached or not, as vLLM logs them, which are divided by those before them. Numbers may be percentages. Or
// under mean_acceptance_length or mean_accepted, of one draft_length or a list: see rates_of_lengths. draft:
// MODEL or none says what drafted, target: MODEL for what, on tensor_parallel GPUs, one_pass: true that all positions come of one
// pass. selection: argmax or sampled says how the drafts were chosen. Where it is not there, those of top_k were the likeliest,
// and so were those of rates, which servers log: vLLM (draft_sample_method: greedy; vllm/config/speculative.py at 002e77c),
// SGLang (sgl-project/sglang 26312, which brought drawn drafts as an option) and llama.cpp (ggml-org/llama.cpp 27694) draft the
// argmax unless told otherwise. depths: N beside acceptance or top_k repeats the last row down to depth N, as a vector has it
// that holds at every depth (Sequoia's). Throws BadInput with the place in `value`.
AcceptanceTable read_acceptance_table(const config::Value& value);

// The table of that name in configs/acceptance, or the one in a YAML or JSON file. `option`: where the name was given.
AcceptanceTable named_acceptance_table(const std::string& name, const Location& option);

}  // namespace specsim::spec
