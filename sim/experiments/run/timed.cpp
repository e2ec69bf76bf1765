#include "sim/experiments/run/timed.h"

#include "sim/experiments/run/prepare_cell.h"

namespace specsim::run {

bool is_timed(const spec::Cell& cell) { return cell.placement && cell.cost_choice && cell.cost().in_seconds(); }

placement::Comparison time_cell(const spec::Cell& cell, const decode::Prepared& tables, engine::Timeline* timeline) {
  return placement::compare(cell.placement->setting, cell.cost(),
                            {spec::plan_of(cell), &tables, spec::draw_key(cell), cell.draft_length(),
                             cell.policy() != nullptr ? cell.policy()->round_cost : 0.0},
                            timeline);
}

void check_traceable(const spec::Cell& cell, const Location& where) {
  if (!cell.placement)
    throw BadInput(where, "given with a config that has no placement, allowed: with placement: {kind: NAME, ...}");
  if (!cell.cost_choice || !cell.cost().in_seconds())
    throw BadInput(where, "given with a cost model that knows only ratios, allowed: one in seconds");
}

void write_trace(const spec::Cell& cell, const std::string& path) {
  engine::Timeline timeline(path);
  static_cast<void>(time_cell(cell, prepare_cell(cell, nullptr, true), &timeline));
  timeline.close();
}

}  // namespace specsim::run
