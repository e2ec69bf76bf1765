// The tokenizer in a GGUF file's metadata.
#pragma once

#include "sim/lab/llm/gguf_file.h"
#include "sim/lab/llm/tokenizer.h"

#include <memory>

namespace specsim::llm {

// Byte-pair vocabularies of GPT-2, Llama 3 and Qwen2 ("gpt2" in the file); null for the other kinds, whose prompts must come as
// token ids. Throws BadInput for one that is broken, or cut by rules that are not read.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const GgufFile& file);

}  // namespace specsim::llm
