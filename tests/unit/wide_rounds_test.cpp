// The lane of wide steps compared with a plain loop, with every instruction set that this processor supports.
#include "sim/rounds/decode/wide_rounds.h"
#include "sim/rounds/decode/wide_steps.h"
#include "tests/unit/plain_loop.h"

#include <hwy/targets.h>

namespace specsim::wide_rounds_test {

using namespace specsim::tests;

namespace {

// Restricts the processor's instructions to `target`; restores them at the end.
class PassingFor {
 public:
  explicit PassingFor(std::int64_t target) { choose(target); }
  PassingFor(const PassingFor&) = delete;
  PassingFor& operator=(const PassingFor&) = delete;
  ~PassingFor() { choose(0); }

 private:
  static void choose(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace

TEST_CASE("the wide lane equals a plain loop, by the instructions of every processor", "[hot_path]") {
  const std::int64_t all = hwy::SupportedTargets();
  int kinds = 0;
  int wide = 0;
  for (std::int64_t target = 1; target > 0; target <<= 1) {
    if ((all & target) == 0) continue;
    ++kinds;
    const PassingFor passing(target);
    wide += decode::wide::available() ? 1 : 0;
    INFO("target " << hwy::TargetName(target));
    for (const Process& process : {process_with("fixed", ""), process_with("iid", "pool: 3")})
      for (const int draft_length : {0, 1, 5, kMaxDraftLength}) {
        const ReadyCell ready(yaml_of(process, {"token", false, false}, draft_length));
        for (const unsigned total : {1U, 7U * 40 + 3, 256U * 7, 2U * 256 * 7 + 9})
          CHECK((compare(ready, 7, total) || total < 9 || draft_length == 0));
      }
    const ReadyCell by_depth(
        "{experiment: wide, rounds: 1000, pair: {vocab: 40, target: {family: zipf, exponent: 1}, draft: {from: target, "
        "transform: "
        "overlap, value: 0.7}}, context: {process: by_depth, drafts: [{from: target, transform: overlap, value: 0.95}, {from: "
        "target, transform: overlap, value: 0.8}, {from: target, transform: overlap, value: 0.6}]}, decode: {drafter: {kind: "
        "chain, draft_length: 6}, verifier: token}}");
    CHECK(compare(by_depth, 64, 64 * 256 + 1000));
  }
  CHECK(kinds > 0);
  CHECK((wide > 0 || kinds == 1));
}

TEST_CASE("the wide lane leaves uncounted quantities to others", "[hot_path]") {
  const auto wide = [](const std::string& yaml, std::uint32_t sequence_rounds) {
    const ReadyCell ready(yaml);
    const decode::RoundSetup setup{.tables = &*ready.prepared().tables,
                                   .process = ready.preparation().contexts->process.get(),
                                   .key = ready.draw_key(),
                                   .draft_length = static_cast<std::uint32_t>(ready.cell().draft_length()),
                                   .matches = std::get<decode::PositionJudging>(ready.preparation().judging).rule->matches(),
                                   .classes = ready.prepared().class_count,
                                   .bin_of_class = ready.prepared().bin_of_class.data(),
                                   .stratum = nullptr};
    return decode::runs_wide(setup, {0, 1000, sequence_rounds});
  };
  const std::string fixed = yaml_of(process_with("fixed", ""), {"token", false, false}, 4);
  CHECK(wide(fixed, 64) == decode::wide::available());
  CHECK(wide(fixed, 13107) == decode::wide::available());
  CHECK_FALSE(wide(fixed, 13108));  // 65,540 tokens
  CHECK_FALSE(wide(yaml_of(process_with("fixed", ""), {"sample_match", false, false}, 4), 64));
  CHECK(wide(yaml_of(process_with("iid", "pool: 3"), {"token", false, false}, 4), 64) == decode::wide::available());
  CHECK_FALSE(wide(yaml_of(process_with("markov", "order: 1"), {"token", false, false}, 4), 64));
}

}  // namespace specsim::wide_rounds_test
