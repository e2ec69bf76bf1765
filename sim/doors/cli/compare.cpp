// specsim compare: which method of drafting and verifying is fastest on a workload, and with what confidence.
#include "sim/answers/plan/built_in.h"
#include "sim/answers/plan/engine_methods.h"
#include "sim/answers/plan/engines.h"
#include "sim/answers/plan/race.h"
#include "sim/answers/plan/ranking.h"
#include "sim/answers/plan/table_trees.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/plan_report.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stated_acceptance.h"
#include "sim/doors/cli/stop.h"
#include "sim/doors/cli/workload_options.h"
#include "sim/experiments/judge/coverage.h"
#include "sim/experiments/run/identity.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/short_text.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace specsim::cli {

namespace {

using plan::Contender;
using plan::Ranking;

// One line per node; children are indented below their parent.
void draw_node(const tokens::Tree& tree, int node, const std::string& indent, std::vector<std::string>& lines) {
  const tokens::Tree::Node& own = tree.nodes[static_cast<std::size_t>(node)];
  for (int i = 0; i < own.children; ++i) {
    const bool last = i + 1 == own.children;
    const int child = own.first_child + i;
    lines.push_back(fmt::format("{}{} {}", indent, last ? "└─" : "├─", tree.nodes[static_cast<std::size_t>(child)].rank + 1));
    draw_node(tree, child, indent + (last ? "   " : "│  "), lines);
  }
}

void print_tree(const tokens::Tree& tree) {
  constexpr std::size_t kShown = 24;
  std::vector<std::string> lines;
  draw_node(tree, 0, "    ", lines);
  print_output("    its tree, {} tokens and {} deep; children by the order in which they are drafted:\n", tree.drafted(),
               tree.height());
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) print_output("{}\n", lines[i]);
  if (lines.size() > kShown) print_output("    ... and {} more\n", lines.size() - kShown);
}

std::string shown(const std::string& method) {
  constexpr std::size_t kLongest = 100;  // widest column of methods, in characters
  return report::short_method(method, kLongest);
}

// The name of a method in a table.
std::string method_words(const Contender& one) {
  return shown(one.row.cell->method_text) + (one.row.cell->lossless() ? "" : " (not lossless)") +
         (one.engine_runs.value_or(true) ? "" : fmt::format(" (not in {})", plan::engine_of(*one.row.cell))) +
         (one.uses_forecasts ? " (not a method: it knows future acceptance)" : "");
}

// The fastest method that a user can run; nullptr: none.
const Contender* first_method(const Ranking& ranking) {
  for (const Contender& one : ranking.contenders)
    if (!one.uses_forecasts) return &one;
  return nullptr;
}

// Prints the methods that tie with the first within the latency error.
void print_ties(const Ranking& ranking) {
  std::vector<std::string> ranks;
  double noise = 0.0;
  int rank = 0;
  for (const Contender& one : ranking.contenders) {
    if (one.uses_forecasts) continue;
    ++rank;
    if (!one.tied()) continue;
    ranks.push_back(std::to_string(rank));
    noise = std::max(noise, one.latency_noise);
  }
  if (!ranks.empty())
    print_output("  rank{} {} tie{} with the first: within the error of the comparison, {:.1f} %\n", ranks.size() == 1 ? "" : "s",
                 fmt::join(ranks, ", "), ranks.size() == 1 ? "s" : "", 100.0 * noise);
}

// Prints the fastest method that the engine supports, if it is not the first.
void print_fastest_of_engine(const Ranking& ranking) {
  const Contender* const first = first_method(ranking);
  if (first == nullptr || first->engine_runs.value_or(true)) return;
  const std::string engine = plan::engine_of(*first->row.cell);
  int rank = 0;
  for (const Contender& one : ranking.contenders) {
    if (one.uses_forecasts) continue;
    ++rank;
    if (!one.engine_runs.value_or(false)) continue;
    if (one.speedup < 1.0) break;
    print_output("  the fastest that {} runs: rank {}, {}, {:.2f} of the first's speed\n", engine, rank,
                 shown(one.row.cell->method_text), 1.0 - one.behind_method);
    return;
  }
  print_output("  nothing here that {} runs is faster than plain decoding\n", engine);
}

// Prints the command that starts a server with the fastest chain, which is what servers draft.
void print_start(const Ranking& ranking) {
  int rank = 0;
  for (const Contender& one : ranking.contenders) {
    if (!one.uses_forecasts) ++rank;
    if (one.speedup < 1.0) return;
    const spec::Cell& cell = *one.row.cell;
    const cost::Deployment* const deployment = cell.cost().deployment();
    if (one.uses_forecasts || deployment == nullptr || !shown(cell.method_text).starts_with("chain ")) continue;
    for (const plan::EngineCommand& own :
         plan::engine_commands(*deployment, cell.draft_length(), cell.workload.batch, cell.workload.context)) {
      if (own.command.empty() || !own.engine.starts_with(plan::server_of(deployment->engine))) continue;
      print_output("  start rank {} with {}: {}\n", rank, own.engine, own.command);
      print_needs(own);
      return;
    }
    return;
  }
}

void print_ranking(const Ranking& ranking, plan::Draws draws) {
  const bool runs = draws == plan::Draws::as_needed;
  const bool exact =
      std::any_of(ranking.contenders.begin(), ranking.contenders.end(), [](const Contender& one) { return one.row.exact.known; });
  std::vector<report::Head> columns = {{"rank"}, {"tokens/round"}};
  if (exact) columns.push_back({"exact"});
  columns.insert(columns.end(), {{"speedup"}, {"low"}, {"high"}, {"slower than the first"}});
  if (runs) columns.push_back({"runs"});
  columns.push_back({"method", report::Align::left});
  report::Table table(columns, {.indent = 2});
  const auto add = [&](std::vector<std::string> cells, const std::string& by_theory, const std::string& count,
                       const std::string& method) {
    if (exact) cells.insert(cells.begin() + 2, by_theory);
    if (runs) cells.push_back(count);
    cells.push_back(method);
    table.add(cells);
  };
  bool plain_shown = false;
  const auto plain = [&] {
    add({"", "1.0000", "1.0000", "", "", ""}, "1.0000", "", "plain decoding: below this line, do not speculate");
    plain_shown = true;
  };
  int rank = 0;
  for (const Contender& one : ranking.contenders) {
    if (!plain_shown && one.speedup < 1.0) plain();
    if (!one.uses_forecasts) ++rank;
    const bool first = !one.uses_forecasts && rank == 1;
    add({one.uses_forecasts ? "-" : std::to_string(rank), fmt::format("{:.4f}", one.row.tokens_per_round()),
         fmt::format("{:.4f} ± {:.4f}", one.speedup, one.speedup_half_width), fmt::format("{:.2f}", one.gain.low()),
         fmt::format("{:.2f}", one.gain.high()),
         first ? "-" : fmt::format("{:.2f} % ± {:.2f}", 100.0 * one.behind_method, 100.0 * one.behind_method_half_width)},
        one.row.exact.known ? fmt::format("{:.4f}", one.row.exact.tokens_per_round) : "", std::to_string(one.replicates),
        method_words(one));
  }
  if (!plain_shown) plain();
  print_output("\n{}\n{}", ranking.workload, table.text(output_width()));
  print_ties(ranking);
  print_fastest_of_engine(ranking);
  print_start(ranking);
  std::vector<judge::Uncovered> uncovered;
  for (const Contender& one : ranking.contenders)
    for (judge::Uncovered& own : judge::uncovered({one.row.cell}))
      uncovered.push_back({shown(one.row.cell->method_text), std::move(own.why)});
  write_output(judge::no_theory_lines(uncovered));
}

struct CompareOptions {
  WorkloadOptions workload;
  std::optional<std::vector<std::int64_t>> batches;
  std::optional<double> alpha;
  std::optional<double> temperature;
  std::optional<std::string> acceptance;
  std::optional<std::int64_t> rounds;
  std::optional<std::string> out;
  bool force = false;
  unsigned threads = 0;
  bool print_config = false;
};

// The parameters of the built-in methods' distributions.
struct BuiltIn {
  double alpha = plan::kDefaultAlpha;
  double temperature = 1.0;
  spec::AcceptanceTable table;  // acceptance by depth and rank, replaces alpha and temperature; empty: none

  [[nodiscard]] RecordedPair recorded() const { return recorded_pair(table); }
};

// How a table's drafts were chosen, as a sentence to append; "" at temperature 0, where it makes no difference.
std::string of_selection(const spec::AcceptanceTable& table) {
  if (table.temperature == "0") return "";
  if (table.selection == spec::Selection::sampled)
    return " Its drafts were drawn, and so are the chains here; children of a tree (siblings: top_k) are in the order of "
           "drawing. Above temperature 0 the acceptance of likeliest tokens differs.";
  return fmt::format(
      " Its drafts are the draft's likeliest tokens ({}). Above temperature 0 the acceptance of drawn tokens differs.",
      table.selection == spec::Selection::unsaid ? "assumed, since the table does not state it; selection: sampled is "
                                                   "for drawn tokens"
                                                 : table.selection_from);
}

// Prints the assumptions on which the ranking of the built-in methods depends.
void print_assumptions(const WorkloadOptions& options, const BuiltIn& built_in, const std::string& cost, bool trees) {
  if (const std::string assumed = assumptions(options, built_in.recorded()); !assumed.empty())
    print_output("ASSUMED (defaults): {}\n", assumed);
  warn_of_missing_draft(options, built_in.recorded());
  if (const std::string taken = taken_of(options, built_in.recorded()); !taken.empty())
    print_output("the models of the table: {}\n", taken);
  if (!built_in.table.acceptance.empty()) {
    const std::vector<std::vector<double>>& rows = built_in.table.acceptance;
    const std::string words = fmt::format(
        "This ranking holds for acceptance by depth and rank as in the table, independent from round to round{}. {}{}{}{}",
        built_in.table.origin().empty() ? "" : fmt::format(": {}", built_in.table.origin()),
        trees ? "Each tree is the best of its size, with all depths of the table or, if that is faster at a batch, fewer. Real "
                "trees accept in clusters: a text that is easy at one depth is easy at the next."
        : built_in.table.one_pass
            ? "Trees are left out: one pass drafts the whole chain, and the table has no tree of such a pass."
            : "Trees are left out: the table has one rate per depth, and a tree needs those of the second-likeliest tokens too.",
        of_selection(built_in.table),
        built_in.table.note.empty() ? "" : fmt::format(" Its figures are derived {}.", built_in.table.note),
        rows.size() == 1 ? " The table has one depth, so no method drafts more than one level. For a vector "
                           "that holds at every depth, the file must state this: {acceptance: [[...]], depths: 16}."
                         : "");
    for (const std::string& line : report::wrap_words(words, output_width())) print_output("{}\n", line);
    return;
  }
  const std::string words = fmt::format(
      "This ranking holds for sampling at temperature {:g} from synthetic distributions on which one draft token is accepted "
      "with probability {:g} at temperature 1, the same draft for every method. They were chosen to match published measurements "
      "of block verification and of siblings by rank, and give trees of EAGLE's heads too many tokens per round "
      "(docs/results/language.md). Models of high-entropy texts differ: for small models of novels EAGLE-2's tree "
      "(tree_dynamic) emits less than a chain at temperature 1, and chains emit more at temperature 0 than here "
      "(docs/results/validation.md). Chat models are more certain of their tokens: for them, chosen tokens "
      "(tree_dynamic and selection argmax) lose less from temperature 0 to 1 than here (write sigma: 12 into the "
      "printed config). Heads trained on their target reach higher acceptance than any draft model here. For another draft, "
      "rank your own distributions: --print-config prints these, with their cost {}",
      built_in.temperature, built_in.alpha, cost);
  for (const std::string& line : report::wrap_words(words, output_width())) print_output("{}\n", line);
}

// The methods of the configs, or the built-in ones.
std::vector<spec::Experiment> experiments_of(const CompareOptions& options, const BuiltIn& built_in) {
  const ConfigOptions& configs = options.workload.configs;
  std::vector<spec::Override> of_workload = workload_overrides(options.workload, configs.files.empty(), built_in.recorded());
  std::vector<spec::Override> changes;
  if (options.batches) changes.push_back(spec::override_setting("sweep.workload.batch", *options.batches, {"--batches", 0, 0}));
  if (options.rounds) changes.push_back(spec::override_setting("rounds", *options.rounds, {"--rounds", 0, 0}));
  if (!configs.files.empty()) {
    changes.insert(changes.begin(), of_workload.begin(), of_workload.end());
    return read_experiments(configs, spec::Misfits::left_out, changes);
  }
  spec::ExperimentValues values = built_in.table.acceptance.empty()
                                      ? plan::methods_to_compare(built_in.alpha, built_in.temperature)
                                      : plan::methods_on_table(built_in.table.acceptance, built_in.table.one_pass,
                                                               built_in.table.selection == spec::Selection::sampled);
  Diagnostics diagnostics;
  for (const auto& list : {read_overrides(configs, diagnostics), of_workload})
    changes.insert(changes.begin(), list.begin(), list.end());
  const auto made = [&](const spec::ExperimentValues& own) {
    spec::Experiment experiment =
        spec::make_experiment(own, "the built-in methods", changes, diagnostics, spec::Misfits::left_out);
    diagnostics.throw_if_any();
    return experiment;
  };
  if (!built_in.table.one_pass)
    for (spec::MethodValues& tree : plan::shallow_trees_that_pay(values, built_in.table.acceptance, made))
      values.methods.push_back(std::move(tree));
  std::vector<spec::Experiment> experiments;
  experiments.push_back(made(values));
  return experiments;
}

void add_compare_options(CommandLine& line, CompareOptions& options) {
  line.add_words("config", options.workload.configs.files);
  add_workload_options(line, options.workload);
  line.add(
      {{"batches", options.batches, config::between(1, 1e6), "1,8,32: sequences decoded together, a ranking for each"},
       {"alpha", options.alpha, config::between(0.01, 0.99),
        "acceptance of a draft token at temperature 1, for the built-in methods' distributions (default 0.7)"},
       {"temperature", options.temperature, config::between(0, 1),
        "temperature at which the built-in methods' distributions are sampled, 0 to 1 (default 1)"},
       {"acceptance", options.acceptance,
        "acceptance by depth and rank, to rank chains and the best trees on: a published table (specsim list acceptance), or a "
        "file with [[rank 1, rank 2, ...] at depth 1, ...], each given that its parent is accepted; top_k: [[...]] of the "
        "likeliest 1, 2, ... tokens together; rates: [...], P(position reached); draft and target are those that "
        "the table was recorded with, unless --draft and --target name others"},
       {"rounds", options.rounds, config::between(1, 1e13),
        "rounds per method (default: the config's; for the built-in methods as many as the order needs, at most 200000)"},
       {"out", options.out, "directory for ranking.csv, trees.csv"},
       {"force", options.force, kForceHelp},
       {"threads", options.threads, read_threads, kThreadsHelp},
       {"print-config", options.print_config,
        "print the built-in methods as a config, with the other options applied, to start from"}});
}

constexpr const char* kCompareExamples =
    "  specsim compare --hardware h100-sxm --target llama-3.1-70b --tensor-parallel 4 --draft llama-3.2-1b --alpha 0.75\n"
    "  specsim compare --temperature 0\n"
    "  specsim compare --acceptance medusa-vicuna-7b --hardware a100-80gb-sxm --target llama-2-7b\n"
    "  specsim compare --batches 1,4,16,64 --context 8192 --out build/compare\n"
    "  specsim compare configs/examples/methods/trees.yaml --set \"sweep.cost.verify_inflation=[1, 1.2]\"\n"
    "  specsim compare --alpha 0.8 --target llama-3.1-70b --tensor-parallel 4 --print-config > methods.yaml\n"
    "  scripts/plots/plot_compare.py build/compare\n";

// Throws BadInput for options that contradict a config.
BuiltIn read_built_in(const CommandLine& line, const CompareOptions& options) {
  line.check({{"force", {"out"}, {}, ""},
              {"print-config", {}, {"out"}, "writes rankings, and no ranking is made"},
              {"alpha", {}, {"acceptance"}, "states the acceptance"},
              {"temperature", {}, {"acceptance"}, "states the acceptance"}});
  refuse_two_types(line, options.workload.dtype.value_or(""));
  for (const auto& [option, why] : {std::pair{"acceptance", ", whose context states the acceptance; allowed: without one"},
                                    {"print-config", ", allowed: without one, to print the built-in methods"},
                                    {"alpha", ", whose distributions determine the acceptance; allowed: without one"},
                                    {"temperature", ", whose pair sets it (target_sampling); allowed: without one"}})
    if (line.given("config") && line.given(option))
      throw BadInput({fmt::format("--{}", option), 0, 0}, fmt::format("given with a config{}", why));
  BuiltIn built_in{options.alpha.value_or(plan::kDefaultAlpha), options.temperature.value_or(1.0), {}};
  if (options.acceptance) built_in.table = spec::named_acceptance_table(*options.acceptance, {"--acceptance", 0, 0});
  return built_in;
}

// Prints the result of a few runs while the others are still running.
void print_first_answer(const std::vector<Ranking>& rankings) {
  print_error("first answer, from {} of {} runs:\n", plan::kFirstAnswer, plan::kReplicates);
  for (const Ranking& ranking : rankings) {
    const Contender& first = ranking.contenders.front();
    print_error("  {}: speedup {:.2f} ± {:.2f} by {}\n", ranking.workload, first.speedup, first.speedup_half_width,
                method_words(first));
  }
}

void print_rankings(const std::vector<Ranking>& rankings, const std::vector<spec::Experiment>& experiments, plan::Draws draws) {
  print_output(
      "± excludes errors of latencies and alpha (ties within the latency error have a separate line). It is half of a "
      "{:g} % interval of one method, or of one pair, from {}{} "
      "runs, each with its own draw of random distributions. The distance to the first comes from paired "
      "runs, in which all methods have the same distributions and random numbers. The first is the best of noisy figures: its "
      "own is "
      "more "
      "likely too high than too low\n",
      100.0 * plan::kRankingLevel, draws == plan::Draws::as_needed ? "up to " : "", plan::kReplicates);
  if (draws == plan::Draws::as_needed) {
    const plan::RaceRule rule;
    print_output(
        "A method that is significantly slower after {} or {} runs is stopped, and its speedup follows from its ratio to the "
        "first "
        "in "
        "the same runs; the truly fastest is stopped with a probability of at most {:g} %. With --rounds all methods run to the "
        "end\n",
        rule.looks.front(), rule.looks.back(), 100.0 * rule.error);
  }
  for (const spec::Experiment& one : experiments)
    for (const std::string& line : one.left_out) print_output("omitted: {}\n", line);
  std::set<const tokens::Tree*> drawn;
  for (const Ranking& ranking : rankings) {
    print_ranking(ranking, draws);
    const tokens::Tree* tree = plan::tree_of(*ranking.contenders.front().row.cell);
    if (tree != nullptr && drawn.insert(tree).second) print_tree(*tree);
  }
}

}  // namespace

ExitCode compare_command(const std::vector<std::string>& arguments) {
  CompareOptions options;
  CommandLine line("specsim compare [CONFIG...] [options]", kCompareExamples);
  add_compare_options(line, options);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  const FilesRead read;
  const BuiltIn built_in = read_built_in(line, options);
  run::RunOptions run;
  run.threads = options.threads;
  const std::vector<spec::Experiment> experiments = experiments_of(options, built_in);
  if (options.print_config) {
    print_output("{}", experiments.front().config.file);
    return ExitCode::fine;
  }
  std::optional<report::OutputFolder> folder;
  if (options.out) {
    folder.emplace(*options.out);
    folder->claim(claim_at_once({"ranking.csv", "trees.csv"}, line.identity({"set"}, run::identity(experiments)), options.force,
                                run::inputs_of(experiments, read.sums())));
  }
  const std::vector<const spec::Cell*> cells = cells_of(experiments);
  check_tables(cells, run.threads, experiments.front().file, plan::kReplicates);
  print_warnings(cells);
  if (const std::string rising = built_in.table.rising(); !rising.empty()) print_warning(rising);
  if (cells.front()->cost_choice) warn_of_pair(cells.front()->cost().deployment(), options.acceptance.value_or(""));

  Progress progress;
  run.progress = [&](double done, double all) { progress.show(done, all); };
  const StopOnSignal stop;
  run.stop = stop.flag();
  const plan::Draws draws = !line.given("config") && !options.rounds ? plan::Draws::as_needed : plan::Draws::all;
  const std::vector<Ranking> rankings = plan::rank_methods(cells, run, draws, [&](const std::vector<Ranking>& first) {
    progress.finish();
    print_first_answer(first);
  });
  progress.finish();
  if (rankings.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  const bool trees =
      std::any_of(cells.begin(), cells.end(), [](const spec::Cell* cell) { return plan::tree_of(*cell) != nullptr; });
  if (!line.given("config")) print_assumptions(options.workload, built_in, experiments.front().config.sections.at("cost"), trees);
  print_rankings(rankings, experiments, draws);
  if (folder) {
    folder->write("ranking.csv", plan::ranking_csv(rankings));
    folder->write("trees.csv", plan::trees_csv(rankings));
    folder->finish(new_manifest(experiments, run.threads, started));
    print_output("\nwrote {0}/ranking.csv, trees.csv, manifest.yaml; specsim plot {1} draws them\n", folder->path(),
                 shell_word(folder->path()));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
