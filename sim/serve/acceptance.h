// How many drafts a sequence accepts where its text stands. Acceptance belongs to the text position: another draft length drafts
// other stretches of the same text and does not change it.
#pragma once

#include "sim/base/error.h"
#include "sim/config/value.h"
#include "sim/rng/philox.h"
#include "sim/serve/request_trace.h"
#include "sim/spec/cell.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace specsim::serve {

class Acceptance {
 public:
  Acceptance() = default;
  Acceptance(const Acceptance&) = delete;
  Acceptance& operator=(const Acceptance&) = delete;
  virtual ~Acceptance() = default;
  // How many of `drafted` drafted rows behind the output token number `emitted` of a request are accepted, 0 .. drafted.
  [[nodiscard]] virtual std::uint32_t accepted(RequestId request, std::uint32_t emitted, std::uint32_t drafted) const = 0;
  // Expected tokens of a round that drafts so many, its last token included; what policies plan with.
  [[nodiscard]] virtual double tokens_per_round(int draft_length) const = 0;

  // ---- where a round drafts something else than a chain of the policy's length ----
  // Whether rounds draft trees, or blocks of which some verify more rows than others.
  [[nodiscard]] virtual bool uneven() const { return false; }
  // Whether a policy may choose this length: a tree is drafted whole or not at all.
  [[nodiscard]] virtual bool offers(int /*draft_length*/) const { return true; }
  // Rows that the round behind the output token number `emitted` verifies beside the sequence's own; widest(): the most that any
  // round does.
  [[nodiscard]] virtual std::uint32_t drafted(RequestId /*request*/, std::uint32_t /*emitted*/, int draft_length) const {
    return static_cast<std::uint32_t>(draft_length);
  }
  [[nodiscard]] virtual std::uint32_t widest(int draft_length) const { return static_cast<std::uint32_t>(draft_length); }
  // [pass of the draft]: rows of a sequence whose block verifies so many, in the mean over rounds; nullptr: each drafted token
  // takes one pass of one row.
  [[nodiscard]] virtual const std::vector<double>* passes(std::uint32_t /*drafted*/) const { return nullptr; }
  // The same of the very round behind the output token number `emitted`.
  [[nodiscard]] virtual const std::vector<double>* passes_of(RequestId /*request*/, std::uint32_t /*emitted*/,
                                                             std::uint32_t drafted) const {
    return passes(drafted);
  }
};

// ---- acceptance as a config states it ----
// The chance of a draft to be accepted, given that it is reached, by its place in the draft; the last one goes on.
using PlaceRates = std::vector<double>;
// Kinds of requests, each with rates of its own.
struct ClassRates {
  struct Class {
    double up_to = 1.0;  // share of requests up to and with this class
    PlaceRates rates;
    bool everywhere = false;  // one rate for every place, and no list of what was measured at the first ones
  };
  std::vector<Class> classes;
};
// Rates that meet given uniforms in place of random numbers, for comparisons with other simulators.
struct ReplayedUniforms {
  PlaceRates rates;
  std::unordered_map<std::uint64_t, double> uniforms;  // by name(request, position); one that is missing rejects
  static std::uint64_t name(std::uint64_t request, std::uint64_t position) { return request << 32 | position; }
};
// Recorded requests: request i is record i, again from the first behind the last; an output that is longer than its record goes
// on at the record's start.
struct RecordedPrefixes {
  std::vector<std::vector<std::uint8_t>> prefixes;  // [record][output token behind the first]: drafts that are accepted behind it
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
// Places of a draft whose acceptance was stated, beyond which the last one's goes on; kMaxDraftLength where all are.
int stated_places(const StatedAcceptance& stated);

// Recorded acceptance, in the forms of sim/families/acceptance_record.h but distributions; `kind`: of the requests, "" for all.
// nullopt after reporting.
std::optional<StatedAcceptance> read_recorded_acceptance(const config::Value& file, const std::string& kind,
                                                         Diagnostics& diagnostics);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedPrefixes& recorded);
std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedOverlaps& recorded, rng::Key key);

// ---- acceptance of executed rounds ----
// The rounds of an experiment's own distributions and method, executed: request i is its sequence i (again from the first behind
// kMostExecuted of them). A round that begins in the middle of an executed one, as behind a preemption, accepts what that one
// accepted from there on. Where the verifier judges chains as blocks, each of `lengths` is executed by itself; other chains are
// the longest one cut. A tree, and a chain whose length decode's own policy chooses, is drafted whole or not at all; of one that
// a step's budget cuts, the whole levels count where the tree is the same every round, and nothing where it is not. `tokens`:
// that an output has at most. Passes of the draft that are counted round by round are the mean over executed rounds that draft as
// many tokens.
constexpr std::size_t kMostExecuted = 4096;
std::unique_ptr<Acceptance> executed_acceptance(const spec::Cell& cell, const std::vector<int>& lengths, std::size_t requests,
                                                std::uint32_t tokens);
// Whether a policy of the server may choose this length for the cell's method, and whether it drafts without passes of a model.
bool executed_offers(const spec::Cell& cell, int draft_length);
bool drafts_without_passes(const spec::Cell& cell);

}  // namespace specsim::serve
