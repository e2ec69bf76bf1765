#include "sim/plan/passes.h"

#include "sim/cost/roofline.h"
#include "sim/report/csv.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::plan {

PricedPasses price_passes(const std::vector<PassSetting>& settings, const PassGrid& grid) {
  PricedPasses priced;
  for (std::size_t at = 0; at < settings.size(); ++at) {
    const std::unique_ptr<cost::CostModel> model = cost::make_roofline(settings[at].deployment);
    const auto warn = [&](const std::vector<std::string>& list) {
      for (const std::string& warning : list)
        if (std::find(priced.warnings.begin(), priced.warnings.end(), warning) == priced.warnings.end())
          priced.warnings.push_back(warning);
    };
    warn(model->warnings());
    for (const double batch : grid.batches) {
      for (const double context : grid.contexts) {
        double first = 0.0;
        for (const double tokens : grid.tokens) {
          PricedPass own{at, {batch, tokens, context, std::min(tokens, grid.most_logits)}, {}, 0.0, 1.0, std::nullopt};
          own.time = model->pass(grid.role, own.pass);
          warn(model->beyond_measured(grid.role, own.pass));
          own.error = model->relative_error(grid.role, own.pass);
          if (grid.products_only) {
            cost::PassTime products;
            products.weights = own.time.weights;
            products.compute = own.time.compute;
            own.time = products;
          }
          if (grid.role == cost::Role::target)
            if (const auto memory = model->memory_budget({batch, context + tokens - 1.0}, 1, cost::Kept::target))
              own.fits = memory->fits();
          if (first == 0.0) first = own.time.total();
          own.ratio = own.time.total() / first;
          priced.passes.push_back(own);
        }
      }
    }
  }
  return priced;
}

std::string passes_csv(const std::vector<PassSetting>& settings, const std::vector<PricedPass>& passes) {
  report::Csv file({"hardware", "model", "tensor_parallel", "weight_bits", "batch", "context", "tokens", "total_ms", "weights_ms",
                    "compute_ms", "kv_ms", "communication_ms", "launch_ms", "host_ms", "sampling_ms", "fits", "error_percent"});
  for (const PricedPass& one : passes) {
    const PassSetting& s = settings[one.setting];
    const cost::PassTime& t = one.time;
    std::vector<std::string> fields = {s.hardware, s.model, s.tensor_parallel, s.weight_bits};
    for (const double x : {one.pass.batch, one.pass.context, one.pass.tokens}) fields.push_back(fmt::format("{}", x));
    for (const double x : {t.total(), t.weights, t.compute, t.kv, t.communication, t.launch, t.host, t.sampling})
      fields.push_back(report::csv_real(1e3 * x));
    fields.emplace_back(!one.fits ? "" : *one.fits ? "1" : "0");
    fields.push_back(fmt::format("{:.1f}", 100.0 * one.error));
    file.add(fields);
  }
  return file.text();
}

}  // namespace specsim::plan
