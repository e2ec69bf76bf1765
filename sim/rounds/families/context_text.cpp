#include "sim/rounds/families/context.h"
#include "sim/rounds/families/hidden_chain.h"
#include "sim/rounds/families/text_layout.h"

#include <memory>
#include <vector>

namespace specsim::families {

ContextEntry text_context() {
  struct P {
    double persistence = 0.0;
    double between_requests = 0.0;
    std::uint64_t request_tokens = 0;
    double drift = 0.0;
    int depths = 6;
  };
  static const config::Fields<P> fields = {
      {"persistence", &P::persistence,
       "probability that the next text position belongs to the same stretch, else to any of the request's: n positions later, "
       "scales have a correlation of between_requests + .64 (1 - between_requests) persistence^n",
       config::Interval{0, 1, false, true}},
      {"between_requests", &P::between_requests,
       "share of the variance of the two scales (openness, difficulty) that lies between requests; each request keeps its part",
       config::Interval{0, 1, false, true}},
      {"request_tokens", &P::request_tokens,
       "tokens that each request emits; its last round is cut at this number; 0: requests have equally many rounds instead, so "
       "easy "
       "ones emit more",
       config::between(0, 10000)},
      {"drift", &P::drift,
       "the draft's logits get normal noise with the standard deviation drift sqrt(i) at position i of a block (0 first)",
       config::between(0, 1000)},
      {"depths", &P::depths, "positions of a block that have drift tables of their own; later positions use the last one's",
       config::between(2, kMaxDraftLength)},
  };
  return {
      {"text",
       "contexts like those of real text: easy or hard stretches and requests, and a draft that gets worse along the block", "",
       fields,
       "256 contexts whose scales (the spread of families normal_logits and logit_noise) go through the quantiles of their "
       "distribution, so that the mean overlap is about that of iid (kinds of requests are two points and not a bell: with "
       "between_requests near 1 it is lower by up to .03); acceptances cluster, and theory gives tokens_per_round by matrices as "
       "for "
       "regimes. Without a spread only drift has an effect.",
       "persistence: 0.5, drift: 0.3"},
      [](const config::Arguments& arguments, ContextBuilder& builder) {
        const P params = fields.read(arguments);
        ContextModel model;
        const double drift = params.drift;
        if (drift == 0.0 && arguments.given("depths"))
          builder.diagnostics().add(arguments.where("depths"), "depths is given without drift, allowed: with a drift above 0");
        const int depths = drift > 0.0 ? params.depths : 1;
        builder.add_drifting_pair(model, depths, drift);
        const TextLayout layout(params.between_requests);
        model.scales = layout.scales();
        model.process = std::make_unique<HiddenChain>(layout.transition(params.persistence),
                                                      std::vector<double>(TextLayout::kContexts, 1.0 / TextLayout::kContexts),
                                                      depths, params.request_tokens);
        return model;
      }};
}

}  // namespace specsim::families
