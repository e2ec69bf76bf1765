// Prepares two real models: reads or makes them, and checks them against each other, the verifier and this machine's memory
// before anything large is allocated.
#pragma once

#include "sim/hardware/model/model_shape.h"
#include "sim/lab/calibrate/settings.h"
#include "sim/lab/llm/prompts.h"
#include "sim/lab/llm/timing.h"
#include "sim/rounds/verify/verifier.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::calibrate {

// A verifier for chains, or for the blocks of a drafter, with its default parameters.
class ChosenVerifier {
 public:
  // Throw BadInput for a verifier that cannot judge such drafts or that needs parameters.
  explicit ChosenVerifier(const verify::VerifierEntry& entry);
  ChosenVerifier(const verify::VerifierEntry& entry, const draft::BlockDrafter& drafter);
  [[nodiscard]] const verify::VerifierEntry& entry() const { return *entry_; }
  [[nodiscard]] const verify::BlockRule& get() const { return *rule_; }

 private:
  const verify::VerifierEntry* entry_;
  std::unique_ptr<verify::BlockRule> rule_;
};

struct LoadedModels {
  llm::ModelPair pair;
  llm::ModelPair same_function;  // if the target was widened: the models with the target's original weights; otherwise empty
  std::optional<ChosenVerifier> rule;
  std::unique_ptr<llm::Tokenizer> tokenizer;
  bool random = false;                // shapes with random weights: only useful for timing
  std::string description;            // one line for manifests
  std::vector<std::size_t> contexts;  // knots of the cost table
  std::size_t longest_context = 0;    // the most cached tokens of a draft pass

  [[nodiscard]] llm::Model& acceptance_target() const { return same_function.target ? *same_function.target : *pair.target; }
  [[nodiscard]] llm::Model* acceptance_draft() const {
    return same_function.draft ? same_function.draft.get() : pair.draft.get();
  }
  [[nodiscard]] llm::Method method(const CalibrationSettings& settings) const;
  // The prompts of a file, each with room for a round after it. `option`: the option that named the file.
  [[nodiscard]] std::vector<llm::Prompt> prompts(const std::string& path, const char* option,
                                                 const CalibrationSettings& settings) const;
  // The points at which a cost table needs timed passes.
  [[nodiscard]] std::vector<llm::TablePoint> table_points(const CalibrationSettings& settings) const;
};

// Reads the models' descriptions first and compares their sizes with this machine's memory; only then are weights read or made.
// `validates`: runs of held-out prompts are timed in addition to the tables, which takes more memory. Throws BadInput: no model,
// another vocabulary, a verifier that does not suit the drafts, too little memory.
LoadedModels load_models(const CalibrationSettings& settings, bool validates);

// A shape of configs/models. Throws BadInput, at `option`: neither a directory nor a known shape.
cost::ModelShape read_shape(const std::string& name, const char* option);
// The tokenizer in the target's directory, if there is one. Throws BadInput: a draft, or a tokenizer, of another vocabulary.
std::unique_ptr<llm::Tokenizer> shared_tokenizer(const std::string& target, std::size_t target_vocab, const std::string& draft,
                                                 std::size_t draft_vocab);
// The prompts of a file (only the first few if settings.quick), each with `room` positions after it. Throws BadInput: no file,
// too few for the largest batch.
std::vector<llm::Prompt> load_prompts(const std::string& path, const char* option, const CalibrationSettings& settings,
                                      const llm::Tokenizer* tokenizer, const llm::ModelConfig& config, std::size_t room);
// Throws BadInput if a held-out prompt is one of those that acceptance is fitted on.
void check_held_out(const std::string& path, const std::vector<llm::Prompt>& fitted, const std::vector<llm::Prompt>& held_out);

}  // namespace specsim::calibrate
