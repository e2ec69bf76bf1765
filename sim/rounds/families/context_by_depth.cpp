#include "sim/rounds/families/context.h"
#include "sim/rounds/families/context_steps.h"

#include <fmt/format.h>

namespace specsim::families {

namespace {

class ByDepthProcess final : public StillProcess {
 public:
  explicit ByDepthProcess(int depths) {
    shape_.kind = ContextShape::Kind::by_depth;
    shape_.depths = depths;
  }
};

}  // namespace

ContextEntry by_depth_context() {
  struct P {
    config::Value drafts;
  };
  static const config::Fields<P> fields = {
      {"drafts", &P::drafts,
       "the draft's distribution at position 1, 2, ...; later positions use the last one; pair.draft is not used",
       config::as_list, config::required},
  };
  return {{"by_depth",
           "the draft's distribution depends on the position within the block, as EAGLE's n-alpha; the target's never does",
           "Li et al., EAGLE, arXiv 2401.15077", fields,
           "Acceptances are independent with a rate for each position: tokens_per_round = 1 + alpha_1 + alpha_1 alpha_2 + ...",
           "drafts: [{family: uniform}, {family: geometric, ratio: 0.3}]"},
          [](const config::Arguments& arguments, ContextBuilder& builder) {
            ContextModel model;
            const std::vector<config::Value> drafts = fields.read(arguments).drafts.items;
            if (drafts.empty() || drafts.size() > static_cast<std::size_t>(kMaxDraftLength)) {
              builder.diagnostics().add(arguments.where("drafts"),
                                        fmt::format("drafts has {} entries, allowed: 1 to {}", drafts.size(), kMaxDraftLength));
              return model;
            }
            builder.add_pair_by_depth(model, drafts);
            model.process = std::make_unique<ByDepthProcess>(static_cast<int>(drafts.size()));
            return model;
          }};
}

}  // namespace specsim::families
