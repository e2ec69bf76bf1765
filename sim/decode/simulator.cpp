#include "sim/decode/simulator.h"

#include "sim/base/check.h"
#include "sim/decode/staged_rounds.h"
#include "sim/math/scan.h"
#include "sim/math/simplex.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace specsim::decode {

namespace {

using Kind = families::ContextShape::Kind;

// A context whose rounds follow one another by a rule of their own is judged by itself; contexts that are drawn
// independently for every token are one mixture.
bool judged_apart(Kind kind) {
  return kind == Kind::markov || kind == Kind::regimes || kind == Kind::requests || kind == Kind::trace;
}

// The name of a text position's distributions; below 2^63, which theory's own sample of pairs leaves to it.
std::uint64_t fresh_context(std::uint64_t sequence, std::uint64_t text_position) {
  SPECSIM_CHECK(sequence < kMaxFreshSequences && text_position < std::uint64_t{1} << 32, "sequence {}, position {}", sequence,
                text_position);
  return sequence << 32 | text_position;
}

}  // namespace

DistributionDrawer::DistributionDrawer(const PreparationPlan& plan) : plan_(&plan) {}

void DistributionDrawer::target(std::size_t pair, std::uint64_t context, std::vector<double>& target) const {
  target.resize(static_cast<std::size_t>(plan_->vocab));
  plan_->contexts->pair(pair).draw_target({plan_->distribution_key, context}, target);
}

void DistributionDrawer::draft(std::size_t pair, std::uint64_t context, std::size_t depth, const std::vector<double>& target,
                               std::vector<double>& draft_model, std::vector<double>& drafted) const {
  draft_model.resize(target.size());
  plan_->contexts->pair(pair).draw_draft({plan_->distribution_key, context}, depth, target, draft_model);
  drafted = draft_model;
  if (plan_->drafter != nullptr) {
    plan_->drafter->alter_distribution(static_cast<int>(depth), target, drafted);
    math::drop_subnormal(drafted);
  }
  if (plan_->argmax_draft) math::point_mass(drafted, math::argmax(draft_model));
}

int PreparationPlan::depths() const {
  const int own = contexts->process->shape().depths;
  return drafter != nullptr ? std::max(own, drafter->shape().distribution_depths) : own;
}

std::size_t prepared_bytes(const PreparationPlan& plan) {
  const auto vocab = static_cast<std::size_t>(plan.vocab);
  const auto contexts = static_cast<std::size_t>(plan.contexts->process->shape().contexts);
  const auto depths = static_cast<std::size_t>(plan.depths());
  constexpr std::size_t kClasses = sizeof(OutputClasses) + kFirstTopToken * (2 * sizeof(double) + 1) + 3 * kHeapBytes;
  return contexts * kClasses + (plan.block_rule != nullptr
                                    ? BlockTables::bytes_needed(vocab, contexts, depths, *plan.drafter, *plan.block_rule)
                                    : PreparedContexts::bytes_needed(vocab, contexts, depths));
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
  if (tables && plan.block_rule != nullptr)
    prepared.blocks.emplace(plan.vocab, shape.contexts, depths, *plan.drafter, *plan.block_rule);
  else if (tables)
    prepared.tables.emplace(plan.vocab, shape.contexts, depths);
  prepared.classes.reserve(static_cast<std::size_t>(shape.contexts));
  const bool alone = shape.contexts == 1;
  math::AliasScratch scratch;
  std::vector<double> target;
  std::vector<double> draft_model;
  std::vector<double> drafted;
  for (int context = 0; context < shape.contexts; ++context) {
    if (stop != nullptr && *stop) throw Interrupted{};
    const auto c = static_cast<std::size_t>(context);
    drawer.target(c, c, target);
    OutputClasses classes;
    for (int depth = 0; depth < depths; ++depth) {
      drawer.draft(c, c, static_cast<std::size_t>(depth), target, draft_model, drafted);
      if (depth == 0) classes = output_classes(target, drafted, alone);
      const verify::PositionDistributions distributions{target, drafted, draft_model};
      if (prepared.blocks) prepared.blocks->add(target, drafted, classes.of_token, scratch);
      if (prepared.tables) prepared.tables->prepare(context, depth, *plan.rule, distributions, classes, scratch);
      if (observer) observer(context, depth, distributions, classes);
    }
    classes.of_token = std::vector<std::uint16_t>();  // clear() would keep its memory
    prepared.class_count = classes.count;
    prepared.bin_of_class = classes.bin_of_class;
    prepared.classes.push_back(std::move(classes));
  }
  if (judged_apart(shape.kind) && shape.contexts > 1) {
    prepared.strata = shape.contexts;
    prepared.stratum.resize(static_cast<std::size_t>(shape.contexts));
    std::iota(prepared.stratum.begin(), prepared.stratum.end(), 0U);
  }
  return prepared;
}

Simulator::Simulator(const PreparationPlan& plan, const Prepared& prepared, rng::Key draw_key, int draft_length,
                     std::uint32_t sequence_rounds, Bonus bonus)
    : plan_(plan),
      prepared_(&prepared),
      draw_key_(draw_key),
      draft_length_(draft_length),
      sequence_rounds_(sequence_rounds),
      bonus_(bonus) {
  SPECSIM_CHECK(bonus == Bonus::emitted || draft_length >= 1, "draft_length {} without a bonus token", draft_length);
}

Counts Simulator::empty_counts() const {
  return {draft_length_, prepared_->strata, prepared_->class_count, plan_.drafter != nullptr ? plan_.drafter->shape().nodes : 0};
}

std::uint64_t Simulator::chunk_size() const {
  const families::ContextShape& shape = plan_.contexts->process->shape();
  if (shape.contexts == 0) return sequence_rounds_;  // fresh distributions cost a thousand times as much: one sequence
  return shape.request_tokens > 0 ? kLanes : std::uint64_t{kLanes} * sequence_rounds_;
}

void Simulator::run(std::uint64_t index, std::uint64_t total, Counts& counts, RoundSink* sink) const {
  const std::uint64_t size = chunk_size();
  SPECSIM_CHECK(index * size < total, "chunk {} of {} rounds", index, total);
  const bool fresh = plan_.contexts->process->shape().contexts == 0;
  const ChunkPlan chunk{fresh ? index : index * kLanes, std::min(size, total - index * size), sequence_rounds_};
  if (plan_.block_rule != nullptr) {
    const verify::ChainRule* const chains = sink == nullptr ? chain_rule() : nullptr;
    return chains != nullptr ? run_chains(*chains, chunk, counts) : run_blocks(chunk, counts, sink);
  }
  PhiloxBits random_bits(draw_key_);
  if (fresh)
    run_fresh(chunk, random_bits, counts, sink);
  else
    run_prepared(chunk, random_bits, counts, sink);
}

void Simulator::run_scripted(std::uint64_t rounds, BitSource& random_bits, Counts& counts, RoundSink& sink) const {
  run_prepared({0, rounds, static_cast<std::uint32_t>(rounds)}, random_bits, counts, &sink);
}

void Simulator::run_prepared(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const {
  const RoundSetup setup{.tables = &*prepared_->tables,
                         .process = plan_.contexts->process.get(),
                         .key = draw_key_,
                         .draft_length = static_cast<std::uint32_t>(draft_length_),
                         .matches = plan_.rule->matches(),
                         .classes = prepared_->class_count,
                         .bin_of_class = prepared_->bin_of_class.data(),
                         .stratum = prepared_->stratum.empty() ? nullptr : prepared_->stratum.data()};
  if (bonus_ == Bonus::none) return run_prepared_without_bonus(setup, chunk, random_bits, counts, sink);
  const bool several = plan_.contexts->process->shape().contexts > 1;
  if (sink != nullptr)
    several ? run_staged<ShippedBehaviour, true, true>(setup, chunk, random_bits, counts, sink)
            : run_staged<ShippedBehaviour, false, true>(setup, chunk, random_bits, counts, sink);
  else
    several ? run_staged<ShippedBehaviour, true, false>(setup, chunk, random_bits, counts, nullptr)
            : run_staged<ShippedBehaviour, false, false>(setup, chunk, random_bits, counts, nullptr);
}

// One sequence whose every text position has distributions of its own. The same rule, the same addresses as the prepared path;
// draws scan the distribution because a table would be used once.
void Simulator::run_fresh(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const {
  const DistributionDrawer drawer(plan_);
  const verify::PositionRule& rule = *plan_.rule;
  const std::uint64_t sequence = chunk.first_sequence;
  const auto pair_lane = static_cast<std::uint32_t>(sequence % 2);
  const std::uint32_t lane = 0;
  std::vector<double> target;
  std::vector<double> draft_model;
  std::vector<double> drafted;
  std::vector<double> weights(static_cast<std::size_t>(plan_.vocab));
  math::ScanSums sums;
  std::vector<Token> text;
  std::uint64_t text_position = 0;
  std::uint64_t emitted_in_all = 0;
  std::uint64_t full_rounds = 0;

  // u is uniform if y was drawn from the target: see kFreshClasses.
  const auto judge = [&](Token y, std::uint64_t place) {
    const std::uint64_t bits =
        rng::philox_bits({rng::counter_word0(rng::Purpose::judge, 0), static_cast<std::uint32_t>(place),
                          static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                         draw_key_)
            .first;
    double over = 0.0;    // mass of the tokens that the draft makes too likely
    double before = 0.0;  // mass of the tokens of y's own part that come before y
    const bool y_over = drafted[y] > target[y];
    for (std::size_t x = 0; x < target.size(); ++x) {
      const bool x_over = drafted[x] > target[x];
      over += x_over ? target[x] : 0.0;
      before += x < y && x_over == y_over ? target[x] : 0.0;
    }
    const double u = (y_over ? 0.0 : over) + before + rng::to_unit(bits) * target[y];
    ++counts.output[static_cast<std::size_t>(std::clamp(u * kFreshClasses, 0.0, kFreshClasses - 1.0))];
  };

  for (std::uint32_t round = 0; round < chunk.rounds; ++round) {
    std::array<std::uint64_t, 2> finals{};
    random_bits.final_token(round, sequence - pair_lane, 2, finals.data());
    text.clear();
    const bool judged = round % kFreshJudged == 0;
    bool rejected = false;
    std::uint64_t accept_bits = 0;
    for (int position = 0; position < draft_length_ && !rejected; ++position) {
      std::uint64_t draft_bits = 0;
      random_bits.draft_accept(round, static_cast<std::uint32_t>(position), sequence, &lane, 1, &draft_bits, &accept_bits);
      const std::uint64_t context = fresh_context(sequence, text_position);
      drawer.target(0, context, target);
      drawer.draft(0, context, static_cast<std::size_t>(position), target, draft_model, drafted);
      const verify::PositionDistributions distributions{target, drafted, draft_model};
      sums.sum(drafted);
      const Token x = sums.pick(drafted, rng::to_unit(draft_bits));
      ++counts.reached[static_cast<std::size_t>(position)];
      Token y = x;
      if (rule.matches()) {
        rule.bonus(target, weights);
        sums.sum(weights);
        y = sums.pick(weights, rng::to_unit(accept_bits));
        rejected = y != x;
      } else {
        rejected = !verify::accepts(rng::to_unit(accept_bits), rule.odds(distributions, x));
        if (rejected) {
          rule.rejected(distributions, weights);
          sums.sum(weights);
          if (!(sums.total() > 0.0)) {  // see PreparedContexts::prepare
            rule.bonus(target, weights);
            sums.sum(weights);
          }
          y = sums.pick(weights, rng::to_unit(finals[pair_lane]));
        }
      }
      if (!rejected) ++counts.accepted[static_cast<std::size_t>(position)];
      if (judged) judge(y, text_position);
      text.push_back(y);
      ++text_position;
    }
    const std::size_t accepted = text.size() - (rejected ? 1 : 0);
    if (!rejected) ++full_rounds;
    if (!rejected && bonus_ == Bonus::emitted) {
      drawer.target(0, fresh_context(sequence, text_position), target);
      rule.bonus(target, weights);
      sums.sum(weights);
      text.push_back(sums.pick(weights, rng::to_unit(finals[pair_lane])));
      if (judged) {
        drawer.draft(0, fresh_context(sequence, text_position), 0, target, draft_model, drafted);
        judge(text.back(), text_position);
      }
      ++text_position;
    }
    ++counts.accepted_distribution[accepted];
    emitted_in_all += text.size();
    if (sink != nullptr) {
      sink->accepted(lane, round, static_cast<std::uint32_t>(accepted));
      sink->round(lane, round, text, 0);
    }
  }
  counts.add_sequence(chunk.rounds, full_rounds, emitted_in_all, draft_length_ > 0);
}

}  // namespace specsim::decode
