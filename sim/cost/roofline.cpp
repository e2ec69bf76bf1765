#include "sim/cost/cost_model.h"
#include "sim/cost/hardware.h"
#include "sim/cost/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

namespace specsim::cost {

namespace {

constexpr double kActivationBytes = 2.0;
constexpr double kLogitBytes = 4.0;
constexpr double kLogitPasses = 3.0;  // written by the LM head, read by softmax and by the sampler

// What an engine adds to what the GPU does. Seconds.
struct Engine {
  const char* name;
  const char* source;
  double host_us;            // of every target pass
  double host_us_per_layer;  // of every pass that no graph was captured for, on top of what the GPU takes
  double draft_floor_us;     // a draft pass takes at least this
  double round_us;           // of a speculative round beyond its passes
  double eager_floor_us;     // a pass that no graph was captured for takes at least this
  bool graphs;
};

// eager: what Llama-2-7B takes in transformers on an A100 beyond its GPU work (24.2 - 15 ms over 32 layers) and what a draft of
// 2 layers takes (0.5 ms) agree on about 0.27 ms a layer.
constexpr std::array<Engine, 3> kEngines = {
    {{"bare", "nothing but the GPU's own work, no rows of padding: a lower bound", 0, 0, 0, 0, 0, false},
     {"vllm", "host 1.207 ms a step: SpecDecode-Bench's fit on an H100; 0.5 ms a pass of a 2-layer draft: Sequoia on an A100",
      1207, 0, 500, 0, 6000, true},
     {"eager", "transformers without graphs: 0.27 ms a layer, from Sequoia's times on an A100", 0, 270, 0, 0, 0, false}}};

// Rows that engines capture graphs for; a pass is padded up to the next one.
double captured_rows(double rows, double largest) {
  if (rows > largest) return 0.0;
  const double usual = rows <= 1.0 ? 1.0 : rows <= 2.0 ? 2.0 : rows <= 4.0 ? 4.0 : 8.0 * std::ceil(rows / 8.0);
  return std::min(largest, usual);
}

class RooflineCost final : public CostModel {
 public:
  RooflineCost(Hardware hardware, ModelShape target, ModelShape draft, const Engine& engine, double largest_graph,
               double memory_share, double quantized_efficiency)
      : hardware_(std::move(hardware)),
        target_(std::move(target)),
        draft_(std::move(draft)),
        engine_(engine),
        largest_graph_(largest_graph),
        memory_share_(memory_share),
        quantized_efficiency_(quantized_efficiency) {}

  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    const ModelShape& model = role == Role::target ? target_ : draft_;
    const double wanted = std::ceil(pass.batch * pass.tokens - 1e-9);
    const double captured = engine_.graphs ? captured_rows(wanted, largest_graph_) : 0.0;
    const double rows = captured > 0.0 ? captured : wanted;
    const double logit_rows = std::ceil(pass.batch * pass.logits - 1e-9);
    const Products& products = products_of(role, rows, logit_rows);
    PassTime time;
    time.weights = products.streaming;
    time.compute = products.total - products.streaming;
    const double shards = model.tensor_parallel;
    const Calibration& c = hardware_.calibration;
    const double seen = model.kv_window > 0.0 ? std::min(model.kv_window, pass.context) : pass.context;
    // Keys and values are read once for each sequence, whatever the tokens that look at them.
    const double kv_bytes = model.kv_bytes_per_token() * pass.batch * (seen + pass.tokens) / kv_shards(model);
    const double attention_flops = 4.0 * model.layers * model.heads * model.head_dim * pass.batch * pass.tokens *
                                   (seen + 0.5 * (pass.tokens + 1.0)) / shards;
    time.kv = std::max(kv_bytes / (hardware_.bandwidth * c.attention_efficiency), attention_flops / hardware_.flops) +
              1e-6 * model.layers * c.attention_us;
    if (shards > 1.0) {
      const double bytes = rows * model.hidden * kActivationBytes * 2.0 * (shards - 1.0) / shards;
      time.communication = 2.0 * model.layers * (hardware_.link_latency + bytes / hardware_.link_bandwidth);
    }
    const double elementwise_bytes = kElementwisePasses * rows * model.hidden * kActivationBytes;
    time.launch = model.layers * (1e-6 * c.elementwise_us + elementwise_bytes / (hardware_.bandwidth * c.memory_efficiency));
    time.sampling = kLogitPasses * logit_rows * model.vocab * kLogitBytes / (hardware_.bandwidth * c.memory_efficiency);
    if (role == Role::target) time.host = 1e-6 * engine_.host_us;
    if (captured == 0.0) time.host += 1e-6 * engine_.host_us_per_layer * model.layers;
    const double floor =
        1e-6 * std::max(role == Role::draft ? engine_.draft_floor_us : 0.0, captured > 0.0 ? 0.0 : engine_.eager_floor_us);
    time.host += std::max(0.0, floor - time.total());
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 1e-6 * engine_.round_us; }

  [[nodiscard]] std::optional<Ledger> ledger(const Workload& workload, int look_ahead) const override {
    const auto cached = [&](const ModelShape& model) {
      const double tokens = workload.context + look_ahead;
      const double copies = model.tensor_parallel / kv_shards(model);
      return copies * model.kv_bytes_per_token() * workload.batch *
             (model.kv_window > 0.0 ? std::min(model.kv_window, tokens) : tokens);
    };
    Ledger ledger;
    ledger.lines = {{"target weights", target_.weight_bytes()}, {"target KV", cached(target_)}};
    if (look_ahead > 1) {  // plain decoding needs no draft
      ledger.lines.push_back({"draft weights", draft_.weight_bytes()});
      ledger.lines.push_back({"draft KV", cached(draft_)});
    }
    ledger.available_bytes = hardware_.memory_bytes * memory_share_ * target_.tensor_parallel;
    return ledger;
  }

  [[nodiscard]] std::unique_ptr<CostModel> on_twice_the_gpus() const override {
    ModelShape target = target_;
    target.tensor_parallel *= 2.0;
    return std::make_unique<RooflineCost>(hardware_, std::move(target), draft_, engine_, largest_graph_, memory_share_,
                                          quantized_efficiency_);
  }

  [[nodiscard]] std::vector<std::string> warnings() const override {
    std::vector<std::string> list;
    if (hardware_.unverified) list.push_back(hardware_.name + ": its figures are from memory, nobody has checked them");
    for (const ModelShape* model : {&target_, &draft_})
      if (model->unverified) list.push_back(model->name + ": its shape is from memory, nobody has checked it");
    if (draft_.total_parameters() > target_.total_parameters())
      list.push_back(fmt::format("the draft ({}, {:.2f}B) is larger than the target ({}, {:.2f}B)", draft_.name,
                                 1e-9 * draft_.total_parameters(), target_.name, 1e-9 * target_.total_parameters()));
    return list;
  }

 private:
  static constexpr double kElementwisePasses = 12.0;  // hidden vectors read and written between a layer's products

  struct Products {
    double total = 0.0;
    double streaming = 0.0;  // of it, what one row would take, in the same experts
  };

  // GPUs that cut the cache between them: a key and value head is not cut, where there are fewer each GPU keeps a copy.
  static double kv_shards(const ModelShape& model) { return std::min(model.tensor_parallel, model.kv_heads); }

  // Experts of a layer that a pass over so many rows reads.
  static double active_experts(const ModelShape& model, double rows) {
    return std::max(1.0, std::round(expected_experts(model.experts, model.experts_per_token, rows)));
  }

  [[nodiscard]] double products_seconds(const ModelShape& model, double rows, double logit_rows, double active) const {
    const double bytes = model.weight_bits / 8.0;
    // Kernels for fewer than 16 bits do not reach the bandwidth of plain ones.
    const double usual = model.weight_bits >= 8.0 ? 0.77 : 0.62;
    const double efficiency = model.weight_bits >= 16.0 ? 1.0 : quantized_efficiency_ > 0.0 ? quantized_efficiency_ : usual;
    const double reading = bytes / efficiency;
    const double shards = model.tensor_parallel;
    const auto one = [&](const Product& product, double n, double groups) {
      // The first product of a pair is cut by columns, the second by rows.
      const bool by_columns = product.name == "qkv" || product.name == "up" || product.name == "lm_head";
      return product_seconds(hardware_, n, by_columns ? product.inner : product.inner / shards,
                             by_columns ? product.outer / shards : product.outer, reading, groups);
    };
    double layer = 0.0;
    for (Product product : model.products()) {
      if (product.name == "qkv")  // copied heads are computed on each GPU
        product.outer = (model.heads + 2.0 * model.kv_heads * shards / kv_shards(model)) * model.head_dim;
      layer += one(product, rows, 1.0);
    }
    for (const Product& product : model.expert_products())
      layer += one(product, std::max(1.0, rows * model.experts_per_token / active), active);
    double sum = model.layers * layer;
    if (logit_rows > 0.0) sum += one({"lm_head", model.hidden, model.vocab}, logit_rows, 1.0);
    if (model.fused_inputs > 0.0) sum += one({"up", model.fused_inputs * model.hidden, model.hidden}, rows, 1.0);
    return sum;
  }

  // Kept: batches and draft lengths repeat, contexts do not matter here.
  const Products& products_of(Role role, double rows, double logit_rows) const {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = kept_[static_cast<std::size_t>(role)].try_emplace({rows, logit_rows});
    if (fresh) {
      const ModelShape& model = role == Role::target ? target_ : draft_;
      const double active = model.experts > 0.0 ? active_experts(model, rows) : 0.0;
      at->second.total = products_seconds(model, rows, logit_rows, active);
      at->second.streaming = std::min(at->second.total, products_seconds(model, 1.0, std::min(1.0, logit_rows), active));
    }
    return at->second;
  }

  Hardware hardware_;
  ModelShape target_;
  ModelShape draft_;
  Engine engine_;
  double largest_graph_;
  double memory_share_;
  double quantized_efficiency_;
  mutable std::mutex mutex_;
  mutable std::array<std::map<std::pair<double, double>, Products>, 2> kept_;
};

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Engine& engine : kEngines) names.emplace_back(engine.name);
  return names;
}

config::Parameter microseconds(const char* name, const char* summary) {
  return {name, config::Type::number, "", summary, config::between(0, 1e9), {}};
}

}  // namespace

CostEntry roofline_cost() {
  return {
      {"roofline",
       "passes priced operator by operator from a GPU's and the models' figures",
       "Williams et al. 2009; matrix products fitted to Vidur's and LLMServingSim's public profiles",
       {{"hardware", config::Type::value, {}, "a GPU: a name (specsim list hardware), a file, or {preset: NAME, ...}", {}, {}},
        {"target",
         config::Type::value,
         {},
         "a model: a name (specsim list model), a file, or {preset: NAME, weight_bits, ...}",
         {},
         {}},
        {"draft",
         config::Type::value,
         {},
         "the same for the draft; kv_window for one that reads the newest tokens alone",
         {},
         {}},
        {"engine",
         config::Type::text,
         "vllm",
         "what host and launches add: bare nothing, vllm captured graphs and host time, eager a time per layer",
         {},
         engine_names()},
        microseconds("host_us", "of a target pass, in place of the engine's"),
       microseconds("host_us_per_layer", "of a pass without a graph, in place of the engine's"),
        microseconds("draft_floor_us", "least time of a draft pass, in place of the engine's"),
        microseconds("round_us", "of a speculative round beyond its passes, in place of the engine's"),
        microseconds("eager_floor_us", "least time of a pass without a graph, in place of the engine's"),
        {"largest_graph",
         config::Type::integer,
         "512",
         "rows of the largest captured graph; passes are padded to 1, 2, 4, 8, 16, 24, ...",
         config::between(1, 1e6),
         {}},
        {"memory_share",
         config::Type::number,
         "0.9",
         "of the GPU's memory, for weights and caches",
         config::between(0.05, 1),
         {}},
        {"quantized_efficiency",
         config::Type::number,
         "",
         "of a plain kernel's bandwidth, reached with weights of fewer than 16 bits; 0.77 from 8 bits up and 0.62 below where it "
         "is not given (gpt-fast on an A100)",
         config::between(0.05, 1),
         {}}},
       "Weights once a pass, keys and values once a sequence, the LM head on every verified row; the experts that all tokens of "
       "the pass choose; two all-reduces a layer with tensor_parallel. Each matrix product is the p-norm of memory, arithmetic "
       "and operand feed over whole tiles and waves; the others are bytes over bandwidth plus a fixed time."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
        const std::size_t before = diagnostics.list().size();
        if (!arguments.has("hardware") || !arguments.has("target") || !arguments.has("draft")) return nullptr;
        Hardware hardware = read_hardware(arguments.value("hardware"), diagnostics);
        ModelShape target = read_model(arguments.value("target"), "target", diagnostics);
        ModelShape draft = read_model(arguments.value("draft"), "draft", diagnostics);
        const std::string& name = arguments.text("engine");
        if (diagnostics.list().size() != before) return nullptr;
        Engine engine = *std::find_if(kEngines.begin(), kEngines.end(), [&](const Engine& e) { return e.name == name; });
        const auto replace = [&](const char* key, double& figure) {
          if (arguments.has(key)) figure = arguments.number(key);
        };
        replace("host_us", engine.host_us);
        replace("host_us_per_layer", engine.host_us_per_layer);
        replace("draft_floor_us", engine.draft_floor_us);
        replace("round_us", engine.round_us);
        replace("eager_floor_us", engine.eager_floor_us);
        if (target.fused_inputs > 0.0)
          diagnostics.add(arguments.where("target"), "the target is a head that cannot stand alone, allowed: a whole model");
        if (draft.tensor_parallel > target.tensor_parallel)
          diagnostics.add(arguments.where("draft"),
                          fmt::format("the draft's tensor_parallel is {}, allowed: at most the target's {}",
                                      draft.tensor_parallel, target.tensor_parallel));
        if (diagnostics.list().size() != before) return nullptr;
        return std::make_unique<RooflineCost>(
            std::move(hardware), std::move(target), std::move(draft), engine,
            static_cast<double>(arguments.integer("largest_graph")), arguments.number("memory_share"),
            arguments.has("quantized_efficiency") ? arguments.number("quantized_efficiency") : 0.0);
      }};
}

}  // namespace specsim::cost
