// specsim._core: the compiled part of the Python package specsim. The package itself is in Python, in the same folder.
//
// Work runs on a separate thread without the interpreter's lock. The calling thread waits, checks for Ctrl-C and reports
// progress, so that a callback in Python never blocks a worker.
#include "sim/doors/api/specsim.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/python/parts.h"
#include "sim/doors/python/work.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

const std::string& command_line() {
  static const std::string line = "python: import specsim";
  return line;
}

}  // namespace specsim::cli

namespace specsim::python {

namespace {

// The system ends file names at a NUL, so another file than the named one would be read.
void refuse_nul(const std::string& text) {
  if (text.find('\0') != std::string::npos)
    throw BadInput({"", 0, 0}, fmt::format("\"{}\" has a NUL character, allowed: a text without", text));
}

using Settings = std::vector<std::pair<std::string, std::string>>;

api::Results run(const std::string& config, const std::string& name, bool is_file, const Settings& set,
                 std::optional<std::uint64_t> seed, unsigned threads, const std::function<void(double, double)>& progress) {
  if (is_file) refuse_nul(config);
  Watch watch;
  api::Options options;
  options.set = set;
  options.seed = seed;
  options.threads = threads;
  options.stop = &watch.stop;
  options.progress = [&](double done, double all) {
    watch.done = done;
    watch.all = all;
  };
  return watched<api::Results>(watch, progress,
                               [&] { return is_file ? api::run_file(config, options) : api::run_text(config, name, options); });
}

// A column as a list of numbers if every field is a number or empty (NaN), otherwise of texts.
py::object column_of(const api::Results& results, std::size_t column) {
  const std::string& name = results.columns[column].name;
  bool numbers = true;
  bool any = false;
  for (const api::Row& row : results.rows) {
    const std::string& text = row.values[column].second;
    if (text.empty()) continue;
    any = true;
    numbers = numbers && !std::isnan(row.number(name));
  }
  if (numbers && any) {
    py::array_t<double> values(static_cast<py::ssize_t>(results.rows.size()));
    auto at = values.mutable_unchecked<1>();
    for (std::size_t i = 0; i < results.rows.size(); ++i) at(static_cast<py::ssize_t>(i)) = results.rows[i].number(name);
    return values;
  }
  py::list texts;
  for (const api::Row& row : results.rows) texts.append(row.values[column].second);
  return texts;
}

// A command's output as JSON, and its exit status.
std::pair<int, std::string> command(const std::vector<std::string>& arguments) {
  const cli::Command* found = nullptr;
  for (const cli::Command& one : cli::commands())
    if (!arguments.empty() && one.name == arguments.front()) found = &one;
  if (found == nullptr) throw BadInput({"", 0, 0}, "no such command");
  for (const std::string& argument : arguments) refuse_nul(argument);
  Watch watch;
  const std::vector<std::string> others(arguments.begin() + 1, arguments.end());
  const auto output = watched<cli::JsonOutput>(watch, {}, [&] { return cli::run_for_json(*found, others); });
  if (output.status == ExitCode::interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::error_already_set();
  }
  return {static_cast<int>(output.status), output.text};
}

}  // namespace

}  // namespace specsim::python

PYBIND11_MODULE(_core, module) {
  namespace api = specsim::api;
  namespace py = pybind11;
  namespace python = specsim::python;
  namespace build_info = specsim::build_info;
  using specsim::BadInput;
  using specsim::InvariantBroken;
  using specsim::IoError;
  py::module_::import("atexit").attr("register")(py::cpp_function([] { python::works().end_all(); }));
  module.doc() = "Internal module of the package specsim; use the package.";
  module.attr("version") = build_info::version;
  module.attr("commit") = build_info::commit;

  static py::exception<BadInput> input_error(module, "InputError", PyExc_ValueError);
  static py::exception<IoError> file_error(module, "FileError", PyExc_OSError);
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the type that pybind11 asks for
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const BadInput& bad) {
      input_error(bad.what());
    } catch (const api::InputError& bad) {
      input_error(bad.what());
    } catch (const IoError& failure) {
      file_error(failure.what());
    } catch (const api::FileError& failure) {
      file_error(failure.what());
    } catch (const InvariantBroken& broken) {
      PyErr_SetString(PyExc_SystemError, broken.what());
    }
  });

  py::class_<api::Results>(module, "Results")
      .def_property_readonly("columns",
                             [](const api::Results& results) {
                               std::vector<std::string> names;
                               for (const api::ColumnInfo& column : results.columns) names.push_back(column.name);
                               return names;
                             })
      .def_property_readonly("units",
                             [](const api::Results& results) {
                               std::map<std::string, std::string> units;
                               for (const api::ColumnInfo& column : results.columns) units[column.name] = column.unit;
                               return units;
                             })
      .def_property_readonly("meanings",
                             [](const api::Results& results) {
                               std::map<std::string, std::string> meanings;
                               for (const api::ColumnInfo& column : results.columns) meanings[column.name] = column.meaning;
                               return meanings;
                             })
      .def_property_readonly("csv", [](const api::Results& results) { return results.csv; })
      .def("__len__", [](const api::Results& results) { return results.rows.size(); })
      .def("column", [](const api::Results& results, const std::string& name) {
        for (std::size_t i = 0; i < results.columns.size(); ++i)
          if (results.columns[i].name == name) return python::column_of(results, i);
        throw py::key_error(name);
      });
  module.def("run", &python::run, py::arg("config"), py::arg("name"), py::arg("is_file"), py::arg("set"), py::arg("seed"),
             py::arg("threads"), py::arg("progress"));
  module.def("command", &python::command, py::arg("arguments"));
  py::class_<python::RegisteredRule>(module, "RegisteredRule")
      .def(py::init<const std::string&, py::object, bool>(), py::arg("name"), py::arg("rule"), py::arg("lossless"))
      .def("remove", [](python::RegisteredRule& rule) { rule.remove(); });
  py::class_<python::RegisteredDrafter>(module, "RegisteredDrafter")
      .def(py::init<const std::string&, py::object>(), py::arg("name"), py::arg("drafter"))
      .def("remove", [](python::RegisteredDrafter& drafter) { drafter.remove(); });
  python::add_block_class(module);
}
