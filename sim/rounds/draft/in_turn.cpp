#include "sim/foundation/config/choose.h"
#include "sim/rounds/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::draft {

namespace {

struct TurnsMemory final : BlockDrafter::Memory {
  TurnsMemory() = default;
  TurnsMemory(const TurnsMemory& other) : Memory(other) {
    for (const auto& one : other.of) of.push_back(one != nullptr ? one->copy() : nullptr);
  }
  TurnsMemory& operator=(const TurnsMemory&) = delete;
  ~TurnsMemory() override = default;
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<TurnsMemory>(*this); }
  std::vector<std::unique_ptr<Memory>> of;  // [drafter]; nullptr: no memory
};

// Whether it copies one path from the text, without passes of a draft model.
bool copies(const BlockDrafter& drafter) {
  const BlockDrafter::Shape& shape = drafter.shape();
  return shape.reads_text && drafter.tree() == nullptr && !shape.branches && !shape.draws && shape.ranks == 0 &&
         shape.target_ranks == 0 && !shape.looks_past_block && shape.nodes == shape.draft_length &&
         drafter.work(shape.nodes).pass_rows.empty() &&
         drafter.work(shape.nodes).verified_rows == drafter.work(0).verified_rows + shape.nodes;
}

// Whether it drafts a chain of a draft model's argmaxes in passes over the whole chain.
bool guesses_at_once(const BlockDrafter& drafter) {
  const BlockDrafter::Shape& shape = drafter.shape();
  return drafter.tree() != nullptr && drafter.tree()->is_chain() && shape.siblings == tokens::Siblings::point_mass &&
         shape.from_root && !shape.joins && !shape.alters;
}

class InTurn final : public BlockDrafter {
 public:
  struct Params {
    config::Value drafters;
  };
  // `model`: nullptr if there is none; otherwise a drafter of a chain of argmaxes, with one pass per token if it has no tree.
  InTurn(std::vector<Blocks> copying, std::optional<Draft> model) : copying_(std::move(copying)), model_(std::move(model)) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.reads_text = true;
    for (const Blocks& one : copying_) shape_.draft_length = std::max(shape_.draft_length, one->shape().draft_length);
    if (model_) {
      model_length_ = longest_path(*model_).draft_length;
      shape_.draft_length = std::max(shape_.draft_length, model_length_);
      shape_.ranks = 1;
      shape_.counts_passes = true;
      if (const auto* const blocks = std::get_if<Blocks>(&*model_)) {
        shape_.from_root = true;
        shape_.on_target_state = (*blocks)->shape().on_target_state;
        pass_rows_ = (*blocks)->work(model_length_).pass_rows;
      } else {
        pass_rows_.assign(static_cast<std::size_t>(model_length_), 1.0);
      }
    }
    shape_.nodes = shape_.draft_length;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  [[nodiscard]] std::unique_ptr<Memory> start() const override {
    auto memory = std::make_unique<TurnsMemory>();
    bool remembers = false;
    for (const Blocks& one : copying_) remembers = (memory->of.emplace_back(one->start()) != nullptr) || remembers;
    if (!remembers) return nullptr;
    return memory;
  }

  void update_memory(const DrafterInput& input, Memory* memory) const override {
    for (std::size_t i = 0; i < copying_.size(); ++i) copying_[i]->update_memory(input, memory_of(memory, i));
  }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    update_memory(input, memory);
    for (std::size_t i = 0; i < copying_.size() && block.tree.drafted() == 0; ++i)
      copying_[i]->choose(input, memory_of(memory, i), block);
    if (block.tree.drafted() == 0 && model_) ask_model(input, block);
  }

  [[nodiscard]] BlockWork work(int nodes) const override { return {pass_rows_, 1.0 + nodes}; }

 private:
  static Memory* memory_of(Memory* all, std::size_t i) {
    return all == nullptr ? nullptr : static_cast<TurnsMemory*>(all)->of[i].get();
  }
  void ask_model(DrafterInput& input, ChosenBlock& block) const {
    const bool at_once = shape_.from_root;
    if (at_once)
      for (const double rows : pass_rows_) input.prepare(block, std::vector<int>(static_cast<std::size_t>(rows), 0));
    int node = 0;
    for (int i = 0; i < model_length_; ++i) {
      if (!at_once) input.prepare(block, {&node, 1});
      const std::span<const Ranked> likeliest = input.likeliest(block, node);
      if (likeliest.empty() || !(likeliest[0].probability > 0.0)) return;
      node = block.add(node, likeliest[0].token);
    }
  }

  Shape shape_;
  std::vector<Blocks> copying_;
  std::optional<Draft> model_;
  int model_length_ = 0;
  std::vector<double> pass_rows_;  // rows of each pass of the model, if it drafts
};

}  // namespace

DrafterEntry in_turn_drafter() {
  using P = InTurn::Params;
  static const config::Fields<P> fields = {
      {"drafters", &P::drafters,
       "drafters that copy from the text, in the order in which they are asked; the last one may use a draft model",
       config::as_list, config::required},
  };
  return {{"in_turn", "asks several drafters one after another and uses the first draft it gets",
           "llama.cpp, --spec-type with several types: ggml-org/llama.cpp, common/speculative.cpp (common_speculative_init, "
           "common_speculative_draft, common_speculative_accept), commit e6ab7c1 (b11118, September 2026)",
           fields, "",
           "drafters: [{kind: ngram_simple, draft_length: 3, size_n: 1}, {kind: chain, draft_length: 2, selection: argmax}]"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> Draft {
            const P params = fields.read(arguments);
            std::vector<Blocks> copying;
            std::optional<Draft> model;
            if (!arguments.has("drafters")) return Chain{};
            const std::size_t before = diagnostics.list().size();
            const std::vector<config::Value>& list = params.drafters.items;
            if (list.empty()) diagnostics.add(arguments.where("drafters"), "drafters is empty, allowed: at least one drafter");
            for (const config::Value& value : list) {
              const config::Choice<DrafterEntry> one =
                  config::choose(drafters(), config::spelled_out(value, "kind"), "kind", "drafters", diagnostics);
              if (one.entry == nullptr) continue;
              const std::size_t made_before = diagnostics.list().size();
              Draft draft = one.entry->make(one.arguments, diagnostics);
              if (diagnostics.list().size() > made_before) continue;
              const auto* const blocks = std::get_if<Blocks>(&draft);
              if (blocks != nullptr && copies(**blocks)) {
                if (model)
                  diagnostics.add(one.where,
                                  fmt::format("drafter {} comes after a draft model, which has a draft in every round, "
                                              "allowed: before it",
                                              one.entry->info.name));
                copying.push_back(*blocks);
              } else if (blocks != nullptr ? guesses_at_once(**blocks)
                                           : std::get<Chain>(draft).argmax && std::get<Chain>(draft).draft_length > 0) {
                if (model)
                  diagnostics.add(one.where, fmt::format("drafter {} is a second draft model, allowed: one, the last of the list",
                                                         one.entry->info.name));
                model = std::move(draft);
              } else {
                diagnostics.add(
                    one.where, fmt::format("drafter {} is one of drafters, allowed: drafters that copy one path out of the text, "
                                           "and a chain of a draft model's argmaxes (selection: argmax; of eagle3, width: 1)",
                                           one.entry->info.name));
              }
            }
            if (diagnostics.list().size() > before) return Chain{};
            return std::make_shared<InTurn>(std::move(copying), std::move(model));
          }};
}

}  // namespace specsim::draft
