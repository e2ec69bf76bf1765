#include "sim/rounds/families/context.h"
#include "sim/rounds/families/context_steps.h"

namespace specsim::families {

namespace {

class FixedProcess final : public StillProcess {
 public:
  FixedProcess() { shape_.kind = ContextShape::Kind::fixed; }
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
