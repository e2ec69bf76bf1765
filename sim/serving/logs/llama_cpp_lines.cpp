// llama.cpp. Lines of a request in its server's log stand together:
//   slot print_timings: id  0 | task 42 |        eval time =    3147.99 ms /   354 tokens (...)
//   slot print_timings: id  0 | task 42 | draft acceptance = 0.66237 (  257 accepted /   388 generated), mean len =  3.65
//   slot print_timings: id  0 | task 42 |      acc per pos = (0.804, 0.701, 0.629, 0.515)                     with -lv 4
// The earliest print no length; the tokens less the accepted ones are then the target's passes. Lengths and rates are of the
// rounds that had a draft. And the table of ik_llama.cpp's llama-spec-bench (ikawrakow/ik_llama.cpp#2156).
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/readers.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostDrafters = 256;
constexpr std::size_t kMostColumns = 32;
constexpr std::size_t kLongestId = 256;
constexpr const char* kServer = "llama.cpp";  // its drafters restart with it

// The slot and task of a line: "id  0 | task 42".
std::string slot_of(std::string_view line) {
  const std::size_t from = line.find("id ");
  const std::size_t task = line.find("| task ");
  if (from == std::string_view::npos || task == std::string_view::npos || task < from) return "";
  const std::size_t end = line.find_first_of(" |", task + 7);
  return std::string(line.substr(from, std::min(kLongestId, end == std::string_view::npos ? end : end - from)));
}

}  // namespace

void LogReader::read_llama_slot(std::string_view line) {
  if (llama_slots_.size() > kMostAtOnce) llama_slots_.clear();
  if (line.find("eval time =") != std::string_view::npos && line.find("prompt eval time") == std::string_view::npos)
    if (const auto tokens = count_after(line, "ms /")) llama_slots_[slot_of(line)].emitted = *tokens;
  if (line.find("acc per pos = (") == std::string_view::npos) return;
  const auto rates = rates_after(line, "acc per pos = (");
  if (!rates) {
    cannot_read("no rates in [0, 1] after \"acc per pos\"");
    return;
  }
  const auto slot = llama_slots_.find(slot_of(line));
  if (slot == llama_slots_.end() || slot->second.request == 0 || rates->empty()) return;
  ReportedAcceptance& all = of(LogKind::llama_requests, 0);
  Sample& request = all.samples[std::exchange(slot->second.request, 0) - 1];
  if (all.accepted_at.size() < rates->size()) all.accepted_at.resize(rates->size(), 0.0);
  for (std::size_t i = 0; i < rates->size(); ++i) all.accepted_at[i] += std::round((*rates)[i] * request.rounds);
  request.judged = request.accepted + request.rounds - std::round(rates->back() * request.rounds);
}

void LogReader::take_llama_request(const Reader& reader, Report& report) {
  if (report.number(Role::drafted) == 0.0) {
    ++contents_.idle;
    return;
  }
  LlamaSlot& slot = llama_slots_[slot_of(report.line)];
  const double accepted = report.number(Role::accepted);
  if (!report.has(Role::rounds) && slot.emitted > accepted) {
    report.set(Role::rounds, slot.emitted - accepted);
    report.counted = false;  // includes passes without a draft
  }
  add_report(reader, report);
  slot = {0.0, of(LogKind::llama_requests, 0).samples.size()};
}

void LogReader::take_llama_totals(const Reader& /*reader*/, Report& report) {
  const std::string_view text = *text_after(report.line, "statistics ");
  const std::string name(trimmed(text.substr(0, text.find(':'))));
  const double drafts = report.number(Role::rounds);
  if (drafts <= 0.0) return;
  if (name.size() > kLongestName || (!llama_totals_.contains(name) && llama_totals_.size() == kMostDrafters)) {
    cannot_read(fmt::format("more than {} drafters in one log, or a name of more than {} bytes", kMostDrafters, kLongestName));
    return;
  }
  seen(of(LogKind::llama_totals, 0, name));
  // A server prints the totals of all its drafters one after the other, and then again.
  RisingCounts& all = servers_[kServer];
  RisingCounts::Engine& server = all.engine(name);
  if (server.has("drafts")) settle_llama_totals();
  all.note(server);
  LlamaTotals& totals = llama_totals_[name];
  server.see("drafts", drafts, totals.rounds);
  server.see("accepted", report.number(Role::accepted), totals.accepted);
  server.see("drafted", report.number(Role::drafted), totals.drafted);
  const std::vector<double>& rates = report.list(Role::shares);
  for (std::size_t i = 0; i < rates.size(); ++i)
    server.see(std::to_string(i), std::round(rates[i] * drafts), totals.accepted_at[i], true);
}

void LogReader::settle_llama_totals() {
  if (llama_totals_.empty()) return;
  RisingCounts& server = servers_[kServer];
  server.settle(options_.growth_alone);
  for (auto& [name, totals] : llama_totals_) {
    const LlamaTotals grown = std::exchange(totals, {});
    ReportedAcceptance& all = of(LogKind::llama_totals, 0, name);
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

// | task | run | stage | tokens | stop | time(s) | tok/s | rounds | accepted | rate | a.len | pos accept |
// | code |   1 | mtp   |    759 | eog  |  11.068 | 68.58 |    220 |  538/660 | ...  |  3.45 | 90.5% 80.5% 73.6% |
void LogReader::read_spec_bench(std::string_view line) {
  if (line.find('|') == std::string_view::npos) {
    columns_.clear();
    return;
  }
  std::vector<std::string> cells;
  for (std::string_view rest = line.substr(line.find('|') + 1); cells.size() < kMostColumns;) {
    const std::size_t end = rest.find('|');
    if (end == std::string_view::npos) break;
    cells.emplace_back(trimmed(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  if (std::find(cells.begin(), cells.end(), "pos accept") != cells.end()) {
    columns_ = std::move(cells);
    return;
  }
  if (columns_.empty() || cells.size() != columns_.size()) return;
  const auto cell = [&](std::string_view name) {
    const auto at = std::find(columns_.begin(), columns_.end(), name);
    return at == columns_.end() ? std::string() : cells[static_cast<std::size_t>(at - columns_.begin())];
  };
  static constexpr Reader kReader = {LogKind::llama_spec_bench,
                                     Form::line,
                                     "",
                                     "",
                                     "",
                                     {Role::rounds, Role::drafted, Role::accepted},
                                     {{{Role::rounds, "rounds"},
                                       {Role::accepted, "accepted"},
                                       {Role::drafted, "accepted"},
                                       {Role::length, "a.len"},
                                       {Role::shares, "pos accept"}}},
                                     true,
                                     0.0005};
  Report report;
  report.name = cell("stage");
  const auto take_cell = [&](Role role, std::optional<double> value, std::size_t at = 0, double scale = 1.0) {
    if (value && !report.take(role, *value * scale, at)) report.bad_figure = "pos accept";
  };
  const std::string rounds = cell("rounds");
  const std::string accepted = cell("accepted");
  const std::string length = cell("a.len");
  take_cell(Role::rounds, count_after(rounds, ""));
  take_cell(Role::accepted, count_after(accepted, ""));
  take_cell(Role::drafted, count_after(accepted, "/"));
  take_cell(Role::length, number_after(length, ""));
  const std::string rates = cell("pos accept");
  std::string_view rest = rates;
  for (std::size_t at = 0; at < kMostPositions; ++at) {
    take_cell(Role::shares, number_after(rest, ""), at, 0.01);
    const std::size_t end = rest.find('%');
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (report.number(Role::rounds) > 0.0) take(kReader, report);  // a stage without drafts, or the line below the names
}

}  // namespace specsim::logs
