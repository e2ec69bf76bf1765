#include "sim/rounds/draft/length_policy.h"

namespace specsim::draft {

namespace {

class LeastConfidence final : public LengthPolicy {
 public:
  struct Params {
    double least = 0.4;
  };
  LeastConfidence(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool goes_on(const Memory& /*memory*/, double probability, double /*entropy*/) const override {
    return probability >= params_.least;
  }
  [[nodiscard]] bool looks() const override { return true; }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry confidence_policy() {
  using P = LeastConfidence::Params;
  static const config::Fields<P> fields = {
      {"least", &P::least, "draft probability below which drafting stops", config::between(0, 1)},
  };
  return {{"confidence", "stops drafting after the first token that the draft itself finds unlikely",
           "Hugging Face transformers, assistant_confidence_threshold", fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<LeastConfidence>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
