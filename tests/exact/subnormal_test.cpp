// Probabilities below 2^-1022: what a distribution never has, whatever it was made of.
#include "tests/exact/exact_cells.h"

#include "sim/experiments/judge/facts.h"

#include <limits>

namespace specsim::subnormal_test {

using namespace specsim::tests;

namespace {

constexpr double kLeastNormal = std::numeric_limits<double>::min();

std::size_t count_subnormal(std::span<const double> distribution) {
  return static_cast<std::size_t>(
      std::count_if(distribution.begin(), distribution.end(), [](double p) { return p != 0.0 && p < kLeastNormal; }));
}

// Subnormal probabilities and zeros in what the tables of a cell are built from.
struct Seen {
  std::size_t subnormal = 0;
  std::size_t zero = 0;
};
Seen seen_in(const std::string& pair, const std::string& drafter = chain(2), const std::string& verifier = "token") {
  const spec::Cell cell = cell_of(pair, "{process: fixed}", drafter, verifier);
  Seen seen;
  decode::prepare(spec::plan_of(cell), [&](int, int, const verify::PositionDistributions& distributions,
                                           const decode::OutputClasses&) {
    for (const std::span<const double> distribution : {distributions.target, distributions.drafted, distributions.draft_model}) {
      seen.subnormal += count_subnormal(distribution);
      seen.zero += static_cast<std::size_t>(std::count(distribution.begin(), distribution.end(), 0.0));
    }
  });
  return seen;
}

}  // namespace

TEST_CASE("tables of distributions with very low temperatures are made at once, without subnormal probabilities") {
  for (const char* pair :
       {"{vocab: 32000, target: {family: normal_logits, sigma: 2}, draft: {from: target, transform: logit_noise, value: 1}, "
        "target_sampling: {temperature: 0.02}, draft_sampling: {temperature: 0.02}}",
        "{vocab: 32000, target: {family: uniform_logits, range: 1000}, draft: {family: uniform_logits, range: 1000}}",
        "{vocab: 32000, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: permute, value: 1}, "
        "target_sampling: {temperature: 0.01}, draft_sampling: {temperature: 0.01}}"}) {
    INFO(pair);
    const Seen seen = seen_in(pair);
    CHECK(seen.subnormal == 0);
    CHECK(seen.zero > 0);
  }
}

TEST_CASE("subnormal probabilities that a config lists, mixes or sharpens are zero") {
  const std::string listed = "{family: explicit, probabilities: [5e-324, 1, 0]}";
  for (const std::string& draft :
       {std::string("{family: explicit, probabilities: [1e-323, 1, 0]}"),
        "{family: mixture, weights: [1, 1e-310], components: [" + listed + ", {family: uniform}]}",
        std::string("{from: target, transform: mix_noise, value: 1e-310}"),
        std::string("{from: target, transform: interpolate, value: 1e-310}"),
        std::string("{from: {family: explicit, probabilities: [1e-20, 1, 1e-16]}, transform: temperature, value: 0.05}")}) {
    INFO(draft);
    const Seen seen = seen_in("{vocab: 3, target: " + listed + ", draft: " + draft + "}");
    CHECK(seen.subnormal == 0);
    CHECK(seen.zero >= 6);
  }
  // A drafter that mixes distributions: share 1e-310 of a target that has tokens which the draft has not.
  CHECK(seen_in("{vocab: 3, target: {family: uniform}, draft: {family: explicit, probabilities: [0, 1, 0]}}",
                "{kind: eagle, branching: [1, 1], sharpening: 1e-310}", "multi_draft_recursive")
            .subnormal == 0);
}

TEST_CASE("with subnormal probabilities in the config, verifiers are lossless") {
  const std::string pair =
      "{vocab: 3, target: {family: explicit, probabilities: [0.25, 0.75, 5e-324]}, draft: {family: explicit, probabilities: "
      "[5e-324, 1e-323, 1]}}";
  for (const char* verifier : {"token", "block"}) {
    const audit::AuditReport report = audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2), verifier));
    INFO(verifier);
    CHECK(report.lossless());
  }
  for (const char* verifier : {"without_replacement", "traversal"}) {
    const audit::AuditReport report = audit::audit_cell(
        cell_of(pair, "{process: fixed}", "{kind: tree_static, branching: [2], siblings: without_replacement}", verifier));
    INFO(verifier);
    CHECK(report.lossless());
  }
}

TEST_CASE("divergences of nearly subnormal probabilities: hundreds of nats, not none") {
  const auto divergences = [](const std::string& draft) {
    const spec::Cell cell =
        cell_of("{vocab: 2, target: {family: explicit, probabilities: [0.5, 0.5]}, draft: {family: explicit, probabilities: [" +
                    draft + ", 1]}}",
                "{process: fixed}", chain(1), "token");
    const decode::PreparationPlan plan = spec::plan_of(cell);
    return judge::gather_facts(cell, plan, nullptr).kl;
  };
  // KL((1/2, 1/2) || (e, 1 - e)) = -log 2 - (log e) / 2.
  CHECK(divergences("3e-308") == Approx(-std::log(2.0) - std::log(3e-308) / 2.0).epsilon(1e-12));
  CHECK(divergences("1e-308") == std::numeric_limits<double>::infinity());
}

}  // namespace specsim::subnormal_test
