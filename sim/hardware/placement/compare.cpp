#include "sim/hardware/latency/round_time.h"
#include "sim/hardware/placement/lockstep.h"

#include <algorithm>
#include <cmath>

namespace specsim::placement {

namespace {

AcceptedCounts without_drafts(std::uint64_t sequences) {
  AcceptedCounts counts;
  counts.of_sequence.resize(static_cast<std::size_t>(sequences));
  return counts;
}

}  // namespace

std::vector<std::uint64_t> output_lengths(const PlacedBatch& setting, rng::Key key) {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(setting.batch), setting.output_tokens);
  if (setting.end_token_rate <= 0.0) return lengths;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double u = rng::to_unit(rng::Stream(key, rng::Purpose::length, 0, i)());
    const double before = std::floor(std::log1p(-u) / std::log1p(-setting.end_token_rate));
    if (before + 1.0 < static_cast<double>(setting.output_tokens)) lengths[i] = static_cast<std::uint64_t>(before) + 1;
  }
  return lengths;
}

double Comparison::speedup() const { return plain.end.seconds() / run.end.seconds(); }

std::optional<double> Comparison::speedup_of_twice() const {
  if (!plain_twice) return std::nullopt;
  return plain_twice->end.seconds() / run.end.seconds();
}

Comparison compare(const PlacedBatch& setting, const cost::CostModel& cost, const RoundSource& source,
                   engine::Timeline* timeline) {
  const std::unique_ptr<Placement> plain = plain_decoding();
  const AcceptedCounts no_drafts = without_drafts(setting.batch);
  Generation generation;
  generation.cost = &cost;
  generation.accepted = &no_drafts;
  generation.prompt_tokens = setting.prompt_tokens;
  generation.output_tokens = output_lengths(setting, source.draw_key);
  generation.vocab = setting.vocab;
  generation.states = setting.states;
  generation.shrink = setting.shrink;

  Comparison result;
  const bool speculates = source.draft_length > 0 && setting.placement->speculates();
  result.plain = plain->simulate(generation, speculates ? nullptr : timeline);
  if (setting.placement->second_gpu()) {
    if (const std::unique_ptr<cost::CostModel> twice = cost.with_twice_the_gpus()) {
      Generation on_both = generation;
      on_both.cost = twice.get();
      result.plain_twice = plain->simulate(on_both, nullptr);
    }
  }
  if (!speculates) {
    result.run = result.plain;
    return result;
  }
  // The first token comes from the prefill.
  const AcceptedCounts accepted =
      record_accepted(source, setting.placement->bonus(), static_cast<std::size_t>(setting.batch), setting.output_tokens - 1);
  generation.accepted = &accepted;
  if (const auto* const blocks = std::get_if<decode::BlockJudging>(&source.plan.judging))
    generation.drafting = std::cref(*blocks->drafter);
  generation.round_cost = source.round_cost;
  result.run = setting.placement->simulate(generation, timeline);
  return result;
}

double check_prices(const PlacedBatch& setting, const cost::CostModel& cost, int draft_length, const Drafting& drafting,
                    double round_cost) {
  const auto batch = static_cast<double>(setting.batch);
  const auto prompt = static_cast<double>(setting.prompt_tokens);
  const bool speculates = draft_length > 0 && setting.placement->speculates();
  const int length = speculates ? draft_length : 0;
  const Drafting own = speculates ? drafting : TokenByToken();
  const int drafted = most_drafted(own, length);
  const draft::BlockWork work = work_of(own, drafted);
  double prefill = cost.pass(cost::Role::target, {batch, prompt, 0.0, 1.0}).total();
  if (!work.pass_rows.empty()) prefill += cost.pass(cost::Role::draft, {batch, prompt, 0.0, 1.0}).total();
  const double last = prompt + static_cast<double>(setting.output_tokens) - 2.0;
  double longest = 0.0;
  for (const double context : {prompt, std::max(prompt, last)}) {
    const bool always_whole = !setting.shrink && setting.placement->bonus() == decode::Bonus::emitted;
    for (const double sequences : {always_whole ? batch : 1.0, batch}) {
      const double plain = cost.pass(cost::Role::target, {sequences, 1.0, context, 1.0}).total();
      double passes = cost.round_overhead(sequences) + plain + round_cost * plain;
      if (length > 0) passes += cost.link_seconds(sequences, work.verified_rows);
      passes += cost.pass(cost::Role::target, {sequences, work.verified_rows, context, work.verified_rows}).total();
      const double ahead = setting.placement->bonus() == decode::Bonus::none ? length : 0.0;
      for (std::size_t i = 0; i < work.pass_rows.size(); ++i)
        for (const double extra : {0.0, 1.0})
          passes += cost.draft_level({sequences, context + ahead}, static_cast<int>(i), work.pass_rows[i], extra).total();
      passes += cost::draft_passes_time(cost, {sequences, context}, work.meanwhile_rows).total();
      longest = std::max(longest, passes);
    }
  }
  return prefill + static_cast<double>(setting.output_tokens) * setting.placement->longest_round(longest, setting, drafted);
}

}  // namespace specsim::placement
