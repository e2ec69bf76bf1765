// specsim._core: the compiled part of the Python package specsim. The package itself is in Python, in the same folder.
//
// Work runs on a separate thread without the interpreter's lock. The calling thread waits, checks for Ctrl-C and reports
// progress, so that a callback in Python never blocks a worker.
#include "sim/doors/api/specsim.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"
#include "sim/rounds/verify/verifier.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace specsim::cli {

const std::string& command_line() {
  static const std::string line = "python: import specsim";
  return line;
}

}  // namespace specsim::cli

namespace specsim::python {

namespace {

struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<double> done{0.0};
  std::atomic<double> all{0.0};
};

thread_local bool in_callback = false;  // this thread runs Python code that a piece of work called

// The running pieces of work. The interpreter's end stops them and waits for them. At that time no C++ frame may lie below a
// Python frame, since the interpreter unwinds threads that ask for its lock. Rules are added and removed only while no work
// runs.
class Works {
 public:
  // Called before a piece of work begins, and after it has ended. Never returns if the interpreter is ending.
  void begin(Watch& watch) {
    std::unique_lock lock(mutex_);
    // Work that a callback starts belongs to running work. It must not wait for that, or both would wait forever.
    changed_.wait(lock, [&] { return in_callback || (!ending_ && changing_ == 0); });
    running_.push_back(&watch);
  }
  void end(Watch& watch) {
    const std::lock_guard lock(mutex_);
    std::erase(running_, &watch);
    changed_.notify_all();
  }
  bool ending() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }
  // Takes the interpreter's lock again. Never returns if the interpreter is ending, except in a callback, since the end waits
  // for the callback's work.
  void take_lock(PyThreadState* state) {
    {
      std::unique_lock lock(mutex_);
      while (ending_ && !in_callback) changed_.wait(lock);  // forever: nothing is left to do
      ++taking_;
    }
    PyEval_RestoreThread(state);
    const std::lock_guard lock(mutex_);
    --taking_;
    changed_.notify_all();
  }
  // Calls `change` while no work runs, and lets none begin. Throws BadInput if called in a callback of running work.
  template <class Change>
  void alone(const Change& change);
  // Called at the interpreter's end, with its lock.
  void end_all() {
    PyThreadState* const state = PyEval_SaveThread();
    {
      std::unique_lock lock(mutex_);
      ending_ = true;
      for (Watch* const watch : running_) watch->stop = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return running_.empty() && taking_ == 0; });
    }
    PyEval_RestoreThread(state);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watch*> running_;
  int taking_ = 0;    // threads waiting for the interpreter's lock
  int changing_ = 0;  // threads waiting for all work to end
  bool ending_ = false;
};

// Never destroyed: threads may still wait in it after the interpreter's end.
Works& works() {
  static auto* const all = new Works;
  return *all;
}

// While an object exists, other threads can take the interpreter's lock.
class WithoutLock {
 public:
  WithoutLock() : state_(PyEval_SaveThread()) {}
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;
  ~WithoutLock() { works().take_lock(state_); }

 private:
  PyThreadState* state_;
};

template <class Change>
void Works::alone(const Change& change) {
  if (in_callback) throw BadInput({"rule", 0, 0}, "added or removed within a running rule, allowed: before or after it");
  const WithoutLock free;
  std::unique_lock lock(mutex_);
  ++changing_;
  changed_.wait(lock, [&] { return ending_ || running_.empty(); });
  try {
    if (!ending_) change();
  } catch (...) {
    --changing_;
    changed_.notify_all();
    throw;
  }
  --changing_;
  changed_.notify_all();
}

// Takes the interpreter's lock for Python code that a worker thread calls.
class Callback {
 public:
  Callback() : before_(std::exchange(in_callback, true)) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { in_callback = before_; }

 private:
  bool before_;
  py::gil_scoped_acquire locked_;
};

// Runs `work` on another thread, in its own context, and waits for it. Calls `progress(done, all)` several times per second.
// Ctrl-C sets watch.stop, and is raised once the work has ended.
template <class Result, class Work>
Result watched(Watch& watch, const std::function<void(double, double)>& progress, const Work& work) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  if (works().ending()) throw std::runtime_error("the interpreter is ending");
  std::future<Result> result;
  bool interrupted = false;
  {
    const WithoutLock free;
    works().begin(watch);
    try {
      result = std::async(std::launch::async, [&watch, &work] {
        Context own;
        const WithContext within(own);
        cli::stop_by(&watch.stop);
        const struct Ended {
          Watch& watch;
          ~Ended() { works().end(watch); }
        } ended{watch};
        return work();
      });
    } catch (...) {
      works().end(watch);
      throw;
    }
  }
  while (true) {
    std::future_status status = std::future_status::timeout;
    {
      const WithoutLock free;
      status = result.wait_for(kBetweenLooks);
    }
    if (status == std::future_status::ready) break;
    if (interrupted) continue;
    bool failed = PyErr_CheckSignals() != 0;
    if (!failed && progress && watch.all > 0.0) {
      try {
        progress(watch.done, watch.all);
      } catch (py::error_already_set& raised) {
        raised.restore();
        failed = true;
      }
    }
    if (failed) {
      interrupted = true;
      watch.stop = true;
    }
  }
  if (interrupted) {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    try {
      result.get();
    } catch (...) {  // the work reports that it was stopped
    }
    PyErr_Restore(type, value, trace);
    throw py::error_already_set();
  }
  if (progress && watch.all > 0.0) progress(watch.all, watch.all);
  return result.get();
}

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

// ---- rules in Python ----------------------------------------------------------------------------------------------------------

py::array_t<double> array_of(std::span<const double> values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

// Converts an exception from a user's method to an input error, since it crosses threads that do not know Python.
[[noreturn]] void throw_raised(const std::string& name, const char* method, py::error_already_set& raised) {
  throw BadInput({fmt::format("rule {}", name), 0, 0}, fmt::format("{} raised {}", method, raised.what()));
}

class PythonRule final : public verify::PositionRule {
 public:
  using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

  PythonRule(std::string name, PyObject* rule, bool at_once) : name_(std::move(name)), rule_(rule), at_once_(at_once) {}

  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& distributions, Token x) const override {
    const Callback locked;
    const py::array_t<double> target = array_of(distributions.target);
    const py::array_t<double> drafted = array_of(distributions.drafted);
    return {at_once_ ? accepted(target, drafted)[x] : accept(target, drafted, x), 1.0};
  }

  void all_odds(const verify::PositionDistributions& distributions, std::span<verify::Odds> of_tokens) const override {
    const Callback locked;
    const std::vector<double> all = accepted(array_of(distributions.target), array_of(distributions.drafted));
    for (std::size_t x = 0; x < of_tokens.size(); ++x) of_tokens[x] = {all[x], 1.0};
  }

  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    const Callback locked;
    const py::array_t<double> target = array_of(distributions.target);
    const py::array_t<double> drafted = array_of(distributions.drafted);
    const py::handle rule(rule_);
    if (!py::hasattr(rule, "residual")) {
      // The part of the target that acceptance leaves. With it, any rule that accepts at most the target's probability of a
      // token is lossless.
      const std::vector<double> all = accepted(target, drafted);
      for (std::size_t x = 0; x < weights.size(); ++x)
        weights[x] = std::max(0.0, distributions.target[x] - distributions.drafted[x] * all[x]);
      return;
    }
    try {
      const Array given = each_token(rule.attr("residual")(target, drafted), "residual", target.size());
      for (std::size_t x = 0; x < weights.size(); ++x) {
        weights[x] = given.data()[x];
        if (!(weights[x] >= 0.0 && weights[x] < 1e300))
          throw BadInput({fmt::format("rule {}", name_), 0, 0},
                         fmt::format("residual gave {} for token {}, allowed: 0 or more, and finite", weights[x], x));
      }
    } catch (py::error_already_set& raised) {
      throw_raised(name_, "residual", raised);
    }
  }

 private:
  [[nodiscard]] Array each_token(const py::object& given, const char* method, py::ssize_t tokens) const {
    Array array(given);
    if (array.ndim() != 1 || array.size() != tokens)
      throw BadInput({fmt::format("rule {}", name_), 0, 0},
                     fmt::format("{} gave {} values, allowed: one for each of {} tokens", method, array.size(), tokens));
    return array;
  }

  void check_probability(double probability, const char* method, std::size_t token) const {
    if (!(probability >= 0.0 && probability <= 1.0))
      throw BadInput({fmt::format("rule {}", name_), 0, 0},
                     fmt::format("{} gave {} for token {}, allowed: a probability", method, probability, token));
  }

  // [token]: the probability with which it is accepted.
  [[nodiscard]] std::vector<double> accepted(const py::array_t<double>& target, const py::array_t<double>& drafted) const {
    std::vector<double> all(static_cast<std::size_t>(target.size()));
    if (!at_once_) {
      for (std::size_t x = 0; x < all.size(); ++x) all[x] = accept(target, drafted, static_cast<Token>(x));
      return all;
    }
    try {
      const Array given = each_token(py::handle(rule_).attr("accept_all")(target, drafted), "accept_all", target.size());
      for (std::size_t x = 0; x < all.size(); ++x) {
        all[x] = given.data()[x];
        check_probability(all[x], "accept_all", x);
      }
    } catch (py::error_already_set& raised) {
      throw_raised(name_, "accept_all", raised);
    }
    return all;
  }

  [[nodiscard]] double accept(const py::array_t<double>& target, const py::array_t<double>& drafted, Token x) const {
    try {
      const auto probability = py::handle(rule_).attr("accept")(target, drafted, static_cast<int>(x)).cast<double>();
      check_probability(probability, "accept", x);
      return probability;
    } catch (py::error_already_set& raised) {
      throw_raised(name_, "accept", raised);
    } catch (const py::cast_error&) {
      throw BadInput({fmt::format("rule {}", name_), 0, 0}, "accept gave no number, allowed: a probability");
    }
  }

  std::string name_;
  PyObject* rule_;  // kept alive by the registration
  bool at_once_;    // it has accept_all()
};

// A rule under a name that configs can use, while this object exists.
class RegisteredRule {
 public:
  RegisteredRule(const std::string& name, py::object rule, bool lossless) : rule_(std::move(rule)) {
    PyObject* const held = rule_.ptr();
    const bool at_once = py::hasattr(rule_, "accept_all");
    works().alone([&] {
      if (verify::verifiers().find(name) != nullptr)
        throw BadInput({"name", 0, 0}, fmt::format("\"{}\" is a verifier already, allowed: another name", name));
      entry_ = std::make_unique<config::Registered<verify::VerifierEntry>>(
          verify::verifiers(),
          verify::VerifierEntry{{name, "a rule in Python", "", {}, ""},
                                lossless,
                                {},
                                [=](const config::Arguments&) { return std::make_unique<PythonRule>(name, held, at_once); },
                                {}});
    });
  }
  ~RegisteredRule() {
    if (entry_ == nullptr) return;
    if (!in_callback && !works().ending()) {
      remove();
      return;
    }
    // Running work may still use it, and the interpreter's end does not wait: the rule stays registered.
    static_cast<void>(entry_.release());
    static_cast<void>(rule_.release());
  }
  RegisteredRule(const RegisteredRule&) = delete;
  RegisteredRule& operator=(const RegisteredRule&) = delete;
  void remove() {
    works().alone([&] { entry_.reset(); });
  }

 private:
  py::object rule_;
  std::unique_ptr<config::Registered<verify::VerifierEntry>> entry_;
};

}  // namespace

}  // namespace specsim::python

PYBIND11_MODULE(_core, module) {
  namespace api = specsim::api;
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
      .def("remove", &python::RegisteredRule::remove);
}
