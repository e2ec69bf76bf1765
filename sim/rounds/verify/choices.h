// The random choices of a round, one at a time. All random choices of a verifier go through here or through Block, so an exact
// enumeration can replace the random numbers and see every outcome.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/rounds/verify/accept.h"

#include <cstdint>

namespace specsim::verify {

// A distribution that one token is drawn from.
class Pickable {
 public:
  Pickable() = default;
  Pickable(const Pickable&) = delete;
  Pickable& operator=(const Pickable&) = delete;
  virtual ~Pickable() = default;
  [[nodiscard]] virtual Token pick(std::uint64_t bits) const = 0;
};

class ChoiceSource {
 public:
  // The purpose of a drawn token.
  enum class Use {
    token,          // a draft token
    redraft,        // a draft token's second draw, after the first gave an elder sibling's token
    target_sample,  // the target's own token, compared with a draft token; the round goes on while the two are equal
    child,          // one of a node's children
    final_token,    // the token after the accepted ones
  };

  ChoiceSource() = default;
  ChoiceSource(const ChoiceSource&) = delete;
  ChoiceSource& operator=(const ChoiceSource&) = delete;
  virtual ~ChoiceSource() = default;
  // `node` of the drafted tree, at depth `depth`: the drafted node itself, or the node before the picked token.
  virtual Token pick(Use use, int node, int depth, const Pickable& distribution) = 0;
  virtual bool accept(int node, Odds odds) = 0;
};

}  // namespace specsim::verify
