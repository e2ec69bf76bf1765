// Reads acceptance from a config.
#include "sim/foundation/base/text_file.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/fields.h"
#include "sim/foundation/report/csv.h"
#include "sim/serving/serve/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace specsim::serve {

namespace {

struct Rates {
  std::vector<double> position_rates;
  std::vector<double> conditional_rates;
  double alpha = 0.0;
};
const config::Fields<Rates>& rate_fields() {
  using P = Rates;
  static const config::Fields<P> fields = {
      {"position_rates", &P::position_rates, "accepted at each position, of all rounds, as vLLM logs it", config::between(0, 1),
       config::optional},
      {"conditional_rates", &P::conditional_rates, "accepted at each position, of the rounds that reach it",
       config::between(0, 1), config::optional},
      {"alpha", &P::alpha, "acceptance rate of every position that is reached", config::between(0, 1), config::optional},
  };
  return fields;
}

struct ClassParams {
  Rates rates;
  double share = 0.0;
  std::string name;
  bool looks_up = false;
};
const config::Fields<ClassParams>& class_fields() {
  using P = ClassParams;
  static const config::Fields<P> fields = {
      {&P::rates, rate_fields()},
      {"share", &P::share, "share of all requests that are of this class", config::between(0, 1), config::required},
      {"name", &P::name, "name of the class in the output; default: its number, from 1"},
      {"drafter", &P::looks_up,
       "what drafts for the class: the server's draft, or a look-up in the request's own text, which takes no pass",
       config::one_of<bool>({{"server", false}, {"ngram", true}})},
  };
  return fields;
}

struct ContextParams {
  Rates rates;
  double context = 0.0;
};
const config::Fields<ContextParams>& context_fields() {
  using P = ContextParams;
  static const config::Fields<P> fields = {
      {&P::rates, rate_fields()},
      {"context", &P::context, "cached tokens of a sequence at which the rates hold", config::between(0, 1e9), config::required},
  };
  return fields;
}

struct Drift {
  double decay = 0.0;
  double steps = 0.0;
};
const config::Fields<Drift>& drift_fields() {
  using P = Drift;
  static const config::Fields<P> fields = {
      {"decay", &P::decay, "share that each training step of the target takes off every rate", config::between(0, 1),
       config::required},
      {"steps", &P::steps, "training steps of the target since the draft was trained", config::between(0, 1e6), config::required},
  };
  return fields;
}

struct AcceptanceParams {
  Rates rates;
  Drift drift;
  config::Value by_context;
  config::Value classes;
  config::Value replay;
  config::Value trace;
  std::string kind;
};
const config::Fields<AcceptanceParams>& acceptance_fields() {
  using P = AcceptanceParams;
  static const config::Fields<P> fields = {
      {&P::rates, rate_fields()},
      {"by_context", &P::by_context,
       "rates by context: each {context, and its rates}, linear in between; a request's cached tokens decide", config::as_list},
      {"classes", &P::classes, "kinds of requests: each {share, and its rates}", config::as_list},
      {"drift", &P::drift,
       "a target that is trained further while its draft is not: rates are multiplied by (1 - decay)^steps, each given that the "
       "position is reached",
       drift_fields()},
      {"replay", &P::replay, "a CSV of request,position,uniform in place of random numbers"},
      {"trace", &P::trace, "recorded acceptance, JSONL: request i is its record i"},
      {"kind", &P::kind, "only the trace's requests of this kind"},
  };
  return fields;
}

// Conditional rates; empty after reporting.
PlaceRates read_rates(const config::Arguments& arguments, const Rates& rates, Diagnostics& diagnostics) {
  const int given =
      (arguments.has("position_rates") ? 1 : 0) + (arguments.has("conditional_rates") ? 1 : 0) + (arguments.has("alpha") ? 1 : 0);
  if (given != 1) {
    diagnostics.add(arguments.where(),
                    fmt::format("acceptance has {} of position_rates, conditional_rates and alpha, allowed: one of them", given));
    return {};
  }
  if (arguments.has("alpha")) return {rates.alpha};
  if (arguments.has("conditional_rates")) {
    if (rates.conditional_rates.empty())
      diagnostics.add(arguments.where("conditional_rates"), "conditional_rates is empty, allowed: a rate for each position");
    return rates.conditional_rates;
  }
  PlaceRates conditional;
  double before = 1.0;
  for (const double rate : rates.position_rates) {
    if (rate > before) {
      diagnostics.add(
          arguments.where("position_rates"),
          fmt::format(
              "position_rates rises from {:g} to {:g}, allowed: shares of all rounds, which never rise (conditional_rates may)",
              before, rate));
      return {};
    }
    conditional.push_back(before > 0.0 ? rate / before : 0.0);
    before = rate;
  }
  if (conditional.empty())
    diagnostics.add(arguments.where("position_rates"), "position_rates is empty, allowed: a rate for each position");
  return conditional;
}

// Multiplies the rates of all classes and contexts.
void scale(std::vector<ClassRates::Class>& classes, double factor) {
  const auto scale_rates = [&](std::vector<double>& rates) {
    for (double& rate : rates) rate *= factor;
  };
  for (ClassRates::Class& one : classes) {
    scale_rates(one.rates);
    for (spec::ContextRates& context : one.by_context) scale_rates(context.rates);
  }
}

// Empty after reporting.
std::vector<spec::ContextRates> read_contexts(const config::Value& list, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  std::vector<spec::ContextRates> contexts;
  for (const config::Value& item : list.items) {
    const config::Arguments own = config::read_arguments(item, context_fields(), {}, "by_context of acceptance", diagnostics);
    if (diagnostics.list().size() != before) return {};
    const ContextParams one = context_fields().read(own);
    if (!contexts.empty() && one.context <= contexts.back().context)
      diagnostics.add(own.where("context"), fmt::format("context {:g} follows {:g}, allowed: contexts that rise", one.context,
                                                        contexts.back().context));
    contexts.push_back({one.context, read_rates(own, one.rates, diagnostics)});
    if (own.has("alpha")) contexts.back().rates.resize(kMaxDraftLength, one.rates.alpha);  // it holds for drafts of any length
    if (diagnostics.list().size() != before) return {};
  }
  if (contexts.size() < 2)
    diagnostics.add(list.where, fmt::format("by_context has {} entries, allowed: two or more; one alone is given without it",
                                            contexts.size()));
  return contexts;
}

std::unordered_map<std::uint64_t, double> read_uniforms(const config::Value& file, Diagnostics& diagnostics) {
  std::unordered_map<std::uint64_t, double> uniforms;
  std::string text;
  const std::string path = file_next_to(file.where, file.text);
  try {
    text = read_text_file(path);
  } catch (const ReadError& error) {
    diagnostics.add(file.where, path + ": " + error.message("CSV file") + looked_for(file.where, file.text));
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
    uniforms[ReplayedUniforms::name(static_cast<std::uint64_t>(values[0]), static_cast<std::uint64_t>(values[1]))] = values[2];
  }
  return uniforms;
}

}  // namespace

std::optional<StatedAcceptance> read_acceptance(const config::Value& value, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(value, acceptance_fields(), {}, "acceptance", diagnostics);
  if (diagnostics.list().size() != before) return std::nullopt;
  const AcceptanceParams params = acceptance_fields().read(arguments);
  if (arguments.has("kind") && !arguments.has("trace"))
    diagnostics.add(arguments.where("kind"), "kind is given without trace, allowed: with trace");
  if (arguments.has("trace")) {
    for (const char* const other : {"position_rates", "conditional_rates", "alpha", "classes", "replay", "by_context", "drift"})
      if (arguments.given(other))
        diagnostics.add(arguments.where(other), fmt::format("{} is given together with trace, allowed: one of them", other));
    if (diagnostics.list().size() != before) return std::nullopt;
    return read_recorded_acceptance(params.trace, params.kind, diagnostics);
  }
  if (diagnostics.list().size() != before) return std::nullopt;
  std::vector<ClassRates::Class> classes;
  const double kept = std::pow(1.0 - params.drift.decay, params.drift.steps);
  if (arguments.has("by_context")) {
    for (const char* const other : {"position_rates", "conditional_rates", "alpha", "classes", "replay"})
      if (arguments.has(other))
        diagnostics.add(arguments.where(other), fmt::format("{} is given together with by_context, allowed: one of them", other));
    if (diagnostics.list().size() != before) return std::nullopt;
    std::vector<spec::ContextRates> contexts = read_contexts(params.by_context, diagnostics);
    if (diagnostics.list().size() != before) return std::nullopt;
    classes.push_back({1.0, contexts.front().rates, true, "", false, std::move(contexts)});
    scale(classes, kept);
    return ClassRates{std::move(classes)};
  }
  if (arguments.has("classes")) {
    double share = 0.0;
    for (const config::Value& item : params.classes.items) {
      const config::Arguments own = config::read_arguments(item, class_fields(), {}, "class of acceptance", diagnostics);
      if (diagnostics.list().size() != before) return std::nullopt;
      const ClassParams one = class_fields().read(own);
      share += one.share;
      classes.push_back({share, read_rates(own, one.rates, diagnostics), own.has("alpha"), one.name, one.looks_up});
    }
    if (diagnostics.list().size() == before && std::abs(share - 1.0) > 1e-9)
      diagnostics.add(arguments.where("classes"), fmt::format("the shares of the classes add to {:g}, allowed: 1", share));
  } else {
    classes.push_back({1.0, read_rates(arguments, params.rates, diagnostics), arguments.has("alpha")});
  }
  if (diagnostics.list().size() != before) return std::nullopt;
  scale(classes, kept);
  if (!arguments.has("replay")) return ClassRates{std::move(classes)};
  if (classes.size() != 1) {
    diagnostics.add(arguments.where("replay"), "replay is given together with classes, allowed: one set of rates");
    return std::nullopt;
  }
  std::unordered_map<std::uint64_t, double> uniforms = read_uniforms(params.replay, diagnostics);
  if (diagnostics.list().size() != before) return std::nullopt;
  return ReplayedUniforms{std::move(classes[0].rates), std::move(uniforms)};
}

}  // namespace specsim::serve
