#include "sim/plan/ranking.h"

#include "sim/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace specsim::plan {

namespace {

// What is ranked together.
std::string workload_of(const spec::Cell& cell) {
  std::string text = fmt::format("batch {:g}, context {:g}", cell.workload.batch, cell.workload.context);
  for (const auto& [path, value] : cell.axes)
    if (path != "decode" && !path.starts_with("decode.") && path != "cost.draft" && path != "workload" &&
        !path.starts_with("workload."))
      text += fmt::format(", {} {}", path, value);
  return text;
}

using ByReplicate = std::array<double, kReplicates>;

double half_width(const ByReplicate& samples) { return report::half_width(report::mean_of(samples), kRankingLevel); }

spec::Cell in_replicate(const spec::Cell& cell, int replicate) {
  return spec::reseeded(cell, rng::hash_text(fmt::format("seed {} world {}", cell.seed, replicate)), cell.rounds / kReplicates);
}

double plain_time(const spec::Cell& cell) { return cell.round_time(0.0).plain.total(); }

double speedup_of(const judge::Row& row) { return row.tokens_per_round() * row.speedup_per_token(); }

}  // namespace

std::vector<Ranking> rank_methods(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options) {
  std::vector<Ranking> rankings;
  std::vector<std::vector<std::size_t>> members;  // of each: cells
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string workload = workload_of(*cells[i]);
    const auto same = [&](const Ranking& ranking) { return ranking.workload == workload; };
    const auto at = static_cast<std::size_t>(std::find_if(rankings.begin(), rankings.end(), same) - rankings.begin());
    if (at == rankings.size()) {
      rankings.push_back({workload, {}});
      members.emplace_back();
    }
    const spec::Cell& first = members[at].empty() ? *cells[i] : *cells[members[at].front()];
    if (cells[i]->pairing_group != first.pairing_group || cells[i]->seed != first.seed || cells[i]->work() != first.work())
      throw BadInput(
          cells[i]->places.config,
          fmt::format("distributions, seed or rounds of {} are not those of {}, allowed among methods that are compared: one "
                      "pair, context, seed and number of rounds",
                      cells[i]->experiment, first.experiment));
    if (!cells[i]->pricing)
      throw BadInput(cells[i]->places.config,
                     fmt::format("{} names no cost, allowed: cost: {{model: NAME, ...}}, since methods are ranked by speedup",
                                 cells[i]->experiment));
    if (cells[i]->placement)
      throw BadInput(cells[i]->places.config,
                     fmt::format("{} has a placement, allowed: none, since rounds are priced one after the "
                                 "other; specsim run times placements",
                                 cells[i]->experiment));
    const double plain = plain_time(*cells[i]);
    if (std::abs(plain - plain_time(first)) > 1e-9 * plain)
      throw BadInput(cells[i]->places.config,
                     fmt::format("plain decoding of {} takes another time than that of {}, allowed among methods that are "
                                 "compared: one target and one GPU",
                                 cells[i]->experiment, first.experiment));
    const std::uint64_t least = std::uint64_t{kReplicates} * cells[i]->sequence_rounds;
    if (cells[i]->rounds < least && !cells[i]->contexts->process->shape().ends()) {
      throw BadInput(
          cells[i]->places.rounds,
          fmt::format("rounds is {}, allowed: at least {}, a sequence of {} in each of the {} draws of distributions that "
                      "errors come from",
                      cells[i]->rounds, least, cells[i]->sequence_rounds, kReplicates));
    }
    members[at].push_back(i);
  }

  std::map<std::string, std::size_t> simulated;  // -> place in `leaders`
  std::vector<const spec::Cell*> leaders;
  std::vector<std::size_t> leader_of;  // [cell]
  for (const spec::Cell* cell : cells) {
    const auto [at, fresh] = simulated.try_emplace(cell->simulation_key, leaders.size());
    if (fresh) leaders.push_back(cell);
    leader_of.push_back(at->second);
  }
  std::vector<spec::Cell> replicates;  // [leader * kReplicates + replicate]
  for (const spec::Cell* leader : leaders)
    for (int replicate = 0; replicate < kReplicates; ++replicate) replicates.push_back(in_replicate(*leader, replicate));
  std::vector<const spec::Cell*> all;
  for (const spec::Cell& cell : replicates) all.push_back(&cell);
  run::RunResult result = run::run_cells(all, options);
  if (!result.finished) return {};
  for (decode::Counts& counts : result.counts) counts.output.clear();

  for (std::size_t r = 0; r < rankings.size(); ++r) {
    std::vector<ByReplicate> speedups;  // [member]
    for (const std::size_t i : members[r]) {
      ByReplicate& own = speedups.emplace_back();
      ByReplicate tokens_per_round{};
      Contender one;
      one.row.cell = cells[i];
      decode::Counts sum;
      double tokens = 0.0;
      double time = 0.0;  // in passes of plain decoding
      for (std::size_t replicate = 0; replicate < kReplicates; ++replicate) {
        one.row.counts = result.counts[leader_of[i] * kReplicates + replicate];
        own[replicate] = speedup_of(one.row);
        tokens_per_round[replicate] = one.row.tokens_per_round();
        tokens += static_cast<double>(one.row.counts.emitted);
        time += static_cast<double>(one.row.counts.emitted) / own[replicate];
        if (replicate == 0)
          sum = one.row.counts;
        else
          sum.add(one.row.counts);
      }
      one.row.counts = std::move(sum);
      one.tokens_per_round_error = report::mean_of(tokens_per_round).error;
      // Replicates are priced one by one: a batch in lockstep is one replicate's, and pooled counts would mix them.
      one.speedup = tokens / time;
      one.speedup_half_width = half_width(own);
      rankings[r].contenders.push_back(std::move(one));
    }
    std::vector<std::size_t> order(members[r].size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return rankings[r].contenders[a].speedup > rankings[r].contenders[b].speedup;
    });
    // The fastest that somebody can run; of nothing but foreseeing ones, the fastest of all.
    const auto runs = std::find_if(order.begin(), order.end(), [&](std::size_t i) {
      const spec::PolicyChoice* policy = rankings[r].contenders[i].row.cell->policy();
      return policy == nullptr || !policy->part->foresees();
    });
    const std::size_t first_method = runs != order.end() ? *runs : order[0];
    const double method_speedup = rankings[r].contenders[first_method].speedup;
    std::vector<Contender> sorted;
    for (const std::size_t i : order) {
      ByReplicate ratios{};
      for (std::size_t replicate = 0; replicate < kReplicates; ++replicate)
        ratios[replicate] = speedups[i][replicate] / speedups[order[0]][replicate];
      Contender one = std::move(rankings[r].contenders[i]);
      one.behind = sorted.empty() ? 0.0 : 1.0 - one.speedup / sorted[0].speedup;
      one.behind_half_width = half_width(ratios);
      for (std::size_t replicate = 0; replicate < kReplicates; ++replicate)
        ratios[replicate] = speedups[i][replicate] / speedups[first_method][replicate];
      const spec::PolicyChoice* policy = one.row.cell->policy();
      one.foresees = policy != nullptr && policy->part->foresees();
      one.behind_method = 1.0 - one.speedup / method_speedup;
      one.behind_method_half_width = half_width(ratios);
      sorted.push_back(std::move(one));
    }
    rankings[r].contenders = std::move(sorted);
  }
  return rankings;
}

const tokens::Tree* tree_of(const spec::Cell& cell) {
  const tokens::Tree* tree = cell.block() != nullptr ? cell.block()->drafter->tree() : nullptr;
  return tree != nullptr && tree->drafted() > tree->height() ? tree : nullptr;  // a chain needs no drawing
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

std::string ranking_csv(const std::vector<Ranking>& rankings) {
  std::string text =
      "workload,rank,experiment,cell,method,lossless,tokens_per_round,tokens_per_round_se,draft_passes,verified_rows,speedup,"
      "speedup_half_width,behind,behind_half_width\n";
  const auto column = [](const char* name, const judge::Row& row) {
    const auto at = std::find_if(judge::columns().begin(), judge::columns().end(), [&](const auto& c) { return c.name == name; });
    return at->text(row);
  };
  for (const Ranking& ranking : rankings)
    for (std::size_t i = 0; i < ranking.contenders.size(); ++i) {
      const Contender& one = ranking.contenders[i];
      const spec::Cell& cell = *one.row.cell;
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", judge::csv_text(ranking.workload), i + 1,
          judge::csv_text(cell.experiment), cell.index, judge::csv_text(cell.method_text), cell.lossless() ? 1 : 0,
          column("tokens_per_round", one.row), judge::real_text(one.tokens_per_round_error), column("draft_passes", one.row),
          column("verified_rows", one.row), judge::real_text(one.speedup), judge::real_text(one.speedup_half_width),
          judge::real_text(one.behind), judge::real_text(one.behind_half_width));
    }
  return text;
}

}  // namespace specsim::plan
