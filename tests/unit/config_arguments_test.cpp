#include "sim/foundation/config/arguments.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/config/registry.h"
#include "tests/support/diagnostics.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace specsim::config::config_arguments_test {

using specsim::tests::all_messages;

namespace {

Value parsed(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_text(text, "t", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  return value;
}

std::vector<Parameter> zipf() {
  return {{"exponent", Type::number, std::nullopt, "how steep", above(0.0), {}},
          {"offset", Type::number, "0", "shift of the ranks", at_least(0.0), {}}};
}

std::string mistakes(const std::string& text, const std::vector<Parameter>& table) {
  Diagnostics diagnostics;
  read_arguments(parsed(text), table, {"family"}, "target family zipf", diagnostics);
  return all_messages(diagnostics);
}

// The error message of one parameter called "x" for the text of its value.
std::string mistake(const std::string& value, Type type, Interval interval = {}, std::vector<std::string> choices = {}) {
  return mistakes("x: " + value, {{"x", type, std::nullopt, "", interval, std::move(choices)}});
}

Arguments read(const std::string& text, const std::vector<Parameter>& table) {
  Diagnostics diagnostics;
  Arguments arguments = read_arguments(parsed(text), table, {}, "part", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  return arguments;
}

TEST_CASE("intervals print their bounds", "[config]") {
  CHECK(any_number().to_text() == "any finite number");
  CHECK(at_least(0.0).to_text() == "at least 0");
  CHECK(above(0.0).to_text() == "above 0");
  CHECK(between(0.0, 1.0).to_text() == "in [0, 1]");
  CHECK(Interval{-0.5, 1e6, true, true}.to_text() == "in (-0.5, 1000000)");
  CHECK(Interval{0.0, 1.0, true, false}.to_text() == "in (0, 1]");
  Interval most;
  most.high = 1e-9;
  CHECK(most.to_text() == "at most 1e-09");
  most.high_open = true;
  CHECK(most.to_text() == "below 1e-09");

  CHECK(between(0.0, 1.0).contains(0.0));
  CHECK(between(0.0, 1.0).contains(1.0));
  CHECK_FALSE(Interval{0.0, 1.0, true, true}.contains(0.0));
  CHECK_FALSE(Interval{0.0, 1.0, true, true}.contains(1.0));
  CHECK(above(0.0).contains(5e-324));
  CHECK_FALSE(above(0.0).contains(-0.0));
  CHECK(at_least(0.0).contains(-0.0));
  CHECK_FALSE(any_number().contains(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("arguments of every type", "[config]") {
  const std::vector<Parameter> table = {
      {"i", Type::integer, std::nullopt, "", {}, {}},      {"n", Type::number, std::nullopt, "", {}, {}},
      {"t", Type::text, std::nullopt, "", {}, {}},         {"c", Type::text, std::nullopt, "", {}, {"chain", "tree"}},
      {"b", Type::boolean, std::nullopt, "", {}, {}},      {"l", Type::number_list, std::nullopt, "", {}, {}},
      {"m", Type::number_table, std::nullopt, "", {}, {}}, {"v", Type::value, std::nullopt, "", {}, {}},
      {"w", Type::value_list, std::nullopt, "", {}, {}}};
  const Arguments arguments =
      read("i: 1e6\nn: 5\nt: 5\nc: tree\nb: true\nl: [1, .5]\nm: [[1, 2], [], [3]]\nv: {a: 1}\nw: [a, {b: 1}]\n", table);
  CHECK(arguments.integer("i") == 1000000);
  CHECK(arguments.number("n") == 5.0);
  CHECK(arguments.text("t") == "5");
  CHECK(arguments.text("c") == "tree");
  CHECK(arguments.boolean("b"));
  CHECK(arguments.numbers("l") == std::vector<double>{1.0, 0.5});
  CHECK(arguments.table("m") == std::vector<std::vector<double>>{{1.0, 2.0}, {}, {3.0}});
  CHECK(to_flow_text(arguments.value("v")) == "{a: 1}");
  CHECK(arguments.value("w").items.size() == 2);
  CHECK(arguments.has("i"));
  CHECK(to_string(arguments.where("m")) == "t:7:4");
  CHECK(to_string(arguments.where()) == "t:1:1");

  CHECK_THROWS_AS(arguments.number("i"), InvariantBroken);
  CHECK_THROWS_AS(arguments.integer("x"), InvariantBroken);
  CHECK_THROWS_AS(arguments.value("i"), InvariantBroken);
  CHECK_THROWS_AS(arguments.value("x"), InvariantBroken);
  CHECK_THROWS_AS(arguments.has("x"), InvariantBroken);
  CHECK_THROWS_AS(arguments.where("x"), InvariantBroken);
}

TEST_CASE("defaults", "[config]") {
  const std::vector<Parameter> table = {
      {"n", Type::number, "0.5", "", {}, {}},         {"b", Type::boolean, "true", "", {}, {}},
      {"l", Type::number_list, "[1, 2]", "", {}, {}}, {"v", Type::value, "{family: [uniform]}", "", {}, {}},
      {"o", Type::integer, "", "", {}, {}},           {"t", Type::text, "''", "", {}, {}}};
  for (const char* text : {"{}", "~", ""}) {
    const Arguments arguments = read(text, table);
    CHECK(arguments.number("n") == 0.5);
    CHECK(arguments.boolean("b"));
    CHECK(arguments.numbers("l").size() == 2);
    CHECK(arguments.has("n"));
    CHECK_FALSE(arguments.has("o"));
    CHECK(arguments.integer("o") == 0);
    CHECK(arguments.has("t"));
    CHECK(arguments.text("t").empty());
  }
  // A default's place is that of the part.
  Diagnostics diagnostics;
  const Value root = parsed("a: 1\npart:\n  n: 1\n");
  const Arguments arguments = read_arguments(*root.find("part"), table, {}, "part", diagnostics);
  CHECK(to_string(arguments.where("n")) == "t:3:6");
  CHECK(to_string(arguments.where("l")) == "t:3:3");
  CHECK(to_string(find_path(arguments.value("v"), "family.0")->where) == "t:3:3");

  Diagnostics ignored;
  CHECK_THROWS_AS(read_arguments(Value(), {{"n", Type::number, "abc", "", {}, {}}}, {}, "part", ignored), InvariantBroken);
  CHECK_THROWS_AS(read_arguments(Value(), {{"n", Type::number, "-1", "", above(0.0), {}}}, {}, "part", ignored), InvariantBroken);
  CHECK_THROWS_AS(read_arguments(Value(), {{"n", Type::number, "[", "", {}, {}}}, {}, "part", ignored), InvariantBroken);
  CHECK_THROWS_AS(read_arguments(Value(), {zipf()[0], zipf()[0]}, {}, "part", ignored), InvariantBroken);
}

TEST_CASE("a wrong argument keeps its default or zero", "[config]") {
  Diagnostics diagnostics;
  const Arguments arguments = read_arguments(
      parsed("{exponent: x, offset: -3}"),
      {{"exponent", Type::number, std::nullopt, "", above(0.0), {}}, {"offset", Type::number, "0.25", "", at_least(0.0), {}}}, {},
      "part", diagnostics);
  CHECK(diagnostics.list().size() == 2);
  CHECK_FALSE(arguments.has("exponent"));
  CHECK(arguments.number("exponent") == 0.0);
  CHECK(arguments.number("offset") == 0.25);
  CHECK(to_string(arguments.where("offset")) == "t:1:23");
}

TEST_CASE("keys that are unknown or missing", "[config]") {
  CHECK(mistakes("{exponent: 1, family: zipf}", zipf()).empty());
  CHECK(mistakes("offset: 1\n", zipf()) == "t:1:1: target family zipf lacks \"exponent\", allowed: a number, above 0");
  CHECK(mistakes("offset: 1\nexponnent: 1\n", zipf()) ==
        "t:2:1: unknown key \"exponnent\" in target family zipf, did you mean \"exponent\"? allowed: exponent, family, offset");
  CHECK(mistakes("exponent: 1\nzzzzzz: 1\n", zipf()) ==
        "t:2:1: unknown key \"zzzzzz\" in target family zipf, allowed: exponent, family, offset");
  CHECK(mistakes("{exponent: 1, ? " + std::string(5000, 'x') + " : 1}", zipf()) ==
        "t:1:17: unknown key \"" + std::string(60, 'x') + "\"... in target family zipf, allowed: exponent, family, offset");
  CHECK(mistakes("[exponent]", zipf()) == "t:1:1: target family zipf is a list, allowed: a map");
  CHECK(mistakes("zipf", zipf()) == "t:1:1: target family zipf is \"zipf\", allowed: a map");

  Diagnostics diagnostics;
  read_arguments(parsed("{a: 1}"), {}, {}, "verifier token", diagnostics);
  CHECK(all_messages(diagnostics) == "t:1:2: unknown key \"a\" in verifier token, allowed: none");
}

TEST_CASE("all mistakes are reported at once", "[config]") {
  Diagnostics diagnostics;
  read_arguments(parsed("exponent: x\noffset: -1\nfoo: 1\n"), zipf(), {}, "part", diagnostics);
  CHECK(diagnostics.list().size() == 3);
}

TEST_CASE("integers", "[config]") {
  const std::string allowed = ", allowed: an integer, at least 0";
  CHECK(mistake("1e6", Type::integer, at_least(0)).empty());
  CHECK(mistake("abc", Type::integer, at_least(0)) == "t:1:4: x is \"abc\"" + allowed);
  CHECK(mistake("5.5", Type::integer, at_least(0)) == "t:1:4: x is 5.5" + allowed);
  CHECK(mistake("-1", Type::integer, at_least(0)) == "t:1:4: x is -1" + allowed);
  CHECK(mistake("010", Type::integer, at_least(0)) == "t:1:4: x is 010 (a leading zero)" + allowed);
  CHECK(mistake("\"5\"", Type::integer, at_least(0)) == "t:1:4: x is the text \"5\"" + allowed);
  CHECK(mistake("1_000", Type::integer, at_least(0)) == "t:1:4: x is \"1_000\"" + allowed);
  CHECK(mistake("true", Type::integer, at_least(0)) == "t:1:4: x is true" + allowed);
  CHECK(mistake(".nan", Type::integer, at_least(0)) == "t:1:4: x is .nan (not a number)" + allowed);
  CHECK(mistake("", Type::integer, at_least(0)) == "t:1:1: x is null (no value)" + allowed);
  CHECK(mistake("[1]", Type::integer, at_least(0)) == "t:1:4: x is a list" + allowed);
  CHECK(mistake("1e30", Type::integer, at_least(0)) == "t:1:4: x is 1e30" + allowed + ", in 64 bits");
  CHECK(mistake("9223372036854775808", Type::integer) == "t:1:4: x is 9223372036854775808, allowed: an integer, in 64 bits");
  CHECK(mistake("9", Type::integer, between(1, 8)) == "t:1:4: x is 9, allowed: an integer in [1, 8]");
  CHECK(mistake("x", Type::integer) == "t:1:4: x is \"x\", allowed: an integer");
}

TEST_CASE("numbers", "[config]") {
  const Interval rate{0.0, 1.0, true, false};
  const std::string allowed = ", allowed: a number in (0, 1]";
  CHECK(mistake("1", Type::number, rate).empty());
  CHECK(mistake("0", Type::number, rate) == "t:1:4: x is 0" + allowed);
  CHECK(mistake("1.5", Type::number, rate) == "t:1:4: x is 1.5" + allowed);
  CHECK(mistake("{a: 1}", Type::number, rate) == "t:1:4: x is a map" + allowed);
  CHECK(mistake(".nan", Type::number) == "t:1:4: x is .nan (not a number), allowed: any finite number");
  CHECK(mistake("-.inf", Type::number) == "t:1:4: x is -.inf (not finite), allowed: any finite number");
  CHECK(mistake("1e999", Type::number) == "t:1:4: x is 1e999 (beyond the range of a double), allowed: any finite number");
  CHECK(mistake("-1", Type::number, above(0)) == "t:1:4: x is -1, allowed: a number, above 0");
}

TEST_CASE("texts and booleans", "[config]") {
  CHECK(mistake("[a]", Type::text) == "t:1:4: x is a list, allowed: a text");
  CHECK(mistake("", Type::text) == "t:1:1: x is null (no value), allowed: a text");
  CHECK(mistake("tre", Type::text, {}, {"chain", "tree"}) == "t:1:4: x is \"tre\", did you mean \"tree\"? allowed: chain, tree");
  CHECK(mistake("zzzzzz", Type::text, {}, {"chain", "tree"}) == "t:1:4: x is \"zzzzzz\", allowed: chain, tree");
  CHECK(mistake("[tree]", Type::text, {}, {"chain", "tree"}) == "t:1:4: x is a list, allowed: chain, tree");
  CHECK(mistake("false", Type::boolean).empty());
  for (const char* value : {"yes", "True", "on", "no"})
    CHECK(mistake(value, Type::boolean) == std::string("t:1:4: x is \"") + value + "\", allowed: true or false");
  CHECK(mistake("1", Type::boolean) == "t:1:4: x is 1, allowed: true or false");
  CHECK(mistake("'true'", Type::boolean) == "t:1:4: x is the text \"true\", allowed: true or false");
}

TEST_CASE("lists and tables", "[config]") {
  const Interval share = between(0, 1);
  CHECK(mistake("[0, 1]", Type::number_list, share).empty());
  CHECK(mistake("[]", Type::number_list, share).empty());
  CHECK(mistake("3", Type::number_list, share) == "t:1:4: x is 3, allowed: a list, each item a number in [0, 1]");
  CHECK(mistake("[0, 2, a]", Type::number_list, share) ==
        "t:1:8: x[1] is 2, allowed: a number in [0, 1]\nt:1:11: x[2] is \"a\", allowed: a number in [0, 1]");
  CHECK(mistake("[[0], [1, 2]]", Type::number_table, share) == "t:1:14: x[1][1] is 2, allowed: a number in [0, 1]");
  CHECK(mistake("[[0], 1]", Type::number_table, share) == "t:1:10: x[1] is 1, allowed: a list, each item a number in [0, 1]");
  CHECK(mistake("1", Type::number_table) == "t:1:4: x is 1, allowed: a list of lists, each item any finite number");
  CHECK(mistake("{a: 1}", Type::value_list) == "t:1:4: x is a map, allowed: a list");
  CHECK(mistake("~", Type::value).empty());

  std::string many;
  for (int i = 0; i < 1000; ++i) many += "a, ";
  const std::string told = mistake("[" + many + "]", Type::number_list);
  CHECK(std::count(told.begin(), told.end(), '\n') == 5);
  CHECK(told.ends_with("t:1:4: x has 5 wrong items so far, the rest was not read"));
  const std::string table = mistake("[[" + many + "], [" + many + "], a]", Type::number_table);
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);
}

TEST_CASE("single values", "[config]") {
  Diagnostics diagnostics;
  CHECK(read_number(parsed("0.5"), between(0, 1), "alpha", diagnostics) == 0.5);
  CHECK(read_integer(parsed("5"), at_least(0), "draft_length", diagnostics) == 5);
  CHECK(read_text(parsed("5"), "name", diagnostics) == "5");
  CHECK(diagnostics.empty());
  CHECK_FALSE(read_number(parsed("2"), between(0, 1), "alpha", diagnostics).has_value());
  CHECK_FALSE(read_integer(parsed("abc"), at_least(0), "draft_length", diagnostics).has_value());
  CHECK_FALSE(read_text(parsed("~"), "name", diagnostics).has_value());
  CHECK(all_messages(diagnostics) ==
        "t:1:1: alpha is 2, allowed: a number in [0, 1]\n"
        "t:1:1: draft_length is \"abc\", allowed: an integer, at least 0\n"
        "t:1:1: name is null (no value), allowed: a text");
}

struct Entry {
  PartInfo info;
};

TEST_CASE("a registry finds, suggests and refuses doubles", "[config]") {
  const auto entry = [](const std::string& name) { return Entry{{name, "", "", {}, ""}}; };
  const Registry<Entry> registry("verifier", {entry("token"), entry("block")});
  Diagnostics diagnostics;
  CHECK(registry.find("block")->info.name == "block");
  CHECK(registry.find("block", {"t", 1, 1}, diagnostics) != nullptr);
  CHECK(registry.find("blok", {"t", 1, 1}, diagnostics) == nullptr);
  CHECK(registry.find("zzzzzzzz", {"t", 2, 1}, diagnostics) == nullptr);
  CHECK(all_messages(diagnostics) ==
        "t:1:1: unknown verifier \"blok\", did you mean \"block\"? allowed: token, block\n"
        "t:2:1: unknown verifier \"zzzzzzzz\", allowed: token, block");
  CHECK_THROWS_AS(Registry<Entry>("verifier", {entry("token"), entry("token")}), InvariantBroken);
}

}  // namespace
}  // namespace specsim::config::config_arguments_test
