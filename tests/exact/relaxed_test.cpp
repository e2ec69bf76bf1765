// Verifiers as implemented in servers, and common noise, compared with the formulas of their programs and papers for one drafted
// position.
#include "tests/exact/exact_cells.h"

#include <numeric>
#include <random>

namespace specsim::relaxed_test {

using namespace specsim::tests;

namespace {

constexpr double kExact = 1e-12;

const audit::AuditReport& report_of(const std::string& pair, const std::string& drafter, const std::string& verifier) {
  static audit::AuditReport report;
  report = audit::audit_cell(cell_of(pair, "{process: fixed}", drafter, verifier));
  return report;
}

// A node's children as SGLang's kernel judges them, coin by coin: every interval of coins between two thresholds is tried at its
// midpoint.
Distribution by_kernel(const Distribution& target, const std::vector<Token>& children, double single, double accumulated) {
  std::vector<double> ends = {0.0, 1.0};
  double sum = 0.0;
  for (const Token x : children) ends.push_back(std::min(1.0, (sum += target[x]) / accumulated));
  std::sort(ends.begin(), ends.end());
  Distribution emitted(target.size(), 0.0);
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const double share = ends[i + 1] - ends[i];
    if (share <= 0.0) continue;
    const double coin = 0.5 * (ends[i] + ends[i + 1]);
    double prob_acc = 0.0;
    Distribution left = target;
    bool accepted = false;
    for (const Token x : children) {
      prob_acc += target[x];
      if (coin <= prob_acc / accumulated || target[x] >= single) {
        emitted[x] += share;
        accepted = true;
        break;
      }
      left[x] = 0.0;
    }
    const double mass = std::accumulate(left.begin(), left.end(), 0.0);
    for (std::size_t x = 0; !accepted && x < left.size(); ++x) emitted[x] += share * left[x] / mass;
  }
  return emitted;
}

std::vector<Token> likeliest(const Distribution& draft, std::size_t count) {
  std::vector<Token> order(draft.size());
  std::iota(order.begin(), order.end(), Token{0});
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) { return draft[a] > draft[b]; });
  order.resize(count);
  return order;
}

}  // namespace

TEST_CASE("SGLang's thresholds: what is emitted is what its kernel emits; both at 1 keep the target's distribution") {
  InputNumbers numbers(91);
  double moved = 0.0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t vocab = 3 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.0);
    const double single = 0.2 + 0.1 * static_cast<double>(numbers.below(9));
    const double accumulated = 0.5 + 0.1 * static_cast<double>(numbers.below(6));
    const std::string pair = explicit_pair(target, draft);
    const std::string drafter = "{kind: tree_static, branching: [2], siblings: top_k}";
    INFO(pair << ", " << single << ", " << accumulated);
    const Distribution emitted =
        report_of(pair, drafter, fmt::format("{{kind: relaxed_threshold, single: {}, acc: {}}}", single, accumulated))
            .starts[0]
            .first_token;
    CHECK(largest_difference(emitted, by_kernel(target, likeliest(draft, 2), single, accumulated)) <= kExact);
    moved = std::max(moved, largest_difference(emitted, by_kernel(target, likeliest(draft, 2), single, 1.0)));
    CHECK(
        report_of(pair, "{kind: tree_static, branching: [2, 1], siblings: top_k}", "{kind: relaxed_threshold, single: 1, acc: 1}")
            .lossless());
  }
  CHECK(moved > 0.1);  // a missing acc would be detected
}

TEST_CASE("TensorRT-LLM's relaxed acceptance: among the n likeliest, within delta of the first, then the argmax") {
  InputNumbers numbers(92);
  for (int i = 0; i < 60; ++i) {
    const std::size_t vocab = 3 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    const auto n = static_cast<std::size_t>(1 + numbers.below(3));
    const double delta = 0.1 * static_cast<double>(numbers.below(6));
    const std::vector<Token> best = likeliest(target, n);
    Distribution emitted(vocab, 0.0);
    for (std::size_t x = 0; x < vocab; ++x) {
      const bool stays = std::find(best.begin(), best.end(), static_cast<Token>(x)) != best.end() &&
                         (x == best[0] || target[x] >= target[best[0]] - delta);
      emitted[stays ? x : best[0]] += draft[x];
    }
    INFO(explicit_pair(target, draft) << ", " << n << ", " << delta);
    CHECK(largest_difference(report_of(explicit_pair(target, draft), chain(1),
                                       fmt::format("{{kind: relaxed_top_n, n: {}, delta: {}}}", n, delta))
                                 .starts[0]
                                 .first_token,
                             emitted) <= kExact);
  }
}

TEST_CASE("common noise: accepted as often as draft and target pick alike by the same exponential clocks") {
  InputNumbers numbers(93);
  std::mt19937_64 generator(20260711);
  std::exponential_distribution<double> clock(1.0);
  constexpr int kDraws = 40000;
  for (int i = 0; i < 12; ++i) {
    const std::size_t vocab = 2 + numbers.below(4);
    const Distribution target = numbers.distribution(vocab, 0.2);
    const Distribution draft = numbers.distribution(vocab, 0.2);
    const audit::AuditReport& report = report_of(explicit_pair(target, draft), chain(1), "gumbel");
    INFO(explicit_pair(target, draft));
    CHECK(report.lossless());
    int alike = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::size_t by_target = 0;
      std::size_t by_draft = 0;
      double first_target = 1e300;
      double first_draft = 1e300;
      for (std::size_t x = 0; x < vocab; ++x) {
        const double e = clock(generator);
        if (target[x] > 0.0 && e / target[x] < first_target) first_target = e / target[by_target = x];
        if (draft[x] > 0.0 && e / draft[x] < first_draft) first_draft = e / draft[by_draft = x];
      }
      alike += by_target == by_draft ? 1 : 0;
    }
    const double alpha = report.starts[0].alpha;
    double variation = 0.0;
    for (std::size_t x = 0; x < vocab; ++x) variation += std::max(target[x] - draft[x], 0.0);
    // Standard deviation at most .0025: 5 of them in 12 comparisons are 7e-6 false alarms.
    CHECK(alpha == Approx(static_cast<double>(alike) / kDraws).margin(0.0125));
    CHECK(alpha >= (1.0 - variation) / (1.0 + variation) - kExact);
    CHECK(alpha <= 1.0 - variation + kExact);
  }
}

TEST_CASE("heads with acceptance by depth overlap the target by just that, whether the pair's draft is better or worse") {
  const Distribution target = {0.5, 0.3, 0.15, 0.05};
  for (const Distribution& draft : {Distribution{0.1, 0.2, 0.3, 0.4}, Distribution{0.48, 0.3, 0.16, 0.06}}) {
    const std::string pair = explicit_pair(target, draft);
    for (const double acceptance : {0.9, 0.8, 0.99}) {
      const audit::AuditReport& report = report_of(
          pair, fmt::format("{{kind: mtp, draft_length: 2, selection: sampled, acceptance: [{}, 0.75]}}", acceptance), "token");
      INFO(pair << ", " << acceptance);
      CHECK(report.lossless());
      CHECK(report.starts[0].expected_accepted == Approx(acceptance * (1.0 + 0.75)).epsilon(0).margin(1e-9));
    }
  }
  // Beyond what the draft has too much of, whose overlap is .65 here, and where the two are equal: to the target's last token.
  for (const Distribution& draft : {Distribution{0.55, 0.35, 0.07, 0.03}, target})
    for (const double acceptance : {0.5, 0.3, 0.06, 0.05}) {
      const audit::AuditReport& report =
          report_of(explicit_pair(target, draft),
                    fmt::format("{{kind: mtp, draft_length: 1, selection: sampled, acceptance: [{}]}}", acceptance), "token");
      CHECK(report.lossless());
      CHECK(report.starts[0].alpha == Approx(acceptance).epsilon(0).margin(1e-9));
    }
}

TEST_CASE("hybrid: copies if they are expected to be longer than the model's drafts, otherwise the model's argmax") {
  // One token is almost certain: after a few of it the text predicts it again and again.
  const Distribution target = {0.9, 0.1};
  const audit::AuditReport report =
      audit::audit_cell(cell_of(explicit_pair(target, {0.2, 0.8}), "{process: fixed}",
                                "{kind: hybrid, draft_length: 1, text_length: 3}", "tree_point_mass"));
  CHECK(report.lossless());
  CHECK(report.starts[0].accepted_distribution[1] ==
        Approx(0.1).epsilon(0).margin(kExact));  // no text yet: the model proposes token 1
  CHECK(report.starts[0].accepted_distribution[2] == 0.0);
}

TEST_CASE("in_turn: copies if there are any, otherwise the model's argmax") {
  // One token or two are copied after the earlier text.
  const Distribution target = {0.7, 0.3};
  for (const char* const model : {"{kind: chain, draft_length: 1, selection: argmax}", "{kind: dflash, block_size: 2}"})
    for (const char* const copies :
         {"{kind: ngram_simple, draft_length: 2, size_n: 1}", "{kind: ngram_map_k, draft_length: 1, size_n: 1}",
          "{kind: ngram_map_k4v, draft_length: 1, size_n: 1}"}) {
      INFO(copies << " " << model);
      const audit::AuditReport report = audit::audit_cell(
          cell_of(explicit_pair(target, {0.2, 0.8}), "{process: fixed}",
                  std::string("{kind: in_turn, drafters: [") + copies + ", " + model + "]}", "tree_point_mass"));
      CHECK(report.lossless());
      CHECK(report.starts[0].accepted_distribution[1] == Approx(0.3).epsilon(0).margin(kExact));  // no text yet: token 1
    }
}

}  // namespace specsim::relaxed_test
