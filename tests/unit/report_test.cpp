// Output of every command: CSV, tables, intervals, manifests, and the text that reaches a terminal.
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/checksum.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/report/column.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/document.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/junit.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/report/short_text.h"
#include "sim/foundation/report/table.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace specsim::report_test {
namespace {

using report::Align;
using report::Table;

TEST_CASE("nothing that a terminal acts upon gets through", "[report]") {
  CHECK(printable("plain \u00b1 text\n\tof lines") == "plain \u00b1 text\n\tof lines");
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printable("a\rb\bc\x7f") == "a\\x0db\\x08c\\x7f");
  CHECK(printable_json("{\"a\u202e\": \"\u009b31m\x7f\u00b1\"}\n") == "{\"a\\u202e\": \"\\u009b31m\\u007f\u00b1\"}\n");
  CHECK(printable("\u009b31m") == "\\u{009b}31m");  // the one-character form of ESC [
  CHECK(printable("\x9b"
                  "31m \xff") == "\\x9b31m \\xff");                           // and its byte, which is no UTF-8
  CHECK(printable("\xc0\x9b \xe0\x80\x9b") == "\\xc0\\x9b \\xe0\\x80\\x9b");  // overlong forms of it
  CHECK(printable("\u202egnp.exe") == "\\u{202e}gnp.exe");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");  // cut short
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
}

TEST_CASE("the checksum is CRC-64/XZ", "[report]") {
  CHECK(checksum("123456789") == "995dc9bbdf1939fa");  // the check value of the catalogue of CRCs
  CHECK(checksum("") == "0000000000000000");
}

TEST_CASE("CSV fields survive being written and read", "[report]") {
  const std::vector<std::string> fields = {"plain", "", "a,b", "say \"no\"", "\"", ",", "x y"};
  const std::string line = report::csv_line(fields);
  CHECK(line == "plain,,\"a,b\",\"say \"\"no\"\"\",\"\"\"\",\",\",x y");
  CHECK(report::csv_fields(line) == fields);
  CHECK(report::csv_fields("") == std::vector<std::string>{""});
  CHECK(report::csv_fields("a,") == std::vector<std::string>{"a", ""});
  for (const char* broken : {"\"a", "a\"b", "\"a\"b", "\"", "\"a\"\"", "a,\"b"}) CHECK_FALSE(report::csv_fields(broken));
  CHECK(report::csv_real(1.0 / 3.0) == "0.3333333333");
  CHECK(report::csv_real(1.0 / 3.0, 4) == "0.3333");
  CHECK(report::csv_real(NAN).empty());
  CHECK(report::csv_real(-INFINITY) == "-inf");
}

TEST_CASE("a figure and how far it is off are two columns for other programs", "[report]") {
  report::Document document;
  Table table({{"cell"}, {"time"}});
  table.add({"0", "12.5 +3.0%"});
  table.add({"1", "11 -4.0%"});
  document.print("first line\nsecond line\n");
  document.print(table.text());
  const std::string csv = document.written(report::Format::csv, {}, false);
  const std::string json = document.written(report::Format::json, {}, false);
  CHECK(csv.find("cell,time,time off by %\n0,12.5,+3.0\n1,11,-4.0\n") != std::string::npos);
  for (const char* line : {"\"first line\"", "\"second line\""}) CHECK(json.find(line) != std::string::npos);
}

TEST_CASE("XML's special characters are escaped in JUnit's file", "[report]") {
  const std::string xml = report::junit_xml({{"a \"b\"", "c<d", "", 0, report::TestCase::Outcome::failed, "e & f > g"}});
  for (const char* part : {"a &quot;b&quot;", "c&lt;d", "e &amp; f &gt; g"}) CHECK(xml.find(part) != std::string::npos);
}

TEST_CASE("columns make a file, and a column is found by its name", "[report]") {
  struct Point {
    int x;
    std::string name;
  };
  const std::vector<report::Column<Point>> columns = {{"x", "1", "a number", [](const Point& p) { return std::to_string(p.x); }},
                                                      {"name", "", "a text", [](const Point& p) { return p.name; }}};
  const std::vector<Point> points = {{1, "a"}, {2, "b,c"}};
  CHECK(report::csv(columns, points) == "x,name\n1,a\n2,\"b,c\"\n");
  CHECK(report::column_named(columns, "name").text(points[1]) == "b,c");
  CHECK_THROWS_AS(report::column_named(columns, "y"), InvariantBroken);
  report::Csv file({"a", "b"});
  CHECK_THROWS_AS(file.add({"1"}), InvariantBroken);
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, report::display_width(line));
  return longest;
}

TEST_CASE("tables are aligned, and columns never run together", "[report]") {
  Table table({{"cell"}, {"name", Align::left}, {"tokens/round"}, {"", Align::left}});
  table.add({"1", "a", "1.25", "<- best"});
  table.add({"100000", "\u00b1\u00b1", "12345678901234.5"});
  CHECK(table.text() ==
        "  cell  name      tokens/round\n"
        "     1  a                 1.25  <- best\n"
        "100000  \u00b1\u00b1    12345678901234.5\n");
  CHECK_THROWS_AS(table.add({"1", "2", "3", "4", "5"}), InvariantBroken);
  CHECK(report::cell_text(NAN, "{:.2f}") == "-");
  CHECK(report::cell_text(1.255, "{:.1f}") == "1.3");
}

TEST_CASE("tables wrap to the width that they are given", "[report]") {
  Table words({{"rank"}, {"method", Align::left}}, {.indent = 2});
  words.add({"1", "a method whose name is longer than the line that it has to be shown on"});
  CHECK(words.text(40) ==
        "  rank  method\n"
        "     1  a method whose name is longer\n"
        "        than the line that it has to be\n"
        "        shown on\n");
  Table numbers({{"cell"}, {"alpha"}, {"tokens/round"}, {"speedup"}});
  numbers.add({"0", "0.7000", "2.7731", "1.9000"});
  numbers.add({"1", "0.8000", "3.3616", "2.1000"});
  CHECK(numbers.text(27) ==
        "cell   alpha  tokens/round\n"
        "   0  0.7000        2.7731\n"
        "   1  0.8000        3.3616\n"
        "\n"
        "cell  speedup\n"
        "   0   1.9000\n"
        "   1   2.1000\n");
  for (const std::size_t width : {14, 18, 20, 27, 30, 34})
    CHECK(longest_line(numbers.text(width)) <= std::max<std::size_t>(width, 18));
  CHECK(numbers.text(35) == numbers.text());
  CHECK(longest_line(numbers.text(1)) == 18);  // a column next to its key stays whole
}

TEST_CASE("of a long value whole entries are left out, and none is cut", "[report]") {
  const auto value = [](const std::string& own, const std::vector<std::string>& others) {
    return report::short_value(own, others);
  };
  CHECK(value("{kind: chain, draft_length: 4}", {"{kind: chain, draft_length: 5}"}) == "{kind: chain, draft_length: 4}");
  const std::string ids = "{kind: network, latency_ms: 20.125, beyond: 1, send: ids}";
  const std::string all = "{kind: network, latency_ms: 20.125, beyond: 1, send: probabilities}";
  CHECK(value(ids, {ids, all}) == "{kind: network, .., send: ids}");
  CHECK(value(all, {ids, all}) == "{kind: network, .., send: probabilities}");
  CHECK(value(all, {all}) == "{kind: network, ..}");
  // A long entry is shortened in its middle.
  CHECK(value("{kind: tree_sequoia, acceptance: [0.71, 0.12, 0.05, 0.02, 0.01, 0.005], nodes: 8}",
              {"{kind: tree_sequoia, acceptance: [0.71, 0.12, 0.06, 0.02, 0.01, 0.005], nodes: 8}"}) ==
        "{kind: tree_sequoia, acceptance: [0.71, .., 0.05, ..], ..}");
  CHECK(value("[\"a, [b\", 0.111111, 0.222222, 0.333333, 0.444444]", {"[\"a, [b\", 0.111111, 0.222222, 0.333333, 0.5]"}) ==
        "[\"a, [b\", .., 0.444444]");
  CHECK(value("recordings/of_a_long_name/second/rounds.jsonl", {"recordings/of_a_long_name/first/rounds.jsonl"}) ==
        "recordings/of_.._name/second/round..");
}

TEST_CASE("of a long method the longest lists are left out", "[report]") {
  const std::string method =
      "tree_sequoia acceptance [0.7, 0.1, 0.05] nodes 16 siblings without_replacement paths [[1], [2]] | token";
  CHECK(report::short_method(method, 200) == method);
  CHECK(report::short_method(method, 100) ==
        "tree_sequoia acceptance [..] nodes 16 siblings without_replacement paths [[1], [2]] | token");
  CHECK(report::short_method(method, 10) ==
        "tree_sequoia acceptance [..] nodes 16 siblings without_replacement paths [..] | token");
}

TEST_CASE("a name cannot carry escape sequences into a table", "[report]") {
  Table table({{"name", Align::left}, {"x"}});
  table.add({"\x1b[2J", "1"});
  table.add({"ab", "2"});
  CHECK(table.text() == "name     x\n\\x1b[2J  1\nab       2\n");
}

TEST_CASE("Student's t intervals and Welch's test against printed tables", "[report]") {
  // Quantiles of Student's t from any table: 12.706 (1), 2.571 (5), 2.042 (30) at 97.5 %; 4.032 (5) at 99.5 %.
  CHECK(report::half_width(1.0, 1.0) == Approx(12.706).margin(5e-4));
  CHECK(report::half_width(2.0, 5.0) == Approx(2.0 * 2.571).margin(1e-3));
  CHECK(report::half_width(1.0, 30.0) == Approx(2.042).margin(5e-4));
  CHECK(report::half_width(1.0, 5.0, 0.99) == Approx(4.032).margin(5e-4));
  CHECK(std::isnan(report::half_width(NAN, 5.0)));
  CHECK(std::isnan(report::half_width(1.0, 0.0)));
  const std::array<double, 4> samples = {1.0, 2.0, 3.0, 6.0};
  const report::Estimate mean = report::mean_of(samples);
  CHECK(mean.value == Approx(3.0));
  CHECK(mean.error == Approx(std::sqrt(14.0 / 12.0)));
  CHECK(mean.freedom == 3.0);
  CHECK(std::isnan(report::mean_of(std::array<double, 1>{1.0}).error));
  // Equal errors and freedoms: the Welch-Satterthwaite degrees of freedom are their sum.
  const report::WelchTest test = report::welch_test({10.0, 1.0, 15.0}, {8.0, 1.0, 15.0}, 0.95);
  CHECK(test.t == Approx(std::sqrt(2.0)));
  CHECK(test.limit == Approx(2.042).margin(5e-4));
  CHECK(test.inside());
  // One certain mean leaves the other's degrees of freedom.
  CHECK(report::welch_test({10.0, 1.0, 5.0}, {3.0, 0.0, 9.0}, 0.95).limit == Approx(2.571).margin(5e-4));
  CHECK_FALSE(report::welch_test({10.0, 1.0, 5.0}, {3.0, 0.0, 9.0}, 0.95).inside());
  CHECK(report::welch_test({2.0, 0.0, 5.0}, {2.0, 0.0, 5.0}).inside());
  CHECK_FALSE(report::welch_test({2.1, 0.0, 5.0}, {2.0, 0.0, 5.0}).inside());
  // Large values without errors may differ by rounding. Mutant: the allowed difference shrinks as they grow.
  CHECK(report::welch_test({1e6 + 1e-4, 0.0, 5.0}, {1e6, 0.0, 5.0}).inside());
  CHECK_FALSE(report::welch_test({2.0, NAN, 0.0}, {2.0, 1.0, 5.0}).judged());
}

TEST_CASE("a manifest is read back as it was written, and not after a change", "[report]") {
  report::Manifest manifest = report::new_manifest("specsim run 'a b.yaml'");
  manifest.files = {"a b.yaml"};
  manifest.configs = {"{experiment: \"a: b\", rounds: 5}"};
  manifest.inputs = {{"trace.jsonl", "0123456789abcdef"}};
  manifest.results = {{"counts.csv", "fedcba9876543210"}};
  manifest.shard = 2;
  manifest.shards = 3;
  manifest.threads = 4;
  manifest.cells = 7;
  manifest.identity = "00ff 2/3";
  const std::string text = report::manifest_text(manifest);
  const tests::TemporaryFile file(text);
  const report::Manifest read = report::read_manifest(file.path());
  CHECK(read.command == manifest.command);
  CHECK(read.commit == manifest.commit);
  CHECK(read.files == manifest.files);
  CHECK(read.configs == manifest.configs);
  CHECK(read.inputs == manifest.inputs);
  CHECK(read.results == manifest.results);
  CHECK((read.shard == 2 && read.shards == 3 && read.threads == 4 && read.cells == 7));
  CHECK(read.identity == manifest.identity);
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_whole_file(file.path(), changed);
    INFO("byte " << at);
    CHECK_THROWS_AS(report::read_manifest(file.path()), BadInput);
  }
}

}  // namespace
}  // namespace specsim::report_test
