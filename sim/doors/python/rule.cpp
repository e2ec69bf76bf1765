// Verification rules in Python.
#include "sim/doors/python/parts.h"

#include <fmt/format.h>

#include <pybind11/numpy.h>

#include <algorithm>
#include <span>

namespace specsim::python {

namespace {

py::array_t<double> array_of(std::span<const double> values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

class PythonRule final : public verify::PositionRule {
 public:
  using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

  PythonRule(UserObject rule, bool at_once) : rule_(std::move(rule)), at_once_(at_once) {}

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
    const py::handle rule = rule_.object();
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
          rule_.refuse(fmt::format("residual gave {} for token {}, allowed: 0 or more, and finite", weights[x], x));
      }
    } catch (py::error_already_set& raised) {
      rule_.refuse_raised("residual", raised);
    }
  }

 private:
  [[nodiscard]] Array each_token(const py::object& given, const char* method, py::ssize_t tokens) const {
    Array array(given);
    if (array.ndim() != 1 || array.size() != tokens)
      rule_.refuse(fmt::format("{} gave {} values, allowed: one for each of {} tokens", method, array.size(), tokens));
    return array;
  }

  void check_probability(double probability, const char* method, std::size_t token) const {
    if (!(probability >= 0.0 && probability <= 1.0))
      rule_.refuse(fmt::format("{} gave {} for token {}, allowed: a probability", method, probability, token));
  }

  // [token]: the probability with which it is accepted.
  [[nodiscard]] std::vector<double> accepted(const py::array_t<double>& target, const py::array_t<double>& drafted) const {
    std::vector<double> all(static_cast<std::size_t>(target.size()));
    if (!at_once_) {
      for (std::size_t x = 0; x < all.size(); ++x) all[x] = accept(target, drafted, static_cast<Token>(x));
      return all;
    }
    try {
      const Array given = each_token(rule_.object().attr("accept_all")(target, drafted), "accept_all", target.size());
      for (std::size_t x = 0; x < all.size(); ++x) {
        all[x] = given.data()[x];
        check_probability(all[x], "accept_all", x);
      }
    } catch (py::error_already_set& raised) {
      rule_.refuse_raised("accept_all", raised);
    }
    return all;
  }

  [[nodiscard]] double accept(const py::array_t<double>& target, const py::array_t<double>& drafted, Token x) const {
    try {
      const auto probability = rule_.object().attr("accept")(target, drafted, static_cast<int>(x)).cast<double>();
      check_probability(probability, "accept", x);
      return probability;
    } catch (py::error_already_set& raised) {
      rule_.refuse_raised("accept", raised);
    } catch (const py::cast_error&) {
      rule_.refuse("accept gave no number, allowed: a probability");
    }
  }

  UserObject rule_;
  bool at_once_;  // it has accept_all()
};

}  // namespace

RegisteredRule::RegisteredRule(const std::string& name, py::object rule, bool lossless)
    : RegisteredPart(verify::verifiers(), name, std::move(rule), [&](PyObject* object) {
        const bool at_once = py::hasattr(object, "accept_all");
        return verify::VerifierEntry{
            {name, "a rule in Python", "", {}, ""},
            lossless,
            {},
            [=](const config::Arguments&) { return std::make_unique<PythonRule>(UserObject("rule", name, object), at_once); },
            {}};
      }) {}

}  // namespace specsim::python
