// The joint distribution of the first draft_length + 1 tokens from a round's start, completed by further rounds: a G-test on all
// texts of that length, and the mutants that it must reject.
#include "sim/experiments/judge/agreement.h"
#include "tests/support/cells.h"
#include "tests/support/mutants.h"

#include <catch2/catch.hpp>

#include <map>
#include <vector>

namespace specsim::joint_distribution_test {

namespace {

const double kLevel = judge::check_level(20);

// Collects windows: from a round's start, the next `length` tokens; the window after it begins at the next round's start. A
// window begins only if `length` rounds are left, which always fill it: dropping windows that the sequence's end cuts would
// favour texts that take few rounds.
class Windows final : public decode::RoundSink {
 public:
  Windows(std::size_t length, std::size_t vocab, std::size_t contexts, std::uint32_t sequence_rounds)
      : length_(length), vocab_(vocab), sequence_rounds_(sequence_rounds), lanes_(decode::kLanes) {
    std::size_t texts = 1;
    for (std::size_t i = 0; i < length; ++i) texts *= vocab;
    counts_.assign(contexts, std::vector<double>(texts, 0.0));
  }
  void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) override {
    Lane& own = lanes_[lane];
    if (own.filled == 0 && round + length_ > sequence_rounds_) return;
    for (const Token token : emitted) {
      if (own.filled < length_) {
        own.text = own.text * vocab_ + token;
        ++own.filled;
      }
    }
    if (own.filled == length_) {
      counts_[own.context][own.text] += 1.0;
      own = {};
      own.context = next_context;
    }
  }
  void next_chunk() { lanes_.assign(decode::kLanes, {}); }
  [[nodiscard]] const std::vector<std::vector<double>>& counts() const { return counts_; }

 private:
  struct Lane {
    std::size_t text = 0;
    std::size_t filled = 0;
    std::uint32_t context = 0;
  };
  std::size_t length_;
  std::size_t vocab_;
  std::uint32_t sequence_rounds_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<double>> counts_;  // [context at the window's start][text]
};

std::string config(const std::string& context) {
  return "{experiment: joint, seed: 20260310, rounds: 3276800, pair: {vocab: 3, target: {family: dirichlet, concentration: 1}, "
         "draft: {from: target, transform: logit_noise, value: 1}}, context: " +
         context + ", decode: {drafter: {kind: chain, draft_length: 2}}}";
}

double joint_p(const std::string& context, const tests::Mutant* mutant) {
  const tests::ReadyCell ready(config(context));
  const spec::Cell& cell = ready.cell();
  const auto contexts = static_cast<std::size_t>(cell.contexts->process->shape().contexts);
  const std::size_t vocab = 3;
  const std::size_t length = 3;
  Windows windows(length, vocab, contexts, cell.sequence_rounds);
  const auto rule = mutant != nullptr ? mutant->rule() : nullptr;
  const tests::ReadyCell run = rule != nullptr ? tests::ReadyCell(cell, *rule) : tests::ReadyCell(cell);
  const decode::Simulator simulator = run.simulator();
  decode::Counts counts = simulator.empty_counts();
  const decode::RoundSetup setup{.tables = &*run.prepared().tables,
                                 .process = cell.contexts->process.get(),
                                 .key = run.draw_key(),
                                 .draft_length = 2,
                                 .matches = false,
                                 .classes = run.prepared().class_count,
                                 .bin_of_class = run.prepared().bin_of_class.data(),
                                 .stratum = run.prepared().stratum.empty() ? nullptr : run.prepared().stratum.data()};
  for (std::uint64_t i = 0; i * simulator.chunk_size() < cell.rounds; ++i) {
    windows.next_chunk();
    if (mutant != nullptr && mutant->loop) {
      decode::PhiloxBits random_bits(run.draw_key());
      mutant->loop(setup, {i * decode::kLanes, simulator.chunk_size(), cell.sequence_rounds}, random_bits, counts, &windows);
    } else {
      simulator.run(i, cell.rounds, counts, &windows);
    }
  }
  // Expected: the target's own distributions, multiplied along the text.
  const decode::DistributionDrawer drawer(ready.preparation());
  std::vector<std::vector<double>> target(contexts);
  for (std::size_t c = 0; c < contexts; ++c) drawer.target(c, c, target[c]);
  judge::GTest test;
  for (std::size_t start = 0; start < contexts; ++start) {
    const std::vector<double>& observed = windows.counts()[start];
    double n = 0.0;
    for (const double count : observed) n += count;
    std::vector<double> expected(observed.size());
    for (std::size_t text = 0; text < observed.size(); ++text) {
      double p = n;
      auto at = static_cast<std::uint32_t>(start);
      for (std::size_t i = 0, digit = vocab * vocab; i < length; ++i, digit /= vocab) {
        const auto token = static_cast<Token>(text / digit % vocab);
        p *= target[at][token];
        if (contexts > 1) at = cell.contexts->process->next(at, token);
      }
      expected[text] = p;
    }
    test.add(observed, expected);
  }
  REQUIRE(test.degrees >= 26);
  return test.p();
}

}  // namespace

TEST_CASE("the joint distribution of draft_length + 1 tokens is the target's, in fixed and in markov contexts") {
  CHECK(joint_p("{process: fixed}", nullptr) > kLevel);
  CHECK(joint_p("{process: markov, order: 1}", nullptr) > kLevel);
}

TEST_CASE("mutants that lose the joint distribution are rejected by it") {
  for (const tests::Mutant& mutant : tests::mutants()) {
    const bool moves =
        std::find(mutant.moves.begin(), mutant.moves.end(), tests::Figure::joint_distribution) != mutant.moves.end();
    if (!moves || mutant.name == "leaks 1 % of the draft distribution")
      continue;  // the leak needs more rounds: see mutants_test.cpp
    INFO(mutant.name);
    if (mutant.name == "goes on after a rejection") {
      CHECK(joint_p("{process: markov, order: 1}", &mutant) < kLevel);
    } else {
      CHECK(joint_p("{process: fixed}", &mutant) < kLevel);
      if (mutant.name != "bonus token from the draft")  // it remembers only one context's draft
        CHECK(joint_p("{process: markov, order: 1}", &mutant) < kLevel);
    }
  }
}

}  // namespace specsim::joint_distribution_test
