#include "sim/llm/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace specsim::llm {

namespace {

// Tokens that differ, so that no row of the embedding stays in a register.
std::vector<Token> filler(std::size_t count, std::size_t vocab) {
  std::vector<Token> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<Token>((i * 7919 + 13) % vocab);
  return tokens;
}

std::vector<double> run_once(const ModelPair& models, const verify::PositionRule& rule, const RunPoint& point,
                             const std::vector<Prompt>& prompts, std::size_t tokens, std::uint64_t seed, Clock clock,
                             RunRecord& record) {
  ModelLaws target(*models.target, {.temperature = point.temperature}, point.batch);
  ModelLaws draft(*models.draft, {.temperature = point.temperature}, point.batch);
  ModelDrafter drafter(draft, false);
  Decoder decoder(target, &drafter, rule, point.draft_length, rng::make_key(seed, rng::hash_text("timed runs")), clock);
  std::vector<double> seconds;
  record = {};
  for (const std::vector<std::size_t>& group : point.groups) {
    std::vector<Text> texts;
    std::size_t given = 0;
    for (const std::size_t index : group) {
      texts.push_back({prompts[index].tokens, index});
      given += prompts[index].tokens.size();
    }
    decoder.start(texts);
    const auto size = [&] {
      std::size_t all = 0;
      for (const Text& text : decoder.texts()) all += text.tokens.size();
      return all;
    };
    const auto batch = static_cast<double>(group.size());
    double caught_up = 0.0;
    while (size() < given + group.size() * tokens && decoder.fits()) {
      const RoundRecord round{.context = static_cast<double>(size()) / batch - 1.0, .caught_up = caught_up};
      decoder.round();
      seconds.push_back(decoder.round_seconds());
      caught_up = 0.0;
      for (const int accepted : decoder.accepted())
        if (accepted == point.draft_length && accepted > 0) caught_up += 1.0 / batch;
      record.rounds.push_back(round);
    }
    record.emitted += size() - given;
  }
  return seconds;
}

}  // namespace

std::vector<PassPoint> pass_grid(const std::vector<int>& draft_lengths, const std::vector<std::size_t>& batches,
                                 const std::vector<std::size_t>& contexts) {
  std::vector<std::size_t> rows = {1};
  for (const int draft_length : draft_lengths)
    if (draft_length > 0) rows.push_back(static_cast<std::size_t>(draft_length) + 1);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<PassPoint> points;
  for (const std::size_t batch : batches)
    for (const std::size_t context : contexts) {
      for (const std::size_t tokens : rows) points.push_back({cost::Role::target, tokens, batch, context});
      for (const std::size_t tokens : {1U, 2U}) points.push_back({cost::Role::draft, tokens, batch, context});
    }
  return points;
}

std::vector<Job> pass_jobs(const ModelPair& models, const std::vector<PassPoint>& points, Clock clock) {
  std::map<std::tuple<cost::Role, std::size_t, std::size_t>, std::shared_ptr<ModelLaws>> caches;
  std::vector<Job> jobs;
  for (const PassPoint& point : points) {
    std::shared_ptr<ModelLaws>& laws = caches[{point.role, point.batch, point.context}];
    if (laws == nullptr) {
      Model& model = point.role == cost::Role::target ? *models.target : *models.draft;
      laws = std::make_shared<ModelLaws>(model, math::Sampling{}, point.batch);
      for (std::size_t s = 0; s < point.batch; ++s) prefill(*laws, s, filler(point.context, laws->vocab()));
    }
    const std::size_t rows = point.role == cost::Role::target ? point.tokens : 1;
    const auto run = [point, laws, rows, clock, out = std::vector<double>(point.batch * rows * laws->vocab())]() mutable {
      const std::vector<Token> tokens = filler(point.tokens, laws->vocab());
      std::vector<Extension> batch;
      for (std::size_t s = 0; s < point.batch; ++s) batch.push_back({.sequence = s, .tokens = tokens, .logit_rows = rows});
      const double begin = now(clock);
      laws->extend(batch, out);
      const double seconds = now(clock) - begin;
      for (std::size_t s = 0; s < point.batch; ++s) laws->rewind(s, point.context);
      return std::vector<double>{seconds};
    };
    jobs.push_back({fmt::format("{},{},{},{}", point.role == cost::Role::target ? "target" : "draft", point.tokens, point.batch,
                                point.context),
                    run});
  }
  return jobs;
}

void settle_dips(const std::vector<PassPoint>& points, std::vector<Job>& jobs, int repetitions) {
  const auto holds = [](const PassPoint& a, const PassPoint& b) {  // b all that a does
    return a.role == b.role && b.tokens >= a.tokens && b.batch >= a.batch && b.context >= a.context;
  };
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> seconds;
    for (std::size_t a = 0; a < points.size(); ++a) seconds.push_back(spread(jobs[a].parts.at(0)).median);
    std::vector<std::size_t> again;
    for (std::size_t a = 0; a < points.size(); ++a)
      for (std::size_t b = 0; b < points.size(); ++b)
        if (a != b && ((holds(points[a], points[b]) && seconds[b] < 0.9 * seconds[a]) ||
                       (holds(points[b], points[a]) && seconds[a] < 0.9 * seconds[b]))) {
          again.push_back(a);
          break;
        }
    if (again.empty()) return;
    std::vector<Job> some;
    for (const std::size_t a : again) some.push_back(std::move(jobs[a]));
    interleave(some, repetitions, {});
    for (std::size_t k = 0; k < again.size(); ++k) jobs[again[k]] = std::move(some[k]);
  }
}

std::string cost_table(const std::vector<PassPoint>& points, const std::vector<Job>& jobs) {
  std::string text = "model,tokens,batch,context,ms\n";
  for (std::size_t i = 0; i < points.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{},{:.6g}\n", jobs[i].name, 1e3 * spread(jobs[i].parts.at(0)).median);
  return text;
}

std::vector<Job> run_jobs(const ModelPair& models, const verify::PositionRule& rule, const std::vector<RunPoint>& points,
                          const std::vector<Prompt>& prompts, std::size_t tokens, std::uint64_t seed, Clock clock,
                          std::vector<RunRecord>& records) {
  records.assign(points.size(), {});
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < points.size(); ++i)
    jobs.push_back({fmt::format("{},{},{}", points[i].temperature, points[i].draft_length, points[i].batch),
                    [&models, &rule, &prompts, &record = records[i], point = points[i], tokens, seed, clock] {
                      return run_once(models, rule, point, prompts, tokens, seed, clock, record);
                    }});
  return jobs;
}

double typical_seconds(const Job& job) {
  double sum = 0.0;
  for (const std::vector<double>& part : job.parts) sum += spread(part).median;
  return sum;
}

}  // namespace specsim::llm
