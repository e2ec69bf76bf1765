#include "sim/serving/serve/routing.h"

#include "sim/serving/serve/server.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace specsim::serve {

void RoutedReplicas::add(Server* server) {
  servers_.push_back(server);
  waiting_.push_back(server->waiting());
  in_system_.push_back(server->in_system());
}

void RoutedReplicas::update(std::size_t replica) {
  waiting_[replica] = servers_[replica]->waiting();
  in_system_[replica] = servers_[replica]->in_system();
}

namespace {

class RoundRobin final : public Routing {
 public:
  [[nodiscard]] bool blind() const override { return true; }
  [[nodiscard]] std::uint32_t replica(arrivals::RequestId request, const arrivals::RequestTrace& /*workload*/,
                                      const RoutedReplicas& replicas) const override {
    return request % replicas.size();
  }
};

// Among the replicas with the smallest figure it takes turns, by the number of the request: otherwise the first of equally idle
// replicas would get everything.
template <class Figure>
std::uint32_t smallest(arrivals::RequestId request, std::uint32_t count, const Figure& figure) {
  std::uint32_t best = request % count;
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint32_t other = (request + i) % count;
    if (figure(other) < figure(best)) best = other;
  }
  return best;
}

class LeastLoaded final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(arrivals::RequestId request, const arrivals::RequestTrace& /*workload*/,
                                      const RoutedReplicas& replicas) const override {
    const std::span<const std::uint32_t> loads = replicas.in_system();
    const std::uint32_t least = *std::min_element(loads.begin(), loads.end());
    const auto turn = loads.begin() + request % replicas.size();
    auto found = std::find(turn, loads.end(), least);
    if (found == loads.end()) found = std::find(loads.begin(), turn, least);
    return static_cast<std::uint32_t>(found - loads.begin());
  }
};

class ShortestQueue final : public Routing {
 public:
  [[nodiscard]] std::uint32_t replica(arrivals::RequestId request, const arrivals::RequestTrace& /*workload*/,
                                      const RoutedReplicas& replicas) const override {
    return smallest(request, replicas.size(),
                    [&](std::uint32_t i) { return std::pair(replicas.waiting()[i], replicas.in_system()[i]); });
  }
};

// Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2018), as in servers' routers, but by the longest prefix
// in place of a hash. A replica may hold at most this many times the mean of the requests.
class PrefixAffinity final : public Routing {
 public:
  explicit PrefixAffinity(double load_factor) : load_factor_(load_factor) {}
  [[nodiscard]] bool by_prefix() const override { return true; }
  [[nodiscard]] std::uint32_t replica(arrivals::RequestId request, const arrivals::RequestTrace& workload,
                                      const RoutedReplicas& replicas) const override {
    double all = 1.0;  // including this one
    for (const std::uint32_t one : replicas.in_system()) all += one;
    const double most = std::ceil(load_factor_ * all / replicas.size());
    const arrivals::Request& asked = workload.requests[request];
    return smallest(request, replicas.size(), [&](std::uint32_t i) {
      const bool full = replicas.in_system()[i] + 1.0 > most;
      const std::uint32_t unknown = asked.hashes - replicas.server(i).known_hashes(asked);
      return std::tuple(full, full ? 0 : unknown, replicas.in_system()[i]);
    });
  }

 private:
  double load_factor_;
};

template <class Kind>
RoutingEntry routing_entry(const char* name, const char* summary) {
  return {{name, summary, "", {}, ""}, [](const config::Arguments&, Diagnostics&) { return std::make_unique<Kind>(); }};
}

RoutingEntry prefix_affinity() {
  struct P {
    double load_factor = 1.25;
  };
  static const config::Fields<P> fields = {
      {"load_factor", &P::load_factor,
       "limit on a replica's requests, waiting or running, over the mean of all replicas: a replica that would exceed it is "
       "skipped",
       config::between(1, 1000)},
  };
  return {
      {"prefix_affinity", "the replica that got the longest part of the prompt before, if it is not much fuller than the others",
       "KubeAI's PrefixHash; Mirrokni, Thorup and Zadimoghaddam 2018", fields,
       "Among replicas that got equally much of it, the one with the fewest requests, waiting or running."},
      [](const config::Arguments& arguments, Diagnostics&) {
        return std::make_unique<PrefixAffinity>(fields.read(arguments).load_factor);
      }};
}

}  // namespace

config::Registry<RoutingEntry>& routings() {
  static config::Registry<RoutingEntry> registry(
      "routing",
      {routing_entry<RoundRobin>("round_robin", "one replica after the other"),
       routing_entry<LeastLoaded>("least_loaded", "the replica with the fewest requests, waiting or running"),
       routing_entry<ShortestQueue>("join_shortest_queue",
                                    "the replica with the fewest waiting requests; if several have the same number, the one "
                                    "with the fewest in all"),
       prefix_affinity()});
  return registry;
}

}  // namespace specsim::serve
