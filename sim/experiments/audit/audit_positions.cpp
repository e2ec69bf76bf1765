#include "sim/experiments/audit/audit_forms.h"
#include "sim/experiments/audit/position_explorer.h"
#include "sim/experiments/audit/report.h"
#include "sim/experiments/audit/watched_round.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/staged_rounds.h"

#include <algorithm>
#include <vector>

namespace specsim::audit {

namespace {

// One round's random bits from a script, and how many positions asked for theirs.
class ScriptedBits final : public decode::BitSource {
 public:
  explicit ScriptedBits(const Script& script) : script_(&script) {}
  rng::BitsPair at(rng::Purpose purpose, std::uint32_t /*position*/, std::uint32_t /*word1*/,
                   std::uint64_t /*sequence*/) override {
    SPECSIM_CHECK(false, "a single number for purpose {}", static_cast<std::uint32_t>(purpose));
    return {};
  }
  void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t round, std::uint64_t /*first_sequence*/,
             const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) override {
    SPECSIM_CHECK(round == 0, "round {}", round);
    if (purpose == rng::Purpose::final_token) {
      std::fill_n(first, count, script_->final_token);
      std::fill_n(second, count, script_->final_token);
      return;
    }
    SPECSIM_CHECK(position < kMaxPositions && count == 1 && lanes[0] == 0, "position {}, {} lanes", position, count);
    asked_ = std::max(asked_, position + 1);
    first[0] = script_->draft[position];
    second[0] = script_->accept[position];
  }
  [[nodiscard]] std::uint32_t asked() const { return asked_; }

 private:
  const Script* script_;
  std::uint32_t asked_ = 0;
};

}  // namespace

AuditReport audit_positions(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                            const AuditOptions& options) {
  const decode::PreparationPlan plan = spec::plan_with_rule(cell, rule);
  TargetText text;
  const decode::Prepared prepared = decode::prepare(
      plan, [&](int, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) {
        if (depth == 0) text.targets.emplace_back(distributions.target.begin(), distributions.target.end());
      });
  const families::ContextProcess& process = *cell.contexts->process;
  text.next = [&](std::uint32_t context, Token token) { return process.moves() ? process.next(context, token) : context; };
  text.starts = text.targets.size();

  const rng::Key key = spec::draw_key(cell);
  WatchedRound watched(plan, prepared, key, cell.draft_length());
  if (loop) {
    const decode::RoundSetup setup{.tables = &*prepared.tables,
                                   .process = &watched.process(),
                                   .key = key,
                                   .draft_length = static_cast<std::uint32_t>(cell.draft_length()),
                                   .matches = rule.matches(),
                                   .classes = prepared.class_count,
                                   .bin_of_class = prepared.bin_of_class.data(),
                                   .stratum = prepared.stratum.empty() ? nullptr : prepared.stratum.data()};
    watched.set_loop([&loop, setup](const decode::ChunkPlan& chunk, decode::BitSource& random_bits, decode::Counts& counts,
                                    decode::RoundSink* sink) { loop(setup, chunk, random_bits, counts, sink); });
  }

  Subject subject;
  subject.vocab = cell.vocab;
  subject.starts = static_cast<std::uint32_t>(text.starts);
  subject.next = text.next;
  subject.run = [&](std::uint32_t context, const Script& script) {
    ScriptedBits random_bits(script);
    const SeenRound seen = watched.watch(context, random_bits);
    SPECSIM_CHECK(seen.emitted.size() <= kMaxEmitted, "{} tokens", seen.emitted.size());
    Outcome outcome;
    std::copy(seen.emitted.begin(), seen.emitted.end(), outcome.emitted.begin());
    outcome.length = static_cast<std::uint32_t>(seen.emitted.size());
    outcome.next_context = seen.next_context;
    outcome.accepted = seen.accepted;
    outcome.judged = seen.judged;
    outcome.asked = random_bits.asked();
    return outcome;
  };
  subject.check_unwatched = [&](std::uint32_t context, const Script& script) {
    ScriptedBits random_bits(script);
    static_cast<void>(watched.watch(context, random_bits));
    watched.check_unwatched(context, random_bits);
  };
  return report_on(cell.verifier().info.name, cell.vocab, cell.draft_length(), explore_positions(subject, options.share), text,
                   options);
}

}  // namespace specsim::audit
