// Prompts: JSONL, one per line, {"prompt": TEXT} or {"tokens": [IDS]}, and {"kind": NAME} to separate results by kind.
#pragma once

#include "sim/lab/llm/model_config.h"
#include "sim/lab/llm/tokenizer.h"

#include <string>
#include <vector>

namespace specsim::llm {

struct Prompt {
  std::string kind;           // "" where none is given
  std::vector<Token> tokens;  // where a text is given, what the tokenizer puts in front of it too
};

// How to treat a prompt with more tokens than the model's context less the room for the output.
enum class Overlong {
  error,
  skip,  // the prompt is left out
  cut,   // the prompt's first tokens are kept, as many as there is room for
};

struct PromptFile {
  std::vector<Prompt> prompts;
  std::size_t overlong = 0;  // skipped or cut
};

// Throws BadInput with the line of what is wrong: no prompt at all, an empty one, a token beyond the vocabulary, more tokens than
// the model's context less `room` where that is an error. `tokenizer` may be null: then tokens alone.
PromptFile read_prompts(const std::string& path, const Tokenizer* tokenizer, const ModelConfig& model, std::size_t room,
                        Overlong overlong = Overlong::error);

}  // namespace specsim::llm
