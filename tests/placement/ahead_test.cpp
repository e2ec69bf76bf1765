// Trees, chosen blocks and draft length policies with drafting ahead, before the current block is judged: which token comes
// between, how long rounds take, and which drafters cannot do it.
#include "sim/experiments/audit/every_choice.h"
#include "sim/rounds/decode/block_round.h"
#include "tests/placement/batches.h"
#include "tests/support/samples.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace specsim::ahead_test {

using namespace specsim::placement;
using decode::Bonus;
using specsim::tests::LineCost;
using specsim::tests::ReadyCell;

namespace {

constexpr std::array kTarget = {0.5, 0.3, 0.2};
constexpr Token kLikeliestDraft = 2;

std::string three_tokens(const std::string& decode, const std::string& sampling) {
  return fmt::format(
      "{{experiment: ahead, seed: 20261126, pair: {{vocab: 3, target: {{family: explicit, probabilities: [.5, .3, .2]}}, draft: "
      "{{family: explicit, probabilities: [.2, .3, .5]}}{}}}, decode: {}}}",
      sampling, decode);
}

// The cell, or nullopt if the config is refused.
std::optional<spec::Cell> allowed(const std::string& yaml) {
  try {
    return tests::experiment_of(yaml).cells.at(0);
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

// Tokens that a sequence emits in a round that began with a given number of its tokens, followed by the target's own tokens: the
// law of the first `size` tokens, which a lossless rule preserves.
class Law {
 public:
  Law(std::size_t size, std::vector<double> target) : size_(size), target_(std::move(target)) {}
  void add(const std::vector<Token>& emitted, double probability) {
    for (std::size_t text = 0; text < texts(); ++text) {
      double here = probability;
      std::size_t rest = text;
      for (std::size_t i = 0; i < size_; ++i, rest /= target_.size()) {
        const std::size_t token = rest % target_.size();
        here *= i < emitted.size() ? (emitted[i] == token ? 1.0 : 0.0) : target_[token];
      }
      law_[text] += here;
    }
  }
  [[nodiscard]] double difference() const {
    double most = 0.0;
    for (std::size_t text = 0; text < texts(); ++text) {
      double wanted = 1.0;
      std::size_t rest = text;
      for (std::size_t i = 0; i < size_; ++i, rest /= target_.size()) wanted *= target_[rest % target_.size()];
      most = std::max(most, std::abs(wanted - law_[text]));
    }
    return most;
  }

 private:
  [[nodiscard]] std::size_t texts() const { return law_.size(); }
  std::size_t size_;
  std::vector<double> target_;
  std::vector<double> law_ = std::vector<double>(
      static_cast<std::size_t>(std::llround(std::pow(static_cast<double>(target_.size()), static_cast<double>(size_)))));
};

// Every outcome of a round without a bonus token from the first context: f(outcome, probability).
template <class F>
void every_outcome(const ReadyCell& cell, F f) {
  const spec::BlockMethod& block = *cell.cell().block();
  decode::BlockRound round(*cell.prepared().blocks, *cell.cell().contexts->process, cell.draw_key(), *block.drafter.part,
                           nullptr);
  audit::EveryChoice choices(cell.cell().vocab, audit::EveryChoice::Finals::by_depth);
  decode::BlockRound::Start start;
  start.longest = cell.cell().draft_length();
  start.bonus = false;
  do {
    const decode::BlockRound::RoundResult& outcome = round.play(*block.verifier.part, start, choices);
    f(outcome, static_cast<double>(choices.probability()));
  } while (choices.advance());
}

Comparison placed(const ReadyCell& cell, const std::string& kind, const cost::CostModel& cost, std::uint64_t batch,
                  std::uint64_t tokens) {
  PlacedBatch setting;
  setting.placement = tests::make_placement(kind);
  setting.batch = batch;
  setting.prompt_tokens = 100;
  setting.output_tokens = tokens;
  setting.vocab = cell.cell().vocab;
  return compare(setting, cost, {cell.preparation(), &cell.prepared(), cell.draw_key(), cell.cell().draft_length()});
}

ReadyCell cell_of(const std::string& decode, const std::string& context = "{process: fixed}") {
  return ReadyCell(fmt::format(
      "{{experiment: ahead, seed: 20261127, pair: {{vocab: 50, target: {{family: zipf, exponent: 1.2}}, draft: {{from: target, "
      "transform: temperature, value: 1.4}}}}, context: {}, cost: {{model: ratio, cost_ratio: 0.1}}, decode: {}}}",
      context, decode));
}

struct Method {
  std::string decode;
  std::string context = "{process: fixed}";
};

const std::vector<Method>& methods() {
  static const std::vector<Method> list = {
      {"{drafter: {kind: chain, draft_length: 4}, verifier: block}"},
      {"{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: multi_draft_recursive}"},
      {"{drafter: {kind: tree_static, branching: [3, 2, 1], siblings: top_k}, verifier: tree_point_mass}"},
      {"{drafter: {kind: tree_dynamic, depth: 3, width: 4, nodes: 12}, verifier: tree_point_mass}", "{process: iid, pool: 8}"},
      {"{drafter: {kind: opt_tree, max_depth: 4, nodes: 12}, verifier: tree_point_mass}", "{process: iid, pool: 8}"},
      {"{drafter: {kind: chain, draft_length: 6}, verifier: token, policy: {kind: additive, first: 2}}"},
      {"{drafter: {kind: chain, draft_length: 6}, verifier: token, policy: {kind: confidence, least: 0.1}}"},
      {"{drafter: {kind: pard, draft_length: 3}, verifier: tree_point_mass}"},
      {"{drafter: {kind: suffix_decoding}, verifier: tree_point_mass}", "{process: copy, prompt_tokens: 40}"},
  };
  return list;
}

AcceptedCounts recorded(const ReadyCell& cell, std::size_t sequences, std::uint64_t tokens) {
  return record_accepted({cell.preparation(), &cell.prepared(), cell.draw_key(), cell.cell().draft_length()}, Bonus::none,
                         sequences, tokens);
}

// Rows of the passes that draft a round's block.
std::vector<double> rows_of(const ReadyCell& cell, const AcceptedCounts& counts, std::size_t sequence, std::size_t round) {
  if (!counts.pass_rows.empty()) {
    const auto& own = counts.pass_rows[sequence].at(round);
    return {own.begin(), own.end()};
  }
  const draft::BlockDrafter& drafter = *cell.cell().block()->drafter;
  return drafter.work(counts.drafted.empty() ? drafter.shape().nodes : counts.drafted[sequence].at(round)).pass_rows;
}

// Rows of the block that is drafted while a round is verified: the next round uses it if the guess is right. A policy that
// depends on the accepted tokens determines how long a discarded block is.
std::vector<double> rows_ahead(const ReadyCell& cell, const AcceptedCounts& counts, std::size_t sequence, std::size_t round) {
  if (!counts.ahead.empty() && counts.ahead[sequence][round] == 0) return {};
  if (!counts.is_whole(sequence, round) && !counts.drafted_ahead.empty())
    return cell.cell().block()->drafter->work(counts.drafted_ahead[sequence][round]).pass_rows;
  return rows_of(cell, counts, sequence, std::min(round + 1, counts.of_sequence[sequence].size() - 1));
}

double sum(const std::vector<double>& values) {
  double all = 0.0;
  for (const double value : values) all += value;
  return all;
}

}  // namespace

TEST_CASE("a round that drafts ahead keeps the target's law, with every lossless rule for blocks") {
  const std::vector<std::string> drafters = {
      "{kind: chain, draft_length: 2}",
      "{kind: tree_static, branching: [2, 1]}",
      "{kind: tree_static, branching: [2, 1], siblings: without_replacement}",
      "{kind: tree_static, branching: [2, 1], siblings: top_k}",
      "{kind: tree_static, parents: [0, 0, 1], siblings: top_k}",
      "{kind: tree_static, branching: [2], siblings: hub}",
      "{kind: tree_dynamic, depth: 2, width: 2, nodes: 4}",
  };
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless) continue;
    const bool greedy = entry.demands.one_hot_target;
    const std::vector<double> target =
        greedy ? std::vector<double>{1.0, 0.0, 0.0} : std::vector<double>(kTarget.begin(), kTarget.end());
    int tried = 0;
    bool mutant_seen = greedy;  // if only one text is possible, only its length can be wrong
    for (const std::string& drafter : drafters) {
      const std::optional<spec::Cell> cell =
          allowed(three_tokens(fmt::format("{{drafter: {}, verifier: {}}}", drafter, entry.info.name),
                               greedy ? ", target_sampling: {temperature: 0}" : ""));
      if (!cell || !cell->judges_blocks()) continue;
      ++tried;
      INFO(entry.info.name << " on " << drafter);
      const ReadyCell ready(*cell);
      const auto size = static_cast<std::size_t>(cell->draft_length()) + 1;
      Law law(size, target);
      Law mutant(size, target);
      double guessed = 0.0;
      double all = 0.0;
      every_outcome(ready, [&](const decode::BlockRound::RoundResult& outcome, double probability) {
        law.add(outcome.emitted, probability);
        all += probability;
        guessed += outcome.guessed ? probability : 0.0;
        CHECK(outcome.emitted.size() == outcome.accepted + (outcome.guessed ? 0 : 1));
        // The mutant continues after any accepted token, and so drops the token that must follow a rejection.
        std::vector<Token> cut = outcome.emitted;
        if (outcome.accepted > 0) cut.resize(outcome.accepted);
        mutant.add(cut, probability);
      });
      CHECK(all == Approx(1.0).epsilon(1e-12));
      CHECK(law.difference() < 1e-12);
      CHECK((guessed > 0.0 || greedy));  // the likeliest draft token may not be the target's
      mutant_seen = mutant_seen || mutant.difference() > 1e-3;
    }
    INFO(entry.info.name);
    CHECK((tried > 0 || entry.make));  // rules that judge positions have their own loop, see accepted_test.cpp
    CHECK((mutant_seen || tried == 0));
  }
}

TEST_CASE("the guess is the path of the likeliest tokens, and only behind it no token of the target's comes") {
  const ReadyCell cell(*allowed(
      three_tokens("{drafter: {kind: tree_static, branching: [2, 1], siblings: top_k}, verifier: tree_point_mass}", "")));
  double guessed = 0.0;
  double leaf_elsewhere = 0.0;
  every_outcome(cell, [&](const decode::BlockRound::RoundResult& outcome, double probability) {
    const bool on_it = outcome.accepted == 2 && outcome.emitted[0] == kLikeliestDraft && outcome.emitted[1] == kLikeliestDraft;
    CHECK(outcome.guessed == on_it);
    guessed += on_it ? probability : 0.0;
    leaf_elsewhere += outcome.whole && !on_it ? probability : 0.0;
  });
  // Point masses in the draft's order: 2, then 1. The first is the target's token with .2, the second with .3.
  CHECK(guessed == Approx(0.2 * 0.2).epsilon(1e-12));
  CHECK(leaf_elsewhere == Approx(0.3 * 0.2).epsilon(1e-12));
}

TEST_CASE("one sequence's rounds of blocks drafted ahead take what their passes take, on two GPUs and on a shared one") {
  const LineCost cost({5.0, 0.31, 0.001}, {1.0, 0.17, 0.0003}, 0.5);
  for (const Method& method : methods()) {
    INFO(method.decode);
    const ReadyCell cell = cell_of(method.decode, method.context);
    constexpr std::uint64_t kTokens = 80;
    const AcceptedCounts counts = recorded(cell, 1, kTokens - 1);
    const auto pass_us = [&](double rows, double context) { return 1.0 + 0.17 * rows + 0.0003 * context; };
    const auto passes = [&](const std::vector<double>& rows, double context) {
      std::vector<double> us;
      for (std::size_t i = 0; i < rows.size(); ++i) us.push_back(pass_us(rows[i], context + static_cast<double>(i)));
      return us;
    };
    const bool runs = !rows_of(cell, counts, 0, 0).empty();
    const double prefill = 5.0 + 31.0;
    const double draft_prefill = runs ? 1.0 + 17.0 : 0.0;
    double two = std::max(prefill, draft_prefill);
    double shared = prefill + draft_prefill;
    std::uint64_t emitted = 1;
    int guessed = 0;
    int missed = 0;
    std::vector<double> block = passes(rows_of(cell, counts, 0, 0), 100.0);
    two += sum(block);
    shared += sum(block);
    for (std::size_t round = 0;; ++round) {
      const double context = 99.0 + static_cast<double>(emitted);
      const int nodes = counts.drafted.empty() ? cell.cell().block()->drafter->shape().nodes : counts.drafted[0].at(round);
      const double rows = cell.cell().block()->drafter->work(nodes).verified_rows;
      const double verify = 5.0 + 0.31 * rows + 0.001 * context + (rows > 1.0 || runs ? 0.5 : 0.0);
      const int depth = counts.ahead.empty() ? counts.draft_length : counts.ahead[0].at(round);
      const std::vector<double> ahead = passes(rows_ahead(cell, counts, 0, round), context + depth);
      emitted += static_cast<std::uint64_t>(counts.of_sequence[0].at(round)) + (counts.is_whole(0, round) ? 0 : 1);
      // Both run at half speed, until the shorter one is done.
      const double together = sum(ahead) >= verify ? 2.0 * verify : verify + sum(ahead);
      if (emitted >= kTokens) {
        two += verify;
        shared += together;
        break;
      }
      if (counts.is_whole(0, round)) {
        ++guessed;
        two += std::max(verify, sum(ahead));
        shared += verify + sum(ahead);
        continue;
      }
      ++missed;
      const std::vector<double> again = passes(rows_of(cell, counts, 0, round + 1), 99.0 + static_cast<double>(emitted));
      two += verify + sum(again);
      double under_way = 0.0;  // the pass that is running when the verification ends
      if (sum(ahead) > verify) {
        for (const double pass : ahead)
          if (under_way < verify) under_way += pass;
        under_way -= verify;
      }
      shared += together + under_way + sum(again);
    }
    CHECK((guessed > 0 && missed > 0));  // or the test has little power
    const Result on_two = placed(cell, "{kind: two_gpus}", cost, 1, kTokens).run;
    CHECK(1e6 * on_two.end.seconds() == Approx(two).epsilon(1e-7));
    const Result on_one = placed(cell, "{kind: shared}", cost, 1, kTokens).run;
    CHECK(1e6 * on_one.end.seconds() == Approx(shared).epsilon(1e-6));
    CHECK(on_two.rounds == on_one.rounds);
    CHECK(static_cast<int>(on_two.rounds) == guessed + missed + 1);
  }
}

TEST_CASE("a batch that drafts ahead waits for what its sequences draft, each by its own blocks") {
  // Only tokens cost: 1 us per verified token, .6 or 2 per drafted one, so that a batch takes the sum over its sequences.
  for (const double drafted_us : {0.6, 2.0}) {
    const LineCost cost({0.0, 1.0}, {0.0, drafted_us});
    for (const Method& method : methods()) {
      INFO(method.decode << ", " << drafted_us << " us a drafted token");
      const ReadyCell cell = cell_of(method.decode, method.context);
      constexpr std::size_t kBatch = 3;
      constexpr std::uint64_t kTokens = 50;
      const AcceptedCounts counts = recorded(cell, kBatch, kTokens - 1);
      const bool runs = !rows_of(cell, counts, 0, 0).empty();
      double us = kBatch * 100.0 * (runs ? std::max(1.0, drafted_us) : 1.0);
      std::array<std::uint64_t, kBatch> have{};
      have.fill(1);
      for (std::size_t i = 0; i < kBatch; ++i) us += drafted_us * sum(rows_of(cell, counts, i, 0));
      for (std::size_t round = 0;; ++round) {
        double verify = 0.0;
        double ahead = 0.0;
        double again = 0.0;
        bool anybody = false;
        bool running = false;
        for (std::size_t i = 0; i < kBatch; ++i) {
          if (have[i] >= kTokens) continue;
          const int nodes = counts.drafted.empty() ? cell.cell().block()->drafter->shape().nodes : counts.drafted[i].at(round);
          verify += cell.cell().block()->drafter->work(nodes).verified_rows;
          ahead += drafted_us * sum(rows_ahead(cell, counts, i, round));
          have[i] += static_cast<std::uint64_t>(counts.emitted(i, round));
          if (have[i] >= kTokens) continue;
          running = true;
          if (counts.is_whole(i, round))
            anybody = true;
          else
            again += drafted_us * sum(rows_of(cell, counts, i, round + 1));
        }
        us += anybody ? std::max(verify, ahead) : verify;
        if (!running) break;
        us += again;
      }
      const Result run = placed(cell, "{kind: two_gpus}", cost, kBatch, kTokens).run;
      CHECK(1e6 * run.end.seconds() == Approx(us).epsilon(1e-7));
    }
  }
}

TEST_CASE("what a policy lets the block ahead have is what it would have after full acceptance") {
  const ReadyCell cell =
      cell_of("{drafter: {kind: chain, draft_length: 6}, verifier: token, policy: {kind: additive, first: 2}}");
  const AcceptedCounts counts = recorded(cell, 4, 200);
  int missed = 0;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t round = 0; round + 1 < counts.of_sequence[i].size(); ++round) {
      CHECK(counts.drafted_ahead[i][round] == std::min(counts.drafted[i][round] + 2, 6));
      CHECK(counts.ahead[i][round] == counts.drafted[i][round]);
      if (counts.is_whole(i, round))
        CHECK(counts.drafted[i][round + 1] == counts.drafted_ahead[i][round]);
      else
        ++missed;
    }
  CHECK(missed > 20);
}

TEST_CASE(
    "every drafter can draft ahead or gives a reason why not, and none can that remembers the target's tokens of its blocks") {
  std::set<std::string> ahead;
  std::set<std::string> refused;
  for (const draft::DrafterEntry& entry : draft::drafters().entries()) {
    bool served = false;
    for (const std::string& sample : tests::samples_of(entry.info))
      for (const verify::VerifierEntry& verifier : verify::verifiers().entries()) {
        const auto with = [&](const std::string& placement) {
          return fmt::format(
              "{{experiment: any, pair: {{vocab: 8, target: {{family: zipf, exponent: 1}}, draft: {{from: target, transform: "
              "temperature, value: 1.3}}}}, context: {{process: copy, prompt_tokens: 12}}, cost: {{model: ratio, draft_seconds: "
              ".001, target_seconds: .01}}, placement: {{kind: {}}}, decode: {{drafter: {}, verifier: {}}}}}",
              placement, sample, verifier.info.name);
        };
        const std::optional<spec::Cell> serial = allowed(with("serial"));
        if (!serial && allowed(with("outcome_cache"))) {  // it drafts on a second GPU only, and not ahead of it
          served = true;
          refused.insert(entry.info.name);
          break;
        }
        if (!serial || !serial->judges_blocks()) continue;
        served = true;
        INFO(sample << ", " << verifier.info.name);
        const draft::BlockDrafter& drafter = *serial->block()->drafter;
        try {
          static_cast<void>(tests::experiment_of(with("shared")));
          ahead.insert(entry.info.name);
          CHECK(drafter.start() == nullptr);
        } catch (const BadInput& bad) {
          REQUIRE(bad.list().size() == 1);
          CHECK(bad.list()[0].message.find("or a placement that drafts after verification") != std::string::npos);
          refused.insert(entry.info.name);
        }
        break;
      }
    INFO(entry.info.name);
    CHECK(served);
  }
  // Known from the drafters' papers; later drafters are judged above.
  for (const char* const name :
       {"dflash", "hydra", "lookahead", "medusa", "ngram_cache", "ngram_map_k", "ngram_map_k4v", "ngram_mod", "parallel",
        "redrafter", "sam_decoding", "saguaro", "sglang_ngram", "token_recycling"})
    CHECK(refused.count(name) == 1);
  CHECK(ahead.count("tree_static") + ahead.count("tree_dynamic") + ahead.count("prompt_lookup") + ahead.count("pard") == 4);
}

}  // namespace specsim::ahead_test
