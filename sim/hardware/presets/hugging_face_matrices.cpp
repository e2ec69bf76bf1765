// The matrices of a model by the names that checkpoints of Hugging Face's classes give them.
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <utility>

namespace specsim::cost {

namespace {

using Mixer = FileLayer::Mixer;
using FeedForward = FileLayer::FeedForward;
using Names = std::vector<std::string>;

// Prefixes of feed-forward parts in these classes, and the names of their products.
const Names kDense = {"mlp.", "feed_forward.", "ffn.", "mixer."};
const Names kShared = {"mlp.shared_experts.",
                       "mlp.shared_expert.",
                       "feed_forward.shared_expert.",
                       "ffn.shared_experts.",
                       "block_sparse_moe.shared_experts.",
                       "mixer.shared_experts.",
                       "shared_mlp.",
                       "mlp.shared_mlp.",
                       "share_expert."};
const Names kExperts = {"mlp.experts.0.",
                        "mlp.experts.",
                        "block_sparse_moe.experts.0.",
                        "feed_forward.experts.0.",
                        "ffn.experts.0.",
                        "mixer.experts.0.",
                        "experts.0.",
                        "experts.",
                        "moe.",
                        "block_sparse_moe."};
const Names kGate = {"gate_proj", "gate_up_proj", "w1", "input_linear"};
const Names kUp = {"up_proj", "gate_up_proj", "w3", "fc1", "c_fc", "dense_h_to_4h", "input_linear"};
const Names kDown = {"down_proj", "w2", "fc2", "c_proj", "dense_4h_to_h", "output_linear"};

}  // namespace

std::vector<StoredMatrix> stored_matrices(const std::vector<FileLayer>& layers, const FileWidths& widths,
                                          std::size_t first_layer) {
  std::vector<StoredMatrix> list;
  const auto add = [&](const char* part, double parameters, const std::string& prefix, Names names) {
    if (parameters > 0.0) list.push_back({part, parameters, prefix, std::move(names)});
  };
  const auto add_three = [&](const char* part, double parameters, const std::string& prefix, const Names& places) {
    for (const Names* products : {&kGate, &kUp, &kDown}) {
      if (products == &kGate && !widths.gated) continue;
      Names names;
      for (const std::string& place : places)
        for (const std::string& product : *products) names.push_back(place + product);
      add(part, parameters, prefix, std::move(names));
    }
  };
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double hidden = real(widths.hidden);
  const double queries = real(widths.heads * widths.head_dim);
  const double values = real(widths.heads * widths.value_dim);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const FileLayer& layer = layers[i];
    const std::string prefix = fmt::format("layers.{}.", first_layer + i);
    if (layer.mixer == Mixer::state || widths.parallel) {
      const double inner = real(widths.state_inner > 0 ? widths.state_inner : widths.heads * widths.head_dim);
      add("state", 2.0 * hidden * inner, prefix,
          {"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", "linear_attn.in_proj", "mamba.in_proj", "mixer.in_proj",
           "conv.in_proj", "self_attn.q_proj", "self_attn.qkv_proj"});
      add("state", hidden * inner, prefix,
          {"linear_attn.in_proj_z", "linear_attn.in_proj_qkvz", "linear_attn.in_proj", "mamba.in_proj", "mixer.in_proj",
           "conv.in_proj", "self_attn.v_proj", "self_attn.qkv_proj"});
      add("state", hidden * inner, prefix,
          {"linear_attn.out_proj", "mamba.out_proj", "mixer.out_proj", "conv.out_proj", "self_attn.o_proj"});
    }
    if (layer.mixer != Mixer::state && layer.mixer != Mixer::none) {
      if (widths.latent > 0) {
        const double from = widths.query_rank > 0 ? real(widths.query_rank) : hidden;
        if (widths.query_rank > 0) add("attention", hidden * from, prefix, {"self_attn.q_a_proj", "self_attn.fused_qkv_a_proj"});
        add("attention", from * queries, prefix, {"self_attn.q_b_proj", "self_attn.q_proj"});
        add("attention", hidden * real(widths.latent + widths.rope), prefix,
            {"self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj"});
        add("attention", real(widths.latent) * (queries - real(widths.heads * widths.rope) + values), prefix,
            {"self_attn.kv_b_proj"});
        add("attention", values * hidden, prefix, {"self_attn.o_proj"});
      } else if (widths.one_vector) {
        add("attention", hidden * real(widths.query_rank), prefix, {"attn.wq_a", "self_attn.q_a_proj"});
        add("attention", real(widths.query_rank) * queries, prefix, {"attn.wq_b", "self_attn.q_b_proj"});
        add("attention", hidden * real(widths.kv_heads * widths.head_dim), prefix, {"attn.wkv", "self_attn.kv_proj"});
        add("attention", queries * real(widths.query_rank), prefix, {"attn.wo_b", "self_attn.o_b_proj"});
      } else {
        add("attention", hidden * queries, prefix,
            {"self_attn.q_proj", "self_attn.qkv_proj", "self_attn.W_pack", "attn.c_attn", "attn.q_proj", "attention.wq",
             "attention.wqkv", "mixer.q_proj", "self_attention.query_key_value"});
        if (!layer.borrows) {
          add("attention", hidden * real(widths.kv_heads * widths.head_dim), prefix,
              {"self_attn.k_proj", "self_attn.qkv_proj", "self_attn.W_pack", "attn.c_attn", "attn.k_proj", "attention.wk",
               "attention.wqkv", "mixer.k_proj", "self_attention.query_key_value"});
          add("attention", hidden * real(widths.kv_heads * widths.value_dim), prefix,
              {"self_attn.v_proj", "self_attn.qkv_proj", "self_attn.W_pack", "attn.c_attn", "attn.v_proj", "attention.wv",
               "attention.wqkv", "mixer.v_proj", "self_attention.query_key_value"});
        }
        add("attention", values * hidden, prefix,
            {"self_attn.o_proj", "self_attn.out_proj", "self_attn.dense", "attn.c_proj", "attn.o_proj", "attention.wo",
             "mixer.o_proj", "self_attention.dense"});
      }
    }
    const Names& beside = widths.dense_and_experts ? kDense : kShared;  // whose dense part is in parallel with the experts
    if (layer.feed_forward == FeedForward::dense)
      add_three("dense", hidden * (layer.width > 0.0 ? layer.width : real(widths.ffn)), prefix, kDense);
    if (layer.feed_forward != FeedForward::mixture) continue;
    add_three("shared", hidden * real(widths.shared_ffn), prefix, beside);
    add_three("experts", hidden * real(widths.expert_ffn) * real(widths.experts), prefix, kExperts);
  }
  const double ends = hidden * real(widths.vocab);
  if (widths.tied) {
    add("head", ends, "", {"embed_tokens", "lm_head"});
  } else {
    add("head", ends, "", {"lm_head", "head", "output", "embed_out"});
    add("embeddings", ends, "", {"embed_tokens", "embed", "tok_embeddings", "wte"});
  }
  return list;
}

}  // namespace specsim::cost
