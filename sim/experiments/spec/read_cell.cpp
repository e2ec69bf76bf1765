#include "sim/experiments/spec/read_cell.h"

#include "sim/experiments/spec/engine_names.h"
#include "sim/experiments/spec/sections.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/rng/address.h"
#include "sim/hardware/latency/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::spec {

namespace {

using config::Value;

// Reads the process's distributions into `cell`, or reuses those of an earlier cell with the same settings.
void read_context(const Value& context, const Value& pair, ReadCache& cache, Cell& cell, Diagnostics& diagnostics) {
  std::shared_ptr<const families::ContextModel>& known =
      cache.contexts[config::to_canonical_text(pair) + "|" + config::to_canonical_text(context)];
  const Value* sequence_rounds = context.find("sequence_rounds");
  if (sequence_rounds != nullptr)
    if (const auto n = config::read_integer(*sequence_rounds, sequence_rounds_interval(), "sequence_rounds", diagnostics))
      cell.sequence_rounds = static_cast<std::uint32_t>(*n);
  if (known != nullptr) {
    cell.contexts = known;
    if (known->process->shape().ends()) cell.sequence_rounds = 0;
    return;
  }
  Value with_default = context;
  if (with_default.is_map() && with_default.find("process") == nullptr)
    with_default.fields.push_back({"process", context.where, config::scalar("fixed", context.where)});
  const auto process =
      config::choose(families::context_processes(), with_default, "process", "context", diagnostics, {"sequence_rounds"});
  if (cell.vocab == 0) return;
  families::ContextBuilder builder(cell.vocab, pair, diagnostics);
  if (process.entry == nullptr) {  // errors of the distributions are reported all the same
    families::ContextModel unused;
    if (pair.find("draft") != nullptr) builder.add_pair(unused);
    return;
  }
  auto model = std::make_shared<families::ContextModel>(process.entry->make(process.arguments, builder));
  if (sequence_rounds != nullptr && model->process != nullptr && model->process->shape().ends())
    diagnostics.add(sequence_rounds->where,
                    fmt::format("sequence_rounds is given with context process {}, allowed: {}, which ends its sequences",
                                process.entry->info.name,
                                model->process->shape().request_tokens > 0 ? "request_tokens alone" : "the end of each request"));
  if (diagnostics.empty()) {
    SPECSIM_CHECK(model->process != nullptr && !model->pairs.empty(), "context {}", process.entry->info.name);
    model->name = process.entry->info.name;
    known = std::move(model);
    cell.contexts = known;
    if (known->process->shape().ends()) cell.sequence_rounds = 0;
  }
}

// Requests of a record that are shorter than a round yield no round. Reports how many there are, and rejects draft lengths
// beyond all of them.
void check_recorded_requests(Cell& cell, Diagnostics& diagnostics) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  if (shape.kind != families::ContextShape::Kind::trace) return;
  const auto tokens = static_cast<std::uint64_t>(cell.draft_length()) + 1;
  std::uint64_t longest = 0;
  std::size_t too_short = 0;
  for (std::size_t i = 0; i < shape.starts.size(); ++i) {
    longest = std::max(longest, shape.recorded_tokens(i));
    if (shape.recorded_tokens(i) < tokens) ++too_short;
  }
  if (longest < tokens)
    diagnostics.add(cell.places.draft_length,
                    fmt::format("draft_length is {} with a record whose longest request has {} tokens, allowed: less than that",
                                cell.draft_length(), longest));
  else if (too_short > 0)
    cell.notes.push_back(
        fmt::format("{} of the record's {} requests have fewer than the {} tokens that a round may emit, and "
                    "yield no round: tokens per round are those of the longer requests",
                    too_short, shape.starts.size(), tokens));
  const std::uint64_t output_tokens = cell.placement ? cell.placement->setting.output_tokens : 0;
  std::size_t going_on = 0;
  for (std::size_t i = 0; i < shape.starts.size(); ++i) going_on += shape.recorded_tokens(i) < output_tokens ? 1 : 0;
  if (going_on > 0)
    cell.notes.push_back(
        fmt::format("output_tokens is {}, more than {} of the record's {} requests have: after their end the "
                    "placement's rounds continue with the next request's tokens",
                    output_tokens, going_on, shape.starts.size()));
}

// A drafter that only sees the text before the block does not know the contexts that its own tokens lead to.
void note_guesses_ahead(Cell& cell) {
  using Kind = families::ContextShape::Kind;
  const BlockMethod* const block = cell.block();
  if (block == nullptr || cell.draft_length() < 2) return;
  const draft::BlockDrafter::Shape& shape = block->drafter->shape();
  const Kind kind = cell.contexts->process->shape().kind;
  // Trees from one pass, whose positions do not see each other's tokens.
  const bool by_marginals = shape.branches && shape.ranks_model && shape.on_target_state;
  if (by_marginals && kind != Kind::markov)
    cell.notes.push_back(fmt::format(
        "drafter {} in context process {}: drafts after a sibling of the likeliest token are accepted as often as drafts "
        "after that token, an upper bound (measured: 22 % and 65 to 84 %, vLLM pull request 42910); process markov "
        "with states and merges models the measurement, as in configs/examples/methods/block_trees.yaml",
        block->drafter.name(), cell.contexts->name));
  if (!shape.from_root && (!shape.joins || shape.joins_whole)) return;
  if (kind == Kind::fixed || kind == Kind::by_depth || kind == Kind::by_rank) return;
  cell.notes.push_back(
      fmt::format("drafter {} predicts every position from the text before the block{}: in context process {} it has the first "
                  "position's distribution for all of them, unlike any trained drafter; by_depth and acceptance_table state the "
                  "distribution at each position",
                  block->drafter.name(), shape.joins ? ", before its head's bias" : "", cell.contexts->name));
}

// Notes where synthetic distributions are known to differ from published figures. Recorded distributions are not affected.
void note_limits_of_distributions(Cell& cell) {
  using Kind = families::ContextShape::Kind;
  const Kind kind = cell.contexts->process->shape().kind;
  if (kind == Kind::trace || kind == Kind::by_rank) return;
  const auto note = [&](const std::string& what) {
    cell.notes.push_back(what + " (docs/results/language.md): rank methods by it, or give a record (context: {process: trace})");
  };
  const std::string& verifier = cell.verifier().info.name;
  if (verifier == "lenience")
    note("verifier lenience accepts more of synthetic distributions than of a recorded pair that they were fitted to");
  if (verifier == "kseq") note("verifier kseq gains less from several chains on synthetic distributions than published");
  const cost::Deployment* const deployment = cell.cost_choice ? cell.cost().deployment() : nullptr;
  const bool head = deployment != nullptr && deployment->draft && deployment->draft->fused_inputs > 0.0;
  const draft::BlockDrafter::Shape* const shape = cell.block() != nullptr ? &cell.block()->drafter->shape() : nullptr;
  if (head && shape != nullptr && shape->siblings != tokens::Siblings::point_mass && shape->nodes > cell.draft_length())
    note("trees of an EAGLE head with drawn siblings emit more tokens on synthetic distributions than published");
}

void note_second_gpu(Cell& cell) {
  if (cell.cost_choice && cell.block() != nullptr && draft::prepares_meanwhile(*cell.block()->drafter) && !cell.placement)
    cell.notes.push_back(
        fmt::format("drafter {} drafts on a GPU of its own, and plain decoding in the speedup has no such GPU; "
                    "placement: {{kind: outcome_cache}} compares with a target that has both",
                    cell.block()->drafter.name()));
}

// Limits of sums of squares and of addresses.
void check_sizes(const Cell& cell, const Location& where, Diagnostics& diagnostics) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const double tokens = cell.draft_length() + 1.0;
  const double sequences =
      shape.ends() ? static_cast<double>(cell.work()) : std::ceil(static_cast<double>(cell.rounds) / cell.sequence_rounds);
  auto tokens_of_one = static_cast<double>(shape.request_tokens);
  if (!shape.ends()) tokens_of_one = cell.sequence_rounds * tokens;
  for (std::size_t i = 0; i < shape.starts.size(); ++i)
    tokens_of_one = std::max(tokens_of_one, static_cast<double>(shape.recorded_tokens(i)));
  if (sequences * tokens_of_one * tokens_of_one > 1.8e19)
    diagnostics.add(where, fmt::format("rounds is {}, allowed here: fewer, or shorter sequences: sums of squares over {:.3g} "
                                       "sequences of {:.3g} tokens exceed 64 bits",
                                       cell.rounds, sequences, tokens_of_one));
  if (shape.contexts == 0 && sequences > static_cast<double>(decode::kMaxFreshSequences))
    diagnostics.add(where, fmt::format("rounds is {}, allowed with fresh distributions: at most {} sequences of sequence_rounds",
                                       cell.rounds, decode::kMaxFreshSequences));
}

// Why a drafter cannot run on other GPUs than the target's; "" if it can.
std::string why_not_elsewhere(const Cell& cell) {
  const draft::BlockDrafter& drafter = *cell.block()->drafter;
  const std::string& name = cell.block()->drafter.name();
  if (drafter.work(drafter.shape().nodes).reused > 0.0)
    return fmt::format("with drafter {}, whose layers are the target's own; allowed: the draft on the target's GPUs", name);
  const draft::BlockDrafter::Shape& shape = drafter.shape();
  const cost::Deployment* const deployment = cell.cost_choice ? cell.cost().deployment() : nullptr;
  const bool head = deployment != nullptr && deployment->draft && deployment->draft->on_target();
  if ((shape.on_target_state && !head) || shape.looks_past_block || shape.target_ranks > 0)
    return fmt::format("with drafter {}, which drafts from the target's {}; allowed: {}the draft on the target's GPUs", name,
                       shape.on_target_state ? "state at the text's end, whose size is not known"
                                             : "predictions in the pass before, which are not sent",
                       shape.on_target_state ? "a head as the cost section's draft, or " : "");
  return "";
}

// Computes the time of the cell's rounds once, so that settings that a cost model does not cover are reported before the start.
void check_cost(const Cell& cell, Diagnostics& diagnostics) {
  const cost::Deployment* const deployment = cell.cost().deployment();
  if (deployment != nullptr && deployment->draft_place && cell.block() != nullptr)
    if (const std::string why = why_not_elsewhere(cell); !why.empty()) {
      diagnostics.add(cell.places.cost, "draft_hardware is given " + why);
      return;
    }
  try {
    for (const double full_rate : {0.0, 1.0}) {
      const cost::RoundTime time = cell.round_time(full_rate);
      const char* const unit = cell.cost().in_seconds() ? " s" : " target passes";
      for (const auto& [what, total] :
           {std::pair{"a round", time.total()}, std::pair{"a pass of plain decoding", time.plain.total()}})
        if (!(total > 0.0) || !std::isfinite(total)) {
          diagnostics.add(cell.places.cost, fmt::format("{} takes {}{}, allowed: passes whose times add up to more than 0 and "
                                                        "less than infinity",
                                                        what, total, unit));
          return;
        }
    }
  } catch (const BadInput& bad) {
    for (const Diagnostic& diagnostic : bad.list()) diagnostics.add(diagnostic.where, diagnostic.message);
  }
}

// Limits of one batch: every sequence's rounds are kept in memory.
constexpr double kMaxBatchTokens = 1e8;

// Why the next block cannot be drafted after the first path of this one before that path is judged; "" if it can. At that time
// the drafter knows the text with that path, and that the new block is used only if the path is fully accepted.
std::string why_not_ahead(const BlockMethod& block) {
  const draft::BlockDrafter::Shape& shape = block.drafter->shape();
  const auto refused = [](std::string_view kind, const std::string& name, std::string_view why) {
    return fmt::format("with {} {}, {}; allowed: another {}, or a placement that drafts after verification", kind, name, why,
                       kind);
  };
  if (shape.on_target_state)
    return refused(
        "drafter", block.drafter.name(),
        "which drafts from the target's state at the text's end, and after a block that state exists only once it is judged");
  if (shape.looks_past_block || shape.target_ranks > 0)
    return refused("drafter", block.drafter.name(),
                   "which drafts the predictions of the target's pass over the block before, and that pass has not ended");
  if (block.drafter->start() != nullptr)
    return refused("drafter", block.drafter.name(),
                   "which depends on the tokens that each earlier round emitted, and the last round has not ended");
  if (!block.policy) return "";
  if (block.policy->part->sequences() > 1 && block.policy->part->follows_acceptance())
    return refused("policy", block.policy->name(),
                   "which sets the batch's draft length by the acceptance of all sequences, and that is not known yet");
  if (block.policy->part->uses_forecasts())
    return refused("policy", block.policy->name(),
                   "which ends each block where it will be rejected, so drafts after it are never used");
  return "";
}

// Why a placement cannot serve the cell's drafts; "" if it can.
std::string why_not_placed(const placement::Placement& placement, const Cell& cell) {
  const BlockMethod* const block = cell.block();
  if (!placement.speculates()) return "";
  const bool prepares = block != nullptr && draft::prepares_meanwhile(*block->drafter);
  if (placement.prepares_outcomes() && !prepares)
    return fmt::format("with drafter {}, which prepares no outcomes; allowed: drafter saguaro",
                       block != nullptr ? block->drafter.name() : "chain");
  if (block == nullptr) return "";
  if (prepares && !placement.prepares_outcomes())
    return fmt::format(
        "with drafter {}, which prepares the next round on a GPU of its own while the target verifies; allowed: placement "
        "outcome_cache, or none",
        block->drafter.name());
  if (block->policy && block->policy->part->shares_rows())
    return fmt::format("with policy {}, which divides the batch's rows among sequences; allowed: another policy, or no placement",
                       block->policy->name());
  if (placement.drafts_ahead()) {
    if (placement.draft_elsewhere() && block->drafter->work(block->drafter->shape().nodes).reused > 0.0)
      return why_not_elsewhere(cell);
    return why_not_ahead(*block);
  }
  return placement.draft_elsewhere() ? why_not_elsewhere(cell) : "";
}

void read_placement(const Value& section, const config::Arguments& workload, Cell& cell, Diagnostics& diagnostics) {
  placement::PlacedBatch setting;
  const auto [entry, own, where] = config::choose(placement::placements(), section, "kind", "placement", diagnostics, {"shrink"});
  if (const Value* shrink = section.find("shrink")) {
    const Value alone = config::map({{"shrink", *shrink}}, section.where);
    const config::Fields<placement::PlacedBatch> fields = {shrink_field()};
    fields.read(config::read_arguments(alone, fields, {}, "placement", diagnostics), setting);
  }
  if (entry == nullptr || !diagnostics.empty()) return;
  setting.placement = entry->make(own, diagnostics);
  workload_fields().read(workload, setting);
  if (!workload.has("prompt_tokens"))
    setting.prompt_tokens = static_cast<std::uint64_t>(std::max<std::int64_t>(workload.integer("context_length"), 1));
  const std::uint64_t request_tokens = cell.contexts != nullptr ? cell.contexts->process->shape().request_tokens : 0;
  if (!workload.has("output_tokens") && request_tokens > 0)
    setting.output_tokens = std::min(setting.output_tokens, request_tokens);
  setting.vocab = cell.vocab;
  const cost::Deployment* deployment = cell.cost_choice ? cell.cost().deployment() : nullptr;
  if (deployment != nullptr && deployment->draft)
    setting.states = {deployment->draft->state_bytes(), deployment->draft->layers > 0.0};
  // Acceptance comes from the config's small vocabulary; the network carries the named model's probabilities.
  if (deployment != nullptr && deployment->draft && setting.placement != nullptr && setting.placement->sends_distributions()) {
    const cost::ModelShape& draft = *deployment->draft;
    const int vocab = static_cast<int>(draft.vocab);
    if (vocab > 0 && vocab != cell.vocab) {
      setting.vocab = vocab;
      cell.notes.push_back(
          fmt::format("the network carries probabilities of the {} tokens of {}; pair.vocab, {}, is that of "
                      "the distributions that decide acceptance",
                      vocab, draft.name, cell.vocab));
    }
  }
  if (request_tokens > 0 && setting.output_tokens > request_tokens)
    diagnostics.add(workload.where("output_tokens"),
                    fmt::format("output_tokens is {} with requests of {} tokens, allowed: at most their request_tokens",
                                setting.output_tokens, request_tokens));
  if (cell.workload.batch * static_cast<double>(setting.output_tokens) > kMaxBatchTokens)
    diagnostics.add(workload.where("output_tokens"),
                    fmt::format("batch {:g} times output_tokens {} exceed {:g}, allowed: fewer tokens for a placement to follow",
                                cell.workload.batch, setting.output_tokens, kMaxBatchTokens));
  if (deployment != nullptr && deployment->draft_place && setting.placement->speculates()) {
    const placement::Placement& placed = *setting.placement;
    if (!placed.passes_are_sequential() && !placed.draft_elsewhere())
      diagnostics.add(section.where, fmt::format("placement {} runs both models on one GPU and cost.draft_hardware is another, "
                                                 "allowed: serial, two_gpus, network",
                                                 entry->info.name));
    if (placed.draft_elsewhere() && !placed.second_gpu() && deployment->draft_place->link_stated)
      diagnostics.add(section.where, fmt::format("placement {} has a link of its own and the cost section states another "
                                                 "(draft_link_us, draft_link_gb_per_s), allowed: "
                                                 "one of them",
                                                 entry->info.name));
  }
  if (!diagnostics.empty()) return;
  if (std::string why = why_not_placed(*setting.placement, cell); !why.empty()) {
    diagnostics.add(section.where, fmt::format("placement {} {}", entry->info.name, why));
    return;
  }
  if (cell.cost_choice && cell.cost().in_seconds()) {
    try {
      // Times are integers in picoseconds with 64 bits, and so are their sums.
      constexpr double kLongest = 4e6;
      constexpr double kShortest = 1e-9;
      placement::Drafting drafting;
      if (const BlockMethod* const block = cell.block()) drafting = std::cref(*block->drafter);
      const double seconds = placement::check_prices(setting, cell.cost(), cell.draft_length(), drafting,
                                                     cell.policy() != nullptr ? cell.policy()->round_cost : 0.0);
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
  cell.placement = PlacementChoice{entry, std::move(setting)};
}

config::Arguments read_workload(const Value& section, Diagnostics& diagnostics) {
  return config::read_arguments(section, workload_fields(), {}, "workload", diagnostics);
}

TheoryChoice read_theory(const Value& section, const Cell* cell, Diagnostics& diagnostics) {
  const config::Arguments theory = config::read_arguments(section, theory_fields(), {}, "theory", diagnostics);
  const auto [name, expect_refuted] = theory_fields().read(theory);
  const theory::ClosedForm* form = theory::find_closed_form(name);
  if (form == nullptr && expect_refuted)
    diagnostics.add(theory.where("expect"),
                    fmt::format("expect is \"refuted\" with name: {}, allowed: refuted with a closed form's name", name));
  if (name == "exact") return ExactTheory{};
  if (name == "none") return NoTheory{};
  if (form == nullptr) {
    std::vector<std::string> names = {"exact", "none"};
    for (const theory::ClosedForm& one : theory::closed_forms()) names.push_back(one.name);
    diagnostics.add(theory.where("name"), config::unknown_name("unknown closed form", name, names));
    return ExactTheory{};
  }
  if (cell != nullptr) {
    const int length = cell->draft_length();
    try {
      const theory::ClosedFormPrediction answer =
          form->evaluate({0.5, std::vector<double>(static_cast<std::size_t>(length), 0.5), length, 0.1, 0.1, 1.0});
      if (!cell->cost_choice && (answer.speedup || answer.tokens_per_second))
        diagnostics.add(theory.where("name"),
                        fmt::format("closed form {} predicts a speedup, but the config has no cost, allowed: "
                                    "with cost: {{model: NAME, ...}}",
                                    name));
    } catch (const InvariantBroken&) {
      diagnostics.add(
          theory.where("name"),
          fmt::format("closed form {} at draft_length {}, allowed: a draft_length that it is defined for", name, length));
    }
  }
  return NamedTheory{form, expect_refuted};
}

Places places_of(const Value& config) {
  const auto at = [&](const char* path) {
    const Value* value = config::find_path(config, path);
    return value != nullptr ? value->where : config.where;
  };
  return {config.where,
          at("rounds"),
          at("pair"),
          at("pair.vocab"),
          at("context"),
          at("context.process"),
          at("context.fresh"),
          at("context.file"),
          at("decode.drafter"),
          at("decode.drafter.kind"),
          at("decode.drafter.draft_length"),
          at("decode.verifier"),
          at("cost"),
          at("placement.kind")};
}

std::optional<CostChoice> read_cost(const Value& section, ReadCache& cache, Diagnostics& diagnostics) {
  CostChoice& cost_choice = cache.cost_choices[config::to_canonical_text(section)];
  if (cost_choice.part == nullptr) {
    config::Choice<cost::CostEntry> choice = config::choose(cost::cost_models(), section, "model", "cost", diagnostics);
    if (choice.entry != nullptr) {
      std::shared_ptr<const cost::CostModel> model = choice.entry->make(choice.arguments, diagnostics);
      check_engine_names(model.get(), diagnostics);
      cost_choice = {choice.entry, std::move(choice.arguments), std::move(model)};
    }
  }
  return cost_choice.part != nullptr ? std::optional(cost_choice) : std::nullopt;
}

// "chain draft_length 4": a part's name, and its parameters as written.
std::string part_text(const Value& part) {
  if (!part.is_map()) return part.text;
  std::string text;
  if (const Value* kind = part.find("kind")) text = kind->text;
  for (const config::Field& field : part.fields)
    if (field.key != "kind") text += " " + field.key + " " + config::to_flow_text(field.value);
  return text;
}

std::string method_text(const Value& config) {
  std::string text;
  for (const char* section : {"drafter", "policy", "verifier"}) {
    const Value* part = config::find_path(config, std::string("decode.") + section);
    if (part != nullptr) text += (text.empty() ? "" : " | ") + part_text(*part);
  }
  return text;
}

// All settings that determine the counts. A policy may depend on latencies.
std::string simulation_key(const Value& config, const Cell& cell) {
  std::string text = std::to_string(cell.seed);
  for (const config::Field& field : config.fields) {
    const bool price = field.key == "cost" || field.key == "workload" || field.key == "placement";
    if (field.key != "experiment" && field.key != "description" && (!price || cell.policy() != nullptr))
      text += "|" + field.key + config::to_canonical_text(field.value);
  }
  return text;
}

void read_name(const config::Arguments& top, Cell& cell, Diagnostics& diagnostics) {
  if (!top.has("experiment")) return;
  if (cell.experiment.find_first_of(",\"\n\r") != std::string::npos)
    diagnostics.add(top.where("experiment"),
                    fmt::format("experiment is {}, allowed: a name without commas, quotes and line breaks",
                                config::quote_for_message(cell.experiment)));
  if (cell.experiment.empty()) diagnostics.add(top.where("experiment"), "experiment is \"\", allowed: a name");
}

}  // namespace

Cell read_cell(const Value& config, ReadCache& cache, Diagnostics& diagnostics) {
  const config::Arguments top = config::read_arguments(config, top_fields(), {}, "the config", diagnostics);
  Cell cell = top_fields().read(top);
  read_name(top, cell, diagnostics);
  cell.places = places_of(config);

  static const Value nothing;
  const Value* pair = config.find("pair");
  if (pair != nullptr) {
    pair_fields().read(config::read_arguments(*pair, pair_fields(), {}, "pair", diagnostics), cell);
  }
  read_context(top.value("context"), pair != nullptr ? *pair : nothing, cache, cell, diagnostics);

  MethodParts parts;
  std::optional<Method> method;
  if (const Value* decode = config.find("decode")) {
    parts = read_method(*decode, diagnostics);
    method = make_method(parts, cell.vocab, diagnostics);
  }
  if (method)
    cell.method = *method;
  else
    std::get<ChainMethod>(cell.method).chain = draft::longest_path(parts.drafter.draft);

  const config::Arguments workload = read_workload(top.value("workload"), diagnostics);
  cell.workload = {static_cast<double>(workload.integer("batch")), static_cast<double>(workload.integer("context_length"))};
  if (top.has("cost")) cell.cost_choice = read_cost(top.value("cost"), cache, diagnostics);

  if (diagnostics.empty() && cell.cost_choice) check_cost(cell, diagnostics);
  if (diagnostics.empty()) add_policy(parts, cell, diagnostics);
  if (diagnostics.empty() && cell.judges_blocks()) check_block(cell, *cell.block(), diagnostics);
  if (diagnostics.empty() && cell.contexts != nullptr) check_ranked(cell, diagnostics);
  if (const Value* section = config.find("placement")) read_placement(*section, workload, cell, diagnostics);
  cell.theory = read_theory(top.value("theory"), method ? &cell : nullptr, diagnostics);
  if (cell.contexts != nullptr) check_recorded_requests(cell, diagnostics);
  if (method && cell.contexts != nullptr && diagnostics.empty()) {
    note_guesses_ahead(cell);
    note_limits_of_distributions(cell);
    note_second_gpu(cell);
  }
  if (cell.contexts != nullptr) check_sizes(cell, top.where("rounds"), diagnostics);

  const std::string distributions =
      (pair != nullptr ? config::to_canonical_text(*pair) : "") + "|" + config::to_canonical_text(top.value("context"));
  cell.pairing_group = rng::hash_text(distributions);
  cell.preparation_key =
      fmt::format("{}|{}|{}|{}", distributions, method ? rule_text(parts, *method) : "", cell.argmax_draft(), cell.seed);
  // A policy that depends on latencies or the batch changes its behaviour with the cost or the batch.
  if (const PolicyChoice* policy = cell.policy();
      policy != nullptr && (policy->entry->by_times || policy->entry->by_rows || policy->part->sequences() > 1))
    cell.preparation_key += fmt::format("|{}|{}", config::to_canonical_text(top.value("workload")),
                                        top.has("cost") ? config::to_canonical_text(top.value("cost")) : "");
  cell.simulation_key = simulation_key(config, cell);
  cell.method_text = method_text(config);
  return cell;
}

}  // namespace specsim::spec
