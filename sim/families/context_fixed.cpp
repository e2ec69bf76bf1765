#include "sim/families/context.h"

#include <algorithm>

namespace specsim::families {

namespace {

class FixedProcess final : public ContextProcess {
 public:
  FixedProcess() { shape_.kind = ContextShape::Kind::fixed; }
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const override { return false; }
  void step(rng::Key, std::uint64_t, const std::uint32_t*, std::size_t, const std::uint32_t*, const Token*,
            std::uint32_t*) const override {}

 private:
  ContextShape shape_;
};

}  // namespace

ContextEntry fixed_context() {
  return {{"fixed",
           "the same pair of distributions at every position",
           "",
           {},
           "Positions are independent with the same alpha, so the accepted count is a truncated geometric variable: the closed "
           "forms' own case."},
          [](const config::Arguments&, ContextBuilder& builder) {
            ContextModel model;
            builder.add_pair(model);
            model.process = std::make_unique<FixedProcess>();
            return model;
          }};
}

}  // namespace specsim::families
