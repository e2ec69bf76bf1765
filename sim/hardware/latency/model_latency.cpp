#include "sim/hardware/latency/model_latency.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/plural.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

namespace {

const ModelShape& model_of(const Deployment& deployment, Role role) {
  const std::optional<ModelShape>& model = role == Role::target ? deployment.target : deployment.draft;
  SPECSIM_CHECK(model.has_value(), "a pass of a model that was not given");
  return *model;
}

// The factor for unequal contexts: the GPU's measured value if it has one, else the engine's.
double unequal_contexts(const Deployment& deployment) {
  const double of_engine = deployment.engine.unequal_contexts;
  const std::optional<double>& of_kernels = deployment.hardware.calibration.unequal_contexts;
  return of_engine > 1.0 ? of_kernels.value_or(of_engine) : of_engine;
}

// Scales the products of a pass by the server's factors; rows of prompts also by `prompt_time`.
void scale_products(const ServerFactors& factors, double prompt_time, double prompt_share, PassTime& time) {
  const double all = time.weights + time.compute;
  if (all <= 0.0) return;
  const double experts = time.experts * factors.times(Factor::experts);
  const double scaled = (all - time.experts) * factors.times(Factor::products) + experts;
  const double prompts = 1.0 + prompt_share * (prompt_time - 1.0);
  time.weights *= prompts * scaled / all;
  time.compute *= prompts * factors.times(Factor::arithmetic) * scaled / all;
  time.experts = prompts * experts;
}

// The relative change of the experts that the rows choose, by the logarithm of their independent choices.
double routing_elasticity(const ModelShape& model, const PassRows& rows) {
  constexpr double kStep = 0.01;
  const double choices = rows.alike * std::max(0.0, rows.tokens - 1.0);
  return std::log(met_experts(model, 1.0 + std::exp(kStep) * choices) / met_experts(model, 1.0 + choices)) / kStep;
}

// Error of the time of experts. Real routing is more skewed than independent choices, and the other GPUs wait for the busiest:
// the mean load over the largest was .5 to .8 before experts were copied (SGLang's report on expert parallelism, May 2025; from
// memory, unverified), which independent choices put at .9 or more for large batches.
double experts_error(const ModelShape& model, const KernelError& kernel) {
  constexpr double kSkew = 0.4;
  return model.expert_gpus() > 1.0 ? std::hypot(kernel.largest(), kSkew) : kernel.largest();
}

double attention_times(const ServerFactors& factors, double prompt_time, const AttentionWork& work) {
  if (work.prompt) return factors.times(Factor::attention) * prompt_time;
  return work.tokens > 1.0 ? factors.times(Factor::attention, Factor::verification) : factors.times(Factor::attention);
}

}  // namespace

struct ModelLatency::Layout {
  PassRows rows;
  double gathered = 0.0;  // rows that other GPUs send to this GPU's experts
  bool captured = false;  // the pass is a graph
};

ModelLatency::RowsTime& ModelLatency::RowsTime::operator+=(const RowsTime& other) {
  products += other.products;
  streaming += other.streaming;
  experts += other.experts;
  communication += other.communication;
  small_kernels += other.small_kernels;
  sampling += other.sampling;
  work.add(1.0, other.work);
  return *this;
}

ModelLatency::ModelLatency(const Deployment& deployment, Role role)
    : deployment_(deployment),
      role_(role),
      model_(model_of(deployment, role)),
      kernels_(deployment, model_),
      layer_kernels_(kernels_.layer_kernels()),
      attention_kinds_(model_.attention_kinds()),
      plans_(verifies_in_pieces(deployment.engine, deployment.hardware.compute_capability,
                                deployment.target ? deployment.target->kv_bits : model_.kv_bits)),
      unequal_contexts_(unequal_contexts(deployment)) {}

ModelLatency::Request ModelLatency::request(const Pass& pass) const {
  const bool prompt = pass.tokens > 1.0 && pass.logits < pass.tokens;  // verification needs every row's logits
  return {pass.batch * pass.tokens,
          pass.batch * pass.logits,
          pass.batch,
          {{pass.batch, pass.context, pass.tokens, pass.context + 0.5 * (pass.tokens + 1.0), prompt, 1.0}},
          pass.live,
          {},
          pass.continued,
          role_ == Role::draft};
}

PassTime ModelLatency::pass(const Pass& pass) const {
  const Request asked = request(pass);
  PassWork work;
  PassTime whole = time(asked, &work);
  const bool verifies = role_ == Role::target && pass.tokens > 1.0 && pass.logits >= pass.tokens;
  if (verifies && plans_) {
    whole.host += pieces_wait_seconds(deployment_.engine.host, model_.layers, model_.linear_layers,
                                      whole.total() - 1e-6 * deployment_.engine.host.plan_us);  // launches follow planning
  }
  return powered(whole, work);
}

PassTime ModelLatency::mixed_pass(const Segment& prompts, const Segment& decoding, double logits,
                                  const OtherEngines& peers) const {
  Request request{prompts.rows + decoding.rows, logits, prompts.sequences + decoding.sequences, {}, true, peers, false, false};
  for (const Segment* segment : {&prompts, &decoding})
    if (segment->sequences > 0.0)
      request.groups.push_back({segment->sequences, segment->cached / segment->sequences, segment->rows / segment->sequences,
                                segment->pairs / segment->rows, segment == &prompts, 1.0});
  PassWork work;
  const PassTime whole = time(request, &work);
  return powered(whole, work);
}

PassTime ModelLatency::powered(const PassTime& time, const PassWork& work) const {
  return deployment_.hardware.power ? with_energy(deployment_.hardware, time, work) : time;
}

double ModelLatency::verified_rows(const Request& request) {
  double rows = 0.0;
  for (const Attending& group : request.groups)
    if (!group.prompt && group.tokens > 1.0) rows += group.sequences * group.tokens;
  return rows;
}

double ModelLatency::prompt_share(const Request& request) {
  double rows = 0.0;
  for (const Attending& group : request.groups)
    if (group.prompt) rows += group.sequences * group.tokens;
  return rows / request.rows;
}

ServerFactors ModelLatency::factors() const {
  return deployment_.engine.tuned ? deployment_.engine.tuned->mean : ServerFactors();
}

double ModelLatency::wanted_rows(const Request& request) { return std::ceil(request.rows - 1e-9); }

ModelLatency::Layout ModelLatency::layout(const Request& request) const {
  Layout layout;
  const double wanted = wanted_rows(request);
  const std::optional<double> captured = captured_rows(deployment_.engine, std::max(wanted, request.peers.widest));
  layout.captured = captured.has_value();
  PassRows& rows = layout.rows;
  rows.computed = captured.value_or(wanted);
  rows.logits = std::ceil(request.logits - 1e-9);
  rows.continued = request.continued;
  const double others = model_.expert_parallel - 1.0;
  const double other_rows = others == 0.0 ? 0.0 : request.peers.rows.value_or(others * wanted);
  layout.gathered = captured ? others * rows.computed : other_rows;
  rows.tokens = wanted + other_rows;
  rows.alike = deployment_.engine.independent_choices * factors().times(Factor::routing);
  rows.expert_rows = rows.computed + layout.gathered;
  if (role_ == Role::draft && model_.markov_rank > 0.0) {
    rows.markov_sequences = request.sequences;
    rows.markov_positions = rows.logits / request.sequences;
  }
  return layout;
}

template <class See>
void ModelLatency::each_attention(const Request& request, const See& see) const {
  const bool with_prompt = request.groups.size() > 1 && request.groups.front().prompt;
  for (const AttentionKind& kind : attention_kinds_) {
    bool launched = false;
    for (Attending group : request.groups) {
      // Of two sequences the longer one delays the kernel; of many, the longest in each share of them.
      if (request.clients && !group.prompt)
        group.unequal = 1.0 + (unequal_contexts_ - 1.0) * std::max(0.0, 1.0 - 1.0 / group.sequences);
      see(attention_operation(model_, kind, group, with_prompt, launched));
      launched = true;
    }
  }
}

// Seconds of the products of one of a group's layers; the routed experts' part is added to `experts`. If two streams share the
// memory, the shorter one is hidden except for its bytes.
double ModelLatency::group_seconds(const ProductGroup& group, double rows, double* experts) const {
  double main = 0.0;
  double shared = 0.0;
  double shared_bytes = 0.0;
  double router = 0.0;
  double routed = 0.0;
  for (const Operation& operation : group.operations) {
    const double seconds = operation.count * kernels_.seconds(operation);
    if (const auto* const layer = std::get_if<ExpertsWork>(&operation.work)) {
      routed += seconds;
      *experts += group.layers * seconds;
      if (!kernels_.routes_separately(*layer)) router = 0.0;
    } else if (operation.stream == Stream::routed_experts) {
      router += seconds;
    } else if (operation.stream == Stream::shared_expert) {
      shared += seconds;
      const auto& work = std::get<ProductWork>(operation.work);
      shared_bytes += operation.count * work.inner * work.outer * work.type.bits / 8.0;
    } else {
      main += seconds;
    }
  }
  routed += router;
  const Hardware& hardware = deployment_.hardware;
  const double sharing = shared_bytes / (hardware.bandwidth * hardware.calibration.memory_efficiency);
  const bool together = rows <= deployment_.engine.shared_rows && captured_rows(deployment_.engine, rows).has_value();
  return group.layers * (main + (together ? std::max(shared, routed + std::min(shared, sharing)) : shared + routed));
}

ModelLatency::RowsTime ModelLatency::rows_time(const Layout& layout) const {
  const PassRows& rows = layout.rows;
  const std::lock_guard lock(mutex_);
  const auto [layers, new_layers] = kept_layers_.try_emplace(
      {rows.computed, rows.tokens, rows.expert_rows, layout.gathered, rows.continued ? 1.0 : 0.0, layout.captured ? 1.0 : 0.0});
  if (new_layers) layers->second = layers_time(layout);
  const auto [logits, new_logits] = kept_logits_.try_emplace({rows.logits, rows.markov_sequences, rows.markov_positions});
  if (new_logits) logits->second = logits_time(rows);
  RowsTime time = layers->second;
  time += logits->second;
  return time;
}

ModelLatency::RowsTime ModelLatency::layers_time(const Layout& layout) const {
  const PassRows& rows = layout.rows;
  RowsTime time;
  for (const ProductGroup& group : layer_products(model_, rows)) {
    time.products += group_seconds(group, rows.computed, &time.experts);
    for (const Operation& operation : group.operations) time.work.add(group.layers * operation.count, work_of(operation));
  }
  PassRows one = rows;
  one.expert_rows = one.computed = 1.0;
  double of_experts = 0.0;
  for (const ProductGroup& group : layer_products(model_, one)) time.streaming += group_seconds(group, 1.0, &of_experts);
  for (const Operation& operation :
       remaining_operations(model_, deployment_, layer_kernels_, rows, layout.gathered, layout.captured)) {
    const double seconds = operation.count * kernels_.seconds(operation);
    (operation.part == PassPart::communication ? time.communication : time.small_kernels) += seconds;
  }
  return time;
}

ModelLatency::RowsTime ModelLatency::logits_time(const PassRows& rows) const {
  RowsTime time;
  const ProductGroup group = logit_products(model_, rows);
  time.products = group_seconds(group, rows.logits, &time.experts);
  for (const Operation& operation : group.operations) time.work.add(operation.count, work_of(operation));
  PassRows one = rows;
  one.logits = std::min(1.0, rows.logits);
  one.markov_sequences = std::min(1.0, rows.markov_sequences);
  time.streaming = group_seconds(logit_products(model_, one), one.logits, &time.experts);
  const Operation sampling = sampling_operation(model_, deployment_.engine, rows.logits);
  time.sampling = sampling.count * kernels_.seconds(sampling);
  return time;
}

PassTime ModelLatency::time(const Request& request, PassWork* work) const {
  const Layout at = layout(request);
  const double wanted = wanted_rows(request);
  const RowsTime by_rows = rows_time(at);
  PassTime time;
  time.weights = std::min(by_rows.products, by_rows.streaming);
  time.compute = by_rows.products - time.weights;
  time.experts = by_rows.experts;
  time.communication = by_rows.communication;
  time.launch = by_rows.small_kernels;
  time.sampling = by_rows.sampling;
  *work = by_rows.work;
  const ServerFactors factors = this->factors();
  const Engine& engine = deployment_.engine;
  const double prompt_time =
      request.catches_up ? 1.0 : (request.clients ? engine.prompt_time : 1.0) * factors.times(Factor::prefill);
  scale_products(factors, prompt_time, prompt_share(request), time);
  each_attention(request, [&](const Operation& operation) {
    if (deployment_.hardware.power) work->add(operation.count, work_of(operation));
    const double seconds = operation.count * kernels_.seconds(operation);
    time.kv += attention_times(factors, prompt_time, std::get<AttentionWork>(operation.work)) * seconds;
  });
  for (const Operation& operation : state_operations(model_, deployment_, request.groups))
    time.kv += factors.times(Factor::attention) * operation.count * kernels_.seconds(operation);
  time.communication *= factors.times(Factor::communication);
  time.launch *= factors.times(Factor::products);
  time.sampling *= factors.times(Factor::products);
  const HostTime& host = engine.host;
  if (role_ == Role::target) time.launch += 1e-6 * host.step_us;
  if (model_.experts > 0.0) time.routing = time.experts * routing_elasticity(model_, at.rows);
  if (model_.offload) {  // the next layer comes over the link while this one is computed
    const double met = model_.experts > 0.0 ? expected_experts(model_.experts, model_.experts_per_token, wanted) : 0.0;
    const double link = model_.offload->share * model_.layer_bytes(met) / model_.tensor_parallel / model_.offload->bandwidth;
    time.weights += std::max(0.0, link - time.total());
  }
  if (role_ == Role::target) {
    const HostSeconds seconds =
        target_host_seconds(host, {request.sequences, wanted, verified_rows(request), request.clients}, time.total());
    time.host = seconds.idle + factors.seconds(Factor::step) + factors.seconds(Factor::sequence) * request.sequences +
                factors.seconds(Factor::row) * verified_rows(request);
    time.overlapped = seconds.overlapped;
  } else {
    time.host = 1e-6 * host.draft_us + factors.seconds(Factor::draft_pass);
  }
  if (plans_ && (role_ == Role::draft || verified_rows(request) > 0.0)) time.host += 1e-6 * host.plan_us;
  time.host += launch_wait_seconds(host, at.captured ? 0.0 : model_.layers, role_ == Role::draft, time.total());
  if (!factors.neutral() && (role_ == Role::draft || verified_rows(request) > 0.0)) {
    PassTime scaled;
    scaled.add(factors.times(Factor::speculation), time);
    return scaled;
  }
  return time;
}

double ModelLatency::kernel_error(const Pass& pass) const {
  // Errors of a layer's four products are independent except for their common part: the root of the sum of squares of their
  // shares of the layer is .6.
  constexpr double kProductShares = 0.6;
  const Request asked = request(pass);
  const Layout at = layout(asked);
  const PassTime time = this->pass(pass);
  const double total = time.total();
  if (total <= 0.0) return 0.0;
  const ProductWork layer{at.rows.computed, model_.hidden, model_.hidden, 1.0, layer_type(model_)};
  const KernelError product = kernels_.products.estimate(layer).kernel->error(layer);
  const double dense = std::hypot(std::max(kProductShares * product.shape, product.common), product.rows) *
                       (time.weights + time.compute - time.experts);
  double experts = 0.0;
  double attention = 0.0;
  double link = 0.0;
  for (const ProductGroup& group : product_operations(model_, at.rows))
    for (const Operation& operation : group.operations)
      if (std::holds_alternative<ExpertsWork>(operation.work))
        experts = experts_error(model_, kernels_.estimate(operation).error) * time.experts;
  each_attention(asked, [&](const Operation& operation) {
    attention = std::max(attention, kernels_.estimate(operation).error.largest() * time.kv);
  });
  for (const Operation& operation : remaining_operations(model_, deployment_, layer_kernels_, at.rows, at.gathered, at.captured))
    if (operation.part == PassPart::communication) link = kernels_.estimate(operation).error.largest() * time.communication;
  return std::hypot(std::hypot(std::hypot(dense, experts), attention),
                    std::hypot(link, kStatedError * (time.launch + time.sampling))) /
         total;
}

ServerFactors ModelLatency::factor_errors() const {
  constexpr Pass kTypical{8.0, 1.0, 1024.0, 1.0};
  const Request asked = request(kTypical);
  const Layout at = layout(asked);
  ServerFactors errors;
  const auto raise = [&](Factor factor, double error) { errors[factor] = std::max(errors[factor], error); };
  for (const ProductGroup& group : product_operations(model_, at.rows))
    for (const Operation& operation : group.operations) {
      const KernelError error = kernels_.estimate(operation).error;
      if (std::holds_alternative<ExpertsWork>(operation.work))
        raise(Factor::experts, experts_error(model_, error));
      else if (operation.name != "router")
        raise(Factor::products, error.common);
    }
  each_attention(asked,
                 [&](const Operation& operation) { raise(Factor::attention, kernels_.estimate(operation).error.largest()); });
  for (const Operation& operation : remaining_operations(model_, deployment_, layer_kernels_, at.rows, at.gathered, at.captured))
    if (operation.part == PassPart::communication) raise(Factor::communication, kernels_.estimate(operation).error.largest());
  return errors;
}

double ModelLatency::shared_variance(const Pass& pass) const {
  ProductWork layer{1.0, model_.hidden, model_.hidden, 1.0, layer_type(model_)};
  const KernelError one = kernels_.products.estimate(layer).kernel->error(layer);
  const double shared = one.common == 0.0 ? Uncertainty::kSharedByMeasured : Uncertainty::kSharedByOthers;
  layer.rows = layout(request(pass)).rows.computed;
  const double of_rows = kernels_.products.estimate(layer).kernel->error(layer).rows;
  if (of_rows == 0.0) return shared;
  const PassTime time = this->pass(pass);
  const double rows = of_rows * (time.weights + time.compute - time.experts) / time.total();
  const double whole = kernel_error(pass);
  return shared * std::max(0.0, 1.0 - rows * rows / (whole * whole));
}

std::vector<ExplainedOperation> ModelLatency::explain(const Pass& pass) const {
  std::vector<ExplainedOperation> list;
  const Request asked = request(pass);
  const Layout at = layout(asked);
  const auto add = [&](const Operation& operation, double count) {
    const ModelKernels::Estimate estimate = kernels_.estimate(operation);
    list.push_back({std::string(operation.name), describe(operation), count, estimate.label.name, estimate.label.source,
                    estimate.seconds, estimate.error.largest()});
  };
  for (const ProductGroup& group : product_operations(model_, at.rows))
    for (const Operation& operation : group.operations) {
      if (operation.name == "router") {
        const auto same = std::find_if(group.operations.begin(), group.operations.end(),
                                       [](const Operation& one) { return std::holds_alternative<ExpertsWork>(one.work); });
        if (same != group.operations.end() && !kernels_.routes_separately(std::get<ExpertsWork>(same->work))) continue;
      }
      add(operation, group.layers * operation.count);
    }
  each_attention(asked, [&](const Operation& operation) { add(operation, operation.count); });
  for (const Operation& operation : state_operations(model_, deployment_, asked.groups)) add(operation, operation.count);
  for (const Operation& operation : remaining_operations(model_, deployment_, layer_kernels_, at.rows, at.gathered, at.captured))
    add(operation, operation.count);
  add(sampling_operation(model_, deployment_.engine, at.rows.logits), 1.0);
  const PassTime whole = this->pass(pass);
  list.push_back({"host", plural(asked.sequences, "sequence"), 1.0, "host time", "engine " + deployment_.engine.name, whole.host,
                  std::nullopt});
  return list;
}

}  // namespace specsim::cost
