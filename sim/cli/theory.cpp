// specsim theory: closed forms at given parameters.
#include "sim/cli/command.h"
#include "sim/cli/options.h"
#include "sim/theory/closed_forms.h"
#include "sim/theory/requests.h"
#include "sim/theory/round_law.h"
#include "sim/theory/speedup.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

// Requests of unequal alpha, each of the same length: the truth, and the figures that pooling gives instead.
void print_pooling(const std::string& list, int draft_length) {
  std::vector<double> alphas;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    alphas.push_back(std::strtod(part.c_str(), &end));
    if (part.empty() || *end != '\0' || !(alphas.back() >= 0.0 && alphas.back() <= 1.0))
      throw BadInput({"--requests", 0, 0}, fmt::format("\"{}\", allowed: numbers in [0, 1] with commas between", part));
  }
  if (alphas.empty()) throw BadInput({"--requests", 0, 0}, "is empty, allowed: numbers in [0, 1] with commas between");
  const std::vector<double> weights(alphas.size(), 1.0);
  const theory::PoolingFigures pooled = theory::pooling_figures(alphas, weights, draft_length);
  fmt::print("\nrequests at alpha {}, draft length {}: tokens per round\n", fmt::join(alphas, ", "), draft_length);
  fmt::print("{:<36}{:.6f}\n", "  equally many tokens each (truth)", pooled.equal_tokens);
  fmt::print("{:<36}{:.6f}\n", "  equally many rounds each", pooled.equal_rounds);
  fmt::print("{:<36}{:.6f} (alpha {:.6f})\n", "  formula at the mean alpha", pooled.at_mean_alpha, pooled.mean_alpha);
  fmt::print("{:<36}{:.6f} (alpha {:.6f})\n", "  formula at the logged alpha", pooled.at_pooled_alpha, pooled.pooled_alpha);
}

}  // namespace

int theory_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("alpha", po::value<double>()->required(), "acceptance at a position that is reached, 0 to 1")(
      "draft-length", po::value<int>()->default_value(4), "tokens drafted per round")(
      "cost-ratio", po::value<double>(), "draft pass / target pass (default 0.05)")(
      "target-to-draft-ratio", po::value<double>(), "its inverse, instead")("verify-inflation", po::value<double>()->default_value(1.0), "target pass over draft_length + 1 tokens / over one")(
      "overhead", po::value<double>()->default_value(0.0), "host time of a round, in target passes")(
      "requests", po::value<std::string>(), "A1,A2,...: several requests' alphas; shows what one pooled figure hides")("form", po::value<std::vector<std::string>>()->composing(), "also this closed form, by name (specsim list closed_form); all: every one");
  po::variables_map values;
  if (!parse(arguments, options, "", "specsim theory --alpha A [--draft-length K] [--cost-ratio C]",
             "  specsim theory --alpha 0.7 --draft-length 5 --cost-ratio 0.2\n  specsim theory --alpha 0.9 --target-to-draft-ratio 50 --form all\n  specsim theory --alpha 0.7 --requests 0.5,0.9\n", values))
    return 0;
  const double alpha = values["alpha"].as<double>();
  const int draft_length = values["draft-length"].as<int>();
  if (values.count("cost-ratio") > 0 && values.count("target-to-draft-ratio") > 0)
    throw BadInput({"--cost-ratio", 0, 0}, "given together with --target-to-draft-ratio, allowed: one of them");
  const double cost_ratio = values.count("target-to-draft-ratio") > 0 ? 1.0 / values["target-to-draft-ratio"].as<double>()
                            : values.count("cost-ratio") > 0          ? values["cost-ratio"].as<double>()
                                                                      : 0.05;
  if (values.count("target-to-draft-ratio") > 0 && !(values["target-to-draft-ratio"].as<double>() > 0.0))
    throw BadInput({"--target-to-draft-ratio", 0, 0}, fmt::format("{}, allowed: above 0", values["target-to-draft-ratio"].as<double>()));
  const theory::RatioCost cost{cost_ratio, values["verify-inflation"].as<double>(), values["overhead"].as<double>()};
  if (!(alpha >= 0.0 && alpha <= 1.0)) throw BadInput({"--alpha", 0, 0}, fmt::format("{}, allowed: a number in [0, 1]", alpha));
  if (draft_length < 0 || draft_length > kMaxDraftLength) throw BadInput({"--draft-length", 0, 0}, fmt::format("{}, allowed: 0 to {}", draft_length, kMaxDraftLength));
  if (!(cost_ratio >= 0.0) || std::isinf(cost_ratio)) throw BadInput({"--cost-ratio", 0, 0}, fmt::format("{}, allowed: at least 0", cost_ratio));
  if (!(cost.verify_inflation > 0.0) || std::isinf(cost.verify_inflation)) throw BadInput({"--verify-inflation", 0, 0}, fmt::format("{}, allowed: above 0", cost.verify_inflation));
  if (!(cost.overhead >= 0.0) || std::isinf(cost.overhead)) throw BadInput({"--overhead", 0, 0}, fmt::format("{}, allowed: at least 0", cost.overhead));

  std::vector<std::string> wanted;
  if (values.count("form") > 0) wanted = values["form"].as<std::vector<std::string>>();
  for (const std::string& name : wanted) {
    if (name == "all" || theory::find_closed_form(name) != nullptr) continue;
    std::vector<std::string> names = {"all"};
    for (const theory::ClosedForm& form : theory::closed_forms()) names.push_back(form.name);
    const std::string near = nearest_name(name, names);
    throw BadInput({"--form", 0, 0}, fmt::format("unknown closed form \"{}\"{} allowed: {}", name, near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near), fmt::join(names, ", ")));
  }

  const theory::RoundLaw law = theory::constant_alpha(alpha, draft_length);
  fmt::print("alpha {:g}, draft length {}, cost ratio {:g}\n\n", alpha, draft_length, cost_ratio);
  fmt::print("{:<36}{:.6f} (standard deviation {:.6f} per round)\n", "tokens per round", law.mean_emitted(), std::sqrt(law.variance_emitted()));
  fmt::print("{:<36}{:.6f}\n", "speedup", draft_length > 0 ? theory::constant_alpha_speedup(alpha, draft_length, cost) : 1.0);
  fmt::print("{:<36}", "law of accepted");
  for (const double p : law.accepted) fmt::print("{:.4f} ", p);
  fmt::print("\n");
  const theory::BestDraftLength best = theory::best_draft_length(alpha, cost);
  if (best.draft_length == 0)
    fmt::print("{:<36}do not speculate: no draft length beats 1\n", "best draft length");
  else
    fmt::print("{:<36}{} (speedup {:.6f}; continuous optimum {:.4f} by Lambert W)\n", "best draft length", best.draft_length, best.speedup,
               theory::continuous_best_draft_length(alpha, cost));
  if (draft_length > 0) {
    const auto even = theory::break_even_alpha(draft_length, cost);
    fmt::print("{:<36}{}\n", "break-even alpha at this length", even ? fmt::format("{:.6f}", *even) : "none: it always loses");
  }
  const auto any = theory::break_even_alpha_any(cost);
  fmt::print("{:<36}{}\n", "break-even alpha at the best length", any ? fmt::format("{:.6f} (draft length {})", any->alpha, any->draft_length) : "none: it always loses");

  if (draft_length > 0) {
    const theory::SpeedupSensitivity slope = theory::speedup_sensitivity(alpha, draft_length, cost);
    fmt::print("{:<36}{:+.4f} for each .01 of alpha, {:+.4f} for each .01 of cost ratio\n", "speedup changes by", 0.01 * slope.by_alpha,
               0.01 * slope.by_cost_ratio);
  }
  if (values.count("requests") > 0) print_pooling(values["requests"].as<std::string>(), draft_length);

  if (!wanted.empty()) {
    theory::ClosedFormInputs inputs;
    inputs.alpha = alpha;
    inputs.alpha_by_position.assign(static_cast<std::size_t>(draft_length), alpha);
    inputs.draft_length = draft_length;
    inputs.cost_ratio = cost_ratio;
    inputs.target_seconds = 1.0;
    inputs.draft_seconds = cost_ratio;
    fmt::print("\n");
    for (const theory::ClosedForm& form : theory::closed_forms()) {
      if (std::find(wanted.begin(), wanted.end(), "all") == wanted.end() && std::find(wanted.begin(), wanted.end(), form.name) == wanted.end()) continue;
      fmt::print("{:<36}", form.name);
      theory::ClosedFormPrediction answer;
      try {
        answer = form.evaluate(inputs);
      } catch (const InvariantBroken&) {
        fmt::print("not defined here  ");
      }
      if (answer.tokens_per_round) fmt::print("tokens per round {:.6f}  ", *answer.tokens_per_round);
      if (answer.speedup) fmt::print("speedup {:.6f}  ", *answer.speedup);
      if (answer.tokens_per_second) fmt::print("{:.6f} tokens per target pass  ", *answer.tokens_per_second);
      fmt::print("{}{}\n", form.formula, form.known_wrong ? "  [known to be wrong]" : "");
    }
  }
  return 0;
}

}  // namespace specsim::cli
