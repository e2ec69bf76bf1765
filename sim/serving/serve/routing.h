// Which replica serves a request: the registry of routings.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/serving/arrivals/request_trace.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace specsim::serve {

class Server;

class Routing {
 public:
  Routing() = default;
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;
  virtual ~Routing() = default;
  // Whether it ignores the state of the replicas: each can then be simulated by itself.
  [[nodiscard]] virtual bool blind() const { return false; }
  // Whether it needs Server::known_hashes().
  [[nodiscard]] virtual bool by_prefix() const { return false; }
  // The replica that serves a request which arrives now; requests come in order.
  [[nodiscard]] virtual std::uint32_t replica(arrivals::RequestId request, const arrivals::RequestTrace& workload,
                                              std::span<Server* const> servers) const = 0;
};

struct RoutingEntry {
  config::PartInfo info;
  std::function<std::unique_ptr<Routing>(const config::Arguments&, Diagnostics&)> make;
};

config::Registry<RoutingEntry>& routings();

}  // namespace specsim::serve
