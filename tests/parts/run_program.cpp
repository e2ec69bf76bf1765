#include "tests/parts/program.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>

int specsim_main(int argc, char** argv);

namespace specsim::tests {

Ended run_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"specsim"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  std::FILE* const captured = std::tmpfile();
  if (captured == nullptr) throw std::runtime_error("no temporary file");
  std::fflush(stdout);
  std::fflush(stderr);
  const int own_output = dup(STDOUT_FILENO);
  const int own_error = dup(STDERR_FILENO);
  dup2(fileno(captured), STDOUT_FILENO);
  dup2(fileno(captured), STDERR_FILENO);
  Ended ended;
  ended.status = specsim_main(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  std::fflush(stderr);
  dup2(own_output, STDOUT_FILENO);
  dup2(own_error, STDERR_FILENO);
  close(own_output);
  close(own_error);
  std::rewind(captured);
  for (int c = std::fgetc(captured); c != EOF; c = std::fgetc(captured)) ended.output += static_cast<char>(c);
  std::fclose(captured);
  return ended;
}

}  // namespace specsim::tests
