// Every verifier of blocks with every kind of tree that it takes: the joint distribution of the emitted tokens, by running all
// outcomes of the built-in round.
#include "tests/exact/exact_cells.h"
#include "tests/support/block_mutants.h"

#include "sim/rounds/theory/block.h"

#include <map>

namespace specsim::blocks_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;

namespace {

constexpr double kExact = 1e-12;

std::string tree(const std::string& shape, tokens::Siblings siblings) {
  const char* how = siblings == tokens::Siblings::independent           ? "sampled"
                    : siblings == tokens::Siblings::without_replacement ? "without_replacement"
                    : siblings == tokens::Siblings::hub                 ? "hub"
                                                                        : "top_k";
  return fmt::format("{{kind: tree_static, {}, siblings: {}}}", shape, how);
}

struct Distributions {
  std::string target;
  std::string draft;
};

const std::vector<Distributions>& distributions() {
  static const std::vector<Distributions> list = {
      {"{family: dirichlet, concentration: 0.7}", "{from: target, transform: logit_noise, value: 1.5}"},
      {"{family: geometric, ratio: 0.4}", "{from: target, transform: permute, value: 1}"},
      {"{from: {family: dirichlet, concentration: 1}, transform: top_k, value: 2}", "{family: geometric, ratio: 0.6}"},
      {"{family: geometric, ratio: 0.4}", "{from: target, transform: reduced_vocab, value: 1}"},
      {"{family: dirichlet, concentration: 1}", "{from: target, transform: mix_noise, value: 1e-9}"},
      {"{family: one_hot}", "{family: dirichlet, concentration: 1}"},
  };
  return list;
}

std::string pair_of(const Distributions& own, int vocab, bool one_hot) {
  return fmt::format("{{vocab: {}, target: {}, draft: {}{}}}", vocab, own.target, own.draft,
                     one_hot ? ", target_sampling: {temperature: 0}" : "");
}

struct Shape {
  int vocab;
  std::string text;
  int widest;          // children of one node
  bool paths = false;  // all paths have one length and separate at the root
};

// Up to 12 nodes at vocabulary 2, 4 tokens with fewer.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {
      {2, "branching: [2, 2, 1]", 2},  {2, "branching: [3, 1, 1, 1]", 3, true}, {2, "parents: [0, 0, 1, 1, 2, 3]", 2},
      {3, "branching: [3]", 3, true},  {3, "parents: [0, 0, 1, 1, 4]", 2},      {4, "branching: [2, 1]", 2, true},
      {4, "parents: [0, 0, 0, 2]", 3},
  };
  return list;
}

}  // namespace

TEST_CASE("every lossless verifier of blocks is lossless on every tree that it takes") {
  std::size_t audits = 0;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless) continue;
    for (const tokens::Siblings siblings : entry.demands.trees) {
      for (const Shape& shape : shapes()) {
        if (siblings != tokens::Siblings::independent && shape.text.find("[3, 1") != std::string::npos)
          continue;  // two tokens only
        if (shape.widest > entry.demands.children || (entry.demands.paths && !shape.paths)) continue;
        for (const Distributions& own : distributions()) {
          for (const char* process : {"{process: fixed}", "{process: markov}"}) {
            const spec::Cell cell = cell_of(pair_of(own, shape.vocab, entry.demands.one_hot_target), process,
                                            tree(shape.text, siblings), entry.info.name);
            const AuditReport report = audit::audit_cell(cell);
            ++audits;
            INFO(entry.info.name << ", " << tree(shape.text, siblings) << ", " << process << ", " << own.target << ", "
                                 << own.draft);
            CHECK(report.largest_difference <= kExact);
            CHECK(report.impossible == 0.0);
          }
        }
      }
    }
  }
  CHECK(audits > 500);
}

TEST_CASE("known pairs: block verification accepts 11/9 and 71/64, the token verifier 10/9 and 65/64") {
  const AuditReport first = audit::audit_cell(first_pair(2, "block"));
  CHECK(first.starts[0].expected_accepted == Approx(11.0 / 9.0).epsilon(0).margin(kExact));
  CHECK(first.lossless());
  const AuditReport second = audit::audit_cell(second_pair(2, "block"));
  CHECK(second.starts[0].expected_accepted == Approx(71.0 / 64.0).epsilon(0).margin(kExact));
  CHECK(second.lossless());
  CHECK(audit::audit_cell(first_pair(2, "multi_draft_recursive")).starts[0].expected_accepted ==
        Approx(10.0 / 9.0).epsilon(0).margin(kExact));
  CHECK(audit::audit_cell(second_pair(2, "traversal")).starts[0].expected_accepted ==
        Approx(71.0 / 64.0).epsilon(0).margin(kExact));
}

TEST_CASE("hsd: accepted tokens and the bias of the text, calculated by hand and compared with its theory") {
  // Ratios 1.8 and .2. The whole block stays with 1, .36, .36 and .04, a quarter each: .44 (block verification, which cuts the
  // 1.8, has .2 for the second: .4). After the first token .16 return and stay, because p_1 = 1; after the second, where (.2
  // target - draft)+ is zero, .4 return to the root.
  const AuditReport report = audit::audit_cell(
      cell_of(explicit_pair({0.9, 0.1}, {0.5, 0.5}), "{process: fixed}", "{kind: chain, draft_length: 2}", "hsd"));
  CHECK(largest_difference(report.starts[0].accepted_distribution, {0.4, 0.16, 0.44}) <= kExact);
  CHECK(largest_difference(report.starts[0].first_token, {0.9, 0.1}) <= kExact);
  Distribution two(4);  // the text's first two tokens
  for (std::size_t i = 0; i < 8; ++i) two[i / 2] += report.starts[0].joint[i];
  CHECK(largest_difference(two, {0.25 + 0.16 + 0.36, 0.09 + 0.04, 0.09, 0.01}) <= kExact);
  CHECK_FALSE(report.lossless());

  InputNumbers numbers(26);
  double bias = 0.0;
  for (int i = 0; i < 60; ++i) {
    const int states = 1 + static_cast<int>(numbers.below(3));
    const std::size_t vocab = 2 + numbers.below(2);
    const int draft_length = static_cast<int>(numbers.below(4));
    std::vector<Distribution> targets;
    std::vector<Distribution> drafts;
    std::vector<std::vector<std::uint32_t>> next;
    for (int s = 0; s < states; ++s) {
      targets.push_back(numbers.distribution(vocab, 0.1));
      drafts.push_back(numbers.distribution(vocab, 0.1));
      auto& moves = next.emplace_back();
      for (std::size_t x = 0; x < vocab; ++x) moves.push_back(static_cast<std::uint32_t>(numbers.below(states)));
    }
    const spec::Cell cell = listed_cell(targets, drafts, next, draft_length, "hsd");
    const AuditReport own = audit::audit_cell(cell);
    const auto kernel = theory::joint_ratio_kernel(theory::block_context(automaton_of(cell)), draft_length);
    const auto capped = theory::block_kernel(theory::block_context(automaton_of(cell)), draft_length);
    for (const audit::AuditStart& start : own.starts) {
      Distribution accepted;
      double more = 0.0;
      for (std::size_t j = 0; j < kernel.size(); ++j) {
        accepted.push_back(0.0);
        for (int s = 0; s < states; ++s) {
          const std::size_t at = start.context * static_cast<std::size_t>(states) + static_cast<std::size_t>(s);
          accepted.back() += kernel[j][at];
          more += static_cast<double>(j) * (kernel[j][at] - capped[j][at]);
        }
      }
      INFO(i);
      CHECK(largest_difference(start.accepted_distribution, accepted) <= kExact);
      CHECK(more >= -kExact);  // never fewer tokens than block verification
      CHECK(start.first_token_variation <= kExact);
      if (draft_length < 2) CHECK(start.joint_variation <= kExact);  // one ratio: cut once is cut at once
      bias = std::max(bias, start.joint_variation);
    }
  }
  CHECK(bias > 1e-2);
}

TEST_CASE("two siblings: what is accepted, worked by hand") {
  const auto accepted = [](const Distribution& target, const Distribution& draft, const std::string& verifier,
                           tokens::Siblings siblings, int k = 2) {
    const AuditReport report = audit::audit_cell(
        cell_of(explicit_pair(target, draft), "{process: fixed}", tree(fmt::format("branching: [{}]", k), siblings), verifier));
    CHECK(report.lossless());
    return report.starts[0].expected_accepted;
  };
  const auto without = tokens::Siblings::without_replacement;
  const auto with = tokens::Siblings::independent;
  // target (2,1,1)/4, draft (1,2,1)/4: 7/8, where 1 - prod(1 - alpha_k) would give 13/16.
  CHECK(accepted({0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}, "without_replacement", without) ==
        Approx(7.0 / 8.0).epsilon(0).margin(kExact));
  // Drafts without replacement can beat the best rule for drafts with replacement: 1, compared with .69.
  CHECK(accepted({0.5, 0.5}, {0.9, 0.1}, "without_replacement", without) == Approx(1.0).epsilon(0).margin(kExact));
  CHECK(accepted({0.5, 0.5}, {0.9, 0.1}, "optimal_transport", with) == Approx(0.69).epsilon(0).margin(kExact));
  // Recursive rejection in that case: .6, then residual (0, 1) and draft .1.
  CHECK(accepted({0.5, 0.5}, {0.9, 0.1}, "multi_draft_recursive", with) == Approx(0.6 + 0.4 * 0.1).epsilon(0).margin(kExact));
  // Chosen children: the target's mass on them.
  CHECK(accepted({0.5, 0.3, 0.2}, {0.1, 0.3, 0.6}, "tree_point_mass", tokens::Siblings::point_mass) ==
        Approx(0.5).epsilon(0).margin(kExact));
  // The best rule's value is a minimum over sets: 1 + min(target(H) - draft(H)^k).
  InputNumbers numbers(31);
  for (int i = 0; i < 40; ++i) {
    const std::size_t vocab = 2 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.2);
    const Distribution draft = numbers.distribution(vocab, 0.2);
    const int k = 2 + static_cast<int>(numbers.below(2));
    double least = 0.0;
    for (std::size_t set = 0; set < std::size_t{1} << vocab; ++set) {
      double t = 0.0;
      double d = 0.0;
      for (std::size_t x = 0; x < vocab; ++x)
        if ((set >> x & 1) != 0) {
          t += target[x];
          d += draft[x];
        }
      least = std::min(least, t - std::pow(d, k));
    }
    const double best = accepted(target, draft, "optimal_transport", with, k);
    CHECK(best == Approx(1.0 + least).epsilon(0).margin(kExact));
    CHECK(accepted(target, draft, "kseq", with, k) <= best + kExact);
    CHECK(accepted(target, draft, "multi_draft_recursive", with, k) <= best + kExact);
  }
}

TEST_CASE("every mutant of a verifier of blocks loses the target's distribution, which the verifier keeps on the same cell") {
  std::map<std::string, int> killed;
  for (const BlockMutant& mutant : block_mutants()) {
    const verify::VerifierEntry* entry = verify::verifiers().find(mutant.verifier);
    REQUIRE(entry != nullptr);
    const bool chain_only = entry->demands.trees.empty();
    double worst = 0.0;
    for (const Distributions& own : {Distributions{"{family: explicit, probabilities: [0.25, 0.375, 0.375]}",
                                                   "{family: explicit, probabilities: [0.125, 0.125, 0.75]}"},
                                     Distributions{"{family: explicit, probabilities: [0.5, 0.3, 0.2]}",
                                                   "{family: explicit, probabilities: [0.2, 0.35, 0.45]}"},
                                     Distributions{"{family: explicit, probabilities: [0.34, 0.26, 0.4]}",
                                                   "{family: explicit, probabilities: [0.25, 0.25, 0.5]}"}}) {
      const spec::Cell cell =
          cell_of(pair_of(own, 3, entry->demands.one_hot_target), "{process: fixed}",
                  chain_only ? chain(2) : tree("branching: [2, 1]", entry->demands.trees.front()), mutant.verifier);
      REQUIRE(audit::audit_cell(cell).lossless());
      worst = std::max(worst, audit::audit_cell(cell, *mutant.make()).largest_difference);
    }
    INFO(mutant.verifier << ": " << mutant.mistake << ", moved by " << worst);
    CHECK(worst > 1e-3);
    ++killed[mutant.verifier];
  }
  for (const auto& [verifier, mistakes] : killed) {
    INFO(verifier);
    CHECK(mistakes >= 3);
  }
}

TEST_CASE("every lossless verifier of blocks becomes biased if a rejected first child remains") {
  // A mistake that any verifier can have, to show that the audit covers a new one.
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless || !entry.make_block) continue;
    const Distributions own = {"{family: explicit, probabilities: [0.5, 0.3, 0.2]}",
                               "{family: explicit, probabilities: [0.2, 0.35, 0.45]}"};
    const spec::Cell cell =
        cell_of(pair_of(own, 3, entry.demands.one_hot_target), "{process: fixed}",
                entry.demands.trees.empty() ? chain(2) : tree("branching: [2, 1]", entry.demands.trees.front()), entry.info.name);
    if (!cell.judges_blocks()) continue;  // judges this block position by position
    INFO(entry.info.name);
    CHECK(audit::audit_cell(cell).lossless());
    CHECK(audit::audit_cell(cell, Credulous(*cell.block()->verifier)).largest_difference > 1e-3);
  }
}

TEST_CASE("mutants start from an unbroken rule") {
  const auto same = [](const spec::Cell& cell, const verify::BlockRule& rule) {
    CHECK(largest_difference(audit::audit_cell(cell, rule).starts[0].accepted_distribution,
                             audit::audit_cell(cell).starts[0].accepted_distribution) <= kExact);
    CHECK(audit::audit_cell(cell, rule).lossless());
  };
  same(second_pair(2, "block"), FunctionRule([](verify::Block& block) { return block_with(block, {}); }));
  const spec::Cell hsd = second_pair(3, "hsd");
  const FunctionRule joint([](verify::Block& block) { return block_with(block, {.joint_whole = true}); });
  CHECK(largest_difference(audit::audit_cell(hsd, joint).starts[0].joint, audit::audit_cell(hsd).starts[0].joint) <= kExact);
  const StepRule recursive([](verify::Block& block, int node, const std::vector<int>& children, Token& last) {
    return recursive_with(block, node, children, last, {});
  });
  const std::string pair = explicit_pair(kSecondTarget, kSecondDraft);
  same(cell_of(pair, "{process: fixed}", tree("branching: [2, 2]", tokens::Siblings::independent), "multi_draft_recursive"),
       recursive);
  same(cell_of(pair, "{process: fixed}", tree("branching: [2, 2]", tokens::Siblings::without_replacement), "without_replacement"),
       recursive);
  same(cell_of(pair, "{process: fixed}", tree("branching: [2, 1]", tokens::Siblings::independent), "traversal"),
       FunctionRule([](verify::Block& block) { return traversal_without(block, true, true); }));
}

TEST_CASE("lossy verifiers of blocks are biased by exactly what their distribution gives") {
  InputNumbers numbers(77);
  const auto first_token = [](const Distribution& target, const Distribution& draft, const std::string& verifier) {
    return audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(1), verifier)).starts[0].first_token;
  };
  for (int i = 0; i < 40; ++i) {
    const std::size_t vocab = 3 + numbers.below(2);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    // Tokens accepted with odds a: draft a + (1 - sum draft a) distribution of the final token.
    const auto emitted = [&](const Distribution& odds, Distribution final_distribution) {
      double accepted = 0.0;
      double mass = 0.0;
      for (std::size_t x = 0; x < vocab; ++x) accepted += draft[x] * odds[x];
      for (const double p : final_distribution) mass += p;
      if (!(mass > 0.0)) {
        final_distribution = target;
        mass = 1.0;
      }
      for (std::size_t x = 0; x < vocab; ++x)
        final_distribution[x] = draft[x] * odds[x] + (1.0 - accepted) * final_distribution[x] / mass;
      return final_distribution;
    };
    double entropy = 0.0;
    for (const double p : target)
      if (p > 0.0) entropy -= p * std::log(p);
    Distribution typical(vocab);
    Distribution typical_without_entropy(vocab);
    Distribution lenient(vocab);
    Distribution top(vocab);
    Distribution residual(vocab);
    Distribution lenient_residual(vocab);
    for (std::size_t x = 0; x < vocab; ++x) {
      typical[x] = target[x] > std::min(0.4, 0.6 * std::exp(-entropy)) ? 1.0 : 0.0;
      typical_without_entropy[x] = target[x] > 0.4 ? 1.0 : 0.0;
      lenient[x] = draft[x] > 0.0 ? std::min(1.0, target[x] / (0.6 * draft[x])) : 0.0;
      std::size_t better = 0;
      for (std::size_t y = 0; y < vocab; ++y) better += target[y] > target[x] || (target[y] == target[x] && y < x) ? 1 : 0;
      top[x] = better < 2 ? 1.0 : 0.0;
      residual[x] = std::max(target[x] - draft[x], 0.0);
      lenient_residual[x] = std::max(target[x] - 0.6 * draft[x], 0.0);
    }
    const Distribution by_typical = first_token(target, draft, "{kind: typical, epsilon: 0.4, delta: 0.6}");
    const Distribution by_lenience = first_token(target, draft, "{kind: lenience, lenience: 0.6}");
    const Distribution by_top = first_token(target, draft, "{kind: top_k_match, k: 2}");
    INFO(explicit_pair(target, draft));
    CHECK(largest_difference(by_typical, emitted(typical, target)) <= kExact);
    CHECK(largest_difference(by_lenience, emitted(lenient, residual)) <= kExact);
    CHECK(largest_difference(by_top, emitted(top, target)) <= kExact);
    CHECK(by_lenience[0] <= target[0] / 0.6 + kExact);
    static double seen[6] = {};  // each mistake below is detected
    const Distribution one(vocab, 1.0);
    const auto shows = [&](int mistake, const Distribution& distribution, const Distribution& wrong) {
      seen[mistake] = std::max(seen[mistake], largest_difference(distribution, wrong));
    };
    shows(0, by_typical, emitted(typical_without_entropy, target));  // entropy left out
    shows(1, by_typical, emitted(typical, residual));                // final token from the residual
    shows(2, by_lenience, emitted(lenient, lenient_residual));       // residual from the lenient draft
    shows(3, by_lenience, emitted(lenient, target));                 // final token from the target
    shows(4, by_top, emitted(one, target));                          // any token matches
    shows(5, by_top, emitted(top, residual));                        // final token from the residual
    if (i == 39)
      for (const double size : seen) CHECK(size > 1e-2);
  }
}

TEST_CASE("trees without replacement are exact if the draft is nearly certain") {
  // The draft's remaining mass is below the resolution of doubles near 1; the mutant computes it as a difference from 1.
  for (const Distribution& draft : {Distribution{1.0, 1e-30, 1e-20}, Distribution{1.0 - 1e-9, 1e-9 - 1e-15, 1e-15}})
    for (const char* verifier : {"without_replacement", "traversal"})
      for (const char* branching : {"[2]", "[3, 1]"}) {
        const spec::Cell cell =
            cell_of(explicit_pair({0.3, 0.6, 0.1}, draft), "{process: fixed}",
                    fmt::format("{{kind: tree_static, branching: {}, siblings: without_replacement}}", branching), verifier);
        INFO(verifier << ", " << branching << ", " << draft[1]);
        CHECK(audit::audit_cell(cell).lossless());
      }
}

TEST_CASE("n-grams of a window that is not full yet have every child in its place") {
  // Starts are first rounds, which accept nothing from a window alone. The mutant accepts every child, and shows where children
  // exist.
  const spec::Cell cell = cell_of(pair_of(distributions()[0], 3, false), "{process: markov}",
                                  "{kind: lookahead, window: 6, ngram: 3, guesses: 3, pool_from_text: false}", "tree_point_mass");
  CHECK(audit::audit_cell(cell).lossless());
  const StepRule every_child([](verify::Block&, int, const std::vector<int>& children, Token&) { return children[0]; });
  CHECK(!audit::audit_cell(cell, every_child).lossless());
}

TEST_CASE("a ranked tree has no nodes that the draft does not propose: a dynamic tree of all that it proposes is the witness") {
  // The target's likeliest tokens are the lowest, so a tree that is filled up with tokens of probability 0 would hardly hold
  // them.
  for (const char* cut : {"transform: top_k, value: 1", "transform: top_k, value: 2"}) {
    for (const char* process : {"{process: fixed}", "{process: markov}"}) {
      const std::string pair = fmt::format(
          "{{vocab: 5, target: {{family: zipf, exponent: 1}}, "
          "draft: {{from: {{from: target, transform: permute, value: 0.5}}, {}}}}}",
          cut);
      const auto audited = [&](const std::string& drafter) {
        const AuditReport report = audit::audit_cell(cell_of(pair, process, drafter, "tree_point_mass"));
        CHECK(report.lossless());
        return report;
      };
      INFO(cut << ", " << process);
      const AuditReport dynamic = audited("{kind: tree_dynamic, depth: 3, width: 5, nodes: 64}");
      const AuditReport ranked = audited("{kind: tree_static, branching: [5, 5, 5], siblings: top_k}");
      for (std::size_t start = 0; start < dynamic.starts.size(); ++start)
        CHECK(largest_difference(ranked.starts[start].accepted_distribution, dynamic.starts[start].accepted_distribution) <=
              kExact);
      // In one context all heads see the same distribution.
      if (std::string(process) == "{process: fixed}")
        CHECK(largest_difference(audited("{kind: medusa, branching: [5, 5, 5]}").starts[0].accepted_distribution,
                                 dynamic.starts[0].accepted_distribution) <= kExact);
    }
  }
}

TEST_CASE("a dynamic tree ranks by the draft model's own distribution, whatever draft_sampling is") {
  const auto audited = [](const std::string& sampling) {
    const std::string pair =
        "{vocab: 5, target: {family: zipf, exponent: 1}, draft: {from: target, transform: permute, value: 0.5}" + sampling + "}";
    const AuditReport report = audit::audit_cell(
        cell_of(pair, "{process: markov}", "{kind: tree_dynamic, depth: 3, width: 3, nodes: 7}", "tree_point_mass"));
    CHECK(report.lossless());
    return report.starts[0].accepted_distribution;
  };
  const std::vector<double> own = audited("");
  for (const char* sampling :
       {", draft_sampling: {temperature: 0}", ", draft_sampling: {temperature: 0.6}", ", draft_sampling: {top_k: 1}"}) {
    INFO(sampling);
    CHECK(largest_difference(audited(sampling), own) == 0.0);
  }
}

TEST_CASE("an overlap drawn towards the target: EAGLE's distribution by depth, an exit's distribution") {
  const Distribution target = {0.5, 0.3, 0.2};
  const Distribution draft = {0.2, 0.3, 0.5};
  const auto accepted = [&](const std::string& drafter) {
    return audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", drafter, "multi_draft_recursive"))
        .starts[0]
        .accepted_distribution;
  };
  // Overlap .7; with share s of the target .7 + .3 s: s = .5 and .25.
  const Distribution eagle = accepted("{kind: eagle, branching: [1, 1], sharpening: 0.5, decay: 0.5}");
  CHECK(eagle[0] == Approx(0.15).epsilon(0).margin(kExact));
  CHECK(eagle[2] == Approx(0.85 * 0.775).epsilon(0).margin(kExact));
  Distribution flat(3);
  double sum = 0.0;
  for (std::size_t x = 0; x < 3; ++x) sum += flat[x] = std::sqrt(target[x]);
  double overlap = 0.0;
  for (std::size_t x = 0; x < 3; ++x) overlap += std::min(target[x], flat[x] / sum);
  CHECK(accepted("{kind: early_exit, draft_length: 1, exit_share: 0.5}")[1] == Approx(overlap).epsilon(0).margin(kExact));
  // Mutant: the target's own distribution in place of the pair's, with which every draft is accepted at temperature 0.
  CHECK(accepted("{kind: early_exit, draft_length: 1, exit_share: 0.5, distribution: pair_draft}")[1] ==
        Approx(0.7).epsilon(0).margin(kExact));
}

TEST_CASE("chains by another name are drafter chain: MTP's and EAGLE-3's likeliest tokens") {
  const std::string pair = explicit_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5});
  for (const std::string verifier : {"token", "tree_point_mass", "{kind: relaxed_top_n, n: 2, delta: 0.5}"}) {
    const auto accepted = [&](const std::string& drafter) {
      return audit::audit_cell(cell_of(pair, "{process: fixed}", drafter, verifier)).starts[0].accepted_distribution;
    };
    const Distribution chain = accepted("{kind: chain, draft_length: 2, selection: argmax}");
    CHECK(accepted("{kind: mtp, draft_length: 2}") == chain);
    CHECK(accepted("{kind: eagle3, width: 1, depth: 2}") == chain);
  }
}

}  // namespace specsim::blocks_test
