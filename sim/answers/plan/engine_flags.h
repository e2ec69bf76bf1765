// The flags that printed server commands use: one table for each engine, with the file of the engine's source that declares each.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

namespace specsim::plan {

// The setting that a flag makes.
enum class FlagUse {
  model,
  tokenizer,
  file_type,        // of the target's weights
  draft_file_type,  // of the draft's
  tensor_parallel,
  data_parallel,
  expert_parallel,
  attention_data_parallel,  // GPUs share the experts, and each computes attention for its own sequences
  local_data_parallel,      // of these GPUs, those of this machine
  data_parallel_start,      // the first of them on this machine
  data_parallel_address,
  trust_code,  // runs code of the model's repository
  machines,
  machine_rank,  // of this machine, from 0 on
  machine_address,
  headless,     // a machine that serves no requests itself
  shared_head,  // each of these GPUs has its own LM head, as some drafters require
  context,
  requests,
  keys,    // type of cached keys, or of keys and values
  values,  // type of cached values
  offload,
  options_file,
  speculation,  // the method, or all of it as one value
  draft_model,
  device,        // GPUs of the target
  draft_device,  // GPUs of the draft
  draft_type,
  draft_length,
  breadth,
  verified,
  block,
  least_probability,
  lookup,
  lookup_drafts
};

struct EngineFlag {
  FlagUse use;
  std::string_view name;
  std::string_view source;  // the file that declares it
};

struct EngineFlags {
  std::string_view engine;
  std::string_view version;  // of the engine in which the flags were looked up
  std::string_view program;
  std::span<const EngineFlag> flags;
  // Throws InvariantBroken where the engine has no such flag.
  [[nodiscard]] std::string_view name(FlagUse use) const;
};

const EngineFlags& vllm_flags();
const EngineFlags& sglang_flags();
const EngineFlags& llama_cpp_flags();
const EngineFlags& tensorrt_flags();

// A command that is put together flag by flag.
class ServerCommand {
 public:
  explicit ServerCommand(const EngineFlags& flags) : flags_(flags), text_(flags.program) {}
  void add(FlagUse use) { text_ += fmt::format(" {}", flags_.name(use)); }
  void add(FlagUse use, std::string_view value) { text_ += fmt::format(" {} {}", flags_.name(use), value); }
  void add(FlagUse use, double value) { text_ += fmt::format(" {} {:.0f}", flags_.name(use), value); }
  void add_word(std::string_view word) { text_ += fmt::format(" {}", word); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const EngineFlags& flags_;
  std::string text_;
};

}  // namespace specsim::plan
