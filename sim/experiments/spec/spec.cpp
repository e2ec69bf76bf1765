#include "sim/experiments/spec/spec.h"

#include "sim/experiments/spec/read_cell.h"
#include "sim/experiments/spec/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace specsim::spec {

namespace {

using config::Value;

constexpr std::size_t kMaxMistakes = 50;

// Removes the cells whose memory needs are in `over`, and reports them batch by batch.
void leave_out(const std::vector<std::optional<cost::MemoryBudget>>& over, Experiment& experiment) {
  struct Batch {
    std::size_t cells = 0;
    std::size_t left_out = 0;
    std::string needs;  // what the first of them needs
  };
  std::map<std::pair<double, double>, Batch> batches;  // [size and context]
  std::vector<Cell> kept;
  for (std::size_t i = 0; i < over.size(); ++i) {
    Cell& cell = experiment.cells[i];
    Batch& batch = batches[{cell.workload.batch, most_context(cell)}];
    ++batch.cells;
    if (!over[i]) {
      kept.push_back(std::move(cell));
    } else if (batch.left_out++ == 0) {
      batch.needs = over[i]->to_text();
    }
  }
  experiment.cells = std::move(kept);
  for (const auto& [size_and_context, batch] : batches)
    if (batch.left_out > 0)
      experiment.left_out.push_back(fmt::format(
          "batch {:g} at context {:g}, {}more memory than there is ({})", size_and_context.first, size_and_context.second,
          batch.left_out < batch.cells ? fmt::format("{} of {} methods: ", batch.left_out, batch.cells) : std::string(),
          batch.needs));
}

// Reports once per sweep that cells do not fit, with the cell that needs least; or omits these cells if others fit.
void check_memory(Experiment& experiment, Misfits misfits, Diagnostics& diagnostics) {
  const std::vector<Cell>& cells = experiment.cells;
  std::vector<std::optional<cost::MemoryBudget>> over;  // [cell]: what it needs, if that is too much
  std::size_t misfit_count = 0;
  const Cell* least = nullptr;
  cost::MemoryBudget of_least;
  for (const Cell& cell : cells) {
    const auto& memory_budget = over.emplace_back(misfit(cell));
    if (!memory_budget) continue;
    ++misfit_count;
    const auto excess = [](const cost::MemoryBudget& own) { return own.needed_bytes() / own.available_bytes; };
    if (least != nullptr && excess(*memory_budget) >= excess(of_least)) continue;
    least = &cell;
    of_least = *memory_budget;
  }
  if (least == nullptr) return;
  if (misfits == Misfits::left_out && misfit_count < cells.size()) return leave_out(over, experiment);
  const std::string which =
      cells.size() == 1 ? "" : fmt::format("{} of {} cells do not fit the GPU; the smallest: ", misfit_count, cells.size());
  diagnostics.add(least->places.cost,
                  fmt::format("{}batch {:g} at context {:g} needs more memory than there is ({}), allowed: {}", which,
                              least->workload.batch, most_context(*least), of_least.to_text(), ways_to_fit(*least)));
}

// An axis is one key, including its dots.
void set_axis(Value& config, const std::string& path, Value value, const Location& where, Diagnostics& diagnostics) {
  if (config.find("sweep") == nullptr) config.fields.push_back({"sweep", where, {}});
  Value& sweep = *config.find("sweep");
  if (sweep.is_null()) {
    sweep.kind = config::Kind::map;
    sweep.where = where;
  }
  if (!sweep.is_map()) {
    diagnostics.add(where, "the sweep of the config is " + config::description_of_found(sweep) + ", allowed: a map of axes");
  } else if (Value* axis = sweep.find(path)) {
    *axis = std::move(value);
  } else {
    sweep.fields.push_back({path, where, std::move(value)});
  }
}

void erase_field(Value& map, const std::string& key) {
  std::erase_if(map.fields, [&](const config::Field& field) { return field.key == key; });
}

void apply(const Override& change, Value& config, Diagnostics& diagnostics) {
  constexpr std::string_view kAxis = "sweep.";
  const std::string& path = change.path;
  if (path == "sweep" && change.value.is_map() && change.value.fields.empty()) {  // --set sweep={}: only the base cell
    erase_field(config, "sweep");
    return;
  }
  // a path that is set is no longer swept
  if (Value* sweep = config.find("sweep"); sweep != nullptr && sweep->find(path) != nullptr) {
    erase_field(*sweep, path);
    if (sweep->fields.empty()) erase_field(config, "sweep");
  }
  if (path.starts_with(kAxis) && path.size() > kAxis.size())
    set_axis(config, path.substr(kAxis.size()), change.value, change.where, diagnostics);
  else
    config::set_path(config, path, change.value, change.where, diagnostics);
}

// The cell at this point of the grid, whose last axis is the fastest.
Cell read_point(const Value& config, const std::vector<Axis>& axes, std::size_t index, ReadCache& cache,
                Diagnostics& diagnostics) {
  std::vector<std::size_t> at(axes.size());
  std::size_t rest = index;
  for (std::size_t a = axes.size(); a-- > 0;) {
    at[a] = rest % axes[a].points.size();
    rest /= axes[a].points.size();
  }
  Value own = config;
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (std::size_t p = 0; p < axes[a].paths.size(); ++p) {
      const Value& value = axes[a].points[at[a]][p];
      config::set_path(own, axes[a].paths[p], value, axes[a].where[p], diagnostics);
      values.emplace_back(axes[a].paths[p], value.is_scalar() ? value.text : config::to_flow_text(value));
    }
  Cell cell;
  if (diagnostics.empty()) cell = read_cell(own, cache, diagnostics);
  cell.index = index;
  cell.axes = std::move(values);
  return cell;
}

std::string file_text(const Value& config) {
  std::string text;
  for (const config::Field& field : config.fields) {
    if (field.key != "sweep") {
      text += fmt::format("{}: {}\n", field.key, config::to_flow_text(field.value));
      continue;
    }
    text += "sweep:\n";
    for (const config::Field& axis : field.value.fields) {
      text += fmt::format("  {}:{}\n", axis.key, axis.value.is_list() ? "" : " " + config::to_flow_text(axis.value));
      for (const Value& value : axis.value.items) text += fmt::format("    - {}\n", config::to_flow_text(value));
    }
  }
  return text;
}

}  // namespace

ConfigText text_of(const Value& config) {
  ConfigText text{config::to_flow_text(config), config::to_canonical_text(config), file_text(config), {}};
  for (const config::Field& field : config.fields) text.sections[field.key] = config::to_flow_text(field.value);
  return text;
}

std::optional<Override> read_override(const std::string& path, const std::string& value, const std::string& shown,
                                      Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Override change{path, config::parse_text(value, shown, diagnostics), {shown, 0, 0}};
  return diagnostics.list().size() == before ? std::optional(std::move(change)) : std::nullopt;
}

Override override_setting(const std::string& path, const Setting& setting, const Location& where) {
  return {path, to_config(setting, where), where};
}

std::optional<Override> override_preset(const std::string& path, const cost::PresetChoice& choice, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Override change{path, cost::to_config(choice, diagnostics), {}};
  change.where = change.value.where;
  return diagnostics.list().size() == before ? std::optional(std::move(change)) : std::nullopt;
}

Experiment read_experiment(const std::string& path, const std::vector<Override>& overrides, Diagnostics& diagnostics,
                           Misfits misfits) {
  const std::size_t before = diagnostics.list().size();
  Value config = config::parse_file(path, diagnostics);
  if (diagnostics.list().size() != before) return {};
  return read_experiment(std::move(config), path, overrides, diagnostics, misfits);
}

Experiment read_experiment_text(const std::string& yaml, const std::string& name, const std::vector<Override>& overrides,
                                Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Value config = config::parse_text(yaml, name, diagnostics);
  if (diagnostics.list().size() != before) return {};
  return read_experiment(std::move(config), name, overrides, diagnostics);
}

Experiment read_experiment(Value config, const std::string& file, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits) {
  Experiment experiment;
  experiment.file = file;
  const std::size_t before = diagnostics.list().size();
  if (!config.is_map()) {
    diagnostics.add(config.where, fmt::format("the config is {}, allowed: a map", config::description_of_found(config)));
    return experiment;
  }
  for (const Override& change : overrides) apply(change, config, diagnostics);
  if (diagnostics.list().size() != before) return experiment;
  experiment.config = text_of(config);

  std::vector<Axis> axes;
  if (const Value* sweep = config.find("sweep")) axes = read_sweep(*sweep, diagnostics);
  if (diagnostics.list().size() != before) return experiment;
  erase_field(config, "sweep");
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= axis.points.size();
    experiment.axes.insert(experiment.axes.end(), axis.paths.begin(), axis.paths.end());
  }
  std::set<std::string> reported;
  ReadCache cache;
  for (std::size_t index = 0; index < count; ++index) {
    Diagnostics own;
    Cell cell = read_point(config, axes, index, cache, own);
    for (const Diagnostic& diagnostic : own.list())
      if (reported.insert(to_string(diagnostic.where) + diagnostic.message).second)
        diagnostics.add(diagnostic.where, diagnostic.message);
    if (diagnostics.list().size() - before >= kMaxMistakes) {
      diagnostics.add({file, 0, 0},
                      fmt::format("{} errors so far, the rest of the sweep was not read", diagnostics.list().size() - before));
      return experiment;
    }
    experiment.cells.push_back(std::move(cell));
  }
  if (diagnostics.list().size() == before) check_memory(experiment, misfits, diagnostics);
  if (diagnostics.list().size() == before) probe(experiment.cells, diagnostics);
  if (!experiment.cells.empty()) experiment.name = experiment.cells.front().experiment;
  return experiment;
}

}  // namespace specsim::spec
