// Tokens of prompts and outputs, if the arrivals do not state them: the registry of length distributions.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/foundation/rng/address.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace specsim::arrivals {

constexpr double kMostTokens = 1e8;  // most tokens of a prompt or an output

class LengthDistribution {
 public:
  LengthDistribution() = default;
  LengthDistribution(const LengthDistribution&) = delete;
  LengthDistribution& operator=(const LengthDistribution&) = delete;
  virtual ~LengthDistribution() = default;
  // Tokens of request number `request`, at least 1; `random_bits` are the request's own.
  virtual std::uint32_t draw(std::uint64_t request, rng::Stream& random_bits) const = 0;
};

struct LengthsEntry {
  config::PartInfo info;
  // Makes the part from the value after its name: {fixed: 128}, {lognormal: {mean: 1155, cv: 1.1}}. nullptr after reporting.
  std::function<std::unique_ptr<LengthDistribution>(const config::Value&, const config::PartInfo&, Diagnostics&)> make;
};

// LengthsEntry::make of a part with parameters. `what`: in messages.
decltype(LengthsEntry::make) from_arguments(
    std::string what, std::function<std::unique_ptr<LengthDistribution>(const config::Arguments&, Diagnostics&)> make);

config::Registry<LengthsEntry>& length_distributions();

// Replaces a workload's name in `lengths` by {prompt: ..., output: ...}; returns other values unchanged. Reports an unknown name.
config::Value named_lengths(const config::Value& lengths, Diagnostics& diagnostics);

// {NAME: ...}, or a number alone for a fixed length. nullptr after reporting.
std::unique_ptr<LengthDistribution> read_lengths(const config::Value& value, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::arrivals
