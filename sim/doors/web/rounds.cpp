// Questions about rounds: one position in detail, counts over many rounds, one round choice by choice.
#include "sim/doors/web/questions.h"
#include "sim/experiments/audit/every_choice.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/runner.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/json.h"
#include "sim/foundation/math/alias_table.h"
#include "sim/rounds/decode/block_round.h"
#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/theory/lossy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

namespace specsim::web {

namespace {

constexpr int kMostTokensShown = 64;  // those with separate counts: decode::kTopTokens

struct SeenDistributions {
  std::vector<double> target;
  std::vector<double> drafted;
  std::vector<double> draft_model;

  [[nodiscard]] verify::PositionDistributions seen() const { return {target, drafted, draft_model}; }
};

// Keeps the distributions of the only context, and passes them on to the observer that judges the run.
class DistributionsKept final : public run::Observer {
 public:
  explicit DistributionsKept(std::shared_ptr<run::Observer> next) : next_(std::move(next)) {}
  void see(int context, int depth, const verify::PositionDistributions& seen, const decode::OutputClasses& classes) override {
    if (next_) next_->see(context, depth, seen, classes);
    ++seen_;
    if (context != 0) return;
    const auto copy = [](std::span<const double> numbers) { return std::vector<double>(numbers.begin(), numbers.end()); };
    by_depth.push_back({copy(seen.target), copy(seen.drafted), copy(seen.draft_model)});
    if (depth == 0) of_token = classes.of_token;
  }
  void finish(const decode::Prepared& prepared) override {
    if (next_) next_->finish(prepared);
  }
  [[nodiscard]] bool one_context() const { return seen_ == by_depth.size(); }

  std::vector<SeenDistributions> by_depth;
  std::vector<std::uint16_t> of_token;

 private:
  std::shared_ptr<run::Observer> next_;
  std::size_t seen_ = 0;
};

void check_chain(const spec::Cell& cell) {
  if (!cell.drafts_chains() || cell.policy() != nullptr)
    throw BadInput({"decode", 0, 0}, fmt::format("{}, allowed: a chain, without a policy", cell.method_text));
}

// The rule that decides on each position separately; nullptr if the verifier judges blocks.
const verify::PositionRule* position_rule(const spec::Cell& cell) {
  return cell.chain() != nullptr ? cell.chain()->verifier.part.get() : nullptr;
}

void check_small(const spec::Cell& cell) {
  if (cell.vocab > kMostTokensShown)
    throw BadInput({"pair.vocab", 0, 0}, fmt::format("{}, allowed: at most {}", cell.vocab, kMostTokensShown));
}

// A run that continues from question to question, as long as these have the same config.
struct RunInPieces {
  std::string config;
  spec::Experiment experiment;
  judge::FactsOfCells facts;
  std::shared_ptr<DistributionsKept> seen;
  decode::Prepared prepared;
  std::optional<decode::Simulator> simulator;
  decode::Counts counts;
  std::uint64_t chunks = 0;
  std::uint64_t next_chunk = 0;

  [[nodiscard]] const spec::Cell& cell() const { return experiment.cells.front(); }
};

std::unique_ptr<RunInPieces> start_run(const Json& question, const std::string& config) {
  auto run = std::make_unique<RunInPieces>();
  run->config = config;
  run->experiment = experiment_of(question);
  const spec::Cell& cell = run->cell();
  check_small(cell);
  run->seen = std::make_shared<DistributionsKept>(run->facts.observe()(cell));
  run->prepared = run::prepare_cell(cell, run->seen.get(), true);
  if (!run->seen->one_context())
    throw BadInput({"context", 0, 0}, "several contexts, allowed: process fixed, the same distribution throughout");
  run->simulator.emplace(spec::plan_of(cell), run->prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  run->counts = run->simulator->empty_counts();
  const std::uint64_t size = run->simulator->chunk_size();
  run->chunks = (cell.work() + size - 1) / size;
  return run;
}

// Scales weights to sum 1; all 0 if their sum is 0.
void make_shares(std::vector<double>& weights) {
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight = sum > 0.0 ? weight / sum : 0.0;
}

// One position as a position rule judges it.
theory::Judgement judged_by(const verify::PositionRule& rule, const SeenDistributions& own) {
  std::vector<double> acceptance(own.target.size());
  for (std::size_t x = 0; x < acceptance.size(); ++x) {
    // The share of uniforms that the rule accepts, from its threshold.
    const auto passing = verify::accept_threshold(rule.odds(own.seen(), static_cast<Token>(x)));
    acceptance[x] = static_cast<double>(passing) / static_cast<double>(verify::kAcceptAlways);
  }
  std::vector<double> residual(own.target.size());
  rule.rejected(own.seen(), residual);
  make_shares(residual);
  return theory::judge_accepting(acceptance, own.drafted, residual);
}

// A block of one position; every outcome is played.
theory::Judgement judged_by_outcomes(const spec::Cell& cell, const decode::Prepared& prepared) {
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const auto& judging = std::get<decode::BlockJudging>(plan.judging);
  decode::BlockRound round(*prepared.blocks, *cell.contexts->process, spec::draw_key(cell), *judging.drafter, nullptr);
  const auto vocab = static_cast<std::size_t>(cell.vocab);
  theory::Judgement judged{std::vector<double>(vocab), std::vector<double>(vocab)};
  audit::EveryChoice choices(cell.vocab, audit::EveryChoice::Finals::by_depth);
  do {
    const std::vector<Token>& emitted = round.play(*judging.rule, {}, choices).emitted;
    (emitted.size() > 1 ? judged.accepted : judged.rejected)[emitted.front()] += static_cast<double>(choices.probability());
  } while (choices.advance());
  return judged;
}

// Sum of |observed share - probability| over tokens, and its mean if `n` tokens are drawn from the target. The mean uses each
// share's mean absolute deviation as a normal variable, sqrt(2 p (1 - p) / (pi n)).
std::pair<double, double> distance(const std::vector<double>& target, const std::vector<double>& observed, double n) {
  double sum = 0.0;
  double expected = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x) {
    sum += std::abs(observed[x] / n - target[x]);
    expected += std::sqrt(2.0 * target[x] * (1.0 - target[x]) / (std::numbers::pi * n));
  }
  return {sum, expected};
}

// The random bits of one round of one sequence, whatever the number of the round that uses them.
class RoundBits final : public decode::BitSource {
 public:
  // `pairs`: final tokens of two sequences share an address, as they do if positions are judged one by one.
  RoundBits(rng::Key key, std::uint64_t sequence, std::uint32_t round, bool pairs)
      : source_(key), sequence_(sequence), round_(round), pairs_(pairs) {}
  rng::BitsPair at(rng::Purpose purpose, std::uint32_t position, std::uint32_t /*word1*/, std::uint64_t /*sequence*/) override {
    if (purpose != rng::Purpose::final_token || !pairs_) return source_.at(purpose, position, round_, sequence_);
    rng::BitsPair bits = source_.at(purpose, position, round_, sequence_ / 2);
    if (sequence_ % 2 == 1) std::swap(bits.first, bits.second);
    return bits;
  }
  void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t /*word1*/, std::uint64_t /*first_sequence*/,
             const std::uint32_t* /*lanes*/, std::size_t count, std::uint64_t* first, std::uint64_t* second) override {
    const rng::BitsPair bits = at(purpose, position, 0, 0);
    std::fill_n(first, count, bits.first);
    std::fill_n(second, count, bits.second);
  }

 private:
  decode::PhiloxBits source_;
  std::uint64_t sequence_;
  std::uint32_t round_;
  bool pairs_;
};

// The draft token at a position, from the tables that the round itself draws from.
Token drafted_token(const spec::Cell& cell, const decode::Prepared& prepared, std::size_t position, std::uint64_t bits) {
  if (prepared.blocks) return prepared.blocks->at(0, static_cast<int>(position)).distributions.pick_draft(bits);
  const std::uint64_t depth = std::min<std::uint64_t>(position, prepared.tables->depths() - 1);
  return math::alias_pick(prepared.tables->draft(0, depth), static_cast<std::uint64_t>(cell.vocab), bits);
}

class RoundKept final : public decode::RoundSink {
 public:
  void round(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::span<const Token> tokens, std::uint32_t /*next*/) override {
    emitted.assign(tokens.begin(), tokens.end());
  }
  std::vector<Token> emitted;
};

}  // namespace

spec::Experiment experiment_of(const Json& question) {
  const auto at = question.find("config");
  if (at == question.end() || !at->is_object()) throw BadInput({"config", 0, 0}, "none is given");
  Json own = *at;
  if (!own.contains("experiment")) own["experiment"] = "explorer";
  Diagnostics diagnostics;
  const config::Value config = config::parse_json(own.dump(), "the explorer", diagnostics);
  diagnostics.throw_if_any();
  spec::Experiment experiment = spec::read_experiment(config, "the explorer", {}, diagnostics);
  diagnostics.throw_if_any();
  if (experiment.cells.size() != 1)
    throw BadInput({"config", 0, 0}, fmt::format("{} cells, allowed: one, without a sweep", experiment.cells.size()));
  return experiment;
}

Json answer_mass(const Json& question) {
  const spec::Experiment experiment = experiment_of(question);
  const spec::Cell& cell = experiment.cells.front();
  check_small(cell);
  check_chain(cell);
  if (cell.draft_length() != 1) throw BadInput({"decode", 0, 0}, fmt::format("draft length {}, allowed: 1", cell.draft_length()));
  DistributionsKept seen(nullptr);
  const decode::Prepared prepared = run::prepare_cell(cell, &seen, true);
  const SeenDistributions& own = seen.by_depth.front();
  const verify::PositionRule* const rule = position_rule(cell);
  const theory::Judgement judged = rule != nullptr ? judged_by(*rule, own) : judged_by_outcomes(cell, prepared);
  std::vector<double> acceptance = judged.accepted;  // [token]: probability of acceptance once drafted
  for (std::size_t x = 0; x < acceptance.size(); ++x) acceptance[x] = own.drafted[x] > 0.0 ? acceptance[x] / own.drafted[x] : 0.0;
  std::vector<double> residual = judged.rejected;
  make_shares(residual);
  const std::vector<double> emitted = theory::emitted_distribution(judged);
  double overlap = 0.0;
  for (std::size_t x = 0; x < emitted.size(); ++x) overlap += std::min(own.target[x], own.drafted[x]);
  return {{"target", numbers(own.target)},
          {"drafted", numbers(own.drafted)},
          {"acceptance", numbers(acceptance)},
          {"accepted", numbers(judged.accepted)},
          {"replaced", numbers(judged.rejected)},
          {"residual", numbers(residual)},
          {"emitted", numbers(emitted)},
          {"alpha", number(judged.alpha())},
          {"overlap", number(overlap)},
          {"distance", number(theory::bias({own.drafted, std::vector<double>(own.drafted.size())}, own.target))},
          {"bias", number(theory::bias(judged, own.target))},
          {"lossless", cell.lossless()}};
}

Json answer_rounds(const Json& question) {
  static std::unique_ptr<RunInPieces> run;
  const auto at = question.find("config");
  const std::string config = at == question.end() ? "" : at->dump();
  if (!run || run->config != config) {
    run.reset();
    run = start_run(question, config);
  }
  const spec::Cell& cell = run->cell();
  const std::uint64_t size = run->simulator->chunk_size();
  const double until = number_at(question, "until", static_cast<double>(cell.work()));
  while (run->next_chunk < run->chunks && static_cast<double>(run->next_chunk * size) < until)
    run->simulator->run(run->next_chunk++, cell.work(), run->counts);
  const decode::Counts& counts = run->counts;

  Json reply;
  reply["done"] = run->next_chunk == run->chunks;
  Json& shown = reply["counts"];
  counts.each([&](const char* name, std::size_t index, std::uint64_t value) {
    Json& own = shown[name];
    while (own.size() <= index) own.push_back(0);
    own[index] = value;
  });
  judge::Row row;
  row.cell = &cell;
  row.counts = counts;
  reply["rounds"] = counts.rounds;
  reply["emitted"] = counts.emitted;
  if (counts.rounds > 0) {
    reply["alpha"] = number(row.alpha());
    reply["alpha_error"] = number(row.alpha_estimate().error);
    reply["tokens_per_round"] = number(row.tokens_per_round());
    reply["tokens_per_round_error"] = number(row.tokens_per_round_estimate().error);
  }
  const std::vector<double>& target = run->seen->by_depth.front().target;
  std::vector<double> observed(target.size());
  double all = 0.0;
  for (const std::uint64_t count : counts.output) all += static_cast<double>(count);
  for (std::size_t x = 0; x < target.size(); ++x)  // tokens that the target cannot emit share a class, represented by the first
    if (std::find(run->seen->of_token.begin(), run->seen->of_token.begin() + static_cast<std::ptrdiff_t>(x),
                  run->seen->of_token[x]) == run->seen->of_token.begin() + static_cast<std::ptrdiff_t>(x))
      observed[x] = static_cast<double>(counts.output[run->seen->of_token[x]]);
  reply["target"] = numbers(target);
  reply["drafted"] = numbers(run->seen->by_depth.front().drafted);
  reply["observed"] = numbers(observed);
  if (all > 0.0) {
    const auto [sum, expected] = distance(target, observed, all);
    reply["distance"] = number(sum);
    reply["expected_distance"] = number(expected);
  }
  reply["lossless"] = cell.lossless();
  if (run->next_chunk == run->chunks) {
    std::vector<judge::Row> rows = {row};
    judge::judge_rows(rows, run->facts);
    reply["verdict"] = judge::to_text(rows[0].verdict);
    reply["p_output"] = number(rows[0].agreement.p_output_distribution);
    reply["p_tokens_per_round"] = number(rows[0].agreement.p_tokens_per_round);
    if (rows[0].exact.known) {
      reply["predicted_alpha"] = number(rows[0].exact.alpha);
      reply["predicted_tokens_per_round"] = number(rows[0].exact.tokens_per_round);
    }
  }
  return reply;
}

Json answer_step(const Json& question) {
  const spec::Experiment experiment = experiment_of(question);
  const spec::Cell& cell = experiment.cells.front();
  check_small(cell);
  check_chain(cell);
  const verify::PositionRule* const rule = position_rule(cell);
  const double asked = number_at(question, "round", 0.0);
  if (!(asked >= 0.0 && asked < 1e9 && asked == std::floor(asked)))
    throw BadInput({"round", 0, 0}, fmt::format("{}, allowed: 0 to 999999999", asked));
  const auto number_of_round = static_cast<std::uint64_t>(asked);
  DistributionsKept seen(nullptr);
  const decode::Prepared prepared = run::prepare_cell(cell, &seen, true);
  if (!seen.one_context())
    throw BadInput({"context", 0, 0}, "several contexts, allowed: process fixed, the same distribution throughout");
  const auto length = static_cast<std::size_t>(cell.draft_length());
  // The round with this number in the run: sequences of sequence_rounds rounds, one after the other.
  RoundBits bits(spec::draw_key(cell), number_of_round / cell.sequence_rounds,
                 static_cast<std::uint32_t>(number_of_round % cell.sequence_rounds), !prepared.blocks);
  const decode::Simulator simulator(spec::plan_of(cell), prepared, spec::draw_key(cell), cell.draft_length(), 1);
  RoundKept kept;
  decode::Counts counts = simulator.empty_counts();
  simulator.run_scripted(1, bits, counts, &kept);
  const std::size_t accepted = kept.emitted.size() - 1;

  const auto at_depth = [&](std::size_t depth) -> const SeenDistributions& {
    return seen.by_depth[std::min(depth, seen.by_depth.size() - 1)];
  };
  Json reply;
  for (std::size_t i = 0; i < length; ++i) {
    const SeenDistributions& own = at_depth(i);
    const rng::BitsPair drawn = bits.at(rng::Purpose::draft_accept, static_cast<std::uint32_t>(i), 0, 0);
    const Token token = drafted_token(cell, prepared, i, drawn.first);
    Json told = {{"token", token},
                 {"draw", number(rng::to_unit(drawn.first))},
                 {"u", number(rng::to_unit(drawn.second))},
                 {"target", number(own.target[token])},
                 {"drafted", number(own.drafted[token])},
                 {"accepts", i < accepted},
                 {"judged", i <= accepted}};
    if (rule != nullptr) {
      const verify::Odds odds = rule->odds(own.seen(), token);
      told["odds_target"] = number(odds.target);
      told["odds_draft"] = number(odds.draft);
    }
    reply["positions"].push_back(std::move(told));
  }
  const SeenDistributions& last = at_depth(accepted);
  std::vector<double> weights = last.target;
  if (rule != nullptr && accepted == length)
    rule->bonus(last.target, weights);
  else if (rule != nullptr)
    rule->rejected(last.seen(), weights);
  make_shares(weights);
  reply["accepted"] = accepted;
  reply["emitted"] = kept.emitted;
  reply["final"] = {{"token", kept.emitted.back()}, {"bonus", accepted == length}};
  if (rule != nullptr) reply["final"]["distribution"] = numbers(weights);
  reply["matches"] = rule != nullptr && rule->matches();
  reply["target"] = numbers(seen.by_depth.front().target);
  reply["drafted"] = numbers(seen.by_depth.front().drafted);
  return reply;
}

}  // namespace specsim::web
