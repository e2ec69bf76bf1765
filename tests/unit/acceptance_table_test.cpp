// Published acceptance by depth and rank, and what files of one's own may hold.
#include "sim/plan/acceptance_table.h"
#include "sim/config/value.h"
#include "sim/cost/presets.h"
#include "sim/plan/acceptance_curve.h"

#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

namespace specsim {

namespace {

plan::AcceptanceTable table_of(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(yaml, "table.yaml", diagnostics);
  diagnostics.throw_if_any();
  return plan::read_acceptance_table(value);
}

}  // namespace

TEST_CASE("every table of configs/acceptance says where it is from and holds probabilities", "[acceptance]") {
  const std::vector<std::string> names = cost::preset_names("acceptance");
  CHECK(names.size() > 15);
  for (const std::string& name : names) {
    INFO(name);
    const plan::AcceptanceTable table = plan::named_acceptance_table(name, {"--acceptance", 0, 0});
    CHECK(!table.about.empty());
    CHECK(!table.source.empty());
    REQUIRE(!table.acceptance.empty());
    for (const std::vector<double>& row : table.acceptance) {
      REQUIRE(!row.empty());
      CHECK(std::accumulate(row.begin(), row.end(), 0.0) <= 1.0);  // Mutant: cumulative shares by rank, as Medusa's file has them
      for (std::size_t rank = 1; rank < row.size() && rank < 5; ++rank) CHECK(row[rank] <= row[rank - 1]);
    }
  }
}

TEST_CASE("a published table gives the chain that its source measured", "[acceptance]") {
  // EAGLE, Table 5: a chain of 5 on MT-bench, 3.20, 3.00 and 3.12 tokens per round measured. Mutant: rates of all rounds taken
  // for rates of those that reach the position (2.4 and below).
  const auto chain_of_5 = [](const char* name) {
    return plan::conditional_acceptance(plan::named_acceptance_table(name, {}).of_chain(), 5).tokens_per_round.at(5);
  };
  CHECK(chain_of_5("eagle-vicuna-7b-chat") == Approx(3.20).epsilon(0.06));
  CHECK(chain_of_5("eagle-llama-2-chat-7b-chat") == Approx(3.00).epsilon(0.06));
  CHECK(chain_of_5("eagle-llama-2-chat-70b-chat") == Approx(3.12).epsilon(0.06));
  // The rates of a log sum to its mean acceptance length less one. Mutant: the rates taken as they stand.
  CHECK(plan::conditional_acceptance(plan::named_acceptance_table("eagle-maths", {}).of_chain(), 7).tokens_per_round.at(7) ==
        Approx(1 + 0.661 + 0.43 + 0.272 + 0.178 + 0.11 + 0.072 + 0.047).epsilon(1e-9));
  CHECK(plan::named_acceptance_table("eagle3-chat", {}).unverified);
}

TEST_CASE("tables of one's own: lists, numbers by depth, rates", "[acceptance]") {
  CHECK(table_of("[[0.6, 0.1], 0.5]").acceptance == std::vector<std::vector<double>>{{0.6, 0.1}, {0.5}});
  CHECK(table_of("acceptance: [0.6]\npair: mine").origin() == "mine");
  CHECK(table_of("rates: [0.8, 0.4, 0]").of_chain() == std::vector<double>{0.8, 0.5, 0.0});
  CHECK(table_of("rates: [0, 0]").of_chain() == std::vector<double>{0.0, 0.0});
  const auto refused = [](const std::string& yaml, const std::string& message) {
    INFO(yaml);
    CHECK_THROWS_WITH(table_of(yaml), Catch::Contains(message));
  };
  refused("rates: [0.4, 0.8]", "table.yaml:1:14: rate 0.8 follows 0.4, allowed: rates that do not rise");
  refused("acceptance: [1.5]", "table.yaml:1:14: acceptance is 1.5, allowed: a number in [0, 1]");
  refused("acceptance: [0.5]\nrates: [0.5]", "both or neither of acceptance and rates");
  refused("acceptance: [0.5]\naceptance: 1",
          "table.yaml:2:12: unknown key \"aceptance\" in a table of acceptance, allowed: acceptance");
  refused("{}", "both or neither");
  refused("[]", "allowed: a list with an entry for each depth");
}

}  // namespace specsim
