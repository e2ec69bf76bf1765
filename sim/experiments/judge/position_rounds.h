// Theory of verifiers that judge a chain position by position. It depends only on acceptance by context and depth, and on how
// contexts move.
#pragma once

#include "sim/experiments/judge/cell_theory.h"
#include "sim/rounds/theory/judgement.h"

#include <functional>

namespace specsim::judge {

// Markov processes with more states get no theory, since its matrices would be too large.
constexpr int kMaxTheoryStates = 512;

// The action of a verifier at a position.
using PositionJudge = std::function<theory::Judgement(const verify::PositionDistributions&)>;

Coverage follow_positions(const spec::Cell& cell, PositionJudge judge);

}  // namespace specsim::judge
