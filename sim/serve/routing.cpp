#include "sim/serve/routing.h"

#include "sim/serve/server.h"

namespace specsim::serve {

namespace {

class RoundRobin final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(RequestId request, const Workload& /*workload*/,
                                      const std::vector<std::unique_ptr<Server>>& servers) const override {
    return request % static_cast<std::uint32_t>(servers.size());
  }
};

// The first of those with the smallest figure.
template <class Figure>
std::uint32_t smallest(const std::vector<std::unique_ptr<Server>>& servers, const Figure& figure) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < servers.size(); ++i)
    if (figure(*servers[i]) < figure(*servers[best])) best = i;
  return best;
}

class LeastLoaded final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(RequestId /*request*/, const Workload& /*workload*/,
                                      const std::vector<std::unique_ptr<Server>>& servers) const override {
    return smallest(servers, [](const Server& server) { return server.in_system(); });
  }
};

class ShortestQueue final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(RequestId /*request*/, const Workload& /*workload*/,
                                      const std::vector<std::unique_ptr<Server>>& servers) const override {
    return smallest(servers, [](const Server& server) { return server.waiting(); });
  }
};

class PrefixAffinity final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(RequestId request, const Workload& workload,
                                      const std::vector<std::unique_ptr<Server>>& servers) const override {
    const Request& asked = workload.requests[request];
    std::uint64_t name = asked.hashes > 0 ? workload.hashes[asked.first_hash] : request;
    name = (name ^ (name >> 33)) * 0xff51afd7ed558ccdULL;  // spread over the replicas
    return static_cast<std::uint32_t>((name ^ (name >> 33)) % servers.size());
  }
};

template <class Kind>
RoutingEntry routing_entry(const char* name, const char* summary) {
  return {{name, summary, "", {}, ""}, [](const config::Arguments&, Diagnostics&) { return std::make_unique<Kind>(); }};
}

}  // namespace

config::Registry<RoutingEntry>& routings() {
  static config::Registry<RoutingEntry> registry(
      "routing", {routing_entry<RoundRobin>("round_robin", "one replica after the other"),
                  routing_entry<LeastLoaded>("least_loaded", "the replica with the fewest requests, waiting or running"),
                  routing_entry<ShortestQueue>("join_shortest_queue", "the replica with the fewest requests waiting"),
                  routing_entry<PrefixAffinity>("prefix_affinity", "the same replica for requests with the same first block")});
  return registry;
}

}  // namespace specsim::serve
