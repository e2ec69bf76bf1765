#include "sim/hardware/latency/roofline_parameters.h"

#include "sim/hardware/gpu/kernel_names.h"
#include "sim/hardware/latency/engine.h"

#include <fmt/format.h>

namespace specsim::cost {

namespace {

config::Parameter microseconds(const HostFigure& figure) {
  return {
      figure.key, config::Type::number, "", std::string(figure.summary) + ", in place of the engine's", config::between(0, 1e9),
      {}};
}

}  // namespace

std::vector<config::Parameter> roofline_parameters() {
  std::vector<config::Parameter> list = {
      {"hardware", config::Type::value, {}, "a GPU: a name (specsim list hardware), a file, or {preset: NAME, ...}", {}, {}},
      {"target",
       config::Type::value,
       {},
       "a model: a name (specsim list model), a file, or {preset: NAME, weight_bits, ...}",
       {},
       {}},
      {"draft",
       config::Type::value,
       {},
       "a model that drafts: a name, a file, or {preset: NAME, ...}, with kv_window if it reads the newest tokens alone; none "
       "if no model drafts (n-grams, heads inside the target): proposals then take no pass, and round_us is their time",
       {},
       {}},
      {"draft_hardware",
       config::Type::value,
       "",
       "a separate GPU for the draft, as hardware: a whole model drafts there, and token ids travel between the two; default: "
       "the "
       "draft "
       "shares the target's GPUs",
       {},
       {}},
      {"draft_link_us",
       config::Type::number,
       "",
       "one way between draft_hardware and the target's GPUs; default: 0, because ids pass through the host's memory after each "
       "pass, on one GPU as on two of one machine",
       config::between(0, 1e9),
       {}},
      {"draft_link_gb_per_s",
       config::Type::number,
       "",
       "its bandwidth in either direction; default: the slower of the two GPUs' links",
       config::between(1e-6, 1e6),
       {}},
      {"engine",
       config::Type::value,
       "vllm",
       "time that host and launches add: a name (specsim list engine), a file, or {preset: NAME, ...}",
       {},
       {}},
      {"kernels",
       config::Type::text,
       "automatic",
       "engine whose measured kernels estimate a pass (configs/kernels), on GPUs that have them; automatic: the engine's own; "
       "none: the GPU's calibration is used instead",
       {},
       kernel_choices()},
      {"attention",
       config::Type::text,
       "automatic",
       "how several tokens of a sequence read the cache, with kernels. serial: each block reads all keys (FlashAttention 2); "
       "split: blocks share the keys; automatic: as the GPU's kernel does",
       {},
       attention_kernels()},
      {"proposal",
       config::Type::text,
       "",
       "one of the engine's proposals (specsim describe engine/NAME): host time of a round besides its passes",
       {},
       {}},
      {"largest_graph",
       config::Type::integer,
       "",
       "rows of the largest captured graph, in place of the engine's; passes are padded to 1, 2, 4, 8, 16, 24, ...",
       config::between(1, 1e6),
       {}},
      {"memory_share",
       config::Type::number,
       "",
       "share of the GPU's memory for weights and caches; default: what the engine's rules leave (memory of the engine), or 0.9",
       config::between(0.05, 1),
       {}},
      {"quantized_efficiency",
       config::Type::number,
       "",
       "share of a plain kernel's bandwidth that weights of fewer than 16 bits reach; default: the engine's weight_only_shares "
       "for weight-only kernels, 0.77 for others and 0.62 for those below 8 bits",
       config::between(0.05, 1),
       {}}};
  for (const HostFigure& figure : host_figures()) list.push_back(microseconds(figure));
  return list;
}

}  // namespace specsim::cost
