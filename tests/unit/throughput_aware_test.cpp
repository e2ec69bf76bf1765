// Policy throughput_aware, by hand: windows of acceptance by position, the decay that replaces positions without drafts, and the
// margin by which a change has to win.
#include "sim/rounds/draft/length_policy.h"

#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace specsim::throughput_aware_test {

namespace {

std::unique_ptr<draft::LengthPolicy> policy(const std::string& parameters, const std::vector<double>& round_times, int batch) {
  Diagnostics diagnostics;
  const draft::PolicyEntry* const entry = draft::policies().find("throughput_aware");
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(parameters, "t", diagnostics);
  auto made =
      entry->make(config::read_arguments(section, entry->info.parameters, {}, "throughput_aware", diagnostics),
                  {.longest = static_cast<int>(round_times.size()) - 1, .round_times = round_times, .batch = batch}, diagnostics);
  diagnostics.throw_if_any();
  return made;
}

// Rounds of four sequences of which 3, 2 and 1 accept one, two and three tokens.
constexpr std::array kAccepted = {0, 1, 2, 3};

}  // namespace

TEST_CASE("throughput_aware begins at the middle of its range and does not move until its windows are full", "[policy]") {
  // By position .75, .5, .25. Round times 1 + .1 k: scores of 1, 2 and 3 are 1.75/1.1, 2.25/1.2 and 2.5/1.3
  // = 1.591, 1.875, 1.923.
  const auto one = policy("{candidates: [1, 2, 3], window: 6, every: 4, margin: 0}", {1.0, 1.1, 1.2, 1.3}, 4);
  draft::LengthPolicy::Memory memory = one->start();
  CHECK(memory.length == 2);
  CHECK(policy("{candidates: [1, 2, 3], first: 3}", {1.0, 1.1, 1.2, 1.3}, 4)->start().length == 3);
  for (int round = 1; round <= 7; ++round) {
    one->observe_batch(memory, 2, kAccepted);
    CHECK(memory.length == 2);  // after four rounds windows of six are not full; the next look comes after eight
  }
  one->observe_batch(memory, 2, kAccepted);
  // Position 3 was not drafted: .5 (.5 / .75) = 1/3, and 3 scores (2.25 + .333) / 1.3 = 1.987.
  CHECK(memory.length == 3);
}

TEST_CASE("throughput_aware does not move if another length wins by less than the margin", "[policy]") {
  // Ahead by 1.987 / 1.875 = 1.060.
  for (const auto& [margin, length] : {std::pair("0.05", 3), std::pair("0.07", 2)}) {
    const auto one = policy(std::string("{candidates: [2, 3], first: 2, window: 1, every: 1, margin: ") + margin + "}",
                            {1.0, 1.1, 1.2, 1.3}, 4);
    draft::LengthPolicy::Memory memory = one->start();
    one->observe_batch(memory, 2, kAccepted);
    CHECK(memory.length == length);
  }
}

TEST_CASE("throughput_aware forgets the positions beyond a shorter length", "[policy]") {
  // Times at which 3 pays only if all drafts are accepted.
  const auto one = policy("{candidates: [1, 3], first: 3, window: 2, every: 1, margin: 0}", {1.0, 1.0, 1.5, 2.0}, 1);
  draft::LengthPolicy::Memory memory = one->start();
  for (int round = 0; round < 2; ++round) one->observe(memory, 3, 0);
  CHECK(memory.length == 1);  // 1/2 against 1/1
  // One round accepted: the window of position 1 holds (0, 1), a mean of .5; positions 2 and 3 continue it: (1 + 1.5)/2 < 1.5/1.
  one->observe(memory, 1, 1);
  CHECK(memory.length == 1);
  one->observe(memory, 1, 1);
  // The mean is 1. If the zeros of positions 2 and 3 had been kept, 3 would score 2/2 = 1, and 2 twice that; now it scores 4/2 =
  // 2, not more.
  CHECK(memory.length == 1);
  const auto cheaper = one->with_round_times({1.0, 1.0, 1.4, 1.9});
  cheaper->observe(memory, 1, 1);
  CHECK(memory.length == 3);  // 4/1.9 against 2
}

TEST_CASE("throughput_aware accepts candidates that the drafter can draft, and refuses others", "[policy]") {
  CHECK(policy("{}", {1.0, 1.1, 1.2, 1.3}, 1)->start().length == 3);  // of 1 and 3
  CHECK(policy("{}", std::vector<double>(8, 1.0), 16)->sequences() == 16);
  CHECK_THROWS_AS(policy("{candidates: [3, 1]}", std::vector<double>(8, 1.0), 1), BadInput);
  CHECK_THROWS_AS(policy("{candidates: [9]}", std::vector<double>(8, 1.0), 1), BadInput);
}

}  // namespace specsim::throughput_aware_test
