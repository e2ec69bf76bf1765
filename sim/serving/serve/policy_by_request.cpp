// Whether a request drafts, and how much, by its class, its length, and what was accepted of its drafts.
#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace specsim::serve {

namespace {

struct ByRequestParams {
  int draft_length = 0;
  std::vector<double> classes;
  std::uint32_t least_left = 0;
  std::uint32_t longest_context = 4000000000;
  std::uint32_t window = 0;
  double least_accepted = 0.5;
  DisableAbove disable;
};

class RequestSwitch final : public ServerPolicy {
 public:
  RequestSwitch(ByRequestParams params, std::function<std::size_t(arrivals::RequestId)> class_of)
      : params_(std::move(params)), class_of_(std::move(class_of)) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override { return params_.disable.holds(batch) ? 0 : longest(); }
  [[nodiscard]] int longest() const override {
    return params_.classes.empty() ? params_.draft_length
                                   : static_cast<int>(*std::max_element(params_.classes.begin(), params_.classes.end()));
  }
  [[nodiscard]] std::vector<int> lengths() const override {
    std::vector<int> all;
    for (const double length : params_.classes) all.push_back(static_cast<int>(length));
    if (all.empty()) all.push_back(params_.draft_length);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase(all, 0);
    return all;
  }
  [[nodiscard]] std::size_t classes() const override { return params_.classes.size(); }
  [[nodiscard]] bool per_request() const override { return true; }
  [[nodiscard]] int of_request(const DraftingRequest& request, int batch_length) const override {
    if (request.left < params_.least_left || request.tokens > params_.longest_context) return 0;
    if (const auto found = history_.find(request.id); found != history_.end() && found->second.stopped) return 0;
    if (params_.classes.empty()) return batch_length;
    return std::min(batch_length, static_cast<int>(params_.classes[class_of_ ? class_of_(request.id) : 0]));
  }
  void observe_request(arrivals::RequestId request, int drafted, int accepted) override {
    if (params_.window == 0 || drafted == 0) return;
    History& own = history_[request];
    ++own.rounds;
    own.accepted += static_cast<std::uint32_t>(accepted);
    if (own.rounds < params_.window) return;
    own.stopped = own.stopped || own.accepted < params_.least_accepted * own.rounds;
    own.rounds = own.accepted = 0;
  }
  void forget(arrivals::RequestId request) override { history_.erase(request); }

 private:
  struct History {
    std::uint32_t rounds = 0;  // of the current window, and what they accepted
    std::uint32_t accepted = 0;
    bool stopped = false;
  };
  ByRequestParams params_;
  std::function<std::size_t(arrivals::RequestId)> class_of_;
  std::unordered_map<arrivals::RequestId, History> history_;  // of requests that run
};

const config::Fields<ByRequestParams>& by_request_fields() {
  using P = ByRequestParams;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens that a request drafts", config::between(0, kMaxDraftLength), config::required},
      {"classes", &P::classes,
       "tokens that a request of each of acceptance's classes drafts, in their order, in place of draft_length; 0: none",
       config::between(0, kMaxDraftLength)},
      {"least_left", &P::least_left, "a request that is closer to its limit of output tokens drafts nothing",
       config::between(0, 4e9)},
      {"longest_context", &P::longest_context,
       "a request with more tokens drafts nothing (--speculative-max-model-len of vLLM before V1)", config::between(0, 4e9)},
      {"window", &P::window, "rounds after which a request's drafts are judged; 0: never", config::between(0, 1e6)},
      {"least_accepted", &P::least_accepted,
       "a request whose rounds of a window accept fewer tokens on average drafts nothing from then on",
       config::between(0, kMaxDraftLength)},
      {&P::disable, disable_fields()},
  };
  return fields;
}

PolicyMaker read_by_request(const config::Arguments& arguments, Diagnostics& diagnostics) {
  const ByRequestParams own = by_request_fields().read(arguments);
  for (const double length : own.classes)
    if (length != std::floor(length)) {
      diagnostics.add(arguments.where("classes"), fmt::format("classes has {:g}, allowed: whole numbers", length));
      return nullptr;
    }
  if (arguments.given("least_accepted") && own.window == 0)
    diagnostics.add(arguments.where("least_accepted"), "least_accepted is given without window, allowed: with window above 0");
  return [own](const PolicySetting& setting) { return std::make_unique<RequestSwitch>(own, setting.class_of); };
}

}  // namespace

ServerPolicyEntry by_request_policy() {
  return {
      {"by_request", "a draft length for each request, by its class, its length and its acceptance",
       "per-request switches: vLLM 52258 and 55412, SGLang 30263, llama.cpp 23052", by_request_fields(),
       "Requests that draft nothing share steps with those that draft, and add no row to the draft's later passes; the draft's "
       "cache is kept for them. An asynchronous engine learns of a round one step late."},
      read_by_request,
      "draft_length"};
}

}  // namespace specsim::serve
