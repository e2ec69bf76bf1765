// Reads files of benchmark clients and servers' logs as Runs. Sources of the formats (repository, file, commit):
// - vLLM: vllm-project/vllm, vllm/benchmarks/serve.py, 009e6d4a; logs: vllm/v1/metrics/loggers.py
// - SGLang: sgl-project/sglang, python/sglang/bench_serving.py and benchmark/serving.py, 0033168f, 00f9ec47
// - AIPerf: ai-dynamo/aiperf, aiperf/exporters/json_exporter.py and csv_exporter.py, db4f6397 (0.1.1);
//   src/aiperf/metrics/types/spec_decode_metrics.py, 1849cd1b
// - GenAI-Perf: triton-inference-server/perf_analyzer, genai-perf/genai_perf/export_data/, 263c5f6e
// - GuideLLM: vllm-project/guidellm, src/guidellm/benchmark/schemas/, ee7a7745 (0.7.3); `args`, run_stats: v0.3.1
// - llama-bench: ggml-org/llama.cpp, tools/llama-bench/README.md, 08d0baac
// - llama-batched-bench: ggml-org/llama.cpp, tools/batched-bench/batched-bench.cpp, 0a1f0179
// - llama-server: ggml-org/llama.cpp, tools/server/server-task.h (result_timings), 006639c3
// - llama-benchy: eugr/llama-benchy, schemas/benchmark_report_schema.json, 218200c6
// - trtllm-bench: NVIDIA/TensorRT-LLM, tensorrt_llm/bench/dataclasses/reporting.py, 02499765
#include "sim/answers/tune/runs.h"
#include "sim/foundation/base/text_file.h"
#include "sim/foundation/config/json.h"
#include "sim/foundation/config/words.h"
#include "sim/foundation/report/csv.h"
#include "sim/hardware/latency/llama_bench.h"
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/line_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::tune {

namespace {

using config::Value;

constexpr const char* kAllowed =
    "allowed: results of vllm bench serve, sglang.bench_serving, AIPerf, GenAI-Perf, GuideLLM, llama-bench, llama-batched-bench, "
    "llama-benchy or "
    "trtllm-bench, answers of llama-server, logs of vLLM or SGLang, or CSV with columns run, draft_length, concurrency, ...";
constexpr double kWhole =
    0.05;  // a mean this close to a whole number is taken as that number, since drafts at the end of an output are cut short

// Python's JSON has numbers that JSON lacks. They are replaced by texts of the same length, so that all places stay.
struct PythonNumber {
  std::string_view name;
  std::string_view text;
};
constexpr PythonNumber kPythonNumbers[] = {{"NaN", "\"N\""}, {"-Infinity", "\"-Infini\""}, {"Infinity", "\"Infini\""}};

const PythonNumber* python_number(const Value& value) {
  for (const PythonNumber& one : kPythonNumbers)
    if (value.quoted && value.text == one.text.substr(1, one.text.size() - 2)) return &one;
  return nullptr;
}

// Per-request values, which no Run uses. Skipping them saves memory.
bool is_bulk(std::string_view key) {
  static const std::vector<std::string_view> keys = config::words_of(
      "cumulative_distribution_function errors generated_texts input_lens itls latencies output_lens pdf queue_times "
      "requests requests_throughput_over_time samples_ns samples_ts start_times throughput_over_time ttfts values");
  return config::is_among(key, keys);
}

std::size_t end_of_string(std::string_view text, std::size_t quote) {
  std::size_t at = quote + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// The position after the bracket that closes the one at `from`; npos if the text ends before.
std::size_t end_of_brackets(std::string_view text, std::size_t from) {
  std::size_t depth = 0;
  for (std::size_t at = from; at < text.size();) {
    const char c = text[at];
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return at + 1;
    at = c == '"' ? end_of_string(text, at) : at + 1;
  }
  return std::string_view::npos;
}

// The values of a text with one JSON value after another, over many lines or one per line.
std::vector<Value> json_values(const std::string& path, std::string text, Diagnostics& diagnostics) {
  std::string_view key;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t end = end_of_string(text, at);
      key = std::string_view(text).substr(at + 1, end - std::min(at + 2, end));
      at = end;
    } else if ((c == '[' || c == '{') && is_bulk(key)) {
      const std::size_t end = end_of_brackets(text, at);
      if (end == std::string::npos) break;
      for (std::size_t i = at + 1; i + 1 < end; ++i)
        if (text[i] != '\n') text[i] = ' ';
      at = end;
      key = {};
    } else {
      const std::string_view rest = std::string_view(text).substr(at);
      const auto* const word = std::find_if(std::begin(kPythonNumbers), std::end(kPythonNumbers),
                                            [&](const PythonNumber& one) { return rest.starts_with(one.name); });
      if (word != std::end(kPythonNumbers)) text.replace(at, word->name.size(), word->text);
      if (c != ':' && c != ' ' && c != '\n' && c != '\r' && c != '\t') key = {};
      at += word != std::end(kPythonNumbers) ? word->name.size() : 1;
    }
  }
  std::vector<Value> values;
  int line = 1;
  for (std::size_t at = 0; at < text.size() && diagnostics.empty();) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
    if (begin == std::string::npos) break;
    line += static_cast<int>(
        std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    const std::size_t end =
        text[begin] == '[' || text[begin] == '{' ? std::min(end_of_brackets(text, begin), text.size()) : text.size();
    const std::size_t line_begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
    values.push_back(
        config::parse_json(std::string(begin - line_begin, ' ') + text.substr(begin, end - begin), path, diagnostics, line));
    line += static_cast<int>(
        std::count(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at = end;
  }
  return values;
}

// A result while it is converted to a Run.
class Result {
 public:
  Result(const Value& object, const std::map<std::string, double>& stated, Diagnostics& diagnostics)
      : object_(&object), stated_(&stated), diagnostics_(&diagnostics) {
    run.where = object.where;
  }

  [[nodiscard]] const Value* find(const std::string& path) const {
    const Value* const value = config::find_path(*object_, path);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  [[nodiscard]] std::string text(const std::string& path) const {
    const Value* const value = find(path);
    return value != nullptr && value->is_scalar() ? value->text : "";
  }
  std::optional<double> number(const std::string& path) {
    const Value* const value = find(path);
    if (value == nullptr) return std::nullopt;
    const std::optional<double> number = config::as_number(*value);
    if (!number) {
      const PythonNumber* const python = python_number(*value);
      diagnostics_->add(value->where, fmt::format("{} is {}, allowed: a number", path,
                                                  python ? std::string(python->name) : config::description_of_found(*value)));
    }
    return number;
  }
  // Sets a column's value from the field at `path`. A time or speed of 0 means that the client did not measure it.
  void set(const std::string& column, std::optional<double> value, const std::string& path) {
    if (!value) return;
    const auto& metrics = metric_names();
    if (*value == 0.0 && std::find(metrics.begin(), metrics.end(), column) != metrics.end()) return;
    const Value* const from = find(path);
    set_number(run, column, *value, from ? from->where : run.where, fmt::format("{} is {:g}", path, *value), *diagnostics_);
  }
  void drafts(std::optional<double> per_round) {
    speculates = true;
    if (!per_round) return;
    const double whole = std::round(*per_round);
    if (whole >= 1.0 && whole <= 1024.0 && std::abs(*per_round - whole) <= kWhole) run.draft_length = static_cast<int>(whole);
  }
  // Omits the result.
  bool skip(const std::string& why) {
    notes.push_back(why + "; omitted");
    return false;
  }
  // All requests were sent at once, so each counts as a client.
  void all_at_once() { run.concurrency = run.requests; }
  [[nodiscard]] bool is_stated(const std::string& column) const { return stated_->contains(column); }

  Run run;
  bool speculates = false;  // the file states that it speculates, but perhaps not the draft length
  std::vector<std::string> notes;

 private:
  const Value* object_;
  const std::map<std::string, double>* stated_;
  Diagnostics* diagnostics_;
};

// Rates by position as shares of all rounds. They rise only if counters were read while the server ran.
std::vector<double> position_rates(const Value* list, double unit, Diagnostics& diagnostics) {
  std::vector<double> rates;
  if (list == nullptr) return rates;
  for (const Value& item : list->items) {
    const std::optional<double> rate = config::as_number(item);
    if (!rate || *rate < 0.0 || *rate > unit * 1.001) {
      diagnostics.add(
          item.where,
          fmt::format("the acceptance rate of a position is {}, allowed: a number from 0 to {:g}",
                      python_number(item) ? std::string(python_number(item)->name) : config::description_of_found(item), unit));
      return {};
    }
    rates.push_back(std::min(*rate / unit, rates.empty() ? 1.0 : rates.back()));
  }
  return rates;
}

// vllm bench serve and sglang.bench_serving. Times are in milliseconds.
bool finish_serving(Result& result) {
  const double completed = result.number("completed").value_or(0.0);
  if (completed < 1.0) return result.skip("no request succeeded");
  if (result.find("ramp_up_strategy") != nullptr) return result.skip("the request rate rises during the run (ramp_up_strategy)");
  if (result.text("request_rate") == "trace") return result.skip("the requests follow a recorded trace (request_rate)");
  if (const auto failed = result.number("failed"); failed && *failed > 0.0)
    result.notes.push_back(fmt::format("{:g} requests failed", *failed));
  const auto mean = [&](const char* column, const char* total) {
    if (const auto tokens = result.number(total); tokens && *tokens > 0.0) result.set(column, *tokens / completed, total);
  };
  mean("prompt_tokens", "total_input_tokens");
  mean("output_tokens", "total_output_tokens");
  const Value* const rate = result.find("request_rate");
  const bool endless =
      rate == nullptr || rate->text == "inf" || (python_number(*rate) && python_number(*rate)->name == "Infinity");
  if (!endless) result.set("rate", result.number("request_rate"), "request_rate");
  if (endless && !result.run.concurrency) result.all_at_once();
  const auto rounds = result.number("spec_decode_num_drafts");
  const auto drafted = result.number("spec_decode_draft_tokens");
  if (!result.run.position_rates.empty())
    result.drafts(static_cast<double>(result.run.position_rates.size()));
  else if (rounds && drafted && *rounds > 0.0)
    result.drafts(*drafted / *rounds);
  const std::string algorithm = result.text("server_info.speculative_algorithm");
  if (!algorithm.empty()) {
    const auto width = result.number("server_info.speculative_eagle_topk");
    result.drafts(width.value_or(1.0) == 1.0 ? result.number("server_info.speculative_num_steps") : std::nullopt);
  }
  const auto length = result.number("accept_length");
  if (length && *length > 1.0) {
    result.set("acceptance_length", length, "accept_length");
    result.speculates = true;
  }
  return true;
}

// AIPerf and GenAI-Perf: every metric is {unit, avg, ...}.
bool finish_aiperf(Result& result) {
  const auto milliseconds = [&](const std::string& metric) -> std::optional<double> {
    static const std::map<std::string, double> units = {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1.0},
                                                        {"s", 1e3},   {"sec", 1e3}, {"", 1.0}};
    const auto unit = units.find(result.text(metric + ".unit"));
    const auto value = result.number(metric + ".avg");
    return value && unit != units.end() ? std::optional(*value * unit->second) : std::nullopt;
  };
  result.set("ttft_ms", milliseconds("time_to_first_token"), "time_to_first_token.avg");
  result.set("tpot_ms", milliseconds("inter_token_latency"), "inter_token_latency.avg");
  if (result.number("request_count.avg").value_or(1.0) < 1.0) return result.skip("no request succeeded");
  if (const auto failed = result.number("error_request_count.avg"); failed && *failed > 0.0)
    result.notes.push_back(fmt::format("{:g} requests failed", *failed));
  if (result.text("was_cancelled") == "true") result.notes.emplace_back("the run was cancelled");
  std::vector<std::string> loads = {"input_config.loadgen", "input_config.perf_analyzer.stimulus"};
  for (int phase = 0; result.find(fmt::format("input_config.phases.{}", phase)) != nullptr; ++phase)
    if (const std::string path = fmt::format("input_config.phases.{}", phase);
        result.text(path + ".exclude_from_results") != "true")
      loads.push_back(path);
  for (const std::string& load : loads) {
    for (const char* const rate : {".request_rate", ".rate"})
      if (!result.run.rate) result.set("rate", result.number(load + rate), load + rate);
    if (!result.run.concurrency) result.set("concurrency", result.number(load + ".concurrency"), load + ".concurrency");
  }
  const auto rounds = result.number("total_spec_decode_steps.avg");
  const auto drafted = result.number("total_draft_tokens.avg");
  for (const char* const length : {"spec_decode_token_weighted_acceptance_length.avg", "token_weighted_acceptance_length.avg",
                                   "spec_decode_acceptance_length.avg", "acceptance_length.avg"})
    if (!result.run.acceptance_length) result.set("acceptance_length", result.number(length), length);
  std::optional<double> rate;  // accepted / drafted tokens in percent
  for (const char* const path : {"spec_decode_overall_draft_acceptance_rate.avg", "overall_draft_acceptance_rate.avg"})
    if (!rate) rate = result.number(path);
  if (rounds && drafted && *rounds > 0.0)
    result.drafts(*drafted / *rounds);
  else if (result.run.acceptance_length)
    result.drafts(rate && *rate > 0.0 ? std::optional((*result.run.acceptance_length - 1.0) / (*rate / 100.0)) : std::nullopt);
  return true;
}

// One strategy of a GuideLLM report.
bool finish_guidellm(Result& result) {
  for (const char* const path :
       {"metrics.request_totals.successful", "request_totals.successful", "run_stats.requests_made.successful"})
    if (!result.run.requests) {
      const auto requests = result.number(path);
      if (requests && *requests < 1.0) return result.skip("no request succeeded");
      result.set("requests", requests, path);
    }
  for (const std::string strategy : {"config.strategy", "args.strategy"}) {
    const std::string type = result.text(strategy + ".type_");
    if (type == "synchronous") result.run.concurrency = 1.0;
    if (type == "concurrent") result.set("concurrency", result.number(strategy + ".streams"), strategy + ".streams");
    if (type == "throughput" || type == "constant" || type == "poisson")
      result.set("concurrency", result.number(strategy + ".max_concurrency"), strategy + ".max_concurrency");
    if (type == "constant" || type == "poisson") result.set("rate", result.number(strategy + ".rate"), strategy + ".rate");
    if (type == "throughput" && !result.run.concurrency) result.all_at_once();
    if (type == "trace") return result.skip("the requests follow a recorded trace");
  }
  return true;
}

bool finish_llama_benchy(Result& result) {
  if (result.text("is_context_prefill_phase") == "true") return result.skip("a context is filled before the measurement");
  const double context = result.number("context_size").value_or(0.0);
  const double prompt = result.number("prompt_size").value_or(0.0);
  result.set("prompt_tokens", std::max(1.0, prompt + context), "prompt_size");
  if (const auto speed = result.number("tg_req_throughput.mean"); speed && *speed > 0.0)
    result.set("tpot_ms", 1e3 / *speed, "tg_req_throughput.mean");
  else if (const auto total = result.number("tg_throughput.mean"); total && *total > 0.0 && result.run.concurrency)
    result.set("tpot_ms", 1e3 * *result.run.concurrency / *total, "tg_throughput.mean");
  // If the prefix cache may hold a context, the first token does not wait for the whole prompt.
  if (context == 0.0) result.set("ttft_ms", result.number("e2e_ttft.mean"), "e2e_ttft.mean");
  result.run.requests = result.run.concurrency;
  return true;
}

// A test of llama-bench is one sequence. Generation is timed without the prompt, and a prompt without the first token's sampling.
bool finish_llama_bench(Result& result) {
  const double prompt = result.number("n_prompt").value_or(0.0);
  const double generated = result.number("n_gen").value_or(0.0);
  const double depth = result.number("n_depth").value_or(0.0);
  const double speed = result.number("avg_ts").value_or(0.0);
  if (!(speed > 0.0)) return result.skip("no speed (avg_ts)");
  if (prompt > 0.0 && depth > 0.0) return result.skip("a prompt after a cached one (n_depth)");
  result.run.concurrency = result.run.requests = 1.0;
  result.set("prompt_tokens", std::max(1.0, prompt + depth), "n_prompt");
  result.set("output_tokens", std::max(1.0, generated), "n_gen");
  if (prompt > 0.0 && generated > 0.0)
    result.set("output_tokens_per_s", speed * generated / (prompt + generated), "avg_ts");
  else if (generated > 0.0)
    result.set("tpot_ms", 1e3 / speed, "avg_ts");
  else if (prompt > 0.0)
    result.set("ttft_ms", 1e3 * prompt / speed, "avg_ts");
  return true;
}

// llama-batched-bench reads all prompts, then generates for all at once. Seconds.
bool finish_batched_bench(Result& result) {
  const double sequences = result.run.concurrency.value_or(1.0);
  const auto prompt_s = result.number("t_pp");
  const auto output_s = result.number("t_tg");
  const double tokens = result.run.output_tokens.value_or(0.0);
  if (!output_s || !(*output_s > 0.0) || tokens < 1.0) return result.skip("nothing was generated (t_tg)");
  result.set("tpot_ms", 1e3 * *output_s / tokens, "t_tg");
  const std::string shared = result.text("is_pp_shared");
  if (sequences > 1.0 && !shared.empty() && shared != "0" && shared != "false") return true;  // the prompt is read once for all
  if (prompt_s) result.set("output_tokens_per_s", sequences * tokens / (*prompt_s + *output_s), "t_tg");
  if (prompt_s && sequences == 1.0) result.set("ttft_ms", 1e3 * *prompt_s, "t_pp");
  return true;
}

bool finish_trtllm(Result& result) {
  if (!result.run.requests) return result.skip("no request succeeded");
  if (const auto mean = result.number("request_info.avg_num_concurrent_requests"); mean && *mean > 0.0)
    result.set("concurrency", std::min(std::ceil(*mean - 1e-6), *result.run.requests),
               "request_info.avg_num_concurrent_requests");
  const auto drafted = result.number("decoding_stats.num_draft_tokens_percentiles.average");
  const auto accepted = result.number("decoding_stats.num_accepted_draft_tokens_percentiles.average");
  if (!drafted || !accepted || !result.run.output_tokens) return true;
  // Means over the requests: drafted = K x rounds, accepted = tokens - rounds.
  const double rounds = *result.run.output_tokens - *accepted;
  result.drafts(rounds > 0.0 ? std::optional(*drafted / rounds) : std::nullopt);
  if (rounds > 0.0)
    result.set("acceptance_length", *result.run.output_tokens / rounds,
               "decoding_stats.num_accepted_draft_tokens_percentiles.average");
  return true;
}

struct Field {
  const char* column;
  const char* path;
};
struct ClientFormat {
  std::vector<const char*> marks;  // fields that every result has, and no result of another client
  std::vector<Field> fields;       // columns that the file contains as they are
  bool (*finish)(Result& result);  // sets the other columns; false: the result is omitted
};

const std::vector<ClientFormat>& client_formats() {
  static const std::vector<ClientFormat> formats = {
      {{"completed", "total_output_tokens", "output_throughput"},
       {{"requests", "completed"},
        {"concurrency", "max_concurrency"},
        {"ttft_ms", "mean_ttft_ms"},
        {"tpot_ms", "mean_tpot_ms"},
        {"output_tokens_per_s", "output_throughput"},
        {"acceptance_length", "spec_decode_acceptance_length"}},
       finish_serving},
      {{"request_latency.avg", "output_token_throughput.avg"},
       {{"requests", "request_count.avg"},
        {"prompt_tokens", "input_sequence_length.avg"},
        {"output_tokens", "output_sequence_length.avg"},
        {"output_tokens_per_s", "output_token_throughput.avg"}},
       finish_aiperf},
      {{"metrics.output_tokens_per_second.successful", "metrics.inter_token_latency_ms"},
       {{"prompt_tokens", "metrics.prompt_token_count.successful.mean"},
        {"output_tokens", "metrics.output_token_count.successful.mean"},
        {"ttft_ms", "metrics.time_to_first_token_ms.successful.mean"},
        {"tpot_ms", "metrics.inter_token_latency_ms.successful.mean"},
        {"output_tokens_per_s", "metrics.output_tokens_per_second.successful.mean"}},
       finish_guidellm},
      {{"concurrency", "context_size", "prompt_size", "response_size"},
       {{"concurrency", "concurrency"}, {"output_tokens", "response_size"}},
       finish_llama_benchy},
      {{"n_prompt", "n_gen", "avg_ts"}, {}, finish_llama_bench},
      {{"pp", "tg", "pl", "t_tg"},
       {{"concurrency", "pl"}, {"requests", "pl"}, {"prompt_tokens", "pp"}, {"output_tokens", "tg"}},
       finish_batched_bench},
      {{"request_info.num_requests", "performance.system_output_throughput_tok_s"},
       {{"requests", "request_info.num_requests"},
        {"prompt_tokens", "request_info.avg_input_length"},
        {"output_tokens", "request_info.avg_output_length"},
        {"ttft_ms", "streaming_metrics.avg_ttft_ms"},
        {"tpot_ms", "streaming_metrics.avg_tpot_ms"},
        {"output_tokens_per_s", "performance.system_output_throughput_tok_s"}},
       finish_trtllm}};
  return formats;
}

// Labels in the printed output of clients, and the fields of the saved file that they correspond to.
struct Label {
  const char* label;
  const char* path;
};
constexpr Label kLabels[] = {{"Successful requests:", "completed"},
                             {"Failed requests:", "failed"},
                             {"Maximum request concurrency:", "max_concurrency"},
                             {"Max request concurrency:", "max_concurrency"},
                             {"Request rate configured (RPS):", "request_rate"},
                             {"Traffic request rate:", "request_rate"},
                             {"Total input tokens:", "total_input_tokens"},
                             {"Total generated tokens:", "total_output_tokens"},
                             {"Output token throughput (tok/s):", "output_throughput"},
                             {"Mean TTFT (ms):", "mean_ttft_ms"},
                             {"Mean TPOT (ms):", "mean_tpot_ms"},
                             {"Acceptance length:", "spec_decode_acceptance_length"},
                             {"Accept length:", "accept_length"},
                             {"Drafts:", "spec_decode_num_drafts"},
                             {"Draft tokens:", "spec_decode_draft_tokens"},
                             {"Number of requests:", "request_info.num_requests"},
                             {"Number of concurrent requests:", "request_info.avg_num_concurrent_requests"},
                             {"Average Input Length (tokens):", "request_info.avg_input_length"},
                             {"Average Output Length (tokens):", "request_info.avg_output_length"},
                             {"Total Output Throughput (tokens/sec):", "performance.system_output_throughput_tok_s"},
                             {"Average time-to-first-token [TTFT] (ms):", "streaming_metrics.avg_ttft_ms"},
                             {"Average time-per-output-token [TPOT] (ms):", "streaming_metrics.avg_tpot_ms"},
                             {"[DT] AVERAGE:", "decoding_stats.num_draft_tokens_percentiles.average"},
                             {"[ADT] AVERAGE:", "decoding_stats.num_accepted_draft_tokens_percentiles.average"}};

class ClientFile {
 public:
  ClientFile(std::string path, std::map<std::string, double> stated, Diagnostics& diagnostics)
      : path_(std::move(path)), stated_(std::move(stated)), diagnostics_(diagnostics) {}

  // Adds the result in an object, or those of a list or a report. Returns whether it is one.
  bool object(const Value& value) {
    if (value.is_list())
      return !value.items.empty() &&
             std::all_of(value.items.begin(), value.items.end(), [&](const Value& item) { return object(item); });
    if (const Value* const list = value.find("benchmarks"); list != nullptr && list->is_list()) return object(*list);
    const Result probe(value, stated_, diagnostics_);
    if (probe.find("timings.predicted_ms") != nullptr) return answer(value);
    for (const ClientFormat& format : client_formats())
      if (std::all_of(format.marks.begin(), format.marks.end(), [&](const char* mark) { return probe.find(mark) != nullptr; })) {
        Result result(value, stated_, diagnostics_);
        for (const Field& field : format.fields) result.set(field.column, zero_is_absent(result.number(field.path)), field.path);
        const Value* const rates = result.find("spec_decode_per_position_acceptance_rates");
        const Value* const printed = result.find("printed_position_rates");
        result.run.position_rates = position_rates(rates ? rates : printed, rates ? 1.0 : 100.0, diagnostics_);
        add(result, format.finish(result));
        return true;
      }
    return false;
  }

  void json(const std::string& text) {
    for (const Value& value : json_values(path_, text, diagnostics_))
      if (diagnostics_.empty() && !object(value)) {
        diagnostics_.add(value.where, fmt::format("no result of a known benchmark, {}", kAllowed));
        return;
      }
    finish_answers();
  }

  // Metric,avg,... and Metric,Value: the metrics of AIPerf's JSON under their display names.
  void aiperf_csv(const std::string& text) {
    Value root = config::map({}, {path_, 1, 1});
    std::istringstream lines(text);
    Location where{path_, 0, 0};
    for (std::string line; std::getline(lines, line);) {
      ++where.line;
      if (line.ends_with('\r')) line.pop_back();
      const auto fields = report::csv_fields(line);
      if (!fields || fields->size() < 2 || (*fields)[0] == "Metric" || (*fields)[1].empty()) continue;
      std::string name = (*fields)[0];
      std::string unit;
      if (const std::size_t at = name.rfind(" ("); at != std::string::npos) {
        unit = name.substr(at + 2, name.size() - at - 3);
        name.resize(at);
      }
      std::string key;
      for (const char c : name)
        key += c == ' ' || c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (key.empty() || root.find(key) != nullptr) continue;
      root.fields.push_back(
          {key, where,
           config::map({{"unit", config::scalar(unit, where)}, {"avg", config::scalar((*fields)[1], where)}}, where)});
    }
    if (!object(root))
      diagnostics_.add({path_, 1, 0}, fmt::format("no request latency and output token throughput, {}", kAllowed));
  }

  // The text that a client prints at the end of a run, with other lines around it.
  bool printed(const std::string& text) {
    std::istringstream lines(text);
    Location where{path_, 0, 0};
    Value root;
    Value positions;
    const auto end = [&] {
      if (root.is_map() && positions.is_list()) root.fields.push_back({"printed_position_rates", positions.where, positions});
      const bool known = root.is_map() && object(root);
      if (known) root = positions = {};
      return known;
    };
    bool any = false;
    for (std::string line; std::getline(lines, line);) {
      ++where.line;
      if (logs::text_after(line, "Number of requests:") && root.is_map() && root.find("request_info")) any |= end();
      if (line.size() > 20 && line.find_first_not_of("=\r") == std::string::npos && root.is_map() && root.find("completed"))
        any |= end();
      for (const auto& [label, path] : kLabels) {
        const auto rest = logs::text_after(line, label);
        if (!rest) continue;
        std::istringstream words{std::string(*rest)};
        std::string word;
        words >> word;
        if (word.empty() || word == "not" || word == "None") break;
        if (!root.is_map()) root = config::map({}, where);
        Diagnostics none;  // repeated labels have the same value
        config::set_path(root, path, config::scalar(word, where), where, none);
        break;
      }
      const std::string position = fmt::format("Position {}:", positions.items.size());
      if (const auto rest = logs::number_after(line, position);
          rest && root.is_map() && positions.items.size() < logs::kMostPositions) {
        positions.kind = config::Kind::list;
        positions.where = where;
        positions.items.push_back(config::scalar(fmt::format("{}", *rest), where));
      }
    }
    return end() || any;
  }

  void llama_bench(const std::string& text) {
    for (const cost::LlamaBenchTest& test : cost::read_llama_bench_tests(path_, text, diagnostics_)) {
      const Location where{path_, test.line, 0};
      const auto number = [&](double x) { return config::scalar(fmt::format("{}", x), where); };
      static_cast<void>(object(config::map({{"n_prompt", number(test.prompt)},
                                            {"n_gen", number(test.generated)},
                                            {"n_depth", number(test.depth)},
                                            {"avg_ts", number(test.tokens_per_s)}},
                                           where)));
    }
  }

  // |    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | ...
  void batched_bench(const std::string& text) {
    static const std::map<std::string, const char*> names = {
        {"PP", "pp"}, {"TG", "tg"}, {"B", "pl"}, {"T_PP s", "t_pp"}, {"T_TG s", "t_tg"}};
    std::istringstream lines(text);
    Location where{path_, 0, 0};
    std::vector<std::string> head;
    std::string shared = "0";
    for (std::string line; std::getline(lines, line);) {
      ++where.line;
      if (const auto is_shared = logs::number_after(line, "is_pp_shared =")) shared = fmt::format("{}", *is_shared);
      std::vector<std::string> cells;
      std::istringstream row(line);
      for (std::string cell; std::getline(row, cell, '|');) cells.emplace_back(logs::trimmed(cell));
      if (line.find("T_TG s") != std::string::npos) head = cells;
      if (head.size() < 2 || cells.size() != head.size() || !config::as_number(cells[1])) continue;
      Value root = config::map({{"is_pp_shared", config::scalar(shared, where)}}, where);
      for (std::size_t i = 0; i < head.size(); ++i)
        if (const auto at = names.find(head[i]); at != names.end())
          root.fields.push_back({at->second, where, config::scalar(cells[i], where)});
      if (!object(root)) diagnostics_.add(where, fmt::format("a row that lacks PP, TG, B or T_TG, {}", kAllowed));
    }
  }

  // Runs with throughput only: one per number of running requests that stayed within a tenth for two lines or more.
  void server_log(const std::string& text) {
    struct Steady {
      double running = 0.0;
      double tokens = 0.0;
      double seconds = 0.0;
      int lines = 0;
      Location where;
    };
    std::map<double, Steady> by_running;
    double before = 0.0;
    std::istringstream lines(text);
    Location where{path_, 0, 0};
    for (std::string line; std::getline(lines, line);) {
      ++where.line;
      const auto vllm = logs::number_after(line, "Avg generation throughput:");
      const auto speed = vllm ? vllm : logs::number_after(line, "gen throughput (token/s):");
      const auto running = logs::number_after(line, vllm ? "Running:" : "#running-req:");
      if (!speed || !running) continue;
      const double last = std::exchange(before, *running);
      if (!(*speed > 0.0) || *running < 1.0 || std::abs(*running - last) > 0.1 * std::max(*running, last)) continue;
      Steady& steady = by_running[*running];
      if (steady.lines++ == 0) steady.where = where;
      steady.running += *running;
      // A line of vLLM covers a fixed time, a line of SGLang a fixed number of steps.
      steady.tokens += vllm ? *speed : 1.0;
      steady.seconds += vllm ? 1.0 : 1.0 / *speed;
    }
    std::vector<Steady> groups;
    for (const auto& [running, steady] : by_running) {
      if (groups.empty() || running > 1.1 * groups.back().running / groups.back().lines) {
        groups.push_back(steady);
        continue;
      }
      Steady& group = groups.back();
      group.running += steady.running;
      group.tokens += steady.tokens;
      group.seconds += steady.seconds;
      group.lines += steady.lines;
      if (steady.where.line < group.where.line) group.where = steady.where;
    }
    if (groups.empty())
      diagnostics_.add({path_, 0, 0},
                       "no two consecutive lines have about the same number of running requests, allowed: a log with a period of "
                       "constant load");
    logs::LogReader reader;
    reader.add_text(text);
    const std::vector<logs::ReportedAcceptance> found = reader.finish().found;
    const std::vector<std::size_t> kinds = logs::distinct(found);
    for (const Steady& group : groups) {
      const Value nothing = config::map({}, group.where);
      Result result(nothing, stated_, diagnostics_);
      result.run.concurrency = std::round(group.running / group.lines);
      result.set("output_tokens_per_s", group.tokens / group.seconds, "throughput");
      result.speculates = !kinds.empty();
      if (kinds.size() == 1) {
        const logs::Findings findings = logs::find(found[kinds[0]]);
        result.run.draft_length = findings.draft_length;
        result.run.position_rates = findings.position_rates;
        if (findings.mean_length.known()) result.set("acceptance_length", findings.mean_length.value, "acceptance length");
      }
      add(result, true);
    }
  }

  std::vector<Run> take_runs() {
    const std::string stem = std::filesystem::path(path_).stem().string();
    for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i].name = runs_.size() == 1 ? stem : fmt::format("{}-{}", stem, i + 1);
    return std::move(runs_);
  }
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  // Sums over the answers of llama-server in a file.
  struct Answer {
    double prompt = 0.0;
    double cached = 0.0;
    double prompt_ms = 0.0;
    double output = 0.0;
    double output_ms = 0.0;
    double drafted = 0.0;
    double accepted = 0.0;
    Location where;
  };

  static std::optional<double> zero_is_absent(std::optional<double> value) {
    return value && *value == 0.0 ? std::nullopt : value;
  }

  bool answer(const Value& value) {
    Result result(value, stated_, diagnostics_);
    const auto count = [&](const char* path) { return std::max(0.0, result.number(path).value_or(0.0)); };  // -1: unknown
    Answer one{
        count("timings.prompt_n"),     count("timings.cache_n"), count("timings.prompt_ms"),        count("timings.predicted_n"),
        count("timings.predicted_ms"), count("timings.draft_n"), count("timings.draft_n_accepted"), value.where};
    // A streamed answer repeats its times with each piece; the last piece has all of them.
    const std::string id = result.text("id");
    if (!id.empty() && !answers_.empty() && id == last_id_)
      answers_.back() = one;
    else
      answers_.push_back(one);
    last_id_ = id;
    return true;
  }

  void finish_answers() {
    std::erase_if(answers_, [](const Answer& one) { return one.output < 2.0 || !(one.output_ms > 0.0); });
    if (answers_.empty()) return;
    const auto mean = [&](const auto& of) {
      double sum = 0.0;
      for (const Answer& one : answers_) sum += of(one);
      return sum / static_cast<double>(answers_.size());
    };
    const Value nothing = config::map({}, answers_.front().where);
    Result result(nothing, stated_, diagnostics_);
    result.run.requests = static_cast<double>(answers_.size());
    result.run.concurrency = 1.0;
    const double cached = mean([](const Answer& one) { return one.cached; });
    result.set("prompt_tokens", std::max(1.0, cached + mean([](const Answer& one) { return one.prompt; })), "timings.prompt_n");
    result.set("output_tokens", mean([](const Answer& one) { return one.output; }), "timings.predicted_n");
    if (cached == 0.0) result.set("ttft_ms", mean([](const Answer& one) { return one.prompt_ms; }), "timings.prompt_ms");
    // The clock starts at the first token (server-context.cpp: t_start_generation).
    result.set("tpot_ms", mean([](const Answer& one) { return one.output_ms / (one.output - 1.0); }), "timings.predicted_ms");
    const double drafted = mean([](const Answer& one) { return one.drafted; });
    const double emitted = mean([](const Answer& one) { return one.output - 1.0; });
    const double rounds = emitted - mean([](const Answer& one) { return one.accepted; });
    if (drafted > 0.0 && rounds > 0.0) {
      result.drafts(drafted / rounds);
      result.set("acceptance_length", emitted / rounds, "timings.draft_n_accepted");
    }
    add(result, true);
  }

  void add(Result& result, bool keep) {
    Run& run = result.run;
    for (const auto& [column, value] : stated_)
      set_number(run, column, value, {path_, 0, 0}, fmt::format("{} is {:g}", column, value), diagnostics_);
    if (keep && result.speculates && run.draft_length == 0 && !result.is_stated("draft_length")) {
      diagnostics_.add(run.where, fmt::format("the run speculates, but its draft length is not stated, allowed: {}@k=K", path_));
    } else if (keep && !run.concurrency && !run.rate) {
      diagnostics_.add(
          run.where,
          fmt::format("neither concurrency nor request rate is stated, allowed: {}@concurrency=N or {}@rate=R", path_, path_));
    } else if (keep) {
      check_run(run, diagnostics_);
      if (std::none_of(run.measured.begin(), run.measured.end(), [](const auto& metric) { return metric.has_value(); }))
        keep = result.skip("no time and no throughput");
    }
    for (const std::string& note : result.notes) warnings_.push_back(fmt::format("{}: {}", to_string(run.where), note));
    if (keep) runs_.push_back(std::move(run));
  }

  std::string path_;
  std::map<std::string, double> stated_;
  Diagnostics& diagnostics_;
  std::vector<Run> runs_;
  std::vector<std::string> warnings_;
  std::vector<Answer> answers_;
  std::string last_id_;
};

// Returns "FILE" of "FILE@k=3,concurrency=8", and puts the values after "@" into `stated`.
std::string split_stated(const std::string& path, std::map<std::string, double>& stated, Diagnostics& diagnostics) {
  const std::size_t at = path.rfind('@');
  if (at == std::string::npos || path.find('=', at) == std::string::npos) return path;
  std::vector<std::string> columns = run_columns();
  std::erase_if(columns, [](const std::string& column) { return column == "run" || column == "position_rates"; });
  std::istringstream settings(path.substr(at + 1));
  for (std::string setting; std::getline(settings, setting, ',');) {
    const std::size_t equals = setting.find('=');
    std::string column = setting.substr(0, equals);
    if (column == "k") column = "draft_length";
    const std::optional<double> value =
        equals == std::string::npos ? std::nullopt : config::as_number(setting.substr(equals + 1));
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      diagnostics.add({path, 0, 0},
                      not_allowed(fmt::format("unknown column {}", config::quote_for_message(column)), column, columns));
    else if (!value)
      diagnostics.add({path, 0, 0},
                      fmt::format("{} after @, allowed: COLUMN=NUMBER with commas between", config::quote_for_message(setting)));
    else
      stated[column] = *value;
  }
  return path.substr(0, at);
}

// Keeps JSON on separate lines, or after "data:" as servers stream it; all other text becomes blank.
std::string json_lines_alone(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.starts_with("data:") ? line.find_first_not_of(' ', 5) : 0;
    if (begin < line.size() && line[begin] == '{') kept += std::string(begin, ' ') + line.substr(begin);
    kept += '\n';
  }
  return kept;
}

// Logs can begin with "[" too.
bool is_json_list(std::string_view text) {
  const std::size_t item = text.find_first_not_of(" \t\r\n", 1);
  return text.front() == '[' && (item == std::string_view::npos || text[item] == '{' || text[item] == ']');
}

bool is_plain_csv(const std::string& line) {
  const auto fields = report::csv_fields(line);
  const std::vector<std::string>& columns = run_columns();
  return fields && std::any_of(fields->begin(), fields->end(), [&](const std::string& field) {
           return std::find(columns.begin(), columns.end(), field) != columns.end();
         });
}

}  // namespace

std::vector<Run> read_runs_text(const std::string& name, const std::string& text, const std::map<std::string, double>& stated,
                                Diagnostics& diagnostics, std::vector<std::string>* warnings) {
  Diagnostics own;
  const auto has = [&](const char* mark) { return text.find(mark) != std::string::npos; };
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::string first_line = text.substr(0, text.find_first_of("\r\n"));
  ClientFile reader(name, stated, own);
  std::vector<Run> runs;
  if (first == std::string::npos) {
    own.add({name, 0, 0}, fmt::format("the file is empty, {}", kAllowed));
  } else if (text[first] == '{' || is_json_list(std::string_view(text).substr(first))) {
    reader.json(text);
  } else if (is_plain_csv(first_line)) {
    runs = read_runs_csv(name, text, own);
    if (!stated.empty()) own.add({name, 0, 0}, "values after @ for a CSV file that has columns for them, allowed: none");
  } else if (first_line.starts_with("Metric,")) {
    reader.aiperf_csv(text);
  } else if ((has(" t/s |") && (has("| test ") || has(" test |"))) || (has("n_prompt") && has("avg_ts") && has(","))) {
    reader.llama_bench(text);
  } else if (has("T_TG s")) {
    reader.batched_bench(text);
  } else if (reader.printed(text)) {
    // printed() has read it
  } else if (has("Avg generation throughput:") || has("gen throughput (token/s):")) {
    reader.server_log(text);
  } else if (const std::string json = json_lines_alone(text); json.find('{') != std::string::npos) {
    reader.json(json);
  } else {
    const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first), '\n'));
    own.add({name, line, 1}, fmt::format("{}, {}", config::quote_for_message(first_line), kAllowed));
  }
  for (Run& run : reader.take_runs()) runs.push_back(std::move(run));
  const std::vector<std::string> notes = reader.take_warnings();
  if (own.empty() && runs.empty())
    own.add({name, 0, 0}, notes.empty() ? "the file contains no run, allowed: at least one"
                                        : fmt::format("every run was omitted ({}), allowed: at least one", notes.front()));
  for (const Diagnostic& mistake : own.list()) diagnostics.add(mistake.where, mistake.message);
  if (warnings != nullptr) warnings->insert(warnings->end(), notes.begin(), notes.end());
  return own.empty() ? runs : std::vector<Run>{};
}

std::vector<Run> read_runs(const std::string& path, Diagnostics& diagnostics, std::vector<std::string>* warnings) {
  std::map<std::string, double> stated;
  const std::size_t before = diagnostics.list().size();
  const std::string file = split_stated(path, stated, diagnostics);
  if (diagnostics.list().size() != before) return {};
  try {
    return read_runs_text(file, read_text_file(file), stated, diagnostics, warnings);
  } catch (const ReadError& error) {
    diagnostics.add({file, 0, 0}, error.message("benchmark result"));
    return {};
  }
}

}  // namespace specsim::tune
