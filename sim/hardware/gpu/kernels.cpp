#include "sim/hardware/gpu/kernels.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/config/fields.h"
#include "sim/hardware/gpu/kernel_names.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace specsim::cost {

namespace {

constexpr std::array<Dtype, 12> kDtypes = {{{"bfloat16", 2, 2, Arithmetic::bf16},
                                            {"float16", 2, 2, Arithmetic::bf16},
                                            {"fp8", 1, 1, Arithmetic::fp8},
                                            {"fp8_block", 1, 1, Arithmetic::fp8},
                                            {"int8", 1, 1, Arithmetic::int8},
                                            {"sq", 1, 1, Arithmetic::int8},
                                            {"int8_wo", 1, 2, Arithmetic::bf16},
                                            {"int4_wo", 0.5, 2, Arithmetic::bf16},
                                            {"nvfp4", 0.5625, 0.5625, Arithmetic::fp4},
                                            {"w4a16_mxfp4", 0.53125, 2, Arithmetic::bf16},
                                            {"w4a8_mxfp4_mxfp8", 0.53125, 1, Arithmetic::fp8},
                                            {"w4a8", 0.5, 1, Arithmetic::fp8}}};

const config::Fields<KernelFit>& fit_fields() {
  using F = KernelFit;
  using config::elsewhere, config::required, config::Value;
  static const config::Fields<F> fields = [] {
    config::Choices<KernelKind> kinds;
    for (const KernelFormula& formula : kernel_formulas()) kinds.list.emplace_back(formula.name, formula.kind);
    config::Choices<Dtype> dtypes;
    for (const Dtype& dtype : kDtypes) dtypes.list.emplace_back(dtype.name, dtype);
    config::Choices<KeyReading> readings;
    for (const std::string& name : key_reading_names())
      readings.list.emplace_back(name, static_cast<KeyReading>(readings.list.size()));
    return config::Fields<F>{
        {"kind", &F::kind, "kind of kernel", kinds, required},
        {"engine", &F::engine, "engine that runs the kernel; any: every one", required},
        {"dtype", &F::dtype, "element type of weights, or of keys and values", dtypes, required},
        {"kernel", &F::kernel, "its name in the table"},
        {"reads_keys", &F::reads_keys, "how attention_verify's kernel reads the keys", readings},
        {"rows", &F::rows, "rows of the table that were fitted", config::at_least(1), config::whole, required},
        {"spread", &F::spread, "standard deviation of the logarithm on shapes that were not seen", config::between(0, 10),
         required},
        {"errors", elsewhere<std::vector<double>>, "median and 90th percentile on them, percent", config::at_least(0), required},
        {"figures", elsewhere<Value>, "figures of the formula", required},
        {"over", elsewhere<std::string>, "knots of the first coordinate, log2", required},
        {"by", elsewhere<Value>, "knots of the others", required},
        {"correction", elsewhere<std::string>, "corrections of the time's logarithm at the knots", required}};
  }();
  return fields;
}

// Numbers separated by spaces. This parser is fast because a file holds thousands of them.
std::vector<double> read_numbers(const std::string& text, const Location& where, const char* what, Diagnostics& diagnostics) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    double x = 0.0;
    const auto [next, error] = from_chars(at, end, x);
    if (error != std::errc() || (next != end && *next != ' ')) {
      diagnostics.add(where, fmt::format("{} holds \"{}\", allowed: numbers separated by spaces", what,
                                         std::string(at, std::find(at, end, ' '))));
      return {};
    }
    numbers.push_back(x);
    at = next;
  }
  return numbers;
}

std::vector<double> read_knots(const std::string& text, const Location& where, const char* what, Diagnostics& diagnostics) {
  std::vector<double> knots = read_numbers(text, where, what, diagnostics);
  for (std::size_t i = 1; i < knots.size(); ++i)
    if (knots[i] <= knots[i - 1]) {
      diagnostics.add(where, fmt::format("{} goes from {} to {}, allowed: increasing knots", what, knots[i - 1], knots[i]));
      return {};
    }
  return knots;
}

KernelFit read_fit(const config::Value& value, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(value, fit_fields(), {}, "fit", diagnostics);
  if (diagnostics.list().size() != before) return {};
  KernelFit fit = fit_fields().read(a);
  const KernelFormula& formula = kernel_formula(fit.kind);
  const std::vector<double>& errors = a.numbers("errors");
  if (errors.size() != 2) {
    diagnostics.add(a.where("errors"), fmt::format("errors has {} numbers, allowed: median and 90th percentile", errors.size()));
    return fit;
  }
  fit.median_error = errors[0];
  fit.high_error = errors[1];
  const config::Arguments f = config::read_arguments(a.value("figures"), formula.figures, {}, "figures", diagnostics);
  if (diagnostics.list().size() != before) return fit;
  for (std::size_t i = 0; i < formula.figures.size(); ++i) fit.figures[i] = f.number(formula.figures[i].name);
  fit.over = read_knots(a.text("over"), a.where("over"), "over", diagnostics);
  if (fit.over.size() == 1) diagnostics.add(a.where("over"), "over has one knot, allowed: two or more");
  const config::Value& by = a.value("by");
  const std::size_t least = formula.least_others;
  const std::size_t most = formula.most_others;
  if (!by.is_list() || by.items.size() < least || by.items.size() > most) {
    const std::string count = least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    diagnostics.add(a.where("by"), fmt::format("by is {}, allowed: a list of {} texts", config::description_of_found(by), count));
    return fit;
  }
  std::size_t width = 1;
  for (const config::Value& item : by.items) {
    fit.by.push_back(read_knots(item.text, item.where, "by", diagnostics));
    if (fit.by.back().size() > 1) width += fit.by.back().size();
  }
  fit.correction = read_numbers(a.text("correction"), a.where("correction"), "correction", diagnostics);
  if (diagnostics.list().size() == before && (fit.over.empty() || fit.correction.size() != fit.over.size() * width))
    diagnostics.add(a.where("correction"), fmt::format("correction has {} numbers, allowed: {} of {} knots",
                                                       fit.correction.size(), fit.over.size() * width, fit.over.size()));
  return fit;
}

// Attaches the fits of small products to the fit for larger sizes, which uses them below its own sizes.
void join_small_products(std::vector<KernelFit>& list) {
  const auto is_small = [](const KernelFit& fit) { return fit.kind == KernelKind::product && fit.kernel == "small"; };
  for (KernelFit& fit : list) {
    if (fit.kind != KernelKind::product || is_small(fit)) continue;
    for (const KernelFit& other : list)
      if (is_small(other) && other.engine == fit.engine && other.dtype.name == fit.dtype.name)
        fit.small = std::make_shared<const KernelFit>(other);
  }
  list.erase(std::remove_if(list.begin(), list.end(), is_small), list.end());
}

std::shared_ptr<const KernelFits> read_fits(const config::Value& file, Diagnostics& diagnostics) {
  static const config::Fields<KernelFits> fields = {
      {"source", config::elsewhere<std::string>, "source of the measurements", config::required},
      {"fits", config::elsewhere<config::Value>, "one for each kernel", config::as_list, config::required}};
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(file, fields, {}, "kernels", diagnostics);
  if (diagnostics.list().size() != before) return nullptr;
  auto fits = std::make_shared<KernelFits>();
  for (const config::Value& item : a.value("fits").items) fits->list.push_back(read_fit(item, diagnostics));
  join_small_products(fits->list);
  return diagnostics.list().size() == before ? fits : nullptr;
}

const BuiltInFile* find_kernel_preset(const std::string& name) {
  for (const BuiltInFile& preset : kernel_presets())
    if (name == preset.name) return &preset;
  return nullptr;
}

}  // namespace

const char* kernel_kind_name(KernelKind kind) { return kernel_formula(kind).name; }

const std::vector<std::string>& key_reading_names() {
  static const std::vector<std::string> names = {"unused", "prompt", "walked", "shared", "grown"};
  return names;
}

const Dtype* find_dtype(const std::string& name) {
  const auto* const at = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& dtype) { return name == dtype.name; });
  return at == kDtypes.end() ? nullptr : at;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const Dtype& dtype : kDtypes) names.emplace_back(dtype.name);
  return names;
}

const KernelFit* KernelFits::find(KernelKind kind, const std::string& engine, const std::string& dtype,
                                  const std::string& kernel) const {
  for (const KernelFit& fit : list)
    if (fit.kind == kind && (fit.engine == engine || fit.engine == "any") && fit.dtype.name == dtype &&
        (kernel.empty() || fit.kernel.empty() || fit.kernel == kernel))
      return &fit;
  return nullptr;
}

const KernelFit* KernelFits::nearest(KernelKind kind, const std::string& engine, const std::string& dtype,
                                     const std::string& kernel) const {
  if (const KernelFit* own = find(kind, engine, dtype, kernel)) return own;
  if (const KernelFit* own = find(kind, engine, dtype)) return own;
  for (const std::string& other : kernel_engines())
    if (const KernelFit* fit = find(kind, other, dtype)) return fit;
  for (const KernelFit& fit : list)
    if (fit.kind == kind && fit.dtype.name == dtype) return &fit;
  return nullptr;
}

std::shared_ptr<const KernelFits> read_kernel_fits(const std::string& name, const Location& where, Diagnostics& diagnostics) {
  if (name.ends_with(".yaml") || name.ends_with(".yml")) {
    const std::filesystem::path beside = std::filesystem::path(where.file).parent_path() / name;
    std::error_code ignored;
    const bool there = std::filesystem::is_regular_file(beside, ignored);
    const config::Value file = config::parse_file(there ? beside.string() : name, diagnostics);
    return file.is_null() ? nullptr : read_fits(file, diagnostics);
  }
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const KernelFits>> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(name);
  if (!fresh) return at->second;
  const BuiltInFile* preset = find_kernel_preset(name);
  if (preset == nullptr) {
    std::vector<std::string> names;
    for (const BuiltInFile& one : kernel_presets()) names.emplace_back(one.name);
    diagnostics.add(where, config::unknown_name("unknown kernels", name, names) + ", or the path of a .yaml file");
    known.erase(at);
    return nullptr;
  }
  const config::Value file = config::parse_text(preset->text, preset->path, diagnostics);
  at->second = read_fits(file, diagnostics);
  return at->second;
}

const KernelFits& built_in_kernel_fits(const std::string& name) {
  Diagnostics diagnostics;
  const std::shared_ptr<const KernelFits> fits = read_kernel_fits(name, {}, diagnostics);  // kept by read_kernel_fits
  diagnostics.throw_if_any();
  return *fits;
}

std::shared_ptr<const KernelFits> on_board(const KernelFits& fits, const Hardware& measured, const Hardware& board,
                                           std::optional<double> attention_share) {
  auto all = std::make_shared<KernelFits>(fits);
  const double units = measured.multiprocessors / board.multiprocessors;
  for (KernelFit& fit : all->list) {
    if (fit.kind == KernelKind::allreduce) continue;
    double& efficiency = fit.figures[0];  // memory_efficiency
    if (fit.kind == KernelKind::attention_decode && attention_share) {
      efficiency *= *attention_share;
      continue;
    }
    // In units of the time per byte by the board's data sheet.
    const double beyond = board.bandwidth / measured.bandwidth * units * (1.0 / efficiency - 1.0);
    if (efficiency < 1.0) efficiency = 1.0 / (1.0 + beyond);
  }
  return all;
}

std::shared_ptr<const KernelFits> with_missing(const KernelFits& fits, const KernelFits& other, const std::string& name) {
  auto all = std::make_shared<KernelFits>(fits);
  for (const KernelFit& fit : other.list)
    if (std::none_of(fits.list.begin(), fits.list.end(), [&](const KernelFit& one) {
          return one.kind == fit.kind && one.engine == fit.engine && one.dtype.name == fit.dtype.name;
        }))
      all->list.emplace_back(fit).borrowed_from = name;
  return all;
}

std::shared_ptr<const KernelFits> with_allreduces(const KernelFits& fits, const KernelFits& other, const std::string& name) {
  auto all = std::make_shared<KernelFits>(fits);
  const auto adds_up = [](const KernelFit& fit) { return fit.kind == KernelKind::allreduce; };
  all->list.erase(std::remove_if(all->list.begin(), all->list.end(), adds_up), all->list.end());
  for (const KernelFit& fit : other.list)
    if (adds_up(fit)) all->list.emplace_back(fit).borrowed_from = name;
  return all;
}

}  // namespace specsim::cost
