// The experiments that plan and compare make if no config is given.
#pragma once

#include "sim/experiments/spec/values.h"

#include <cstdint>
#include <vector>

namespace specsim::plan {

// Defaults of both commands.
constexpr const char* kDefaultHardware = "h100-sxm";
constexpr const char* kDefaultTarget = "llama-3.1-8b";
constexpr const char* kDefaultDraft = "llama-3.2-1b";
constexpr std::int64_t kDefaultContext = 2048;  // tokens cached by each sequence
constexpr double kDefaultAlpha = 0.7;           // acceptance of the compared methods, at temperature 1
constexpr double kComparedSigma = 8.0;          // standard deviation of the target's logits there, median over contexts
constexpr double kComparedSigmaSpread = 0.4;    // standard deviation of its logarithm over contexts
constexpr double kComparedNoiseSpread = 0.7;    // standard deviation, over contexts, of the logarithm of the draft's noise
constexpr std::int64_t kComparedVocab = 1000;

// One cell with a cost and without a simulation: a plan without a config gets its acceptance from an option.
spec::ExperimentValues planning_experiment();

// Methods of one draft model at batches 1, 8 and 32, on distributions that reproduce published acceptance (results/language):
// normal logits for the target, the same with noise for the draft, both with a separate scale in each of 256 contexts. The mean
// acceptance over contexts is `alpha` at temperature 1. At another temperature, 0 to 1, the same two models are sampled at that
// temperature. At 0 drafts are chosen and not drawn, so trees consist of the draft's likeliest tokens.
spec::ExperimentValues methods_to_compare(double alpha, double temperature);

// Chains and the best trees of several sizes for acceptance[depth][rank], the probability that the draft's candidate of this
// rank is the accepted one given that its parent is, at batches 1, 8 and 32. `one_pass`: chains of drafter parallel, one pass
// per round. `drawn`: the table describes drawn drafts, so the chains are drawn too, and a tree's ranks are siblings in the
// order of drawing.
spec::ExperimentValues methods_on_table(const std::vector<std::vector<double>>& acceptance, bool one_pass, bool drawn = false);

// The best trees of several sizes with fewer levels than the table, which need fewer passes of the draft.
std::vector<spec::MethodValues> shallow_trees(const std::vector<std::vector<double>>& acceptance);

// For methods_to_compare(): the standard deviation of the noise on the draft's logits (median over contexts) that gives
// acceptance `alpha`, .01 to .99, at temperature 1 and a vocabulary of kComparedVocab.
double noise_of_draft(double alpha);

}  // namespace specsim::plan
