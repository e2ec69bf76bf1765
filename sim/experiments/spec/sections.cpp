#include "sim/experiments/spec/sections.h"

#include "sim/foundation/base/token.h"
#include "sim/rounds/families/context.h"

namespace specsim::spec {

namespace {

using config::elsewhere, config::required, config::Value;

constexpr double kMaxRounds = 1e13;

}  // namespace

config::Interval sequence_rounds_interval() { return config::between(1, 1e6); }

const config::Fields<Cell>& top_fields() {
  static const config::Fields<Cell> fields = {
      {"experiment", &Cell::experiment, "name of the experiment, first column of every row", required},
      {"description", elsewhere<std::string>, "purpose of the experiment"},
      {"seed", &Cell::seed, "seed of all random numbers", config::between(0, 9.2e18)},
      {"rounds", &Cell::rounds, "simulated per cell", config::between(1, kMaxRounds)},
      {"pair", elsewhere<Value>, "the distributions of target and draft", required},
      {"context", elsewhere<Value>, "how the distributions change along the text", config::Default{"{process: fixed}"}},
      {"decode", elsewhere<Value>, "drafter and verifier", required},
      {"cost", elsewhere<Value>, "latency of passes: {model: NAME, ...}; without it there are no times and no speedup"},
      {"workload", elsewhere<Value>, "the decoded batch; cost models in seconds depend on it", config::Default{"{}"}},
      {"placement", elsewhere<Value>,
       "which model runs on which GPU, to simulate a batch in time: {kind: NAME, ...}; needs costs in seconds"},
      {"sweep", elsewhere<Value>,
       "the grid: path: list, or range {from, to, step | count, scale}; zip: {path: list, path: list}"},
      {"theory", elsewhere<Value>, "closed form that the run is compared with", config::Default{"{}"}}};
  return fields;
}

const config::Fields<Cell>& pair_fields() {
  static const config::Fields<Cell> fields = {
      {"vocab", &Cell::vocab, "tokens in the vocabulary", config::between(kMinVocab, kMaxVocab), required},
      {"target", elsewhere<Value>, "the target's distribution: {family: NAME, ...}", required},
      {"draft", elsewhere<Value>, "the draft's distribution: {family: NAME, ...} or {from: target, transform: NAME, ...}"},
      {"target_sampling", elsewhere<Value>,
       "{temperature, top_k, top_p, min_p}, applied in that order; the distribution that is verified is the one after them",
       config::Default{"{}"}},
      {"draft_sampling", elsewhere<Value>, "like target_sampling, for the draft's distribution", config::Default{"{}"}},
      {"assumed", &Cell::assumed_acceptance,
       "nothing is known of how often these drafts are accepted: plan prints the acceptance as assumed"}};
  return fields;
}

const config::Fields<Method>& decode_fields() {
  static const config::Fields<Method> fields = {
      {"drafter", elsewhere<Value>, "a drafter's name, or {kind: NAME, ...}, as {kind: chain, draft_length: 4}", required},
      {"verifier", elsewhere<Value>, "a verifier's name, or {kind: NAME, ...}", config::Default{"token"}},
      {"policy", elsewhere<Value>,
       "how long a chain to draft each round: a policy's name, or {kind: NAME, ...}; draft_length is then the maximum. "
       "round_cost: the time that the policy adds to every round, in passes of plain decoding (CUDA graphs recaptured or lost "
       "when lengths change, reading the draft's distribution)"}};
  return fields;
}

const config::Fields<placement::PlacedBatch>& workload_fields() {
  static const config::Fields<placement::PlacedBatch> fields = {
      {"batch", &placement::PlacedBatch::batch, "sequences decoded together, in lockstep", config::between(1, 1e6)},
      {"context_length", elsewhere<std::int64_t>, "tokens cached by each of them, halfway through its output",
       config::between(0, 1e8), config::Default{"512"}},
      {"prompt_tokens", &placement::PlacedBatch::prompt_tokens,
       "tokens of each sequence's prompt, for a placement; default: context_length", config::between(1, 1e8), config::optional},
      {"output_tokens", &placement::PlacedBatch::output_tokens,
       "maximum number of tokens that each sequence emits, for a placement; default: 128", config::between(1, 1e7),
       config::optional},
      {"end_token_rate", &placement::PlacedBatch::end_token_rate,
       "chance that an emitted token ends its sequence, for a placement", config::between(0, 1)}};
  return fields;
}

config::Declaration<placement::PlacedBatch> shrink_field() {
  return {"shrink", &placement::PlacedBatch::shrink, "false: a finished sequence keeps its place in the batch until the end"};
}

const config::Fields<placement::PlacedBatch>& placement_fields() {
  static const config::Fields<placement::PlacedBatch> fields = {
      {"kind", elsewhere<std::string>, "a placement's name; its parameters are keys next to it", required}, shrink_field()};
  return fields;
}

const config::Fields<TheorySection>& theory_fields() {
  static const config::Fields<TheorySection> fields = {
      {"name", &TheorySection::name,
       "exact: the theory of the context process; none; or a closed form (specsim list closed_form)"},
      {"expect", &TheorySection::expect_refuted, "refuted: the run must contradict this closed form",
       config::one_of<bool>({{"agree", false}, {"refuted", true}})}};
  return fields;
}

const config::Fields<Cell>& context_fields() {
  static const config::Fields<Cell> fields = {
      {"process", elsewhere<std::string>, "a context process's name; its parameters are keys next to it",
       config::Default{"fixed"}},
      {"sequence_rounds", &Cell::sequence_rounds, "rounds of each sequence; requests and traces end theirs",
       sequence_rounds_interval()}};
  return fields;
}

const std::vector<SectionInfo>& config_sections() {
  static const std::vector<SectionInfo> sections = {
      {"", "top level", top_fields()},
      {"pair", "the distributions of target and draft", pair_fields()},
      {"pair.target_sampling, pair.draft_sampling", "sampling settings as in servers", families::sampling_fields()},
      {"context", "how the distributions change along the text", context_fields()},
      {"decode", "drafter and verifier", decode_fields()},
      {"workload", "the decoded batch", workload_fields()},
      {"placement", "which model runs on which GPU", placement_fields()},
      {"theory", "the closed form that judges the run", theory_fields()}};
  return sections;
}

}  // namespace specsim::spec
