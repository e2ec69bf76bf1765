// Requirements of serving engines on a target and its draft, and the commands that start them with a plan's draft length.
#pragma once

#include "sim/answers/plan/draft_lengths.h"
#include "sim/hardware/latency/deployment.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

struct EngineCommand {
  std::string engine;              // the engine's name, and the version whose rules apply
  std::string command;             // "": it would not start, and `notes` give the reason
  std::vector<std::string> notes;  // why it rejects the pair, or which parts of the plan do not apply to it
  std::vector<std::string> needs;  // what the command does not say, and without which the server may not start as planned
};

// The server that a plan's engine stands for, as engine_command() takes it; "": none (research code, or the GPU alone).
std::string server_of(const cost::Engine& engine);

// Cached tokens of a sequence at its end, if no option states them.
constexpr double kUsualContext = 2048.0;

// A command for each engine, with placeholders in <> for paths. `batch`: sequences that it must hold at once, on each GPU where
// GPUs share the experts; `context`: cached tokens of the longest of them.
std::vector<EngineCommand> engine_commands(const cost::Deployment& deployment, int draft_length, double batch,
                                           double context = kUsualContext);
// How many GPUs the target runs on.
double gpus_of(const cost::Deployment& deployment);

// The command of one engine, "vLLM", "SGLang", "TensorRT-LLM" or "llama.cpp"; nullopt for another. `by_batch` is included if the
// engine takes it (takes_lengths_by_batch): from 1 sequence on without gaps. `draft_length` is the longest
// of them.
std::optional<EngineCommand> engine_command(const std::string& engine, const cost::Deployment& deployment, int draft_length,
                                            double batch, const std::vector<LengthRange>& by_batch,
                                            double context = kUsualContext);
// Whether the engine has such a table and honours it for this deployment without losing more than it gains.
bool takes_lengths_by_batch(const std::string& engine, const cost::Deployment& deployment);
// TensorRT-LLM rejects a table whose first length is not its longest (validate_draft_len_schedule_and_sort,
// tensorrt_llm/llmapi/llm_args.py).
bool takes_lengths_that_rise(const std::string& engine);

// The models with which an acceptance was recorded, in the form of cost.target and cost.draft; "": not stated.
struct RecordedModels {
  std::string target;
  std::string draft;
};
// Why no engine, or only some, can serve a target and its draft (different vocabularies or widths), and why their acceptance
// differs from the published one: a head or a table of other models. One line each. plan, serve and compare print them.
std::vector<std::string> pair_warnings(const cost::Deployment& deployment, const RecordedModels& recorded = {});

}  // namespace specsim::plan
