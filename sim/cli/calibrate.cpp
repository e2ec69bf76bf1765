// specsim calibrate: what two real models' passes cost here, how often the target accepts the draft, and what speculation gives.
#include "sim/base/whole_file.h"
#include "sim/cli/calibrate_gpu.h"
#include "sim/cli/command.h"
#include "sim/cli/models.h"
#include "sim/llm/acceptance.h"

#include <fmt/format.h>

#include <iterator>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kReadBytes = std::size_t{192} << 20;  // several times the largest cache of a server's processor

struct Passes {
  std::vector<llm::PassPoint> points;
  std::vector<llm::Job> jobs;  // and one more: reading memory
  double bandwidth = 0.0;      // bytes per second
};

Passes time_passes(LoadedModels& models, const ModelOptions& options) {
  Passes passes;
  std::vector<std::size_t> contexts = models.contexts;
  if (options.quick) contexts.erase(contexts.begin() + 1);
  passes.points = llm::pass_grid(options.draft_lengths, options.batches, contexts);
  passes.jobs = llm::pass_jobs(models.pair, passes.points, options.clock);
  llm::MemoryReader memory(*models.pair.team, kReadBytes);
  passes.jobs.push_back({"memory", [&] {
                           const double begin = llm::now(options.clock);
                           memory.read();
                           return std::vector<double>{llm::now(options.clock) - begin};
                         }});
  Progress progress("passes");
  llm::interleave(passes.jobs, options.repetitions, [&](double done, double all) { progress.show(done, all); });
  llm::settle_dips(passes.points, passes.jobs, options.repetitions);
  passes.bandwidth = static_cast<double>(memory.bytes()) / llm::spread(passes.jobs.back().parts.at(0)).median;
  return passes;
}

double bytes_per_second(const Passes& passes, const LoadedModels& models, std::size_t i) {
  const llm::Model& model = passes.points[i].role == cost::Role::target ? *models.pair.target : *models.pair.draft;
  return static_cast<double>(model.pass_bytes()) / llm::spread(passes.jobs[i].parts.at(0)).median;
}

std::string passes_csv(const Passes& passes, const LoadedModels& models) {
  std::string text = "model,tokens,batch,context,ms,ms_quartile_1,ms_quartile_3,samples,outliers,weight_gb_per_s,read_gb_per_s\n";
  for (std::size_t i = 0; i < passes.points.size(); ++i) {
    const llm::Spread s = llm::spread(passes.jobs[i].parts.at(0));
    fmt::format_to(std::back_inserter(text), "{},{:.6g},{:.6g},{:.6g},{},{},{:.4g},{:.4g}\n", passes.jobs[i].name, 1e3 * s.median,
                   1e3 * s.low, 1e3 * s.high, s.samples, s.outliers, 1e-9 * bytes_per_second(passes, models, i),
                   1e-9 * passes.bandwidth);
  }
  return text;
}

void print_passes(const Passes& passes, const LoadedModels& models) {
  fmt::print(
      "memory reads at {:.2f} GB/s; weights of a pass: target {:.1f} MB, draft {:.1f} "
      "MB\n\n{:<7}{:>7}{:>6}{:>9}{:>10}{:>18}{:>9}{:>7}{:>10}\n",
      1e-9 * passes.bandwidth, 1e-6 * static_cast<double>(models.pair.target->pass_bytes()),
      1e-6 * static_cast<double>(models.pair.draft->pass_bytes()), "model", "tokens", "batch", "context", "ms", "quartiles",
      "to one", "GB/s", "outliers");
  double one = 0.0;
  for (std::size_t i = 0; i < passes.points.size(); ++i) {
    const llm::PassPoint& point = passes.points[i];
    const llm::Spread s = llm::spread(passes.jobs[i].parts.at(0));
    if (point.tokens == 1) one = s.median;
    fmt::print("{:<7}{:>7}{:>6}{:>9}{:>10.4f}{:>18}{:>9.3f}{:>7.2f}{:>10}\n",
               point.role == cost::Role::target ? "target" : "draft", point.tokens, point.batch, point.context, 1e3 * s.median,
               fmt::format("{:.4f}-{:.4f}", 1e3 * s.low, 1e3 * s.high), s.median / one,
               1e-9 * bytes_per_second(passes, models, i), s.outliers);
  }
}

void add_tally(std::string& csv, double temperature, const std::string& condition, const llm::Tally& tally,
               std::uint64_t rounds) {
  if (tally.judged == 0) return;
  const auto n = static_cast<double>(tally.judged);
  fmt::format_to(std::back_inserter(csv), "{:g},{},{},{},{:.6g},{:.6g},{:.6g},{:.4g},{:.6g},{},{:.6g},{:.6g}\n", temperature,
                 condition, tally.judged, tally.accepted, static_cast<double>(tally.accepted) / static_cast<double>(rounds),
                 tally.alpha(), tally.alpha_of_laws(), tally.z(), tally.kl / (n - static_cast<double>(tally.kl_infinite)),
                 tally.kl_infinite, tally.target_entropy / n, tally.draft_entropy / n);
}

void print_tally(const std::string& condition, const llm::Tally& tally) {
  if (tally.judged == 0) return;
  const auto n = static_cast<double>(tally.judged);
  fmt::print("  {:<16}{:>8}{:>10.4f}{:>10.4f}{:>7.2f}{:>9.3f}{:>9.3f}\n", condition, tally.judged, tally.alpha(),
             tally.alpha_of_laws(), tally.z(), tally.kl / (n - static_cast<double>(tally.kl_infinite)), tally.target_entropy / n);
}

void measure_and_write_acceptance(LoadedModels& models, const ModelOptions& options, const std::vector<llm::Prompt>& prompts) {
  const auto rule = token_rule();
  std::string csv =
      "temperature,condition,judged,accepted,accepted_per_round,alpha_outcomes,alpha_laws,z,kl_nats,kl_infinite,target_entropy_"
      "nats,"
      "draft_entropy_nats\n";
  std::string laws = "temperature,accepted,rounds\n";
  for (const double temperature : options.temperatures) {
    Progress progress("prompts");
    const llm::Acceptance acceptance = llm::measure_acceptance(models.acceptance_target(), *models.pair.draft, *rule, prompts,
                                                               {.sampling = {.temperature = temperature},
                                                                .draft_length = options.draft_lengths.back(),
                                                                .tokens = options.tokens,
                                                                .seed = options.seed},
                                                               [&](double done, double all) { progress.show(done, all); });
    progress.finish();
    fmt::print("\nacceptance at temperature {:g}, {} prompts, draft length {}: {:.4f} tokens per round (+- {:.4f})\n",
               temperature, prompts.size(), options.draft_lengths.back(), acceptance.tokens_per_round(),
               1.96 * acceptance.tokens_per_round_error());
    fmt::print("  {:<16}{:>8}{:>10}{:>10}{:>7}{:>9}{:>9}\n", "given", "judged", "outcomes", "laws", "z", "KL", "entropy");
    for (std::size_t depth = 0; depth < acceptance.by_depth.size(); ++depth) {
      const std::string condition = fmt::format("depth {}", depth + 1);
      print_tally(condition, acceptance.by_depth[depth]);
      add_tally(csv, temperature, condition, acceptance.by_depth[depth], acceptance.rounds());
    }
    print_tally("after rejection", acceptance.after_rejection);
    print_tally("after full", acceptance.after_full);
    add_tally(csv, temperature, "after rejection", acceptance.after_rejection, acceptance.rounds());
    add_tally(csv, temperature, "after full", acceptance.after_full, acceptance.rounds());
    for (std::size_t accepted = 0; accepted < acceptance.accepted_counts.size(); ++accepted)
      fmt::format_to(std::back_inserter(laws), "{:g},{},{}\n", temperature, accepted, acceptance.accepted_counts[accepted]);
    write_whole_file(fmt::format("{}/trace_t{:g}.jsonl", options.out, temperature), llm::overlap_trace(acceptance));
  }
  write_whole_file(options.out + "/acceptance.csv", csv);
  write_whole_file(options.out + "/accepted_law.csv", laws);
}

void measure_and_write_speed(LoadedModels& models, const ModelOptions& options, const std::vector<llm::Prompt>& prompts) {
  const auto rule = token_rule();
  std::vector<llm::RunPoint> points;
  for (const double temperature : options.temperatures)
    for (const std::size_t batch : options.batches) {
      std::vector<std::size_t> group(batch);
      for (std::size_t i = 0; i < batch; ++i) group[i] = i;
      points.push_back({temperature, 0, batch, {group}});
      for (const int draft_length : options.draft_lengths) points.push_back({temperature, draft_length, batch, {group}});
    }
  std::vector<llm::RunRecord> records;
  std::vector<llm::Job> jobs =
      llm::run_jobs(models.pair, *rule, points, prompts, options.tokens, options.seed, options.clock, records);
  Progress progress("runs");
  llm::interleave(jobs, options.repetitions, [&](double done, double all) { progress.show(done, all); });
  progress.finish();
  std::string csv = "temperature,batch,draft_length,rounds,emitted,tokens_per_round,tokens_per_second,speedup\n";
  fmt::print("\n{:>11}{:>7}{:>14}{:>14}{:>11}{:>10}\n", "temperature", "batch", "draft_length", "tokens/round", "tokens/s",
             "speedup");
  double plain = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto emitted = static_cast<double>(records[i].emitted);
    const double rate = emitted / llm::typical_seconds(jobs[i]);
    const double per_round = emitted / (static_cast<double>(records[i].rounds.size()) * static_cast<double>(points[i].batch));
    if (points[i].draft_length == 0) plain = rate;
    fmt::print("{:>11g}{:>7}{:>14}{:>14.4f}{:>11.1f}{:>10.4f}\n", points[i].temperature, points[i].batch, points[i].draft_length,
               per_round, rate, rate / plain);
    fmt::format_to(std::back_inserter(csv), "{:g},{},{},{},{},{:.6g},{:.6g},{:.6g}\n", points[i].temperature, points[i].batch,
                   points[i].draft_length, records[i].rounds.size(), records[i].emitted, per_round, rate, rate / plain);
  }
  write_whole_file(options.out + "/speed.csv", csv);
}

}  // namespace

int calibrate_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  add_model_options(options);
  add_gpu_options(options);
  po::variables_map values;
  if (!parse(
          arguments, options, "", "specsim calibrate --target DIR --draft DIR --prompts FILE --out DIR [options]",
          "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --out results/mine\n"
          "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --quick --out results/first\n"
          "  specsim calibrate --target llama-3.2-1b --draft llama-160m --out results/shapes     (random weights: timing "
          "alone)\n"
          "  specsim calibrate --device cuda --target llama-3.1-8b --draft llama-3.2-1b --batches 1,4,16 --out results/gpu\n",
          values))
    return 0;
  if (values["device"].as<std::string>() == "cuda") return calibrate_on_gpu(values);
  const double begin = wall_clock();
  const ModelOptions read = read_model_options(values);
  LoadedModels models = load_models(values, read);
  std::vector<llm::Prompt> prompts;
  if (!models.random) {
    if (values.count("prompts") == 0) throw BadInput({"", 0, 0}, "--prompts is missing; --help shows examples");
    prompts = load_prompts(values["prompts"].as<std::string>(), models, read);
  }
  make_directories(read.out);
  const Passes passes = time_passes(models, read);
  write_whole_file(read.out + "/cost_table.csv", llm::cost_table(passes.points, passes.jobs));
  write_whole_file(read.out + "/passes.csv", passes_csv(passes, models));
  print_passes(passes, models);
  if (!models.random) {
    measure_and_write_acceptance(models, read, prompts);
    measure_and_write_speed(models, read, prompts);
  }
  write_model_manifest(read.out, models.description, models.pair.team->size(), passes.points.size(), wall_clock() - begin);
  fmt::print("\nwrote {}: cost_table.csv for cost: {{model: table}}{}\n", read.out,
             models.random ? "" : ", trace_t*.jsonl for specsim plan --trace, acceptance.csv, speed.csv");
  return 0;
}

}  // namespace specsim::cli
