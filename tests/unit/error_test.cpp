#include "sim/foundation/base/error.h"

#include "sim/foundation/base/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace specsim::error_test {
namespace {

TEST_CASE("a location prints its known parts", "[error]") {
  CHECK(to_string(Location{"pair.yaml", 3, 10}) == "pair.yaml:3:10");
  CHECK(to_string(Location{"pair.yaml", 3, 0}) == "pair.yaml:3");
  CHECK(to_string(Location{"pair.yaml", 0, 0}) == "pair.yaml");
  CHECK(to_string(Location{}).empty());
}

TEST_CASE("diagnostics are thrown together and in order", "[error]") {
  Diagnostics diagnostics;
  CHECK(diagnostics.empty());
  CHECK_NOTHROW(diagnostics.throw_if_any());
  diagnostics.add({"a.yaml", 2, 1}, "first");
  diagnostics.add({"a.yaml", 1, 1}, "second");
  CHECK_FALSE(diagnostics.empty());
  try {
    diagnostics.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()) == "a.yaml:2:1: first\na.yaml:1:1: second");
    REQUIRE(error.list().size() == 2);
    CHECK(error.list()[1].message == "second");
  }
}

TEST_CASE("by_place keeps the order of files, sorts each by line, and puts entries without a line last", "[error]") {
  const auto sorted = by_place({{{"b.yaml", 5, 1}, "1"},
                                {{"a.yaml", 9, 1}, "2"},
                                {{"b.yaml", 0, 0}, "3"},
                                {{"b.yaml", 2, 7}, "4"},
                                {{"a.yaml", 3, 1}, "5"},
                                {{"b.yaml", 2, 1}, "6"}});
  std::string order;
  for (const Diagnostic& one : sorted) order += one.message;
  CHECK(order == "461352");  // within one line, in the order in which they were found
}

TEST_CASE("a single mistake is thrown with its place", "[error]") {
  CHECK(std::string(BadInput({"a.yaml", 1, 2}, "no").what()) == "a.yaml:1:2: no");
  CHECK(std::string(BadInput({}, "no").what()) == "no");
}

TEST_CASE("the nearest name is suggested only if it is close enough", "[error]") {
  CHECK(nearest_name("exponnent", {"family", "exponent", "offset"}) == "exponent");
  CHECK(nearest_name("ZIPF", {"uniform", "zipf"}) == "zipf");
  CHECK(nearest_name("temperature", {"zipf", "uniform"}).empty());
  CHECK(nearest_name("zipf", {}).empty());
  CHECK(nearest_name("zip", {"zipf", "zips"}) == "zipf");  // the first of equals
  CHECK(not_allowed("family is zip", "zip", {"zipf", "uniform"}) ==
        "family is zip, did you mean \"zipf\"? allowed: zipf, uniform");
  CHECK(not_allowed("temperature", "temperature", {}) == "temperature, allowed: none");
}

TEST_CASE("a broken invariant reports expression and values", "[error]") {
  const int n = 3;
  CHECK_NOTHROW([&] { SPECSIM_CHECK(n == 3, "n = {}", n); }());
  try {
    SPECSIM_CHECK(n == 4, "n = {}", n);
    FAIL("nothing was thrown");
  } catch (const InvariantBroken& error) {
    const std::string message = error.what();
    CHECK(message.find("check failed: n == 4 (n = 3)") != std::string::npos);
    CHECK(message.find("error_test.cpp:") != std::string::npos);
  }
}

}  // namespace
}  // namespace specsim::error_test
