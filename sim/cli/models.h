// What the commands on real models share: their options, and the models that these name.
#pragma once

#include "sim/cli/options.h"
#include "sim/cost/cost_model.h"
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
  std::string drafter;                               // model, argmax, early-exit, lookup, or one of the registry in YAML
  std::shared_ptr<const draft::BlockDrafter> block;  // that one
  std::size_t exit_layers = 0;
  std::string verifier;
  std::uint64_t seed = 0;
  std::string out;
  bool quick = false;
  std::size_t law_tokens = 0;  // calibrate: of each position's laws
  math::Sampling cuts;         // top-k, top-p, min-p

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
  // That a table needs. Temperature 0 is cheaper than the others: no exponentials, laws of one token.
  [[nodiscard]] std::vector<llm::TablePoint> table_points(const ModelOptions& options) const;
};

void add_model_options(boost::program_options::options_description& options);
math::Sampling sampling_at(const ModelOptions& options, double temperature);
// An integer option in [0, most].
std::size_t read_count(const boost::program_options::variables_map& values, const char* option, double most);
ModelOptions read_model_options(const boost::program_options::variables_map& values);
// Throws BadInput: no model, another vocabulary, a device that is not built.
LoadedModels load_models(const boost::program_options::variables_map& values, const ModelOptions& options);
// Without those beyond `most` where --quick was given.
std::vector<llm::Prompt> load_prompts(const std::string& path, const LoadedModels& models, const ModelOptions& options);
// The cost model of a table that was written, read as a user's config would have it read. Throws BadInput.
std::unique_ptr<cost::CostModel> table_cost(const std::string& path);
// A standard error for a table, and for CSV: one sample has none.
std::string error_text(double error, int decimals);
std::string error_csv(double error);
// Writes manifest.yaml into `directory`.
void write_model_manifest(const std::string& directory, const std::string& description, unsigned threads, std::size_t cells,
                          double seconds);

}  // namespace specsim::cli
