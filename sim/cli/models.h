// What the commands on real models share: their options, and the models that these name.
#pragma once

#include "sim/cli/options.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/model_shape.h"
#include "sim/llm/block_drafter.h"
#include "sim/llm/timing.h"
#include "sim/verify/verifier.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

struct ModelOptions {
  std::vector<double> temperatures;
  std::vector<int> draft_lengths;  // ascending, at least 1
  std::vector<std::size_t> batches;
  std::size_t tokens = 0;  // emitted per sequence
  int repetitions = 0;
  llm::Clock clock = llm::Clock::wall;
  std::string drafter;                               // model, argmax, early-exit, or one of the registry in YAML
  std::shared_ptr<const draft::BlockDrafter> block;  // that one
  std::size_t exit_layers = 0;
  std::string verifier;
  std::uint64_t seed = 0;
  std::string out;
  bool quick = false;
  std::size_t distribution_tokens = 0;  // calibrate: of each position's distributions
  math::Sampling cuts;                  // top-k, top-p, min-p

  // Most tokens that a pass puts behind the text.
  [[nodiscard]] std::size_t room() const {
    return block != nullptr ? llm::room_of(*block) : static_cast<std::size_t>(draft_lengths.back());
  }
};

// A verifier for chains, or for the blocks of a drafter, with the parameters that it has by default.
class Rule {
 public:
  // Throws BadInput: unknown, one that judges no such drafts, one that needs parameters.
  Rule(const std::string& name, const draft::BlockDrafter* block);
  [[nodiscard]] const verify::VerifierEntry& entry() const { return *entry_; }
  [[nodiscard]] llm::AnyRule get() const { return position_ ? llm::AnyRule(*position_) : llm::AnyRule(*block_); }

 private:
  const verify::VerifierEntry* entry_ = nullptr;
  std::unique_ptr<verify::PositionRule> position_;
  std::unique_ptr<verify::BlockRule> block_;
};

struct LoadedModels {
  llm::ModelPair pair;
  llm::ModelPair same_function;  // where the target was widened, with its weights as they were; else empty
  std::optional<Rule> rule;
  std::unique_ptr<llm::Tokenizer> tokenizer;
  bool random = false;                // shapes with random weights: good for timing alone
  std::string description;            // one line for manifests
  std::vector<std::size_t> contexts;  // knots of the cost table
  std::size_t longest_context = 0;    // that a draft pass can find cached

  [[nodiscard]] llm::Model& acceptance_target() const { return same_function.target ? *same_function.target : *pair.target; }
  [[nodiscard]] llm::Model* acceptance_draft() const {
    return same_function.draft ? same_function.draft.get() : pair.draft.get();
  }
  [[nodiscard]] llm::Method method(const ModelOptions& options) const;
  [[nodiscard]] std::vector<llm::Prompt> prompts(const boost::program_options::variables_map& values, const char* option,
                                                 const ModelOptions& options) const;
  // That a table needs.
  [[nodiscard]] std::vector<llm::TablePoint> table_points(const ModelOptions& options) const;
};

void add_model_options(boost::program_options::options_description& options);
ModelOptions read_model_options(const boost::program_options::variables_map& values);
// Throws BadInput: no model, another vocabulary, a device that is not built.
LoadedModels load_models(const boost::program_options::variables_map& values, const ModelOptions& options);
// A shape of configs/models. Throws BadInput, at `option`: no directory and no known shape.
cost::ModelShape read_shape(const std::string& name, const char* option);
// The tokenizer in the target's directory, if there is one. Throws BadInput: a draft, or a tokenizer, of another vocabulary.
std::unique_ptr<llm::Tokenizer> shared_tokenizer(const std::string& target, std::size_t target_vocab, const std::string& draft,
                                                 std::size_t draft_vocab);
// Those of the file that --OPTION names, the first few with --quick, each with `room` positions behind it. Throws BadInput: no
// such option, too few for the largest batch.
std::vector<llm::Prompt> load_prompts(const boost::program_options::variables_map& values, const char* option,
                                      const ModelOptions& options, const llm::Tokenizer* tokenizer,
                                      const llm::ModelConfig& config, std::size_t room);
// Throws BadInput where --held-out has the prompts that acceptance is fitted on.
void check_held_out(const boost::program_options::variables_map& values, const std::vector<llm::Prompt>& fitted,
                    const std::vector<llm::Prompt>& held_out);
// Removes what an earlier calibrate wrote there, on another device or with another drafter perhaps.
void remove_calibration(const std::string& directory);
// The cost model of a table that was written, read as a user's config would have it read. Throws BadInput.
std::unique_ptr<cost::CostModel> table_cost(const std::string& path);
// A standard error for a table: one sample has none.
std::string error_text(double error, int decimals);
// Writes manifest.yaml into `directory`.
void write_model_manifest(const std::string& directory, const std::string& description, unsigned threads, std::size_t cells,
                          double seconds);

}  // namespace specsim::cli
