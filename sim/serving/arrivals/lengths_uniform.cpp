#include "sim/serving/arrivals/lengths.h"

#include <boost/random/uniform_int_distribution.hpp>

namespace specsim::arrivals {

namespace {

class UniformLength final : public LengthDistribution {
 public:
  UniformLength(std::uint32_t from, std::uint32_t to) : from_(from), to_(to) {}
  std::uint32_t draw(std::uint64_t /*request*/, rng::Stream& random_bits) const override {
    return boost::random::uniform_int_distribution<std::uint32_t>(from_, to_)(random_bits);
  }

 private:
  std::uint32_t from_;
  std::uint32_t to_;
};

}  // namespace

LengthsEntry uniform_lengths() {
  struct P {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  static const config::Fields<P> fields = {
      {"from", &P::from, "minimum number of tokens", config::between(1, kMostTokens), config::required},
      {"to", &P::to, "maximum number of tokens", config::between(1, kMostTokens), config::required},
  };
  return {{"uniform", "every whole number of tokens from one to another with the same probability", "", fields, ""},
          [](const config::Value& value, const config::PartInfo& info,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
            const std::size_t before = diagnostics.list().size();
            const config::Arguments arguments =
                config::read_arguments(value, info.parameters, {}, "lengths uniform", diagnostics);
            if (diagnostics.list().size() != before) return nullptr;
            const P params = fields.read(arguments);
            if (params.to < params.from) {
              diagnostics.add(arguments.where("to"), "to is less than from, allowed: from or more");
              return nullptr;
            }
            return std::make_unique<UniformLength>(params.from, params.to);
          }};
}

}  // namespace specsim::arrivals
