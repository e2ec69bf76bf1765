#include "sim/cli/gpu_runs.h"

#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cost/round_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace specsim::cli {

namespace {

// nullptr, and a word on why, where what was measured makes no table: what comes after is measured all the same.
std::unique_ptr<cost::CostModel> own_table_cost(const std::string& out) try {
  return table_cost(out + "/cost_table.csv");
} catch (const BadInput& bad) {
  print_error("no predictions: {}\n", bad.what());
  return nullptr;
}

const std::vector<Column<GpuRun>>& columns() {
  static const std::vector<Column<GpuRun>> list = validation_columns_and<GpuRun>({
      {"weights", "", "real, enlarged", [](const GpuRun& r) { return std::string(r.weights); }},
      {"sequences", "1", "runs of a prompt", [](const GpuRun& r) { return std::to_string(r.sequences); }},
      {"rounds", "1", "timed, of the whole batch", [](const GpuRun& r) { return std::to_string(r.rounds); }},
      {"emitted", "tokens", "of all sequences in timed rounds", [](const GpuRun& r) { return std::to_string(r.emitted); }},
      {"tokens_per_second", "tokens/s", "emitted / measured_s",
       [](const GpuRun& r) { return csv_number(r.tokens_per_second()); }},
      {"share_of_bound", "1", "time of the passes alone, by the cost table / measured_s",
       [](const GpuRun& r) { return csv_number(r.bound / r.measured, 4); }},
  });
  return list;
}

}  // namespace

CsvFile gpu_validation_file() { return csv_file("validation.csv of calibrate --device cuda", columns()); }

GpuRuns::GpuRuns(GpuSetup& setup, const GpuPasses& passes)
    : setup_(setup), passes_(passes), cost_(own_table_cost(setup.options.out)) {}

// Seconds of a round from what was timed apart. Its first draft pass always reads two tokens: a graph has one shape.
// NaN without a table, and at a context that it leaves out.
double GpuRuns::predicted(std::size_t batch, int draft_length, double context) const {
  return predicted_passes(batch, draft_length, context) + passes_.beside_passes(batch, draft_length);
}

double GpuRuns::predicted_passes(std::size_t batch, int draft_length, double context) const {
  if (cost_ == nullptr) return NAN;
  try {
    return cost::round_time(*cost_, {static_cast<double>(batch), context}, draft_length, 1.0).total();
  } catch (const BadInput&) {
    return NAN;
  }
}

void GpuRuns::time_rounds() {
  const std::vector<std::size_t>& contexts = setup_.contexts;
  GrowingTable table(setup_.options.out + "/rounds.csv",
                     "batch,draft_length,context,ms,ms_quartile_1,ms_quartile_3,samples,predicted_ms,error");
  std::vector<double> errors;
  for (const std::size_t batch : setup_.options.batches)
    for (std::size_t c = 0; c < contexts.size(); ++c) {
      // Between the knots of the table; behind the last one there is none, just before it a round still fits.
      const auto longest = static_cast<std::size_t>(setup_.options.draft_lengths.back());
      if (c + 1 == contexts.size() && contexts[c] < longest + 2) continue;
      const std::size_t context = c + 1 < contexts.size() ? (contexts[c] + contexts[c + 1]) / 2 : contexts[c] - longest - 1;
      for (const int k : setup_.lengths()) {
        const cuda::RoundSettings settings{.draft_length = k, .batch = batch, .capacity = context + kMargin};
        if (!setup_.fits(cuda::round_bytes(setup_.target.config, &setup_.draft.config, settings))) continue;
        const double guess = predicted(batch, k, static_cast<double>(context));
        cuda::Rounds rounds(*setup_.target.model, setup_.draft.model.get(), settings, rng::make_key(setup_.options.seed, 2));
        std::vector<double> seconds;
        for (int i = 0; i < setup_.options.repetitions + 2; ++i) {
          rounds.pretend(context + 1);
          const double begin = llm::now(llm::Clock::wall);
          rounds.round();
          if (i > 1) seconds.push_back(llm::now(llm::Clock::wall) - begin);
        }
        const llm::Spread s = llm::spread(seconds);
        if (std::isfinite(guess)) errors.push_back(std::abs(guess / s.median - 1.0));
        table.add(
            fmt::format("{},{},{},{},{:.6g},{:+.5f}", batch, k, context, spread_text(s), 1e3 * guess, guess / s.median - 1.0));
      }
      table.write();
    }
  if (!errors.empty()) print_output("rounds against their parts, {} points: {}\n", errors.size(), errors_text(errors));
}

// What other prompts' distributions say, from the small models on the CPU.
Forecast GpuRuns::forecast_of(const llm::Method& method, double temperature) const {
  const auto team = std::make_shared<llm::ThreadTeam>(setup_.threads);
  const auto target = llm::make_cpu_model(setup_.target.small, setup_.target.small->config.layers, team);
  const auto draft = llm::make_cpu_model(setup_.draft.small, setup_.draft.small->config.layers, team);
  return forecast(*target, draft.get(), method, setup_.options, setup_.fitted, temperature);
}

// Held-out prompts decoded at one temperature, batch and draft length, every round timed; no rounds where none fits.
GpuRun GpuRuns::run_held_out(const llm::Method& method, double temperature, std::size_t batch, int draft_length) {
  GpuRun run;
  run.temperature = temperature;
  run.batch = batch;
  run.draft_length = draft_length;
  run.weights = to_text(setup_.target.weights->origin);
  const cuda::RoundSettings settings{
      .draft_length = draft_length, .batch = batch, .capacity = setup_.capacity, .sampling = method.sampling(temperature)};
  cuda::Rounds rounds(*setup_.target.model, draft_length > 0 ? setup_.draft.model.get() : nullptr, settings,
                      rng::make_key(setup_.options.seed, rng::hash_text("runs on a GPU")));
  llm::Acceptance counts;
  // Groups of as many prompts as the batch; few of them where rounds take long, so that all of the grid is measured.
  const std::size_t groups =
      std::min(setup_.held_out.size() / batch,
               draft_length == 0 ? std::size_t{2} : std::max<std::size_t>(2, (setup_.options.quick ? 2 : 16) / batch));
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<std::vector<Token>> texts;
    std::vector<std::uint64_t> ids;
    std::size_t given = 0;
    for (std::size_t i = g * batch; i < (g + 1) * batch; ++i) {
      texts.push_back(setup_.held_out[i].tokens);
      ids.push_back(i);
      given += setup_.held_out[i].tokens.size();
    }
    rounds.start(texts, ids);
    if (g == 0) {
      rounds.prepare();
      rounds.start(texts, ids);
    }
    const auto size = [&] {
      std::size_t all = 0;
      for (const std::size_t length : rounds.lengths()) all += length;
      return all;
    };
    const std::vector<std::size_t> start = rounds.lengths();
    std::size_t before = size();
    std::size_t own_rounds = 0;
    while (before < given + batch * setup_.options.tokens && rounds.fits()) {
      const double context = static_cast<double>(before) / static_cast<double>(batch) - 1.0;
      const double begin = llm::now(llm::Clock::wall);
      rounds.round();
      run.measured += llm::now(llm::Clock::wall) - begin;
      run.predicted += predicted(batch, draft_length, context);
      run.bound += predicted_passes(batch, draft_length, context);
      before = size();
      ++own_rounds;
    }
    rounds.check_distributions();
    if (own_rounds == 0) continue;
    run.rounds += own_rounds;
    for (std::size_t i = 0; i < batch; ++i) {
      llm::RequestAcceptance& sequence = counts.requests.emplace_back();
      sequence.rounds = own_rounds;
      sequence.emitted = rounds.lengths()[i] - start[i];
      run.emitted += sequence.emitted;
    }
  }
  run.sequences = counts.requests.size();
  if (run.rounds > 0) run.tokens_per_round = tokens_per_round(counts);
  return run;
}

void GpuRuns::decode() {
  const Rule rule("token", nullptr);
  const llm::Method method{llm::Method::Draft::sampled, rule.get(), nullptr, setup_.options.cuts};
  GrowingTable table(setup_.options.out + "/validation.csv", csv_header(columns()));
  print_output("{:>5}{:>6}{:>6}{:>9}{:>11}{:>9}{:>11}{:>11}{:>7}{:>10}{:>9}{:>9}\n", "temp", "batch", "draft", "rounds",
               "measured s", "error", "tok/round", "predicted", "t", "tokens/s", "speedup", "bound");
  ValidationSummary summary;
  std::string text;
  // From the highest, which says the most: a run that is cut short has it.
  for (auto at = setup_.options.temperatures.rbegin(); at != setup_.options.temperatures.rend(); ++at) {
    const Forecast expected = forecast_of(method, *at);
    for (const std::size_t batch : setup_.options.batches) {
      double plain = 0.0;  // seconds a token of each sequence
      double plain_predicted = 0.0;
      for (const int k : setup_.lengths()) {
        GpuRun run = run_held_out(method, *at, batch, k);
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
        summary.add(run, batch == setup_.options.batches.front());  // others decode the same prompts by the same uniforms
        table.add(csv_line(columns(), run));
        table.write();
        print_output("{:>5g}{:>6}{:>6}{:>9}{:>11.4f}{:>+8.2f}%{:>11.4f}{:>11.4f}{:>7}{:>10.1f}{:>9.4f}{:>9.4f}\n", *at, batch, k,
                     run.rounds, run.measured, 100.0 * run.timing_error(), run.tokens_per_round.value,
                     run.predicted_tokens_per_round.value, error_text(run.acceptance().t, 2), run.tokens_per_second(),
                     run.speedup, run.bound / run.measured);
        flush_output();
      }
    }
    // After every temperature: a run that is cut short has said something too.
    text = fmt::format("weights: {} (target), {} (draft)\ntemperatures: {:g} to {:g}\n{}", to_text(setup_.target.weights->origin),
                       to_text(setup_.draft.weights->origin), *at, setup_.options.temperatures.back(), summary.text());
    write_whole_file(setup_.options.out + "/summary.txt", text);
  }
  print_output("{}", text);
}

std::size_t write_for_baselines(GpuSetup& setup) {
  const std::vector<Token> prompt = setup.held_out.front().tokens;
  std::string tokens;
  for (const Token token : prompt) fmt::format_to(std::back_inserter(tokens), "{}{}", tokens.empty() ? "" : " ", token);
  write_whole_file(setup.options.out + "/prompt.txt", tokens + "\n");
  // As in verification: eight rows at a time.
  const auto cache = setup.target.model->make_cache(1, setup.capacity);
  std::string bytes;
  for (std::size_t at = 0; at < prompt.size(); at += 8) {
    const std::size_t size = std::min<std::size_t>(8, prompt.size() - at);
    std::vector<float> logits(size * setup.target.config.vocab);
    const llm::Extension extension{.sequence = 0, .tokens = std::span(prompt).subspan(at, size), .logit_rows = size};
    setup.target.model->forward({&extension, 1}, *cache, logits);
    bytes.append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
  }
  write_whole_file(setup.options.out + "/logits.f32", bytes);

  std::size_t timed = 0;
  GrowingTable table(setup.options.out + "/generation.csv",
                     "draft_length,tokens,rounds,ms,ms_quartile_1,ms_quartile_3,samples,ms_per_token");
  for (const int k : setup.lengths()) {
    cuda::Rounds rounds(*setup.target.model, k > 0 ? setup.draft.model.get() : nullptr,
                        {.draft_length = k, .batch = 1, .capacity = setup.capacity, .sampling = {.temperature = 0.0}},
                        rng::make_key(setup.options.seed, 3));
    const std::vector<std::uint64_t> ids = {0};
    std::vector<double> seconds;
    std::size_t emitted = 0;
    std::size_t count = 0;
    for (int i = 0; i <= setup.options.repetitions; ++i) {
      const double begin = llm::now(llm::Clock::wall);
      rounds.start({prompt}, ids);
      for (count = 0; rounds.lengths()[0] < prompt.size() + setup.options.tokens && rounds.fits(); ++count) rounds.round();
      emitted = rounds.lengths()[0] - prompt.size();
      if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
    }
    const llm::Spread s = llm::spread(seconds);
    table.add(
        fmt::format("{},{},{},{},{:.6g}", k, emitted, count, spread_text(s), 1e3 * s.median / static_cast<double>(emitted)));
    ++timed;
    table.write();
  }
  print_output("{} rows of logits, decoding at draft lengths 0 to {}\n", prompt.size(), setup.options.draft_lengths.back());
  return timed;
}

}  // namespace specsim::cli
