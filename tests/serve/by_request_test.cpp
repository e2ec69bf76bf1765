// Policy by_request: who drafts, counted from each request's rounds, and the figures of classes.
#include "sim/foundation/config/choose.h"
#include "sim/serving/serve/policy.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace specsim::by_request_test {

namespace {

// One request at a time, so that a step is a round. Steps take 10 ms, drafts nothing.
std::string alone(const std::string& policy, const std::string& acceptance, const std::string& lengths,
                  const std::string& scheduler = "kind: vllm_v1, async: false", int requests = 40) {
  return fmt::format(R"(serve:
  scheduler: {{{}}}
  arrivals: {{process: closed, concurrency: 1, requests: {}}}
  lengths: {{{}}}
  speculation: {{policy: {{kind: by_request, {}}}, method: ngram, acceptance: {{{}}}}}
cost: {{model: affine, target_fixed_ms: 10}}
)",
                     scheduler, requests, lengths, policy, acceptance);
}

load::ServeResult run(const std::string& yaml) { return tests::run_server(tests::server(yaml)); }

constexpr const char* kSure = "alpha: 1";
constexpr const char* kClasses = "classes: [{share: 0.5, alpha: 1, name: code}, {share: 0.5, alpha: 0, name: prose}]";

std::uint32_t rounds_of(std::uint32_t tokens, std::uint32_t each) { return (tokens + each - 1) / each; }

}  // namespace

namespace {

// The policy inside it, with the requests that it has observed and not yet forgotten. Counts are of all replicas.
class Watched final : public serve::ServerPolicy {
 public:
  struct Counts {
    std::size_t most = 0;  // remembered at once
    std::size_t left = 0;
    std::size_t forgotten = 0;
  };
  Watched(std::unique_ptr<serve::ServerPolicy> own, Counts& counts) : own_(std::move(own)), counts_(counts) {}
  ~Watched() override { counts_.left += known_.size(); }
  [[nodiscard]] int draft_length(const serve::BatchState& batch) override { return own_->draft_length(batch); }
  [[nodiscard]] int longest() const override { return own_->longest(); }
  [[nodiscard]] bool per_request() const override { return own_->per_request(); }
  [[nodiscard]] int of_request(const serve::DraftingRequest& request, int length) const override {
    return own_->of_request(request, length);
  }
  void observe_request(arrivals::RequestId request, int drafted, int accepted) override {
    own_->observe_request(request, drafted, accepted);
    known_.insert(request);
    counts_.most = std::max(counts_.most, known_.size());
  }
  void forget(arrivals::RequestId request) override {
    own_->forget(request);
    known_.erase(request);
    ++counts_.forgotten;
  }

 private:
  std::unique_ptr<serve::ServerPolicy> own_;
  Counts& counts_;
  std::set<arrivals::RequestId> known_;
};

}  // namespace

// Mutants: a server that never forgets (all 150 requests are left), and one that forgets requests that are preempted.
TEST_CASE("a policy remembers the requests that run, and no others", "[serve]") {
  for (const char* const scheduler : {"kind: vllm_v1, async: false", "kind: vllm_v1", "kind: sglang"})
    for (const char* const kind :
         {"kind: by_request, draft_length: 3, window: 4", "kind: adaptive, policy: additive, longest: 6"}) {
      INFO(scheduler << ", " << kind);
      std::string text = tests::crowded(tests::drafting(kind, kSure), scheduler);
      if (const std::size_t at = text.find("sglang, max_num_seqs"); at != std::string::npos)
        text.replace(at, 20, "sglang, max_running_requests");
      load::ServeExperiment experiment = tests::server(text);
      Watched::Counts counts;
      experiment.speculation->policy = [&, own = experiment.speculation->policy](const serve::PolicySetting& setting) {
        return std::make_unique<Watched>(own(setting), counts);
      };
      const load::ServeResult served = tests::run_server(experiment);
      CHECK(counts.forgotten == served.summary.completed);
      CHECK(counts.left == 0);
      CHECK(counts.most < 100);
      CHECK(counts.most > 10);
    }
}

// Mutant: a request whose drafts stopped stays in the policy's memory after its end.
TEST_CASE("policies forget the rounds of a request", "[serve]") {
  for (const char* const text :
       {"{kind: by_request, draft_length: 3, window: 2, least_accepted: 1}", "{kind: adaptive, policy: additive, longest: 6}"}) {
    INFO(text);
    Diagnostics diagnostics;
    const config::Value section = config::parse_text(text, "test", diagnostics);
    const auto chosen = config::choose(serve::server_policies(), section, "kind", "test", diagnostics);
    REQUIRE(chosen.entry != nullptr);
    const serve::PolicyMaker maker = chosen.entry->read(chosen.arguments, diagnostics);
    for (const Diagnostic& one : diagnostics.list()) FAIL(one.message);
    const auto policy = maker({});
    const serve::DraftingRequest request{7, 100, 100};
    const int fresh = policy->of_request(request, policy->longest());
    for (int i = 0; i < 20; ++i) policy->observe_request(7, 3, 0);
    CHECK(policy->of_request(request, policy->longest()) < fresh);
    policy->forget(7);
    CHECK(policy->of_request(request, policy->longest()) == fresh);
  }
}

TEST_CASE("requests near their limit draft nothing", "[serve]") {
  // The first of 31 tokens comes with the prompt. Rounds of three drafts, all accepted, give four: after 1, 5, 9, 13, 17 tokens
  // there are 30, 26, 22, 18, 14 left. Drafting stops when fewer than 18 are left: 4 rounds, then 14 of one token. Mutants: with
  // drafts to the end there are 8 rounds; if none are made with 18 left, 3 and 18.
  for (const char* const scheduler : {"kind: vllm_v1, async: false", "kind: sglang", "kind: trtllm"}) {
    const load::ServeResult served = run(alone("draft_length: 3, least_left: 18", kSure, "prompt: 16, output: 31", scheduler));
    for (const serve::Sequence& one : served.result.sequences) {
      CHECK(one.rounds == 4 + 14);
      CHECK(one.drafted == 4 * 3);
    }
    CHECK(served.summary.completed == 40);
  }
}

TEST_CASE("long requests draft nothing", "[serve]") {
  // Up to 30 tokens: after 17, 21, 25 and 29 tokens there are drafts, after 33 none. Of 41 output tokens, 17 come in four rounds
  // and with the prompt, and 24 alone. A prompt of 64 never drafts.
  const load::ServeResult served =
      run(alone("draft_length: 3, longest_context: 30", kSure, "prompt: {list: [16, 64]}, output: 41"));
  for (std::size_t i = 0; i < served.result.sequences.size(); ++i) {
    const serve::Sequence& one = served.result.sequences[i];
    CHECK(one.drafted == (one.prompt == 16 ? 4U * 3U : 0U));
    CHECK(one.rounds == (one.prompt == 16 ? 4U + 24U : 40U));
  }
}

TEST_CASE("a request whose drafts are rejected stops", "[serve]") {
  // Nothing of prose is accepted: it drafts in the first five rounds. All of code is: it never stops.
  const load::ServeResult served =
      run(alone("draft_length: 3, window: 5, least_accepted: 1", kClasses, "prompt: 16, output: 41"));
  std::size_t prose = 0;
  for (const serve::Sequence& one : served.result.sequences) {
    const bool code = one.accepted > 0;
    prose += code ? 0 : 1;
    CHECK(one.drafted == (code ? 3 * rounds_of(40, 4) : 3 * 5));
    CHECK(one.rounds == (code ? rounds_of(40, 4) : 40));
  }
  CHECK(prose > 5);
  CHECK(prose < 35);
}

TEST_CASE("classes draft by themselves and have figures of their own", "[serve]") {
  for (const char* const scheduler :
       {"kind: vllm_v1", "kind: vllm_v1, async: false", "kind: sglang", "kind: llama_cpp, slots: 1"}) {
    const std::string yaml = alone("draft_length: 3, classes: [3, 0]", kClasses, "prompt: 16, output: 41", scheduler, 200);
    const load::ServeExperiment experiment = tests::server(yaml);
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    const load::ServeResult served = load::serve(experiment, workload, {});
    const std::vector<load::ClassSummary> classes = load::class_summaries(experiment, workload, served.result);
    REQUIRE(classes.size() == 2);
    CHECK(classes[0].name == "code");
    CHECK(classes[1].name == "prose");
    // One token per step of 10 ms, or four.
    CHECK(classes[0].summary.tpot_ms.p99 == Approx(10.0 * 10 / 40));
    CHECK(classes[1].summary.tpot_ms.p99 == Approx(10.0));
    CHECK(classes[1].summary.drafted == 0.0);
    CHECK(classes[0].summary.acceptance_rate >= 0.9);
    // Conservation: each request is in one class.
    CHECK(classes[0].summary.completed + classes[1].summary.completed == served.summary.completed);
    CHECK(classes[0].summary.output_tokens + classes[1].summary.output_tokens == served.summary.output_tokens);
    CHECK(classes[0].summary.drafted == served.summary.drafted);
    CHECK(classes[0].summary.life_ms[0] == Approx(0.0));
    // The same requests without speculation.
    const load::ServeResult plain = load::serve(load::without_speculation(experiment), workload, {});
    const std::vector<load::ClassSummary> without = load::class_summaries(experiment, workload, plain.result);
    CHECK(without[0].summary.completed == classes[0].summary.completed);
    CHECK(without[0].summary.tpot_ms.mean == Approx(10.0));
  }
}

// A step takes 10 ms and each pass of the draft 2 ms. All drafts are accepted: a round has four tokens. Mutants: passes are made
// for all classes; for none.
TEST_CASE("a class whose drafts are looked up waits for no pass of the draft", "[serve]") {
  for (const char* const scheduler :
       {"kind: vllm_v1", "kind: vllm_v1, async: false", "kind: sglang", "kind: trtllm", "kind: llama_cpp, slots: 1"}) {
    INFO(scheduler);
    const load::ServeExperiment experiment = tests::server(fmt::format(R"(serve:
  scheduler: {{{}}}
  arrivals: {{process: closed, concurrency: 1, requests: 60}}
  lengths: {{prompt: 16, output: 41}}
  speculation:
    policy: {{kind: fixed, draft_length: 3}}
    method: draft_model
    acceptance: {{classes: [{{share: 0.5, alpha: 1, name: chat}}, {{share: 0.5, alpha: 1, name: edits, drafter: ngram}}]}}
cost: {{model: affine, target_fixed_ms: 10, draft_fixed_ms: 2}}
)",
                                                                       scheduler));
    const arrivals::RequestTrace workload = load::make_requests(experiment);
    const load::ServeResult served = load::serve(experiment, workload, {});
    const std::vector<load::ClassSummary> classes = load::class_summaries(experiment, workload, served.result);
    REQUIRE(classes.size() == 2);
    CHECK(classes[0].summary.tpot_ms.p50 == Approx((10.0 + 3 * 2.0) / 4));
    CHECK(classes[1].summary.tpot_ms.p50 == Approx(10.0 / 4));
    CHECK(classes[1].summary.tokens_per_round == Approx(4.0));
  }
}

TEST_CASE("what by_request refuses", "[serve]") {
  const auto refused = [](const std::string& policy, const std::string& acceptance = kClasses) {
    return alone(policy, acceptance, "prompt: 16, output: 41");
  };
  CHECK_THROWS_WITH(tests::server(refused("draft_length: 3, classes: [3]")),
                    Catch::Contains("test:5:") && Catch::Contains("a draft length for 1 classes, and acceptance has 2"));
  CHECK_THROWS_WITH(tests::server(refused("draft_length: 3, classes: [3, 1]", kSure)), Catch::Contains("acceptance has 0"));
  CHECK_THROWS_WITH(tests::server(refused("draft_length: 3, classes: [3, 0.5]")), Catch::Contains("classes has 0.5"));
  CHECK_THROWS_WITH(tests::server(refused("draft_length: 3, least_accepted: 2")), Catch::Contains("without window"));
}

}  // namespace specsim::by_request_test
