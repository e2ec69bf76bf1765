// Lengths of well-known workloads by name: `lengths: sharegpt`.
#include "sim/serving/arrivals/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::arrivals {

namespace {

// Means and coefficients of variation of prompts and outputs, drawn as lognormal numbers of tokens.
struct NamedLengths {
  std::string_view name;
  double prompt_mean;
  double prompt_cv;
  double output_mean;
  double output_cv;
};
constexpr std::array<NamedLengths, 3> kNamed = {{
    // 1,000 requests of `vllm bench serve` with ShareGPT and Llama 3.1: 229,711 and 203,068 tokens (vllm-project/vllm pull
    // request
    // 18566). Their spread is not published; 1 is that of an exponential length.
    {"sharegpt", 229.7, 1.0, 203.1, 1.0},
    // Azure's traces of November 2023 (AzurePublicDataset b469a113, Splitwise).
    {"azure2023_conv", 1154.7, 0.96, 211.1, 0.77},
    {"azure2023_code", 2047.8, 0.96, 27.9, 2.15},
}};

}  // namespace

config::Value named_lengths(const config::Value& lengths, Diagnostics& diagnostics) {
  if (!lengths.is_scalar()) return lengths;
  const auto* const known =
      std::find_if(kNamed.begin(), kNamed.end(), [&](const NamedLengths& one) { return one.name == lengths.text; });
  if (known == kNamed.end()) {
    std::vector<std::string> names;
    for (const NamedLengths& one : kNamed) names.emplace_back(one.name);
    diagnostics.add(lengths.where, config::unknown_name("lengths are", lengths.text, names) + ", or {prompt: ..., output: ...}");
    return lengths;
  }
  const auto drawn = [&](double mean, double cv) {
    return config::map({{"lognormal", config::map({{"mean", config::scalar(fmt::format("{:g}", mean), lengths.where)},
                                                   {"cv", config::scalar(fmt::format("{:g}", cv), lengths.where)}},
                                                  lengths.where)}},
                       lengths.where);
  };
  return config::map(
      {{"prompt", drawn(known->prompt_mean, known->prompt_cv)}, {"output", drawn(known->output_mean, known->output_cv)}},
      lengths.where);
}

}  // namespace specsim::arrivals
