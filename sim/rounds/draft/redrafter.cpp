#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/candidates.h"
#include "sim/rounds/draft/tree_config.h"

#include <utility>
#include <vector>

namespace specsim::draft {

namespace {

class ReDrafter final : public BlockDrafter {
 public:
  struct Params {
    int beams = 10;
    int draft_length = 3;
  };
  explicit ReDrafter(const Params& params) : beams_(params.beams) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = params.draft_length;
    shape_.nodes = params.beams * params.draft_length;
    shape_.ranks = params.beams;
    shape_.whole_vocabulary = true;
    shape_.ranks_model = true;
    shape_.on_target_state = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const auto most = static_cast<std::size_t>(beams_);
    Candidates all;
    std::vector<int> ends = {0};
    for (int depth = 0; depth < shape_.draft_length && !ends.empty(); ++depth) {
      input.prepare(all.block, ends);
      const std::vector<Candidates::Child> longer = all.best_children(input, ends, most);
      ends = all.add(longer);
    }
    all.paths_to(ends, block);
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    BlockWork work{std::vector<double>(static_cast<std::size_t>(shape_.draft_length), static_cast<double>(beams_)), 1.0 + nodes};
    work.pass_rows.front() = 1.0;
    return work;
  }

 private:
  Shape shape_;
  int beams_;
};

}  // namespace

DrafterEntry redrafter_drafter() {
  using P = ReDrafter::Params;
  static const config::Fields<P> fields = {
      {"beams", &P::beams, "candidates; the program's examples take up to 45 (BeamShape.width)", config::between(1, 64)},
      {"draft_length", &P::draft_length,
       "tokens of each candidate (BeamShape.length of 4 counts the target's own token before them)", config::between(1, 16)},
  };
  return {
      {"redrafter", "a small recurrent head on the target's state, searched with beams",
       "Zhang et al. (Recurrent Drafter), arXiv 2403.09919; apple/ml-recurrent-drafter, recurrent_drafting/modeling_drafter.py "
       "(beam_search_candidates), recurrent_drafting/tree_attention.py, commit bd8586b",
       fields, "", "beams: 2, draft_length: 2"},
      [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<ReDrafter>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
