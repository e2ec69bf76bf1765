#include "sim/serve/simulate.h"

#include "sim/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace specsim::serve {

namespace {

// A request on its way from the client to the engine.
struct Transit {
  RequestId request = 0;
  Picoseconds arrives = 0;
};

class Run {
 public:
  Run(const Workload& workload, const RunSetting& setting) : workload_(workload), setting_(setting), client_(workload) {
    result_.sequences.resize(workload.requests.size());
    for (std::size_t i = 0; i < workload.requests.size(); ++i) {
      Sequence& sequence = result_.sequences[i];
      sequence.prompt = workload.requests[i].prompt;
      sequence.output = workload.requests[i].output;
      sequence.limit = std::max(workload.requests[i].limit, sequence.output);
      sequence.priority = workload.requests[i].priority;
    }
    for (std::uint32_t i = 0; i < setting.replicas; ++i)
      servers_.push_back(std::make_unique<Server>(i, setting.make_engine(), workload, result_.sequences, setting.observer));
    if (setting.replicas > 1) result_.replica_of.resize(workload.requests.size());
    touched_.resize(setting.replicas);
  }

  RunResult run() {
    constexpr std::uint64_t kLookEvery = 4096;  // steps between looks at the stop flag
    for (std::uint64_t turn = 0;; ++turn) {
      const Picoseconds now = next_moment();
      if (now == kNever || now > setting_.horizon) break;
      if (static_cast<double>(now) > kLongestRun * kPicosecondsPerSecond)
        throw BadInput(
            {"", 0, 0},
            fmt::format("the run lasts longer than {:g} s, where simulated time ends, allowed: fewer requests, cheaper "
                        "steps, or serve.horizon_s",
                        kLongestRun));
      ends_of_steps(now);
      arrivals(now);
      for (std::size_t i = 0; i < servers_.size(); ++i)
        if (std::exchange(touched_[i], 0) != 0) servers_[i]->begin_steps(now);
      if (turn % kLookEvery == 0) {
        if (setting_.stop != nullptr && setting_.stop->load()) {
          result_.interrupted = true;
          break;
        }
        if (setting_.progress) setting_.progress(result_.finished);
      }
    }
    for (const std::unique_ptr<Server>& server : servers_) {
      result_.totals.push_back(server->totals());
      result_.gaps.insert(result_.gaps.end(), server->gaps().begin(), server->gaps().end());
    }
    const BlockPool& pool = servers_.front()->pool();
    result_.pool_blocks = pool.usable();
    result_.pool_tokens = pool.unlimited() ? 0 : pool.usable() * pool.block_tokens();
    result_.sent = client_.sent();
    result_.reached_end = result_.finished == workload_.requests.size();
    if (!result_.reached_end && setting_.horizon != kNever) result_.end = setting_.horizon;
    return std::move(result_);
  }

 private:
  [[nodiscard]] Picoseconds next_moment() const {
    Picoseconds now = transit_.empty() ? kNever : transit_.front().arrives;
    const Picoseconds sent = client_.next();
    if (sent != kNever) now = std::min(now, setting_.frontend == 0 ? sent : std::min(sent + setting_.frontend, now));
    for (const std::unique_ptr<Server>& server : servers_) now = std::min(now, server->next());
    return now;
  }

  void ends_of_steps(Picoseconds now) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i]->next() != now) continue;
      ended_.clear();
      servers_[i]->finish_step(now, ended_);
      touched_[i] = 1;
      result_.finished += ended_.size();
      if (!ended_.empty()) result_.end = now;
      std::sort(ended_.begin(), ended_.end());
      for (std::size_t n = 0; n < ended_.size(); ++n) client_.ended(now);
    }
  }

  void arrivals(Picoseconds now) {
    // What is sent is on its way for the same time, so it arrives in the order of sending.
    for (Picoseconds sent = client_.next(); sent != kNever && sent + setting_.frontend <= now; sent = client_.next()) send(sent);
    for (; !transit_.empty() && transit_.front().arrives <= now; transit_.pop_front()) {
      const RequestId request = transit_.front().request;
      const std::uint32_t replica = servers_.size() == 1 ? 0 : setting_.routing->replica(request, workload_, servers_);
      if (servers_.size() > 1) result_.replica_of[request] = replica;
      servers_[replica]->arrive(request, now);
      if (servers_[replica]->idle()) touched_[replica] = 1;
    }
  }

  void send(Picoseconds sent) {
    const RequestId request = client_.send();
    result_.sequences[request].sent = sent;
    result_.sequences[request].since = sent;
    transit_.push_back({request, sent + setting_.frontend});
  }

  const Workload& workload_;
  const RunSetting& setting_;
  Client client_;
  RunResult result_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<char> touched_;  // [replica]: a step ended or an idle engine got a request
  std::deque<Transit> transit_;
  std::vector<RequestId> ended_;
};

}  // namespace

RunResult simulate(const Workload& workload, const RunSetting& setting) { return Run(workload, setting).run(); }

}  // namespace specsim::serve
