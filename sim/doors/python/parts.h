// Parts in Python: objects of a user's classes under names that configs can give.
#pragma once

#include "sim/doors/python/work.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"

#include <pybind11/pybind11.h>

#include <string>

namespace specsim::python {

struct RegisteredRule : RegisteredPart<verify::VerifierEntry> {
  RegisteredRule(const std::string& name, py::object rule, bool lossless);
};

struct RegisteredDrafter : RegisteredPart<draft::DrafterEntry> {
  RegisteredDrafter(const std::string& name, py::object drafter);
};

// Adds the class of the block that a drafter in Python fills.
void add_block_class(py::module_& module);

}  // namespace specsim::python
