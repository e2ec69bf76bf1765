#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/candidates.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <functional>

namespace specsim::draft {

namespace {

class SpecExec final : public BlockDrafter {
 public:
  struct Params {
    int budget = 128;
    int beams = 128;
    int max_depth = 32;
    int width = 32;
    double decay = 0.95;
  };
  explicit SpecExec(const Params& params) : params_(params) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = std::min(params_.max_depth, params_.budget);
    shape_.nodes = params_.budget;
    shape_.ranks = params_.width;
    shape_.whole_vocabulary = true;
    shape_.ranks_model = true;
    shape_.counts_passes = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const auto budget = static_cast<std::size_t>(params_.budget);
    Candidates all;
    std::vector<int> waiting = {0};  // nodes that no pass has extended
    for (int pass = 0; pass < params_.max_depth && !waiting.empty(); ++pass) {
      std::vector<int> extended = waiting;
      if (extended.size() > static_cast<std::size_t>(params_.beams)) {
        std::sort(extended.begin(), extended.end(), [&](int a, int b) { return all.better(a, b); });
        extended.resize(static_cast<std::size_t>(params_.beams));
        std::sort(extended.begin(), extended.end());
      }
      std::erase_if(waiting, [&](int node) { return std::binary_search(extended.begin(), extended.end(), node); });
      input.prepare(all.block, extended);
      std::vector<Candidates::Child> children =
          all.children_of(input, extended, static_cast<std::size_t>(params_.width), params_.decay);
      // Candidates that are among the best of the budget, together with the nodes that exist.
      std::vector<double> values(all.value.begin() + 1, all.value.end());
      const double worst_kept = values.size() >= budget ? least_of_best(values, budget) : -1.0;
      for (const Candidates::Child& child : children) values.push_back(child.value);
      if (values.size() > budget) {
        const double least = least_of_best(values, budget);
        std::erase_if(children, [&](const Candidates::Child& child) { return child.value < least; });
      }
      const auto likeliest =
          std::max_element(children.begin(), children.end(),
                           [](const Candidates::Child& a, const Candidates::Child& b) { return a.value < b.value; });
      if (likeliest == children.end() || likeliest->value <= worst_kept) break;
      for (const int node : all.add(children)) waiting.push_back(node);
    }
    all.best(budget, block);
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    const double rows = std::min(params_.beams, params_.budget);
    BlockWork work{std::vector<double>(static_cast<std::size_t>(params_.max_depth), rows), 1.0 + nodes};
    work.pass_rows.front() = 1.0;
    return work;
  }

 private:
  static double least_of_best(std::vector<double> values, std::size_t most) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(most) - 1, values.end(), std::greater<>());
    return values[most - 1];
  }

  Shape shape_;
  Params params_;
};

}  // namespace

DrafterEntry spec_exec_drafter() {
  using P = SpecExec::Params;
  static const config::Fields<P> fields = {
      {"budget", &P::budget, "nodes of the tree (max_budget)", config::between(1, 256)},
      {"beams", &P::beams, "maximum number of open nodes that a pass extends (max_n_beams)", config::between(1, 1024)},
      {"max_depth", &P::max_depth, "maximum number of draft passes (max_beam_len)", config::between(1, kMaxDraftLength)},
      {"width", &P::width, "maximum number of children of a node (max_branch_width)", config::between(1, 256)},
      {"decay", &P::decay, "factor of a path's value per level (decay_factor)", config::above(0, 1)},
  };
  return {{"spec_exec",
           "SpecExec finds the likeliest paths of the draft for a large budget of nodes, expanding the best open nodes "
           "first",
           "Svirschevski et al. (SpecExec), arXiv 2406.02532; yandex-research/specexec, specdec/specexec.py (SpecExecBase), "
           "specdec/trees.py, commit c7f24b3",
           fields, "", "budget: 4, beams: 2, width: 2, max_depth: 3"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<SpecExec>(fields.read(arguments)); },
          true};
}

}  // namespace specsim::draft
