// Speculative decoding on a device, round by round. Drafts, verification and acceptance are one recorded graph that reads its
// lengths from the device, so a round needs no answer from the host. The host receives how many tokens each sequence accepted.
// Tokens are drawn and judged with the same uniforms as in llm::Decoder.
#pragma once

#include "sim/foundation/math/simplex.h"
#include "sim/foundation/rng/philox.h"
#include "sim/lab/cuda/device_model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace specsim::cuda {

// Turns rows of logits into distributions, as llm::distribution_of_logits does.
class DistributionMaker {
 public:
  DistributionMaker(Device& device, std::size_t vocab, std::size_t rows, const math::Sampling& sampling);
  // scan_sums: scans_of(vocab) for each row; may be recorded.
  void enqueue(const float* logits, unsigned rows, double* distributions, double* scan_sums);
  // Whether the weights of these rows of the last distributions have finite sums above 0; logits that are NaN do not.
  [[nodiscard]] std::vector<bool> are_distributions() const;

 private:
  Device& device_;
  unsigned vocab_;
  math::Sampling sampling_;
  Buffer<Peak> peaks_;
  Buffer<double> slice_sums_;
  std::vector<Cut> cuts_;  // applied one after the other
  Buffer<std::uint64_t> histograms_;
  Buffer<Cut::Found> found_;
};

struct RoundSettings {
  int draft_length = 0;  // 0: plain decoding
  std::size_t batch = 1;
  std::size_t capacity = 256;  // most tokens of a sequence
  math::Sampling sampling = {};
  AcceptanceRule rule = AcceptanceRule::token;
  bool graphs = true;  // false: the same launches one by one, for comparison
};

class Rounds {
 public:
  // `draft` may be null at draft length 0. Both models must be on one device, with memory for the passes.
  Rounds(DeviceModel& target, DeviceModel* draft, const RoundSettings& settings, rng::Key key);

  // Prompts of at least two tokens; reads all tokens except the last.
  void start(const std::vector<std::vector<Token>>& prompts, std::span<const std::uint64_t> ids);
  // Makes the graphs for texts of all lengths at once; otherwise they are made in the first round that needs them. Texts and
  // caches are undefined afterwards; start() sets them as if this had not been called.
  void prepare();
  // Texts of this many tokens and caches of random numbers, only for timing.
  void assume_length(std::size_t length);
  [[nodiscard]] bool fits() const;
  // One round of every sequence.
  void round();
  // Enqueues a round and returns; fetch() then waits for it and reads how many tokens it accepted.
  void enqueue();
  void fetch();

  // Throws BadInput if the last round's logits of a sequence were not finite. A NaN in a cache stays there, so one check at the
  // end of a text is enough.
  void check_distributions() const;

  [[nodiscard]] const std::vector<std::uint32_t>& accepted() const { return accepted_; }
  [[nodiscard]] const std::vector<std::size_t>& lengths() const { return lengths_; }  // tokens of each text
  [[nodiscard]] std::vector<std::vector<Token>> texts() const;
  // Distributions of the last round, for checks: the target's [sequence][draft_length + 1], the draft's [draft token][sequence].
  [[nodiscard]] std::vector<double> target_distributions() const { return target_distributions_.download(); }
  [[nodiscard]] std::vector<double> draft_distributions() const { return draft_distributions_.download(); }

 private:
  void ask(std::size_t longest);
  const Graph& graph_for(std::size_t longest);

  DeviceModel& target_;
  DeviceModel* draft_;
  RoundSettings settings_;
  Device& device_;
  std::size_t vocab_;
  std::unique_ptr<DeviceCache> target_cache_;
  std::unique_ptr<DeviceCache> draft_cache_;
  PassRows verify_;
  PassRows first_draft_;  // the last two tokens: after a full acceptance the draft has not read its own last one
  PassRows next_draft_;
  DistributionMaker target_maker_;
  DistributionMaker draft_maker_;
  std::size_t stride_;
  Buffer<std::uint32_t> text_;
  Buffer<std::uint32_t> device_lengths_;
  Buffer<std::uint32_t> rounds_;
  Buffer<std::uint64_t> ids_;
  Buffer<std::uint32_t> device_accepted_;
  Buffer<float> logits_;
  Buffer<double> target_distributions_;
  Buffer<double> draft_distributions_;
  Buffer<double> scans_;
  Sequences sequences_;
  std::vector<std::size_t> lengths_;
  std::vector<std::uint32_t> accepted_;
  std::map<std::size_t, std::unique_ptr<Graph>> graphs_;  // [longest text that it supports]
};

// The memory of Rounds without the models and their caches.
std::size_t round_bytes(const llm::ModelConfig& target, const llm::ModelConfig* draft, const RoundSettings& settings);

}  // namespace specsim::cuda
