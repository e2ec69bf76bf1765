// Replaces libFuzzer in builds without it. It has the options that scripts/fuzz uses: files and folders as inputs, once each;
// with -max_total_time=N it also changes bytes at random for N seconds.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr time_t kSeconds = 60;  // most processor time of one input
constexpr std::size_t kLongest = 20000;

const Bytes* fed = nullptr;
std::string unkept_path;

// Saves the input that ended the process, and lets the signal act.
void keep_input(int signal) {
  const int file = fed == nullptr ? -1 : open(unkept_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && write(file, fed->data(), fed->size()) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void feed(const Bytes& input) {
  fed = &input;
  const itimerval limit{{0, 0}, {kSeconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Bytes changed(Bytes bytes, const std::vector<Bytes>& others, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::ptrdiff_t>(random() % std::max<std::size_t>(n, 1)); };
  for (auto changes = 1 + below(4); changes > 0; --changes) {
    const auto at = bytes.begin() + below(bytes.size() + 1);
    const Bytes& other = others[static_cast<std::size_t>(below(others.size()))];
    const auto from = other.begin() + below(other.size() + 1);
    switch (below(5)) {
      case 0:
        if (at != bytes.end()) *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        if (at != bytes.end()) *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8);
        break;
      case 2:
        bytes.erase(at, at + below(static_cast<std::size_t>(bytes.end() - at) + 1));
        break;
      case 3:
        bytes.insert(at, from, from + below(static_cast<std::size_t>(other.end() - from) + 1));
        break;
      default:
        bytes.insert(at, static_cast<std::size_t>(below(9)), static_cast<std::uint8_t>(random()));
        break;
    }
  }
  if (bytes.size() > kLongest) bytes.resize(kLongest);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  unkept_path = "unkept";
  std::chrono::seconds time(0);
  unsigned seed = 1;
  std::vector<Bytes> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("-max_total_time=")) time = std::chrono::seconds(std::stoul(value));
    if (argument.starts_with("-seed=")) seed = static_cast<unsigned>(std::stoul(value));
    if (argument.starts_with("-artifact_prefix=")) unkept_path = value + "unkept_" + std::to_string(getpid());
    if (argument.starts_with("-")) continue;
    if (!std::filesystem::is_directory(argument)) {
      inputs.push_back(read(argument));
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument))
      if (entry.is_regular_file()) inputs.push_back(read(entry.path()));
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF}) std::signal(signal, keep_input);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
  if (inputs.empty()) inputs.emplace_back();
  std::size_t executions = inputs.size();
  for (const Bytes& input : inputs) feed(input);
  std::mt19937 random(seed);
  const auto end = std::chrono::steady_clock::now() + time;
  for (; std::chrono::steady_clock::now() < end; ++executions) feed(changed(inputs[random() % inputs.size()], inputs, random));
  std::fprintf(stderr, "stat::number_of_executed_units: %zu\n", executions);
  return 0;
}
