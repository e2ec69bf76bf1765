// How long the passes of one model take in a deployment, and the error of that estimate: its operations, each by the kernel that
// computes it, and the host around them.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/energy.h"
#include "sim/hardware/latency/kernel_choice.h"
#include "sim/hardware/latency/pass_operations.h"

#include <boost/functional/hash.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace specsim::cost {

class ModelLatency {
 public:
  // `deployment` must outlive this, and have a model in that role.
  ModelLatency(const Deployment& deployment, Role role);
  // Sequences of equal length. Verification needs the logits of every row, a prompt needs fewer.
  [[nodiscard]] PassTime pass(const Pass& pass) const;
  // Chunks of prompts and decoding sequences in one pass.
  [[nodiscard]] PassTime mixed_pass(const Segment& prompts, const Segment& decoding, double logits,
                                    const OtherEngines& peers) const;
  // Standard deviation of the logarithm of the kernels' part of a pass.
  [[nodiscard]] double kernel_error(const Pass& pass) const;
  // The common error of the kernels' estimates, by the factor that would correct it.
  [[nodiscard]] ServerFactors factor_errors() const;
  // Share of the variance that is common to passes over any number of rows.
  [[nodiscard]] double shared_variance(const Pass& pass) const;
  // All operations of a pass with the kernel that computes each, and the host's time last.
  [[nodiscard]] std::vector<ExplainedOperation> explain(const Pass& pass) const;

  [[nodiscard]] const ModelShape& model() const { return model_; }
  [[nodiscard]] const ModelKernels& kernels() const { return kernels_; }

 private:
  // The description of a pass to estimate.
  struct Request {
    double rows = 1.0;
    double logits = 1.0;
    double sequences = 1.0;
    std::vector<Attending> groups;  // prompts first
    bool clients = false;
    OtherEngines peers;
    bool continued = false;   // as in Pass
    bool catches_up = false;  // a draft's pass over tokens that the target verified; no prompt
  };
  struct Layout;  // numbers of rows as they are computed
  // Seconds of what depends on numbers of rows and not on their contexts.
  struct RowsTime {
    double products = 0.0;
    double streaming = 0.0;  // the products of one row that meets the same experts
    double experts = 0.0;    // the part of products due to experts
    double communication = 0.0;
    double small_kernels = 0.0;
    double sampling = 0.0;
    PassWork work;  // of the products
    RowsTime& operator+=(const RowsTime& other);
  };
  template <std::size_t N>
  using Kept = std::unordered_map<std::array<double, N>, RowsTime, boost::hash<std::array<double, N>>>;
  [[nodiscard]] Request request(const Pass& pass) const;
  [[nodiscard]] static double verified_rows(const Request& request);  // of sequences that verify drafts
  [[nodiscard]] static double prompt_share(const Request& request);
  [[nodiscard]] ServerFactors factors() const;                      // neutral unless the engine is tuned
  [[nodiscard]] static double wanted_rows(const Request& request);  // without padding
  [[nodiscard]] Layout layout(const Request& request) const;
  [[nodiscard]] PassTime time(const Request& request, PassWork* work) const;         // `work`: of its products and attention
  [[nodiscard]] PassTime powered(const PassTime& time, const PassWork& work) const;  // under the power limit
  [[nodiscard]] RowsTime rows_time(const Layout& layout) const;
  [[nodiscard]] RowsTime layers_time(const Layout& layout) const;
  [[nodiscard]] RowsTime logits_time(const PassRows& rows) const;
  [[nodiscard]] double group_seconds(const ProductGroup& group, double rows, double* experts) const;
  // Calls see(operation) for each operation of the pass's attention.
  template <class See>
  void each_attention(const Request& request, const See& see) const;

  const Deployment& deployment_;
  Role role_;
  const ModelShape& model_;
  ModelKernels kernels_;
  ModelKernels::LayerKernels layer_kernels_;
  std::vector<AttentionKind> attention_kinds_;
  bool plans_;  // attention of draft passes and verification is planned on the host
  double unequal_contexts_;
  mutable std::mutex mutex_;
  // Numbers of rows repeat.
  mutable Kept<6> kept_layers_;
  mutable Kept<3> kept_logits_;
};

}  // namespace specsim::cost
