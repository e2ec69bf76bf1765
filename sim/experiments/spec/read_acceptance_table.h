// Acceptance by depth and rank as papers, model cards and logs publish it: the user's files, and those of configs/acceptance.
#pragma once

#include "sim/experiments/spec/context_rates.h"
#include "sim/foundation/config/value.h"

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::spec {

// How the drafts of a table were chosen, in the terms of drafter chain's `selection`. At temperature 0 both accept the same.
enum class Selection {
  unsaid,
  argmax,  // the draft's likeliest tokens
  sampled  // drawn from the draft's distribution; siblings one after the other, without replacement
};

struct AcceptanceTable {
  // [depth][rank]: P(the draft's candidate of this rank is the accepted one), given that its parent is.
  std::vector<std::vector<double>> acceptance;
  // The rates of a chain by context, if the file states them so; `acceptance` then has those of the first context.
  std::vector<ContextRates> by_context = {};
  // Descriptions in the file; "" if it has none.
  std::string about;   // "Vicuna-7B with its EAGLE head on MT-bench, temperature 0"
  std::string note;    // how to interpret the figures
  std::string source;  // publication of the rates
  bool unverified = false;
  // The draft, in the form of cost.draft: a model, or `none` for n-grams and for heads inside the target; "" if not stated.
  std::string draft;
  Location draft_where;  // the place in the file that names it
  std::string target;    // the target, in the form of cost.target; "" if not stated
  Location target_where;
  std::int64_t tensor_parallel = 1;  // GPUs of target and draft, if the target is the file's
  bool one_pass = false;             // one draft pass predicts all positions
  std::string temperature;           // as stated in the file; "unknown" or "" if not stated
  Location temperature_where;        // its place in the file, else the file
  Selection selection = Selection::unsaid;
  std::string selection_from = {};  // source of `selection`, for messages; "" if none
  std::string derived = {};         // if rates by depth were derived: the figures they come from; else ""
  Location where;                   // the place of the figures in the file

  // All descriptions but the note, for a heading; "" if there are none.
  [[nodiscard]] std::string origin() const;
  // The rates of a chain: the first rank at each depth.
  [[nodiscard]] std::vector<double> of_chain() const;
  // A warning about rows that rise with the rank; "" if none does.
  [[nodiscard]] std::string rising() const;
};

// Reads a table in one of these forms:
// - a list with an entry per depth, a number or a list of numbers by rank, as it is or under the key acceptance
// - top_k: for the likeliest 1, 2, ... tokens together, as accuracies of heads are published
// - rates: P(reached) of each position, as vLLM logs them; each is divided by the one before
// - mean_acceptance_length or mean_accepted, at one draft_length or a list: see rates_of_lengths
//
// - by_context: a list of maps, each {context: TOKENS} with one of the forms above, a number per position; contexts rise. Only
//   where `contexts` is several
//
// Numbers may be percentages. Further keys: draft: MODEL or none; target: MODEL; tensor_parallel: the GPUs of both; one_pass:
// true if one pass predicts all positions. selection: argmax or sampled states how drafts were chosen. Without it, top_k means
// the likeliest tokens. So does rates, which servers log: vLLM (draft_sample_method: greedy; vllm/config/speculative.py at
// 002e77c), SGLang (sgl-project/sglang 26312, which added drawn drafts as an option) and llama.cpp (ggml-org/llama.cpp 27694)
// draft the argmax by default. depths: N next to acceptance or top_k repeats the last row down to depth N, for a vector that
// holds at every depth (as in Sequoia). Throws BadInput with the place in `value`.
enum class Contexts { one, several };
AcceptanceTable read_acceptance_table(const config::Value& value, Contexts contexts = Contexts::one);

// The table of that name in configs/acceptance, or the one in a YAML or JSON file. `option`: the place where the name was given.
AcceptanceTable named_acceptance_table(const std::string& name, const Location& option, Contexts contexts = Contexts::one);

}  // namespace specsim::spec
