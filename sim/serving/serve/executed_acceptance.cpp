#include "sim/experiments/run/runner.h"
#include "sim/foundation/base/check.h"
#include "sim/hardware/placement/accepted.h"
#include "sim/hardware/placement/single_rounds.h"
#include "sim/serving/serve/acceptance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// A place of an executed text: the round that begins there.
struct Place {
  std::uint16_t drafted = 0;  // tokens, if rounds draft different numbers
  std::uint8_t accepted = 0;
};

// Rounds of one draft length, by text position.
struct ExecutedRounds {
  explicit ExecutedRounds(const placement::AcceptedCounts& counts)
      : draft_length(counts.draft_length),
        texts(counts.of_sequence.size()),
        uneven(!counts.drafted.empty()),
        counts_passes(!counts.pass_rows.empty()),
        passes(counts.pass_rows.size()) {
    double rounds = 0.0;
    std::map<std::vector<std::uint16_t>, std::uint32_t> known;
    reached.resize(static_cast<std::size_t>(draft_length) + 1);
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (std::size_t round = 0; round < counts.of_sequence[i].size(); ++round) {
        const std::uint8_t accepted = counts.of_sequence[i][round];
        Place own;
        std::uint32_t kind = 0;
        if (uneven) own.drafted = counts.drafted[i][round];
        if (counts_passes) {
          const std::vector<std::uint16_t>& rows = counts.pass_rows[i][round];
          const auto [at, fresh] = known.insert({rows, static_cast<std::uint32_t>(pass_rows.size())});
          if (fresh) pass_rows.emplace_back(rows.begin(), rows.end());
          kind = at->second;
          add_passes(own.drafted, rows);
        }
        // The round starts after the last token of the round before and accepts this many drafts; one that starts a token later
        // accepts one fewer.
        for (int rest = accepted; rest >= 0; --rest) {
          own.accepted = static_cast<std::uint8_t>(rest);
          texts[i].push_back(own);
          if (counts_passes) passes[i].push_back(kind);
        }
        rounds += 1.0;
        for (std::size_t place = 1; place <= accepted; ++place) reached[place] += 1.0;
      }
    for (double& share : reached) share = rounds > 0.0 ? share / rounds : 0.0;
    for (auto& [drafted, rounds_and_rows] : counted) {
      const double share = 1.0 / static_cast<double>(rounds_and_rows.first);
      for (double& rows : rounds_and_rows.second) rows *= share;
    }
  }
  void add_passes(std::uint16_t drafted, const std::vector<std::uint16_t>& rows) {
    auto& [times, sum] = counted[drafted];
    ++times;
    sum.resize(std::max(sum.size(), rows.size()), 0.0);
    for (std::size_t pass = 0; pass < rows.size(); ++pass) sum[pass] += rows[pass];
  }
  // The place of the request after this many tokens, of which the first comes with the prompt; nullptr beyond the executed text.
  [[nodiscard]] const Place* at(arrivals::RequestId request, std::uint32_t emitted) const {
    const std::vector<Place>& text = texts[request % texts.size()];
    const std::size_t place = emitted - std::size_t{1};
    return place < text.size() ? &text[place] : nullptr;
  }
  int draft_length;
  std::vector<std::vector<Place>> texts;           // [sequence][tokens after the first]
  bool uneven;                                     // rounds draft different numbers of tokens
  bool counts_passes;                              // rounds take different numbers of passes
  std::vector<std::vector<std::uint32_t>> passes;  // as `texts`, if counts_passes: index of the round's passes
  std::vector<std::vector<double>> pass_rows;      // [index][pass]: rows; each kind of round once
  std::vector<double> reached;                     // [place]: share of rounds that accept at least this many
  // For a drafter whose passes are counted, by the tokens that a round drafts: the number of such rounds, and the mean rows of
  // each pass.
  std::map<std::uint16_t, std::pair<std::uint64_t, std::vector<double>>> counted;
};

placement::AcceptedCounts record(const spec::Cell& cell, std::size_t requests, std::uint32_t tokens) {
  const decode::Prepared tables = run::prepare_cell(cell, nullptr, true);
  return placement::record_accepted({spec::plan_of(cell), &tables, spec::draw_key(cell), cell.draft_length()},
                                    decode::Bonus::emitted, std::min(requests, kMostExecuted), tokens);
}

// Rounds of chains, played when a server verifies them.
class PlayedRounds final : public Rounds {
 public:
  explicit PlayedRounds(const placement::RoundSource& source)
      : rounds_(source), longest_(static_cast<std::size_t>(source.draft_length)) {}
  std::span<const draft::LengthPolicy::TokenForecast> forecasts(arrivals::RequestId request, std::uint32_t emitted,
                                                                std::uint32_t drafted) override {
    Text& text = text_of(request, emitted);
    text.forecasts.resize(longest_);
    rounds_.draft(text.state, text.forecasts);
    return std::span(text.forecasts).first(std::min<std::size_t>(drafted, longest_));
  }
  std::uint32_t play(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t verified) override {
    return rounds_.play(text_of(request, emitted).state, verified);
  }
  void forget(arrivals::RequestId request) override { texts_.erase(request); }

 private:
  struct Text {
    placement::SingleRounds::State state;
    std::vector<draft::LengthPolicy::TokenForecast> forecasts;
  };
  // The request's text, written by its rounds up to output token number `emitted`; the first token comes before them.
  Text& text_of(arrivals::RequestId request, std::uint32_t emitted) {
    const auto [at, fresh] = texts_.try_emplace(request);
    if (fresh) at->second.state = rounds_.start(request % kMostExecuted);
    SPECSIM_CHECK(at->second.state.text_position + 1 == emitted, "request {}: {} tokens of {} rounds, and {} emitted", request,
                  at->second.state.text_position, at->second.state.round, emitted);
    return at->second;
  }
  placement::SingleRounds rounds_;
  std::size_t longest_;
  std::unordered_map<arrivals::RequestId, Text> texts_;
};

// The cell and its tables, from which rounds are played.
struct PlayedCell {
  PlayedCell(const spec::Cell& played, int draft_length)
      : cell(spec::to_be_cut(played, draft_length)), tables(run::prepare_cell(cell, nullptr, true)) {}
  [[nodiscard]] placement::RoundSource source() const {
    return {spec::plan_of(cell), &tables, spec::draw_key(cell), cell.draft_length()};
  }
  spec::Cell cell;
  decode::Prepared tables;
};

// Rounds that were executed before the server runs; rounds that are cut are played during the run.
class ExecutedAcceptance : public Acceptance {
 public:
  // `played`: the source of rounds that are cut; nullptr: there are none.
  explicit ExecutedAcceptance(std::unique_ptr<const PlayedCell> played) : played_(std::move(played)) {}
  [[nodiscard]] bool knows(draft::Confidence confidence) const final {
    return played_ != nullptr || confidence == draft::Confidence::history;
  }
  [[nodiscard]] std::unique_ptr<Rounds> rounds() const final {
    return played_ != nullptr ? std::make_unique<PlayedRounds>(played_->source()) : Acceptance::rounds();
  }

 private:
  std::unique_ptr<const PlayedCell> played_;
};

// Chains whose length the server's policy chooses: each executed length, or the longest one, cut.
class ExecutedChains final : public ExecutedAcceptance {
 public:
  ExecutedChains(std::vector<ExecutedRounds> by_length, std::unique_ptr<const PlayedCell> played)
      : ExecutedAcceptance(std::move(played)), by_length_(std::move(by_length)) {}
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const Place* const place = of_length(static_cast<int>(drafted)).at(request, emitted);
    return place != nullptr ? std::min<std::uint32_t>(place->accepted, drafted) : 0;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    const ExecutedRounds& rounds = of_length(draft_length);
    double tokens = 1.0;
    for (int place = 1; place <= std::min(draft_length, rounds.draft_length); ++place)
      tokens += rounds.reached[static_cast<std::size_t>(place)];
    return tokens;
  }

 private:
  // The shortest of at least this length.
  [[nodiscard]] const ExecutedRounds& of_length(int draft_length) const {
    std::size_t at = 0;
    while (at + 1 < by_length_.size() && by_length_[at].draft_length < draft_length) ++at;
    return by_length_[at];
  }
  std::vector<ExecutedRounds> by_length_;  // in increasing order of length
};

// Trees, and chains whose length decode's own policy chooses.
class ExecutedBlocks final : public ExecutedAcceptance {
 public:
  ExecutedBlocks(ExecutedRounds rounds, const draft::BlockDrafter& drafter, bool is_chain,
                 std::unique_ptr<const PlayedCell> played)
      : ExecutedAcceptance(std::move(played)), rounds_(std::move(rounds)), is_chain_(is_chain) {
    const int most = drafter.shape().nodes;
    for (int nodes = 0; nodes <= most; ++nodes) {
      const draft::BlockWork work = drafter.work(nodes);
      rows_.push_back(static_cast<std::uint32_t>(std::llround(std::ceil(work.verified_rows))) - 1);
      if (passes_.size() <= rows_.back()) passes_.resize(rows_.back() + std::size_t{1});
      const auto counted = rounds_.counted.find(static_cast<std::uint16_t>(nodes));
      passes_[rows_.back()] = counted != rounds_.counted.end() ? counted->second.second : work.pass_rows;
    }
    if (drafter.tree() == nullptr || is_chain) return;
    levels_.assign(static_cast<std::size_t>(drafter.tree()->height()) + 1, 0);
    for (const tokens::Tree::Node& node : drafter.tree()->nodes)
      if (node.depth > 0) ++levels_[static_cast<std::size_t>(node.depth)];
    for (std::size_t depth = 1; depth < levels_.size(); ++depth) levels_[depth] += levels_[depth - 1];
  }
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const Place* const place = rounds_.at(request, emitted);
    if (place == nullptr) return 0;
    const std::uint32_t accepted = place->accepted;
    if (drafted >= block(request, emitted)) return accepted;
    if (is_chain_) return std::min(accepted, drafted);
    std::uint32_t depth = 0;
    while (depth + 1 < levels_.size() && levels_[depth + 1] <= drafted) ++depth;
    return std::min(accepted, depth);
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double tokens = 1.0;
    if (draft_length == 0) return tokens;
    for (std::size_t place = 1; place < rounds_.reached.size(); ++place) tokens += rounds_.reached[place];
    return tokens;
  }
  [[nodiscard]] bool uneven() const override { return true; }
  [[nodiscard]] bool offers(int draft_length) const override { return draft_length == 0 || draft_length == rounds_.draft_length; }
  [[nodiscard]] std::uint32_t drafted(arrivals::RequestId request, std::uint32_t emitted, int draft_length) const override {
    return draft_length > 0 ? block(request, emitted) : 0;
  }
  [[nodiscard]] std::uint32_t widest(int draft_length) const override {
    return draft_length > 0 ? *std::max_element(rows_.begin(), rows_.end()) : 0;
  }
  [[nodiscard]] const std::vector<double>* passes(std::uint32_t drafted) const override {
    return &passes_[std::min<std::size_t>(drafted, passes_.size() - 1)];
  }
  [[nodiscard]] const std::vector<double>* passes_of(arrivals::RequestId request, std::uint32_t emitted,
                                                     std::uint32_t drafted) const override {
    if (!rounds_.counts_passes || emitted == 0 || drafted != block(request, emitted)) return passes(drafted);
    const std::vector<std::uint32_t>& own = rounds_.passes[request % rounds_.passes.size()];
    return emitted <= own.size() ? &rounds_.pass_rows[own[emitted - 1]] : passes(drafted);
  }

 private:
  // Rows of the block that is drafted after this many tokens.
  [[nodiscard]] std::uint32_t block(arrivals::RequestId request, std::uint32_t emitted) const {
    const Place* const place = rounds_.uneven ? rounds_.at(request, emitted) : nullptr;
    return place != nullptr ? rows_[place->drafted] : rows_.back();
  }
  ExecutedRounds rounds_;
  bool is_chain_;
  std::vector<std::uint32_t> rows_;          // [tokens drafted]: rows verified besides the sequence's own
  std::vector<std::vector<double>> passes_;  // [verified rows]
  std::vector<std::uint32_t> levels_;        // [depth]: tokens down to it, if every round drafts the same tree
};

// Whether the server's policy chooses the length of chains itself.
bool cuts_chains(const spec::Cell& cell) { return cell.drafts_chains() && cell.policy() == nullptr; }

}  // namespace

bool executed_supports(const spec::Cell& cell, int draft_length) {
  return cuts_chains(cell) ? draft_length <= cell.draft_length() : draft_length == cell.draft_length() || draft_length == 0;
}

bool executed_cuts(const spec::Cell& cell) { return cuts_chains(cell) || spec::can_cut(cell); }

bool executed_has_confidence(const spec::Cell& cell, draft::Confidence confidence) {
  return confidence == draft::Confidence::history || spec::can_cut(cell);
}

bool drafts_without_passes(const spec::Cell& cell) {
  if (!cell.judges_blocks()) return false;
  const draft::BlockDrafter& drafter = *cell.block()->drafter;
  for (int nodes = 1; nodes <= drafter.shape().nodes; ++nodes)  // some drafters copy their longest blocks and draft the others
    if (!drafter.work(nodes).pass_rows.empty()) return false;
  return true;
}

std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, const std::vector<int>& lengths, std::size_t requests,
                                                std::uint32_t tokens, bool cut) {
  const bool plays = cut && !lengths.empty() && spec::can_cut(cell);
  std::unique_ptr<const PlayedCell> played = plays ? std::make_unique<const PlayedCell>(cell, lengths.back()) : nullptr;
  if (!cuts_chains(cell)) {
    const draft::BlockDrafter& drafter = *cell.block()->drafter;
    return std::make_unique<ExecutedBlocks>(ExecutedRounds(record(cell, requests, tokens)), drafter, cell.block()->is_chain,
                                            std::move(played));
  }
  std::vector<ExecutedRounds> by_length;
  if (cell.judges_blocks())
    for (const int length : lengths)
      if (length < cell.draft_length()) by_length.emplace_back(record(spec::with_draft_length(cell, length), requests, tokens));
  by_length.emplace_back(record(cell, requests, tokens));
  return std::make_unique<ExecutedChains>(std::move(by_length), std::move(played));
}

}  // namespace specsim::serve
