#include "sim/foundation/base/wide.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/families/context_steps.h"

namespace specsim::families {

namespace {

class IidProcess final : public ContextProcess {
 public:
  explicit IidProcess(int pool) : pool_(static_cast<std::uint32_t>(pool)) {
    shape_.kind = pool > 0 ? ContextShape::Kind::iid_pool : ContextShape::Kind::iid_fresh;
    shape_.contexts = pool;
  }
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[i] = pick(first_bits(key, rng::Purpose::context, first_sequence + i));
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
            const std::uint32_t* text_position, const Token*, std::uint32_t* context) const override {
    each_step(key, first_sequence, lanes, count, text_position,
              [&](std::uint32_t lane, std::uint64_t bits) { context[lane] = pick(bits); });
  }

 private:
  [[nodiscard]] std::uint32_t pick(std::uint64_t bits) const { return static_cast<std::uint32_t>(scale_bits(bits, pool_)); }
  std::uint32_t pool_;
  ContextShape shape_;
};

}  // namespace

ContextEntry iid_context() {
  struct P {
    int pool = 256;
    bool fresh = false;
  };
  static const config::Fields<P> fields = {
      {"pool", &P::pool, "prepared pairs to draw from, uniformly", config::between(1, 1 << 20)},
      {"fresh", &P::fresh, "a new pair for every position instead of a pool; costs several passes over the vocabulary each"},
  };
  return {{"iid", "each text position draws its own pair of distributions, from a pool or truly fresh", "", fields,
           "Acceptances at successive positions are independent with the mean alpha of the pool (or of the family), so the "
           "geometric closed form "
           "holds at that mean. A position that is drafted again after a rejection meets the same pair."},
          [](const config::Arguments& arguments, ContextBuilder& builder) {
            const P params = fields.read(arguments);
            ContextModel model;
            builder.add_pair(model);
            if (params.fresh && arguments.given("pool"))
              builder.diagnostics().add(arguments.where("pool"), "pool is given together with fresh: true, allowed: one of them");
            model.process = std::make_unique<IidProcess>(params.fresh ? 0 : params.pool);
            return model;
          }};
}

}  // namespace specsim::families
