#include "sim/serving/logs/server_log.h"

#include "sim/serving/logs/line_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace specsim::logs {

namespace {

constexpr const char* kVllm = "vllm";
constexpr const char* kSglang = "sglang";
constexpr const char* kLlamaCpp = "llama.cpp";
constexpr const char* kTensorrtLlm = "tensorrt-llm";

}  // namespace

const std::vector<std::string>& server_names() {
  static const std::vector<std::string> names = {kVllm, kSglang, kLlamaCpp, kTensorrtLlm};
  return names;
}

std::string server_name(Kind kind) {
  switch (kind) {
    case Kind::vllm_log:
    case Kind::vllm_v0_log:
    case Kind::vllm_counters:
    case Kind::vllm_v0_counters:
    case Kind::vllm_bench:
      return kVllm;
    case Kind::sglang_log:
    case Kind::sglang_gauges:
    case Kind::sglang_bench:
      return kSglang;
    case Kind::llama_requests:
    case Kind::llama_totals:
    case Kind::llama_example:
    case Kind::llama_answers:
      return kLlamaCpp;
    case Kind::trtllm_steps:
    case Kind::trtllm_counters:
    case Kind::trtllm_bench:
    case Kind::trtllm_bench_serving:
      return kTensorrtLlm;
  }
  return "";
}

std::string describe(Kind kind) {
  switch (kind) {
    case Kind::vllm_log:
      return "vLLM's \"SpecDecoding metrics\" lines";
    case Kind::vllm_v0_log:
      return "vLLM's \"Speculative metrics\" lines (V0 engine)";
    case Kind::vllm_counters:
      return "vLLM's counters vllm:spec_decode_*";
    case Kind::vllm_v0_counters:
      return "vLLM's counters vllm:spec_decode_* (V0 engine)";
    case Kind::sglang_log:
      return "SGLang's \"Decode batch\" lines";
    case Kind::sglang_gauges:
      return "SGLang's gauges sglang:spec_*";
    case Kind::llama_requests:
      return "llama.cpp's \"draft acceptance\" lines";
    case Kind::llama_totals:
      return "llama.cpp's \"statistics\" lines";
    case Kind::llama_example:
      return "llama-speculative's totals";
    case Kind::trtllm_steps:
      return "TensorRT-LLM's specDecodingStats";
    case Kind::trtllm_counters:
      return "TensorRT-LLM's counters trtllm_spec_decode_*";
    case Kind::vllm_bench:
      return "vllm bench serve's report";
    case Kind::sglang_bench:
      return "sglang.bench_serving's report";
    case Kind::llama_answers:
      return "timings in llama.cpp's answers";
    case Kind::trtllm_bench:
      return "trtllm-bench's report";
    case Kind::trtllm_bench_serving:
      return "TensorRT-LLM's benchmark_serving report";
  }
  return "";
}

void RisingCounts::see(const std::string& name, double value, double& total, bool derived) {
  now_[name] = {value, &total, derived};
}

void RisingCounts::began(const std::string& name, double time) { beginnings_now_[name] = time; }

void RisingCounts::settle(bool growth_alone) {
  const auto fell = [&](const auto& one) {
    const auto before = last_.find(one.first);
    return !one.second.derived && before != last_.end() && one.second.value < before->second;
  };
  const auto began_later = [&](const auto& one) {
    const auto before = beginnings_.find(one.first);
    return before != beginnings_.end() && one.second > before->second;
  };
  const bool restarted =
      std::any_of(now_.begin(), now_.end(), fell) || std::any_of(beginnings_now_.begin(), beginnings_now_.end(), began_later);
  if (restarted) {
    ++restarts_;
    for (auto& [name, value] : last_) value = 0.0;
  }
  for (const auto& [name, one] : now_) {
    const auto [before, first] = last_.try_emplace(name, 0.0);
    // Of what a server counted before the text begins nothing is known; after a restart all of it is new.
    if (!first || !growth_alone || restarts_ > 0) *one.total += one.value - before->second;
    before->second = one.value;
  }
  for (const auto& [name, time] : beginnings_now_) beginnings_[name] = time;
  now_.clear();
  beginnings_now_.clear();
}

void LogReader::add_sample(ReportedAcceptance& acceptance, const Sample& sample) {
  constexpr std::size_t kMostSamples = std::size_t{1} << 20U;
  std::vector<Sample>& samples = acceptance.samples;
  if (samples.size() == kMostSamples) {  // neighbours together: their spread says the same of the whole
    for (std::size_t i = 0; i < samples.size() / 2; ++i) {
      const Sample& a = samples[2 * i];
      const Sample& b = samples[2 * i + 1];
      samples[i] = {a.rounds + b.rounds, a.accepted + b.accepted, a.judged + b.judged};
    }
    samples.resize(samples.size() / 2);
    for (auto& [id, slot] : llama_slots_) slot.request = 0;  // none of them lies where it did
    llama_answers_.clear();
  }
  samples.push_back(sample);
}

ReportedAcceptance& LogReader::of(Kind kind, int draft_length, const std::string& name) {
  const auto known = std::find_if(contents_.found.begin(), contents_.found.end(), [&](const ReportedAcceptance& one) {
    return one.kind == kind && one.draft_length == draft_length && one.name == name;
  });
  if (known != contents_.found.end()) return *known;
  ReportedAcceptance fresh;
  fresh.kind = kind;
  fresh.draft_length = draft_length;
  fresh.name = name;
  contents_.found.push_back(std::move(fresh));
  return contents_.found.back();
}

void LogReader::seen(ReportedAcceptance& acceptance) {
  if (acceptance.lines++ == 0) acceptance.first_line = contents_.lines;
  acceptance.last_line = contents_.lines;
}

void LogReader::contradict(ReportedAcceptance& acceptance, const std::string& what) {
  if (std::exchange(acceptance.last_contradiction, contents_.lines) == contents_.lines) return;
  if (acceptance.contradictions++ == 0) acceptance.first_contradiction = fmt::format("line {}: {}", contents_.lines, what);
}

void LogReader::cannot_read(const std::string& why) {
  if (contents_.unread++ == 0) contents_.first_unread = fmt::format("line {}: {}", contents_.lines, why);
}

void LogReader::add_line(std::string_view line) {
  ++contents_.lines;
  // What a terminal would write over: progress before a line, or a whole log without line feeds.
  while (true) {
    const std::size_t end = line.find('\r');
    if (end == std::string_view::npos || end + 1 == line.size()) break;
    if (end > 0) read_line(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  read_line(line);
}

void LogReader::read_line(std::string_view line) {
  constexpr std::size_t kLongestContinuation = 4096;
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_) + ' ' + std::string(line);
    pending_.clear();
    line = joined;
  }
  // Quoted in tickets and pages, a long line is often broken behind a comma.
  const std::string_view text = trimmed(line);
  if (!text.empty() && text.back() == ',' && text.size() < kLongestContinuation &&
      text.find("SpecDecoding metrics:") != std::string_view::npos) {
    pending_ = text;
    return;
  }
  if (read_vllm(line) || read_vllm_v0(line) || read_sglang(line) || read_trtllm(line) || read_llama_totals(line) ||
      read_llama(line) || read_counter(line) || read_sglang_gauge(line) || read_benchmark(line) || read_trtllm_bench(line) ||
      read_llama_answer(line))
    return;
  read_llama_example(line);
}

void LogReader::add_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    add_line(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

LogContents LogReader::finish() {
  if (!pending_.empty()) {
    const std::string line = std::move(pending_);
    pending_.clear();
    if (!read_vllm(line)) cannot_read("it ends in the middle of its figures");
  }
  finish_sglang();
  finish_sglang_gauges();
  settle_llama_totals();
  finish_counters();
  end_report();
  end_trtllm_report();
  // Lines of which none had a draft say nothing.
  std::erase_if(contents_.found, [](const ReportedAcceptance& one) { return one.rounds <= 0.0 && one.drafted <= 0.0; });
  return std::move(contents_);
}

}  // namespace specsim::logs
