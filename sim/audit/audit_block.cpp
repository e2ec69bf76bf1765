#include "sim/audit/audit_forms.h"
#include "sim/audit/every_choice.h"
#include "sim/audit/report.h"
#include "sim/audit/watched_round.h"
#include "sim/base/check.h"
#include "sim/decode/fresh_blocks.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace specsim::audit {

namespace {

// Where a round of a block starts: a context, and the text where the drafter reads it.
struct BlockStart {
  std::uint32_t context = 0;
  std::vector<Token> text;          // emitted so far
  std::vector<std::size_t> rounds;  // where a drafter remembers: how long the text was before each round
  bool operator<(const BlockStart& other) const {
    return std::tie(context, text, rounds) < std::tie(other.context, other.text, other.rounds);
  }
};

// Starts by number, in the order in which they are met: the contexts first.
class BlockStarts {
 public:
  std::uint32_t index_of(BlockStart start) {
    const auto [at, fresh] = known_.try_emplace(start, static_cast<std::uint32_t>(starts_.size()));
    if (fresh) starts_.push_back(std::move(start));
    return at->second;
  }
  [[nodiscard]] std::size_t size() const { return starts_.size(); }
  [[nodiscard]] BlockStart at(std::size_t index) const { return starts_[index]; }  // a copy: more may be added

 private:
  std::map<BlockStart, std::uint32_t> known_;
  std::vector<BlockStart> starts_;
};

// The simulation must play the enumerated rounds when it is given their random bits: all of the first ones from each context, and
// one in so many after them.
constexpr std::uint64_t kReplayedAll = 256;
constexpr std::uint64_t kReplayedEvery = 61;

void replay(const EveryChoice& choices, std::uint32_t context, const decode::BlockRound::Outcome& outcome, bool fresh,
            WatchedRound& watched) {
  for (const bool highest : {false, true}) {
    ReplayedBits bits;
    choices.script(highest, bits);
    const SeenRound seen = watched.watch(context, bits);
    SPECSIM_CHECK(seen.emitted == outcome.emitted && seen.accepted + 1 == outcome.emitted.size() &&
                      (fresh || seen.next_context == outcome.next_context),
                  "a round from context {} goes otherwise with random bits than with choices", context);
    watched.check_unwatched(context, bits);
  }
}

}  // namespace

AuditReport audit_block(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options) {
  decode::PreparationPlan plan = spec::plan_of(cell);
  auto& judging = std::get<decode::BlockJudging>(plan.judging);
  judging.rule = &rule;
  TargetText target_text;
  const decode::Prepared prepared = decode::prepare(
      plan, [&](int, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) {
        if (depth == 0) target_text.targets.emplace_back(distributions.target.begin(), distributions.target.end());
      });
  const draft::BlockDrafter& drafter = *cell.block()->drafter;
  const bool reads_text = drafter.shape().reads_text;
  const bool joint = cell.verifier().demands.joint;
  const std::size_t tokens = static_cast<std::size_t>(cell.draft_length()) + 1;
  // Of fresh distributions the first sequence's text positions stand for contexts, as far as a round can see that begins within
  // the joint distribution; a simulation starts at the first of them.
  const bool fresh = cell.contexts->process->shape().contexts == 0;
  std::optional<decode::FreshBlocks> window;
  if (fresh) {
    const int positions = 2 * static_cast<int>(tokens);
    window.emplace(plan, positions, decode::FreshBlocks::Rounds::from_any).draw(0, 0);
    for (int i = 0; i < positions; ++i) target_text.targets.push_back(window->target(static_cast<std::size_t>(i)));
  }
  const families::ContextProcess& process = fresh ? window->process() : *cell.contexts->process;
  target_text.next = [&](std::uint32_t context, Token token) { return process.moves() ? process.next(context, token) : context; };
  target_text.starts = fresh ? 1 : target_text.targets.size();
  const draft::LengthPolicy::Memory policy_memory =
      cell.policy() != nullptr ? cell.policy()->part->start() : draft::LengthPolicy::Memory{.length = cell.draft_length()};
  const int longest = policy_memory.length;

  BlockStarts starts;
  std::vector<std::shared_ptr<const draft::BlockDrafter::Memory>> memories;  // [start]
  for (std::uint32_t context = 0; context < target_text.starts; ++context) {
    starts.index_of({context, {}, {}});
    memories.push_back(drafter.start());
  }

  const rng::Key key = spec::draw_key(cell);
  decode::BlockRound round(fresh ? window->tables() : *prepared.blocks, process, key, drafter, judging.policy);
  WatchedRound watched(plan, prepared, key, cell.draft_length());
  RoundTree rounds;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const BlockStart start = starts.at(i);
    rounds.roots.push_back(i);
    RoundNode& node = rounds.nodes.emplace_back();
    if (start.text.size() >= tokens || (fresh && start.context >= tokens)) continue;  // beyond the joint distribution
    std::vector<Token> text(process.prompt().begin(), process.prompt().end());
    text.insert(text.end(), start.text.begin(), start.text.end());
    std::map<std::tuple<std::vector<Token>, std::uint32_t, bool>, long double> ends;
    EveryChoice choices(cell.vocab, EveryChoice::Finals::by_depth);
    std::shared_ptr<draft::BlockDrafter::Memory> memory;
    std::uint64_t played = 0;
    do {
      if (memories[i] != nullptr) memory = memories[i]->copy();
      const decode::BlockRound::Outcome& outcome =
          round.play(rule, {0, start.context, 0, text, longest, memory.get(), &policy_memory}, choices);
      ends[{outcome.emitted, outcome.next_context, outcome.whole}] += choices.probability();
      if (i < target_text.starts && (played < kReplayedAll || played % kReplayedEvery == 0))
        replay(choices, start.context, outcome, fresh, watched);
      ++played;
      if (++rounds.rounds_run > kAuditMaxBlockRounds)
        throw BadInput(cell.places.drafter,
                       fmt::format("a block has more than {} outcomes, allowed in an audit: fewer nodes or a smaller vocabulary",
                                   kAuditMaxBlockRounds));
    } while (choices.advance());
    for (const auto& [end, probability] : ends) {
      const auto& [emitted, context, whole] = end;
      BlockStart next{context, {}, {}};
      if (reads_text) {
        next.text = start.text;
        next.text.insert(next.text.end(), emitted.begin(), emitted.end());
        if (next.text.size() > tokens) next.text.resize(tokens);
      }
      if (memory != nullptr) {
        next.rounds = start.rounds;
        next.rounds.push_back(start.text.size());
      }
      const auto accepted = static_cast<std::uint32_t>(emitted.size()) - 1;
      const std::uint32_t judged = joint ? 0 : accepted + (whole ? 0U : 1U);
      node.ends.push_back({emitted, starts.index_of(std::move(next)), accepted, judged, probability});
      memories.resize(starts.size(), memory);  // a block is chosen before anything is drawn: the same whatever came out
    }
  }
  return report_on(cell.verifier().info.name, cell.vocab, cell.draft_length(), rounds, target_text, options);
}

}  // namespace specsim::audit
