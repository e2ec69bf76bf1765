#include "sim/answers/choose/question.h"
#include "sim/answers/plan/stated_acceptance.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/model/model_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::choose {

namespace {

cost::ModelShape shape_of(const std::string& name, const Location& where) {
  Diagnostics diagnostics;
  cost::ModelShape shape = cost::read_model(cost::PresetChoice{name, where, {}}, "model", diagnostics);
  diagnostics.throw_if_any();
  return shape;
}

std::string own_name(const std::string& model) { return cost::own_name(cost::PresetKind::model, model); }

// A table of configs/acceptance, of drafts for one target or for any.
struct Table {
  std::string name;
  std::string draft;   // its model's own name; "none" for n-grams
  std::string target;  // its model's own name; "": unknown
  std::string text;    // what was decoded; "": not stated
  bool unverified = false;
  plan::AcceptanceCurve curve;  // of the stated positions
};

// The text that a table's file names.
std::string text_in(const std::string& file) {
  const std::string key = "\ntext: ";
  const std::size_t at = file.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return file.substr(begin, file.find('\n', begin) - begin);
}

std::vector<Table> tables(int longest) {
  std::vector<Table> list;
  for (const cost::Preset& preset : cost::presets()) {
    if (preset.kind != cost::PresetKind::acceptance) continue;
    const spec::AcceptanceTable table = spec::named_acceptance_table(preset.name, {preset.path, 0, 0});
    // A draft in braces is another model than the preset.
    if (table.draft.find('{') != std::string::npos) continue;
    const int stated = std::min(longest, static_cast<int>(table.of_chain().size()));
    list.push_back({preset.name, own_name(table.draft), own_name(table.target), text_in(std::string(preset.text)),
                    table.unverified, plan::table_acceptance(preset.name, {preset.path, 0, 0}, stated)});
  }
  return list;
}

// By draft length: how much the logarithm of tokens per round differs between the tables of one draft and target, which are of
// other texts or temperatures. The standard deviation within these groups, of all groups together. Beyond them it stays.
std::vector<double> errors_between_texts(const std::vector<Table>& all, int longest) {
  std::vector<double> errors(1, 0.0);
  for (int length = 1; length <= longest; ++length) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> groups;
    for (const Table& one : all)
      if (one.curve.longest() >= length)
        groups[{one.draft, one.target}].push_back(std::log(one.curve.tokens_per_round[static_cast<std::size_t>(length)]));
    double squares = 0.0;
    double freedom = 0.0;
    for (const auto& [unused, logs] : groups) {
      const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
      for (const double one : logs) squares += (one - mean) * (one - mean);
      freedom += static_cast<double>(logs.size()) - 1.0;
    }
    errors.push_back(freedom > 0.0 ? std::sqrt(squares / freedom) : errors.back());
  }
  return errors;
}

// Whether the table's name has the kind of text in it.
bool is_on(const Table& table, const std::string& text) { return table.name.find(text) != std::string::npos; }

// The table of that draft: of this target before one of any, and on the wanted text before another.
const Table* table_for(const std::vector<Table>& all, const std::string& draft, const std::string& target,
                       const std::string& text) {
  const Table* best = nullptr;
  int most = -1;
  for (const Table& one : all) {
    if (one.draft != draft || (one.target != target && (draft != "none" || !one.target.empty()))) continue;
    const int fit = 2 * static_cast<int>(one.target == target) + static_cast<int>(is_on(one, text));
    if (fit <= most) continue;
    most = fit;
    best = &one;
  }
  return best;
}

// Whether a server can draft for the target with it, as far as the two files say.
bool fits(const cost::ModelShape& target, const cost::ModelShape& draft) {
  if (draft.name == target.name) return false;
  if (draft.on_target() || draft.reads_target_cache())
    return draft.name.find(target.name) != std::string::npos && cost::made_for_another(target, draft).empty();
  constexpr double kSmall = 0.25;  // of the target's parameters
  return draft.drafter.empty() && draft.vocab == target.vocab && draft.total_parameters() <= kSmall * target.total_parameters();
}

}  // namespace

DraftChoices draft_choices(const DraftQuestion& question) {
  const Location at_draft{"--draft", 0, 0};
  constexpr std::array<std::string_view, 4> kTexts = {"chat", "code", "extraction", "maths"};
  if (std::find(kTexts.begin(), kTexts.end(), question.text) == kTexts.end())
    throw BadInput({"--text", 0, 0},
                   fmt::format("{}, allowed: {}", config::quote_for_message(question.text), fmt::join(kTexts, ", ")));
  const cost::ModelShape target = shape_of(question.target, {"--target", 0, 0});
  const std::string own_target = own_name(question.target);
  const std::vector<Table> all = tables(question.longest);
  const std::vector<double> errors = errors_between_texts(all, question.longest);
  const bool every = std::find(question.named.begin(), question.named.end(), "all") != question.named.end();
  DraftChoices choices;
  // Takes the draft where its acceptance is known. `model`: as cost.draft takes it. `named`: the user asks for it. Otherwise
  // n-grams need a table on the wanted text, because they repeat the text: one of code edits overstates them in a chat.
  const auto take = [&](const std::string& name, const std::string& label, const std::string& model, bool named) {
    auto alpha = question.alpha.find(name);
    const Table* table = table_for(all, own_name(model), own_target, question.text);
    if (!named && model == "none" && table != nullptr && !is_on(*table, question.text)) table = nullptr;
    if (alpha == question.alpha.end() && table == nullptr) alpha = question.alpha.find("");
    if (alpha != question.alpha.end()) {
      choices.drafts.push_back({label,
                                model,
                                fmt::format("alpha {:g}", alpha->second),
                                true,
                                plan::constant_acceptance(alpha->second, question.longest),
                                "",
                                false,
                                false,
                                {}});
      return true;
    }
    if (table == nullptr) return false;
    choices.drafts.push_back(
        {label, model, table->name, true, table->curve, table->text, !is_on(*table, question.text), table->unverified, errors});
    return true;
  };
  const auto take_model = [&](const std::string& name, bool named) {
    shape_of(name, at_draft);
    return take(name, name, name, named);
  };
  if (every) {
    choices.drafts.push_back({"no speculation", "none", "", false, plan::constant_acceptance(0.0, 1), "", false, false, {}});
    if (!take("ngram", "n-gram", "none", false)) choices.left_out.emplace_back("ngram");
    for (const cost::Preset& preset : cost::presets()) {
      if (preset.kind != cost::PresetKind::model) continue;
      const cost::ModelShape shape = shape_of(preset.name, {preset.path, 0, 0});
      const bool paired = std::any_of(all.begin(), all.end(),
                                      [&](const Table& one) { return one.draft == preset.name && one.target == own_target; });
      if (!paired && !fits(target, shape)) continue;
      if (!take_model(preset.name, false)) choices.left_out.emplace_back(preset.name);
    }
  }
  for (const std::string& name : question.named) {
    if (name == "all") continue;
    if (name == "none") {
      choices.drafts.push_back({"no speculation", "none", "", false, plan::constant_acceptance(0.0, 1), "", false, false, {}});
      continue;
    }
    const bool known = name == "ngram" ? take("ngram", "n-gram", "none", true) : take_model(name, true);
    if (!known)
      throw BadInput(at_draft,
                     fmt::format("no published acceptance of {} for {}, allowed: --alpha {}=0.7", name, question.target, name));
  }
  const auto by_label = [](const DraftChoice& a, const DraftChoice& b) { return a.label == b.label; };
  for (auto one = choices.drafts.begin(); one != choices.drafts.end(); ++one)
    choices.drafts.erase(
        std::remove_if(one + 1, choices.drafts.end(), [&](const DraftChoice& other) { return by_label(*one, other); }),
        choices.drafts.end());
  for (const auto& [name, unused] : question.alpha)
    if (!name.empty() && std::none_of(choices.drafts.begin(), choices.drafts.end(),
                                      [&, wanted = name == "ngram" ? std::string("n-gram") : name](const DraftChoice& one) {
                                        return one.label == wanted;
                                      }))
      throw BadInput({"--alpha", 0, 0},
                     fmt::format("of {}, which is not among the drafts to try, allowed: a name in --draft", name));
  return choices;
}

}  // namespace specsim::choose
