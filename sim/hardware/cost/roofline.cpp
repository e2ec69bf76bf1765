#include "sim/hardware/cost/roofline.h"

#include "sim/foundation/base/check.h"
#include "sim/hardware/cost/cost_model.h"
#include "sim/hardware/cost/deployment_memory.h"
#include "sim/hardware/cost/deployment_warnings.h"
#include "sim/hardware/cost/element_types.h"
#include "sim/hardware/cost/integer_kernels.h"
#include "sim/hardware/cost/linear_attention.h"
#include "sim/hardware/cost/pass_kernels.h"
#include "sim/hardware/cost/piecewise.h"
#include "sim/hardware/cost/roofline_parameters.h"
#include "sim/hardware/cost/server_error.h"
#include "sim/hardware/cost/sparse_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

namespace specsim::cost {

namespace {

constexpr double kLatentEfficiency = 0.67;  // share of the peak that latent attention reaches: FlashMLA, 660 of 989 TFLOP/s, H800
constexpr double kLogitBytes = 4.0;

class RooflineCost final : public CostModel {
 public:
  RooflineCost(Deployment deployment, double memory_share, double quantized_efficiency)
      : deployment_(as_it_runs(std::move(deployment))),
        memory_share_(memory_share),
        quantized_efficiency_(quantized_efficiency),
        integer_(runs_integer_kernels(deployment_)) {
    const std::string kernels = kernels_in_use(deployment_.kernels, engine_.kernels, hardware_);
    const std::string attention = attention_in_use(deployment_.attention, deployment_.kernels, engine_.kernels);
    if (!kernels.empty()) kernels_.emplace(hardware_, kernels, attention, engine_, quantized_efficiency_ <= 0.0);
  }

  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    if (role == Role::draft && !draft_) return {};  // nothing is drafted by a model: proposals take no pass
    const ModelShape& model = shape(role);
    const bool prompt = pass.tokens > 1.0 && pass.logits < pass.tokens;  // verification needs every row's logits
    const Attending all{pass.batch, pass.context, pass.tokens, pass.context + 0.5 * (pass.tokens + 1.0), prompt, pass.live};
    PassTime time = priced(role, pass.batch * pass.tokens, pass.batch * pass.logits, attention_seconds(model, {all}), pass.batch,
                           pass.live, {});
    if (role == Role::target && pass.tokens > 1.0 && !prompt)
      time.host += pieces_seconds(engine_, hardware_, model, time.total());
    return time;
  }

  [[nodiscard]] PassTime draft_pass(const Workload& workload, int index, double extra) const override {
    return makes_draft_pass(index) ? CostModel::draft_pass(workload, index, extra) : PassTime();
  }
  [[nodiscard]] bool makes_draft_pass(int index) const override {
    return !draft_ || draft_->prediction_heads <= 1.0 || std::fmod(index, draft_->prediction_heads) == 0.0;
  }
  [[nodiscard]] bool drafts_at_once() const override { return draft_ && draft_->one_pass; }
  [[nodiscard]] int most_drafts() const override {
    return !draft_ || draft_->prediction_heads <= 1.0 ? CostModel::most_drafts() : static_cast<int>(draft_->prediction_heads);
  }

  [[nodiscard]] PassTime mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                                    const OtherEngines& peers) const override {
    if (prompts.sequences == 0.0 && peers.rows < 0.0) {
      const double n = decoding.sequences;
      return pass(role, {n, decoding.rows / n, decoding.cached / n, logits / n});
    }
    if (role == Role::draft && !draft_) return {};
    const auto alike = [](const Segment& segment, bool prompt) -> Attending {
      if (segment.sequences == 0.0) return {};
      return {segment.sequences,
              segment.cached / segment.sequences,
              segment.rows / segment.sequences,
              segment.pairs / segment.rows,
              prompt,
              true};
    };
    return priced(role, prompts.rows + decoding.rows, logits,
                  attention_seconds(shape(role), {alike(prompts, true), alike(decoding, false)}),
                  prompts.sequences + decoding.sequences, true, peers);
  }
  [[nodiscard]] PassTime mixed_draft_pass(const Segment& prompts, const Segment& decoding) const override {
    if (prompts.sequences == 0.0) return CostModel::mixed_draft_pass(prompts, decoding);
    return mixed_pass(Role::draft, prompts, decoding, prompts.sequences + decoding.sequences, {});
  }
  // The GPU's work alone: what an engine's host takes errs with the server.
  [[nodiscard]] double kernel_error(Role role, const Pass& pass) const override {
    if (role == Role::draft && !draft_) return 0.0;
    constexpr double kShapes = 0.6;  // root of the sum of squared shares of a layer's four products, whose errors are independent
    constexpr double kStated = 0.3;  // relative error of what no fit prices, attention and links too; itself stated, not fitted
    const ModelShape& model = shape(role);
    const PassTime time = this->pass(role, pass);
    const double spread = hardware_.kernels_spread;
    const auto or_stated = [&](const std::optional<double>& fitted) { return fitted ? std::max(*fitted, spread) : kStated; };
    const std::optional<double> fit = kernels_ ? kernels_->product_error(model.weight_bits, model.product_type) : std::nullopt;
    // A kernel for weights alone that was not measured, and a GPU that was not, miss all four products alike.
    const double lent = fit ? spread : hardware_.fitted_on.empty() ? 0.0 : hardware_.calibration.spread;
    const double product = integer_ && model.weight_bits < 16.0 ? kIntegerSpread
                           : fit || model.weight_bits >= 16.0
                               ? std::max(kShapes * fit.value_or(hardware_.calibration.spread), lent)
                               : std::max(kWeightOnlySpread, hardware_.calibration.spread);
    const double attention = tiles_attention(model) ? kIntegerSpread
                             : kernels_             ? or_stated(kernels_->attention_error(model, pass.tokens))
                                                    : kStated;
    const double link = kernels_ ? or_stated(kernels_->allreduce_error(model.tensor_parallel, false)) : kStated;
    const std::optional<double> of_experts = kernels_ ? kernels_->experts_error(model, pass.batch * pass.tokens) : std::nullopt;
    const double mixture =
        (integer_ && model.expert_bits < 16.0 ? kIntegerExpertsSpread : std::max(of_experts.value_or(kStated), spread)) *
        time.experts;
    const double dense = product * (time.weights + time.compute - time.experts);
    const double parts = std::hypot(std::hypot(std::hypot(dense, mixture), attention * time.kv),
                                    std::hypot(link * time.communication, kStated * (time.launch + time.sampling)));
    return time.total() > 0.0 ? parts / time.total() : 0.0;
  }
  [[nodiscard]] double server_error(Role role) const override {
    return role == Role::draft && !draft_ ? 0.0 : error_beside_kernels(shape(role), integer_);
  }
  [[nodiscard]] double round_error() const override { return kRoundError; }
  [[nodiscard]] double shared_variance(Role role) const override {
    if (role == Role::draft && !draft_) return kSharedByMeasured;
    const ModelShape& model = shape(role);
    const bool measured =
        kernels_ ? kernels_->measured_products(model) : hardware_.fitted_on.empty() && model.weight_bits >= 16.0;
    return measured ? kSharedByMeasured : kSharedByOthers;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 1e-6 * engine_.round_us; }
  [[nodiscard]] const Deployment* deployment() const override { return &deployment_; }

  [[nodiscard]] std::optional<MemoryBudget> memory_budget(const Workload& workload, int look_ahead, Kept kept) const override {
    return memory_of(deployment_, memory_share_, workload, look_ahead, kept);
  }

  [[nodiscard]] std::unique_ptr<CostModel> on_twice_the_gpus() const override {
    if (!target_ || !draft_ || draft_->tensor_parallel != target_->tensor_parallel) return nullptr;
    Deployment twice = deployment_;
    twice.target->tensor_parallel *= 2.0;
    if (std::fmod(twice.target->heads, twice.target->tensor_parallel) != 0.0) return nullptr;
    return std::make_unique<RooflineCost>(std::move(twice), memory_share_, quantized_efficiency_);
  }

  [[nodiscard]] std::unique_ptr<CostModel> scaled(double bandwidth, double host) const override {
    Deployment changed = deployment_;
    changed.hardware.bandwidth *= bandwidth;
    for (const EngineFigure& figure : engine_figures()) changed.engine.*figure.figure *= host;
    return std::make_unique<RooflineCost>(std::move(changed), memory_share_, quantized_efficiency_);
  }

  [[nodiscard]] std::vector<std::string> warnings() const override {
    return deployment_warnings(deployment_, kernels_ ? &*kernels_ : nullptr);
  }

  [[nodiscard]] std::vector<std::string> beyond_measured(Role role, const Pass& pass) const override {
    if (!kernels_ || (role == Role::draft && !draft_)) return {};
    return kernels_->beyond_measured(shape(role), pass);
  }

 private:
  static constexpr double kElementwisePasses = 12.0;  // hidden vectors read and written between a layer's products
  static constexpr double kNorms = 2.0;               // norms in a layer
  static constexpr double kCalibratedKernels = 4.0;   // kernels whose least times Calibration::elementwise_us adds up

  // Caches of fewer bits and latent ones have kernels of which nothing was measured.
  [[nodiscard]] bool tiles_attention(const ModelShape& model) const {
    return integer_ && deployment_.attention == "automatic" && !model.over_one_vector() && model.kv_bits >= 16.0;
  }

  // Its layers' small kernels and attention's floor are the engine's, not the GPU's calibration's.
  [[nodiscard]] bool own_layers(const ModelShape& model) const { return integer_ && has_own_layers(engine_, model); }

  // Seconds of a layer's norms, rotary embedding, activation, residuals and what mixes them.
  [[nodiscard]] double small_kernels_seconds(const ModelShape& model, double rows) const {
    const Calibration& c = hardware_.calibration;
    double floor = 1e-6 * (own_layers(model) ? engine_.integer.layer_us : c.elementwise_us);
    double width = kElementwisePasses * model.hidden;
    if (engine_.small_kernels > 0.0 && kernels_) {  // a calibration was fitted with its own number of them
      const double kernels = engine_.small_kernels - (engine_.fused_norms && model.tensor_parallel > 1.0 ? kNorms : 0.0);
      floor *= std::max(0.0, kernels) / kCalibratedKernels;
      // Norms read and write the vector and the residual, the activation reads gate and up, rotary embedding what it turns.
      const double activated = model.experts > 0.0 ? 0.0 : 3.0 * model.ffn;
      width = 4.0 * kNorms * model.hidden +
              (activated + 2.0 * (model.heads + model.kv_heads) * model.head_dim) / model.tensor_parallel;
    }
    return floor + rows * width * kActivationBytes / (hardware_.bandwidth * c.memory_efficiency) +
           hyper_connections_seconds(hardware_, model, rows);
  }

  struct Products {
    double total = 0.0;
    double streaming = 0.0;  // the part of it that one row would take, in the same experts
    double experts = 0.0;    // the part of it that experts take
  };

  [[nodiscard]] const ModelShape& shape(Role role) const {
    const std::optional<ModelShape>& model = role == Role::target ? target_ : draft_;
    SPECSIM_CHECK(model.has_value(), "a pass of a model that was not given");
    return *model;
  }

  // Sequences alike in what attention does.
  struct Attending {
    double sequences = 0.0;
    double cached = 0.0;  // tokens of each
    double tokens = 0.0;  // new ones of each
    double pairs = 0.0;   // tokens that a new one looks at, itself too, in the mean; were there no window
    bool prompt = false;  // new tokens are of a prompt
    bool live = false;    // contexts differ as those of a live server
  };
  // Seconds of the attention of all layers. Keys and values are read once for each sequence, whatever the tokens that look at
  // them.
  [[nodiscard]] double attention_seconds(const ModelShape& model, std::initializer_list<Attending> groups) const {
    const Calibration& c = hardware_.calibration;
    // An engine that waits for the longest context waits as the GPU's kernels do, where they were measured.
    const double unequal =
        engine_.unequal_contexts > 1.0 && c.unequal_contexts > 0.0 ? c.unequal_contexts : engine_.unequal_contexts;
    double sum = 0.0;
    for (const AttentionKind& kind : model.attention_kinds()) {
      const double bytes_per_token = kind.layers * kind.elements * model.kv_bits / 8.0;
      const double flops = hardware_.flops * (model.over_one_vector() ? kLatentEfficiency : 1.0);
      double formula = 0.0;  // groups that no fit prices
      double fitted = 0.0;
      const bool beside_chunk = groups.size() > 1 && groups.begin()->sequences > 0.0;
      const bool tiled = tiles_attention(model);
      double own = 0.0;
      bool all_fitted = true;
      for (const Attending& of : groups) {
        if (of.sequences == 0.0) continue;
        const double seen = kind.seen(of.cached);
        const auto kernel =
            kernels_ && !tiled ? kernels_->attention(model, kind, of.sequences, of.tokens, seen, of.prompt) : std::nullopt;
        all_fitted = all_fitted && kernel.has_value();
        // Of two sequences the longer one holds up the kernel, of many the longest of each share of them.
        const double wait = of.live && !of.prompt ? 1.0 + (unequal - 1.0) * std::max(0.0, 1.0 - 1.0 / of.sequences) : 1.0;
        const double alone = beside_chunk && !of.prompt && of.tokens <= 1.0 && kernel ? kernels_->beside_chunk(model, kind) : 1.0;
        fitted += alone * wait * kernel.value_or(0.0);
        const double bytes = bytes_per_token * of.sequences * kind.read(of.cached, of.tokens) / model.kv_shards(kind);
        // llama.cpp multiplies prompts with the vectors as they are.
        const bool remade = !integer_ && of.prompt && of.tokens > kMostAsVerified && kind.picked == 0.0;
        const double operations = model.operations_per_key(kind, remade) * kind.layers * model.heads * of.sequences * of.tokens *
                                  kind.looked_at(of.cached, of.pairs) / model.tensor_parallel;
        if (tiled)
          own += wait * tiled_attention_seconds(engine_, hardware_, model, kind, of.sequences, of.tokens,
                                                of.pairs - (of.cached - seen), bytes / kind.layers);
        if (!kernel) formula += wait * std::max(bytes / (hardware_.bandwidth * c.attention_efficiency), operations / flops);
      }
      sum += kind.layers * fitted + (tiled ? kind.layers * own : formula);
      if (!all_fitted) sum += 1e-6 * kind.layers * (own_layers(model) ? 0.0 : c.attention_us);
    }
    double states = 0.0;  // moved, of whole sequences
    sum += sparse_kernels_seconds(hardware_, model);
    for (const Attending& of : groups) {
      states += of.sequences * states_moved(of.tokens, of.prompt);
      sum += index_seconds(engine_, hardware_, model, of.sequences, of.cached, of.tokens, of.pairs);
    }
    return sum + states_seconds(engine_, hardware_, model, states);
  }

  // A pass over `all_rows`, `head_rows` of them through the LM head, whose attention takes so many seconds.
  [[nodiscard]] PassTime priced(Role role, double all_rows, double head_rows, double attention, double sequences, bool live,
                                const OtherEngines& peers) const {
    const ModelShape& model = shape(role);
    const double wanted = std::ceil(all_rows - 1e-9);
    const double captured = captured_rows(engine_, std::max(wanted, peers.widest));
    const double rows = captured > 0.0 ? captured : wanted;
    const double logit_rows = std::ceil(head_rows - 1e-9);
    const double others = model.expert_parallel - 1.0;
    const double other_rows = others == 0.0 ? 0.0 : peers.rows < 0.0 ? others * wanted : peers.rows;
    const double gathered = captured > 0.0 ? others * rows : other_rows;
    const double biased = role == Role::draft && model.markov_rank > 0.0 ? sequences : 0.0;
    const Products& products = products_of(role, rows, wanted + other_rows, logit_rows, rows + gathered, biased);
    PassTime time;
    time.weights = products.streaming;
    time.compute = products.total - products.streaming;
    time.experts = products.experts;
    const double shards = model.tensor_parallel;
    const Calibration& c = hardware_.calibration;
    time.kv = attention;
    if (shards > 1.0) {
      const double bytes = rows * model.hidden * kActivationBytes * 2.0 * (shards - 1.0) / shards;
      const bool launched = captured == 0.0 && (engine_.graphs || engine_.host_us_per_layer > 0.0);
      const double latency = launched ? hardware_.link_latency : hardware_.graph_link_latency;
      time.communication = 2.0 * model.layers * (latency + bytes / link_bandwidth(hardware_, shards));
      // An all-reduce that was timed alone waits for its launch. Engines that name their kernels launch ahead of the GPU, and
      // what launches take at least is host_us_per_layer.
      const bool waits = launched && engine_.kernels.empty();
      if (kernels_)
        if (const auto fitted = kernels_->allreduce(shards, rows * model.hidden * kActivationBytes, waits))
          time.communication = 2.0 * model.layers * *fitted;
    }
    if (others > 0.0) {
      // Rows of the others come before the experts, and sums over this GPU's experts go back behind them, one way each.
      const double latency = captured > 0.0 ? hardware_.graph_link_latency : hardware_.link_latency;
      const double bytes = gathered * model.hidden * kActivationBytes;
      time.communication =
          2.0 * (model.layers - model.dense_layers) * (latency + bytes / link_bandwidth(hardware_, others + 1.0));
    }
    time.launch = model.layers * small_kernels_seconds(model, rows) + (role == Role::target ? 1e-6 * engine_.step_us : 0.0);
    time.sampling = engine_.logit_passes * logit_rows * model.lm_heads() * model.vocab * kLogitBytes /
                    (hardware_.bandwidth * c.memory_efficiency);
    if (model.offload_share > 0.0) {  // the next layer comes over the link while this one is computed on
      const double active = model.experts > 0.0 ? expected_experts(model.experts, model.experts_per_token, wanted) : 0.0;
      const double link = model.offload_share * model.layer_bytes(active) / shards / model.offload_bandwidth;
      time.weights += std::max(0.0, link - time.total());
    }
    if (role == Role::target) {
      const double each = engine_.host_us_per_sequence + (live ? engine_.client_us_per_sequence : 0.0);
      time.host = 1e-6 * (engine_.host_us + each * sequences + engine_.host_us_per_row * wanted);
      const double beside = 1e-6 * (engine_.beside_us + engine_.beside_us_per_sequence * sequences);
      time.behind = std::min(beside, time.total());
      time.host += beside - time.behind;
    } else {
      time.host = 1e-6 * engine_.draft_us;
    }
    const double draft_floor_us = role == Role::draft ? engine_.draft_floor_us : 0.0;
    const double eager_us = captured > 0.0 ? 0.0 : engine_.host_us_per_layer * model.layers;
    const double floor = 1e-6 * std::max(draft_floor_us, eager_us);
    time.host += std::max(0.0, floor - time.total());
    return time;
  }

  // All products of a pass, and the experts' alone. `active`: experts of a layer on this GPU that `expert_rows` rows of all GPUs
  // meet.
  struct Seconds {
    double all = 0.0;
    double experts = 0.0;
  };
  // `biased`: the Markov head goes over one position of so many sequences after the other; 0: there is none.
  [[nodiscard]] Seconds products_seconds(const ModelShape& model, double rows, double tokens, double logit_rows,
                                         double expert_rows, double active, double biased, double positions) const {
    // Kernels for fewer than 16 bits do not reach the bandwidth of plain ones.
    const auto reading = [&](double bits, bool weights_alone) {
      const double usual = weights_alone ? engine_.weight_only_shares[bits < 8.0 ? 0 : 1] : bits >= 8.0 ? 0.77 : 0.62;
      return bits / 8.0 / (bits >= 16.0 ? 1.0 : quantized_efficiency_ > 0.0 ? quantized_efficiency_ : usual);
    };
    const double reads = quantized_efficiency_ > 0.0 ? 0.0 : engine_.integer.reads;  // share of the data sheet's
    const double plain = hardware_.calibration.memory_efficiency;
    const auto own_bytes = [&](double bits) { return reads > 0.0 ? bits / 8.0 / reads : reading(bits, true) / plain; };
    const double shards = model.tensor_parallel;
    const auto one = [&](const Product& product, double n, double bits, const std::string& type, double groups) {
      const double inner = product.sharding == Sharding::rows ? product.inner / shards : product.inner;
      const double outer = product.sharding == Sharding::columns ? product.outer / shards : product.outer;
      if (integer_ && bits < 16.0 && groups == 1.0 && runs_integer_product(hardware_, n))
        return integer_product_seconds(engine_, hardware_, n, inner, outer, own_bytes(bits), model.super_blocks);
      if (kernels_ && groups == 1.0)
        if (const auto fitted = kernels_->product(n, inner, outer, bits, type)) return *fitted;
      const Dtype* dtype = find_dtype(type);
      const bool weights_alone = of_weights_alone(bits, dtype);
      const double growth = weights_alone ? weight_only_growth(engine_.weight_only_growth, bits / 8.0, n) : 1.0;
      return growth * product_seconds(hardware_, n, inner, outer, reading(bits, weights_alone), groups,
                                      dtype == nullptr ? kActivationBytes : dtype->activation_bytes,
                                      dtype == nullptr ? 0.0 : peak_flops(hardware_, dtype->arithmetic), weights_alone);
    };
    const bool own_experts = integer_ && model.experts > 0.0 && model.expert_bits < 16.0;
    const std::optional<double> experts =
        own_experts ? integer_experts_seconds(engine_, hardware_, model, tokens, active, own_bytes(model.expert_bits))
        : kernels_  ? kernels_->experts(model, tokens)
                    : std::nullopt;
    double mixture = experts.value_or(1e-6 * hardware_.calibration.experts_us);  // a layer's
    if (!experts)
      for (const Product& product : model.expert_products())
        mixture += one(product, std::max(1.0, expert_rows * model.experts_per_token / (model.expert_parallel * active)),
                       model.expert_bits, model.expert_type, active);
    Seconds sum;
    for (const LayerKind& kind : model.layer_kinds(shards)) {
      double layer = 0.0;
      double beside = 0.0;
      double beside_bytes = 0.0;
      for (const Product& product : kind.products) {
        const double took =
            one(product, rows, product.plain ? 16.0 : model.weight_bits, product.plain ? std::string() : model.product_type,
                product.sharding == Sharding::groups ? product.groups / shards : product.groups);
        (product.beside ? beside : layer) += took;
        if (product.beside) beside_bytes += product.inner * product.outer * model.weight_bits / 8.0 / shards;
      }
      double routed = 0.0;
      if (kind.mixture) {
        sum.experts += kind.layers * mixture;
        // Measured layers of experts begin with the router's scores.
        const double router =
            experts && !own_experts ? one({"router", model.hidden, model.experts, Sharding::none}, rows, 16.0, "", 1.0) : 0.0;
        routed = mixture + router;
      }
      // Two streams share the memory: the shorter one hides behind the other but for its bytes.
      const double sharing = beside_bytes / (hardware_.bandwidth * hardware_.calibration.memory_efficiency);
      sum.all += kind.layers * (layer + (rows <= engine_.shared_rows && captured_rows(engine_, rows) > 0.0
                                             ? std::max(beside, routed + std::min(beside, sharing))
                                             : beside + routed));
    }
    if (logit_rows > 0.0)
      sum.all += model.lm_heads() * one({"lm_head", model.hidden, model.vocab}, logit_rows, model.head_bits, "", 1.0);
    if (biased > 0.0)
      sum.all += positions * one({"markov_head", model.markov_rank, model.vocab}, biased, model.head_bits, "", 1.0);
    if (model.fused_inputs > 0.0)
      sum.all += one({"join", model.fused_inputs * model.hidden, model.hidden}, rows, model.weight_bits, model.product_type, 1.0);
    if (model.head_matrices > 0.0)
      sum.all +=
          model.head_matrices * one({"head", model.hidden, model.hidden}, rows, model.weight_bits, model.product_type, 1.0);
    return sum;
  }

  // Kept: batches and draft lengths repeat, contexts do not matter here.
  // `tokens` choose experts, of all GPUs that share them; the rest of their rows is padding.
  const Products& products_of(Role role, double rows, double tokens, double logit_rows, double expert_rows, double biased) const {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = kept_[static_cast<std::size_t>(role)].try_emplace({rows, tokens, logit_rows, expert_rows, biased});
    if (fresh) {
      const ModelShape& model = shape(role);
      // Experts of a layer that the pass reads: between whole numbers of them, for products come in whole ones.
      const double active = model.experts > 0.0 ? std::max(1.0, met_experts(model, tokens)) : 0.0;
      const double fewer = std::floor(active);
      const double positions = biased > 0.0 ? logit_rows / biased : 0.0;
      const auto between = [&](double n, double logits, double for_experts) {
        const double sequences = n == 1.0 ? std::min(1.0, biased) : biased;
        Seconds low = products_seconds(model, n, tokens, logits, for_experts, fewer, sequences, positions);
        if (active == fewer) return low;
        const Seconds high = products_seconds(model, n, tokens, logits, for_experts, fewer + 1.0, sequences, positions);
        low.all += (active - fewer) * (high.all - low.all);
        low.experts += (active - fewer) * (high.experts - low.experts);
        return low;
      };
      const Seconds all = between(rows, logit_rows, expert_rows);
      at->second = {all.all, std::min(all.all, between(1.0, std::min(1.0, logit_rows), 1.0).all), all.experts};
    }
    return at->second;
  }

  Deployment deployment_;
  const Hardware& hardware_ = deployment_.hardware;
  const std::optional<ModelShape>& target_ = deployment_.target;
  const std::optional<ModelShape>& draft_ = deployment_.draft;
  const Engine& engine_ = deployment_.engine;
  double memory_share_;  // 0: what the engine's rules leave
  double quantized_efficiency_;
  bool integer_;                        // weights of fewer than 16 bits and attention go by the engine's own integer kernels
  std::optional<PassKernels> kernels_;  // none: the data sheet's formula
  mutable std::mutex mutex_;
  mutable std::array<std::map<std::array<double, 5>, Products>, 2> kept_;
};

}  // namespace

std::unique_ptr<CostModel> make_roofline(Deployment deployment) {
  return std::make_unique<RooflineCost>(std::move(deployment), 0.0, 0.0);
}

CostEntry roofline_cost() {
  return {
      {"roofline", "passes priced operator by operator from a GPU's and the models' figures",
       "Williams et al. 2009; matrix products fitted to Vidur's and LLMServingSim's public profiles", roofline_parameters(),
       "Weights once a pass, keys and values once a sequence, the LM head on every verified row; the experts that all tokens of "
       "the pass choose; two all-reduces a layer with tensor_parallel. Each matrix product is the p-norm of memory, arithmetic "
       "and operand feed over whole tiles and waves; the others are bytes over bandwidth plus a fixed time."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
        const std::size_t before = diagnostics.list().size();
        if (!arguments.has("hardware") || !arguments.has("target") || !arguments.has("draft")) return nullptr;
        Hardware hardware = read_hardware(arguments.value("hardware"), diagnostics);
        ModelShape target = read_model(arguments.value("target"), "target", diagnostics);
        std::optional<ModelShape> draft;
        const config::Value& drafted_by = arguments.value("draft");
        if (!drafted_by.is_scalar() || drafted_by.text != "none") draft = read_model(drafted_by, "draft", diagnostics);
        Engine engine = read_engine(arguments.value("engine"), diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        if (draft) take_types_of_target(target, drafted_by, *draft);
        check_element_types(target, "target", hardware, diagnostics);
        if (draft) check_element_types(*draft, "draft", hardware, diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        for (const EngineFigure& figure : engine_figures())
          if (arguments.has(figure.key)) engine.*figure.figure = arguments.number(figure.key);
        const bool round_unpriced = !engine.proposals.empty() && !arguments.has("proposal") && !arguments.has("round_us");
        if (arguments.has("proposal")) add_proposal(engine, arguments.text("proposal"), arguments.where("proposal"), diagnostics);
        if (arguments.has("largest_graph")) engine.largest_graph = static_cast<double>(arguments.integer("largest_graph"));
        if (target.on_target())
          diagnostics.add(arguments.where("target"), "the target is a head that cannot stand alone, allowed: a whole model");
        if (draft && draft->tensor_parallel > target.tensor_parallel)
          diagnostics.add(arguments.where("draft"),
                          fmt::format("the draft's tensor_parallel is {}, allowed: at most the target's {}",
                                      draft->tensor_parallel, target.tensor_parallel));
        const std::string& kernels = arguments.text("kernels");
        if (kernels != "automatic" && kernels != "none" && hardware.kernels == nullptr)
          diagnostics.add(
              arguments.where("kernels"),
              fmt::format("kernels is {}, allowed: none on {}, of which no kernels were measured", kernels, hardware.name));
        check_allreduce_kernels(engine, hardware, arguments.value("engine"), diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        return std::make_unique<RooflineCost>(
            Deployment{std::move(hardware), std::move(target), std::move(draft), std::move(engine), kernels,
                       arguments.text("attention"), round_unpriced},
            arguments.has("memory_share") ? arguments.number("memory_share") : 0.0,
            arguments.has("quantized_efficiency") ? arguments.number("quantized_efficiency") : 0.0);
      }};
}

}  // namespace specsim::cost
