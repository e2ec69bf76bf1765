// A partition of the vocabulary on which the output distribution is judged. It is fixed beforehand from the distributions, and is
// fine where a leak of the draft distribution would be visible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::decode {

// A class is one of: a bin of draft(x)/target(x) (kRatioBins bins with fixed edges); the tokens that the target cannot emit; or,
// if the cell has only one distribution, one of its kTopTokens likeliest tokens.
constexpr int kRatioBins = 16;
constexpr int kImpossible = kRatioBins;
constexpr int kFirstTopToken = kRatioBins + 1;
constexpr int kTopTokens = 64;
constexpr int kMaxClasses = kFirstTopToken + kTopTokens;

struct OutputClasses {
  int count = kFirstTopToken;              // kFirstTopToken, or more with top tokens
  std::vector<std::uint16_t> of_token;     // [vocab]
  std::vector<double> target_mass;         // [count]: the target's probability of each class
  std::vector<double> draft_mass;          // [count]: the draft's
  std::vector<std::uint8_t> bin_of_class;  // [count]: the ratio bin (or kImpossible) of a class
};

// with_top_tokens: give each of the likeliest tokens its own class. Both distributions sum to 1.
OutputClasses output_classes(std::span<const double> target, std::span<const double> draft, bool with_top_tokens);

}  // namespace specsim::decode
