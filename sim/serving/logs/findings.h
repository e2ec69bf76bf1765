// Figures from the counts of a log: acceptance length, rates by position, alpha with its interval, and checks of their
// consistency.
#pragma once

#include "sim/serving/logs/server_log.h"

#include <limits>
#include <string>
#include <vector>

namespace specsim::logs {

// A figure and its interval at 95 %; NaN if the log does not give it.
struct Figure {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  [[nodiscard]] bool known() const { return value == value; }
};

struct Check {
  std::string what;  // "a constant alpha"
  bool holds = true;
  std::string told;   // result of the check
  bool note = false;  // false: if it fails, the text does not contradict itself, it just has this property
};

struct Findings {
  int draft_length = 0;                   // 0: not in the text
  double rounds = 0.0;                    // rounds that had a draft; 0: not in the text
  bool rounds_counted = true;             // false: estimated
  double drafted_per_round = 0.0;         // 0: not in the text
  Figure mean_length;                     // emitted tokens per round, bonus included
  Figure acceptance_rate;                 // accepted / drafted tokens
  Figure alpha;                           // P(a draft token is accepted | it is reached)
  std::string alpha_from;                 // "rejections by position"
  std::vector<double> position_rates;     // share of all rounds; empty: not in the text
  std::vector<double> conditional_rates;  // given that the position is reached
  std::string interval_from;              // basis of the intervals
  std::vector<Check> checks;
};

// `draft_length`: the user's value for texts without one, 0 for none.
Findings find(const ReportedAcceptance& acceptance, int draft_length = 0);

// Whether two descriptions of the same server's drafts agree within their intervals.
Check agreement(const ReportedAcceptance& one, const Findings& of_one, const ReportedAcceptance& other, const Findings& of_other);

// The richest description of each server's drafts at each draft length, as indices of `found`; several if the text is of several
// servers or draft lengths.
std::vector<std::size_t> distinct(const std::vector<ReportedAcceptance>& found);

// The options for specsim plan and specsim serve with these figures: "--position-rates 0.7,0.45,0.31"; "" if the text does not
// give enough of them.
std::string plan_options(const Findings& findings);
std::string serve_options(const Findings& findings);
// The same as a table of acceptance, in which the user must fill in the temperature; "" if the text does not give enough figures.
std::string table_file(const Findings& findings);

// The acceptance by context in classes of doubling width: [2^n, 2^(n + 1)). `context` is the mean over its rounds.
std::vector<AtContext> by_context(const ReportedAcceptance& acceptance);
// These classes as a table of acceptance for plan and serve; "" with fewer than two, or without a draft length.
std::string context_table(const std::vector<AtContext>& classes, int draft_length);

// The closed form of a chain whose draft tokens are each accepted with probability alpha once reached: the mean tokens emitted
// per round, and the alpha for a given mean. Leviathan et al., arXiv 2211.17192, equation 1.
double length_of(double alpha, int draft_length);
double alpha_of(double length, int draft_length);

}  // namespace specsim::logs
