#include "sim/base/check.h"
#include "sim/base/token.h"
#include "sim/config/choose.h"
#include "sim/draft/length_policy.h"
#include "sim/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// A policy of single sequences: each request has a length of its own, by what its own rounds accepted.
class Adaptive final : public ServerPolicy {
 public:
  Adaptive(std::shared_ptr<const draft::LengthPolicy> own, int longest, DisableAbove disable)
      : own_(std::move(own)), longest_(longest), disable_(disable) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override { return disable_.holds(batch) ? 0 : longest_; }
  [[nodiscard]] int longest() const override { return longest_; }
  [[nodiscard]] bool per_request() const override { return true; }
  [[nodiscard]] int of_request(arrivals::RequestId request, int batch_length) const override {
    return std::min(batch_length, request < memory_.size() ? memory_[request].length : own_->start().length);
  }
  void observe_request(arrivals::RequestId request, int drafted, int accepted) override {
    if (request >= memory_.size()) memory_.resize(request + std::size_t{1}, own_->start());
    own_->observe(memory_[request], drafted, accepted);
  }

 private:
  std::shared_ptr<const draft::LengthPolicy> own_;
  int longest_;
  DisableAbove disable_;
  std::vector<draft::LengthPolicy::Memory> memory_;  // [request]
};

PolicyMaker read_adaptive(const config::Arguments& arguments, Diagnostics& diagnostics) {
  const auto longest = static_cast<int>(arguments.integer("longest"));
  const std::size_t before = diagnostics.list().size();
  const config::Value section = config::spelled_out(arguments.value("policy"), "kind");
  const auto [entry, own, where] = config::choose(draft::policies(), section, "kind", "the policy of each request", diagnostics);
  if (entry == nullptr) return nullptr;
  const auto requests = static_cast<std::uint32_t>(arguments.integer("batch"));
  // How long rounds take is known where a server is started, not here.
  draft::LengthChoice choice{longest, {}, static_cast<int>(requests)};
  if (entry->by_times) choice.round_times.resize(static_cast<std::size_t>(longest) + 1, 1.0);
  const std::shared_ptr<const draft::LengthPolicy> policy = entry->make(own, choice, diagnostics);
  if (!policy || diagnostics.list().size() != before) return nullptr;
  const bool looks = policy->looks() || policy->remembers_tokens();
  if (looks || policy->foresees()) {
    diagnostics.add(section.find("kind")->where,
                    fmt::format("{} {}, allowed: a policy that goes by what was accepted{}", entry->info.name,
                                looks ? "looks at the draft's distributions" : "knows what will be accepted",
                                looks ? ", or this one in decode, whose rounds are executed" : ""));
    return nullptr;
  }
  const BatchState batch{requests, 0, requests * arguments.number("context")};
  const DisableAbove disable = read_disable_above(arguments);
  if (!entry->by_times)
    return [policy, longest, disable](const PolicySetting&) { return std::make_unique<Adaptive>(policy, longest, disable); };
  return [policy, longest, disable, batch](const PolicySetting& setting) {
    std::vector<double> times;
    for (int length = 0; length <= longest; ++length) times.push_back(setting.seconds(batch, length));
    std::shared_ptr<const draft::LengthPolicy> timed = policy->with_round_times(std::move(times));
    SPECSIM_CHECK(timed != nullptr, "a policy by times that takes none");
    return std::make_unique<Adaptive>(std::move(timed), longest, disable);
  };
}

}  // namespace

ServerPolicyEntry adaptive_policy() {
  std::vector<config::Parameter> parameters = {
      {"policy", config::Type::value, {}, "policy that each request follows: {kind: NAME, ...}, one of decode's", {}, {}},
      {"longest", config::Type::integer, "8", "tokens that a sequence drafts at most", config::between(1, kMaxDraftLength), {}},
      {"batch",
       config::Type::integer,
       "1",
       "requests of the step that a policy by times or by batch plans with",
       config::between(1, 1e6),
       {}},
      {"context", config::Type::number, "512", "cached tokens of each of them", config::between(0, 1e9), {}}};
  for (config::Parameter& one : disable_parameters()) parameters.push_back(std::move(one));
  return {
      {"adaptive", "a draft length for each request, by what its own rounds accepted", "", std::move(parameters),
       "Any of decode's policies that goes by what was accepted. The draft's passes go on to the longest of the batch, and those "
       "that draft no further lay no row into them. An asynchronous engine knows of a round one step late."},
      read_adaptive,
      "policy"};
}

}  // namespace specsim::serve
