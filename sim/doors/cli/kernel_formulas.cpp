// The formulas of kernels for scripts/kernels/fit_kernels.py, which fits their parameters. It uses pipes, so that no Python
// module needs to be built. A fit evaluates one formula on the same shapes some hundred times; the shapes are sent once.
#include "sim/doors/cli/command.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/fields.h"
#include "sim/foundation/config/json.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/latency/kernel_tables.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace specsim::cli {

namespace {

using cost::KernelShape;

const char* const kRequest = "request";  // name of standard input in messages

struct FormulaRequest {
  std::string kind;
  std::string dtype;
  cost::KeyReading reads_keys = cost::KeyReading::unused;
  cost::Hardware gpu;
  config::Value columns;  // names of KernelShape's members
  std::int64_t rows = 0;
};

const config::Fields<FormulaRequest>& formula_request() {
  using cost::Hardware;
  static const config::Fields<Hardware> gpu = {
      {"bandwidth", &Hardware::bandwidth, "bytes per second", config::above(0), config::required},
      {"flops", &Hardware::flops, "operations per second in bf16", config::above(0), config::required},
      {"fp8_flops", &Hardware::fp8_flops, "the same in fp8", config::above(0), config::required},
      {"int8_flops", &Hardware::int8_flops, "the same in int8", config::above(0), config::required},
      {"fp4_flops", &Hardware::fp4_flops, "the same in fp4", config::above(0), config::required},
      {"multiprocessors", &Hardware::multiprocessors, "multiprocessors", config::above(0), config::required},
      {"compute_capability", &Hardware::compute_capability, "NVIDIA's number", config::at_least(0), config::required},
      {"link_bandwidth", &Hardware::link_bandwidth, "bytes per second, one direction", config::above(0), config::required}};
  static const config::Fields<FormulaRequest> fields = {
      {"kind", &FormulaRequest::kind, "kind of kernel", config::one_of(cost::kernel_kind_names()), config::required},
      {"dtype", &FormulaRequest::dtype, "element type", config::one_of(cost::dtype_names()), config::required},
      {"reads_keys", &FormulaRequest::reads_keys, "how the kernel reads keys",
       config::one_of<cost::KeyReading>({{"unused", cost::KeyReading::unused}, {"prompt", cost::KeyReading::prompt}})},
      {"gpu", &FormulaRequest::gpu, "the GPU", gpu, config::required},
      {"columns", &FormulaRequest::columns, "columns of the shapes", config::as_list, config::required},
      {"rows", &FormulaRequest::rows, "number of shapes", config::at_least(1), config::required}};
  return fields;
}

double KernelShape::*shape_member(const config::Value& column) {
  static const std::map<std::string, double KernelShape::*> members = {{"rows", &KernelShape::rows},
                                                                       {"inner", &KernelShape::inner},
                                                                       {"outer", &KernelShape::outer},
                                                                       {"batch", &KernelShape::batch},
                                                                       {"tokens", &KernelShape::tokens},
                                                                       {"context", &KernelShape::context},
                                                                       {"heads", &KernelShape::heads},
                                                                       {"kv_heads", &KernelShape::kv_heads},
                                                                       {"head_dim", &KernelShape::head_dim},
                                                                       {"latent", &KernelShape::latent},
                                                                       {"rope_dim", &KernelShape::rope_dim},
                                                                       {"hidden", &KernelShape::hidden},
                                                                       {"expert_width", &KernelShape::expert_width},
                                                                       {"matrices", &KernelShape::matrices},
                                                                       {"experts", &KernelShape::experts},
                                                                       {"experts_per_token", &KernelShape::experts_per_token},
                                                                       {"skew", &KernelShape::skew},
                                                                       {"gpus", &KernelShape::gpus},
                                                                       {"bytes", &KernelShape::bytes}};
  const auto at = members.find(column.text);
  if (at != members.end()) return at->second;
  std::vector<std::string> names;
  for (const auto& [name, member] : members) names.push_back(name);
  throw BadInput(column.where, config::unknown_name("unknown column", column.text, names));
}

// Fills `numbers` from standard input; false if it ends before.
bool read_doubles(std::vector<double>& numbers) {
  return std::fread(numbers.data(), sizeof(double), numbers.size(), stdin) == numbers.size();
}

void write_doubles(const std::vector<double>& numbers) {
  if (std::fwrite(numbers.data(), sizeof(double), numbers.size(), stdout) != numbers.size() || std::fflush(stdout) != 0)
    throw IoError("times of kernels cannot be written to standard output");
}

std::string input_line() {
  std::string line;
  for (int c = std::getc(stdin); c != EOF && c != '\n'; c = std::getc(stdin)) line += static_cast<char>(c);
  return line;
}

// One line of JSON. For each kind: its parameters in order, with null or the default if a fit omits it, and its number of
// coordinates. Also the bytes of a weight and of a cached key for each dtype, and the expert layers without a gate.
std::string formula_list() {
  using Json = nlohmann::ordered_json;
  Json list;
  for (const cost::KernelFormula& formula : cost::kernel_formulas()) {
    Json figures;
    for (const config::Parameter& figure : formula.figures)
      figures[figure.name] = figure.fallback ? Json(*config::as_number(*figure.fallback)) : Json();
    list["kinds"][formula.name] = {{"figures", figures}, {"coordinates", 1 + formula.most_others}};
  }
  for (const std::string& name : cost::dtype_names()) list["weight_bytes"][name] = cost::find_dtype(name)->weight_bytes;
  for (const cost::UngatedLayer& layer : cost::ungated_layers()) list["ungated_layers"].push_back({layer.hidden, layer.width});
  list["always_gated"] = {cost::kAlwaysGatedEngine, cost::kAlwaysGatedVersion};
  return list.dump();
}

}  // namespace

ExitCode kernel_formulas_command() {
  print_output("{}\n", formula_list());
  flush_output();
  const std::string line = input_line();
  if (line.empty()) return ExitCode::fine;
  Diagnostics diagnostics;
  const config::Value value = config::parse_json(line, kRequest, diagnostics);
  const config::Arguments arguments = config::read_arguments(value, formula_request(), {}, kRequest, diagnostics);
  diagnostics.throw_if_any();
  const FormulaRequest request = formula_request().read(arguments);
  const cost::KernelFormula& formula = cost::kernel_formula(request.kind);
  cost::KernelFit fit;
  fit.kind = formula.kind;
  fit.dtype = *cost::find_dtype(request.dtype);
  fit.reads_keys = request.reads_keys;
  fit.over = {std::numeric_limits<double>::infinity()};  // a formula covers all shapes of the fit
  std::vector<KernelShape> shapes(static_cast<std::size_t>(request.rows));
  std::vector<double> numbers(shapes.size());
  for (const config::Value& column : request.columns.items) {
    double KernelShape::*const member = shape_member(column);
    if (!read_doubles(numbers)) throw BadInput({kRequest, 0, 0}, "ends within the shapes");
    for (std::size_t i = 0; i < shapes.size(); ++i) shapes[i].*member = numbers[i];
  }
  std::vector<double> figures(cost::KernelFit::kMostFigures);
  for (int wanted = std::getc(stdin); wanted != EOF && read_doubles(figures); wanted = std::getc(stdin)) {
    std::copy(figures.begin(), figures.end(), fit.figures.begin());
    numbers.clear();
    if (wanted == 't') {
      for (const KernelShape& shape : shapes) numbers.push_back(formula.microseconds(fit, request.gpu, shape));
    } else {
      for (const KernelShape& shape : shapes) {
        const cost::KernelFormula::Coordinates at = formula.coordinates(fit, request.gpu, shape);
        numbers.insert(numbers.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(1 + formula.most_others));
      }
    }
    write_doubles(numbers);
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
