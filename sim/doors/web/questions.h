// The answers, question by question.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/experiments/spec/spec.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace specsim::web {

using Json = nlohmann::json;

// A number that JSON can hold: infinities and NaN become null.
Json number(double x);
Json numbers(const std::vector<double>& list);

// What a question holds at `key`; the default where it is left out. Throws BadInput for another type.
double number_at(const Json& question, const char* key, double otherwise);
std::string text_at(const Json& question, const char* key, const std::string& otherwise);

// The one cell of the config that the question holds.
spec::Experiment experiment_of(const Json& question);
// The one cell that is priced: a plan's workload, or "cost_ratio" in place of one.
spec::Experiment priced_experiment(const Json& question);
int longest_of(const Json& question);
// "acceptance": {"kind": alpha | position_rates | conditional_rates | length | rate | table | log, "value": ..., "at": draft
// length}
plan::AcceptanceCurve acceptance_of(const Json& question);

// The answers to the page's questions, a function for each kind. They throw BadInput.
Json answer_parts();
Json answer_plan(const Json& question);
Json answer_map(const Json& question);
Json answer_landscape(const Json& question);
Json answer_mass(const Json& question);
Json answer_rounds(const Json& question);
Json answer_step(const Json& question);
Json answer_serve(const Json& question);
// "runs": [{"text": what a benchmark client saved, "draft_length": ...}] and the workload; the answer's "tuned" goes into a plan's
// question.
Json answer_tune(const Json& question);
Json answer_replay(const Json& question);

}  // namespace specsim::web
