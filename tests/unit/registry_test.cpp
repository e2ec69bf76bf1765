// Registries that a program can extend.
#include "sim/foundation/config/registry.h"

#include <catch2/catch.hpp>

#include <optional>

namespace specsim::registry_test {

namespace {

struct Entry {
  config::PartInfo info;
  int value = 0;
};

Entry entry(const std::string& name, int value) { return {{name, "", "", {}, ""}, value}; }

}  // namespace

TEST_CASE("a registered part exists as long as its registration, after the others") {
  config::Registry<Entry> registry("thing", {entry("a", 1), entry("b", 2)});
  const Entry* const b = registry.find("b");
  {
    std::optional<config::Registered<Entry>> c(std::in_place, registry, entry("c", 3));
    const config::Registered<Entry> d(registry, entry("d", 4));
    CHECK(registry.names() == "a, b, c, d");
    CHECK(registry.find("c")->value == 3);
    CHECK(registry.find("b") == b);
    c.reset();  // they may be removed in any order
    CHECK(registry.names() == "a, b, d");
    CHECK(registry.find("d")->value == 4);
  }
  CHECK(registry.names() == "a, b");
  CHECK(registry.find("c") == nullptr);
}

TEST_CASE("a name that exists already breaks an invariant, and the registry is unchanged") {
  config::Registry<Entry> registry("thing", {entry("a", 1)});
  CHECK_THROWS_AS(config::Registered<Entry>(registry, entry("a", 2)), InvariantBroken);
  CHECK(registry.names() == "a");
  CHECK(registry.find("a")->value == 1);
}

}  // namespace specsim::registry_test
