// Times of a device for the operations of decoding.
#pragma once

#include "sim/lab/cuda/rounds.h"
#include "sim/lab/llm/measure.h"

#include <memory>

namespace specsim::cuda {

// Seconds of `work`, enqueued `at_once` times in a row and divided by that: median over repetitions, after one to warm up.
llm::Quartiles time_work(Device& device, int repetitions, int at_once, const std::function<void()>& work);

struct Bandwidth {
  std::size_t bytes = 0;  // bytes of each buffer, much larger than caches
  llm::Quartiles read;    // seconds
  llm::Quartiles copy;
  [[nodiscard]] double read_rate() const { return static_cast<double>(bytes) / read.median; }
  [[nodiscard]] double copy_rate() const { return 2.0 * static_cast<double>(bytes) / copy.median; }  // read and written
};
// Random bytes; the best of several numbers of blocks.
Bandwidth measure_bandwidth(Device& device, std::size_t bytes, int repetitions);

// Times passes of one model over batches of one size, with caches full of random numbers.
class PassTimer {
 public:
  PassTimer(DeviceModel& model, std::size_t batch, std::size_t capacity);
  struct Result {
    llm::Quartiles seconds;
    std::size_t bytes = 0;          // weights, keys and values that the pass reads
    std::uint64_t logits_hash = 0;  // a hash of the last row's logits
  };
  Result time(std::size_t tokens, std::size_t logit_rows, std::size_t context, int repetitions, int at_once);
  // Records the same pass; the caller replays and times it.
  [[nodiscard]] std::unique_ptr<Graph> record(std::size_t tokens, std::size_t logit_rows, std::size_t context);

 private:
  DeviceModel& model_;
  std::size_t batch_;
  DeviceCache cache_;
  std::size_t stride_;
  Buffer<std::uint32_t> text_;
  Buffer<std::uint32_t> lengths_;
  Buffer<float> logits_;
  std::vector<std::unique_ptr<PassRows>> rows_;  // the rows that recorded passes read
};

// Bytes of keys and values that a pass reads.
std::size_t kv_bytes(const llm::ModelConfig& config, std::size_t batch, std::size_t places);

// The parts of a round outside its passes: the distributions and the draw of one draft token, and the distributions and the
// judgement of all tokens by each rule (without drafts there is one rule).
struct Terms {
  llm::Quartiles draw;
  llm::Quartiles accept;
  llm::Quartiles accept_greedy;
  llm::Quartiles accept_block;
};
Terms measure_terms(Device& device, std::size_t vocab, std::size_t batch, int draft_length, const math::Sampling& sampling,
                    int repetitions);

// Time of an empty kernel in a graph of many, from its start to the next one's.
llm::Quartiles time_empty_launch(Device& device, int repetitions);

}  // namespace specsim::cuda
