#include "sim/serving/logs/findings.h"

#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/math/quantiles.h"
#include "sim/serving/logs/line_scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::logs {

namespace {

constexpr std::size_t kFewestLines = 5;  // the spread of fewer lines gives no interval
constexpr double kNormal95 = 1.959964;   // two-sided
constexpr double kSignificance = 0.05;   // level at which a constant alpha is rejected

// Standard error of sum(x) / sum(n) over lines as independent parts, by the linear expansion of the ratio; and the number of
// lines that count.
struct Spread {
  double error = 0.0;
  std::size_t parts = 0;
};
template <class Numerator, class Denominator>
Spread spread_of(const std::vector<Sample>& samples, const Numerator& numerator, const Denominator& denominator) {
  double above = 0.0;
  double below = 0.0;
  Spread spread;
  for (const Sample& one : samples) {
    if (denominator(one) <= 0.0) continue;
    above += numerator(one);
    below += denominator(one);
    ++spread.parts;
  }
  if (spread.parts < 2) return spread;
  double squares = 0.0;
  for (const Sample& one : samples) {
    if (denominator(one) <= 0.0) continue;
    const double off = numerator(one) - above / below * denominator(one);
    squares += off * off;
  }
  const auto parts = static_cast<double>(spread.parts);
  spread.error = std::sqrt(squares * parts / (parts - 1.0)) / below;
  return spread;
}

// The interval of a figure from the larger of two errors: that of independent trials (0: not available) and that of the lines'
// spread. `ratio`: variance of the lines over that of independent trials.
struct Interval {
  double half = std::numeric_limits<double>::quiet_NaN();
  bool by_lines = false;
  double ratio = 1.0;
};
Interval wider(double trial_error, const Spread& spread) {
  Interval interval;
  if (trial_error > 0.0) interval.half = kNormal95 * trial_error;
  if (spread.parts < kFewestLines) return interval;
  const double half = math::student_t_half_width(0.95, static_cast<double>(spread.parts) - 1.0) * spread.error;
  if (trial_error > 0.0) interval.ratio = std::max(1.0, spread.error * spread.error / (trial_error * trial_error));
  if (trial_error > 0.0 && half <= interval.half) return interval;
  interval.half = half;
  interval.by_lines = true;
  return interval;
}

// `half`: half width; NaN if there is no interval.
Figure figure(double value, double half, double least, double most) {
  if (std::isnan(half)) return {value};
  return {value, std::max(least, value - half), std::min(most, value + half)};
}

// Whether conditional rates differ by more than chance. `ratio`: variance of the trials over that of independent ones.
Check constant_alpha(const std::vector<double>& reached, const std::vector<double>& accepted, double ratio) {
  double trials = 0.0;
  double hits = 0.0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    trials += reached[i];
    hits += accepted[i];
  }
  const double alpha = hits / trials;
  double square = 0.0;
  int freedom = -1;
  std::vector<std::string> rates;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] <= 0.0) continue;
    rates.push_back(fmt::format("{:.3f}", accepted[i] / reached[i]));
    const double off = accepted[i] - alpha * reached[i];
    if (alpha > 0.0 && alpha < 1.0) square += off * off / (reached[i] * alpha * (1.0 - alpha));
    ++freedom;
  }
  Check check{"one alpha for all positions", true, ""};
  if (freedom < 1 || alpha <= 0.0 || alpha >= 1.0) {
    check.told = "nothing to compare";
    return check;
  }
  const double chance = math::chi_squared_tail(square / ratio, freedom);
  check.holds = chance >= kSignificance;
  check.note = true;
  check.told = fmt::format("given that they are reached, positions accept {}: {}", fmt::join(rates, ", "),
                           check.holds ? fmt::format("the differences are within chance (p = {:.2g})", chance)
                                       : fmt::format("use the rates by position, not one alpha (p {})",
                                                     chance < 1e-6 ? "< 1e-6" : fmt::format("= {:.2g}", chance)));
  if (!check.holds && accepted.back() * reached.front() > accepted.front() * reached.back())
    check.told += "; rates that rise with depth are a mix of easy and hard text";
  return check;
}

class Finder {
 public:
  Finder(const ReportedAcceptance& acceptance, int draft_length) : all_(acceptance) { found_.draft_length = draft_length; }

  Findings find() {
    find_draft_length();
    found_.rounds_counted = all_.rounds_counted;
    found_.rounds = all_.rounds;
    if (all_.drafted > 0.0 && all_.rounds > 0.0) found_.drafted_per_round = all_.drafted / all_.rounds;
    find_position_rates();
    find_mean_length();
    find_rate();
    find_alpha();
    check_printed();
    check_positions();
    check_length();
    if (!found_.position_rates.empty() && all_.drafts_whole)
      found_.checks.push_back(constant_alpha(reached_, all_.accepted_at, ratio_));
    check_drafts();
    return std::move(found_);
  }

 private:
  void find_draft_length() {
    const int said = found_.draft_length;
    const int told = all_.draft_length > 0 ? all_.draft_length : static_cast<int>(all_.accepted_at.size());
    if (said > 0 && told > 0 && (all_.draft_length > 0 ? said != told : told > said))
      found_.checks.push_back({"draft length", false,
                               fmt::format("the lines have draft length {}, but --at-draft-length is {}{}", told, said,
                                           all_.draft_length > 0 ? ", which is ignored" : "")});
    if (all_.draft_length > 0) found_.draft_length = all_.draft_length;
    if (found_.draft_length == 0 && !all_.accepted_at.empty()) found_.draft_length = static_cast<int>(all_.accepted_at.size());
    if (found_.draft_length > 0 || all_.rounds <= 0.0 || !all_.rounds_counted) return;
    const double length = std::ceil(all_.drafted / all_.rounds - 1e-9);
    if (length >= 1.0 && length <= static_cast<double>(kMostPositions) && short_of(length) <= last_drafts(length))
      found_.draft_length = static_cast<int>(length);
  }

  // Draft tokens missing because rounds drafted less than the full length, and how many may be missing from the last drafts of
  // all answers.
  double short_of(double length) const { return length * all_.rounds - all_.drafted; }
  double last_drafts(double length) const { return 1e-6 + all_.answers * (length - 1.0); }

  void find_position_rates() {
    if (all_.accepted_at.empty() || all_.rounds <= 0.0) return;
    double before = all_.rounds;
    double highest = 1.0;
    for (const double accepted : all_.accepted_at) {
      highest = std::min(highest, accepted / all_.rounds);  // sums of rounded shares may rise slightly
      found_.position_rates.push_back(highest);
      found_.conditional_rates.push_back(before > 0.0 ? std::min(1.0, accepted / before) : 0.0);
      reached_.push_back(before);
      before = accepted;
    }
  }

  void find_mean_length() {
    if (all_.rounds <= 0.0 || (all_.accepted <= 0.0 && all_.alone_accepted > 0.0)) return;
    const double length = 1.0 + all_.accepted / all_.rounds;
    double error = 0.0;
    if (!found_.position_rates.empty() && all_.rounds_counted) {
      // E[A] = sum of P(A >= k), E[A^2] = sum of (2k - 1) P(A >= k).
      double square = 0.0;
      for (std::size_t i = 0; i < found_.position_rates.size(); ++i)
        square += (2.0 * static_cast<double>(i) + 1.0) * found_.position_rates[i];
      error = std::sqrt(std::max(0.0, square - (length - 1.0) * (length - 1.0)) / all_.rounds);
    }
    const Spread spread = spread_of(
        all_.samples, [](const Sample& one) { return one.accepted; }, [](const Sample& one) { return one.rounds; });
    const Interval interval = wider(error, spread);
    ratio_ = interval.ratio;
    found_.mean_length = figure(length, interval.half, 1.0, found_.draft_length > 0 ? found_.draft_length + 1.0 : 1e9);
    if (!std::isnan(interval.half))
      found_.interval_from =
          interval.by_lines ? fmt::format("the spread over {}", plural(spread.parts, "line")) : "independent rounds";
  }

  void find_rate() {
    if (all_.drafted <= 0.0 || all_.accepted <= 0.0) return;
    found_.acceptance_rate.value = all_.accepted / all_.drafted;
    if (std::isnan(found_.mean_length.low) || found_.drafted_per_round <= 0.0) return;
    found_.acceptance_rate.low = (found_.mean_length.low - 1.0) / found_.drafted_per_round;
    found_.acceptance_rate.high = std::min(1.0, (found_.mean_length.high - 1.0) / found_.drafted_per_round);
  }

  void find_alpha() {
    if (all_.alone_accepted > 0.0 && all_.drafted > 0.0) {
      const double alpha = all_.alone_accepted / all_.drafted;
      found_.alpha = figure(alpha, kNormal95 * std::sqrt(alpha * (1.0 - alpha) / all_.drafted), 0.0, 1.0);
      found_.alpha_from = "draft tokens judged independently of each other";
      return;
    }
    if (!found_.position_rates.empty() && all_.drafts_whole) {
      const double judged = all_.accepted + all_.rounds - all_.accepted_at.back();
      if (judged <= 0.0) return;
      const double alpha = all_.accepted / judged;
      const Spread spread = spread_of(
          all_.samples, [](const Sample& one) { return one.judged > 0.0 ? one.accepted : 0.0; },
          [](const Sample& one) { return one.judged; });
      const Interval interval = wider(std::sqrt(alpha * (1.0 - alpha) / judged), spread);
      found_.alpha = figure(alpha, interval.half, 0.0, 1.0);
      found_.alpha_from = "accepted / judged draft tokens, without those after a rejection";
      return;
    }
    if (!found_.mean_length.known() || found_.draft_length == 0) return;
    const auto alpha = [&](double length) {
      return alpha_of(std::clamp(length, 1.0, found_.draft_length + 1.0), found_.draft_length);
    };
    found_.alpha.value = alpha(found_.mean_length.value);
    if (!std::isnan(found_.mean_length.low)) {
      found_.alpha.low = alpha(found_.mean_length.low);
      found_.alpha.high = alpha(found_.mean_length.high);
    }
    found_.alpha_from =
        fmt::format("the acceptance length, on the assumption that all {} positions have the same rate", found_.draft_length);
  }

  void check_printed() {
    if (all_.contradictions == 0)
      found_.checks.push_back({"printed figures", true,
                               fmt::format("follow from each other on {}",
                                           all_.lines == 1 ? "the one line" : fmt::format("all {} lines", all_.lines))});
    else
      found_.checks.push_back(
          {"printed figures", false,
           fmt::format("{} of {} lines contradict themselves; {}", all_.contradictions, all_.lines, all_.first_contradiction)});
  }

  // A position is only reached through the one before it.
  void check_positions() {
    const double rounding = 0.002 * all_.rounds + static_cast<double>(all_.lines);
    for (std::size_t i = 1; i < all_.accepted_at.size(); ++i)
      if (all_.accepted_at[i] > all_.accepted_at[i - 1] + rounding) {
        found_.checks.push_back({"positions", false,
                                 fmt::format("position {} is accepted in {} rounds, position {} before it in {}", i + 1,
                                             all_.accepted_at[i], i, all_.accepted_at[i - 1])});
        return;
      }
  }

  void check_length() {
    const double most = 1.0 + (found_.draft_length > 0 ? found_.draft_length : static_cast<double>(kMostPositions));
    if (found_.mean_length.known() && found_.mean_length.value > most + 0.0051)
      found_.checks.push_back(
          {"acceptance length", false,
           fmt::format("{:.4g} tokens per round, above the {:.0f} that {} can emit", found_.mean_length.value, most,
                       found_.draft_length > 0 ? fmt::format("draft length {}", found_.draft_length) : "any server's draft")});
  }

  void check_drafts() {
    if (found_.draft_length == 0 || found_.drafted_per_round <= 0.0) return;
    const double mean = found_.drafted_per_round;
    if (mean > found_.draft_length + 1e-9) {
      found_.checks.push_back({"draft length", false,
                               fmt::format("{:.4g} draft tokens per round, above the draft length {}: a tree, or another length",
                                           mean, found_.draft_length)});
      return;
    }
    const double lacks = short_of(found_.draft_length);
    const bool whole = lacks <= last_drafts(found_.draft_length);
    found_.checks.push_back({"whole drafts", whole,
                             lacks <= 1e-6 ? fmt::format("every round drafted {}", found_.draft_length)
                             : whole
                                 ? fmt::format("every round drafted {} except for the last ones of answers", found_.draft_length)
                                 : fmt::format("{:.4g} draft tokens per round of at most {}: rates of later positions include "
                                               "rounds with shorter drafts, and underestimate the draft",
                                               mean, found_.draft_length),
                             true});
  }

  const ReportedAcceptance& all_;
  Findings found_;
  std::vector<double> reached_;  // rounds that reach each position
  double ratio_ = 1.0;           // lines' variance over that of independent rounds
};

// Ranks a description among others of the same server's drafts.
int richness(const ReportedAcceptance& one) {
  return (one.accepted_at.empty() ? 0 : 4) + (one.rounds > 0.0 && one.rounds_counted ? 2 : 0) + (one.accepted > 0.0 ? 1 : 0);
}

}  // namespace

double length_of(double alpha, int draft_length) {
  double sum = 1.0;
  double power = 1.0;
  for (int i = 0; i < draft_length; ++i) sum += power *= alpha;
  return sum;
}

double alpha_of(double length, int draft_length) {
  if (length <= 1.0) return 0.0;
  return bisect(0.0, 1.0, [&](double alpha) { return length_of(alpha, draft_length) < length; }).middle();
}

Findings find(const ReportedAcceptance& acceptance, int draft_length) { return Finder(acceptance, draft_length).find(); }

Check agreement(const ReportedAcceptance& one, const Findings& of_one, const ReportedAcceptance& other,
                const Findings& of_other) {
  Check check{fmt::format("{} and {}", describe(one.kind), describe(other.kind)), true, "nothing in common to compare"};
  const bool lengths = of_one.mean_length.known() && of_other.mean_length.known();
  const Figure& a = lengths ? of_one.mean_length : of_one.acceptance_rate;
  const Figure& b = lengths ? of_other.mean_length : of_other.acceptance_rate;
  if (!a.known() || !b.known()) return check;
  const auto half = [](const Figure& x) { return std::isnan(x.high) ? 0.0 : 0.5 * (x.high - x.low); };
  const double allowed = std::max(std::hypot(half(a), half(b)), 0.02 * a.value);
  check.holds = std::abs(a.value - b.value) <= allowed;
  check.told = fmt::format("{} {:.3f} and {:.3f}{}", lengths ? "mean acceptance lengths" : "acceptance rates", a.value, b.value,
                           check.holds ? "" : ": they are not of the same rounds");
  return check;
}

std::vector<std::size_t> distinct(const std::vector<ReportedAcceptance>& found) {
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto same = std::find_if(best.begin(), best.end(), [&](std::size_t j) {
      const ReportedAcceptance& a = found[i];
      const ReportedAcceptance& b = found[j];
      if (server_name(a.kind) != server_name(b.kind)) return false;
      // Lines of one kind were kept separate because their drafts differ.
      if (a.kind == b.kind) return false;
      return a.draft_length == b.draft_length || a.draft_length == 0 || b.draft_length == 0;
    });
    if (same == best.end())
      best.push_back(i);
    else if (richness(found[i]) > richness(found[*same]))
      *same = i;
  }
  return best;
}

std::string plan_options(const Findings& findings) {
  if (!findings.position_rates.empty()) {
    std::vector<std::string> rates;
    for (const double rate : findings.position_rates) rates.push_back(fmt::format("{:.4g}", rate));
    return fmt::format("--position-rates {}", fmt::join(rates, ","));
  }
  if (findings.draft_length > 0 && findings.mean_length.known())
    return fmt::format("--mean-acceptance-length {:.4g} --at-draft-length {}", findings.mean_length.value, findings.draft_length);
  if (findings.alpha.known()) return fmt::format("--alpha {:.4g}", findings.alpha.value);
  if (findings.draft_length > 0 && findings.acceptance_rate.known())
    return fmt::format("--acceptance-rate {:.4g} --at-draft-length {}", findings.acceptance_rate.value, findings.draft_length);
  return "";
}

std::string table_file(const Findings& findings) {
  std::string figures;
  if (!findings.position_rates.empty()) {
    std::vector<std::string> rates;
    for (const double rate : findings.position_rates) rates.push_back(fmt::format("{:.4g}", rate));
    figures = fmt::format("rates: [{}]", fmt::join(rates, ", "));
  } else if (findings.draft_length > 0 && findings.mean_length.known()) {
    figures = fmt::format("mean_acceptance_length: {:.4g}, draft_length: {}", findings.mean_length.value, findings.draft_length);
  }
  return figures.empty() ? "" : fmt::format("{{temperature: T, selection: argmax, {}}}", figures);
}

std::vector<AtContext> by_context(const ReportedAcceptance& acceptance) {
  std::map<int, AtContext> classes;
  for (const AtContext& one : acceptance.contexts) {
    AtContext& own = classes[static_cast<int>(std::floor(std::log2(std::max(one.context, 1.0))))];
    own.context += one.rounds * one.context;
    own.rounds += one.rounds;
    own.accepted += one.accepted;
  }
  std::vector<AtContext> list;
  for (auto& [power, own] : classes) {
    own.context /= own.rounds;
    list.push_back(own);
  }
  return list;
}

std::string context_table(const std::vector<AtContext>& classes, int draft_length) {
  if (classes.size() < 2 || draft_length < 1) return "";
  std::vector<std::string> entries;
  for (const AtContext& one : classes)
    entries.push_back(fmt::format("{{context: {:.0f}, mean_acceptance_length: {:.4g}, draft_length: {}}}", one.context,
                                  1.0 + one.accepted / one.rounds, draft_length));
  return fmt::format("{{by_context: [{}]}}", fmt::join(entries, ", "));
}

std::string serve_options(const Findings& findings) {
  const std::string length = findings.draft_length > 0 ? fmt::format(" --policy fixed:{}", findings.draft_length) : "";
  if (!findings.position_rates.empty()) return plan_options(findings) + length;
  if (findings.alpha.known()) return fmt::format("--alpha {:.4g}", findings.alpha.value) + length;
  return "";
}

}  // namespace specsim::logs
