#include "sim/rounds/decode/block_round.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/base/wide.h"
#include "sim/foundation/rng/address.h"

#include <algorithm>

namespace specsim::decode {

namespace {

class DraftPick final : public verify::Pickable {
 public:
  explicit DraftPick(const math::RatioTable& distributions) : distributions_(distributions) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override { return distributions_.pick_draft(bits); }

 private:
  const math::RatioTable& distributions_;
};

class DraftWithoutPick final : public verify::Pickable {
 public:
  DraftWithoutPick(const math::RatioTable& distributions, std::span<const Token> drawn)
      : distributions_(distributions), drawn_(drawn) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    return distributions_.pick_draft_without(drawn_, rng::to_unit(bits));
  }

 private:
  const math::RatioTable& distributions_;
  std::span<const Token> drawn_;
};

}  // namespace

GroupBits::Draw RoundChoices::draft(int node, int depth, const math::RatioTable& distributions, bool common) {
  if (random_bits_ != nullptr) return random_bits_->draft(node, distributions, common);
  return {script_->pick(verify::ChoiceSource::Use::token, node, depth, DraftPick(distributions)), -1.0};
}

Token RoundChoices::pick(verify::ChoiceSource::Use use, int node, int depth, const verify::Pickable& distribution) {
  using Use = verify::ChoiceSource::Use;
  if (random_bits_ == nullptr) return script_->pick(use, node, depth, distribution);
  return distribution.pick(use == Use::final_token ? random_bits_->final_token(depth)
                           : use == Use::child     ? random_bits_->single(rng::Purpose::child, node)
                                                   : random_bits_->single(rng::Purpose::redraft, node));
}

bool RoundChoices::accept(int node, verify::Odds odds) {
  return random_bits_ != nullptr ? verify::accepts(random_bits_->accept(node), odds) : script_->accept(node, odds);
}

BlockRound::BlockRound(const BlockTables& tables, const families::ContextProcess& process, rng::Key key,
                       const draft::BlockDrafter& drafter, const draft::LengthPolicy* policy)
    : tables_(&tables),
      process_(&process),
      one_context_(process.shape().contexts == 1),
      moves_(process.moves()),
      restarts_(process.shape().restarts()),
      chooses_(drafter.tree() == nullptr),
      key_(key),
      drafter_(&drafter),
      policy_(policy != nullptr && policy->looks() ? policy : nullptr),
      shape_(&drafter.shape()),
      places_(static_cast<std::size_t>(shape_->nodes) + 1) {
  tree_ = chooses_ ? &chosen_.tree : drafter.tree();
  siblings_ = shape_->siblings;
  may_stop_ = policy_ != nullptr;
  nodes_.resize(places_.size());
}

const BlockRound::RoundResult& BlockRound::play(const verify::BlockRule& rule, const Start& start, RoundChoices choices) {
  begin(start, choices);
  return judge(rule, start.longest);
}

void BlockRound::draft(const Start& start, RoundChoices choices, std::span<draft::LengthPolicy::TokenForecast> forecasts) {
  begin(start, choices);
  SPECSIM_CHECK(tree_->is_chain() && forecasts.size() == index_of(tree_->drafted()), "{} forecasts", forecasts.size());
  // The entry after a token knows its context. If contexts depend on tokens, the token is drawn for that context.
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const int node = static_cast<int>(i);
    forecasts[i] = entry(node).forecast;
    if (siblings_ != tokens::Siblings::point_mass) continue;
    // The token is chosen, not drawn, so it is known before the text that it follows.
    forecasts[i].overlap = entry(node).distributions.target(token(node + 1));
    if (shape_->from_root) forecasts[i].certainty = tables_->at(start_.context, node).forecast.certainty;
  }
}

void BlockRound::begin(const Start& start, RoundChoices choices) {
  choices_ = choices;
  start_ = start;
  longest_ = start.longest;
  ++round_;
  // A tree that stays in one context, or passes through the same contexts in every round, has the same distributions in every
  // round.
  if (!(one_context_ || restarts_) || chooses_ || round_ == 1) placement_ = round_;
  if (chooses_) {
    chosen_.tree.nodes.assign(1, {});
    chosen_.tokens.clear();
    chosen_contexts_.assign(1, start.context);
    pass_rows_.clear();
    drafter_->choose(*this, start.memory, chosen_);
    chosen_.tokens.resize(chosen_.tree.nodes.size());
    SPECSIM_CHECK(tree_->drafted() <= shape_->nodes && tree_->height() <= shape_->draft_length, "{} nodes, {} deep",
                  tree_->drafted(), tree_->height());
  }
}

const BlockRound::RoundResult& BlockRound::judge(const verify::BlockRule& rule, int longest) {
  start_.longest = longest;
  longest_ = longest;
  const verify::AcceptedPath verdict = rule.verify(*this);
  const auto accepted = static_cast<std::size_t>(at(verdict.node).depth);
  outcome_.accepted = accepted;
  outcome_.emitted.resize(accepted + 1);
  outcome_.emitted[accepted] = verdict.final_token;
  for (int node = verdict.node; node > 0; node = at(node).parent)
    outcome_.emitted[static_cast<std::size_t>(at(node).depth) - 1] = token(node);
  if (!one_context_) {
    outcome_.contexts.resize(accepted + 1);
    for (int node = verdict.node; node >= 0; node = at(node).parent)
      outcome_.contexts[static_cast<std::size_t>(at(node).depth)] = context(node);
  }
  outcome_.next_context = restarts_ ? 0 : context_after(verdict.node, verdict.final_token);
  outcome_.whole = children(verdict.node) == 0;
  // Draft tokens after another path, or after none, are lost whatever comes next, so the target's own token is kept there.
  outcome_.guessed = !start_.bonus && outcome_.whole && verdict.node > 0 && on_first_path(verdict.node);
  if (outcome_.guessed) {
    outcome_.emitted.pop_back();
    if (!one_context_) outcome_.contexts.pop_back();
    outcome_.next_context = restarts_ ? 0 : context(verdict.node);
  }
  return outcome_;
}

int BlockRound::drafted() {
  if (policy_ != nullptr) {  // a chain
    int node = 0;
    while (children(node) > 0) ++node;
    return node;
  }
  return drafted_within(start_.longest);
}

int BlockRound::drafted_within(int depth) const {
  if (depth >= tree_->height()) return tree_->drafted();
  const auto too_deep = [&](const tokens::Tree::Node& node) { return node.depth > depth; };
  return static_cast<int>(std::find_if(tree_->nodes.begin(), tree_->nodes.end(), too_deep) - tree_->nodes.begin()) - 1;
}

BlockRound::Ahead BlockRound::ahead(const draft::LengthPolicy* policy, const draft::LengthPolicy::Memory& memory) {
  Ahead ahead{static_cast<std::uint32_t>(first_path()), std::nullopt};
  if (policy == nullptr || policy->looks()) return ahead;
  const int length = tree_->is_chain() ? drafted() : std::min(memory.length, shape_->draft_length);
  draft::LengthPolicy::Memory guess = memory;
  policy->observe(guess, length, length);
  ahead.nodes = static_cast<std::uint32_t>(drafted_within(guess.length));
  return ahead;
}

int BlockRound::first_path() {
  int node = 0;
  while (children(node) > 0) node = at(node).first_child;
  return at(node).depth;
}

bool BlockRound::on_first_path(int node) const {
  for (; node > 0; node = at(node).parent)
    if (at(at(node).parent).first_child != node) return false;
  return true;
}

std::span<const double> BlockRound::draft_probabilities() {
  probabilities_.clear();
  for (int node = 1, last = drafted(); node <= last; ++node)
    probabilities_.push_back(entry(at(node).parent).looked_at(token(node)));
  return probabilities_;
}

std::uint32_t BlockRound::context(int node) {
  if (!moves_ || node == 0) return start_.context;
  Place& own = places_[static_cast<std::size_t>(node)];
  if (own.placement != placement_) {
    own.context = context_after(at(node).parent, token(node));
    own.placement = placement_;
  }
  return own.context;
}

std::uint32_t BlockRound::context_after(int node, Token token) { return step(context(node), at(node).depth, token); }

std::uint32_t BlockRound::step(std::uint32_t context, int depth, Token token) const {
  if (!moves_) return context;
  const std::uint32_t lane = 0;
  const std::uint32_t position = start_.text_position + static_cast<std::uint32_t>(depth);
  process_->step(key_, start_.sequence, &lane, 1, &position, &token, &context);
  return context;
}

void BlockRound::place(int node, Node& own) {
  Place& place = places_[static_cast<std::size_t>(node)];
  place.entry = node == 0 ? &tables_->at(context(node), 0) : &tables_->joined_at(start_.context, context(node), at(node).depth);
  own.distributions = &place.entry->distributions;
  own.children = at(node).children;
  if (siblings_ == tokens::Siblings::without_replacement || siblings_ == tokens::Siblings::hub)
    own.children = std::min(own.children, static_cast<int>(own.distributions->draft_support()));
  else if (siblings_ == tokens::Siblings::point_mass && !chooses_)
    own.children = proposed(node, *place.entry);
  const auto& plans = place.entry->plans;
  const auto children = static_cast<std::size_t>(own.children);
  own.plan = plans[children].get();
  own.placed_in = placement_;
}

int BlockRound::proposed(int node, const BlockTables::Entry& entry) const {
  const tokens::Tree::Node& own = at(node);
  const std::vector<draft::Ranked>& likeliest =
      shape_->from_root ? tables_->at(start_.context, own.depth).likeliest : entry.likeliest;
  int children = own.children;
  for (; children > 0; --children) {  // ranks rise from child to child
    const auto rank = static_cast<std::size_t>(at(own.first_child + children - 1).rank);
    if (rank < likeliest.size() && likeliest[rank].probability > 0.0) break;
  }
  return children;
}

bool BlockRound::stops(int node) {
  if (node == 0) return false;
  if (policy_->looks_along()) {
    std::vector<draft::LengthPolicy::Drafted> path;
    for (int at_node = node; at_node > 0; at_node = at(at_node).parent) {
      const BlockTables::Entry& drawn_from = entry(at(at_node).parent);
      const double q = drawn_from.distributions.draft(token(at_node));
      path.push_back({drawn_from.looked_at(token(at_node)), std::min(1.0, drawn_from.distributions.target(token(at_node)) / q)});
    }
    std::reverse(path.begin(), path.end());
    return !policy_->continues_along(path);
  }
  const BlockTables::Entry& drawn_from = entry(at(node).parent);
  return !policy_->goes_on(*start_.policy_memory, drawn_from.looked_at(token(node)), drawn_from.looked_entropy);
}

Token BlockRound::choose(int node, const verify::Pickable& distribution) {
  return choices_.pick(verify::ChoiceSource::Use::child, node, at(node).depth, distribution);
}

Token BlockRound::pick(int node, const verify::Pickable& distribution) {
  return choices_.pick(verify::ChoiceSource::Use::final_token, node, at(node).depth, distribution);
}

bool BlockRound::decide(int node, verify::Odds odds) { return choices_.accept(node, odds); }

void BlockRound::draw(int node, Node& own) {
  own.drawn_in = round_;
  const tokens::Tree::Node& place = at(node);
  const int first = at(place.parent).first_child;
  const bool without_replacement = siblings_ == tokens::Siblings::without_replacement;
  if (chooses_) {
    own.token = chosen_.tokens[index_of(node)];
    if (without_replacement)
      own.remaining =
          distributions(place.parent).draft_without(std::span(chosen_.tokens).subspan(index_of(first), index_of(node - first)));
    return;
  }
  if (siblings_ == tokens::Siblings::point_mass) {
    const BlockTables::Entry& from = shape_->from_root ? tables_->at(start_.context, place.depth - 1) : entry(place.parent);
    own.token = from.likeliest[index_of(place.rank)].token;
    return;
  }
  const bool after_first = place.rank > 0;
  if (siblings_ == tokens::Siblings::hub && after_first) {
    const Token hub = entry(place.parent).likeliest.front().token;
    if (token(first) != hub) {
      own.token = hub;
      own.u = -1.0;
      return;
    }
  }
  const math::RatioTable& from = distributions(place.parent);
  const bool unlike_siblings = after_first && (without_replacement || siblings_ == tokens::Siblings::hub);
  for (int sibling = first; unlike_siblings && sibling < node; ++sibling) static_cast<void>(token(sibling));
  siblings_before_.clear();  // cleared here, not earlier: drawing a sibling uses them too
  for (int sibling = first; unlike_siblings && sibling < node; ++sibling) siblings_before_.push_back(token(sibling));
  if (unlike_siblings) own.remaining = from.draft_without(siblings_before_);
  const GroupBits::Draw drawn = draw_unlike(siblings_before_, from, node, place.depth);
  own.token = drawn.token;
  own.u = drawn.u;
}

GroupBits::Draw BlockRound::draw_unlike(std::span<const Token> siblings, const math::RatioTable& distributions, int number,
                                        int depth) {
  GroupBits::Draw drawn = choices_.draft(number, depth, distributions, one_context_);
  // Tries the distribution once as it is. A token that a sibling has already is replaced by a draw from the remaining tokens,
  // which gives their distribution.
  if (std::find(siblings.begin(), siblings.end(), drawn.token) != siblings.end())
    drawn.token = choices_.pick(verify::ChoiceSource::Use::redraft, number, depth, DraftWithoutPick(distributions, siblings));
  return drawn;
}

const BlockTables::Entry& BlockRound::chosen_entry(const draft::ChosenBlock& block, int node) {
  const std::vector<tokens::Tree::Node>& nodes = block.tree.nodes;
  const tokens::Tree::Node& own = nodes[static_cast<std::size_t>(node)];
  if (!moves_ || shape_->from_root) return tables_->at(start_.context, own.depth);
  for (std::size_t i = chosen_contexts_.size(); i <= static_cast<std::size_t>(node); ++i) {  // parents come first
    const auto parent = static_cast<std::size_t>(nodes[i].parent);
    chosen_contexts_.push_back(step(chosen_contexts_[parent], nodes[parent].depth, block.tokens[i]));
  }
  return tables_->at(chosen_contexts_[static_cast<std::size_t>(node)], own.depth);
}

std::span<const draft::Ranked> BlockRound::likeliest(const draft::ChosenBlock& block, int node) {
  return chosen_entry(block, node).likeliest;
}

draft::Ranked BlockRound::draw_child(const draft::ChosenBlock& block, int node, std::span<const Token> siblings, int number) {
  const math::RatioTable& from = chosen_entry(block, node).distributions;
  if (siblings.size() >= from.draft_support()) return {};
  const int depth = block.tree.nodes[static_cast<std::size_t>(node)].depth + 1;
  const Token token = draw_unlike(siblings, from, number, depth).token;
  return {token, from.draft(token) / from.draft_without(siblings)};
}

std::vector<Token> BlockRound::target_argmax(std::span<const Prefix> prefixes) {
  std::vector<Token> tokens;
  for (const Prefix& prefix : prefixes) tokens.push_back(tables_->at(prefix.context, 0).target_argmax);
  return tokens;
}

Token BlockRound::random_token(std::uint32_t index) {
  const std::uint64_t bits =
      rng::philox_bits({rng::counter_word0(rng::Purpose::window, 0), index, static_cast<std::uint32_t>(start_.sequence),
                        static_cast<std::uint32_t>(start_.sequence >> 32)},
                       key_)
          .first;
  if (start_.text.empty()) return static_cast<Token>(scale_bits(bits, tables_->vocab()));
  return start_.text[scale_bits(bits, start_.text.size())];
}

rng::BitsPair GroupBits::one(rng::Purpose purpose, int position) const {
  return source_->at(purpose, static_cast<std::uint32_t>(position), round_, first_sequence_ + lane_);
}

void GroupBits::fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const {
  source_->batch(purpose, static_cast<std::uint32_t>(position), round_, first_sequence_, nullptr, kGroup,
                 batch.random_bits.data(), second);
}

void GroupBits::fill(DraftBatch& batch, int node, const math::RatioTable* common) const {
  fill(batch, rng::Purpose::draft_accept, node - 1, batch.accept_bits.data());
  if (common == nullptr) return;
  // Issues the memory accesses of all lanes at once.
  for (const std::uint64_t bits : batch.random_bits) common->prefetch_draft(bits);
  for (std::uint32_t lane = 0; lane < kGroup; ++lane) {
    batch.tokens[lane] = common->pick_draft(batch.random_bits[lane]);
    common->prefetch_distributions(batch.tokens[lane]);
  }
}

}  // namespace specsim::decode
