#include "sim/audit/audit.h"

#include "sim/base/check.h"
#include "sim/base/wide.h"
#include "sim/decode/simulator.h"
#include "sim/decode/staged_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

namespace specsim::audit {

namespace {

using Kind = families::ContextShape::Kind;

constexpr std::size_t kMaxPositions = kAuditMaxDraftLength + 2;  // a faulty loop may draft more than it was asked to
constexpr std::size_t kMaxEmitted = kMaxPositions + 1;

struct Script {
  std::array<std::uint64_t, kMaxPositions> draft{};
  std::array<std::uint64_t, kMaxPositions> accept{};
  std::uint64_t final_token = 0;
};

// All that can be seen of a round.
struct Outcome {
  std::array<Token, kMaxEmitted> emitted{};
  std::uint32_t length = 0;
  std::uint32_t next_context = 0;
  std::uint32_t accepted = 0;  // as counted
  std::uint32_t judged = 0;    // as counted
  std::uint32_t asked = 0;     // positions that asked for words
  bool operator==(const Outcome&) const = default;
};

class ScriptedBits final : public decode::BitSource {
 public:
  explicit ScriptedBits(const Script& script) : script_(&script) {}
  void draft_accept(std::uint32_t round, std::uint32_t position, std::uint64_t, const std::uint32_t* lanes, std::size_t count,
                    std::uint64_t* draft, std::uint64_t* accept) override {
    SPECSIM_CHECK(round == 0 && position < kMaxPositions && count == 1 && lanes[0] == 0, "round {}, position {}, {} lanes", round,
                  position, count);
    asked_ = std::max(asked_, position + 1);
    draft[0] = script_->draft[position];
    accept[0] = script_->accept[position];
  }
  void final_token(std::uint32_t round, std::uint64_t, std::size_t count, std::uint64_t* random_bits) override {
    SPECSIM_CHECK(round == 0, "round {}", round);
    std::fill_n(random_bits, count, script_->final_token);
  }
  [[nodiscard]] std::uint32_t asked() const { return asked_; }

 private:
  const Script* script_;
  std::uint32_t asked_ = 0;
};

class OutcomeSink final : public decode::RoundSink {
 public:
  void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) override {
    SPECSIM_CHECK(lane == 0 && round == 0 && rounds_++ == 0 && emitted.size() <= kMaxEmitted, "lane {}, round {}, {} tokens",
                  lane, round, emitted.size());
    std::copy(emitted.begin(), emitted.end(), outcome.emitted.begin());
    outcome.length = static_cast<std::uint32_t>(emitted.size());
    outcome.next_context = next_context;
  }
  Outcome outcome;

 private:
  int rounds_ = 0;
};

// The process of a cell, but for where it starts.
class StartsAt final : public families::ContextProcess {
 public:
  explicit StartsAt(const families::ContextProcess& process) : process_(&process) {}
  void set(std::uint32_t context) { context_ = context; }
  [[nodiscard]] const families::ContextShape& shape() const override { return process_->shape(); }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, context_);
  }
  [[nodiscard]] bool moves() const override { return process_->moves(); }
  void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
            const std::uint32_t* position, const Token* token, std::uint32_t* context) const override {
    process_->step(key, first_sequence, lanes, count, position, token, context);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override { return process_->next(context, token); }

 private:
  const families::ContextProcess* process_;
  std::uint32_t context_ = 0;
};

// Words first .. last, both included.
struct Piece {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] uint128 size() const { return uint128{last} - first + 1; }
};

Piece column(std::size_t index, std::size_t columns) {
  const auto begin = [&](std::size_t i) { return ((uint128{i} << 64) + columns - 1) / columns; };
  return {static_cast<std::uint64_t>(begin(index)), static_cast<std::uint64_t>(begin(index + 1) - 1)};
}

// Where `at` flips from at(whole.first) to at(whole.last), which differ: the first word of the second kind. `hint` is tried
// first.
template <class At>
std::uint64_t find_flip(const Piece& whole, const At& at, const std::vector<std::uint64_t>& hints) {
  const auto before = at(whole.first);
  const auto after = at(whole.last);
  for (const std::uint64_t hint : hints)
    if (hint > whole.first && hint <= whole.last && at(hint - 1) == before && at(hint) == after) return hint;
  std::uint64_t low = whole.first;
  std::uint64_t high = whole.last;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto found = at(middle);
    SPECSIM_CHECK(found == before || found == after, "a third outcome at word {} between {} and {}", middle, whole.first,
                  whole.last);
    (found == before ? low : high) = middle;
  }
  return high;
}

// The word space in pieces on which `at` is constant, in order. Adds new flips to `hints`.
template <class At>
std::vector<Piece> pieces_of(std::size_t columns, const At& at, std::vector<std::uint64_t>& hints) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < columns; ++i) {
    const Piece whole = column(i, columns);
    if (at(whole.first) == at(whole.last)) {
      pieces.push_back(whole);
    } else {
      const std::uint64_t flip = find_flip(whole, at, hints);
      if (std::find(hints.begin(), hints.end(), flip) == hints.end()) hints.push_back(flip);
      pieces.push_back({whole.first, flip - 1});
      pieces.push_back({flip, whole.last});
    }
  }
  for (const Piece& piece : pieces) {
    const auto expected = at(piece.first);
    for (const std::uint64_t part : {1, 2}) {
      const std::uint64_t bits = piece.first + (piece.last - piece.first) / 3 * part;
      SPECSIM_CHECK(at(bits) == expected, "more than one flip between words {} and {}", piece.first, piece.last);
    }
  }
  return pieces;
}

long double share(uint128 random_bits) { return std::ldexp(static_cast<long double>(random_bits), -64); }

// Words with the same effect.
template <class Effect>
struct Group {
  Effect effect;
  uint128 random_bits = 0;
  std::vector<Piece> pieces;
};

template <class Effect>
void add_to(std::vector<Group<Effect>>& groups, const Effect& effect, const Piece& piece) {
  auto at = std::find_if(groups.begin(), groups.end(), [&](const Group<Effect>& group) { return group.effect == effect; });
  if (at == groups.end()) at = groups.insert(groups.end(), Group<Effect>{effect, 0, {}});
  at->random_bits += piece.size();
  at->pieces.push_back(piece);
}

// A position, once it is reached.
struct Node {
  struct Step {  // the round goes on
    Token token = 0;
    long double probability = 0.0L;
    std::size_t node = 0;
  };
  struct End {                  // the round ends
    std::vector<Token> tokens;  // emitted from this position on
    std::uint32_t next_context = 0;
    std::uint32_t accepted = 0;
    std::uint32_t judged = 0;
    long double probability = 0.0L;
  };
  std::vector<Step> steps;
  std::vector<End> ends;
};

struct Subject {
  int vocab = 0;
  int draft_length = 0;
  const families::ContextProcess* process = nullptr;
  std::function<Outcome(std::uint32_t, const Script&)> run;  // (start context, words)
};

class Explorer {
 public:
  Explorer(const Subject& subject, bool share)
      : subject_(&subject), columns_(static_cast<std::size_t>(subject.vocab)), share_(share) {
    for (std::size_t i = 0; i < columns_; ++i) {
      probes_.push_back(column(i, columns_).first);
      probes_.push_back(column(i, columns_).last);
    }
  }

  // The round that starts in `context`.
  std::size_t root(std::uint32_t context) {
    Path path;
    path.start = context;
    path.context = context;
    return node(path);
  }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }

 private:
  struct Path {
    std::uint32_t start = 0;
    std::uint32_t context = 0;  // here
    std::vector<Token> tokens;  // emitted before this position
    Script script;
  };

  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const {
    return subject_->process->moves() ? subject_->process->next(context, token) : context;
  }
  Outcome run(const Path& path, const Script& script) {
    ++runs_;
    return subject_->run(path.start, script);
  }

  std::size_t node(const Path& path) {
    const std::size_t position = path.tokens.size();
    const std::pair<std::uint32_t, std::size_t> key{path.context, position};
    if (share_)
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const std::size_t index = nodes_.size();
    nodes_.emplace_back();
    if (share_) known_[key] = index;
    Node built;
    if (run(path, path.script).asked <= position)
      add_ends(path, path.script, 1.0L, built);
    else
      add_position(path, built);
    nodes_[index] = std::move(built);
    return index;
  }

  void add_position(const Path& path, Node& built) {
    const std::size_t position = path.tokens.size();
    const auto outcome = [&](std::uint64_t draft, std::uint64_t accept) {
      Script script = path.script;
      script.draft[position] = draft;
      script.accept[position] = accept;
      return run(path, script);
    };
    std::vector<std::uint64_t> accept_hints;
    for (const Group<std::vector<Outcome>>& drafted : draft_groups(outcome)) {
      const std::uint64_t bits = drafted.pieces.front().first;
      const std::vector<Piece> decisions = pieces_of(
          columns_, [&](std::uint64_t accept) { return outcome(bits, accept); }, accept_hints);
      std::vector<Group<Outcome>> decided;
      for (const Piece& piece : decisions) add_to(decided, outcome(bits, piece.first), piece);
      // The same token drawn from elsewhere in the table is decided on alike.
      for (const Piece& other : drafted.pieces)
        for (const Piece& piece : decisions)
          for (const std::uint64_t accept : {piece.first, piece.last})
            SPECSIM_CHECK(outcome(other.last, accept) == outcome(bits, accept), "draft words {} and {}, accept word {}", bits,
                          other.last, accept);
      for (const Group<Outcome>& decision : decided) {
        const long double probability = share(drafted.random_bits) * share(decision.random_bits);
        Script script = path.script;
        script.draft[position] = bits;
        script.accept[position] = decision.pieces.front().first;
        if (decision.effect.asked > position + 1)
          add_step(path, script, decision.effect, probability, built);
        else
          add_ends(path, script, probability, built);
      }
    }
  }

  // The draft word's effect is what follows from it under every probing accept word.
  template <class OutcomeOf>
  std::vector<Group<std::vector<Outcome>>> draft_groups(const OutcomeOf& outcome) {
    const auto effect = [&](std::uint64_t draft) {
      std::vector<Outcome> all;
      for (const std::uint64_t probe : probes_) all.push_back(outcome(draft, probe));
      return all;
    };
    std::vector<Group<std::vector<Outcome>>> groups;
    for (std::size_t i = 0; i < columns_; ++i) {
      const Piece whole = column(i, columns_);
      const std::vector<Outcome> before = effect(whole.first);
      const std::vector<Outcome> after = effect(whole.last);
      const auto differ =
          static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin());
      const std::uint64_t probe = probes_[std::min(differ, probes_.size() - 1)];
      const auto at = [&](std::uint64_t draft) { return outcome(draft, probe); };
      std::vector<Piece> pieces = {whole};
      if (differ < probes_.size()) {
        const std::uint64_t flip = find_flip(whole, at, {});
        pieces = {{whole.first, flip - 1}, {flip, whole.last}};
      }
      for (const Piece& piece : pieces) {
        for (const std::uint64_t part : {1, 2})
          SPECSIM_CHECK(at(piece.first + (piece.last - piece.first) / 3 * part) == at(piece.first),
                        "more than one flip between draft words {} and {}", piece.first, piece.last);
        add_to(groups, piece.first == whole.first ? before : after, piece);
      }
    }
    return groups;
  }

  void add_step(const Path& path, const Script& script, const Outcome& seen, long double probability, Node& built) {
    const std::size_t position = path.tokens.size();
    SPECSIM_CHECK(seen.length > position, "{} tokens after position {}", seen.length, position);
    Path below = path;
    below.script = script;
    below.tokens.push_back(seen.emitted[position]);
    below.context = next(path.context, seen.emitted[position]);
    built.steps.push_back({seen.emitted[position], probability, node(below)});
  }

  // The final word's turn; `script` fixes all others.
  void add_ends(const Path& path, const Script& script, long double probability, Node& built) {
    const auto outcome = [&](std::uint64_t bits) {
      Script with_final = script;
      with_final.final_token = bits;
      return run(path, with_final);
    };
    const std::size_t position = path.tokens.size();
    for (const Piece& piece : pieces_of(columns_, outcome, final_hints_)) {
      const Outcome seen = outcome(piece.first);
      SPECSIM_CHECK(seen.length >= position && std::equal(path.tokens.begin(), path.tokens.end(), seen.emitted.begin()),
                    "what position {} met is not what was emitted", position);
      Node::End end;
      end.tokens.assign(seen.emitted.begin() + static_cast<std::ptrdiff_t>(position), seen.emitted.begin() + seen.length);
      end.next_context = seen.next_context;
      end.accepted = seen.accepted;
      end.judged = seen.judged;
      const auto same = std::find_if(built.ends.begin(), built.ends.end(), [&](const Node::End& other) {
        return std::tie(other.tokens, other.next_context, other.accepted, other.judged) ==
               std::tie(end.tokens, end.next_context, end.accepted, end.judged);
      });
      end.probability = probability * share(piece.size());
      if (same == built.ends.end())
        built.ends.push_back(std::move(end));
      else
        same->probability += end.probability;
    }
  }

  const Subject* subject_;
  std::size_t columns_;
  bool share_;
  std::vector<std::uint64_t> probes_;
  std::vector<std::uint64_t> final_hints_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> known_;
  std::vector<Node> nodes_;
  std::uint64_t runs_ = 0;
};

// Distributions of the text's first tokens, round by round.
class Texts {
 public:
  // roots: of the rounds that start in each context.
  Texts(const std::vector<Node>& nodes, const std::vector<std::size_t>& roots, std::size_t vocab)
      : nodes_(&nodes), roots_(&roots), vocab_(vocab) {}

  // Distribution of the first `tokens` tokens from each context, knowing those of all smaller numbers. A round that emits nothing
  // loses its probability.
  void extend() {
    const std::size_t tokens = distributions_.size() + 1;
    std::size_t size = 1;
    for (std::size_t i = 0; i < tokens; ++i) size *= vocab_;
    std::vector<std::vector<double>> distributions;
    std::vector<long double> distribution;
    for (const std::size_t root : *roots_) {
      distribution.assign(size, 0.0L);
      add(root, 0, tokens, 1.0L, distribution);
      distributions.emplace_back(distribution.begin(), distribution.end());
    }
    distributions_.push_back(std::move(distributions));
  }
  [[nodiscard]] const std::vector<double>& distribution(std::size_t tokens, std::size_t context) const {
    return distributions_[tokens - 1][context];
  }

 private:
  void add(std::size_t index, std::size_t text, std::size_t missing, long double probability,
           std::vector<long double>& distribution) const {
    if (missing == 0) {
      distribution[text] += probability;
      return;
    }
    const Node& node = (*nodes_)[index];
    for (const Node::Step& step : node.steps)
      add(step.node, text * vocab_ + step.token, missing - 1, probability * step.probability, distribution);
    for (const Node::End& end : node.ends) {
      std::size_t longer = text;
      std::size_t left = missing;
      for (const Token token : end.tokens) {
        if (left == 0) break;
        longer = longer * vocab_ + token;
        --left;
      }
      const long double weight = probability * end.probability;
      if (left == 0) {
        distribution[longer] += weight;
      } else if (left <= distributions_.size()) {  // not so where the round emitted nothing
        const std::vector<double>& rest = distributions_[left - 1][end.next_context];
        for (std::size_t i = 0; i < rest.size(); ++i)
          distribution[longer * rest.size() + i] += weight * static_cast<long double>(rest[i]);
      }
    }
  }

  const std::vector<Node>* nodes_;
  const std::vector<std::size_t>* roots_;
  std::size_t vocab_;
  std::vector<std::vector<std::vector<double>>> distributions_;  // [tokens - 1][context][text]
};

std::vector<double> target_texts(const std::vector<std::vector<double>>& targets, const families::ContextProcess& process,
                                 std::uint32_t context, int tokens) {
  struct Prefix {
    long double probability;
    std::uint32_t context;
  };
  std::vector<Prefix> texts = {{1.0L, context}};
  for (int i = 0; i < tokens; ++i) {
    std::vector<Prefix> longer;
    for (const Prefix& text : texts)
      for (std::size_t x = 0; x < targets[text.context].size(); ++x)
        longer.push_back({text.probability * static_cast<long double>(targets[text.context][x]),
                          process.moves() ? process.next(text.context, static_cast<Token>(x)) : text.context});
    texts = std::move(longer);
  }
  std::vector<double> distribution;
  for (const Prefix& text : texts) distribution.push_back(static_cast<double>(text.probability));
  return distribution;
}

double variation(const std::vector<double>& a, const std::vector<double>& b) {
  long double sum = 0.0L;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<long double>(a[i]) - b[i]);
  return static_cast<double>(sum / 2.0L);
}

// What a round's distribution says of its counts.
class Tallies {
 public:
  Tallies(const std::vector<Node>& nodes, AuditStart& start, bool keep_rounds)
      : nodes_(&nodes), start_(&start), keep_rounds_(keep_rounds) {}
  void add(std::size_t index, long double probability) {
    const Node& node = (*nodes_)[index];
    for (const Node::Step& step : node.steps) {
      text_.push_back(step.token);
      add(step.node, probability * step.probability);
      text_.pop_back();
    }
    for (const Node::End& end : node.ends) {
      const long double weight = probability * end.probability;
      const std::size_t emitted = text_.size() + end.tokens.size();
      SPECSIM_CHECK(end.accepted < accepted_.size() && emitted < emitted_.size(), "{} accepted, {} emitted", end.accepted,
                    emitted);
      accepted_[end.accepted] += weight;
      emitted_[emitted] += weight;
      judged_ += weight * static_cast<long double>(end.judged);
      if (keep_rounds_) {
        std::vector<Token> text = text_;
        text.insert(text.end(), end.tokens.begin(), end.tokens.end());
        rounds_[{std::move(text), end.next_context}] += weight;
      }
    }
  }
  void finish(int draft_length) {
    long double accepted = 0.0L;
    long double emitted = 0.0L;
    for (std::size_t j = 0; j < accepted_.size(); ++j) accepted += accepted_[j] * static_cast<long double>(j);
    std::size_t longest = static_cast<std::size_t>(draft_length) + 1;
    for (std::size_t j = 0; j < emitted_.size(); ++j) {
      emitted += emitted_[j] * static_cast<long double>(j);
      if (emitted_[j] > 0.0L) longest = std::max(longest, j);
    }
    start_->accepted_distribution.assign(accepted_.begin(), accepted_.begin() + draft_length + 1);
    start_->emitted_distribution.assign(emitted_.begin(), emitted_.begin() + static_cast<std::ptrdiff_t>(longest) + 1);
    start_->expected_accepted = static_cast<double>(accepted);
    start_->expected_emitted = static_cast<double>(emitted);
    start_->alpha = judged_ > 0.0L ? static_cast<double>(accepted / judged_) : std::numeric_limits<double>::quiet_NaN();
    for (const auto& [round, weight] : rounds_)
      start_->rounds.push_back({round.first, round.second, static_cast<double>(weight)});
  }

 private:
  const std::vector<Node>* nodes_;
  AuditStart* start_;
  bool keep_rounds_;
  std::vector<Token> text_;
  std::array<long double, kMaxEmitted + 1> accepted_{};
  std::array<long double, kMaxEmitted + 1> emitted_{};
  long double judged_ = 0.0L;
  std::map<std::pair<std::vector<Token>, std::uint32_t>, long double> rounds_;
};

// The first roots are those of the contexts; where rounds depend on more, further ones follow, and Node::End::next_context counts
// roots.
AuditReport report_on(const spec::Cell& cell, const std::vector<Node>& nodes, const std::vector<std::size_t>& roots,
                      const std::vector<std::vector<double>>& targets, const AuditOptions& options) {
  AuditReport report;
  report.verifier = cell.verifier().info.name;
  report.vocab = cell.vocab;
  report.draft_length = cell.draft_length();
  const int tokens = cell.draft_length() + 1;
  Texts texts(nodes, roots, static_cast<std::size_t>(cell.vocab));
  for (int i = 0; i < tokens; ++i) texts.extend();
  for (std::size_t context = 0; context < targets.size(); ++context) {
    AuditStart start;
    start.context = static_cast<std::uint32_t>(context);
    Tallies tallies(nodes, start, options.keep_rounds);
    tallies.add(roots[context], 1.0L);
    tallies.finish(cell.draft_length());
    start.first_token = texts.distribution(1, context);
    start.target = targets[context];
    start.joint = texts.distribution(static_cast<std::size_t>(tokens), context);
    start.target_joint = target_texts(targets, *cell.contexts->process, start.context, tokens);
    for (std::size_t i = 0; i < start.joint.size(); ++i) {
      start.largest_difference = std::max(start.largest_difference, std::abs(start.joint[i] - start.target_joint[i]));
      if (start.target_joint[i] == 0.0) start.impossible += start.joint[i];
    }
    start.first_token_variation = variation(start.first_token, start.target);
    start.joint_variation = variation(start.joint, start.target_joint);
    report.largest_difference = std::max(report.largest_difference, start.largest_difference);
    report.first_token_variation = std::max(report.first_token_variation, start.first_token_variation);
    report.joint_variation = std::max(report.joint_variation, start.joint_variation);
    report.impossible = std::max(report.impossible, start.impossible);
    report.starts.push_back(std::move(start));
  }
  return report;
}

void check_size(const spec::Cell& cell) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  if (shape.kind != Kind::fixed && shape.kind != Kind::markov && shape.kind != Kind::by_depth)
    throw BadInput(cell.places.process,
                   "the audit enumerates contexts that only tokens move through, allowed: fixed, by_depth, markov");
  if (cell.vocab > kAuditMaxVocab)
    throw BadInput(cell.places.vocab, fmt::format("vocab is {}, allowed in an audit: at most {}", cell.vocab, kAuditMaxVocab));
  if (cell.draft_length() > kAuditMaxDraftLength)
    throw BadInput(cell.places.draft_length,
                   fmt::format("draft_length is {}, allowed in an audit: at most {}", cell.draft_length(), kAuditMaxDraftLength));
  if (shape.contexts > kAuditMaxContexts)
    throw BadInput(cell.places.context,
                   fmt::format("{} contexts, allowed in an audit: at most {}", shape.contexts, kAuditMaxContexts));
  auto branches = static_cast<std::uint64_t>(shape.contexts);
  for (int i = 0; i <= cell.draft_length(); ++i) branches *= static_cast<std::uint64_t>(cell.vocab);
  if (branches > kAuditMaxBranches)
    throw BadInput(
        cell.places.draft_length,
        fmt::format("contexts * vocab^(draft_length + 1) is {}, allowed in an audit: at most {}", branches, kAuditMaxBranches));
}

// An empty `loop`: decode::Simulator's own.
AuditReport audit_positions(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                            const AuditOptions& options) {
  check_size(cell);
  const decode::PreparationPlan plan = spec::plan_of(cell, &rule);
  std::vector<std::vector<double>> targets;
  const decode::Prepared prepared = decode::prepare(
      plan, [&](int, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) {
        if (depth == 0) targets.emplace_back(distributions.target.begin(), distributions.target.end());
      });

  const rng::Key key = spec::draw_key(cell);
  families::ContextModel started;  // for the simulator, which needs no distributions once the tables are there
  auto process = std::make_unique<StartsAt>(*cell.contexts->process);
  StartsAt& starts_at = *process;
  started.process = std::move(process);
  decode::PreparationPlan run_plan = plan;
  run_plan.contexts = &started;
  const decode::Simulator simulator(run_plan, prepared, key, cell.draft_length(), 1);
  const decode::Counts empty = simulator.empty_counts();
  const decode::RoundSetup setup{.tables = &*prepared.tables,
                                 .process = started.process.get(),
                                 .key = key,
                                 .draft_length = static_cast<std::uint32_t>(cell.draft_length()),
                                 .matches = rule.matches(),
                                 .classes = prepared.class_count,
                                 .bin_of_class = prepared.bin_of_class.data(),
                                 .stratum = prepared.stratum.empty() ? nullptr : prepared.stratum.data()};
  const auto distribution_size = static_cast<std::size_t>(cell.draft_length()) + 1;
  decode::Counts counts = empty;

  Subject subject;
  subject.vocab = cell.vocab;
  subject.draft_length = cell.draft_length();
  subject.process = cell.contexts->process.get();
  subject.run = [&](std::uint32_t context, const Script& script) {
    starts_at.set(context);
    counts = empty;
    ScriptedBits random_bits(script);
    OutcomeSink sink;
    if (loop)
      loop(setup, {0, 1, 1}, random_bits, counts, &sink);
    else
      simulator.run_scripted(1, random_bits, counts, sink);
    Outcome& outcome = sink.outcome;
    SPECSIM_CHECK(counts.rounds == 1 && counts.emitted == outcome.length, "{} rounds, {} emitted, {} seen", counts.rounds,
                  counts.emitted, outcome.length);
    const auto counted = std::find(counts.accepted_distribution.begin(), counts.accepted_distribution.end(), std::uint64_t{1});
    SPECSIM_CHECK(counted != counts.accepted_distribution.end(), "no accepted count from context {}", context);
    outcome.accepted =
        static_cast<std::uint32_t>(static_cast<std::size_t>(counted - counts.accepted_distribution.begin()) % distribution_size);
    for (const std::uint64_t reached : counts.reached) outcome.judged += static_cast<std::uint32_t>(reached);
    outcome.asked = random_bits.asked();
    return outcome;
  };
  Explorer explorer(subject, options.share);
  std::vector<std::size_t> roots;
  for (std::size_t context = 0; context < targets.size(); ++context)
    roots.push_back(explorer.root(static_cast<std::uint32_t>(context)));
  AuditReport report = report_on(cell, explorer.nodes(), roots, targets, options);
  report.rounds_run = explorer.runs();
  return report;
}

// Every outcome of every random choice of a block's round in turn. A choice's shares of the word space are found by bisection of
// what the shipped code draws with: `accepts` for decisions, Pickable::pick for tokens.
class EveryChoice final : public decode::ChoiceSource {
 public:
  explicit EveryChoice(int vocab) : columns_(kColumnsPerToken * static_cast<std::size_t>(vocab)) {}

  Token pick(Use, int, int, const verify::Pickable& distribution) override {
    if (at_ == made_.size()) {
      Choice choice;
      for (std::size_t i = 0; i < columns_; ++i) add_pieces(distribution, column(i, columns_), choice);
      made_.push_back(std::move(choice));
    }
    return made_[at_++].option().first;
  }
  bool accept(int, verify::Odds odds) override {
    if (at_ == made_.size()) {
      std::uint64_t low = 0;  // of the uniforms m / 2^53, those below `low` pass and those from `high` on do not
      std::uint64_t high = verify::kAcceptAlways;
      while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (verify::accepts(rng::to_unit(middle << 11), odds))
          low = middle + 1;
        else
          high = middle;
      }
      Choice choice;
      choice.add(1, uint128{low} << 11);
      choice.add(0, uint128{verify::kAcceptAlways - low} << 11);
      made_.push_back(std::move(choice));
    }
    return made_[at_++].option().first == 1;
  }

  // Of the round just played.
  [[nodiscard]] long double probability() const {
    long double product = 1.0L;
    for (const Choice& choice : made_) product *= share(choice.option().second);
    return product;
  }
  // On to the next round; false after the last.
  bool advance() {
    SPECSIM_CHECK(at_ == made_.size(), "{} choices asked for of {} made", at_, made_.size());
    at_ = 0;
    while (!made_.empty() && ++made_.back().at == made_.back().options.size()) made_.pop_back();
    return !made_.empty();
  }

 private:
  // Tables are split in a column for each token, running sums anywhere: more columns than tokens, and bisection in each.
  static constexpr std::size_t kColumnsPerToken = 4;
  struct Choice {
    std::vector<std::pair<Token, uint128>> options;
    std::size_t at = 0;
    [[nodiscard]] const std::pair<Token, uint128>& option() const { return options[at]; }
    void add(Token token, uint128 random_bits) {
      if (random_bits == 0) return;
      for (auto& [own, sum] : options)
        if (own == token) {
          sum += random_bits;
          return;
        }
      options.emplace_back(token, random_bits);
    }
  };

  void add_pieces(const verify::Pickable& distribution, const Piece& piece, Choice& choice) const {
    const Token first = distribution.pick(piece.first);
    const Token last = distribution.pick(piece.last);
    const std::uint64_t third = (piece.last - piece.first) / 3;
    if (first == last && distribution.pick(piece.first + third) == first && distribution.pick(piece.first + 2 * third) == first) {
      choice.add(first, piece.size());
      return;
    }
    const std::uint64_t middle = piece.first + (piece.last - piece.first) / 2;
    add_pieces(distribution, {piece.first, middle}, choice);
    add_pieces(distribution, {middle + 1, piece.last}, choice);
  }

  std::size_t columns_;
  std::vector<Choice> made_;
  std::size_t at_ = 0;
};

// Where a round of a block starts: a context, and the text where the drafter reads it.
struct BlockStart {
  std::uint32_t context = 0;
  std::vector<Token> text;          // emitted so far
  std::vector<std::size_t> rounds;  // where a drafter remembers: how long it was before each round
  bool operator<(const BlockStart& other) const {
    return std::tie(context, text, rounds) < std::tie(other.context, other.text, other.rounds);
  }
};

AuditReport audit_block(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options) {
  check_size(cell);
  decode::PreparationPlan plan = spec::plan_of(cell);
  plan.block_rule = &rule;
  std::vector<std::vector<double>> targets;
  const decode::Prepared prepared = decode::prepare(
      plan, [&](int, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) {
        if (depth == 0) targets.emplace_back(distributions.target.begin(), distributions.target.end());
      });
  const families::ContextProcess& process = *cell.contexts->process;
  const bool reads_text = cell.block()->drafter->shape().reads_text;
  const bool joint = cell.verifier().demands.joint;
  const std::size_t tokens = static_cast<std::size_t>(cell.draft_length()) + 1;

  std::map<BlockStart, std::uint32_t> known;
  std::vector<BlockStart> starts;
  const auto index_of = [&](BlockStart start) {
    const auto [at, fresh] = known.try_emplace(start, static_cast<std::uint32_t>(starts.size()));
    if (fresh) starts.push_back(std::move(start));
    return at->second;
  };
  std::vector<std::shared_ptr<const draft::BlockDrafter::Memory>> memories;  // [start]
  for (std::uint32_t context = 0; context < targets.size(); ++context) {
    index_of({context, {}, {}});
    memories.push_back(cell.block()->drafter->start());
  }

  decode::BlockRound round(*prepared.blocks, process, spec::draw_key(cell), *cell.block()->drafter, plan.policy);
  std::vector<Node> nodes;
  std::vector<std::size_t> roots;
  std::uint64_t runs = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const BlockStart start = starts[i];
    roots.push_back(i);
    Node& node = nodes.emplace_back();
    if (start.text.size() >= tokens) continue;  // beyond the joint distribution
    std::vector<Token> text(process.prompt().begin(), process.prompt().end());
    text.insert(text.end(), start.text.begin(), start.text.end());
    const int longest = cell.policy() != nullptr ? cell.policy()->part->start().length : cell.draft_length();
    std::map<std::tuple<std::vector<Token>, std::uint32_t, bool>, long double> ends;
    EveryChoice choices(cell.vocab);
    std::shared_ptr<draft::BlockDrafter::Memory> memory;
    do {
      if (memories[i] != nullptr) memory = memories[i]->copy();
      const decode::BlockRound::Outcome& outcome = round.play(rule, {0, start.context, 0, text, longest, memory.get()}, choices);
      ends[{outcome.emitted, outcome.next_context, outcome.whole}] += choices.probability();
      if (++runs > kAuditMaxBlockRounds)
        throw BadInput(cell.places.drafter,
                       fmt::format("a block has more than {} outcomes, allowed in an audit: fewer nodes or a smaller vocabulary",
                                   kAuditMaxBlockRounds));
    } while (choices.advance());
    for (const auto& [end, probability] : ends) {
      const auto& [emitted, context, whole] = end;
      BlockStart next{context, {}, {}};
      if (reads_text) {
        next.text = start.text;
        next.text.insert(next.text.end(), emitted.begin(), emitted.end());
        if (next.text.size() > tokens) next.text.resize(tokens);
      }
      if (memory != nullptr) {
        next.rounds = start.rounds;
        next.rounds.push_back(start.text.size());
      }
      const auto accepted = static_cast<std::uint32_t>(emitted.size()) - 1;
      const std::uint32_t judged = joint ? 0 : accepted + (whole ? 0U : 1U);
      node.ends.push_back({emitted, index_of(std::move(next)), accepted, judged, probability});
      memories.resize(starts.size(), memory);  // a block is chosen before anything is drawn: the same whatever came out
    }
  }
  AuditReport report = report_on(cell, nodes, roots, targets, options);
  report.rounds_run = runs;
  return report;
}

}  // namespace

AuditReport audit_cell(const spec::Cell& cell, const AuditOptions& options) {
  return cell.block() != nullptr ? audit_block(cell, *cell.block()->verifier, options)
                                 : audit_positions(cell, *cell.chain()->verifier, {}, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options) {
  return audit_block(cell, rule, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options) {
  return audit_positions(cell, rule, {}, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                       const AuditOptions& options) {
  return audit_positions(cell, rule, loop, options);
}

std::vector<double> implied_distribution(std::size_t size, const std::function<Token(std::uint64_t)>& pick) {
  std::vector<uint128> random_bits(size, 0);
  std::vector<std::uint64_t> hints;
  for (const Piece& piece : pieces_of(size, pick, hints)) {
    const Token token = pick(piece.first);
    SPECSIM_CHECK(token < size, "token {} of {}", token, size);
    random_bits[token] += piece.size();
  }
  std::vector<double> distribution;
  for (const uint128 count : random_bits) distribution.push_back(static_cast<double>(share(count)));
  return distribution;
}

std::string to_text(const AuditReport& report) {
  const AuditStart& first = report.starts.front();
  std::string text;
  const auto line = [&](const std::string& label, const std::string& value) {
    text += fmt::format("{:<24}{}\n", label + ":", value);
  };
  const auto real = [](double x) { return std::isnan(x) ? std::string("none") : fmt::format("{:.12f}", x); };
  line("verifier", report.verifier);
  line("vocab", fmt::format("{}", report.vocab));
  line("draft_length", fmt::format("{}", report.draft_length));
  line("contexts", fmt::format("{}", report.starts.size()));
  line("rounds run", fmt::format("{}", report.rounds_run));
  if (report.starts.size() > 1) text += "\na round that starts in context 0, where sequences start:\n";
  line("alpha", real(first.alpha));
  line("expected_accepted", real(first.expected_accepted));
  line("expected_emitted", real(first.expected_emitted));
  text += "\nlaw of accepted\n";
  for (std::size_t j = 0; j < first.accepted_distribution.size(); ++j)
    text += fmt::format("  {:>6}  {:.12f}\n", j, first.accepted_distribution[j]);
  text += fmt::format("\nfirst token\n  {:>6}  {:>14}  {:>14}  {:>11}\n", "token", "target", "output", "difference");
  for (std::size_t x = 0; x < first.target.size(); ++x)
    text += fmt::format("  {:>6}  {:.12f}  {:.12f}  {:>+11.2e}\n", x, first.target[x], first.first_token[x],
                        first.first_token[x] - first.target[x]);
  if (report.starts.size() > 1) {
    text += fmt::format("\nby the context that a round starts in\n  {:>7}  {:>14}  {:>17}  {:>16}  {:>18}\n", "context", "alpha",
                        "expected_accepted", "expected_emitted", "largest_difference");
    for (const AuditStart& start : report.starts)
      text += fmt::format("  {:>7}  {:>14}  {:>17}  {:>16}  {:>18.2e}\n", start.context, real(start.alpha),
                          real(start.expected_accepted), real(start.expected_emitted), start.largest_difference);
  }
  text += fmt::format("\njoint distribution of the first {} token{}{}\n", report.draft_length + 1,
                      report.draft_length == 0 ? "" : "s", report.starts.size() > 1 ? ", worst start context" : "");
  line("largest_difference", fmt::format("{:.12e}", report.largest_difference));
  line("total variation", fmt::format("{:.12e}", report.joint_variation));
  line("of the first token", fmt::format("{:.12e}", report.first_token_variation));
  line("impossible texts", fmt::format("{:.12e}", report.impossible));
  if (report.lossless())
    text += fmt::format("verdict: lossless to {:.0e}\n", kAuditTolerance);
  else if (report.largest_difference <= kAuditTolerance)
    text += fmt::format("verdict: not lossless: emits what the target cannot, with probability {:.3e}\n", report.impossible);
  else
    text += fmt::format("verdict: not lossless: total variation {:.12f} of the first token, {:.12f} of the first {}\n",
                        report.first_token_variation, report.joint_variation, report.draft_length + 1);
  return text;
}

}  // namespace specsim::audit
