// Trees whose tokens are chosen before the round: by rank, by the draft's own probabilities, or from the text. They are judged by
// the rule that follows the target's own sample as long as it is in the tree: a child is accepted with the target's mass on it.
//
// Distributions are an automaton's. If `transition` is not empty, the automaton's successors are ignored and the state moves by
// that matrix, whatever the tokens are.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/trees.h"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace specsim::theory {

struct ChosenTree {
  TreeShape tree;
  std::vector<int> tokens = {-1};  // [node]; siblings differ; the root's entry is unused
};

// Every position is guessed from the text before the block (Medusa, Cai et al. 2024). A child of rank r at depth d is the r-th
// likeliest token of the draft's distribution for depth d in `state` (ties: the lowest id first). Nodes whose token has
// probability 0 in that distribution are left out, together with their subtrees.
[[nodiscard]] ChosenTree guessed_tree(const TreeShape& shape, const Automaton& distributions, int state);

// draft_length: tokens on the longest path that tree_of returns.
[[nodiscard]] RoundKernel chosen_kernel(const Automaton& distributions, const StateMatrix& transition, int draft_length,
                                        const std::function<ChosenTree(int state)>& tree_of);

// Drafts from the text so far, a chain.
using TextDraft = std::function<std::vector<int>(std::span<const int> text)>;
// Prompt lookup (Saxena 2023): copies what followed the first occurrence of the text's last `longest` tokens, otherwise of fewer,
// down to `shortest`; at most draft_length tokens.
[[nodiscard]] TextDraft prompt_lookup_draft(int draft_length, int longest, int shortest);
// Suffix decoding (Oliaro et al. 2024, arXiv 2411.04975) on one path. Takes all places at which the longest repeated suffix of
// the text (at most `longest` tokens) occurs, and copies their most common continuation. Ties go to the continuation that the
// program below takes. The copy ends when its share of the places falls below `least`, or at factor times the suffix's length.
[[nodiscard]] TextDraft suffix_draft(int draft_length, int longest, double factor, double least);

// The same rule as Arctic Inference implements it. Strings of at most `depth` tokens are counted in the prompt and the text, and
// in past responses together with the text after the prompt. A suffix w of the text (not all of its last `depth` tokens) is
// continued by x_1, x_2, ..., each the most common one; ties go to the head of the node's children in the program's tree. The
// shares are s_i = product of count(w x_1 .. x_i) / count(w x_1 .. x_{i-1}). The draft goes on while s_i >= least, the string
// fits, and i is at most draft_length and factor |w| + offset. The suffix with the largest sum of shares wins, the longest one in
// a tie. The second collection wins only if its sum is larger than the first's.
struct SuffixScores {
  int draft_length = 1;
  int depth = 24;
  double factor = 1.0;
  double offset = 0.0;
  double least = 0.1;
  std::size_t prompt = 0;  // tokens
  std::vector<std::vector<int>> past;
};
[[nodiscard]] TextDraft suffix_scores_draft(const SuffixScores& rule);

// SAM Decoding (Hu et al. 2024, arXiv 2411.10666) without a second method. It uses the longest suffix of the text that occurs in
// the text without its last token, at its first place, if the suffix has at least `threshold` tokens; or a match in a document
// that is longer by more than `bias`. If no more than draft_length tokens follow the first place of the text's own match, a
// shorter suffix is used; the shortest one if that holds for all of them.
struct SamDraft {
  int draft_length = 1;
  int threshold = 1;
  double bias = 0.0;
  std::vector<std::vector<int>> corpus;
};
[[nodiscard]] TextDraft sam_draft(const SamDraft& rule);

// A sequence's rounds, over every text that they can emit. nullopt: more than 2^18 texts.
[[nodiscard]] std::optional<RunMoments> text_moments(const Automaton& distributions, const StateMatrix& transition,
                                                     std::span<const double> start, std::span<const int> prompt,
                                                     const TextDraft& draft, int rounds);

// The paths that a round drafts. `lengths`: of the text before each round; the last entry is this round's.
using HistoryDraft = std::function<std::vector<std::vector<int>>(std::span<const int> text, std::span<const int> lengths)>;

// Like text_moments(), for drafters with a memory.
[[nodiscard]] std::optional<RunMoments> history_moments(const Automaton& distributions, const StateMatrix& transition,
                                                        std::span<const double> start, std::span<const int> prompt,
                                                        const HistoryDraft& draft, int rounds);

// Lookahead decoding (Fu et al. 2024, arXiv 2402.02057) as its published program runs it. The window has `window` columns and
// ngram - 1 levels, and moves one column per round. There are no guesses before it is full. The pool keeps the newest `guesses`
// n-grams of each first token. Without a window (0) only the text fills the pool. The result is averaged over the automaton's
// start states and over the window's first tokens (from the prompt, or from the vocabulary if there is no prompt). nullopt: too
// many texts, or more than 2^12 first windows.
struct Lookahead {
  int window = 0;
  int ngram = 2;
  int guesses = 1;
  bool pool_from_text = true;
};
[[nodiscard]] std::optional<RunMoments> lookahead_moments(const Automaton& distributions, std::span<const double> start,
                                                          std::span<const int> prompt, const Lookahead& lookahead, int rounds);

}  // namespace specsim::theory
