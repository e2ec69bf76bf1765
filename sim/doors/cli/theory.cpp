// specsim theory: closed forms at given parameters, or at figures from a server's log.
#include "sim/answers/plan/acceptance_curve.h"
#include "sim/answers/plan/closed_form_answers.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
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

namespace {

using report::Align;

// The acceptance that options state: alpha by position, given that it is reached. No rates: only --requests is given.
struct StatedRates {
  std::vector<double> rates;
  std::string heading;
  bool from_one_figure = false;  // the rates follow from one figure of a log for all positions
};

struct Requests {
  std::vector<double> alphas;
  std::vector<double> weights;
};

Requests read_requests(const std::string& list, const std::string& option) {
  Requests requests;
  for (const std::string& part : read_texts(list, option)) {
    const std::size_t colon = part.find(':');
    requests.alphas.push_back(read_number(part.substr(0, colon), option, config::between(0, 1)));
    requests.weights.push_back(
        colon == std::string::npos ? 1.0 : read_number(part.substr(colon + 1), option, config::between(1e-6, 1e9)));
  }
  return requests;
}

struct TheoryOptions {
  std::optional<double> alpha;
  std::optional<std::vector<double>> alphas;
  std::optional<std::vector<double>> position_rates;
  std::optional<double> acceptance_rate;
  std::optional<double> mean_acceptance_length;
  std::optional<Requests> requests;
  int draft_length = 4;
  std::optional<double> cost_ratio;
  std::optional<double> target_to_draft_ratio;
  double verify_inflation = 1.0;
  double overhead = 0.0;
  std::vector<std::string> forms;
};

std::vector<double> shares_by_position(const std::string& list, const std::string& option) {
  std::vector<double> values = read_shares(list, option);
  if (values.size() > static_cast<std::size_t>(kMaxDraftLength))
    throw BadInput({option, 0, 0}, fmt::format("{} numbers, allowed: at most {}", values.size(), kMaxDraftLength));
  return values;
}

// Throws BadInput unless acceptance is stated in exactly one way; with --requests it may be omitted.
void check_one_way(const CommandLine& line) {
  int given = 0;
  for (const char* name : {"alpha", "alphas", "position-rates", "acceptance-rate", "mean-acceptance-length"})
    given += line.given(name) ? 1 : 0;
  if (given > 1 || (given == 0 && !line.given("requests")))
    throw BadInput({"specsim theory", 0, 0},
                   fmt::format("{} options for acceptance, allowed: one of --alpha, --alphas, --position-rates, "
                               "--acceptance-rate, --mean-acceptance-length, or --requests",
                               given));
}

// Rates that follow from the acceptance rate or the mean acceptance length at the draft length.
StatedRates rates_of_one_figure(const TheoryOptions& options) {
  const int draft_length = options.draft_length;
  if (draft_length == 0) throw BadInput({"--draft-length", 0, 0}, "0, allowed: the draft length at which the figure was logged");
  if (const auto& length = options.mean_acceptance_length; length && *length > draft_length + 1.0)
    throw BadInput({"--mean-acceptance-length", 0, 0},
                   fmt::format("\"{:g}\", allowed: a number {}", *length, config::between(1, draft_length + 1).to_text()));
  const double length = options.acceptance_rate ? 1.0 + draft_length * *options.acceptance_rate : *options.mean_acceptance_length;
  const double alpha = plan::equivalent_alpha(length, draft_length);
  return {{alpha}, fmt::format("alpha {:.6g}, if it is the same at every position", alpha), true};
}

StatedRates read_rates(const TheoryOptions& options) {
  if (options.alpha) return {{*options.alpha}, fmt::format("alpha {:g}", *options.alpha), false};
  if (options.alphas) return {*options.alphas, fmt::format("alpha by position {:g}", fmt::join(*options.alphas, ", ")), false};
  if (options.position_rates) {
    const std::vector<double> rates = plan::conditional_rates(*options.position_rates, {"--position-rates", 0, 0});
    return {rates, fmt::format("alpha by position {:.4g}", fmt::join(rates, ", ")), false};
  }
  if (options.acceptance_rate || options.mean_acceptance_length) return rates_of_one_figure(options);
  return {};
}

// Draft pass / target pass, from either option.
double cost_ratio_of(const TheoryOptions& options) {
  if (options.cost_ratio && options.target_to_draft_ratio)
    throw BadInput({"--cost-ratio", 0, 0}, "given together with --target-to-draft-ratio, allowed: one of them");
  return options.target_to_draft_ratio ? 1.0 / *options.target_to_draft_ratio : options.cost_ratio.value_or(0.05);
}

// The closed forms that --form names.
std::vector<const theory::ClosedForm*> read_forms(const std::vector<std::string>& wanted) {
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
  if (best.draft_length == 0) return "do not speculate: no draft length has a speedup above 1";
  return fmt::format("{}{} (speedup {:.6f})", best.draft_length, best.draft_length == kMaxDraftLength ? " or more" : "",
                     best.speedup);
}

// Lines with a label and its values.
report::Table labelled_lines() {
  return report::Table({{"", Align::left, "figure"}, {"", Align::left, "value"}}, {.headless = true});
}
// The same answers for programs: one number in a row, nothing where there is none.
report::Table numbers_of(const plan::RateAnswers& answers, int draft_length) {
  const theory::RoundDistribution& distribution = answers.distribution;
  report::Table table({{"", Align::left, "figure"}, {"", Align::right, "value"}});
  const auto add = [&](const std::string& label, std::optional<double> value) {
    table.add({label, value && std::isfinite(*value) ? fmt::format("{:.6f}", *value) : "-"});
  };
  add("tokens per round", distribution.mean_emitted());
  add("standard deviation of tokens per round", std::sqrt(distribution.variance_emitted()));
  if (draft_length > 0) add("accepted tokens over drafted tokens", distribution.mean_accepted() / draft_length);
  for (int j = 1; j <= draft_length; ++j) add(fmt::format("acceptance of position {}", j), distribution.tail(j));
  add("speedup", answers.speedup);
  for (std::size_t j = 0; j < distribution.accepted.size(); ++j)
    add(fmt::format("probability of {} accepted", j), distribution.accepted[j]);
  table.add({"best draft length", std::to_string(answers.best.draft_length)});
  add("speedup at the best draft length", answers.best.draft_length > 0 ? answers.best.speedup : 1.0);
  add("continuous optimum", answers.continuous_best);
  add("break-even alpha at this length", answers.constant ? answers.break_even : std::nullopt);
  const auto& any = answers.break_even_at_best;
  add("break-even alpha at the best length", answers.constant && any ? std::optional(any->alpha) : std::nullopt);
  table.add({"draft length of that alpha", answers.constant && any ? std::to_string(any->draft_length) : "-"});
  const auto& slope = answers.slope;
  add("change of speedup for .01 of alpha", slope ? std::optional(0.01 * slope->by_alpha) : std::nullopt);
  add("change of speedup for .01 of cost ratio", slope ? std::optional(0.01 * slope->by_cost_ratio) : std::nullopt);
  return table;
}

void print_rates(const StatedRates& stated, int draft_length, const theory::RatioCost& cost) {
  print_output("{}, draft length {}, cost ratio {:g}\n", stated.heading, draft_length, cost.cost_ratio);
  if (stated.from_one_figure)
    print_output(
        "(only if every round drafted {0} tokens. If drafts are cut short - llama.cpp's p-min, a policy, n-grams that find "
        "nothing, the end of a request - the figure belongs to shorter drafts and alpha is lower: use the mean number of drafted "
        "tokens per round as --draft-length, or rates by position)\n",
        draft_length);
  const plan::RateAnswers answers = plan::answers_at(stated.rates, draft_length, cost);
  if (for_machines()) {
    print_output("\n");
    print_table(numbers_of(answers, draft_length));
    return;
  }
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
                                           : "none: if a draft token costs nothing, every additional one pays"});
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

// Requests with different alpha and the same length in tokens: the true figures, and those that pooling gives instead.
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
  table.add({"result with one pooled figure:"});
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

void add_theory_options(CommandLine& line, TheoryOptions& options) {
  line.add({{"alpha", options.alpha, read_share, "acceptance at a reached position (conditional), 0 to 1"},
            {"alphas", options.alphas, shares_by_position,
             "A1,A2,...: the same by position, conditional on being reached; the last one is repeated"},
            {"position-rates", options.position_rates, shares_by_position,
             "R1,R2,...: by position as vLLM and llama.cpp log them: share of rounds that accepted it"},
            {"acceptance-rate", options.acceptance_rate, read_share,
             "accepted / drafted tokens (0.62 or 62%) if every round drafts --draft-length"},
            {"mean-acceptance-length", options.mean_acceptance_length, config::between(1, kMaxDraftLength + 1.0),
             "accepted + 1 per round at --draft-length, as logs show it"},
            {"requests", options.requests, read_requests,
             "A1[:W1],A2[:W2],...: kinds of requests by alpha and weight; shows the error of pooling them"},
            {"draft-length", options.draft_length, config::between(0, kMaxDraftLength),
             "tokens drafted per round (num_speculative_tokens)"},
            {"cost-ratio", options.cost_ratio, config::between(0, 1e6), "draft pass / target pass (default 0.05)"},
            {"target-to-draft-ratio", options.target_to_draft_ratio, config::between(1e-6, 1e9), "the inverse of --cost-ratio"},
            {"verify-inflation", options.verify_inflation, config::between(1e-6, 1e6),
             "target pass over draft_length + 1 tokens / over one"},
            {"overhead", options.overhead, config::between(0, 1e6), "host time per round, in target passes"},
            {"form", options.forms, "also this closed form, by name (specsim list closed_form); all: every one"}});
}

constexpr const char* kTheoryExamples =
    "  specsim theory --alpha 0.7 --draft-length 5 --cost-ratio 0.2\n"
    "  specsim theory --acceptance-rate 0.62 --draft-length 5 --cost-ratio 0.08\n"
    "  specsim theory --alphas 0.79,0.74,0.72,0.73,0.67 --draft-length 5\n"
    "  specsim theory --requests 0.9:1,0.5:1 --draft-length 5 --cost-ratio 0.08\n"
    "  specsim theory --alpha 0.9 --target-to-draft-ratio 50 --form all\n";

}  // namespace

ExitCode theory_command(const std::vector<std::string>& arguments) {
  TheoryOptions options;
  CommandLine line("specsim theory ACCEPTANCE [--draft-length K] [--cost-ratio C]", kTheoryExamples);
  add_theory_options(line, options);
  if (!line.read(arguments)) return ExitCode::fine;
  const int draft_length = options.draft_length;
  const theory::RatioCost cost{cost_ratio_of(options), options.verify_inflation, options.overhead};
  const std::vector<const theory::ClosedForm*> forms = read_forms(options.forms);
  check_one_way(line);
  const StatedRates stated = read_rates(options);
  if (!forms.empty() && stated.rates.empty())
    throw BadInput({"--form", 0, 0}, "given only with --requests, allowed: with --alpha or another acceptance");
  if (options.requests && draft_length == 0) throw BadInput({"--draft-length", 0, 0}, "0 with --requests, allowed: at least 1");
  if (!stated.rates.empty()) print_rates(stated, draft_length, cost);
  if (options.requests) print_requests(*options.requests, draft_length, cost);
  if (!forms.empty()) print_forms(forms, stated.rates, draft_length, cost.cost_ratio);
  return ExitCode::fine;
}

}  // namespace specsim::cli
