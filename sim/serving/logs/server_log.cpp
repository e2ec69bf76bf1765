#include "sim/serving/logs/server_log.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace specsim::logs {

namespace {

struct KindText {
  LogKind kind;
  const char* server;
  const char* text;
};
constexpr std::array<KindText, 26> kKinds = {{
    {LogKind::vllm_log, "vllm", "vLLM's \"SpecDecoding metrics\" lines"},
    {LogKind::vllm_v0_log, "vllm", "vLLM's \"Speculative metrics\" lines (V0 engine)"},
    {LogKind::vllm_counters, "vllm", "vLLM's counters vllm:spec_decode_*"},
    {LogKind::vllm_v0_counters, "vllm", "vLLM's counters vllm:spec_decode_* (V0 engine)"},
    {LogKind::vllm_bench, "vllm", "vllm bench serve's report"},
    {LogKind::vllm_offline, "vllm", "the summary of vLLM's spec_decode.py"},
    {LogKind::vllm_answers, "vllm", "speculative_decoding in vLLM's answers"},
    {LogKind::sglang_log, "sglang", "SGLang's \"Decode batch\" lines"},
    {LogKind::sglang_gauges, "sglang", "SGLang's gauges sglang:spec_*"},
    {LogKind::sglang_bench, "sglang", "sglang.bench_serving's report"},
    {LogKind::sglang_answers, "sglang", "meta_info of SGLang's answers"},
    {LogKind::sglang_server_info, "sglang", "SGLang's server info"},
    {LogKind::llama_requests, "llama.cpp", "llama.cpp's \"draft acceptance\" lines"},
    {LogKind::llama_totals, "llama.cpp", "llama.cpp's \"statistics\" lines"},
    {LogKind::llama_example, "llama.cpp", "llama-speculative's totals"},
    {LogKind::llama_answers, "llama.cpp", "timings in llama.cpp's answers"},
    {LogKind::llama_spec_bench, "llama.cpp", "llama-spec-bench's table"},
    {LogKind::trtllm_steps, "tensorrt-llm", "TensorRT-LLM's specDecodingStats"},
    {LogKind::trtllm_counters, "tensorrt-llm", "TensorRT-LLM's counters trtllm_spec_decode_*"},
    {LogKind::trtllm_bench, "tensorrt-llm", "trtllm-bench's report"},
    {LogKind::trtllm_bench_serving, "tensorrt-llm", "TensorRT-LLM's benchmark_serving report"},
    {LogKind::lmdeploy_counters, "lmdeploy", "LMDeploy's counters lmdeploy:spec_decode_*"},
    {LogKind::tabby_answers, "tabbyapi", "drafts in tabbyAPI's answers"},
    {LogKind::aiperf_report, "aiperf", "AIPerf's report"},
    {LogKind::aiperf_records, "aiperf", "spec_decode_acceptance in AIPerf's records"},
    {LogKind::answer_files, "spec-bench", "answers of Spec-Bench or EAGLE"},
}};

const KindText& text_of(LogKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(), [&](const KindText& one) { return one.kind == kind; });
}

}  // namespace

const std::vector<std::string>& server_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KindText& one : kKinds)
      if (std::find(all.begin(), all.end(), one.server) == all.end()) all.emplace_back(one.server);
    return all;
  }();
  return names;
}

std::string server_name(LogKind kind) { return text_of(kind).server; }

std::string describe(LogKind kind) { return text_of(kind).text; }

double RisingCounts::Engine::Process::latest_beginning() const {
  double latest = -1.0;
  for (const auto& [name, time] : beginnings) latest = std::max(latest, time);
  return latest;
}

void RisingCounts::Engine::Process::forget() {
  for (auto& [name, one] : last) *one.total -= std::exchange(one.counted, 0.0);
}

bool RisingCounts::Engine::fell() const {
  const std::map<std::string, Value>& last = processes_[current_].last;
  return std::any_of(now_.begin(), now_.end(), [&](const auto& one) {
    const auto before = last.find(one.first);
    return !one.second.derived && before != last.end() && one.second.value < before->second.value;
  });
}

std::set<std::string> RisingCounts::Engine::lacking() const {
  std::set<std::string> names;
  for (const auto& [name, one] : processes_[current_].last)
    if (!one.derived && !now_.contains(name)) names.insert(name);
  return names;
}

// Finds the process of the current moment, by the time at which its counters began.
void RisingCounts::Engine::find_process() {
  step_ = Step::goes_on;
  unknown_ = false;
  if (processes_.empty()) {
    processes_.emplace_back();
    return;
  }
  const auto is_of = [&](const Process& process) {
    return std::all_of(beginnings_now_.begin(), beginnings_now_.end(), [&](const auto& one) {
      const auto known = process.beginnings.find(one.first);
      return known == process.beginnings.end() || known->second == one.second;
    });
  };
  if (!is_of(processes_[current_])) {
    const auto known = std::find_if(processes_.begin(), processes_.end(), is_of);
    if (known == processes_.end()) {
      double began = -1.0;
      for (const auto& [name, time] : beginnings_now_) began = std::max(began, time);
      unknown_ = began <= dropped_;
      const bool latest = std::all_of(processes_.begin(), processes_.end(),
                                      [&](const Process& process) { return process.latest_beginning() < began; });
      step_ = latest ? Step::later_process : Step::other_process;
      return;
    }
    current_ = static_cast<std::size_t>(known - processes_.begin());
  }
  if (fell()) step_ = Step::fell;
}

void RisingCounts::Engine::begin_process(RisingCounts& server) {
  constexpr std::size_t kMostProcesses = 16;
  Process fresh;
  fresh.from_zero = step_ != Step::other_process;
  fresh.lacks = lacking();
  const bool another = step_ == Step::later_process || step_ == Step::other_process;  // the one before may come again
  const std::size_t ended = another ? 0 : current_;
  if (!another || processes_.size() == kMostProcesses) {
    if (!processes_[ended].lacks.empty()) {
      processes_[ended].forget();
      ++server.left_out_;
    }
    if (another) dropped_ = std::max(dropped_, processes_[ended].latest_beginning());
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(ended));
  }
  processes_.push_back(std::move(fresh));
  current_ = processes_.size() - 1;
}

void RisingCounts::Engine::settle(bool growth_alone, RisingCounts& server) {
  const bool server_restarted = restarts_seen_ < server.restarts_ && processes_[current_].beginnings.empty();
  restarts_seen_ = server.restarts_;
  if (unknown_) {
    ++server.left_out_;
  } else {
    if (processes_[current_].last.empty() && processes_[current_].beginnings.empty())
      processes_[current_].from_zero |= server.restarts_ > 0;
    else if (step_ != Step::goes_on || server_restarted)
      begin_process(server);
    count(growth_alone, server);
  }
  now_.clear();
  beginnings_now_.clear();
}

void RisingCounts::Engine::count(bool growth_alone, RisingCounts& server) {
  Process& process = processes_[current_];
  for (const auto& [name, time] : beginnings_now_) process.beginnings[name] = time;
  const bool more = !process.last.empty() && std::any_of(now_.begin(), now_.end(), [&](const auto& one) {
    return !one.second.derived && !process.last.contains(one.first);
  });
  if (!lacking().empty()) {
    ++server.left_out_;
    server.apart_ |= more;
    return;
  }
  if (more) {  // the moments before were cut
    ++server.left_out_;
    process.forget();
    process.last.clear();
    std::erase_if(process.lacks, [&](const std::string& name) { return now_.contains(name); });
  } else if (!process.last.empty()) {
    process.lacks.clear();
  }
  for (const auto& [name, one] : now_) {
    const auto [before, first] = process.last.try_emplace(name, Value{0.0, one.total, one.derived, 0.0});
    const double growth = !first || !growth_alone || process.from_zero ? one.value - before->second.value : 0.0;
    *one.total += growth;
    before->second = {one.value, one.total, one.derived, before->second.counted + growth};
  }
}

void RisingCounts::settle(bool growth_alone) {
  bool restarted = false;
  for (Engine* const engine : noted_) {
    engine->find_process();
    restarted |= engine->step_ == Engine::Step::fell || engine->step_ == Engine::Step::later_process;
  }
  if (restarted) ++restarts_;
  for (Engine* const engine : noted_) {
    engine->settle(growth_alone, *this);
    engine->noted_ = false;
  }
  noted_.clear();
}

void RisingCounts::finish() {
  for (auto& [name, engine] : engines_)
    for (Engine::Process& process : engine.processes_)
      if (!process.lacks.empty()) {
        process.forget();
        ++left_out_;
      }
}

}  // namespace specsim::logs
