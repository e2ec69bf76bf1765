#include "sim/experiments/judge/rows.h"

#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace specsim::judge {

namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

double sum_of(const std::vector<std::uint64_t>& values) {
  double sum = 0.0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  return sum;
}

std::string count_text(double n) { return fmt::format("{:.0f}", n); }

std::string theory_text(const Prediction& prediction, double value) { return prediction.known ? report::csv_real(value) : ""; }

bool in_seconds(const spec::Cell& cell) { return cell.cost_choice && cell.cost().in_seconds(); }

std::string ms_text(const Row& row, double seconds) { return in_seconds(*row.cell) ? report::csv_real(1e3 * seconds) : ""; }

// A figure of the placement in seconds, as a column in milliseconds.
std::function<std::string(const Row&)> timed_ms(double (*seconds)(const placement::Result&)) {
  return [seconds](const Row& row) { return row.timed ? report::csv_real(1e3 * seconds(row.timed->run)) : ""; };
}

bool judges_jointly(const spec::Cell& cell) { return cell.verifier().demands.joint; }

// The mean over rounds of a figure of their work.
double mean_work(const Row& row, double (*figure)(const draft::BlockWork&)) {
  if (!row.cell->judges_blocks() || row.counts.drafted.empty()) {
    const int length = row.cell->draft_length();
    return figure({std::vector<double>(static_cast<std::size_t>(length), 1.0), 1.0 + length});
  }
  const draft::BlockDrafter& drafter = *row.cell->block()->drafter;
  const bool shared = row.cell->policy() != nullptr && row.cell->policy()->part->shares_rows();
  double sum = 0.0;
  double rounds = 0.0;
  for (std::size_t nodes = 0; nodes < row.counts.drafted.size(); ++nodes) {
    if (row.counts.drafted[nodes] == 0) continue;
    const auto count = static_cast<double>(row.counts.drafted[nodes]);
    draft::BlockWork work = drafter.work(static_cast<int>(nodes));
    // all drafted tokens count, even those not verified
    if (shared) work.pass_rows = drafter.work(drafter.shape().nodes).pass_rows;
    sum += count * figure(work);
    rounds += count;
  }
  return sum / rounds;
}

double mean_passes(const decode::PassCounts& counted) {
  double sum = 0.0;
  double rounds = 0.0;
  for (std::size_t passes = 0; passes < counted.rounds.size(); ++passes) {
    sum += static_cast<double>(passes) * static_cast<double>(counted.rounds[passes]);
    rounds += static_cast<double>(counted.rounds[passes]);
  }
  return sum / rounds;
}

double speedup_theory(const Row& row) {
  return row.judged_by.speedup ? *row.judged_by.speedup : row.judged_by.tokens_per_round * row.speedup_per_token();
}

}  // namespace

double Row::drafted() const {
  if (counts.drafted.empty()) return static_cast<double>(counts.rounds + counts.cut_rounds) * cell->draft_length();
  double sum = 0.0;
  for (std::size_t nodes = 0; nodes < counts.drafted.size(); ++nodes)
    sum += static_cast<double>(nodes) * static_cast<double>(counts.drafted[nodes]);
  return sum;
}
double Row::accepted() const { return sum_of(counts.accepted); }
double Row::tries() const { return sum_of(counts.reached); }
double Row::alpha() const { return tries() > 0.0 && !judges_jointly(*cell) ? accepted() / tries() : kNotKnown; }
double Row::draft_efficiency() const { return drafted() > 0.0 ? accepted() / drafted() : kNotKnown; }
double Row::tokens_per_round() const { return static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds); }

double Row::full_rate() const {
  const auto rounds = static_cast<double>(counts.rounds + counts.cut_rounds);
  return counts.accepted.empty() || rounds == 0.0 ? 0.0 : static_cast<double>(counts.accepted.back()) / rounds;
}

double Row::verified_rows() const {
  return mean_work(*this, [](const draft::BlockWork& w) { return w.verified_rows; });
}

cost::RoundTime Row::round_time() const {
  return cell->cost_choice ? cell->round_time(full_rate(), counts.drafted, counts.passes) : cost::RoundTime();
}

double Row::speedup_per_token() const {
  // Without a cost, tokens per round would be mistaken for a speedup. A placement that drafts nothing has no rounds to speed up.
  if (!cell->cost_choice || (cell->placement && !cell->placement->setting.placement->speculates())) return std::nan("");
  return cost::speedup(round_time(), 1.0);
}

double Row::tokens_per_second() const { return cell->workload.batch * tokens_per_round() / round_time().total(); }

const std::vector<report::Column<Row>>& columns() {
  static const std::vector<report::Column<Row>> list = {
      {"rounds", "1", "whole rounds simulated", [](const Row& r) { return std::to_string(r.counts.rounds); }},
      {"drafted", "tokens", "draft_length for each round; the nodes of each round's tree",
       [](const Row& r) { return count_text(r.drafted()); }},
      {"accepted", "tokens", "sum of accepted_pos_i", [](const Row& r) { return count_text(r.accepted()); }},
      {"emitted", "tokens", "accepted + 1 for each whole round", [](const Row& r) { return std::to_string(r.counts.emitted); }},
      {"draft_passes", "1", "sequential passes of the draft model in a round, mean over rounds",
       [](const Row& r) {
         return report::csv_real(r.counts.passes.any() ? mean_passes(r.counts.passes)
                                                       : mean_work(r, [](const draft::BlockWork& w) {
                                                           return static_cast<double>(w.pass_rows.size());
                                                         }));
       }},
      {"verified_rows", "tokens", "tokens per sequence in the target's pass, all through the LM head, mean over rounds",
       [](const Row& r) { return report::csv_real(r.verified_rows()); }},
      {"cut_rounds", "1", "rounds cut by a request's end; they count neither in rounds nor in emitted",
       [](const Row& r) { return std::to_string(r.counts.cut_rounds); }},
      {"accepted_pos_i", "rounds", "rounds that accepted draft position i", nullptr},
      {"alpha_theory", "1", "expected acceptance at a reached position, weighted by judged tokens",
       [](const Row& r) { return theory_text(r.exact, r.exact.alpha); }},
      {"alpha", "1", "accepted / (accepted + rejections); empty if tokens are judged jointly",
       [](const Row& r) { return report::csv_real(r.alpha()); }},
      {"alpha_se", "1",
       "standard error of alpha, from the spread between independent groups: the batches under a policy that ties their "
       "sequences "
       "together, else the sequences",
       [](const Row& r) { return report::csv_real(r.alpha_estimate().error); }},
      {"draft_efficiency", "1", "accepted / drafted, a server's draft acceptance rate",
       [](const Row& r) { return report::csv_real(r.draft_efficiency()); }},
      {"tokens_per_round_theory", "tokens", "by the closed form in column theory",
       [](const Row& r) { return theory_text(r.judged_by, r.judged_by.tokens_per_round); }},
      {"tokens_per_round", "tokens", "emitted / rounds", [](const Row& r) { return report::csv_real(r.tokens_per_round()); }},
      {"tokens_per_round_se", "tokens",
       "standard error of tokens_per_round, from the spread between independent groups, as alpha_se",
       [](const Row& r) { return report::csv_real(r.tokens_per_round_estimate().error); }},
      {"speedup_theory", "1", "tokens_per_round_theory / time of a round",
       [](const Row& r) { return theory_text(r.judged_by, speedup_theory(r)); }},
      {"speedup", "1",
       "tokens_per_round plain_ms / round_ms; ratio: tokens_per_round / (draft_length cost_ratio + verify_inflation + overhead); "
       "empty without a cost, and if the placement drafts nothing",
       [](const Row& r) { return report::csv_real(r.tokens_per_round() * r.speedup_per_token()); }},
      {"speedup_se", "1", "standard error of speedup, from the tokens and the times of independent groups together, as alpha_se",
       [](const Row& r) { return report::csv_real(r.speedup_estimate().error); }},
      {"plain_ms", "ms",
       "time of a target pass over one token, the time per token of plain decoding; times are empty if the cost model has "
       "only ratios",
       [](const Row& r) { return ms_text(r, r.round_time().plain.total()); }},
      {"round_ms", "ms", "draft_ms + verify_ms + overhead_ms", [](const Row& r) { return ms_text(r, r.round_time().total()); }},
      {"draft_ms", "ms",
       "time of draft_length draft passes, including the token that the draft must catch up on after a full acceptance",
       [](const Row& r) { return ms_text(r, r.round_time().draft.total()); }},
      {"verify_ms", "ms", "time of a target pass over draft_length + 1 tokens",
       [](const Row& r) { return ms_text(r, r.round_time().verify.total()); }},
      {"overhead_ms", "ms", "time of a round outside its passes",
       [](const Row& r) { return ms_text(r, r.round_time().overhead); }},
      {"sampling_ms", "ms", "the part of round_ms that turns logits into tokens",
       [](const Row& r) { return ms_text(r, r.round_time().draft.sampling + r.round_time().verify.sampling); }},
      {"host_ms", "ms", "the part of round_ms that the host takes, including the minimum times of passes",
       [](const Row& r) { return ms_text(r, r.round_time().draft.host + r.round_time().verify.host + r.round_time().overhead); }},
      {"wasted_draft_ms", "ms", "draft_ms (1 - draft_efficiency)",
       [](const Row& r) { return ms_text(r, r.round_time().draft.total() * (1.0 - r.draft_efficiency())); }},
      {"tokens_per_second", "1/s", "batch tokens_per_round / round_ms",
       [](const Row& r) { return in_seconds(*r.cell) ? report::csv_real(r.tokens_per_second()) : ""; }},
      {"ttft_ms", "ms",
       "time to the first token, if a placement is simulated; without one this column and those up to "
       "e2e_speedup_equal_hardware are empty",
       timed_ms([](const placement::Result& r) { return r.time_to_first_token.seconds(); })},
      {"tpot_ms", "ms", "(end - ttft_ms) / (output_tokens - 1), mean over sequences",
       timed_ms([](const placement::Result& r) { return r.time_per_output_token.mean; })},
      {"itl_p50_ms", "ms", "median time between bursts of tokens; the tokens of one round are one burst",
       timed_ms([](const placement::Result& r) { return r.inter_token.p50; })},
      {"itl_p99_ms", "ms", "99th percentile of the time between bursts",
       timed_ms([](const placement::Result& r) { return r.inter_token.p99; })},
      {"e2e_ms", "ms", "time to the last token of the batch",
       timed_ms([](const placement::Result& r) { return r.end.seconds(); })},
      {"waiting_ms", "ms", "the part of e2e_ms in which the target's GPU is idle until pre-drafted blocks are whole",
       timed_ms([](const placement::Result& r) { return r.parts.waiting.seconds(); })},
      {"wasted_ms", "ms", "drafting time, including that during verification, of drafts that were never verified",
       timed_ms([](const placement::Result& r) { return r.wasted_draft.seconds(); })},
      {"e2e_speedup", "1", "e2e_ms of plain decoding / e2e_ms",
       [](const Row& r) { return r.timed ? report::csv_real(r.timed->speedup()) : ""; }},
      {"e2e_speedup_equal_hardware", "1",
       "e2e_speedup with the target alone on twice its GPUs, tensor parallel, as the baseline; if the draft had its own "
       "GPUs and the cost model covers that baseline",
       [](const Row& r) { return r.timed && r.timed->plain_twice ? report::csv_real(*r.timed->speedup_of_twice()) : ""; }},
      {"z_tokens_per_round", "1", "(tokens_per_round - theory) / standard deviation by theory",
       [](const Row& r) { return report::csv_real(r.agreement.z_tokens_per_round); }},
      {"p_accepted_law", "1",
       "p-value of a G-test of the distribution of accepted, by context at the start of a round; empty if rounds are too few",
       [](const Row& r) { return report::csv_real(r.agreement.p_accepted_distribution); }},
      {"p_output_law", "1",
       "p-value of the emitted tokens against the target's distribution: G-tests by class and by neighbours and a score test for "
       "a leak of the draft's distribution, joined by Sidak's rule; a lossy verifier is compared with its own distribution, and "
       "the value is empty "
       "if theory does not predict it",
       [](const Row& r) { return report::csv_real(r.agreement.p_output_distribution); }},
      {"smallest_leak", "1",
       "smallest leak of the draft's distribution into the output that would be rejected with power .99; empty for a lossy "
       "verifier",
       [](const Row& r) { return report::csv_real(r.agreement.smallest_leak); }},
      {"kl", "nats", "KL(target || draft), mean over contexts", [](const Row& r) { return report::csv_real(r.kl); }},
      {"chi_squared", "1", "chi2(draft || target), mean over contexts",
       [](const Row& r) { return report::csv_real(r.chi_squared); }},
      {"theory", "", "the theory that judged the cell: exact, a closed form by name, or none",
       [](const Row& r) { return r.judged_by.known ? spec::theory_name(r.cell->theory) : "none"; }},
      {"verdict", "", "agree, disagree, refuted_as_expected or no_theory",
       [](const Row& r) { return std::string(to_text(r.verdict)); }}};
  return list;
}

void judge_rows(std::vector<Row>& rows, const FactsOfCells& facts) {
  const double level = check_level(rows.size() * kChecksPerCell);
  for (Row& row : rows) {
    const DistributionFacts& own = facts.of(*row.cell);
    const std::uint64_t work = row.cell->contexts->process->shape().ends() ? row.counts.sequences : row.counts.rounds;
    row.exact = predict_exact(*row.cell, own, work);
    row.judged_by = std::holds_alternative<spec::ExactTheory>(row.cell->theory) ? row.exact
                    : std::holds_alternative<spec::NoTheory>(row.cell->theory)  ? Prediction{}
                                                                                : predict_named(*row.cell, own, row.exact);
    row.agreement = judge_cell(*row.cell, own, row.judged_by, row.counts, level);
    const Agreement exact = judge_cell(*row.cell, own, row.exact, row.counts, level);
    row.verdict = decide(*row.cell, row.judged_by, exact, row.agreement, level);
    row.underpowered = underpowered(*row.cell, own, row.judged_by, row.counts, row.agreement, level);
    row.chi_squared = own.chi_squared;
    row.kl = own.kl;
  }
}

namespace {

// The columns before the axes.
std::vector<report::Column<Row>> cell_columns() {
  return {{"experiment", "", "the experiment's name in the config", [](const Row& r) { return r.cell->experiment; }},
          {"cell", "1", "number in the experiment's grid, from 0, the last axis fastest",
           [](const Row& r) { return std::to_string(r.cell->index); }},
          {"seed", "1", "source of the cell's random numbers", [](const Row& r) { return std::to_string(r.cell->seed); }}};
}

// The columns of waterfall.csv before the step's.
std::vector<report::Column<WaterfallLine>> waterfall_columns() {
  using Line = WaterfallLine;
  std::vector<report::Column<Line>> all = {
      {"experiment", "", "the experiment's name in the config", [](const Line& line) { return line.cell->experiment; }},
      {"cell", "1", "number in the experiment's grid", [](const Line& line) { return std::to_string(line.index); }}};
  const auto& step = waterfall_step_columns();
  all.insert(all.end(), step.begin(), step.end());
  return all;
}

}  // namespace

std::string data_csv(const std::vector<Row>& rows) {
  std::vector<std::string> axes = spec::axes_of(rows);
  // these have columns of their own
  std::erase_if(axes, [](const std::string& axis) { return axis == "seed" || axis == "rounds"; });
  std::size_t positions = 0;
  for (const Row& row : rows) positions = std::max(positions, row.counts.accepted.size());
  std::vector<report::Column<Row>> all = cell_columns();
  const std::vector<report::Column<Row>> of_axes = axis_columns<Row>(axes);
  all.insert(all.end(), of_axes.begin(), of_axes.end());
  for (const report::Column<Row>& column : columns()) {
    if (column.text) {
      all.push_back(column);
    } else {
      for (std::size_t i = 0; i < positions; ++i)
        all.push_back({fmt::format("accepted_pos_{}", i + 1), column.unit, column.meaning,
                       [i](const Row& r) { return i < r.counts.accepted.size() ? std::to_string(r.counts.accepted[i]) : ""; }});
    }
  }
  return report::csv(all, rows);
}

const std::vector<report::Column<WaterfallLine>>& waterfall_step_columns() {
  using Line = WaterfallLine;
  static const std::vector<report::Column<Line>> list = {
      {"step", "", "the part of a round that the step adds", [](const Line& line) { return line.step.name; }},
      {"ms", "ms", "time of that part in a round", [](const Line& line) { return report::csv_real(1e3 * line.step.seconds); }},
      {"speedup_after", "1", "speedup with this part and all parts before it; in the last line the speedup",
       [](const Line& line) { return report::csv_real(line.step.after); }}};
  return list;
}

std::string waterfall_csv(const std::vector<Row>& rows) {
  std::vector<WaterfallLine> lines;
  for (const Row& row : rows)
    if (in_seconds(*row.cell))
      for (cost::WaterfallStep& step : cost::waterfall(row.round_time(), row.tokens_per_round()))
        lines.push_back({row.cell, row.cell->index, 0, std::move(step)});
  return lines.empty() ? "" : report::csv(waterfall_columns(), lines);
}

std::vector<report::FileInfo> described_files() {
  std::vector<report::ColumnInfo> data = report::column_infos(cell_columns());
  const std::vector<report::ColumnInfo> figures = report::column_infos(columns());
  data.insert(data.end(), figures.begin(), figures.end());
  return {
      {"data.csv", data,
       "`seed` is followed by one column per sweep axis (its path); `accepted_pos_i` stands for one column per draft position."},
      {"waterfall.csv of run", report::column_infos(waterfall_columns()), ""}};
}

}  // namespace specsim::judge
