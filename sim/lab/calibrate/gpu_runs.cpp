#include "sim/lab/calibrate/gpu_runs.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/rng/address.h"
#include "sim/hardware/latency/round_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace specsim::calibrate {

namespace {

constexpr double kNoPrediction = std::numeric_limits<double>::quiet_NaN();

// A row of rounds.csv.
struct GpuRound {
  std::size_t batch = 1;
  int draft_length = 0;
  std::size_t context = 0;
  llm::Quartiles seconds;
  double predicted = kNoPrediction;  // seconds
  [[nodiscard]] double error() const { return predicted / seconds.median - 1.0; }
};

const std::vector<report::Column<GpuRound>>& gpu_round_columns() {
  using Row = GpuRound;
  static const std::vector<report::Column<Row>> list =
      joined<Row>({{"batch", "sequences", "in the round", report::field(&Row::batch)},
                   {"draft_length", "tokens", "drafted in the round", report::field(&Row::draft_length)},
                   {"context", "tokens", "tokens that each sequence has cached", report::field(&Row::context)}},
                  time_columns(&Row::seconds),
                  {{"predicted_ms", "ms", "its passes by the cost table, and the round's other work",
                    [](const Row& r) { return report::csv_real(1e3 * r.predicted, 6); }},
                   {"error", "1", "predicted_ms / ms - 1",
                    [](const Row& r) { return std::isnan(r.error()) ? "" : fmt::format("{:+.5f}", r.error()); }}});
  return list;
}

// A row of generation.csv: a prompt decoded at temperature 0.
struct Generation {
  int draft_length = 0;
  std::size_t tokens = 0;
  std::size_t rounds = 0;
  llm::Quartiles seconds;
};

const std::vector<report::Column<Generation>>& generation_columns() {
  using Row = Generation;
  static const std::vector<report::Column<Row>> list = joined<Row>(
      {{"draft_length", "tokens", "drafted a round", report::field(&Row::draft_length)},
       {"tokens", "tokens", "emitted", report::field(&Row::tokens)},
       {"rounds", "1", "rounds of the run", report::field(&Row::rounds)}},
      time_columns(&Row::seconds), {{"ms_per_token", "ms", "median / tokens", [](const Row& r) {
                                       return report::csv_real(1e3 * r.seconds.median / static_cast<double>(r.tokens), 6);
                                     }}});
  return list;
}

std::size_t total(const std::vector<std::size_t>& lengths) {
  std::size_t sum = 0;
  for (const std::size_t length : lengths) sum += length;
  return sum;
}

}  // namespace

const std::vector<report::Column<GpuRun>>& gpu_run_columns() {
  using Row = GpuRun;
  static const std::vector<report::Column<Row>> list = validation_columns_and<Row>({
      {"weights", "", "real, enlarged", report::field(&Row::weights)},
      {"sequences", "1", "runs of a prompt", report::field(&Row::sequences)},
      {"rounds", "1", "timed, of the whole batch", report::field(&Row::rounds)},
      {"emitted", "tokens", "tokens that all sequences emitted in timed rounds", report::field(&Row::emitted)},
      {"tokens_per_second", "tokens/s", "emitted / measured_s",
       [](const Row& r) { return report::csv_real(r.tokens_per_second(), 6); }},
      {"share_of_bound", "1", "time of the passes alone, by the cost table / measured_s",
       [](const Row& r) { return report::csv_real(r.bound / r.measured, 4); }},
  });
  return list;
}

GpuRuns::GpuRuns(GpuSetup& setup, const GpuPasses& passes, GpuObserver& observer)
    : setup_(setup), passes_(passes), observer_(observer) {
  try {
    cost_ = cost::cost_of_passes(passes.cost_table(), "cost_table.csv");
    for (const std::string& warning : cost_->warnings()) observer_.warning(warning);
  } catch (const BadInput& bad) {  // the measurements that follow are made all the same
    observer_.no_predictions(bad.what());
  }
}

// Seconds of a round, from separately timed passes. Its first draft pass always reads two tokens, because a graph has one shape.
// NaN without a table, and at a context that the table lacks.
double GpuRuns::predicted(std::size_t batch, int draft_length, double context) const {
  return predicted_passes(batch, draft_length, context) + passes_.time_outside_passes(batch, draft_length);
}

double GpuRuns::predicted_passes(std::size_t batch, int draft_length, double context) const {
  if (cost_ == nullptr) return kNoPrediction;
  try {
    return cost::round_time(*cost_, {static_cast<double>(batch), context}, draft_length, 1.0).total();
  } catch (const BadInput&) {
    return kNoPrediction;
  }
}

void GpuRuns::time_rounds() {
  const std::vector<std::size_t>& contexts = setup_.contexts;
  GrowingTable<GpuRound> table(observer_, "rounds.csv", gpu_round_columns());
  Errors errors;
  constexpr int kToWarmUp = 2;
  for (const std::size_t batch : setup_.settings.batches)
    for (std::size_t c = 0; c < contexts.size(); ++c) {
      // Between the knots of the table. There is none after the last knot; a round still fits just before it.
      const auto longest = static_cast<std::size_t>(setup_.settings.draft_lengths.back());
      if (c + 1 == contexts.size() && contexts[c] < longest + 2) continue;
      const std::size_t context = c + 1 < contexts.size() ? (contexts[c] + contexts[c + 1]) / 2 : contexts[c] - longest - 1;
      for (const int k : setup_.lengths()) {
        const cuda::RoundSettings settings{.draft_length = k, .batch = batch, .capacity = context + kMargin};
        if (!setup_.fits(cuda::round_bytes(setup_.target.config, &setup_.draft.config, settings))) continue;
        GpuRound round{batch, k, context, {}, predicted(batch, k, static_cast<double>(context))};
        cuda::Rounds rounds(*setup_.target.model, setup_.draft.model.get(), settings, rng::make_key(setup_.settings.seed, 2));
        std::vector<double> seconds;
        for (int i = 0; i < setup_.settings.repetitions + kToWarmUp; ++i) {
          rounds.assume_length(context + 1);
          const double begin = llm::now(llm::Clock::wall);
          rounds.round();
          if (i >= kToWarmUp) seconds.push_back(llm::now(llm::Clock::wall) - begin);
        }
        round.seconds = llm::quartiles_of(std::move(seconds));
        errors.add(round.error());
        table.add(round);
      }
      table.write();
    }
  observer_.rounds(errors);
}

// Forecast from the distributions of other prompts, computed by the small models on the CPU.
Forecast GpuRuns::forecast_on_cpu(double temperature) const {
  LoadedModels models;
  models.pair.team = std::make_shared<llm::ThreadTeam>(setup_.settings.threads);
  models.pair.target = llm::make_cpu_model(setup_.target.small, setup_.target.small->config.layers, models.pair.team);
  models.pair.draft = llm::make_cpu_model(setup_.draft.small, setup_.draft.small->config.layers, models.pair.team);
  models.rule.emplace(*setup_.settings.verifier);
  const int longest = setup_.settings.draft_lengths.back();
  return forecast_of(
      measure_acceptance(models, setup_.settings, setup_.fitted, temperature, longest, setup_.settings.seed,
                         [&](const std::string& unit, double done, double all) { observer_.progress(unit, done, all); }),
      longest);
}

void GpuRuns::run_group(cuda::Rounds& rounds, std::size_t first, bool prepare, GpuRun& run, llm::MeasuredAcceptance& counts) {
  std::vector<std::vector<Token>> texts;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = first; i < first + run.batch; ++i) {
    texts.push_back(setup_.held_out[i].tokens);
    ids.push_back(i);
  }
  rounds.start(texts, ids);
  if (prepare) {
    rounds.prepare();
    rounds.start(texts, ids);
  }
  const std::vector<std::size_t> start = rounds.lengths();
  std::size_t before = total(start);
  const std::size_t enough = before + run.batch * setup_.settings.tokens;
  std::size_t own_rounds = 0;
  while (before < enough && rounds.fits()) {
    const double context = static_cast<double>(before) / static_cast<double>(run.batch) - 1.0;
    const double begin = llm::now(llm::Clock::wall);
    rounds.round();
    run.measured += llm::now(llm::Clock::wall) - begin;
    run.predicted += predicted(run.batch, run.draft_length, context);
    run.bound += predicted_passes(run.batch, run.draft_length, context);
    before = total(rounds.lengths());
    ++own_rounds;
  }
  rounds.check_distributions();
  if (own_rounds == 0) return;
  run.rounds += own_rounds;
  for (std::size_t i = 0; i < run.batch; ++i) {
    llm::RequestAcceptance& sequence = counts.requests.emplace_back();
    sequence.rounds = own_rounds;
    sequence.emitted = rounds.lengths()[i] - start[i];
    run.emitted += sequence.emitted;
  }
}

// Decodes the held-out prompts at one temperature, batch and draft length, with every round timed; no rounds if none fits.
GpuRun GpuRuns::run_held_out(double temperature, std::size_t batch, int draft_length) {
  GpuRun run;
  run.temperature = temperature;
  run.batch = batch;
  run.draft_length = draft_length;
  run.weights = to_text(setup_.target.weights->origin);
  math::Sampling sampling = setup_.settings.cuts;
  sampling.temperature = temperature;
  const cuda::RoundSettings settings{
      .draft_length = draft_length, .batch = batch, .capacity = setup_.capacity, .sampling = sampling};
  cuda::Rounds rounds(*setup_.target.model, draft_length > 0 ? setup_.draft.model.get() : nullptr, settings,
                      rng::make_key(setup_.settings.seed, rng::hash_text("runs on a GPU")));
  llm::MeasuredAcceptance counts;
  // Groups of as many prompts as the batch; only a few groups if rounds are slow, so that the whole grid is measured.
  const std::size_t groups =
      std::min(setup_.held_out.size() / batch,
               draft_length == 0 ? std::size_t{2} : std::max<std::size_t>(2, (setup_.settings.quick ? 2 : 16) / batch));
  for (std::size_t g = 0; g < groups; ++g) run_group(rounds, g * batch, g == 0, run, counts);
  run.sequences = counts.requests.size();
  if (run.rounds > 0) run.tokens_per_round = calibrate::tokens_per_round(counts);
  return run;
}

std::string GpuRuns::decode() {
  GrowingTable<GpuRun> table(observer_, "validation.csv", gpu_run_columns());
  ValidationSummary summary;
  std::string text;
  const std::vector<double>& temperatures = setup_.settings.temperatures;
  // From the highest temperature down, because it is the most informative: a run that is cut short then has it.
  for (auto at = temperatures.rbegin(); at != temperatures.rend(); ++at) {
    const Forecast expected = forecast_on_cpu(*at);
    observer_.file(fmt::format("trace_t{:g}.jsonl", *at), expected.trace);
    for (const std::size_t batch : setup_.settings.batches) {
      double plain = 0.0;  // seconds per token of each sequence
      double plain_predicted = 0.0;
      for (const int k : setup_.lengths()) {
        GpuRun run = run_held_out(*at, batch, k);
        if (run.rounds == 0) continue;
        run.set_forecast(expected);
        const auto rounds = static_cast<double>(run.rounds);
        const double per_token = run.measured / rounds / run.tokens_per_round.value;
        const double predicted_per_token = run.predicted / rounds / run.predicted_tokens_per_round.value;
        if (k == 0) {
          plain = per_token;
          plain_predicted = predicted_per_token;
        }
        run.speedup = plain / per_token;
        run.predicted_speedup = plain_predicted / predicted_per_token;
        summary.add(run,
                    batch == setup_.settings.batches.front());  // other batches decode the same prompts with the same uniforms
        observer_.run(run);
        table.add(std::move(run));
        table.write();
      }
    }
    // After every temperature, so that a run that is cut short leaves a report too.
    text = fmt::format("weights: {} (target), {} (draft)\ntemperatures: {:g} to {:g}\n{}", to_text(setup_.target.weights->origin),
                       to_text(setup_.draft.weights->origin), *at, temperatures.back(), summary.text());
    observer_.file("summary.txt", text);
  }
  return text;
}

std::size_t write_for_baselines(GpuSetup& setup, GpuObserver& observer) {
  const std::vector<Token> prompt = setup.held_out.front().tokens;
  std::string tokens;
  for (const Token token : prompt) tokens += fmt::format("{}{}", tokens.empty() ? "" : " ", token);
  observer.file("prompt.txt", tokens + "\n");
  // Eight rows at a time, as in verification.
  const auto cache = setup.target.model->make_cache(1, setup.capacity);
  std::string bytes;
  for (std::size_t at = 0; at < prompt.size(); at += 8) {
    const std::size_t size = std::min<std::size_t>(8, prompt.size() - at);
    std::vector<float> logits(size * setup.target.config.vocab);
    const llm::Extension extension{.sequence = 0, .tokens = std::span(prompt).subspan(at, size), .logit_rows = size};
    setup.target.model->forward({&extension, 1}, *cache, logits);
    bytes.append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
  }
  observer.file("logits.f32", bytes);

  GrowingTable<Generation> table(observer, "generation.csv", generation_columns());
  for (const int k : setup.lengths()) {
    cuda::Rounds rounds(*setup.target.model, k > 0 ? setup.draft.model.get() : nullptr,
                        {.draft_length = k, .batch = 1, .capacity = setup.capacity, .sampling = {.temperature = 0.0}},
                        rng::make_key(setup.settings.seed, 3));
    const std::vector<std::uint64_t> ids = {0};
    Generation generation;
    generation.draft_length = k;
    std::vector<double> seconds;
    for (int i = 0; i <= setup.settings.repetitions; ++i) {
      const double begin = llm::now(llm::Clock::wall);
      rounds.start({prompt}, ids);
      for (generation.rounds = 0; rounds.lengths()[0] < prompt.size() + setup.settings.tokens && rounds.fits();
           ++generation.rounds)
        rounds.round();
      generation.tokens = rounds.lengths()[0] - prompt.size();
      if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
    }
    generation.seconds = llm::quartiles_of(std::move(seconds));
    table.add(generation);
    table.write();
  }
  return table.rows().size();
}

}  // namespace specsim::calibrate
