// Named closed forms that a run can be compared with: correct ones, and published ones that are wrong.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::theory {

struct ClosedFormInputs {
  double alpha = 0.0;                     // constant over positions
  std::vector<double> alpha_by_position;  // given that the position is reached; empty, or at least draft_length entries
  int draft_length = 0;
  double cost_ratio = 0.0;      // draft pass / target pass
  double draft_seconds = 0.0;   // one draft pass
  double target_seconds = 0.0;  // one target pass
};

// The predictions of a form; others stay empty.
struct ClosedFormPrediction {
  std::optional<RoundDistribution> distribution;
  std::optional<double> tokens_per_round;
  std::optional<double> speedup;
  std::optional<double> tokens_per_second;
};

enum class ClosedFormInput { alpha, alpha_by_position, cost_ratio, seconds };  // draft_length is always used

struct ClosedForm {
  std::string name;   // snake_case words of the field
  std::string claim;  // the published claim that it states, "M4"; empty if none
  std::string source;
  std::string formula;  // plain text
  std::string summary;
  bool known_wrong = false;  // a run is expected to refute it
  std::vector<ClosedFormInput> inputs;
  // Throws InvariantBroken for inputs out of range. Forms with cost_ratio predict a speedup, forms with seconds a rate.
  std::function<ClosedFormPrediction(const ClosedFormInputs&)> evaluate;
};

// All forms, names unique, in order of the claims.
[[nodiscard]] const std::vector<ClosedForm>& closed_forms();

// nullptr if there is none of that name.
[[nodiscard]] const ClosedForm* find_closed_form(std::string_view name);

}  // namespace specsim::theory
