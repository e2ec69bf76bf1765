#include "sim/experiments/spec/read_acceptance_table.h"

#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/config/fields.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace specsim::spec {

namespace {

struct LengthRates {
  std::vector<double> rates;  // [depth]: P(accepted, given that the one before is), down to the longest draft length
  std::string from;           // their source, for messages
};

using config::Value;

std::vector<Value> items_of(const Value& value) { return value.is_list() ? value.items : std::vector<Value>{value}; }

// The rate of each of `positions` further positions, given that the first is reached with `reached` and they add `gain` tokens.
double rate_for(double gain, double reached, int positions) {
  const auto adds_less = [&](double rate) {
    double sum = 0.0;
    double share = reached;
    for (int i = 0; i < positions; ++i) sum += share *= rate;
    return sum < gain;
  };
  return bisect(0.0, 1.0, adds_less).middle();
}

// `lengths`: mean tokens per round including the target's own (vLLM's mean acceptance length, SGLang's accept length, tau), or
// without it if `drafted_only` (papers' accepted length). `draft_lengths`: the draft length of each, increasing. From one draft
// length to the next the mean grows by the rates of the positions in between. These positions are assumed to have equal rates,
// given that they are reached. Messages call `lengths` by `key`. Throws BadInput with the place of the error: a length that is
// impossible at its draft length, or one that grows by more than the earlier positions allow.
LengthRates rates_of_lengths(const Value& lengths, const std::string& key, const Value& draft_lengths, bool drafted_only) {
  const std::vector<Value> means = items_of(lengths);
  const std::vector<Value> drafted = items_of(draft_lengths);
  if (means.empty() || means.size() != drafted.size())
    throw BadInput(draft_lengths.where, fmt::format("draft_length has {} entries and {} has {}, allowed: one for each",
                                                    drafted.size(), key, means.size()));
  const config::Interval allowed = config::between(1, kMaxDraftLength);
  const double own = drafted_only ? 0.0 : 1.0;  // the target's token
  LengthRates result;
  std::vector<std::string> from;
  int before = 0;
  double accepted_before = 0.0;
  double reached = 1.0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const std::optional<double> length = config::as_number(drafted[i]);
    if (!length || !allowed.contains(*length) || *length != std::floor(*length) || *length <= before)
      throw BadInput(drafted[i].where,
                     fmt::format("draft_length is {}, allowed: an integer in [1, {}]{}", config::description_of_found(drafted[i]),
                                 kMaxDraftLength, before > 0 ? fmt::format(" above the one before, {}", before) : ""));
    const std::optional<double> mean = config::as_number(means[i]);
    if (!mean || !config::between(own, *length + own).contains(*mean))
      throw BadInput(means[i].where, fmt::format("{} is {}, allowed at draft length {}: a number in [{}, {}] (the target's own "
                                                 "token is {})",
                                                 key, config::description_of_found(means[i]), *length, own, *length + own,
                                                 drafted_only ? "not counted" : "counted"));
    const int positions = static_cast<int>(*length) - before;
    const double gain = *mean - own - accepted_before;
    constexpr double kRounding = 0.005;  // figures are printed with two digits
    if (gain < -kRounding || gain > reached * positions + kRounding)
      throw BadInput(means[i].where,
                     fmt::format("{} {} at draft length {} follows {:g} at {}, allowed: {:g} to {:.4g}, since position {} is "
                                 "accepted in a share of {:.4g}",
                                 key, config::description_of_found(means[i]), *length, accepted_before + own, before,
                                 accepted_before + own, accepted_before + own + reached * positions, before, reached));
    const double rate = reached > 0.0 ? rate_for(gain, reached, positions) : 0.0;
    for (int position = 0; position < positions; ++position) {
      result.rates.push_back(rate);
      reached *= rate;
    }
    before = static_cast<int>(*length);
    accepted_before = *mean - own;
    from.push_back(fmt::format("{:g} at draft length {}", *mean, before));
  }
  result.from = fmt::format("from mean tokens per round, with the target's own token {}: {}{}",
                            drafted_only ? "not counted" : "counted", fmt::join(from, ", "),
                            result.rates.size() > means.size() ? "; depths in between are assumed to have equal rates" : "");
  return result;
}

using config::Value;

// The meaning of a table's numbers.
enum class Form {
  by_rank,   // each rank alone, given that the parent is accepted
  top_k,     // the first ranks together
  rates,     // P(position reached), by position
  lengths,   // mean tokens per round, including the target's own
  accepted,  // the same without the target's token
  contexts   // one of these for each context
};

struct FormKey {
  const char* key;
  Form form;
  const char* number;  // the term for one of its numbers in messages
};
constexpr std::array kForms = {FormKey{"acceptance", Form::by_rank, "acceptance"},
                               FormKey{"top_k", Form::top_k, "top_k"},
                               FormKey{"rates", Form::rates, "rate"},
                               FormKey{"mean_acceptance_length", Form::lengths, "mean_acceptance_length"},
                               FormKey{"mean_accepted", Form::accepted, "mean_accepted"},
                               FormKey{"by_context", Form::contexts, "by_context"}};
constexpr const char* kFormNames = "acceptance, top_k, rates, mean_acceptance_length, mean_accepted and by_context";

const config::Fields<AcceptanceTable>& table_fields() {
  using T = AcceptanceTable;
  using config::elsewhere;
  static const config::Fields<T> fields = {
      {"acceptance", elsewhere<Value>,
       "by depth, and by rank if it is a table: each rank alone, given that its parent is accepted"},
      {"top_k", elsewhere<Value>, "by depth and rank: the likeliest 1, 2, ... tokens together"},
      {"rates", elsewhere<Value>, "by depth: P(the position is reached)"},
      {"mean_acceptance_length", elsewhere<Value>,
       "mean tokens per round, the target's own included (SGLang's accept length), at draft_length; for several draft lengths a "
       "list"},
      {"mean_accepted", elsewhere<Value>,
       "mean drafted tokens that a round accepts, the target's own not included, at draft_length; for several draft lengths a "
       "list"},
      {"by_context", elsewhere<Value>, "a list of maps: {context: TOKENS} with one of these, a number per position"},
      {"draft_length", elsewhere<Value>, "draft length of mean_acceptance_length or mean_accepted, or a list of them"},
      {"selection", elsewhere<std::string>,
       "how drafts were chosen, as drafter chain's: argmax, the likeliest tokens, or sampled, drawn ones",
       config::one_of({"sampled", "argmax"})},
      {"depths", elsewhere<std::int64_t>, "depth down to which the last row holds", config::between(1, kMaxDraftLength)},
      {"draft", &T::draft, "the draft: a model, or none"},
      {"target", &T::target, "the target: a model"},
      {"tensor_parallel", &T::tensor_parallel, "GPUs that target and draft are split over", config::between(1, 64)},
      {"one_pass", &T::one_pass, "one draft pass guesses all positions"},
      {"pair", elsewhere<std::string>, "target and draft"},
      {"text", elsewhere<std::string>, "what was decoded"},
      {"temperature", &T::temperature, "temperature of decoding; unknown if the source does not state it"},
      {"note", &T::note, "how to interpret the figures"},
      {"source", &T::source, "publication of the figures"},
      {"unverified", &T::unverified, "one report, not repeated"},
      {"aliases", elsewhere<std::vector<std::string>>, "other names of a built-in table"}};
  return fields;
}

// Reads 0.79, or 79% as in many tables.
double probability(const Value& value, const char* what) {
  std::optional<double> x = config::as_number(value);
  if (!x && value.is_scalar() && !value.quoted && value.text.ends_with('%')) {
    const std::size_t end = value.text.find_last_not_of("% ");
    x = config::as_number(value.text.substr(0, end == std::string::npos ? 0 : end + 1));
    if (x) x = *x / 100.0;
  }
  if (!x || !config::between(0, 1).contains(*x))
    throw BadInput(value.where, fmt::format("{} is {}, allowed: a number in [0, 1], or a percentage, as 81%", what,
                                            config::description_of_found(value)));
  return *x;
}

// The one key that holds the numbers.
const FormKey& form_of(const config::Arguments& file) {
  std::vector<std::string> given;
  const FormKey* found = nullptr;
  for (const FormKey& one : kForms) {
    if (!file.has(one.key)) continue;
    given.emplace_back(one.key);
    found = &one;
  }
  if (given.size() != 1)
    throw BadInput(file.where(),
                   fmt::format("a table of acceptance has {}, allowed: one of {}",
                               given.empty() ? "no numbers" : fmt::format("{}", fmt::join(given, " and ")), kFormNames));
  return *found;
}

// The numbers of one depth as given.
std::vector<double> row_of(const Value& row, const FormKey& form, std::size_t depth) {
  std::vector<double> own;
  if (row.kind == config::Kind::list && form.form != Form::rates)
    for (const Value& rank : row.items) own.push_back(probability(rank, form.number));
  else
    own.push_back(probability(row, form.number));
  if (own.empty())
    throw BadInput(row.where, fmt::format("acceptance at depth {} is an empty list, allowed: a number for each rank", depth));
  return own;
}

// Numbers for the likeliest 1, 2, ... tokens together: each rank's own share is the increase.
void take_apart(std::vector<double>& ranks, const Value& row) {
  for (std::size_t rank = ranks.size() - 1; rank > 0; --rank) {
    if (ranks[rank] < ranks[rank - 1])
      throw BadInput(row.items[rank].where, fmt::format("top_k {:g} follows {:g}, allowed: shares that do not fall, since the "
                                                        "likeliest {} tokens hold the likeliest {}",
                                                        ranks[rank], ranks[rank - 1], rank + 1, rank));
    ranks[rank] -= ranks[rank - 1];
  }
}

// How the drafts were chosen, and the source of that information.
void add_selection(AcceptanceTable& made, const config::Arguments& file, const FormKey& form) {
  if (file.has("selection") && file.text("selection").empty())
    throw BadInput(file.where("selection"), "selection is \"\", allowed: argmax, sampled");
  if (file.has("selection")) {
    made.selection = file.text("selection") == "argmax" ? Selection::argmax : Selection::sampled;
    made.selection_from = "as the table states";
    if (form.form == Form::top_k && made.selection == Selection::sampled)
      throw BadInput(
          file.where("selection"),
          "selection is sampled with top_k, which describes the draft's likeliest tokens, allowed: argmax; or acceptance, "
          "for drawn siblings");
    return;
  }
  if (form.form == Form::by_rank) return;
  made.selection = Selection::argmax;
  made.selection_from = form.form == Form::top_k ? "as top_k implies" : "assumed, as vLLM, SGLang and llama.cpp draft by default";
}

// "PAIR on TEXT, temperature T", as far as the file has them.
std::string about(const config::Arguments& file) {
  std::string words = file.text("pair");
  const auto add = [&](const std::string& between, const std::string& what) {
    if (!what.empty()) words += (words.empty() ? "" : between) + what;
  };
  add(" on ", file.text("text"));
  const std::string& temperature = file.text("temperature");
  if (!temperature.empty()) add(", ", temperature == "unknown" ? "temperature not stated" : "temperature " + temperature);
  return words;
}

void add_rows(AcceptanceTable& made, const Value& table, const FormKey& form) {
  constexpr std::size_t kMostRanks = 64;
  if (table.items.size() > static_cast<std::size_t>(kMaxDraftLength))
    throw BadInput(table.where, fmt::format("{} has {} entries, allowed: 1 to {}, one for each depth", form.key,
                                            table.items.size(), kMaxDraftLength));
  double before = 1.0;
  for (const Value& row : table.items) {
    std::vector<double>& own = made.acceptance.emplace_back(row_of(row, form, made.acceptance.size() + 1));
    if (form.form == Form::top_k && row.kind == config::Kind::list) take_apart(own, row);
    const double sum = std::accumulate(own.begin(), own.end(), 0.0);
    if (own.size() > kMostRanks || sum > 1.0 + 1e-9)
      throw BadInput(row.where, fmt::format("acceptance at depth {} has {} ranks that sum to {:.9g}, allowed: 1 to {} that sum "
                                            "to at most 1",
                                            made.acceptance.size(), own.size(), sum, kMostRanks));
    if (form.form != Form::rates) continue;
    if (own[0] > before)
      throw BadInput(row.where, fmt::format("rate {} follows {}, allowed: rates that do not rise from position to position",
                                            own[0], before));
    const double reached = std::exchange(before, own[0]);
    own[0] = reached > 0.0 ? own[0] / reached : 0.0;
  }
}

void add_lengths(AcceptanceTable& made, const config::Arguments& file, const FormKey& form) {
  const LengthRates found =
      rates_of_lengths(file.value(form.key), form.key, file.value("draft_length"), form.form == Form::accepted);
  for (const double rate : found.rates) made.acceptance.push_back({rate});
  made.derived = found.from;
  made.note += (made.note.empty() ? "" : "; ") + found.from;
}

// The rates of each context, each read as a table of its own.
void add_contexts(AcceptanceTable& made, const Value& list) {
  const auto refuse = [](const Location& where, const std::string& what) {
    throw BadInput(where, what + ", allowed: two or more maps {context: TOKENS, rates: [...]} whose contexts rise");
  };
  if (!list.is_list() || list.items.size() < 2) refuse(list.where, "by_context is " + config::description_of_found(list));
  for (const Value& item : list.items) {
    const Value* const context = item.is_map() ? item.find("context") : nullptr;
    if (context == nullptr) refuse(item.where, "by_context has an entry without context");
    const std::optional<double> tokens = config::as_number(*context);
    if (!tokens || !config::between(0, 1e9).contains(*tokens))
      refuse(context->where, fmt::format("context is {}", config::description_of_found(*context)));
    if (!made.by_context.empty() && *tokens <= made.by_context.back().context)
      refuse(context->where, fmt::format("context {:g} follows {:g}", *tokens, made.by_context.back().context));
    Value rest = item;
    std::erase_if(rest.fields, [](const auto& field) { return field.key == "context"; });
    const AcceptanceTable own = read_acceptance_table(rest);
    for (const std::vector<double>& row : own.acceptance)
      if (row.size() > 1) refuse(item.where, "by_context has several ranks at one position");
    made.by_context.push_back({*tokens, own.of_chain()});
    if (made.by_context.size() == 1) made.acceptance = own.acceptance;
  }
}

}  // namespace

std::vector<double> AcceptanceTable::of_chain() const {
  std::vector<double> chain;
  for (const std::vector<double>& row : acceptance) chain.push_back(row.front());
  return chain;
}

std::string AcceptanceTable::rising() const {
  constexpr double kNoise = 0.01;  // measured rows may rise by a ten thousandth in their last ranks
  for (std::size_t depth = 0; depth < acceptance.size(); ++depth)
    for (std::size_t rank = 1; rank < acceptance[depth].size(); ++rank)
      if (acceptance[depth][rank] > acceptance[depth][rank - 1] + kNoise)
        return fmt::format(
            "acceptance at depth {} rises from {:g} at rank {} to {:g} at rank {}: is it the share of the first ranks together, "
            "as "
            "accuracies of the likeliest k tokens are (top_k: [[...]] takes those)? Each number must be the share of its own "
            "rank alone",
            depth + 1, acceptance[depth][rank - 1], rank, acceptance[depth][rank], rank + 1);
  return "";
}

std::string AcceptanceTable::origin() const {
  std::string words = about;
  if (!source.empty()) words += words.empty() ? source : fmt::format(" ({})", source);
  if (unverified) words += "; one report, not repeated";
  return words;
}

AcceptanceTable read_acceptance_table(const Value& value, Contexts contexts) {
  Diagnostics diagnostics;
  const config::Arguments file =
      config::read_arguments(value.is_map() ? value : config::map({{kForms.front().key, value}}, value.where), table_fields(), {},
                             "a table of acceptance", diagnostics);
  diagnostics.throw_if_any();
  const FormKey& form = form_of(file);
  const Value& table = file.value(form.key);
  const bool by_context = form.form == Form::contexts;
  if (by_context && contexts == Contexts::one)
    throw BadInput(table.where,
                   "by_context states the acceptance of several contexts, allowed here: that of one; plan and serve "
                   "take several");
  if (file.has("draft") && file.text("draft").empty())
    throw BadInput(file.where("draft"), "draft is \"\", allowed: the name of a model, or none");
  if (file.given("tensor_parallel") && !file.has("target"))
    throw BadInput(file.where("tensor_parallel"), "tensor_parallel without a target, allowed: with the one that was cut");
  if (file.has("depths") && form.form != Form::by_rank && form.form != Form::top_k)
    throw BadInput(file.where("depths"),
                   fmt::format("depths with {}, allowed: with acceptance or top_k, whose last row is repeated", form.key));
  const bool of_lengths = form.form == Form::lengths || form.form == Form::accepted;
  if (of_lengths != file.has("draft_length"))
    throw BadInput(of_lengths ? table.where : file.where("draft_length"),
                   of_lengths
                       ? fmt::format("{} without draft_length, allowed: with the draft length that it was measured at", form.key)
                       : fmt::format("draft_length with {}, allowed: with mean_acceptance_length or mean_accepted", form.key));
  if (!of_lengths && !by_context && (!table.is_list() || table.items.empty()))
    throw BadInput(table.where, fmt::format("{} is {}, allowed: a list with an entry for each depth, of a number or a list of "
                                            "numbers by rank",
                                            form.key, config::description_of_found(table)));
  AcceptanceTable made = table_fields().read(file);
  made.about = about(file);
  made.draft_where = file.where("draft");
  made.target_where = file.where("target");
  made.temperature_where = file.where("temperature");
  made.where = table.where;
  add_selection(made, file, form);
  if (by_context)
    add_contexts(made, table);
  else if (of_lengths)
    add_lengths(made, file, form);
  else
    add_rows(made, table, form);
  if (file.has("depths")) {
    const auto depths = static_cast<std::size_t>(file.integer("depths"));
    if (depths < made.acceptance.size())
      throw BadInput(file.where("depths"),
                     fmt::format("depths is {}, allowed: an integer in [{}, {}], as many as there are rows or more", depths,
                                 made.acceptance.size(), kMaxDraftLength));
    const std::vector<double> last = made.acceptance.back();
    made.acceptance.resize(depths, last);
  }
  return made;
}

AcceptanceTable named_acceptance_table(const std::string& name, const Location& option, Contexts contexts) {
  Diagnostics diagnostics;
  std::error_code ignored;
  // A path of a file may have any extension; a name without such a file is looked up in configs/acceptance.
  const Value value = std::filesystem::exists(name, ignored)
                          ? config::parse_file(name, diagnostics)
                          : cost::resolve_preset(cost::PresetKind::acceptance, config::scalar(name, option), diagnostics);
  diagnostics.throw_if_any();
  return read_acceptance_table(value, contexts);
}

}  // namespace specsim::spec
