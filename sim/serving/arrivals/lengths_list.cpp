#include "sim/serving/arrivals/lengths.h"

#include <utility>
#include <vector>

namespace specsim::arrivals {

namespace {

class ListedLength final : public LengthDistribution {
 public:
  explicit ListedLength(std::vector<std::uint32_t> tokens) : tokens_(std::move(tokens)) {}
  std::uint32_t draw(std::uint64_t request, rng::Stream& /*random_bits*/) const override {
    return tokens_[request % tokens_.size()];
  }

 private:
  std::vector<std::uint32_t> tokens_;
};

}  // namespace

LengthsEntry list_lengths() {
  return {
      {"list", "one after the other; after the last it starts again: {list: [128, 256]}", "", {}, ""},
      [](const config::Value& value, const config::PartInfo&, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
        std::vector<std::uint32_t> tokens;
        if (!value.is_list() || value.items.empty()) {
          diagnostics.add(value.where, "list is " + config::description_of_found(value) + ", allowed: [128, 256, ...]");
          return nullptr;
        }
        for (const config::Value& item : value.items) {
          const auto length = config::read_integer(item, config::between(1, kMostTokens), "list", diagnostics);
          if (!length) return nullptr;
          tokens.push_back(static_cast<std::uint32_t>(*length));
        }
        return std::make_unique<ListedLength>(std::move(tokens));
      }};
}

}  // namespace specsim::arrivals
