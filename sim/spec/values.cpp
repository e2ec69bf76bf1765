#include "sim/spec/values.h"

#include <fmt/format.h>

#include <type_traits>

namespace specsim::spec {

namespace {

using config::Value;
using Fields = std::vector<std::pair<std::string, Value>>;

Value list(std::vector<Value> items, const Location& where) {
  Value value;
  value.kind = config::Kind::list;
  value.where = where;
  value.items = std::move(items);
  return value;
}

// A text that would read as a number or a boolean is none of these here: settings are typed.
Value text_value(const std::string& text) {
  Value value = config::scalar(text, {});
  value.quoted = config::as_number(text).has_value() || text == "true" || text == "false";
  return value;
}

Value numbers_value(const std::vector<double>& numbers) {
  std::vector<Value> items;
  for (const double x : numbers) items.push_back(config::scalar(fmt::format("{}", x), {}));
  return list(std::move(items), {});
}

Value setting_value(const Setting& setting) {
  return std::visit(
      [](const auto& own) {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (std::is_same_v<Own, std::string>) {
          return text_value(own);
        } else if constexpr (std::is_same_v<Own, std::vector<double>>) {
          return numbers_value(own);
        } else if constexpr (std::is_same_v<Own, std::vector<std::vector<double>>>) {
          std::vector<Value> rows;
          for (const std::vector<double>& row : own) rows.push_back(numbers_value(row));
          return list(std::move(rows), {});
        } else {
          return config::scalar(fmt::format("{}", own), {});
        }
      },
      setting);
}

// {SELECTOR: NAME, parameter: value, ...}, after what `first` holds.
Value part_value(const std::string& selector, const PartValues& part, Fields first = {}) {
  first.emplace_back(selector, text_value(part.name));
  for (const auto& [name, setting] : part.settings) first.emplace_back(name, setting_value(setting));
  return config::map(std::move(first), {});
}

Value pair_value(const PairValues& pair) {
  Fields fields = {{"vocab", setting_value(pair.vocab)},
                   {"target", part_value("family", pair.target)},
                   {"draft", pair.draft_from_target ? part_value("transform", pair.draft, {{"from", text_value("target")}})
                                                    : part_value("family", pair.draft)}};
  const auto sampling = [&](const char* key, const std::optional<double>& temperature) {
    if (temperature) fields.emplace_back(key, config::map({{"temperature", setting_value(*temperature)}}, {}));
  };
  sampling("target_sampling", pair.target_temperature);
  sampling("draft_sampling", pair.draft_temperature);
  return config::map(std::move(fields), {});
}

Value method_value(const MethodValues& method) {
  Fields fields = {{"drafter", part_value("kind", method.drafter)}};
  if (method.verifier)
    fields.emplace_back(
        "verifier", method.verifier->settings.empty() ? text_value(method.verifier->name) : part_value("kind", *method.verifier));
  return config::map(std::move(fields), {});
}

Value cost_value(const RooflineValues& cost) {
  Fields fields = {{"model", text_value("roofline")},
                   {"hardware", cost.hardware},
                   {"target", to_config(cost.target)},
                   {"draft", to_config(cost.draft)}};
  if (cost.engine) fields.emplace_back("engine", *cost.engine);
  return config::map(std::move(fields), {});
}

// Gives `where` to everything that has no place of its own.
void place(Value& value, const Location& where) {
  if (value.where.file.empty()) value.where = where;
  for (Value& item : value.items) place(item, where);
  for (config::Field& field : value.fields) {
    if (field.where.file.empty()) field.where = where;
    place(field.value, where);
  }
}

}  // namespace

Value to_config(const std::vector<std::int64_t>& numbers, const Location& where) {
  std::vector<Value> items;
  for (const std::int64_t number : numbers) items.push_back(config::scalar(std::to_string(number), where));
  return list(std::move(items), where);
}

Value to_config(const ModelValues& model) {
  if (model.changes.empty()) return model.model;
  Fields fields = {{"preset", model.model}};
  fields.insert(fields.end(), model.changes.begin(), model.changes.end());
  return config::map(std::move(fields), model.model.where);
}

Value to_config(const ExperimentValues& values, const Location& where) {
  Fields fields = {{"experiment", text_value(values.name)}};
  if (values.rounds) fields.emplace_back("rounds", setting_value(*values.rounds));
  fields.emplace_back("pair", pair_value(values.pair));
  if (values.context) fields.emplace_back("context", part_value("process", *values.context));
  fields.emplace_back("decode", method_value(values.method));
  fields.emplace_back("cost", cost_value(values.cost));
  fields.emplace_back(
      "workload",
      config::map({{"batch", setting_value(values.batch)}, {"context_length", setting_value(values.context_length)}}, {}));
  Fields axes;
  if (!values.methods.empty()) {
    std::vector<Value> methods;
    for (const MethodValues& method : values.methods) methods.push_back(method_value(method));
    axes.emplace_back("decode", list(std::move(methods), {}));
  }
  if (!values.batches.empty()) axes.emplace_back("workload.batch", to_config(values.batches, {}));
  if (!values.context_lengths.empty()) axes.emplace_back("workload.context_length", to_config(values.context_lengths, {}));
  if (!axes.empty()) fields.emplace_back("sweep", config::map(std::move(axes), {}));
  Value config = config::map(std::move(fields), {});
  place(config, where);
  return config;
}

Experiment make_experiment(const ExperimentValues& values, const std::string& name, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits) {
  return read_experiment(to_config(values, {name, 0, 0}), name, overrides, diagnostics, misfits);
}

}  // namespace specsim::spec
