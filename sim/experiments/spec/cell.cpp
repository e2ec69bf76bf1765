#include "sim/experiments/spec/cell.h"

#include "sim/experiments/spec/engine_names.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/hardware/latency/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace specsim::spec {

namespace {

// The drafting time of a batch in lockstep, which drafts until its longest chain ends. It is the mean over that chain's length,
// the maximum of as many independent lengths as there are sequences. A pass has only the sequences that still draft.
cost::RoundTime longest_of_batch(const cost::CostModel& model, const cost::Workload& workload,
                                 const std::vector<std::uint64_t>& drafted, double rounds, double full_rate) {
  std::vector<double> below = {0.0};  // [n]: P(a sequence drafts fewer than n)
  for (const std::uint64_t count : drafted) below.push_back(below.back() + static_cast<double>(count) / rounds);
  cost::RoundTime mean;
  for (std::size_t longest = 0; longest < drafted.size(); ++longest) {
    if (drafted[longest] == 0) continue;
    const double others = std::pow(below[longest + 1], workload.batch - 1.0);  // draft at most that many
    const double fewer = std::pow(below[longest], workload.batch - 1.0);       // fewer than that
    const double share = below[longest + 1] * others - below[longest] * fewer;
    if (!(share > 0.0)) continue;
    std::vector<double> pass_rows;
    double rows = 1.0;
    for (std::size_t n = 1; n <= longest; ++n) {
      pass_rows.push_back(((below[longest + 1] - below[n]) * others - (below[longest] - below[n]) * fewer) / share);
      rows += pass_rows.back();
    }
    mean.add(share, cost::block_time(model, workload, pass_rows, rows, full_rate));
  }
  return mean;
}

// Rounds of one kind: the rows of each pass of the draft, and the share of such rounds.
struct DraftPasses {
  double share = 0.0;
  std::vector<double> pass_rows;
};

// The drafting time of a batch in lockstep, whose passes go on until every sequence has its block. It is the mean over the
// largest number of passes among the independent sequences. Sequences that are done add no rows to the passes of the others.
// `independent`: the number of independent sequences.
cost::RoundTime drafting_of_batch(const cost::CostModel& model, const cost::Workload& workload,
                                  const std::vector<DraftPasses>& kinds, double independent, double full_rate) {
  std::size_t most = 0;
  for (const DraftPasses& kind : kinds) most = std::max(most, kind.pass_rows.size());
  cost::RoundTime mean;
  double fewer = 0.0;                     // P(a sequence takes fewer passes)
  std::vector<double> before(most, 0.0);  // [pass]: mean rows of a sequence that takes fewer, times that probability
  for (std::size_t passes = 0; passes <= most; ++passes) {
    double no_more = fewer;
    std::vector<double> rows = before;
    for (const DraftPasses& kind : kinds)
      if (kind.pass_rows.size() == passes) {
        no_more += kind.share;
        for (std::size_t pass = 0; pass < passes; ++pass) rows[pass] += kind.share * kind.pass_rows[pass];
      }
    const double others = std::pow(no_more, independent - 1.0);
    const double others_fewer = std::pow(fewer, independent - 1.0);
    const double share = no_more * others - fewer * others_fewer;
    if (no_more > fewer && share > 0.0) {
      std::vector<double> pass_rows;
      for (std::size_t pass = 0; pass < passes; ++pass)
        pass_rows.push_back((rows[pass] * others - before[pass] * others_fewer) / share);
      mean.add(share, cost::block_time(model, workload, pass_rows, 1.0, full_rate));
    }
    fewer = no_more;
    before = std::move(rows);
  }
  return mean;
}

// Reduces the verifying pass by the share that drafting already did, down to a pass over one token.
void reuse(double share, cost::RoundTime& time) {
  if (share <= 0.0) return;
  cost::PassTime verify;
  verify.add(1.0 - share, time.verify);
  verify.add(share, time.plain);
  time.verify = verify;
}

// The part of the passes that prepare the next round that lasts longer than the verification at that time: the target waits.
cost::PassTime beyond_verification(const Cell& cell, const std::vector<double>& meanwhile_rows, const cost::PassTime& verify) {
  const cost::PassTime passes = cost::draft_passes_time(cell.cost(), cell.workload, meanwhile_rows);
  cost::PassTime beyond;
  if (passes.total() > verify.total()) beyond.add(1.0 - verify.total() / passes.total(), passes);
  return beyond;
}

// Counted rounds whose mean time is computed; see Cell::round_time.
struct CountedRounds {
  double full_rate;
  const std::vector<std::uint64_t>& drafted;  // [nodes]
  const decode::PassCounts& passes;
  double all;  // the sum of `drafted`

  [[nodiscard]] double share(std::size_t nodes) const { return static_cast<double>(drafted[nodes]) / all; }
};

// A round whose block has `nodes` nodes.
cost::RoundTime block_time(const Cell& cell, int nodes, double full_rate) {
  const draft::BlockWork work = cell.block()->drafter->work(nodes);
  cost::RoundTime time = cost::block_time(cell.cost(), cell.workload, work.pass_rows, work.verified_rows, full_rate);
  reuse(work.reused, time);
  time.draft += beyond_verification(cell, work.meanwhile_rows, time.verify);
  return time;
}

// Rounds under a policy that divides the rows of the target's pass among the sequences. All sequences draft whole chains.
cost::RoundTime shared_rows_time(const Cell& cell, const CountedRounds& rounds) {
  const cost::Workload& workload = cell.workload;
  // The draft has processed its own last token unless all of the chain was verified and accepted.
  const double whole = std::min(rounds.full_rate, rounds.share(rounds.drafted.size() - 1));
  cost::RoundTime mean;
  if (workload.batch == 1.0) {
    for (std::size_t nodes = 0; nodes < rounds.drafted.size(); ++nodes)
      if (rounds.drafted[nodes] > 0) mean.add(rounds.share(nodes), cell.shared_round_time(whole, static_cast<double>(nodes)));
    return mean;
  }
  // The batch's rows are the sum of its sequences'. Attention over them differs by less than a thousandth from that of the same
  // number of mean sequences. Budgets reach up to the number of rows where a pass becomes more expensive, so the mean over
  // rounds lies between two row counts that passes have, and takes its share of both. Captured passes (CUDA graphs) have
  // multiples of kRowsOfGraphs rows.
  constexpr double kRowsOfGraphs = 8.0;
  double rows = workload.batch;
  for (std::size_t nodes = 0; nodes < rounds.drafted.size(); ++nodes)
    rows += workload.batch * static_cast<double>(nodes) * static_cast<double>(rounds.drafted[nodes]) / rounds.all;
  const double most = workload.batch * static_cast<double>(rounds.drafted.size());
  const double below = std::max(kRowsOfGraphs * std::floor(rows / kRowsOfGraphs), workload.batch);
  const double above = std::min(kRowsOfGraphs * std::ceil(rows / kRowsOfGraphs), most);
  const auto time = [&](double of_batch) { return cell.shared_round_time(whole, of_batch / workload.batch - 1.0); };
  if (above <= below || rows <= below) return time(rows);
  mean.add((above - rows) / (above - below), time(below));
  mean.add((rows - below) / (above - below), time(above));
  return mean;
}

// Rounds of a batch in lockstep. Drafting time depends on the passes only, verification time on the nodes. `independent`: the
// number of sequences that choose their blocks by themselves.
cost::RoundTime lockstep_time(const Cell& cell, const CountedRounds& rounds, double independent) {
  cost::RoundTime mean;
  cost::PassTime waiting;
  std::vector<DraftPasses> kinds;
  const decode::PassCounts& passes = rounds.passes;
  for (std::size_t count = 0; count < passes.rounds.size(); ++count)
    if (passes.rounds[count] > 0)
      kinds.push_back({static_cast<double>(passes.rounds[count]) / rounds.all, passes.mean_rows(count)});
  for (std::size_t nodes = 0; nodes < rounds.drafted.size(); ++nodes) {
    if (rounds.drafted[nodes] == 0) continue;
    const cost::RoundTime time = block_time(cell, static_cast<int>(nodes), rounds.full_rate);
    mean.add(rounds.share(nodes), time);
    waiting.add(rounds.share(nodes),
                beyond_verification(cell, cell.block()->drafter->work(static_cast<int>(nodes)).meanwhile_rows, time.verify));
    if (!passes.any()) kinds.push_back({rounds.share(nodes), cell.block()->drafter->work(static_cast<int>(nodes)).pass_rows});
  }
  const cost::RoundTime drafting = drafting_of_batch(cell.cost(), cell.workload, kinds, independent, rounds.full_rate);
  mean.draft = drafting.draft;
  mean.draft += waiting;
  mean.catch_up = drafting.catch_up;
  return mean;
}

}  // namespace

const std::string& theory_name(const TheoryChoice& choice) {
  static const std::string exact = "exact";
  static const std::string none = "none";
  if (const auto* named = std::get_if<NamedTheory>(&choice)) return named->form->name;
  return std::holds_alternative<NoTheory>(choice) ? none : exact;
}

bool expects_refuted(const TheoryChoice& choice) {
  const auto* named = std::get_if<NamedTheory>(&choice);
  return named != nullptr && named->expect_refuted;
}

const draft::Chain& Cell::drafted_path() const { return judges_blocks() ? block()->longest_path : chain()->chain; }

const PolicyChoice* Cell::policy() const { return judges_blocks() && block()->policy ? &*block()->policy : nullptr; }

int Cell::drafted_nodes() const { return judges_blocks() ? block()->drafter->shape().nodes : draft_length(); }

const verify::VerifierEntry& Cell::verifier() const {
  const verify::VerifierEntry* entry = judges_blocks() ? block()->verifier.entry : chain()->verifier.entry;
  SPECSIM_CHECK(entry != nullptr, "{} cell {} has no verifier", experiment, index);
  return *entry;
}

const config::Arguments& Cell::verifier_arguments() const {
  return judges_blocks() ? block()->verifier.arguments : chain()->verifier.arguments;
}

const cost::CostModel& Cell::cost() const {
  SPECSIM_CHECK(cost_choice.has_value(), "{} cell {} has no cost", experiment, index);
  return *cost_choice->part;
}

std::vector<std::string> Cell::warnings() const {
  std::vector<std::string> list;
  if (cost_choice) {
    list = cost().warnings();
    if (const cost::Deployment* const deployment = cost().deployment())
      for (std::string& doubt : doubtful_proposals(deployment->engine)) list.push_back(std::move(doubt));
    const double rows = 1.0 + (!judges_blocks() ? draft_length() : block()->drafter->shape().nodes);
    for (const auto& beyond : {cost().beyond_measured(cost::Role::target, {workload.batch, rows, workload.context, rows}),
                               cost().beyond_measured(cost::Role::draft, {workload.batch, 1.0, workload.context, 1.0})})
      list.insert(list.end(), beyond.begin(), beyond.end());
  }
  list.insert(list.end(), notes.begin(), notes.end());
  return list;
}

cost::RoundTime Cell::round_time(double full_rate) const { return round_time(full_rate, {}); }

cost::RoundTime Cell::round_time(double full_rate, const std::vector<std::uint64_t>& drafted,
                                 const decode::PassCounts& passes) const {
  if (!judges_blocks()) return cost::round_time(cost(), workload, draft_length(), full_rate);
  const CountedRounds counted{full_rate, drafted, passes, std::accumulate(drafted.begin(), drafted.end(), 0.0)};
  const PolicyChoice* const own = policy();
  // A length for the whole batch makes all its chains equal. Trees whose depth each sequence chooses are limited to batches of
  // one.
  const draft::BlockDrafter& drafter = *block()->drafter;
  const bool token_by_token =
      drafter.tree() != nullptr && drafter.tree()->is_chain() && !drafter.shape().from_root && !drafter.shape().joins;
  const bool all_alike = own != nullptr && own->part->sequences() > 1;
  cost::RoundTime time;
  if (counted.all == 0.0)
    time = block_time(*this, drafter.shape().nodes, full_rate);
  else if (own != nullptr && own->part->shares_rows())
    time = shared_rows_time(*this, counted);
  else if (own != nullptr && !all_alike && token_by_token)
    time = longest_of_batch(cost(), workload, drafted, counted.all, full_rate);
  else
    time = lockstep_time(*this, counted, all_alike ? 1.0 : workload.batch);
  if (own != nullptr) time.overhead += own->round_cost * time.plain.total();
  return time;
}

cost::RoundTime Cell::shared_round_time(double full_rate, double verified) const {
  const draft::BlockDrafter& drafter = *block()->drafter;
  const draft::BlockWork work = drafter.work(drafter.shape().nodes);
  cost::RoundTime time = cost::block_time(cost(), workload, work.pass_rows, 1.0 + verified, full_rate);
  reuse(work.reused, time);
  return time;
}

std::uint64_t Cell::work() const {
  const families::ContextShape& shape = contexts->process->shape();
  if (!shape.ends()) return rounds;
  // Requests of a record differ in length; this is their mean.
  const std::uint64_t request_tokens =
      shape.request_tokens > 0 ? shape.request_tokens
                               : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(shape.contexts) / shape.starts.size());
  constexpr std::uint64_t kFewestRequests = 256;
  return std::max(kFewestRequests, (2 * rounds + request_tokens - 1) / request_tokens);
}

Cell reseeded(Cell cell, std::uint64_t seed, std::uint64_t rounds) {
  cell.seed = seed;
  cell.rounds = rounds;
  cell.preparation_key += fmt::format("|{}", seed);
  return cell;
}

Cell with_draft_length(Cell cell, int draft_length) {
  SPECSIM_CHECK(cell.drafts_chains(), "{} cell {} drafts no chains", cell.experiment, cell.index);
  if (auto* block = std::get_if<BlockMethod>(&cell.method)) {
    block->longest_path.draft_length = draft_length;
    block->drafter.part = draft::chain_block(draft_length);
  } else {
    std::get<ChainMethod>(cell.method).chain.draft_length = draft_length;
  }
  return cell;
}

bool can_cut(const Cell& cell) {
  if (cell.policy() != nullptr || !cell.verifier().make_block) return false;
  if (!cell.drafts_chains()) {
    const draft::BlockDrafter& drafter = *cell.block()->drafter;
    if (drafter.tree() == nullptr || !drafter.tree()->is_chain() || drafter.shape().reads_text) return false;
  }
  const families::ContextShape& shape = cell.contexts->process->shape();
  return shape.contexts > 0 && !shape.acceptance_only && shape.kind != families::ContextShape::Kind::by_rank;
}

Cell to_be_cut(Cell cell, int draft_length) {
  SPECSIM_CHECK(can_cut(cell), "{} cell {} drafts no chain that can be cut", cell.experiment, cell.index);
  if (const auto* const chain = std::get_if<ChainMethod>(&cell.method)) {
    const auto& [entry, arguments, part] = chain->verifier;
    BlockMethod block{chain->chain,
                      {draft::drafters().find("chain"), {}, draft::chain_block(chain->chain.draft_length)},
                      {entry, arguments, entry->make_block(arguments)},
                      {},
                      true};
    cell.method = std::move(block);
  }
  return cell.drafts_chains() ? with_draft_length(std::move(cell), draft_length) : cell;
}

// The text "law" must not change: another text would draw other distributions, and change every committed result.
rng::Key distribution_key(const Cell& cell) { return rng::make_key(cell.seed, rng::hash_text("law")); }

rng::Key draw_key(const Cell& cell) { return rng::make_key(cell.seed, cell.pairing_group); }

decode::PreparationPlan plan_of(const Cell& cell) {
  using Judging = std::variant<decode::PositionJudging, decode::BlockJudging>;
  return {cell.vocab, cell.argmax_draft(), distribution_key(cell), cell.contexts.get(),
          std::visit(
              Overloaded{[](const ChainMethod& chain) -> Judging { return decode::PositionJudging{chain.verifier.part.get()}; },
                         [](const BlockMethod& block) -> Judging {
                           return decode::BlockJudging{block.verifier.part.get(), block.drafter.part.get(),
                                                       block.policy ? block.policy->part.get() : nullptr};
                         }},
              cell.method)};
}

decode::PreparationPlan plan_with_rule(const Cell& cell, const verify::PositionRule& rule) {
  decode::PreparationPlan plan = plan_of(cell);
  plan.judging = decode::PositionJudging{&rule};
  return plan;
}

}  // namespace specsim::spec
