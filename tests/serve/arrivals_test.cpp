// When requests are sent, against the distributions that arrival processes are named after.
#include "sim/serving/arrivals/arrivals.h"
#include "sim/foundation/rng/address.h"
#include "tests/support/diagnostics.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace specsim::arrivals_test {

namespace {

std::unique_ptr<arrivals::ArrivalProcess> make(const std::string& name, const std::string& parameters) {
  Diagnostics diagnostics;
  const arrivals::ArrivalsEntry* entry = arrivals::arrival_processes().find(name);
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(parameters, "t", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, name, diagnostics);
  auto process = diagnostics.empty() ? entry->make(arguments, diagnostics) : nullptr;
  INFO(tests::all_messages(diagnostics));
  REQUIRE(process != nullptr);
  return process;
}

// Seconds between requests, the first counted from the start.
std::vector<double> gaps(const arrivals::ArrivalProcess& process, std::uint64_t seed = 1) {
  arrivals::RequestTrace trace;
  process.fill(trace, rng::make_key(seed, 7));
  std::vector<double> all;
  arrivals::Picoseconds before = 0;
  for (const arrivals::Request& request : trace.requests) {
    all.push_back(static_cast<double>(request.due - before) / arrivals::kPicosecondsPerSecond);
    before = request.due;
  }
  return all;
}

// p, two-sided, of the sum of gaps that are gamma with this shape and mean 1 / rate: 2 shape rate sum is chi-squared with 2 n
// shape degrees.
double p_of_sum(const std::vector<double>& all, double rate, double shape) {
  double sum = 0.0;
  for (const double gap : all) sum += gap;
  const double above = tests::chi_square_tail(2.0 * shape * rate * sum, 2.0 * shape * static_cast<double>(all.size()));
  return 2.0 * std::min(above, 1.0 - above);
}

// p that single gaps are so distributed, by twenty classes that are equally likely.
double p_of_shape(const std::vector<double>& all, double rate, double shape) {
  std::vector<double> bins(20, 0.0);
  for (const double gap : all) {
    const double above = tests::chi_square_tail(2.0 * shape * rate * gap, 2.0 * shape);
    ++bins[std::min<std::size_t>(19, static_cast<std::size_t>(20.0 * above))];
  }
  return tests::chi_square_p(bins, static_cast<double>(all.size()) / 20.0);
}

}  // namespace

TEST_CASE("gamma and Poisson gaps have the stated rate and shape", "[arrivals][stat]") {
  // Mutants: a rate that is 2 % off, at a relative error of .25 % to .7 % of the mean of 40,000 gaps; the shape of another
  // process.
  constexpr int kRequests = 40000;
  const std::string more = fmt::format(", requests: {}}}", kRequests);
  for (const double shape : {4.0, 1.0, 0.5}) {
    CAPTURE(shape);
    const auto process = make("gamma", fmt::format("{{rate: 8, burstiness: {}", shape) + more);
    CHECK(process->requests() == kRequests);
    CHECK(p_of_sum(gaps(*process), 8.0, shape) > 1e-3);
    CHECK(p_of_sum(gaps(*process), 8.0 * 1.02, shape) < 1e-3 * (shape < 1.0 ? 10.0 : 1.0));
    CHECK(p_of_shape(gaps(*process), 8.0, shape) > 1e-3);
    CHECK(p_of_shape(gaps(*process), 8.0, 1.2 * shape) < 1e-9);
    CHECK(p_of_sum(gaps(*process->with_rate(3.0)), 3.0, shape) > 1e-3);
    CHECK(gaps(*process->with_requests(5)).size() == 5);
    CHECK(gaps(*process, 1) != gaps(*process, 2));
  }
  const auto poisson = make("poisson", "{rate: 8" + more);
  CHECK(p_of_sum(gaps(*poisson), 8.0, 1.0) > 1e-3);
  CHECK(p_of_shape(gaps(*poisson), 8.0, 1.0) > 1e-3);
  CHECK(p_of_sum(gaps(*poisson->with_rate(3.0)), 3.0, 1.0) > 1e-3);
}

TEST_CASE("rescaled arrivals send the last request at requests / rate", "[arrivals]") {
  for (const char* parameters :
       {"{rate: 8, burstiness: 0.3, requests: 400, rescaled: true}", "{rate: 8, requests: 400, rescaled: true}"}) {
    double sum = 0.0;
    for (const double gap : gaps(*make("gamma", parameters))) sum += gap;
    CHECK(sum == Approx(50.0).epsilon(1e-9));
  }
  for (const double gap : gaps(*make("deterministic", "{rate: 8, requests: 10}"))) CHECK(gap == Approx(0.125).epsilon(1e-9));
}

}  // namespace specsim::arrivals_test
