// The inputs of a calibration on a GPU: the device, two models on it, prompts.
#pragma once

#include "sim/lab/calibrate/models.h"
#include "sim/lab/cuda/device_times.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::calibrate {

constexpr std::size_t kMostRows = 640;  // the most rows that a timed pass has
constexpr std::size_t kMargin = 160;    // positions beyond the longest timed context

// Settings for a GPU in addition to Settings; the values are the command's defaults.
struct GpuSettings {
  int number = 0;                                                // the device's number, counted from 0
  std::vector<std::size_t> contexts = {128, 2048, 8192, 16384};  // cached tokens of timed passes of shapes, ascending
  bool contexts_given = false;                                   // the user named the contexts
  std::string enlarge;           // "HIDDENxFFNxLAYERS" around the target that compute the same function; "": the target as it is
  std::string enlarge_draft;     // the same for the draft
  bool dependent_launch = true;  // programmatic dependent launch: kernels start as those before them end
  bool for_baselines = false;    // only write the files that other programs are compared with
};

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
  // Opens the device. Throws BadInput, as do the others.
  GpuSetup(Settings settings, GpuSettings gpu_settings);
  // Reads the models and their prompts, and decides where they are timed; nothing is on the device yet.
  void load();
  // Puts the models onto the device. Returns the seconds that this took.
  double place();

  // Whether the models have trained weights; else they are shapes with random ones.
  [[nodiscard]] bool trained() const { return target.small != nullptr; }
  // Whether the device has so many bytes to spare.
  [[nodiscard]] bool fits(std::size_t bytes) const;
  // Draft lengths of rounds: plain decoding and what was asked for.
  [[nodiscard]] std::vector<int> lengths() const;
  // One line for the manifest: of the device alone, and with the models that are on it.
  [[nodiscard]] std::string device_description() const;
  [[nodiscard]] std::string description() const;
  // The text of device.yaml.
  [[nodiscard]] std::string device_text() const;

  Settings settings;
  GpuSettings gpu;
  std::unique_ptr<cuda::Device> device;
  OnDevice target;
  OnDevice draft;
  std::vector<std::size_t> contexts;  // cached tokens at which passes are timed, ascending
  std::size_t capacity = 0;           // the most tokens that a sequence has in a round
  cuda::Limits limits;
  std::vector<llm::Prompt> fitted;
  std::vector<llm::Prompt> held_out;
};

}  // namespace specsim::calibrate
