// The answers, question by question.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/experiments/spec/spec.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace specsim::web {

using Json = nlohmann::json;

// A number that JSON can represent: infinities and NaN become null.
Json number(double x);
Json numbers(const std::vector<double>& list);

// The question's value at `key`, or the default if it is omitted. Throws BadInput for another type.
double number_at(const Json& question, const char* key, double otherwise);
std::string text_at(const Json& question, const char* key, const std::string& otherwise);

// The single cell of the question's config.
spec::Experiment experiment_of(const Json& question);
// The single cell whose latency is estimated: a plan's workload, or "cost_ratio" instead.
spec::Experiment experiment_with_cost(const Json& question);
int longest_of(const Json& question);
// "acceptance": {"kind": alpha | position_rates | conditional_rates | length | rate | table | log, "value": ..., "at": draft
// length}
plan::AcceptanceCurve acceptance_of(const Json& question);

// The answers to the page's questions, a function per kind. They throw BadInput.
Json answer_parts();
Json answer_plan(const Json& question);
Json answer_map(const Json& question);
Json answer_landscape(const Json& question);
Json answer_mass(const Json& question);
Json answer_rounds(const Json& question);
Json answer_step(const Json& question);
Json answer_serve(const Json& question);
// "runs": [{"text": what a benchmark client saved, "draft_length": ...}] and the workload; the answer's "tuned" is an input of a
// plan's question.
Json answer_tune(const Json& question);
Json answer_replay(const Json& question);

}  // namespace specsim::web
