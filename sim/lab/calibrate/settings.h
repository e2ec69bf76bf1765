// Settings of a calibration or a validation of two real models. The values here are the commands' defaults.
#pragma once

#include "sim/foundation/math/simplex.h"
#include "sim/lab/llm/block_proposer.h"
#include "sim/lab/llm/measure.h"
#include "sim/lab/llm/prompts.h"
#include "sim/lab/llm/tensor_file.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace specsim::calibrate {

// The drafter: a separate model, whose tokens are sampled or its argmax; the target's own first layers; or a drafter of blocks.
struct DraftModel {
  bool argmax = false;
};
struct EarlyExit {
  std::size_t layers = 0;
};
using Drafts = std::variant<DraftModel, EarlyExit, draft::Blocks>;

struct CalibrationSettings {
  // The models: directories, or names of shapes (configs/models), which get random weights.
  std::string target;
  std::string draft;                              // "": the drafter needs no draft model
  std::optional<llm::Precision> precision;        // precision of weights in memory; none: the file's
  double widen_mib = 0.0;                         // MiB that a target pass must read: neurons that change no logit are added
  std::size_t longest_context = 2048;             // most tokens of a sequence, even if a model could hold more
  std::string prompts;                            // JSONL files; "": not given
  std::string held_out;                           // prompts whose runs are predicted
  llm::Overlong overlong = llm::Overlong::error;  // how to treat prompts that leave no room for the output
  unsigned threads = 1;
  // The method.
  std::string drafter = "model";  // `drafts` in messages: model, argmax, early-exit, or a drafter of the registry as YAML
  Drafts drafts;
  const verify::VerifierEntry* verifier = &verify::usual_verifier();
  math::Sampling cuts;  // top-k, top-p and min-p of both models
  // The measurements.
  std::vector<double> temperatures = {0.0, 0.6, 1.0};         // ascending
  std::vector<int> draft_lengths = {1, 2, 3, 4, 5, 6, 7, 8};  // ascending, at least 1
  std::vector<std::size_t> batches = {1, 4};                  // ascending
  std::size_t tokens = 48;                                    // emitted tokens per sequence of a run
  int repetitions = 9;                                        // number of repetitions of each timing, all of them in turn
  llm::Clock clock = llm::Clock::wall;
  std::uint64_t seed = 0;
  std::size_t distribution_tokens = 0;  // above 0: each position's distributions are kept, with this many tokens listed singly
  bool quick = false;                   // a quick look, with fewer prompts too

  [[nodiscard]] bool drafts_blocks() const { return std::holds_alternative<draft::Blocks>(drafts); }
  [[nodiscard]] bool exits_early() const { return std::holds_alternative<EarlyExit>(drafts); }
  // Most tokens that a pass adds after the text.
  [[nodiscard]] std::size_t room() const {
    const auto* const blocks = std::get_if<draft::Blocks>(&drafts);
    return blocks != nullptr ? llm::room_of(**blocks) : static_cast<std::size_t>(draft_lengths.back());
  }
};

// The settings of --quick, for options that are not given.
inline CalibrationSettings quick_settings() {
  CalibrationSettings settings;
  settings.temperatures = {0.0, 1.0};
  settings.draft_lengths = {2, 4};
  settings.batches = {1};
  settings.tokens = 24;
  settings.repetitions = 3;
  settings.quick = true;
  return settings;
}

// Called with the progress of a measurement: the unit counted ("passes"), how many are done, and how many there are.
using OnProgress = std::function<void(const std::string& unit, double done, double all)>;

}  // namespace specsim::calibrate
