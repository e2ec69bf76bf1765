// Fuzzers that run within one process, thousands of inputs per second: readers of all external input. scripts/fuzz runs these,
// and whole commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specsim::fuzz {

// Takes any bytes. A rejected input throws BadInput; any other exception, signal or sanitizer report is a finding.
struct Fuzzer {
  const char* name;
  void (*feed)(std::string_view bytes);
};

const std::vector<Fuzzer>& config_fuzzers();   // experiments, hardware, models, JSON
const std::vector<Fuzzer>& record_fuzzers();   // traces, cost tables, journals, counts, manifests
const std::vector<Fuzzer>& model_fuzzers();    // weights, tokenizers, configs of models, prompts
const std::vector<Fuzzer>& command_fuzzers();  // options of the commands that write nothing

// Ends the process, as a finding, if a promise is broken.
void require(bool kept, const char* promise);

// The path of a file that holds these bytes, until the next call.
std::string file_of(std::string_view bytes);

}  // namespace specsim::fuzz
