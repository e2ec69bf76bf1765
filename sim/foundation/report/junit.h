// Results of tests as JUnit's XML, which CI servers show, and as annotations of GitHub's workflows.
#pragma once

#include <string>
#include <vector>

namespace specsim::report {

struct TestCase {
  enum class Outcome { passed, failed, skipped };
  std::string suite;  // the experiment
  std::string name;   // the cell
  std::string file;
  int line = 0;  // 0: unknown
  Outcome outcome = Outcome::passed;
  std::string message;  // why it failed or was skipped
};

// The schema of Jenkins and GitLab: testsuites with one testsuite per suite, in the order of their first case.
std::string junit_xml(const std::vector<TestCase>& cases);

// One line per case that failed (error) or was skipped (warning), in the form that GitHub's runners read from a step's output.
std::string github_annotations(const std::vector<TestCase>& cases);

}  // namespace specsim::report
