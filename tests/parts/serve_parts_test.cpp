// A part of each kind of a server, registered by this program only, taken through serve, list and describe.
#include "sim/foundation/base/token.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/scheduler.h"
#include "tests/parts/program.h"
#include "tests/support/temporary_file.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace specsim::serve_parts_test {

using namespace specsim::tests;
using config::Registered;

namespace {

using Texts = std::vector<std::string>;

// ---- the toys ---------------------------------------------------------------------------------------------------------------

// [an arrival process]
// Six requests at equal intervals, the first at the start.
class QuarterArrivals final : public arrivals::ArrivalProcess {
 public:
  struct Params {
    double gap_s = 0.25;
  };
  explicit QuarterArrivals(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return 6; }
  void fill(arrivals::RequestTrace& workload, rng::Key /*key*/) const override {
    workload.requests.resize(requests());
    for (std::size_t i = 0; i < requests(); ++i)
      workload.requests[i].due = arrivals::moment(params_.gap_s * static_cast<double>(i));
  }

 private:
  Params params_;
};

arrivals::ArrivalsEntry quarter_arrivals() {
  using P = QuarterArrivals::Params;
  static const config::Fields<P> fields = {
      {"gap_s", &P::gap_s, "seconds from one request to the next", config::above(0, 1e6)},
  };
  return {{"toy_quarters", "a toy", "", fields}, [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<QuarterArrivals>(fields.read(arguments));
          }};
}
// [end of an arrival process]

// Each request is a token longer than the one before it.
class ClimbingLength final : public arrivals::LengthDistribution {
 public:
  explicit ClimbingLength(std::uint32_t first) : first_(first) {}
  std::uint32_t draw(std::uint64_t request, rng::Stream& /*random_bits*/) const override {
    return first_ + static_cast<std::uint32_t>(request);
  }

 private:
  std::uint32_t first_;
};

arrivals::LengthsEntry climbing_lengths() {
  return {{"toy_climb", "a toy", "", {}, ""},
          [](const config::Value& value, const config::PartInfo&,
             Diagnostics& diagnostics) -> std::unique_ptr<arrivals::LengthDistribution> {
            const auto first = config::read_integer(value, config::between(1, 100), "toy_climb", diagnostics);
            if (!first) return nullptr;
            return std::make_unique<ClimbingLength>(static_cast<std::uint32_t>(*first));
          }};
}

// [a scheduler]
// One request at a time; among those that wait, the one that came last.
class NewestFirst final : public serve::Scheduler {
 public:
  [[nodiscard]] serve::RunningLimit running_limit() const override { return {1, ""}; }
  [[nodiscard]] std::string refusal(const arrivals::Request& request, const serve::EngineState& state) const override {
    return refused_by_pool(state.pool->blocks_for(std::uint64_t{request.prompt} + request.output + state.lookahead), state);
  }
  void schedule(serve::EngineState& state, serve::Step& step) override {
    step.clear();
    if (running_.empty() && !waiting_.empty()) {
      running_.push_back(waiting_.back());
      waiting_.pop_back();
      serve::Sequence& sequence = state.at(running_.front());
      sequence.held = state.pool->blocks_for(std::uint64_t{sequence.prompt} + sequence.output + state.lookahead);
      state.pool->take(sequence.held);
      begin(sequence, 0, state);
    }
    for (const arrivals::RequestId request : running_) {
      serve::Sequence& sequence = state.at(request);
      const bool prefill = sequence.computed == 0;
      const std::uint32_t drafts = prefill ? 0 : sequence.spec;
      step.items.push_back({request, prefill ? sequence.prompt : 1 + drafts, drafts, 0, prefill, true, 0});
      sequence.spec = 0;
    }
    complete_step(state, step, waiting());
  }
  void update(serve::EngineState& state, const serve::Step& step, std::vector<arrivals::RequestId>& finished) override {
    take_tokens(state, step, finished);
  }
};

serve::SchedulerEntry newest_first_scheduler() {
  return {{"toy_newest", "a toy", "", {}, ""}, [](const config::Arguments&, Diagnostics&) -> serve::SchedulerMaker {
            return [] { return std::make_unique<NewestFirst>(); };
          }};
}
// [end of a scheduler]

// [a server policy]
// Alternates between two draft lengths: `most` tokens in one step, one fewer in the next.
class TurnsPolicy final : public serve::ServerPolicy {
 public:
  struct Params {
    int most = 2;
  };
  explicit TurnsPolicy(const Params& params) : params_(params) {}
  [[nodiscard]] int draft_length(const serve::BatchState& /*batch*/) override {
    longer_ = !longer_;
    return params_.most - (longer_ ? 0 : 1);
  }
  [[nodiscard]] int longest() const override { return params_.most; }

 private:
  Params params_;
  bool longer_ = false;
};

serve::ServerPolicyEntry turns_policy() {
  using P = TurnsPolicy::Params;
  static const config::Fields<P> fields = {
      {"most", &P::most, "draft length of every second step", config::between(2, kMaxDraftLength)},
  };
  return {{"toy_turns", "a toy", "", fields}, [](const config::Arguments& arguments, Diagnostics&) -> serve::PolicyMaker {
            return
                [params = fields.read(arguments)](const serve::PolicySetting&) { return std::make_unique<TurnsPolicy>(params); };
          }};
}
// [end of a server policy]

// ---- commands that use them --------------------------------------------------------------------------------------------

// Six requests that come faster than they are served, one after the other: a step takes .4 s.
struct Config {
  std::string scheduler = "{kind: static, batch: 1}";
  std::string arrivals = "{process: deterministic, rate: 100, requests: 6}";
  std::string prompt = "5";
  std::string output = "7";
  std::string policy = "{kind: fixed, draft_length: 2}";

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "experiment: toy\nserve:\n  scheduler: {}\n  arrivals: {}\n  lengths: {{prompt: {}, output: {}}}\n  speculation: "
        "{{policy: {}, acceptance: {{position_rates: [1, 1]}}}}\ncost: {{model: affine, target_fixed_ms: 399, "
        "target_ms_per_token: 0, target_ms_per_kv_token: 0, draft_fixed_ms_per_round: 1}}\n",
        scheduler, arrivals, prompt, output, policy);
  }
};

// A column of a CSV file without quotes.
Texts column(const std::string& path, const std::string& name) {
  const auto cells_of = [](const std::string& line) {
    Texts cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::istringstream lines(read_whole_file(path));
  std::string line;
  std::getline(lines, line);
  const Texts header = cells_of(line);
  const auto at = std::find(header.begin(), header.end(), name) - header.begin();
  Texts values;
  while (std::getline(lines, line)) values.push_back(cells_of(line).at(static_cast<std::size_t>(at)));
  return values;
}

// The files of a run of `specsim serve`, deleted with it.
class Served {
 public:
  explicit Served(const Config& config) : folder_(config_.path() + "_out") {
    write_whole_file(config_.path(), config.text());
    const Ended ended = run_program({"serve", config_.path(), "--threads", "1", "--steps", "--out", folder_});
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    CHECK_FALSE(ended.says("nan"));
  }
  ~Served() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  [[nodiscard]] Texts requests(const std::string& name) const { return column(folder_ + "/requests.csv", name); }
  [[nodiscard]] Texts steps(const std::string& name) const { return column(folder_ + "/steps.csv", name); }
  // The requests as they were first computed, one after the other.
  [[nodiscard]] std::vector<std::size_t> order() const {
    const Texts begun = requests("first_scheduled_s");
    std::vector<std::size_t> order(begun.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return std::stod(begun[a]) < std::stod(begun[b]); });
    return order;
  }

 private:
  TemporaryFile config_{""};
  std::string folder_;
};

void is_listed_and_described(const std::string& kind, const std::string& name) {
  const Ended listed = run_program({"list", kind});
  INFO(listed.output);
  CHECK(listed.status == 0);
  CHECK(listed.says("  " + name + " "));
  const Ended described = run_program({"describe", kind + "/" + name});
  INFO(described.output);
  CHECK(described.status == 0);
  CHECK(described.says(kind + "/" + name + ": a toy"));
}

void is_unknown(const Config& config, const std::string& message) {
  const TemporaryFile file(config.text());
  const Ended ended = run_program({"serve", file.path()});
  INFO(ended.output);
  CHECK(ended.status == 2);
  CHECK(ended.says(message));
}

// After each step: the toy's lengths, 2 first.
bool takes_turns(const Texts& lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] != (i % 2 == 0 ? "2" : "1")) return false;
  return lengths.size() > 2;
}

const Texts kQuarters = {"0", "0.25", "0.5", "0.75", "1", "1.25"};

}  // namespace

TEST_CASE("a custom arrival process determines when requests are sent") {
  const Config config = {.arrivals = "{process: toy_quarters}"};
  {
    const Registered<arrivals::ArrivalsEntry> part(arrivals::arrival_processes(), quarter_arrivals());
    CHECK(Served(config).requests("arrival_s") == kQuarters);
    is_listed_and_described("arrivals", "toy_quarters");
  }
  is_unknown(config, "unknown arrival process \"toy_quarters\"");
}

TEST_CASE("a custom length distribution determines how long prompts and outputs are") {
  const Config config = {.prompt = "{toy_climb: 3}", .output = "{toy_climb: 7}"};
  {
    const Registered<arrivals::LengthsEntry> part(arrivals::length_distributions(), climbing_lengths());
    const Served served(config);
    CHECK(served.requests("prompt_tokens") == Texts{"3", "4", "5", "6", "7", "8"});
    CHECK(served.requests("output_tokens") == Texts{"7", "8", "9", "10", "11", "12"});
    is_unknown({.prompt = "{toy_climb: 0}"}, "toy_climb is 0");
    is_listed_and_described("lengths", "toy_climb");
  }
  is_unknown(config, "unknown length distribution \"toy_climb\"");
}

TEST_CASE("a custom scheduler determines who is served next") {
  const Config config = {.scheduler = "{kind: toy_newest}"};
  {
    const Registered<serve::SchedulerEntry> part(serve::schedulers(), newest_first_scheduler());
    // The first request comes to an empty server, the others while it is served.
    CHECK(Served(config).order() == std::vector<std::size_t>{0, 5, 4, 3, 2, 1});
    CHECK(Served({}).order() == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
    is_listed_and_described("scheduler", "toy_newest");
  }
  is_unknown(config, "unknown scheduler \"toy_newest\"");
}

TEST_CASE("a custom server policy determines how many tokens are drafted") {
  const Config config = {.policy = "{kind: toy_turns}"};
  {
    const Registered<serve::ServerPolicyEntry> part(serve::server_policies(), turns_policy());
    const Served served(config);
    CHECK(takes_turns(served.steps("draft_length")));
    // The next step verifies the tokens that a step drafts, unless it computes another sequence's prompt.
    const Texts lengths = served.steps("draft_length");
    const Texts verified = served.steps("draft_rows");
    const Texts prompts = served.steps("prefill_rows");
    for (std::size_t i = 1; i < lengths.size(); ++i)
      if (prompts[i] == "0") CHECK(verified[i] == lengths[i - 1]);
    CHECK_FALSE(takes_turns(Served({}).steps("draft_length")));
    is_listed_and_described("server_policy", "toy_turns");
  }
  is_unknown(config, "unknown server policy \"toy_turns\"");
}

TEST_CASE("a custom scheduler, policy, arrival process and length distribution serve together") {
  const Registered<arrivals::ArrivalsEntry> arrivals(arrivals::arrival_processes(), quarter_arrivals());
  const Registered<arrivals::LengthsEntry> lengths(arrivals::length_distributions(), climbing_lengths());
  const Registered<serve::SchedulerEntry> scheduler(serve::schedulers(), newest_first_scheduler());
  const Registered<serve::ServerPolicyEntry> policy(serve::server_policies(), turns_policy());
  const Served served({.scheduler = "{kind: toy_newest}",
                       .arrivals = "{process: toy_quarters}",
                       .prompt = "{toy_climb: 3}",
                       .output = "{toy_climb: 7}",
                       .policy = "{kind: toy_turns}"});
  CHECK(served.requests("arrival_s") == kQuarters);
  CHECK(served.requests("output_tokens") == Texts{"7", "8", "9", "10", "11", "12"});
  CHECK(served.requests("finished") == Texts(6, "1"));
  CHECK(takes_turns(served.steps("draft_length")));
  // Request 0 takes four steps of .4 s, in which all the others come.
  CHECK(served.order() == std::vector<std::size_t>{0, 5, 4, 3, 2, 1});
}

}  // namespace specsim::serve_parts_test
