#include "sim/rounds/families/acceptance_record.h"

#include "sim/foundation/base/token.h"
#include "sim/foundation/config/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace specsim::families {

namespace {

constexpr double kRecordedSumTolerance = 1e-3;  // recorded figures are rounded

// A record form: an example of it, and the commands that take it.
struct FormText {
  const char* shape;
  const char* name;
  const char* takers;
};

FormText text_of(RecordForm form) {
  switch (form) {
    case RecordForm::accepted:
      return {"{\"draft_length\", \"accepted\": [...]}", "accepted prefixes by position", "specsim plan --trace and specsim fit"};
    case RecordForm::rounds:
      return {"{\"draft_length\", \"rounds\": [...]}", "accepted tokens by round", "specsim fit and specsim plan --trace"};
    case RecordForm::overlap:
      return {"{\"overlap\": [...]}", "acceptance probabilities by position, without depth",
              "specsim plan --trace, specsim fit and context process trace of specsim run"};
    case RecordForm::distributions:
      break;
  }
  return {"{\"target\": [DISTRIBUTION, ...], \"draft\": [DISTRIBUTION, ...]}", "distributions by position",
          "specsim fit and context process trace of specsim run"};
}

std::string shapes(const std::vector<RecordForm>& forms) {
  std::vector<std::string> list;
  for (const RecordForm form : forms) list.emplace_back(text_of(form).shape);
  return fmt::format("{}", fmt::join(list, ", or "));
}

std::optional<int> count_of(const config::Value* value, int most) {
  if (value == nullptr) return std::nullopt;
  const auto n = config::as_integer(*value);
  if (!n || *n < 0 || *n > most) return std::nullopt;
  return static_cast<int>(*n);
}

std::optional<std::string> read_probabilities(const config::Value& list, std::vector<double>& values) {
  for (const config::Value& item : list.items) {
    const auto x = config::as_number(item);
    if (!x || *x < 0.0 || *x > 1.0)
      return fmt::format("{}, allowed: probabilities in [0, 1]", config::description_of_found(item));
    values.push_back(*x);
  }
  return std::nullopt;
}

std::optional<std::string> read_accepted(const config::Value& line, AcceptanceRecord& record) {
  const config::Value* const length = line.find("draft_length");
  const std::optional<int> n = count_of(length, kMaxDraftLength);
  if (!n || *n < 1)
    return fmt::format("draft_length is {}, allowed: an integer in [1, {}]",
                       length == nullptr ? "missing" : config::description_of_found(*length), kMaxDraftLength);
  record.draft_length = *n;
  for (const config::Value& item : line.find("accepted")->items) {
    const std::optional<int> a = count_of(&item, *n);
    if (!a) return fmt::format("accepted holds {}, allowed: integers in [0, {}]", config::description_of_found(item), *n);
    record.accepted.push_back(*a);
  }
  return std::nullopt;
}

std::optional<std::string> read_rounds(const config::Value& line, AcceptanceRecord& record) {
  const std::optional<int> draft_length = count_of(line.find("draft_length"), kMaxDraftLength);
  const config::Value* const rounds = line.find("rounds");
  const config::Value* const drafted = line.find("drafted");
  if (line.find("tree") != nullptr) return "rounds of trees, allowed: rounds of chains, since only these have a process";
  if (!draft_length || *draft_length == 0 || rounds->items.empty())
    return fmt::format("no record of rounds, allowed: {{\"draft_length\": 1 to {}, \"rounds\": [accepted, ...]}}",
                       kMaxDraftLength);
  if (drafted != nullptr && drafted->items.size() != rounds->items.size())
    return fmt::format("{} rounds and {} entries of \"drafted\", allowed: equally many", rounds->items.size(),
                       drafted->items.size());
  record.draft_length = *draft_length;
  for (std::size_t i = 0; i < rounds->items.size(); ++i) {
    const std::optional<int> n = drafted != nullptr ? count_of(&drafted->items[i], *draft_length) : draft_length;
    const std::optional<int> accepted = n ? count_of(&rounds->items[i], *n) : std::nullopt;
    if (!accepted)
      return fmt::format("round {} accepted {}, allowed: an integer up to the number of drafted tokens", i + 1,
                         config::description_of_found(rounds->items[i]));
    record.accepted.push_back(*accepted);
    record.drafted.push_back(*n);
  }
  return std::nullopt;
}

// Rounds of one answer as other programs write them. Spec-Bench (evaluation/eval.py) and programs that use its form: tokens that
// each round emitted. vLLM with --per-request-spec-decode-metrics detailed (vllm-project/vllm#48915), and AIPerf's
// profile_export.jsonl, which copies it: tokens that each round accepted and drafted.
struct AnswerForm {
  const char* outer;  // key of the line, or ""; if it is "choices", key of its first choice
  const char* inner;  // key inside that, or ""
  const char* list;
  int per_round;  // tokens per round that the list counts and that are not draft tokens
};
constexpr std::array<AnswerForm, 5> kAnswerForms = {{{"choices", "", "accept_lengths", 1},
                                                     {"", "", "accept_lengths", 1},
                                                     {"metrics", "speculative_decoding", "per_step_accepted", 0},
                                                     {"choices", "speculative_decoding_stats", "per_step_accepted", 0},
                                                     {"spec_decode_acceptance", "", "per_step_accepted", 0}}};

// The list of rounds of such an answer. The record's draft length becomes the longest in the list, 0 if the list has none.
const config::Value* answer_rounds(const config::Value& line, AcceptanceRecord& record, std::optional<std::string>& mistake) {
  for (const AnswerForm& form : kAnswerForms) {
    const config::Value* at = &line;
    for (const char* const key : {form.outer, form.inner}) {
      if (at != nullptr && *key != '\0') at = at->find(key);
      if (at != nullptr && at->is_list()) at = at->items.empty() ? nullptr : &at->items.front();
    }
    const config::Value* const list = at == nullptr ? nullptr : at->find(form.list);
    if (list == nullptr || !list->is_list()) continue;
    record.form = RecordForm::rounds;
    const config::Value* const drafted = at->find("per_step_drafted");
    if (drafted != nullptr && drafted->items.size() != list->items.size())
      mistake = fmt::format("{} rounds and {} entries of \"per_step_drafted\", allowed: equally many", list->items.size(),
                            drafted->items.size());
    for (std::size_t i = 0; i < list->items.size() && !mistake; ++i) {
      const std::optional<int> counted = count_of(&list->items[i], kMaxDraftLength + form.per_round);
      const std::optional<int> length = drafted != nullptr ? count_of(&drafted->items[i], kMaxDraftLength) : std::nullopt;
      if (!counted || (drafted != nullptr && (!length || *length < *counted))) {
        mistake = fmt::format("round {} accepted {}, allowed: an integer up to the number of drafted tokens", i + 1,
                              config::description_of_found(list->items[i]));
      } else if (*counted >= form.per_round &&
                 (drafted == nullptr || *length > 0)) {  // an entry without emitted tokens is not a round
        record.accepted.push_back(*counted - form.per_round);
        if (length) record.drafted.push_back(*length);
        record.draft_length = std::max(record.draft_length, length.value_or(0));
      }
    }
    return list;
  }
  return nullptr;
}

std::optional<std::string> read_distributions(const config::Value& line, AcceptanceRecord& record) {
  const std::vector<config::Value>& targets = line.find("target")->items;
  const std::vector<config::Value>& drafts = line.find("draft")->items;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    RecordedPair pair;
    if (auto mistake = read_probabilities(targets[i], pair.target)) return mistake;
    if (auto mistake = read_probabilities(drafts[i], pair.draft)) return mistake;
    for (const std::vector<double>& distribution : {pair.target, pair.draft}) {
      double sum = 0.0;
      for (const double x : distribution) sum += x;
      if (distribution.size() != pair.target.size() || std::abs(sum - 1.0) > kRecordedSumTolerance)
        return fmt::format("a distribution of {} entries with sum {:.6g}, allowed: {} with sum 1", distribution.size(), sum,
                           pair.target.size());
    }
    record.positions.push_back(std::move(pair));
  }
  return std::nullopt;
}

// The form of a line; none if it is unclear.
std::optional<RecordForm> form_of(const config::Value& line) {
  const config::Value* const target = line.find("target");
  const config::Value* const draft = line.find("draft");
  std::vector<RecordForm> forms;
  if (line.find("accepted") != nullptr) forms.push_back(RecordForm::accepted);
  if (line.find("rounds") != nullptr) forms.push_back(RecordForm::rounds);
  if (line.find("overlap") != nullptr) forms.push_back(RecordForm::overlap);
  if (target != nullptr && draft != nullptr && target->items.size() == draft->items.size())
    forms.push_back(RecordForm::distributions);
  return forms.size() == 1 ? std::optional(forms[0]) : std::nullopt;
}

// The mistake in the line, or nothing.
std::optional<std::string> read_record(const config::Value& line, const std::vector<RecordForm>& taken,
                                       AcceptanceRecord& record) {
  std::optional<std::string> mistake;
  const bool answer = answer_rounds(line, record, mistake) != nullptr;
  const std::optional<RecordForm> form = answer ? std::optional(RecordForm::rounds) : form_of(line);
  if (!form) return fmt::format("no record of acceptance, allowed: {}", shapes(taken));
  record.form = *form;
  if (std::find(taken.begin(), taken.end(), *form) == taken.end())
    return fmt::format("{}, which {} take, allowed here: {}", text_of(*form).name, text_of(*form).takers, shapes(taken));
  if (*form == RecordForm::accepted) mistake = read_accepted(line, record);
  if (*form == RecordForm::rounds && !answer) mistake = read_rounds(line, record);
  if (*form == RecordForm::overlap) mistake = read_probabilities(*line.find("overlap"), record.overlap);
  if (*form == RecordForm::distributions) mistake = read_distributions(line, record);
  if (!mistake && record.accepted.empty() && record.overlap.empty() && record.positions.empty())
    return "no position in this request, allowed: at least one";
  return mistake;
}

}  // namespace

std::vector<AcceptanceRecord> read_acceptance_records(const std::string& path, const Location& named, const std::string& kind,
                                                      const std::vector<RecordForm>& taken, Diagnostics& diagnostics) {
  std::vector<AcceptanceRecord> records;
  const std::size_t before = diagnostics.list().size();
  const auto on_line = [&](const config::Value& line, const Location& where) {
    if (const config::Value* const own = line.find("kind"); !kind.empty() && (own == nullptr || own->text != kind)) return;
    AcceptanceRecord record;
    std::optional<std::string> mistake = read_record(line, taken, record);
    if (!mistake && !records.empty() && records[0].form != record.form)
      mistake = fmt::format("{} after {}, allowed: one form in a file", text_of(record.form).name, text_of(records[0].form).name);
    if (mistake)
      diagnostics.add(where, *mistake);
    else
      records.push_back(std::move(record));
  };
  config::read_json_lines(path, named, shapes(taken), diagnostics, on_line);
  // For answers without the number of drafted tokens: the longest of all rounds is taken as a fully accepted draft.
  int longest = 1;
  for (const AcceptanceRecord& record : records)
    if (record.form == RecordForm::rounds && !record.accepted.empty())
      longest = std::max(longest, *std::max_element(record.accepted.begin(), record.accepted.end()));
  for (AcceptanceRecord& record : records)
    if (record.form == RecordForm::rounds && record.draft_length == 0) {
      record.draft_length = longest;
      record.drafted.assign(record.accepted.size(), longest);
    }
  if (records.empty() && diagnostics.list().size() == before) {
    const std::string what = named.file == path ? "no request" : path + " has no request";  // the location already names the file
    diagnostics.add(named, kind.empty() ? what + ", allowed: one per line"
                                        : fmt::format("{} of kind {}, allowed: a kind in this file", what, kind));
  }
  return records;
}

std::vector<int> walked_rounds(const AcceptanceRecord& record, int draft_length) {
  std::vector<int> rounds;
  const std::size_t size = record.accepted.size();
  for (std::size_t at = 0; at + static_cast<std::size_t>(draft_length) < size;) {
    rounds.push_back(std::min(record.accepted[at], draft_length));
    at += static_cast<std::size_t>(rounds.back()) + 1;
  }
  return rounds;
}

}  // namespace specsim::families
