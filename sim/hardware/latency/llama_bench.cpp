#include "sim/hardware/latency/llama_bench.h"

#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace specsim::cost {

namespace {

constexpr const char* kAllowed = "allowed: output of llama-bench -o csv, json, jsonl or md";

// One test as the output names its figures: n_prompt, n_gen, n_depth, avg_ts.
using Test = std::map<std::string, std::string>;

// Splits at the mark and removes quotes: llama-bench quotes every field, and no field contains a quote or a relevant comma.
std::vector<std::string> cells_of(const std::string& line, char mark) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == mark && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  for (std::string& cell : cells) {
    const std::size_t first = cell.find_first_not_of(" \t\r");
    cell = first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(" \t\r") - first + 1);
  }
  return cells;
}

// "pp512", "tg128 @ d4096", "pp512+tg128" and "123.45 ± 0.67", as the Markdown table has them; old versions write "pp 512".
Test markdown_test(std::string name, const std::string& speed) {
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  Test test = {{"n_prompt", "0"}, {"n_gen", "0"}, {"n_depth", "0"}, {"avg_ts", speed.substr(0, speed.find(' '))}};
  for (const auto& [mark, key] : {std::pair{"pp", "n_prompt"}, std::pair{"tg", "n_gen"}, std::pair{"@d", "n_depth"}})
    if (const std::size_t at = name.find(mark); at != std::string::npos)
      test[key] = name.substr(at + 2, name.find_first_of("+@", at + 2) - at - 2);
  return test;
}

struct Found {
  Test test;
  int line = 0;
};

std::vector<Found> lines_of(const std::string& text, char mark) {
  std::vector<Found> list;
  std::vector<std::string> head;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> cells = cells_of(line, mark);
    const auto column = [&](const char* name) { return std::find(head.begin(), head.end(), name) - head.begin(); };
    const auto is_head = [&](const char* name) { return std::find(cells.begin(), cells.end(), name) != cells.end(); };
    if (is_head("avg_ts") || (mark == '|' && is_head("test") && is_head("t/s"))) {
      head = cells;
      continue;
    }
    if (head.empty() || cells.size() != head.size()) continue;  // text that backends print in between
    if (mark == '|') {
      const std::string& name = cells[static_cast<std::size_t>(column("test"))];
      if (name.find_first_not_of("-:") != std::string::npos)
        list.push_back({markdown_test(name, cells[static_cast<std::size_t>(column("t/s"))]), number});
      continue;
    }
    Test test;
    for (std::size_t i = 0; i < head.size(); ++i) test[head[i]] = cells[i];
    list.push_back({test, number});
  }
  return list;
}

// A list of tests, or one on each line.
std::vector<Found> json_of(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  std::vector<Found> list;
  const auto add = [&](const config::Value& value, int line) {
    Test test;
    for (const config::Field& field : value.fields)
      if (field.value.is_scalar()) test[field.key] = field.value.text;
    list.push_back({test, line});
  };
  if (text[text.find_first_not_of(" \t\r\n")] == '[') {
    const config::Value all = config::parse_text(text, file, diagnostics);
    for (const config::Value& item : all.items) add(item, 0);
    return list;
  }
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string::npos) add(config::parse_text(line, file, diagnostics), number);
  }
  return list;
}

std::optional<double> figure(const Test& test, const char* name) {
  const auto at = test.find(name);
  return at == test.end() ? std::nullopt : config::as_number(at->second);
}

}  // namespace

std::vector<LlamaBenchTest> read_llama_bench_tests(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    diagnostics.add({file, 0, 0}, fmt::format("is empty, {}", kAllowed));
    return {};
  }
  const bool json = text[first] == '[' || text[first] == '{';
  const bool markdown = text.find("avg_ts") == std::string::npos;  // a column of all other formats
  std::vector<LlamaBenchTest> tests;
  std::string model;
  for (const auto& [test, line] : json ? json_of(file, text, diagnostics) : lines_of(text, markdown ? '|' : ',')) {
    const auto prompt = figure(test, "n_prompt");
    const auto generated = figure(test, "n_gen");
    const double depth = figure(test, "n_depth").value_or(0.0);  // earlier versions had none
    const auto speed = figure(test, "avg_ts");
    if (!prompt || !generated || !speed || !(*speed > 0.0) || *prompt < 0.0 || *generated < 0.0 || depth < 0.0) {
      diagnostics.add({file, line, 0}, fmt::format("no n_prompt, n_gen and avg_ts in this test, {}", kAllowed));
      return {};
    }
    if (const auto name = test.find("model_filename"); name != test.end()) {
      if (!model.empty() && name->second != model)
        diagnostics.add({file, line, 0}, fmt::format("tests of {} and of {}, allowed: one model per file", model, name->second));
      model = name->second;
    }
    tests.push_back({*prompt, *generated, depth, *speed, line});
  }
  if (tests.empty() && diagnostics.empty()) diagnostics.add({file, 0, 0}, fmt::format("holds no test, {}", kAllowed));
  return tests;
}

std::vector<BenchedPass> read_llama_bench(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  std::vector<BenchedPass> passes;
  std::vector<BenchedPass> generations;
  for (const LlamaBenchTest& test : read_llama_bench_tests(file, text, diagnostics)) {
    if (test.prompt > 0.0 && test.generated > 0.0) continue;
    if (test.prompt > 0.0)
      passes.push_back({test.prompt, test.depth, 1e3 * test.prompt / test.tokens_per_s, test.line});
    else if (test.generated > 0.0)
      generations.push_back({1.0, test.depth, 1e3 / test.tokens_per_s, test.line});
  }
  for (const BenchedPass& one : generations)
    if (std::none_of(passes.begin(), passes.end(),
                     [&](const BenchedPass& other) { return other.tokens == 1.0 && other.context == one.context; }))
      passes.push_back(one);
  if (passes.empty() && diagnostics.empty()) diagnostics.add({file, 0, 0}, fmt::format("holds no test, {}", kAllowed));
  return passes;
}

}  // namespace specsim::cost
