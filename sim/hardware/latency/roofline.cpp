#include "sim/hardware/latency/roofline.h"

#include "sim/foundation/config/arguments.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment_memory.h"
#include "sim/hardware/latency/deployment_warnings.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/model_latency.h"
#include "sim/hardware/latency/roofline_parameters.h"
#include "sim/hardware/model/element_types.h"
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cost {

namespace {

// In which ways the pass exceeds the measured range of its kernels, one line each. Only what depends on the workload is checked:
// rows, caches, messages, tokens of experts. The model's widths are not, since every pass has them.
std::vector<std::string> beyond_measured_range(const ModelLatency& latency, const Pass& pass) {
  constexpr double kSlack = 1.01;  // knots are rounded
  constexpr double kFewMeasured = 20.0;
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  const ModelShape& model = latency.model();
  const ModelKernels& kernels = latency.kernels();
  std::vector<std::string> list;
  if (kernels.measured_products() == nullptr) return list;
  const auto look = [&](const KernelFit* found, double own, double unit, const char* what) {
    if (found != nullptr && own > kSlack * found->most())
      list.push_back(fmt::format("{}: passes of more than {:.4g} {}, beyond the measured range of its kernels", model.name,
                                 found->most() / unit, what));
  };
  const double rows = pass.batch * pass.tokens;
  look(kernels.measured_products()->fit(layer_type(model)), rows, 1.0, "rows");
  if (model.experts > 0.0)
    look(kernels.measured_experts()->choose(experts_of(model, rows)).kernel, rows, 1.0, "tokens to experts");
  if (model.tensor_parallel > 1.0)
    look(kernels.measured_allreduce()->fit(model.tensor_parallel, false), rows * model.hidden * kActivationBytes, kMega,
         "MB to add up between GPUs");
  const MeasuredAttention::Fits& fits = kernels.measured_attention()->fits(model.kv_bits);
  for (const AttentionKind& kind : model.attention_kinds()) {
    const double keys = kind.seen(pass.context) + pass.tokens;
    const double bytes = pass.batch * keys * kind.elements * model.kv_bits / 8.0 / model.kv_shards(kind);
    const bool latent = model.latent && !kind.picked && pass.logits >= pass.tokens;
    const KernelFit* const vectors = latent ? kernels.latent_attention()->fit(model.kv_bits) : nullptr;
    look(vectors, bytes, kGiga, "GB of a layer's cache");
    if (vectors != nullptr && keys > kSlack * vectors->most_of_others(0))
      list.push_back(fmt::format("{}: attention to more than {:.0f} cached tokens, beyond the measured range", model.name,
                                 vectors->most_of_others(0)));
    if (model.over_one_vector()) continue;
    look(fits.one, bytes, kGiga, "GB of a layer's cache");
    if (pass.tokens <= 1.0 || pass.logits < pass.tokens) continue;
    // Kernels over several tokens were measured with other caches: the limit is along the context, their second coordinate.
    const KernelFit* several = fits.walked != nullptr ? fits.walked : fits.split;
    if (several == nullptr) continue;
    if (several->rows < kFewMeasured && several->reads_keys == KeyReading::grown && pass.tokens > kSlack * several->most())
      list.push_back(fmt::format("{}: attention of more than {:.0f} tokens to cached ones, beyond the measured range", model.name,
                                 several->most()));
    if (several->by.empty() || several->by[0].empty()) continue;
    const double most = std::exp2(several->by[0].back());
    if (keys > kSlack * most)
      list.push_back(fmt::format("{}: attention of several tokens to more than {:.0f} cached ones, beyond the measured range",
                                 model.name, most));
  }
  return list;
}

// A GPU, a target and an optional draft, under an engine: time, uncertainty and memory of their passes.
class RooflineCost final : public CostModel, private Uncertainty, private DeployedModel {
 public:
  explicit RooflineCost(Deployment deployment) : deployment_(std::move(deployment)) {
    if (deployment_.engine.memory != MemoryRules::none)  // a server
      for (std::optional<ModelShape>* const model : {&deployment_.target, &deployment_.draft})
        if (*model && (*model)->cuts_expert_blocks() && std::fmod((*model)->experts, (*model)->tensor_parallel) == 0.0)
          (*model)->whole_experts = true;
    if (deployment_.target) target_.emplace(deployment_, Role::target);
    if (deployment_.draft_place) elsewhere_.emplace(on_draft_place(deployment_));
    if (deployment_.draft) draft_.emplace(elsewhere_ ? *elsewhere_ : deployment_, Role::draft);
  }

  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    return nothing_drafts(role) ? PassTime() : latency(role).pass(pass);
  }
  [[nodiscard]] PassTime mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                                    const OtherEngines& peers) const override {
    if (prompts.sequences == 0.0 && !peers.rows) return CostModel::mixed_pass(role, prompts, decoding, logits, peers);
    return nothing_drafts(role) ? PassTime() : latency(role).mixed_pass(prompts, decoding, logits, peers);
  }
  [[nodiscard]] PassTime mixed_draft_pass(const Segment& prompts, const Segment& decoding) const override {
    if (prompts.sequences == 0.0) return CostModel::mixed_draft_pass(prompts, decoding);
    return mixed_pass(Role::draft, prompts, decoding, prompts.sequences + decoding.sequences, {});
  }
  [[nodiscard]] DraftForm draft_form() const override {
    DraftForm form;
    if (!deployment_.draft) return form;
    form.one_pass = deployment_.draft->one_pass;
    if (deployment_.draft->longest_draft) form.longest = static_cast<int>(*deployment_.draft->longest_draft);
    if (deployment_.draft->prediction_heads > 1.0) form.heads = static_cast<int>(deployment_.draft->prediction_heads);
    return form;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override {
    const Engine& engine = deployment_.engine;
    if (!engine.tuned) return 1e-6 * engine.host.round_us;
    const ServerFactors& factors = engine.tuned->mean;
    return factors.times(Factor::speculation) * (1e-6 * engine.host.round_us + factors.seconds(Factor::round));
  }
  [[nodiscard]] double link_seconds(double batch, double verified_rows) const override {
    return deployment_.draft_place ? deployment_.draft_place->link_seconds(batch, verified_rows) : 0.0;
  }
  [[nodiscard]] std::vector<std::string> warnings() const override {
    return deployment_warnings(deployment_, target_ ? &target_->kernels() : nullptr, draft_ ? &draft_->kernels() : nullptr);
  }
  [[nodiscard]] const Uncertainty* uncertainty() const override { return this; }
  [[nodiscard]] const DeployedModel* deployed() const override { return this; }

 private:
  // A draft without a model of its own: proposals take no pass.
  [[nodiscard]] bool nothing_drafts(Role role) const { return role == Role::draft && !draft_; }
  [[nodiscard]] const ModelLatency& latency(Role role) const { return role == Role::target ? *target_ : *draft_; }

  [[nodiscard]] std::optional<FactorBelief> factors() const override {
    if (deployment_.engine.tuned) return *deployment_.engine.tuned;
    // The same engine's host time on another machine: rounds of EAGLE's Python code are 25 and 34 % off their mean on two.
    constexpr double kHostError = 0.3;
    const Engine& engine = deployment_.engine;
    ServerFactors errors = target_ ? target_->factor_errors() : ServerFactors();
    if (!captured_rows(engine, 1.0) && target_)
      errors[Factor::step] = kHostError * engine.host.host_us_per_layer * deployment_.target->layers;
    errors[Factor::round] = kHostError * engine.host.round_us;
    errors[Factor::draft_pass] = kHostError * engine.host.draft_us;
    return prior_belief(errors);
  }
  [[nodiscard]] double discrepancy() const override {
    const bool mixture = deployment_.target && deployment_.target->experts > 0.0;
    return (mixture ? kDiscrepanciesOfMixtures : kDiscrepancies).tpot;
  }
  [[nodiscard]] double kernel_error(Role role, const Pass& pass) const override {
    return nothing_drafts(role) ? 0.0 : latency(role).kernel_error(pass);
  }
  [[nodiscard]] double shared_variance(Role role, const Pass& pass) const override {
    return nothing_drafts(role) ? kSharedByMeasured : latency(role).shared_variance(pass);
  }

  [[nodiscard]] const Deployment& deployment() const override { return deployment_; }
  [[nodiscard]] MemoryBudget memory_budget(const Workload& workload, int look_ahead, Kept kept) const override {
    return memory_of(deployment_, workload, look_ahead, kept);
  }
  [[nodiscard]] std::unique_ptr<CostModel> with_twice_the_gpus() const override {
    const std::optional<ModelShape>& target = deployment_.target;
    const std::optional<ModelShape>& draft = deployment_.draft;
    if (!target || !draft || draft->tensor_parallel != target->tensor_parallel) return nullptr;
    if (deployment_.draft_place && deployment_.draft_place->hardware.name != deployment_.hardware.name) return nullptr;
    Deployment twice = deployment_;
    twice.draft_place.reset();
    twice.target->tensor_parallel *= 2.0;
    if (std::fmod(twice.target->heads, twice.target->tensor_parallel) != 0.0) return nullptr;
    return std::make_unique<RooflineCost>(std::move(twice));
  }
  [[nodiscard]] std::unique_ptr<CostModel> draft_with_target() const override {
    if (!deployment_.draft_place) return nullptr;
    Deployment together = deployment_;
    together.draft_place.reset();
    return std::make_unique<RooflineCost>(std::move(together));
  }
  [[nodiscard]] std::unique_ptr<CostModel> scaled(double bandwidth, double host) const override {
    Deployment changed = deployment_;
    changed.hardware.bandwidth *= bandwidth;
    if (changed.draft_place) changed.draft_place->hardware.bandwidth *= bandwidth;
    for (const HostFigure& figure : host_figures()) changed.engine.host.*figure.figure *= host;
    return std::make_unique<RooflineCost>(std::move(changed));
  }
  [[nodiscard]] std::vector<std::string> beyond_measured(Role role, const Pass& pass) const override {
    return nothing_drafts(role) ? std::vector<std::string>() : beyond_measured_range(latency(role), pass);
  }
  [[nodiscard]] std::vector<ExplainedOperation> explain(Role role, const Pass& pass) const override {
    return nothing_drafts(role) ? std::vector<ExplainedOperation>() : latency(role).explain(pass);
  }

  Deployment deployment_;
  std::optional<Deployment> elsewhere_;  // as the passes of a draft on its own GPU see it
  std::optional<ModelLatency> target_;
  std::optional<ModelLatency> draft_;
};

// The draft's own GPU, if the config names one. Reports what it cannot hold.
std::optional<DraftPlace> read_draft_place(const config::Arguments& arguments, const Hardware& hardware,
                                           const std::optional<ModelShape>& draft, Diagnostics& diagnostics) {
  if (!arguments.has("draft_hardware")) {
    for (const char* key : {"draft_link_us", "draft_link_gb_per_s"})
      if (arguments.has(key))
        diagnostics.add(arguments.where(key), fmt::format("{} is given without draft_hardware, allowed: with it", key));
    return std::nullopt;
  }
  const Location& where = arguments.where("draft_hardware");
  if (!draft || draft->on_target()) {
    diagnostics.add(where, draft ? fmt::format("draft_hardware is given with {}, which reads the target's states and shares its "
                                               "embeddings, allowed: with a draft that is a whole model",
                                               draft->name)
                                 : "draft_hardware is given and no model drafts, allowed: with a draft model");
    return std::nullopt;
  }
  DraftPlace place{read_hardware(arguments.value("draft_hardware"), diagnostics), 0.0, 0.0, false};
  if (arguments.has("draft_link_us")) place.link_latency = 1e-6 * arguments.number("draft_link_us");
  place.link_bandwidth = arguments.has("draft_link_gb_per_s") ? 1e9 * arguments.number("draft_link_gb_per_s")
                                                              : std::min(hardware.link_bandwidth, place.hardware.link_bandwidth);
  place.link_stated = arguments.has("draft_link_us") || arguments.has("draft_link_gb_per_s");
  return place;
}

// The draft, if it is the target's own module for further tokens: "mtp", or the target's file given again.
config::Value own_module(config::Value draft, const config::Value& target) {
  const auto name_in = [](const config::Value& model) -> const config::Value* {
    if (model.is_scalar()) return &model;
    const config::Value* name = model.find("preset") != nullptr ? model.find("preset") : model.find("model");
    return name != nullptr && name->is_scalar() ? name : nullptr;
  };
  const config::Value* const whole = name_in(target);
  const config::Value* const part = name_in(draft);
  if (whole == nullptr || part == nullptr) return draft;
  if (part->text != "mtp" && (part->text != whole->text || !model_file_path(whole->text))) return draft;
  config::Value* const own = draft.is_scalar() ? &draft : draft.find(draft.find("preset") != nullptr ? "preset" : "model");
  own->text = whole->text + ":mtp";
  return draft;
}

}  // namespace

std::unique_ptr<CostModel> make_roofline(Deployment deployment) { return std::make_unique<RooflineCost>(std::move(deployment)); }

CostEntry roofline_cost() {
  return {
      {"roofline", "passes estimated operator by operator from a GPU's and the models' figures",
       "Williams et al. 2009; matrix products fitted to Vidur's and LLMServingSim's public profiles", roofline_fields(),
       "Weights are read once per pass, keys and values once per sequence. The LM head runs on every verified row. Experts are "
       "those that all tokens of the pass choose. With tensor_parallel there are two all-reduces per layer. Each matrix "
       "product is the p-norm of memory, arithmetic and operand feed over whole tiles and waves; the other operators are bytes "
       "over bandwidth plus a fixed time."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<CostModel> {
        const std::size_t before = diagnostics.list().size();
        if (!arguments.has("hardware") || !arguments.has("target") || !arguments.has("draft")) return nullptr;
        Hardware hardware = read_hardware(arguments.value("hardware"), diagnostics);
        ModelShape target = read_model(arguments.value("target"), "target", diagnostics);
        std::optional<ModelShape> draft;
        const config::Value drafted_by = own_module(arguments.value("draft"), arguments.value("target"));
        if (!drafted_by.is_scalar() || drafted_by.text != "none") draft = read_model(drafted_by, "draft", diagnostics);
        Engine engine = read_engine(arguments.value("engine"), diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        if (draft) take_types_of_target(target, drafted_by, *draft);
        check_element_types(target, "target", hardware, diagnostics);
        std::optional<DraftPlace> place = read_draft_place(arguments, hardware, draft, diagnostics);
        if (draft) check_element_types(*draft, "draft", place ? place->hardware : hardware, diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        Deployment deployment{std::move(hardware), std::move(target), std::move(draft), std::move(engine)};
        roofline_fields().read(arguments, deployment);
        Engine& own = deployment.engine;
        deployment.host_time_unknown = !own.proposals.empty() && !arguments.has("proposal") && !arguments.has("round_us");
        if (arguments.has("proposal")) add_proposal(own, arguments.text("proposal"), arguments.where("proposal"), diagnostics);
        if (deployment.target->on_target())
          diagnostics.add(arguments.where("target"), "the target is a head that cannot stand alone, allowed: a whole model");
        if (deployment.draft && !place && deployment.draft->tensor_parallel > deployment.target->tensor_parallel)
          diagnostics.add(arguments.where("draft"),
                          fmt::format("the draft's tensor_parallel is {}, allowed: at most the target's {}",
                                      deployment.draft->tensor_parallel, deployment.target->tensor_parallel));
        const std::string& kernels = deployment.kernels;
        if (kernels != "automatic" && kernels != "none" && deployment.hardware.kernels == nullptr)
          diagnostics.add(arguments.where("kernels"),
                          fmt::format("kernels is {}, allowed: none on {}, because no kernels were measured there", kernels,
                                      deployment.hardware.name));
        check_allreduce_kernels(own, deployment.hardware, diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        deployment.draft_place = std::move(place);
        return make_roofline(std::move(deployment));
      }};
}

}  // namespace specsim::cost
