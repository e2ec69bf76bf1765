// What calibrate --device cuda works with: a GPU, two models on it, prompts, tables.
#pragma once

#include "sim/base/whole_file.h"
#include "sim/cli/models.h"
#include "sim/cuda/timing.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::cli {

constexpr std::size_t kMostRows = 640;  // of a timed pass
constexpr std::size_t kMargin = 160;    // positions beyond the longest timed context

// Rows of a table that is written anew whenever it grows.
class GrowingTable {
 public:
  GrowingTable(std::string path, const std::string& header) : path_(std::move(path)), text_(header + "\n") {}
  void add(const std::string& line) { text_ += line + "\n"; }
  void write() const { write_whole_file(path_, text_); }

 private:
  std::string path_;
  std::string text_;
};

// "median,quartile,quartile,samples", in milliseconds.
std::string spread_text(const llm::Spread& spread);

// One of the two models: what it is, before and after it is on the device.
struct OnDevice {
  std::string name;
  llm::ModelConfig config;
  std::shared_ptr<const llm::Weights> small;  // none for random weights
  bool enlarged = false;
  std::shared_ptr<const cuda::DeviceWeights> weights;
  std::unique_ptr<cuda::DeviceModel> model;
};

struct GpuSetup {
  // The options and the device. Throws BadInput, as do the others.
  explicit GpuSetup(const boost::program_options::variables_map& values);
  // The models, their prompts, and where they are timed; nothing is on the device yet.
  void load(const boost::program_options::variables_map& values);
  // The models onto the device.
  void place();

  // Trained models, not shapes.
  [[nodiscard]] bool trained() const { return target.small != nullptr; }
  // Whether the device has so many bytes to spare.
  [[nodiscard]] bool fits(std::size_t bytes) const;
  // Draft lengths of rounds: plain decoding and what was asked for.
  [[nodiscard]] std::vector<int> lengths() const;
  [[nodiscard]] std::string description() const;
  // device.yaml, and a line for the reader.
  void describe_device() const;

  ModelOptions options;
  unsigned threads = 1;  // of what the CPU does
  std::unique_ptr<cuda::LaunchCounter> device;
  bool for_baselines = false;
  OnDevice target;
  OnDevice draft;
  std::vector<std::size_t> contexts;  // of timed passes, ascending
  std::size_t capacity = 0;           // of a sequence in a round
  cuda::Limits limits;
  std::vector<llm::Prompt> fitted;
  std::vector<llm::Prompt> held_out;
};

}  // namespace specsim::cli
