// Times of passes from the output of llama.cpp's llama-bench.
#pragma once

#include "sim/foundation/base/error.h"

#include <string>
#include <vector>

namespace specsim::cost {

// A pass over `tokens` new tokens of one sequence with `context` cached ones.
struct BenchedPass {
  double tokens = 0.0;
  double context = 0.0;
  double ms = 0.0;
  int line = 0;  // line of the file; 0 in JSON, which has no meaningful lines
};

// A test: `prompt` tokens are read, then `generated` tokens follow, on `depth` cached ones.
struct LlamaBenchTest {
  double prompt = 0.0;
  double generated = 0.0;
  double depth = 0.0;
  double tokens_per_s = 0.0;
  int line = 0;  // as above
};

// Tests in the output of llama-bench -o csv, json, jsonl or md, whose format is recognised from the text. All tests must be of
// one model. Reports errors at `file`.
std::vector<LlamaBenchTest> read_llama_bench_tests(const std::string& file, const std::string& text, Diagnostics& diagnostics);
// The passes of such a text. A prompt of n tokens (pp) is a pass over n tokens on n_depth cached ones, as verification is.
// Generation (tg) is passes over one token, taken to be at n_depth; it is ignored if a prompt of one token was timed at that
// depth. Tests that mix both (-pg) are left out.
std::vector<BenchedPass> read_llama_bench(const std::string& file, const std::string& text, Diagnostics& diagnostics);

}  // namespace specsim::cost
