// How many drafts a sequence accepts where its text stands. Acceptance belongs to the text position: another draft length drafts
// other stretches of the same text and does not change it.
#pragma once

#include "sim/base/error.h"
#include "sim/config/value.h"
#include "sim/rng/philox.h"
#include "sim/serve/workload.h"
#include "sim/spec/cell.h"

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

// The rounds of an experiment's own distributions and method, executed: request i is its sequence i (again from the first behind
// kMostExecuted of them). A round that begins in the middle of an executed one accepts what that one accepted from there on. The
// cell must draft chains, of its longest length; `tokens`: that an output has at most.
constexpr std::size_t kMostExecuted = 4096;
std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, std::size_t requests, std::uint32_t tokens);

}  // namespace specsim::serve
