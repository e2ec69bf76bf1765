#include "sim/foundation/config/value.h"

#include "tests/support/diagnostics.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::config::config_value_test {

using specsim::tests::all_messages;

namespace {

std::string mistakes_in(const std::string& text) {
  Diagnostics diagnostics;
  parse_text(text, "t", diagnostics);
  return all_messages(diagnostics);
}

Value parsed(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_text(text, "t", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  return value;
}

// Also for single texts, because `"x" + std::string` trips a false -Wrestrict of g++ 12 at -O3.
std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string canonical(const std::string& text) { return to_canonical_text(parsed(text)); }

std::string mistakes_in_file(const std::string& path) {
  Diagnostics diagnostics;
  parse_file(path, diagnostics);
  REQUIRE(diagnostics.list().size() == 1);
  CHECK(diagnostics.list().front().where.file == path);
  CHECK(diagnostics.list().front().where.line == 0);
  return diagnostics.list().front().message;
}

TEST_CASE("values know their kind and place", "[config]") {
  const Value root = parsed("seed: 7\npair:\n  target: {family: zipf, name: \"5\"}\n  lengths: [1, 2]\n");
  REQUIRE(root.is_map());
  CHECK(to_string(root.where) == "t:1:1");
  CHECK(to_string(root.find("seed")->where) == "t:1:7");
  CHECK(root.find("seed")->text == "7");
  CHECK_FALSE(root.find("seed")->quoted);
  CHECK(to_string(root.fields[1].where) == "t:2:1");
  CHECK(to_string(find_path(root, "pair.target.name")->where) == "t:3:32");
  CHECK(find_path(root, "pair.target.name")->quoted);
  CHECK(find_path(root, "pair.lengths")->is_list());
  CHECK(to_string(find_path(root, "pair.lengths.1")->where) == "t:4:16");
  CHECK(root.find("nothing") == nullptr);
  CHECK(root.find("seed")->find("x") == nullptr);
}

TEST_CASE("columns count characters, whatever the line ends and marks", "[config]") {
  CHECK(to_string(parsed("{\xC3\xA9\xE2\x82\xAC: {x: 1}}").fields[0].value.where) == "t:1:6");
  const Value root = parsed(
      "\xEF\xBB\xBF"
      "a: 1\r\nb:\r\n  - x\r\n  - y\r\n");
  CHECK(to_flow_text(root) == "{a: 1, b: [x, y]}");
  CHECK(to_string(root.fields[0].where) == "t:1:1");
  CHECK(to_string(root.find("b")->items[1].where) == "t:4:5");
}

TEST_CASE("a null keeps its place", "[config]") {
  const Value root = parsed("a:\n\n# comment\nb:\n  c:\nd: ~\ne: [x, ]\nf: {g, h: }\ni:\n  -\n  # x - y\n  -   # -\n  - z\n");
  CHECK(to_string(root.find("a")->where) == "t:1:1");
  CHECK(to_string(find_path(root, "b.c")->where) == "t:5:3");
  CHECK(to_string(root.find("d")->where) == "t:6:4");
  CHECK(to_string(find_path(root, "f.g")->where) == "t:8:5");
  CHECK(to_string(find_path(root, "f.h")->where) == "t:8:8");
  CHECK(to_string(find_path(root, "i.0")->where) == "t:10:3");
  CHECK(to_string(find_path(root, "i.1")->where) == "t:12:3");
  CHECK(find_path(root, "i.1")->is_null());
}

TEST_CASE("empty text is a null, null words are nulls", "[config]") {
  CHECK(parsed("").is_null());
  CHECK(parsed("# nothing\n").is_null());
  CHECK(parsed("~").is_null());
  CHECK(parsed("null").is_null());
  CHECK(parsed("\"null\"").is_scalar());
  CHECK(parsed("---\na: 1\n...\n").is_map());
}

TEST_CASE("what YAML allows and a configuration does not", "[config]") {
  CHECK(mistakes_in("seed: 1\nseed: 2\n") == "t:2:1: key \"seed\" is given twice, first at line 1, allowed: once");
  CHECK(mistakes_in("a: 1\n'a': 2\n") == "t:2:1: key \"a\" is given twice, first at line 1, allowed: once");
  CHECK(mistakes_in("x: &k {a: 1}\ny:\n  <<: *k\nz: *k\n") ==
        "t:3:3: merge key \"<<\" is not supported, allowed: the keys written out\n"
        "t:4:4: alias \"*k\" is not supported, allowed: the value written out");
  CHECK(mistakes_in("x: *k\n") == "t:1:4: alias \"*k\" is not supported, allowed: the value written out");
  CHECK(mistakes_in("x: !foo 1\n") == "t:1:4: tag \"!foo\" is not supported, allowed: a value without a tag");
  CHECK(mistakes_in("x: ! 1\n") == "t:1:4: tag \"!\" is not supported, allowed: a value without a tag");
  CHECK(mistakes_in("x: !!set {a}\n") == "t:1:4: tag \"!!set\" is not supported, allowed: a value without a tag");
  CHECK(mistakes_in("a: 1\n---\nb: 2\n") == "t:2:1: a second document starts here, allowed: one document");
  CHECK(mistakes_in("? [a, b]\n: 1\n") == "t:1:3: a key is a list, allowed: a text");
  CHECK(mistakes_in("? {a: b}\n: 1\n") == "t:1:3: a key is a map, allowed: a text");
  CHECK(mistakes_in("~: 1\n") == "t:1:1: a key is null (no value), allowed: a text");
  CHECK(mistakes_in("\"<<\": 1\n&anchor a: 1\n").empty());
}

TEST_CASE("the first of two equal keys stays and all mistakes are reported", "[config]") {
  Diagnostics diagnostics;
  const Value root = parse_text("a: 1\na: {b: 1, b: 2}\nc: {d: 1, d: 2}\n", "t", diagnostics);
  CHECK(diagnostics.list().size() == 3);
  CHECK(to_flow_text(root) == "{a: 1, c: {d: 1}}");
}

TEST_CASE("broken YAML is reported at the place of the error", "[config]") {
  const std::string colon =
      "\":\" is out of place, allowed: one \"key: value\" per line, or quotes around a text that has \": \"";
  CHECK(mistakes_in("a: [1, 2\nb: 3") == "t:2:2: the list opened at 1:4 is not closed, allowed: \"]\" after its last value");
  CHECK(mistakes_in("a: {b: [1]\nc: 2") == "t:2:1: the map opened at 1:4 is not closed, allowed: \"}\" after its last value");
  CHECK(mistakes_in("a: ]\n").find("a bracket is closed that was not opened") != std::string::npos);
  CHECK(mistakes_in("a: b: c\n") == "t:1:5: " + colon);
  CHECK(mistakes_in("a: 1\n b: 2\n") == "t:2:3: " + colon);
  CHECK(mistakes_in("a: 1\na: 2\nb: c: d\n") == "t:3:5: " + colon);  // the structure first
  CHECK(mistakes_in("a:\n\t- 1\n") == "t:2:1: a tab is in the indentation, allowed: spaces");
  CHECK(mistakes_in("\ta: 1\n") == "t:1:1: a tab is in the indentation, allowed: spaces");
  CHECK(mistakes_in("a: @b\n") == "t:1:4: a value begins with \"@\", allowed: quotes around a text that begins so");
  CHECK(mistakes_in("a: - 1\n").find("t:1:4: \"-\" is out of place") == 0);
  CHECK(mistakes_in("a: 'b' c\n").find("t:1:8: this text belongs to no value") == 0);
  CHECK(mistakes_in("a: \"\\q\"\n") ==
        "t:1:7: a backslash in double quotes begins no known escape, allowed: \"\\\\\" for a backslash, or single quotes");
  CHECK(mistakes_in("a: \"\\ud800\"\n").find("t:1:") == 0);  // half of a surrogate pair
  for (const char* open : {"a: 'x\n", "a: 'x''\n", "a: \"x\n", "a: \"x\\\"\n", "a: 'x", "a: \"x"})
    CHECK(mistakes_in(open).find("a quoted text is not closed, allowed: a quote at its end") != std::string::npos);
  for (const char* closed : {"a: 'x'\n", "a: 'x'''\n", "a: ''''\n", "a: ''\n", "a: \"x\\\\\"\n", "a: \"\""})
    CHECK(mistakes_in(closed).empty());
}

TEST_CASE("text that is no text", "[config]") {
  CHECK(mistakes_in("a: \xFF\n") == "t:1:4: byte 0xff is not UTF-8, allowed: text in UTF-8");
  CHECK(mistakes_in("\xC3\xA9: \xC3") == "t:1:4: byte 0xc3 is not UTF-8, allowed: text in UTF-8");
  CHECK(mistakes_in("\xC0\xAF").find("not UTF-8") != std::string::npos);          // overlong
  CHECK(mistakes_in("\xED\xA0\x80").find("not UTF-8") != std::string::npos);      // surrogate
  CHECK(mistakes_in("\xF4\x90\x80\x80").find("not UTF-8") != std::string::npos);  // beyond U+10FFFF
  CHECK(mistakes_in("a: \xF0\x9F\x98\x80\n").empty());
  CHECK(mistakes_in(std::string("a\0b", 3)) == "t:1:2: control character 0x00 found, allowed: printable text in UTF-8");
  CHECK(mistakes_in("a: 1\nb: \x04") == "t:2:4: control character 0x04 found, allowed: printable text in UTF-8");
  CHECK(mistakes_in(std::string("\xFF\xFE"
                                "a\0",
                                4)) == "t:1:1: the text is UTF-16 or UTF-32, allowed: UTF-8");
  CHECK(mistakes_in("a\rb") == "t:1:2: a carriage return without a line feed, allowed: lines that end in a line feed");
  CHECK(mistakes_in("a\xEF\xBB\xBF") == "t:1:2: a byte order mark is inside the text, allowed: at its start only");
}

TEST_CASE("text made to exhaust is refused, not obeyed", "[config]") {
  const std::string deep = "the text is nested too deep, allowed: at most 100 levels";
  CHECK(mistakes_in(repeat("[", 100000)).find(deep) != std::string::npos);
  CHECK(mistakes_in(repeat("{", 100000)).find(deep) != std::string::npos);
  CHECK(mistakes_in(repeat("- ", 100000)).find(deep) != std::string::npos);
  CHECK(mistakes_in(repeat("[", 101) + repeat("]", 101)) == "t:1:101: " + deep);
  CHECK(mistakes_in(repeat("[", 100) + repeat("]", 100)).empty());
  CHECK_FALSE(mistakes_in(repeat("[", 9000)).empty());
  CHECK_FALSE(mistakes_in(repeat("? ", 100000)).empty());
  CHECK_FALSE(mistakes_in(repeat("{a: ", 5000)).empty());
  CHECK(mistakes_in(repeat("[", 1) + repeat(",", std::size_t{5} << 20U) + "]").find("the text has too many values") !=
        std::string::npos);
  Diagnostics diagnostics;
  parse_text(repeat("a: 1\n", 10000), "t", diagnostics);
  CHECK(diagnostics.list().size() == 51);
  CHECK(diagnostics.list().back().message == "50 mistakes so far, the rest of the text was not read");
}

TEST_CASE("files", "[config]") {
  const tests::TemporaryFile good("a: 1\nb: 2\n");
  Diagnostics diagnostics;
  CHECK(to_flow_text(parse_file(good.path(), diagnostics)) == "{a: 1, b: 2}");
  CHECK(diagnostics.empty());

  const tests::TemporaryFile empty("");
  const tests::TemporaryFile comment("# nothing\n");
  CHECK(mistakes_in_file(empty.path()) == "the file is empty, allowed: one YAML document");
  CHECK(mistakes_in_file(comment.path()) == "the file is empty, allowed: one YAML document");
  CHECK(mistakes_in_file("") == "the file name is empty, allowed: a readable YAML file");
  CHECK(mistakes_in_file(std::filesystem::temp_directory_path().string()) == "it is a directory, allowed: a YAML file");
  CHECK(mistakes_in_file(good.path() + "/x") == "cannot be read: not a directory, allowed: a readable YAML file");
  CHECK(mistakes_in_file(good.path() + ".no") == "cannot be read: no such file or directory, allowed: a readable YAML file");
  if (std::filesystem::exists("/dev/zero"))
    CHECK(mistakes_in_file("/dev/zero") == "it is larger than 67108864 bytes, allowed: at most 67108864 bytes");
}

TEST_CASE("numbers read as the user means them or not at all", "[config]") {
  const auto integer = [](const std::string& text) { return as_integer(parsed(text)); };
  const auto number = [](const std::string& text) { return as_number(parsed(text)); };
  CHECK(integer("5") == 5);
  CHECK(integer("+5") == 5);
  CHECK(integer("-5") == -5);
  CHECK(integer("0") == 0);
  CHECK(integer("-0") == 0);
  CHECK(integer("1e6") == 1000000);
  CHECK(integer("1.5e3") == 1500);
  CHECK(integer("1500e-2") == 15);
  CHECK(integer("2.0") == 2);
  CHECK(integer("0e99999999999999999999") == 0);
  CHECK(integer("1e18") == 1000000000000000000);
  CHECK(integer("9007199254740993") == 9007199254740993);  // 2^53 + 1
  CHECK(integer("9223372036854775807") == INT64_MAX);
  CHECK(integer("-9223372036854775808") == INT64_MIN);
  CHECK(integer("9223372036854775808") == std::nullopt);
  CHECK(integer("1e19") == std::nullopt);
  CHECK(integer("1e999999999") == std::nullopt);
  CHECK(integer("1e-999999999") == std::nullopt);
  CHECK(integer("5.5") == std::nullopt);
  CHECK(number("0.50") == 0.5);
  CHECK(number(".5") == 0.5);
  CHECK(number("5.") == 5.0);
  CHECK(number("-1e-3") == -0.001);
  CHECK(number("1e999") == std::nullopt);
  CHECK(number("1e-999") == std::nullopt);
  CHECK(number("0.0") == 0.0);
  for (const char* text :
       {"010", "00", "-01", "00.5", "1_000", "0x10", "0o7", ".nan", ".inf", "-.inf", "nan", "inf", "\"5\"",  "'5'",     "1e",
        "e5",  ".",  "-",   "+",    "1.2.3", "1 2",  "--5", "+-5",  "1,5",  "true",  "~",   "[5]", "{5: 5}", "infinity"}) {
    Diagnostics ignored;
    const Value value = parse_text(text, "t", ignored);
    INFO(text);
    CHECK(as_number(value) == std::nullopt);
    CHECK(as_integer(value) == std::nullopt);
  }
}

TEST_CASE("messages name the found value", "[config]") {
  const auto found = [](const std::string& text) { return description_of_found(parsed(text)); };
  CHECK(found("abc") == "\"abc\"");
  CHECK(found("\"abc\"") == "\"abc\"");
  CHECK(found("\"5\"") == "the text \"5\"");
  CHECK(found("'true'") == "the text \"true\"");
  CHECK(found("\"\"") == "the text \"\"");
  CHECK(found("5.50") == "5.50");
  CHECK(found("true") == "true");
  CHECK(found("010") == "010 (a leading zero)");
  CHECK(found(".nan") == ".nan (not a number)");
  CHECK(found("-.INF") == "-.INF (not finite)");
  CHECK(found("1e999") == "1e999 (beyond the range of a double)");
  CHECK(found("[1]") == "a list");
  CHECK(found("{a: 1}") == "a map");
  CHECK(found("~") == "null (no value)");
  CHECK(found("\"a\\nb\\x01\"") == "\"a\\nb\\x01\"");
  CHECK(found(repeat("9", 100)) == repeat("\"", 1) + repeat("9", 60) + "\"...");
  CHECK(found(repeat("\xE2\x82\xAC", 50)) == repeat("\"", 1) + repeat("\xE2\x82\xAC", 20) + "\"...");
  CHECK(found(repeat("a", 1) + repeat("\xE2\x82\xAC", 50)) == repeat("\"a", 1) + repeat("\xE2\x82\xAC", 19) + "\"...");
}

TEST_CASE("equal settings have equal canonical text", "[config]") {
  CHECK(canonical("b: 1e6\na: 0.50") == canonical("{a: 0.5, b: 1000000}"));
  CHECK(canonical("a: +5") == canonical("a: 5.0"));
  CHECK(canonical("a: -0.0") == canonical("a: 0"));
  CHECK(canonical("a: 1e-3") == canonical("a: .001"));
  CHECK(canonical("a: 'zipf'") == canonical("a: zipf"));
  CHECK(canonical("a:") == canonical("a: ~"));
  CHECK(canonical("a: {c: 1, b: [x, 2.50]}") == "{a: {b: [x, 2.5], c: 1}}");
  CHECK(canonical("a: \"5\"") != canonical("a: 5"));
  CHECK(canonical("a: \"true\"") != canonical("a: true"));
  CHECK(canonical("a: \"null\"") != canonical("a: null"));
  CHECK(canonical("a: 9007199254740993") != canonical("a: 9007199254740992"));
  CHECK(canonical("[1, 2]") != canonical("[2, 1]"));
  CHECK(canonical("a: 1e300") == canonical("a: 10e299"));
  CHECK(canonical("a: 1e999") == "{a: 1e999}");
}

TEST_CASE("paths find and set", "[config]") {
  Value root = parsed("pair:\n  vocab: 10\n  parts: [{a: 1}, {a: 2}]\n  none:\n");
  CHECK(find_path(root, "pair.parts.1.a")->text == "2");
  for (const char* path : {"pair.parts.2", "pair.parts.01", "pair.parts.-1", "pair.parts.x", "pair.parts.", "pair.x",
                           "pair.vocab.x", "pair..vocab", "", ".", "x"}) {
    INFO(path);
    CHECK(find_path(root, path) == nullptr);
  }
  const auto set = [&](const std::string& path, const std::string& text) {
    Diagnostics diagnostics;
    const Value value = parse_text(text, "--set " + path, diagnostics);
    set_path(root, path, value, value.where, diagnostics);
    return all_messages(diagnostics);
  };
  CHECK(set("pair.vocab", "20").empty());
  CHECK(set("pair.parts.0.a", "[5]").empty());
  CHECK(set("pair.none.deep", "x").empty());
  CHECK(set("run.seed", "7").empty());
  CHECK(to_flow_text(root) == "{pair: {vocab: 20, parts: [{a: [5]}, {a: 2}], none: {deep: x}}, run: {seed: 7}}");
  CHECK(to_string(find_path(root, "pair.vocab")->where) == "--set pair.vocab:1:1");
  CHECK(to_string(find_path(root, "run")->where) == "--set run.seed:1:1");

  const std::string before = to_flow_text(root);
  CHECK(set("pair.vocab.x", "1") ==
        "--set pair.vocab.x:1:1: path \"pair.vocab.x\" runs through \"pair.vocab\", which is 20, allowed: a map or a list");
  CHECK(set("pair.parts.2", "1") ==
        "--set pair.parts.2:1:1: path \"pair.parts.2\" names item \"2\" of \"pair.parts\", which is a list of 2, "
        "allowed: an item from 0 to 1");
  CHECK(set("pair..x", "1").find("has an empty part, allowed: keys joined by \".\"") != std::string::npos);
  CHECK(set("", "1").find("has an empty part") != std::string::npos);
  CHECK(set(repeat("a.", 100000) + "a", "1").find("allowed: at most 100") != std::string::npos);
  CHECK(to_flow_text(root) == before);

  Value nothing;
  Diagnostics diagnostics;
  set_path(nothing, "a.b", parsed("1"), {}, diagnostics);
  CHECK(diagnostics.empty());
  CHECK(to_flow_text(nothing) == "{a: {b: 1}}");
}

// Trees of texts that are hard to write: texts that read as numbers or nulls, indicators, control characters, long keys.
class RandomTrees {
 public:
  explicit RandomTrees(unsigned seed) : random_(seed) {}
  Value next(int depth = 0) {
    Value value;
    const auto choice = below(depth > 4 ? 3 : 6);
    if (choice == 0) return value;
    if (choice < 3) {
      value.kind = Kind::scalar;
      value.text = text();
      value.quoted = below(2) == 0;
    } else if (choice < 5) {
      value.kind = Kind::map;
      const auto size = below(5);
      for (std::size_t i = 0; i < size; ++i) {
        const std::string key = text();
        if (value.find(key) == nullptr) add(value, key, next(depth + 1));
      }
    } else {
      value.kind = Kind::list;
      const auto size = below(5);
      for (std::size_t i = 0; i < size; ++i) value.items.push_back(next(depth + 1));
    }
    return value;
  }

 private:
  static void add(Value& map, const std::string& key, Value value) {
    Field& field = map.fields.emplace_back();
    field.key = key;
    field.value = std::move(value);
  }
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string text() {
    static const std::vector<std::string> hard = {"",
                                                  "~",
                                                  "null",
                                                  "Null",
                                                  "true",
                                                  "<<",
                                                  "-",
                                                  "--",
                                                  "---",
                                                  "...",
                                                  ".",
                                                  "..",
                                                  "? a",
                                                  ": a",
                                                  "a: b",
                                                  "a #b",
                                                  "#a",
                                                  "- a",
                                                  "a,b",
                                                  "[",
                                                  "]",
                                                  "{}",
                                                  "*a",
                                                  "&a",
                                                  "!a",
                                                  "%a",
                                                  "@a",
                                                  "`a",
                                                  "'",
                                                  "\"",
                                                  "\\",
                                                  " a",
                                                  "a ",
                                                  "\n",
                                                  "\t",
                                                  "a\nb",
                                                  "010",
                                                  "1e6",
                                                  "0.50",
                                                  "5",
                                                  "-0",
                                                  "+5",
                                                  ".5",
                                                  ".nan",
                                                  "1e999",
                                                  "-a",
                                                  "|",
                                                  ">",
                                                  "a:",
                                                  ":",
                                                  "?",
                                                  "=",
                                                  "yes",
                                                  "a  b",
                                                  "+",
                                                  "\x7F",
                                                  "\xC2\x85",
                                                  "\xE2\x80\xA8",
                                                  "\xEF\xBB\xBF",
                                                  "\xC3\xA9",
                                                  "\xF0\x9F\x98\x80",
                                                  "-.",
                                                  ".a",
                                                  "+."};
    const auto choice = below(10);
    if (choice < 5) return hard[below(hard.size())];
    if (choice == 9 && below(10) == 0) return repeat(hard[below(hard.size())] + "x", 600);
    std::string result;
    const auto size = below(6);
    for (std::size_t i = 0; i < size; ++i) result += static_cast<char>(below(128));
    return result;
  }
  std::mt19937 random_;
};

// Equal except for quotes, which a text may gain if it needs them, or lose if it reads the same.
bool same(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() || a.fields.size() != b.fields.size())
    return false;
  if (a.is_scalar() && a.quoted && !b.quoted) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.fields.size(); ++i)
    if (a.fields[i].key != b.fields[i].key || !same(a.fields[i].value, b.fields[i].value)) return false;
  return true;
}

TEST_CASE("flow text parses back to the same tree", "[config]") {
  RandomTrees trees(20240229);
  for (int i = 0; i < 5000; ++i) {
    const Value tree = trees.next();
    const std::string flow = to_flow_text(tree);
    INFO(i << ": " << flow);
    REQUIRE(flow.find('\n') == std::string::npos);
    Diagnostics diagnostics;
    const Value back = parse_text(flow, "t", diagnostics);
    REQUIRE(all_messages(diagnostics).empty());
    REQUIRE(same(tree, back));
    REQUIRE(to_flow_text(back) == flow);
    // Canonical text is a fixed point and does not depend on how the tree was written.
    const std::string text = to_canonical_text(back);
    REQUIRE(to_canonical_text(parse_text(text, "t", diagnostics)) == text);
    REQUIRE(all_messages(diagnostics).empty());
  }
}

TEST_CASE("numbers stay numbers and texts stay texts through flow text", "[config]") {
  CHECK(to_flow_text(parsed("{a: 5, b: \"5\", c: 1e6, d: 'x', e: x y, f: \"x\\ny\"}")) ==
        "{a: 5, b: \"5\", c: 1e6, d: \"x\", e: x y, f: \"x\\ny\"}");
  CHECK(to_flow_text(parsed("{}")) == "{}");
  CHECK(to_flow_text(parsed("[]")) == "[]");
}

}  // namespace
// Mutant: a comma of a map separates.
TEST_CASE("lists on the command line separate at commas outside brackets and quotes", "[config]") {
  using Parts = std::vector<std::string>;
  CHECK(split_outside_brackets("a,{b: 1, c: [2,3]},d", ',') == Parts{"a", "{b: 1, c: [2,3]}", "d"});
  CHECK(split_outside_brackets("\"a,{\",b", ',') == Parts{"\"a,{\"", "b"});
  CHECK(split_outside_brackets("\"\\\",\",b", ',') == Parts{"\"\\\",\"", "b"});
  CHECK(split_outside_brackets("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(split_outside_brackets("", ',') == Parts{""});
}

}  // namespace specsim::config::config_value_test
