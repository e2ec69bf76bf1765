// Greedy multi-path block verification and SpecHub: losslessness, agreement with their theory, and mistakes that an audit
// detects.
#include "sim/rounds/theory/multi_path.h"
#include "sim/rounds/theory/multi_draft.h"
#include "tests/exact/exact_cells.h"
#include "tests/support/block_mutants.h"

#include <numeric>

namespace specsim::multi_path_test {

using namespace specsim::tests;

namespace {

constexpr double kExact = 1e-12;

spec::Cell paths_cell(const std::string& pair, const std::string& process, int paths, int length) {
  std::string branching = fmt::format("{}", paths);
  for (int i = 1; i < length; ++i) branching += ", 1";
  return cell_of(pair, process, fmt::format("{{kind: tree_static, branching: [{}]}}", branching), "greedy_multi_path");
}

spec::Cell hub_cell(const std::string& pair, const std::string& branching, const std::string& process = "{process: fixed}") {
  return cell_of(pair, process, fmt::format("{{kind: tree_static, branching: {}, siblings: hub}}", branching), "spec_hub");
}

// A draw from weights.
class WeighedPick final : public verify::Pickable {
 public:
  explicit WeighedPick(Distribution weights) : weights_(std::move(weights)) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    double place = rng::to_unit(bits) * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    Token last = 0;
    for (Token x = 0; x < weights_.size(); ++x) {
      if (!(weights_[x] > 0.0)) continue;
      last = x;
      if (place < weights_[x]) break;
      place -= weights_[x];
    }
    return last;
  }

 private:
  Distribution weights_;
};

enum class PathMistake { none, own_draft, clipped_ties, own_residual };

// The rule with a loop over tokens and powers without simplification.
verify::AcceptedPath multi_path_with(verify::Block& block, PathMistake mistake) {
  const auto& nodes = block.tree().nodes;
  const int paths = block.children(0);
  std::vector<int> alike(static_cast<std::size_t>(paths));
  std::iota(alike.begin(), alike.end(), nodes[0].first_child);
  const auto before = [&](const math::RatioTable& pair, Token x, Token y) {  // x is worse than y
    double a = pair.target(x) / pair.draft(x);
    double b = pair.target(y) / pair.draft(y);
    if (mistake == PathMistake::clipped_ties) {
      a = std::min(a, 1.0);
      b = std::min(b, 1.0);
    }
    return a != b ? a < b : x < y;
  };
  double stays = 1.0;
  double worse = 0.0;
  double own = 1.0;
  std::vector<double> kept = {1.0};
  std::vector<Distribution> drafted;  // [depth]: what the path was drawn from, by token
  int node = 0;
  for (;;) {
    const math::RatioTable& pair = block.distributions(node);
    Token best = block.token(alike.front());
    for (const int one : alike) {
      const Token x = block.token(one);
      const bool tied = mistake == PathMistake::clipped_ties &&
                        std::min(pair.target(x) / pair.draft(x), 1.0) == std::min(pair.target(best) / pair.draft(best), 1.0);
      if (!tied && before(pair, best, x)) best = x;  // the mistake: among tied tokens the one that was drawn first
    }
    std::erase_if(alike, [&](int one) { return block.token(one) != best; });
    Distribution law(pair.vocab(), 0.0);
    double worse_next = worse;
    for (Token x = 0; x < pair.vocab(); ++x) {
      double below = worse;
      for (Token y = 0; y < pair.vocab(); ++y)
        if (pair.draft(x) > 0.0 && pair.draft(y) > 0.0 && before(pair, y, x)) below += own * pair.draft(y);
      law[x] = mistake == PathMistake::own_draft ? pair.draft(x)
                                                 : (std::pow(below + own * pair.draft(x), paths) - std::pow(below, paths)) /
                                                       (std::pow(worse + own, paths) - std::pow(worse, paths));
      if (x == best) worse_next = below;
    }
    drafted.push_back(law);
    stays = std::min(1.0, stays * pair.target(best) / law[best]);
    kept.push_back(stays);
    worse = worse_next;
    own *= pair.draft(best);
    node = alike.front();
    if (block.children(node) == 0) break;
    for (int& one : alike) one = nodes[static_cast<std::size_t>(one)].first_child;
  }
  std::vector<int> path;
  for (int at = node; at >= 0; at = nodes[static_cast<std::size_t>(at)].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  for (std::size_t i = path.size(); i-- > 0;) {
    if (i + 1 == path.size()) {
      if (block.accept(path[i], {kept[i], 1.0})) return {path[i], block.pick_target(path[i])};
      continue;
    }
    const math::RatioTable& pair = block.distributions(path[i]);
    Distribution rest(pair.vocab());
    for (Token x = 0; x < pair.vocab(); ++x)
      rest[x] = std::max(kept[i] * pair.target(x) - (mistake == PathMistake::own_residual ? pair.draft(x) : drafted[i][x]), 0.0);
    const double z = std::accumulate(rest.begin(), rest.end(), 0.0);
    if (i == 0 || block.accept(path[i], {z, z + 1.0 - kept[i]}))
      return {path[i], z > 0.0 ? block.pick(path[i], WeighedPick(rest)) : block.pick_target(path[i])};
  }
  return {0, block.pick_target(0)};
}

enum class HubMistake { none, draft_of_second, hub_first, final_of_target };

int hub_with(verify::Block& block, int node, const std::vector<int>& children, Token& final_token, HubMistake mistake) {
  const math::RatioTable& pair = block.distributions(node);
  const std::size_t vocab = pair.vocab();
  Token hub = 0;
  for (Token x = 1; x < vocab; ++x)
    if (pair.draft(x) > pair.draft(hub)) hub = x;
  Distribution left(vocab);
  Distribution after_first(vocab);
  double unused_first = 0.0;
  double unused_second = 0.0;
  const auto second = [&](Token x) {
    return mistake == HubMistake::draft_of_second ? pair.draft(x) : pair.draft(hub) * pair.draft(x) / (1.0 - pair.draft(hub));
  };
  for (Token x = 0; x < vocab; ++x) {
    if (x == hub) continue;
    after_first[x] = std::max(pair.target(x) - pair.draft(x), 0.0);
    unused_second += std::max(pair.draft(x) - pair.target(x), 0.0);
    left[x] = std::max(after_first[x] - second(x), 0.0);
    unused_first += std::max(second(x) - after_first[x], 0.0);
  }
  after_first[hub] = std::max(pair.target(hub) - unused_first, 0.0);
  left[hub] = std::max(after_first[hub] - unused_second, 0.0);
  const Token x = block.token(children[0]);
  const Token y = block.token(children[1]);
  if (x != hub) {
    if (block.accept(children[0], {pair.target(x), pair.draft(x)})) return children[0];
    if (block.accept(children[1], {after_first[hub], unused_second})) return children[1];
  } else if (mistake == HubMistake::hub_first) {
    if (block.accept(children[0], {pair.target(hub), pair.draft(hub)})) return children[0];
    if (block.accept(children[1], {after_first[y], second(y)})) return children[1];
  } else {
    if (block.accept(children[1], {after_first[y], second(y)})) return children[1];
    if (block.accept(children[0], {pair.target(hub), unused_first})) return children[0];
  }
  const bool none = !(std::accumulate(left.begin(), left.end(), 0.0) > 0.0);
  final_token = none || mistake == HubMistake::final_of_target ? block.pick_target(node) : block.pick(node, WeighedPick(left));
  return 0;
}

}  // namespace

TEST_CASE("the best of several paths, judged as a block: lossless, and accepted as theory predicts; one path is the block rule") {
  InputNumbers numbers(191);
  double gain = 0.0;
  for (int i = 0; i < 30; ++i) {
    const std::size_t vocab = 2 + numbers.below(2);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    const std::string pair = explicit_pair(target, draft);
    double single = 0.0;
    for (const int paths : {1, 2, 3}) {
      const int length = paths == 3 ? 1 + static_cast<int>(numbers.below(2)) : 2;
      const spec::Cell cell = paths_cell(pair, "{process: fixed}", paths, length);
      const audit::AuditReport report = audit::audit_cell(cell);
      INFO(pair << ", " << paths << " paths of " << length);
      CHECK(report.largest_difference <= kExact);
      const theory::RoundDistribution known = theory::multi_path_kernel(automaton_of(cell), paths, length).distribution(0);
      CHECK(largest_difference(report.starts[0].accepted_distribution, known.accepted) <= kExact);
      if (paths == 1) {
        const audit::AuditReport block = audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2), "block"));
        CHECK(largest_difference(report.starts[0].accepted_distribution, block.starts[0].accepted_distribution) <= kExact);
        single = report.starts[0].expected_accepted;
      }
      if (paths == 2) gain += report.starts[0].expected_accepted - single;
      if (length == 1) CHECK(report.starts[0].expected_accepted <= theory::optimal_acceptance(target, draft, paths) + kExact);
    }
  }
  CHECK(gain / 30 > 0.05);
}

TEST_CASE("the best of several paths, if tokens determine the context") {
  const std::string pair =
      "{vocab: 2, target: {family: dirichlet, concentration: 1}, draft: {from: target, transform: logit_noise, value: 1.5}}";
  for (const int paths : {1, 2, 3}) {
    const spec::Cell cell = paths_cell(pair, "{process: markov}", paths, 2);
    const audit::AuditReport report = audit::audit_cell(cell);
    CHECK(report.lossless());
    const theory::RoundKernel kernel = theory::multi_path_kernel(automaton_of(cell), paths, 2);
    for (const audit::AuditStart& start : report.starts)
      CHECK(largest_difference(start.accepted_distribution, kernel.distribution(static_cast<int>(start.context)).accepted) <=
            kExact);
  }
}

TEST_CASE("mistakes with several paths: judged by the draft's own distribution, or ties by the order of drawing") {
  const spec::Cell cell = paths_cell(explicit_pair(kSecondTarget, kSecondDraft), "{process: fixed}", 2, 2);
  const auto audited = [&](PathMistake mistake) {
    return audit::audit_cell(cell, FunctionRule([mistake](verify::Block& block) { return multi_path_with(block, mistake); }));
  };
  const audit::AuditReport right = audited(PathMistake::none);
  CHECK(right.lossless());
  CHECK(largest_difference(right.starts[0].accepted_distribution, audit::audit_cell(cell).starts[0].accepted_distribution) <=
        1e-11);
  CHECK(audited(PathMistake::own_draft).largest_difference > 1e-2);
  CHECK(audited(PathMistake::clipped_ties).largest_difference > 1e-3);
  CHECK(audited(PathMistake::own_residual).largest_difference > 1e-2);
}

TEST_CASE("a rule of paths refuses trees that branch below the root, and paths of two lengths") {
  const std::string pair = explicit_pair(kSecondTarget, kSecondDraft);
  const auto refused = [&](const std::string& tree) {
    CHECK_THROWS_AS(cell_of(pair, "{process: fixed}", "{kind: tree_static, " + tree + "}", "greedy_multi_path"), BadInput);
  };
  refused("branching: [2, 2]");
  refused("parents: [0, 0, 1]");
  refused("branching: [2, 1], siblings: without_replacement");
  CHECK_THROWS_AS(hub_cell(pair, "[3, 1]"), BadInput);
}

TEST_CASE("siblings around a hub: lossless, and each rank accepted as theory predicts") {
  InputNumbers numbers(192);
  double gain = 0.0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t vocab = 2 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    const std::string pair = explicit_pair(target, draft);
    INFO(pair);
    const audit::AuditReport report = audit::audit_cell(hub_cell(pair, "[2]"));
    CHECK(report.largest_difference <= kExact);
    double accepted = 0.0;
    for (const Distribution& rank : theory::hub_accepted(target, draft, 2))
      accepted += std::accumulate(rank.begin(), rank.end(), 0.0);
    CHECK(report.starts[0].expected_accepted == Approx(accepted).epsilon(0).margin(kExact));
    gain += accepted - theory::judge_recursive(target, draft, 2).judgement.alpha();
  }
  CHECK(gain / 60 > 0.01);
  for (const char* branching : {"[2, 1]", "[2, 2]", "[1, 2]"})
    for (const char* process : {"{process: fixed}", "{process: markov}"})
      CHECK(
          audit::audit_cell(
              hub_cell("{vocab: 3, target: {family: dirichlet, concentration: 1}, draft: {family: dirichlet, concentration: 1}}",
                       branching, process))
              .lossless());
  // The hub alone, with a draft that is sure of it.
  CHECK(audit::audit_cell(hub_cell(explicit_pair({0.5, 0.5}, {0.9, 0.1}), "[2]")).starts[0].expected_accepted ==
        Approx(1.0).epsilon(0).margin(kExact));
  CHECK(audit::audit_cell(hub_cell(explicit_pair({0.5, 0.5}, {1.0, 0.0}), "[2]")).starts[0].expected_accepted ==
        Approx(0.5).epsilon(0).margin(kExact));
}

TEST_CASE("mistakes with a hub: the second token judged by the draft, the hub before it, the last one from the target") {
  // The second pair's hub is likely under both: a rule that takes it first leaves too little to the others.
  const auto audited = [](const Distribution& draft, HubMistake mistake) {
    return audit::audit_cell(hub_cell(explicit_pair({0.5, 0.3, 0.2}, draft), "[2]"),
                             StepRule([mistake](verify::Block& block, int node, const std::vector<int>& children, Token& last) {
                               return hub_with(block, node, children, last, mistake);
                             }));
  };
  const Distribution unlikely = {0.2, 0.35, 0.45};
  const Distribution likely = {0.6, 0.3, 0.1};
  CHECK(audited(unlikely, HubMistake::none).lossless());
  CHECK(audited(likely, HubMistake::none).lossless());
  CHECK(audited(unlikely, HubMistake::draft_of_second).largest_difference > 1e-3);
  CHECK(audited(likely, HubMistake::hub_first).largest_difference > 1e-3);
  CHECK(audited(unlikely, HubMistake::final_of_target).largest_difference > 1e-3);
}

}  // namespace specsim::multi_path_test
