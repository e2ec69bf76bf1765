// Which replica serves a request: the registry of routings.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/serving/arrivals/request_trace.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace specsim::serve {

class Server;

// The replicas as a routing sees them. The counts of all are next to each other, because it may read all of them for a request.
class RoutedReplicas {
 public:
  void add(Server* server);
  // Must be called when requests came to a replica or left it, and when some began to run.
  void update(std::size_t replica);
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(servers_.size()); }
  [[nodiscard]] const Server& server(std::size_t replica) const { return *servers_[replica]; }
  [[nodiscard]] std::span<const std::uint32_t> waiting() const { return waiting_; }
  [[nodiscard]] std::span<const std::uint32_t> in_system() const { return in_system_; }

 private:
  std::vector<Server*> servers_;
  std::vector<std::uint32_t> waiting_;    // [replica]
  std::vector<std::uint32_t> in_system_;  // [replica]: waiting or running
};

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
                                              const RoutedReplicas& replicas) const = 0;
};

struct RoutingEntry {
  config::PartInfo info;
  std::function<std::unique_ptr<Routing>(const config::Arguments&, Diagnostics&)> make;
};

config::Registry<RoutingEntry>& routings();

}  // namespace specsim::serve
