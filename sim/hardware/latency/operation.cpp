#include "sim/hardware/latency/operation.h"

#include <fmt/format.h>

#include <type_traits>

namespace specsim::cost {

namespace {

std::string type_text(const WeightType& type) {
  return type.name.empty() ? fmt::format("{:g} bits", type.bits) : std::string(type.name);
}

std::string text_of(const ProductWork& work) {
  return fmt::format("{}{:g} x {:g} x {:g}, {}", work.groups == 1.0 ? "" : fmt::format("{:g} of ", work.groups), work.rows,
                     work.inner, work.outer, type_text(work.type));
}
std::string text_of(const ExpertsWork& work) {
  return fmt::format("{:g} tokens, {:.3g} of {:g} experts, {:g} x {:g}, {}", work.tokens, work.met, work.experts, work.hidden,
                     work.width, type_text(work.type));
}
std::string text_of(const AttentionWork& work) {
  const std::string over = work.kind.window ? fmt::format(" (window {:g})", *work.kind.window) : "";
  return fmt::format("{:g} x {:g} tokens over {:g}{}, {:g} heads, {:g}-bit cache", work.sequences, work.tokens, work.cached, over,
                     work.heads / work.shards, work.cache_bits);
}
std::string text_of(const IndexWork& work) { return fmt::format("{:g} rows score {:g} keys", work.rows, work.scored); }
std::string text_of(const AllReduceWork& work) {
  return fmt::format("{:g} KB over {:g} GPUs{}", 1e-3 * work.bytes, work.gpus, work.launched ? ", launched" : "");
}
std::string text_of(const ExchangeWork& work) {
  return fmt::format("{:g} KB over {:g} GPUs{}", 1e-3 * work.bytes, work.gpus, work.launched ? ", launched" : "");
}
std::string text_of(const StreamWork& work) { return fmt::format("{:.4g} MB", 1e-6 * work.bytes); }

}  // namespace

std::string describe(const Operation& operation) {
  return std::visit([](const auto& work) { return text_of(work); }, operation.work);
}

}  // namespace specsim::cost
