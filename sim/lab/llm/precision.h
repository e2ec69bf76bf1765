// The number formats that weights are kept in.
#pragma once

#include <cstddef>

namespace specsim::llm {

enum class Precision { f32, f16, bf16 };
[[nodiscard]] const char* to_text(Precision precision);  // as safetensors writes it: "F32"
[[nodiscard]] std::size_t bytes_of(Precision precision);

}  // namespace specsim::llm
