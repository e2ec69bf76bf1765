#include "sim/experiments/spec/values.h"

#include <utility>
#include <vector>

namespace specsim::spec {

namespace {

using config::Value;
using Fields = std::vector<std::pair<std::string, Value>>;

Value list(std::vector<Value> items) {
  Value value;
  value.kind = config::Kind::list;
  value.items = std::move(items);
  return value;
}

// {SELECTOR: NAME, parameter: value, ...}, after what `first` holds.
Value part_value(const std::string& selector, const PartValues& part, Fields first = {}) {
  first.emplace_back(selector, to_config(part.name));
  for (const auto& [name, setting] : part.settings) first.emplace_back(name, to_config(setting));
  return config::map(std::move(first), {});
}

Value pair_value(const PairValues& pair) {
  Fields fields = {{"vocab", to_config(pair.vocab)},
                   {"target", part_value("family", pair.target)},
                   {"draft", pair.draft_from_target ? part_value("transform", pair.draft, {{"from", to_config("target")}})
                                                    : part_value("family", pair.draft)}};
  const auto sampling = [&](const char* key, const std::optional<double>& temperature) {
    if (temperature) fields.emplace_back(key, config::map({{"temperature", to_config(*temperature)}}, {}));
  };
  sampling("target_sampling", pair.target_temperature);
  sampling("draft_sampling", pair.draft_temperature);
  return config::map(std::move(fields), {});
}

Value method_value(const MethodValues& method) {
  Fields fields = {{"drafter", part_value("kind", method.drafter)}};
  if (method.verifier)
    fields.emplace_back(
        "verifier", method.verifier->settings.empty() ? to_config(method.verifier->name) : part_value("kind", *method.verifier));
  return config::map(std::move(fields), {});
}

// Sets `where` on all values without a place.
void place(Value& value, const Location& where) {
  if (value.where.file.empty()) value.where = where;
  for (Value& item : value.items) place(item, where);
  for (config::Field& field : value.fields) {
    if (field.where.file.empty()) field.where = where;
    place(field.value, where);
  }
}

// The config of the experiment; messages name the place `where`.
Value experiment_value(const ExperimentValues& values, const Location& where) {
  Fields fields = {{"experiment", to_config(values.name)}};
  if (values.rounds) fields.emplace_back("rounds", to_config(*values.rounds));
  fields.emplace_back("pair", pair_value(values.pair));
  if (values.context) fields.emplace_back("context", part_value("process", *values.context));
  fields.emplace_back("decode", method_value(values.method));
  fields.emplace_back("cost", part_value("model", values.cost));
  fields.emplace_back(
      "workload", config::map({{"batch", to_config(values.batch)}, {"context_length", to_config(values.context_length)}}, {}));
  Fields axes;
  if (!values.methods.empty()) {
    std::vector<Value> methods;
    for (const MethodValues& method : values.methods) methods.push_back(method_value(method));
    axes.emplace_back("decode", list(std::move(methods)));
  }
  if (!values.batches.empty()) axes.emplace_back("workload.batch", to_config(values.batches));
  if (!values.context_lengths.empty()) axes.emplace_back("workload.context_length", to_config(values.context_lengths));
  if (!axes.empty()) fields.emplace_back("sweep", config::map(std::move(axes), {}));
  Value config = config::map(std::move(fields), {});
  place(config, where);
  return config;
}

}  // namespace

Experiment make_experiment(const ExperimentValues& values, const std::string& name, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits) {
  return read_experiment(experiment_value(values, {name, 0, 0}), name, overrides, diagnostics, misfits);
}

}  // namespace specsim::spec
