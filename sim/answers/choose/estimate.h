// A setting's speed, latency, energy and cost without queues: static batches in balance with the load. The server
// simulation adds queues and the order of steps, and may also be a little faster.
#pragma once

#include "sim/answers/choose/question.h"
#include "sim/answers/plan/planner.h"
#include "sim/hardware/latency/cost_model.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::choose {

// The mean request, and how many come.
struct MeanLoad {
  double prompt = 1.0;
  double output = 1.0;
  double longest = 0.0;  // tokens of the longest request with its output
  double rate = 0.0;     // requests per second; 0: `users` decide
  double users = 0.0;    // requests in flight at most; 0: no limit
};

// A server may be better than its estimate by this factor. All limits and ranks of estimates leave this margin.
constexpr double kEstimatesMiss = 0.9;

// One engine: GPU, how the target is cut and stored, and the draft.
struct Engine {
  std::string hardware;
  std::string type;
  std::string cache_bits;
  std::int64_t tensor_parallel = 1;
  std::int64_t expert_parallel = 1;
  const DraftChoice* draft = nullptr;
  std::unique_ptr<cost::CostModel> cost;  // nullptr: the combination cannot run
  std::string why;                        // the reason
};

// The engine with its cost model, or the reason why there is none.
Engine make_engine(const Question& question, Engine engine);

struct Estimate {
  enum class Verdict { kept, does_not_fit, overloaded, misses_slo };
  Verdict verdict = Verdict::does_not_fit;
  int draft_length = 0;
  double batch = 0.0;
  double ttft_ms = 0.0;
  double tpot_ms = 0.0;
  double tokens_per_second = 0.0;  // of all replicas
  double gpus = 0.0;
  double joules_per_token = 0.0;     // NaN: not known
  double dollars_per_million = 0.0;  // NaN: not known
  double error = 0.0;                // standard deviation of the logarithm of tokens_per_second at this load
  double power_error = 0.0;
  plan::PlanPoint point;  // the round
  double context = 0.0;
  double longest = 0.0;  // tokens of a sequence that the server must take
  bool closed = false;   // users decide how many requests come, and send more to a faster server
};

// Plans of one engine at any batch, each made once.
class EnginePlans {
 public:
  EnginePlans(const Engine& engine, const MeanLoad& load, std::vector<std::int64_t> lengths);
  // The engine under the load of one of `replicas`. `prefill`: additional engines that only compute prompts, each with a share of
  // them.
  [[nodiscard]] Estimate estimate(double replicas, double prefill, const serve::Slo& slo);

 private:
  [[nodiscard]] const plan::PlanPoint& at(int batch);
  // The smallest batch that decodes `requests` a second in `share` of the time; 0: none does.
  [[nodiscard]] int batch_for(double requests, double share);

  const Engine& engine_;
  MeanLoad load_;
  std::vector<std::int64_t> lengths_;
  double context_;
  int largest_ = 0;
  cost::PassTime prompt_;
  std::map<int, plan::PlanPoint> plans_;
};

}  // namespace specsim::choose
