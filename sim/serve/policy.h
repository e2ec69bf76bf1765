// How many tokens to draft for every sequence of the batch: the registry of the server's policies.
#pragma once

#include "sim/config/registry.h"
#include "sim/serve/acceptance.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace specsim::serve {

// What a policy sees when it chooses the drafts of the next step.
struct BatchState {
  std::uint32_t requests = 0;  // scheduled in this step, prompts too; and where prompts have steps of their own, who decodes
  std::uint32_t waiting = 0;   // requests in the queue
  double cached = 0.0;         // tokens, of all scheduled
};

// What a step verified, over all its sequences.
struct StepRounds {
  std::uint32_t sequences = 0;  // that decoded, with drafts or without
  // [position of the drafts]: how many sequences had a draft token judged there, and how many accepted it. Both are as long as
  // the longest draft; a token behind a rejected one is not judged.
  std::span<const std::uint32_t> verified;
  std::span<const std::uint32_t> accepted;
};

// Seconds of a step that verifies `draft_length` drafts of each of so many sequences and drafts as many anew.
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
  // Every draft length above 0 that draft_length() may return.
  [[nodiscard]] virtual std::vector<int> lengths() const {
    std::vector<int> all(static_cast<std::size_t>(longest()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i) + 1;
    return all;
  }
  // True where sequences have lengths of their own, at most the batch's; then the two below say which, and learn of each round.
  [[nodiscard]] virtual bool per_request() const { return false; }
  [[nodiscard]] virtual int of_request(arrivals::RequestId /*request*/, int batch_length) const { return batch_length; }
  virtual void observe_request(arrivals::RequestId /*request*/, int /*drafted*/, int /*accepted*/) {}
  // Told after each step that decoded.
  virtual void observe(const StepRounds& /*rounds*/) {}
};

// Loads above which nothing is drafted: what most policies take beside their own parameters.
struct DisableAbove {
  std::uint32_t batch = 4000000000;
  std::uint32_t queue = 4000000000;
  [[nodiscard]] bool holds(const BatchState& state) const { return state.requests > batch || state.waiting > queue; }
};
std::vector<config::Parameter> disable_parameters();
DisableAbove read_disable_above(const config::Arguments& arguments);

// What a policy may ask of the server it works for.
struct PolicySetting {
  StepSeconds seconds;
  std::function<bool(int draft_length)> offers;  // whether drafts of this length can be made; empty: any
};

// Makes a policy, as often as servers are started.
using PolicyMaker = std::function<std::unique_ptr<ServerPolicy>(const PolicySetting&)>;
// The policy that drafts so many tokens whatever the load.
PolicyMaker fixed_length(int draft_length);

struct ServerPolicyEntry {
  config::PartInfo info;
  // Reads the arguments once, for all policies that are made. May return nullptr after reporting.
  std::function<PolicyMaker(const config::Arguments&, Diagnostics&)> read;
  // The parameter that a word behind the name gives, as in --policy fixed:3; "" for none.
  const char* worded = "";
  // Reads that word, at `where` for messages; nullptr: as a scalar. Throws BadInput.
  config::Value (*read_word)(const std::string& word, const Location& where, Diagnostics& diagnostics) = nullptr;
};

config::Registry<ServerPolicyEntry>& server_policies();

}  // namespace specsim::serve
