// A variant's alternatives told apart in place: std::visit(Overloaded{[](const One&) {...}, [](const Other&) {...}}, variant).
#pragma once

namespace specsim {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace specsim
