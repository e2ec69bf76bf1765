// A part of each kind, registered by this program only, taken through run, check, audit, compare and describe.
#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/position_rounds.h"
#include "tests/parts/program.h"
#include "tests/parts/toys.h"
#include "tests/support/temporary_file.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>

namespace specsim::parts_test {

using namespace specsim::tests;
using config::Registered;

namespace {

constexpr const char* kChain = "{kind: chain, draft_length: 2}";
constexpr int kDisagrees = 1;
constexpr int kRefused = 2;
constexpr int kUntested = 3;

// An experiment around a part, small enough for an audit.
struct Config {
  std::string target = "{family: explicit, probabilities: [0.5, 0.25, 0.15, 0.1]}";
  std::string draft = "{family: explicit, probabilities: [0.2, 0.5, 0.2, 0.1]}";
  std::string drafter = kChain;
  std::string verifier = "token";
  std::string policy = "";
  std::string context = "{process: fixed}";
  std::string cost = "{model: ratio, cost_ratio: 0.1}";
  std::string more = "";

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "experiment: toy\nseed: 7\nrounds: 1500000\npair: {{vocab: 4, target: {}, draft: {}}}\ncontext: {}\ndecode: {{drafter: "
        "{}, verifier: {}{}}}\ncost: {}\n{}\n",
        target, draft, context, drafter, verifier, policy.empty() ? "" : ", policy: " + policy, cost, more);
  }
};

struct Expected {
  std::string no_theory = "";    // the reason that every command gives; empty: there is theory
  bool audited_lossless = true;  // what audit finds
  bool audited = true;           // the audit can enumerate it
  int check = 0;                 // exit status
  int audit = 0;
};

void take_through_commands(const Config& config, const std::string& part, const Expected& expected) {
  const TemporaryFile file(config.text());
  const std::string why = "no theory: " + expected.no_theory;
  const auto sane = [](const Ended& ended) { return !ended.says("this should not happen") && !ended.says("nan"); };

  const Ended run = run_program({"run", file.path(), "--threads", "1"});
  INFO("run: " << run.output);
  CHECK(run.status == 0);
  CHECK(sane(run));
  CHECK(run.says("no theory: ") == !expected.no_theory.empty());
  CHECK((expected.no_theory.empty() || run.says(why)));

  const Ended check = run_program({"check", file.path(), "--threads", "1"});
  INFO("check: " << check.output);
  CHECK(check.status == expected.check);
  CHECK(sane(check));
  CHECK((expected.no_theory.empty() || expected.check == kDisagrees || check.says(why)));
  if (expected.check == kUntested) CHECK(run_program({"check", file.path(), "--set", "theory={name: none}"}).status == 0);

  const Ended audit = run_program({"audit", file.path()});
  INFO("audit: " << audit.output);
  CHECK(audit.status == expected.audit);
  CHECK(audit.says("not audited, because ") == !expected.audited);
  CHECK(audit.says("verdict: lossless") == (expected.audited && expected.audited_lossless));
  CHECK((expected.no_theory.empty() || !expected.audited || audit.says(why)));

  const Ended compare = run_program({"compare", file.path(), "--threads", "1"});
  INFO("compare: " << compare.output);
  CHECK(sane(compare));
  if (config.more.find("placement") == std::string::npos) {
    CHECK(compare.status == 0);
    CHECK((expected.no_theory.empty() || compare.says(why)));
  } else {
    CHECK(compare.status == kRefused);
    CHECK(
        compare.says("toy has a placement, allowed: none, since rounds are timed one after the other; specsim run times "
                     "placements"));
  }

  const Ended described = run_program({"describe", part});
  INFO("describe: " << described.output);
  CHECK(described.status == 0);
  CHECK(described.says(part + ": a toy"));
  // The notes about contexts depend on a process's parameters.
  CHECK((expected.no_theory.empty() || part.starts_with("context/") || described.says("no theory: ")));
}

}  // namespace

TEST_CASE("a custom position verifier runs, is audited, and has no theory") {
  const Registered<verify::VerifierEntry> part(verify::verifiers(), position_verifier<HalfRule>("toy_half", true));
  take_through_commands({.verifier = "toy_half"}, "verifier/toy_half",
                        {.no_theory = "none covers verifier toy_half", .check = kUntested});
  take_through_commands({.verifier = "toy_half", .context = "{process: markov}"}, "verifier/toy_half",
                        {.no_theory = "none covers verifier toy_half", .check = kUntested});
}

TEST_CASE("a custom verifier with its own theory is judged by it, and a wrong theory is refuted") {
  const Registered<verify::VerifierEntry> part(verify::verifiers(), position_verifier<HalfRule>("toy_half", true));
  const auto theory = [](double share) -> judge::TheoryEntry {
    return {{"toy_theory", "a toy", "", {}, ""}, {"toy_half"}, {}, [share](const spec::Cell& cell) {
              return judge::follow_positions(cell, [share](const verify::PositionDistributions& d) {
                theory::Judgement judgement = theory::judge_token(d.target, d.drafted);
                for (std::size_t x = 0; x < d.target.size(); ++x) {
                  judgement.accepted[x] *= share;
                  judgement.rejected[x] = d.target[x] - judgement.accepted[x];
                }
                return judgement;
              });
            }};
  };
  {
    const Registered<judge::TheoryEntry> known(judge::theories(), theory(0.5));
    take_through_commands({.verifier = "toy_half"}, "verifier/toy_half", {});
    take_through_commands({.verifier = "toy_half", .context = "{process: markov}"}, "theory/toy_theory", {});
  }
  const Registered<judge::TheoryEntry> wrong(judge::theories(), theory(0.51));
  take_through_commands({.verifier = "toy_half"}, "theory/toy_theory", {.check = kDisagrees, .audit = kDisagrees});
}

TEST_CASE("check and audit detect a lossy verifier that claims to be lossless, and accept one that is declared lossy") {
  {
    const Registered<verify::VerifierEntry> liar(verify::verifiers(), position_verifier<CredulousRule>("toy_liar", true));
    take_through_commands(
        {.verifier = "toy_liar"}, "verifier/toy_liar",
        {.no_theory = "none covers verifier toy_liar", .audited_lossless = false, .check = kDisagrees, .audit = kDisagrees});
  }
  {
    const Registered<verify::VerifierEntry> liar(verify::verifiers(), block_verifier<FirstChildRule>("toy_liar", true));
    take_through_commands(
        {.drafter = "{kind: tree_static, branching: [2, 1]}", .verifier = "toy_liar"}, "verifier/toy_liar",
        {.no_theory = "none covers verifier toy_liar", .audited_lossless = false, .check = kDisagrees, .audit = kDisagrees});
  }
  const Registered<verify::VerifierEntry> honest(verify::verifiers(), position_verifier<CredulousRule>("toy_honest", false));
  take_through_commands({.verifier = "toy_honest"}, "verifier/toy_honest",
                        {.no_theory = "none covers verifier toy_honest", .audited_lossless = false, .check = kUntested});
}

TEST_CASE("a custom verifier of blocks, on chains, trees and chosen blocks", "[stat]") {
  const Registered<verify::VerifierEntry> part(verify::verifiers(), block_verifier<FollowRule>("toy_follow", true));
  for (const char* drafter : {kChain, "{kind: tree_static, branching: [2, 1]}",
                              "{kind: tree_dynamic, depth: 2, width: 2, nodes: 3}", "{kind: prompt_lookup, draft_length: 2}"})
    take_through_commands({.drafter = drafter, .verifier = "toy_follow"}, "verifier/toy_follow",
                          {.no_theory = "none covers verifier toy_follow", .check = kUntested});
}

TEST_CASE("custom drafters that choose their blocks are not judged by another drafter's theory", "[stat]") {
  const Registered<draft::DrafterEntry> text(draft::drafters(), echo_drafter());
  const Registered<draft::DrafterEntry> tree(draft::drafters(), block_drafter<BushDrafter>("toy_bush"));
  take_through_commands(
      {.drafter = "{kind: toy_echo}",
       .verifier = "tree_point_mass",
       .context = "{process: copy, prompt_tokens: 4, fidelity: 0.7}"},
      "drafter/toy_echo",
      {.no_theory = "none covers the choices of drafter toy_echo under verifier tree_point_mass", .check = kUntested});
  for (const char* context : {"{process: fixed}", "{process: markov}"})
    take_through_commands(
        {.drafter = "{kind: toy_bush}", .verifier = "tree_point_mass", .context = context}, "drafter/toy_bush",
        {.no_theory = "none covers the choices of drafter toy_bush under verifier tree_point_mass", .check = kUntested});
}

TEST_CASE("custom policies, one that observes and one that looks at the draft, are not judged by another's theory") {
  const Registered<draft::PolicyEntry> observes(draft::policies(), length_policy<OneMorePolicy>("toy_one_more"));
  const Registered<draft::PolicyEntry> looks(draft::policies(), length_policy<ShyPolicy>("toy_shy"));
  for (const std::string name : {"toy_one_more", "toy_shy"})
    for (const char* verifier : {"token", "sample_match"})
      take_through_commands({.drafter = "{kind: chain, draft_length: 3}", .verifier = verifier, .policy = "{kind: " + name + "}"},
                            "policy/" + name, {.no_theory = "none covers policy " + name, .check = kUntested});
}

TEST_CASE("custom context processes: one that tokens move has theory, an unknown one runs without") {
  const Registered<families::ContextEntry> parity(families::context_processes(), context_process<ParityProcess>("toy_parity"));
  const Registered<families::ContextEntry> drift(families::context_processes(), context_process<DriftProcess>("toy_drift"));
  take_through_commands({.context = "{process: toy_parity}"}, "context/toy_parity", {});
  take_through_commands({.drafter = "{kind: tree_static, branching: [2, 1]}",
                         .verifier = "multi_draft_recursive",
                         .context = "{process: toy_parity}"},
                        "context/toy_parity", {});
  const std::string why = "none covers the transitions between contexts in process toy_drift";
  take_through_commands({.context = "{process: toy_drift}"}, "context/toy_drift",
                        {.no_theory = why, .audited = false, .check = kUntested});
  take_through_commands({.drafter = "{kind: tree_static, branching: [2, 1]}",
                         .verifier = "multi_draft_recursive",
                         .context = "{process: toy_drift}"},
                        "context/toy_drift", {.no_theory = why, .audited = false, .check = kUntested});
  // The tokens of each context are compared with its target nevertheless.
  const Registered<verify::VerifierEntry> liar(verify::verifiers(), position_verifier<CredulousRule>("toy_liar", true));
  take_through_commands({.verifier = "toy_liar", .context = "{process: toy_drift}"}, "context/toy_drift",
                        {.no_theory = "none covers verifier toy_liar", .audited = false, .check = kDisagrees});
}

TEST_CASE("theory reads the distributions of a custom family, without any cost model") {
  const Registered<families::FamilyEntry> family(families::families(), stairs_family());
  const Registered<cost::CostEntry> cost(cost::cost_models(), flat_cost());
  const Registered<placement::PlacementEntry> placement(placement::placements(), one_gpu_placement());
  take_through_commands({.target = "{family: toy_stairs}"}, "family/toy_stairs", {});
  take_through_commands({.cost = "{model: toy_flat}"}, "cost/toy_flat", {});
  const Config placed = {.cost = "{model: toy_flat}",
                         .more = "workload: {batch: 4, context_length: 64, output_tokens: 32}\nplacement: {kind: toy_one_gpu}"};
  take_through_commands(placed, "placement/toy_one_gpu", {});
  // The toy's times are those of the placement that it calls.
  Config serial = placed;
  serial.more.replace(serial.more.find("toy_one_gpu"), std::string("toy_one_gpu").size(), "serial");
  const auto run = [](const Config& config) {
    const TemporaryFile file(config.text());
    return run_program({"run", file.path(), "--threads", "1"}).output;
  };
  CHECK(run(placed) == run(serial));
}

TEST_CASE("theory reads the distributions of a custom transform") {
  const Registered<families::TransformEntry> part(families::transforms(), mirror_transform());
  const Config mirrored = {.draft = "{from: target, transform: toy_mirror}"};
  take_through_commands(mirrored, "transform/toy_mirror", {});
  take_through_commands({.target = "{from: {family: zipf, exponent: 1}, transform: toy_mirror}"}, "transform/toy_mirror", {});
  // The smaller values of [.5, .25, .15, .1] and of the same backwards sum to .5.
  const TemporaryFile file(mirrored.text());
  CHECK(run_program({"audit", file.path()}).says("alpha:                                0.500000000000\n"));
}

TEST_CASE("theories known to be of one verifier are not those of its neighbours", "[stat]") {
  // Trees drawn without replacement, judged by a chain rule that draws with it; rules that judge chosen blocks by their own
  // threshold.
  const auto check = [](const Config& config) {
    const TemporaryFile file(config.text());
    return run_program({"check", file.path(), "--threads", "1"});
  };
  const Ended chain = check({.verifier = "without_replacement"});
  INFO(chain.output);
  CHECK(chain.status == 0);
  for (const char* verifier : {"typical", "{kind: top_k_match, k: 2}"}) {
    const Ended chosen = check({.drafter = "{kind: tree_dynamic, depth: 2, width: 2, nodes: 3}", .verifier = verifier});
    INFO(chosen.output);
    CHECK(chosen.status == kUntested);
    CHECK(chosen.says("no theory: none covers the choices of drafter tree_dynamic under verifier "));
  }
}

}  // namespace specsim::parts_test
