#include "sim/foundation/math/alias_table.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/families/context_steps.h"

#include <fmt/format.h>

namespace specsim::families {

namespace {

class RequestsProcess final : public StillProcess {
 public:
  RequestsProcess(std::vector<double> weights, std::uint64_t request_tokens) : types_(weights) {
    math::normalise(weights);
    shape_.kind = ContextShape::Kind::requests;
    shape_.contexts = static_cast<int>(weights.size());
    shape_.start = std::move(weights);
    shape_.request_tokens = request_tokens;
  }
  void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[i] = types_.pick(first_bits(key, rng::Purpose::start, first_sequence + i));
  }

 private:
  math::AliasTable types_;
};

}  // namespace

ContextEntry requests_context() {
  struct P {
    config::Value types;
    std::uint64_t request_tokens = 0;
  };
  static const config::Fields<P> fields = {
      {"types", &P::types,
       "one map per type: {weight: W, target: DISTRIBUTION, draft: DISTRIBUTION}; default distributions: those of pair",
       config::as_list, config::required},
      {"request_tokens", &P::request_tokens, "tokens that each request emits; its last round is cut at this number",
       config::between(1, 1e7), config::required},
  };
  return {
      {"requests", "each request has its own parameters, and all emit equally many tokens", "", fields,
       "Requests with a low alpha need more rounds for the same text, so the pooled tokens_per_round is a harmonic mean, below "
       "the formula at the mean alpha. "
       "`rounds` sets the number of requests: 2 rounds / request_tokens, at least 256. Rounds cut by the end are counted "
       "separately.",
       "types: [{weight: 2, draft: {family: uniform}}, {weight: 1}], request_tokens: 37"},
      [](const config::Arguments& arguments, ContextBuilder& builder) {
        const P params = fields.read(arguments);
        ContextModel model;
        const std::vector<config::Value>& types = params.types.items;
        Diagnostics& diagnostics = builder.diagnostics();
        if (types.empty() || types.size() > 256) {
          diagnostics.add(arguments.where("types"), fmt::format("types has {} entries, allowed: 1 to 256", types.size()));
          return model;
        }
        std::vector<double> weights;
        for (std::size_t i = 0; i < types.size(); ++i) {
          const std::string what = fmt::format("types[{}]", i);
          double weight = 1.0;
          if (const config::Value* given = types[i].find("weight"))
            weight =
                config::read_number(*given, config::Interval{0, 1e100, true, false}, what + ".weight", diagnostics).value_or(1.0);
          weights.push_back(weight);
          builder.add_pair(model, types[i], {"weight"}, what);
        }
        model.process = std::make_unique<RequestsProcess>(std::move(weights), params.request_tokens);
        return model;
      }};
}

}  // namespace specsim::families
