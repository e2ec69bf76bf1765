#include "sim/doors/cli/result_files.h"

#include "sim/experiments/run/counts_file.h"
#include "sim/foundation/base/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace specsim::cli {

namespace {

std::string counts_of(const std::vector<judge::Row>& rows) {
  std::vector<run::CellCounts> cells;
  for (const judge::Row& row : rows) cells.push_back({row.cell->experiment, row.cell->index, &row.counts});
  return run::counts_csv(cells);
}

}  // namespace

void claim_run(report::OutputFolder& folder, const std::vector<std::string>& names, const std::string& identity,
               const std::vector<FileSum>& inputs, bool resume, bool force) {
  // Resuming needs no --force: the user decided what may be replaced when the run began.
  const bool begun = !force && folder.has(kJournal);
  folder.claim({names, identity, force || begun, true, report::Writing::in_place, inputs});
  if (force) folder.remove(kJournal);  // only after the checks above
  if (resume && !begun && folder.has("manifest.yaml")) print_error("{} is finished already; running it again\n", folder.path());
}

report::OutputClaim claim_at_once(std::vector<std::string> names, std::string identity, bool force, std::vector<FileSum> inputs) {
  return {std::move(names), std::move(identity), force, true, report::Writing::at_once, std::move(inputs)};
}

std::string write_results(report::OutputFolder& folder, const std::vector<judge::Row>& rows, const report::Manifest& manifest,
                          bool whole) {
  if (whole) folder.write("data.csv", judge::data_csv(rows));
  folder.write("counts.csv", counts_of(rows));
  if (const std::string waterfall = whole ? judge::waterfall_csv(rows) : ""; !waterfall.empty())
    folder.write("waterfall.csv", waterfall);
  folder.finish(manifest);
  return fmt::format("{}, manifest.yaml{}", fmt::join(folder.written(), ", "),
                     whole ? "" : " (a shard: specsim merge makes data.csv)");
}

}  // namespace specsim::cli
