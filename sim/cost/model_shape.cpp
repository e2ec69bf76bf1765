#include "sim/cost/model_shape.h"

#include "sim/cost/presets.h"

#include <fmt/format.h>

#include <cmath>

namespace specsim::cost {

namespace {

using config::Parameter;
using config::Type;

Parameter count(const char* name, std::optional<std::string> fallback, const char* summary, double low = 1.0) {
  return {name, Type::integer, std::move(fallback), summary, config::between(low, 1e7), {}};
}

}  // namespace

std::vector<Product> ModelShape::products() const {
  std::vector<Product> list = {{"qkv", hidden, (heads + 2.0 * kv_heads) * head_dim}, {"output", heads * head_dim, hidden}};
  if (experts == 0.0) {
    list.push_back({"up", hidden, (gated ? 2.0 : 1.0) * ffn});
    list.push_back({"down", ffn, hidden});
  }
  return list;
}

std::vector<Product> ModelShape::expert_products() const {
  if (experts == 0.0) return {};
  return {{"up", hidden, (gated ? 2.0 : 1.0) * expert_ffn}, {"down", expert_ffn, hidden}};
}

double ModelShape::layer_parameters() const {
  double sum = fused_inputs * hidden * hidden;
  for (const Product& product : products()) sum += layers * product.inner * product.outer;
  for (const Product& product : expert_products()) sum += layers * experts * product.inner * product.outer;
  return sum;
}

double ModelShape::total_parameters() const { return layer_parameters() + (tied_embeddings ? 1.0 : 2.0) * vocab * hidden; }

double ModelShape::own_parameters() const { return shares_lm_head ? layer_parameters() : total_parameters(); }

double ModelShape::weight_bytes() const {
  return (layer_parameters() * weight_bits + (own_parameters() - layer_parameters()) * head_bits) / 8.0;
}

double expected_experts(double experts, double per_token, double tokens) {
  if (tokens <= 0.0) return 0.0;  // also where every token takes every expert: 0 times log 0
  return experts * -std::expm1(tokens * std::log1p(-std::min(per_token / experts, 1.0)));
}

const std::vector<Parameter>& model_parameters() {
  static const std::vector<Parameter> parameters = {
      {"preset", Type::text, "", "a model's name or file; the other keys replace its own", {}, {}},
      {"name", Type::text, "", "as its authors call it", {}, {}},
      {"aliases", Type::value_list, "", "further names of the same shape", {}, {}},
      {"source", Type::text, "", "where the figures come from", {}, {}},
      {"unverified", Type::boolean, "false", "figures from memory, nobody has checked them", {}, {}},
      count("layers", {}, "transformer layers"),
      count("hidden", {}, "width"),
      count("heads", {}, "query heads"),
      count("kv_heads", {}, "key and value heads"),
      count("head_dim", {}, "width of a head"),
      count("ffn", {}, "width of the feed-forward part; not read where there are experts", 0),
      {"gated", Type::boolean, "true", "gate and up projections, or up alone", {}, {}},
      count("vocab", {}, "rows of the LM head; fewer for a draft with a reduced vocabulary", 2),
      {"tied_embeddings", Type::boolean, "false", "embeddings and LM head are one matrix", {}, {}},
      count("experts", "0", "experts of a layer; 0: dense", 0),
      count("experts_per_token", "0", "of them, chosen by a token", 0),
      count("expert_ffn", "0", "width of one expert", 0),
      count("fused_inputs", "0", "hidden vectors that an EAGLE head joins; 0: none", 0),
      {"shares_lm_head", Type::boolean, "false", "embeddings and LM head are the target's", {}, {}},
      {"weight_bits", Type::number, "16", "of a weight", config::between(1, 32), {}},
      {"head_bits",
       Type::number,
       "",
       "of a weight of LM head and embeddings; 16, or weight_bits if that is more, where not given",
       config::between(1, 32),
       {}},
      {"kv_bits", Type::number, "16", "of a cached key or value", config::between(1, 32), {}},
      count("kv_window", "0", "newest cached tokens that attention reads and keeps; 0: all", 0),
      {"tensor_parallel", Type::integer, "1", "GPUs that share every layer", config::between(1, 64), {}}};
  return parameters;
}

ModelShape read_model(const config::Value& spec, const std::string& what, Diagnostics& diagnostics) {
  ModelShape shape;
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset("model", spec, diagnostics);
  if (diagnostics.list().size() != before) return shape;
  const config::Arguments a = config::read_arguments(value, model_parameters(), {}, what, diagnostics);
  if (diagnostics.list().size() != before) return shape;
  const auto integer = [&](const char* name) { return static_cast<double>(a.integer(name)); };
  shape.name = a.has("name") ? a.text("name") : spec.text;
  shape.layers = integer("layers");
  shape.hidden = integer("hidden");
  shape.heads = integer("heads");
  shape.kv_heads = integer("kv_heads");
  shape.head_dim = integer("head_dim");
  shape.ffn = integer("ffn");
  shape.gated = a.boolean("gated");
  shape.vocab = integer("vocab");
  shape.tied_embeddings = a.boolean("tied_embeddings");
  shape.experts = integer("experts");
  shape.experts_per_token = integer("experts_per_token");
  shape.expert_ffn = integer("expert_ffn");
  shape.fused_inputs = integer("fused_inputs");
  shape.shares_lm_head = a.boolean("shares_lm_head");
  shape.weight_bits = a.number("weight_bits");
  shape.head_bits = a.has("head_bits") ? a.number("head_bits") : std::max(16.0, shape.weight_bits);
  shape.kv_bits = a.number("kv_bits");
  shape.kv_window = integer("kv_window");
  shape.tensor_parallel = integer("tensor_parallel");
  shape.unverified = a.boolean("unverified");
  if (shape.heads < shape.kv_heads)
    diagnostics.add(a.where("kv_heads"),
                    fmt::format("kv_heads is {} of {} heads, allowed: at most as many as heads", shape.kv_heads, shape.heads));
  if ((shape.experts > 0.0) != (shape.experts_per_token > 0.0) || (shape.experts > 0.0) != (shape.expert_ffn > 0.0) ||
      shape.experts_per_token > shape.experts)
    diagnostics.add(
        a.where(shape.experts_per_token > shape.experts ? "experts_per_token" : "experts"),
        fmt::format("experts is {}, experts_per_token {}, expert_ffn {}, allowed: all three above 0 with at most as many "
                    "experts_per_token as experts, or none of them",
                    shape.experts, shape.experts_per_token, shape.expert_ffn));
  if (std::fmod(shape.heads, shape.tensor_parallel) != 0.0)
    diagnostics.add(a.where("tensor_parallel"),
                    fmt::format("tensor_parallel is {}, allowed: a divisor of the {} heads", shape.tensor_parallel, shape.heads));
  if (shape.experts == 0.0 && shape.ffn == 0.0) diagnostics.add(a.where("ffn"), "ffn is 0 in a dense model, allowed: its width");
  return shape;
}

}  // namespace specsim::cost
