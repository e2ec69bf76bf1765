#include "sim/rounds/draft/length_policy.h"

namespace specsim::draft {

namespace {

class Entropy final : public LengthPolicy {
 public:
  struct Params {
    double most = 0.0;
  };
  Entropy(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool goes_on(const Memory& /*memory*/, double /*probability*/, double entropy) const override {
    return entropy <= params_.most;
  }
  [[nodiscard]] bool looks() const override { return true; }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry entropy_policy() {
  using P = Entropy::Params;
  static const config::Fields<P> fields = {
      {"most", &P::most, "nats above which drafting stops", config::at_least(0), config::required},
  };
  return {
      {"entropy", "stops behind the first draft token that was drawn from a distribution of high entropy",
       "Agrawal et al. (AdaEDL), arXiv 2410.18351", fields,
       "The threshold stands still; adaedl moves it. High entropy bounds the overlap with any target from above only loosely; "
       "the paper's bound falls with its square root, so the two thresholds are one. "
       "It pays at batch 1 with a threshold tuned to the text: simulated, 12 % over the best fixed length "
       "where easy and hard stretches alternate. It does not in a batch, which waits for its longest chain: "
       "21 % below at 32 (docs/results/time_and_methods.md). No measurement of a threshold that stands still "
       "is known here: the paper's is adaedl's."},
      [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
        return std::make_unique<Entropy>(fields.read(arguments), choice.longest);
      }};
}

}  // namespace specsim::draft
