#include "sim/hardware/cost/deployment_warnings.h"

#include "sim/hardware/cost/element_types.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/integer_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace specsim::cost {

namespace {

// Which parts of a price are another GPU's.
std::string borrowed(const Hardware& hardware, bool by_kernels) {
  if (!by_kernels) return fmt::format("{}: priced with what was measured on {}", hardware.name, hardware.fitted_on);
  const std::vector<KernelFit>& fits = hardware.kernels->list;
  if (std::none_of(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::product; })) {
    const auto links =
        std::find_if(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::allreduce; });
    return fmt::format("{}: attention is priced with the fits of {} at its own figures, {}all else with what was measured on {}",
                       hardware.name, hardware.kernels_name,
                       links == fits.end() ? "" : fmt::format("all-reduces with those of {}, ", links->borrowed_from),
                       hardware.fitted_on);
  }
  if (std::none_of(fits.begin(), fits.end(), [](const KernelFit& fit) { return fit.kind == KernelKind::attention_decode; })) {
    std::vector<std::string> types;
    for (const KernelFit& fit : fits)
      if (fit.kind == KernelKind::product && std::find(types.begin(), types.end(), fit.dtype.name) == types.end())
        types.emplace_back(fit.dtype.name);
    return fmt::format("{}: products in {} are priced with the fits of {}, attention and all else with what was measured on {}",
                       hardware.name, fmt::join(types, " and "), hardware.kernels_name, hardware.fitted_on);
  }
  if (hardware.kernels_spread > 0.0)
    return fmt::format(
        "{}: its kernels are priced with the fits of {} at its own figures, norms, activations and sampling with "
        "what was measured on {}",
        hardware.name, hardware.kernels_name, hardware.fitted_on);
  return fmt::format("{}: norms, activations and sampling are priced with what was measured on {}", hardware.name,
                     hardware.fitted_on);
}

}  // namespace

std::vector<std::string> deployment_warnings(const Deployment& deployment, const PassKernels* kernels) {
  const Hardware& hardware = deployment.hardware;
  std::vector<std::string> list;
  if (hardware.unverified) list.push_back(hardware.name + ": its figures are from memory, nobody has checked them");
  if (!hardware.fitted_on.empty()) list.push_back(borrowed(hardware, kernels != nullptr));
  if (deployment.round_unpriced) {
    std::vector<std::string> methods;
    for (const auto& [name, layers] : deployment.engine.proposals) methods.push_back(name);
    list.push_back(
        fmt::format("{}: what a round takes beside its passes goes by the method, and none is named: it is priced as "
                    "nothing. cost.proposal says which: {}",
                    deployment.engine.name, fmt::join(methods, ", ")));
  }
  for (const std::optional<ModelShape>* model : {&deployment.target, &deployment.draft}) {
    if (!*model) continue;
    if ((*model)->tensor_parallel > hardware.linked_gpus)
      list.push_back(fmt::format("{}: {:g} GPUs are priced as if its links joined them; they join {:g}, and a network is slower",
                                 (*model)->name, (*model)->tensor_parallel, hardware.linked_gpus));
    for (const std::string& text : (*model)->assumed) list.push_back(fmt::format("{}: {}", (*model)->name, text));
    if ((*model)->unverified) list.push_back((*model)->name + ": its shape is from memory, nobody has checked it");
    const bool integer = runs_integer_kernels(deployment);
    const bool own_experts = integer && (*model)->expert_bits < 16.0;
    if (own_experts && (*model)->experts > 0.0)
      list.push_back(
          fmt::format("{}: experts are priced as the tiles of {}'s own kernels of 2026; earlier versions took other "
                      "tiles, and from two tokens on waited for the host",
                      (*model)->name, deployment.engine.name));
    if (kernels != nullptr) {
      if (!integer)
        for (std::string& text : kernels->dearer_than_plain(**model)) list.push_back(std::move(text));
      if (std::string text = kernels->cache_assumption(**model); !text.empty()) list.push_back(std::move(text));
      if (std::string text = kernels->row_assumption(**model); !integer && !text.empty()) list.push_back(std::move(text));
      if (std::string text = kernels->experts_assumption(**model); !own_experts && !text.empty()) list.push_back(std::move(text));
    } else if ((*model)->experts > 0.0 && !own_experts) {
      list.push_back(fmt::format("{}: its experts are priced from the data sheet of {}, where no layer of any was measured",
                                 (*model)->name, hardware.name));
    }
    const std::string& type = (*model)->product_type;
    if (integer) continue;  // what follows is of kernels that were not measured
    if (!type.empty() && (*model)->weight_bits < 16.0) {
      const std::string other = kernels == nullptr ? "" : kernels->products_borrowed_from(type);
      const bool weights_alone = find_dtype(type)->activation_bytes >= kActivationBytes;
      if (kernels == nullptr || !kernels->has_products(type))
        list.push_back(
            fmt::format("{}: products of {} are priced from the data sheet of {}{}", (*model)->name, type, hardware.name,
                        weights_alone ? ", and what kernels for weights alone lose from a few rows on by the middle of "
                                        "those that were measured elsewhere"
                                      : ""));
      else if (!other.empty())
        list.push_back(fmt::format("{}: products of {} are priced with the fits of {}: on {} nobody measured them",
                                   (*model)->name, type, other, hardware.name));
    }
    if (type.empty() && (*model)->weight_bits < 16.0)
      list.push_back(fmt::format(
          "{}: weights are read with {:g} bits, arithmetic is priced at 16. Kernels that quantise weights alone (GPTQ, AWQ, "
          "GGUF) lose time from a few rows on{}; kernels that quantise activations too (fp8, int8) take less at many rows: "
          "dtype says which it is",
          (*model)->name, (*model)->weight_bits,
          (*model)->weight_bits < 8.0 ? ", priced as the middle of those that were measured"
                                      : ", so that verification can cost more than is priced here"));
  }
  if (deployment.target && verifies_in_pieces(deployment.engine, hardware.compute_capability, deployment.target->kv_bits))
    list.push_back(fmt::format(
        "{}: over a cache of {:g} bits {}'s verification is no whole graph on {}; launching its pieces is priced as on a fast "
        "host, others take two to three times as long",
        deployment.target->name, deployment.target->kv_bits, deployment.engine.name, hardware.name));
  if (!deployment.target || !deployment.draft) return list;
  if (deployment.draft->on_target() && deployment.draft->hidden != deployment.target->hidden)
    list.push_back(fmt::format("the head {} is {:g} wide, the target {} whose features it reads {:g}", deployment.draft->name,
                               deployment.draft->hidden, deployment.target->name, deployment.target->hidden));
  if (deployment.draft->total_parameters() > deployment.target->total_parameters())
    list.push_back(fmt::format("the draft ({}, {:.2f}B) is larger than the target ({}, {:.2f}B)", deployment.draft->name,
                               1e-9 * deployment.draft->total_parameters(), deployment.target->name,
                               1e-9 * deployment.target->total_parameters()));
  return list;
}

}  // namespace specsim::cost
