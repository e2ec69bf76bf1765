#include "sim/doors/cli/stated_acceptance.h"

#include "sim/answers/plan/stated_acceptance.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/server_log.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using plan::AcceptanceCurve;

// A share that holds for all positions together. A list is refused: whoever gives one means rates by position.
double read_one_share(const Options& options, const char* name) {
  const std::string text = options.text(name);
  const std::string option = std::string("--") + name;
  if (text.find(',') != std::string::npos)
    throw BadInput({option, 0, 0},
                   fmt::format("{}, allowed: one figure; rates by position are --position-rates, or --conditional-rates "
                               "where each is of the rounds that reach it",
                               config::quote_for_message(text)));
  return read_share(text, option);
}

// What a server's log says of acceptance, and warnings of what it contradicts.
AcceptanceCurve logged_acceptance(const Options& options, int at, int longest) {
  const std::string path = options.text("log");
  const Location option{"--log", 0, 0};
  const logs::LogContents contents = read_server_log(path, {});
  const logs::ReportedAcceptance log =
      one_acceptance(contents, options.has("server") ? read_server(options.text("server")) : "", at, option);
  const logs::Findings findings = logs::find(log, at);
  AcceptanceCurve acceptance = plan::logged_acceptance(log.kind, findings, longest, option, "with --at-draft-length");
  acceptance.source = fmt::format("{}, {}", path == "-" ? "standard input" : path, acceptance.source);
  for (const logs::Check& check : findings.checks)
    if (!check.holds) print_warning(fmt::format("{}: {}: {}", path, check.what, check.told));
  return acceptance;
}

}  // namespace

const std::vector<std::string>& acceptance_options() {
  static const std::vector<std::string> list = {
      "alpha", "position-rates", "conditional-rates", "mean-acceptance-length", "acceptance-rate", "acceptance", "trace", "log"};
  return list;
}

void add_acceptance_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("alpha", text(), "acceptance: the same at every position")(
      "position-rates", text(), "acceptance: by position, of all rounds, as vLLM logs it (0.7,0.45,0.3 or 70%,45%,30%)")(
      "conditional-rates", text(), "acceptance: by position, given that it is reached (0.7,0.64,0.67)")(
      "mean-acceptance-length", text(), "acceptance: emitted tokens per round, bonus included")(
      "acceptance-rate", text(), "acceptance: accepted / drafted tokens, as logs show it")(
      "acceptance", text(), "acceptance: by depth, a published table (specsim list acceptance) or a file of one's own")(
      "at-draft-length", text(),
      "draft length at which --mean-acceptance-length or --acceptance-rate was measured, or that --log does not tell")(
      "log", text(), "acceptance: the log or metrics of a server (specsim import explains them); - for standard input")(
      "server", text(), "the server in --log, where several wrote into it");
}

std::optional<AcceptanceCurve> stated_acceptance(const Options& options, int longest, Trace trace) {
  std::vector<std::string> given;
  for (const std::string& name : acceptance_options())
    if (options.has(name.c_str()) && (name != "trace" || trace == Trace::of_acceptance)) given.push_back("--" + name);
  if (given.size() > 1)
    throw BadInput({given[1], 0, 0}, fmt::format("given together with {}, allowed: one figure of acceptance", given[0]));
  const char* const of_length = options.has("mean-acceptance-length") ? "mean-acceptance-length" : "acceptance-rate";
  if (options.has(of_length) && !options.has("at-draft-length"))
    throw BadInput({std::string("--") + of_length, 0, 0},
                   "given without --at-draft-length, allowed: with the draft length that it was measured at");
  if (!options.has(of_length) && !options.has("log") && options.has("at-draft-length"))
    throw BadInput({"--at-draft-length", 0, 0},
                   "given without --mean-acceptance-length, --acceptance-rate or --log, allowed: with one of them, measured at "
                   "this length");
  const auto at = [&] {
    return static_cast<int>(
        read_integer(options.text("at-draft-length"), "--at-draft-length", config::between(1, kMaxDraftLength)));
  };
  if (options.has("alpha")) return plan::constant_acceptance(read_one_share(options, "alpha"), longest);
  if (options.has("position-rates"))
    return plan::unconditional_acceptance(read_shares(options.text("position-rates"), "--position-rates"), longest,
                                          {"--position-rates", 0, 0});
  if (options.has("conditional-rates"))
    return plan::conditional_acceptance(read_shares(options.text("conditional-rates"), "--conditional-rates"), longest);
  if (options.has("mean-acceptance-length"))
    return plan::length_acceptance(read_number(options.text("mean-acceptance-length"), "--mean-acceptance-length",
                                               config::between(1, kMaxDraftLength + 1.0)),
                                   at(), longest, {"--mean-acceptance-length", 0, 0});
  if (options.has("acceptance-rate")) return plan::rate_acceptance(read_one_share(options, "acceptance-rate"), at(), longest);
  if (options.has("acceptance")) return plan::table_acceptance(options.text("acceptance"), {"--acceptance", 0, 0}, longest);
  if (options.has("trace") && trace == Trace::of_acceptance) return plan::trace_acceptance(options.text("trace"), longest);
  if (options.has("log")) return logged_acceptance(options, options.has("at-draft-length") ? at() : 0, longest);
  return std::nullopt;
}

}  // namespace specsim::cli
