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
  return {{"entropy", "stops drafting after the first token that was drawn from a distribution of high entropy",
           "Agrawal et al. (AdaEDL), arXiv 2410.18351", fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<Entropy>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
