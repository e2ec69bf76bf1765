#include "sim/experiments/spec/sections.h"

#include "sim/foundation/base/token.h"
#include "sim/rounds/families/context.h"

namespace specsim::spec {

namespace {

using config::Parameter;
using config::Type;

constexpr double kMaxRounds = 1e13;

}  // namespace

config::Interval sequence_rounds_interval() { return config::between(1, 1e6); }

const Parameter& shrink_parameter() {
  static const Parameter parameter = {
      "shrink", Type::boolean, "true", "false: a finished sequence keeps its place in the batch until the end", {}, {}};
  return parameter;
}

const std::vector<Parameter>& top_parameters() {
  static const std::vector<Parameter> parameters = {
      {"experiment", Type::text, {}, "name of the experiment, first column of every row", {}, {}},
      {"description", Type::text, "", "purpose of the experiment", {}, {}},
      {"seed", Type::integer, "20260117", "seed of all random numbers", config::between(0, 9.2e18), {}},
      {"rounds", Type::integer, "1000000", "simulated per cell", config::between(1, kMaxRounds), {}},
      {"pair", Type::value, {}, "the distributions of target and draft", {}, {}},
      {"context", Type::value, "{process: fixed}", "how the distributions change along the text", {}, {}},
      {"decode", Type::value, {}, "drafter and verifier", {}, {}},
      {"cost", Type::value, "", "latency of passes: {model: NAME, ...}; without it there are no times and no speedup", {}, {}},
      {"workload", Type::value, "{}", "the decoded batch; cost models in seconds depend on it", {}, {}},
      {"placement",
       Type::value,
       "",
       "which model runs on which GPU, to simulate a batch in time: {kind: NAME, ...}; needs costs in seconds",
       {},
       {}},
      {"sweep",
       Type::value,
       "",
       "the grid: path: list, or range {from, to, step | count, scale}; zip: {path: list, path: list}",
       {},
       {}},
      {"theory", Type::value, "{}", "closed form that the run is compared with", {}, {}}};
  return parameters;
}

const std::vector<Parameter>& pair_parameters() {
  static const std::vector<Parameter> parameters = {
      {"vocab", Type::integer, {}, "tokens in the vocabulary", config::between(kMinVocab, kMaxVocab), {}},
      {"target", Type::value, {}, "the target's distribution: {family: NAME, ...}", {}, {}},
      {"draft", Type::value, "", "the draft's distribution: {family: NAME, ...} or {from: target, transform: NAME, ...}", {}, {}},
      {"target_sampling",
       Type::value,
       "{}",
       "{temperature, top_k, top_p, min_p}, applied in that order; the distribution that is verified is the one after them",
       {},
       {}},
      {"draft_sampling", Type::value, "{}", "like target_sampling, for the draft's distribution", {}, {}},
      {"assumed",
       Type::boolean,
       "false",
       "nothing is known of how often these drafts are accepted: plan prints the acceptance as assumed",
       {},
       {}}};
  return parameters;
}

const std::vector<Parameter>& decode_parameters() {
  static const std::vector<Parameter> parameters = {
      {"drafter", Type::value, {}, "a drafter's name, or {kind: NAME, ...}, as {kind: chain, draft_length: 4}", {}, {}},
      {"verifier", Type::value, "token", "a verifier's name, or {kind: NAME, ...}", {}, {}},
      {"policy",
       Type::value,
       "",
       "how long a chain to draft each round: a policy's name, or {kind: NAME, ...}; draft_length is then the maximum. "
       "round_cost: the time that the policy "
       "adds to every round, in passes of plain decoding (CUDA graphs recaptured or lost when lengths change, reading the "
       "draft's distribution)",
       {},
       {}}};
  return parameters;
}

const std::vector<Parameter>& workload_parameters() {
  static const std::vector<Parameter> parameters = {
      {"batch", Type::integer, "1", "sequences decoded together, in lockstep", config::between(1, 1e6), {}},
      {"context_length",
       Type::integer,
       "512",
       "tokens cached by each of them, halfway through its output",
       config::between(0, 1e8),
       {}},
      {"prompt_tokens",
       Type::integer,
       "",
       "tokens of each sequence's prompt, for a placement; default: context_length",
       config::between(1, 1e8),
       {}},
      {"output_tokens",
       Type::integer,
       "",
       "maximum number of tokens that each sequence emits, for a placement; default: 128",
       config::between(1, 1e7),
       {}},
      {"end_token_rate",
       Type::number,
       "0",
       "chance that an emitted token ends its sequence, for a placement",
       config::between(0, 1),
       {}}};
  return parameters;
}

const std::vector<Parameter>& placement_parameters() {
  static const std::vector<Parameter> parameters = {
      {"kind", Type::text, {}, "a placement's name; its parameters are keys next to it", {}, {}}, shrink_parameter()};
  return parameters;
}

const std::vector<Parameter>& theory_parameters() {
  static const std::vector<Parameter> parameters = {
      {"name",
       Type::text,
       "exact",
       "exact: the theory of the context process; none; or a closed form (specsim list closed_form)",
       {},
       {}},
      {"expect", Type::text, "agree", "refuted: the run must contradict this closed form", {}, {"agree", "refuted"}}};
  return parameters;
}

const std::vector<Parameter>& context_parameters() {
  static const std::vector<Parameter> parameters = {
      {"process", Type::text, "fixed", "a context process's name; its parameters are keys next to it", {}, {}},
      {"sequence_rounds",
       Type::integer,
       "64",
       "rounds of each sequence; requests and traces end theirs",
       sequence_rounds_interval(),
       {}}};
  return parameters;
}

const std::vector<SectionInfo>& config_sections() {
  static const std::vector<SectionInfo> sections = {
      {"", "top level", top_parameters()},
      {"pair", "the distributions of target and draft", pair_parameters()},
      {"pair.target_sampling, pair.draft_sampling", "sampling settings as in servers", families::sampling_fields()},
      {"context", "how the distributions change along the text", context_parameters()},
      {"decode", "drafter and verifier", decode_parameters()},
      {"workload", "the decoded batch", workload_parameters()},
      {"placement", "which model runs on which GPU", placement_parameters()},
      {"theory", "the closed form that judges the run", theory_parameters()}};
  return sections;
}

}  // namespace specsim::spec
