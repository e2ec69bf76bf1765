#include "sim/rounds/draft/length_policy.h"

#include <numeric>

namespace specsim::draft {

namespace {

class Goodput final : public LengthPolicy {
 public:
  struct Params {
    double first_alpha = 0.7;
    double weight = 0.1;
    int probe = 16;
  };
  Goodput(const Params& params, std::vector<double> round_times, int sequences)
      : params_(params), round_times_(std::move(round_times)), sequences_(sequences) {}
  [[nodiscard]] int sequences() const override { return sequences_; }
  [[nodiscard]] std::unique_ptr<LengthPolicy> with_round_times(const std::vector<double>& round_times) const override {
    return std::make_unique<Goodput>(params_, round_times, sequences_);
  }
  [[nodiscard]] Memory start() const override {
    Memory memory;
    memory.value = params_.first_alpha;
    memory.length = best(params_.first_alpha);
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override { observe_batch(memory, drafted, {&accepted, 1}); }
  void observe_batch(Memory& memory, int drafted, std::span<const int> accepted) const override {
    // Estimates alpha from the round's trials; a round without drafts gives no information.
    double tries = 0.0;
    for (const int own : accepted) tries += own < drafted ? own + 1 : own;
    if (tries > 0.0)
      memory.value += params_.weight * (std::accumulate(accepted.begin(), accepted.end(), 0.0) / tries - memory.value);
    memory.length = best(memory.value);
    memory.rounds = drafted == 0 ? memory.rounds + 1 : 0;
    // If the estimate drafts nothing, only a trial can show whether drafting pays again.
    if (memory.length == 0 && memory.rounds >= params_.probe && round_times_.size() > 1) memory.length = 1;
  }

 private:
  // The draft length with the most expected tokens per time.
  [[nodiscard]] int best(double alpha) const {
    double tokens = 0.0;
    double next = 1.0;
    double most = 0.0;
    int length = 0;
    for (std::size_t k = 0; k < round_times_.size(); ++k) {
      tokens += next;
      next *= alpha;
      if (tokens / round_times_[k] > most) {
        most = tokens / round_times_[k];
        length = static_cast<int>(k);
      }
    }
    return length;
  }

  Params params_;
  std::vector<double> round_times_;
  int sequences_;
};

PolicyEntry goodput_entry(const char* name, const char* summary, bool of_batch) {
  using P = Goodput::Params;
  static const config::Fields<P> fields = {
      {"first_alpha", &P::first_alpha, "the estimate before the first round", config::between(0, 1)},
      {"weight", &P::weight, "weight of the newest round in the moving average", config::above(0, 1)},
      {"probe", &P::probe, "after this many rounds in a row without drafts, one token is drafted as a trial",
       config::between(1, 1e6)},
  };
  return {
      {name, summary, "Liu et al. (SmartSpec), arXiv 2406.14066", fields},
      [of_batch](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
        return std::make_unique<Goodput>(fields.read(arguments), choice.round_times, of_batch ? choice.batch : 1);
      },
      true};
}

}  // namespace

PolicyEntry goodput_policy() { return goodput_entry("goodput", "one draft length for the batch (SmartSpec)", true); }

PolicyEntry goodput_per_sequence_policy() {
  return goodput_entry("goodput_per_sequence", "like goodput, but each sequence has its own draft length", false);
}

}  // namespace specsim::draft
