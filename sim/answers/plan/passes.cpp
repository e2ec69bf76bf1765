#include "sim/answers/plan/passes.h"

#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"
#include "sim/hardware/latency/energy.h"
#include "sim/hardware/latency/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::plan {

std::vector<cost::Pass> passes_of(const PassGrid& grid) {
  std::vector<cost::Pass> passes;
  for (const double batch : grid.batches)
    for (const double context : grid.contexts)
      for (const double tokens : grid.tokens) passes.push_back({batch, tokens, context, std::min(tokens, grid.most_logits)});
  return passes;
}

EstimatedPasses estimate_passes(const std::vector<PassSetting>& settings, const PassGrid& grid) {
  EstimatedPasses estimated;
  for (std::size_t at = 0; at < settings.size(); ++at) {
    const std::unique_ptr<cost::CostModel> model = cost::make_roofline(settings[at].deployment);
    const auto warn = [&](const std::vector<std::string>& list) {
      for (const std::string& warning : list)
        if (std::find(estimated.warnings.begin(), estimated.warnings.end(), warning) == estimated.warnings.end())
          estimated.warnings.push_back(warning);
    };
    warn(model->warnings());
    double first = 0.0;
    for (const cost::Pass& pass : passes_of(grid)) {
      EstimatedPass own;
      own.setting = at;
      own.pass = pass;
      own.time = model->pass(grid.role, pass);
      warn(model->beyond_measured(grid.role, pass));
      own.error = model->relative_error(grid.role, pass);
      if (const cost::PowerDraw* const power = cost::power_of(*model); power != nullptr && !grid.products_only) {
        own.joules = settings[at].shape().tensor_parallel * (own.time.work_joules + power->idle_w * own.time.total());
        own.joules_error = std::hypot(own.error, power->spread);
      }
      own.kernel_error = model->kernel_error(grid.role, pass);
      own.shared = model->shared_variance(grid.role, pass);
      if (grid.products_only) {
        cost::PassTime products;
        products.weights = own.time.weights;
        products.compute = own.time.compute;
        own.time = products;
      }
      if (grid.role == cost::Role::target)
        if (const auto memory = model->memory_budget({pass.batch, pass.context + pass.tokens - 1.0}, 1, cost::Kept::target))
          own.fits = memory->fits();
      if (pass.tokens == grid.tokens.front()) first = own.time.total();
      own.ratio = own.time.total() / first;
      estimated.passes.push_back(own);
    }
  }
  return estimated;
}

namespace {

struct PassLine {
  const PassSetting* setting = nullptr;
  const EstimatedPass* estimated = nullptr;
};

// One part of the pass's time, in milliseconds.
report::Column<PassLine> time_column(const char* name, const char* meaning, double cost::PassTime::*seconds) {
  return {name, "ms", meaning,
          [seconds](const PassLine& line) { return report::csv_real(1e3 * (line.estimated->time.*seconds)); }};
}

report::Column<PassLine> joules_column(const char* name, const char* unit, const char* meaning, double (*of)(const PassLine&)) {
  return {name, unit, meaning, [of](const PassLine& line) {
            const double value = of(line);
            return std::isnan(value) ? std::string() : report::csv_real(value);
          }};
}

const std::vector<report::Column<PassLine>>& columns_of_passes() {
  using Line = PassLine;
  static const std::vector<report::Column<Line>> list = {
      {"hardware", "", "the GPU, as given by the user", [](const Line& line) { return line.setting->hardware; }},
      {"model", "", "the model, as given by the user", [](const Line& line) { return line.setting->model; }},
      {"tensor_parallel", "GPUs", "GPUs over which the model is split",
       [](const Line& line) { return fmt::format("{:g}", line.setting->shape().tensor_parallel); }},
      {"weight_bits", "bits", "bits of a weight",
       [](const Line& line) { return fmt::format("{:g}", line.setting->shape().weight_bits); }},
      {"batch", "sequences", "sequences in the pass",
       [](const Line& line) { return fmt::format("{}", line.estimated->pass.batch); }},
      {"context", "tokens", "tokens that each sequence has cached",
       [](const Line& line) { return fmt::format("{}", line.estimated->pass.context); }},
      {"tokens", "tokens", "new tokens of each sequence",
       [](const Line& line) { return fmt::format("{}", line.estimated->pass.tokens); }},
      {"total_ms", "ms", "time of the pass: the sum of its parts",
       [](const Line& line) { return report::csv_real(1e3 * line.estimated->time.total()); }},
      time_column("weights_ms",
                  "time of reading weights, and the part of the matrix products that exceeds reads they overlap with",
                  &cost::PassTime::weights),
      time_column("compute_ms", "time that arithmetic adds to reading; 0 if the pass is memory-bound", &cost::PassTime::compute),
      time_column("kv_ms", "time of attention over the cache", &cost::PassTime::kv),
      time_column("communication_ms", "communication time between the GPUs of the model", &cost::PassTime::communication),
      time_column("launch_ms", "time of kernels' launches and of elementwise work", &cost::PassTime::launch),
      time_column("host_ms", "host time that the GPU waits for", &cost::PassTime::host),
      time_column("sampling_ms", "time of turning logits into tokens", &cost::PassTime::sampling),
      joules_column("watts_per_gpu", "W", "power of each GPU's board over the pass; empty where it is not known",
                    [](const Line& line) {
                      return line.estimated->joules / line.setting->shape().tensor_parallel / line.estimated->time.total();
                    }),
      joules_column("joules", "J", "energy of all GPUs' boards", [](const Line& line) { return line.estimated->joules; }),
      joules_column(
          "joules_low", "J", "lower bound of its 95 % interval",
          [](const Line& line) { return line.estimated->joules * std::exp(-report::kIn95 * line.estimated->joules_error); }),
      joules_column(
          "joules_high", "J", "upper bound",
          [](const Line& line) { return line.estimated->joules * std::exp(report::kIn95 * line.estimated->joules_error); }),
      {"fits", "0 or 1", "whether model and cache fit into memory; empty for a draft, which shares memory with its target",
       [](const Line& line) { return !line.estimated->fits   ? ""
                                     : *line.estimated->fits ? "1"
                                                             : "0"; }},
      {"total_ms_low", "ms", "lower bound of its 95 % interval",
       [](const Line& line) {
         return report::csv_real(1e3 * line.estimated->time.total() * std::exp(-report::kIn95 * line.estimated->error));
       }},
      {"total_ms_high", "ms", "upper bound",
       [](const Line& line) {
         return report::csv_real(1e3 * line.estimated->time.total() * std::exp(report::kIn95 * line.estimated->error));
       }},
      {"error_percent", "%", "standard deviation of the logarithm of total_ms, by the server's factors and the kernels",
       [](const Line& line) { return fmt::format("{:.1f}", 100.0 * line.estimated->error); }},
      {"kernel_error_percent", "%", "standard deviation due to the estimates of its kernels",
       [](const Line& line) { return fmt::format("{:.2f}", 100.0 * line.estimated->kernel_error); }},
      {"shared", "1", "share of that part's variance that passes over other numbers of rows have in common",
       [](const Line& line) { return fmt::format("{:.2f}", line.estimated->shared); }}};
  return list;
}

}  // namespace

std::string passes_csv(const std::vector<PassSetting>& settings, const std::vector<EstimatedPass>& passes) {
  std::vector<PassLine> lines;
  for (const EstimatedPass& one : passes) lines.push_back({&settings[one.setting], &one});
  return report::csv(columns_of_passes(), lines);
}

report::FileInfo passes_info() { return {"pass --csv", report::column_infos(columns_of_passes())}; }

}  // namespace specsim::plan
