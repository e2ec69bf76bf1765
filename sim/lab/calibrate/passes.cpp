#include "sim/lab/calibrate/passes.h"

#include <fmt/format.h>

namespace specsim::calibrate {

namespace {

constexpr std::size_t kReadBytes = std::size_t{192} << 20;  // several times a core's share of the caches
constexpr std::size_t kReads = 3;                           // per repetition, spread among the passes

using report::csv_real;
constexpr int kDigits = 6;
constexpr int kRateDigits = 4;

}  // namespace

Passes time_passes(LoadedModels& models, const CalibrationSettings& settings, const OnProgress& progress) {
  const std::vector<llm::TablePoint> points = models.table_points(settings);
  std::vector<llm::TimedTask> tasks = llm::table_tasks(models.pair, models.method(settings), settings.draft_lengths, points,
                                                       settings.temperatures.back(), settings.clock);
  llm::MemoryReader memory(*models.pair.team, kReadBytes);
  const std::size_t first_read = tasks.size();
  for (std::size_t i = 0; i < kReads; ++i)
    tasks.push_back({"memory", [&] {
                       const double begin = llm::now(settings.clock);
                       memory.read();
                       return std::vector<double>{static_cast<double>(memory.bytes()) / (llm::now(settings.clock) - begin)};
                     }});
  llm::interleave(tasks, settings.repetitions, [&](double done, double all) { progress("passes", done, all); });
  Passes passes;
  std::vector<double> rates;
  for (std::size_t i = first_read; i < tasks.size(); ++i)
    rates.insert(rates.end(), tasks[i].parts.at(0).begin(), tasks[i].parts.at(0).end());
  passes.read_rate = llm::quartiles_of(std::move(rates));
  const auto rows = [&] { return llm::pass_rows(settings.draft_lengths, points, tasks, models.longest_context); };
  passes.rows = llm::remeasure_dips(rows, tasks, settings.repetitions);
  passes.target_bytes = models.pair.target->pass_bytes();
  passes.draft_bytes = models.pair.draft->pass_bytes();
  return passes;
}

const std::vector<report::Column<cost::MeasuredPass>>& cost_table_columns() {
  using Row = cost::MeasuredPass;
  static const std::vector<report::Column<Row>> list = {
      {"model", "", "target, draft, draft_first", report::field(&Row::model)},
      {"tokens", "tokens", "tokens of each sequence in the pass", [](const Row& r) { return fmt::format("{}", r.tokens); }},
      {"batch", "sequences", "sequences in the pass", [](const Row& r) { return fmt::format("{}", r.batch); }},
      {"context", "tokens", "tokens that each sequence has cached", [](const Row& r) { return fmt::format("{}", r.context); }},
      {"ms", "ms", "median", report::field(&Row::ms, 6)}};
  return list;
}

std::vector<cost::MeasuredPass> measured_passes(const std::vector<llm::PassRow>& rows) {
  std::vector<cost::MeasuredPass> passes;
  for (const llm::PassRow& row : rows)
    passes.push_back({row.model, static_cast<double>(row.tokens), static_cast<double>(row.batch),
                      static_cast<double>(row.context), 1e3 * row.seconds()});
  return passes;
}

std::vector<TimedPass> timed_passes(const Passes& passes) {
  std::vector<TimedPass> lines;
  double one = 0.0;
  for (const llm::PassRow& row : passes.rows) {
    TimedPass line{row.model, row.tokens, row.batch, row.context, llm::quartiles_of(row.samples), 0.0, passes.read_rate};
    const std::size_t bytes = row.model == "target" ? passes.target_bytes : passes.draft_bytes;
    line.weight_rate = static_cast<double>(bytes) / line.seconds.median;
    if (row.tokens == 1) one = line.seconds.median;
    line.to_one = line.seconds.median / one;
    lines.push_back(std::move(line));
  }
  return lines;
}

const std::vector<report::Column<TimedPass>>& pass_columns() {
  using Row = TimedPass;
  static const std::vector<report::Column<Row>> list = {
      {"model", "", "target, draft_first (follows the target's pass), draft", report::field(&Row::model)},
      {"tokens", "tokens", "tokens of each sequence in the pass", report::field(&Row::tokens)},
      {"batch", "sequences", "sequences in the pass", report::field(&Row::batch)},
      {"context", "tokens", "tokens that each sequence has cached", report::field(&Row::context)},
      {"ms", "ms", "median, including the work on the pass's distributions",
       [](const Row& r) { return csv_real(1e3 * r.seconds.median, kDigits); }},
      {"ms_quartile_1", "ms", "lower quartile", [](const Row& r) { return csv_real(1e3 * r.seconds.low, kDigits); }},
      {"ms_quartile_3", "ms", "upper quartile", [](const Row& r) { return csv_real(1e3 * r.seconds.high, kDigits); }},
      {"samples", "1", "number of timings", [](const Row& r) { return std::to_string(r.seconds.samples); }},
      {"outliers", "1", "samples beyond the quartiles by more than three times their distance",
       [](const Row& r) { return std::to_string(r.seconds.outliers); }},
      {"weight_gb_per_s", "GB/s", "bytes of the model's weights / median",
       [](const Row& r) { return csv_real(1e-9 * r.weight_rate, kRateDigits); }},
      {"read_gb_per_s", "GB/s", "rate of reading memory here, equal in every row",
       [](const Row& r) { return csv_real(1e-9 * r.read_rate.median, kRateDigits); }},
      {"read_gb_per_s_quartile_1", "GB/s", "its lower quartile",
       [](const Row& r) { return csv_real(1e-9 * r.read_rate.low, kRateDigits); }},
      {"read_gb_per_s_quartile_3", "GB/s", "its upper quartile",
       [](const Row& r) { return csv_real(1e-9 * r.read_rate.high, kRateDigits); }},
  };
  return list;
}

}  // namespace specsim::calibrate
