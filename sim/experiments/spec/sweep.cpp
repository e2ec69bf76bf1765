#include "sim/experiments/spec/sweep.h"

#include "sim/foundation/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::spec {

namespace {

using config::Value;

Value number_at(const Location& where, double x) {
  return config::scalar(x == std::floor(x) && std::abs(x) < 1e15 ? fmt::format("{:.0f}", x) : fmt::format("{}", x), where);
}

struct Range {
  double from = 0.0;
  double to = 0.0;
  std::optional<double> step;
  std::optional<std::int64_t> count;
  bool log = false;
};

std::vector<Value> read_range(const std::string& path, const Value& range, Diagnostics& diagnostics) {
  static const config::Fields<Range> fields = {
      {"from", &Range::from, "first value", config::required},
      {"to", &Range::to, "last value, included if a step lands on it", config::required},
      {"step", &Range::step, "difference of neighbours (scale linear) or their ratio (scale log)", config::above(0)},
      {"count", &Range::count, "number of values, both ends included", config::between(1, kMaxCells)},
      {"scale", &Range::log, "", config::one_of<bool>({{"linear", false}, {"log", true}})}};
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(range, fields, {}, "range of " + path, diagnostics);
  if (diagnostics.list().size() != before) return {};
  const auto [from, to, asked_step, asked_count, log] = fields.read(arguments);
  const bool by_step = asked_step.has_value();
  if (by_step == asked_count.has_value()) {
    diagnostics.add(range.where, fmt::format("range of {} has {}, allowed: exactly one of step and count", path,
                                             by_step ? "both step and count" : "neither step nor count"));
    return {};
  }
  if (to < from || (log && !(from > 0.0))) {
    diagnostics.add(range.where, fmt::format("range of {} goes from {} to {}, allowed: from <= to{}", path, from, to,
                                             log ? ", from above 0 on a log scale" : ""));
    return {};
  }
  if (!std::isfinite(to - from) || (log && !std::isfinite(to / from))) {
    diagnostics.add(range.where, fmt::format("range of {} goes from {} to {}, allowed: ends whose {} is finite", path, from, to,
                                             log ? "ratio" : "distance"));
    return {};
  }
  std::vector<Value> values;
  if (by_step) {
    const double step = *asked_step;
    if (log && step <= 1.0) {
      diagnostics.add(arguments.where("step"), fmt::format("step is {}, allowed: a ratio above 1 on a log scale", step));
      return {};
    }
    const double span = log ? std::log(to / from) / std::log(step) : (to - from) / step;
    if (span > static_cast<double>(kMaxCells)) {
      diagnostics.add(range.where, fmt::format("range of {} has {:.3g} values, allowed: at most {}", path, span, kMaxCells));
      return {};
    }
    const auto count = static_cast<int>(std::floor(span + 1e-9)) + 1;
    for (int i = 0; i < count; ++i) values.push_back(number_at(range.where, log ? from * std::pow(step, i) : from + i * step));
  } else {
    const std::int64_t count = *asked_count;
    if (count == 1 && from < to) {
      diagnostics.add(arguments.where("count"),
                      fmt::format("count is 1, allowed: at least 2 from {} to {}, both included", from, to));
      return {};
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.0;
      const double x = log ? from * std::pow(to / from, share) : from + share * (to - from);
      values.push_back(number_at(range.where, i + 1 == count && count > 1 ? to : x));
    }
  }
  // A sum of steps such as 0.1 + 0.1 + 0.1 should read 0.3.
  for (Value& value : values) {
    const double x = config::as_number(value).value_or(0.0);
    value.text = fmt::format("{:.15g}", std::abs(x) < 1e-12 * (to - from) ? 0.0 : x);
  }
  return values;
}

std::vector<Value> read_values(const config::Field& field, Diagnostics& diagnostics) {
  if (field.value.is_map()) return read_range(field.key, field.value, diagnostics);
  if (!field.value.is_list()) {
    diagnostics.add(field.value.where, "axis " + field.key + " is " + config::description_of_found(field.value) +
                                           ", allowed: a list, or a range {from, to, step | count, scale}");
    return {};
  }
  if (field.value.items.empty())
    diagnostics.add(field.value.where, "axis " + field.key + " is an empty list, allowed: at least one value");
  return field.value.items;
}

std::string found_group(const Value& value) {
  if (value.is_map()) return "an empty map";
  return value.is_list() && value.items.empty() ? "an empty list" : config::description_of_found(value);
}

// A path that contains an earlier one would undo its setting.
bool contains(const std::string& path, const std::string& other) {
  return other.size() > path.size() && other.starts_with(path) && other[path.size()] == '.';
}

void check_paths(const std::vector<Axis>& axes, Diagnostics& diagnostics) {
  std::vector<std::string> seen;
  for (const Axis& axis : axes) {
    for (std::size_t p = 0; p < axis.paths.size(); ++p) {
      const std::string& path = axis.paths[p];
      const std::string top = path.substr(0, path.find('.'));
      if (top == "sweep" || top == "experiment")
        diagnostics.add(
            axis.where[p],
            fmt::format("axis {} is not a setting of a cell, allowed: paths below other keys than sweep and experiment", path));
      for (const std::string& earlier : seen) {
        if (earlier == path) diagnostics.add(axis.where[p], fmt::format("axis {} is swept twice, allowed: once", path));
        if (contains(path, earlier))
          diagnostics.add(
              axis.where[p],
              fmt::format("axis {} would replace what the axis {} before it sets, allowed: {} after it", path, earlier, earlier));
      }
      seen.push_back(path);
    }
  }
}

void read_zip(const Value& zip, std::vector<Axis>& axes, Diagnostics& diagnostics) {
  if (zip.is_list() && !zip.items.empty()) {
    for (const Value& item : zip.items) read_zip(item, axes, diagnostics);
    return;
  }
  if (!zip.is_map() || zip.fields.empty()) {
    diagnostics.add(zip.where, "zip is " + found_group(zip) + ", allowed: {path: list, path: list} or a list of such maps");
    return;
  }
  Axis axis;
  for (const config::Field& field : zip.fields) {
    const std::vector<Value> values = read_values(field, diagnostics);
    if (values.empty()) continue;  // already reported
    if (axis.paths.empty()) axis.points.resize(values.size());
    if (values.size() != axis.points.size()) {
      diagnostics.add(field.value.where, fmt::format("axis {} has {} values, allowed: {}, as {} has in the same zip", field.key,
                                                     values.size(), axis.points.size(), axis.paths.front()));
      continue;
    }
    axis.paths.push_back(field.key);
    axis.where.push_back(field.where);
    for (std::size_t i = 0; i < values.size(); ++i) axis.points[i].push_back(values[i]);
  }
  axes.push_back(std::move(axis));
}

}  // namespace

std::vector<Axis> read_sweep(const Value& sweep, Diagnostics& diagnostics) {
  std::vector<Axis> axes;
  if (!sweep.is_map() || sweep.fields.empty()) {
    diagnostics.add(sweep.where, "sweep is " + found_group(sweep) + ", allowed: {path: list or range, ...}");
    return axes;
  }
  for (const config::Field& field : sweep.fields) {
    if (field.key == "zip") {
      read_zip(field.value, axes, diagnostics);
      continue;
    }
    Axis axis;
    axis.paths = {field.key};
    axis.where = {field.where};
    for (Value& value : read_values(field, diagnostics)) axis.points.push_back({std::move(value)});
    axes.push_back(std::move(axis));
  }
  check_paths(axes, diagnostics);
  double cells = 1.0;
  for (const Axis& axis : axes) cells *= static_cast<double>(axis.points.size());
  if (cells > static_cast<double>(kMaxCells))
    diagnostics.add(sweep.where, fmt::format("sweep has {:.0f} cells, allowed: at most {}", cells, kMaxCells));
  return axes;
}

}  // namespace specsim::spec
