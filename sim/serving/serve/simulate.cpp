#include "sim/serving/serve/simulate.h"

#include "sim/foundation/base/error.h"
#include "sim/serving/serve/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace specsim::serve {

namespace {

// A request on its way from the client to the engine.
struct Transit {
  arrivals::RequestId request = 0;
  arrivals::Picoseconds arrives = 0;
};

// Engines of one kind: when their steps end, and which may begin one.
struct Engines {
  std::vector<std::unique_ptr<Server>> servers;
  RoutedReplicas routed;  // the same, for the routing
  Moments moments{1};
  std::vector<std::size_t> touched;    // a step ended, or an idle engine got a request
  std::vector<std::uint32_t> batches;  // [engine]: requests in its running step
  std::uint32_t batch = 0;             // all of these
  std::uint32_t largest_batch = 0;

  void set_up() {
    moments = Moments(servers.size());
    for (const std::unique_ptr<Server>& one : servers) routed.add(one.get());
    batches.resize(servers.size());
  }

  // An engine's step has begun, or it is idle.
  void began(std::size_t engine) {
    moments.set(engine, servers[engine]->next());
    routed.update(engine);
    batch -= batches[engine];
    batches[engine] = servers[engine]->batch();
    batch += batches[engine];
  }

  void begin_steps(arrivals::Picoseconds now) {
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::size_t i : touched) {
      servers[i]->begin_steps(now);
      began(i);
    }
    touched.clear();
    largest_batch = std::max(largest_batch, batch);
  }
};

class Run {
 public:
  Run(const arrivals::RequestTrace& workload, const RunSetting& setting)
      : workload_(workload), setting_(setting), client_(workload) {
    result_.sequences.resize(workload.requests.size());
    for (std::size_t i = 0; i < workload.requests.size(); ++i) {
      Sequence& sequence = result_.sequences[i];
      sequence.prompt = workload.requests[i].prompt;
      sequence.output = workload.requests[i].output;
      sequence.limit = std::max(workload.requests[i].limit, sequence.output);
      sequence.priority = workload.requests[i].priority;
      if (workload.answers_first) sequence.sent = arrivals::kNever;  // until it is
    }
    for (std::uint32_t i = 0; i < setting.replicas; ++i)
      decode_.servers.push_back(
          std::make_unique<Server>(i, setting.make_engine(), workload, result_.sequences.data(), setting.observer));
    for (std::uint32_t i = 0; i < setting.prefill.engines; ++i)
      prefill_.servers.push_back(std::make_unique<Server>(setting.replicas + i, setting.prefill.make_engine(), workload,
                                                          result_.sequences.data(), setting.observer));
    if (!prefill_.servers.empty())  // there a request ends with its first token
      for (Sequence& sequence : result_.sequences) sequence.output = sequence.limit = 1;
    if (setting.replicas > 1) result_.replica_of.resize(workload.requests.size());
    for (Engines* const engines : {&decode_, &prefill_}) engines->set_up();
  }

  SimulationResult run() {
    constexpr std::uint64_t kReportEvery = 4096;  // steps between reports of progress
    const bool alone = decode_.servers.size() == 1 && prefill_.servers.empty();
    for (std::uint64_t turn = 0;; ++turn) {
      if (alone) {
        Server& server = *decode_.servers.front();
        server.decode_until(setting_.horizon == arrivals::kNever ? next_request()
                                                                 : std::min(next_request(), setting_.horizon + 1));
        decode_.moments.set(0, server.next());
      }
      const arrivals::Picoseconds now = next_moment();
      if (now == arrivals::kNever || now > setting_.horizon) break;
      check_moment(now);
      ends_of_steps(now);
      ends_of_prefills(now);
      arrivals(now);
      moves(now);
      if (setting_.in_step) {
        decode_.touched.clear();
        steps_together(now);
      } else {
        decode_.begin_steps(now);
      }
      prefill_.begin_steps(now);
      if (setting_.stop != nullptr && setting_.stop->load(std::memory_order_relaxed)) {
        result_.interrupted = true;
        break;
      }
      if (setting_.progress && turn % kReportEvery == 0) setting_.progress(result_.finished);
    }
    for (const Engines* const engines : {&decode_, &prefill_})
      for (const std::unique_ptr<Server>& server : engines->servers) {
        result_.totals.push_back(server->totals());
        result_.gaps.insert(result_.gaps.end(), server->gaps().begin(), server->gaps().end());
      }
    const BlockPool& pool = decode_.servers.front()->pool();
    result_.pool_blocks = pool.usable();
    result_.pool_tokens = pool.unlimited() ? 0 : pool.usable() * pool.block_tokens();
    result_.largest_batch = decode_.largest_batch;
    result_.sent = client_.sent();
    if (workload_.answers_first) {  // not sent in their order: up to the last that was sent
      const auto was_sent = [](const Sequence& sequence) { return sequence.sent != arrivals::kNever; };
      const auto last = std::find_if(result_.sequences.rbegin(), result_.sequences.rend(), was_sent);
      result_.sent = static_cast<std::size_t>(result_.sequences.rend() - last);
    }
    result_.reached_end = result_.finished == workload_.requests.size();
    if (!result_.reached_end && setting_.horizon != arrivals::kNever) result_.end = setting_.horizon;
    return std::move(result_);
  }

 private:
  // When the next request is sent or comes to an engine.
  [[nodiscard]] arrivals::Picoseconds next_request() const {
    arrivals::Picoseconds now = transit_.empty() ? arrivals::kNever : transit_.front().arrives;
    const arrivals::Picoseconds sent = client_.next();
    if (sent != arrivals::kNever) now = std::min(now, setting_.frontend == 0 ? sent : std::min(sent + setting_.frontend, now));
    if (!on_link_.empty()) now = std::min(now, on_link_.front().arrives);
    return now;
  }
  [[nodiscard]] arrivals::Picoseconds next_moment() const {
    return std::min({next_request(), decode_.moments.earliest(), prefill_.moments.earliest()});
  }

  // Ends the steps that end now, in the order of the engines, and calls `ended` for each with the requests that ended with it.
  template <class Ended>
  void finish_steps(Engines& engines, arrivals::Picoseconds now, const Ended& ended) {
    while (engines.moments.earliest() == now) {
      const std::size_t i = engines.moments.first();
      ended_.clear();
      engines.servers[i]->finish_step(now, ended_);
      engines.moments.set(i, engines.servers[i]->next());
      engines.routed.update(i);
      engines.touched.push_back(i);
      std::sort(ended_.begin(), ended_.end());
      ended();
    }
  }

  void ends_of_steps(arrivals::Picoseconds now) {
    finish_steps(decode_, now, [&] {
      result_.finished += ended_.size();
      if (!ended_.empty()) result_.end = now;
      for (const arrivals::RequestId request : ended_) client_.ended(request, now);
    });
  }

  // Begins the next step of all engines when the last one of the step before has ended. An engine without requests computes
  // nothing, but takes part with its experts.
  void steps_together(arrivals::Picoseconds now) {
    for (const std::unique_ptr<Server>& server : decode_.servers)
      if (!server->idle()) return;
    double rows = 0.0;
    cost::OtherEngines peers;
    for (const std::unique_ptr<Server>& server : decode_.servers) {
      server->begin_steps(now);
      rows += server->scheduled_rows();
      peers.widest = std::max(peers.widest, server->scheduled_rows());
    }
    arrivals::Picoseconds longest = 0;
    for (const std::unique_ptr<Server>& server : decode_.servers) {
      if (server->scheduled_rows() == 0.0) continue;
      peers.rows = rows - server->scheduled_rows();
      longest = std::max(longest, server->together_with(peers));
    }
    for (std::size_t i = 0; i < decode_.servers.size(); ++i) {
      if (decode_.servers[i]->scheduled_rows() > 0.0) decode_.servers[i]->begin_together(now, longest);
      decode_.began(i);
    }
    decode_.largest_batch = std::max(decode_.largest_batch, decode_.batch);
  }

  // Ends prompt computations: requests with more than one output token go over the link to the engines that decode.
  void ends_of_prefills(arrivals::Picoseconds now) {
    finish_steps(prefill_, now, [&] {
      for (const arrivals::RequestId request : ended_) {
        const arrivals::Request& asked = workload_.requests[request];
        if (asked.output == 1 && !setting_.prefill.silent) {
          ++result_.finished;
          result_.end = now;
          client_.ended(request, now);
          continue;
        }
        Sequence& sequence = result_.sequences[request];
        sequence.output = asked.output;
        sequence.limit = std::max(asked.limit, asked.output);
        sequence.moved = true;
        if (setting_.prefill.silent) {
          sequence.emitted = 0;
          sequence.first_token = sequence.last_token = arrivals::kNever;
          sequence.spent_first = {};
        }
        sequence.computed = 0;
        sequence.scheduled_in = 0;
        const arrivals::Picoseconds carried = std::llround(setting_.prefill.link_ps_per_token * sequence.prompt);
        result_.link_busy += carried;
        link_free_ = std::max(link_free_, now) + carried;
        on_link_.push_back({request, link_free_ + setting_.prefill.link_latency});
      }
    });
  }

  void moves(arrivals::Picoseconds now) {
    for (; !on_link_.empty() && on_link_.front().arrives <= now; on_link_.pop_front())
      enter(on_link_.front().request, decode_, now);
  }

  void enter(arrivals::RequestId request, Engines& engines, arrivals::Picoseconds now) {
    std::vector<std::unique_ptr<Server>>& servers = engines.servers;
    const std::uint32_t replica = servers.size() == 1 ? 0 : setting_.routing->replica(request, workload_, engines.routed);
    if (decode_.servers.size() > 1 && &engines == &decode_) result_.replica_of[request] = replica;
    if (servers.size() > 1 && setting_.routing->by_prefix()) servers[replica]->remember(workload_.requests[request]);
    servers[replica]->arrive(request, now);
    engines.routed.update(replica);
    if (servers[replica]->idle()) engines.touched.push_back(replica);
  }

  void arrivals(arrivals::Picoseconds now) {
    // All requests take the same time to the engine, so they arrive in the order of sending.
    for (arrivals::Picoseconds sent = client_.next(); sent != arrivals::kNever && sent + setting_.frontend <= now;
         sent = client_.next())
      send(sent);
    for (; !transit_.empty() && transit_.front().arrives <= now; transit_.pop_front())
      enter(transit_.front().request, prefill_.servers.empty() ? decode_ : prefill_, now);
  }

  void send(arrivals::Picoseconds sent) {
    const arrivals::RequestId request = client_.send();
    result_.sequences[request].sent = sent;
    result_.sequences[request].since = sent;
    transit_.push_back({request, sent + setting_.frontend});
  }

  const arrivals::RequestTrace& workload_;
  const RunSetting& setting_;
  Client client_;
  SimulationResult result_;
  Engines decode_;
  Engines prefill_;  // compute prompts alone; none: decode_ does both
  std::deque<Transit> transit_;
  std::deque<Transit> on_link_;  // caches on their way, in order
  arrivals::Picoseconds link_free_ = 0;
  std::vector<arrivals::RequestId> ended_;
};

}  // namespace

void check_moment(arrivals::Picoseconds now) {
  if (static_cast<double>(now) > arrivals::kLongestRun * arrivals::kPicosecondsPerSecond)
    throw BadInput(
        {"", 0, 0},
        fmt::format("the run lasts longer than {:g} s, where simulated time ends, allowed: fewer requests, faster steps, "
                    "or serve.horizon_s",
                    arrivals::kLongestRun));
}

SimulationResult simulate(const arrivals::RequestTrace& workload, const RunSetting& setting) {
  return Run(workload, setting).run();
}

double link_busy_share(const SimulationResult& result) {
  return result.end > 0 ? std::min(1.0, static_cast<double>(result.link_busy) / static_cast<double>(result.end)) : 0.0;
}

std::size_t early_requests(const arrivals::RequestTrace& workload, const SimulationResult& result) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < result.sent; ++i) {
    if (workload.requests[i].follows == 0 || result.sequences[i].sent == arrivals::kNever) continue;
    const Sequence& answered = result.sequences[workload.requests[i].follows - 1];
    count += answered.status != Status::finished || result.sequences[i].sent < answered.last_token ? 1 : 0;
  }
  return count;
}

}  // namespace specsim::serve
