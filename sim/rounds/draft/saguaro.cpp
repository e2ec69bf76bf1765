#include "sim/foundation/base/token.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/draft/drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace specsim::draft {

namespace {

// The outcomes of a round that the draft prepares for: after each number of accepted tokens, the tokens that the target may emit.
struct OutcomeCache final : BlockDrafter::Memory {
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<OutcomeCache>(*this); }
  [[nodiscard]] std::vector<Token> drawn() const override {
    std::vector<Token> all;
    if (!decides) return all;
    for (const std::vector<Token>& tokens : outcomes) {
      all.push_back(static_cast<Token>(tokens.size()));
      all.insert(all.end(), tokens.begin(), tokens.end());
    }
    return all;
  }
  // Whether the text that follows the round was prepared for.
  [[nodiscard]] bool holds(std::span<const Token> text) const {
    const std::size_t emitted = text.size() - before;
    if (emitted == 0 || emitted > outcomes.size()) return false;
    const std::vector<Token>& tokens = outcomes[emitted - 1];
    return std::find(tokens.begin(), tokens.end(), text.back()) != tokens.end();
  }
  bool decides = false;                      // whether a round drafts at all depends on it
  std::size_t before = 0;                    // length of the text before the round
  std::vector<std::vector<Token>> outcomes;  // [accepted]; empty before the first round
};

class Saguaro final : public BlockDrafter {
 public:
  struct Params {
    int draft_length = 0;
    int fan_out = 3;
    std::vector<double> fan_outs;
    double rescale = 1.0;
    bool drafts_again = true;
  };
  // fan_outs: [accepted], draft_length + 1 whole numbers.
  Saguaro(const Params& params, std::vector<std::size_t> fan_outs)
      : fan_outs_(std::move(fan_outs)),
        outcomes_(std::accumulate(fan_outs_.begin(), fan_outs_.end(), std::size_t{0})),
        rescaled_(*std::max_element(fan_outs_.begin(), fan_outs_.end()) + 1),
        rescale_(params.rescale),
        drafts_again_(params.drafts_again) {
    shape_.siblings = tokens::Siblings::independent;
    shape_.draft_length = params.draft_length;
    shape_.nodes = params.draft_length;
    shape_.ranks = static_cast<int>(std::max(rescaled_, drafts_again_ ? 0 : outcomes_));
    shape_.reads_text = true;
    shape_.draws = true;
    shape_.counts_passes = true;
    shape_.ranks_unaltered = true;
    shape_.alters = rescale_ < 1.0;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] std::unique_ptr<Memory> start() const override {
    auto cache = std::make_unique<OutcomeCache>();
    cache->decides = !drafts_again_;
    return cache;
  }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    auto& cache = static_cast<OutcomeCache&>(*memory);
    const bool hit = cache.holds(input.text());
    cache.before = input.text().size();
    cache.outcomes.clear();
    if (!hit && !drafts_again_) {
      cache.outcomes.push_back(likely(input, block, 0, outcomes_, {}));
      return;
    }
    int node = 0;
    for (int i = 0; i < shape_.draft_length; ++i) {
      if (!hit) input.prepare(block, std::array{node});
      const std::array drawn = {input.draw_child(block, node, {}, i + 1).token};
      cache.outcomes.push_back(likely(input, block, node, fan_outs_[static_cast<std::size_t>(i)], drawn));
      node = block.add(node, drawn[0]);
    }
    cache.outcomes.push_back(likely(input, block, node, fan_outs_.back(), {}));
  }

  void alter_distribution(int /*depth*/, double /*chance*/, std::span<const double> /*target*/,
                          std::span<double> draft) const override {
    if (!shape_.alters) return;
    for (const Token x : math::likeliest(draft, rescaled_)) draft[x] *= rescale_;
    math::normalise(draft);
  }

  // While the target verifies, one pass over the block completes the draft's cache and ranks the outcomes; then all outcomes get
  // their chains, a token of each per pass.
  [[nodiscard]] BlockWork work(int nodes) const override {
    const auto length = static_cast<std::size_t>(shape_.draft_length);
    BlockWork work{std::vector<double>(length, 1.0), 1.0 + nodes};
    work.meanwhile_rows.assign(length, static_cast<double>(outcomes_));
    work.meanwhile_rows.insert(work.meanwhile_rows.begin(), 1.0 + nodes);
    return work;
  }

 private:
  // The draft's likeliest tokens after a node, without the one that was drafted there: if that one is accepted, another outcome
  // is reached.
  static std::vector<Token> likely(DrafterInput& input, const ChosenBlock& block, int node, std::size_t most,
                                   std::span<const Token> drafted) {
    std::vector<Token> tokens;
    for (const Ranked& ranked : input.likeliest(block, node)) {
      if (tokens.size() == most || !(ranked.probability > 0.0)) break;
      if (std::find(drafted.begin(), drafted.end(), ranked.token) == drafted.end()) tokens.push_back(ranked.token);
    }
    return tokens;
  }

  Shape shape_;
  std::vector<std::size_t> fan_outs_;  // [accepted]
  std::size_t outcomes_;               // their sum
  std::size_t rescaled_;               // tokens whose probability is scaled
  double rescale_;
  bool drafts_again_;
};

}  // namespace

DrafterEntry saguaro_drafter() {
  using P = Saguaro::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens of a chain", config::between(1, kMaxDraftLength), config::required},
      {"fan_out", &P::fan_out,
       "outcomes that are prepared after each number of accepted tokens (async_fan_out): the draft's likeliest tokens but the "
       "one that was drafted there",
       config::between(1, 64)},
      {"fan_outs", &P::fan_outs,
       "instead of fan_out: a number for each number of accepted tokens, draft_length + 1 of them (fan_out_list)",
       config::optional},
      {"rescale", &P::rescale,
       "factor on the draft's likeliest tokens, one more than the largest fan-out, before a token is drawn (sampler_x): the "
       "target then emits prepared tokens more often after a rejection, and rejects more often; 1: no change",
       config::above(0, 1)},
      {"fallback", &P::drafts_again,
       "if the outcome was not prepared: the draft drafts while the target waits (draft), or the round drafts nothing and "
       "prepares "
       "all outcomes of its one token (none)",
       config::one_of<bool>({{"draft", true}, {"none", false}})},
  };
  return {{"saguaro",
           "speculative speculative decoding: while the target verifies, the draft prepares a chain for each likely outcome on a "
           "GPU of its own",
           "Kumar, Dao and May, arXiv 2603.03251; tanishqkumar/ssd, ssd/engine/draft_runner.py, "
           "ssd/utils/async_helpers/async_spec_helpers.py, commit 6ed3022",
           fields, "", "draft_length: 3, fan_out: 1"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> Draft {
            const P params = fields.read(arguments);
            const auto positions = static_cast<std::size_t>(params.draft_length) + 1;
            std::vector<std::size_t> fan_outs(positions, static_cast<std::size_t>(std::max(params.fan_out, 1)));
            if (arguments.has("fan_outs")) {
              const bool whole = std::all_of(params.fan_outs.begin(), params.fan_outs.end(),
                                             [](double n) { return n >= 0.0 && n <= 64.0 && n == static_cast<int>(n); });
              if (params.fan_outs.size() != positions || !whole) {
                diagnostics.add(
                    arguments.where("fan_outs"),
                    fmt::format("fan_outs has {} numbers{}, allowed: draft_length + 1 = {} whole numbers in [0, 64]",
                                params.fan_outs.size(), whole ? "" : ", not all of them whole and in range", positions));
                return Chain{};
              }
              for (std::size_t i = 0; i < positions; ++i) fan_outs[i] = static_cast<std::size_t>(params.fan_outs[i]);
            }
            return std::make_shared<Saguaro>(params, std::move(fan_outs));
          }};
}

}  // namespace specsim::draft
