// specsim import: extracts acceptance from a server's log or metrics, and prints options for plan and serve.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/server_log.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/base/token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace specsim::cli {

namespace {

std::string end_of_interval(double x) { return std::isnan(x) ? "" : fmt::format("{:.4f}", x); }

// The kind of lines in words; "" if the text around the tables states it.
std::string lines_in_table(const logs::ReportedAcceptance& one) {
  if (!tables_alone()) return "";
  return one.name.empty() ? describe(one.kind) : fmt::format("{}, {}", describe(one.kind), one.name);
}

// A table with an additional first column that states the kind of lines, if the table is printed without text around it.
class TableOfLines {
 public:
  TableOfLines(std::vector<report::Head> heads, std::string lines)
      : lines_(std::move(lines)), table_(with_lines(std::move(heads)), {.indent = 2}) {}
  void add(std::vector<std::string> cells) {
    if (!lines_.empty()) cells.insert(cells.begin(), lines_);
    table_.add(std::move(cells));
  }
  void print() const { print_table(table_); }

 private:
  std::vector<report::Head> with_lines(std::vector<report::Head> heads) const {
    if (!lines_.empty()) heads.insert(heads.begin(), {"lines", report::Align::left});
    return heads;
  }
  std::string lines_;
  report::Table table_;
};

void print_figures(const logs::Findings& findings, const std::string& lines) {
  TableOfLines table({{"", report::Align::left, "name"}, {"figure"}, {"95 % low"}, {"95 % high"}}, lines);
  const auto add = [&](const char* name, const logs::Figure& figure) {
    if (figure.known())
      table.add({name, fmt::format("{:.4f}", figure.value), end_of_interval(figure.low), end_of_interval(figure.high)});
  };
  add("mean acceptance length", findings.mean_length);
  add("accepted / drafted", findings.acceptance_rate);
  add("alpha", findings.alpha);
  table.print();
  if (!findings.alpha_from.empty()) print_output("  alpha from: {}\n", findings.alpha_from);
  if (!findings.interval_from.empty()) print_output("  intervals from: {}\n", findings.interval_from);
  if (findings.position_rates.empty()) return;
  TableOfLines positions({{"position"}, {"share of all rounds"}, {"share of those that reach it"}}, lines);
  for (std::size_t i = 0; i < findings.position_rates.size(); ++i)
    positions.add({std::to_string(i + 1), fmt::format("{:.4f}", findings.position_rates[i]),
                   fmt::format("{:.4f}", findings.conditional_rates[i])});
  positions.print();
}

// Prints whether figures are consistent: as lines of text, or as a table if nothing else is printed.
void print_checks(const std::vector<logs::Check>& checks, const std::string& lines, const char* indent) {
  for (const logs::Check& check : checks)
    print_output("{}{} {}: {}\n", indent,
                 check.holds  ? "consistent:  "
                 : check.note ? "note:        "
                              : "INCONSISTENT:",
                 check.what, check.told);
  if (!tables_alone() || checks.empty()) return;
  TableOfLines table({{"check", report::Align::left}, {"consistent", report::Align::left}, {"finding", report::Align::left}},
                     lines);
  for (const logs::Check& check : checks) table.add({check.what, check.holds ? "yes" : check.note ? "note" : "no", check.told});
  table.print();
}

void print_acceptance(const logs::ReportedAcceptance& one, const logs::Findings& findings) {
  std::string text = describe(one.kind);
  if (!one.name.empty()) text += ", " + one.name;
  print_output("{}: {} ({})", text, plural(one.lines, "line"),
               one.lines == 1 ? fmt::format("{}", one.first_line) : fmt::format("{} to {}", one.first_line, one.last_line));
  if (findings.rounds > 1.0) print_output(", {}{:.0f} rounds", findings.rounds_counted ? "" : "about ", findings.rounds);
  if (findings.draft_length > 0) print_output(", draft length {}", findings.draft_length);
  if (one.restarts > 0) print_output(", counters restarted {}", plural(one.restarts, "time"));
  print_output("\n");
  print_figures(findings, lines_in_table(one));
  print_checks(findings.checks, lines_in_table(one), "  ");
}

// The acceptance by context, if the lines state the cached tokens.
void print_contexts(const logs::ReportedAcceptance& one, int draft_length) {
  const std::vector<logs::AtContext> classes = logs::by_context(one);
  if (classes.empty()) {
    print_output("by context: {} do not state the cached tokens of a request\n", describe(one.kind));
    return;
  }
  print_output("by context: cached tokens of a request, mean over the requests of a line\n");
  TableOfLines table({{"mean context"}, {"share of rounds"}, {"mean acceptance length"}}, lines_in_table(one));
  double rounds = 0.0;
  for (const logs::AtContext& own : classes) rounds += own.rounds;
  for (const logs::AtContext& own : classes)
    table.add({fmt::format("{:.0f}", own.context), fmt::format("{:.4f}", own.rounds / rounds),
               fmt::format("{:.4f}", 1.0 + own.accepted / own.rounds)});
  table.print();
  if (const std::string file = logs::context_table(classes, draft_length); !file.empty())
    print_output("  as a file for plan and serve --acceptance:\n    {}\n", file);
  else if (draft_length < 1)
    print_output("  set the draft length with --at-draft-length to get a file for plan and serve --acceptance\n");
}

void print_options(const logs::Findings& findings) {
  const std::string plan = logs::plan_options(findings);
  if (plan.empty()) {
    print_output("  the draft length is not in the log: set it with --at-draft-length to get options to paste\n");
    return;
  }
  print_output("  specsim plan --hardware GPU --target MODEL --draft MODEL {}\n", plan);
  if (const std::string serve = logs::serve_options(findings); !serve.empty())
    print_output("  specsim serve --hardware GPU --target MODEL --draft MODEL --rate R {}\n", serve);
  if (const std::string table = logs::table_file(findings); !table.empty())
    print_output("  as a file for fit and compare --acceptance; use sampled if the server draws its drafts:\n    {}\n", table);
}

}  // namespace

ExitCode import_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  std::string server;
  logs::ReaderOptions how;
  std::optional<int> stated_length;
  bool contexts = false;
  CommandLine line("specsim import FILE|- [options]",
                   "  specsim import vllm.log\n"
                   "  curl -s localhost:8000/metrics | specsim import -\n"
                   "  docker logs sglang 2>&1 | specsim import - --at-draft-length 3\n"
                   "  specsim plan --log vllm.log --hardware h100-sxm --target llama-3.1-8b --draft eagle-head-8b\n");
  line.add_words("file", files);
  line.add({{"server", server, read_server, fmt::format("only lines of this one: {}", fmt::join(logs::server_names(), ", "))},
            {"at-draft-length", stated_length, config::between(1, kMaxDraftLength),
             "the server's draft length, if its lines do not state it"},
            {"by-context", contexts, "also print the acceptance by context, which SGLang's lines state, and a file of it"},
            {"growth", how.growth_alone, "count the growth of counters between their first and last print, not their values"},
            {"sglang-interval", how.sglang_interval, config::between(1, 1e6),
             "decode steps that a line of SGLang averages (its --decode-log-interval)"}});
  if (!line.read(arguments)) return ExitCode::fine;
  if (files.size() != 1)
    throw BadInput({"", 0, 0},
                   fmt::format("{} files, allowed: one server's log or metrics, or - for standard input", files.size()));
  const int draft_length = stated_length.value_or(0);
  const logs::LogContents contents = read_server_log(files[0], how);
  const auto of_sglang = [](const logs::ReportedAcceptance& one) { return logs::server_name(one.kind) == "sglang"; };
  if (line.given("sglang-interval") && !contents.found.empty() &&
      std::none_of(contents.found.begin(), contents.found.end(), of_sglang))
    throw BadInput({"--sglang-interval", 0, 0},
                   fmt::format("given with a log of {}, to which it does not apply; allowed: with lines of SGLang",
                               logs::server_name(contents.found.front().kind)));
  std::vector<logs::Findings> findings;
  std::vector<const logs::ReportedAcceptance*> shown;
  for (const logs::ReportedAcceptance& one : contents.found) {
    if (!server.empty() && logs::server_name(one.kind) != server) continue;
    if (!shown.empty()) print_output("\n");
    shown.push_back(&one);
    findings.push_back(logs::find(one, draft_length));
    print_acceptance(one, findings.back());
    if (contexts) print_contexts(one, findings.back().draft_length);
  }
  if (shown.empty()) one_acceptance(contents, server, draft_length, {"--server", 0, 0});  // reports why there is none
  for (std::size_t i = 0; i < shown.size(); ++i)
    for (std::size_t j = i + 1; j < shown.size(); ++j)
      if (shown[i]->kind != shown[j]->kind && logs::server_name(shown[i]->kind) == logs::server_name(shown[j]->kind)) {
        print_checks({logs::agreement(*shown[i], findings[i], *shown[j], findings[j])}, tables_alone() ? "all" : "", "");
      }
  print_output("\nto paste\n");
  const std::vector<std::size_t> best = logs::distinct(contents.found);
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (std::any_of(best.begin(), best.end(), [&](std::size_t b) { return &contents.found[b] == shown[i]; }))
      print_options(findings[i]);
  return ExitCode::fine;
}

}  // namespace specsim::cli
