// The counts of a simulation: integers only, each additive over chunks, threads and shards. Everything else is computed from them
// (and from the distributions) afterwards.
#pragma once

#include "sim/rounds/decode/output_classes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace specsim::decode {

constexpr std::size_t kPairBins = kRatioBins + 1;
// Groups of sequences are dealt out into this many parts. The spread over parts gives the error of figures that are not a ratio
// of two sums, such as a speedup whose rounds differ in time.
constexpr std::size_t kParts = 64;

// Counts of the draft's passes, for blocks whose number of nodes does not determine them.
struct PassCounts {
  PassCounts() = default;
  explicit PassCounts(std::size_t most) : rounds(most + 1, 0), rows((most + 1) * most, 0) {}
  [[nodiscard]] bool any() const { return !rounds.empty(); }
  [[nodiscard]] std::size_t most() const { return rounds.size() - 1; }
  // Adds a round: the rows of each of its passes.
  void add(std::span<const std::uint32_t> pass_rows);
  // The mean rows of each pass, over the rounds that took `passes` passes; there must be at least one such round.
  [[nodiscard]] std::vector<double> mean_rows(std::size_t passes) const;
  void add(const PassCounts& other);
  bool operator==(const PassCounts&) const = default;

  std::vector<std::uint64_t> rounds;  // [passes]: rounds, including cut ones, with this many passes
  std::vector<std::uint64_t> rows;    // [passes][most]: sum of the rows of each of their passes
};

// Totals over all rounds of a group. A group is a batch whose sequences a policy ties together (LengthPolicy::ties_sequences),
// otherwise one sequence; groups are independent of each other.
struct GroupTotals {
  std::uint64_t number = 0;  // index among the run's groups; groups with the same remainder modulo kParts form one part
  std::uint64_t sequences = 1;
  std::uint64_t rounds = 0;
  std::uint64_t full = 0;     // rounds whose accepted path ends at a leaf
  std::uint64_t longest = 0;  // rounds that accepted as many tokens as the longest path has
  std::uint64_t emitted = 0;
};

// Totals that decide how long the rounds of a part take and how many tokens they emit.
struct PartTotals {
  std::uint64_t rounds = 0;  // whole rounds
  std::uint64_t emitted = 0;
  std::uint64_t longest = 0;           // as in GroupTotals
  std::vector<std::uint64_t> drafted;  // as in Counts
  PassCounts passes;                   // as in Counts
};

struct Counts {
  Counts() = default;
  // strata: groups of contexts whose output distributions are judged separately. classes: of output tokens, see output_classes.h.
  // nodes: the most that a block drafts; 0 if no blocks are drafted. passes: the most draft passes of a round, if they are
  // counted; otherwise 0.
  Counts(int draft_length, int strata, int classes, int nodes = 0, int passes = 0);

  std::uint64_t rounds = 0;      // whole rounds
  std::uint64_t cut_rounds = 0;  // rounds that the end of a request cut short. They count only in reached, accepted,
                                 // accepted_distribution, output and cut_emitted.
  std::uint64_t emitted = 0;
  std::uint64_t cut_emitted = 0;
  std::uint64_t sequences = 0;
  std::uint64_t groups = 0;  // groups of sequences, independent of each other: see GroupTotals
  // Sums over groups of rounds^2, rounds * emitted, emitted^2: rounds of one group need not be independent.
  std::uint64_t sum_rounds_squared = 0;
  std::uint64_t sum_rounds_emitted = 0;
  std::uint64_t sum_emitted_squared = 0;
  // Sums over groups, for whole rounds: tries (judged positions), accepted draft tokens, and their squares and product.
  std::uint64_t sum_tries = 0;
  std::uint64_t sum_accepted = 0;
  std::uint64_t sum_tries_squared = 0;
  std::uint64_t sum_tries_accepted = 0;
  std::uint64_t sum_accepted_squared = 0;
  std::vector<std::uint64_t> reached;                // [draft_length]: rounds that judged this position
  std::vector<std::uint64_t> accepted;               // [draft_length]: rounds that accepted it
  std::vector<std::uint64_t> accepted_distribution;  // [strata][draft_length + 1]: rounds, including cut ones, by stratum at
                                                     // their start and accepted count
  std::vector<std::uint64_t> output;                 // [strata][classes]: emitted tokens by class
  std::vector<std::uint64_t>
      pairs;  // [kPairBins][kPairBins]: neighbours in the emitted text by ratio bin, if there is one stratum
  std::vector<std::uint64_t> drafted;       // [nodes + 1]: rounds, including cut ones, by their number of drafted nodes
  PassCounts passes;                        // only if the drafter's passes are counted
  std::vector<std::uint64_t> part_rounds;   // [kParts]: see PartTotals
  std::vector<std::uint64_t> part_emitted;  // [kParts]
  std::vector<std::uint64_t> part_longest;  // [kParts]
  std::vector<std::uint64_t> part_drafted;  // [kParts][nodes + 1]
  std::vector<PassCounts> part_passes;      // [kParts] if the drafter's passes are counted

  void add(const Counts& other);
  // Adds one group to the sums. `drafts`: whether rounds draft at all.
  void add_group(const GroupTotals& group, bool drafts);
  // Adds rounds of the group with this number, including cut ones, that drafted `nodes` nodes, in passes of these rows.
  void add_drafted(std::uint64_t group, std::size_t nodes, std::uint64_t rounds, std::span<const std::uint32_t> pass_rows = {});
  [[nodiscard]] PartTotals part(std::size_t index) const;
  // Adds emitted tokens, counted by (bin of the previous token, own class), to `output` and `pairs`. The shape is [kPairBins +
  // 1][classes]; the last row is for first tokens, which have no previous one. Only for one stratum.
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
    f("groups", 0, self.groups);
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
    all("part_rounds", self.part_rounds);
    all("part_emitted", self.part_emitted);
    all("part_longest", self.part_longest);
    all("part_drafted", self.part_drafted);
    const auto all_parts = [&f](const char* name, auto& parts, auto member) {
      std::size_t i = 0;
      for (auto& part : parts)
        for (auto& value : part.*member) f(name, i++, value);
    };
    all_parts("part_passes", self.part_passes, &PassCounts::rounds);
    all_parts("part_pass_rows", self.part_passes, &PassCounts::rows);
  }
};

}  // namespace specsim::decode
