// The audit must reject every mistake of the list, by the measure that the list names, and must see no difference where a measure
// is blind.
#include "tests/exact/exact_cells.h"
#include "tests/support/mutants.h"

namespace specsim::audit_mutants_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;
using audit::AuditStart;

namespace {

constexpr double kExact = 1e-12;

AuditReport audit_mutant(const spec::Cell& cell, const Mutant& mutant) {
  return audit::audit_cell(cell, *mutant.rule(), mutant.loop);
}

const Mutant& named(const std::string& name) {
  for (const Mutant& mutant : mutants())
    if (mutant.name == name) return mutant;
  FAIL("no mutant " << name);
  return mutants().front();
}

double padded_difference(Distribution a, Distribution b) {
  a.resize(std::max(a.size(), b.size()), 0.0);
  b.resize(a.size(), 0.0);
  return largest_difference(a, b);
}

// The difference of each measure between a mutant and the correct verifier on the same cell.
double moved(Figure figure, const AuditStart& wrong, const AuditStart& right) {
  switch (figure) {
    case Figure::output_distribution:
      return largest_difference(wrong.first_token, right.first_token);
    case Figure::accepted_distribution:
      return largest_difference(wrong.accepted_distribution, right.accepted_distribution);
    case Figure::emitted_distribution:
      return padded_difference(wrong.emitted_distribution, right.emitted_distribution);
    case Figure::joint_distribution:
      return largest_difference(wrong.joint, right.joint);
    case Figure::scripted:
      break;
  }
  return 0.0;
}

}  // namespace

TEST_CASE("every mutant moves exactly the figures that it should on the second known pair") {
  const spec::Cell cell = second_pair(2);
  const AuditStart right = audit::audit_cell(cell).starts[0];
  for (const Mutant& mutant : mutants()) {
    const AuditReport report = audit_mutant(cell, mutant);
    for (const Figure figure :
         {Figure::output_distribution, Figure::accepted_distribution, Figure::emitted_distribution, Figure::joint_distribution}) {
      const bool should = std::find(mutant.moves.begin(), mutant.moves.end(), figure) != mutant.moves.end();
      const double by = moved(figure, report.starts[0], right);
      INFO(mutant.name << ", figure " << static_cast<int>(figure) << ": moved by " << by);
      if (should)
        CHECK(by > 1e-4);
      else
        CHECK(by <= kExact);
    }
    if (mutant.caught_by == Figure::scripted) {
      CHECK(mutant.moves.empty());
    } else {
      INFO(mutant.name);
      CHECK(std::find(mutant.moves.begin(), mutant.moves.end(), mutant.caught_by) != mutant.moves.end());
    }
    const bool loses = std::find(mutant.moves.begin(), mutant.moves.end(), Figure::joint_distribution) != mutant.moves.end();
    CHECK(report.lossless() == !loses);
  }
}

TEST_CASE("the list itself is unbroken: the rule that mutants start from is the token verifier") {
  for (const spec::Cell& cell : {first_pair(2), second_pair(2)}) {
    const AuditReport own = audit::audit_cell(cell, TokenLikeRule());
    const AuditReport staged = audit::audit_cell(cell, TokenLikeRule(), loop_of<decode::ShippedBehaviour>());
    const AuditReport shipped = audit::audit_cell(cell);
    CHECK(own.starts[0].joint == shipped.starts[0].joint);
    CHECK(staged.starts[0].joint == shipped.starts[0].joint);
    CHECK(staged.starts[0].accepted_distribution == shipped.starts[0].accepted_distribution);
  }
}

TEST_CASE("resampling from the target: 4/9 and 5/9, while emitted stays 19/9") {
  const AuditReport report = audit_mutant(first_pair(2), named("resamples from the target"));
  CHECK(largest_difference(report.starts[0].first_token, {4.0 / 9.0, 5.0 / 9.0}) <= kExact);
  CHECK(report.starts[0].expected_emitted == Approx(19.0 / 9.0).epsilon(0).margin(kExact));
  CHECK(report.first_token_variation == Approx(1.0 / 9.0).epsilon(0).margin(kExact));
  CHECK_FALSE(report.lossless());
}

TEST_CASE("the first known pair is blind to a residual that is not renormalised, the second is not") {
  CHECK(audit_mutant(first_pair(2), named("residual not renormalised")).lossless());
  CHECK_FALSE(audit_mutant(second_pair(2), named("residual not renormalised")).lossless());
}

TEST_CASE("a leak shows as its own size") {
  const AuditReport whole = audit_mutant(second_pair(2), named("emits the draft distribution"));
  CHECK(largest_difference(whole.starts[0].first_token, kSecondDraft) <= kExact);
  const AuditReport hundredth = audit_mutant(second_pair(2), named("leaks 1 % of the draft distribution"));
  CHECK(hundredth.first_token_variation == Approx(0.01 * 3.0 / 8.0).epsilon(0).margin(kExact));
}

TEST_CASE("loops: what they count and emit") {
  const AuditStart right = audit::audit_cell(second_pair(2)).starts[0];
  const AuditStart dropped = audit_mutant(second_pair(2), named("bonus token dropped")).starts[0];
  CHECK(dropped.expected_emitted == Approx(right.expected_emitted - right.accepted_distribution[2]).epsilon(0).margin(kExact));
  const AuditStart short_ = audit_mutant(second_pair(2), named("draft_length one short")).starts[0];
  CHECK(short_.accepted_distribution[2] == 0.0);
  const AuditStart long_ = audit_mutant(second_pair(2), named("draft_length one too many")).starts[0];
  CHECK(long_.expected_emitted == Approx(1.0 + 5.0 / 8 + 25.0 / 64 + 125.0 / 512).epsilon(0).margin(kExact));
  const AuditStart on = audit_mutant(second_pair(2), named("goes on after a rejection")).starts[0];
  CHECK(on.accepted_distribution[2] == Approx(1.0).epsilon(0).margin(1e-15));
  CHECK(largest_difference(on.first_token, kSecondDraft) <= kExact);
}

TEST_CASE("mutants are also detected if the distributions depend on the context") {
  const spec::Cell cell =
      cell_of("{vocab: 3, target: {family: dirichlet, concentration: 1}, draft: {family: dirichlet, concentration: 1}}",
              "{process: markov}", chain(2), "token");
  for (const Mutant& mutant : mutants()) {
    INFO(mutant.name);
    const bool loses = std::find(mutant.moves.begin(), mutant.moves.end(), Figure::joint_distribution) != mutant.moves.end();
    CHECK(audit_mutant(cell, mutant).lossless() == !loses);
  }
}

TEST_CASE("ties: no distribution shows them, but a token that the target cannot emit does") {
  const spec::Cell cell = cell_of(explicit_pair({0.0, 1.0}, {0.5, 0.5}), "{process: fixed}", chain(1), "token");
  const AuditReport ties = audit_mutant(cell, named("accepts ties: u * draft <= target"));
  CHECK(ties.largest_difference <= kExact);
  CHECK(ties.impossible > 0.0);
  CHECK_FALSE(ties.lossless());
  CHECK(to_text(ties).find("verdict: not lossless: emits what the target cannot") != std::string::npos);
  CHECK(audit::audit_cell(cell).lossless());
}

}  // namespace specsim::audit_mutants_test
