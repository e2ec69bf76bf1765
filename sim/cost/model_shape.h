// The shape of a decoder-only transformer: what its passes read and compute.
#pragma once

#include "sim/config/arguments.h"

#include <string>
#include <vector>

namespace specsim::cost {

// One matrix product of a layer: `rows` new tokens times a matrix of `inner` by `outer`.
struct Product {
  std::string name;
  double inner = 0.0;
  double outer = 0.0;
};

struct ModelShape {
  std::string name;
  double layers = 0.0;
  double hidden = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double ffn = 0.0;
  bool gated = true;   // gate and up projections (SwiGLU), or up alone
  double vocab = 0.0;  // of the LM head; a draft may have a reduced one
  bool tied_embeddings = false;
  double experts = 0.0;  // per layer; 0: dense
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  double fused_inputs = 0.0;    // an EAGLE head joins so many hidden vectors first; 0: no such product
  bool shares_lm_head = false;  // and embeddings, with the target: no bytes of its own, the same time
  // How it is run.
  double weight_bits = 16.0;
  double head_bits = 16.0;  // of LM head and embeddings, which quantised checkpoints usually leave alone
  double kv_bits = 16.0;
  double kv_window = 0.0;  // newest cached tokens that attention reads; 0: all
  double tensor_parallel = 1.0;
  bool unverified = false;

  // Products of one layer that every token passes, fused as engines fuse them, without those of experts.
  [[nodiscard]] std::vector<Product> products() const;
  [[nodiscard]] std::vector<Product> expert_products() const;  // of one expert; empty for a dense model
  // Parameters in the layers' matrices (all experts), and with embeddings and LM head.
  [[nodiscard]] double layer_parameters() const;
  [[nodiscard]] double total_parameters() const;
  [[nodiscard]] double own_parameters() const;  // total less what it shares with the target
  [[nodiscard]] double weight_bytes() const;    // of the same
  // Bytes of keys and values per cached token.
  [[nodiscard]] double kv_bytes_per_token() const { return 2.0 * layers * kv_heads * head_dim * kv_bits / 8.0; }
};

// Distinct experts of `experts` that `tokens` tokens choose, `per_token` each, independently: N (1 - (1 - k/N)^n). The
// tokens are all those of the pass: verified ones too.
double expected_experts(double experts, double per_token, double tokens);

// The parameters of a model's description, for the reference page.
const std::vector<config::Parameter>& model_parameters();
// `spec` as resolve_preset takes it. Reports what is wrong; the shape is then not to be used.
ModelShape read_model(const config::Value& spec, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::cost
