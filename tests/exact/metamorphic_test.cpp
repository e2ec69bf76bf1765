// Relations that must hold although no expected value is known.
#include "tests/exact/exact_cells.h"

#include "sim/foundation/math/alias_table.h"

#include <numeric>

namespace specsim::metamorphic_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;

TEST_CASE("equal distributions: everything is accepted") {
  InputNumbers numbers(21);
  for (int i = 0; i < 20; ++i) {
    const Distribution distribution = numbers.distribution(2 + numbers.below(5), 0.3);
    const AuditReport report =
        audit::audit_cell(cell_of(explicit_pair(distribution, distribution), "{process: fixed}", chain(3), "token"));
    CHECK(report.starts[0].alpha == 1.0);
    CHECK(report.starts[0].accepted_distribution.back() == 1.0);
    CHECK(report.lossless());
  }
}

TEST_CASE("disjoint supports: nothing is accepted") {
  const AuditReport report = audit::audit_cell(
      cell_of(explicit_pair({0.5, 0.5, 0.0, 0.0}, {0.0, 0.0, 0.3, 0.7}), "{process: fixed}", chain(3), "token"));
  CHECK(report.starts[0].alpha == 0.0);
  CHECK(report.starts[0].expected_emitted == 1.0);
  CHECK(report.lossless());
}

TEST_CASE("relabelled tokens permute the output and change nothing else") {
  InputNumbers numbers(22);
  for (const char* verifier : {"token", "sample_match"}) {
    for (int i = 0; i < 20; ++i) {
      const std::size_t vocab = 3 + numbers.below(3);
      const Distribution target = numbers.distribution(vocab, 0.2);
      const Distribution draft = numbers.distribution(vocab, 0.2);
      std::vector<std::size_t> label(vocab);
      std::iota(label.begin(), label.end(), std::size_t{0});
      for (std::size_t x = vocab; x-- > 1;) std::swap(label[x], label[numbers.below(x + 1)]);
      Distribution relabelled_target(vocab);
      Distribution relabelled_draft(vocab);
      for (std::size_t x = 0; x < vocab; ++x) {
        relabelled_target[label[x]] = target[x];
        relabelled_draft[label[x]] = draft[x];
      }
      const AuditReport before = audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(2), verifier));
      const AuditReport after =
          audit::audit_cell(cell_of(explicit_pair(relabelled_target, relabelled_draft), "{process: fixed}", chain(2), verifier));
      CHECK(largest_difference(before.starts[0].accepted_distribution, after.starts[0].accepted_distribution) < 1e-13);
      Distribution permuted(before.starts[0].joint.size());
      for (std::size_t a = 0; a < vocab; ++a)
        for (std::size_t b = 0; b < vocab; ++b)
          for (std::size_t c = 0; c < vocab; ++c)
            permuted[(label[a] * vocab + label[b]) * vocab + label[c]] = before.starts[0].joint[(a * vocab + b) * vocab + c];
      CHECK(largest_difference(permuted, after.starts[0].joint) < 1e-13);
    }
  }
}

TEST_CASE("the output distribution does not depend on the drafter") {
  InputNumbers numbers(23);
  const Distribution target = numbers.distribution(4, 0.0);
  const Distribution reference =
      audit::audit_cell(cell_of(explicit_pair(target, target), "{process: fixed}", chain(2), "token")).starts[0].joint;
  for (int i = 0; i < 20; ++i) {
    const std::string pair = explicit_pair(target, numbers.distribution(4, 0.3));
    for (const char* verifier : {"token", "sample_match"})
      for (const bool argmax : {false, true})
        CHECK(largest_difference(audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2, argmax), verifier)).starts[0].joint,
                                 reference) < 1e-12);
  }
}

TEST_CASE(
    "acceptance: rejection sampling is never below sample and match; an argmax draft is accepted with the target's probability "
    "of it") {
  InputNumbers numbers(24);
  for (int i = 0; i < 30; ++i) {
    const Distribution target = numbers.distribution(4, 0.2);
    const Distribution draft = numbers.distribution(4, 0.2);
    const std::string pair = explicit_pair(target, draft);
    const AuditReport token = audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2), "token"));
    const AuditReport match = audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2), "sample_match"));
    CHECK(token.starts[0].alpha >= match.starts[0].alpha - 1e-13);
    const auto best = static_cast<std::size_t>(std::max_element(draft.begin(), draft.end()) - draft.begin());
    CHECK(audit::audit_cell(cell_of(pair, "{process: fixed}", chain(2, true), "token")).starts[0].alpha ==
          Approx(target[best]).epsilon(0).margin(1e-13));
  }
}

TEST_CASE("draft_length 0 is plain decoding, word for word") {
  for (const char* verifier : {"token", "sample_match"}) {
    for (const char* context : {"{process: fixed, sequence_rounds: 40}", "{process: markov, order: 2, sequence_rounds: 40}"}) {
      const spec::Cell cell = cell_of("{vocab: 5, target: {family: dirichlet, concentration: 0.6}, draft: {family: uniform}}",
                                      context, chain(0), verifier);
      Run run;
      run_chunk(cell, 40 * 37, run);
      REQUIRE(run.rounds.lanes.size() == 37);
      // The target alone: one table for each context, one word for each token.
      const families::ContextProcess& process = *cell.contexts->process;
      std::vector<math::AliasTable> tables;
      for (int c = 0; c < process.shape().contexts; ++c) {
        Distribution distribution(5);
        cell.contexts->pair(static_cast<std::size_t>(c))
            .draw_target({spec::distribution_key(cell), static_cast<std::uint64_t>(c)}, distribution);
        tables.emplace_back(distribution);
      }
      const rng::Key key = spec::draw_key(cell);
      for (std::uint32_t sequence = 0; sequence < 37; ++sequence) {
        std::vector<Token> text;
        std::uint32_t state = 0;
        for (std::uint32_t i = 0; i < 40; ++i) {
          const rng::BitsPair random_bits =
              rng::philox_bits({rng::counter_word0(rng::Purpose::final_token, 0), i, sequence / 2, 0}, key);
          text.push_back(tables[state].pick(sequence % 2 == 0 ? random_bits.first : random_bits.second));
          if (process.moves()) state = process.next(state, text.back());
        }
        CHECK(run.rounds.text(sequence) == text);
      }
      CHECK(run.counts.emitted == 40 * 37);
    }
  }
}

}  // namespace specsim::metamorphic_test
