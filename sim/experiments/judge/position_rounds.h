// Theory of verifiers that judge a chain position by position: acceptance by context and depth, and how the contexts move, are
// all that counts.
#pragma once

#include "sim/experiments/judge/cell_theory.h"
#include "sim/rounds/theory/judgement.h"

#include <functional>

namespace specsim::judge {

// Markov processes with more states than this get no theory: its matrices would be too large.
constexpr int kMaxTheoryStates = 512;

// What a verifier does at a position.
using PositionJudge = std::function<theory::Judgement(const verify::PositionDistributions&)>;

Coverage follow_positions(const spec::Cell& cell, PositionJudge judge);

}  // namespace specsim::judge
