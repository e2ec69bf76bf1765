#include "sim/foundation/math/stochastic_matrix.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/families/hidden_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::families {

ContextEntry regimes_context() {
  struct P {
    config::Value states;
    std::vector<std::vector<double>> transition;
    std::vector<double> start;
  };
  static const config::Fields<P> fields = {
      {"states", &P::states,
       "one map per regime: {target: DISTRIBUTION, draft: DISTRIBUTION}; default: those of pair; drafts: [DISTRIBUTION, "
       "...] instead of draft, for position 1, 2, ... of a block; later positions use the last one",
       config::as_list, config::required},
      {"transition", &P::transition, "row i: distribution of the next position's regime after regime i", config::between(0, 1),
       config::required},
      {"start", &P::start, "distribution of the first position's regime; default: the stationary distribution",
       config::between(0, 1), config::optional},
  };
  return {{"regimes", "easy and hard stretches: a hidden Markov chain over text positions picks the pair", "", fields,
           "Acceptances cluster; the iid formula at the mean alpha is wrong, and theory gives the exact value by matrices over "
           "the regimes. The "
           "regime belongs to the text position: a hard position stays hard when it is drafted again.",
           "states: [{}, {draft: {family: uniform}}], transition: [[0.8, 0.2], [0.3, 0.7]]"},
          [](const config::Arguments& arguments, ContextBuilder& builder) {
            const P params = fields.read(arguments);
            ContextModel model;
            const std::vector<config::Value>& states = params.states.items;
            const std::vector<std::vector<double>>& rows = params.transition;
            Diagnostics& diagnostics = builder.diagnostics();
            const std::size_t n = states.size();
            const std::size_t before = diagnostics.list().size();
            if (n == 0 || n > 256)
              diagnostics.add(arguments.where("states"), fmt::format("states has {} entries, allowed: 1 to 256", n));
            if (rows.size() != n)
              diagnostics.add(arguments.where("transition"),
                              fmt::format("transition has {} rows, allowed: {}, one for each state", rows.size(), n));
            for (std::size_t i = 0; i < rows.size() && rows.size() == n; ++i) {
              double sum = 0.0;
              for (const double p : rows[i]) sum += p;
              if (rows[i].size() != n || std::abs(sum - 1.0) > 1e-9)
                diagnostics.add(arguments.where("transition"),
                                fmt::format("transition row {} has {} entries that sum to {:.12g}, allowed: {} that sum to 1", i,
                                            rows[i].size(), sum, n));
            }
            std::vector<double> start = params.start;
            if (arguments.has("start")) {
              double sum = 0.0;
              for (const double p : start) sum += p;
              if (start.size() != n || std::abs(sum - 1.0) > 1e-9)
                diagnostics.add(
                    arguments.where("start"),
                    fmt::format("start has {} entries that sum to {:.12g}, allowed: {} that sum to 1", start.size(), sum, n));
            }
            for (std::size_t i = 0; i < n; ++i) builder.add_pair(model, states[i], {}, fmt::format("states[{}]", i), true);
            if (diagnostics.list().size() != before) return model;
            if (start.empty()) {
              std::vector<double> flat;
              for (const std::vector<double>& row : rows) flat.insert(flat.end(), row.begin(), row.end());
              try {
                start = math::stationary_distribution(flat, static_cast<int>(n));
              } catch (const InvariantBroken&) {
                diagnostics.add(arguments.where("transition"),
                                "transition has no unique stationary distribution, allowed: an irreducible chain, or give start");
                return model;
              }
              for (double& p : start) p = std::max(p, 0.0);
            }
            std::size_t depths = 1;
            for (const PairSource& pair : model.pairs) depths = std::max(depths, pair.depths());
            model.process = std::make_unique<HiddenChain>(rows, std::move(start), static_cast<int>(depths));
            return model;
          }};
}

}  // namespace specsim::families
