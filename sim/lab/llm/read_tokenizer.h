// The tokenizer that comes with a model, whatever the form of its files.
#pragma once

#include "sim/lab/llm/tokenizer.h"

#include <memory>
#include <string>

namespace specsim::llm {

// The tokenizer of the model at `path`: tokenizer.json of a directory, else its tokenizer.model; that within a GGUF file. Null
// where there is none. Throws BadInput where it is broken or of a kind that is not read.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);

}  // namespace specsim::llm
