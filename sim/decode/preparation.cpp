#include "sim/decode/preparation.h"

#include "sim/base/huge_array.h"
#include "sim/base/overloaded.h"
#include "sim/math/alias_table.h"
#include "sim/math/simplex.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace specsim::decode {

DistributionDrawer::DistributionDrawer(const PreparationPlan& plan) : plan_(&plan) {}

void DistributionDrawer::target(std::size_t pair, std::uint64_t context, std::vector<double>& target) const {
  target.resize(static_cast<std::size_t>(plan_->vocab));
  plan_->contexts->pair(pair).draw_target(plan_->contexts->address(plan_->distribution_key, context), target);
}

void DistributionDrawer::draft(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
                               std::vector<double>& draft_model, std::vector<double>& drafted) const {
  draft_model.resize(target.size());
  const families::PairSource& source = plan_->contexts->pair(pair);
  const families::DistributionAddress address = plan_->contexts->address(plan_->distribution_key, context);
  std::visit(Overloaded{[&](const PositionJudging& /*judging*/) {
                          source.draw_draft(address, depth, target, draft_model);
                          drafted = draft_model;
                        },
                        [&](const BlockJudging& judging) {
                          if (judging.drafter->shape().ranks_model)
                            source.draw_draft_model(address, depth, target, draft_model);
                          else
                            source.draw_draft(address, depth, target, draft_model);
                          drafted = draft_model;
                          double chance = 0.0;
                          if (judging.drafter->shape().alters)
                            chance = rng::to_unit(rng::Stream(plan_->distribution_key, rng::Purpose::altered,
                                                              static_cast<std::uint32_t>(depth), context)());
                          judging.drafter->alter_distribution(static_cast<int>(depth), chance, target, drafted);
                          math::drop_subnormal(drafted);
                        }},
             plan_->judging);
  if (plan_->argmax_draft) math::point_mass(drafted, math::argmax(draft_model));
}

// Greedy drafting leaves nothing of how sure the model is. Programs read it off the scores that no temperature was put to:
// transformers' ConfidenceCriteria takes the softmax of scores[-1], which greedy decoding leaves as they are.
void DistributionDrawer::looked_at(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
                                   const std::vector<double>& drafted, std::vector<double>& looked_at) const {
  looked_at.clear();
  if (std::holds_alternative<PositionJudging>(plan_->judging) || std::find(drafted.begin(), drafted.end(), 1.0) == drafted.end())
    return;
  looked_at.resize(target.size());
  plan_->contexts->pair(pair).draw_draft_model(plan_->contexts->address(plan_->distribution_key, context), depth, target,
                                               looked_at);
}

int PreparationPlan::depths() const {
  const int own = contexts->process->shape().depths;
  return std::visit(
      Overloaded{[&](const PositionJudging& /*positions*/) { return own; },
                 [&](const BlockJudging& blocks) { return std::max(own, blocks.drafter->shape().distribution_depths); }},
      judging);
}

std::size_t prepared_bytes(const PreparationPlan& plan) {
  const auto vocab = static_cast<std::size_t>(plan.vocab);
  const auto contexts = static_cast<std::size_t>(plan.contexts->process->shape().contexts);
  const auto depths = static_cast<std::size_t>(plan.depths());
  constexpr std::size_t kClasses = sizeof(OutputClasses) + kFirstTopToken * (2 * sizeof(double) + 1) + 3 * kHeapBytes;
  return contexts * kClasses +
         std::visit(Overloaded{[&](const PositionJudging& /*judging*/) {
                                 return PreparedContexts::bytes_needed(vocab, contexts, depths);
                               },
                               [&](const BlockJudging& judging) {
                                 return BlockTables::bytes_needed(vocab, contexts, depths, *judging.drafter, *judging.rule);
                               }},
                    plan.judging);
}

Prepared prepare(const PreparationPlan& plan, const DistributionObserver& observer, bool tables, const std::atomic<bool>* stop) {
  const families::ContextShape& shape = plan.contexts->process->shape();
  Prepared prepared;
  if (shape.contexts == 0) {
    prepared.class_count = kFreshClasses;
    prepared.bin_of_class.assign(kFreshClasses, 0);
    return prepared;
  }
  const DistributionDrawer drawer(plan);
  const int depths = plan.depths();
  if (tables)
    std::visit(
        Overloaded{[&](const PositionJudging& /*judging*/) { prepared.tables.emplace(plan.vocab, shape.contexts, depths); },
                   [&](const BlockJudging& judging) {
                     prepared.blocks.emplace(plan.vocab, shape.contexts, depths, *judging.drafter, *judging.rule);
                   }},
        plan.judging);
  prepared.classes.reserve(static_cast<std::size_t>(shape.contexts));
  const bool alone = shape.contexts == 1;
  math::AliasScratch scratch;
  std::vector<double> target;
  std::vector<double> draft_model;
  std::vector<double> drafted;
  std::vector<double> looked_at;
  for (int context = 0; context < shape.contexts; ++context) {
    if (stop != nullptr && *stop) throw Interrupted{};
    const auto c = static_cast<std::size_t>(context);
    drawer.target(c, c, target);
    OutputClasses classes;
    for (int depth = 0; depth < depths; ++depth) {
      drawer.draft(c, c, static_cast<std::size_t>(depth), target, draft_model, drafted);
      if (depth == 0) classes = output_classes(target, drafted, alone);
      drawer.looked_at(c, c, static_cast<std::size_t>(depth), target, drafted, looked_at);
      const verify::PositionDistributions distributions{target, drafted, draft_model, looked_at};
      if (prepared.blocks) prepared.blocks->add(distributions, classes.of_token, scratch);
      if (prepared.tables)
        prepared.tables->prepare(context, depth, *std::get<PositionJudging>(plan.judging).rule, distributions, classes, scratch);
      if (observer) observer(context, depth, distributions, classes);
    }
    classes.of_token = std::vector<std::uint16_t>();  // clear() would keep its memory
    prepared.class_count = classes.count;
    prepared.bin_of_class = classes.bin_of_class;
    prepared.classes.push_back(std::move(classes));
  }
  if (shape.judged_apart()) {
    prepared.strata = shape.contexts;
    prepared.stratum.resize(static_cast<std::size_t>(shape.contexts));
    std::iota(prepared.stratum.begin(), prepared.stratum.end(), 0U);
  }
  return prepared;
}

}  // namespace specsim::decode
