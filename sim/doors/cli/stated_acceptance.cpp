#include "sim/doors/cli/stated_acceptance.h"

#include "sim/answers/plan/engines.h"
#include "sim/answers/plan/stated_acceptance.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/server_log.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

namespace specsim::cli {

namespace {

using plan::AcceptanceCurve;

// A share for all positions together. A list is rejected, since its user means rates by position.
double read_one_share(const std::string& text, const std::string& option) {
  if (text.find(',') != std::string::npos)
    throw BadInput({option, 0, 0},
                   fmt::format("{}, allowed: one figure; for rates by position use --position-rates, or --conditional-rates "
                               "if each is over the rounds that reach it",
                               config::quote_for_message(text)));
  return read_share(text, option);
}

// The acceptance in a server's log, with warnings about contradictions.
AcceptanceCurve logged_acceptance(const AcceptanceOptions& options, int longest) {
  const std::string& path = options.log;
  const int at = options.at_length.value_or(0);
  const Location option{"--log", 0, 0};
  const logs::LogContents contents = read_server_log(path, {});
  const logs::ReportedAcceptance log = one_acceptance(contents, options.server, at, option);
  const logs::Findings findings = logs::find(log, at);
  AcceptanceCurve acceptance = plan::logged_acceptance(log.kind, findings, longest, option, "with --at-draft-length");
  acceptance.source = fmt::format("{}, {}", path == "-" ? "standard input" : path, acceptance.source);
  for (const logs::Check& check : findings.checks)
    if (!check.holds && !check.note) print_warning(fmt::format("{}: {}: {}", path, check.what, check.told));
  return acceptance;
}

}  // namespace

const std::vector<std::string>& acceptance_options() {
  static const std::vector<std::string> list = {
      "alpha", "position-rates", "conditional-rates", "mean-acceptance-length", "acceptance-rate", "acceptance", "trace", "log"};
  return list;
}

void add_acceptance_options(CommandLine& line, AcceptanceOptions& options) {
  line.add(
      {{"alpha", options.alpha, read_one_share, "acceptance: the same at every position"},
       {"position-rates", options.position_rates, read_shares,
        "acceptance: by position, over all rounds, as vLLM logs it (0.7,0.45,0.3 or 70%,45%,30%)"},
       {"conditional-rates", options.conditional_rates, read_shares,
        "acceptance: by position, given that it is reached (0.7,0.64,0.67)"},
       {"mean-acceptance-length", options.mean_acceptance_length, config::between(1, kMaxDraftLength + 1.0),
        "acceptance: emitted tokens per round, bonus included"},
       {"acceptance-rate", options.acceptance_rate, read_one_share, "acceptance: accepted / drafted tokens, as logs show it"},
       {"acceptance", options.table, "acceptance: by depth, a published table (specsim list acceptance) or your own file"},
       {"at-draft-length", options.at_length, config::between(1, kMaxDraftLength),
        "draft length at which --mean-acceptance-length or --acceptance-rate was measured, or that --log lacks"},
       {"log", options.log, "acceptance: the log or metrics of a server (specsim import explains them); - for standard input"},
       {"server", options.server, read_server, "the server in --log, if several wrote into it"}});
}

std::string stated_by(const CommandLine& line, bool trace) {
  for (const std::string& name : acceptance_options())
    if (line.given(name) && (trace || name != "trace")) return name;
  return "";
}

std::optional<AcceptanceCurve> stated_acceptance(const CommandLine& line, const AcceptanceOptions& options, int longest,
                                                 bool trace) {
  const std::string stated = stated_by(line, trace);
  for (const std::string& other : acceptance_options())
    if (other != stated && line.given(other) && (trace || other != "trace"))
      throw BadInput({"--" + other, 0, 0}, fmt::format("given together with --{}, allowed: one figure of acceptance", stated));
  const bool of_length = stated == "mean-acceptance-length" || stated == "acceptance-rate";
  if (of_length && !options.at_length)
    throw BadInput({"--" + stated, 0, 0},
                   "given without --at-draft-length, allowed: with the draft length that it was measured at");
  if (!of_length && stated != "log" && options.at_length)
    throw BadInput({"--at-draft-length", 0, 0},
                   "given without --mean-acceptance-length, --acceptance-rate or --log, allowed: with one of them, measured at "
                   "this length");
  const Location where{"--" + stated, 0, 0};
  if (options.alpha) return plan::constant_acceptance(*options.alpha, longest);
  if (options.position_rates) return plan::unconditional_acceptance(*options.position_rates, longest, where);
  if (options.conditional_rates) return plan::conditional_acceptance(*options.conditional_rates, longest);
  if (options.mean_acceptance_length)
    return plan::length_acceptance(*options.mean_acceptance_length, *options.at_length, longest, where);
  if (options.acceptance_rate) return plan::rate_acceptance(*options.acceptance_rate, *options.at_length, longest);
  if (stated == "acceptance") return plan::table_acceptance(options.table, where, longest);
  if (stated == "trace") return plan::trace_acceptance(options.trace, longest);
  if (stated == "log") return logged_acceptance(options, longest);
  return std::nullopt;
}

void warn_of_pair(const cost::Deployment* deployment, const std::string& table) {
  if (deployment == nullptr) return;
  plan::RecordedModels recorded;
  if (!table.empty()) {
    const spec::AcceptanceTable own = spec::named_acceptance_table(table, {"--acceptance", 0, 0}, spec::Contexts::several);
    recorded = {own.target, own.draft};
  }
  for (const std::string& warning : plan::pair_warnings(*deployment, recorded)) print_warning(warning);
}

}  // namespace specsim::cli
