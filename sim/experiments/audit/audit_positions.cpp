#include "sim/experiments/audit/audit_forms.h"
#include "sim/experiments/audit/bit_space.h"
#include "sim/experiments/audit/report.h"
#include "sim/experiments/audit/watched_round.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/staged_rounds.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace specsim::audit {

namespace {

// The random bits of a round.
struct Script {
  std::array<std::uint64_t, kMaxPositions> draft{};
  std::array<std::uint64_t, kMaxPositions> accept{};
  std::uint64_t final_token = 0;
};

// One round's random bits, read from a script, and the number of positions that requested bits.
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

// A round that was played from a script.
struct ScriptedRound {
  SeenRound seen;
  std::uint32_t asked = 0;  // positions that requested random bits
  bool operator==(const ScriptedRound&) const = default;
};

// Every possible round over positions. The hot loop runs with scripted random bits, and each branch gets the share of random
// numbers that the code really gives it.
class Explorer {
 public:
  // `share`: results found at a (context, position) are reused whenever the pair is met again.
  Explorer(WatchedRound& watched, const TargetText& text, int vocab, bool share)
      : watched_(watched), text_(text), columns_(static_cast<std::size_t>(vocab)), share_(share) {
    for (std::size_t i = 0; i < columns_; ++i) {
      probes_.push_back(column(i, columns_).first);
      probes_.push_back(column(i, columns_).last);
    }
  }

  RoundTree explore() {
    RoundTree rounds;
    for (std::uint32_t context = 0; context < text_.starts; ++context)
      rounds.roots.push_back(node({.start = context, .context = context, .tokens = {}, .script = {}}));
    rounds.nodes = std::move(nodes_);
    rounds.rounds_run = runs_;
    return rounds;
  }

 private:
  struct Path {
    std::uint32_t start = 0;
    std::uint32_t context = 0;  // here
    std::vector<Token> tokens;  // emitted before this position
    Script script;
  };

  ScriptedRound run(const Path& path, const Script& script) {
    ++runs_;
    ScriptedBits random_bits(script);
    ScriptedRound round{watched_.watch(path.start, random_bits), 0};
    round.asked = random_bits.asked();
    SPECSIM_CHECK(round.seen.emitted.size() <= kMaxEmitted, "{} tokens", round.seen.emitted.size());
    return round;
  }
  // The same round as production runs it, unwatched.
  void check_unwatched(const Path& path, const Script& script) {
    ScriptedBits random_bits(script);
    static_cast<void>(watched_.watch(path.start, random_bits));
    watched_.check_unwatched(path.start, random_bits);
  }

  std::size_t node(const Path& path) {
    const std::size_t position = path.tokens.size();
    const std::pair<std::uint32_t, std::size_t> key{path.context, position};
    if (share_)
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const std::size_t index = nodes_.size();
    nodes_.emplace_back();
    if (share_) known_[key] = index;
    RoundNode built;
    if (run(path, path.script).asked <= position)
      add_ends(path, path.script, 1.0L, built);
    else
      add_position(path, built);
    nodes_[index] = std::move(built);
    return index;
  }

  void add_position(const Path& path, RoundNode& built) {
    const std::size_t position = path.tokens.size();
    const auto outcome = [&](std::uint64_t draft, std::uint64_t accept) {
      Script script = path.script;
      script.draft[position] = draft;
      script.accept[position] = accept;
      return run(path, script);
    };
    std::vector<std::uint64_t> accept_hints;
    for (const Group<std::vector<ScriptedRound>>& drafted : draft_groups(outcome)) {
      const std::uint64_t bits = drafted.pieces.front().first;
      const std::vector<Piece> decisions = pieces_of(
          columns_, [&](std::uint64_t accept) { return outcome(bits, accept); }, accept_hints);
      std::vector<Group<ScriptedRound>> decided;
      for (const Piece& piece : decisions) add_to(decided, outcome(bits, piece.first), piece);
      // Other pieces of the table that draw the same token must lead to the same decisions.
      for (const Piece& other : drafted.pieces)
        for (const Piece& piece : decisions)
          for (const std::uint64_t accept : {piece.first, piece.last})
            SPECSIM_CHECK(outcome(other.last, accept) == outcome(bits, accept), "draft numbers {} and {}, accept number {}", bits,
                          other.last, accept);
      for (const Group<ScriptedRound>& decision : decided) {
        const long double probability = share(drafted.size) * share(decision.size);
        Script script = path.script;
        script.draft[position] = bits;
        script.accept[position] = decision.pieces.front().first;
        if (decision.effect.asked > position + 1)
          add_step(path, script, decision.effect.seen, probability, built);
        else
          add_ends(path, script, probability, built);
      }
    }
  }

  // The effect of a draft number is the outcome that follows under every probing accept number.
  template <class OutcomeOf>
  std::vector<Group<std::vector<ScriptedRound>>> draft_groups(const OutcomeOf& outcome) {
    const auto effect = [&](std::uint64_t draft) {
      std::vector<ScriptedRound> all;
      for (const std::uint64_t probe : probes_) all.push_back(outcome(draft, probe));
      return all;
    };
    std::vector<Group<std::vector<ScriptedRound>>> groups;
    for (std::size_t i = 0; i < columns_; ++i) {
      const Piece whole = column(i, columns_);
      const std::vector<ScriptedRound> before = effect(whole.first);
      const std::vector<ScriptedRound> after = effect(whole.last);
      const auto differ =
          static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin());
      const std::uint64_t probe = probes_[std::min(differ, probes_.size() - 1)];
      const auto at = [&](std::uint64_t draft) { return outcome(draft, probe); };
      std::vector<Piece> pieces = {whole};
      if (differ < probes_.size()) {
        const std::uint64_t flip = find_flip(whole, at, {});
        pieces = {{whole.first, flip - 1}, {flip, whole.last}};
      }
      for (const Piece& piece : pieces) {
        for (const std::uint64_t part : {std::uint64_t{1}, std::uint64_t{2}})
          SPECSIM_CHECK(at(piece.first + (piece.last - piece.first) / 3 * part) == at(piece.first),
                        "more than one flip between draft numbers {} and {}", piece.first, piece.last);
        add_to(groups, piece.first == whole.first ? before : after, piece);
      }
    }
    return groups;
  }

  void add_step(const Path& path, const Script& script, const SeenRound& seen, long double probability, RoundNode& built) {
    const std::size_t position = path.tokens.size();
    SPECSIM_CHECK(seen.emitted.size() > position, "{} tokens after position {}", seen.emitted.size(), position);
    const Token token = seen.emitted[position];
    Path below{path.start, text_.next(path.context, token), path.tokens, script};
    below.tokens.push_back(token);
    built.steps.push_back({token, probability, node(below)});
  }

  // Adds the ends of a round: every final token, with all other random bits fixed by `script`.
  void add_ends(const Path& path, const Script& script, long double probability, RoundNode& built) {
    const auto outcome = [&](std::uint64_t bits) {
      Script with_final = script;
      with_final.final_token = bits;
      return run(path, with_final);
    };
    const std::size_t position = path.tokens.size();
    for (const Piece& piece : pieces_of(columns_, outcome, final_hints_)) {
      const SeenRound seen = outcome(piece.first).seen;
      for (const std::uint64_t bits : {piece.first, piece.last}) {
        Script with_final = script;
        with_final.final_token = bits;
        check_unwatched(path, with_final);
      }
      SPECSIM_CHECK(seen.emitted.size() >= position && std::equal(path.tokens.begin(), path.tokens.end(), seen.emitted.begin()),
                    "what position {} met is not what was emitted", position);
      RoundNode::End end;
      end.tokens.assign(seen.emitted.begin() + static_cast<std::ptrdiff_t>(position), seen.emitted.end());
      end.next_start = seen.next_context;
      end.accepted = seen.accepted;
      end.judged = seen.judged;
      const auto same = std::find_if(built.ends.begin(), built.ends.end(), [&](const RoundNode::End& other) {
        return std::tie(other.tokens, other.next_start, other.accepted, other.judged) ==
               std::tie(end.tokens, end.next_start, end.accepted, end.judged);
      });
      end.probability = probability * share(piece.size());
      if (same == built.ends.end())
        built.ends.push_back(std::move(end));
      else
        same->probability += end.probability;
    }
  }

  WatchedRound& watched_;
  const TargetText& text_;
  std::size_t columns_;
  bool share_;
  std::vector<std::uint64_t> probes_;
  std::vector<std::uint64_t> final_hints_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> known_;
  std::vector<RoundNode> nodes_;
  std::uint64_t runs_ = 0;
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

  const RoundTree rounds = Explorer(watched, text, cell.vocab, options.share).explore();
  return report_on(cell.verifier().info.name, cell.vocab, cell.draft_length(), rounds, text, options);
}

}  // namespace specsim::audit
