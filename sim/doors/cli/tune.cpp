// specsim tune: learns how a server differs from the latency model's estimate, from benchmark runs of it.
#include "sim/answers/tune/tune.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace specsim::cli {

namespace po = boost::program_options;

ExitCode tune_command(const std::vector<std::string>& arguments) {
  const auto text = [] { return po::value<std::string>(); };
  po::options_description description("Options");
  description.add_options()("slopes", "")("predict", text(), "")("hardware", text(), "")("target", text(), "")("draft", text(), "")("tensor-parallel", text(), "")("dtype", text(), "")("engine", text(), "")("method", text(), "")("seed", text(), "")("set", po::value<std::vector<std::string>>()->composing(), "");
  po::variables_map values;
  if (!parse(arguments, description, "files", "specsim tune RUNS...", "", values)) return ExitCode::fine;
  Diagnostics diagnostics;
  load::ServeRequest server;
  const auto get = [&](const char* name) { return values.count(name) ? std::optional(values[name].as<std::string>()) : std::nullopt; };
  server.hardware = get("hardware");
  server.target = get("target");
  server.draft = get("draft");
  server.tensor_parallel = get("tensor-parallel");
  server.dtype = get("dtype");
  server.engine = get("engine");
  server.method = get("method");
  server.seed = get("seed");
  if (values.count("set") > 0) server.changes = read_overrides(values["set"].as<std::vector<std::string>>(), "", diagnostics);
  std::vector<tune::Run> runs;
  for (const std::string& path : values["files"].as<std::vector<std::string>>())
    for (tune::Run& run : tune::read_runs_csv(path, diagnostics)) runs.push_back(std::move(run));
  diagnostics.throw_if_any();
  tune::TuneRequest request{server, runs, {}, {}};
  request.options.threads = 2;
  if (values.count("predict") > 0) request.cells = tune::read_runs_csv(values["predict"].as<std::string>(), diagnostics);
  diagnostics.throw_if_any();
  if (values.count("slopes") > 0) {
    std::vector<load::ServeExperiment> experiments;
    for (const tune::Run& run : runs) experiments.push_back(tune::experiment_of(server, run, tune::acceptance_of(run, runs).position_rates));
    const std::vector<tune::Prediction> predictions = tune::predict(experiments, {}, request.options);
    std::string header = "run,metric,measured,predicted,batch";
    for (const cost::FactorInfo& info : cost::factor_infos()) header += fmt::format(",{}", info.key);
    print_output("{}\n", header);
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (std::size_t m = 0; m < tune::kMetrics; ++m) {
        std::string line = fmt::format("{},{},{},{},{}", runs[i].name, tune::metric_names()[m], runs[i].measured[m].value_or(std::nan("")), std::exp(predictions[i].mean[m]), predictions[i].batch);
        for (const double slope : predictions[i].slope[m]) line += fmt::format(",{:.6g}", slope);
        print_output("{}\n", line);
      }
    return ExitCode::fine;
  }
  const tune::TuneResult result = tune::tune(request);
  for (std::size_t i = 0; i < cost::kFactors; ++i)
    print_output("{:14} {:10.4g} +- {:8.4g}   prior {:8.4g} +- {:8.4g}\n", cost::factor_infos()[i].key, result.belief.mean.values[i], std::sqrt(result.belief.covariance[i][i]), result.prior.mean.values[i], std::sqrt(result.prior.covariance[i][i]));
  for (std::size_t i = 0; i < runs.size(); ++i)
    print_output("{:30} residuals {:7.1f} {:7.1f} {:7.1f} %  weight {:.2f}\n", runs[i].name, 100 * result.fits[i].residual[0], 100 * result.fits[i].residual[1], 100 * result.fits[i].residual[2], result.fits[i].weight);
  if (!request.cells.empty()) print_output("{}", tune::predictions_csv(request.cells, result.expected));
  return ExitCode::fine;
}

}  // namespace specsim::cli
