// The distributions of every context of a cell, prepared for rules that judge blocks.
#pragma once

#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/verify/block_rule.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace specsim::decode {

class BlockTables {
 public:
  // depths: draft distributions per context; deeper positions use the last one. `rule` must outlive the tables.
  BlockTables(int vocab, int contexts, int depths, const draft::BlockDrafter& drafter, const verify::BlockRule& rule);
  // Upper bound of the bytes of all contexts, with a distribution for each pair of contexts if it is `joined`; distributions of
  // few tokens may need fewer plans.
  static std::size_t bytes_needed(std::size_t vocab, std::size_t contexts, std::size_t depths, bool joined,
                                  const draft::BlockDrafter& drafter, const verify::BlockRule& rule);

  // Adds the distributions of the next context and depth: context by context, and within each by depth. The classes of output
  // tokens given with depth 0 are kept for the context.
  void add(const verify::PositionDistributions& distributions, std::span<const std::uint16_t> class_of_token,
           math::AliasScratch& scratch);

  // Adds the distributions of a context for a draft that also knows the context before the block. Called after all add()s: by the
  // context before, then by context, then by depth.
  void add_joined(const verify::PositionDistributions& distributions, math::AliasScratch& scratch) {
    make(distributions, scratch, joined_);
  }

  struct Entry {
    explicit Entry(math::RatioTable table) : distributions(std::move(table)) {}
    math::RatioTable distributions;
    std::vector<std::unique_ptr<verify::NodePlan>> plans;  // [children]
    std::vector<draft::Ranked> likeliest;                  // the draft's likeliest tokens, as many as the drafter ranks
    double looked_entropy = 0.0;                           // nats, of the distribution that policies look at
    draft::LengthPolicy::TokenForecast forecast;           // on the token that follows
    double looked_certainty = 0.0;  // probability there of the one token that is always drafted; 0: several may be drafted
    Token target_argmax = 0;        // ties: the lower token
    // The probability that policies see for a drafted token.
    [[nodiscard]] double looked_at(Token drafted) const {
      return looked_certainty > 0.0 ? looked_certainty : distributions.draft(drafted);
    }
  };
  [[nodiscard]] const Entry& at(std::uint32_t context, int depth) const {
    return entries_[std::size_t{context} * depths_ + std::min(static_cast<std::size_t>(depth), depths_ - 1)];
  }
  // The entry after the block's first token, in a block that began in the context `before`.
  [[nodiscard]] const Entry& joined_at(std::uint32_t before, std::uint32_t context, int depth) const {
    if (joined_.empty()) return at(context, depth);
    const std::size_t contexts = entries_.size() / depths_;
    return joined_[(before * contexts + context) * depths_ + std::min(static_cast<std::size_t>(depth), depths_ - 1)];
  }
  // The target's likeliest tokens in a context, as many as the drafter asks for.
  [[nodiscard]] std::span<const Token> target_likeliest(std::uint32_t context) const {
    return std::span(target_likeliest_).subspan(context * target_ranks_, target_ranks_);
  }
  [[nodiscard]] std::size_t vocab() const { return vocab_; }
  [[nodiscard]] const std::uint16_t* classes(std::uint32_t context) const { return classes_.data() + context * vocab_; }

 private:
  Entry& make(const verify::PositionDistributions& distributions, math::AliasScratch& scratch, std::vector<Entry>& entries);

  std::size_t vocab_;
  std::size_t depths_;
  std::size_t ranks_;
  std::size_t target_ranks_;
  bool ranks_unaltered_;
  std::vector<int> fan_outs_;  // numbers of children that a node of the tree can have
  bool without_replacement_;
  const verify::BlockRule* rule_;
  std::vector<Entry> entries_;
  std::vector<Entry> joined_;  // empty if the draft knows only the context
  std::vector<std::uint16_t> classes_;
  std::vector<Token> target_likeliest_;  // [context][target_ranks_]
};

}  // namespace specsim::decode
