// What is timed of real models: single passes for a cost table, and whole decoding runs.
#pragma once

#include "sim/cost/pass.h"
#include "sim/llm/decoder.h"
#include "sim/llm/measure.h"
#include "sim/llm/prompts.h"

#include <memory>
#include <vector>

namespace specsim::llm {

// A target and its draft, ready to run.
struct ModelPair {
  std::shared_ptr<ThreadTeam> team;
  std::unique_ptr<Model> target;
  std::unique_ptr<Model> draft;
};

struct PassPoint {
  cost::Role role = cost::Role::target;
  std::size_t tokens = 1;  // of each sequence; a target's rows all get laws, of a draft's the last
  std::size_t batch = 1;
  std::size_t context = 0;  // cached by each sequence
};

// The grid that a cost table needs for these draft lengths (every value in 1..longest is interpolated between) and batches.
std::vector<PassPoint> pass_grid(const std::vector<int>& draft_lengths, const std::vector<std::size_t>& batches,
                                 const std::vector<std::size_t>& contexts);
// Jobs of one part each: the pass, and its logits made into laws.
std::vector<Job> pass_jobs(const ModelPair& models, const std::vector<PassPoint>& points, Clock clock);

// Passes that hold more and seem to take less, by more than a tenth, and those that they are less than: timed again, as often, up
// to three times over. Noise goes, a dip that is real stays. `jobs` are those of the points, timed.
void settle_dips(const std::vector<PassPoint>& points, std::vector<Job>& jobs, int repetitions);

// "model,tokens,batch,context,ms", as cost: {model: table} reads it.
std::string cost_table(const std::vector<PassPoint>& points, const std::vector<Job>& jobs);

struct RunPoint {
  double temperature = 1.0;
  int draft_length = 0;  // 0: plain decoding
  std::size_t batch = 1;
  std::vector<std::vector<std::size_t>> groups = {};  // indices of the prompts that decode together, one run after the other
};

// What happens in a run whatever the clock says; the same in every repetition.
struct RoundRecord {
  double context = 0.0;    // cached tokens before the round, mean over the batch
  double caught_up = 0.0;  // share of the batch whose draft has one more token to read
};
struct RunRecord {
  std::vector<RoundRecord> rounds;
  std::size_t emitted = 0;
};

// Jobs with a part for each round. Runs until a group has emitted `tokens` per sequence, or the context is full. `prompts` and
// `records` (one for each point, filled by the first call) must outlive the jobs.
std::vector<Job> run_jobs(const ModelPair& models, const verify::PositionRule& rule, const std::vector<RunPoint>& points,
                          const std::vector<Prompt>& prompts, std::size_t tokens, std::uint64_t seed, Clock clock,
                          std::vector<RunRecord>& records);

// Sum over a run's rounds of each one's median.
[[nodiscard]] double typical_seconds(const Job& job);

}  // namespace specsim::llm
