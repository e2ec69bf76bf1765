// The registry of cost models: how long a round takes.
#pragma once

#include "sim/config/registry.h"

#include <functional>
#include <memory>

namespace specsim::cost {

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;
  // Time of a round with `draft_length` sequential draft passes and one target pass over draft_length + 1 tokens, in
  // target passes over one token.
  [[nodiscard]] virtual double round_time(int draft_length) const = 0;
  // Draft pass / target pass.
  [[nodiscard]] virtual double cost_ratio() const = 0;
  // Seconds of a target pass over one token; 0 where the model knows only ratios.
  [[nodiscard]] virtual double target_seconds() const { return 0.0; }
};

struct CostEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<CostModel>(const config::Arguments&, Diagnostics&)> make;
};

const config::Registry<CostEntry>& cost_models();

}  // namespace specsim::cost
