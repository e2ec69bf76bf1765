#include "sim/answers/plan/server_fit.h"

#include "sim/hardware/latency/deployment_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace specsim::plan {

namespace {

// max_position_embeddings of published config.json files.
struct KnownContext {
  std::string_view model;
  double tokens;
};
constexpr std::array kKnownContexts = {
    KnownContext{"codellama-34b", 16384},
    KnownContext{"deepseek-v2-lite", 163840},
    KnownContext{"deepseek-v3", 163840},
    KnownContext{"deepseek-v3.2", 163840},
    KnownContext{"deepseek-v4-flash", 1048576},
    KnownContext{"deepseek-v4-pro", 1048576},
    KnownContext{"gemma-3-12b", 131072},
    KnownContext{"gemma-3-1b", 32768},
    KnownContext{"gemma-3-27b", 131072},
    KnownContext{"gemma-3-4b", 131072},
    KnownContext{"gemma-4-26b-a4b", 262144},
    KnownContext{"gemma-4-31b", 262144},
    KnownContext{"glm-4.5", 131072},
    KnownContext{"glm-4.5-air", 131072},
    KnownContext{"glm-5", 202752},
    KnownContext{"glm-5.2", 1048576},
    KnownContext{"gpt-oss-120b", 131072},
    KnownContext{"gpt-oss-20b", 131072},
    KnownContext{"kimi-k2", 131072},
    KnownContext{"kimi-k2.5", 262144},
    KnownContext{"kimi-k3", 1048576},
    KnownContext{"llama-160m", 2048},
    KnownContext{"llama-2-13b", 4096},
    KnownContext{"llama-2-70b", 4096},
    KnownContext{"llama-2-7b", 4096},
    KnownContext{"llama-3.1-405b", 131072},
    KnownContext{"llama-3.1-70b", 131072},
    KnownContext{"llama-3.1-8b", 131072},
    KnownContext{"llama-3.2-1b", 131072},
    KnownContext{"llama-3.2-3b", 131072},
    KnownContext{"llama-4-maverick", 1048576},
    KnownContext{"llama-4-scout", 10485760},
    KnownContext{"llama-68m", 2048},
    KnownContext{"mimo-v2-flash", 262144},
    KnownContext{"minimax-m2", 196608},
    KnownContext{"mistral-7b", 32768},
    KnownContext{"mixtral-8x7b", 32768},
    KnownContext{"nemotron-3-nano-30b-a3b", 262144},
    KnownContext{"nemotron-3-super-120b-a12b", 262144},
    KnownContext{"opt-125m", 2048},
    KnownContext{"opt-13b", 2048},
    KnownContext{"opt-30b", 2048},
    KnownContext{"phi-2", 2048},
    KnownContext{"phi-4", 16384},
    KnownContext{"phi-4-mini", 131072},
    KnownContext{"qwen2.5-0.5b", 32768},
    KnownContext{"qwen2.5-1.5b", 32768},
    KnownContext{"qwen2.5-14b", 32768},
    KnownContext{"qwen2.5-32b", 32768},
    KnownContext{"qwen2.5-3b", 32768},
    KnownContext{"qwen2.5-72b", 32768},
    KnownContext{"qwen2.5-7b", 32768},
    KnownContext{"qwen3-0.6b", 40960},
    KnownContext{"qwen3-1.7b", 40960},
    KnownContext{"qwen3-14b", 40960},
    KnownContext{"qwen3-235b-a22b", 40960},
    KnownContext{"qwen3-30b-a3b", 40960},
    KnownContext{"qwen3-32b", 40960},
    KnownContext{"qwen3-4b", 40960},
    KnownContext{"qwen3-8b", 40960},
    KnownContext{"qwen3-coder-480b-a35b", 262144},
    KnownContext{"qwen3-next-80b-a3b", 262144},
    KnownContext{"qwen3.5-122b-a10b", 262144},
    KnownContext{"qwen3.5-397b-a17b", 262144},
    KnownContext{"qwen3.6-27b", 262144},
    KnownContext{"qwen3.6-35b-a3b", 262144},
    KnownContext{"tinyllama-1.1b", 2048},
    KnownContext{"vicuna-33b", 2048},
};

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double rounded_up(double tokens, double step) { return std::ceil(tokens / step) * step; }

cost::MemoryBudget memory(const cost::Deployment& deployment, double batch, double context, int draft_length) {
  return cost::memory_of(deployment, {batch, context}, draft_length + 1,
                         deployment.draft ? cost::Kept::both : cost::Kept::target);
}

std::string needs(const cost::MemoryBudget& all, const std::string& what) {
  const cost::MemoryBudget& budget = all.tightest();
  return fmt::format("{} needs {:.1f} GiB of the {:.1f} GiB that {} has for it", what, budget.needed_bytes() / kGib,
                     budget.available_bytes / kGib, budget.device.empty() ? "a GPU" : budget.device);
}

}  // namespace

std::optional<double> default_context(const cost::ModelShape& model) {
  const auto* const found = std::find_if(std::begin(kKnownContexts), std::end(kKnownContexts),
                                         [&](const KnownContext& known) { return known.model == model.name; });
  return found == kKnownContexts.end() ? std::nullopt : std::optional(found->tokens);
}

ServerFit fit_for_one(const cost::Deployment& deployment, cost::MemoryRules rules, double context, int draft_length) {
  cost::Deployment own = deployment;
  own.engine.memory = rules;
  const auto fits = [&](double tokens) { return memory(own, 1.0, tokens, draft_length).fits(); };
  const double needed = context + draft_length + 1.0;
  const std::optional<double> known = default_context(*deployment.target);
  ServerFit fit;
  fit.past_model = known && needed > *known;
  if (known && fits(*known)) return fit;
  const double least = fit.past_model ? *known : rounded_up(needed, 256.0);
  if (!fits(least)) {
    fit.why_not =
        needs(memory(own, 1.0, least, draft_length), fmt::format("a sequence of {:.0f} tokens, with the weights,", least));
    return fit;
  }
  fit.context = least;
  if (known)  // as much as fits, in powers of two
    for (double tokens = 1024.0; tokens < *known && fits(tokens); tokens *= 2.0) fit.context = std::max(least, tokens);
  return fit;
}

ServerFit fit_for_all(const cost::Deployment& deployment, double batch, double context, int draft_length) {
  cost::Deployment own = deployment;
  own.engine.memory = cost::MemoryRules::none;
  ServerFit fit;
  const double each = rounded_up(context + draft_length + 1.0, 256.0);
  const std::optional<double> known = default_context(*deployment.target);
  fit.past_model = known && context + draft_length + 1.0 > *known;
  const cost::MemoryBudget budget = memory(own, batch, each, draft_length);
  if (!budget.fits()) {
    fit.why_not = needs(budget, "the memory that it allocates when it starts");
    return fit;
  }
  double given = each;
  if (known)
    for (double tokens = 1024.0; tokens <= *known && memory(own, batch, tokens, draft_length).fits(); tokens *= 2.0)
      given = std::max(each, tokens);
  fit.context = given * std::max(1.0, batch);
  return fit;
}

}  // namespace specsim::plan
