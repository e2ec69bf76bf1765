#include "sim/lab/calibrate/speed.h"

namespace specsim::calibrate {

std::vector<Speed> measure_speed(LoadedModels& models, const CalibrationSettings& settings,
                                 const std::vector<llm::Prompt>& prompts, const std::vector<TemperatureAcceptance>& acceptance,
                                 const OnProgress& progress) {
  std::vector<llm::RunGroup> groups = llm::run_groups(settings.temperatures, settings.batches);
  std::vector<llm::TimedTask> tasks = llm::run_tasks(models.pair, models.method(settings), settings.draft_lengths, prompts,
                                                     settings.tokens, settings.seed, settings.clock, groups);
  llm::interleave(tasks, settings.repetitions, [&](double done, double all) { progress("runs", done, all); });
  std::vector<Speed> speeds;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const llm::RunGroup& group = groups[g];
    const std::vector<double>& of_all = acceptance[g / settings.batches.size()].tokens_per_round;
    const llm::TimedRun plain = llm::timed_run(group, tasks[g], 0);
    for (std::size_t i = 0; i < group.runs.size(); ++i) {
      const llm::RunRecord& run = group.runs[i];
      const llm::TimedRun timed = llm::timed_run(group, tasks[g], i);
      const auto emitted = static_cast<double>(run.emitted);
      Speed speed;
      speed.temperature = group.temperature;
      speed.batch = group.batch;
      speed.draft_length = run.draft_length;
      speed.rounds = run.rounds.size();
      speed.emitted = run.emitted;
      speed.tokens_per_round = emitted / static_cast<double>(run.rounds.size() * group.batch);
      speed.tokens_per_second = emitted / timed.seconds;
      speed.speedup = llm::speedup_of(group, plain, timed, i);
      speed.of_all_prompts = speed.speedup.value / speed.tokens_per_round * of_all.at(static_cast<std::size_t>(run.draft_length));
      speeds.push_back(speed);
    }
  }
  return speeds;
}

const std::vector<report::Column<Speed>>& speed_columns() {
  using Row = Speed;
  using report::csv_real;
  static const std::vector<report::Column<Row>> list = {
      {"temperature", "1", "temperature of both models", report::field(&Row::temperature, 6)},
      {"batch", "sequences", "decoded together: the first prompts", report::field(&Row::batch)},
      {"draft_length", "tokens", "drafted per round; 0: no speculation", report::field(&Row::draft_length)},
      {"rounds", "1", "rounds of the whole batch", report::field(&Row::rounds)},
      {"emitted", "tokens", "tokens that all sequences emitted", report::field(&Row::emitted)},
      {"tokens_per_round", "tokens", "emitted / (rounds * batch)", report::field(&Row::tokens_per_round, 6)},
      {"tokens_per_second", "tokens/s", "emitted / sum over rounds of each round's median time",
       report::field(&Row::tokens_per_second, 6)},
      {"speedup", "1", "tokens_per_second / that of plain decoding", [](const Row& r) { return csv_real(r.speedup.value, 6); }},
      {"speedup_se", "1", "standard error of its timing, from resampled repetitions, the same ones for plain decoding",
       [](const Row& r) { return csv_real(r.speedup.error, 3); }},
      {"speedup_of_all_prompts", "1", "speedup at the tokens per round of all prompts", report::field(&Row::of_all_prompts, 6)},
  };
  return list;
}

}  // namespace specsim::calibrate
