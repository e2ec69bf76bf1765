#include "sim/experiments/run/identity.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/config/json.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/model/model_shape.h"
#include "sim/hardware/presets/hugging_face.h"
#include "tests/fuzz/fuzzers.h"

namespace specsim::fuzz {

namespace {

// The parsed value of a text; throws BadInput if it does not parse.
config::Value parsed(std::string_view bytes) {
  Diagnostics diagnostics;
  config::Value value = config::parse_text(std::string(bytes), "case.yaml", diagnostics);
  diagnostics.throw_if_any();
  return value;
}

// Both text forms of a value must parse back to it: manifests and identities of runs depend on that.
void feed_yaml(std::string_view bytes) {
  const config::Value value = parsed(bytes);
  const std::string flow = config::to_flow_text(value);
  const std::string canonical = config::to_canonical_text(value);
  Diagnostics diagnostics;
  const config::Value again = config::parse_text(flow, "flow", diagnostics);
  const config::Value sorted = config::parse_text(canonical, "canonical", diagnostics);
  require(diagnostics.empty(), "the texts of a value parse");
  require(config::to_flow_text(again) == flow, "the flow text of a value parses back to it");
  require(config::to_canonical_text(again) == canonical, "the flow text keeps the canonical one");
  require(config::to_canonical_text(sorted) == canonical, "the canonical text of a value parses back to it");
}

void feed_json(std::string_view bytes) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_json(bytes, "case.json", diagnostics);
  diagnostics.throw_if_any();
  static_cast<void>(config::to_flow_text(value));
}

void feed_experiment(std::string_view bytes) {
  Diagnostics diagnostics;
  spec::Experiment experiment = spec::read_experiment(parsed(bytes), "case.yaml", {}, diagnostics);
  diagnostics.throw_if_any();
  require(!experiment.cells.empty(), "an experiment has cells");
  const std::string identity = run::identity({experiment});
  Diagnostics none;
  const spec::Experiment again = spec::read_experiment_text(experiment.config.line, "flow", {}, none);
  require(none.empty() && run::identity({again}) == identity, "a manifest's config is the same run");
}

void feed_overrides(std::string_view bytes) {  // PATH=VALUE on all lines after the first, which names the config
  const config::Value base = parsed(
      "experiment: a\npair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, "
      "value: 0.7}}\n"
      "decode: {drafter: {kind: chain, draft_length: 3}}\nrounds: 100\n");
  Diagnostics diagnostics;
  std::vector<spec::Override> overrides;
  while (!bytes.empty() && overrides.size() < 8) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    if (auto change = spec::read_override(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)), "--set x",
                                          diagnostics))
      overrides.push_back(*std::move(change));
  }
  static_cast<void>(spec::read_experiment(base, "case.yaml", overrides, diagnostics));
  diagnostics.throw_if_any();
}

void feed_hardware(std::string_view bytes) {
  Diagnostics diagnostics;
  static_cast<void>(cost::read_hardware(parsed(bytes), diagnostics));
  diagnostics.throw_if_any();
}

void feed_model(std::string_view bytes) {
  Diagnostics diagnostics;
  static_cast<void>(cost::read_model(parsed(bytes), "target", diagnostics));
  diagnostics.throw_if_any();
}

void feed_config_json(std::string_view bytes) {
  Diagnostics diagnostics;
  const config::Value model = cost::read_model_file(file_of(bytes), diagnostics);
  if (model.is_map()) static_cast<void>(cost::read_model(model, "target", diagnostics));
  diagnostics.throw_if_any();
}

}  // namespace

const std::vector<Fuzzer>& config_fuzzers() {
  static const std::vector<Fuzzer> list = {
      {"yaml", feed_yaml},         {"json", feed_json},   {"experiment", feed_experiment},  {"overrides", feed_overrides},
      {"hardware", feed_hardware}, {"model", feed_model}, {"config_json", feed_config_json}};
  return list;
}

}  // namespace specsim::fuzz
