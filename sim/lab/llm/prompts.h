// Prompts: JSONL, one per line, {"prompt": TEXT} or {"tokens": [IDS]}, and {"kind": NAME} to separate results by kind.
#pragma once

#include "sim/lab/llm/model_config.h"
#include "sim/lab/llm/tokenizer.h"

#include <string>
#include <vector>

namespace specsim::llm {

struct Prompt {
  std::string kind;           // "" if not given
  std::vector<Token> tokens;  // for a text, including the tokens that the tokenizer adds before it
};

// How to treat a prompt with more tokens than the model's context less the room for the output.
enum class Overlong {
  error,
  skip,  // the prompt is left out
  cut,   // the first tokens of the prompt are kept, as many as fit
};

struct PromptFile {
  std::vector<Prompt> prompts;
  std::size_t overlong = 0;  // skipped or cut
};

// Throws BadInput with the line of the mistake: no prompt at all, an empty one, a token beyond the vocabulary, more tokens than
// the model's context less `room` if that is an error. Without a `tokenizer` (null) only token ids are accepted.
PromptFile read_prompts(const std::string& path, const Tokenizer* tokenizer, const ModelConfig& model, std::size_t room,
                        Overlong overlong = Overlong::error);

}  // namespace specsim::llm
