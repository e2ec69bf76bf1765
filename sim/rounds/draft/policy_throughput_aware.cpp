#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace specsim::draft {

namespace {

class ThroughputAware final : public LengthPolicy {
 public:
  struct Settings {
    std::vector<int> candidates;  // draft lengths, increasing, all above 0
    std::optional<int> first;
    std::size_t window = 20;
    int every = 5;
    double margin = 0.1;
  };
  ThroughputAware(Settings settings, std::vector<double> round_times, int sequences)
      : own_(std::move(settings)), round_times_(std::move(round_times)), sequences_(sequences) {}
  [[nodiscard]] int sequences() const override { return sequences_; }
  [[nodiscard]] std::unique_ptr<LengthPolicy> with_round_times(const std::vector<double>& round_times) const override {
    return std::make_unique<ThroughputAware>(own_, round_times, sequences_);
  }
  [[nodiscard]] Memory start() const override {
    Memory memory;
    const bool listed = std::find(own_.candidates.begin(), own_.candidates.end(), own_.first) != own_.candidates.end();
    memory.length = listed ? *own_.first : own_.candidates[own_.candidates.size() / 2];
    memory.learnt.assign(static_cast<std::size_t>(own_.candidates.back()) * row(), 0.0);
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override { observe_batch(memory, drafted, {&accepted, 1}); }
  void observe_batch(Memory& memory, int drafted, std::span<const int> accepted) const override {
    for (int position = 0; position < std::min(drafted, own_.candidates.back()); ++position) {
      const auto deeper = std::count_if(accepted.begin(), accepted.end(), [&](int own) { return own > position; });
      add(memory, position, static_cast<double>(deeper) / static_cast<double>(accepted.size()));
    }
    if (++memory.rounds < own_.every) return;
    memory.rounds = 0;
    for (int position = 0; position < memory.length; ++position)
      if (seen(memory, position) < own_.window) return;
    move(memory);
  }

 private:
  // Learnt per position: the number of batch shares in its window, then these shares, the newest last.
  [[nodiscard]] std::size_t row() const { return own_.window + 1; }
  [[nodiscard]] std::size_t seen(const Memory& memory, int position) const {
    return static_cast<std::size_t>(memory.learnt[static_cast<std::size_t>(position) * row()]);
  }
  void add(Memory& memory, int position, double share) const {
    double* const count = memory.learnt.data() + static_cast<std::size_t>(position) * row();
    double* const shares = count + 1;
    if (*count == static_cast<double>(own_.window))
      std::copy(shares + 1, shares + own_.window, shares);
    else
      *count += 1.0;
    shares[static_cast<std::size_t>(*count) - 1] = share;
  }
  // The share of the batch that accepts this many tokens and one more: the window's mean. A position that was not drafted
  // continues the geometric decay from the first position to the last known one; nullopt if nothing is known yet.
  [[nodiscard]] std::optional<double> rate(const Memory& memory, int position, const std::vector<double>& before) const {
    if (const std::size_t n = seen(memory, position); n > 0) {
      const double* const shares = memory.learnt.data() + static_cast<std::size_t>(position) * row() + 1;
      return std::accumulate(shares, shares + n, 0.0) / static_cast<double>(n);
    }
    if (before.empty()) return std::nullopt;
    if (before.size() == 1) return before[0];
    if (!(before[0] > 0.0)) return 0.0;
    const double decay = std::pow(before.back() / before[0], 1.0 / (static_cast<double>(before.size()) - 1.0));
    return std::clamp(before.back() * decay, 0.0, before.back());
  }
  // Switches to the candidate with the most expected tokens per time, if it beats the present length by the margin.
  void move(Memory& memory) const {
    std::vector<double> rates;
    double tokens = 1.0;
    double most = -1.0;
    double own = -1.0;
    int best = memory.length;
    for (const int candidate : own_.candidates) {
      while (static_cast<int>(rates.size()) < candidate) {
        const std::optional<double> next = rate(memory, static_cast<int>(rates.size()), rates);
        if (!next) return;
        rates.push_back(*next);
        tokens += *next;
      }
      const double score = tokens / round_times_[static_cast<std::size_t>(candidate)];
      if (candidate == memory.length) own = score;
      if (score > most) {
        most = score;
        best = candidate;
      }
    }
    if (best == memory.length || (own > 0.0 && !(most > own * (1.0 + own_.margin)))) return;
    for (int position = best; position < std::min(memory.length, own_.candidates.back()); ++position)
      memory.learnt[static_cast<std::size_t>(position) * row()] = 0.0;  // starts from zero when it is drafted again
    memory.length = best;
  }

  Settings own_;
  std::vector<double> round_times_;
  int sequences_;
};

}  // namespace

PolicyEntry throughput_aware_policy() {
  using P = ThroughputAware::Settings;
  static const config::Fields<P> fields = {
      {"candidates", &P::candidates, "draft lengths, increasing; default: those of [1, 3, 5, 7] that the drafter can draft",
       config::between(1, kMaxDraftLength), config::optional},
      {"first", &P::first,
       "first draft length, --speculative-num-steps of SGLang; if left out or not a candidate: the middle one",
       config::between(1, kMaxDraftLength)},
      {"window", &P::window, "rounds that the acceptance of a position is averaged over", config::between(1, 4096)},
      {"every", &P::every, "rounds between decisions", config::between(1, 1e6)},
      {"margin", &P::margin, "relative gain that another length must have over the present one", config::between(0, 10)}};
  return {
      {"throughput_aware",
       "one draft length for the batch, the one with the most expected tokens per time, from recent acceptance by position",
       "SGLang, sgl-project/sglang, python/sglang/srt/speculative/throughput_aware_spec_params.py (strategy throughput_aware; "
       "pull request 28045), commit 2357074",
       fields,
       "The score of a length is (1 + sum over its positions of the share of the batch that accepted this position) / (time of a "
       "round), with the shares averaged over a window. Times come from the config's cost model and batch, as SGLang measures "
       "its rounds when it starts. Nothing changes before the windows of the present length are full. A position that was not "
       "drafted yet continues the decay of those before it; a shorter length forgets the later positions. "
       "Unlike goodput it cannot stop drafting, and it assumes no single alpha."},
      [](const config::Arguments& arguments, const LengthChoice& choice,
         Diagnostics& diagnostics) -> std::unique_ptr<LengthPolicy> {
        P settings = fields.read(arguments);
        if (arguments.has("candidates")) {
          double before = 0.0;
          for (const double one : arguments.numbers("candidates")) {
            if (one != static_cast<int>(one) || one > choice.longest || one <= before) {
              diagnostics.add(
                  arguments.where("candidates"),
                  fmt::format("candidates has {}, allowed: increasing integers in [1, {}], the drafter's draft_length", one,
                              choice.longest));
              return nullptr;
            }
            before = one;
          }
        } else {
          for (const int one : {1, 3, 5, 7})
            if (one <= choice.longest) settings.candidates.push_back(one);
        }
        if (settings.candidates.empty()) {
          diagnostics.add(arguments.where("candidates"), "candidates is empty, allowed: at least one draft length");
          return nullptr;
        }
        return std::make_unique<ThroughputAware>(std::move(settings), choice.round_times, choice.batch);
      },
      true};
}

}  // namespace specsim::draft
