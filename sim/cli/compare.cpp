// specsim compare: which method of drafting and verifying is fastest on a workload, and by how much for sure.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/options.h"
#include "sim/cli/stop.h"
#include "sim/cli/workload_options.h"
#include "sim/judge/coverage.h"
#include "sim/plan/ranking.h"
#include "sim/report/output_folder.h"
#include "sim/report/table.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

using plan::Contender;
using plan::Ranking;

// Methods of one draft model. {0}: alpha, in each of 32 contexts, some of which all but settle the next token while others leave
// it open, as real text does: trees that follow the draft's confidence live on that. The rest of Sequoia's acceptance vector,
// {1}, only says what tree to build.
constexpr const char* kMethods = R"(experiment: compare
rounds: 200000
pair: {{vocab: 4000, target: {{family: normal_logits, sigma: 5}}, draft: {{from: target, transform: overlap, value: {0}}}}}
context: {{process: iid, pool: 32}}
decode: {{drafter: {{kind: chain, draft_length: 4}}, verifier: token}}
cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}}
workload: {{batch: 1, context_length: 2048}}
sweep:
  decode:
    - {{drafter: {{kind: chain, draft_length: 2}}, verifier: token}}
    - {{drafter: {{kind: chain, draft_length: 4}}, verifier: token}}
    - {{drafter: {{kind: chain, draft_length: 6}}, verifier: token}}
    - {{drafter: {{kind: chain, draft_length: 4}}, verifier: block}}
    - {{drafter: {{kind: chain, draft_length: 6}}, verifier: block}}
    - {{drafter: {{kind: tree_static, branching: [2, 2, 1, 1]}}, verifier: multi_draft_recursive}}
    - {{drafter: {{kind: tree_static, branching: [2, 2, 1, 1]}}, verifier: kseq}}
    - {{drafter: {{kind: tree_static, branching: [2, 2, 1, 1]}}, verifier: traversal}}
    - {{drafter: {{kind: tree_static, branching: [2, 2, 1, 1], siblings: without_replacement}}, verifier: without_replacement}}
    - {{drafter: {{kind: tree_sequoia, budget: 16, depth: 4, acceptance: {1}, siblings: without_replacement}}, verifier: without_replacement}}
    - {{drafter: {{kind: tree_sequoia, budget: 64, depth: 4, acceptance: {1}, siblings: without_replacement}}, verifier: without_replacement}}
    - {{drafter: {{kind: tree_dynamic, depth: 4, width: 4, nodes: 16}}, verifier: tree_point_mass}}
  workload.batch: [1, 8, 32]
)";
constexpr double kDefaultAlpha = 0.7;

std::string built_in_methods(double alpha) {
  const double rest = 1.0 - alpha;
  return fmt::format(
      kMethods, alpha,
      fmt::format("[{:.6g}, {:.6g}, {:.6g}, {:.6g}]", alpha, 0.4 * rest, 0.4 * 0.4 * rest, 0.4 * 0.4 * 0.4 * rest));
}

const tokens::Tree* tree_of(const spec::Cell& cell) {
  const tokens::Tree* tree = cell.block() != nullptr ? cell.block()->drafter->tree() : nullptr;
  return tree != nullptr && tree->drafted() > tree->height() ? tree : nullptr;  // a chain needs no drawing
}

// A line for each node, children indented below their parent.
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
  constexpr std::size_t kLongest = 100;
  return method.size() <= kLongest ? method
                                   : method.substr(0, kLongest / 2) + " ... " + method.substr(method.size() - kLongest / 2);
}

// A config in YAML, each value of its axes on a line.
std::string config_text(const config::Value& config) {
  std::string text;
  for (const config::Field& field : config.fields) {
    if (field.key != "sweep") {
      text += fmt::format("{}: {}\n", field.key, config::to_flow_text(field.value));
      continue;
    }
    text += "sweep:\n";
    for (const config::Field& axis : field.value.fields) {
      text += fmt::format("  {}:{}\n", axis.key, axis.value.is_list() ? "" : " " + config::to_flow_text(axis.value));
      for (const config::Value& value : axis.value.items) text += fmt::format("    - {}\n", config::to_flow_text(value));
    }
  }
  return text;
}

void print_ranking(const Ranking& ranking) {
  report::Table table({{"rank"}, {"tokens/round"}, {"speedup"}, {"behind the first"}, {"method", report::Align::left}},
                      {.indent = 2});
  bool plain_shown = false;
  const auto plain = [&] {
    table.add({"", "1.0000", "1.0000", "", "plain decoding: below this line, do not speculate"});
    plain_shown = true;
  };
  int rank = 0;
  for (const Contender& one : ranking.contenders) {
    if (!plain_shown && one.speedup < 1.0) plain();
    if (!one.foresees) ++rank;
    const bool first = !one.foresees && rank == 1;
    table.add({one.foresees ? "-" : std::to_string(rank), fmt::format("{:.4f}", one.row.tokens_per_round()),
               fmt::format("{:.4f} ± {:.4f}", one.speedup, one.speedup_half_width),
               first ? "-" : fmt::format("{:.2f} % ± {:.2f}", 100.0 * one.behind_method, 100.0 * one.behind_method_half_width),
               shown(one.row.cell->method_text) + (one.row.cell->lossless() ? "" : " (not lossless)") +
                   (one.foresees ? " (no method: it knows what will be accepted)" : "")});
  }
  if (!plain_shown) plain();
  print_output("\n{}\n{}", ranking.workload, table.text(output_width()));
  std::vector<judge::Uncovered> uncovered;
  for (const Contender& one : ranking.contenders)
    for (judge::Uncovered& own : judge::uncovered({one.row.cell}))
      uncovered.push_back({shown(one.row.cell->method_text), std::move(own.why)});
  write_output(judge::no_theory_lines(uncovered));
}

// What the order of the built-in methods rests on.
void print_assumptions(const Options& options, double alpha, const config::Value& cost) {
  if (const std::string assumed = assumptions(options); !assumed.empty())
    print_output("ASSUMED, for nothing else was said: {}\n", assumed);
  const std::string words = fmt::format(
      "This ranking holds for sampling at temperature 1 from synthetic distributions on which one draft token is accepted with "
      "probability {:g}, the same draft for every method. There a tree of the draft's likeliest tokens (tree_dynamic, EAGLE-2's) gains "
      "little: in results/real_methods such a tree gave 2.17 tokens per round against a chain's 2.72 at temperature 1, and 3.69 against "
      "2.96 at temperature 0, where it wins. Heads that were trained on their target accept more than any draft model here. For another "
      "temperature or draft, rank distributions of your own: --print-config shows these, with their cost {}",
      alpha, config::to_flow_text(cost));
  for (const std::string& line : report::wrap_words(words, output_width())) print_output("{}\n", line);
}

std::string trees_csv(const std::vector<Ranking>& rankings) {
  std::string text = "workload,method,node,parent,depth,rank\n";
  for (const Ranking& ranking : rankings)
    if (const tokens::Tree* tree = tree_of(*ranking.contenders.front().row.cell))
      for (std::size_t node = 0; node < tree->nodes.size(); ++node)
        text += fmt::format("{},{},{},{},{},{}\n", judge::csv_text(ranking.workload),
                            judge::csv_text(ranking.contenders.front().row.cell->method_text), node, tree->nodes[node].parent,
                            tree->nodes[node].depth, tree->nodes[node].rank);
  return text;
}

}  // namespace

ExitCode compare_command(const std::vector<std::string>& arguments) {
  po::options_description description;
  const auto text = [] { return po::value<std::string>(); };
  add_workload_options(description);
  description.add_options()("batches", text(), "1,8,32: sequences decoded together, a ranking for each")(
      "alpha", text(), "acceptance of a draft token, of the built-in methods' distributions (default 0.7)")(
      "rounds", text(), "of each method (default 200000, or the config's)")(
      "out", text(), "directory for ranking.csv, trees.csv")("threads", po::value<std::string>()->default_value("0"),
                                                             kThreadsHelp)(
      "print-config", "the built-in methods as a config, with what the other options change, to start from");
  po::variables_map values;
  if (!parse(
          arguments, description, "config", "specsim compare [CONFIG...] [options]",
          "  specsim compare --hardware h100-sxm --target llama-3.1-70b --tensor-parallel 4 --draft llama-3.2-1b --alpha 0.75\n"
          "  specsim compare --batches 1,4,16,64 --context 8192 --out build/compare\n"
          "  specsim compare configs/examples/methods/trees.yaml --set \"sweep.cost.verify_inflation=[1, 1.2]\"\n"
          "  specsim compare --alpha 0.8 --target llama-3.1-70b --tensor-parallel 4 --print-config > methods.yaml\n"
          "  scripts/plot_compare.py build/compare\n",
          values))
    return ExitCode::fine;
  const Options options(values);
  const double alpha =
      options.has("alpha") ? read_number(options.text("alpha"), "--alpha", config::between(0.01, 0.99)) : kDefaultAlpha;
  const std::vector<std::string> files = options.texts("config");
  if (options.has("print-config") && !files.empty())
    throw BadInput({"--print-config", 0, 0}, "given with a config, allowed: without one, to print the built-in methods");
  if (options.has("alpha") && !files.empty())
    throw BadInput({"--alpha", 0, 0}, "given with a config, whose distributions say the acceptance; allowed: without one");
  run::RunOptions run;
  run.threads = read_threads(options.text("threads"));
  std::vector<std::string> sets = named_sets(options, files.empty());
  if (options.has("batches")) {
    static_cast<void>(read_integers(options.text("batches"), "--batches", config::between(1, 1e6)));
    sets.push_back("sweep.workload.batch=[" + options.text("batches") + "]");
  }
  if (options.has("rounds"))
    sets.push_back("rounds=" + std::to_string(read_integer(options.text("rounds"), "--rounds", config::between(1, 1e13))));
  const double started = wall_clock();
  const std::string seed = options.has("seed") ? options.text("seed") : "";
  std::vector<spec::Experiment> experiments;
  if (files.empty()) {
    Diagnostics diagnostics;
    experiments.push_back(spec::read_experiment(config::parse_text(built_in_methods(alpha), "the built-in methods", diagnostics),
                                                "the built-in methods", read_overrides(sets, seed, diagnostics), diagnostics,
                                                spec::Misfits::left_out));
    diagnostics.throw_if_any();
  } else {
    experiments = read_experiments(files, sets, seed, spec::Misfits::left_out);
  }
  if (options.has("print-config")) {
    print_output("{}", config_text(experiments.front().config));
    return ExitCode::fine;
  }
  const std::string out = options.has("out") ? options.text("out") : "";
  std::optional<report::OutputFolder> folder;
  if (options.has("out")) {
    guard_results(out);
    folder.emplace(out);
  }
  std::vector<const spec::Cell*> cells;
  for (const spec::Experiment& one : experiments)
    for (const spec::Cell& cell : one.cells) cells.push_back(&cell);
  check_tables(cells, run.threads, experiments.front().file, plan::kReplicates);
  print_warnings(cells);

  Progress progress;
  run.progress = [&](double done, double all) { progress.show(done, all); };
  const StopOnSignal stop;
  run.stop = stop.flag();
  const std::vector<Ranking> rankings = plan::rank_methods(cells, run);
  progress.finish();
  if (rankings.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  if (files.empty())
    print_assumptions(options, alpha, *experiments.front().config.find("cost"));
  print_output(
      "± leaves out what prices and alpha are off by. It is half of a {:g} % interval of one method, or of one pair, from {} "
      "runs, each with its own draw of distributions that are random; \"behind\" from paired "
      "runs, in which all methods meet the same distributions and chance; the first is the best of noisy figures\n",
      100.0 * plan::kRankingLevel, plan::kReplicates);
  for (const spec::Experiment& one : experiments)
    for (const std::string& line : one.left_out) print_output("left out: {}\n", line);
  std::set<const tokens::Tree*> drawn;
  for (const Ranking& ranking : rankings) {
    print_ranking(ranking);
    const tokens::Tree* tree = tree_of(*ranking.contenders.front().row.cell);
    if (tree != nullptr && drawn.insert(tree).second) print_tree(*tree);
  }
  if (folder) {
    folder->write("ranking.csv", plan::ranking_csv(rankings));
    folder->write("trees.csv", trees_csv(rankings));
    folder->write("manifest.yaml", report::manifest_text(new_manifest(experiments, run.threads, started)));
    print_output("\nwrote {}/ranking.csv, trees.csv, manifest.yaml; scripts/plot_compare.py {} draws them\n", out, out);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
