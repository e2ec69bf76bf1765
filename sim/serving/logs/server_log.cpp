#include "sim/serving/logs/server_log.h"

#include <algorithm>
#include <array>

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

bool RisingCounts::Engine::shows_restart() const {
  const auto fell = [&](const auto& one) {
    const auto before = last_.find(one.first);
    return !one.second.derived && before != last_.end() && one.second.value < before->second;
  };
  const auto began_later = [&](const auto& one) {
    const auto before = beginnings_.find(one.first);
    return before != beginnings_.end() && one.second > before->second;
  };
  return std::any_of(now_.begin(), now_.end(), fell) || std::any_of(beginnings_now_.begin(), beginnings_now_.end(), began_later);
}

void RisingCounts::Engine::restart() {
  restarted_ = true;
  for (auto& [name, value] : last_) value = 0.0;
}

void RisingCounts::Engine::settle(bool growth_alone, bool new_counts) {
  // The counts before the text begins are unknown; after a restart all counts are new.
  const bool counts_first = !growth_alone || restarted_ || (last_.empty() && new_counts);
  for (const auto& [name, one] : now_) {
    const auto [before, first] = last_.try_emplace(name, 0.0);
    if (!first || counts_first) *one.total += one.value - before->second;
    before->second = one.value;
  }
  for (const auto& [name, time] : beginnings_now_) beginnings_[name] = time;
  now_.clear();
  beginnings_now_.clear();
}

void RisingCounts::settle(bool growth_alone) {
  const bool restarted =
      std::any_of(engines_.begin(), engines_.end(), [](const auto& one) { return one.second.shows_restart(); });
  if (restarted) ++restarts_;
  for (auto& [name, engine] : engines_) {
    if (restarted && (engine.beginnings_.empty() || engine.shows_restart())) engine.restart();
    engine.settle(growth_alone, restarts_ > 0);
  }
}

}  // namespace specsim::logs
