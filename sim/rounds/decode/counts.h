// What a simulation counts: integers only, each additive over chunks, threads and shards. Everything else is computed
// from them (and from the distributions) afterwards.
#pragma once

#include "sim/rounds/decode/output_classes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace specsim::decode {

constexpr std::size_t kPairBins = kRatioBins + 1;

// The draft's passes, where a block's nodes do not tell them.
struct PassCounts {
  PassCounts() = default;
  explicit PassCounts(std::size_t most) : rounds(most + 1, 0), rows((most + 1) * most, 0) {}
  [[nodiscard]] bool any() const { return !rounds.empty(); }
  [[nodiscard]] std::size_t most() const { return rounds.size() - 1; }
  // Adds a round: the rows of each of its passes.
  void add(std::span<const std::uint32_t> pass_rows);
  // The mean rows of each pass over the rounds of so many passes, of which there is one at least.
  [[nodiscard]] std::vector<double> mean_rows(std::size_t passes) const;
  bool operator==(const PassCounts&) const = default;

  std::vector<std::uint64_t> rounds;  // [passes]: rounds, cut ones too, that took so many
  std::vector<std::uint64_t> rows;    // [passes][most]: rows of each of their passes together
};

struct Counts {
  Counts() = default;
  // strata: groups of contexts whose output distribution is judged apart. classes: of output tokens, see output_classes.h. nodes:
  // the most that a block drafts; 0 where no blocks are drafted. passes: the most of a drafter whose passes are counted; else 0.
  Counts(int draft_length, int strata, int classes, int nodes = 0, int passes = 0);

  std::uint64_t rounds = 0;      // whole rounds
  std::uint64_t cut_rounds = 0;  // rounds that the end of a request cut short: they count in reached, accepted,
                                 // accepted_distribution, output and cut_emitted, and in nothing else
  std::uint64_t emitted = 0;
  std::uint64_t cut_emitted = 0;
  std::uint64_t sequences = 0;
  // Sums over sequences of rounds^2, rounds * emitted, emitted^2: sequences are independent, rounds of one need not be.
  std::uint64_t sum_rounds_squared = 0;
  std::uint64_t sum_rounds_emitted = 0;
  std::uint64_t sum_emitted_squared = 0;
  // Sums over sequences, of whole rounds: tries (judged positions), accepted draft tokens, and their squares and product.
  std::uint64_t sum_tries = 0;
  std::uint64_t sum_accepted = 0;
  std::uint64_t sum_tries_squared = 0;
  std::uint64_t sum_tries_accepted = 0;
  std::uint64_t sum_accepted_squared = 0;
  std::vector<std::uint64_t> reached;   // [draft_length]: rounds that judged this position
  std::vector<std::uint64_t> accepted;  // [draft_length]: rounds that accepted it
  std::vector<std::uint64_t>
      accepted_distribution;  // [strata][draft_length + 1]: rounds, cut ones too, by stratum at their start and accepted count
  std::vector<std::uint64_t> output;  // [strata][classes]: emitted tokens by class
  std::vector<std::uint64_t>
      pairs;  // [kPairBins][kPairBins]: neighbours in the emitted text by ratio bin, where there is one stratum
  std::vector<std::uint64_t> drafted;  // [nodes + 1]: rounds, cut ones too, by the number of nodes that they drafted
  PassCounts passes;                   // where the drafter's passes are counted

  void add(const Counts& other);
  // Adds one sequence to the sums: its whole rounds, how many of them accepted every draft, and the tokens that they emitted.
  void add_sequence(std::uint64_t whole_rounds, std::uint64_t full_rounds, std::uint64_t whole_emitted, bool drafts);
  // Adds emitted tokens, counted by (the bin of the token before, own class), to `output` and `pairs`: [kPairBins + 1][classes],
  // whose last row is of first tokens, which have none before them. One stratum alone.
  void add_neighbours(std::span<const std::uint64_t> counted, std::span<const std::uint8_t> bin_of_class);
  // Every field by name, for files and tests: f(name, index, value).
  template <class F>
  void each(F&& f) {
    each_of(*this, f);
  }
  template <class F>
  void each(F&& f) const {
    each_of(*this, f);
  }
  bool operator==(const Counts&) const = default;

 private:
  template <class Self, class F>
  static void each_of(Self& self, F& f) {
    const auto all = [&f](const char* name, auto& values) {
      for (std::size_t i = 0; i < values.size(); ++i) f(name, i, values[i]);
    };
    f("rounds", 0, self.rounds);
    f("cut_rounds", 0, self.cut_rounds);
    f("emitted", 0, self.emitted);
    f("cut_emitted", 0, self.cut_emitted);
    f("sequences", 0, self.sequences);
    f("sum_rounds_squared", 0, self.sum_rounds_squared);
    f("sum_rounds_emitted", 0, self.sum_rounds_emitted);
    f("sum_emitted_squared", 0, self.sum_emitted_squared);
    f("sum_tries", 0, self.sum_tries);
    f("sum_accepted", 0, self.sum_accepted);
    f("sum_tries_squared", 0, self.sum_tries_squared);
    f("sum_tries_accepted", 0, self.sum_tries_accepted);
    f("sum_accepted_squared", 0, self.sum_accepted_squared);
    all("reached", self.reached);
    all("accepted", self.accepted);
    all("accepted_law", self.accepted_distribution);
    all("output", self.output);
    all("pairs", self.pairs);
    all("drafted", self.drafted);
    all("passes", self.passes.rounds);
    all("pass_rows", self.passes.rows);
  }
};

}  // namespace specsim::decode
