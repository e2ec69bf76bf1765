#include "sim/foundation/base/error.h"
#include "sim/foundation/base/memory.h"
#include "sim/foundation/rng/address.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"

#include <boost/random/exponential_distribution.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::arrivals {

namespace {

constexpr std::uint32_t kBlock = 16;  // tokens per hash

struct SessionSetting {
  double rate = 1.0;  // sessions per second
  std::size_t requests = 1000;
  double gap_s = 10.0;       // mean, between the turns of a session
  std::uint32_t prefix = 0;  // tokens that all sessions begin with
  std::uint32_t most = 0;    // tokens of a prompt; a session ends before a longer one
  bool closed = false;       // a turn is sent when the one before has ended, after the client's thinking time
  std::shared_ptr<const LengthDistribution> turns;
  std::shared_ptr<const LengthDistribution> prompts;
  std::shared_ptr<const LengthDistribution> outputs;
};

struct Turn {
  Request request;
  std::size_t session = 0;
};

// The number of hashes of the prompts. Throws BadInput if they need more memory than there is.
std::uint64_t checked_hashes(const std::vector<Turn>& turns) {
  std::uint64_t hashes = 0;
  for (const Turn& one : turns) hashes += one.request.hashed / kBlock;
  if (hashes > UINT32_MAX || 2 * sizeof(std::uint64_t) * hashes > available_memory())
    throw BadInput({"", 0, 0},
                   fmt::format("the prompts of the sessions have {} blocks of {} tokens, which need more memory than this "
                               "machine has free, allowed: fewer requests, or shorter prompts",
                               hashes, kBlock));
  return hashes;
}

// Conversations: each turn's prompt is the whole conversation so far plus something new.
class Sessions final : public ArrivalProcess {
 public:
  explicit Sessions(SessionSetting setting) : setting_(std::move(setting)) {}
  [[nodiscard]] std::size_t requests() const override { return setting_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    std::vector<Turn> turns;
    std::priority_queue<Picoseconds> first;  // when the first requests() turns so far are due
    const auto complete = [&](Picoseconds due) { return first.size() == setting_.requests && due >= first.top(); };
    const auto keep_first = [&] {
      std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.request.due < b.request.due; });
      turns.resize(std::min(turns.size(), setting_.requests));
    };
    double start = 0.0;
    for (std::size_t session = 0; !workload.stopped(); ++session) {
      rng::Stream gap_bits(key, rng::Purpose::start, 1, session);
      start += boost::random::exponential_distribution<double>(setting_.rate)(gap_bits);
      if (complete(moment(start))) break;
      rng::Stream length_bits(key, rng::Purpose::length, 0, session);
      const std::uint32_t count = setting_.turns->draw(session, length_bits);
      double due = start;
      std::uint32_t said = setting_.prefix;
      for (std::uint32_t turn = 0; turn < count; ++turn) {
        if (turn > 0) due += boost::random::exponential_distribution<double>(1.0 / setting_.gap_s)(gap_bits);
        Turn one;
        one.session = session;
        one.request.due = moment(due);
        if (complete(one.request.due)) break;  // and so are the later turns
        const std::uint32_t fresh = setting_.prompts->draw(session, length_bits);
        if (said > setting_.most - std::min(setting_.most, fresh) && turn > 0) break;
        one.request.prompt = said + fresh;
        one.request.output = setting_.outputs->draw(session, length_bits);
        said = one.request.prompt + one.request.output;
        one.request.hashed = said;
        if (first.size() == setting_.requests) first.pop();
        first.push(one.request.due);
        turns.push_back(one);
        if (turns.size() > 2 * setting_.requests + kBlock) keep_first();
      }
    }
    keep_first();
    workload.hashes.reserve(checked_hashes(turns));
    workload.hash_tokens = kBlock;
    workload.answers_first = setting_.closed;
    std::unordered_map<std::size_t, std::uint32_t> before;  // by session: Request::follows of its next turn
    for (Turn& one : turns) {
      if (workload.stopped()) return;
      one.request.follows = std::exchange(before[one.session], static_cast<std::uint32_t>(workload.requests.size() + 1));
      one.request.first_hash = static_cast<std::uint32_t>(workload.hashes.size());
      one.request.hashes = one.request.hashed / kBlock;
      for (std::uint64_t block = 0; block < one.request.hashes; ++block)
        workload.hashes.push_back((block + 1) * kBlock <= setting_.prefix ? block : (one.session + 1) << 24 | block);
      workload.requests.push_back(one.request);
    }
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    SessionSetting other = setting_;
    other.rate = rate;
    return std::make_unique<Sessions>(std::move(other));
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    SessionSetting other = setting_;
    other.requests = requests;
    return std::make_unique<Sessions>(std::move(other));
  }

 private:
  SessionSetting setting_;
};

}  // namespace

ArrivalsEntry sessions_arrivals() {
  struct P {
    double rate = 0.0;
    std::size_t requests = 1000;
    config::Value turns;
    double gap_s = 10.0;
    std::uint32_t prefix = 0;
    config::Value prompt;
    config::Value output;
    bool closed = false;
    std::uint32_t most = 32768;
  };
  static const config::Fields<P> fields = {
      {"rate", &P::rate, "sessions that begin per second, a Poisson process", config::between(1e-9, 1e9), config::required},
      requests_field(&P::requests),
      {"turns", &P::turns, "requests of a session", config::Default{"{geometric: {mean: 4}}"}},
      {"gap_s", &P::gap_s, "mean time between two turns of a session, exponential", config::between(1e-6, 1e6)},
      {"prefix", &P::prefix, "tokens that all sessions begin with", config::between(0, 1e6)},
      {"prompt", &P::prompt, "tokens that a turn adds", config::required},
      {"output", &P::output, "tokens of an answer", config::required},
      {"closed", &P::closed,
       "true: a turn is sent gap_s after the end of the answer before it, as a client does; false: gap_s after the turn before "
       "it was due"},
      {"most", &P::most, "maximum number of tokens of a prompt; a session ends before a longer one", config::between(1, 1e7)},
  };
  return {{"sessions", "conversations: each turn's prompt is the whole conversation so far plus something new", "", fields,
           "The prefix cache and routing by prefix use the tokens that turns and sessions share. An answer is part of the next "
           "turn's prompt. Unless sessions are closed, a turn is due even if the turn before has not ended; a run reports how "
           "many were sent too early."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<ArrivalProcess> {
            const P params = fields.read(arguments);
            SessionSetting setting;
            const std::size_t before = diagnostics.list().size();
            setting.rate = params.rate;
            setting.requests = params.requests;
            setting.gap_s = params.gap_s;
            setting.prefix = params.prefix;
            setting.closed = params.closed;
            setting.most = params.most;
            setting.turns = read_lengths(params.turns, "turns", diagnostics);
            setting.prompts = read_lengths(params.prompt, "prompt", diagnostics);
            setting.outputs = read_lengths(params.output, "output", diagnostics);
            if (diagnostics.list().size() != before) return nullptr;
            return std::make_unique<Sessions>(std::move(setting));
          },
          true};
}

}  // namespace specsim::arrivals
