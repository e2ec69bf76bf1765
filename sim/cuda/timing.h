// What a device takes for what decoding asks of it.
#pragma once

#include "sim/cuda/rounds.h"
#include "sim/llm/measure.h"

#include <memory>

namespace specsim::cuda {

// Seconds of `work`, asked for `at_once` times in a row and divided: medians over repetitions, after one to warm up.
llm::Spread time_work(Device& device, int repetitions, int at_once, const std::function<void()>& work);

struct Bandwidth {
  std::size_t bytes = 0;  // of each buffer, much larger than caches
  llm::Spread read;       // seconds
  llm::Spread copy;
  [[nodiscard]] double read_rate() const { return static_cast<double>(bytes) / read.median; }
  [[nodiscard]] double copy_rate() const { return 2.0 * static_cast<double>(bytes) / copy.median; }  // read and written
};
// Random bytes; the best of a few numbers of blocks.
Bandwidth measure_bandwidth(Device& device, std::size_t bytes, int repetitions);

// Passes of one model over batches of one size, with caches full of random numbers.
class PassTimer {
 public:
  PassTimer(DeviceModel& model, std::size_t batch, std::size_t capacity);
  struct Result {
    llm::Spread seconds;
    std::size_t bytes = 0;          // weights, keys and values that the pass reads
    std::uint64_t logits_hash = 0;  // of the last row
  };
  Result time(std::size_t tokens, std::size_t logit_rows, std::size_t context, int repetitions, int at_once);
  // The same pass, recorded, to be replayed by whoever times it.
  [[nodiscard]] std::unique_ptr<Graph> record(std::size_t tokens, std::size_t logit_rows, std::size_t context);

 private:
  DeviceModel& model_;
  std::size_t batch_;
  DeviceCache cache_;
  std::size_t stride_;
  Buffer<std::uint32_t> text_;
  Buffer<std::uint32_t> lengths_;
  Buffer<float> logits_;
  std::vector<std::unique_ptr<PassRows>> rows_;  // that recorded passes read
};

// Bytes of keys and values that a pass reads.
std::size_t kv_bytes(const llm::ModelConfig& config, std::size_t batch, std::size_t places);

// What a round takes beside its passes: the laws and the draw of one draft token, the laws and the judgement of all.
struct Terms {
  llm::Spread draw;
  llm::Spread accept;
};
Terms measure_terms(Device& device, std::size_t vocab, std::size_t batch, int draft_length, const math::Sampling& sampling,
                    int repetitions);

}  // namespace specsim::cuda
