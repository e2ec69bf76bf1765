// Timings of real models: rounds for a cost table, and whole decoding runs.
#pragma once

#include "sim/lab/llm/measure.h"
#include "sim/lab/llm/method.h"
#include "sim/lab/llm/prompts.h"

#include <string>
#include <vector>

namespace specsim::llm {

// A point at which rounds are timed for a cost table.
struct TablePoint {
  std::size_t batch = 1;
  std::size_t context = 1;  // tokens that each sequence has cached
};

// One task per point. It times rounds at every draft length (ascending, and plain decoding), two of each, and then resets the
// sequences. Copies of a task share its state. Passes are timed in the order of a round: the draft's first pass after the
// target's, once with one token to read and once with two, then the draft's others, then the target's.
std::vector<TimedTask> table_tasks(const ModelPair& models, const Method& method, const std::vector<int>& draft_lengths,
                                   const std::vector<TablePoint>& points, double temperature, Clock clock);

// A row of a cost table: the seconds of one kind of pass, including the work on its distributions: drawing a draft token, or
// judging a target's drafts.
struct PassRow {
  std::string model;  // its name in the table: target, draft_first, draft
  std::size_t tokens = 1;
  std::size_t batch = 1;
  std::size_t context = 0;
  std::size_t task = 0;
  std::vector<double> samples;
  [[nodiscard]] double seconds() const { return quartiles_of(samples).median; }
};
// `longest_context`: the context that the rows must reach; the draft's later passes are slightly beyond their point.
std::vector<PassRow> pass_rows(const std::vector<int>& draft_lengths, const std::vector<TablePoint>& points,
                               const std::vector<TimedTask>& tasks, std::size_t longest_context);

// If a pass with more work seems to be faster by more than a tenth, both passes are timed again with as many repetitions, up to
// three times. A dip that was noise disappears; a real one stays. Returns the rows at the end.
std::vector<PassRow> remeasure_dips(const std::function<std::vector<PassRow>()>& rows, std::vector<TimedTask>& tasks,
                                    int repetitions);

// The events of a run, independent of the clock; the same in every repetition.
struct RoundRecord {
  double context = 0.0;         // cached tokens before the round, mean over the batch
  double catch_up_share = 0.0;  // share of the batch whose draft has one more token to read
};
struct RunRecord {
  int draft_length = 0;  // 0: plain decoding
  std::vector<RoundRecord> rounds = {};
  std::size_t emitted = 0;
};

// Runs of the same prompts at every draft length, without drafts first.
struct RunGroup {
  double temperature = 1.0;
  std::size_t batch = 1;
  std::vector<std::size_t> prompts = {};  // indices, `batch` of them
  std::vector<RunRecord> runs = {};       // [0] without drafts, then one per draft length; filled by the first call of the task
};

// One group per temperature and batch. A batch uses as many prompts as it has sequences, the first ones.
std::vector<RunGroup> run_groups(const std::vector<double>& temperatures, const std::vector<std::size_t>& batches);

// One task per group. A call does all runs of the group shortly after one another, in a random order, so that a temporarily slow
// machine slows all of them. A run ends when its sequences have emitted `tokens` each on average, or the context is full.
// `prompts` and `groups` must outlive the tasks.
std::vector<TimedTask> run_tasks(const ModelPair& models, const Method& method, const std::vector<int>& draft_lengths,
                                 const std::vector<Prompt>& prompts, std::size_t tokens, std::uint64_t seed, Clock clock,
                                 std::vector<RunGroup>& groups);

// The times of one run.
struct TimedRun {
  RoundSeconds typical;  // sums over rounds of each part's median
  double seconds = 0.0;  // typical time: sum over rounds of their medians
  // `seconds` of bootstrap samples: repetitions drawn with replacement, the same ones for all runs of a group. Empty if there is
  // only one repetition.
  std::vector<double> resampled;
  [[nodiscard]] double error() const;  // standard error of `seconds`, from the repetitions; NaN without any
};
// The times of run `index` of a group, from the task's samples.
TimedRun timed_run(const RunGroup& group, const TimedTask& task, std::size_t index);
// Tokens per second of run `index` over those without speculation. Its standard error excludes effects that slow both runs of a
// repetition, since these cancel in the ratio.
struct Speedup {
  double value = 1.0;
  double error = 0.0;
};
Speedup speedup_of(const RunGroup& group, const TimedRun& plain, const TimedRun& run, std::size_t index);

}  // namespace specsim::llm
