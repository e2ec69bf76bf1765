// tokenizer.json of the library tokenizers (Hugging Face), where it describes byte-pair encoding.
#pragma once

#include "sim/lab/llm/tokenizer.h"

#include <memory>
#include <string>

namespace specsim::llm {

// Takes model BPE; normalizers NFC, Prepend, Replace of a text; pre-tokenizers ByteLevel, Digits, Metaspace, and Split by the
// expressions of GPT-2, Llama 3 and Qwen or by a text. Throws BadInput with the file and what it asks for beyond that, since
// tokens that are nearly right would make acceptance quietly wrong.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& path);

}  // namespace specsim::llm
