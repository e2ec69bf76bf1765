// The operations of a forward pass, as a model's description and its deployment produce them.
#pragma once

#include "sim/hardware/latency/kernel_choice.h"
#include "sim/hardware/latency/operation.h"

#include <optional>
#include <vector>

namespace specsim::cost {

// How the layers' weights are stored.
WeightType layer_type(const ModelShape& model);

// Rows of a pass; all are whole.
struct PassRows {
  double computed = 1.0;          // rows that go through the layers, padding of captured passes included
  double tokens = 1.0;            // tokens that choose experts, of all GPUs that share them
  double alike = 1.0;             // each of them after the first chooses like this many independent ones
  double logits = 1.0;            // rows that go through the LM head
  double expert_rows = 1.0;       // rows that go through the experts, of all GPUs, padding included
  double markov_sequences = 0.0;  // sequences whose positions a Markov head processes one after the other; 0: it has none
  double markov_positions = 0.0;  // positions of each of them
  bool continued = false;         // a later draft pass of a round: an EAGLE-3 head does not join the target's features again
  bool operator==(const PassRows&) const = default;
};

// Layers with equal products.
struct ProductGroup {
  double layers = 1.0;
  std::vector<Operation> operations;  // counts are per layer
};
// The products over the rows of the layers, and those over the rows of logits: the LM head and a Markov head.
std::vector<ProductGroup> layer_products(const ModelShape& model, const PassRows& rows);
ProductGroup logit_products(const ModelShape& model, const PassRows& rows);
// Both.
std::vector<ProductGroup> product_operations(const ModelShape& model, const PassRows& rows);

// The routed experts of one layer over `tokens` tokens, each a row.
ExpertsWork experts_of(const ModelShape& model, double tokens);

// Sequences whose attention in a pass is equal.
struct Attending {
  double sequences = 0.0;
  double cached = 0.0;   // tokens of each
  double tokens = 0.0;   // new tokens of each
  double pairs = 0.0;    // tokens that a new one attends to on average, itself included, if there were no window
  bool prompt = false;   // the new tokens are a prompt's
  double unequal = 1.0;  // as in AttentionWork
};
// Attention of one of the model's kinds of layers. `with_prompt`, `same_launch`: as in AttentionWork.
Operation attention_operation(const ModelShape& model, const AttentionKind& kind, const Attending& group, bool with_prompt,
                              bool same_launch);
// The indexers of sparse attention and the states of linear attention, over sequences of all kinds.
std::vector<Operation> state_operations(const ModelShape& model, const Deployment& deployment,
                                        const std::vector<Attending>& groups);

// The operations between products and attention: sums over GPUs, norms and activations. `gathered`: rows of other GPUs that are
// sent to this GPU's experts; `captured`: the pass is a graph.
std::vector<Operation> remaining_operations(const ModelShape& model, const Deployment& deployment,
                                            const ModelKernels::LayerKernels& layer, const PassRows& rows, double gathered,
                                            bool captured);
// From logits to tokens.
Operation sampling_operation(const ModelShape& model, const Engine& engine, double logits);

}  // namespace specsim::cost
