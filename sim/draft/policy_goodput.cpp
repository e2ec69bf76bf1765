#include "sim/draft/length_policy.h"

namespace specsim::draft {

namespace {

class Goodput final : public LengthPolicy {
 public:
  Goodput(double first_alpha, double weight, std::vector<double> round_times)
      : first_alpha_(first_alpha), weight_(weight), round_times_(std::move(round_times)) {}
  [[nodiscard]] Memory start() const override { return {first_alpha_, best(first_alpha_)}; }
  void observe(Memory& memory, int drafted, int accepted) const override {
    // alpha from the round's tries; a round that drafts nothing tells nothing, so the estimate drifts back to where it began.
    const double tries = drafted == 0 ? 0.0 : accepted + (accepted < drafted ? 1 : 0);
    const double seen = tries > 0.0 ? accepted / tries : first_alpha_;
    memory.value += weight_ * (seen - memory.value);
    memory.length = best(memory.value);
  }

 private:
  // The draft length of the most expected tokens per time.
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

  double first_alpha_;
  double weight_;
  std::vector<double> round_times_;
};

}  // namespace

PolicyEntry goodput_policy() {
  return {{"goodput",
           "the draft length of the most tokens per second at the alpha seen so far and the batch at hand",
           "Liu et al. (SmartSpec), arXiv 2406.14066",
           {{"first_alpha", config::Type::number, "0.7", "the estimate before the first round", config::between(0, 1), {}},
            {"weight",
             config::Type::number,
             "0.1",
             "of the newest round in the moving average",
             config::Interval{0, 1, true, false},
             {}}},
           "Maximises sum over i <= k of alpha^i / (time of a round that drafts k), times from the config's cost model and "
           "batch; k may be "
           "0, and the estimate then drifts back to first_alpha, so that drafting is tried again."},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<Goodput>(arguments.number("first_alpha"), arguments.number("weight"), choice.round_times);
          },
          true};
}

}  // namespace specsim::draft
