#include "sim/experiments/audit/audit_forms.h"
#include "sim/experiments/audit/every_choice.h"
#include "sim/experiments/audit/report.h"
#include "sim/experiments/audit/watched_round.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/fresh_round.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace specsim::audit {

// The text positions of the first sequence count as contexts. A round from each of them is enumerated as far as the joint
// distribution reaches. A simulation starts at the first position, so only its rounds are replayed with their random bits.
AuditReport audit_fresh(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options) {
  constexpr std::uint64_t kSequence = 0;
  const decode::PreparationPlan plan = spec::plan_with_rule(cell, rule);
  const auto tokens = static_cast<std::uint32_t>(cell.draft_length()) + 1;
  const decode::DistributionDrawer drawer(plan);
  TargetText text;
  for (std::uint32_t position = 0; position < tokens; ++position)
    drawer.target(0, decode::fresh_context(kSequence, position), text.targets.emplace_back());
  text.next = [](std::uint32_t position, Token /*token*/) { return position + 1; };
  text.starts = 1;

  const decode::Prepared prepared = decode::prepare(plan, {});
  WatchedRound watched(plan, prepared, spec::draw_key(cell), cell.draft_length());
  decode::FreshRound round(plan, cell.draft_length(), true);
  RoundTree rounds;
  for (std::uint32_t position = 0; position < tokens; ++position) {
    rounds.roots.push_back(position);
    RoundNode& node = rounds.nodes.emplace_back();
    std::map<std::pair<std::vector<Token>, int>, long double> ends;
    EveryChoice choices(cell.vocab, EveryChoice::Finals::one);
    do {
      const decode::FreshRound::RoundResult& outcome = round.play(kSequence, position, choices);
      ends[{outcome.emitted, outcome.accepted}] += choices.probability();
      ++rounds.rounds_run;
      for (const bool highest : {false, true}) {
        if (position > 0) break;
        ReplayedBits bits;
        choices.script(highest, bits);
        const SeenRound seen = watched.watch(0, bits);
        SPECSIM_CHECK(seen.emitted == outcome.emitted && static_cast<int>(seen.accepted) == outcome.accepted,
                      "a round over fresh distributions differs between random bits and choices");
        watched.check_unwatched(0, bits);
      }
    } while (choices.advance());
    for (const auto& [end, probability] : ends) {
      const auto accepted = static_cast<std::uint32_t>(end.second);
      const std::uint32_t judged = std::min(accepted + 1, tokens - 1);
      const std::uint32_t next = std::min(position + static_cast<std::uint32_t>(end.first.size()), tokens);
      node.ends.push_back({end.first, next, accepted, judged, probability});
    }
  }
  rounds.roots.push_back(tokens);  // beyond the joint distribution
  rounds.nodes.emplace_back();
  return report_on(cell.verifier().info.name, cell.vocab, cell.draft_length(), rounds, text, options);
}

}  // namespace specsim::audit
