#include "sim/experiments/audit/audit_forms.h"
#include "sim/experiments/audit/every_choice.h"
#include "sim/experiments/audit/report.h"
#include "sim/experiments/audit/watched_round.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/fresh_blocks.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace specsim::audit {

namespace {

// The start of a round of a block: a context, and the text if the drafter reads it.
struct BlockStart {
  std::uint32_t context = 0;
  std::vector<Token> text;          // emitted so far
  std::vector<std::size_t> rounds;  // if the drafter has memory: the text's length before each round
  std::vector<Token> drawn;         // Memory::drawn()
  bool operator<(const BlockStart& other) const {
    return std::tie(context, text, rounds, drawn) < std::tie(other.context, other.text, other.rounds, other.drawn);
  }
};

// Numbered starts in the order in which they are found; the contexts come first.
class BlockStarts {
 public:
  std::uint32_t index_of(BlockStart start) {
    const auto [at, fresh] = known_.try_emplace(start, static_cast<std::uint32_t>(starts_.size()));
    if (fresh) starts_.push_back(std::move(start));
    return at->second;
  }
  [[nodiscard]] std::size_t size() const { return starts_.size(); }
  [[nodiscard]] BlockStart at(std::size_t index) const { return starts_[index]; }  // a copy, since starts may be added

 private:
  std::map<BlockStart, std::uint32_t> known_;
  std::vector<BlockStart> starts_;
};

// The simulation gets the random bits of enumerated rounds and must play the same rounds. The first kReplayedAll rounds from
// each context are replayed, then one in so many.
constexpr std::uint64_t kReplayedAll = 256;
constexpr std::uint64_t kReplayedEvery = 61;

void replay(const EveryChoice& choices, std::uint32_t context, const decode::BlockRound::RoundResult& outcome, bool fresh,
            WatchedRound& watched) {
  for (const bool highest : {false, true}) {
    ReplayedBits bits;
    choices.script(highest, bits);
    const SeenRound seen = watched.watch(context, bits);
    SPECSIM_CHECK(seen.emitted == outcome.emitted && seen.accepted + 1 == outcome.emitted.size() &&
                      (fresh || seen.next_context == outcome.next_context),
                  "a round from context {} differs between random bits and choices", context);
    watched.check_unwatched(context, bits);
  }
}

// Every round from every start that the joint distribution can reach, and the starts that follow.
class BlockRounds {
 public:
  // `contexts`: how many contexts a simulation can start in. `companion`: nullptr if no rows are shared.
  BlockRounds(const spec::Cell& cell, const verify::BlockRule& rule, const families::ContextProcess& process,
              std::size_t contexts, decode::BlockRound& round, decode::BlockRound* companion, WatchedRound& watched)
      : cell_(cell),
        rule_(rule),
        process_(process),
        drafter_(*cell.block()->drafter),
        contexts_(contexts),
        round_(round),
        companion_(companion),
        watched_(watched),
        policy_(cell.policy() != nullptr && cell.policy()->part->shares_rows() ? cell.policy()->part.get() : nullptr),
        policy_memory_(cell.policy() != nullptr ? cell.policy()->part->start()
                                                : draft::LengthPolicy::Memory{.length = cell.draft_length()}) {}

  RoundTree enumerate() {
    for (std::uint32_t context = 0; context < contexts_; ++context) {
      starts_.index_of({context, {}, {}, {}});
      memories_.push_back(drafter_.start());
    }
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const BlockStart start = starts_.at(i);
      rounds_.roots.push_back(i);
      RoundNode& node = rounds_.nodes.emplace_back();
      if (start.text.size() < tokens_ && (!fresh_ || start.context < tokens_))  // else beyond the joint distribution
        add_ends(i, start, node);
    }
    return std::move(rounds_);
  }

 private:
  using Memory = std::shared_ptr<draft::BlockDrafter::Memory>;
  // Emitted tokens, the next context, whether the accepted path ends at a leaf, and Memory::drawn().
  using End = std::tuple<std::vector<Token>, std::uint32_t, bool, std::vector<Token>>;
  struct Ended {
    long double probability = 0.0L;
    Memory memory;  // the drafter's memory after the round
  };

  // Plays a round with every possible choice.
  std::map<End, Ended> every_end(std::size_t index, const BlockStart& start) {
    std::vector<Token> text(process_.prompt().begin(), process_.prompt().end());
    text.insert(text.end(), start.text.begin(), start.text.end());
    std::map<End, Ended> ends;
    Memory memory;
    EveryChoice choices(cell_.vocab, EveryChoice::Finals::by_depth);
    std::uint64_t played = 0;
    do {
      if (memories_[index] != nullptr) memory = memories_[index]->copy();
      const decode::BlockRound::Start setting{0, start.context, 0, text, policy_memory_.length, memory.get(), &policy_memory_};
      const decode::BlockRound::RoundResult& outcome =
          policy_ != nullptr ? play_shared(setting, choices) : round_.play(rule_, setting, choices);
      Ended& end = ends[{outcome.emitted, outcome.next_context, outcome.whole,
                         memory != nullptr ? memory->drawn() : std::vector<Token>()}];
      end.probability += choices.probability();
      end.memory = memory;
      if (companion_ == nullptr && index < contexts_ && (played < kReplayedAll || played % kReplayedEvery == 0))
        replay(choices, start.context, outcome, fresh_, watched_);
      ++played;
      if (++rounds_.rounds_run > kAuditMaxBlockRounds)
        throw BadInput(cell_.places.drafter,
                       fmt::format("a block has more than {} outcomes, allowed in an audit: fewer nodes or a smaller vocabulary",
                                   kAuditMaxBlockRounds));
    } while (choices.advance());
    return ends;
  }

  // The same under a policy that shares rows between this sequence and a companion. The companion's block is drafted too, in
  // every possible way. The budget's memory is that of the batch's first round.
  const decode::BlockRound::RoundResult& play_shared(const decode::BlockRound::Start& setting, EveryChoice& choices) {
    const auto length = static_cast<std::size_t>(cell_.draft_length());
    std::vector<draft::LengthPolicy::TokenForecast> forecasts(2 * length);
    const std::span all(forecasts);
    std::vector<draft::LengthPolicy::Chain> chains;
    if (companion_ != nullptr) {
      companion_->draft(setting, choices, all.last(length));
      chains.push_back({1, all.last(length)});
    }
    round_.draft(setting, choices, all.first(length));
    chains.push_back({0, all.first(length)});
    std::vector<int> verified(chains.size());
    draft::LengthPolicy::Memory memory = policy_memory_;
    policy_->share(memory, chains, verified);
    return round_.judge(rule_, verified.back());
  }

  void add_ends(std::size_t index, const BlockStart& start, RoundNode& node) {
    for (const auto& [end, ended] : every_end(index, start)) {
      const auto& [emitted, context, whole, drawn] = end;
      BlockStart next{context, {}, {}, drawn};
      if (drafter_.shape().reads_text) {
        next.text = start.text;
        next.text.insert(next.text.end(), emitted.begin(), emitted.end());
        if (next.text.size() > tokens_) next.text.resize(tokens_);
      }
      if (ended.memory != nullptr) {
        next.rounds = start.rounds;
        next.rounds.push_back(start.text.size());
      }
      const auto accepted = static_cast<std::uint32_t>(emitted.size()) - 1;
      const std::uint32_t judged = cell_.verifier().demands.joint ? 0 : accepted + (whole ? 0U : 1U);
      node.ends.push_back({emitted, starts_.index_of(std::move(next)), accepted, judged, ended.probability});
      memories_.resize(starts_.size(), ended.memory);
    }
  }

  const spec::Cell& cell_;
  const verify::BlockRule& rule_;
  const families::ContextProcess& process_;
  const draft::BlockDrafter& drafter_;
  std::size_t contexts_;
  decode::BlockRound& round_;
  decode::BlockRound* companion_;  // a sequence that shares rows with this one; nullptr: none
  WatchedRound& watched_;
  const draft::LengthPolicy* policy_;  // one that shares rows, or nullptr
  draft::LengthPolicy::Memory policy_memory_;
  std::size_t tokens_ = static_cast<std::size_t>(cell_.draft_length()) + 1;  // emitted tokens that the joint distribution covers
  bool fresh_ = cell_.contexts->process->shape().contexts == 0;
  BlockStarts starts_;
  std::vector<std::shared_ptr<const draft::BlockDrafter::Memory>> memories_;  // [start]
  RoundTree rounds_;
};

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
  // With fresh distributions, the text positions of the first sequence count as contexts, up to the last one that a round
  // starting within the joint distribution can reach. A simulation starts at the first position.
  const bool fresh = cell.contexts->process->shape().contexts == 0;
  std::optional<decode::FreshBlocks> window;
  if (fresh) {
    const int positions = 2 * (cell.draft_length() + 1);
    window.emplace(plan, positions, decode::FreshBlocks::Rounds::from_any).draw(0, 0);
    for (int i = 0; i < positions; ++i) target_text.targets.push_back(window->target(static_cast<std::size_t>(i)));
  }
  const families::ContextProcess& process = fresh ? window->process() : *cell.contexts->process;
  target_text.next = [&](std::uint32_t context, Token token) { return process.moves() ? process.next(context, token) : context; };
  target_text.starts = fresh ? 1 : target_text.targets.size();
  const rng::Key key = spec::draw_key(cell);
  decode::BlockRound round(fresh ? window->tables() : *prepared.blocks, process, key, *judging.drafter, judging.policy);
  WatchedRound watched(plan, prepared, key, cell.draft_length());
  std::optional<decode::BlockRound> companion;
  if (judging.policy != nullptr && judging.policy->shares_rows() && judging.policy->sequences() > 1)
    companion.emplace(*prepared.blocks, process, key, *judging.drafter, judging.policy);
  const RoundTree rounds =
      BlockRounds(cell, rule, process, target_text.starts, round, companion ? &*companion : nullptr, watched).enumerate();
  return report_on(cell.verifier().info.name, cell.vocab, cell.draft_length(), rounds, target_text, options);
}

}  // namespace specsim::audit
