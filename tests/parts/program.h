// Runs a command of the program inside the test, with the parts that the test has registered.
#pragma once

#include <string>
#include <vector>

namespace specsim::tests {

struct Ended {
  int status = 0;
  std::string output;  // standard output and standard error
  [[nodiscard]] bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

// `arguments` without the program's name.
Ended run_program(const std::vector<std::string>& arguments);

}  // namespace specsim::tests
