#include "sim/doors/cli/kernel_files.h"

namespace specsim::cli {

namespace {

using report::csv_real;

// A line of the table and its latency estimate.
template <class Estimate>
struct EstimatedLine {
  const std::vector<std::string>* fields = nullptr;
  const Estimate* estimated = nullptr;
};
using KernelLine = EstimatedLine<cost::EstimatedKernel>;
using StepLine = EstimatedLine<cost::EstimatedStep>;

template <class Line>
std::vector<report::Column<Line>> own_columns(const std::vector<std::string>& header) {
  std::vector<report::Column<Line>> columns;
  for (std::size_t i = 0; i < header.size(); ++i)
    columns.push_back({header[i], "", "the table's own column", [i](const Line& line) { return (*line.fields)[i]; }});
  return columns;
}

const std::vector<report::Column<KernelLine>>& kernel_columns() {
  using Line = KernelLine;
  static const std::vector<report::Column<Line>> list = {
      {"priced_us", "us", "the kernel's estimated latency; empty if there is none",
       [](const Line& line) { return line.estimated->priced_us > 0.0 ? csv_real(line.estimated->priced_us, 6) : ""; }},
      {"ratio", "1", "estimated over measured",
       [](const Line& line) {
         return line.estimated->priced_us > 0.0 ? csv_real(line.estimated->priced_us / line.estimated->us, 6) : "";
       }},
      {"covered", "0 or 1", "whether a fit of this GPU, engine and type covers it, within the measured range",
       [](const Line& line) { return line.estimated->covered ? "1" : "0"; }}};
  return list;
}

const std::vector<report::Column<StepLine>>& step_columns() {
  using Line = StepLine;
  static const std::vector<report::Column<Line>> list = {
      {"priced_ms", "ms", "the step's estimated latency; empty if there is none",
       [](const Line& line) { return line.estimated->priced_ms > 0.0 ? csv_real(line.estimated->priced_ms, 6) : ""; }},
      {"ratio", "1", "estimated over measured",
       [](const Line& line) {
         return line.estimated->priced_ms > 0.0 ? csv_real(line.estimated->priced_ms / line.estimated->ms, 6) : "";
       }},
      {"error_percent", "%",
       "standard deviation of the logarithm of priced_ms, as the estimate states it; for a served time, that of its decode step",
       [](const Line& line) { return line.estimated->priced_ms > 0.0 ? csv_real(100.0 * line.estimated->error, 4) : ""; }},
      {"kernel_error_percent", "%", "the part of it due to kernel estimates",
       [](const Line& line) { return line.estimated->priced_ms > 0.0 ? csv_real(100.0 * line.estimated->kernel_error, 4) : ""; }},
      {"covered", "0 or 1", "whether there is an estimate",
       [](const Line& line) { return line.estimated->priced_ms > 0.0 ? "1" : "0"; }},
      {"why", "", "why there is none", [](const Line& line) { return line.estimated->why; }}};
  return list;
}

template <class Line, class Table>
std::string estimated(const Table& table, const std::vector<report::Column<Line>>& estimates) {
  std::vector<report::Column<Line>> columns = own_columns<Line>(table.header);
  columns.insert(columns.end(), estimates.begin(), estimates.end());
  std::vector<Line> lines;
  for (std::size_t i = 0; i < table.rows.size(); ++i) lines.push_back({&table.lines[i], &table.rows[i]});
  return report::csv(columns, lines);
}

// Columns common to both tables of errors.
template <class Errors>
std::vector<report::Column<Errors>> error_columns() {
  return {{"median_ratio", "1", "estimated over measured, median", [](const Errors& e) { return csv_real(e.median_ratio, 5); }},
          {"median_error", "1", "absolute relative error of the estimate, median",
           [](const Errors& e) { return csv_real(e.median_error, 5); }},
          {"p90_error", "1", "absolute relative error of the estimate, 90th percentile",
           [](const Errors& e) { return csv_real(e.high_error, 5); }}};
}

std::vector<report::Column<cost::KernelErrors>> kernel_error_columns() {
  using Row = cost::KernelErrors;
  std::vector<report::Column<Row>> columns = {
      {"gpu", "", "the GPU", [](const Row& e) { return e.gpu; }},
      {"engine", "", "the engine whose kernels they are", [](const Row& e) { return e.engine; }},
      {"dtype", "", "type of weights and activations", [](const Row& e) { return e.dtype; }},
      {"rows", "", "band of numbers of rows; all", [](const Row& e) { return e.rows; }},
      {"count", "1", "rows of the table that the errors come from", [](const Row& e) { return std::to_string(e.count); }},
      {"covered", "1", "rows that a fit covers", [](const Row& e) { return std::to_string(e.covered); }}};
  const auto errors = error_columns<Row>();
  columns.insert(columns.end(), errors.begin(), errors.end());
  return columns;
}

std::vector<report::Column<cost::StepErrors>> step_error_columns() {
  using Row = cost::StepErrors;
  std::vector<report::Column<Row>> columns = {
      {"gpu", "", "the GPU; all", [](const Row& e) { return e.gpu; }},
      {"engine", "", "the engine of the estimates; all", [](const Row& e) { return e.engine; }},
      {"model", "", "the model; all", [](const Row& e) { return e.model; }},
      {"phase", "", "decode, prompt, served; all", [](const Row& e) { return e.phase; }},
      {"batch", "", "band of batches; all", [](const Row& e) { return e.batch; }},
      {"count", "1", "rows of the table that the errors come from", [](const Row& e) { return std::to_string(e.count); }}};
  const auto errors = error_columns<Row>();
  columns.insert(columns.end(), errors.begin(), errors.end());
  columns.push_back({"worst_error", "1", "largest absolute relative error of the estimate",
                     [](const Row& e) { return csv_real(e.worst_error, 5); }});
  return columns;
}

}  // namespace

std::string estimates_csv(const cost::EstimatedKernels& table) { return estimated<KernelLine>(table, kernel_columns()); }
std::string estimates_csv(const cost::EstimatedSteps& table) { return estimated<StepLine>(table, step_columns()); }
std::string errors_csv(const std::vector<cost::KernelErrors>& errors) { return report::csv(kernel_error_columns(), errors); }
std::string errors_csv(const std::vector<cost::StepErrors>& errors) { return report::csv(step_error_columns(), errors); }

std::vector<report::FileInfo> kernel_file_infos() {
  return {{"priced.csv of kernels", report::column_infos(kernel_columns()), "They follow the table's own columns."},
          {"priced.csv (whole steps)", report::column_infos(step_columns()), "They follow the table's own columns."},
          {"errors.csv of kernels", report::column_infos(kernel_error_columns())},
          {"errors.csv (whole steps)", report::column_infos(step_error_columns())}};
}

}  // namespace specsim::cli
