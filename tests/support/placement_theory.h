// Lockstep batches, overlap and networks in closed form or by exact recursion, from independent and equally distributed rounds:
// of a chain by its acceptance, equal at every position, of another block by the distribution of its rounds' ends. Written from
// the description of the placements, without their code.
//
// Times are plain numbers in any unit. A prefill and the first token that it yields are the caller's: `tokens` are those that
// rounds emit.
#pragma once

#include <span>
#include <vector>

namespace specsim::theory {

// P(a round accepts exactly a drafts), a = 0 .. draft_length: alpha^a (1 - alpha), and alpha^draft_length at the end.
[[nodiscard]] std::vector<double> truncated_geometric(double alpha, int draft_length);

// The mean of the least, and of the largest, of `count` independent draws of such a distribution.
[[nodiscard]] double expected_minimum(std::span<const double> distribution, int count);
[[nodiscard]] double expected_maximum(std::span<const double> distribution, int count);

// Tokens of a round by accepted drafts: a + 1, or with `bonus` false draft_length after full acceptance too.
[[nodiscard]] double tokens_per_round(double alpha, int draft_length, bool bonus);

// P(more than r rounds are needed for `tokens` tokens), r = 0, 1, ... to the last possible one.
[[nodiscard]] std::vector<double> rounds_survival(double alpha, int draft_length, bool bonus, int tokens);
// E[rounds] of one sequence, by renewal: m(n) = 1 + sum over e of P(emitted = e) m(n - e).
[[nodiscard]] double expected_rounds(double alpha, int draft_length, bool bonus, int tokens);
// E[rounds] of the last of `sequences` independent ones: a lockstep batch ends with its straggler.
[[nodiscard]] double expected_straggler_rounds(double alpha, int draft_length, bool bonus, int tokens, int sequences);

// Drafting during verification on a second GPU. `draft`, `verify`: a block and a pass, whatever the batch.
struct Overlap {
  double round = 0.0;         // E[time from one verification to the next]
  double wasted_ahead = 0.0;  // E[discarded drafting ahead] per round
  double tokens = 0.0;        // E[emitted], of the batch
  [[nodiscard]] double rate() const { return tokens / round; }
};

// The ways a round can end if drafting continues after the path that the drafter expects to be accepted.
struct RoundEnd {
  double probability = 0.0;
  int emitted = 1;
  bool guessed = false;  // the accepted path is the guessed one: the next block is ready, and no token comes between
};
// For a chain the guess is the whole chain: right with alpha^draft_length.
[[nodiscard]] std::vector<RoundEnd> chain_ends(double alpha, int draft_length);

// A batch that never ends. With probability g^B every sequence guesses right and the next block is ready; with (1 - g)^B none
// does, and drafting restarts at once; otherwise the block of the others is finished first.
[[nodiscard]] Overlap overlapped_round(std::span<const RoundEnd> ends, double draft, double verify, int sequences);
// One sequence to its end: E[time from the first verification's start to the last token], by recursion.
[[nodiscard]] double overlapped_time(std::span<const RoundEnd> ends, double draft, double verify, int tokens);
// The same on one GPU whose speed both share equally, `passes` of `pass` per block; a running pass is completed.
[[nodiscard]] double shared_time(std::span<const RoundEnd> ends, int passes, double pass, double verify, int tokens);

// One round across a network, and its messages.
struct NetworkRound {
  int sequences = 1;
  int draft_length = 1;
  double draft = 0.0;    // seconds
  double verify = 0.0;   // seconds
  double latency = 0.0;  // seconds, one way
  double bytes_per_second = 1.0;
  double id_bytes = 4.0;
  double vocab = 0.0;  // 0: ids alone
  double probability_bits = 0.0;
};
[[nodiscard]] double network_bytes_up(const NetworkRound& round);
[[nodiscard]] double network_round_seconds(const NetworkRound& round);

}  // namespace specsim::theory
