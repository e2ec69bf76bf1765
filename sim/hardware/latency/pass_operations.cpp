#include "sim/hardware/latency/pass_operations.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

constexpr double kLogitBytes = 4.0;
constexpr double kElementwisePasses = 12.0;  // hidden vectors read and written between a layer's products
constexpr double kParts = 2.0;               // of a layer: attention and feed-forward

// Figures of one layer from ai-dynamo/aiconfigurator's measurements of whole attention layers over one new token (095f58a5,
// August 2026; H100, H200, B200). An indexer's layer takes 40 us more than the same layer that reuses another layer's selection
// (GLM-5.2, SGLang 0.5.14; 4,096 cached tokens of one sequence, on each of the three GPUs). Its two products take 11 of these.
constexpr double kIndexerKernels = 11.0;
// DeepSeek-V4's layer that selects entries, compared with one that reads all (the same source; SGLang 0.5.14 and vLLM 0.24, 1,024
// tokens): 16 to 28 us, of which products take 13. The measurements do not show the time of compressors besides their products.
constexpr double kPickingKernels = 4.0;
// The two kernels of hyper-connections over few rows take 21 to 32 us per layer, at widths of 4,096 and 7,168, on H100, H200,
// B200 and B300 under SGLang 0.5.14, vLLM 0.24 and TensorRT-LLM 1.3.0rc20 (the same source).
constexpr double kHyperConnectionsUs = 25.0;

WeightType head_type(const ModelShape& model) { return {model.head_bits, {}, model.super_blocks}; }

// The name is the table's own, which outlives the operation.
WeightType weight_type(const ModelShape& model, const StoredType& type) {
  const Dtype* const known = type.kernel.empty() ? nullptr : find_dtype(type.kernel);
  return {type.bits, known != nullptr ? std::string_view(known->name) : std::string_view(), model.super_blocks};
}

// A layer's product on one of the GPUs that share it.
Operation product_operation(const ModelShape& model, const Product& product, double rows, double share, const StoredType& type) {
  const double shards = model.tensor_parallel;
  ProductWork work{rows, product.inner, product.outer, product.groups, weight_type(model, type)};
  if (product.sharding == Sharding::rows) work.inner /= shards;
  if (product.sharding == Sharding::columns) work.outer /= shards;
  if (product.sharding == Sharding::groups) work.groups /= shards;
  return {product.name, share, work, PassPart::products, product.in_parallel ? Stream::shared_expert : Stream::main};
}

ExpertsWork experts_work(const ModelShape& model, const PassRows& rows) {
  ExpertsWork work;
  work.tokens = rows.tokens;
  const double gpus = model.expert_gpus();
  work.rows = rows.expert_rows * model.experts_per_token / gpus;
  // The other GPUs wait for the one with the most rows, if each row chooses its GPUs independently.
  if (gpus > 1.0) work.rows = largest_on_gpu(work.rows, std::sqrt(work.rows * (1.0 - 1.0 / gpus)), gpus);
  work.alike = rows.alike;
  work.met = std::max(1.0, met_experts(model, 1.0 + rows.alike * (rows.tokens - 1.0)));
  work.hidden = model.expert_hidden.value_or(model.hidden);
  work.width = model.whole_experts ? model.expert_ffn : model.expert_ffn / model.tensor_parallel;
  work.experts = model.experts / gpus;
  work.per_token = model.experts_per_token / gpus;
  work.gated = model.gated;
  work.type = {model.expert_bits, model.expert_type, model.super_blocks};
  return work;
}

}  // namespace

WeightType layer_type(const ModelShape& model) { return {model.weight_bits, model.product_type, model.super_blocks}; }

ExpertsWork experts_of(const ModelShape& model, double tokens) {
  PassRows rows;
  rows.computed = rows.tokens = rows.expert_rows = tokens;
  return experts_work(model, rows);
}

std::vector<ProductGroup> layer_products(const ModelShape& model, const PassRows& rows) {
  std::vector<ProductGroup> groups;
  for (const LayerKind& kind : model.layer_kinds(model.tensor_parallel)) {
    ProductGroup group{kind.layers, {}};
    for (const Product& product : kind.products)
      for (const TypeShare& one : product.plain ? std::vector<TypeShare>{{}} : model.types_of(product.module))
        group.operations.push_back(product_operation(model, product, rows.computed, one.share, one.type));
    if (kind.mixture) {
      const ProductWork router{rows.computed, model.hidden, model.experts, 1.0, {16.0, {}, model.super_blocks}};
      group.operations.push_back({"router", 1.0, router, PassPart::products, Stream::routed_experts});
      ExpertsWork work = experts_work(model, rows);
      for (const TypeShare& one : model.types_of(Module::experts)) {
        work.type = weight_type(model, one.type);
        group.operations.push_back({"experts", one.share, work, PassPart::products, Stream::routed_experts});
      }
    }
    groups.push_back(std::move(group));
  }
  ProductGroup around;  // of drafts: before and after the layers
  const auto add = [&](const char* name, double count, double inner, double outer) {
    const ProductWork work{rows.computed, inner, outer, 1.0, layer_type(model)};
    around.operations.push_back({name, count, work});
  };
  const double width = model.hidden / model.tensor_parallel;
  // An EAGLE-3 head joins the target's features once per round: its later passes read its own output (vLLM 0.11,
  // v1/spec_decode/eagle.py: `combine_hidden_states` before the first pass). An EAGLE head joins feature and token in each pass.
  const bool joins_again = model.attention_inputs == 1.0;
  if (model.fused_inputs > 0.0 && (!rows.continued || joins_again)) add("join", 1.0, model.fused_inputs * model.hidden, width);
  if (model.head_matrices > 0.0) add("head", model.head_matrices, model.hidden, width);
  if (!around.operations.empty()) groups.push_back(std::move(around));
  return groups;
}

ProductGroup logit_products(const ModelShape& model, const PassRows& rows) {
  ProductGroup group;
  const auto add = [&](const char* name, double count, const ProductWork& work) {
    group.operations.push_back({name, count, work});
  };
  const double columns = model.vocab / model.tensor_parallel;
  if (rows.logits > 0.0)
    for (const TypeShare& one : model.types_of(Module::head))
      add("lm_head", one.share * model.lm_heads(), {rows.logits, model.hidden, columns, 1.0, weight_type(model, one.type)});
  if (rows.markov_sequences > 0.0) {
    add("markov_head", rows.markov_positions, {rows.markov_sequences, model.markov_rank, columns, 1.0, head_type(model)});
    if (model.markov_matrices > 0.0)
      add("markov_state", rows.markov_positions,
          {rows.markov_sequences, model.hidden, model.markov_matrices / model.hidden, 1.0, layer_type(model)});
  }
  return group;
}

std::vector<ProductGroup> product_operations(const ModelShape& model, const PassRows& rows) {
  std::vector<ProductGroup> groups = layer_products(model, rows);
  groups.push_back(logit_products(model, rows));
  return groups;
}

Operation attention_operation(const ModelShape& model, const AttentionKind& kind, const Attending& group, bool with_prompt,
                              bool same_launch) {
  AttentionWork work;
  work.kind = kind;
  work.heads = kind.heads;
  if (model.latent) {
    work.latent = model.latent->width;
    work.rope_dim = model.latent->rope_dim;
    work.value_dim = kind.value_dim;
  }
  work.one_vector = model.one_vector;
  work.cache_bits = model.kv_bits;
  work.shards = model.tensor_parallel;
  work.cache_shards = model.kv_shards(kind);
  work.sequences = group.sequences;
  work.cached = group.cached;
  work.tokens = group.tokens;
  work.pairs = group.pairs;
  work.prompt = group.prompt;
  // If heads do not share keys, a sequence has so many blocks that differences in length average out over the multiprocessors:
  // with the factor, served times of Llama-2-7B are 15 to 30 % too long. Models whose heads share keys need the factor.
  work.unequal = kind.kv_heads < kind.heads || work.over_one_vector() ? group.unequal : 1.0;
  work.with_prompt = with_prompt;
  work.same_launch = same_launch;
  return {group.prompt ? "attention of prompts" : "attention", kind.layers, work, PassPart::attention};
}

std::vector<Operation> state_operations(const ModelShape& model, const Deployment& deployment,
                                        const std::vector<Attending>& groups) {
  std::vector<Operation> list;
  const double elementwise_us = deployment.hardware.calibration.elementwise_us;
  if (const double indexers = model.indexers(); indexers > 0.0) {
    const double kernels = model.picks_entries() ? kPickingKernels : kIndexerKernels;
    list.push_back(
        {"indexer kernels", indexers, StreamWork{0.0, elementwise_us * kernels / kCalibratedKernels}, PassPart::attention});
    for (const Attending& group : groups) {
      if (group.sequences == 0.0) continue;
      const IndexWork work{group.sequences * group.tokens,
                           group.sequences * (group.cached + group.tokens) * model.index_key_bytes(),
                           group.pairs / model.index_entry_tokens(), model.indexer->heads, model.indexer->head_dim};
      list.push_back({"indexer", indexers, work, PassPart::attention});
    }
  }
  if (model.state) {
    // A sequence's state is read once, and written after each token that may turn out to be the last accepted one: all of a
    // verification, the last of a prompt (vLLM's and SGLang's kernels of Gated DeltaNet).
    double moved = 0.0;
    for (const Attending& group : groups) moved += group.sequences * (1.0 + (group.prompt ? 1.0 : group.tokens));
    const double fixed_us = model.state_layers() * elementwise_us * deployment.engine.linear_kernels / kCalibratedKernels;
    list.push_back({"recurrent states", 1.0, StreamWork{moved * model.recurrent_bytes() / model.tensor_parallel, fixed_us},
                    PassPart::attention});
  }
  return list;
}

std::vector<Operation> remaining_operations(const ModelShape& model, const Deployment& deployment,
                                            const ModelKernels::LayerKernels& layer, const PassRows& rows, double gathered,
                                            bool captured) {
  std::vector<Operation> list;
  const Engine& engine = deployment.engine;
  const double shards = model.tensor_parallel;
  const double vector_bytes = model.hidden * kActivationBytes;
  if (shards > 1.0) {
    const bool launched = !captured && (engine.graphs || engine.host.host_us_per_layer > 0.0);
    list.push_back(
        {"all-reduce", model.parts(), AllReduceWork{shards, rows.computed * vector_bytes, launched}, PassPart::communication});
  }
  if (model.expert_parallel > 1.0)  // rows of the other GPUs arrive before the experts, and sums are sent back after them
    list.push_back({"expert exchange", kParts * model.mixture_layers(),
                    ExchangeWork{model.expert_parallel, gathered * vector_bytes, !captured}, PassPart::communication});
  double width = kElementwisePasses * model.hidden;
  if (layer.counted) {
    // Norms read and write the vector and the residual, the activation reads gate and up, rotary embedding reads and writes the
    // queries and keys.
    const double activated = model.experts > 0.0 ? 0.0 : 3.0 * model.ffn;
    width = 4.0 * kNorms * model.hidden + (activated + 2.0 * (model.heads + model.kv_heads) * model.head_dim) / shards;
  }
  list.push_back({"norms and activation", model.parts() / kParts,
                  StreamWork{rows.computed * width * kActivationBytes, layer.fixed_us}, PassPart::small_kernels});
  if (model.residual_streams > 1.0) {
    // Before each part its input is mixed from all streams; after it all streams are mixed again with its output.
    const double vectors = kParts * ((model.residual_streams + 1.0) + (2.0 * model.residual_streams + 1.0));
    list.push_back({"hyper-connections", model.layers, StreamWork{rows.computed * vectors * vector_bytes, kHyperConnectionsUs},
                    PassPart::small_kernels});
  }
  return list;
}

Operation sampling_operation(const ModelShape& model, const Engine& engine, double logits) {
  const StreamWork work{engine.logit_passes * logits * model.lm_heads() * model.vocab * kLogitBytes, 0.0};
  return {"sampling", 1.0, work, PassPart::sampling};
}

}  // namespace specsim::cost
