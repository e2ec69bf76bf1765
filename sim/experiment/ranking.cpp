#include "sim/experiment/ranking.h"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::experiment {

namespace {

constexpr std::size_t kFewestPieces = 8;

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// What is ranked together.
std::string workload_of(const Cell& cell) {
  std::string text = fmt::format("batch {:g}, context {:g}", cell.workload.batch, cell.workload.context);
  for (const auto& [path, value] : cell.axes)
    if (path != "decode" && !starts_with(path, "decode.") && path != "cost.draft" && path != "workload" &&
        !starts_with(path, "workload."))
      text += fmt::format(", {} {}", path, value);
  return text;
}

// What decides on the counts. A policy may go by prices.
std::string simulation_of(const Cell& cell) {
  std::string text = std::to_string(cell.seed);
  for (const config::Field& field : cell.config.fields) {
    const bool price = field.key == "cost" || field.key == "workload" || field.key == "placement";
    if (field.key != "experiment" && field.key != "description" && (!price || cell.policy != nullptr))
      text += "|" + field.key + config::to_canonical_text(field.value);
  }
  return text;
}

struct Mean {
  double value = 0.0;
  double error = 0.0;
};
Mean mean_of(const std::vector<double>& samples) {
  const auto n = static_cast<double>(samples.size());
  Mean mean;
  for (const double x : samples) mean.value += x / n;
  double squares = 0.0;
  for (const double x : samples) squares += (x - mean.value) * (x - mean.value);
  mean.error = std::sqrt(squares / (n * (n - 1.0)));
  return mean;
}

double plain_time(const Cell& cell) { return cell.round_time(0.0).plain.total(); }

double speedup_of(const Row& row) { return row.tokens_per_round() * row.speedup_per_token(); }

std::string part_text(const config::Value& part) {
  if (!part.is_map()) return part.text;
  std::string text;
  if (const config::Value* kind = part.find("kind")) text = kind->text;
  for (const config::Field& field : part.fields) {
    if (field.key == "kind") continue;
    text += " " + field.key + " " + config::to_flow_text(field.value);
  }
  return text;
}

}  // namespace

std::string method_text(const Cell& cell) {
  std::string text;
  for (const char* section : {"drafter", "policy", "verifier"}) {
    const config::Value* part = config::find_path(cell.config, std::string("decode.") + section);
    if (part != nullptr) text += (text.empty() ? "" : " | ") + part_text(*part);
  }
  return text;
}

double half_width(double standard_error, int pieces) {
  const boost::math::students_t law(pieces - 1.0);
  return boost::math::quantile(boost::math::complement(law, (1.0 - kRankingLevel) / 2.0)) * standard_error;
}

std::vector<Ranking> rank_methods(const std::vector<const Cell*>& cells, const RunOptions& options) {
  std::vector<Ranking> rankings;
  std::vector<std::vector<std::size_t>> members;  // of each: cells
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string workload = workload_of(*cells[i]);
    const auto same = [&](const Ranking& ranking) { return ranking.workload == workload; };
    const auto at = static_cast<std::size_t>(std::find_if(rankings.begin(), rankings.end(), same) - rankings.begin());
    const std::size_t own_pieces = pieces_of(*cells[i]);
    if (at == rankings.size()) {
      rankings.push_back({workload, {}, static_cast<int>(own_pieces)});
      members.emplace_back();
    }
    const Cell& first = members[at].empty() ? *cells[i] : *cells[members[at].front()];
    if (cells[i]->pairing_group != first.pairing_group || cells[i]->seed != first.seed || cells[i]->work() != first.work())
      throw BadInput(cells[i]->config.where,
                     fmt::format("laws, seed or rounds of {} are not those of {}, allowed among methods that are compared: one "
                                 "pair, context, seed and number of rounds",
                                 cells[i]->experiment, first.experiment));
    if (cells[i]->placement != nullptr)
      throw BadInput(cells[i]->config.where,
                     fmt::format("{} has a placement, allowed: none, since rounds are priced one after the "
                                 "other; specsim run times placements",
                                 cells[i]->experiment));
    const double plain = plain_time(*cells[i]);
    if (std::abs(plain - plain_time(first)) > 1e-9 * plain)
      throw BadInput(cells[i]->config.where,
                     fmt::format("plain decoding of {} takes another time than that of {}, allowed among methods that are "
                                 "compared: one target and one GPU",
                                 cells[i]->experiment, first.experiment));
    if (own_pieces < kFewestPieces)
      throw BadInput(cells[i]->config.where,
                     fmt::format("rounds of {} make {} pieces of a run, allowed: at least {}, for an error to be estimated",
                                 cells[i]->experiment, own_pieces, kFewestPieces));
    members[at].push_back(i);
  }

  std::map<std::string, std::size_t> simulated;  // -> place in `leaders`
  std::vector<const Cell*> leaders;
  std::vector<std::size_t> leader_of;  // [cell]
  for (const Cell* cell : cells) {
    const auto [at, fresh] = simulated.try_emplace(simulation_of(*cell), leaders.size());
    if (fresh) leaders.push_back(cell);
    leader_of.push_back(at->second);
  }
  std::vector<std::map<std::uint64_t, decode::Counts>> pieces(leaders.size());
  RunOptions own = options;
  own.piece = [&](std::size_t leader, std::uint64_t piece, const decode::Counts& counts) {
    pieces[leader].emplace(piece, counts);
  };
  const RunResult result = run_cells(leaders, own);
  if (!result.finished) return {};

  for (std::size_t r = 0; r < rankings.size(); ++r) {
    std::vector<std::vector<double>> speedups;  // [member][piece]
    for (const std::size_t i : members[r]) {
      std::vector<double>& own_speedups = speedups.emplace_back();
      Row row;
      row.cell = cells[i];
      for (int piece = 0; piece < rankings[r].pieces; ++piece) {
        row.counts = pieces[leader_of[i]].at(static_cast<std::uint64_t>(piece));
        own_speedups.push_back(speedup_of(row));
      }
      row.counts = result.counts[leader_of[i]];
      const double speedup = speedup_of(row);
      rankings[r].contenders.push_back({std::move(row), speedup, mean_of(own_speedups).error, 0.0, 0.0});
    }
    std::vector<std::size_t> order(members[r].size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return rankings[r].contenders[a].speedup > rankings[r].contenders[b].speedup;
    });
    std::vector<Contender> sorted;
    for (const std::size_t i : order) {
      std::vector<double> ratios;
      for (std::size_t piece = 0; piece < speedups[i].size(); ++piece)
        ratios.push_back(speedups[i][piece] / speedups[order[0]][piece]);
      Contender one = std::move(rankings[r].contenders[i]);
      one.behind = sorted.empty() ? 0.0 : 1.0 - one.speedup / sorted[0].speedup;
      one.behind_error = mean_of(ratios).error;
      sorted.push_back(std::move(one));
    }
    rankings[r].contenders = std::move(sorted);
  }
  return rankings;
}

std::string ranking_csv(const std::vector<Ranking>& rankings) {
  std::string text =
      "workload,rank,experiment,cell,method,lossless,tokens_per_round,tokens_per_round_se,draft_passes,verified_rows,speedup,"
      "speedup_half_width,behind,behind_half_width\n";
  const auto column = [](const char* name, const Row& row) {
    const auto at = std::find_if(columns().begin(), columns().end(), [&](const Column& c) { return c.name == name; });
    return at->text(row);
  };
  for (const Ranking& ranking : rankings)
    for (std::size_t i = 0; i < ranking.contenders.size(); ++i) {
      const Contender& one = ranking.contenders[i];
      const Cell& cell = *one.row.cell;
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_text(ranking.workload), i + 1, csv_text(cell.experiment),
                      cell.index, csv_text(method_text(cell)), cell.lossless ? 1 : 0, column("tokens_per_round", one.row),
                      column("tokens_per_round_se", one.row), column("draft_passes", one.row), column("verified_rows", one.row),
                      real_text(one.speedup), real_text(one.speedup_error), real_text(one.behind), real_text(one.behind_error));
    }
  return text;
}

}  // namespace specsim::experiment
