#include "sim/experiments/audit/report.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace specsim::audit {

namespace {

// Distributions of the text's first tokens, round by round.
class Texts {
 public:
  Texts(const RoundTree& rounds, std::size_t vocab) : nodes_(&rounds.nodes), roots_(&rounds.roots), vocab_(vocab) {}

  // The distribution of the first `tokens` tokens from each start, given those of all smaller lengths. A round that emits
  // nothing loses its probability.
  void extend() {
    const std::size_t tokens = distributions_.size() + 1;
    std::size_t size = 1;
    for (std::size_t i = 0; i < tokens; ++i) size *= vocab_;
    std::vector<std::vector<double>> distributions;
    std::vector<long double> distribution;
    for (const std::size_t root : *roots_) {
      distribution.assign(size, 0.0L);
      add(root, 0, tokens, 1.0L, distribution);
      distributions.emplace_back(distribution.begin(), distribution.end());
    }
    distributions_.push_back(std::move(distributions));
  }
  [[nodiscard]] const std::vector<double>& distribution(std::size_t tokens, std::size_t start) const {
    return distributions_[tokens - 1][start];
  }

 private:
  void add(std::size_t index, std::size_t text, std::size_t missing, long double probability,
           std::vector<long double>& distribution) const {
    if (missing == 0) {
      distribution[text] += probability;
      return;
    }
    const RoundNode& node = (*nodes_)[index];
    for (const RoundNode::Step& step : node.steps)
      add(step.node, text * vocab_ + step.token, missing - 1, probability * step.probability, distribution);
    for (const RoundNode::End& end : node.ends) {
      std::size_t longer = text;
      std::size_t left = missing;
      for (const Token token : end.tokens) {
        if (left == 0) break;
        longer = longer * vocab_ + token;
        --left;
      }
      const long double weight = probability * end.probability;
      if (left == 0) {
        distribution[longer] += weight;
      } else if (left <= distributions_.size()) {  // false if the round emitted nothing
        const std::vector<double>& rest = distributions_[left - 1][end.next_start];
        for (std::size_t i = 0; i < rest.size(); ++i)
          distribution[longer * rest.size() + i] += weight * static_cast<long double>(rest[i]);
      }
    }
  }

  const std::vector<RoundNode>* nodes_;
  const std::vector<std::size_t>* roots_;
  std::size_t vocab_;
  std::vector<std::vector<std::vector<double>>> distributions_;  // [tokens - 1][start][text]
};

// The target's own distribution of a text of `tokens` tokens, in lexicographic order.
std::vector<double> target_texts(const TargetText& text, std::uint32_t context, int tokens) {
  struct Prefix {
    long double probability;
    std::uint32_t context;
  };
  std::vector<Prefix> prefixes = {{1.0L, context}};
  for (int i = 0; i < tokens; ++i) {
    std::vector<Prefix> longer;
    for (const Prefix& prefix : prefixes) {
      const std::vector<double>& target = text.targets[prefix.context];
      for (std::size_t x = 0; x < target.size(); ++x)
        longer.push_back({prefix.probability * static_cast<long double>(target[x]),
                          i + 1 < tokens ? text.next(prefix.context, static_cast<Token>(x)) : 0});
    }
    prefixes = std::move(longer);
  }
  std::vector<double> distribution;
  for (const Prefix& prefix : prefixes) distribution.push_back(static_cast<double>(prefix.probability));
  return distribution;
}

double variation(const std::vector<double>& a, const std::vector<double>& b) {
  long double sum = 0.0L;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<long double>(a[i]) - b[i]);
  return static_cast<double>(sum / 2.0L);
}

// Sums over a round's distribution that predict the simulation's counts.
class Tallies {
 public:
  Tallies(const std::vector<RoundNode>& nodes, AuditStart& start, bool keep_rounds)
      : nodes_(&nodes), start_(&start), keep_rounds_(keep_rounds) {}
  void add(std::size_t index, long double probability) {
    const RoundNode& node = (*nodes_)[index];
    for (const RoundNode::Step& step : node.steps) {
      text_.push_back(step.token);
      add(step.node, probability * step.probability);
      text_.pop_back();
    }
    for (const RoundNode::End& end : node.ends) {
      const long double weight = probability * end.probability;
      const std::size_t emitted = text_.size() + end.tokens.size();
      SPECSIM_CHECK(end.accepted < accepted_.size() && emitted < emitted_.size(), "{} accepted, {} emitted", end.accepted,
                    emitted);
      accepted_[end.accepted] += weight;
      emitted_[emitted] += weight;
      judged_ += weight * static_cast<long double>(end.judged);
      if (keep_rounds_) {
        std::vector<Token> text = text_;
        text.insert(text.end(), end.tokens.begin(), end.tokens.end());
        rounds_[{std::move(text), end.next_start}] += weight;
      }
    }
  }
  void finish(int draft_length) {
    long double accepted = 0.0L;
    long double emitted = 0.0L;
    for (std::size_t j = 0; j < accepted_.size(); ++j) accepted += accepted_[j] * static_cast<long double>(j);
    std::size_t longest = static_cast<std::size_t>(draft_length) + 1;
    for (std::size_t j = 0; j < emitted_.size(); ++j) {
      emitted += emitted_[j] * static_cast<long double>(j);
      if (emitted_[j] > 0.0L) longest = std::max(longest, j);
    }
    start_->accepted_distribution.assign(accepted_.begin(), accepted_.begin() + draft_length + 1);
    start_->emitted_distribution.assign(emitted_.begin(), emitted_.begin() + static_cast<std::ptrdiff_t>(longest) + 1);
    start_->expected_accepted = static_cast<double>(accepted);
    start_->expected_emitted = static_cast<double>(emitted);
    start_->alpha = judged_ > 0.0L ? static_cast<double>(accepted / judged_) : std::numeric_limits<double>::quiet_NaN();
    for (const auto& [round, weight] : rounds_)
      start_->rounds.push_back({round.first, round.second, static_cast<double>(weight)});
  }

 private:
  const std::vector<RoundNode>* nodes_;
  AuditStart* start_;
  bool keep_rounds_;
  std::vector<Token> text_;
  std::array<long double, kMaxEmitted + 1> accepted_{};
  std::array<long double, kMaxEmitted + 1> emitted_{};
  long double judged_ = 0.0L;
  std::map<std::pair<std::vector<Token>, std::uint32_t>, long double> rounds_;
};

}  // namespace

AuditReport report_on(const std::string& verifier, int vocab, int draft_length, const RoundTree& rounds, const TargetText& text,
                      const AuditOptions& options) {
  AuditReport report;
  report.verifier = verifier;
  report.vocab = vocab;
  report.draft_length = draft_length;
  report.rounds_run = rounds.rounds_run;
  const int tokens = draft_length + 1;
  Texts texts(rounds, static_cast<std::size_t>(vocab));
  for (int i = 0; i < tokens; ++i) texts.extend();
  for (std::size_t context = 0; context < text.starts; ++context) {
    AuditStart start;
    start.context = static_cast<std::uint32_t>(context);
    Tallies tallies(rounds.nodes, start, options.keep_rounds);
    tallies.add(rounds.roots[context], 1.0L);
    tallies.finish(draft_length);
    start.first_token = texts.distribution(1, context);
    start.target = text.targets[context];
    start.joint = texts.distribution(static_cast<std::size_t>(tokens), context);
    start.target_joint = target_texts(text, start.context, tokens);
    for (std::size_t i = 0; i < start.joint.size(); ++i) {
      start.largest_difference = std::max(start.largest_difference, std::abs(start.joint[i] - start.target_joint[i]));
      if (start.target_joint[i] == 0.0) start.impossible += start.joint[i];
    }
    start.first_token_variation = variation(start.first_token, start.target);
    start.joint_variation = variation(start.joint, start.target_joint);
    report.largest_difference = std::max(report.largest_difference, start.largest_difference);
    report.first_token_variation = std::max(report.first_token_variation, start.first_token_variation);
    report.joint_variation = std::max(report.joint_variation, start.joint_variation);
    report.impossible = std::max(report.impossible, start.impossible);
    report.most_accepted = std::max(report.most_accepted, start.expected_accepted);
    report.starts.push_back(std::move(start));
  }
  for (std::size_t later = text.starts; later < rounds.roots.size(); ++later) {
    AuditStart start;
    Tallies tallies(rounds.nodes, start, false);
    tallies.add(rounds.roots[later], 1.0L);
    tallies.finish(draft_length);
    report.most_accepted = std::max(report.most_accepted, start.expected_accepted);
  }
  return report;
}

std::string to_text(const AuditReport& report) {
  const AuditStart& first = report.starts.front();
  std::string text;
  const auto line = [&](const std::string& label, const std::string& value) {
    text += fmt::format("{:<38}{}\n", label + ":", value);
  };
  const auto real = [](double x) { return std::isnan(x) ? std::string("none") : fmt::format("{:.12f}", x); };
  const auto small = [](double x) { return x == 0.0 ? std::string("0") : fmt::format("{:.12e}", x); };
  line("verifier", report.verifier);
  line("vocab", fmt::format("{}", report.vocab));
  line("draft length", fmt::format("{}", report.draft_length));
  line("contexts", fmt::format("{}", report.starts.size()));
  line("rounds run", fmt::format("{}", report.rounds_run));
  if (report.starts.size() > 1) text += "\na round that starts in context 0, where sequences start:\n";
  line("alpha", real(first.alpha));
  line("expected accepted", real(first.expected_accepted));
  line("expected emitted", real(first.expected_emitted));
  const auto shown = [](const report::Table& table) { return table.text(output_width()); };
  report::Table accepted({{"accepted"}, {"probability"}}, {.indent = 2});
  for (std::size_t j = 0; j < first.accepted_distribution.size(); ++j)
    accepted.add({std::to_string(j), real(first.accepted_distribution[j])});
  text += "\ndistribution of accepted\n" + shown(accepted);
  report::Table tokens({{"token"}, {"target"}, {"output"}, {"difference"}}, {.indent = 2});
  for (std::size_t x = 0; x < first.target.size(); ++x)
    tokens.add({std::to_string(x), real(first.target[x]), real(first.first_token[x]),
                fmt::format("{:+.2e}", first.first_token[x] - first.target[x])});
  text += "\nfirst token\n" + shown(tokens);
  if (report.starts.size() > 1) {
    report::Table starts({{"context"}, {"alpha"}, {"expected accepted"}, {"expected emitted"}, {"largest difference"}},
                         {.indent = 2});
    for (const AuditStart& start : report.starts)
      starts.add({std::to_string(start.context), real(start.alpha), real(start.expected_accepted), real(start.expected_emitted),
                  fmt::format("{:.2e}", start.largest_difference)});
    text += "\nby the context that a round starts in\n" + shown(starts);
  }
  text += fmt::format("\njoint distribution of the first {} token{}{}\n", report.draft_length + 1,
                      report.draft_length == 0 ? "" : "s", report.starts.size() > 1 ? ", worst start context" : "");
  line("largest difference", small(report.largest_difference));
  line("total variation", small(report.joint_variation));
  line("total variation of the first token", small(report.first_token_variation));
  line("impossible texts", small(report.impossible));
  if (report.lossless())
    text += fmt::format("verdict: lossless to {:.0e}\n", kAuditTolerance);
  else if (report.largest_difference <= kAuditTolerance)
    text += fmt::format("verdict: not lossless: emits what the target cannot, with probability {:.3e}\n", report.impossible);
  else
    text += fmt::format("verdict: not lossless: total variation {:.12f} of the first token, {:.12f} of the first {}\n",
                        report.first_token_variation, report.joint_variation, report.draft_length + 1);
  return text;
}

}  // namespace specsim::audit
