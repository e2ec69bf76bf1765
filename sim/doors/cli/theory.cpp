// specsim theory: closed forms at given parameters, or at what a server's log shows.
#include "sim/answers/plan/acceptance_curve.h"
#include "sim/answers/plan/closed_form_answers.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/table.h"
#include "sim/rounds/theory/closed_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using report::Align;

// What the options say of acceptance: alpha by position, given that it is reached. No rates: there is --requests alone.
struct StatedRates {
  std::vector<double> rates;
  std::string heading;
  bool from_one_figure = false;  // the rates follow from one figure of a log, over all positions
};

std::vector<double> shares_by_position(const std::string& list, const std::string& option) {
  std::vector<double> values = read_shares(list, option);
  if (values.size() > static_cast<std::size_t>(kMaxDraftLength))
    throw BadInput({option, 0, 0}, fmt::format("{} numbers, allowed: at most {}", values.size(), kMaxDraftLength));
  return values;
}

// Throws BadInput unless acceptance is stated in one way, or not at all beside --requests.
void check_one_way(const Options& options) {
  int given = 0;
  for (const char* name : {"alpha", "alphas", "position-rates", "acceptance-rate", "mean-acceptance-length"})
    given += options.has(name) ? 1 : 0;
  if (given > 1 || (given == 0 && !options.has("requests")))
    throw BadInput({"specsim theory", 0, 0},
                   fmt::format("{} ways of giving acceptance, allowed: one of --alpha, --alphas, --position-rates, "
                               "--acceptance-rate, --mean-acceptance-length, or --requests",
                               given));
}

double number_of(const Options& options, const char* option, const config::Interval& interval) {
  return read_number(options.text(option), fmt::format("--{}", option), interval);
}

// Rates that follow from the acceptance rate or the mean acceptance length at `draft_length`.
StatedRates rates_of_one_figure(const Options& options, int draft_length) {
  if (draft_length == 0) throw BadInput({"--draft-length", 0, 0}, "0, allowed: the draft length at which the figure was logged");
  const double length = options.has("acceptance-rate")
                            ? 1.0 + draft_length * read_share(options.text("acceptance-rate"), "--acceptance-rate")
                            : number_of(options, "mean-acceptance-length", config::between(1, draft_length + 1));
  const double alpha = plan::equivalent_alpha(length, draft_length);
  return {{alpha}, fmt::format("alpha {:.6g}, if it is the same at every position", alpha), true};
}

StatedRates read_rates(const Options& options, int draft_length) {
  check_one_way(options);
  if (options.has("alpha")) {
    const double alpha = read_share(options.text("alpha"), "--alpha");
    return {{alpha}, fmt::format("alpha {:g}", alpha), false};
  }
  if (options.has("alphas")) {
    const std::vector<double> rates = shares_by_position(options.text("alphas"), "--alphas");
    return {rates, fmt::format("alpha by position {:g}", fmt::join(rates, ", ")), false};
  }
  if (options.has("position-rates")) {
    const std::vector<double> rates = plan::conditional_rates(
        shares_by_position(options.text("position-rates"), "--position-rates"), {"--position-rates", 0, 0});
    return {rates, fmt::format("alpha by position {:.4g}", fmt::join(rates, ", ")), false};
  }
  if (options.has("acceptance-rate") || options.has("mean-acceptance-length")) return rates_of_one_figure(options, draft_length);
  return {};
}

// A draft pass / a target pass, as either option gives it.
double cost_ratio_of(const Options& options) {
  if (options.has("cost-ratio") && options.has("target-to-draft-ratio"))
    throw BadInput({"--cost-ratio", 0, 0}, "given together with --target-to-draft-ratio, allowed: one of them");
  if (options.has("target-to-draft-ratio")) return 1.0 / number_of(options, "target-to-draft-ratio", config::between(1e-6, 1e9));
  return options.has("cost-ratio") ? number_of(options, "cost-ratio", config::between(0, 1e6)) : 0.05;
}

// The closed forms that --form names.
std::vector<const theory::ClosedForm*> read_forms(const Options& options) {
  const std::vector<std::string> wanted = options.texts("form");
  std::vector<std::string> names = {"all"};
  for (const theory::ClosedForm& form : theory::closed_forms()) names.push_back(form.name);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw BadInput({"--form", 0, 0}, config::unknown_name("unknown closed form", name, names));
  const auto asked = [&](const std::string& name) { return std::find(wanted.begin(), wanted.end(), name) != wanted.end(); };
  std::vector<const theory::ClosedForm*> forms;
  for (const theory::ClosedForm& form : theory::closed_forms())
    if (asked("all") || asked(form.name)) forms.push_back(&form);
  return forms;
}

std::string best_text(const theory::BestDraftLength& best) {
  if (best.draft_length == 0) return "do not speculate: no draft length beats 1";
  return fmt::format("{}{} (speedup {:.6f})", best.draft_length, best.draft_length == kMaxDraftLength ? " or more" : "",
                     best.speedup);
}

// Lines of a label and what belongs to it.
report::Table labelled_lines() { return report::Table({{"", Align::left}, {"", Align::left}}, {.headless = true}); }
void print_rates(const StatedRates& stated, int draft_length, const theory::RatioCost& cost) {
  print_output("{}, draft length {}, cost ratio {:g}\n", stated.heading, draft_length, cost.cost_ratio);
  if (stated.from_one_figure)
    print_output(
        "(only if every round drafted {0} tokens. Where drafts are cut short - llama.cpp's p-min, a policy, n-grams that find "
        "nothing, the end of a request - the figure is one of shorter drafts and alpha is lower: take the mean number of drafted "
        "tokens per round as --draft-length, or rates by position)\n",
        draft_length);
  const plan::RateAnswers answers = plan::answers_at(stated.rates, draft_length, cost);
  const theory::RoundDistribution& distribution = answers.distribution;
  const double tokens = distribution.mean_emitted();
  report::Table table = labelled_lines();
  table.add({"tokens per round", fmt::format("{:.6f} (standard deviation {:.6f} from round to round)", tokens,
                                             std::sqrt(distribution.variance_emitted()))});
  if (draft_length > 0) {
    table.add({"as a server logs it", fmt::format("mean acceptance length {:.3f}, draft acceptance rate {:.1f} %", tokens,
                                                  100.0 * distribution.mean_accepted() / draft_length)});
    std::vector<double> positions;
    for (int j = 1; j <= draft_length; ++j) positions.push_back(distribution.tail(j));
    table.add({"  per position", fmt::format("{:.3f}", fmt::join(positions, ", "))});
  }
  table.add({"speedup", fmt::format("{:.6f}", answers.speedup)});
  table.add({"distribution of accepted", fmt::format("{:.4f}", fmt::join(distribution.accepted, " "))});
  table.add({"best draft length", best_text(answers.best)});
  if (answers.continuous_best)
    table.add({"  continuous optimum", std::isfinite(*answers.continuous_best)
                                           ? fmt::format("{:.4f} by Lambert W", *answers.continuous_best)
                                           : "none: where a draft token costs nothing, each further one pays"});
  const char* const never = "none: it always loses";
  if (answers.constant && draft_length > 0)
    table.add({"break-even alpha at this length", answers.break_even ? fmt::format("{:.6f}", *answers.break_even) : never});
  const auto& any = answers.break_even_at_best;
  if (answers.constant)
    table.add({"break-even alpha at the best length",
               any ? fmt::format("{:.6f} (draft length {})", any->alpha, any->draft_length) : never});
  if (answers.slope)
    table.add({"speedup changes by", fmt::format("{:+.4f} for each .01 of alpha, {:+.4f} for each .01 of cost ratio",
                                                 0.01 * answers.slope->by_alpha, 0.01 * answers.slope->by_cost_ratio)});
  print_output("\n");
  print_table(table);
}

struct Requests {
  std::vector<double> alphas;
  std::vector<double> weights;
};

Requests read_requests(const Options& options, int draft_length) {
  if (draft_length == 0) throw BadInput({"--draft-length", 0, 0}, "0 with --requests, allowed: at least 1");
  Requests requests;
  for (const std::string& part : read_texts(options.text("requests"), "--requests")) {
    const std::size_t colon = part.find(':');
    requests.alphas.push_back(read_number(part.substr(0, colon), "--requests", config::between(0, 1)));
    requests.weights.push_back(
        colon == std::string::npos ? 1.0 : read_number(part.substr(colon + 1), "--requests", config::between(1e-6, 1e9)));
  }
  return requests;
}

// Requests of unequal alpha, each of the same length in tokens: the truth, and the figures that pooling gives instead.
void print_requests(const Requests& requests, int draft_length, const theory::RatioCost& cost) {
  const plan::RequestAnswers answers = plan::answers_of_requests(requests.alphas, requests.weights, draft_length, cost);
  report::Table table(
      {{"requests of equal length in tokens", Align::left}, {"tokens/round"}, {"speedup"}, {"best draft length", Align::left}});
  const auto row = [&](const std::string& label, double tokens, const std::string& best) {
    table.add({label, fmt::format("{:.6f}", tokens), fmt::format("{:.6f}", theory::speedup(tokens, draft_length, cost)), best});
  };
  for (const plan::RequestKind& kind : answers.kinds)
    row(fmt::format("  alpha {:g}, {:.0f} % of requests", kind.alpha, 100.0 * kind.share), kind.tokens_per_round,
        best_text(kind.best));
  row("  together", answers.tokens_per_round, best_text(answers.best));
  table.add({"  together, each at its own best", "", fmt::format("{:.6f}", answers.speedup_at_own_best)});
  table.add({"what one pooled figure would say:"});
  row(fmt::format("  formula at the mean alpha {:.4f}", answers.pooled.mean_alpha), answers.pooled.at_mean_alpha, "");
  row(fmt::format("  formula at the logged alpha {:.4f}", answers.pooled.pooled_alpha), answers.pooled.at_pooled_alpha, "");
  row("  equally many rounds each", answers.pooled.equal_rounds, "");
  print_output("\n");
  print_table(table);
}

void print_forms(const std::vector<const theory::ClosedForm*>& forms, const std::vector<double>& rates, int draft_length,
                 double cost_ratio) {
  report::Table table = labelled_lines();
  for (const theory::ClosedForm* form : forms) {
    const std::optional<theory::ClosedFormPrediction> answer = plan::answer_of(*form, rates, draft_length, cost_ratio);
    if (!answer) {
      table.add({form->name, "not defined here"});
      continue;
    }
    std::string text;
    if (answer->tokens_per_round) text += fmt::format("tokens per round {:.6f}  ", *answer->tokens_per_round);
    if (answer->speedup) text += fmt::format("speedup {:.6f}  ", *answer->speedup);
    if (answer->tokens_per_second) text += fmt::format("{:.6f} tokens per target pass  ", *answer->tokens_per_second);
    table.add({form->name, fmt::format("{}{}{}", text, form->formula, form->known_wrong ? "  [known to be wrong]" : "")});
  }
  print_output("\n");
  print_table(table);
}

void add_theory_options(po::options_description& options) {
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
}

constexpr const char* kTheoryExamples =
    "  specsim theory --alpha 0.7 --draft-length 5 --cost-ratio 0.2\n"
    "  specsim theory --acceptance-rate 0.62 --draft-length 5 --cost-ratio 0.08\n"
    "  specsim theory --alphas 0.79,0.74,0.72,0.73,0.67 --draft-length 5\n"
    "  specsim theory --requests 0.9:1,0.5:1 --draft-length 5 --cost-ratio 0.08\n"
    "  specsim theory --alpha 0.9 --target-to-draft-ratio 50 --form all\n";

}  // namespace

ExitCode theory_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  add_theory_options(description);
  po::variables_map values;
  if (!parse(arguments, description, "", "specsim theory ACCEPTANCE [--draft-length K] [--cost-ratio C]", kTheoryExamples,
             values))
    return ExitCode::fine;
  const Options options(values);
  const auto draft_length =
      static_cast<int>(read_integer(options.text("draft-length"), "--draft-length", config::between(0, kMaxDraftLength)));
  const theory::RatioCost cost{cost_ratio_of(options), number_of(options, "verify-inflation", config::between(1e-6, 1e6)),
                               number_of(options, "overhead", config::between(0, 1e6))};
  const std::vector<const theory::ClosedForm*> forms = read_forms(options);
  const StatedRates stated = read_rates(options, draft_length);
  if (!forms.empty() && stated.rates.empty())
    throw BadInput({"--form", 0, 0}, "given with --requests alone, allowed: with --alpha or another acceptance");
  std::optional<Requests> requests;  // read before anything is printed, so that what is refused prints nothing
  if (options.has("requests")) requests = read_requests(options, draft_length);
  if (!stated.rates.empty()) print_rates(stated, draft_length, cost);
  if (requests) print_requests(*requests, draft_length, cost);
  if (!forms.empty()) print_forms(forms, stated.rates, draft_length, cost.cost_ratio);
  return ExitCode::fine;
}

}  // namespace specsim::cli
