#include "sim/run/timed.h"

#include "sim/engine/timeline.h"
#include "sim/judge/prediction.h"

namespace specsim::run {

namespace {

bool is_timed(const spec::Cell& cell) { return cell.placement != nullptr && cell.cost->in_seconds(); }

placement::Comparison compare(const spec::Cell& cell, const decode::Prepared& tables, engine::Timeline* timeline) {
  return placement::compare(*cell.placement, *cell.cost,
                            {spec::plan_of(cell), &tables, spec::draw_key(cell), cell.chain.draft_length}, timeline);
}

decode::Prepared tables_of(const spec::Cell& cell) {
  decode::Prepared tables;
  static_cast<void>(judge::gather_facts(cell, spec::plan_of(cell), &tables));
  return tables;
}

}  // namespace

void time_rows(std::vector<judge::Row>& rows) {
  std::string key;  // whose tables are at hand: neighbours often share them
  decode::Prepared tables;
  for (judge::Row& row : rows) {
    if (!is_timed(*row.cell)) continue;
    if (key != row.cell->preparation_key) {
      tables = tables_of(*row.cell);
      key = row.cell->preparation_key;
    }
    row.timed = compare(*row.cell, tables, nullptr);
  }
}

void check_traceable(const spec::Cell& cell, const Location& where) {
  if (cell.placement == nullptr)
    throw BadInput(where, "given with a config that has no placement, allowed: with placement: {kind: NAME, ...}");
  if (!cell.cost->in_seconds()) throw BadInput(where, "given with a cost model that knows only ratios, allowed: one in seconds");
}

void write_trace(const spec::Cell& cell, const std::string& path) {
  engine::Timeline timeline(path);
  static_cast<void>(compare(cell, tables_of(cell), &timeline));
  timeline.close();
}

}  // namespace specsim::run
