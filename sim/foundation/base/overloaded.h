// Visits a variant with one lambda per alternative: std::visit(Overloaded{[](const One&) {...}, [](const Other&) {...}},
// variant).
#pragma once

namespace specsim {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace specsim
