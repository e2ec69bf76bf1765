// What counts of a log come to: acceptance length, rates by position, alpha with its interval, and whether they fit together.
#pragma once

#include "sim/serving/logs/server_log.h"

#include <limits>
#include <string>
#include <vector>

namespace specsim::logs {

// A figure and its interval at 95 %; NaN where the log does not tell it.
struct Figure {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  [[nodiscard]] bool known() const { return value == value; }
};

struct Check {
  std::string what;  // "a constant alpha"
  bool holds = true;
  std::string told;   // what was found
  bool note = false;  // where it does not hold, nothing contradicts itself: the text is so
};

struct Findings {
  int draft_length = 0;                   // 0: the text does not say it
  double rounds = 0.0;                    // rounds that had a draft; 0: not told
  bool rounds_counted = true;             // false: estimated
  double drafted_per_round = 0.0;         // 0: not told
  Figure mean_length;                     // emitted tokens per round, bonus included
  Figure acceptance_rate;                 // accepted / drafted tokens
  Figure alpha;                           // P(a draft token is accepted | it is reached)
  std::string alpha_from;                 // "rejections by position"
  std::vector<double> position_rates;     // share of all rounds; empty: not told
  std::vector<double> conditional_rates;  // given that the position is reached
  std::string interval_from;              // what the intervals rest on
  std::vector<Check> checks;
};

// `draft_length`: what the user says of it where the text does not, 0 for nothing.
Findings find(const ReportedAcceptance& acceptance, int draft_length = 0);

// Whether two descriptions of the same server's drafts agree within their intervals.
Check agreement(const ReportedAcceptance& one, const Findings& of_one, const ReportedAcceptance& other, const Findings& of_other);

// The richest description of each server's drafts at each draft length, as indices of `found`; several where the text is of
// several servers or draft lengths.
std::vector<std::size_t> distinct(const std::vector<ReportedAcceptance>& found);

// The options that take these figures to specsim plan, and to specsim serve: "--position-rates 0.7,0.45,0.31"; "" where the text
// does not tell enough for them.
std::string plan_options(const Findings& findings);
std::string serve_options(const Findings& findings);
// The same as a table of acceptance whose temperature is still to be named; "" where the text does not tell enough for one.
std::string table_file(const Findings& findings);

// The closed form of a chain whose every draft token is accepted with probability alpha once it is reached: how many tokens a
// round emits in the mean, and the alpha at which it emits so many. Leviathan et al., arXiv 2211.17192, equation 1.
double length_of(double alpha, int draft_length);
double alpha_of(double length, int draft_length);

}  // namespace specsim::logs
