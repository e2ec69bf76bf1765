// Prompts: JSONL, one a line, {"prompt": TEXT} or {"tokens": [IDS]}, and {"kind": NAME} where results are to be told apart.
#pragma once

#include "sim/llm/model_config.h"
#include "sim/llm/tokenizer.h"

#include <string>
#include <vector>

namespace specsim::llm {

struct Prompt {
  std::string kind;           // "" where none is given
  std::vector<Token> tokens;  // of a text: the begin token in front
};

// Throws BadInput with the line of what is wrong: no prompt at all, an empty one, a token beyond the vocabulary, more tokens than
// the model's context less `room`. `tokenizer` may be null: then tokens alone.
std::vector<Prompt> read_prompts(const std::string& path, const Tokenizer* tokenizer, const ModelConfig& model, std::size_t room);

}  // namespace specsim::llm
