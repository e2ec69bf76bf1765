#include "sim/answers/plan/acceptance_curve.h"

#include "sim/experiments/judge/prediction.h"
#include "sim/experiments/run/runner.h"
#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/token.h"
#include "sim/rounds/families/acceptance_record.h"
#include "sim/rounds/theory/round_distribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace specsim::plan {

namespace {

constexpr std::size_t kParts = 32;

AcceptanceCurve from_rates(std::string source, const std::vector<double>& rates, int longest) {
  AcceptanceCurve curve;
  curve.source = std::move(source);
  curve.measured = static_cast<int>(rates.size());
  curve.tokens_per_round = {1.0};
  curve.full_rate = {1.0};
  for (int k = 1; k <= longest; ++k) {
    const double rate = rates[std::min<std::size_t>(static_cast<std::size_t>(k), rates.size()) - 1];
    curve.full_rate.push_back(curve.full_rate.back() * rate);
    curve.tokens_per_round.push_back(curve.tokens_per_round.back() + curve.full_rate.back());
  }
  return curve;
}

// Whole rounds of a request with `draft_length` drafted tokens per round, and their emitted tokens; expectations for overlaps.
struct Walk {
  double rounds = 0.0;
  double emitted = 0.0;
  double full = 0.0;
};

// Adds the next draft length's figures, computed from those of the parts.
void add_draft_length(AcceptanceCurve& curve, const std::vector<Walk>& parts) {
  Walk all;
  for (const Walk& part : parts) {
    all.rounds += part.rounds;
    all.emitted += part.emitted;
    all.full += part.full;
  }
  const double ratio = all.rounds > 0.0 ? all.emitted / all.rounds : 1.0;
  curve.tokens_per_round.push_back(ratio);
  curve.full_rate.push_back(all.rounds > 0.0 ? all.full / all.rounds : 0.0);
  const double total = std::max(all.rounds, 1.0);
  const auto n = static_cast<double>(parts.size());
  double squares = 0.0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const double share = parts[p].rounds / total;
    squares += share * share;
    const double own = (parts[p].emitted - ratio * parts[p].rounds) / total;
    curve.parts[p].push_back(ratio + (share < 1.0 ? own * (n - 1.0) / (1.0 - share) : 0.0));
  }
  // Kish's effective number of parts, less one; the minimum over draft lengths.
  const double freedom = squares > 0.0 ? 1.0 / squares - 1.0 : 0.0;
  if (!(curve.freedom <= freedom)) curve.freedom = freedom;
}

void end_parts(AcceptanceCurve& curve) {
  constexpr std::size_t kFewest = 5;
  curve.sampled = true;
  if (curve.parts.size() < kFewest) curve.parts.clear();
}

Walk walk_accepted(const families::AcceptanceRecord& request, int draft_length) {
  Walk walk;
  // Rounds that the end could cut are not started. Omitting only the rounds that it does cut would omit the longest ones.
  for (const int accepted : families::walked_rounds(request, draft_length)) {
    walk.rounds += 1.0;
    walk.emitted += accepted + 1.0;
    if (accepted == draft_length) walk.full += 1.0;
  }
  return walk;
}

// Recorded rounds, each cut to `draft_length`; rounds that drafted less are omitted.
Walk walk_rounds(const families::AcceptanceRecord& request, int draft_length) {
  Walk walk;
  for (std::size_t i = 0; i < request.accepted.size(); ++i) {
    if (request.drafted[i] < draft_length) continue;
    walk.rounds += 1.0;
    walk.emitted += std::min(request.accepted[i], draft_length) + 1.0;
    if (request.accepted[i] >= draft_length) walk.full += 1.0;
  }
  return walk;
}

Walk walk_overlaps(const families::AcceptanceRecord& request, int draft_length) {
  Walk walk;
  const std::size_t size = request.overlap.size();
  std::vector<double> starts(size + 1, 0.0);  // probability that a round starts at this position
  starts[0] = 1.0;
  for (std::size_t at = 0; at + static_cast<std::size_t>(draft_length) < size; ++at) {
    double reached = starts[at];
    for (int j = 0; j <= draft_length && reached > 0.0; ++j) {
      // place of the final token if the round stops after j accepted tokens
      const std::size_t last = at + static_cast<std::size_t>(j);
      const double goes_on = j < draft_length ? request.overlap[last] : 0.0;
      const double stops = reached * (1.0 - goes_on);
      walk.rounds += stops;
      walk.emitted += stops * (j + 1.0);
      if (j == draft_length) walk.full += stops;
      starts[last + 1] += stops;
      reached *= goes_on;
    }
  }
  return walk;
}

// Whether the overlaps are outcomes, written as probabilities 0 and 1.
bool all_outcomes(const std::vector<families::AcceptanceRecord>& records) {
  return std::all_of(records.begin(), records.end(), [](const families::AcceptanceRecord& record) {
    return std::all_of(record.overlap.begin(), record.overlap.end(), [](double x) { return x == 0.0 || x == 1.0; });
  });
}

// The curve of recorded requests, at least one and all of one form. `source` is their name in messages.
AcceptanceCurve record_curve(const std::vector<families::AcceptanceRecord>& requests, const std::string& source, int longest) {
  using families::RecordForm;
  const RecordForm form = requests[0].form;
  std::size_t positions = 0;
  std::size_t most = 0;
  for (const families::AcceptanceRecord& request : requests) {
    const std::size_t size = form == RecordForm::overlap ? request.overlap.size() : request.accepted.size();
    positions += size;
    most = std::max(most, size);
    if (form != RecordForm::overlap) longest = std::min(longest, request.draft_length);
  }
  if (form != RecordForm::rounds) {
    if (most < 2)
      throw BadInput({source, 0, 0},
                     "no request has more than one position, allowed: longer ones, because a round at draft length 1 needs two");
    longest = static_cast<int>(std::min(static_cast<std::size_t>(longest), most - 1));
  }
  AcceptanceCurve curve;
  if (form == RecordForm::rounds)
    curve.source =
        fmt::format("record of {} requests, {} rounds ({}), valid for draft length {}; shorter ones use the same rounds, cut",
                    requests.size(), positions, source, longest);
  else
    curve.source =
        fmt::format("{} trace of {} requests, {} positions ({}), valid for draft lengths up to {}",
                    form == RecordForm::overlap ? "overlap" : "acceptance", requests.size(), positions, source, longest);
  if (form == RecordForm::overlap && all_outcomes(requests))
    curve.source +=
        ", but outcomes without their depth: if acceptance falls with depth, long drafts look better than they are "
        "(a record of accepted prefixes or of rounds keeps it)";
  curve.measured = longest;
  const std::size_t parts = std::min(kParts, requests.size());
  std::vector<std::vector<Walk>> walks(parts, std::vector<Walk>(static_cast<std::size_t>(longest) + 1));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (int k = 0; k <= longest; ++k) {
      const Walk one = form == RecordForm::overlap  ? walk_overlaps(requests[i], k)
                       : form == RecordForm::rounds ? walk_rounds(requests[i], k)
                                                    : walk_accepted(requests[i], k);
      Walk& sum = walks[i % parts][static_cast<std::size_t>(k)];
      sum.rounds += one.rounds;
      sum.emitted += one.emitted;
      sum.full += one.full;
    }
  }
  curve.parts.assign(parts, {});
  for (std::size_t k = 0; k <= static_cast<std::size_t>(longest); ++k) {
    std::vector<Walk> own;
    for (std::size_t p = 0; p < parts; ++p) own.push_back(walks[p][k]);
    add_draft_length(curve, own);
  }
  end_parts(curve);
  return curve;
}

}  // namespace

double equivalent_alpha(double tokens_per_round, int draft_length) {
  return bisect(0.0, 1.0, [&](double alpha) { return theory::tokens_per_round(alpha, draft_length) < tokens_per_round; })
      .middle();
}

AcceptanceCurve AcceptanceCurve::at(double context) const {
  if (by_context.empty()) return *this;
  AcceptanceCurve own = from_rates(source, spec::rates_at(by_context, context), longest());
  own.measured = measured;
  own.by_context = by_context;
  own.recorded_target = recorded_target;
  own.recorded_draft = recorded_draft;
  return own;
}

void AcceptanceCurve::end_at(int most) {
  SPECSIM_CHECK(most >= 1, "{} draft tokens at most", most);
  const auto size = std::min(tokens_per_round.size(), static_cast<std::size_t>(most) + 1);
  tokens_per_round.resize(size);
  full_rate.resize(size);
  for (std::vector<double>& part : parts) part.resize(size);
}

AcceptanceCurve constant_acceptance(double alpha, int longest) {
  AcceptanceCurve curve = from_rates(fmt::format("alpha {:.4g} at every position", alpha), {alpha}, longest);
  curve.measured = longest;
  return curve;
}

AcceptanceCurve conditional_acceptance(const std::vector<double>& rates, int longest) {
  return from_rates(fmt::format("conditional rates {:.4g}", fmt::join(rates, ", ")), rates, longest);
}

AcceptanceCurve context_acceptance(std::vector<spec::ContextRates> by_context, int longest) {
  std::string source = "rates by position and context, interpolated:";
  std::size_t positions = kMaxDraftLength;
  for (const spec::ContextRates& one : by_context) {
    source += fmt::format(" {:.4g} at {:g} tokens;", fmt::join(one.rates, ", "), one.context);
    positions = std::min(positions, one.rates.size());
  }
  source.pop_back();
  AcceptanceCurve curve = from_rates(std::move(source), by_context.front().rates, longest);
  curve.measured = static_cast<int>(positions);
  curve.by_context = std::move(by_context);
  return curve;
}

std::vector<double> conditional_rates(const std::vector<double>& rates, const Location& where) {
  std::vector<double> conditional;
  double before = 1.0;
  for (const double rate : rates) {
    if (rate > before)
      throw BadInput(
          where,
          fmt::format(
              "{:g} after {:g}, allowed: rates over all rounds, which cannot rise from one position to the next (rates over the "
              "rounds that reach a position can; give these by --conditional-rates, or --alphas of specsim theory)",
              rate, before));
    conditional.push_back(before > 0.0 ? rate / before : 0.0);
    before = rate;
  }
  return conditional;
}

AcceptanceCurve unconditional_acceptance(const std::vector<double>& rates, int longest, const Location& where) {
  return from_rates(fmt::format("rates of all rounds {:.4g}", fmt::join(rates, ", ")), conditional_rates(rates, where), longest);
}

AcceptanceCurve length_acceptance(double mean_length, int draft_length, int longest, const Location& where) {
  if (!(mean_length >= 1.0 && mean_length <= draft_length + 1.0))
    throw BadInput(where, fmt::format("{:g}, allowed at draft length {}: 1 to {} (the target's own token is counted)",
                                      mean_length, draft_length, draft_length + 1));
  const double alpha = equivalent_alpha(mean_length, draft_length);
  AcceptanceCurve curve = constant_acceptance(alpha, longest);
  curve.source = fmt::format("mean acceptance length {:.4g} at draft length {}, as alpha {:.4f} at every position", mean_length,
                             draft_length, alpha);
  curve.measured = draft_length;
  return curve;
}

AcceptanceCurve rate_acceptance(double rate, int draft_length, int longest) {
  AcceptanceCurve curve = length_acceptance(1.0 + rate * draft_length, draft_length, longest);
  curve.source = fmt::format(
      "{:.4g} of the tokens of {} drafted per round, as alpha {:.4f} at every position (if every round drafted {}: "
      "a confidence threshold such as llama.cpp's p-min drafts fewer, and makes this too high)",
      rate, draft_length, curve.equivalent_alpha(1), draft_length);
  return curve;
}

AcceptanceCurve trace_acceptance(const std::string& path, int longest) {
  using families::RecordForm;
  Diagnostics diagnostics;
  const std::vector<families::AcceptanceRecord> requests = families::read_acceptance_records(
      path, {path, 0, 0}, "", {RecordForm::accepted, RecordForm::rounds, RecordForm::overlap}, diagnostics);
  diagnostics.throw_if_any();
  return record_curve(requests, path, longest);
}

AcceptanceCurve overlap_acceptance(const std::vector<std::vector<double>>& overlaps, const std::string& source, int longest) {
  std::vector<families::AcceptanceRecord> requests;
  for (const std::vector<double>& request : overlaps) {
    if (request.empty()) continue;
    requests.emplace_back();
    requests.back().overlap = request;
  }
  if (requests.empty()) throw BadInput({source, 0, 0}, "no request with a judged position, allowed: at least one");
  return record_curve(requests, source, longest);
}

AcceptanceCurve simulated_acceptance(const spec::Cell& cell, int longest, std::uint64_t rounds) {
  AcceptanceCurve curve;
  curve.measured = longest;
  if (!cell.drafts_chains() || cell.policy() != nullptr)
    throw BadInput(cell.places.drafter_kind, "a plan over draft lengths for drafter " + cell.block()->drafter.name() +
                                                 (cell.policy() != nullptr ? " with a policy" : "") +
                                                 ", allowed: drafter chain without one");
  spec::Cell own = spec::with_draft_length(cell, longest);
  own.rounds = rounds;
  const decode::Prepared tables = run::prepare_cell(own, nullptr, true);
  for (int k = 0; k <= longest; ++k) {
    own = spec::with_draft_length(std::move(own), k);
    const decode::Simulator simulator(spec::plan_of(own), tables, spec::draw_key(own), k, own.sequence_rounds);
    const std::uint64_t chunks = (own.work() + simulator.chunk_size() - 1) / simulator.chunk_size();
    if (k == 0) curve.parts.resize(std::min<std::uint64_t>(kParts, chunks));
    std::vector<decode::Counts> parts(curve.parts.size(), simulator.empty_counts());
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) simulator.run(chunk, own.work(), parts[chunk % parts.size()]);
    std::vector<Walk> walks;
    for (const decode::Counts& part : parts) {
      const auto whole = static_cast<double>(part.rounds);
      // The rate over all rounds, including those that a request's end cut short.
      const double full = k == 0 ? whole
                                 : whole * static_cast<double>(part.accepted.back()) /
                                       std::max(1.0, static_cast<double>(part.rounds + part.cut_rounds));
      walks.push_back({whole, static_cast<double>(part.emitted), full});
    }
    add_draft_length(curve, walks);
  }
  end_parts(curve);
  curve.source =
      fmt::format("the config's distributions, simulated: alpha {:.4f} at the first position", curve.tokens_per_round[1] - 1.0);
  return curve;
}

AcceptanceCurve predicted_acceptance(const spec::Cell& cell, int longest) {
  AcceptanceCurve curve;
  curve.measured = longest;
  if (cell.judges_blocks()) return {};  // its theory covers one draft length only
  spec::Cell own = cell;
  const judge::DistributionFacts facts = judge::gather_facts(own, spec::plan_of(own), nullptr);
  curve.tokens_per_round = {1.0};
  curve.full_rate = {1.0};
  for (int k = 1; k <= longest; ++k) {
    own = spec::with_draft_length(std::move(own), k);
    const judge::Prediction prediction = judge::predict_exact(own, facts, own.work());
    if (!prediction.known) return {};
    curve.tokens_per_round.push_back(prediction.tokens_per_round);
    // With several strata their shares of rounds are unknown here. The mean rate suffices for the token to catch up on.
    curve.full_rate.push_back(prediction.accepted_distribution.size() == 1 ? prediction.accepted_distribution[0].accepted.back()
                                                                           : std::pow(prediction.alpha, k));
  }
  curve.source =
      fmt::format("the config's distributions, by theory: alpha {:.4f} at the first position", curve.tokens_per_round[1] - 1.0);
  return curve;
}

}  // namespace specsim::plan
