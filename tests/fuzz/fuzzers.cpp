// The entry of libFuzzer: SPECSIM_FUZZER names the fuzzer that this process runs.
#include "tests/fuzz/fuzzers.h"

#include "sim/foundation/base/error.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace specsim::fuzz {

namespace {

std::vector<Fuzzer> all_fuzzers() {
  std::vector<Fuzzer> all;
  for (const auto* list : {&config_fuzzers(), &record_fuzzers(), &model_fuzzers(), &command_fuzzers()})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

const Fuzzer& chosen_fuzzer() {
  static const std::vector<Fuzzer> all = all_fuzzers();
  const char* name = std::getenv("SPECSIM_FUZZER");
  for (const Fuzzer& one : all)
    if (name != nullptr && name == std::string(one.name)) return one;
  std::fputs("SPECSIM_FUZZER is not set to one of:", stderr);
  for (const Fuzzer& one : all) std::fprintf(stderr, " %s", one.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

// A refusal with an unusable message is a finding as well.
void check_refusal(const BadInput& refusal) {
  std::size_t bytes = 0;
  require(!refusal.list().empty(), "a refusal has a message");
  for (const Diagnostic& diagnostic : refusal.list()) {
    bytes += diagnostic.message.size();
    require(!diagnostic.message.empty(), "a message is not empty");
    const bool names_option =
        diagnostic.message.find("option") != std::string::npos || diagnostic.message.find("--") != std::string::npos;
    require(!diagnostic.where.file.empty() || names_option, "a message has a place");
    require(diagnostic.where.line >= 0 && diagnostic.where.column >= 0, "a place is one");
  }
  require(bytes < 100000, "messages are short");
}

}  // namespace

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "not kept: %s\n", promise);
  std::abort();
}

std::string file_of(std::string_view bytes) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("specsim_fuzz_" + std::to_string(getpid()))).string();
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace specsim::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  specsim::fuzz::chosen_fuzzer();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const specsim::fuzz::Fuzzer& fuzzer = specsim::fuzz::chosen_fuzzer();
  try {
    fuzzer.feed({reinterpret_cast<const char*>(data), size});
  } catch (const specsim::BadInput& refusal) {
    specsim::fuzz::check_refusal(refusal);
  }
  return 0;
}
