#include "sim/experiments/spec/read_cell.h"
#include "sim/experiments/spec/sections.h"
#include "sim/rounds/verify/tree_demands.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::spec {

namespace {

using config::Value;

const char* siblings_text(tokens::Siblings siblings) {
  switch (siblings) {
    case tokens::Siblings::independent:
      return "siblings drawn with replacement";
    case tokens::Siblings::without_replacement:
      return "siblings drawn without replacement";
    case tokens::Siblings::hub:
      return "siblings around a hub";
    case tokens::Siblings::point_mass:
      break;
  }
  return "chosen tokens (point masses)";
}

// Limit on contexts whose pairs have separate tables.
constexpr int kMostJoined = 256;

// Whether the drafter draws a chain token by token from its own distributions, as drafter chain does. If a drafter draws with
// replacement while it chooses its block, the block is a chain, since no tree has the same token twice.
bool drawn_chain(const draft::BlockDrafter& drafter) {
  if (drafter.shape().siblings != tokens::Siblings::independent) return false;
  return drafter.tree() != nullptr ? drafter.tree()->is_chain() : drafter.shape().draws;
}

// Whether the drafter copies one path from the text, without a pass of a draft model. A policy can end such a path early.
bool copies_path(const draft::BlockDrafter& drafter) {
  const draft::BlockDrafter::Shape& shape = drafter.shape();
  return drafter.tree() == nullptr && !shape.draws && !shape.branches && shape.nodes == shape.draft_length &&
         drafter.work(shape.nodes).pass_rows.empty();
}

// Why a verifier cannot judge a drafter's blocks, and which ones it can; "" if it can.
std::string why_not(const verify::VerifierEntry& verifier, const draft::BlockDrafter& drafter) {
  const verify::Demands& demands = verifier.demands;
  const draft::BlockDrafter::Shape& shape = drafter.shape();
  if (drawn_chain(drafter) && verifier.make_block) return "";  // every verifier judges chains
  if (std::find(demands.trees.begin(), demands.trees.end(), shape.siblings) == demands.trees.end()) {
    std::string allowed;
    for (const tokens::Siblings siblings : demands.trees)
      allowed += (allowed.empty() ? "" : ", ") + std::string(siblings_text(siblings));
    std::string others;
    for (const verify::VerifierEntry& entry : verify::verifiers().entries())
      if (std::find(entry.demands.trees.begin(), entry.demands.trees.end(), shape.siblings) != entry.demands.trees.end())
        others += (others.empty() ? "" : ", ") + entry.info.name;
    return fmt::format("with {}, allowed: {}{}", siblings_text(shape.siblings), allowed.empty() ? "drafter chain" : allowed,
                       others.empty() ? "" : "; verifiers of these tokens: " + others);
  }
  return drafter.tree() != nullptr ? verify::why_not_tree(demands, *drafter.tree()) : "";
}

// The same for all blocks that a drafter can draft; every verifier judges chains.
std::string why_not(const verify::VerifierEntry& verifier, const draft::Draft& draft, int vocab) {
  if (vocab > verifier.demands.vocab) return fmt::format("at vocab {}, allowed: at most {}", vocab, verifier.demands.vocab);
  const auto* const block = std::get_if<draft::Blocks>(&draft);
  return block != nullptr ? why_not(verifier, **block) : "";
}

// The lossless verifiers of chains that judge position by position: "token, greedy, ...".
std::string position_verifiers() {
  std::string names;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries())
    if (entry.make && entry.lossless) names += (names.empty() ? "" : ", ") + entry.info.name;
  return names;
}

}  // namespace

MethodParts read_method(const Value& decode, Diagnostics& diagnostics) {
  MethodParts parts;
  const config::Arguments arguments = config::read_arguments(decode, decode_fields(), {}, "decode", diagnostics);
  if (arguments.has("drafter")) {
    config::Choice<draft::DrafterEntry> drafter = config::choose(
        draft::drafters(), config::spelled_out(arguments.value("drafter"), "kind"), "kind", "decode.drafter", diagnostics);
    if (drafter.entry != nullptr) {
      draft::Draft draft = drafter.entry->make(drafter.arguments, diagnostics);
      parts.drafter = {drafter.entry, std::move(drafter.arguments), std::move(draft)};
    }
  }
  const Value verifier = config::spelled_out(arguments.value("verifier"), "kind");
  parts.verifier = config::choose(verify::verifiers(), verifier, "kind", "decode.verifier", diagnostics);
  parts.verifier_text = config::to_canonical_text(verifier);
  parts.drafter_text = config::to_canonical_text(arguments.value("drafter"));
  if (arguments.has("policy")) {
    const Value policy = config::spelled_out(arguments.value("policy"), "kind");
    parts.policy = config::choose(draft::policies(), policy, "kind", "decode.policy", diagnostics, {"round_cost"});
    if (const Value* cost = policy.is_map() ? policy.find("round_cost") : nullptr) {
      const auto x = config::as_number(*cost);
      const config::Interval allowed = config::between(0, 1000);
      if (x && allowed.contains(*x))
        parts.policy_round_cost = *x;
      else
        diagnostics.add(cost->where, fmt::format("round_cost is {}, allowed: a number {}", config::description_of_found(*cost),
                                                 allowed.to_text()));
    }
    parts.policy_text = config::to_canonical_text(policy);
  }
  return parts;
}

std::optional<Method> make_method(const MethodParts& parts, int vocab, Diagnostics& diagnostics) {
  if (parts.verifier.entry == nullptr) return std::nullopt;
  const verify::VerifierEntry& entry = *parts.verifier.entry;
  const auto* const drafter = std::get_if<draft::Blocks>(&parts.drafter.draft);
  const bool is_chain = drafter == nullptr;
  const draft::Chain longest_path = draft::longest_path(parts.drafter.draft);
  std::optional<Method> method;
  const std::string why = why_not(entry, parts.drafter.draft, vocab);
  if (!why.empty()) {
    diagnostics.add(parts.verifier.where, fmt::format("verifier {} {}", entry.info.name, why));
  } else if (parts.policy && !is_chain && (*drafter)->tree() == nullptr && !copies_path(**drafter)) {
    diagnostics.add(
        parts.policy->where,
        fmt::format("policy is given with drafter {}, which chooses a block each round; allowed: with a chain, a tree "
                    "of one shape, or one path that is copied from the text",
                    parts.drafter.entry->info.name));
  } else if (parts.policy && !entry.make_block) {
    diagnostics.add(parts.policy->where,
                    fmt::format("policy is given with verifier {}, allowed: another verifier", entry.info.name));
  } else if (is_chain && !parts.policy && entry.make) {
    method = ChainMethod{longest_path, {&entry, parts.verifier.arguments, entry.make(parts.verifier.arguments)}};
  } else {
    method = BlockMethod{
        longest_path,
        {parts.drafter.entry, parts.drafter.arguments, is_chain ? draft::chain_block(longest_path.draft_length) : *drafter},
        {&entry, parts.verifier.arguments, entry.make_block(parts.verifier.arguments)},
        {},
        is_chain};
  }
  if (entry.demands.argmax_draft && !longest_path.argmax)
    diagnostics.add(
        parts.verifier.where,
        fmt::format("verifier {} with a sampled draft, allowed: drafter chain with selection: argmax", entry.info.name));
  return method;
}

void add_policy(const MethodParts& parts, Cell& cell, Diagnostics& diagnostics) {
  auto* block = std::get_if<BlockMethod>(&cell.method);
  if (!parts.policy || parts.policy->entry == nullptr || block == nullptr) return;
  const draft::PolicyEntry& entry = *parts.policy->entry;
  if ((entry.by_times || entry.by_rows) && !cell.cost_choice) {
    diagnostics.add(
        parts.policy->where,
        fmt::format("policy {} without a cost, on which it depends, allowed: with cost: {{model: NAME, ...}}", entry.info.name));
    return;
  }
  draft::LengthChoice choice{cell.draft_length(), {}, static_cast<int>(cell.workload.batch)};
  const tokens::Tree* const tree = block->drafter->tree();  // none: a path
  for (int length = 0; cell.cost_choice && length <= cell.draft_length(); ++length) {
    const auto nodes = tree == nullptr ? length : std::count_if(tree->nodes.begin(), tree->nodes.end(), [&](const auto& node) {
                                                    return node.depth <= length;
                                                  }) - 1;
    std::vector<std::uint64_t> drafted(static_cast<std::size_t>(nodes) + 1, 0);
    drafted.back() = 1;
    const cost::RoundTime time = cell.round_time(0.0, drafted);
    choice.round_times.push_back(time.total() + parts.policy_round_cost * time.plain.total());
  }
  const bool chain = drawn_chain(*block->drafter.part);
  if (entry.by_rows && (tree == nullptr || !tree->is_chain())) {
    diagnostics.add(parts.policy->where,
                    fmt::format("policy {} shortens chains, with drafter {}; allowed: a chain, drawn or chosen", entry.info.name,
                                block->drafter.name()));
    return;
  }
  if (entry.by_rows) {
    // Each possible number of rows of the batch, or as many of them as a round's choice can distinguish.
    constexpr double kMostTimes = 4096.0;
    const auto times = static_cast<int>(std::min(kMostTimes, cell.workload.batch * cell.draft_length()));
    for (int i = 0; i <= times; ++i) {
      const double verified = times > 0 ? static_cast<double>(i) * cell.draft_length() / times : 0.0;
      const cost::RoundTime time = cell.shared_round_time(0.0, verified);
      choice.row_times.push_back(time.total() + parts.policy_round_cost * time.plain.total());
    }
  }
  PolicyChoice policy;
  policy.entry = &entry;
  policy.arguments = parts.policy->arguments;
  policy.part = entry.make(policy.arguments, choice, diagnostics);
  if (policy.part == nullptr) return;
  if (!chain) {
    if (policy.part->looks() || policy.part->uses_forecasts()) {
      diagnostics.add(
          parts.policy->where,
          fmt::format("policy {} decides token by token, allowed: with a chain that is drawn token by token", entry.info.name));
    } else if (policy.part->sequences() == 1 && !policy.part->shares_rows() && cell.workload.batch > 1.0) {
      diagnostics.add(
          parts.policy->where,
          fmt::format("policy {} gives each sequence its own length, at batch {:g} with drafter {}; allowed: batch 1, or "
                      "a policy of one length for the batch, such as goodput",
                      entry.info.name, cell.workload.batch, block->drafter.name()));
    }
  }
  policy.round_times = choice.round_times;
  policy.round_cost = parts.policy_round_cost;
  block->policy = std::move(policy);
}

std::string rule_text(const MethodParts& parts, const Method& method) {
  std::string text = parts.verifier_text;
  if (std::holds_alternative<BlockMethod>(method)) text += "|" + parts.drafter_text;
  if (parts.policy) text += "|" + parts.policy_text;
  return text;
}

// A table describes the acceptance of chosen drafts or of drawn ones, and of no others.
void check_selection(const Cell& cell, Diagnostics& diagnostics) {
  const std::string& name = cell.contexts->name;
  const BlockMethod* const block = cell.block();
  if (block != nullptr && block->drafter->shape().siblings == tokens::Siblings::point_mass) return;
  if (!cell.contexts->process->shape().drawn) {
    if (!cell.argmax_draft())
      diagnostics.add(cell.places.drafter,
                      fmt::format("drafted tokens are drawn, with context process {}, which describes ranked ones; "
                                  "allowed: selection: argmax of a chain, siblings: top_k of a tree",
                                  name));
    return;
  }
  // A chain under a block rule or a policy is a tree of one path.
  const bool path = block == nullptr || (block->drafter->shape().siblings == tokens::Siblings::independent &&
                                         block->drafter->tree()->height() == block->drafter->tree()->drafted());
  if (!path || cell.argmax_draft())
    diagnostics.add(
        cell.places.drafter,
        fmt::format("drafted tokens are {}, with context process {} of selection: sampled, which describes drawn chains; "
                    "allowed: selection: sampled of a chain, siblings: top_k of a tree, in the order in which they "
                    "were drawn",
                    cell.argmax_draft() ? "the draft's likeliest" : "not those of a chain", name));
  else if (!cell.verifier().usual)
    diagnostics.add(
        cell.places.verifier,
        fmt::format("verifier {} with context process {} of selection: sampled, which describes the acceptance by {} of drawn "
                    "tokens; allowed: that",
                    cell.verifier().info.name, name, verify::usual_verifier().info.name));
}

void check_ranked(const Cell& cell, Diagnostics& diagnostics) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  if (shape.kind != families::ContextShape::Kind::by_rank) return;
  const std::string& name = cell.contexts->name;
  if (!cell.verifier().lossless)
    diagnostics.add(cell.places.verifier,
                    fmt::format("verifier {} with context process {}, which has no distributions; allowed: a lossless one",
                                cell.verifier().info.name, name));
  const BlockMethod* const block = cell.block();
  if (block != nullptr && block->drafter->shape().alters)
    diagnostics.add(cell.places.drafter,
                    fmt::format("drafter {} changes the draft's distributions, with context process {}, which has none; allowed: "
                                "without the settings that change them, or a tree of one shape",
                                block->drafter.name(), name));
  if (block != nullptr && block->policy && (block->policy->part->looks() || block->policy->part->shares_rows()))
    diagnostics.add(cell.places.drafter,
                    fmt::format("policy {} looks at the draft's probabilities, with context process {}, which has none; allowed: "
                                "a policy that depends on acceptance",
                                block->policy->entry->info.name, name));
  if (block != nullptr && block->drafter->tree() == nullptr)
    diagnostics.add(cell.places.drafter,
                    fmt::format("drafter {} with context process {}, which has no distributions to choose by; "
                                "allowed: a chain, or a tree of one shape",
                                block->drafter.name(), name));
  else if (cell.draft_length() > 0)
    check_selection(cell, diagnostics);
}

void check_block(const Cell& cell, const BlockMethod& block, Diagnostics& diagnostics) {
  const draft::BlockDrafter::Shape& shape = block.drafter->shape();
  const bool fresh = cell.contexts != nullptr && cell.contexts->process->shape().contexts == 0;
  if (fresh && shape.looks_past_block)
    diagnostics.add(
        cell.places.context_fresh,
        fmt::format("fresh distributions with drafter {}, which uses the target's predictions for positions after its block; "
                    "allowed: a pool, or another drafter",
                    block.drafter.name()));
  if (const int contexts = cell.contexts != nullptr ? cell.contexts->process->shape().contexts : 1;
      plan_of(cell).joins() && contexts > kMostJoined)
    diagnostics.add(cell.places.drafter,
                    fmt::format("drafter {} with {} contexts, whose pairs it needs, allowed: at most {}, or fresh distributions",
                                block.drafter.name(), contexts, kMostJoined));
  if (fresh && block.policy && block.policy->part->shares_rows())
    diagnostics.add(cell.places.context_fresh,
                    fmt::format("fresh distributions with policy {}, which divides rows among sequences, allowed: a pool",
                                block.policy->name()));
  else if (fresh && block.policy && block.policy->part->sequences() > 1)
    diagnostics.add(
        cell.places.context_fresh,
        fmt::format("fresh distributions with policy {} at batch {:g}, whose sequences share a draft length, allowed: a pool, "
                    "or batch 1",
                    block.policy->name(), cell.workload.batch));
  if (cell.contexts != nullptr && cell.contexts->process->shape().acceptance_only)
    diagnostics.add(
        cell.places.context_file,
        fmt::format("recorded overlaps with verifier {} and drafted blocks, allowed: a verifier of chains that judges "
                    "position by position ({}), or recorded distributions",
                    block.verifier.name(), position_verifiers()));
  if (shape.ranks > cell.vocab && !shape.whole_vocabulary)
    diagnostics.add(
        cell.places.drafter,
        fmt::format("the drafter ranks {} tokens of a vocabulary of {}, allowed: at most as many", shape.ranks, cell.vocab));
  if (const tokens::Tree* tree = block.drafter->tree();
      tree != nullptr && (shape.siblings == tokens::Siblings::without_replacement || shape.siblings == tokens::Siblings::hub)) {
    int widest = 0;
    for (const tokens::Tree::Node& node : tree->nodes) widest = std::max(widest, node.children);
    if (widest > cell.vocab)
      diagnostics.add(
          cell.places.drafter,
          fmt::format("the drafter draws {} siblings without replacement of a vocabulary of {}, allowed: at most as many", widest,
                      cell.vocab));
  }
}

}  // namespace specsim::spec
