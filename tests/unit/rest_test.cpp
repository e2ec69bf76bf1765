// Retrieval from a datastore: the tree that REST's search makes.
#include "sim/rounds/draft/drafter.h"
#include "tests/support/cells.h"
#include "tests/support/drafters.h"

#include <catch2/catch.hpp>

#include <map>

namespace specsim::rest_test {

namespace {

// The drafted paths from the root to every node.
std::vector<std::vector<Token>> drafted(const std::string& parameters, std::vector<Token> text) {
  Diagnostics diagnostics;
  const draft::DrafterEntry* entry = draft::drafters().find("rest");
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(parameters, "t", diagnostics);
  const draft::Draft made =
      entry->make(config::read_arguments(section, entry->info.parameters, {}, "rest", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  draft::ChosenBlock block;
  tests::WrittenText sight(std::move(text));
  std::get<draft::Blocks>(made)->choose(sight, nullptr, block);
  std::vector<std::vector<Token>> paths(block.tree.nodes.size());
  for (std::size_t node = 1; node < paths.size(); ++node) {
    paths[node] = paths[static_cast<std::size_t>(block.tree.nodes[node].parent)];
    paths[node].push_back(block.tokens[node]);
  }
  paths.erase(paths.begin());
  return paths;
}

using Paths = std::vector<std::vector<Token>>;

}  // namespace

TEST_CASE("rest: the longest end that the datastore has, and the commonest beginnings behind it") {
  // 1 2 occurs three times, before 3 4, 3 5 and 6; 9 1 2 once, before 3 5.
  const std::string store = "datastore: [[1, 2, 3, 4, 9, 1, 2, 3, 5], [1, 2, 6]]";
  CHECK(drafted("{" + store + ", draft_length: 2}", {7, 1, 2}) == Paths{{3}, {6}, {3, 4}, {3, 5}});
  CHECK(drafted("{" + store + ", draft_length: 2}", {9, 1, 2}) == Paths{{3}, {3, 5}});
  CHECK(drafted("{" + store + ", draft_length: 2, longest: 2}", {9, 1, 2}) == Paths{{3}, {6}, {3, 4}, {3, 5}});
  CHECK(drafted("{" + store + ", draft_length: 2, nodes: 2}", {7, 1, 2}) == Paths{{3}, {6}});
  CHECK(drafted("{" + store + ", draft_length: 1}", {7, 1, 2}) == Paths{{3}, {6}});
  CHECK(drafted("{" + store + "}", {7, 8}).empty());
  CHECK(drafted("{" + store + "}", {2}).empty());     // shorter than the shortest
  CHECK(drafted("{" + store + "}", {2, 6}).empty());  // no token follows its only place
  CHECK(drafted("{" + store + ", shortest: 1}", {7, 9}) == drafted("{" + store + "}", {4, 9}));
}

}  // namespace specsim::rest_test
