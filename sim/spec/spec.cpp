#include "sim/spec/spec.h"

#include "sim/base/check.h"
#include "sim/spec/sweep.h"
#include "sim/theory/closed_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace specsim::spec {

namespace {

using config::Parameter;
using config::Type;
using config::Value;

constexpr double kMaxRounds = 1e13;
constexpr std::size_t kMaxMistakes = 50;
constexpr std::size_t kFreshProbes = 64;
constexpr std::uint64_t kPoolProbeBudget = 10'000'000;  // of them for the further contexts of pools
constexpr std::uint64_t kProbeBudget = 200'000'000;     // tokens' worth of distributions drawn to find mistakes before the start

const std::vector<Parameter>& top_parameters() {
  static const std::vector<Parameter> parameters = {
      {"experiment", Type::text, {}, "name of the experiment, first column of every row", {}, {}},
      {"description", Type::text, "", "what it is for", {}, {}},
      {"seed", Type::integer, "20260117", "all randomness follows from it", config::between(0, 9.2e18), {}},
      {"rounds", Type::integer, "1000000", "simulated per cell", config::between(1, kMaxRounds), {}},
      {"pair", Type::value, {}, "the distributions of target and draft", {}, {}},
      {"context", Type::value, "{process: fixed}", "how the distributions change along the text", {}, {}},
      {"decode", Type::value, {}, "drafter and verifier", {}, {}},
      {"cost", Type::value, "{model: ratio, cost_ratio: 0}", "how long passes take", {}, {}},
      {"workload", Type::value, "{}", "the batch that is decoded; cost models in seconds read it", {}, {}},
      {"placement", Type::value, "", "who runs where, to simulate a batch in time: {kind: NAME, ...}; costs in seconds", {}, {}},
      {"sweep",
       Type::value,
       "",
       "the grid: path: list, or range {from, to, step | count, scale}; zip: {path: list, path: list}",
       {},
       {}},
      {"theory", Type::value, "{}", "which closed form to hold the run to", {}, {}}};
  return parameters;
}

const std::vector<Parameter>& pair_parameters() {
  static const std::vector<Parameter> parameters = {
      {"vocab", Type::integer, {}, "tokens in the vocabulary", config::between(kMinVocab, kMaxVocab), {}},
      {"target", Type::value, {}, "the target's distribution: {family: NAME, ...}", {}, {}},
      {"draft", Type::value, "", "the draft's distribution: {family: NAME, ...} or {from: target, transform: NAME, ...}", {}, {}},
      {"target_sampling",
       Type::value,
       "{}",
       "{temperature, top_k, top_p, min_p}, applied in that order; the distribution that is verified is the one after them",
       {},
       {}},
      {"draft_sampling", Type::value, "{}", "the same for the draft", {}, {}}};
  return parameters;
}

const std::vector<Parameter>& decode_parameters() {
  static const std::vector<Parameter> parameters = {
      {"drafter", Type::value, {}, "{kind: chain, draft_length: N}", {}, {}},
      {"verifier", Type::value, "token", "a verifier's name, or {kind: NAME, ...}", {}, {}},
      {"policy",
       Type::value,
       "",
       "how long a chain to draft each round: {kind: NAME, ...}; its draft_length is then the most",
       {},
       {}}};
  return parameters;
}

const std::vector<Parameter>& workload_parameters() {
  static const std::vector<Parameter> parameters = {
      {"batch", Type::integer, "1", "sequences decoded together, in lockstep", config::between(1, 1e6), {}},
      {"context", Type::integer, "512", "tokens cached by each of them, in the middle of its work", config::between(0, 1e8), {}},
      {"prompt_tokens",
       Type::integer,
       "",
       "of each sequence, for a placement; context where not given",
       config::between(1, 1e8),
       {}},
      {"output_tokens",
       Type::integer,
       "",
       "of each sequence at most, for a placement; 128 where not given",
       config::between(1, 1e7),
       {}},
      {"end_token_rate",
       Type::number,
       "0",
       "chance that an emitted token ends its sequence, for a placement",
       config::between(0, 1),
       {}}};
  return parameters;
}

const std::vector<Parameter>& placement_parameters() {
  static const std::vector<Parameter> parameters = {
      {"kind", Type::text, {}, "a placement's name; its parameters stand beside it", {}, {}},
      {"shrink", Type::boolean, "true", "false: a finished sequence keeps its place in the batch to the end", {}, {}}};
  return parameters;
}

const std::vector<Parameter>& theory_parameters() {
  static const std::vector<Parameter> parameters = {
      {"name",
       Type::text,
       "exact",
       "exact: what the context process calls for; none; or a closed form (specsim list closed_form)",
       {},
       {}},
      {"expect", Type::text, "agree", "refuted: the run must contradict this closed form", {}, {"agree", "refuted"}}};
  return parameters;
}

const std::vector<Parameter>& context_parameters() {
  static const std::vector<Parameter> parameters = {
      {"process", Type::text, "fixed", "a context process's name; its parameters stand beside it", {}, {}},
      {"sequence_rounds", Type::integer, "64", "rounds of each independent sequence", config::between(1, 1e6), {}}};
  return parameters;
}

// A part chosen by `selector` in `section`, with its own parameters beside it.
template <class Entry>
const Entry* choose(const config::Registry<Entry>& registry, const Value& section, const std::string& selector,
                    const std::string& what, const std::vector<std::string>& also_allowed, config::Arguments& arguments,
                    Diagnostics& diagnostics) {
  if (!section.is_map()) {
    diagnostics.add(section.where,
                    fmt::format("{} is {}, allowed: {{{}: NAME, ...}}", what, config::found_text(section), selector));
    return nullptr;
  }
  const Value* name = section.find(selector);
  if (name == nullptr) {
    diagnostics.add(section.where, fmt::format("{} lacks \"{}\", allowed: {}", what, selector, registry.names()));
    return nullptr;
  }
  const auto text = config::read_text(*name, what + "." + selector, diagnostics);
  if (!text) return nullptr;
  const Entry* entry = registry.find(*text, name->where, diagnostics);
  if (entry == nullptr) return nullptr;
  std::vector<std::string> allowed = also_allowed;
  allowed.push_back(selector);
  const std::size_t before = diagnostics.list().size();
  arguments = config::read_arguments(section, entry->info.parameters, allowed, registry.kind() + " " + *text, diagnostics);
  return diagnostics.list().size() == before ? entry : nullptr;
}

void read_context(const Value& context, const Value& pair, Cell& cell, Diagnostics& diagnostics) {
  config::Arguments arguments;
  Value with_default = context;
  if (with_default.is_map() && with_default.find("process") == nullptr)
    with_default.fields.push_back({"process", context.where, config::scalar("fixed", context.where)});
  const families::ContextEntry* entry =
      choose(families::context_processes(), with_default, "process", "context", {"sequence_rounds"}, arguments, diagnostics);
  if (const Value* rounds = context.find("sequence_rounds"))
    if (const auto n = config::read_integer(*rounds, config::between(1, 1e6), "sequence_rounds", diagnostics))
      cell.sequence_rounds = static_cast<std::uint32_t>(*n);
  if (cell.vocab == 0) return;
  families::ContextBuilder builder(cell.vocab, pair, diagnostics);
  if (entry == nullptr) {  // the distributions' own mistakes show all the same
    families::ContextModel unused;
    if (pair.find("draft") != nullptr) builder.add_pair(unused);
    return;
  }
  auto model = std::make_shared<families::ContextModel>(entry->make(arguments, builder));
  if (context.find("sequence_rounds") != nullptr && model->process != nullptr && model->process->shape().request_tokens > 0)
    diagnostics.add(
        context.find("sequence_rounds")->where,
        fmt::format("sequence_rounds is given with context process {}, allowed: request_tokens alone, which ends its sequences",
                    entry->info.name));
  if (diagnostics.empty()) {
    SPECSIM_CHECK(model->process != nullptr && !model->pairs.empty(), "context {}", entry->info.name);
    cell.contexts = std::move(model);
  }
}

const char* siblings_text(tokens::Siblings siblings) {
  switch (siblings) {
    case tokens::Siblings::independent:
      return "siblings drawn with replacement";
    case tokens::Siblings::without_replacement:
      return "siblings drawn without replacement";
    case tokens::Siblings::point_mass:
      break;
  }
  return "chosen tokens (point masses)";
}

// Why a verifier cannot judge what a drafter drafts, and what it can; "" where it can.
std::string why_not(const verify::VerifierEntry& verifier, const draft::BlockDrafter* drafter, int vocab) {
  const verify::Demands& demands = verifier.demands;
  if (vocab > demands.vocab) return fmt::format("at vocab {}, allowed: at most {}", vocab, demands.vocab);
  if (drafter == nullptr) return "";
  const draft::BlockDrafter::Shape& shape = drafter->shape();
  if (std::find(demands.trees.begin(), demands.trees.end(), shape.siblings) == demands.trees.end()) {
    std::string allowed;
    for (const tokens::Siblings siblings : demands.trees)
      allowed += (allowed.empty() ? "" : ", ") + std::string(siblings_text(siblings));
    return fmt::format("with {}, allowed: {}", siblings_text(shape.siblings), allowed.empty() ? "drafter chain" : allowed);
  }
  if (const tokens::Tree* tree = drafter->tree())
    for (const tokens::Tree::Node& node : tree->nodes)
      if (node.children > demands.children)
        return fmt::format("with {} children of a node, allowed: at most {}", node.children, demands.children);
  return "";
}

void read_decode(const Value& decode, Cell& cell, std::string& rule_text, Diagnostics& diagnostics) {
  const config::Arguments arguments = config::read_arguments(decode, decode_parameters(), {}, "decode", diagnostics);
  if (arguments.has("drafter")) {
    config::Arguments drafter;
    if (const draft::DrafterEntry* entry =
            choose(draft::drafters(), arguments.value("drafter"), "kind", "decode.drafter", {}, drafter, diagnostics)) {
      cell.drafter_kind = entry->info.name;
      cell.drafter_arguments = drafter;
      draft::Draft made = entry->make(drafter, diagnostics);
      cell.chain = made.chain;
      cell.drafter = std::move(made.block);
    }
  }
  Value verifier = arguments.value("verifier");
  if (verifier.is_scalar())  // verifier: token is short for verifier: {kind: token}
    verifier = config::map({{"kind", verifier}}, verifier.where);
  config::Arguments own;
  if (const verify::VerifierEntry* entry =
          choose(verify::verifiers(), verifier, "kind", "decode.verifier", {}, own, diagnostics)) {
    cell.verifier = entry->info.name;
    cell.verifier_arguments = own;
    cell.lossless = entry->lossless;
    cell.one_hot_target = entry->demands.one_hot_target;
    rule_text = config::to_canonical_text(verifier);
    const bool has_policy = arguments.has("policy");
    const bool chain = cell.drafter == nullptr;
    const std::string why = why_not(*entry, cell.drafter.get(), cell.vocab);
    if (!why.empty()) {
      diagnostics.add(verifier.where, fmt::format("verifier {} {}", entry->info.name, why));
    } else if (has_policy && !chain) {
      diagnostics.add(arguments.where("policy"), "policy is given with a drafter of trees, allowed: with drafter chain");
    } else if (has_policy && !entry->make_block) {
      diagnostics.add(arguments.where("policy"),
                      fmt::format("policy is given with verifier {}, allowed: another verifier", entry->info.name));
    } else if (chain && !has_policy && entry->make) {
      cell.rule = entry->make(own);
    } else {
      cell.block_rule = entry->make_block(own);
      if (chain) cell.drafter = draft::chain_block(cell.chain.draft_length);
      rule_text += "|" + config::to_canonical_text(arguments.value("drafter"));
    }
    if (entry->demands.argmax_draft && !cell.chain.argmax)
      diagnostics.add(verifier.where,
                      fmt::format("verifier {} with a sampled draft, allowed: drafter.selection: argmax", entry->info.name));
  }
}

// What sums of squares and addresses can hold.
void check_sizes(const Cell& cell, const Location& where, Diagnostics& diagnostics) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const double tokens = cell.chain.draft_length + 1.0;
  const double rounds_of_one = shape.request_tokens > 0 ? static_cast<double>(shape.request_tokens) : cell.sequence_rounds;
  const double sequences = shape.request_tokens > 0 ? static_cast<double>(cell.work())
                                                    : std::ceil(static_cast<double>(cell.rounds) / cell.sequence_rounds);
  const double tokens_of_one = shape.request_tokens > 0 ? rounds_of_one : rounds_of_one * tokens;
  if (sequences * tokens_of_one * tokens_of_one > 1.8e19)
    diagnostics.add(where, fmt::format("rounds is {}, allowed here: fewer, or shorter sequences: sums of squares over {:.3g} "
                                       "sequences of {:.3g} tokens exceed 64 bits",
                                       cell.rounds, sequences, tokens_of_one));
  if (shape.contexts == 0 && sequences > static_cast<double>(decode::kMaxFreshSequences))
    diagnostics.add(where, fmt::format("rounds is {}, allowed with fresh distributions: at most {} sequences of sequence_rounds",
                                       cell.rounds, decode::kMaxFreshSequences));
}

// Prices the cell's rounds once, so that what a cost model does not cover is told before the start.
void check_cost(const Cell& cell, Diagnostics& diagnostics) {
  try {
    for (const double full_rate : {0.0, 1.0}) {
      const double total = cell.round_time(full_rate).total();
      SPECSIM_CHECK(total > 0.0 && std::isfinite(total), "a round takes {}", total);
    }
  } catch (const BadInput& bad) {
    for (const Diagnostic& diagnostic : bad.list()) diagnostics.add(diagnostic.where, diagnostic.message);
  }
}

// Most tokens that a sequence of the cell has in the cache.
double most_context(const Cell& cell) {
  if (cell.placement == nullptr) return cell.workload.context;
  return std::max(cell.workload.context, static_cast<double>(cell.placement->prompt_tokens + cell.placement->output_tokens));
}

// The first memory that a cell's models do not fit into. A draft on a GPU of its own leaves the target's alone; what a device
// across a network holds is not known.
std::optional<cost::MemoryBudget> misfit(const Cell& cell) {
  std::vector<cost::Kept> memories = {cost::Kept::both};
  if (cell.chain.draft_length == 0 || (cell.placement != nullptr && !cell.placement->placement->speculates()))
    memories = {cost::Kept::target};
  else if (cell.placement != nullptr && cell.placement->placement->draft_elsewhere())
    memories = {cost::Kept::target, cell.placement->placement->second_gpu() ? cost::Kept::draft : cost::Kept::target};
  const int look_ahead = 1 + (cell.drafter != nullptr ? cell.drafter->shape().nodes : cell.chain.draft_length);
  for (const cost::Kept kept : memories) {
    auto memory_budget = cell.cost->memory_budget({cell.workload.batch, most_context(cell)}, look_ahead, kept);
    if (memory_budget && !memory_budget->fits()) return memory_budget;
  }
  return std::nullopt;
}

// Takes cells of memory needs `over` out, and says so batch by batch.
void leave_out(const std::vector<std::optional<cost::MemoryBudget>>& over, Experiment& experiment) {
  struct Batch {
    std::size_t cells = 0;
    std::size_t left_out = 0;
    std::string needs;  // of the first
  };
  std::map<std::pair<double, double>, Batch> batches;  // by size and context
  std::vector<Cell> kept;
  for (std::size_t i = 0; i < over.size(); ++i) {
    Cell& cell = experiment.cells[i];
    Batch& batch = batches[{cell.workload.batch, most_context(cell)}];
    ++batch.cells;
    if (!over[i]) {
      kept.push_back(std::move(cell));
    } else if (batch.left_out++ == 0) {
      batch.needs = over[i]->to_text();
    }
  }
  experiment.cells = std::move(kept);
  for (const auto& [size_and_context, batch] : batches)
    if (batch.left_out > 0)
      experiment.left_out.push_back(fmt::format(
          "batch {:g} at context {:g}, {}more memory than there is ({})", size_and_context.first, size_and_context.second,
          batch.left_out < batch.cells ? fmt::format("{} of {} methods: ", batch.left_out, batch.cells) : std::string(),
          batch.needs));
}

// What does not fit is told once for a sweep, by the cell that needs least; or left out, where something fits.
void check_memory(Experiment& experiment, Misfits misfits, Diagnostics& diagnostics) {
  const std::vector<Cell>& cells = experiment.cells;
  std::vector<std::optional<cost::MemoryBudget>> over;  // [cell]: what it needs, if that is too much
  std::size_t misfit_count = 0;
  const Cell* least = nullptr;
  cost::MemoryBudget of_least;
  for (const Cell& cell : cells) {
    const auto& memory_budget = over.emplace_back(misfit(cell));
    if (!memory_budget) continue;
    ++misfit_count;
    const auto excess = [](const cost::MemoryBudget& own) { return own.needed_bytes() / own.available_bytes; };
    if (least != nullptr && excess(*memory_budget) >= excess(of_least)) continue;
    least = &cell;
    of_least = *memory_budget;
  }
  if (least == nullptr) return;
  if (misfits == Misfits::left_out && misfit_count < cells.size()) return leave_out(over, experiment);
  const std::string which =
      cells.size() == 1 ? "" : fmt::format("{} of {} cells do not fit the GPU, the smallest: ", misfit_count, cells.size());
  const Value* cost = least->config.find("cost");
  diagnostics.add(cost != nullptr ? cost->where : Location{},
                  fmt::format("{}batch {:g} at context {:g} needs more memory than there is ({}), allowed: fewer sequences, "
                              "shorter contexts, fewer bits, or more tensor_parallel",
                              which, least->workload.batch, most_context(*least), of_least.to_text()));
}

// Sizes of one batch: every sequence's rounds are kept in memory.
constexpr double kMaxBatchTokens = 1e8;

void read_placement(const Value& section, const config::Arguments& workload, Cell& cell, Diagnostics& diagnostics) {
  auto setting = std::make_shared<placement::Setting>();
  config::Arguments own;
  const placement::PlacementEntry* entry =
      choose(placement::placements(), section, "kind", "placement", {"shrink"}, own, diagnostics);
  if (const Value* shrink = section.find("shrink")) {
    const Value alone = config::map({{"shrink", *shrink}}, section.where);
    setting->shrink = config::read_arguments(alone, {placement_parameters()[1]}, {}, "placement", diagnostics).boolean("shrink");
  }
  if (entry == nullptr || !diagnostics.empty()) return;
  setting->placement = entry->make(own, diagnostics);
  setting->batch = static_cast<std::uint64_t>(workload.integer("batch"));
  setting->prompt_tokens = static_cast<std::uint64_t>(
      workload.has("prompt_tokens") ? workload.integer("prompt_tokens") : std::max<std::int64_t>(workload.integer("context"), 1));
  const std::uint64_t request_tokens = cell.contexts != nullptr ? cell.contexts->process->shape().request_tokens : 0;
  constexpr std::uint64_t kOutputTokens = 128;
  setting->output_tokens = workload.has("output_tokens") ? static_cast<std::uint64_t>(workload.integer("output_tokens"))
                           : request_tokens > 0          ? std::min(kOutputTokens, request_tokens)
                                                         : kOutputTokens;
  setting->end_token_rate = workload.number("end_token_rate");
  setting->vocab = cell.vocab;
  if (request_tokens > 0 && setting->output_tokens > request_tokens)
    diagnostics.add(workload.where("output_tokens"),
                    fmt::format("output_tokens is {} with requests of {} tokens, allowed: at most their request_tokens",
                                setting->output_tokens, request_tokens));
  if (cell.workload.batch * static_cast<double>(setting->output_tokens) > kMaxBatchTokens)
    diagnostics.add(workload.where("output_tokens"),
                    fmt::format("batch {:g} times output_tokens {} exceed {:g}, allowed: fewer tokens for a placement to follow",
                                cell.workload.batch, setting->output_tokens, kMaxBatchTokens));
  if (!diagnostics.empty() || cell.cost == nullptr) return;
  if (cell.cost->in_seconds()) {
    try {
      // Times are whole picoseconds in 64 bits, sums of them too.
      constexpr double kLongest = 4e6;
      constexpr double kShortest = 1e-9;
      const double seconds = placement::check_prices(*setting, *cell.cost, cell.chain.draft_length);
      if (!(seconds >= kShortest && seconds <= kLongest))
        diagnostics.add(
            section.where,
            fmt::format("placement {} could take {:.3g} s, allowed: {:g} to {:g} s of simulated time; {} output_tokens, "
                        "or passes and messages of other times",
                        entry->info.name, seconds, kShortest, kLongest, seconds > kLongest ? "fewer" : "more"));
    } catch (const BadInput& bad) {
      for (const Diagnostic& diagnostic : bad.list())
        diagnostics.add(section.where, fmt::format("placement {} needs a pass that the cost model does not cover: {}: {}",
                                                   entry->info.name, to_string(diagnostic.where), diagnostic.message));
      return;
    }
  }
  cell.placement = std::move(setting);
}

// After the cost model: a policy may go by the times of rounds.
void read_policy(const Value& section, Cell& cell, std::string& rule_text, Diagnostics& diagnostics) {
  config::Arguments own;
  const draft::PolicyEntry* entry = choose(draft::policies(), section, "kind", "decode.policy", {}, own, diagnostics);
  if (entry == nullptr || cell.block_rule == nullptr) return;
  draft::LengthChoice choice{cell.chain.draft_length, {}};
  for (int length = 0; length <= cell.chain.draft_length; ++length) {
    std::vector<std::uint64_t> drafted(static_cast<std::size_t>(length) + 1, 0);
    drafted.back() = 1;
    choice.round_times.push_back(cell.round_time(0.0, drafted).total());
  }
  cell.policy = entry->make(own, choice, diagnostics);
  cell.policy_kind = entry->info.name;
  cell.policy_arguments = own;
  cell.policy_times = choice.round_times;
  rule_text += "|" + config::to_canonical_text(section);
}

// What rules for blocks cannot do, wherever they are asked to.
void check_block(const Value& config, const Cell& cell, Diagnostics& diagnostics) {
  const auto where = [&](const char* path) {
    const Value* value = config::find_path(config, path);
    return value != nullptr ? value->where : config.where;
  };
  const draft::BlockDrafter::Shape& shape = cell.drafter->shape();
  if (cell.contexts != nullptr && cell.contexts->process->shape().contexts == 0)
    diagnostics.add(
        where("context.fresh"),
        fmt::format("fresh distributions with verifier {}, allowed: a pool, whose distributions are prepared", cell.verifier));
  if (cell.contexts != nullptr && cell.contexts->process->shape().acceptance_only)
    diagnostics.add(
        where("context.file"),
        fmt::format("recorded overlaps with verifier {} and drafted blocks, allowed: a verifier of chains that judges "
                    "position by position (token, greedy, sample_match), or recorded distributions",
                    cell.verifier));
  if (shape.ranks > cell.vocab)
    diagnostics.add(
        where("decode.drafter"),
        fmt::format("the drafter ranks {} tokens of a vocabulary of {}, allowed: at most as many", shape.ranks, cell.vocab));
  if (const tokens::Tree* tree = cell.drafter->tree();
      tree != nullptr && shape.siblings == tokens::Siblings::without_replacement) {
    int widest = 0;
    for (const tokens::Tree::Node& node : tree->nodes) widest = std::max(widest, node.children);
    if (widest > cell.vocab)
      diagnostics.add(
          where("decode.drafter"),
          fmt::format("the drafter draws {} siblings without replacement of a vocabulary of {}, allowed: at most as many", widest,
                      cell.vocab));
  }
  if (config.find("placement") != nullptr)
    diagnostics.add(where("placement"),
                    fmt::format("placement with verifier {} and drafted blocks, allowed: a verifier of chains that "
                                "judges position by position ({})",
                                cell.verifier, "token, greedy, sample_match"));
}

// Cost models by their section: cells of a sweep share them, and what they keep of earlier passes.
using CostModels = std::map<std::string, std::shared_ptr<cost::CostModel>>;

Cell read_cell(const Value& config, CostModels& cost_models, Diagnostics& diagnostics) {
  Cell cell;
  cell.config = config;
  const config::Arguments top = config::read_arguments(config, top_parameters(), {}, "the config", diagnostics);
  if (top.has("experiment")) cell.experiment = top.text("experiment");
  cell.seed = static_cast<std::uint64_t>(top.integer("seed"));
  cell.rounds = static_cast<std::uint64_t>(top.integer("rounds"));
  if (cell.experiment.find_first_of(",\"\n\r") != std::string::npos)
    diagnostics.add(top.where("experiment"),
                    fmt::format("experiment is {}, allowed: a name without commas, quotes and line breaks",
                                config::quote_for_message(cell.experiment)));
  if (top.has("experiment") && cell.experiment.empty())
    diagnostics.add(top.where("experiment"), "experiment is \"\", allowed: a name");

  std::string rule_text;  // the verifier with its arguments
  static const Value nothing;
  const Value* pair = config.find("pair");
  if (pair != nullptr) {
    const config::Arguments arguments = config::read_arguments(*pair, pair_parameters(), {}, "pair", diagnostics);
    if (arguments.has("vocab")) cell.vocab = static_cast<int>(arguments.integer("vocab"));
  }
  read_context(top.value("context"), pair != nullptr ? *pair : nothing, cell, diagnostics);
  if (const Value* decode = config.find("decode")) read_decode(*decode, cell, rule_text, diagnostics);

  const config::Arguments workload =
      config::read_arguments(top.value("workload"), workload_parameters(), {}, "workload", diagnostics);
  cell.workload = {static_cast<double>(workload.integer("batch")), static_cast<double>(workload.integer("context"))};
  std::shared_ptr<cost::CostModel>& model = cost_models[config::to_canonical_text(top.value("cost"))];
  if (model == nullptr) {
    config::Arguments cost;
    if (const cost::CostEntry* entry = choose(cost::cost_models(), top.value("cost"), "model", "cost", {}, cost, diagnostics))
      model = entry->make(cost, diagnostics);
  }
  cell.cost = model;
  if (diagnostics.empty() && cell.cost != nullptr) check_cost(cell, diagnostics);
  if (const Value* policy = config::find_path(config, "decode.policy"); policy != nullptr && diagnostics.empty())
    read_policy(*policy, cell, rule_text, diagnostics);
  if (diagnostics.empty() && cell.block_rule != nullptr) check_block(config, cell, diagnostics);

  if (const Value* section = config.find("placement")) read_placement(*section, workload, cell, diagnostics);

  const config::Arguments theory = config::read_arguments(top.value("theory"), theory_parameters(), {}, "theory", diagnostics);
  cell.theory.name = theory.text("name");
  cell.theory.expect_refuted = theory.text("expect") == "refuted";
  if (cell.theory.name != "exact" && cell.theory.name != "none" && theory::find_closed_form(cell.theory.name) == nullptr) {
    std::vector<std::string> names = {"exact", "none"};
    for (const theory::ClosedForm& form : theory::closed_forms()) names.push_back(form.name);
    const std::string near = nearest_name(cell.theory.name, names);
    diagnostics.add(theory.where("name"),
                    fmt::format("unknown closed form {}{} allowed: {}", config::quote_for_message(cell.theory.name),
                                near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near), fmt::join(names, ", ")));
  } else if (const theory::ClosedForm* form = theory::find_closed_form(cell.theory.name);
             form != nullptr && (cell.rule != nullptr || cell.block_rule != nullptr)) {
    const auto length = static_cast<std::size_t>(cell.chain.draft_length);
    try {
      form->evaluate({0.5, std::vector<double>(length, 0.5), cell.chain.draft_length, 0.1, 0.1, 1.0});
    } catch (const InvariantBroken&) {
      diagnostics.add(theory.where("name"),
                      fmt::format("closed form {} at draft_length {}, allowed: a draft_length that it is defined for",
                                  cell.theory.name, length));
    }
  }

  if (cell.theory.name == "none" && cell.theory.expect_refuted)
    diagnostics.add(theory.where("expect"), "expect is \"refuted\" with name: none, allowed: refuted with a closed form's name");
  if (cell.contexts != nullptr) check_sizes(cell, top.where("rounds"), diagnostics);

  const std::string distributions =
      (pair != nullptr ? config::to_canonical_text(*pair) : "") + "|" + config::to_canonical_text(top.value("context"));
  cell.pairing_group = rng::hash_text(distributions);
  cell.preparation_key = fmt::format("{}|{}|{}|{}", distributions, rule_text, cell.chain.argmax, cell.seed);
  return cell;
}

// An axis is one key, dots and all.
void set_axis(Value& config, const std::string& path, Value value, const Location& where, Diagnostics& diagnostics) {
  if (config.find("sweep") == nullptr) config.fields.push_back({"sweep", where, {}});
  Value& sweep = *config.find("sweep");
  if (sweep.is_null()) {
    sweep.kind = config::Kind::map;
    sweep.where = where;
  }
  if (!sweep.is_map()) {
    diagnostics.add(where, "the sweep of the config is " + config::found_text(sweep) + ", allowed: a map of axes");
  } else if (Value* axis = sweep.find(path)) {
    *axis = std::move(value);
  } else {
    sweep.fields.push_back({path, where, std::move(value)});
  }
}

// Draws one pair of distributions of each kind that the experiment has, to find before the start what cannot be drawn at all.
void probe(const std::vector<Cell>& cells, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  std::uint64_t spent = 0;
  for (const Cell& cell : cells) {
    if (cell.contexts == nullptr || (cell.rule == nullptr && cell.block_rule == nullptr) ||
        !seen.insert(cell.preparation_key).second)
      continue;
    const verify::VerifierEntry* entry = verify::verifiers().find(cell.verifier);
    const auto vocab = static_cast<std::size_t>(cell.vocab);
    std::vector<double> target(vocab);
    std::vector<double> draft(vocab);
    const std::size_t pairs = cell.contexts->pairs.size();
    const auto contexts = static_cast<std::size_t>(cell.contexts->process->shape().contexts);  // 0: as many as text positions
    const std::size_t draws = pairs == 1 && cell.contexts->pairs[0].random() ? (contexts > 0 ? contexts : kFreshProbes) : pairs;
    for (std::size_t context = 0; context < draws; ++context) {
      const families::DistributionAddress address{distribution_key(cell), context};
      const families::PairSource& pair = cell.contexts->pair(context);
      spent += vocab * (1 + pair.depths());
      if (spent > kProbeBudget) return;
      if (context >= pairs && spent > kPoolProbeBudget) break;
      try {
        pair.draw_target(address, target);
        for (std::size_t depth = 0; depth < pair.depths(); ++depth) pair.draw_draft(address, depth, target, draft);
      } catch (const BadInput& bad) {
        for (const Diagnostic& diagnostic : bad.list()) diagnostics.add(diagnostic.where, diagnostic.message);
        return;
      } catch (const InvariantBroken&) {
        const Value* section = cell.config.find("pair");
        diagnostics.add(
            section->where,
            "pair has a distribution that keeps no token, allowed: transforms and settings that leave probability on some token");
        return;
      }
      if (entry->demands.one_hot_target && *std::max_element(target.begin(), target.end()) < 1.0) {
        const Value* section = config::find_path(cell.config, "decode.verifier");
        diagnostics.add(section != nullptr ? section->where : Location{},
                        fmt::format("verifier {} for a target that is not one-hot, allowed: pair.target_sampling: {{temperature: "
                                    "0}}, or a one_hot target",
                                    cell.verifier));
        return;
      }
    }
  }
}

// A batch in lockstep drafts until its longest chain ends: the mean over that chain's length, which is the largest of as many
// independent lengths as there are sequences. A pass takes the sequences that still draft.
cost::RoundTime longest_of_batch(const cost::CostModel& model, const cost::Workload& workload,
                                 const std::vector<std::uint64_t>& drafted, double rounds, double full_rate) {
  std::vector<double> below = {0.0};  // [n]: P(a sequence drafts fewer than n)
  for (const std::uint64_t count : drafted) below.push_back(below.back() + static_cast<double>(count) / rounds);
  cost::RoundTime mean;
  for (std::size_t longest = 0; longest < drafted.size(); ++longest) {
    if (drafted[longest] == 0) continue;
    const double others = std::pow(below[longest + 1], workload.batch - 1.0);  // draft no more than that
    const double fewer = std::pow(below[longest], workload.batch - 1.0);       // less than that
    const double share = below[longest + 1] * others - below[longest] * fewer;
    if (!(share > 0.0)) continue;
    std::vector<double> pass_rows;
    double rows = 1.0;
    for (std::size_t n = 1; n <= longest; ++n) {
      pass_rows.push_back(((below[longest + 1] - below[n]) * others - (below[longest] - below[n]) * fewer) / share);
      rows += pass_rows.back();
    }
    mean.add(share, cost::block_time(model, workload, pass_rows, rows, full_rate));
  }
  return mean;
}

}  // namespace

cost::RoundTime Cell::round_time(double full_rate) const { return round_time(full_rate, {}); }

cost::RoundTime Cell::round_time(double full_rate, const std::vector<std::uint64_t>& drafted) const {
  if (drafter == nullptr) return cost::round_time(*cost, workload, chain.draft_length, full_rate);
  const auto of = [&](int nodes) {
    const draft::Work work = drafter->work(nodes);
    return cost::block_time(*cost, workload, work.pass_rows, work.verified_rows, full_rate);
  };
  double all = 0.0;
  for (const std::uint64_t count : drafted) all += static_cast<double>(count);
  if (all == 0.0) return of(drafter->shape().nodes);
  if (policy != nullptr) return longest_of_batch(*cost, workload, drafted, all, full_rate);
  cost::RoundTime mean;
  for (std::size_t nodes = 0; nodes < drafted.size(); ++nodes)
    if (drafted[nodes] > 0) mean.add(static_cast<double>(drafted[nodes]) / all, of(static_cast<int>(nodes)));
  return mean;
}

std::uint64_t Cell::work() const {
  const std::uint64_t request_tokens = contexts->process->shape().request_tokens;
  if (request_tokens == 0) return rounds;
  constexpr std::uint64_t kFewestRequests = 256;
  return std::max(kFewestRequests, (2 * rounds + request_tokens - 1) / request_tokens);
}

Cell reseeded(Cell cell, std::uint64_t seed, std::uint64_t rounds) {
  cell.seed = seed;
  cell.rounds = rounds;
  cell.preparation_key += fmt::format("|{}", seed);
  return cell;
}

rng::Key distribution_key(const Cell& cell) { return rng::make_key(cell.seed, rng::hash_text("law")); }

rng::Key draw_key(const Cell& cell) { return rng::make_key(cell.seed, cell.pairing_group); }

decode::PreparationPlan plan_of(const Cell& cell, const verify::PositionRule* rule) {
  return {cell.vocab,
          cell.chain.argmax,
          distribution_key(cell),
          cell.contexts.get(),
          rule != nullptr ? rule : cell.rule.get(),
          rule != nullptr ? nullptr : cell.block_rule.get(),
          rule != nullptr ? nullptr : cell.drafter.get(),
          rule != nullptr ? nullptr : cell.policy.get()};
}

const std::vector<SectionInfo>& config_sections() {
  static const std::vector<SectionInfo> sections = {
      {"", "top level", top_parameters()},
      {"pair", "the distributions of target and draft", pair_parameters()},
      {"pair.target_sampling, pair.draft_sampling", "sampling settings as servers have them", families::sampling_parameters()},
      {"context", "how the distributions change along the text", context_parameters()},
      {"decode", "drafter and verifier", decode_parameters()},
      {"workload", "the batch that is decoded", workload_parameters()},
      {"placement", "who runs where", placement_parameters()},
      {"theory", "the closed form that judges the run", theory_parameters()}};
  return sections;
}

Experiment read_experiment(const std::string& path, const std::vector<Override>& overrides, Diagnostics& diagnostics,
                           Misfits misfits) {
  const std::size_t before = diagnostics.list().size();
  Value config = config::parse_file(path, diagnostics);
  if (diagnostics.list().size() != before) return {};
  return read_experiment(std::move(config), path, overrides, diagnostics, misfits);
}

Experiment read_experiment(Value config, const std::string& file, const std::vector<Override>& overrides,
                           Diagnostics& diagnostics, Misfits misfits) {
  Experiment experiment;
  experiment.file = file;
  const std::size_t before = diagnostics.list().size();
  if (!config.is_map()) {
    diagnostics.add(config.where, fmt::format("the config is {}, allowed: a map", config::found_text(config)));
    return experiment;
  }
  for (const Override& override_ : overrides) {
    Value value = config::parse_text(override_.value, override_.shown, diagnostics);
    const Location where{override_.shown, 0, 0};
    if (override_.path == "sweep" && value.is_map() && value.fields.empty()) {  // --set sweep={}: the base cell alone
      std::erase_if(config.fields, [](const config::Field& field) { return field.key == "sweep"; });
      continue;
    }
    if (Value* sweep = config.find("sweep");
        sweep != nullptr && sweep->find(override_.path) != nullptr) {  // what is set is swept no more
      std::erase_if(sweep->fields, [&](const config::Field& field) { return field.key == override_.path; });
      if (sweep->fields.empty()) std::erase_if(config.fields, [](const config::Field& field) { return field.key == "sweep"; });
    }
    constexpr std::string_view kAxis = "sweep.";
    if (override_.path.starts_with(kAxis) && override_.path.size() > kAxis.size())
      set_axis(config, override_.path.substr(kAxis.size()), std::move(value), where, diagnostics);
    else
      config::set_path(config, override_.path, std::move(value), where, diagnostics);
  }
  if (diagnostics.list().size() != before) return experiment;
  experiment.config = config;

  std::vector<Axis> axes;
  if (const Value* sweep = config.find("sweep")) axes = read_sweep(*sweep, diagnostics);
  if (diagnostics.list().size() != before) return experiment;
  config.fields.erase(
      std::remove_if(config.fields.begin(), config.fields.end(), [](const config::Field& f) { return f.key == "sweep"; }),
      config.fields.end());
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= axis.points.size();
    experiment.axes.insert(experiment.axes.end(), axis.paths.begin(), axis.paths.end());
  }
  std::set<std::string> reported;
  CostModels cost_models;
  for (std::size_t index = 0; index < count; ++index) {
    Diagnostics own;
    Value cell_config = config;
    std::vector<std::pair<std::string, std::string>> values;
    std::size_t rest = index;
    std::vector<std::size_t> at(axes.size());
    for (std::size_t a = axes.size(); a-- > 0;) {
      at[a] = rest % axes[a].points.size();
      rest /= axes[a].points.size();
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      for (std::size_t p = 0; p < axes[a].paths.size(); ++p) {
        const Value& value = axes[a].points[at[a]][p];
        config::set_path(cell_config, axes[a].paths[p], value, axes[a].where[p], own);
        values.emplace_back(axes[a].paths[p], value.is_scalar() ? value.text : config::to_flow_text(value));
      }
    }
    Cell cell;
    if (own.empty()) cell = read_cell(cell_config, cost_models, own);
    cell.index = index;
    cell.axes = std::move(values);
    for (const Diagnostic& diagnostic : own.list())
      if (reported.insert(to_string(diagnostic.where) + diagnostic.message).second)
        diagnostics.add(diagnostic.where, diagnostic.message);
    if (diagnostics.list().size() - before >= kMaxMistakes) {
      diagnostics.add({file, 0, 0},
                      fmt::format("{} mistakes so far, the rest of the sweep was not read", diagnostics.list().size() - before));
      return experiment;
    }
    experiment.cells.push_back(std::move(cell));
  }
  if (diagnostics.list().size() == before) check_memory(experiment, misfits, diagnostics);
  if (diagnostics.list().size() == before) probe(experiment.cells, diagnostics);
  if (!experiment.cells.empty()) experiment.name = experiment.cells.front().experiment;
  return experiment;
}

}  // namespace specsim::spec
