// How many tokens to draft for every sequence of the batch: the registry of the server's policies.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/serving/serve/acceptance.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace specsim::serve {

// The input of a policy when it chooses the drafts of the next step.
struct BatchState {
  // scheduled in this step, including prompts; if prompts have steps of their own, the decoding requests
  std::uint32_t requests = 0;
  std::uint32_t waiting = 0;  // requests in the queue
  double cached = 0.0;        // tokens, of all scheduled
};

// A sequence, for a policy that chooses a draft length per sequence.
struct DraftingRequest {
  arrivals::RequestId id = 0;
  std::uint32_t tokens = 0;  // prompt and output so far
  std::uint32_t left = 0;    // output tokens up to its limit
};

// The drafts verified in a step, over all its sequences.
struct StepRounds {
  std::uint32_t sequences = 0;  // that decoded, with drafts or without
  // [position of the drafts]: how many sequences had a draft token judged there, and how many accepted it. Both are as long as
  // the longest draft; a token after a rejected one is not judged.
  std::span<const std::uint32_t> verified;
  std::span<const std::uint32_t> accepted;
};

// The work of a step that does not depend on how many drafts it verifies, for a policy that decides this.
struct SharedStep {
  std::uint32_t requests = 0;
  std::uint32_t rows = 0;      // prompts' tokens, and the last token of each sequence that decodes
  std::uint32_t emitting = 0;  // requests that get a token
};
// The draft of a sequence for a step.
struct DraftedChain {
  arrivals::RequestId request = 0;
  std::uint32_t drafted = 0;
  std::span<const draft::LengthPolicy::TokenForecast> forecasts;  // [token]; empty if there are no estimates
  bool ended = false;  // with the step before, after this one was scheduled: its drafts are verified but not used
};

// Seconds of the target's pass and of the draft's in a step. The step computes this many rows of decoding sequences, each with
// `context` tokens cached, and drafts this many tokens after them.
struct PassSeconds {
  double target = 0.0;
  double draft = 0.0;
};
using TimedStep = std::function<PassSeconds(double sequences, double rows, double context, int draft_length)>;

// Seconds of a step that verifies `draft_length` draft tokens for each sequence and drafts as many for the next step.
using StepSeconds = std::function<double(const BatchState&, int draft_length)>;

class ServerPolicy {
 public:
  ServerPolicy() = default;
  ServerPolicy(const ServerPolicy&) = delete;
  ServerPolicy& operator=(const ServerPolicy&) = delete;
  virtual ~ServerPolicy() = default;
  // Draft length of the next step, 0 to longest() tokens.
  [[nodiscard]] virtual int draft_length(const BatchState& batch) = 0;
  [[nodiscard]] virtual int longest() const = 0;
  // True if draft_length() depends only on the numbers of requests, and nothing is learned from rounds.
  [[nodiscard]] virtual bool by_requests_alone() const { return false; }
  // How many classes of requests it has lengths for; 0: it does not look at classes.
  [[nodiscard]] virtual std::size_t classes() const { return 0; }
  // Every draft length above 0 that draft_length() may return.
  [[nodiscard]] virtual std::vector<int> lengths() const {
    std::vector<int> all(static_cast<std::size_t>(longest()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i) + 1;
    return all;
  }
  // True if each sequence has its own draft length, at most the batch's. The next two functions then return a sequence's length,
  // and observe each of its rounds. forget() is called for every request that ends.
  [[nodiscard]] virtual bool per_request() const { return false; }
  [[nodiscard]] virtual int of_request(const DraftingRequest& /*request*/, int batch_length) const { return batch_length; }
  virtual void observe_request(arrivals::RequestId /*request*/, int /*drafted*/, int /*accepted*/) {}
  // Called after each step that decoded.
  virtual void observe(const StepRounds& /*rounds*/) {}
  // True if a step verifies only a part of its sequences' drafts: share() chooses the part when the step begins, and
  // observe_shared() gets the accepted counts. forget() is called for every request that ends.
  [[nodiscard]] virtual bool shares_rows() const { return false; }
  // The kind of estimate that it uses; nothing if it does not share out rows or needs no estimate.
  [[nodiscard]] virtual std::optional<draft::Confidence> confidence() const { return std::nullopt; }
  // Sets verified[i]: how many tokens of the i-th chain are verified.
  virtual void share(const SharedStep& /*step*/, std::span<const DraftedChain> /*chains*/,
                     std::span<std::uint32_t> /*verified*/) {}
  virtual void observe_shared(std::span<const DraftedChain> /*chains*/, std::span<const std::uint32_t> /*verified*/,
                              std::span<const std::uint32_t> /*accepted*/) {}
  virtual void forget(arrivals::RequestId /*request*/) {}
};

// Loads above which nothing is drafted: parameters that most policies have.
struct DisableAbove {
  std::uint32_t batch = 4000000000;
  std::uint32_t queue = 4000000000;
  [[nodiscard]] bool holds(const BatchState& state) const { return state.requests > batch || state.waiting > queue; }
};
const config::Fields<DisableAbove>& disable_fields();

// Queries that a policy may make of its server.
struct PolicySetting {
  StepSeconds seconds;
  std::function<bool(int draft_length)> offers;       // whether drafts of this length can be made; empty: any
  TimedStep passes = {};                              // empty if steps are not timed
  std::function<bool(draft::Confidence)> knows = {};  // which estimates exist for drafts; empty: only the acceptance history
  std::function<std::size_t(arrivals::RequestId)> class_of = {};  // the class of a request; empty: all have one
};

// Makes a policy, once for each server that is started.
using PolicyMaker = std::function<std::unique_ptr<ServerPolicy>(const PolicySetting&)>;
// The policy that drafts this many tokens at any load.
PolicyMaker fixed_length(int draft_length);

struct ServerPolicyEntry {
  config::PartInfo info;
  // Reads the arguments once, for all policies that are made. May return nullptr after reporting.
  std::function<PolicyMaker(const config::Arguments&, Diagnostics&)> read;
  // The parameter that is set by a word after the name, as in --policy fixed:3; "" for none.
  const char* worded = "";
  // Reads that word, at `where` for messages; nullptr: as a scalar. Throws BadInput.
  config::Value (*read_word)(const std::string& word, const Location& where, Diagnostics& diagnostics) = nullptr;
  // Whether chance early in a run can decide which draft lengths it takes until the end: one run does not show how runs differ.
  bool settles = false;
};

config::Registry<ServerPolicyEntry>& server_policies();

}  // namespace specsim::serve
