#include "sim/cli/plan_report.h"

#include "sim/base/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace specsim::cli {

namespace {

using plan::AcceptanceCurve;
using plan::Plan;
using plan::PlanPoint;

std::string gain(double speedup) { return speedup > 0.0 ? fmt::format("{:.2f}x", speedup) : "-"; }

void print_points(const Plan& plan, bool in_seconds) {
  const double unit = in_seconds ? 1e3 : 1.0;
  const char* const ms = in_seconds ? " ms" : "";
  print_output("\n{:>12}  {:>12}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n", "draft_length", "tokens/round",
               fmt::format("draft{}", ms), fmt::format("verify{}", ms), fmt::format("other{}", ms), fmt::format("round{}", ms),
               in_seconds ? "tokens/s" : "-", "speedup");
  for (const PlanPoint& p : plan.points)
    print_output("{:>12}  {:>12.4f}  {:>10.4f}  {:>10.4f}  {:>10.4f}  {:>10.4f}  {:>10}  {:>8.4f}{}\n", p.draft_length,
                 p.tokens_per_round, unit * p.time.draft.total(), unit * p.time.verify.total(), unit * p.time.overhead,
                 unit * p.time.total(), in_seconds ? fmt::format("{:.1f}", p.tokens_per_second) : "-", p.speedup,
                 p.draft_length == plan.best ? "  <- best" : "");
}

void print_margins(const Plan& plan, const AcceptanceCurve& curve) {
  for (const plan::Margin& margin : plan.margins)
    print_output("  {:+.4f}{} over {}\n", margin.margin,
                 std::isnan(margin.half_width) ? "" : fmt::format(" +- {:.4f} (95 %, paired)", margin.half_width),
                 margin.over == 0 ? "plain decoding" : fmt::format("draft length {}", margin.over));
  if (curve.sampled && curve.parts.empty()) print_output("  no intervals: too little data\n");
}

// "2, 8 to 64" of the grid's points that `which` marks.
std::string ranges(const std::vector<double>& grid, const std::vector<bool>& marks, bool which) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != which) continue;
    const std::size_t first = i;
    while (i + 1 < marks.size() && marks[i + 1] == which) ++i;
    list.push_back(first == i ? fmt::format("{:g}", grid[i]) : fmt::format("{:g} to {:g}", grid[first], grid[i]));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

// What is best along a grid, and where it pays.
void print_scan(const std::string& axis, const std::vector<double>& grid, const std::function<cost::Workload(double)>& at,
                const cost::CostModel& cost, const AcceptanceCurve& curve) {
  std::vector<std::string> cells;
  std::vector<double> covered;
  std::vector<bool> pays;
  for (const double x : grid) {
    const auto memory = cost.memory_budget(at(x), 2, cost::Kept::both);
    if (memory && !memory->fits()) continue;
    try {
      const Plan plan = plan::make_plan(cost, at(x), curve);
      cells.push_back(plan.best > 0 ? fmt::format("{:g}: {} ({})", x, plan.best, gain(plan.best_point().speedup))
                                    : fmt::format("{:g}: none", x));
      covered.push_back(x);
      pays.push_back(plan.best > 0);
    } catch (const BadInput&) {  // beyond a table's edge
    }
  }
  if (covered.empty()) return;
  print_output("best draft length by {}: {}{}\n", axis, fmt::join(cells, ", "),
               covered.size() < grid.size() ? "; elsewhere: does not fit, or not covered" : "");
  const std::string wins = ranges(covered, pays, true);
  const std::string loses = ranges(covered, pays, false);
  print_output("  speculation {}\n", loses.empty()  ? fmt::format("pays at {} {}", axis, wins)
                                     : wins.empty() ? fmt::format("loses at {} {}", axis, loses)
                                                    : fmt::format("pays at {} {}, loses at {}", axis, wins, loses));
}

// A few more sequences can start another tile or wave of every product: the first such batch that costs a twentieth of the gain.
void print_cliff(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve, const Plan& plan) {
  for (double batch = workload.batch + 1.0; batch <= std::min(1.25 * workload.batch + 1.0, workload.batch + 16.0); batch += 1.0) {
    const cost::Workload next{batch, workload.context};
    const auto memory = cost.memory_budget(next, 2, cost::Kept::both);
    if (memory && !memory->fits()) return;
    try {
      const Plan other = plan::make_plan(cost, next, curve);
      const double there = other.points[static_cast<std::size_t>(plan.best)].speedup;
      if (there > 0.95 * plan.best_point().speedup) continue;
      print_output("at batch {:g} already draft length {} gives {:.4f}: {}\n", batch, plan.best, there,
                   other.best == 0 ? "none pays there"
                                   : fmt::format("{} is best there, with {:.4f}", other.best, other.best_point().speedup));
      return;
    } catch (const BadInput&) {
      return;
    }
  }
}

// `head`: of a target's own features; llama.cpp's drafts are whole models.
void print_flags(const Plan& plan, const spec::PricedServer& server) {
  if (plan.best == 0) return;
  const bool head = server.draft.shape.fused_inputs > 0.0;
  const auto shards = [](const spec::NamedModel& model) { return fmt::format("{:g}", model.shape.tensor_parallel); };
  const std::string target_shards = shards(server.target);
  const std::string path = fmt::format("<path of {}>", server.draft.name);
  print_output("start a server with\n");
  print_output("  vLLM       {}--speculative-config '{{{}\"model\": \"{}\", \"num_speculative_tokens\": {}{}}}'\n",
             target_shards == "1" ? "" : fmt::format("--tensor-parallel-size {} ", target_shards),
             head ? "\"method\": \"eagle\", " : "", path, plan.best,
             target_shards == "1" ? "" : fmt::format(", \"draft_tensor_parallel_size\": {}", shards(server.draft)));
  print_output(
      "  SGLang     {}--speculative-algorithm {} --speculative-draft-model-path {} --speculative-num-steps {} "
      "--speculative-eagle-topk 1 --speculative-num-draft-tokens {}\n",
      target_shards == "1" ? "" : fmt::format("--tp {} ", target_shards), head ? "EAGLE" : "STANDALONE", path, plan.best,
      plan.best + 1);
  // Unsure drafts are not held back: the plan counts on every one.
  if (!head) print_output("  llama.cpp  --model-draft {} --draft-max {} --draft-p-min 0\n", path, plan.best);
}

}  // namespace

std::vector<double> doubling(double from, double to) {
  std::vector<double> grid;
  for (double x = from; x <= to; x *= 2.0) grid.push_back(x);
  return grid;
}

void print_plan(const spec::Cell& cell, const Plan& plan, const AcceptanceCurve& curve) {
  const cost::CostModel& cost = cell.cost();
  const cost::Workload& workload = cell.workload;
  const bool in_seconds = cost.in_seconds();
  const std::optional<spec::PricedServer>& server = cell.pricing->server;
  if (server)
    print_output("{} drafted by {} on {}, batch {:g}, context {:g}\n", server->target.description, server->draft.description,
               server->hardware, workload.batch, workload.context);
  else
    print_output("cost model {}, batch {:g}, context {:g}\n", cell.pricing->name(), workload.batch, workload.context);
  print_output("acceptance: {}\n", curve.source);
  print_points(plan, in_seconds);
  if (curve.measured < curve.longest())
    print_output("(acceptance was measured up to draft length {}; beyond it the last rate is assumed)\n", curve.measured);

  if (plan.best == 0)
    print_output("\ndo not speculate: no draft length up to {} is faster than plain decoding\n", curve.longest());
  else
    print_output("\nbest: draft length {}, speedup {:.4f}\n", plan.best, plan.best_point().speedup);
  print_margins(plan, curve);
  const auto any = plan::break_even(cost, workload, curve.longest());
  if (plan.best > 0) {
    const auto own = plan::break_even(cost, workload, curve.longest(), plan.best);
    print_output("break-even alpha: {:.4f} at draft length {}, {:.4f} at the most forgiving ({}); here {:.4f}\n",
                 own ? own->alpha : NAN, plan.best, any ? any->alpha : NAN, any ? any->draft_length : 0,
                 curve.equivalent_alpha(plan.best));
  } else {
    print_output("break-even alpha: {}\n", any ? fmt::format("{:.4f} at draft length {}; here {:.4f}", any->alpha,
                                                             any->draft_length, curve.equivalent_alpha(any->draft_length))
                                               : "none: even a draft that is always right loses");
    print_output("reason: {}\n", to_text(plan::why_it_loses(cost, workload, curve.longest())));
  }
  if (in_seconds) {
    print_scan(
        "batch", doubling(1, 1024),
        [&](double x) {
          return cost::Workload{x, workload.context};
        },
        cost, curve);
    print_scan(
        "context", doubling(512, 131072),
        [&](double x) {
          return cost::Workload{workload.batch, x};
        },
        cost, curve);
    if (plan.best > 0) print_cliff(cost, workload, curve, plan);
  }
  if (plan.best > 0) {
    const PlanPoint& best = plan.best_point();
    print_output("from tokens per round to speedup:");
    bool first = true;
    for (const cost::WaterfallStep& step : cost::waterfall(best.time, best.tokens_per_round)) {
      if (!first && std::abs(step.seconds) < 5e-4 * best.time.total()) continue;
      print_output("{} {} {:.3f}", first ? "" : ",", first ? "ideal" : step.name, step.after);
      first = false;
    }
    print_output(
        "\nsensitivity: {:+.4f} for each .01 of alpha", 0.01 * [&] {
          const auto k = static_cast<std::size_t>(plan.best);
          const double alpha = std::clamp(curve.equivalent_alpha(plan.best), 0.005, 0.995);
          const AcceptanceCurve up = plan::constant_acceptance(alpha + 0.005, plan.best);
          const AcceptanceCurve down = plan::constant_acceptance(alpha - 0.005, plan.best);
          return (up.tokens_per_round[k] - down.tokens_per_round[k]) / 0.01 * best.speedup / best.tokens_per_round;
        }());
    const auto changed = [&](const cost::CostModel& other) {
      const double full = curve.full_rate[static_cast<std::size_t>(plan.best)];
      return cost::speedup(cost::round_time(other, workload, plan.best, full), best.tokens_per_round) - best.speedup;
    };
    if (const auto faster = cost.scaled(1.1, 1.0)) print_output(", {:+.4f} with 10 % more bandwidth", changed(*faster));
    if (const auto slower = cost.scaled(1.0, 1.1)) print_output(", {:+.4f} with 10 % more host time", changed(*slower));
    print_output("\n");
  }
  if (const auto memory = cost.memory_budget(workload, plan.best + 1, plan.best > 0 ? cost::Kept::both : cost::Kept::target)) {
    print_output("memory: {}\n", memory->to_text());
    print_output("  largest power-of-two batch at this context: {:g} with the draft, {:g} without\n",
                 plan::largest_batch(cost, workload.context, std::max(plan.best, 1) + 1, cost::Kept::both),
                 plan::largest_batch(cost, workload.context, 1, cost::Kept::target));
  }
  if (server) print_flags(plan, *server);
}

}  // namespace specsim::cli
