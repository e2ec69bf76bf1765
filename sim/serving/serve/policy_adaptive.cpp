#include "sim/foundation/base/check.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/choose.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// A policy of single sequences: each request has a length of its own, based on the acceptance of its own rounds.
class ByRequest final : public ServerPolicy {
 public:
  ByRequest(std::shared_ptr<const draft::LengthPolicy> own, int longest, DisableAbove disable)
      : own_(std::move(own)), longest_(longest), disable_(disable) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override { return disable_.holds(batch) ? 0 : longest_; }
  [[nodiscard]] int longest() const override { return longest_; }
  [[nodiscard]] bool per_request() const override { return true; }
  [[nodiscard]] int of_request(const DraftingRequest& request, int batch_length) const override {
    const auto found = memory_.find(request.id);
    return std::min(batch_length, found != memory_.end() ? found->second.length : own_->start().length);
  }
  void observe_request(arrivals::RequestId request, int drafted, int accepted) override {
    own_->observe(memory_.try_emplace(request, own_->start()).first->second, drafted, accepted);
  }
  void forget(arrivals::RequestId request) override { memory_.erase(request); }

 private:
  std::shared_ptr<const draft::LengthPolicy> own_;
  int longest_;
  DisableAbove disable_;
  std::unordered_map<arrivals::RequestId, draft::LengthPolicy::Memory> memory_;  // of requests that run
};

// One length for the batch, based on the acceptance of all of its sequences; batches of different sizes have separate states, as
// in SGLang.
class OfBatch final : public ServerPolicy {
 public:
  struct Slot {
    std::uint32_t from = 1;  // the smallest batch that it holds for
    std::shared_ptr<const draft::LengthPolicy> policy;
  };
  OfBatch(std::vector<Slot> slots, int longest, DisableAbove disable)
      : slots_(std::move(slots)), longest_(longest), disable_(disable) {
    for (const Slot& slot : slots_) memory_.push_back(slot.policy->start());
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    return disable_.holds(batch) ? 0 : memory_[slot_of(batch.requests)].length;
  }
  [[nodiscard]] int longest() const override { return longest_; }
  void observe(const StepRounds& rounds) override {
    const std::size_t slot = slot_of(rounds.sequences);
    // Converts the counts by position to counts by sequence: the number of sequences that accepted exactly k tokens is the count
    // at position k minus that at position k + 1.
    drafts_.clear();
    for (std::size_t at = rounds.accepted.size(); at > 0; --at) drafts_.resize(rounds.accepted[at - 1], static_cast<int>(at));
    const auto drafted = static_cast<int>(rounds.verified.size());
    drafts_.resize(drafted > 0 ? rounds.verified[0] : rounds.sequences, 0);
    slots_[slot].policy->observe_batch(memory_[slot], drafted, drafts_);
  }

 private:
  [[nodiscard]] std::size_t slot_of(std::uint32_t requests) const {
    std::size_t slot = 0;
    while (slot + 1 < slots_.size() && slots_[slot + 1].from <= requests) ++slot;
    return slot;
  }

  std::vector<Slot> slots_;
  int longest_;
  DisableAbove disable_;
  std::vector<draft::LengthPolicy::Memory> memory_;  // [slot]
  std::vector<int> drafts_;                          // [sequence of a step]: accepted tokens
};

struct AdaptiveParams {
  config::Value policy;
  bool of_batch = false;
  int longest = 8;
  std::optional<std::uint32_t> batch;
  std::vector<double> batches = {1.0};
  double context = 512.0;
  DisableAbove disable;
};
const config::Fields<AdaptiveParams>& adaptive_fields() {
  using P = AdaptiveParams;
  static const config::Fields<P> fields = {
      {"policy", &P::policy, "policy that is followed: {kind: NAME, ...}, one of decode's", config::required},
      {"per", &P::of_batch, "whether each request has its own draft length, or the sequences of a batch share one",
       config::one_of<bool>({{"request", false}, {"batch", true}})},
      {"longest", &P::longest, "maximum number of tokens that a sequence drafts", config::between(1, kMaxDraftLength)},
      {"batch", &P::batch, "requests of the step that a request's policy by times or by batch plans with; default: 1",
       config::between(1, 1e6)},
      {"batches", &P::batches,
       "with per: batch, the smallest batch of each range with its own state; the policy plans with these",
       config::between(1, 1e6)},
      {"context", &P::context, "cached tokens of each of them", config::between(0, 1e9)},
      {&P::disable, disable_fields()},
  };
  return fields;
}

// The smallest batches of the slots; empty after reporting.
std::vector<std::uint32_t> read_batches(const config::Arguments& arguments, const AdaptiveParams& own, Diagnostics& diagnostics) {
  std::vector<std::uint32_t> batches;
  if (!own.of_batch) {
    if (arguments.given("batches"))
      diagnostics.add(arguments.where("batches"), "batches with a length for each request, allowed: batch, or with per: batch");
    else
      batches.push_back(own.batch.value_or(1));
    return batches;
  }
  if (arguments.given("batch")) {
    diagnostics.add(arguments.where("batch"), "batch with per: batch, allowed: batches, or with per: request");
    return batches;
  }
  for (const double batch : own.batches) {
    if (batch != std::floor(batch) || (batches.empty() ? batch != 1.0 : batch <= batches.back())) {
      diagnostics.add(arguments.where("batches"), fmt::format("batches has {:g}, allowed: increasing integers from 1", batch));
      return {};
    }
    batches.push_back(static_cast<std::uint32_t>(batch));
  }
  if (batches.empty()) diagnostics.add(arguments.where("batches"), "batches is empty, allowed: increasing integers from 1");
  return batches;
}

PolicyMaker read_adaptive(const config::Arguments& arguments, Diagnostics& diagnostics) {
  const AdaptiveParams own = adaptive_fields().read(arguments);
  const int longest = own.longest;
  const bool of_batch = own.of_batch;
  const std::size_t before = diagnostics.list().size();
  const config::Value section = config::spelled_out(own.policy, "kind");
  const auto chosen = config::choose(draft::policies(), section, "kind",
                                     of_batch ? "the batch's policy" : "the policy of each request", diagnostics);
  const draft::PolicyEntry* const entry = chosen.entry;
  if (entry == nullptr) return nullptr;
  const std::vector<std::uint32_t> batches = read_batches(arguments, own, diagnostics);
  // Round times are only known when a server is started.
  const auto made = [&](std::uint32_t batch) {
    draft::LengthChoice choice{longest, {}, static_cast<int>(batch)};
    if (entry->by_times) choice.round_times.resize(static_cast<std::size_t>(longest) + 1, 1.0);
    return entry->make(chosen.arguments, choice, diagnostics);
  };
  std::vector<OfBatch::Slot> slots;
  for (const std::uint32_t batch : batches) {
    slots.push_back({batch, made(batch)});
    if (diagnostics.list().size() != before || !slots.back().policy) return nullptr;  // another slot would report it again
  }
  if (slots.empty()) return nullptr;
  const draft::LengthPolicy& first = *slots.front().policy;
  const bool looks = first.looks() || first.remembers_tokens();
  if (first.shares_rows()) {
    diagnostics.add(section.find("kind")->where,
                    fmt::format("{} shares out the rows of a batch that decode runs, allowed: a policy that depends on "
                                "acceptance",
                                entry->info.name));
    return nullptr;
  }
  if (looks || first.uses_forecasts()) {
    diagnostics.add(section.find("kind")->where,
                    fmt::format("{} {}, allowed: a policy that depends on acceptance{}", entry->info.name,
                                looks ? "looks at the draft's distributions" : "knows what will be accepted",
                                looks ? ", or this one in decode, which executes rounds" : ""));
    return nullptr;
  }
  // A batch of one does not show whether a policy chooses for all.
  if (of_batch && made(2)->sequences() == 1) {
    diagnostics.add(section.find("kind")->where,
                    fmt::format("{} chooses for each sequence, allowed with per: batch: a policy with one length per batch, as "
                                "ema_tiers or goodput",
                                entry->info.name));
    return nullptr;
  }
  const bool by_times = entry->by_times;
  return [=](const PolicySetting& setting) -> std::unique_ptr<ServerPolicy> {
    std::vector<OfBatch::Slot> timed = slots;
    for (OfBatch::Slot& slot : timed) {
      if (!by_times) break;
      std::vector<double> times;
      for (int length = 0; length <= longest; ++length)
        times.push_back(setting.seconds({slot.from, 0, slot.from * own.context}, length));
      slot.policy = slot.policy->with_round_times(times);
      SPECSIM_CHECK(slot.policy != nullptr, "a policy by times without times");
    }
    if (of_batch) return std::make_unique<OfBatch>(std::move(timed), longest, own.disable);
    return std::make_unique<ByRequest>(timed.front().policy, longest, own.disable);
  };
}

}  // namespace

ServerPolicyEntry adaptive_policy() {
  return {
      {"adaptive", "a draft length for each request, or for the batch, based on the acceptance of its rounds", "",
       adaptive_fields(),
       "Any of decode's policies that depends on acceptance. If each request has a length, the draft's passes continue to the "
       "longest of the batch, and sequences whose drafts are complete add no row to them. SGLang's adaptive speculation has one "
       "length for the batch: {policy: ema_tiers, per: batch, batches: [1, 8, 32, 64]}, where each range of batches has its "
       "own tiers, average and count (there a batch counts as the captured graph that it is padded to). An asynchronous engine "
       "learns of a round one step late."},
      read_adaptive,
      "policy"};
}

}  // namespace specsim::serve
