// Learns a server's factors from benchmark results that a user pastes.
#include "sim/answers/tune/tune.h"
#include "sim/doors/web/questions.h"
#include "sim/foundation/base/error.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace specsim::web {

namespace {

constexpr const char* kPasted = "the pasted text";

std::vector<tune::Run> pasted_runs(const Json& question, std::vector<std::string>& warnings) {
  const auto at = question.find("runs");
  if (at == question.end() || !at->is_array()) throw BadInput({"runs", 0, 0}, "no list, allowed: a list of {text, draft_length}");
  Diagnostics diagnostics;
  std::vector<tune::Run> runs;
  for (const Json& one : *at) {
    if (!one.is_object()) throw BadInput({"runs", 0, 0}, one.dump() + ", allowed: {text, draft_length}");
    std::map<std::string, double> stated;
    if (one.contains("draft_length")) stated["draft_length"] = number_at(one, "draft_length", 0.0);
    for (tune::Run& run : tune::read_runs_text(kPasted, text_at(one, "text", ""), stated, diagnostics, &warnings))
      runs.push_back(std::move(run));
  }
  diagnostics.throw_if_any();
  return runs;
}

load::ServeRequest described_server(const Json& question) {
  load::ServeRequest server;
  const auto take = [&](const char* key, std::optional<std::string>& field) {
    if (const std::string text = text_at(question, key, ""); !text.empty()) field = text;
  };
  take("hardware", server.hardware);
  take("target", server.target);
  take("draft", server.draft);
  take("engine", server.engine);
  take("dtype", server.dtype);
  if (const double gpus = number_at(question, "tensor_parallel", 1.0); gpus != 1.0)
    server.tensor_parallel = fmt::format("{:g}", gpus);
  return server;
}

Json tuned_json(const cost::FactorBelief& belief) {
  Json factors;
  Json covariance = Json::array();
  for (std::size_t i = 0; i < cost::kFactors; ++i) {
    factors[cost::factor_infos()[i].key] = belief.mean.values[i];
    covariance.push_back(numbers({belief.covariance[i].begin(), belief.covariance[i].end()}));
  }
  return {{"factors", factors}, {"covariance", covariance}};
}

}  // namespace

Json answer_tune(const Json& question) {
  Json reply;
  std::vector<std::string> warnings;
  tune::TuneRequest request;
  request.server = described_server(question);
  request.runs = pasted_runs(question, warnings);
  if (request.runs.empty()) throw BadInput({"runs", 0, 0}, "no run, allowed: at least one");
  request.options.threads = 1;
  const tune::TuneResult result = tune::tune(request);
  reply["findings"] = tune::findings(result);
  reply["runs"] = Json::array();
  for (std::size_t i = 0; i < request.runs.size(); ++i) {
    const tune::Run& run = request.runs[i];
    Json own = {{"run", run.name},
                {"draft_length", run.draft_length},
                {"weight", result.fits[i].weight},
                {"ttft_weight", result.fits[i].ttft_weight}};
    for (std::size_t metric = 0; metric < tune::kMetrics; ++metric) {
      const std::string name = tune::metric_names()[metric];
      own[name] = run.measured[metric] ? number(*run.measured[metric]) : Json();
      own[name + "_estimated"] = number(std::exp(result.prior_means[i][metric]));
      own[name + "_tuned"] =
          run.measured[metric] ? number(*run.measured[metric] * std::exp(-result.fits[i].residual[metric])) : Json();
    }
    reply["runs"].push_back(std::move(own));
  }
  reply["tuned"] = tuned_json(result.belief);
  reply["server_yaml"] = tune::server_yaml(request, result);
  reply["warnings"] = warnings;
  return reply;
}

}  // namespace specsim::web
