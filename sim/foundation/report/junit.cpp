#include "sim/foundation/report/junit.h"

#include "sim/foundation/base/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace specsim::report {

namespace {

std::string xml_text(const std::string& text) {
  std::string escaped;
  for (const char c : valid_text(printable(text))) {  // bytes that are not UTF-8 are escaped
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

// Escapes "%", line ends and, in properties, the separators.
std::string github_text(const std::string& text, bool property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

std::string junit_xml(const std::vector<TestCase>& cases) {
  std::vector<std::string> suites;
  for (const TestCase& one : cases)
    if (std::find(suites.begin(), suites.end(), one.suite) == suites.end()) suites.push_back(one.suite);
  const auto count = [&](const std::string* suite, TestCase::Outcome outcome) {
    return std::count_if(cases.begin(), cases.end(), [&](const TestCase& one) {
      return one.outcome == outcome && (suite == nullptr || one.suite == *suite);
    });
  };
  const auto counts = [&](const std::string* suite) {
    const auto failed = count(suite, TestCase::Outcome::failed);
    const auto skipped = count(suite, TestCase::Outcome::skipped);
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
                       failed + skipped + count(suite, TestCase::Outcome::passed), failed, skipped);
  };
  std::string text =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"specsim check\" {}>\n", counts(nullptr));
  for (const std::string& suite : suites) {
    text += fmt::format(" <testsuite name=\"{}\" {}>\n", xml_text(suite), counts(&suite));
    for (const TestCase& one : cases) {
      if (one.suite != suite) continue;
      text += fmt::format("  <testcase classname=\"{}\" name=\"{}\" file=\"{}\"", xml_text(suite), xml_text(one.name),
                          xml_text(one.file));
      if (one.line > 0) text += fmt::format(" line=\"{}\"", one.line);
      if (one.outcome == TestCase::Outcome::passed) {
        text += "/>\n";
        continue;
      }
      text += fmt::format(">\n   <{} message=\"{}\"/>\n  </testcase>\n",
                          one.outcome == TestCase::Outcome::failed ? "failure" : "skipped", xml_text(one.message));
    }
    text += " </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

std::string github_annotations(const std::vector<TestCase>& cases) {
  std::string text;
  for (const TestCase& one : cases) {
    if (one.outcome == TestCase::Outcome::passed) continue;
    text +=
        fmt::format("::{} file={}", one.outcome == TestCase::Outcome::failed ? "error" : "warning", github_text(one.file, true));
    if (one.line > 0) text += fmt::format(",line={}", one.line);
    text += fmt::format(",title={}::{}\n", github_text(one.suite + " " + one.name, true), github_text(one.message, false));
  }
  return text;
}

}  // namespace specsim::report
