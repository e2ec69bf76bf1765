// The inputs of a calibration on a GPU: the device, two models on it, prompts.
#pragma once

#include "sim/lab/calibrate/models.h"
#include "sim/lab/cuda/device_times.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::calibrate {

constexpr std::size_t kMostRows = 640;  // the most rows of a timed pass
constexpr std::size_t kMargin = 160;    // positions beyond the longest timed context

// Settings for a GPU in addition to CalibrationSettings; the values are the command's defaults.
struct GpuSettings {
  int number = 0;                                                // the device's number, counted from 0
  std::vector<std::size_t> contexts = {128, 2048, 8192, 16384};  // cached tokens of timed passes of shapes, ascending
  bool contexts_given = false;                                   // the contexts were given by the user
  std::string enlarge;  // "HIDDENxFFNxLAYERS" of a larger model that computes the target's function; "": the target as it is
  std::string enlarge_draft;     // the same for the draft
  bool dependent_launch = true;  // programmatic dependent launch: kernels start while the previous ones end
  bool for_baselines = false;    // only write the files that other programs are compared with
};

// One of the two models: its description, and the model itself after it is on the device.
struct OnDevice {
  std::string name;
  llm::ModelConfig config;
  std::shared_ptr<const llm::Weights> small;  // none for random weights
  bool enlarged = false;
  std::shared_ptr<const cuda::DeviceWeights> weights;
  std::unique_ptr<cuda::DeviceModel> model;
};

struct GpuSetup {
  // Opens the device. Like the other members, throws BadInput.
  GpuSetup(CalibrationSettings settings, GpuSettings gpu_settings);
  // Reads the models and their prompts, and chooses the contexts to time; nothing is on the device yet.
  void load();
  // Copies the models to the device. Returns the seconds that this took.
  double place();

  // Whether the models have trained weights; otherwise they are shapes with random weights.
  [[nodiscard]] bool trained() const { return target.small != nullptr; }
  // Whether the device has this many free bytes.
  [[nodiscard]] bool fits(std::size_t bytes) const;
  // Draft lengths of rounds: decoding without drafts, and the requested lengths.
  [[nodiscard]] std::vector<int> lengths() const;
  // One line for the manifest: the device alone, or with the models on it.
  [[nodiscard]] std::string device_description() const;
  [[nodiscard]] std::string description() const;
  // The text of device.yaml.
  [[nodiscard]] std::string device_text() const;

  CalibrationSettings settings;
  GpuSettings gpu;
  std::unique_ptr<cuda::Device> device;
  OnDevice target;
  OnDevice draft;
  std::vector<std::size_t> contexts;  // cached tokens at which passes are timed, in ascending order
  std::size_t capacity = 0;           // the most tokens of a sequence in a round
  cuda::Limits limits;
  std::vector<llm::Prompt> fitted;
  std::vector<llm::Prompt> held_out;
};

}  // namespace specsim::calibrate
