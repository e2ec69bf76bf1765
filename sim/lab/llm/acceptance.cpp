#include "sim/lab/llm/acceptance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace specsim::llm {

namespace {

// The mass of each token that a rule accepts, given the draft distribution. The sum is the probability that the position is
// accepted.
void accepted_masses(const verify::PositionRule& rule, const verify::PositionDistributions& distributions,
                     std::vector<double>& masses) {
  masses.resize(distributions.target.size());
  for (Token x = 0; x < masses.size(); ++x) {
    masses[x] = distributions.drafted[x];
    if (masses[x] == 0.0) continue;
    if (const verify::Odds odds = rule.odds(distributions, x); odds.target < odds.draft) masses[x] *= odds.target / odds.draft;
  }
}

// Adds the acceptance on the tokens of `text` from `first` on to `request`; both models read the text itself.
void add_given_text(RunningMethod& speculation, const Method& method, std::span<const Token> text, std::size_t first,
                    std::size_t distribution_tokens, RequestAcceptance& request) {
  const std::size_t vocab = speculation.target().vocab();
  const std::size_t rows = text.size() - first;
  std::vector<std::vector<double>> distributions;
  for (DistributionSource* source : {&speculation.target(), speculation.draft()}) {
    source->rewind(0, 0);
    prefill(*source, 0, text.first(first - 1));
    const Extension rest{.sequence = 0, .tokens = text.subspan(first - 1, rows), .logit_rows = rows};
    distributions.emplace_back(rows * vocab);
    source->extend({&rest, 1}, distributions.back());
  }
  std::vector<double> draft_model;
  std::vector<double> masses;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<double> target = std::span(distributions[0]).subspan(i * vocab, vocab);
    const std::span<double> drafted = std::span(distributions[1]).subspan(i * vocab, vocab);
    draft_model.assign(drafted.begin(), drafted.end());
    if (method.argmax()) math::point_mass(drafted, math::argmax(drafted));
    const Token emitted = text[first + i];
    accepted_masses(*method.rule->each_position(), {target, drafted, draft_model}, masses);
    request.given_text.push_back(
        std::min(1.0, masses[emitted] / target[emitted]));  // a lossless rule emits tokens with the target's distribution
    if (distribution_tokens > 0) request.distributions.push_back(distribution_classes(target, drafted, distribution_tokens));
  }
}

}  // namespace

DistributionClasses distribution_classes(std::span<const double> target, std::span<const double> draft, std::size_t tokens) {
  std::vector<double> larger(target.size());
  for (std::size_t x = 0; x < larger.size(); ++x) larger[x] = std::max(target[x], draft[x]);
  const std::vector<Token> alone = math::likeliest(larger, tokens);
  std::vector<std::size_t> place(target.size());
  constexpr std::size_t kClasses = 4;
  for (std::size_t x = 0; x < place.size(); ++x)
    place[x] = alone.size() + (target[x] > 4.0 * draft[x]   ? 0U
                               : target[x] > draft[x]       ? 1U
                               : target[x] > draft[x] / 4.0 ? 2U
                                                            : 3U);
  for (std::size_t i = 0; i < alone.size(); ++i) place[alone[i]] = i;
  DistributionClasses distributions{std::vector<double>(alone.size() + kClasses, 0.0),
                                    std::vector<double>(alone.size() + kClasses, 0.0)};
  for (std::size_t x = 0; x < place.size(); ++x) {
    distributions.target[place[x]] += target[x];
    distributions.draft[place[x]] += draft[x];
  }
  return distributions;
}

void Tally::add(const JudgedPosition& position, double expected_of_it) {
  const std::span<const double> target = position.distributions.target;
  const std::span<const double> draft_model = position.distributions.draft_model;
  ++judged;
  if (position.accepted) ++accepted;
  expected += expected_of_it;
  outcome_variance += expected_of_it * (1.0 - expected_of_it);
  target_entropy += math::entropy(target);
  draft_entropy += math::entropy(draft_model);
  double divergence = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x)
    if (target[x] > 0.0) divergence += target[x] * std::log(target[x] / draft_model[x]);
  if (std::isfinite(divergence))
    kl += divergence;
  else
    ++kl_infinite;
}

double Tally::z() const {
  constexpr double kRounding = 1e-9;  // rounding error of the expected value at a position
  const double more = static_cast<double>(accepted) - expected;
  if (outcome_variance > kRounding * static_cast<double>(judged)) return more / std::sqrt(outcome_variance);
  return std::abs(more) > 1e-6 * static_cast<double>(judged) ? std::copysign(INFINITY, more) : 0.0;
}

std::uint64_t MeasuredAcceptance::rounds() const {
  std::uint64_t sum = 0;
  for (const RequestAcceptance& request : requests) sum += request.rounds;
  return sum;
}

double MeasuredAcceptance::tokens_per_round() const {
  double emitted = 0.0;
  for (const RequestAcceptance& request : requests) emitted += static_cast<double>(request.emitted);
  return emitted / static_cast<double>(rounds());
}

double MeasuredAcceptance::tokens_per_round_error() const {
  // The standard error of a ratio of sums over independent requests (the delta method).
  const double ratio = tokens_per_round();
  double squares = 0.0;
  for (const RequestAcceptance& request : requests) {
    const double rest = static_cast<double>(request.emitted) - ratio * static_cast<double>(request.rounds);
    squares += rest * rest;
  }
  const auto n = static_cast<double>(requests.size());
  return std::sqrt(squares * n / (n - 1.0)) / static_cast<double>(rounds());
}

MeasuredAcceptance measure_acceptance(Model& target, Model* draft, const Method& method, const std::vector<Prompt>& prompts,
                                      const AcceptanceRun& run, const std::function<void(double, double)>& progress) {
  MeasuredAcceptance result;
  result.by_depth.resize(static_cast<std::size_t>(run.draft_length));
  result.accepted_counts.resize(static_cast<std::size_t>(run.draft_length) + 1);
  RunningMethod speculation(target, draft, method, method.sampling(run.temperature), 1, run.draft_length,
                            rng::make_key(run.seed, rng::hash_text("acceptance")));
  Decoder& decoder = speculation.decoder();
  const bool traced = method.lossless && method.rule->each_position() != nullptr;
  Tally* first_position = nullptr;
  bool counting = true;
  std::vector<double> masses;
  decoder.observe([&](const JudgedPosition& position) {
    if (!counting) return;
    accepted_masses(*method.rule->each_position(), position.distributions, masses);
    const double expected = std::min(1.0, std::accumulate(masses.begin(), masses.end(), 0.0));
    result.by_depth[static_cast<std::size_t>(position.depth)].add(position, expected);
    if (position.depth == 0 && first_position != nullptr) first_position->add(position, expected);
  });
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t length = prompts[i].tokens.size();
    decoder.start({{prompts[i].tokens, i}});
    first_position = nullptr;
    counting = true;
    RequestAcceptance request;
    request.kind = prompts[i].kind;
    const std::vector<Token>& text = decoder.texts()[0].tokens;
    while (text.size() < length + run.tokens && decoder.fits()) {
      decoder.round();
      ++request.rounds;
      const int accepted = decoder.accepted()[0];
      ++result.accepted_counts[static_cast<std::size_t>(accepted)];
      request.accepted.push_back(accepted);
      request.drafted.push_back(decoder.proposals()[0].tree.height());
      first_position = accepted == run.draft_length ? &result.after_full : &result.after_rejection;
    }
    request.emitted = text.size() - length;
    if (traced && request.emitted > 0) {
      // The record must not depend on where the last round happened to end, since that depends on what it accepted.
      counting = false;
      const std::size_t end =
          std::min(length + run.tokens + static_cast<std::size_t>(run.draft_length), decoder.last_start() + 1);
      while (text.size() < end) decoder.round();
      add_given_text(speculation, method, std::span(text).first(end), length, run.distribution_tokens, request);
    }
    if (request.rounds > 0) result.requests.push_back(std::move(request));
    if (progress) progress(static_cast<double>(i + 1), static_cast<double>(prompts.size()));
  }
  return result;
}

std::string overlap_trace(const MeasuredAcceptance& acceptance) {
  std::string text;
  for (std::size_t i = 0; i < acceptance.requests.size(); ++i)
    text += fmt::format("{{\"request\": {}, \"kind\": \"{}\", \"overlap\": [{:.5g}]}}\n", i, acceptance.requests[i].kind,
                        fmt::join(acceptance.requests[i].given_text, ", "));
  return text;
}

std::string distribution_trace(const MeasuredAcceptance& acceptance) {
  std::string text;
  const auto add = [&](const char* name, const std::vector<DistributionClasses>& positions,
                       std::vector<double> DistributionClasses::*distribution) {
    text += fmt::format(", \"{}\": [", name);
    for (std::size_t i = 0; i < positions.size(); ++i)
      text += fmt::format("{}[{:.5g}]", i == 0 ? "" : ", ", fmt::join(positions[i].*distribution, ", "));
    text += "]";
  };
  for (std::size_t i = 0; i < acceptance.requests.size(); ++i) {
    const RequestAcceptance& request = acceptance.requests[i];
    text += fmt::format("{{\"request\": {}, \"kind\": \"{}\"", i, request.kind);
    add("target", request.distributions, &DistributionClasses::target);
    add("draft", request.distributions, &DistributionClasses::draft);
    text += "}\n";
  }
  return text;
}

std::string rounds_trace(const MeasuredAcceptance& acceptance, int draft_length, bool tree) {
  std::string text;
  for (std::size_t i = 0; i < acceptance.requests.size(); ++i) {
    const RequestAcceptance& request = acceptance.requests[i];
    text += fmt::format("{{\"request\": {}, \"kind\": \"{}\", \"draft_length\": {}, \"rounds\": [{}]", i, request.kind,
                        draft_length, fmt::join(request.accepted, ", "));
    if (std::any_of(request.drafted.begin(), request.drafted.end(), [&](int drafted) { return drafted < draft_length; }))
      text += fmt::format(", \"drafted\": [{}]", fmt::join(request.drafted, ", "));
    text += tree ? ", \"tree\": true}\n" : "}\n";
  }
  return text;
}

}  // namespace specsim::llm
