// How many tokens to draft for every sequence of the batch: the registry of the server's policies.
#pragma once

#include "sim/config/registry.h"
#include "sim/serve/acceptance.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace specsim::serve {

// What a policy sees when it chooses the drafts of the next step.
struct BatchState {
  std::uint32_t requests = 0;  // scheduled in this step, prompts too
  std::uint32_t waiting = 0;   // in the queue
  double cached = 0.0;         // tokens, of all scheduled
};

// Seconds of a step that verifies `draft_length` drafts of each of so many sequences and drafts as many anew.
using StepSeconds = std::function<double(const BatchState&, int draft_length)>;

class ServerPolicy {
 public:
  ServerPolicy() = default;
  ServerPolicy(const ServerPolicy&) = delete;
  ServerPolicy& operator=(const ServerPolicy&) = delete;
  virtual ~ServerPolicy() = default;
  // 0 .. longest().
  [[nodiscard]] virtual int draft_length(const BatchState& batch) = 0;
  [[nodiscard]] virtual int longest() const = 0;
  // What a step's verification gave, over all sequences: rounds that verified drafts at a position, and accepted it.
  virtual void observe(int /*position*/, std::uint32_t /*verified*/, std::uint32_t /*accepted*/) {}
};

// What a policy may ask of the server it works for.
struct PolicySetting {
  StepSeconds seconds;
};

struct ServerPolicyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<ServerPolicy>(const config::Arguments&, const PolicySetting&, Diagnostics&)> make;
};

config::Registry<ServerPolicyEntry>& server_policies();

}  // namespace specsim::serve
