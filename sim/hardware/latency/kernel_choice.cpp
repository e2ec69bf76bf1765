#include "sim/hardware/latency/kernel_choice.h"

#include "sim/hardware/gpu/kernel_names.h"

#include <set>
#include <type_traits>
#include <utility>

namespace specsim::cost {

namespace {

KeySplitting splitting_of(const Deployment& deployment) {
  // An engine without kernels of its own never uses attention whose blocks read all keys, whichever engine's fits are used for
  // it.
  const bool nobodys = deployment.kernels == "automatic" && deployment.engine.kernels.empty();
  if (deployment.attention == "automatic") return nobodys ? KeySplitting::split : KeySplitting::automatic;
  return deployment.attention == "serial" ? KeySplitting::walked : KeySplitting::split;
}

}  // namespace

std::string kernels_in_use(const std::string& choice, const std::string& library, const Hardware& hardware) {
  if (choice == "none" || hardware.kernels == nullptr) return "";
  if (choice != "automatic") return choice;
  if (!library.empty()) return library;
  return hardware.kernels_engine;
}

void check_allreduce_kernels(const Engine& engine, const Hardware& hardware, Diagnostics& diagnostics) {
  std::set<std::string> known;
  const auto named = [&](const Engine& one) {
    for (const KernelRule& rule : one.implementations)
      if (rule.operation == RuledOperation::allreduce) known.insert({rule.kernel, rule.launched_kernel});
  };
  for (const std::string& name : kernel_engines()) named(engine_of_library(name));
  if (hardware.kernels)
    for (const KernelFit& fit : hardware.kernels->list)
      if (fit.kind == KernelKind::allreduce && !fit.kernel.empty()) known.insert(fit.kernel);
  known.erase("");
  const auto check = [&](const char* key, const std::string& kernel, const Location& where) {
    if (!kernel.empty() && !known.contains(kernel))
      diagnostics.add(where, config::unknown_name(std::string(key) + " is", kernel, {known.begin(), known.end()}));
  };
  for (const KernelRule& rule : engine.implementations) {
    if (rule.operation != RuledOperation::allreduce) continue;
    check("kernel", rule.kernel, rule.kernel_where);
    check("launched_kernel", rule.launched_kernel, rule.launched_where);
  }
}

ModelKernels::ModelKernels(const Deployment& deployment, const ModelShape& model) : deployment_(deployment), model_(model) {
  const Hardware& hardware = deployment.hardware;
  const Engine& engine = deployment.engine;
  const std::string name = kernels_in_use(deployment.kernels, engine.kernels, hardware);
  if (!name.empty()) library_.emplace(hardware, name);
  auto calibrated = std::make_unique<CalibratedProduct>(hardware, engine, deployment.quantized_efficiency);
  if (deployment.kernels == "automatic" && runs_integer_kernels(engine, hardware))
    integer_set_.emplace(IntegerKernelSet{engine, hardware, *calibrated, deployment.quantized_efficiency});
  const double attention_us = own_layers() ? 0.0 : hardware.calibration.attention_us;

  if (integer_set_) {
    products.add<IntegerProduct>(*integer_set_);
    experts.add<IntegerExperts>(*integer_set_);
    if (deployment.attention == "automatic") attention.add<TiledAttention>(*integer_set_, attention_us);
  }
  if (library_) {
    measured_products_ =
        &products.add<MeasuredProduct>(*library_, engine.fused_quantisation, !deployment.quantized_efficiency.has_value(),
                                       engine.kernels == name && engine.weight_only != WeightOnlyKernels());
    measured_experts_ = &experts.add<MeasuredExperts>(*library_);
    const Engine& attending = engine.kernels == name ? engine : engine_of_library(name);
    const KernelRule* const latent = rule_for(attending, RuledOperation::latent_attention, hardware.compute_capability);
    latent_attention_ = &attention.add<LatentAttention>(
        *library_, latent != nullptr && !latent->library.empty() ? latent->library : attending.kernels);
    const KernelRule* const rule = rule_for(attending, RuledOperation::attention, hardware.compute_capability);
    measured_attention_ = &attention.add<MeasuredAttention>(*library_, splitting_of(deployment), rule ? rule->kernel : "",
                                                            rule != nullptr && rule->reads_all_keys);
    const bool mixture = deployment.target.has_value() && deployment.target->experts > 0.0;
    AllReduceChoice choice = allreduce_choice(engine, name, hardware.compute_capability, mixture);
    fuses_norms_ = choice.rule.fuses_norms;
    allreduce_library_.emplace(hardware, choice.library);
    // An all-reduce that was timed alone includes the wait for its launch. Engines that name their kernels launch ahead of the
    // GPU; their least time of launches is host_us_per_layer.
    measured_allreduce_ =
        &allreduces.add<MeasuredAllReduce>(*allreduce_library_, choice.rule, engine.switch_share, engine.kernels.empty());
  }
  const KernelRule* const unpacked = rule_for(engine, RuledOperation::weight_only_product, hardware.compute_capability);
  if (unpacked != nullptr && unpacked->kernel == kMarlin) products.add<MarlinProduct>(hardware, *calibrated);
  if (other_backend(engine, hardware)) products.add<BackendProduct>(hardware, engine, *calibrated);
  products.add(std::move(calibrated));
  experts.add<GroupedExperts>(hardware, products);
  // llama.cpp multiplies prompts with the latent vectors directly.
  attention.add<CalibratedAttention>(hardware, attention_us, !integer_set_.has_value());
  indexers.add<IndexerKernel>(hardware, engine.selection_ns_per_key);
  allreduces.add<LinkAllReduce>(hardware);
  exchanges.add<ExchangeKernel>(hardware);
  streams.add<StreamKernel>(hardware);
}

bool ModelKernels::own_layers() const {
  return integer_set_ && deployment_.engine.integer->layer_us &&
         (model_.weight_bits < 16.0 || (model_.experts > 0.0 && model_.expert_bits < 16.0));
}

ModelKernels::LayerKernels ModelKernels::layer_kernels() const {
  const double own = own_layers() ? *deployment_.engine.integer->layer_us : deployment_.hardware.calibration.elementwise_us;
  const std::optional<double>& counted = deployment_.engine.small_kernels;
  if (!counted || !library_) return {own, false};  // a calibration was fitted with its own number of small kernels
  const double kernels = *counted - (fuses_norms_ && model_.tensor_parallel > 1.0 ? kNorms : 0.0);
  return {own * std::max(0.0, kernels) / kCalibratedKernels, true};
}

bool ModelKernels::routes_separately(const ExpertsWork& work) const {
  return measured_experts_ != nullptr && experts.estimate(work).kernel == measured_experts_;
}

namespace {

// The implementations of an operation's kind.
template <class Work>
const KernelList<Work>& list_of(const ModelKernels& kernels) {
  if constexpr (std::is_same_v<Work, ProductWork>) return kernels.products;
  if constexpr (std::is_same_v<Work, ExpertsWork>) return kernels.experts;
  if constexpr (std::is_same_v<Work, AttentionWork>) return kernels.attention;
  if constexpr (std::is_same_v<Work, IndexWork>) return kernels.indexers;
  if constexpr (std::is_same_v<Work, AllReduceWork>) return kernels.allreduces;
  if constexpr (std::is_same_v<Work, ExchangeWork>) return kernels.exchanges;
  if constexpr (std::is_same_v<Work, StreamWork>) return kernels.streams;
}

}  // namespace

double ModelKernels::seconds(const Operation& operation) const {
  return std::visit([&](const auto& work) { return list_of<std::decay_t<decltype(work)>>(*this).estimate(work).seconds; },
                    operation.work);
}

ModelKernels::Estimate ModelKernels::estimate(const Operation& operation) const {
  return std::visit(
      [&](const auto& work) -> Estimate {
        const auto found = list_of<std::decay_t<decltype(work)>>(*this).estimate(work);
        return {found.seconds, found.kernel->error(work), found.kernel->label(work)};
      },
      operation.work);
}

}  // namespace specsim::cost
