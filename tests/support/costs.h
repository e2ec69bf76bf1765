// Cost models from the text of a config's cost section, for tests.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/kernel_choice.h"
#include "sim/hardware/latency/pass_operations.h"
#include "sim/hardware/latency/round_time.h"
#include "sim/hardware/model/model_shape.h"
#include "tests/support/diagnostics.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace specsim::tests {

// A cost model: `name` its kind, `text` its parameters as YAML. A null pointer if `mistakes` is requested and there are any.
inline std::unique_ptr<cost::CostModel> make_cost(const std::string& name, const std::string& text,
                                                  std::string* mistakes = nullptr) {
  Diagnostics diagnostics;
  const cost::CostEntry* entry = cost::cost_models().find(name);
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(text, "t", diagnostics);
  const config::Arguments arguments =
      config::read_arguments(section, entry->info.parameters, {"model"}, "cost model " + name, diagnostics);
  std::unique_ptr<cost::CostModel> model;
  if (diagnostics.empty()) model = entry->make(arguments, diagnostics);
  if (mistakes != nullptr) {
    *mistakes = all_messages(diagnostics);
    return diagnostics.empty() ? std::move(model) : nullptr;
  }
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  REQUIRE(model != nullptr);
  return model;
}

inline cost::ModelShape shape_of(const std::string& text) {
  Diagnostics diagnostics;
  cost::ModelShape shape = cost::read_model(config::parse_text(text, "t", diagnostics), "model", diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return shape;
}

inline cost::Engine engine_of(const std::string& yaml) {
  Diagnostics diagnostics;
  cost::Engine engine = cost::read_engine(config::parse_text(yaml, "test", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return engine;
}

inline cost::Hardware hardware_of(const std::string& text) {
  Diagnostics diagnostics;
  cost::Hardware hardware = cost::read_hardware(config::parse_text(text, "t", diagnostics), diagnostics);
  INFO(all_messages(diagnostics));
  REQUIRE(diagnostics.empty());
  return hardware;
}

// The measured kernels of `library` on a GPU, as one model's passes run them under `engine`.
class KernelsOf {
 public:
  KernelsOf(const cost::Hardware& hardware, const std::string& library, const cost::ModelShape& model,
            const cost::Engine& engine = {})
      : deployment_{hardware, model, {}, engine, library, "automatic", false, {}, {}, {}},
        kernels_(deployment_, *deployment_.target) {}
  [[nodiscard]] const cost::ModelKernels& operator*() const { return kernels_; }
  [[nodiscard]] const cost::ModelKernels* operator->() const { return &kernels_; }
  [[nodiscard]] const cost::ModelShape& model() const { return *deployment_.target; }
  // Seconds of one layer's experts for the given number of tokens.
  [[nodiscard]] double experts(double tokens) const {
    return kernels_.experts.estimate(cost::experts_of(model(), tokens)).seconds;
  }
  [[nodiscard]] double experts_error(double tokens) const {
    const cost::ExpertsWork work = cost::experts_of(model(), tokens);
    return kernels_.experts.estimate(work).kernel->error(work).largest();
  }
  [[nodiscard]] double product(double rows, double inner, double outer, const cost::WeightType& type) const {
    return kernels_.products.estimate({rows, inner, outer, 1.0, type}).seconds;
  }
  // Seconds of one layer's attention, of the model's first kind.
  [[nodiscard]] double attention(double sequences, double tokens, double cached, bool prompt = false) const {
    return kernels_.attention.estimate(attention_work(sequences, tokens, cached, prompt)).seconds;
  }
  [[nodiscard]] double attention_error(double tokens) const {
    const cost::AttentionWork work = attention_work(1, tokens, 1024, false);
    return kernels_.attention.estimate(work).kernel->error(work).largest();
  }

  [[nodiscard]] cost::AttentionWork attention_work(double sequences, double tokens, double cached, bool prompt) const {
    const cost::Attending group{sequences, cached, tokens, cached + 0.5 * (tokens + 1.0), prompt, 1.0};
    const cost::Operation operation = cost::attention_operation(model(), model().attention_kinds()[0], group, false, false);
    return std::get<cost::AttentionWork>(operation.work);
  }

 private:
  cost::Deployment deployment_;
  cost::ModelKernels kernels_;
};

inline bool near(double a, double b, double relative = 1e-12) {
  return std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

}  // namespace specsim::tests
