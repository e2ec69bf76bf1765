#include "sim/rounds/draft/heads.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <map>
#include <utility>

namespace specsim::draft {

namespace {

// The program's tree of 63 candidates, level by level.
tokens::Tree shipped_tree() {
  static const std::vector<std::vector<int>> paths = {
      {0},       {1},       {2},       {3},       {4},       {5},       {6},       {7},          {8},
      {9},       {0, 0},    {0, 1},    {0, 2},    {0, 3},    {0, 4},    {0, 5},    {0, 6},       {0, 7},
      {0, 8},    {0, 9},    {1, 0},    {1, 1},    {1, 2},    {1, 3},    {1, 4},    {1, 5},       {1, 6},
      {2, 0},    {2, 1},    {2, 2},    {3, 0},    {3, 1},    {4, 0},    {5, 0},    {6, 0},       {7, 0},
      {8, 0},    {9, 0},    {0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 0, 4}, {0, 0, 5},    {0, 0, 6},
      {0, 0, 7}, {0, 0, 8}, {0, 0, 9}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 2, 0}, {0, 2, 1},    {0, 3, 0},
      {0, 4, 0}, {0, 5, 0}, {0, 6, 0}, {0, 7, 0}, {1, 0, 0}, {1, 0, 1}, {2, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 1}};
  tokens::Tree tree;
  std::map<std::vector<int>, int> nodes = {{{}, 0}};
  for (const std::vector<int>& path : paths) nodes[path] = tree.add(nodes.at({path.begin(), path.end() - 1}), path.back());
  return tree;
}

class Hydra final : public TreeDrafter {
 public:
  explicit Hydra(tokens::Tree tree) : TreeDrafter(std::move(tree), tokens::Siblings::point_mass) {
    shape_.on_target_state = true;
  }
};

}  // namespace

DrafterEntry hydra_drafter() {
  return {{"hydra", "Hydra's heads are Medusa's heads that also see the tokens before them",
           "Ankner et al. (Hydra), arXiv 2402.05109; zankner/Hydra, hydra/model/hydra_choices.py (mc_sim_7b_63), commit 3f39fbd",
           heads_fields()},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const tokens::Tree shipped = shipped_tree();
            std::optional<tokens::Tree> tree = heads_tree(arguments, "hydra", &shipped, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<Hydra>(std::move(*tree)));
          }};
}

}  // namespace specsim::draft
