// Work of the package on threads of its own, without the interpreter's lock, and code in Python that this work calls.
#pragma once

#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/registry.h"

#include <fmt/format.h>

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace specsim::python {

namespace py = pybind11;

struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<double> done{0.0};
  std::atomic<double> all{0.0};
};

inline thread_local bool in_callback = false;  // this thread runs Python code that a piece of work called

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
inline Works& works() {
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
  if (in_callback)
    throw BadInput({"specsim", 0, 0}, "a part is added or removed within a running part, allowed: before or after the call");
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

// An object of a user's class.
class UserObject {
 public:
  // `kind`: "rule", for messages. The registration keeps the object alive.
  UserObject(std::string kind, std::string name, PyObject* object)
      : kind_(std::move(kind)), name_(std::move(name)), object_(object) {}
  [[nodiscard]] py::handle object() const { return object_; }
  [[noreturn]] void refuse(const std::string& what) const { throw BadInput({fmt::format("{} {}", kind_, name_), 0, 0}, what); }
  // Converts an exception from a user's method to an input error, since it crosses threads that do not know Python.
  [[noreturn]] void refuse_raised(const char* method, const py::error_already_set& raised) const {
    refuse(fmt::format("{} raised {}", method, raised.what()));
  }

 private:
  std::string kind_;
  std::string name_;
  PyObject* object_;
};

// A part in Python under a name that configs can use, while this object exists.
template <class Entry>
class RegisteredPart {
 public:
  // `make_entry` is called with the object, which stays alive while the part is registered.
  RegisteredPart(config::Registry<Entry>& registry, const std::string& name, py::object object,
                 const std::function<Entry(PyObject*)>& make_entry)
      : object_(std::move(object)) {
    Entry entry = make_entry(object_.ptr());
    works().alone([&] {
      if (registry.find(name) != nullptr)
        throw BadInput({"name", 0, 0}, fmt::format("\"{}\" is a {} already, allowed: another name", name, registry.kind()));
      entry_ = std::make_unique<config::Registered<Entry>>(registry, std::move(entry));
    });
  }
  ~RegisteredPart() {
    if (entry_ == nullptr) return;
    if (!in_callback && !works().ending()) {
      remove();
      return;
    }
    // Running work may still use it, and the interpreter's end does not wait: the part stays registered.
    static_cast<void>(entry_.release());
    static_cast<void>(object_.release());
  }
  RegisteredPart(const RegisteredPart&) = delete;
  RegisteredPart& operator=(const RegisteredPart&) = delete;
  void remove() {
    works().alone([&] { entry_.reset(); });
  }

 private:
  py::object object_;
  std::unique_ptr<config::Registered<Entry>> entry_;
};

}  // namespace specsim::python
