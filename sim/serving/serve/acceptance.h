// How many draft tokens are accepted at each position of a request's text. Acceptance belongs to the position: with another draft
// length, rounds begin at other positions of the same text, but the acceptance from each position on stays the same.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/experiments/spec/context_rates.h"
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

// Rounds of requests on one server that verifies only a part of the drafts. How much it verifies is decided during the run, so
// the rounds are played then.
class Rounds {
 public:
  Rounds() = default;
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  virtual ~Rounds() = default;
  // Estimates for each of the `drafted` tokens after output token number `emitted`, before it is drawn; empty if there are none.
  // Valid until the next call for this request.
  virtual std::span<const draft::LengthPolicy::TokenForecast> forecasts(arrivals::RequestId /*request*/,
                                                                        std::uint32_t /*emitted*/, std::uint32_t /*drafted*/) {
    return {};
  }
  // How many of the first `verified` of them are accepted. Every token after the first is emitted by a round, also without
  // speculation.
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
  // How many of the `drafted` draft tokens that a request verifies after its output token number `emitted` are accepted.
  [[nodiscard]] virtual std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted,
                                               std::uint32_t drafted) const = 0;
  // Expected tokens of a round that drafts this many, its last token included; policies plan with it.
  [[nodiscard]] virtual double tokens_per_round(int draft_length) const = 0;

  // Classes of requests with rates of their own: their names, and the class of a request. Empty: all are of one class.
  [[nodiscard]] virtual std::vector<std::string> classes() const { return {}; }
  [[nodiscard]] virtual std::size_t class_of(arrivals::RequestId /*request*/) const { return 0; }

  // ---- if a round verifies only a part of its draft ----
  [[nodiscard]] virtual bool knows(draft::Confidence confidence) const { return confidence == draft::Confidence::history; }
  // The rounds of a server; accepted() determines how they end, unless they are executed. It must live longer.
  [[nodiscard]] virtual std::unique_ptr<Rounds> rounds() const;

  // ---- if a round drafts something else than a chain of the policy's length ---- Whether rounds draft trees, or blocks of which
  // some verify more rows than others.
  [[nodiscard]] virtual bool uneven() const { return false; }
  // Whether a policy may choose this length: a tree is drafted whole or not at all.
  [[nodiscard]] virtual bool offers(int /*draft_length*/) const { return true; }
  // Whether the request's drafts are looked up in its text: the draft model makes no pass for them.
  [[nodiscard]] virtual bool looks_up(arrivals::RequestId /*request*/) const { return false; }
  // Draft tokens that the round after output token number `emitted` verifies; widest(): the most of any round.
  [[nodiscard]] virtual std::uint32_t drafted(arrivals::RequestId /*request*/, std::uint32_t /*emitted*/,
                                              int draft_length) const {
    return static_cast<std::uint32_t>(draft_length);
  }
  [[nodiscard]] virtual std::uint32_t widest(int draft_length) const { return static_cast<std::uint32_t>(draft_length); }
  // [pass of the draft model]: tokens that the pass computes for a sequence that verifies `drafted` draft tokens, averaged over
  // rounds; nullptr: each draft token takes one pass of one token.
  [[nodiscard]] virtual const std::vector<double>* passes(std::uint32_t /*drafted*/) const { return nullptr; }
  // As passes(), for the one round after output token number `emitted`.
  [[nodiscard]] virtual const std::vector<double>* passes_of(arrivals::RequestId /*request*/, std::uint32_t /*emitted*/,
                                                             std::uint32_t drafted) const {
    return passes(drafted);
  }
};

// ---- acceptance as a config gives it ---- The probability that a draft token is accepted if all before it were, by its place in
// the draft. Places beyond the list have the last probability.
using PlaceRates = std::vector<double>;
// Kinds of requests, each with rates of its own.
struct ClassRates {
  struct Class {
    double up_to = 1.0;  // share of requests up to and with this class
    PlaceRates rates;
    bool everywhere = false;  // the config gives one rate for all places, so that it holds for drafts of any length
    std::string name = {};
    bool looks_up = false;                            // Acceptance::looks_up()
    std::vector<spec::ContextRates> by_context = {};  // in place of `rates`, by the request's context; empty: the same at all
  };
  std::vector<Class> classes;
};
// Rates that are compared with numbers in [0, 1) from a file instead of random ones, to repeat another simulator's run.
struct ReplayedUniforms {
  PlaceRates rates;
  std::unordered_map<std::uint64_t, double> uniforms;  // by name(request, position); a missing number rejects
  static std::uint64_t name(std::uint64_t request, std::uint64_t position) { return request << 32 | position; }
};
// Recorded acceptance, request by request. Request i uses record i; after the last record the first one follows again. An output
// that is longer than its record continues at the record's start.
struct RecordedPrefixes {
  std::vector<std::vector<std::uint8_t>> prefixes;  // [record][output token from the second on]: draft tokens accepted after it
  std::vector<std::uint32_t> rounds;                // accepted drafts of each round of a walk through each record
  int longest = 0;                                  // draft length that all records know
};
struct RecordedOverlaps {
  // [record][output position]: probability that its draft token is accepted, once reached
  std::vector<std::vector<double>> overlaps;
};
using StatedAcceptance = std::variant<ClassRates, ReplayedUniforms, RecordedPrefixes, RecordedOverlaps>;

// `acceptance:` of a config. nullopt after reporting.
std::optional<StatedAcceptance> read_acceptance(const config::Value& value, Diagnostics& diagnostics);
// The contexts of requests, for acceptance that depends on them.
struct RequestContexts {
  std::vector<std::uint32_t> prompts;  // [request]: tokens before its output
  double mean = 0.0;                   // of all rounds; policies plan with it
};
bool needs_contexts(const StatedAcceptance& stated);
// Drawn with the random numbers of `key`.
std::unique_ptr<Acceptance> make_acceptance(const StatedAcceptance& stated, rng::Key key, RequestContexts contexts = {});
// How many places of a draft have a probability of their own; later places use the last one. kMaxDraftLength if all have.
int stated_places(const StatedAcceptance& stated);

// Reads recorded acceptance, in every form of sim/rounds/families/acceptance_record.h except distributions; `kind`: the kind of
// requests that count, "" for all. nullopt after reporting.
std::optional<StatedAcceptance> read_recorded_acceptance(const config::Value& file, const std::string& kind,
                                                         Diagnostics& diagnostics);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedPrefixes& recorded);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedOverlaps& recorded, rng::Key key);

// ---- acceptance of executed rounds ---- Executes the rounds of the experiment's own distributions and method, and takes
//   acceptance from them. Request i is sequence i; after kMostExecuted of them the first one follows again. A round may begin
//   within an executed one, as after a preemption: it accepts what the executed round accepted from there on. If the verifier
//   judges a chain as one block, each of `lengths` is executed separately; for other verifiers a shorter chain is the beginning
//   of the longest. A tree, and a chain whose length decode's own policy chooses, is drafted completely or not at all. If a
//   step's budget of tokens cuts a tree that is the same in every round, its whole levels count; other trees that are cut count
//   nothing. `tokens`: the most tokens of an output. If the draft's passes differ from round to round, passes() is the mean over
//   the executed rounds that draft as many tokens.
// `cut`: for a server that verifies only a part of the chains. rounds() are then played while the server runs, each from the
//   end of the one before; `lengths` holds the length that they draft.
constexpr std::size_t kMostExecuted = 4096;
std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, const std::vector<int>& lengths, std::size_t requests,
                                                std::uint32_t tokens, bool cut = false);
// Whether a server may verify a part of the drafts of the cell's method, and which estimates it may use for this.
bool executed_cuts(const spec::Cell& cell);
bool executed_has_confidence(const spec::Cell& cell, draft::Confidence confidence);
// Whether a policy of the server may choose this length for the cell's method, and whether it drafts without passes of a model.
bool executed_supports(const spec::Cell& cell, int draft_length);
bool drafts_without_passes(const spec::Cell& cell);

}  // namespace specsim::serve
