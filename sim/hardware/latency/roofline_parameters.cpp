#include "sim/hardware/latency/roofline_parameters.h"

#include "sim/hardware/gpu/kernel_names.h"

namespace specsim::cost {

namespace {

// Figures in place of the engine's.
config::Fields<HostTime> replaced_host_fields() {
  std::vector<config::Declaration<HostTime>> list;
  for (const HostFigure& one : host_figures())
    list.emplace_back(one.key, one.figure, std::string(one.summary) + ", in place of the engine's", config::between(0, 1e9),
                      config::optional);
  return config::Fields<HostTime>(list);
}

}  // namespace

const config::Fields<Deployment>& roofline_fields() {
  using D = Deployment;
  using config::elsewhere, config::required, config::Value;
  static const config::Fields<D> fields = {
      {"hardware", elsewhere<Value>, "a GPU: a name (specsim list hardware), a file, or {preset: NAME, ...}", required},
      {"target", elsewhere<Value>, "a model: a name (specsim list model), a file, or {preset: NAME, weight_bits, ...}", required},
      {"draft", elsewhere<Value>,
       "a model that drafts: a name, a file, or {preset: NAME, ...}, with kv_window if it reads the newest tokens alone; none if "
       "no model drafts (n-grams, heads inside the target): proposals then take no pass, and round_us is their time",
       required},
      {"draft_hardware", elsewhere<Value>,
       "a separate GPU for the draft, as hardware: a whole model drafts there, and token ids travel between the two; default: "
       "the draft shares the target's GPUs"},
      {"draft_link_us", elsewhere<double>,
       "one way between draft_hardware and the target's GPUs; default: 0, because ids pass through the host's memory after each "
       "pass, on one GPU as on two of one machine",
       config::between(0, 1e9)},
      {"draft_link_gb_per_s", elsewhere<double>, "its bandwidth in either direction; default: the slower of the two GPUs' links",
       config::between(1e-6, 1e6)},
      {"engine", elsewhere<Value>,
       "time that host and launches add: a name (specsim list engine), a file, or {preset: NAME, ...}", config::Default{"vllm"}},
      {"kernels", &D::kernels,
       "engine whose measured kernels estimate a pass (configs/kernels), on GPUs that have them; automatic: the engine's own; "
       "none: the GPU's calibration is used instead",
       config::one_of(kernel_choices())},
      {"attention", &D::attention,
       "how several tokens of a sequence read the cache, with kernels. serial: each block reads all keys (FlashAttention 2); "
       "split: blocks share the keys; automatic: as the GPU's kernel does",
       config::one_of(attention_kernels())},
      {"proposal", elsewhere<std::string>,
       "one of the engine's proposals (specsim describe engine/NAME): host time of a round besides its passes"},
      {&D::engine,
       config::Fields<Engine>{
           {"largest_graph", &Engine::largest_graph,
            "rows of the largest captured graph, in place of the engine's; passes are padded to 1, 2, 4, 8, 16, 24, ...",
            config::between(1, 1e6), config::whole, config::optional}}},
      {"memory_share", &D::memory_share,
       "share of the GPU's memory for weights and caches; default: what the engine's rules leave (memory of the engine), or 0.9",
       config::between(0.05, 1)},
      {"quantized_efficiency", &D::quantized_efficiency,
       "share of a plain kernel's bandwidth that weights of fewer than 16 bits reach; default: the engine's weight_only_shares "
       "for weight-only kernels, 0.77 for others and 0.62 for those below 8 bits",
       config::between(0.05, 1)},
      {&D::engine, config::Fields<Engine>{{&Engine::host, replaced_host_fields()}}}};
  return fields;
}

}  // namespace specsim::cost
