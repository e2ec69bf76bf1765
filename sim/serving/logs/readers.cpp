#include "sim/serving/logs/readers.h"

#include "sim/serving/logs/line_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::logs {

namespace {

constexpr double kPercent = 0.01;

bool is_list(Role role) { return role == Role::shares || role == Role::histogram || role == Role::share_histogram; }

// Roles whose figures are whole numbers when they belong to a single line or answer.
bool is_count(Role role) {
  return role == Role::answers || role == Role::running || role == Role::rounds || role == Role::last_round ||
         role == Role::drafted || role == Role::accepted || role == Role::rejected || role == Role::emitted ||
         role == Role::draft_length || role == Role::verified || role == Role::histogram;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// The text after `key`, unless the key is part of a longer name, such as that of a total.
std::optional<std::string_view> after_name(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1))
    if ((at == 0 || !is_word(line[at - 1])) && !line.substr(0, at).ends_with("Total ")) return line.substr(at + key.size());
  return std::nullopt;
}

// Skips the text between a name and its number: a unit in brackets, frames of tables.
std::string_view skip_to_cell(std::string_view text) {
  const auto skip_frames = [&] {
    while (!text.empty()) {
      const auto c = static_cast<unsigned char>(text.front());
      if (std::string_view(" \t|,:=").find(text.front()) == std::string_view::npos && c < 0x80) break;
      text.remove_prefix(1);
    }
  };
  skip_frames();
  if (text.starts_with('('))
    if (const std::size_t end = text.find(')'); end != std::string_view::npos) text.remove_prefix(end + 1);
  skip_frames();
  return text;
}

// "0: 25%   1: 18%   >=8: 3%".
void take_buckets(std::string_view text, const KeyedFigure& figure, Report& report) {
  while (const auto colon = text_after(text, ":")) {
    const auto share = number_after(*colon, "");
    const std::size_t at = report.list(figure.role).size();
    if (!share || !report.take(figure.role, *share * figure.scale, at)) {
      report.bad_figure = figure.key;
      return;
    }
    text = *colon;
  }
}

// Reads the value after a figure's key. False if the key is not in the text.
bool take_figure(const KeyedFigure& figure, std::string_view key, std::string_view text, Report& report, bool as_name) {
  const auto find = [&](std::string_view name) { return as_name ? after_name(text, name) : text_after(text, name); };
  const auto bad = [&] {
    if (report.bad_figure.empty()) report.bad_figure = key;
    report.bad_list = is_list(figure.role);
    return true;
  };
  if (key.starts_with('^')) {  // a number before it
    const std::size_t at = text.find(key.substr(1));
    if (at == std::string_view::npos) return false;
    const std::string_view before = trimmed(text.substr(0, at));
    const std::size_t from = before.find_last_not_of("0123456789.");
    const auto value = number_after(before.substr(from == std::string_view::npos ? 0 : from + 1), "");
    return value && report.take(figure.role, *value * figure.scale, 0) ? true : bad();
  }
  if (figure.role == Role::share_histogram) {
    const auto rest = text_after(text, key);
    if (rest) take_buckets(*rest, figure, report);
    return rest.has_value();
  }
  if (const std::size_t slot = key.find("{}"); slot != std::string_view::npos) {
    const std::size_t at = report.list(figure.role).size();
    const std::string name = fmt::format("{}{}{}", key.substr(0, slot), at, key.substr(slot + 2));
    const auto rest = find(name);
    if (!rest) return false;
    key = name;
    const auto value = number_after(*rest, "");
    return value && report.take(figure.role, *value * figure.scale, at) ? true : bad();
  }
  const auto rest = find(key);
  if (!rest) return false;
  if (is_list(figure.role)) {
    const auto rates = rates_after(*rest, "");
    if (!rates) return bad();
    for (std::size_t i = 0; i < rates->size(); ++i) report.take(figure.role, (*rates)[i], i);
    // A list in brackets without its end was cut.
    return key.ends_with('(') && rest->find(')') == std::string_view::npos ? bad() : true;
  }
  const std::string_view cell = as_name ? skip_to_cell(*rest) : *rest;
  const auto value = number_after(cell, "");
  if (value && report.take(figure.role, *value * figure.scale, 0)) return true;
  return as_name ? false : bad();  // of a block, another line may have it
}

// The number of rounds that fits a length, accepted and drafted tokens and rates: the whole number that is consistent with all of
// them, given their rounding. At most the drafted tokens, since each round has at least one.
double rounds_of(double length, double accepted, double drafted, const std::vector<double>& rates) {
  const auto positions = static_cast<double>(rates.size());
  const double fewest = positions > 0.0 ? std::ceil(drafted / positions - 1e-9) : 1.0;
  if (accepted <= 0.0) return fewest;
  const double by_length = accepted / std::max(length - 1.0, 1e-9);
  double best = std::clamp(std::round(by_length), fewest, std::max(fewest, drafted));
  if (rates.empty()) return best;
  // The length has two decimals; if every round drafted all positions, the number of rounds is exact.
  const double low = std::max(fewest, accepted / (length - 1.0 + 0.0051));
  const double high = length > 1.0051 ? std::min(drafted, accepted / (length - 1.0 - 0.0051)) : drafted;
  if (fewest * positions == drafted && low <= fewest + 1e-9 && fewest <= high + 1e-9) return fewest;
  double least = std::numeric_limits<double>::infinity();
  constexpr int kMostTried = 4096;  // from here on a difference of one does not matter
  for (int tried = 0; tried <= kMostTried; ++tried) {
    const double n = std::ceil(low - 1e-9) + tried;
    if (n > high) break;
    double off = 0.0;  // rates are whole numbers of rounds
    for (std::size_t i = 0; i < rates.size() && off < least; ++i)
      off = std::max(off, std::abs(rates[i] - std::round(rates[i] * n) / n));
    if (off < least - 1e-12) {
      least = off;
      best = n;
    }
  }
  return best;
}

}  // namespace

double Report::number(Role role) const { return has(role) ? list(role).back() : std::numeric_limits<double>::quiet_NaN(); }

double Report::sum(Role role) const { return std::accumulate(list(role).begin(), list(role).end(), 0.0); }

bool Report::empty() const {
  return bad_figure.empty() && std::all_of(values_.begin(), values_.end(), [](const auto& one) { return one.empty(); });
}

void Report::merge(const Report& other) {
  for (std::size_t role = 0; role < kRoles; ++role) {
    const std::vector<double>& more = other.values_[role];
    std::vector<double>& mine = values_[role];
    if (mine.size() < more.size()) mine.resize(more.size(), 0.0);
    for (std::size_t i = 0; i < more.size(); ++i) mine[i] += more[i];
  }
  if (bad_figure.empty()) {
    bad_figure = other.bad_figure;
    bad_list = other.bad_list;
  }
}

bool Report::take(Role role, double value, std::size_t at) {
  if (!(value >= 0.0 && value <= kLargestNumber)) return false;
  if (is_count(role) && value != std::floor(value)) return false;
  if (role == Role::shares || role == Role::share_histogram) {
    if (value > 1.0 + 1e-9 || at >= kMostPositions) return false;
    value = std::min(value, 1.0);
  }
  if (role == Role::emitted_each) {  // a round emits at least one token: 0 is an answer that failed
    if (at > kMostPositions) return false;
    if (at == 0) return true;
    role = Role::histogram;
    --at;
  }
  std::vector<double>& values = list(role);
  if (role == Role::histogram || role == Role::shares || role == Role::share_histogram) {
    if (at > kMostPositions) return false;
    if (values.size() <= at) values.resize(at + 1, 0.0);
    values[at] += value;
    return true;
  }
  values.push_back(value);
  return true;
}

// Lines of servers and reports of benchmark clients. If the meaning of the figures is not obvious, the source file that prints
// them is named.
std::span<const Reader> readers() {
  using R = Role;
  // clang-format off
  static constexpr std::array<KeyedFigure, 12> kAnswer = {{
      {R::histogram, "acceptance_histogram"}, {R::rounds, "num_spec_steps"}, {R::accepted, "num_accepted_draft_tokens"},
      {R::drafted, "num_draft_tokens"}, {R::draft_length, "num_spec_tokens"}, {R::length, "mean_acceptance_length"}}};
  static constexpr std::array all = {
      // vLLM V1: vllm/v1/spec_decode/metrics.py, SpecDecodingLogging.log, commit 016a8587 and later; every figure is of the time
      // since the line before, the length is 1 + accepted / drafts, the rates are of all drafts. Earlier versions begin with
      // "Draft acceptance rate: 85.4%"; the first have neither length nor rates. LMDeploy prints the same
      // (lmdeploy/metrics/loggers.py).
      Reader{LogKind::vllm_log, Form::line, "SpecDecoding metrics:", "", "Per-position acceptance rate:",
       {R::accepted, R::drafted},
       {{{R::length, "Mean acceptance length:"}, {R::accepted, "Accepted:"}, {R::drafted, "Drafted:"},
        {R::shares, "Per-position acceptance rate:"}}},
       false, 0.0005},
      // vLLM V0 (vllm/spec_decode/metrics.py of v0.6.3), totals since the engine started. Up to v0.5.3 it prints "tokens tokens".
      Reader{LogKind::vllm_v0_log, Form::line, "Speculative metrics:", "Number of speculative tokens", "",
       {R::draft_length, R::accepted, R::drafted, R::emitted},
       {{{R::draft_length, "Number of speculative tokens:"},
        {R::accepted, "Number of accepted tokens:"},
        {R::drafted, "Number of draft tokens:"}, {R::drafted, "Number of draft tokens tokens:"},
        {R::emitted, "Number of emitted tokens:"}, {R::emitted, "Number of emitted tokens tokens:"},
        {R::rate, "Draft acceptance rate:"}}},
       false, 0.0, 0.0051, &LogReader::take_vllm_v0},
      // The first version of V1 (before vllm-project/vllm#15902), counts of an interval.
      Reader{LogKind::vllm_log, Form::line, "Speculative metrics:", "", "",
       {R::accepted, R::drafted},
       {{{R::accepted, "Number of accepted tokens:"}, {R::drafted, "Number of draft tokens:"}}}},
      // python/sglang/srt/managers/scheduler_metrics_mixin.py, log_decode_stats.
      Reader{LogKind::sglang_log, Form::line, "Decode batch", "accept len:", "gen throughput",
       {R::rough_length, R::running},
       {{{R::rough_length, "accept len:"}, {R::running, "#running-req:"}, {R::rate, "accept rate:"},
        {R::cached, "#token:"}, {R::cached, "#full token:"}}},
       false, 0.0, 0.0051, &LogReader::take_sglang},
      // llama.cpp's server for each request (tools/server/server-context.cpp, server_slot::print_timings), in three versions; the
      // newest prints the rates with -lv 4 on the next line.
      Reader{LogKind::llama_requests, Form::line, "draft acceptance rate = ", "", "generated)",
       {R::accepted, R::drafted}, {{{R::accepted, "("}, {R::drafted, "accepted /"}}},
       true, 0.0, 0.0051, &LogReader::take_llama_request},
      Reader{LogKind::llama_requests, Form::line, "draft acceptance = ", "", "generated)",
       {R::accepted, R::drafted},
       {{{R::accepted, "("}, {R::drafted, "accepted /"}, {R::length, "mean acceptance length ="}, {R::length, "mean len ="},
        {R::shares, "acceptance rate per position = ("}}},
       true, 0.0005, 0.0051, &LogReader::take_llama_request},
      // Totals of a drafter since the server's start (common/speculative.cpp, common_speculative_print_stats).
      Reader{LogKind::llama_totals, Form::line, "statistics ", "#gen drafts", "",
       {R::rounds, R::drafted, R::accepted},
       {{{R::rounds, "#gen drafts ="}, {R::drafted, "#gen tokens ="}, {R::accepted, "#acc tokens ="},
        {R::shares, "#acc rate/pos = ("}}},
       false, 0.0005, 0.0051, &LogReader::take_llama_totals},
      // The examples speculative and speculative-simple of llama.cpp, one figure per line.
      Reader{LogKind::llama_example, Form::block, "", "", "",
       {R::accepted, R::emitted, R::drafted},
       {{{R::emitted, "n_predict"}, {R::drafted, "n_drafted"}, {R::accepted, "n_accept"}}}},
      // tabbyAPI with ExLlamaV3 (common/gen_logging.py, commit e632af41). A pass emits one token that was no draft.
      Reader{LogKind::tabby_answers, Form::block, "", "", "",
       {R::accepted, R::drafted},
       {{{R::emitted, "^tokens generated in"}, {R::accepted, "Draft:"}, {R::drafted, "^tokens accepted ("}}}, true},
      // vllm bench serve (vllm/benchmarks/serve.py): differences of the server's counters before and after the run.
      Reader{LogKind::vllm_bench, Form::block, "====================", "", "",
       {R::rounds, R::drafted, R::accepted},
       {{{R::length, "Acceptance length:"}, {R::rounds, "Drafts:"}, {R::drafted, "Draft tokens:"}, {R::accepted, "Accepted tokens:"},
        {R::shares, "Position {}:", kPercent}}},
       false, 0.00005},
      // The summary of vLLM's examples/offline_inference/spec_decode.py (v0.11.0); v0.9 only has the lengths and rates.
      Reader{LogKind::vllm_offline, Form::block, "", "", "",
       {R::length},
       {{{R::rounds, "num_drafts:"}, {R::drafted, "num_draft_tokens:"}, {R::accepted, "num_accepted_tokens:"},
        {R::length, "mean acceptance length:"}, {R::shares, "acceptance at token {}:"}}},
       false, 0.005},
      // python/sglang/bench_serving.py: the server's mean length.
      Reader{LogKind::sglang_bench, Form::block, "", "", "",
       {R::rough_length, R::emitted}, {{{R::emitted, "Total generated tokens:"}, {R::rough_length, "Accept length:"}}}},
      // tensorrt_llm/serve/scripts/benchmark_serving.py: a mean over requests.
      Reader{LogKind::trtllm_bench_serving, Form::block, "", "", "",
       {R::rough_length, R::emitted},
       {{{R::emitted, "Total generated tokens:"}, {R::rough_length, "Mean Avg Decoded Tokens per Iter:"}}}},
      // AIPerf's console table "Spec Decode" and its CSV (aiperf/metrics/types/spec_decode_metrics.py, ai-dynamo/aiperf#1191).
      Reader{LogKind::aiperf_report, Form::block, "", "", "",
       {R::length},
       {{{R::length, "Token-Weighted Acceptance Length"}, {R::length, "Token-Wtd Accept Len"},
        {R::rate, "Overall Draft Acceptance Rate", kPercent}, {R::rate, "Overall Draft Accept Rate", kPercent},
        {R::rounds_per_answer, "Spec Decode Steps"}, {R::answers, "Request Count"},
        {R::rounds, "Total Spec Decode Steps"}, {R::accepted, "Total Accepted Draft Tokens"}, {R::drafted, "Total Draft Tokens"},
        {R::share_histogram, "Accepted-draft histogram (% steps):", kPercent},
        {R::share_histogram, "Accepted drafts per step (% of steps):", kPercent}}},
       false, 0.005},
      // vLLM's answers with --per-request-spec-decode-metrics (vllm-project/vllm#48915), under both names that it has had.
      Reader{LogKind::vllm_answers, Form::object, "speculative_decoding", "", "",
       {R::histogram}, kAnswer, true},
      Reader{LogKind::vllm_answers, Form::object, "speculative_decoding_stats", "", "",
       {R::histogram}, kAnswer, true},
      // The same in AIPerf's profile_export.jsonl.
      Reader{LogKind::aiperf_records, Form::object, "spec_decode_acceptance", "", "",
       {R::histogram}, kAnswer, true},
      // AIPerf's profile_export_aiperf.json, of a run.
      Reader{LogKind::aiperf_report, Form::document, "", "", "",
       {R::rounds},
       {{{R::rounds, "total_spec_decode_steps.avg"}, {R::accepted, "total_accepted_draft_tokens.avg"},
        {R::drafted, "total_draft_tokens.avg"}, {R::histogram, "pooled_spec_decode_acceptance_histogram"},
        {R::length, "spec_decode_token_weighted_acceptance_length.avg"}}}},
      // TensorRT-LLM's iteration statistics as /metrics, LLM.get_stats() and the executor's log give them, each of one step.
      Reader{LogKind::trtllm_steps, Form::object, "specDecodingStats", "", "",
       {R::drafted, R::accepted},
       {{{R::drafted, "numDraftTokens"}, {R::accepted, "numAcceptedTokens"}, {R::rounds, "numRequestsWithDraftTokens"},
        {R::length, "acceptanceLength"}}},
       false, 0.0, 0.02},
      // SGLang's meta_info in answers and in "Finish:" lines (sgl-project/sglang#3152, #11441, #18332), and sglext's
      // spec_tokens_details (#33518). completion_tokens may hold a token of the prompt's pass.
      Reader{LogKind::sglang_answers, Form::object, "", "", "",
       {R::rounds},
       {{{R::rounds, "spec_verify_ct"}, {R::emitted, "completion_tokens"}, {R::rough_length, "spec_accept_length"},
        {R::accepted, "spec_accept_token_num"}, {R::accepted, "spec_num_correct_drafts"}, {R::accepted, "spec_accepted_drafts"},
        {R::drafted, "spec_draft_token_num"}, {R::drafted, "spec_num_proposed_drafts"}, {R::drafted, "spec_proposed_drafts"},
        {R::histogram, "spec_accept_histogram"}, {R::histogram, "spec_correct_drafts_histogram"}}}, true},
      // SGLang's /get_server_info and /server_info: the mean length since its start, by rank.
      Reader{LogKind::sglang_server_info, Form::document, "", "", "",
       {R::rough_length},
       {{{R::rough_length, "avg_spec_accept_length"}, {R::draft_length, "speculative_num_steps"},
        {R::verified, "speculative_num_draft_tokens"}}}},
      // The JSON that vllm bench serve saves (--save-result).
      Reader{LogKind::vllm_bench, Form::object, "", "", "",
       {R::rounds, R::drafted, R::accepted},
       {{{R::rounds, "spec_decode_num_drafts"}, {R::drafted, "spec_decode_draft_tokens"}, {R::accepted, "spec_decode_accepted_tokens"},
        {R::length, "spec_decode_acceptance_length"}, {R::shares, "spec_decode_per_position_acceptance_rates"}}},
       false, 0.00005},
      // The JSON lines that sglang.bench_serving saves.
      Reader{LogKind::sglang_bench, Form::object, "", "", "",
       {R::rough_length, R::emitted}, {{{R::rough_length, "accept_length"}, {R::emitted, "total_output_tokens"}}}},
      // llama.cpp's answers (/completion and /v1/chat/completions), whole, or in pieces with timings_per_token.
      Reader{LogKind::llama_answers, Form::object, "", "", "",
       {R::accepted, R::drafted},
       {{{R::emitted, "predicted_n"}, {R::drafted, "draft_n"}, {R::accepted, "draft_n_accepted"}}}, true},
      // Answers of Spec-Bench (evaluation/eval.py) and of others in its form: emitted tokens of each round.
      Reader{LogKind::answer_files, Form::object, "", "", "", {R::histogram}, {{{R::emitted_each, "accept_lengths"}}}, true},
      // EAGLE's answers (eagle/evaluation/gen_ea_answer_*.py): the tokens of each turn and the number of its last round.
      Reader{LogKind::answer_files, Form::object, "", "", "",
       {R::last_round, R::emitted}, {{{R::last_round, "idxs"}, {R::emitted, "new_tokens"}}}, true},
      // tabbyAPI's usage (theroyallab/tabbyAPI#452), under OpenAI's names.
      Reader{LogKind::tabby_answers, Form::object, "", "", "",
       {R::rejected, R::accepted, R::emitted},
       {{{R::accepted, "accepted_prediction_tokens"}, {R::rejected, "rejected_prediction_tokens"}, {R::emitted, "completion_tokens"}}},
       true},
  };
  // clang-format on
  return all;
}

std::string without_spaces(std::string_view text) {
  std::string dense;
  for (const char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0) dense += c;
  return dense;
}

std::optional<Report> read_line_by(const Reader& reader, std::string_view line, bool broken) {
  const auto text = text_after(line, broken ? without_spaces(reader.begins) : reader.begins);
  if (!text || line.find(broken ? without_spaces(reader.also) : reader.also) == std::string_view::npos) return std::nullopt;
  Report report;
  report.line = line;
  report.broken = broken;
  for (const KeyedFigure& figure : reader.figures())
    if (!report.has(figure.role)) take_figure(figure, broken ? without_spaces(figure.key) : figure.key, *text, report, false);
  return report;
}

bool read_block_line(const Reader& reader, std::string_view line, const Report& before, Report& now) {
  std::string whole_numbers;
  if (line.find("\xe2\x94") != std::string_view::npos) {  // a drawn table groups digits by commas
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] != ',' || i == 0 || std::isdigit(static_cast<unsigned char>(line[i - 1])) == 0) whole_numbers += line[i];
    line = whole_numbers;
  }
  bool again = false;
  for (const KeyedFigure& figure : reader.figures()) {
    const std::vector<double>& known = before.list(figure.role);
    if (std::string_view(figure.key).find("{}") != std::string_view::npos) {
      now.list(figure.role).assign(known.size(), 0.0);
      if (take_figure(figure, figure.key, line, now, true)) continue;
      now.list(figure.role).clear();
      again |=
          // a list that begins again belongs to another report
          !known.empty() && take_figure(figure, figure.key, line, now, true);
    } else if (take_figure(figure, figure.key, line, now, true)) {
      again |= !known.empty();
    }
  }
  return again;
}

std::string missing_figures(const Reader& reader, const Report& report) {
  const auto key_of = [&](Role role) {
    return std::find_if(reader.keyed.begin(), reader.keyed.end(), [&](const KeyedFigure& one) { return one.role == role; })->key;
  };
  if (!report.bad_figure.empty()) {
    std::string name = report.bad_figure;
    if (name.ends_with(" = (")) name.resize(name.size() - 4);
    return report.bad_list ? fmt::format("no rates in [0, 1] after \"{}\"", name) : fmt::format("no number after \"{}\"", name);
  }
  for (const Role role : reader.needs())
    if (!report.has(role)) return fmt::format("no number after \"{}\"", key_of(role));
  const std::string closes = report.broken ? without_spaces(reader.closes) : reader.closes;
  const bool without_lengths = reader.kind == LogKind::vllm_log && !report.has(Role::length);  // its first version
  if (!without_lengths && report.line.find(closes) == std::string_view::npos)
    return fmt::format("it ends before \"{}\"", reader.closes);
  return "";
}

std::string complete(Report& report) {
  using R = Role;
  const auto known = [&](R role) { return report.has(role); };
  if (known(R::histogram)) {
    const std::vector<double>& histogram = report.list(R::histogram);
    double accepted = 0.0;
    for (std::size_t i = 1; i < histogram.size(); ++i) accepted += static_cast<double>(i) * histogram[i];
    if (!known(R::rounds)) report.set(R::rounds, report.sum(R::histogram));
    if (!known(R::accepted)) report.set(R::accepted, accepted);
  }
  if (known(R::share_histogram) && !known(R::shares)) {
    const std::vector<double>& histogram = report.list(R::share_histogram);
    double above = report.sum(R::share_histogram);
    for (std::size_t i = 0; i + 1 < histogram.size(); ++i) report.take(R::shares, std::clamp(above -= histogram[i], 0.0, 1.0), i);
  }
  if (known(R::rejected) && known(R::accepted) && !known(R::drafted))
    report.set(R::drafted, report.number(R::accepted) + report.number(R::rejected));
  if (known(R::last_round) && !known(R::rounds))
    report.set(R::rounds, report.sum(R::last_round) + static_cast<double>(report.list(R::last_round).size()));
  const double drafted = report.number(R::drafted);
  const double emitted = known(R::emitted) ? report.sum(R::emitted) : report.number(R::emitted);
  if (known(R::accepted) && report.number(R::accepted) > drafted)
    return fmt::format("{} accepted of {} drafted tokens", report.number(R::accepted), drafted);
  if (report.number(R::rounds) > drafted && !known(R::histogram) && !known(R::emitted))
    return fmt::format("{} requests with draft tokens, but {} draft tokens", report.number(R::rounds), drafted);
  const double most = drafted / report.number(R::draft_length) * (1.0 + report.number(R::draft_length)) + 0.5;
  if (known(R::draft_length) && known(R::emitted) && !known(R::histogram) && emitted > most)
    return fmt::format("{} emitted tokens, but {} drafted ones at draft length {}", emitted, drafted,
                       report.number(R::draft_length));
  const double rough_length = known(R::length) ? report.number(R::length) : report.number(R::rough_length);
  if (known(R::emitted) && rough_length > std::max(emitted, 1.0))
    return fmt::format("a length of {} of {} generated tokens", rough_length, emitted);
  if (!known(R::rounds)) {
    const double accepted = report.number(R::accepted);
    report.counted = false;
    if (known(R::length) && known(R::accepted) && known(R::drafted) && (known(R::shares) || report.number(R::length) > 1.0)) {
      report.set(R::rounds, rounds_of(report.number(R::length), accepted, drafted, report.list(R::shares)));
      report.counted = true;
    } else if (known(R::emitted) && known(R::accepted)) {
      if (emitted > accepted) report.set(R::rounds, emitted - accepted);
    } else if (known(R::emitted) && rough_length >= 1.0) {
      report.list(R::rounds) = {emitted / rough_length};
    } else if (known(R::rounds_per_answer)) {
      report.list(R::rounds) = {report.number(R::rounds_per_answer) * (known(R::answers) ? report.number(R::answers) : 1.0)};
    } else if (known(R::shares) || rough_length >= 1.0) {
      report.list(R::rounds) = {1.0};
    }
  }
  const double rounds = report.number(R::rounds);
  if (!known(R::accepted) && known(R::rounds)) {
    double shares = 0.0;
    for (const double share : report.list(R::shares)) shares += share;
    const double length = rough_length >= 1.0                     ? rough_length
                          : known(R::emitted) && emitted > rounds ? emitted / rounds
                                                                  : 1.0 + shares;
    report.list(R::accepted) = {rounds * (length - 1.0)};
  }
  if (!known(R::drafted) && report.number(R::rate) > 0.0 && known(R::accepted))
    report.list(R::drafted) = {report.number(R::accepted) / report.number(R::rate)};
  return "";
}

std::string contradiction(const Reader& reader, const Report& report) {
  using R = Role;
  const double rounds = report.number(R::rounds);
  const double accepted = report.number(R::accepted);
  const double length = report.number(R::length);
  const bool counts = report.counted && rounds > 0.0;
  double shares = 0.0;
  for (const double share : report.list(R::shares)) shares += share;
  const double rounding =
      reader.length_rounding + reader.share_rounding * 1.02 * static_cast<double>(report.list(R::shares).size());
  if (report.has(R::length)) {
    if (counts && report.has(R::accepted) && std::abs(1.0 + accepted / rounds - length) > reader.length_rounding)
      return fmt::format("mean acceptance length {:.2f}, but {} accepted tokens of {} rounds", length, accepted, rounds);
    if (report.has(R::shares) && std::abs(1.0 + shares - length) > rounding)
      return fmt::format("mean acceptance length {:.2f}, but rates that add up to {:.3f}", length, 1.0 + shares);
  } else if (report.has(R::shares) && counts && std::abs(shares - accepted / rounds) > rounding) {
    return fmt::format("{} accepted tokens of {} rounds, but rates that add up to {:.3f}", accepted, rounds, shares);
  }
  if (report.has(R::rate) && report.has(R::drafted) && counts && report.number(R::drafted) > 0.0 &&
      std::abs(report.number(R::rate) - accepted / report.number(R::drafted)) > 0.0051)
    return fmt::format("acceptance rate {:.3f}, but {} accepted of {} draft tokens", report.number(R::rate), accepted,
                       report.number(R::drafted));
  if (report.has(R::histogram) && rounds != report.sum(R::histogram))
    return fmt::format("{} rounds, but a histogram of {}", rounds, report.sum(R::histogram));
  if (report.has(R::histogram)) {
    double of_histogram = 0.0;
    for (std::size_t i = 1; i < report.list(R::histogram).size(); ++i)
      of_histogram += static_cast<double>(i) * report.list(R::histogram)[i];
    if (accepted != of_histogram) return fmt::format("{} accepted tokens, but {} in the histogram", accepted, of_histogram);
  }
  return "";
}

}  // namespace specsim::logs
