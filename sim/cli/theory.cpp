// specsim theory: closed forms at given parameters, or at what a server's log shows.
#include "sim/base/check.h"
#include "sim/base/output.h"
#include "sim/base/token.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/plan/acceptance_curve.h"
#include "sim/theory/closed_forms.h"
#include "sim/theory/requests.h"
#include "sim/theory/round_distribution.h"
#include "sim/theory/speedup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr int kLabel = 36;

void line(const std::string& label, const std::string& text) { print_output("{:<{}}{}\n", label, kLabel, text); }

std::vector<double> shares_by_position(const std::string& list, const std::string& option) {
  std::vector<double> values = read_shares(list, option);
  if (values.size() > static_cast<std::size_t>(kMaxDraftLength))
    throw BadInput({option, 0, 0}, fmt::format("{} numbers, allowed: at most {}", values.size(), kMaxDraftLength));
  return values;
}

// Acceptance by position: the last rate holds beyond the list.
std::vector<double> first_rates(const std::vector<double>& rates, int draft_length) {
  std::vector<double> first;
  for (int j = 0; j < draft_length; ++j)
    first.push_back(rates[std::min<std::size_t>(static_cast<std::size_t>(j), rates.size() - 1)]);
  return first;
}

std::string best_text(const theory::BestDraftLength& best) {
  if (best.draft_length == 0) return "do not speculate: no draft length beats 1";
  return fmt::format("{}{} (speedup {:.6f})", best.draft_length, best.draft_length == kMaxDraftLength ? " or more" : "",
                     best.speedup);
}

theory::BestDraftLength best_of(const std::vector<double>& rates, const theory::RatioCost& cost) {
  std::vector<double> tokens(kMaxDraftLength + 1);
  for (int k = 0; k <= kMaxDraftLength; ++k)
    tokens[static_cast<std::size_t>(k)] = theory::tokens_per_round(first_rates(rates, k));
  return theory::best_draft_length(std::span<const double>(tokens), cost);
}

void print_rates(const std::vector<double>& rates, int draft_length, const theory::RatioCost& cost) {
  const bool constant = std::all_of(rates.begin(), rates.end(), [&](double a) { return a == rates[0]; });
  const std::vector<double> own = first_rates(rates, draft_length);
  const theory::RoundDistribution distribution = theory::by_position(own);
  const double tokens = distribution.mean_emitted();
  line("tokens per round",
       fmt::format("{:.6f} (standard deviation {:.6f} from round to round)", tokens, std::sqrt(distribution.variance_emitted())));
  if (draft_length > 0) {
    std::string positions;
    for (int j = 1; j <= draft_length; ++j) positions += fmt::format("{}{:.3f}", j > 1 ? ", " : "", distribution.tail(j));
    line("as a server logs it", fmt::format("mean acceptance length {:.3f}, draft acceptance rate {:.1f} %", tokens,
                                            100.0 * distribution.mean_accepted() / draft_length));
    line("  per position", positions);
  }
  line("speedup", fmt::format("{:.6f}", draft_length > 0 ? theory::speedup(tokens, draft_length, cost) : 1.0));
  std::string shares;
  for (const double p : distribution.accepted) shares += fmt::format("{:.4f} ", p);
  line("distribution of accepted", shares);
  const theory::BestDraftLength best = best_of(rates, cost);
  line("best draft length", best_text(best));
  if (!constant) return;
  const double alpha = rates[0];
  if (best.draft_length > 0 && best.draft_length < kMaxDraftLength)
    if (const double optimum = theory::continuous_best_draft_length(alpha, cost); std::isfinite(optimum))
      line("  continuous optimum", fmt::format("{:.4f} by Lambert W", optimum));
    else
      line("  continuous optimum", "none: where a draft token costs nothing, each further one pays");
  if (draft_length > 0) {
    const auto even = theory::break_even_alpha(draft_length, cost);
    line("break-even alpha at this length", even ? fmt::format("{:.6f}", *even) : "none: it always loses");
  }
  const auto any = theory::break_even_alpha_any(cost, kMaxDraftLength);
  line("break-even alpha at the best length",
       any ? fmt::format("{:.6f} (draft length {})", any->alpha, any->draft_length) : "none: it always loses");
  if (draft_length > 0) {
    const theory::SpeedupSensitivity slope = theory::speedup_sensitivity(alpha, draft_length, cost);
    line("speedup changes by", fmt::format("{:+.4f} for each .01 of alpha, {:+.4f} for each .01 of cost ratio",
                                           0.01 * slope.by_alpha, 0.01 * slope.by_cost_ratio));
  }
}

struct Requests {
  std::vector<double> alphas;
  std::vector<double> weights;
};

Requests read_requests(const std::string& list) {
  Requests requests;
  for (const std::string& part : read_texts(list, "--requests")) {
    const std::size_t colon = part.find(':');
    requests.alphas.push_back(read_number(part.substr(0, colon), "--requests", config::between(0, 1)));
    requests.weights.push_back(
        colon == std::string::npos ? 1.0 : read_number(part.substr(colon + 1), "--requests", config::between(1e-6, 1e9)));
  }
  return requests;
}

// Requests of unequal alpha, each of the same length in tokens: the truth, and the figures that pooling gives instead.
void print_requests(const Requests& requests, int draft_length, const theory::RatioCost& cost) {
  const std::vector<double>& alphas = requests.alphas;
  const std::vector<double>& weights = requests.weights;
  double total = 0.0;
  for (const double w : weights) total += w;
  const auto mixture = [&](int length) {
    std::vector<theory::RequestType> types;
    for (std::size_t i = 0; i < alphas.size(); ++i) types.push_back({weights[i], theory::constant_alpha(alphas[i], length)});
    return theory::equal_tokens_limit(types);
  };
  print_output("\n{:<{}}{:>14}{:>12}  {}\n", "requests of equal length in tokens", kLabel, "tokens/round", "speedup",
               "best draft length");
  const auto row = [&](const std::string& label, double tokens, const std::string& best) {
    print_output("{:<{}}{:>14.6f}{:>12.6f}  {}\n", label, kLabel, tokens, theory::speedup(tokens, draft_length, cost), best);
  };
  double time_at_own_best = 0.0;
  for (std::size_t i = 0; i < alphas.size(); ++i) {
    const theory::BestDraftLength best = best_of({alphas[i]}, cost);
    time_at_own_best += weights[i] / total / best.speedup;
    row(fmt::format("  alpha {:g}, {:.0f} % of requests", alphas[i], 100.0 * weights[i] / total),
        theory::tokens_per_round(alphas[i], draft_length), best_text(best));
  }
  std::vector<double> tokens(kMaxDraftLength + 1, 1.0);
  for (int k = 1; k <= kMaxDraftLength; ++k) tokens[static_cast<std::size_t>(k)] = mixture(k);
  row("  together", mixture(draft_length), best_text(theory::best_draft_length(std::span<const double>(tokens), cost)));
  line("  together, each at its own best", fmt::format("{:>26.6f}", 1.0 / time_at_own_best));
  const theory::PoolingFigures pooled = theory::pooling_figures(alphas, weights, draft_length);
  print_output("what one pooled figure would say:\n");
  row(fmt::format("  formula at the mean alpha {:.4f}", pooled.mean_alpha), pooled.at_mean_alpha, "");
  row(fmt::format("  formula at the logged alpha {:.4f}", pooled.pooled_alpha), pooled.at_pooled_alpha, "");
  row("  equally many rounds each", pooled.equal_rounds, "");
}

void print_forms(const std::vector<std::string>& wanted, const std::vector<double>& rates, int draft_length, double cost_ratio) {
  theory::ClosedFormInputs inputs;
  inputs.alpha = rates[0];
  inputs.alpha_by_position = first_rates(rates, draft_length);
  inputs.draft_length = draft_length;
  inputs.cost_ratio = cost_ratio;
  inputs.target_seconds = 1.0;
  inputs.draft_seconds = cost_ratio;
  print_output("\n");
  for (const theory::ClosedForm& form : theory::closed_forms()) {
    if (std::find(wanted.begin(), wanted.end(), "all") == wanted.end() &&
        std::find(wanted.begin(), wanted.end(), form.name) == wanted.end())
      continue;
    theory::ClosedFormPrediction answer;
    try {
      answer = form.evaluate(inputs);
    } catch (const InvariantBroken&) {  // defined from some draft length on
      line(form.name, "not defined here");
      continue;
    }
    std::string text;
    if (answer.tokens_per_round) text += fmt::format("tokens per round {:.6f}  ", *answer.tokens_per_round);
    if (answer.speedup) text += fmt::format("speedup {:.6f}  ", *answer.speedup);
    if (answer.tokens_per_second) text += fmt::format("{:.6f} tokens per target pass  ", *answer.tokens_per_second);
    line(form.name, fmt::format("{}{}{}", text, form.formula, form.known_wrong ? "  [known to be wrong]" : ""));
  }
}

// A draft pass / a target pass, as either option gives it.
double cost_ratio_of(const po::variables_map& values) {
  if (values.count("cost-ratio") > 0 && values.count("target-to-draft-ratio") > 0)
    throw BadInput({"--cost-ratio", 0, 0}, "given together with --target-to-draft-ratio, allowed: one of them");
  if (values.count("target-to-draft-ratio") > 0)
    return 1.0 /
           read_number(values["target-to-draft-ratio"].as<std::string>(), "--target-to-draft-ratio", config::between(1e-6, 1e9));
  if (values.count("cost-ratio") == 0) return 0.05;
  return read_number(values["cost-ratio"].as<std::string>(), "--cost-ratio", config::between(0, 1e6));
}

}  // namespace

ExitCode theory_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("alpha", po::value<std::string>(), "acceptance at a position that is reached (conditional), 0 to 1")(
      "alphas", po::value<std::string>(), "A1,A2,...: the same by position, conditional on being reached; the last holds beyond")(
      "position-rates", po::value<std::string>(),
      "R1,R2,...: by position as vLLM and llama.cpp log them: share of rounds that accepted it")(
      "acceptance-rate", po::value<std::string>(),
      "accepted / drafted tokens (0.62 or 62%) where every round drafts --draft-length")(
      "mean-acceptance-length", po::value<std::string>(), "accepted + 1 per round at --draft-length, as logs show it")(
      "requests", po::value<std::string>(),
      "A1[:W1],A2[:W2],...: kinds of requests by alpha and weight; what pooling them hides")(
      "draft-length", text("4"), "tokens drafted per round (num_speculative_tokens)")("cost-ratio", po::value<std::string>(),
                                                                                      "draft pass / target pass (default 0.05)")(
      "target-to-draft-ratio", po::value<std::string>(), "its inverse, instead")(
      "verify-inflation", text("1"), "target pass over draft_length + 1 tokens / over one")(
      "overhead", text("0"), "host time of a round, in target passes")(
      "form", po::value<std::vector<std::string>>()->composing(),
      "also this closed form, by name (specsim list closed_form); all: every one");
  po::variables_map values;
  if (!parse(arguments, options, "", "specsim theory ACCEPTANCE [--draft-length K] [--cost-ratio C]",
             "  specsim theory --alpha 0.7 --draft-length 5 --cost-ratio 0.2\n"
             "  specsim theory --acceptance-rate 0.62 --draft-length 5 --cost-ratio 0.08\n"
             "  specsim theory --alphas 0.79,0.74,0.72,0.73,0.67 --draft-length 5\n"
             "  specsim theory --requests 0.9:1,0.5:1 --draft-length 5 --cost-ratio 0.08\n"
             "  specsim theory --alpha 0.9 --target-to-draft-ratio 50 --form all\n",
             values))
    return ExitCode::fine;
  const auto number = [&](const char* option, const config::Interval& interval) {
    return read_number(values[option].as<std::string>(), fmt::format("--{}", option), interval);
  };
  const auto draft_length = static_cast<int>(
      read_integer(values["draft-length"].as<std::string>(), "--draft-length", config::between(0, kMaxDraftLength)));
  const theory::RatioCost cost{cost_ratio_of(values), number("verify-inflation", config::between(1e-6, 1e6)),
                               number("overhead", config::between(0, 1e6))};
  std::vector<std::string> wanted;
  if (values.count("form") > 0) wanted = values["form"].as<std::vector<std::string>>();
  for (const std::string& name : wanted) {
    if (name == "all" || theory::find_closed_form(name) != nullptr) continue;
    std::vector<std::string> names = {"all"};
    for (const theory::ClosedForm& form : theory::closed_forms()) names.push_back(form.name);
    throw BadInput({"--form", 0, 0}, fmt::format("unknown closed form \"{}\"{} allowed: {}", name, did_you_mean(name, names),
                                                 fmt::join(names, ", ")));
  }

  std::vector<double> rates;
  std::string heading;
  int given = 0;
  const auto has = [&](const char* name) { return values.count(name) > 0; };
  for (const char* name : {"alpha", "alphas", "position-rates", "acceptance-rate", "mean-acceptance-length"})
    given += has(name) ? 1 : 0;
  if (given > 1 || (given == 0 && !has("requests")))
    throw BadInput({"specsim theory", 0, 0},
                   fmt::format("{} ways of giving acceptance, allowed: one of --alpha, --alphas, --position-rates, "
                               "--acceptance-rate, --mean-acceptance-length, or --requests",
                               given));
  if (given == 0 && !wanted.empty())
    throw BadInput({"--form", 0, 0}, "given with --requests alone, allowed: with --alpha or another acceptance");
  if (has("requests") && draft_length == 0) throw BadInput({"--draft-length", 0, 0}, "0 with --requests, allowed: at least 1");
  std::optional<Requests> requests;  // read before anything is printed, so that what is refused prints nothing
  if (has("requests")) requests = read_requests(values["requests"].as<std::string>());
  if (has("alpha")) {
    const double alpha = read_share(values["alpha"].as<std::string>(), "--alpha");
    rates = {alpha};
    heading = fmt::format("alpha {:g}", alpha);
  } else if (has("alphas")) {
    rates = shares_by_position(values["alphas"].as<std::string>(), "--alphas");
    heading = fmt::format("alpha by position {:g}", fmt::join(rates, ", "));
  } else if (has("position-rates")) {
    rates = plan::conditional_rates(shares_by_position(values["position-rates"].as<std::string>(), "--position-rates"),
                                    {"--position-rates", 0, 0});
    heading = fmt::format("alpha by position {:.4g}", fmt::join(rates, ", "));
  } else if (has("acceptance-rate") || has("mean-acceptance-length")) {
    if (draft_length == 0)
      throw BadInput({"--draft-length", 0, 0}, "0, allowed: the draft length at which the figure was logged");
    const double length = has("acceptance-rate")
                              ? 1.0 + draft_length * read_share(values["acceptance-rate"].as<std::string>(), "--acceptance-rate")
                              : number("mean-acceptance-length", config::between(1, draft_length + 1));
    rates = {plan::equivalent_alpha(length, draft_length)};
    heading = fmt::format("alpha {:.6g}, if it is the same at every position", rates[0]);
  }
  if (!rates.empty()) {
    print_output("{}, draft length {}, cost ratio {:g}\n", heading, draft_length, cost.cost_ratio);
    if (has("acceptance-rate") || has("mean-acceptance-length"))
      print_output(
          "(only if every round drafted {0} tokens. Where drafts are cut short - llama.cpp's p-min, a policy, n-grams that find "
          "nothing, the end of a request - the figure is one of shorter drafts and alpha is lower: take the mean number of "
          "drafted "
          "tokens per round as --draft-length, or rates by position)\n",
          draft_length);
    print_output("\n");
    print_rates(rates, draft_length, cost);
  }
  if (requests) print_requests(*requests, draft_length, cost);
  if (!wanted.empty()) print_forms(wanted, rates, draft_length, cost.cost_ratio);
  return ExitCode::fine;
}

}  // namespace specsim::cli
