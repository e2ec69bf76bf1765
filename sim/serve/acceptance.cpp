#include "sim/serve/acceptance.h"

#include "sim/base/token.h"
#include "sim/base/whole_file.h"
#include "sim/config/arguments.h"
#include "sim/report/csv.h"
#include "sim/rng/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// The draft at a text position is accepted, given that it is reached, where the position's own uniform lies below the rate of its
// place in the draft. Classes of requests have rates of their own.
class RateAcceptance final : public Acceptance {
 public:
  struct Class {
    double up_to = 1.0;         // share of requests up to and with this class
    std::vector<double> rates;  // [place]: conditional; the last one goes on
  };
  RateAcceptance(std::vector<Class> classes, rng::Key key) : classes_(std::move(classes)), key_(key) {
    for (const Class& one : classes_) {
      std::vector<std::uint64_t> limits;
      for (const double rate : one.rates) limits.push_back(static_cast<std::uint64_t>(std::llround(rate * 0x1.0p32)));
      limits_.push_back(std::move(limits));
    }
  }
  [[nodiscard]] std::uint32_t accepted(RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const std::vector<std::uint64_t>& limits = limits_[class_of(request)];
    std::uint32_t place = 0;
    rng::Block block{};
    std::uint32_t drawn = ~std::uint32_t{0};
    for (; place < drafted; ++place) {
      const std::uint32_t position = emitted + place + 1;
      if (position / 4 != drawn) {
        drawn = position / 4;
        block = rng::philox4x32_10({rng::counter_word0(rng::Purpose::draft_accept, 0), drawn, request, 0}, key_);
      }
      if (block[position % 4] >= limits[std::min<std::size_t>(place, limits.size() - 1)]) break;
    }
    return place;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double sum = 0.0;
    double before = 0.0;
    for (const Class& one : classes_) {
      double tokens = 1.0;
      double reached = 1.0;
      for (int place = 0; place < draft_length; ++place) {
        reached *= one.rates[std::min<std::size_t>(static_cast<std::size_t>(place), one.rates.size() - 1)];
        tokens += reached;
      }
      sum += (one.up_to - before) * tokens;
      before = one.up_to;
    }
    return sum;
  }

 private:
  [[nodiscard]] std::size_t class_of(RequestId request) const {
    if (classes_.size() == 1) return 0;
    const rng::Block block = rng::philox4x32_10({rng::counter_word0(rng::Purpose::start, 0), 0, request, 0}, key_);
    const double u = 0x1.0p-32 * block[0];
    std::size_t at = 0;
    while (at + 1 < classes_.size() && u >= classes_[at].up_to) ++at;
    return at;
  }
  std::vector<Class> classes_;
  rng::Key key_;
  std::vector<std::vector<std::uint64_t>> limits_;  // [class][place]: of 2^32
};

// The uniforms of every request and position from a file, for comparisons with other simulators.
class ReplayedAcceptance final : public Acceptance {
 public:
  ReplayedAcceptance(std::vector<double> rates, std::unordered_map<std::uint64_t, double> uniforms)
      : rates_(std::move(rates)), uniforms_(std::move(uniforms)) {}
  static std::uint64_t name(std::uint64_t request, std::uint64_t position) { return request << 32 | position; }
  [[nodiscard]] std::uint32_t accepted(RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    std::uint32_t place = 0;
    for (; place < drafted; ++place) {
      const auto at = uniforms_.find(name(request, emitted + place + 1));
      if (at == uniforms_.end() || at->second >= rates_[std::min<std::size_t>(place, rates_.size() - 1)]) break;
    }
    return place;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double tokens = 1.0;
    double reached = 1.0;
    for (int place = 0; place < draft_length; ++place)
      tokens += reached *= rates_[std::min<std::size_t>(static_cast<std::size_t>(place), rates_.size() - 1)];
    return tokens;
  }

 private:
  std::vector<double> rates_;
  std::unordered_map<std::uint64_t, double> uniforms_;
};

const std::vector<config::Parameter>& rate_parameters() {
  static const std::vector<config::Parameter> parameters = {
      {"position_rates",
       config::Type::number_list,
       "",
       "accepted at each position, of all rounds, as vLLM logs it",
       config::between(0, 1),
       {}},
      {"conditional_rates",
       config::Type::number_list,
       "",
       "accepted at each position, of the rounds that reach it",
       config::between(0, 1),
       {}},
      {"alpha", config::Type::number, "", "the same at every position", config::between(0, 1), {}}};
  return parameters;
}

// Conditional rates; empty after reporting.
std::vector<double> read_rates(const config::Arguments& arguments, Diagnostics& diagnostics) {
  const int given =
      (arguments.has("position_rates") ? 1 : 0) + (arguments.has("conditional_rates") ? 1 : 0) + (arguments.has("alpha") ? 1 : 0);
  if (given != 1) {
    diagnostics.add(
        arguments.where(),
        fmt::format("acceptance says {} of position_rates, conditional_rates and alpha, allowed: one of them", given));
    return {};
  }
  if (arguments.has("alpha")) return {arguments.number("alpha")};
  if (arguments.has("conditional_rates")) {
    if (arguments.numbers("conditional_rates").empty())
      diagnostics.add(arguments.where("conditional_rates"), "conditional_rates is empty, allowed: a rate for each position");
    return arguments.numbers("conditional_rates");
  }
  std::vector<double> rates;
  double before = 1.0;
  for (const double rate : arguments.numbers("position_rates")) {
    if (rate > before) {
      diagnostics.add(
          arguments.where("position_rates"),
          fmt::format(
              "position_rates rises from {:g} to {:g}, allowed: shares of all rounds, which never rise (conditional_rates may)",
              before, rate));
      return {};
    }
    rates.push_back(before > 0.0 ? rate / before : 0.0);
    before = rate;
  }
  if (rates.empty())
    diagnostics.add(arguments.where("position_rates"), "position_rates is empty, allowed: a rate for each position");
  return rates;
}

std::unordered_map<std::uint64_t, double> read_uniforms(const config::Value& file, Diagnostics& diagnostics) {
  std::unordered_map<std::uint64_t, double> uniforms;
  std::string text;
  try {
    text = read_whole_file(file.text);
  } catch (const ReadError& error) {
    diagnostics.add(file.where, error.message("CSV file"));
    return uniforms;
  }
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (number == 1 || line.empty()) continue;
    const auto fields = report::csv_fields(line);
    double values[3] = {};
    bool good = fields && fields->size() == 3;
    for (std::size_t i = 0; good && i < 3; ++i) {
      const std::optional<double> value = config::as_number((*fields)[i]);
      good = value.has_value() && *value >= 0.0;
      values[i] = value.value_or(0.0);
    }
    if (!good) {
      diagnostics.add({file.text, static_cast<int>(number), 1}, "is no line of request,position,uniform, allowed: three numbers");
      return uniforms;
    }
    uniforms[ReplayedAcceptance::name(static_cast<std::uint64_t>(values[0]), static_cast<std::uint64_t>(values[1]))] = values[2];
  }
  return uniforms;
}

}  // namespace

std::unique_ptr<Acceptance> read_acceptance(const config::Value& value, rng::Key key, Diagnostics& diagnostics) {
  std::vector<config::Parameter> parameters = rate_parameters();
  parameters.push_back({"classes", config::Type::value_list, "", "kinds of requests: each {share, and its rates}", {}, {}});
  parameters.push_back(
      {"replay", config::Type::value, "", "a CSV of request,position,uniform in place of random numbers", {}, {}});
  const std::size_t before = diagnostics.list().size();
  parameters.push_back({"trace", config::Type::value, "", "recorded acceptance, JSONL: request i is its record i", {}, {}});
  parameters.push_back({"kind", config::Type::text, "", "of the trace, only requests of this kind", {}, {}});
  const config::Arguments arguments = config::read_arguments(value, parameters, {}, "acceptance", diagnostics);
  if (diagnostics.list().size() != before) return nullptr;
  if (arguments.has("kind") && !arguments.has("trace"))
    diagnostics.add(arguments.where("kind"), "kind stands without trace, allowed: with trace");
  if (arguments.has("trace")) {
    for (const char* const other : {"position_rates", "conditional_rates", "alpha", "classes", "replay"})
      if (arguments.has(other))
        diagnostics.add(arguments.where(other), fmt::format("{} stands beside trace, allowed: one of them", other));
    if (diagnostics.list().size() != before) return nullptr;
    return traced_acceptance(arguments.value("trace"), arguments.text("kind"), key, diagnostics);
  }
  if (diagnostics.list().size() != before) return nullptr;
  std::vector<RateAcceptance::Class> classes;
  if (arguments.has("classes")) {
    std::vector<config::Parameter> of_class = rate_parameters();
    of_class.push_back({"share", config::Type::number, {}, "of all requests", config::between(0, 1), {}});
    of_class.push_back({"name", config::Type::text, "", "for the reader", {}, {}});
    double share = 0.0;
    for (const config::Value& item : arguments.value("classes").items) {
      const config::Arguments own = config::read_arguments(item, of_class, {}, "class of acceptance", diagnostics);
      if (diagnostics.list().size() != before) return nullptr;
      share += own.number("share");
      classes.push_back({share, read_rates(own, diagnostics)});
    }
    if (diagnostics.list().size() == before && std::abs(share - 1.0) > 1e-9)
      diagnostics.add(arguments.where("classes"), fmt::format("the shares of the classes add to {:g}, allowed: 1", share));
  } else {
    classes.push_back({1.0, read_rates(arguments, diagnostics)});
  }
  if (diagnostics.list().size() != before) return nullptr;
  if (!arguments.has("replay")) return std::make_unique<RateAcceptance>(std::move(classes), key);
  if (classes.size() != 1) {
    diagnostics.add(arguments.where("replay"), "replay stands beside classes, allowed: one set of rates");
    return nullptr;
  }
  std::unordered_map<std::uint64_t, double> uniforms = read_uniforms(arguments.value("replay"), diagnostics);
  if (diagnostics.list().size() != before) return nullptr;
  return std::make_unique<ReplayedAcceptance>(std::move(classes[0].rates), std::move(uniforms));
}

}  // namespace specsim::serve
