// What the commands on real models share: their options, and the models that these name.
#pragma once

#include "sim/cli/options.h"
#include "sim/llm/timing.h"
#include "sim/verify/position_rule.h"

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
  std::uint64_t seed = 0;
  std::string out;
  bool quick = false;
};

struct LoadedModels {
  llm::ModelPair pair;
  llm::ModelPair same_function;  // with the target's weights as they were, where it was widened; else empty
  std::unique_ptr<llm::Tokenizer> tokenizer;
  bool random = false;                // shapes with random weights: good for timing alone
  std::string description;            // one line for manifests
  std::vector<std::size_t> contexts;  // knots of the cost table

  [[nodiscard]] llm::Model& acceptance_target() const { return same_function.target ? *same_function.target : *pair.target; }
};

void add_model_options(boost::program_options::options_description& options);
ModelOptions read_model_options(const boost::program_options::variables_map& values);
// Throws BadInput: no model, another vocabulary, a device that is not built.
LoadedModels load_models(const boost::program_options::variables_map& values, const ModelOptions& options);
// Without those beyond `most` where --quick was given.
std::vector<llm::Prompt> load_prompts(const std::string& path, const LoadedModels& models, const ModelOptions& options);
std::unique_ptr<verify::PositionRule> token_rule();
// Writes manifest.yaml into `directory`.
void write_model_manifest(const std::string& directory, const std::string& description, unsigned threads, std::size_t cells,
                          double seconds);

}  // namespace specsim::cli
