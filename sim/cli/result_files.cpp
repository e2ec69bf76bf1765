#include "sim/cli/result_files.h"

#include "sim/base/checksum.h"
#include "sim/run/counts_file.h"

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

std::string write_results(const report::OutputFolder& folder, const std::vector<judge::Row>& rows, report::Manifest manifest,
                          bool whole) {
  std::vector<std::pair<std::string, std::string>> files;
  if (whole) files.emplace_back("data.csv", judge::data_csv(rows));
  files.emplace_back("counts.csv", counts_of(rows));
  std::string waterfall = whole ? judge::waterfall_csv(rows) : "";
  if (waterfall.empty())
    folder.remove("waterfall.csv");  // of another run, with --force
  else
    files.emplace_back("waterfall.csv", std::move(waterfall));
  std::vector<std::string> names;
  for (const auto& [name, text] : files) {
    folder.write(name, text);
    manifest.results.push_back({name, checksum(text)});
    names.push_back(name);
  }
  folder.write("manifest.yaml", report::manifest_text(manifest));
  return fmt::format("{}, manifest.yaml{}", fmt::join(names, ", "), whole ? "" : " (a shard: specsim merge makes data.csv)");
}

}  // namespace specsim::cli
