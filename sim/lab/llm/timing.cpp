#include "sim/lab/llm/timing.h"

#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/quantiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>

namespace specsim::llm {

namespace {

constexpr std::size_t kParts = 4;  // parts of a round that are timed
constexpr std::uint64_t kResamples = 200;
constexpr std::size_t kTries = 2;  // timings of a draft length per call: the draft has one token to read, or two

void add_parts(const RoundSeconds& round, std::vector<double>& parts) {
  parts.insert(parts.end(), {round.first_draft, round.other_drafts, round.target, round.judging});
}

std::vector<double> timed_rounds(Decoder& decoder, RunRecord& record, std::size_t batch, std::size_t tokens) {
  std::vector<double> parts;
  const auto size = [&] {
    std::size_t all = 0;
    for (const Text& text : decoder.texts()) all += text.tokens.size();
    return all;
  };
  const std::size_t given = size();
  const auto sequences = static_cast<double>(batch);
  double catch_up_share = 0.0;
  record.rounds.clear();
  while (size() < given + batch * tokens && decoder.fits()) {
    record.rounds.push_back({.context = static_cast<double>(size()) / sequences - 1.0, .catch_up_share = catch_up_share});
    decoder.round();
    add_parts(decoder.seconds(), parts);
    catch_up_share = 0.0;
    for (const int accepted : decoder.accepted())
      if (accepted == record.draft_length && accepted > 0) catch_up_share += 1.0 / sequences;
  }
  record.emitted = size() - given;
  return parts;
}

}  // namespace

std::vector<TimedTask> table_tasks(const ModelPair& models, const Method& method, const std::vector<int>& draft_lengths,
                                   const std::vector<TablePoint>& points, double temperature, Clock clock) {
  std::vector<TimedTask> tasks;
  for (const TablePoint& point : points) {
    const auto speculation =
        std::make_shared<RunningMethod>(*models.target, models.draft.get(), method, method.sampling(temperature), point.batch,
                                        draft_lengths.back(), rng::make_key(0, rng::hash_text("table")), clock);
    std::vector<Text> texts;
    for (std::size_t s = 0; s < point.batch; ++s)
      texts.push_back({filler_text(point.context + 1, models.target->config().vocab), s});
    speculation->decoder().start(texts);
    std::vector<int> lengths = {0};
    lengths.insert(lengths.end(), draft_lengths.begin(), draft_lengths.end());
    tasks.push_back({fmt::format("table {:g} {} {}", temperature, point.batch, point.context),
                     [speculation, lengths, calls = std::make_shared<std::uint64_t>(0)] {
                       Decoder& decoder = speculation->decoder();
                       decoder.forget(1);
                       decoder.round(0);  // so that the first round that counts also follows a round of its own sequences
                       std::vector<std::vector<double>> rounds(lengths.size() * kTries);
                       for (const std::size_t i : shuffled(rounds.size(), "order in a task", (*calls)++)) {
                         decoder.forget(1 + i % kTries);
                         decoder.round(lengths[i / kTries]);
                         add_parts(decoder.seconds(), rounds[i]);
                       }
                       std::vector<double> parts;
                       for (const std::vector<double>& round : rounds) parts.insert(parts.end(), round.begin(), round.end());
                       return parts;
                     }});
  }
  return tasks;
}

std::vector<PassRow> pass_rows(const std::vector<int>& draft_lengths, const std::vector<TablePoint>& points,
                               const std::vector<TimedTask>& tasks, std::size_t longest_context) {
  std::vector<PassRow> rows;
  const auto longest = static_cast<std::size_t>(draft_lengths.back());
  for (std::size_t j = 0; j < points.size(); ++j) {
    const std::size_t batch = points[j].batch;
    const std::size_t context = points[j].context;
    const std::size_t repetitions = tasks[j].parts.at(0).size();
    std::array<PassRow, kTries> first = {PassRow{"draft_first", 1, batch, context, j, {}},
                                         PassRow{"draft_first", 2, batch, context, j, {}}};
    // Passes run at slightly more than the point's context. The outermost rows are used for the ends of the range.
    const bool lowest = std::none_of(points.begin(), points.end(), [&](const auto& p) { return p.context < context; });
    const bool highest = std::none_of(points.begin(), points.end(), [&](const auto& p) { return p.context > context; });
    PassRow others{"draft", 1, batch, highest ? longest_context : lowest ? context : context + longest / 2, j, {}};
    for (std::size_t i = 0; i <= draft_lengths.size(); ++i) {
      const auto length = i == 0 ? 0 : static_cast<std::size_t>(draft_lengths[i - 1]);
      PassRow target{"target", length + 1, batch, context, j, {}};
      for (std::size_t attempt = 0; attempt < kTries; ++attempt) {
        const auto* const parts = tasks[j].parts.data() + (i * kTries + attempt) * kParts;
        for (std::size_t r = 0; r < repetitions; ++r) {
          target.samples.push_back(parts[2][r] + parts[3][r]);
          if (length > 0) first[std::min(attempt, context)].samples.push_back(parts[0][r]);  // there is only one token to read
          if (length > 1) others.samples.push_back(parts[1][r] / static_cast<double>(length - 1));
        }
      }
      rows.push_back(std::move(target));
    }
    if (others.samples.empty()) others.samples = first[0].samples;  // never needed, but a table has rows of both models
    for (PassRow& row : first)
      if (!row.samples.empty()) rows.push_back(std::move(row));
    rows.push_back(std::move(others));
  }
  return rows;
}

std::vector<PassRow> remeasure_dips(const std::function<std::vector<PassRow>()>& rows, std::vector<TimedTask>& tasks,
                                    int repetitions) {
  const auto holds = [](const PassRow& a, const PassRow& b) {  // b has all of a's work
    return a.model == b.model && b.tokens >= a.tokens && b.batch >= a.batch && b.context >= a.context;
  };
  constexpr int kRounds = 3;
  for (int i = 0;; ++i) {
    std::vector<PassRow> now = rows();
    std::vector<bool> again(tasks.size(), false);
    for (const PassRow& a : now)
      for (const PassRow& b : now)
        if (&a != &b && holds(a, b) && b.seconds() < 0.9 * a.seconds()) again[a.task] = again[b.task] = true;
    if (i == kRounds || std::none_of(again.begin(), again.end(), [](bool x) { return x; })) return now;
    std::vector<std::size_t> places;
    std::vector<TimedTask> some;
    for (std::size_t j = 0; j < tasks.size(); ++j)
      if (again[j]) {
        places.push_back(j);
        some.push_back(std::move(tasks[j]));
      }
    interleave(some, repetitions, {});
    for (std::size_t k = 0; k < places.size(); ++k) tasks[places[k]] = std::move(some[k]);
  }
}

std::vector<RunGroup> run_groups(const std::vector<double>& temperatures, const std::vector<std::size_t>& batches) {
  std::vector<RunGroup> groups;
  for (const double temperature : temperatures)
    for (const std::size_t batch : batches) {
      groups.push_back({.temperature = temperature, .batch = batch});
      for (std::size_t i = 0; i < batch; ++i) groups.back().prompts.push_back(i);
    }
  return groups;
}

std::vector<TimedTask> run_tasks(const ModelPair& models, const Method& method, const std::vector<int>& draft_lengths,
                                 const std::vector<Prompt>& prompts, std::size_t tokens, std::uint64_t seed, Clock clock,
                                 std::vector<RunGroup>& groups) {
  std::vector<TimedTask> tasks;
  for (RunGroup& group : groups) {
    group.runs.assign(1, {.draft_length = 0});
    for (const int draft_length : draft_lengths) group.runs.push_back({.draft_length = draft_length});
    tasks.push_back({fmt::format("runs {:g} {}", group.temperature, group.batch),
                     [&models, method, &prompts, &group, tokens, seed, clock, call = std::uint64_t{0}]() mutable {
                       std::vector<std::vector<double>> timed(group.runs.size());
                       for (const std::size_t i : shuffled(timed.size(), "order in a task", call++)) {
                         RunningMethod speculation(*models.target, models.draft.get(), method, method.sampling(group.temperature),
                                                   group.batch, group.runs[i].draft_length,
                                                   rng::make_key(seed, rng::hash_text("timed runs")), clock);
                         std::vector<Text> texts;
                         for (const std::size_t index : group.prompts) texts.push_back({prompts[index].tokens, index});
                         speculation.decoder().start(std::move(texts));
                         timed[i] = timed_rounds(speculation.decoder(), group.runs[i], group.batch, tokens);
                       }
                       std::vector<double> parts;
                       for (const std::vector<double>& run : timed) parts.insert(parts.end(), run.begin(), run.end());
                       return parts;
                     }});
  }
  return tasks;
}

TimedRun timed_run(const RunGroup& group, const TimedTask& task, std::size_t index) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < index; ++i) at += group.runs[i].rounds.size() * kParts;
  const std::size_t repetitions = task.parts.at(at).size();
  TimedRun run;
  std::vector<std::vector<double>> rounds;  // [round][repetition]
  const auto median = [&](std::size_t part) { return quartiles_of(task.parts[part]).median; };
  for (std::size_t round = 0; round < group.runs[index].rounds.size(); ++round, at += kParts) {
    run.typical += {median(at), median(at + 1), median(at + 2), median(at + 3)};
    std::vector<double> whole(repetitions, 0.0);
    for (std::size_t r = 0; r < repetitions; ++r)
      for (std::size_t part = 0; part < kParts; ++part) whole[r] += task.parts[at + part][r];
    run.seconds += quartiles_of(whole).median;
    rounds.push_back(std::move(whole));
  }
  if (repetitions < 2) return run;
  std::vector<double> drawn(repetitions);
  std::vector<std::size_t> which(repetitions);
  for (std::uint64_t i = 0; i < kResamples; ++i) {
    rng::Stream random(rng::make_key(0, rng::hash_text("repetitions drawn anew")), rng::Purpose::start, 0, i);
    for (std::size_t& r : which) r = scale_bits(random(), repetitions);
    double seconds = 0.0;
    for (const std::vector<double>& whole : rounds) {
      std::transform(which.begin(), which.end(), drawn.begin(), [&](std::size_t r) { return whole[r]; });
      seconds += quartiles_of(drawn).median;
    }
    run.resampled.push_back(seconds);
  }
  return run;
}

double TimedRun::error() const { return math::sample_deviation(resampled); }

Speedup speedup_of(const RunGroup& group, const TimedRun& plain, const TimedRun& run, std::size_t index) {
  const double tokens = static_cast<double>(group.runs[index].emitted) / static_cast<double>(group.runs[0].emitted);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < run.resampled.size(); ++i) ratios.push_back(tokens * plain.resampled[i] / run.resampled[i]);
  return {tokens * plain.seconds / run.seconds, math::sample_deviation(ratios)};
}

}  // namespace specsim::llm
