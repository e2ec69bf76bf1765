// llama.cpp's log lines, of its server for each request (tools/server/server-context.cpp, server_slot::print_timings):
//   draft acceptance = 0.66237 (  257 accepted /   388 generated), mean len =  3.65             and, with -lv 4, the line behind
//   it
//        acc per pos = (0.804, 0.701, 0.629, 0.515)
//   draft acceptance = 0.66237 (...), mean acceptance length =  3.65, acceptance rate per position = (0.804, ...)   (earlier)
//   draft acceptance rate = 0.57576 (  171 accepted /   297 generated)                                            (the earliest)
// the last of them behind "eval time = 30387.12 ms / 2048 tokens", whose tokens less the accepted ones are the target's passes.
// Lengths and rates are of the rounds that had a draft. Totals of a drafter since the server's start
// (common/speculative.cpp, common_speculative_print_stats):
//   statistics draft-mtp: #calls(b,g,a) = 2 134 134, #gen drafts = 134, #acc drafts = 109, #gen tokens = 536, #acc tokens = 354,
//   #mean acc len = 3.64, #acc rate/pos = (0.813, 0.716, 0.619, 0.493), dur(b,g,a) = ...
// and of the examples speculative and speculative-simple: n_draft = 16, n_predict = 124, n_drafted = 123, n_accept = 100.
// Its answers (/completion and /v1/chat/completions) end in
//   "timings": {"prompt_n": 1, ..., "predicted_n": 200, ..., "draft_n": 347, "draft_n_accepted": 65}
// on one line or on many; where they come in pieces ("data: {...}") with timings_per_token, each piece counts from the beginning.
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostDrafters = 256;
// Requests, and answers that come in pieces, of which lines may yet come. Those of more than so many at once are forgotten.
constexpr std::size_t kMostAtOnce = 65536;
constexpr std::size_t kLongestId = 256;
constexpr const char* kServer = "llama.cpp";  // its drafters start anew with it

// What a line says of its slot and task: "id  0 | task 42".
std::string slot_of(std::string_view line) {
  const std::size_t from = line.find("id ");
  const std::size_t task = line.find("| task ");
  if (from == std::string_view::npos || task == std::string_view::npos || task < from) return "";
  const std::size_t end = line.find_first_of(" |", task + 7);
  return std::string(line.substr(from, std::min(kLongestId, end == std::string_view::npos ? end : end - from)));
}

void add_rates(ReportedAcceptance& all, const std::vector<double>& rates, double rounds) {
  if (all.accepted_at.size() < rates.size()) all.accepted_at.resize(rates.size(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) all.accepted_at[i] += std::round(rates[i] * rounds);
}

}  // namespace

bool LogReader::read_llama(std::string_view line) {
  if (llama_slots_.size() > kMostAtOnce) llama_slots_.clear();
  if (line.find("eval time =") != std::string_view::npos && line.find("prompt eval time") == std::string_view::npos) {
    if (const auto tokens = count_behind(line, "ms /")) llama_slots_[slot_of(line)].emitted = *tokens;
    return true;
  }
  if (line.find("acc per pos = (") != std::string_view::npos) {
    const auto told_rates = rates_behind(line, "acc per pos = (");
    if (!told_rates) {
      cannot_read("no rates in [0, 1] behind \"acc per pos\"");
      return true;
    }
    const std::vector<double>& rates = *told_rates;
    const auto slot = llama_slots_.find(slot_of(line));
    if (slot == llama_slots_.end() || slot->second.request == 0 || rates.empty()) return true;
    ReportedAcceptance& all = of(Kind::llama_requests, 0);
    Sample& request = all.samples[slot->second.request - 1];
    add_rates(all, rates, request.rounds);
    request.judged = request.accepted + request.rounds - std::round(rates.back() * request.rounds);
    slot->second.request = 0;
    return true;
  }
  const bool old = line.find("draft acceptance rate = ") != std::string_view::npos;
  const auto text = behind(line, old ? "draft acceptance rate = " : "draft acceptance = ");
  if (!text) return false;
  const auto accepted = count_behind(*text, "(");
  const auto drafted = count_behind(*text, "accepted /");
  if (!accepted || !drafted || *accepted > *drafted) {
    cannot_read("no numbers of accepted and generated tokens");
    return true;
  }
  if (*drafted <= 0.0) {
    ++contents_.idle;
    return true;
  }
  const auto told_rates = rates_behind(*text, "acceptance rate per position = (");
  if (!told_rates || bad_number_behind(*text, "mean acceptance length =") || bad_number_behind(*text, "mean len =")) {
    cannot_read(told_rates ? "the mean length is no number" : "the rates per position are not in [0, 1]");
    return true;
  }
  const std::vector<double>& rates = *told_rates;
  ReportedAcceptance& all = of(Kind::llama_requests, 0);
  seen(all);
  all.drafted += *drafted;
  all.accepted += *accepted;
  auto length = number_behind(*text, "mean acceptance length =");
  if (!length) length = number_behind(*text, "mean len =");
  LlamaSlot& slot = llama_slots_[slot_of(line)];
  double rounds = 0.0;
  // The length has two decimals, and each round drafted a token.
  if (length && *length > 1.0) rounds = std::min(*drafted, std::round(*accepted / (*length - 1.0)));
  if (length && rounds > 0.0 && *accepted > *drafted * (*length - 1.0 + 0.0051))
    contradict(all, fmt::format("mean length {:.2f} beside {} accepted of {} drafted tokens", *length, *accepted, *drafted));
  if (rounds <= 0.0 && slot.emitted > *accepted) {
    rounds = slot.emitted - *accepted;
    all.rounds_counted = false;  // passes without a draft are among them
  }
  slot.emitted = 0.0;
  all.rounds += rounds;
  add_rates(all, rates, rounds);
  add_sample(all, {rounds, *accepted, rates.empty() ? 0.0 : *accepted + rounds - std::round(rates.back() * rounds)});
  slot.request = all.samples.size();
  return true;
}

bool LogReader::read_llama_totals(std::string_view line) {
  const auto text = behind(line, "statistics ");
  if (!text || text->find("#gen drafts") == std::string_view::npos) return false;
  const std::string name(trimmed(text->substr(0, text->find(':'))));
  const auto drafts = count_behind(*text, "#gen drafts =");
  const auto drafted = count_behind(*text, "#gen tokens =");
  const auto accepted = count_behind(*text, "#acc tokens =");
  if (!drafts || !drafted || !accepted) {
    cannot_read("not all of gen drafts, gen tokens and acc tokens are numbers");
    return true;
  }
  if (*accepted > *drafted) {
    cannot_read(fmt::format("{} accepted of {} drafted tokens", *accepted, *drafted));
    return true;
  }
  if (*drafts <= 0.0) return true;
  const auto told_rates = rates_behind(*text, "#acc rate/pos = (");
  if (!told_rates) {
    cannot_read("no rates in [0, 1] behind \"#acc rate/pos\"");
    return true;
  }
  const std::vector<double>& rates = *told_rates;
  if (name.size() > kLongestName || (!llama_totals_.contains(name) && llama_totals_.size() == kMostDrafters)) {
    cannot_read(fmt::format("more than {} drafters in one log, or a name of more than {} bytes", kMostDrafters, kLongestName));
    return true;
  }
  seen(of(Kind::llama_totals, 0, name));
  // A server prints the totals of all its drafters one behind the other, and then again.
  RisingCounts& server = servers_[kServer];
  if (server.has(name + " drafts")) settle_llama_totals();
  LlamaTotals& totals = llama_totals_[name];
  server.see(name + " drafts", *drafts, totals.rounds);
  server.see(name + " accepted", *accepted, totals.accepted);
  server.see(name + " drafted", *drafted, totals.drafted);
  for (std::size_t i = 0; i < rates.size(); ++i)
    server.see(fmt::format("{} {}", name, i), std::round(rates[i] * *drafts), totals.accepted_at[i], true);
  return true;
}

void LogReader::settle_llama_totals() {
  if (llama_totals_.empty()) return;
  RisingCounts& server = servers_[kServer];
  server.settle(options_.growth_alone);
  for (auto& [name, totals] : llama_totals_) {
    const LlamaTotals grown = std::exchange(totals, {});
    ReportedAcceptance& all = of(Kind::llama_totals, 0, name);
    all.restarts = server.restarts();
    all.rounds += grown.rounds;
    all.accepted += grown.accepted;
    all.drafted += grown.drafted;
    for (const auto& [position, accepted] : grown.accepted_at) {
      if (all.accepted_at.size() <= position) all.accepted_at.resize(position + 1, 0.0);
      all.accepted_at[position] += accepted;
    }
    if (grown.rounds > 0.0) add_sample(all, {grown.rounds, grown.accepted, 0.0});
  }
}

bool LogReader::read_llama_answer(std::string_view line) {
  if (line.find("_n\"") == std::string_view::npos && line.find("_n_accepted\"") == std::string_view::npos) return false;
  const auto value = [&](std::string_view key) {
    const auto rest = behind(line, key);
    return rest ? count_behind(*rest, ":") : std::nullopt;
  };
  const auto emitted = value("\"predicted_n\"");
  const auto drafted = value("\"draft_n\"");
  const auto accepted = value("\"draft_n_accepted\"");
  if (emitted) answer_emitted_ = *emitted;
  if (drafted) answer_drafted_ = *drafted;
  if (!accepted) return emitted || drafted;
  const LlamaAnswer now{std::exchange(answer_emitted_, 0.0), std::exchange(answer_drafted_, 0.0), *accepted, 0};
  if (now.accepted > now.drafted) {
    cannot_read("more draft tokens accepted than drafted in an answer's timings");
    return true;
  }
  if (now.drafted <= 0.0) {
    ++contents_.idle;
    return true;
  }
  ReportedAcceptance& all = of(Kind::llama_answers, 0);
  seen(all);
  all.rounds_counted = false;  // passes without a draft are among them
  LlamaAnswer before;
  if (line.find("data: {") != std::string_view::npos) {
    std::string id;
    if (const auto text = behind(line, "\"id\":\"")) id = std::string(text->substr(0, std::min(kLongestId, text->find('"'))));
    if (llama_answers_.size() > kMostAtOnce) llama_answers_.clear();
    const LlamaAnswer last = llama_answers_[id];
    if (last.request > 0 && now.emitted >= last.emitted && now.drafted >= last.drafted && now.accepted >= last.accepted)
      before = last;
    if (before.request == 0) {
      add_sample(all, {});
      before.request = all.samples.size();
    }
    llama_answers_[id] = {now.emitted, now.drafted, now.accepted, before.request};
  } else {
    add_sample(all, {});
    before.request = all.samples.size();
    if (now.emitted > 0.0 && now.accepted >= now.emitted)
      contradict(all, fmt::format("{} draft tokens accepted of {} emitted tokens", now.accepted, now.emitted));
  }
  // A pass emits one token more than the draft tokens that it accepts.
  const auto rounds = [](const LlamaAnswer& answer) { return std::max(answer.emitted - answer.accepted, 0.0); };
  all.rounds += rounds(now) - rounds(before);
  all.drafted += now.drafted - before.drafted;
  all.accepted += now.accepted - before.accepted;
  all.samples[before.request - 1] = {rounds(now), now.accepted, 0.0};
  return true;
}

bool LogReader::read_llama_example(std::string_view line) {
  // Each a line of its own, in this order.
  const std::string_view text = trimmed(line);
  const auto value = [&](std::string_view key) -> std::optional<double> {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos || (at > 0 && text[at - 1] != ' ')) return std::nullopt;
    const auto rest = behind(text.substr(at), key);
    return rest && trimmed(*rest).starts_with('=') ? count_behind(trimmed(*rest), "=") : std::nullopt;
  };
  if (const auto predicted = value("n_predict")) {
    example_ = {*predicted, 0.0};
    return true;
  }
  if (const auto drafted = value("n_drafted")) {
    example_.drafted = *drafted;
    return true;
  }
  const auto accepted = value("n_accept");
  if (!accepted || example_.drafted <= 0.0 || *accepted > example_.drafted || *accepted >= example_.predicted) return false;
  ReportedAcceptance& all = of(Kind::llama_example, 0);
  seen(all);
  const double rounds = example_.predicted - *accepted;  // each emits one token that was no draft
  all.rounds += rounds;
  all.drafted += example_.drafted;
  all.accepted += *accepted;
  add_sample(all, {rounds, *accepted, 0.0});
  example_ = {};
  return true;
}

}  // namespace specsim::logs
