#include "sim/serving/arrivals/lengths.h"

namespace specsim::arrivals {

namespace {

class FixedLength final : public LengthDistribution {
 public:
  explicit FixedLength(std::uint32_t tokens) : tokens_(tokens) {}
  std::uint32_t draw(std::uint64_t /*request*/, rng::Stream& /*random_bits*/) const override { return tokens_; }

 private:
  std::uint32_t tokens_;
};

}  // namespace

LengthsEntry fixed_lengths() {
  return {
      {"fixed", "one number for every request: {fixed: 128}, or the number alone", "", {}, ""},
      [](const config::Value& value, const config::PartInfo&, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
        const auto tokens = config::read_integer(value, config::between(1, kMostTokens), "fixed", diagnostics);
        if (!tokens) return nullptr;
        return std::make_unique<FixedLength>(static_cast<std::uint32_t>(*tokens));
      }};
}

}  // namespace specsim::arrivals
