// Verdict of `specsim check` on rules that judge blocks: the built-in ones agree with theory, wrong ones are rejected by name.
#include "sim/experiments/judge/agreement.h"
#include "tests/support/block_mutants.h"
#include "tests/support/cells.h"
#include "tests/support/judged.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace specsim::methods_test {

namespace {

const double kLevel = judge::check_level(850);  // as in a family of the CI grid's size
constexpr std::uint64_t kRounds = 500'000;

// The drafter of blocks for a verifier that theory covers, by its name.
const std::map<std::string, std::string>& covered_verifiers() {
  static const std::map<std::string, std::string> decode = {
      {"block", "{drafter: {kind: chain, draft_length: 8}, verifier: block}"},
      {"hsd", "{drafter: {kind: chain, draft_length: 3}, verifier: hsd}"},
      {"multi_draft_recursive", "{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: multi_draft_recursive}"},
      {"without_replacement",
       "{drafter: {kind: tree_static, branching: [3, 2, 1], siblings: without_replacement}, verifier: without_replacement}"},
      {"kseq", "{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: kseq}"},
      {"tree_point_mass",
       "{drafter: {kind: tree_static, paths: [[0], [1], [3], [0, 0], [0, 2], [1, 0], [0, 0, 1]], siblings: top_k}, verifier: "
       "tree_point_mass}"},
      {"greedy_tree", "{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: greedy_tree}"},
      {"optimal_transport", "{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: optimal_transport}"},
      {"traversal", "{drafter: {kind: tree_static, branching: [2, 2]}, verifier: traversal}"},
      {"lenience", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: lenience, lenience: 0.6}}"},
      {"typical", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: typical, epsilon: 0.15}}"},
      {"typical_medusa", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: typical_medusa, epsilon: 0.15}}"},
      {"top_k_match", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: top_k_match, k: 3}}"},
      {"gumbel", "{drafter: {kind: chain, draft_length: 4}, verifier: gumbel}"},
      {"spec_hub", "{drafter: {kind: tree_static, branching: [2, 2], siblings: hub}, verifier: spec_hub}"},
      {"judge_decoding", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: judge_decoding, rate: 0.3}}"},
      {"speculative_cascade", "{drafter: {kind: chain, draft_length: 4}, verifier: speculative_cascade}"},
      {"relaxed_top_n", "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: relaxed_top_n, n: 3, delta: 0.2}}"},
      {"relaxed_threshold",
       "{drafter: {kind: chain, draft_length: 4}, verifier: {kind: relaxed_threshold, single: 0.2, acc: 0.8}}"},
      {"greedy_multi_path", "{drafter: {kind: tree_static, branching: [3, 1]}, verifier: greedy_multi_path}"}};
  return decode;
}

// The distributions of configs/ci/methods.yaml.
spec::Cell cell_of(const std::string& verifier) {
  const bool greedy = verifier == "greedy_tree";
  const int vocab = verifier == "traversal" ? 4 : verifier == "optimal_transport" ? 8 : 12;  // the first two are enumerated
  const bool alone =
      verifier == "hsd";  // the accepted tokens reveal the contexts after them: in a single context all rounds are equal
  return tests::experiment_of(
             fmt::format(
                 "{{experiment: methods, seed: 20260304, rounds: {}, pair: {{vocab: {}, target: {{family: dirichlet, "
                 "concentration: 0.6}}, {}draft: {{from: {}, transform: mix_noise, value: 0.5, noise: {{family: dirichlet, "
                 "concentration: 0.6}}}}}}, context: {}, decode: {}}}",
                 kRounds, vocab, greedy ? "target_sampling: {temperature: 0}, " : "",
                 greedy ? "{family: dirichlet, concentration: 0.6}" : "target",
                 alone ? "{process: fixed}" : "{process: iid, pool: 4}", covered_verifiers().at(verifier)))
      .cells.at(0);
}

tests::Judged judged(const spec::Cell& cell, const verify::BlockRule& rule, const draft::BlockDrafter* drafter = nullptr) {
  return tests::judged_with(cell, rule, kRounds, kLevel, drafter);
}

std::string shown(const judge::Agreement& a) {
  return fmt::format("z {:.2f}, p of accepted {:.2g}, of output {:.2g}", a.z_tokens_per_round, a.p_accepted_distribution,
                     a.p_output_distribution);
}

// Mistakes of lossy rules, with a wrong acceptance or a wrong emitted distribution.
std::vector<tests::BlockMutant> lossy_mutants() {
  using verify::Block;
  const auto steps = [](tests::StepFunction step) { return [step] { return std::make_unique<tests::StepRule>(step); }; };
  const auto blocks = [](tests::BlockKnobs knobs) {
    return [knobs] {
      return std::make_unique<tests::FunctionRule>([knobs](Block& block) { return tests::block_with(block, knobs); });
    };
  };
  const auto lenient = [&](double lenience, bool residual) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      const math::RatioTable& distributions = block.distributions(node);
      const Token x = block.token(children[0]);
      if (block.accept(children[0], {distributions.target(x), lenience * distributions.draft(x)})) return children[0];
      last = residual ? block.pick_residual(node, distributions.residual(1.0)) : block.pick_target(node);
      return 0;
    });
  };
  // Accepts tokens with at least that probability under the target, or, for the mutant, those below it.
  const auto bar = [&](double least, bool target_last) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      const math::RatioTable& distributions = block.distributions(node);
      if (distributions.target(block.token(children[0])) > least) return children[0];
      last = target_last ? block.pick_target(node) : block.pick_residual(node, distributions.residual(1.0));
      return 0;
    });
  };
  // Accepts as a judge that passes `rate` of the tokens that the token verifier rejects, and chooses the source of the final
  // token.
  const auto judge = [&](double rate, bool residual) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      const math::RatioTable& distributions = block.distributions(node);
      const Token x = block.token(children[0]);
      const double target = distributions.target(x);
      const double draft = distributions.draft(x);
      if (block.accept(children[0], {target + rate * std::max(draft - target, 0.0), draft})) return children[0];
      last = residual ? block.pick_residual(node, distributions.residual(1.0)) : block.pick_target(node);
      return 0;
    });
  };
  // Relaxed acceptance on a chain with its thresholds.
  const auto relaxed = [&](double single, double accumulated) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      const math::RatioTable& distributions = block.distributions(node);
      const double target = distributions.target(block.token(children[0]));
      if (block.accept(children[0], {target >= single ? 1.0 : target, target >= single ? 1.0 : accumulated})) return children[0];
      last = block.pick_residual(node, distributions.residual(1.0));
      return 0;
    });
  };
  // Follows one of the paths that separate at the root, `best` or the first, by the token verifier.
  const auto one_path = [&](bool best) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      const math::RatioTable& distributions = block.distributions(node);
      const auto ratio = [&](int child) {
        return distributions.target(block.token(child)) / distributions.draft(block.token(child));
      };
      int child = children[0];
      if (best)
        for (const int other : children)
          if (ratio(other) > ratio(child)) child = other;
      const Token x = block.token(child);
      if (block.accept(child, {distributions.target(x), distributions.draft(x)})) return child;
      last = block.pick_residual(node, distributions.residual(1.0));
      return 0;
    });
  };
  return {
      {"relaxed_threshold", "single is not asked", relaxed(1.0, 0.8)},
      {"relaxed_threshold", "acc is not asked", relaxed(0.2, 1.0)},
      {"relaxed_threshold", "single is 0.25", relaxed(0.25, 0.8)},
      {"greedy_multi_path", "the first path alone is judged", one_path(false)},
      {"greedy_multi_path", "the best path is judged as if it were the only one", one_path(true)},
      {"lenience", "lenience is 1", lenient(1.0, true)},
      {"gumbel", "draft and target accept as the token verifier does", judge(0.0, true)},
      {"gumbel", "draft and target sample apart",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         const math::RatioTable& distributions = block.distributions(node);
         if (block.accept(children[0], {distributions.target(block.token(children[0])), 1.0})) return children[0];
         last = block.pick_target(node);
         return 0;
       })},
      {"spec_hub", "the second sibling is not looked at", judge(0.0, true)},
      {"judge_decoding", "the judge is not asked", judge(0.0, true)},
      {"judge_decoding", "the judge passes a little more", judge(0.32, true)},
      {"judge_decoding", "the final token comes from the target", judge(0.3, false)},
      {"speculative_cascade", "the draft is never trusted", judge(0.0, true)},
      {"speculative_cascade", "the draft is trusted by chance", judge(0.3, true)},
      {"relaxed_top_n", "delta is not asked", steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         const math::RatioTable& distributions = block.distributions(node);
         const Token x = block.token(children[0]);
         int better = 0;
         for (Token y = 0; y < distributions.vocab(); ++y) better += distributions.target(y) > distributions.target(x) ? 1 : 0;
         if (better < 3) return children[0];
         last = block.pick(node, tests::OneToken(tests::likeliest_target(distributions)));
         return 0;
       })},
      {"lenience", "the final token comes from the target", lenient(0.6, false)},
      {"hsd", "the whole block stays by the ratio that block verification cuts", blocks({})},
      {"hsd", "p is not capped at 1", blocks({.capped = false, .joint_whole = true})},
      {"hsd", "accepts with p before the end", blocks({.through_z = false, .joint_whole = true})},
      {"hsd", "stops at the first index that does not accept", blocks({.longest = false, .joint_whole = true})},
      {"typical_medusa", "the bar is 0.3", bar(0.3, true)},
      {"typical_medusa", "the final token is the target's own", bar(0.15, true)},
      {"typical", "the bar is 0.3", bar(0.3, true)},
      {"typical", "the final token comes from the residual", bar(0.15, false)},
      {"top_k_match", "the argmax alone matches",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         if (block.token(children[0]) == tests::likeliest_target(block.distributions(node))) return children[0];
         last = block.pick_target(node);
         return 0;
       })},
      {"top_k_match", "a token that does not match is emitted all the same",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         const math::RatioTable& distributions = block.distributions(node);
         const Token x = block.token(children[0]);
         int better = 0;
         for (Token y = 0; y < distributions.vocab(); ++y)
           better +=
               distributions.target(y) > distributions.target(x) || (distributions.target(y) == distributions.target(x) && y < x)
                   ? 1
                   : 0;
         if (better < 3) return children[0];
         last = block.pick(node, tests::OneToken(x));
         return 0;
       })}};
}

// A token with a probability in proportion to its weight.
class Weighted final : public verify::Pickable {
 public:
  explicit Weighted(std::vector<double> weights) : weights_(std::move(weights)) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    double left = rng::to_unit(bits) * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    std::size_t x = 0;
    while (x + 1 < weights_.size() && !(left < weights_[x])) left -= weights_[x++];
    return static_cast<Token>(x);
  }

 private:
  std::vector<double> weights_;
};

// Lossy rules with the right acceptance and a wrong final token, so that only the output shows the mistake; and the same rules
// without a mistake, to show that this token is detected.
std::vector<tests::BlockMutant> final_token_mutants() {
  using verify::Block;
  using Weights = std::vector<double>;
  struct Rule {
    std::function<double(const math::RatioTable&, Token)> accepts;  // by token
    std::function<double(const math::RatioTable&, Token)> last;     // weights of the token after a rejection
  };
  const auto likeliest = [](const math::RatioTable& own) { return own.target(tests::likeliest_target(own)); };
  const auto residual = [](const math::RatioTable& own, Token x) { return std::max(own.target(x) - own.draft(x), 0.0); };
  const auto target = [](const math::RatioTable& own, Token x) { return own.target(x); };
  const auto ratio = [](double a, double b) { return std::min(a / b, 1.0); };
  const auto better = [](const math::RatioTable& own, Token x) {
    int count = 0;
    for (Token y = 0; y < own.vocab(); ++y)
      count += own.target(y) > own.target(x) || (own.target(y) == own.target(x) && y < x) ? 1 : 0;
    return count;
  };
  const auto cascade = [=](const math::RatioTable& own, Token x) {  // token_v3 with alpha .5
    double deferred = 0.0;
    for (Token y = 0; y < own.vocab(); ++y) deferred += own.target(y) >= 0.5 * likeliest(own) ? 0.0 : own.draft(y);
    return (own.target(x) >= 0.5 * likeliest(own) ? own.draft(x) : 0.0) + deferred * own.target(x);
  };
  const std::map<std::string, Rule> rules = {
      {"lenience", {[=](const auto& own, Token x) { return ratio(own.target(x), 0.6 * own.draft(x)); }, residual}},
      {"typical",
       {[=](const auto& own, Token x) {
          double entropy = 0.0;
          for (Token y = 0; y < own.vocab(); ++y) entropy -= own.target(y) > 0.0 ? own.target(y) * std::log(own.target(y)) : 0.0;
          return own.target(x) > std::min(0.15, 0.3 * std::exp(-entropy)) ? 1.0 : 0.0;
        },
        target}},
      {"top_k_match", {[=](const auto& own, Token x) { return better(own, x) < 3 ? 1.0 : 0.0; }, target}},
      {"judge_decoding",
       {[=](const auto& own, Token x) {
          return ratio(own.target(x) + 0.3 * std::max(own.draft(x) - own.target(x), 0.0), own.draft(x));
        },
        residual}},
      {"speculative_cascade",
       {[=](const auto& own, Token x) { return ratio(cascade(own, x), own.draft(x)); },
        [=](const auto& own, Token x) { return std::max(cascade(own, x) - own.draft(x), 0.0); }}},
      {"relaxed_top_n",
       {[=](const auto& own, Token x) { return better(own, x) < 3 && own.target(x) >= likeliest(own) - 0.2 ? 1.0 : 0.0; },
        [=](const auto& own, Token x) { return x == tests::likeliest_target(own) ? 1.0 : 0.0; }}},
      {"typical_medusa",
       {[=](const auto& own, Token x) {
          double entropy = 0.0;
          for (Token y = 0; y < own.vocab(); ++y) entropy -= own.target(y) * std::log(own.target(y) + 1e-5);
          return own.target(x) > std::min(0.15, 0.3 * std::exp(-entropy)) ? 1.0 : 0.0;
        },
        [=](const auto& own, Token x) { return x == tests::likeliest_target(own) ? 1.0 : 0.0; }}}};
  // `last`: instead of the rule's own.
  const auto mutant = [](const Rule& rule, std::function<double(const math::RatioTable&, Token)> last, bool wrong_bonus,
                         bool argmax_bonus) {
    return [=] {
      return std::make_unique<tests::FunctionRule>([=](Block& block) {
        int node = 0;
        while (block.children(node) > 0) {
          const math::RatioTable& own = block.distributions(node);
          const int child = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
          const Token x = block.token(child);
          if (!block.accept(child, {rule.accepts(own, x), 1.0})) {
            Weights weights(static_cast<std::size_t>(own.vocab()));
            for (Token y = 0; y < own.vocab(); ++y) weights[y] = last(own, y);
            return verify::AcceptedPath{node, block.pick(node, Weighted(std::move(weights)))};
          }
          node = child;
        }
        if (argmax_bonus == wrong_bonus) return verify::AcceptedPath{node, block.pick_target(node)};
        return verify::AcceptedPath{node, block.pick(node, tests::OneToken(tests::likeliest_target(block.distributions(node))))};
      });
    };
  };
  std::vector<tests::BlockMutant> mutants;
  for (const auto& [verifier, rule] : rules) {
    const bool argmax = verifier == "relaxed_top_n" || verifier == "typical_medusa";
    mutants.push_back({verifier, "the bonus token alone is wrong", mutant(rule, rule.last, true, argmax)});
    mutants.push_back({verifier, "the token after a rejection is the draft's alone",
                       mutant(
                           rule, [](const auto& own, Token x) { return own.draft(x); }, false, argmax)});
    mutants.push_back({verifier, "none: as it should be", mutant(rule, rule.last, false, argmax)});
  }
  return mutants;
}

std::vector<tests::BlockMutant> every_mutant() {
  std::vector<tests::BlockMutant> mutants = lossy_mutants();
  mutants.insert(mutants.end(), tests::block_mutants().begin(), tests::block_mutants().end());
  return mutants;
}

// Lookahead with a window that sees a wrong target distribution.
class WrongWindow final : public draft::BlockDrafter {
 public:
  enum class Mistake { repeats_a_token, blind_to_guesses, forgets };
  WrongWindow(std::shared_ptr<const draft::BlockDrafter> own, Mistake mistake) : own_(std::move(own)), mistake_(mistake) {}
  [[nodiscard]] const Shape& shape() const override { return own_->shape(); }
  [[nodiscard]] std::unique_ptr<Memory> start() const override { return own_->start(); }
  void choose(draft::DrafterInput& input, Memory* memory, draft::ChosenBlock& block) const override {
    Wrong wrong(input, mistake_);
    const std::unique_ptr<Memory> none = own_->start();
    own_->choose(wrong, mistake_ == Mistake::forgets ? none.get() : memory, block);
  }
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return own_->work(nodes); }

 private:
  class Wrong final : public draft::DrafterInput {
   public:
    Wrong(draft::DrafterInput& own, Mistake mistake) : own_(&own), mistake_(mistake) {}
    std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override {
      return own_->likeliest(block, node);
    }
    [[nodiscard]] std::size_t vocab() const override { return own_->vocab(); }
    [[nodiscard]] std::span<const Token> text() const override { return own_->text(); }
    Token random_token(std::uint32_t index) override { return own_->random_token(index); }
    Prefix end_of_text() override { return own_->end_of_text(); }
    Prefix after(Prefix prefix, Token token) override {
      last_ = token;
      return mistake_ == Mistake::blind_to_guesses ? prefix : own_->after(prefix, token);
    }
    std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override {
      return mistake_ == Mistake::repeats_a_token ? std::vector<Token>(prefixes.size(), last_) : own_->target_argmax(prefixes);
    }

   private:
    draft::DrafterInput* own_;
    Mistake mistake_;
    Token last_ = 0;
  };
  std::shared_ptr<const draft::BlockDrafter> own_;
  Mistake mistake_;
};

}  // namespace

TEST_CASE("check holds Lookahead to its theory and rejects windows that are wrong, by name") {
  const spec::Cell cell =
      tests::experiment_of(
          fmt::format("{{experiment: methods, seed: 20261121, rounds: {}, pair: {{vocab: 3, target: {{family: "
                      "dirichlet, concentration: 0.4}}, draft: {{family: uniform}}}}, context: {{process: markov, "
                      "order: 1, sequence_rounds: 5}}, decode: {{drafter: {{kind: lookahead, window: 2, ngram: 3, "
                      "guesses: 1, pool_from_text: false}}, verifier: tree_point_mass}}}}",
                      kRounds))
          .cells.at(0);
  const tests::Judged own = judged(cell, *cell.block()->verifier);
  INFO(shown(own.agreement));
  CHECK(own.prediction.known);
  CHECK(own.agreement.p_tokens_per_round > 1e-3);
  CHECK(own.verdict == judge::Verdict::agree);
  using Mistake = WrongWindow::Mistake;
  for (const auto& [name, mistake] : {std::pair{"the window repeats a token", Mistake::repeats_a_token},
                                      {"guesses do not see the guesses before them", Mistake::blind_to_guesses},
                                      {"the window restarts in each round", Mistake::forgets}}) {
    const WrongWindow drafter(cell.block()->drafter.part, mistake);
    const tests::Judged wrong = judged(cell, *cell.block()->verifier, &drafter);
    INFO(name << ": " << shown(wrong.agreement));
    CHECK(wrong.verdict == judge::Verdict::disagree);
  }
}

TEST_CASE("check holds every rule for blocks that theory covers to it") {
  for (const auto& [verifier, decode] : covered_verifiers()) {
    DYNAMIC_SECTION(verifier) {
      const spec::Cell cell = cell_of(verifier);
      const tests::Judged own = judged(cell, *cell.block()->verifier);
      INFO(shown(own.agreement));
      CHECK(own.prediction.known);
      CHECK(own.agreement.p_tokens_per_round > 1e-3);
      CHECK(own.agreement.p_accepted_distribution > 1e-3);
      CHECK(own.agreement.p_output_distribution > 1e-3);
      CHECK(own.verdict == judge::Verdict::agree);
    }
  }
}

TEST_CASE("every rule for blocks that a theory names is compared with it here, with a mutant") {
  const std::vector<tests::BlockMutant> mutants = every_mutant();
  for (const judge::TheoryEntry& theory : judge::theories().entries())
    for (const std::string& name : theory.verifiers) {
      const verify::VerifierEntry* const verifier = verify::verifiers().find(name);
      REQUIRE(verifier != nullptr);
      if (!verifier->make_block || verifier->make)
        continue;  // rules that judge positions are tested by tests/stat/mutants_test.cpp
      INFO(name);
      CHECK(covered_verifiers().contains(name));
      CHECK(std::any_of(mutants.begin(), mutants.end(), [&](const tests::BlockMutant& one) { return one.verifier == name; }));
    }
}

TEST_CASE("check rejects every mutant of the rules for blocks that theory covers, by name") {
  for (const tests::BlockMutant& mutant : every_mutant()) {
    DYNAMIC_SECTION(mutant.verifier << ": " << mutant.mistake) {
      const tests::Judged wrong = judged(cell_of(mutant.verifier), *mutant.make());
      INFO(shown(wrong.agreement));
      CHECK(wrong.verdict == judge::Verdict::disagree);
    }
  }
}

TEST_CASE("check rejects lossy rules of which only the final token is wrong, by their output") {
  for (const tests::BlockMutant& mutant : final_token_mutants()) {
    DYNAMIC_SECTION(mutant.verifier << ": " << mutant.mistake) {
      const tests::Judged wrong = judged(cell_of(mutant.verifier), *mutant.make());
      INFO(shown(wrong.agreement));
      CHECK(wrong.agreement.p_tokens_per_round > 1e-3);
      CHECK(wrong.agreement.p_accepted_distribution > 1e-3);
      if (mutant.mistake.starts_with("none"))
        CHECK(wrong.agreement.p_output_distribution > 1e-3);
      else
        CHECK(wrong.agreement.p_output_distribution < kLevel);
    }
  }
}

}  // namespace specsim::methods_test
