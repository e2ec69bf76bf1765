#include "sim/answers/load/start_rules.h"

#include "sim/hardware/latency/deployment.h"
#include "sim/serving/serve/step_time.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace specsim::load {

serve::DraftMethod read_method(const config::Arguments& arguments, const Speculation& speculation, const cost::CostModel* cost,
                               Diagnostics& diagnostics) {
  const cost::Deployment* const known = cost != nullptr ? cost->deployment() : nullptr;
  const bool has_draft = known != nullptr && known->draft.has_value();
  const bool without_passes = speculation.executed() != nullptr && serve::drafts_without_passes(*speculation.executed());
  // A draft that reads the target's hidden states is a head; an independent draft model reads tokens.
  const bool own_model = has_draft && !known->draft->on_target() && !known->draft->shares_lm_head;
  const std::string method = without_passes            ? "ngram"
                             : arguments.has("method") ? arguments.text("method")
                             : own_model               ? "draft_model"
                                                       : "eagle";
  const auto wrong = [&](const std::string& found, const std::string& allowed) {
    diagnostics.add(arguments.where("method"), fmt::format("{}, allowed: {}", found, allowed));
  };
  if (has_draft && speculation.longest > 0) {
    const std::string& draft = known->draft->name;
    if (without_passes)
      wrong("decode drafts without a model, but the draft " + draft + " would use memory", "draft: none");
    else if (method == "ngram")
      wrong("method ngram is set with the draft " + draft + ", which would use memory and compute nothing", "draft: none");
    else if (method == "eagle" && own_model)
      wrong("method eagle is set with the draft " + draft + ", an independent model", "draft_model");
    else if (method == "draft_model" && !own_model)
      wrong("method draft_model is set with the draft " + draft + ", a head of the target", "eagle");
  } else if (known != nullptr && method != "ngram" && speculation.longest > 0) {
    wrong("nothing drafts: the cost model has no draft", "a draft, or method ngram");
  }
  return method == "ngram"         ? serve::DraftMethod::ngram
         : method == "draft_model" ? serve::DraftMethod::draft_model
                                   : serve::DraftMethod::eagle;
}

void check_start(ServeExperiment& experiment, const serve::Scheduler& scheduler, const Location& where,
                 Diagnostics& diagnostics) {
  const bool extra = experiment.speculation && experiment.speculation->longest > 0 &&
                     experiment.speculation->method == serve::DraftMethod::draft_model;
  if (const std::string why = scheduler.refused_start(extra ? 1 : 0); !why.empty()) diagnostics.add(where, why);
  if (std::string doubt = scheduler.doubt(); !doubt.empty()) experiment.warnings.push_back(std::move(doubt));
  if (!experiment.speculation || experiment.speculation->longest == 0 || !experiment.cost) return;
  const Speculation& speculation = *experiment.speculation;
  if (speculation.method != serve::DraftMethod::ngram) {
    serve::StepWork work;
    work.decoding = serve::decoding_alike(1.0, 2.0, 1.0);
    work.logits = 2.0;
    work.cached_after = 2.0;
    const serve::StepLatency latency(*experiment.cost, speculation.method, scheduler.host_time());
    if (latency.time(work, 1).draft == 0)
      experiment.warnings.emplace_back(
          "the cost model has no time for a pass of a draft, so drafts are free: set draft_fixed_ms and similar keys, or method "
          "ngram for a "
          "draft that takes no time");
  }
  if (speculation.stated() != nullptr)
    if (const int stated = serve::stated_places(*speculation.stated()); speculation.longest > stated)
      experiment.warnings.push_back(fmt::format(
          "the policy drafts up to {} tokens, but acceptance is stated for {}: the rate of the last one, given that it "
          "is reached, is used for later ones, although measured rates may fall",
          speculation.longest, stated));
}

}  // namespace specsim::load
