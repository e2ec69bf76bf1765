// specsim theory: closed forms at given parameters.
#include "sim/cli/command.h"
#include "sim/cli/options.h"
#include "sim/theory/closed_forms.h"
#include "sim/theory/round_law.h"
#include "sim/theory/speedup.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace specsim::cli {

namespace po = boost::program_options;

int theory_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("alpha", po::value<double>()->required(), "acceptance at a position that is reached, 0 to 1")(
      "draft-length", po::value<int>()->default_value(4), "tokens drafted per round")(
      "cost-ratio", po::value<double>(), "draft pass / target pass (default 0.05)")(
      "target-to-draft-ratio", po::value<double>(), "its inverse, instead")("verify-inflation", po::value<double>()->default_value(1.0), "target pass over draft_length + 1 tokens / over one")(
      "overhead", po::value<double>()->default_value(0.0), "host time of a round, in target passes")("form", po::value<std::vector<std::string>>()->composing(), "also this closed form, by name (specsim list closed_form); all: every one");
  po::variables_map values;
  if (!parse(arguments, options, "", "specsim theory --alpha A [--draft-length K] [--cost-ratio C]",
             "  specsim theory --alpha 0.7 --draft-length 5 --cost-ratio 0.2\n  specsim theory --alpha 0.9 --target-to-draft-ratio 50 --form all\n", values))
    return 0;
  const double alpha = values["alpha"].as<double>();
  const int draft_length = values["draft-length"].as<int>();
  if (values.count("cost-ratio") > 0 && values.count("target-to-draft-ratio") > 0)
    throw BadInput({"--cost-ratio", 0, 0}, "given together with --target-to-draft-ratio, allowed: one of them");
  const double cost_ratio = values.count("target-to-draft-ratio") > 0 ? 1.0 / values["target-to-draft-ratio"].as<double>()
                            : values.count("cost-ratio") > 0          ? values["cost-ratio"].as<double>()
                                                                      : 0.05;
  const theory::RatioCost cost{cost_ratio, values["verify-inflation"].as<double>(), values["overhead"].as<double>()};
  if (!(alpha >= 0.0 && alpha <= 1.0)) throw BadInput({"--alpha", 0, 0}, fmt::format("{}, allowed: a number in [0, 1]", alpha));
  if (draft_length < 0 || draft_length > kMaxDraftLength) throw BadInput({"--draft-length", 0, 0}, fmt::format("{}, allowed: 0 to {}", draft_length, kMaxDraftLength));
  if (!(cost_ratio >= 0.0) || std::isinf(cost_ratio)) throw BadInput({"--cost-ratio", 0, 0}, fmt::format("{}, allowed: at least 0", cost_ratio));
  if (!(cost.verify_inflation > 0.0) || !(cost.overhead >= 0.0)) throw BadInput({"--verify-inflation", 0, 0}, "allowed: above 0, with --overhead at least 0");

  const theory::RoundLaw law = theory::constant_alpha(alpha, draft_length);
  fmt::print("alpha {:g}, draft length {}, cost ratio {:g}\n\n", alpha, draft_length, cost_ratio);
  fmt::print("{:<34}{:.6f} (standard deviation {:.6f} per round)\n", "tokens per round", law.mean_emitted(), std::sqrt(law.variance_emitted()));
  fmt::print("{:<34}{:.6f}\n", "speedup", draft_length > 0 ? theory::constant_alpha_speedup(alpha, draft_length, cost) : 1.0);
  fmt::print("{:<34}", "law of accepted");
  for (const double p : law.accepted) fmt::print("{:.4f} ", p);
  fmt::print("\n");
  const theory::BestDraftLength best = theory::best_draft_length(alpha, cost);
  if (best.draft_length == 0)
    fmt::print("{:<34}do not speculate: no draft length beats 1\n", "best draft length");
  else
    fmt::print("{:<34}{} (speedup {:.6f}; continuous optimum {:.4f} by Lambert W)\n", "best draft length", best.draft_length, best.speedup,
               theory::continuous_best_draft_length(alpha, cost));
  if (draft_length > 0) {
    const auto even = theory::break_even_alpha(draft_length, cost);
    fmt::print("{:<34}{}\n", "break-even alpha at this length", even ? fmt::format("{:.6f}", *even) : "none: it always loses");
  }
  const auto any = theory::break_even_alpha_any(cost);
  fmt::print("{:<34}{}\n", "break-even alpha at the best length", any ? fmt::format("{:.6f} (draft length {})", any->alpha, any->draft_length) : "none: it always loses");

  if (values.count("form") > 0) {
    theory::ClosedFormInputs inputs;
    inputs.alpha = alpha;
    inputs.alpha_by_position.assign(static_cast<std::size_t>(draft_length), alpha);
    inputs.draft_length = draft_length;
    inputs.cost_ratio = cost_ratio;
    inputs.target_seconds = 1.0;
    inputs.draft_seconds = cost_ratio;
    const std::vector<std::string> wanted = values["form"].as<std::vector<std::string>>();
    fmt::print("\n");
    for (const std::string& name : wanted)
      if (name != "all" && theory::find_closed_form(name) == nullptr)
        throw BadInput({"--form", 0, 0}, fmt::format("unknown closed form \"{}\", allowed: what specsim list closed_form prints, or all", name));
    for (const theory::ClosedForm& form : theory::closed_forms()) {
      if (std::find(wanted.begin(), wanted.end(), "all") == wanted.end() && std::find(wanted.begin(), wanted.end(), form.name) == wanted.end()) continue;
      const theory::ClosedFormPrediction answer = form.evaluate(inputs);
      fmt::print("{:<34}", form.name);
      if (answer.tokens_per_round) fmt::print("tokens per round {:.6f}  ", *answer.tokens_per_round);
      if (answer.speedup) fmt::print("speedup {:.6f}  ", *answer.speedup);
      if (answer.tokens_per_second) fmt::print("{:.6f} tokens per target pass  ", *answer.tokens_per_second);
      fmt::print("{}{}\n", form.formula, form.known_wrong ? "  [known to be wrong]" : "");
    }
  }
  return 0;
}

}  // namespace specsim::cli
