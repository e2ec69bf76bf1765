#include "sim/answers/load/single_verdict.h"

#include "sim/foundation/base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace specsim::load {

namespace {

constexpr double kPicosecondsPerMillisecond = 1e9;

// Milliseconds of a request on both servers, in the order of sending.
struct Paired {
  std::vector<double> plain;
  std::vector<double> speculative;
};

struct Change {
  double before = 0.0;
  double after = 0.0;
  double half_width = 0.0;  // half of the 95 % interval around after / before; NaN: not known
  [[nodiscard]] bool falls() const { return after < before; }
  [[nodiscard]] bool noise() const { return after == before || std::abs(after / before - 1.0) <= half_width; }
};

// A request that is slow on both servers moves both means, and hardly their ratio r: its error is that of the mean of
// (speculative - r plain) / (mean plain), from means over stretches of requests (the delta method).
Change change_of(const Paired& pairs) {
  Change change;
  for (std::size_t i = 0; i < pairs.plain.size(); ++i) {
    change.before += pairs.plain[i];
    change.after += pairs.speculative[i];
  }
  change.before /= static_cast<double>(pairs.plain.size());
  change.after /= static_cast<double>(pairs.plain.size());
  std::vector<double> off;
  for (std::size_t i = 0; i < pairs.plain.size(); ++i)
    off.push_back((pairs.speculative[i] - change.after / change.before * pairs.plain[i]) / change.before);
  change.half_width = serve::batch_intervals(off).mean_half_width;
  return change;
}

std::string percent(double before, double after) { return fmt::format("{:+.1f} %", 100.0 * (after / before - 1.0)); }

// Four digits, and never a power of ten.
std::string digits(double value) { return value >= 1000.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value); }

// "from 27.4 to 12.8 ms (-53.2 %, ± 1.1)".
std::string in_words(const Change& change) {
  const std::string error = std::isnan(change.half_width) ? "" : fmt::format(", ± {:.2g}", 100.0 * change.half_width);
  return fmt::format("from {} to {} ms ({}{})", digits(change.before), digits(change.after), percent(change.before, change.after),
                     error);
}

}  // namespace

std::string single_verdict(const serve::SimulationResult& plain, const serve::Summary& plain_summary,
                           const serve::SimulationResult& speculative, const serve::Summary& speculative_summary, bool closed) {
  SPECSIM_CHECK(plain.sequences.size() == speculative.sequences.size(), "{} and {} requests", plain.sequences.size(),
                speculative.sequences.size());
  Paired ttft;
  Paired tpot;
  for (std::size_t i = std::max(plain_summary.warm_up_requests, speculative_summary.warm_up_requests); i < plain.sequences.size();
       ++i) {
    const serve::Sequence& a = plain.sequences[i];
    const serve::Sequence& b = speculative.sequences[i];
    if (a.status != serve::Status::finished || b.status != serve::Status::finished) continue;
    const auto ms = [](arrivals::Picoseconds from, arrivals::Picoseconds to) {
      return static_cast<double>(to - from) / kPicosecondsPerMillisecond;
    };
    ttft.plain.push_back(ms(a.sent, a.first_token));
    ttft.speculative.push_back(ms(b.sent, b.first_token));
    if (a.emitted < 2 || b.emitted < 2) continue;
    tpot.plain.push_back(ms(a.first_token, a.last_token) / (a.emitted - 1.0));
    tpot.speculative.push_back(ms(b.first_token, b.last_token) / (b.emitted - 1.0));
  }
  if (tpot.plain.empty()) return "";
  const Change first = change_of(ttft);
  const Change each = change_of(tpot);
  const bool limited = closed || plain_summary.overloaded || speculative_summary.overloaded || !plain_summary.stable ||
                       !speculative_summary.stable;
  const double before = plain_summary.output_throughput;
  const double after = speculative_summary.output_throughput;
  std::string whether;
  if (!limited)
    whether = each.noise() ? "makes no difference to TPOT that this run can tell" : each.falls() ? "pays" : "does not pay";
  else if (each.falls() == (after > before))
    whether = each.noise() ? "pays or not by less than this run can tell" : each.falls() ? "pays" : "does not pay";
  else
    whether = each.falls() ? "pays in TPOT and not in throughput" : "pays in throughput and not in TPOT";
  const std::string throughput =
      limited ? fmt::format("output tokens a second from {} to {} ({})", digits(before), digits(after), percent(before, after))
              : "output throughput what the clients ask for, with either";
  const std::string waiting = limited && !closed
                                  ? "TTFT without end on a server that is sent more than it answers"
                                  : fmt::format("mean TTFT {}{}", in_words(first), first.noise() ? " (within the noise)" : "");
  return fmt::format("at this load speculation {}: mean TPOT {}, {}, {}", whether, in_words(each), waiting, throughput);
}

}  // namespace specsim::load
