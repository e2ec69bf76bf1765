// How many draft tokens are accepted at each position of a request's text. Acceptance belongs to the position: with another
// draft length rounds begin at other positions of the same text, and what is accepted from a position on stays the same.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/rng/philox.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/draft/shared_rows.h"
#include "sim/serving/arrivals/request_trace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace specsim::serve {

// Rounds of requests as a server plays them that verifies a part of what they draft: how much is known only then. One server's.
class Rounds {
 public:
  Rounds() = default;
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  virtual ~Rounds() = default;
  // What is known of each of the `drafted` tokens behind output token number `emitted` before it is drawn; empty where nothing
  // is. Valid until the request is asked for again.
  virtual std::span<const draft::LengthPolicy::Outlook> outlooks(arrivals::RequestId /*request*/, std::uint32_t /*emitted*/,
                                                                 std::uint32_t /*drafted*/) {
    return {};
  }
  // How many of the first `verified` of them are accepted. Every token behind the first comes of a round, plain ones too.
  virtual std::uint32_t play(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t verified) = 0;
  // The request has ended.
  virtual void forget(arrivals::RequestId /*request*/) {}
};

class Acceptance {
 public:
  Acceptance() = default;
  Acceptance(const Acceptance&) = delete;
  Acceptance& operator=(const Acceptance&) = delete;
  virtual ~Acceptance() = default;
  // How many of the `drafted` draft tokens that a request verifies behind its output token number `emitted` are accepted.
  [[nodiscard]] virtual std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted,
                                               std::uint32_t drafted) const = 0;
  // Expected tokens of a round that drafts so many, its last token included; what policies plan with.
  [[nodiscard]] virtual double tokens_per_round(int draft_length) const = 0;

  // ---- where a round verifies a part of what it drafted ----
  [[nodiscard]] virtual bool knows(draft::Confidence confidence) const { return confidence == draft::Confidence::history; }
  // The rounds of a server; accepted() says how they end, unless they are executed. It must live longer.
  [[nodiscard]] virtual std::unique_ptr<Rounds> rounds() const;

  // ---- where a round drafts something else than a chain of the policy's length ----
  // Whether rounds draft trees, or blocks of which some verify more rows than others.
  [[nodiscard]] virtual bool uneven() const { return false; }
  // Whether a policy may choose this length: a tree is drafted whole or not at all.
  [[nodiscard]] virtual bool offers(int /*draft_length*/) const { return true; }
  // Draft tokens that the round behind the output token number `emitted` verifies; widest(): the most that any round does.
  [[nodiscard]] virtual std::uint32_t drafted(arrivals::RequestId /*request*/, std::uint32_t /*emitted*/,
                                              int draft_length) const {
    return static_cast<std::uint32_t>(draft_length);
  }
  [[nodiscard]] virtual std::uint32_t widest(int draft_length) const { return static_cast<std::uint32_t>(draft_length); }
  // [pass of the draft model]: tokens that the pass computes for a sequence that verifies `drafted` draft tokens, in the mean
  // over rounds; nullptr: each draft token takes one pass of one token.
  [[nodiscard]] virtual const std::vector<double>* passes(std::uint32_t /*drafted*/) const { return nullptr; }
  // As passes(), for the one round behind the output token number `emitted`.
  [[nodiscard]] virtual const std::vector<double>* passes_of(arrivals::RequestId /*request*/, std::uint32_t /*emitted*/,
                                                             std::uint32_t drafted) const {
    return passes(drafted);
  }
};

// ---- acceptance as a config states it ----
// The chance that a draft token is accepted where all before it were, by its place in the draft. Places beyond the list have the
// last chance.
using PlaceRates = std::vector<double>;
// Kinds of requests, each with rates of its own.
struct ClassRates {
  struct Class {
    double up_to = 1.0;  // share of requests up to and with this class
    PlaceRates rates;
    bool everywhere = false;  // the config states one rate for all places, so that none lies beyond what was measured
  };
  std::vector<Class> classes;
};
// Rates that are compared with numbers in [0, 1) from a file in place of random ones, to run what another simulator ran.
struct ReplayedUniforms {
  PlaceRates rates;
  std::unordered_map<std::uint64_t, double> uniforms;  // by name(request, position); one that is missing rejects
  static std::uint64_t name(std::uint64_t request, std::uint64_t position) { return request << 32 | position; }
};
// Acceptance as it was recorded, request by request. Request i takes record i, and behind the last record the first one again;
// an output that is longer than its record goes on at the record's start.
struct RecordedPrefixes {
  std::vector<std::vector<std::uint8_t>> prefixes;  // [record][output token from the second on]: draft tokens accepted behind it
  std::vector<std::uint32_t> rounds;                // accepted drafts of each round of a walk through each record
  int longest = 0;                                  // draft length that all records know
};
struct RecordedOverlaps {
  std::vector<std::vector<double>> overlaps;  // [record][output position]: the chance of its draft, once it is reached
};
using StatedAcceptance = std::variant<ClassRates, ReplayedUniforms, RecordedPrefixes, RecordedOverlaps>;

// `acceptance:` of a config. nullopt after reporting.
std::optional<StatedAcceptance> read_acceptance(const config::Value& value, Diagnostics& diagnostics);
// Drawn with the random numbers of `key`.
std::unique_ptr<Acceptance> make_acceptance(const StatedAcceptance& stated, rng::Key key);
// How many places of a draft have a chance of their own; those beyond have the last one's. kMaxDraftLength where all have.
int stated_places(const StatedAcceptance& stated);

// Reads recorded acceptance, in every form of sim/rounds/families/acceptance_record.h but distributions; `kind`: the kind of
// requests that count, "" for all. nullopt after reporting.
std::optional<StatedAcceptance> read_recorded_acceptance(const config::Value& file, const std::string& kind,
                                                         Diagnostics& diagnostics);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedPrefixes& recorded);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedOverlaps& recorded, rng::Key key);

// ---- acceptance of executed rounds ----
// Executes the rounds of the experiment's own distributions and method, and takes acceptance from them. Request i is sequence i;
// behind kMostExecuted of them the first one comes again. A round may begin in the middle of an executed one, as after a
// preemption: it accepts what that one accepted from there on. Where the verifier judges a chain as one block, each of `lengths`
// is executed by itself; for other verifiers a shorter chain is the beginning of the longest. A tree, and a chain whose length
// decode's own policy chooses, is drafted whole or not at all. Where a step's budget of tokens cuts a tree that is the same in
// every round, its whole levels count; of other trees nothing does. `tokens`: the most tokens of an output. Where the draft's
// passes differ from round to round, passes() is the mean over the executed rounds that draft as many tokens.
// `cut`: rounds() are played while the server runs, each from where the one before ended, for a server that verifies a part of
// the chains; lengths has the one that they draft.
constexpr std::size_t kMostExecuted = 4096;
std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, const std::vector<int>& lengths, std::size_t requests,
                                                std::uint32_t tokens, bool cut = false);
// Whether a server may verify a part of what the cell's method drafts, and what it may go by.
bool executed_cuts(const spec::Cell& cell);
bool executed_knows(const spec::Cell& cell, draft::Confidence confidence);
// Whether a policy of the server may choose this length for the cell's method, and whether it drafts without passes of a model.
bool executed_offers(const spec::Cell& cell, int draft_length);
bool drafts_without_passes(const spec::Cell& cell);

}  // namespace specsim::serve
