#include "sim/hardware/latency/measured_range.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::cost {

std::vector<std::string> beyond_measured_range(const ModelLatency& latency, const Pass& pass) {
  constexpr double kSlack = 1.01;  // knots are rounded
  constexpr double kFewRowsOfSeveral = 20.0;
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  const ModelShape& model = latency.model();
  const ModelKernels& kernels = latency.kernels();
  std::vector<std::string> list;
  if (kernels.measured_products() == nullptr) return list;
  const auto look = [&](const KernelFit* found, double own, double unit, const char* what) {
    if (found != nullptr && own > kSlack * found->most())
      list.push_back(fmt::format("{}: passes of more than {:.4g} {}, beyond the measured range of its kernels", model.name,
                                 found->most() / unit, what));
  };
  const double rows = pass.batch * pass.tokens;
  look(kernels.measured_products()->fit(layer_type(model)), rows, 1.0, "rows");
  if (model.experts > 0.0)
    look(kernels.measured_experts()->choose(experts_of(model, rows)).kernel, rows, 1.0, "tokens to experts");
  if (model.tensor_parallel > 1.0)
    look(kernels.measured_allreduce()->fit(model.tensor_parallel, false), rows * model.hidden * kActivationBytes, kMega,
         "MB to add up between GPUs");
  const MeasuredAttention::Fits& fits = kernels.measured_attention()->fits(model.kv_bits);
  for (const AttentionKind& kind : model.attention_kinds()) {
    const double keys = kind.seen(pass.context) + pass.tokens;
    const double bytes = pass.batch * keys * kind.elements * model.kv_bits / 8.0 / model.kv_shards(kind);
    const bool latent = model.latent && kind.picked == 0.0 && pass.logits >= pass.tokens;
    const KernelFit* const vectors = latent ? kernels.latent_attention()->fit(model.kv_bits) : nullptr;
    look(vectors, bytes, kGiga, "GB of a layer's cache");
    if (vectors != nullptr && keys > kSlack * vectors->most_of_others(0))
      list.push_back(fmt::format("{}: attention to more than {:.0f} cached tokens, beyond the measured range", model.name,
                                 vectors->most_of_others(0)));
    if (model.over_one_vector()) continue;
    look(fits.one, bytes, kGiga, "GB of a layer's cache");
    if (pass.tokens <= 1.0 || pass.logits < pass.tokens) continue;
    // Kernels over several tokens were measured with other caches: the limit is along the context, their second coordinate.
    const KernelFit* several = fits.walked != nullptr ? fits.walked : fits.split;
    if (several == nullptr) continue;
    if (several->rows < kFewRowsOfSeveral && several->reads_keys == KeyReading::grown && pass.tokens > kSlack * several->most())
      list.push_back(fmt::format("{}: attention of more than {:.0f} tokens to cached ones, beyond the measured range", model.name,
                                 several->most()));
    if (several->by.empty() || several->by[0].empty()) continue;
    const double most = std::exp2(several->by[0].back());
    if (keys > kSlack * most)
      list.push_back(fmt::format("{}: attention of several tokens to more than {:.0f} cached ones, beyond the measured range",
                                 model.name, most));
  }
  return list;
}

}  // namespace specsim::cost
