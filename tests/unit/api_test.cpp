#include "sim/doors/api/specsim.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace specsim::api_test {
namespace {

TEST_CASE("the library reports mistakes in the order of their lines, as the program does", "[api]") {
  // Parts are read in their own order, which is not that of this text.
  const std::string text =
      "theory: {name: exact, expect: maybe}\n"
      "cost: {model: ratio, cost_ratio: none}\n"
      "decode:\n"
      "  verifier: tokn\n"
      "  drafter: {kind: chain, draft_length: 65}\n"
      "pair:\n"
      "  draft: {from: target, transform: temprature, value: 0.8}\n"
      "  target: {family: zpif, exponent: 1}\n"
      "  vocab: 4\n"
      "rounds: -5\n"
      "experiment: bad\n";
  std::vector<int> lines;
  try {
    api::run_text(text, "reversed.yaml");
    FAIL("nothing was thrown");
  } catch (const api::InputError& error) {
    std::istringstream said(error.what());
    for (std::string line; std::getline(said, line);) {
      INFO(line);
      REQUIRE(line.rfind("reversed.yaml:", 0) == 0);
      lines.push_back(std::stoi(line.substr(std::string("reversed.yaml:").size())));
    }
  }
  CHECK(lines == std::vector<int>{1, 2, 4, 5, 7, 8, 10});
}

}  // namespace
}  // namespace specsim::api_test
