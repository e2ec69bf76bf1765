// The kernels that judge a round's drafts: how many stay, and the final token after them.
#pragma once

#include "sim/lab/cuda/draw.h"

namespace specsim::cuda {

enum class AcceptanceRule : unsigned { token, greedy, block };

// The drafts of a round, to be judged by one of three rules:
//   token   accept while u draft(x) < target(x); then the residual max(target - draft, 0), or the target after the last
//   greedy  while x is the target's one token; then the target
//   block   Sun et al., arXiv 2403.10444: p_i = min(1, p_{i-1} target/draft); the longest prefix that accepts with p at the end,
//           Z / (Z + 1 - p_i) before it, Z the mass of max(p_i target - draft, 0); then that residual
struct Trial {
  static constexpr unsigned kMostDrafts = 64;
  const double* target = nullptr;   // [sequence][draft_length + 1][vocab]
  const double* drafted = nullptr;  // [draft token][sequence][vocab]
  unsigned vocab = 0;
  unsigned draft_length = 0;
  AcceptanceRule rule = AcceptanceRule::token;
  Sequences sequences;
  unsigned count = 0;

  // In shared memory: the drafts' own probabilities and the values derived from them.
  struct Marks {
    double target[kMostDrafts];
    double drafted[kMostDrafts];
    double stays[kMostDrafts + 1];  // p_i, block
    std::uint32_t last;             // accepted drafts; for rule block, those with a p that is not 0
    std::uint32_t whole;            // all of them
  };

  // Number of positions at which the final token may follow: block may end anywhere, the other rules' end is known at once.
  [[nodiscard]] unsigned ends() const { return rule == AcceptanceRule::block ? draft_length + 1 : 1; }
  SPECSIM_KERNEL std::uint32_t* drafts(unsigned s) const {
    return sequences.text + s * sequences.text_stride + sequences.lengths[s] + 1;
  }
  SPECSIM_KERNEL double decision(unsigned s, unsigned place) const {
    return to_unit(random_bits_at(kDraftAccept | place, sequences.rounds[s], sequences.ids[s], sequences.key).second);
  }
  // Fills `marks`; must be called by all threads of the block.
  SPECSIM_KERNEL void mark(const Thread& thread, unsigned s, Marks* marks) const {
    if (thread.index() < draft_length) {
      const std::uint32_t token = drafts(s)[thread.index()];
      marks->target[thread.index()] = distribution(s, thread.index())[token];
      marks->drafted[thread.index()] = draft_distribution(s, thread.index())[token];
    }
    thread.sync();
    if (thread.index() == 0) {
      constexpr double kNever = 1e-300;  // 1 / p stays finite
      unsigned last = 0;
      bool stays = true;
      marks->stays[0] = 1.0;
      while (stays && last < draft_length) {
        if (rule == AcceptanceRule::block) {
          const double p = marks->stays[last] * marks->target[last] / marks->drafted[last];
          marks->stays[last + 1] = p < 1.0 ? p : 1.0;
          stays = marks->stays[last + 1] > kNever;
        } else {
          stays = rule == AcceptanceRule::greedy ? marks->target[last] > 0.5
                                                 : decision(s, last) * marks->drafted[last] < marks->target[last];
        }
        if (stays) ++last;
      }
      marks->last = last;
      marks->whole = last == draft_length ? 1 : 0;
    }
    thread.sync();
  }
  // The cut c of the final token's weights max(target - c draft, 0) after this many accepted drafts.
  SPECSIM_KERNEL double cut(unsigned accepts, const Marks& marks) const {
    if (accepts == draft_length || rule == AcceptanceRule::greedy) return 0.0;
    return rule == AcceptanceRule::block ? 1.0 / marks.stays[accepts] : 1.0;
  }
  SPECSIM_KERNEL double weight(unsigned s, unsigned accepts, double cut, unsigned x) const {
    const double whole = distribution(s, accepts)[x];
    if (!(cut > 0.0)) return whole;
    const double rest = whole - cut * draft_distribution(s, accepts)[x];
    return rest > 0.0 ? rest : 0.0;
  }

 private:
  SPECSIM_KERNEL const double* distribution(unsigned s, unsigned place) const {
    return target + (static_cast<std::size_t>(s) * (draft_length + 1) + place) * vocab;
  }
  SPECSIM_KERNEL const double* draft_distribution(unsigned s, unsigned place) const {
    return drafted + (static_cast<std::size_t>(place) * count + s) * vocab;
  }
};

// Sums of the final token's weights in the form that draws need, at each possible end: one block per slice.
struct ResidualSums {
  static constexpr unsigned kThreads = kSliceThreads;
  Trial trial;
  double* sums = nullptr;  // [sequence][end][scans_of(vocab)]

  [[nodiscard]] Grid grid() const { return {slices_of(trial.vocab), trial.ends(), trial.count, kThreads, sizeof(Room)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned s = thread.block_z();
    auto* const room = reinterpret_cast<Room*>(thread.shared());
    trial.mark(thread, s, &room->marks);
    unsigned accepts = room->marks.last;
    unsigned ends = 1;
    if (trial.rule == AcceptanceRule::block) {
      accepts = thread.block_y();
      ends = trial.draft_length + 1;
      if (accepts > room->marks.last) return;  // these sums are not needed
    }
    const double cut = trial.cut(accepts, room->marks);
    const auto [begin, end] = slice_of(thread, trial.vocab);
    double own[kSlicePart];
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) {
      const unsigned x = begin + thread.index() + k * kThreads;
      own[k] = x < end ? trial.weight(s, accepts, cut, x) : 0.0;
    }
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kSlicePart; ++k) room->weights[thread.index() + k * kThreads] = own[k];
    thread.sync();
    const unsigned first = begin / kScan;
    const unsigned last = (end + kScan - 1) / kScan;
    scan_ways(
        thread, kThreads, trial.vocab, first, last, [room, begin = begin](unsigned x) { return room->weights[x - begin]; },
        room->ways);
    thread.sync();
    double* const to = sums + (static_cast<std::size_t>(s) * ends + thread.block_y()) * scans_of(trial.vocab) + first;
    if (thread.index() < last - first) to[thread.index()] = fold_ways(room->ways + 8 * thread.index());
  }

 private:
  struct Room {
    Trial::Marks marks;
    double weights[kSlice];
    double ways[kSlice / kScan * 8];
  };
};

// Judges the drafts of every sequence, writes the final token after the accepted ones, and advances the sequence.
struct Accept {
  static constexpr unsigned kThreads = 256;
  Trial trial;
  const double* sums = nullptr;       // what ResidualSums made
  std::uint32_t* accepted = nullptr;  // [sequence]

  [[nodiscard]] Grid grid() const { return {trial.count, 1, 1, kThreads, sizeof(Room)}; }

  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned s = thread.block_x();
    const Sequences& sequences = trial.sequences;
    auto* const room = reinterpret_cast<Room*>(thread.shared());
    trial.mark(thread, s, &room->marks);
    const bool block = trial.rule == AcceptanceRule::block;
    const unsigned accepts = block ? longest(thread, s, room) : room->marks.last;
    const double cut = trial.cut(accepts, room->marks);
    if (!block) take_sums(thread, s, 0, room);
    const double u =
        to_unit(random_bits_at(kFinalToken | (block ? accepts : 0), sequences.rounds[s], sequences.ids[s], sequences.key).first);
    const std::uint32_t token = pick(
        thread, kThreads, trial.vocab, u, [&](unsigned x) { return trial.weight(s, accepts, cut, x); }, &room->draw);
    thread.sync();
    if (thread.index() != 0) return;
    trial.drafts(s)[accepts] = token;
    accepted[s] = accepts;
    sequences.lengths[s] += accepts + 1;
    ++sequences.rounds[s];
  }

 private:
  struct Room {
    DrawRoom draw;
    Trial::Marks marks;
  };
  static_assert(sizeof(Room) <= 48 * 1024);

  SPECSIM_KERNEL void take_sums(const Thread& thread, unsigned s, unsigned end, Room* room) const {
    const unsigned ends = trial.rule == AcceptanceRule::block ? trial.draft_length + 1 : 1;
    const unsigned blocks = scans_of(trial.vocab);
    const double* const from = sums + (static_cast<std::size_t>(s) * ends + end) * blocks;
    thread.sync();
    for (unsigned b = thread.index(); b < blocks; b += kThreads) room->draw.sums[b] = from[b];
    thread.sync();
  }
  // Accepted drafts of rule block, from the longest prefix down; uses its sums.
  SPECSIM_KERNEL unsigned longest(const Thread& thread, unsigned s, Room* room) const {
    unsigned accepts = room->marks.last;
    for (; accepts > 0; --accepts) {
      take_sums(thread, s, accepts, room);
      const double stays = room->marks.stays[accepts];
      const double u = trial.decision(s, accepts - 1);
      if (room->marks.whole != 0 && accepts == room->marks.last) {
        if (u < stays) return accepts;
        continue;
      }
      double z = 0.0;
      for (unsigned b = 0; b < scans_of(trial.vocab); ++b) z += room->draw.sums[b];
      z *= stays;
      if (u * (z + 1.0 - stays) < z) return accepts;
    }
    take_sums(thread, s, 0, room);
    return 0;
  }
};

}  // namespace specsim::cuda
