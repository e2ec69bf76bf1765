// How many drafts a sequence accepts where its text stands. Acceptance belongs to the text position: another draft length drafts
// other stretches of the same text and does not change it.
#pragma once

#include "sim/base/error.h"
#include "sim/config/value.h"
#include "sim/rng/philox.h"
#include "sim/serve/workload.h"

#include <cstdint>
#include <memory>

namespace specsim::serve {

class Acceptance {
 public:
  Acceptance() = default;
  Acceptance(const Acceptance&) = delete;
  Acceptance& operator=(const Acceptance&) = delete;
  virtual ~Acceptance() = default;
  // Of `drafted` drafts behind the output token number `emitted` of a request: how many are accepted, 0 .. drafted.
  [[nodiscard]] virtual std::uint32_t accepted(RequestId request, std::uint32_t emitted, std::uint32_t drafted) const = 0;
  // Expected tokens of a round that drafts so many, its last token included; what policies plan with.
  [[nodiscard]] virtual double tokens_per_round(int draft_length) const = 0;
};

// `acceptance:` of a config. nullptr after reporting.
std::unique_ptr<Acceptance> read_acceptance(const config::Value& value, rng::Key key, Diagnostics& diagnostics);

}  // namespace specsim::serve
