#include "sim/serving/serve/simulate_streamed.h"

#include "sim/foundation/base/parallel.h"
#include "sim/foundation/base/sliding_array.h"
#include "sim/serving/serve/moments.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace specsim::serve {

namespace {

// A replica with the figures of its requests.
struct Replica {
  std::unique_ptr<Server> server;
  StreamedFigures figures;
  std::deque<arrivals::RequestId> open;         // requests whose memory is still needed, and later ones, in order
  std::vector<arrivals::RequestId> just_ended;  // with its last step: the step that runs may still name them
  std::size_t finished = 0;
  arrivals::Picoseconds end = 0;
};

class Stream {
 public:
  Stream(const RunSetting& setting, const StreamSetting& stream)
      : setting_(setting), stream_(stream), sequences_(stream.requests), moments_(setting.replicas) {
    for (std::uint32_t i = 0; i < setting.replicas; ++i)
      replicas_.push_back({std::make_unique<Server>(i, setting.make_engine(), nothing_, sequences_.data(), nullptr),
                           StreamedFigures(stream.slo, stream.requests, stream.warm_up),
                           {},
                           {},
                           0,
                           0});
    for (const Replica& one : replicas_) routed_.add(one.server.get());
  }

  StreamedRun run() {
    StreamedRun streamed;
    SimulationResult& result = streamed.result;
    std::vector<arrivals::Request> block(std::min(stream_.block, stream_.requests));
    std::vector<arrivals::Request> next(block.size());
    stream_.fill(0, block);
    for (std::size_t first = 0; first < stream_.requests && !result.interrupted; first += block.size()) {
      if (first > 0) std::swap(block, next);
      block.resize(std::min(stream_.block, stream_.requests - first));
      next.resize(std::min(stream_.block, stream_.requests - first - block.size()));
      if (!next.empty()) stream_.fill(first + block.size(), next);
      const arrivals::Picoseconds until = next.empty() ? arrivals::kNever : next.front().due + setting_.frontend;
      for (std::size_t i = 0; i < block.size(); ++i) send(first + i, block[i]);
      if (replicas_.size() == 1 || setting_.routing->blind())
        each_by_itself(first, block, until);
      else
        together(first, block, until);
      let_go(first + block.size());
      std::size_t finished = 0;
      for (const Replica& one : replicas_) finished += one.finished;
      if (setting_.progress) setting_.progress(finished);
      result.interrupted = setting_.stop != nullptr && setting_.stop->load();
    }
    finish(streamed);
    return streamed;
  }

 private:
  void send(std::size_t request, const arrivals::Request& asked) {
    Sequence& sequence = sequences_.make(request);
    sequence.prompt = asked.prompt;
    sequence.output = asked.output;
    sequence.limit = std::max(asked.limit, asked.output);
    sequence.priority = asked.priority;
    sequence.sent = sequence.since = asked.due;
  }

  // Ends the step that ends now.
  void finish_step(Replica& replica, arrivals::Picoseconds now) {
    replica.just_ended.clear();
    replica.server->finish_step(now, replica.just_ended);
    for (const arrivals::RequestId request : replica.just_ended) replica.figures.add(request, sequences_[request], now);
    replica.finished += replica.just_ended.size();
    if (!replica.just_ended.empty()) replica.end = now;
  }

  void arrive(Replica& replica, arrivals::RequestId request, arrivals::Picoseconds now) {
    replica.open.push_back(request);
    replica.server->arrive(request, now);
  }

  // Moves the server's gaps to the figures.
  static void take_gaps(Replica& replica, std::vector<Gap>& gaps) {
    replica.server->swap_gaps(gaps);
    replica.figures.add_gaps(gaps);
    gaps.clear();
  }

  // One replica from here to `until`, with these of its requests, which arrive before.
  void advance(Replica& replica, const std::vector<arrivals::RequestId>& mine, arrivals::Picoseconds until) {
    thread_local std::vector<Gap> gaps;  // all replicas of a thread use the same memory, which stays in its cache
    replica.server->swap_gaps(gaps);
    std::size_t at = 0;
    while (true) {
      const arrivals::Picoseconds comes = at < mine.size() ? sequences_[mine[at]].sent + setting_.frontend : arrivals::kNever;
      replica.server->decode_until(std::min(comes, until));
      const arrivals::Picoseconds now = std::min(comes, replica.server->next());
      if (now >= until) break;
      check_moment(now);
      bool touched = replica.server->next() == now;
      if (touched) finish_step(replica, now);
      for (; at < mine.size() && sequences_[mine[at]].sent + setting_.frontend == now; ++at) {
        arrive(replica, mine[at], now);
        touched = touched || replica.server->idle();
      }
      if (touched) replica.server->begin_steps(now);
    }
    take_gaps(replica, gaps);
  }

  void each_by_itself(std::size_t first, const std::vector<arrivals::Request>& block, arrivals::Picoseconds until) {
    mine_.resize(replicas_.size());
    for (auto& list : mine_) list.clear();
    for (std::size_t i = 0; i < block.size(); ++i) {
      const auto request = static_cast<arrivals::RequestId>(first + i);
      mine_[replicas_.size() == 1 ? 0 : setting_.routing->replica(request, nothing_, routed_)].push_back(request);
    }
    for_each(replicas_.size(), stream_.threads, [&](std::size_t i) { advance(replicas_[i], mine_[i], until); });
  }

  // Until moments_[replica] no count that a routing sees changes there, unless it gets a request. Its steps up to then may be
  // done later.
  void began(std::size_t replica) {
    moments_.set(replica, replicas_[replica].server->quiet_until());
    routed_.update(replica);
  }

  // Ends the steps of a replica that end before `now` or, if one does, now.
  bool catch_up(Replica& replica, arrivals::Picoseconds now) {
    replica.server->decode_until(now);
    if (replica.server->next() != now) return false;
    finish_step(replica, now);
    return true;
  }

  // Brings all replicas to `until`, as far as a routing sees them.
  void advance_all(arrivals::Picoseconds until) {
    while (moments_.earliest() < until) {
      const std::size_t i = moments_.first();
      const arrivals::Picoseconds now = moments_.earliest();
      check_moment(now);
      catch_up(replicas_[i], now);
      replicas_[i].server->begin_steps(now);
      began(i);
    }
  }

  void together(std::size_t first, const std::vector<arrivals::Request>& block, arrivals::Picoseconds until) {
    std::vector<std::size_t> touched;  // a step ended, or an idle engine got a request
    for (std::size_t at = 0; at < block.size();) {
      const arrivals::Picoseconds now = block[at].due + setting_.frontend;
      check_moment(now);
      advance_all(now);
      touched.clear();
      while (moments_.earliest() == now) {
        const std::size_t i = moments_.first();
        catch_up(replicas_[i], now);
        moments_.set(i, replicas_[i].server->next());
        routed_.update(i);
        touched.push_back(i);
      }
      for (; at < block.size() && block[at].due + setting_.frontend == now; ++at) {
        const auto request = static_cast<arrivals::RequestId>(first + at);
        const std::uint32_t i = setting_.routing->replica(request, nothing_, routed_);
        const bool ended = catch_up(replicas_[i], now);
        arrive(replicas_[i], request, now);
        if (ended || replicas_[i].server->idle())
          touched.push_back(i);
        else
          began(i);
        routed_.update(i);
      }
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (const std::size_t i : touched) {
        replicas_[i].server->begin_steps(now);
        began(i);
      }
    }
    advance_all(until);
    std::vector<Gap> gaps;
    for (Replica& one : replicas_) take_gaps(one, gaps);
  }

  // Gives back the memory of requests that ended, among the first `made`.
  void let_go(std::size_t made) {
    std::size_t needed = made;
    for (Replica& one : replicas_) {
      const auto named = [&](arrivals::RequestId request) {
        return !one.server->idle() && std::find(one.just_ended.begin(), one.just_ended.end(), request) != one.just_ended.end();
      };
      while (!one.open.empty() && sequences_[one.open.front()].status == Status::finished && !named(one.open.front()))
        one.open.pop_front();
      if (!one.open.empty()) needed = std::min<std::size_t>(needed, one.open.front());
    }
    sequences_.let_go(needed);
  }

  void finish(StreamedRun& streamed) {
    SimulationResult& result = streamed.result;
    result.sent = stream_.requests;
    for (Replica& one : replicas_) {
      result.totals.push_back(one.server->totals());
      result.finished += one.finished;
      result.end = std::max(result.end, one.end);
    }
    const BlockPool& pool = replicas_.front().server->pool();
    result.pool_blocks = pool.usable();
    result.pool_tokens = pool.unlimited() ? 0 : pool.usable() * pool.block_tokens();
    result.reached_end = result.finished == stream_.requests;
    if (result.interrupted) return;
    for (Replica& one : replicas_)
      for (const arrivals::RequestId request : one.open)
        if (sequences_[request].status != Status::finished) one.figures.add(request, sequences_[request], result.end);
    for (std::size_t i = 1; i < replicas_.size(); ++i) replicas_[0].figures.merge(replicas_[i].figures);
    streamed.summary = std::move(replicas_[0].figures).summary(result, setting_.replicas);
  }

  const RunSetting& setting_;
  const StreamSetting& stream_;
  const arrivals::RequestTrace nothing_;  // no request has hashes
  SlidingArray<Sequence> sequences_;      // [request]
  std::vector<Replica> replicas_;
  RoutedReplicas routed_;
  Moments moments_;
  std::vector<std::vector<arrivals::RequestId>> mine_;  // [replica]: requests of the block
};

}  // namespace

StreamedRun simulate_streamed(const RunSetting& setting, const StreamSetting& stream) { return Stream(setting, stream).run(); }

}  // namespace specsim::serve
