#include "sim/foundation/config/json.h"

#include <catch2/catch.hpp>

#include <string>

namespace specsim::config::json_test {

namespace {

// The first error of a text; "" if it has none.
std::string mistake(const std::string& text) {
  Diagnostics diagnostics;
  static_cast<void>(parse_json(text, "t", diagnostics));
  if (diagnostics.empty()) return "";
  return to_string(diagnostics.list().front().where) + " " + diagnostics.list().front().message;
}

Value read(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_json(text, "t", diagnostics, 7);
  diagnostics.throw_if_any();
  return value;
}

}  // namespace

TEST_CASE("JSON gives the values that YAML gives, each with its place", "[json]") {
  const Value root = read("{\"a\": [1, -2.5e-3, true, null,\n \"5\"], \"b\": {}}");
  const Value& list = *root.find("a");
  REQUIRE(list.items.size() == 5);
  CHECK(as_integer(list.items[0]) == 1);
  CHECK(as_number(list.items[1]) == -2.5e-3);
  CHECK(list.items[1].text == "-2.5e-3");
  CHECK(list.items[2].text == "true");
  CHECK(list.items[3].is_null());
  CHECK_FALSE(as_number(list.items[4]).has_value());  // a text
  CHECK(root.find("b")->is_map());
  CHECK(to_string(root.where) == "t:7:1");
  CHECK(to_string(list.where) == "t:7:7");
  CHECK(to_string(list.items[1].where) == "t:7:11");
  CHECK(to_string(list.items[3].where) == "t:7:26");
  CHECK(to_string(list.items[4].where) == "t:8:2");
  CHECK(to_string(root.find("b")->where) == "t:8:13");
  CHECK(to_string(root.fields[1].where) == "t:8:8");
  CHECK(to_string(read("[[1],[2,3]]").items[1].items[1].where) == "t:7:9");
}

TEST_CASE("a surrogate pair is one character, as Python's json.dumps writes an emoji", "[json]") {
  CHECK(read("{\"prompt\": \"\\ud83d\\ude00\"}").find("prompt")->text == "\xF0\x9F\x98\x80");
  CHECK(mistake("{\"prompt\": \"\\ud83d\"}") != "");
  CHECK(to_string(read("[\"\xC3\xA9\", 1]").items[1].where) == "t:7:7");  // columns count characters
}

TEST_CASE("the infinities and NaN that Python writes are read, as texts that are no numbers", "[json]") {
  const Value root = read("[Infinity, -Infinity, NaN, 1]");
  REQUIRE(root.items.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(as_number(root.items[i]).has_value());
  CHECK(to_string(root.items[3].where) == "t:7:28");
}

TEST_CASE("YAML syntax that is not JSON is refused, and the message gives the place", "[json]") {
  for (const std::string text : {"{a: 1}", "{'a': 1}", "[1, 2,]", "[01]", "[.5]", "[NAN]", "- 1", "{\"a\": yes}", "[1] # why", "",
                                 "{\"a\" 1}", "[1", "\"\x01\"", "[+1]", "[0x10]"})
    CHECK(mistake(text).find("this is not JSON (") != std::string::npos);
  CHECK(mistake("{\"a\": 1,\n b: 2}").starts_with("t:2:2 this is not JSON ("));
  CHECK(mistake("{\"a\": [1, oops]}").starts_with("t:1:11 this is not JSON ("));
  CHECK(mistake("{\"a\": 1, \"a\": 2}") == "t:1:10 key \"a\" is given twice, first at line 1, allowed: once");
  CHECK(mistake(std::string(101, '[') + std::string(101, ']')) ==
        "t:1:101 the text is nested too deep, allowed: at most 100 levels");
  CHECK(mistake(std::string(100, '[') + std::string(100, ']')).empty());
}

TEST_CASE("a key that a large map has twice is found at its place", "[json]") {
  const auto map = [](int keys, const std::string& last) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += "\"key" + std::to_string(i) + "\": " + std::to_string(i) + ",\n";
    return text + "\"" + last + "\": 1}";
  };
  for (const int keys : {31, 32, 33, 5000}) {
    CHECK(mistake(map(keys, "key7")) ==
          "t:" + std::to_string(keys + 1) + ":1 key \"key7\" is given twice, first at line 8, allowed: once");
    CHECK(mistake(map(keys, "key" + std::to_string(keys - 1))).find("is given twice") != std::string::npos);
    CHECK(mistake(map(keys, "another")).empty());
  }
}

TEST_CASE("limits of a JSON text are its reader's", "[json]") {
  const auto said = [](const std::string& text, const JsonLimits& limits) {
    Diagnostics diagnostics;
    static_cast<void>(parse_json(text, "t", diagnostics, 1, limits));
    return diagnostics.empty() ? "" : to_string(diagnostics.list().front().where) + " " + diagnostics.list().front().message;
  };
  CHECK(said("[1, 2, 3]", {.values = 4}).empty());
  CHECK(said("[1, 2, 3, 4]", {.values = 4}) == "t:1:11 the text has too many values, allowed: at most 4");
  CHECK(said("[[1]]", {.depth = 2}).empty());
  CHECK(said("[[[1]]]", {.depth = 2}) == "t:1:3 the text is nested too deep, allowed: at most 2 levels");
}

}  // namespace specsim::config::json_test
