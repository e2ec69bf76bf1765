#include "sim/rounds/decode/preparation.h"

#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/foundation/math/alias_table.h"
#include "sim/foundation/math/simplex.h"

#include <algorithm>
#include <cstdint>
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
                          if (judging.drafter->shape().ranks_model || plan_->joins())
                            source.draw_draft_model(address, depth, target, draft_model);
                          else
                            source.draw_draft(address, depth, target, draft_model);
                          drafted = draft_model;
                          if (plan_->joins()) source.sample_draft(drafted);
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

// Greedy drafting removes the information about the model's confidence. Programs read it from the scores before temperature:
// transformers' ConfidenceCriteria takes the softmax of scores[-1], which greedy decoding does not change.
void DistributionDrawer::looked_at(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
                                   const std::vector<double>& drafted, std::vector<double>& looked_at) const {
  looked_at.clear();
  if (std::holds_alternative<PositionJudging>(plan_->judging) || std::find(drafted.begin(), drafted.end(), 1.0) == drafted.end())
    return;
  looked_at.resize(target.size());
  plan_->contexts->pair(pair).draw_draft_model(plan_->contexts->address(plan_->distribution_key, context), depth, target,
                                               looked_at);
}

void DistributionDrawer::joined(std::size_t pair, const std::vector<double>& before, const std::vector<double>& known,
                                std::vector<double>& drafted, std::vector<double>& looked_at) const {
  std::vector<double> model = known;
  std::get<BlockJudging>(plan_->judging).drafter->join(before, model);
  drafted = model;
  plan_->contexts->pair(pair).sample_draft(drafted);
  if (plan_->argmax_draft) math::point_mass(drafted, math::argmax(model));
  looked_at.clear();
  if (std::find(drafted.begin(), drafted.end(), 1.0) != drafted.end()) looked_at = std::move(model);
}

bool PreparationPlan::joins() const {
  const auto* const blocks = std::get_if<BlockJudging>(&judging);
  if (blocks == nullptr || !blocks->drafter->shape().joins) return false;
  const families::ContextProcess& process = *contexts->process;
  return process.shape().contexts != 1 && process.moves() && !process.shape().restarts();
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
  return contexts * kClasses + std::visit(Overloaded{[&](const PositionJudging& /*judging*/) {
                                                       return PreparedContexts::bytes_needed(vocab, contexts, depths);
                                                     },
                                                     [&](const BlockJudging& judging) {
                                                       return BlockTables::bytes_needed(vocab, contexts, depths, plan.joins(),
                                                                                        *judging.drafter, *judging.rule);
                                                     }},
                                          plan.judging);
}

namespace {

// Builds the tables of each pair of contexts, given the targets and the draft models' distributions by depth.
void add_joined(const PreparationPlan& plan, const DistributionDrawer& drawer, const std::vector<std::vector<double>>& targets,
                const std::vector<std::vector<std::vector<double>>>& models, math::AliasScratch& scratch,
                const std::atomic<bool>* stop, BlockTables& tables) {
  std::vector<double> drafted;
  std::vector<double> looked_at;
  const bool path = std::get<BlockJudging>(plan.judging).drafter->shape().joins_path;
  for (std::size_t before = 0; before < targets.size(); ++before) {
    if (stop != nullptr && *stop) throw Interrupted{};
    for (std::size_t context = 0; context < targets.size(); ++context) {
      const auto own = static_cast<std::uint32_t>(context);
      const std::uint32_t known = path ? own : plan.contexts->process->after_last(static_cast<std::uint32_t>(before), own);
      for (std::size_t depth = 0; depth < models[context].size(); ++depth) {
        drawer.joined(context, models[before][depth], models[known][depth], drafted, looked_at);
        tables.add_joined({targets[context], drafted, {}, looked_at}, scratch);
      }
    }
  }
}

}  // namespace

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
  std::vector<std::vector<double>> targets;  // [context], and the draft models' [context][depth], for joined drafts
  std::vector<std::vector<std::vector<double>>> models;
  const bool joins = prepared.blocks.has_value() && plan.joins();
  for (int context = 0; context < shape.contexts; ++context) {
    if (stop != nullptr && *stop) throw Interrupted{};
    const auto c = static_cast<std::size_t>(context);
    drawer.target(c, c, target);
    if (joins) {
      targets.push_back(target);
      models.emplace_back();
    }
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
      if (joins) models.back().push_back(draft_model);
    }
    classes.of_token = std::vector<std::uint16_t>();  // clear() would keep its memory
    prepared.class_count = classes.count;
    prepared.bin_of_class = classes.bin_of_class;
    prepared.classes.push_back(std::move(classes));
  }
  if (joins) add_joined(plan, drawer, targets, models, scratch, stop, *prepared.blocks);
  if (shape.judged_separately()) {
    prepared.strata = shape.contexts;
    prepared.stratum.resize(static_cast<std::size_t>(shape.contexts));
    std::iota(prepared.stratum.begin(), prepared.stratum.end(), 0U);
  }
  return prepared;
}

}  // namespace specsim::decode
