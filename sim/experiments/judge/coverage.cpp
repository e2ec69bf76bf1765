#include "sim/experiments/judge/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace specsim::judge {

std::string no_theory_text(const std::string& why) { return "no theory: " + why; }

std::string no_theory_lines(const std::vector<Uncovered>& list) {
  constexpr std::size_t kShown = 5;  // how many things are named per reason
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const Uncovered& one : list) {
    auto at = std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& reason) { return reason.first == one.why; });
    if (at == by_reason.end()) at = by_reason.insert(at, {one.why, {}});
    at->second.push_back(one.what);
  }
  std::string text;
  for (auto& [why, what] : by_reason) {
    const std::size_t count = what.size();
    if (count > kShown) what.resize(kShown);
    text += fmt::format("{} ({}{})\n", no_theory_text(why), fmt::join(what, "; "),
                        count > kShown ? fmt::format("; and {} more", count - kShown) : "");
  }
  return text;
}

std::vector<Uncovered> uncovered(const std::vector<const spec::Cell*>& cells) {
  std::vector<Uncovered> list;
  std::map<std::string, std::string> seen;  // preparation key -> reason
  for (const spec::Cell* cell : cells) {
    if (std::holds_alternative<spec::NoTheory>(cell->theory)) continue;
    const auto [at, fresh] = seen.try_emplace(cell->preparation_key);
    if (fresh) {
      const Coverage coverage = cover(*cell);
      if (coverage.theory == nullptr) at->second = coverage.missing;
    }
    if (!at->second.empty()) list.push_back({fmt::format("{} cell {}", cell->experiment, cell->index), at->second});
  }
  return list;
}

std::string theory_of_part(const std::string& kind, const std::string& name) {
  if (kind == "policy") {
    const PolicyTheory* known = policy_theories().find(name);
    return known != nullptr ? "theory: " + known->info.summary : no_theory_text("none covers policy " + name);
  }
  if (kind != "verifier" && kind != "drafter") return "";
  std::string text;
  for (const TheoryEntry& entry : theories().entries()) {
    const std::vector<std::string>& known = kind == "verifier" ? entry.verifiers : entry.drafters;
    if (std::find(known.begin(), known.end(), name) != known.end()) text += (text.empty() ? "theory: " : ", ") + entry.info.name;
  }
  if (!text.empty()) return text;
  return kind == "verifier" ? no_theory_text("none covers verifier " + name)
                            : "theory: the verifier's, if it drafts a chain or the same tree in every round; otherwise " +
                                  no_theory_text("none covers drafter " + name);
}

}  // namespace specsim::judge
