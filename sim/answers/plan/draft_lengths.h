// Draft lengths by the number of sequences that decode together: which to choose where each number has a best one of its own.
#pragma once

#include <string>
#include <vector>

namespace specsim::plan {

// Sequences in a step, from and to, and their draft length.
struct LengthRange {
  int from = 1;
  int to = 1;
  int draft_length = 0;
};

// Whether lengths may rise along the numbers of sequences. The best one falls where a dense target's passes turn from memory to
// arithmetic. It rises where few sequences do not share what they read: experts (vLLM pull request 32374 says so of its tables),
// and tiles of a kernel that takes over from one that works row by row.
enum class Rise { never, once };

// A draft length for each place along a grid of sequences, such that the sum of the logarithms of lost speed is least among
// lengths that never rise. With Rise::once they rise at one place where otherwise some place would lose a twentieth of its speed
// more. lost: [place][draft length], share of the best length's speed at the place that the length loses; 1: it is not offered.
std::vector<int> choose_lengths(const std::vector<std::vector<double>>& lost, Rise rise);

// Goes on with the last range, or begins another where the length changes. Numbers of sequences rise from call to call.
void add_to_ranges(std::vector<LengthRange>& ranges, int sequences, int draft_length);
// The ranges of lengths for 1, 2, 3, ... sequences.
std::vector<LengthRange> ranges_of(const std::vector<int>& lengths);

// [[1, 8, 4], [9, 64, 2]], as vLLM takes it for num_speculative_tokens_per_batch_size.
std::string ranges_text(const std::vector<LengthRange>& ranges);

}  // namespace specsim::plan
