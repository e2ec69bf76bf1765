// Draft lengths by the number of sequences that decode together, chosen from the best length of each number.
#pragma once

#include <string>
#include <vector>

namespace specsim::plan {

// A range of sequences in a step, from and to, and its draft length.
struct LengthRange {
  int from = 1;
  int to = 1;
  int draft_length = 0;
};

// Whether lengths may rise with the number of sequences. The best length falls where a dense target's passes turn from
// memory-bound to compute-bound. It rises where few sequences do not share their reads: experts (vLLM pull request 32374 states
// this for its tables), and tiles of a kernel that takes over from one that works row by row.
enum class Rise { never, once };

// A draft length for each place along a grid of sequences. Minimises the sum of the logarithms of lost speed among lengths that
// never rise. With Rise::once, lengths rise at one place if some place would otherwise lose a twentieth more of its speed. lost:
// [place][draft length], share of the best length's speed at the place that the length loses; 1: it is not offered.
std::vector<int> choose_lengths(const std::vector<std::vector<double>>& lost, Rise rise);

// Extends the last range, or begins another if the length changes. Numbers of sequences rise from call to call.
void add_to_ranges(std::vector<LengthRange>& ranges, int sequences, int draft_length);
// The ranges of lengths for 1, 2, 3, ... sequences.
std::vector<LengthRange> ranges_of(const std::vector<int>& lengths);

// [[1, 8, 4], [9, 64, 2]], the form of vLLM's num_speculative_tokens_per_batch_size.
std::string ranges_text(const std::vector<LengthRange>& ranges);

}  // namespace specsim::plan
