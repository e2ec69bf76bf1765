#include "sim/experiments/audit/position_explorer.h"

#include "sim/experiments/audit/bit_space.h"
#include "sim/foundation/base/check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace specsim::audit {

namespace {

class Explorer {
 public:
  Explorer(const Subject& subject, bool share)
      : subject_(&subject), columns_(static_cast<std::size_t>(subject.vocab)), share_(share) {
    for (std::size_t i = 0; i < columns_; ++i) {
      probes_.push_back(column(i, columns_).first);
      probes_.push_back(column(i, columns_).last);
    }
  }

  // The round that starts in `context`.
  std::size_t root(std::uint32_t context) {
    Path path;
    path.start = context;
    path.context = context;
    return node(path);
  }
  std::vector<RoundNode> take_nodes() { return std::move(nodes_); }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }

 private:
  struct Path {
    std::uint32_t start = 0;
    std::uint32_t context = 0;  // here
    std::vector<Token> tokens;  // emitted before this position
    Script script;
  };

  Outcome run(const Path& path, const Script& script) {
    ++runs_;
    return subject_->run(path.start, script);
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
    for (const Group<std::vector<Outcome>>& drafted : draft_groups(outcome)) {
      const std::uint64_t bits = drafted.pieces.front().first;
      const std::vector<Piece> decisions = pieces_of(
          columns_, [&](std::uint64_t accept) { return outcome(bits, accept); }, accept_hints);
      std::vector<Group<Outcome>> decided;
      for (const Piece& piece : decisions) add_to(decided, outcome(bits, piece.first), piece);
      // The same token drawn from elsewhere in the table is decided on alike.
      for (const Piece& other : drafted.pieces)
        for (const Piece& piece : decisions)
          for (const std::uint64_t accept : {piece.first, piece.last})
            SPECSIM_CHECK(outcome(other.last, accept) == outcome(bits, accept), "draft numbers {} and {}, accept number {}", bits,
                          other.last, accept);
      for (const Group<Outcome>& decision : decided) {
        const long double probability = share(drafted.size) * share(decision.size);
        Script script = path.script;
        script.draft[position] = bits;
        script.accept[position] = decision.pieces.front().first;
        if (decision.effect.asked > position + 1)
          add_step(path, script, decision.effect, probability, built);
        else
          add_ends(path, script, probability, built);
      }
    }
  }

  // What a draft number does is what follows from it under every probing accept number.
  template <class OutcomeOf>
  std::vector<Group<std::vector<Outcome>>> draft_groups(const OutcomeOf& outcome) {
    const auto effect = [&](std::uint64_t draft) {
      std::vector<Outcome> all;
      for (const std::uint64_t probe : probes_) all.push_back(outcome(draft, probe));
      return all;
    };
    std::vector<Group<std::vector<Outcome>>> groups;
    for (std::size_t i = 0; i < columns_; ++i) {
      const Piece whole = column(i, columns_);
      const std::vector<Outcome> before = effect(whole.first);
      const std::vector<Outcome> after = effect(whole.last);
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

  void add_step(const Path& path, const Script& script, const Outcome& seen, long double probability, RoundNode& built) {
    const std::size_t position = path.tokens.size();
    SPECSIM_CHECK(seen.length > position, "{} tokens after position {}", seen.length, position);
    Path below = path;
    below.script = script;
    below.tokens.push_back(seen.emitted[position]);
    below.context = subject_->next(path.context, seen.emitted[position]);
    built.steps.push_back({seen.emitted[position], probability, node(below)});
  }

  // The final token's turn; `script` fixes all other random bits.
  void add_ends(const Path& path, const Script& script, long double probability, RoundNode& built) {
    const auto outcome = [&](std::uint64_t bits) {
      Script with_final = script;
      with_final.final_token = bits;
      return run(path, with_final);
    };
    const std::size_t position = path.tokens.size();
    for (const Piece& piece : pieces_of(columns_, outcome, final_hints_)) {
      const Outcome seen = outcome(piece.first);
      for (const std::uint64_t bits : {piece.first, piece.last}) {
        Script with_final = script;
        with_final.final_token = bits;
        subject_->check_unwatched(path.start, with_final);
      }
      SPECSIM_CHECK(seen.length >= position && std::equal(path.tokens.begin(), path.tokens.end(), seen.emitted.begin()),
                    "what position {} met is not what was emitted", position);
      RoundNode::End end;
      end.tokens.assign(seen.emitted.begin() + static_cast<std::ptrdiff_t>(position), seen.emitted.begin() + seen.length);
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

  const Subject* subject_;
  std::size_t columns_;
  bool share_;
  std::vector<std::uint64_t> probes_;
  std::vector<std::uint64_t> final_hints_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> known_;
  std::vector<RoundNode> nodes_;
  std::uint64_t runs_ = 0;
};

}  // namespace

RoundTree explore_positions(const Subject& subject, bool share) {
  Explorer explorer(subject, share);
  RoundTree rounds;
  for (std::uint32_t context = 0; context < subject.starts; ++context) rounds.roots.push_back(explorer.root(context));
  rounds.nodes = explorer.take_nodes();
  rounds.rounds_run = explorer.runs();
  return rounds;
}

}  // namespace specsim::audit
