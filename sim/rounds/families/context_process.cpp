#include "sim/rounds/families/context_process.h"

#include "sim/foundation/base/check.h"

namespace specsim::families {

std::uint32_t ContextProcess::next(std::uint32_t context, Token token) const {
  SPECSIM_CHECK(false, "context {}, token {}: this process does not depend on tokens", context, token);
  return context;
}

}  // namespace specsim::families
