// Every part of the registries, by its entry alone, so that new parts are tested without changes here.
#include "sim/experiments/audit/audit.h"
#include "sim/rounds/families/context.h"
#include "tests/parts/part_cells.h"
#include "tests/support/samples.h"
#include "tests/support/sanitizers.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace specsim::registry_test {

namespace {

struct Audited {
  int read = 0;                // cells that make sense
  int audited = 0;             // parts that can be enumerated
  double most_accepted = 0.0;  // expected values of all first rounds and the following ones
  double least_accepted = 1e9;
};

// Every lossless verifier that accepts the drafter and the policy, over the process.
void audit_with(const std::string& drafter, const std::string& policy, const std::string& process, Audited& all) {
  for (const verify::VerifierEntry& verifier : verify::verifiers().entries()) {
    if (!verifier.lossless) continue;
    const std::optional<spec::Cell> cell = tests::cell_with(drafter, verifier, verifier.info.name, policy, process);
    if (!cell) continue;
    ++all.read;
    INFO(drafter << ", " << verifier.info.name << ", " << policy << ", " << process);
    try {
      const audit::AuditReport report = audit::audit_cell(*cell);
      ++all.audited;
      CHECK(report.lossless());
      all.most_accepted = std::max(all.most_accepted, report.most_accepted);
      for (const audit::AuditStart& start : report.starts)
        all.least_accepted = std::min(all.least_accepted, start.expected_accepted);
    } catch (const audit::NotAudited&) {
    }
  }
}

// A sanitizer sees in one sample of a part what it would see in the others.
std::vector<std::string> samples(const config::PartInfo& info, const std::string& key = "kind") {
  std::vector<std::string> all = tests::samples_of(info, key);
  if (tests::kSanitized && all.size() > 1) all.resize(1);
  return all;
}

std::vector<std::string> processes() {
  std::vector<std::string> all;
  for (const families::ContextEntry& entry : families::context_processes().entries())
    for (const std::string& sample : samples(entry.info, "process")) all.push_back(sample);
  return all;
}

// Probabilities sum to 1, and none is negative.
bool is_distribution(const std::vector<double>& p) {
  return std::all_of(p.begin(), p.end(), [](double mass) { return mass >= 0.0; }) &&
         std::abs(std::accumulate(p.begin(), p.end(), 0.0) - 1.0) < 1e-12;
}

// A distribution of the draft given in YAML: a distribution in every context, the same from any thread and in any order, and
// different in another context exactly if it claims to be random.
void check_distribution(const std::string& yaml) {
  INFO(yaml);
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(yaml, "test", diagnostics);
  const auto build = [&] { return families::DistributionBuilder(3, true, diagnostics).build(value, "distribution"); };
  const auto distribution = build();
  const auto twin = build();
  diagnostics.throw_if_any();
  const rng::Key key = rng::make_key(20260118, 1);
  const std::vector<double> target = {0.2, 0.5, 0.3};
  const auto draw = [&](const families::Distribution& from, std::uint64_t context) {
    std::vector<double> drawn(target.size(), -1.0);
    from.draw({key, context}, target, drawn);
    return drawn;
  };
  std::vector<std::vector<double>> forwards;
  bool moved = false;
  for (std::uint64_t context = 0; context < 40; ++context) {
    forwards.push_back(draw(*distribution, context));
    CHECK(is_distribution(forwards.back()));
    moved = moved || forwards.back() != forwards.front();
  }
  CHECK(moved == distribution->random());
  bool same = true;
  std::thread([&] {
    for (std::uint64_t context = 40; context-- > 0;) same = same && draw(*twin, context) == forwards[context];
  }).join();
  CHECK(same);
}

}  // namespace

TEST_CASE("chains, and trees of each kind of siblings, have one default verifier") {
  using tokens::Siblings;
  CHECK(verify::usual_verifier().make);
  for (const Siblings siblings : {Siblings::independent, Siblings::without_replacement, Siblings::hub, Siblings::point_mass}) {
    const verify::VerifierEntry& usual = verify::usual_verifier(siblings);
    CHECK(usual.lossless);
    CHECK(usual.make_block);
    const auto judges = [&](const verify::VerifierEntry& entry) {
      const std::vector<Siblings>& trees = entry.demands.trees;
      return entry.usual && std::find(trees.begin(), trees.end(), siblings) != trees.end();
    };
    const auto& entries = verify::verifiers().entries();
    CHECK(std::count_if(entries.begin(), entries.end(), judges) == 1);
  }
}

TEST_CASE("every drafter preserves the target's distribution, under every lossless verifier that accepts it") {
  for (const draft::DrafterEntry& entry : draft::drafters().entries()) {
    Audited all;
    for (const std::string& sample : samples(entry.info))
      for (const std::string& process : processes()) audit_with(sample, "", process, all);
    // Some drafters find no match in prompts as short as the processes' own.
    if (!(all.most_accepted > 0.0))
      for (const std::string& sample : tests::samples_of(entry.info))
        audit_with(sample, "", "{process: copy, prompt_tokens: 12, fidelity: 0.7}", all);
    INFO(entry.info.name);
    CHECK(all.audited > 0);
    CHECK(all.most_accepted > 0.0);  // the test does not pass just because all tokens come from the target
  }
}

TEST_CASE("every policy preserves the target's distribution, under every lossless verifier that accepts it") {
  for (const draft::PolicyEntry& entry : draft::policies().entries()) {
    Audited all;
    for (const std::string& sample : samples(entry.info))
      for (const std::string& process : processes()) audit_with(tests::kPartsChain, sample, process, all);
    INFO(entry.info.name);
    CHECK(all.audited > 0);
    CHECK(all.most_accepted > 0.0);
    CHECK(all.least_accepted < 3.0);
  }
}

TEST_CASE("every context process preserves the target's distribution, if its contexts can be enumerated") {
  int audited = 0;
  for (const families::ContextEntry& entry : families::context_processes().entries()) {
    Audited all;
    for (const std::string& sample : tests::samples_of(entry.info, "process")) {
      audit_with(tests::kPartsChain, "", sample, all);
      audit_with("{kind: chain, draft_length: 3, selection: argmax}", "", sample, all);  // for tables of ranked tokens
    }
    INFO(entry.info.name);
    CHECK((all.read > 0 || tests::wants_file(entry.info)));
    audited += all.audited;
  }
  CHECK(audited > 0);
}

TEST_CASE("every family and every transform gives distributions, the same at the same address") {
  for (const families::FamilyEntry& entry : families::families().entries()) {
    const std::vector<std::string> samples = tests::samples_of(entry.info, "family");
    INFO(entry.info.name);
    CHECK((!samples.empty() || tests::wants_file(entry.info)));
    for (const std::string& sample : samples) check_distribution(sample);
  }
  for (const families::TransformEntry& entry : families::transforms().entries()) {
    const std::vector<std::string> samples = tests::samples_of(entry.info, "from: target, transform");
    INFO(entry.info.name);
    CHECK((!samples.empty() || tests::wants_file(entry.info)));
    for (const std::string& sample : samples) check_distribution(sample);
  }
}

}  // namespace specsim::registry_test
