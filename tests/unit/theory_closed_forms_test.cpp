#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/closed_forms.h"

namespace specsim::theory_closed_forms_test {

using namespace specsim::theory;

namespace {

ClosedFormPrediction predict(const std::string& name, const ClosedFormInputs& inputs) {
  const ClosedForm* form = find_closed_form(name);
  REQUIRE(form != nullptr);
  return form->evaluate(inputs);
}

ClosedFormInputs constant(double alpha, int draft_length, double cost_ratio = 0.0) {
  ClosedFormInputs inputs;
  inputs.alpha = alpha;
  inputs.draft_length = draft_length;
  inputs.cost_ratio = cost_ratio;
  return inputs;
}

bool uses(const ClosedForm& form, ClosedFormInput input) {
  return std::find(form.inputs.begin(), form.inputs.end(), input) != form.inputs.end();
}

}  // namespace

TEST_CASE("every closed form is named once, described, and predicts what its inputs allow", "[theory][closed_forms]") {
  std::set<std::string> names;
  for (const ClosedForm& form : closed_forms()) {
    INFO(form.name);
    CHECK(names.insert(form.name).second);
    CHECK(find_closed_form(form.name) == &form);
    CHECK(form.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos);
    CHECK_FALSE(form.formula.empty());
    CHECK_FALSE(form.summary.empty());
    CHECK_FALSE(form.source.empty());
    CHECK_FALSE(form.inputs.empty());
    CHECK((form.summary.rfind("wrong", 0) == 0) == form.known_wrong);
    ClosedFormInputs inputs = constant(0.7, 5, 0.2);
    inputs.alpha_by_position = {0.9, 0.8, 0.7, 0.6, 0.5};
    inputs.draft_seconds = 0.004;
    inputs.target_seconds = 0.03;
    const ClosedFormPrediction prediction = form.evaluate(inputs);
    REQUIRE(prediction.tokens_per_round.has_value());
    if (uses(form, ClosedFormInput::cost_ratio)) CHECK(prediction.speedup.has_value());
    CHECK(uses(form, ClosedFormInput::seconds) == prediction.tokens_per_second.has_value());
    if (prediction.distribution) CHECK(std::abs(prediction.distribution->mean_emitted() - *prediction.tokens_per_round) < 1e-14);
    inputs.alpha = 1.2;
    inputs.alpha_by_position = {1.2, 1.2, 1.2, 1.2, 1.2};
    CHECK_THROWS_AS(form.evaluate(inputs), InvariantBroken);
  }
  CHECK(find_closed_form("no_such_form") == nullptr);
}

TEST_CASE("the equal forms are equal, the wrong ones differ by as much as theory predicts", "[theory][closed_forms][claims]") {
  for (const double alpha : {0.0, 0.3, 0.7, 0.999, 1.0}) {
    for (const int length : {0, 1, 5, 12}) {
      INFO("alpha " << alpha << " draft_length " << length);
      const ClosedFormInputs inputs = constant(alpha, length, 0.2);
      const double right = *predict("geometric", inputs).tokens_per_round;
      CHECK(std::abs(*predict("sum_over_lengths", inputs).tokens_per_round - right) < 1e-13);
      CHECK(std::abs(*predict("accepted_recursion", inputs).tokens_per_round - right) < 1e-13);
      CHECK(std::abs(*predict("by_position", inputs).tokens_per_round - right) < 1e-13);
      CHECK(std::abs(*predict("geometric_at_mean_alpha", inputs).tokens_per_round - right) < 1e-13);
      // L2 is too high by exactly 1 - a^k.
      CHECK(std::abs(*predict("geometric_plus_one", inputs).tokens_per_round - right - (1.0 - std::pow(alpha, length))) < 1e-13);
      const double faster = *predict("speedup_by_cost_ratio", inputs).speedup;
      CHECK(std::abs(faster - right / (1.0 + 0.2 * length)) < 1e-13);
      CHECK(std::abs(*predict("speedup_by_target_to_draft_ratio", inputs).speedup - faster) < 1e-13);
      CHECK(std::abs(*predict("speedup_by_position", inputs).speedup - faster) < 1e-13);
      CHECK(std::abs(*predict("speedup_equals_accepted", inputs).speedup - (right - 1.0)) < 1e-13);
      CHECK(*predict("speedup_without_draft_cost", inputs).speedup == right);
    }
  }
  CHECK(*predict("geometric_plus_one", constant(0.0, 5)).tokens_per_round == 2.0);
  // Draft length policies by hand, lengths up to 2: rounds of 0, 1, 2 drafts in shares .5, .25, .25; a chain of two states.
  CHECK(std::abs(*predict("oracle_lengths", constant(0.5, 2, 0.2)).speedup - 1.75 / 1.15) < 1e-15);
  const double long_share = 0.6 / (0.6 + 1.0 - 0.36);
  CHECK(std::abs(*predict("additive_lengths", constant(0.6, 2, 0.2)).tokens_per_round - (1.6 + 0.36 * long_share)) < 1e-14);
}

TEST_CASE("M4, L2, L3, A2: published figures", "[theory][closed_forms][claims]") {
  ClosedFormInputs unequal = constant(0.7, 2);
  unequal.alpha_by_position = {0.9, 0.5};
  CHECK(std::abs(*predict("by_position", unequal).tokens_per_round - 2.35) < 1e-14);
  CHECK(std::abs(*predict("geometric_at_mean_alpha", unequal).tokens_per_round - 2.19) < 1e-14);
  unequal.alpha_by_position = {0.5, 0.9};
  CHECK(std::abs(*predict("by_position", unequal).tokens_per_round - 1.95) < 1e-14);
  unequal.draft_length = 3;
  CHECK_THROWS_AS(predict("by_position", unequal), InvariantBroken);

  const ClosedFormInputs worked = constant(0.7, 5, 0.2);
  CHECK(std::abs(*predict("geometric_plus_one", worked).tokens_per_round - 3.7731) <= 0.5e-4 * (1 + 1e-9));
  CHECK(std::abs(*predict("speedup_geometric_plus_one", worked).speedup - 1.89) <= 0.5e-2);
  CHECK(std::abs(*predict("geometric", worked).tokens_per_round - 2.9412) <= 0.5e-4);
  CHECK(std::abs(*predict("speedup_by_cost_ratio", worked).speedup - 1.4706) <= 0.5e-4);
  CHECK(*predict("speedup_by_cost_ratio", worked).speedup < 1.5);
  CHECK(std::abs(*predict("geometric_without_bonus", constant(0.8, 4)).tokens_per_round - 2.952) < 1e-14);
  CHECK(std::abs(*predict("geometric", constant(0.8, 4)).tokens_per_round - 3.362) <= 0.5e-3);

  // A2 with arbitrary times: the rate times the target pass is the speedup at their ratio.
  ClosedFormInputs timed = constant(0.7, 5, 0.2);
  timed.draft_seconds = 0.006;
  timed.target_seconds = 0.030;
  CHECK(std::abs(*predict("tokens_per_second", timed).tokens_per_second * 0.030 -
                 *predict("speedup_by_cost_ratio", timed).speedup) < 1e-13);
  // A free draft in the inverse convention.
  CHECK(std::abs(*predict("speedup_by_target_to_draft_ratio", constant(0.7, 5, 0.0)).speedup -
                 *predict("geometric", constant(0.7, 5)).tokens_per_round) < 1e-15);
}

}  // namespace specsim::theory_closed_forms_test
