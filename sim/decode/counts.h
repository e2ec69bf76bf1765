// What a simulation counts: integers only, each additive over chunks, threads and shards. Everything else is computed
// from them (and from the laws) afterwards.
#pragma once

#include "sim/decode/output_classes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::decode {

constexpr std::size_t kPairBins = kRatioBins + 1;

struct Counts {
  // strata: groups of contexts whose output law is judged apart; classes: see output_classes.h.
  Counts() = default;
  Counts(int draft_length, int strata, int classes);

  std::uint64_t rounds = 0;      // whole rounds
  std::uint64_t cut_rounds = 0;  // rounds that the end of a request cut short; in nothing below but cut_emitted and classes
  std::uint64_t emitted = 0;
  std::uint64_t cut_emitted = 0;
  std::uint64_t sequences = 0;
  // Sums over sequences of rounds^2, rounds * emitted, emitted^2: sequences are independent, rounds of one need not be.
  std::uint64_t sum_rounds_squared = 0;
  std::uint64_t sum_rounds_emitted = 0;
  std::uint64_t sum_emitted_squared = 0;
  std::vector<std::uint64_t> reached;        // [draft_length]: rounds that judged this position
  std::vector<std::uint64_t> accepted;       // [draft_length]: rounds that accepted it
  std::vector<std::uint64_t> accepted_law;   // [strata][draft_length + 1]: whole rounds by stratum at their start and accepted count
  std::vector<std::uint64_t> output;         // [strata][classes]: emitted tokens by class
  std::vector<std::uint64_t> pairs;          // [kPairBins][kPairBins]: neighbours in the emitted text by ratio bin, where there is one stratum

  void add(const Counts& other);
  // Every field by name, for files and tests: f(name, index, value).
  template <class F>
  void each(F&& f) {
    f("rounds", 0, rounds), f("cut_rounds", 0, cut_rounds), f("emitted", 0, emitted), f("cut_emitted", 0, cut_emitted);
    f("sequences", 0, sequences), f("sum_rounds_squared", 0, sum_rounds_squared), f("sum_rounds_emitted", 0, sum_rounds_emitted);
    f("sum_emitted_squared", 0, sum_emitted_squared);
    each_of("reached", reached, f), each_of("accepted", accepted, f), each_of("accepted_law", accepted_law, f);
    each_of("output", output, f), each_of("pairs", pairs, f);
  }
  bool operator==(const Counts&) const = default;

 private:
  template <class F>
  static void each_of(const char* name, std::vector<std::uint64_t>& values, F&& f) {
    for (std::size_t i = 0; i < values.size(); ++i) f(name, i, values[i]);
  }
};

}  // namespace specsim::decode
