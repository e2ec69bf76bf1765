#include "sim/judge/facts.h"

#include "sim/base/check.h"
#include "sim/math/series.h"
#include "sim/theory/bounds.h"
#include "sim/theory/judgement.h"
#include "sim/theory/lossy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

// alpha of truly fresh distributions has no closed form in general: the mean over this many pairs, drawn at addresses that no
// simulation uses.
constexpr std::size_t kFreshPairs = 20000;
constexpr double kFreshBudget = 3e8;  // tokens

void add_fresh_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, DistributionFacts& facts) {
  const decode::DistributionDrawer drawer(plan);
  std::vector<double> target;
  std::vector<double> model;
  std::vector<double> drafted;
  const auto pairs = static_cast<std::uint64_t>(std::clamp(kFreshBudget / cell.vocab, 200.0, static_cast<double>(kFreshPairs)));
  math::CompensatedSum sum;
  math::CompensatedSum squares;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t context = (std::uint64_t{1} << 63) + i;
    drawer.target(0, context, target);
    drawer.draft(0, context, 0, target, model, drafted);
    const double alpha = theory::judge(cell.verifier().info.name, target, drafted, model).alpha();
    sum.add(alpha);
    squares.add(alpha * alpha);
  }
  const auto n = static_cast<double>(pairs);
  const double mean = sum.value() / n;
  facts.alpha = {{mean}};
  facts.mean_alpha_error = std::sqrt(std::max(squares.value() / n - mean * mean, 0.0) / (n - 1.0));
  facts.chi_squared = std::numeric_limits<double>::quiet_NaN();
  facts.kl = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

FactsObserver::FactsObserver(const spec::Cell& cell) : cell_(&cell) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const auto contexts = static_cast<std::size_t>(shape.contexts);
  facts_.alpha.assign(contexts, std::vector<double>(static_cast<std::size_t>(shape.depths)));
  if (cell.block() != nullptr) {
    block_ = block_facts(cell);
  } else if (shape.kind == Kind::markov && shape.contexts <= kMaxTheoryStates) {
    theory::Modulation modulation;
    modulation.states = shape.contexts;
    modulation.accept.assign(1, std::vector<double>(contexts * contexts, 0.0));
    modulation.reject = modulation.accept;
    modulation.bonus.assign(contexts * contexts, 0.0);
    facts_.modulation = std::move(modulation);
  }
}

void FactsObserver::see(int context, int depth, const verify::PositionDistributions& distributions,
                        const decode::OutputClasses& classes) {
  const families::ContextProcess& process = *cell_->contexts->process;
  const families::ContextShape& shape = process.shape();
  const auto contexts = static_cast<std::size_t>(shape.contexts);
  const auto c = static_cast<std::size_t>(context);
  theory::Judgement judgement;
  std::vector<double> emitted;
  if (block_) {
    emitted = block_->add(context, depth, distributions);
  } else {
    judgement =
        theory::judge(cell_->verifier().info.name, distributions.target, distributions.drafted, distributions.draft_model);
    facts_.alpha[c][static_cast<std::size_t>(depth)] = judgement.alpha();
    const bool judged_apart =
        shape.kind == Kind::markov || shape.kind == Kind::regimes || shape.kind == Kind::requests || shape.kind == Kind::trace;
    if (!cell_->lossless() && !judged_apart) emitted = theory::emitted_distribution(judgement);
  }
  if (!emitted.empty()) {
    facts_.judged_mass.resize(std::max(facts_.judged_mass.size(), static_cast<std::size_t>(depth) + 1));
    std::vector<double>& mass = facts_.judged_mass[static_cast<std::size_t>(depth)];
    mass.resize(static_cast<std::size_t>(classes.count));
    for (std::size_t x = 0; x < emitted.size(); ++x) mass[classes.of_token[x]] += emitted[x] / static_cast<double>(contexts);
  }
  if (depth == 0) {
    const double share = 1.0 / static_cast<double>(contexts);
    facts_.chi_squared += share * theory::chi_squared(distributions.drafted, distributions.target);
    facts_.kl += share * theory::kl_divergence(distributions.target, distributions.drafted);
  }
  if (facts_.modulation) {
    for (std::size_t x = 0; x < distributions.target.size(); ++x) {
      const std::size_t at = c * contexts + process.next(static_cast<std::uint32_t>(context), static_cast<Token>(x));
      facts_.modulation->accept[0][at] += judgement.accepted[x];
      facts_.modulation->reject[0][at] += judgement.rejected[x];
      facts_.modulation->bonus[at] += distributions.target[x];
    }
  }
}

void FactsObserver::finish(const decode::Prepared& prepared) {
  if (block_) facts_.block = block_->answer();
  if (cell_->contexts->process->shape().contexts == 0) add_fresh_facts(*cell_, spec::plan_of(*cell_), facts_);
  facts_.classes.classes = prepared.classes;
  facts_.classes.class_count = prepared.class_count;
  facts_.classes.bin_of_class = prepared.bin_of_class;
  facts_.classes.strata = prepared.strata;
  facts_.classes.stratum = prepared.stratum;
}

run::Observe FactsOfCells::observe() {
  return [this](const spec::Cell& cell) {
    auto observer = std::make_shared<FactsObserver>(cell);
    const std::lock_guard lock(mutex_);
    by_key_[cell.preparation_key] = observer;
    return observer;
  };
}

const DistributionFacts& FactsOfCells::of(const spec::Cell& cell) const {
  const auto found = by_key_.find(cell.preparation_key);
  SPECSIM_CHECK(found != by_key_.end(), "no facts of {} cell {}", cell.experiment, cell.index);
  return found->second->facts();
}

DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop) {
  FactsObserver facts(cell);
  decode::Prepared prepared = decode::prepare(
      plan,
      [&](int context, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses& classes) {
        facts.see(context, depth, distributions, classes);
      },
      tables != nullptr, stop);
  facts.finish(prepared);
  if (tables != nullptr) *tables = std::move(prepared);
  return std::move(facts).take();
}

}  // namespace specsim::judge
