#include "sim/answers/plan/ranking.h"

#include "sim/answers/plan/engine_methods.h"
#include "sim/answers/plan/latency_noise.h"
#include "sim/answers/plan/race.h"
#include "sim/experiments/judge/facts.h"
#include "sim/experiments/spec/axes.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::plan {

namespace {

using ByReplicate = std::vector<double>;

double half_width(const ByReplicate& samples) { return report::half_width(report::mean_of(samples), kRankingLevel); }

// This text must not change: another one would change every committed ranking.
spec::Cell in_replicate(const spec::Cell& cell, int replicate) {
  return spec::reseeded(cell, rng::hash_text(fmt::format("seed {} world {}", cell.seed, replicate)), cell.rounds / kReplicates);
}

double plain_time(const spec::Cell& cell) { return cell.round_time(0.0).plain.total(); }

double speedup_of(const judge::Row& row) { return row.tokens_per_round() * row.speedup_per_token(); }

RoundEstimate estimate_of(const judge::Row& row) {
  return {&row.cell->cost(), row.cell->workload, row.verified_rows(), row.round_time()};
}

// Cells that are ranked together, by their indices in the list of all.
struct Group {
  std::string workload;
  std::vector<std::size_t> cells;
};

// Throws BadInput for cells that cannot be ranked together.
std::vector<Group> groups_of(const std::vector<const spec::Cell*>& cells) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string workload = workload_of(*cells[i]);
    const auto same = [&](const Group& group) { return group.workload == workload; };
    auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end()) at = groups.insert(groups.end(), {workload, {}});
    const spec::Cell& first = at->cells.empty() ? *cells[i] : *cells[at->cells.front()];
    if (cells[i]->pairing_group != first.pairing_group || cells[i]->seed != first.seed || cells[i]->work() != first.work())
      throw BadInput(
          cells[i]->places.config,
          fmt::format("distributions, seed or rounds of {} differ from those of {}, allowed among compared methods: one "
                      "pair, context, seed and number of rounds",
                      cells[i]->experiment, first.experiment));
    if (!cells[i]->cost_choice)
      throw BadInput(cells[i]->places.config,
                     fmt::format("{} names no cost, allowed: cost: {{model: NAME, ...}}, since methods are ranked by speedup",
                                 cells[i]->experiment));
    if (cells[i]->placement)
      throw BadInput(cells[i]->places.config,
                     fmt::format("{} has a placement, allowed: none, since rounds are timed one after the "
                                 "other; specsim run times placements",
                                 cells[i]->experiment));
    const double plain = plain_time(*cells[i]);
    if (std::abs(plain - plain_time(first)) > 1e-9 * plain)
      throw BadInput(cells[i]->places.config,
                     fmt::format("plain decoding of {} takes another time than that of {}, allowed among methods to be "
                                 "compared: one target and one GPU",
                                 cells[i]->experiment, first.experiment));
    const std::uint64_t least = std::uint64_t{kReplicates} * cells[i]->sequence_rounds;
    if (cells[i]->rounds < least && !cells[i]->contexts->process->shape().ends()) {
      throw BadInput(
          cells[i]->places.rounds,
          fmt::format("rounds is {}, allowed: at least {}, a sequence of {} in each of the {} draws of distributions from which "
                      "errors are estimated",
                      cells[i]->rounds, least, cells[i]->sequence_rounds, kReplicates));
    }
    at->cells.push_back(i);
  }
  return groups;
}

// The results of the replicates so far.
class Samples {
 public:
  explicit Samples(const std::vector<const spec::Cell*>& cells) : cells_(&cells) {
    std::map<std::string, std::size_t> simulated;  // -> place in `leaders_`
    for (const spec::Cell* cell : cells) {
      const auto [at, fresh] = simulated.try_emplace(cell->simulation_key, leaders_.size());
      if (fresh) leaders_.push_back(cell);
      leader_of_.push_back(at->second);
    }
    counts_.resize(leaders_.size());
  }

  // Runs the missing replicates of these cells up to `end`; false if it was stopped.
  bool run(const std::vector<bool>& wanted, int end, const run::RunOptions& options) {
    std::vector<bool> leads(leaders_.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) leads[leader_of_[i]] = true;
    std::vector<spec::Cell> replicates;
    std::vector<std::size_t> leader;
    for (std::size_t i = 0; i < leaders_.size(); ++i) {
      for (auto replicate = static_cast<int>(counts_[i].size()); leads[i] && replicate < end; ++replicate) {
        replicates.push_back(in_replicate(*leaders_[i], replicate));
        leader.push_back(i);
      }
    }
    std::vector<const spec::Cell*> all;
    for (const spec::Cell& cell : replicates) all.push_back(&cell);
    run::RunOptions own = options;
    double batch = 0.0;
    if (options.progress)  // relative to the largest possible number
      own.progress = [&, most = static_cast<double>(leaders_.size()) * kReplicates](double done, double rounds) {
        batch = rounds;
        options.progress(done_ + done, rounds * most / static_cast<double>(all.size()));
      };
    run::RunResult result = run::run_cells(all, own);
    done_ += batch;
    if (!result.finished) return false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      result.counts[i].output.clear();
      counts_[leader[i]].push_back(std::move(result.counts[i]));
    }
    return true;
  }

  // A cell's figures from its first `replicates` replicates, except its rank. `speedups`: in each replicate.
  [[nodiscard]] Contender contender(std::size_t cell, int replicates, ByReplicate& speedups) const {
    Contender one;
    one.row.cell = (*cells_)[cell];
    one.replicates = replicates;
    ByReplicate tokens_per_round;
    decode::Counts sum;
    double tokens = 0.0;
    double time = 0.0;  // in passes of decoding without speculation
    for (int replicate = 0; replicate < replicates; ++replicate) {
      one.row.counts = counts_[leader_of_[cell]][static_cast<std::size_t>(replicate)];
      speedups.push_back(speedup_of(one.row));
      tokens_per_round.push_back(one.row.tokens_per_round());
      tokens += static_cast<double>(one.row.counts.emitted);
      time += static_cast<double>(one.row.counts.emitted) / speedups.back();
      if (replicate == 0)
        sum = one.row.counts;
      else
        sum.add(one.row.counts);
    }
    one.row.counts = std::move(sum);
    one.tokens_per_round_error = report::mean_of(tokens_per_round).error;
    // Latencies are estimated replicate by replicate: a batch in lockstep belongs to one replicate, and pooled counts would mix
    // them.
    one.speedup = tokens / time;
    one.speedup_half_width = half_width(speedups);
    const spec::PolicyChoice* policy = one.row.cell->policy();
    one.uses_forecasts = policy != nullptr && policy->part->uses_forecasts();
    one.engine_runs = plan::engine_runs(*one.row.cell);
    return one;
  }
  [[nodiscard]] double speedup(std::size_t cell, int replicates) const {
    ByReplicate speedups;
    return contender(cell, replicates, speedups).speedup;
  }

 private:
  const std::vector<const spec::Cell*>* cells_;
  std::vector<const spec::Cell*> leaders_;           // simulated cells
  std::vector<std::size_t> leader_of_;               // [cell]
  std::vector<std::vector<decode::Counts>> counts_;  // [leader][replicate]
  double done_ = 0.0;                                // rounds
};

// The first `replicates[i]` replicates of each cell of a group, fastest first.
Ranking ranking_of(const Group& group, const Samples& samples, const std::vector<int>& replicates) {
  std::vector<ByReplicate> speedups(group.cells.size());
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < group.cells.size(); ++i)
    contenders.push_back(samples.contender(group.cells[i], replicates[i], speedups[i]));
  const int most = *std::max_element(replicates.begin(), replicates.end());
  const auto longest = [&](std::size_t i) { return replicates[i] == most; };
  std::vector<std::size_t> order(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto faster = [&](std::size_t a, std::size_t b) {
    return longest(a) != longest(b) ? longest(a) : contenders[a].speedup > contenders[b].speedup;
  };
  std::stable_sort(order.begin(), order.end(), faster);
  const std::size_t leader = order[0];
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (!longest(i)) contenders[i].speedup *= contenders[leader].speedup / samples.speedup(group.cells[leader], replicates[i]);
  // A method that was dropped was slower than some other method, which may have been overtaken since. No dropped method is
  // placed before the first.
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](std::size_t a, std::size_t b) { return contenders[a].speedup > contenders[b].speedup; });

  // The fastest method that a user can run; if all foresee acceptance, the fastest of all.
  const auto runs = std::find_if(order.begin(), order.end(), [&](std::size_t i) { return !contenders[i].uses_forecasts; });
  const std::size_t first_method = runs != order.end() ? *runs : order[0];
  const double method_speedup = contenders[first_method].speedup;
  const auto ratios = [&](std::size_t i, std::size_t to) {
    ByReplicate own;
    for (std::size_t replicate = 0; replicate < std::min(speedups[i].size(), speedups[to].size()); ++replicate)
      own.push_back(speedups[i][replicate] / speedups[to][replicate]);
    return own;
  };
  const RoundEstimate estimate = estimate_of(contenders[first_method].row);
  Ranking ranking{group.workload, {}};
  for (const std::size_t i : order) {
    Contender one = std::move(contenders[i]);
    one.behind = ranking.contenders.empty() ? 0.0 : 1.0 - one.speedup / ranking.contenders[0].speedup;
    one.behind_half_width = half_width(ratios(i, order[0]));
    one.behind_method = 1.0 - one.speedup / method_speedup;
    one.behind_method_half_width = half_width(ratios(i, first_method));
    if (i != first_method) one.latency_noise = latency_noise(estimate, estimate_of(one.row));
    const RoundEstimate own = estimate_of(one.row);
    cost::RoundTime plain;
    plain.plain = plain.verify = own.time.plain;
    one.gain = {std::log(one.speedup),
                std::hypot(latency_noise({own.cost, own.workload, 1.0, plain}, own),
                           one.speedup_half_width / report::half_width(1.0, one.replicates - 1.0, kRankingLevel) / one.speedup)};
    ranking.contenders.push_back(std::move(one));
  }
  return ranking;
}

// The methods still in the race for first place in a group.
struct Race {
  std::vector<bool> in;         // [member]
  std::vector<int> replicates;  // [member]: until it was dropped, or the race ended
  bool over = false;
};

void look_at(Race& race, const Group& group, const Samples& samples, const RaceRule& rule) {
  std::vector<std::vector<double>> speedups;
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < group.cells.size(); ++i) {
    if (!race.in[i]) continue;
    static_cast<void>(samples.contender(group.cells[i], race.replicates[i], speedups.emplace_back()));
    members.push_back(i);
  }
  const RaceLook look = race_state(rule, speedups, group.cells.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    if (look.behind[i]) race.in[members[i]] = false;
  race.over = look.over;
}

}  // namespace

std::string workload_of(const spec::Cell& cell) {
  std::string text = fmt::format("batch {:g}, context {:g}", cell.workload.batch, cell.workload.context);
  for (const auto& [path, value] : cell.axes)
    if (spec::axis_kind(path) == spec::AxisKind::other) text += fmt::format(", {} {}", path, value);
  return text;
}

judge::Prediction exact_on_table(const spec::Cell& cell) {
  if (cell.contexts->process->shape().kind != families::ContextShape::Kind::by_rank) return {};
  return judge::predict_exact(cell, judge::gather_facts(cell, spec::plan_of(cell), nullptr), cell.rounds / kReplicates);
}

std::vector<Ranking> rank_methods(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options, Draws draws,
                                  const FirstAnswer& first_answer) {
  const std::vector<Group> groups = groups_of(cells);
  Samples samples(cells);
  std::vector<Race> races;
  for (const Group& group : groups)
    races.push_back({std::vector<bool>(group.cells.size(), true), std::vector<int>(group.cells.size()), false});
  const auto rankings = [&] {
    std::vector<Ranking> all;
    for (std::size_t g = 0; g < groups.size(); ++g) all.push_back(ranking_of(groups[g], samples, races[g].replicates));
    return all;
  };
  const RaceRule rule;
  std::vector<int> stages = {kReplicates};
  if (draws == Draws::as_needed) {
    stages.insert(stages.begin(), rule.looks.begin(), rule.looks.end());
    stages.insert(stages.begin(), kFirstAnswer);
  }
  for (const int stage : stages) {
    std::vector<bool> wanted(cells.size());
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::size_t i = 0; i < groups[g].cells.size(); ++i)
        if (!races[g].over && races[g].in[i]) wanted[groups[g].cells[i]] = true;
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) break;
    if (!samples.run(wanted, stage, options)) return {};
    const bool looks = std::find(rule.looks.begin(), rule.looks.end(), stage) != rule.looks.end();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (races[g].over) continue;
      for (std::size_t i = 0; i < groups[g].cells.size(); ++i)
        if (races[g].in[i]) races[g].replicates[i] = stage;
      if (looks) look_at(races[g], groups[g], samples, rule);
    }
    if (stage == kFirstAnswer && first_answer) first_answer(rankings());
  }
  std::vector<Ranking> all = rankings();
  for (Ranking& ranking : all)
    for (Contender& one : ranking.contenders) one.row.exact = exact_on_table(*one.row.cell);
  return all;
}

const tokens::Tree* tree_of(const spec::Cell& cell) {
  const tokens::Tree* tree = cell.judges_blocks() ? cell.block()->drafter->tree() : nullptr;
  return tree != nullptr && tree->drafted() > tree->height() ? tree : nullptr;  // a chain needs no picture
}

namespace {

// A line of trees.csv: a node of the tree of a workload's fastest method.
struct NodeLine {
  const Ranking* ranking = nullptr;
  std::size_t at = 0;
  tokens::Tree::Node node;
};

const std::vector<report::Column<NodeLine>>& node_columns() {
  using Line = NodeLine;
  static const std::vector<report::Column<Line>> list = {
      {"workload", "", "the workload in words", [](const Line& line) { return line.ranking->workload; }},
      {"method", "", "the workload's fastest: drafter, policy and verifier as a config writes them",
       [](const Line& line) { return line.ranking->contenders.front().row.cell->method_text; }},
      {"node", "1", "number of the node in its tree, from 0", [](const Line& line) { return std::to_string(line.at); }},
      {"parent", "1", "number of its parent node; -1: it is the root",
       [](const Line& line) { return std::to_string(line.node.parent); }},
      {"depth", "1", "drafted tokens on the path to it; 0: the root",
       [](const Line& line) { return std::to_string(line.node.depth); }},
      {"rank", "1", "place among its siblings, from 0", [](const Line& line) { return std::to_string(line.node.rank); }}};
  return list;
}

// A line of ranking.csv: a method on a workload.
struct RankLine {
  const Ranking* ranking = nullptr;
  std::size_t rank = 0;  // from 1
  const Contender* contender = nullptr;
};

const std::vector<report::Column<RankLine>>& rank_columns() {
  using Line = RankLine;
  using report::csv_real;
  const auto of_row = [](const char* name) {
    return report::column_through<Line, judge::Row>(report::column_named(judge::columns(), name),
                                                    [](const Line& line) -> const judge::Row& { return line.contender->row; });
  };
  static const std::vector<report::Column<Line>> list = {
      {"workload", "", "the workload in words", [](const Line& line) { return line.ranking->workload; }},
      {"rank", "1", "place on the workload; 1: the fastest", [](const Line& line) { return std::to_string(line.rank); }},
      {"experiment", "", "the experiment's name in the config",
       [](const Line& line) { return line.contender->row.cell->experiment; }},
      {"cell", "1", "number in the experiment's grid, from 0",
       [](const Line& line) { return std::to_string(line.contender->row.cell->index); }},
      {"method", "", "drafter, policy and verifier as a config writes them",
       [](const Line& line) { return line.contender->row.cell->method_text; }},
      {"lossless", "0 or 1", "whether the verifier keeps the target's distribution",
       [](const Line& line) { return line.contender->row.cell->lossless() ? "1" : "0"; }},
      {"engine_runs", "0 or 1",
       "whether the engine in the cost supports such drafts and such a verifier; empty: its file does not state it",
       [](const Line& line) { return line.contender->engine_runs ? (*line.contender->engine_runs ? "1" : "0") : ""; }},
      of_row("tokens_per_round"),
      {"tokens_per_round_se", "tokens", "standard error of tokens_per_round, over the replicates",
       [](const Line& line) { return csv_real(line.contender->tokens_per_round_error); }},
      of_row("draft_passes"),
      of_row("verified_rows"),
      {"speedup", "1", "speedup over plain decoding", [](const Line& line) { return csv_real(line.contender->speedup); }},
      {"speedup_half_width", "1", "half the width of its 99 % interval, over the replicates",
       [](const Line& line) { return csv_real(line.contender->speedup_half_width); }},
      {"speedup_low", "1", "lower bound of the speedup's 95 % interval, with the latency model's error",
       [](const Line& line) { return csv_real(line.contender->gain.low()); }},
      {"speedup_high", "1", "upper bound", [](const Line& line) { return csv_real(line.contender->gain.high()); }},
      {"pays_probability", "1", "probability that the speedup is above 1",
       [](const Line& line) { return csv_real(line.contender->gain.pays()); }},
      {"behind", "1", "1 - speedup / that of the fastest", [](const Line& line) { return csv_real(line.contender->behind); }},
      {"behind_half_width", "1", "half the width of its 99 % interval, from ratios within each replicate",
       [](const Line& line) { return csv_real(line.contender->behind_half_width); }},
      {"price_noise", "1",
       "standard error of the logarithm of the fastest method's speedup over this one's, from the latency model's errors",
       [](const Line& line) { return csv_real(line.contender->latency_noise); }},
      {"tokens_per_round_exact", "tokens",
       "by theory for an acceptance table, as a sum over the nodes; the column exists if such a table is ranked",
       [](const Line& line) {
         const judge::Prediction& exact = line.contender->row.exact;
         return exact.known ? csv_real(exact.tokens_per_round) : "";
       }}};
  return list;
}

}  // namespace

std::string trees_csv(const std::vector<Ranking>& rankings) {
  std::vector<NodeLine> lines;
  for (const Ranking& ranking : rankings) {
    const tokens::Tree* const tree = tree_of(*ranking.contenders.front().row.cell);
    for (std::size_t i = 0; tree != nullptr && i < tree->nodes.size(); ++i) lines.push_back({&ranking, i, tree->nodes[i]});
  }
  return report::csv(node_columns(), lines);
}

std::string ranking_csv(const std::vector<Ranking>& rankings) {
  std::vector<RankLine> lines;
  for (const Ranking& ranking : rankings)
    for (std::size_t i = 0; i < ranking.contenders.size(); ++i) lines.push_back({&ranking, i + 1, &ranking.contenders[i]});
  std::vector<report::Column<RankLine>> columns = rank_columns();
  if (std::none_of(lines.begin(), lines.end(), [](const RankLine& line) { return line.contender->row.exact.known; }))
    columns.pop_back();  // tokens_per_round_exact
  return report::csv(columns, lines);
}

std::vector<report::FileInfo> ranking_file_infos() {
  return {{"ranking.csv of compare", report::column_infos(rank_columns())},
          {"trees.csv of compare", report::column_infos(node_columns()), "Methods with chains have no lines."}};
}

}  // namespace specsim::plan
