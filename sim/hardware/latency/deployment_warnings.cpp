#include "sim/hardware/latency/deployment_warnings.h"

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/pass_operations.h"
#include "sim/hardware/latency/product_kernels.h"
#include "sim/hardware/model/element_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace specsim::cost {

namespace {

// Whether a head's verifier may be this target, by their names: compares the last part of a path, without signs and case.
bool names_agree(const std::string& verifier, const std::string& target) {
  const auto plain = [](const std::string& name) {
    std::string copy;
    for (const char c : name.substr(name.find_last_of('/') + 1))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        copy += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return copy;
  };
  if (verifier.empty() || verifier.front() == '/' || verifier.front() == '.') return true;
  const std::string one = plain(verifier);
  const std::string other = plain(target);
  return one.find(other) != std::string::npos || other.find(one) != std::string::npos;
}

// Which parts of an estimate use another GPU's measurements.
std::string borrowed(const Hardware& hardware, bool by_kernels) {
  if (!by_kernels) return fmt::format("{}: times are estimated from measurements on {}", hardware.name, hardware.fitted_on);
  const std::vector<KernelFit>& fits = hardware.kernels->list;
  if (std::none_of(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::product; })) {
    const auto links =
        std::find_if(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::allreduce; });
    return fmt::format(
        "{}: attention is estimated with the fits of {} at its own figures, {}everything else from measurements on {}",
        hardware.name, hardware.kernels_name,
        links == fits.end() ? "" : fmt::format("all-reduces with those of {}, ", links->borrowed_from), hardware.fitted_on);
  }
  if (std::none_of(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::attention_decode; })) {
    std::vector<std::string> types;
    for (const KernelFit& fit : fits)
      if (fit.kind == KernelKind::product && std::find(types.begin(), types.end(), fit.dtype.name) == types.end())
        types.emplace_back(fit.dtype.name);
    return fmt::format(
        "{}: products in {} are estimated with the fits of {}, attention and everything else from measurements on {}",
        hardware.name, fmt::join(types, " and "), hardware.kernels_name, hardware.fitted_on);
  }
  if (hardware.kernels_spread > 0.0)
    return fmt::format(
        "{}: its kernels are estimated with the fits of {} at its own figures, norms, activations and sampling from "
        "measurements on {}",
        hardware.name, hardware.kernels_name, hardware.fitted_on);
  return fmt::format("{}: norms, activations and sampling are estimated from measurements on {}", hardware.name,
                     hardware.fitted_on);
}

// Reports that one row is estimated like a few more rows, for less than was measured; empty if it is not.
std::string row_assumption(const ModelKernels& kernels, const ModelShape& model) {
  const MeasuredProduct& products = *kernels.measured_products();
  const double dip = products.dip(layer_type(model), model.hidden, std::max(1.0, model.ffn / model.tensor_parallel));
  if (dip == 1.0) return "";
  const KernelFit& fit = *products.fit(layer_type(model));
  return fmt::format(
      "{}: products of {} over one row were measured at {:.1f} times those over a few more ({}'s kernel); they are estimated "
      "like the latter",
      model.name, fit.dtype.name, dip, fit.engine);
}

// How a cache of this many bits is estimated if no attention over one was measured; empty if one was.
std::string cache_assumption(const ModelKernels& kernels, const ModelShape& model, const Hardware& hardware) {
  const KernelFit* one = kernels.measured_attention()->fits(model.kv_bits).one;
  if (one == nullptr || model.over_one_vector() || MeasuredAttention::share_of_keys(*one, model.kv_bits) >= 1.0) return "";
  return fmt::format(
      "{}: no attention over a cache of {:g} bits was measured on {}; it is estimated like one in {} of as many bytes",
      model.name, model.kv_bits, hardware.name, one->dtype.name);
}

// The assumption about a model's experts if its engine's kernels were not measured on a layer like them; empty if they were.
std::string experts_assumption(const ModelKernels& kernels, const ModelShape& model, const Hardware& hardware) {
  using Basis = MeasuredExperts::Basis;
  if (model.experts <= 0.0) return "";
  const ExpertsWork work = experts_of(model, kFewTokens);
  const std::string layer =
      fmt::format("{}: {:g} experts, {:g} per token, {:g} wide", model.name, work.experts, work.per_token, work.width);
  const MeasuredExperts::Choice choice = kernels.measured_experts()->choose(work);
  if (choice.kernel == nullptr)
    return fmt::format("{}: estimated from the data sheet of {}, because no layer like it was measured", layer, hardware.name);
  const bool as_blocks = MeasuredExperts::as_blocks(choice, work);
  if (choice.basis == Basis::like && !as_blocks) return "";
  const std::string_view measured = choice.kernel->dtype.name;
  const std::string kernel =
      choice.kernel->engine + "'s kernel" + (choice.kernel->kernel.empty() ? "" : " ") + choice.kernel->kernel;
  if (as_blocks)
    return fmt::format(
        "{}: fp8 experts scaled by tensor were measured at {:.1f} times those scaled in blocks or more at {:g} tokens; they "
        "are estimated like the latter, by {}",
        layer, MeasuredExperts::kMuchSlower, kFewTokens, kernel);
  if (choice.basis == Basis::bytes)
    return fmt::format("{}: no layer of {} bits like it was measured on {}; it is estimated by its bytes with {} for bf16", layer,
                       model.expert_bits, hardware.name, kernel);
  const std::string type = model.expert_type.empty() ? std::string(measured) : model.expert_type;
  return fmt::format("{}: no layer like it was measured with {} on {}; it is estimated by {} as measured on others{}", layer,
                     type, hardware.name, kernel, type == measured ? "" : fmt::format(" with {}", measured));
}

// Types of fewer than 16 bits that cost more time than bf16 with the measured kernels: one line each.
std::vector<std::string> slower_than_plain(const ModelKernels& kernels, const ModelShape& model) {
  constexpr double kSlower = 1.1;  // differences within the error of two fits are not reported
  std::vector<std::string> list;
  // The worst of a few row counts.
  const auto look = [&](const char* what, const auto& narrow, const auto& plain) {
    const KernelFit* kernel = nullptr;
    double worst = kSlower;
    double at = 0.0;
    for (const double rows : {1.0, 8.0, 64.0}) {
      const auto [fit, seconds] = narrow(rows);
      const double against = plain(rows);
      if (fit == nullptr || against <= 0.0 || seconds / against <= worst) continue;
      kernel = fit;
      worst = seconds / against;
      at = rows;
    }
    if (kernel != nullptr)
      list.push_back(fmt::format(
          "{}: {} of {} cost {:.1f} times the time of bf16 at {:g} rows, by {}'s kernel{} as it was measured", model.name, what,
          kernel->dtype.name, worst, at, kernel->engine, kernel->kernel.empty() ? "" : " " + kernel->kernel));
  };
  const auto experts = [&](double rows, const WeightType& type) {
    ExpertsWork work = experts_of(model, rows);
    work.type = type;
    return kernels.measured_experts()->choose(work);
  };
  if (model.experts > 0.0 && model.expert_bits < 16.0)
    look(
        "experts",
        [&](double rows) {
          const auto choice = experts(rows, {model.expert_bits, model.expert_type});
          return std::pair{choice.kernel, choice.us};
        },
        [&](double rows) {
          return experts(rows, {model.expert_bits, "bfloat16"}).us;
        });
  if (model.weight_bits >= 16.0) return list;
  const MeasuredProduct& products = *kernels.measured_products();
  const auto layers = [&](double rows, const WeightType& type) {
    double sum = 0.0;
    PassRows of;
    of.computed = of.tokens = of.expert_rows = rows;
    for (const ProductGroup& group : layer_products(model, of))
      for (const Operation& operation : group.operations) {
        const auto* const work = std::get_if<ProductWork>(&operation.work);
        if (work == nullptr || operation.stream == Stream::routed_experts || work->type.bits != model.weight_bits) continue;
        ProductWork own = *work;
        own.type = type;
        sum += group.layers * operation.count * products.seconds(own).value_or(0.0);
      }
    return sum;
  };
  look(
      "products",
      [&](double rows) {
        return std::pair{products.fit(layer_type(model)), layers(rows, layer_type(model))};
      },
      [&](double rows) {
        return layers(rows, {16.0, "bfloat16"});
      });
  return list;
}

}  // namespace

std::vector<std::string> deployment_warnings(const Deployment& deployment, const ModelKernels* target,
                                             const ModelKernels* draft) {
  const Hardware& of_target = deployment.hardware;
  const ModelKernels* const any = target != nullptr ? target : draft;
  std::vector<std::string> list;
  const auto warn_of = [&](const Hardware& gpu, const ModelKernels* kernels) {
    if (gpu.unverified) list.push_back(gpu.name + ": its figures are from memory, not verified");
    if (!gpu.fitted_on.empty()) list.push_back(borrowed(gpu, kernels != nullptr && kernels->measured_products() != nullptr));
  };
  warn_of(of_target, any);
  if (deployment.draft_place && deployment.draft_place->hardware.name != of_target.name)
    warn_of(deployment.draft_place->hardware, draft);
  if (deployment.host_time_unknown) {
    std::vector<std::string> methods;
    for (const auto& [name, layers] : deployment.engine.proposals) methods.push_back(name);
    list.push_back(
        fmt::format("{}: host time of a round besides its passes depends on the method, and no method is named, so it counts "
                    "as 0. Set cost.proposal to one of: {}",
                    deployment.engine.name, fmt::join(methods, ", ")));
  }
  if (other_backend(deployment.engine, of_target))
    list.push_back(
        fmt::format("{} on {}: its backend there (Vulkan, ROCm, Metal) has no measured kernels. Published speedups of "
                    "speculation with these backends range from .9 to 3.3; measure before you decide",
                    deployment.engine.name, of_target.name));
  const Hardware& of_draft = deployment.draft_place ? deployment.draft_place->hardware : of_target;
  for (const std::optional<ModelShape>* model : {&deployment.target, &deployment.draft}) {
    if (!*model) continue;
    const Hardware& hardware = model == &deployment.draft ? of_draft : of_target;
    const ModelKernels& kernels = model == &deployment.target ? *target : *draft;
    const bool measured = kernels.measured_products() != nullptr;
    if ((*model)->tensor_parallel > hardware.linked_gpus)
      list.push_back(
          fmt::format("{}: {:g} GPUs are estimated as if its links joined them; the links join {:g}, and a network is slower",
                      (*model)->name, (*model)->tensor_parallel, hardware.linked_gpus));
    for (const std::string& text : (*model)->assumed) list.push_back(fmt::format("{}: {}", (*model)->name, text));
    if ((*model)->unverified) list.push_back((*model)->name + ": its shape is from memory, not verified");
    const bool integer = kernels.integer();
    const bool own_experts = integer && (*model)->expert_bits < 16.0;
    if (own_experts && (*model)->experts > 0.0)
      list.push_back(
          fmt::format("{}: experts are estimated with the tiles of {}'s own kernels of 2026; earlier versions took other "
                      "tiles, and from two tokens on waited for the host",
                      (*model)->name, deployment.engine.name));
    if (measured) {
      const auto add = [&](std::string text) {
        if (!text.empty()) list.push_back(std::move(text));
      };
      if (!integer)
        for (std::string& text : slower_than_plain(kernels, **model)) add(std::move(text));
      add(cache_assumption(kernels, **model, hardware));
      if (!integer) add(row_assumption(kernels, **model));
      if (!own_experts) add(experts_assumption(kernels, **model, hardware));
    } else if ((*model)->experts > 0.0 && !own_experts) {
      list.push_back(
          fmt::format("{}: its experts are estimated from the data sheet of {}, because no layer of experts was measured there",
                      (*model)->name, hardware.name));
    }
    const std::string& type = (*model)->product_type;
    if (integer) continue;  // the following warnings are about kernels that were not measured
    if (!type.empty() && (*model)->weight_bits < 16.0) {
      const KernelFit* const fit = measured ? kernels.measured_products()->fit({0.0, type}) : nullptr;
      const bool weights_alone =
          find_dtype(type)->activation_bytes >= kActivationBytes && !other_backend(deployment.engine, hardware);
      if (fit == nullptr)
        list.push_back(
            fmt::format("{}: products of {} are estimated from the data sheet of {}{}", (*model)->name, type, hardware.name,
                        weights_alone ? ", and the loss of weight-only kernels from a few rows on is the median of the kernels "
                                        "measured elsewhere"
                                      : ""));
      else if (!fit->borrowed_from.empty())
        list.push_back(fmt::format("{}: products of {} are estimated with the fits of {}: they were not measured on {}",
                                   (*model)->name, type, fit->borrowed_from, hardware.name));
    }
    if (type.empty() && (*model)->weight_bits < 16.0)
      list.push_back(fmt::format(
          "{}: weights are read with {:g} bits, arithmetic is estimated at 16. Kernels that quantise weights alone (GPTQ, AWQ, "
          "GGUF) lose time from a few rows on{}; kernels that quantise activations too (fp8, int8) take less at many rows. Set "
          "dtype to choose between them",
          (*model)->name, (*model)->weight_bits,
          (*model)->weight_bits < 8.0 ? ", estimated as the median of the measured ones"
                                      : ", so that verification can cost more than this estimate"));
  }
  if (deployment.target && verifies_in_pieces(deployment.engine, of_target.compute_capability, deployment.target->kv_bits))
    list.push_back(fmt::format(
        "{}: over a cache of {:g} bits {}'s verification does not run as one graph on {}; launching its pieces is estimated "
        "for a fast host, others take two to three times as long",
        deployment.target->name, deployment.target->kv_bits, deployment.engine.name, of_target.name));
  if (!deployment.target || !deployment.draft) return list;
  if (const std::string other = made_for_another(*deployment.target, *deployment.draft); !other.empty())
    list.push_back(fmt::format("{}: {}; no engine serves the pair", deployment.draft->name, other));
  else if (!names_agree(deployment.draft->verifier, deployment.target->name))
    list.push_back(fmt::format("{} was made for {}, the target is {}", deployment.draft->name, deployment.draft->verifier,
                               deployment.target->name));
  if (deployment.draft->total_parameters() > deployment.target->total_parameters())
    list.push_back(fmt::format("the draft ({}, {:.2f}B) is larger than the target ({}, {:.2f}B)", deployment.draft->name,
                               1e-9 * deployment.draft->total_parameters(), deployment.target->name,
                               1e-9 * deployment.target->total_parameters()));
  return list;
}

}  // namespace specsim::cost
