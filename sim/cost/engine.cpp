#include "sim/cost/engine.h"

#include "sim/cost/presets.h"

#include <fmt/format.h>

#include <string_view>

namespace specsim::cost {

namespace {

using config::Parameter;
using config::Type;

constexpr double kLeastUnits = 1e6;  // no engine takes a second for a step: such figures are in other units

}  // namespace

const std::vector<EngineFigure>& engine_figures() {
  static const std::vector<EngineFigure> figures = {
      {"host_us", &Engine::host_us, "of a target pass, with the GPU idle"},
      {"host_us_per_layer", &Engine::host_us_per_layer, "least time of a pass without a graph, per layer"},
      {"draft_floor_us", &Engine::draft_floor_us, "least time of a draft pass"},
      {"draft_us", &Engine::draft_us, "of a draft pass, with the GPU idle"},
      {"round_us", &Engine::round_us, "of a speculative round beyond its passes"}};
  return figures;
}

const std::vector<Parameter>& engine_parameters() {
  static const std::vector<Parameter> parameters = [] {
    std::vector<Parameter> list = {
        {"preset", Type::text, "", "an engine's name or file; the other keys replace its own", {}, {}},
        {"name", Type::text, "", "in words", {}, {}},
        {"aliases", Type::value_list, "", "further names", {}, {}},
        {"source", Type::text, {}, "where the figures come from", {}, {}},
        {"graphs", Type::boolean, {}, "passes are captured, and padded to 1, 2, 4, 8, 16, 24, ... rows", {}, {}},
        {"largest_graph", Type::integer, "512", "rows of the largest captured graph", config::between(1, 1e6), {}}};
    for (const EngineFigure& figure : engine_figures())
      list.push_back({figure.key, Type::number, "0", figure.summary, config::between(0, kLeastUnits), {}});
    return list;
  }();
  return parameters;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets())
    if (std::string_view(preset.kind) == "engine") names.emplace_back(preset.name);
  return names;
}

Engine read_engine(const config::Value& spec, Diagnostics& diagnostics) {
  Engine engine;
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset("engine", spec, diagnostics);
  if (diagnostics.list().size() != before) return engine;
  const config::Arguments a = config::read_arguments(value, engine_parameters(), {}, "engine", diagnostics);
  if (diagnostics.list().size() != before) return engine;
  engine.name = spec.is_scalar() ? spec.text : a.has("name") ? a.text("name") : "";
  engine.source = a.text("source");
  engine.graphs = a.boolean("graphs");
  engine.largest_graph = static_cast<double>(a.integer("largest_graph"));
  for (const EngineFigure& figure : engine_figures()) engine.*figure.figure = a.number(figure.key);
  return engine;
}

}  // namespace specsim::cost
