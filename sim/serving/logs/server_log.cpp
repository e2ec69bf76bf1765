#include "sim/serving/logs/server_log.h"

#include <algorithm>
#include <array>

namespace specsim::logs {

namespace {

struct KindText {
  Kind kind;
  const char* server;
  const char* text;
};
constexpr std::array<KindText, 26> kKinds = {{
    {Kind::vllm_log, "vllm", "vLLM's \"SpecDecoding metrics\" lines"},
    {Kind::vllm_v0_log, "vllm", "vLLM's \"Speculative metrics\" lines (V0 engine)"},
    {Kind::vllm_counters, "vllm", "vLLM's counters vllm:spec_decode_*"},
    {Kind::vllm_v0_counters, "vllm", "vLLM's counters vllm:spec_decode_* (V0 engine)"},
    {Kind::vllm_bench, "vllm", "vllm bench serve's report"},
    {Kind::vllm_offline, "vllm", "the summary of vLLM's spec_decode.py"},
    {Kind::vllm_answers, "vllm", "speculative_decoding in vLLM's answers"},
    {Kind::sglang_log, "sglang", "SGLang's \"Decode batch\" lines"},
    {Kind::sglang_gauges, "sglang", "SGLang's gauges sglang:spec_*"},
    {Kind::sglang_bench, "sglang", "sglang.bench_serving's report"},
    {Kind::sglang_answers, "sglang", "meta_info of SGLang's answers"},
    {Kind::sglang_server_info, "sglang", "SGLang's server info"},
    {Kind::llama_requests, "llama.cpp", "llama.cpp's \"draft acceptance\" lines"},
    {Kind::llama_totals, "llama.cpp", "llama.cpp's \"statistics\" lines"},
    {Kind::llama_example, "llama.cpp", "llama-speculative's totals"},
    {Kind::llama_answers, "llama.cpp", "timings in llama.cpp's answers"},
    {Kind::llama_spec_bench, "llama.cpp", "llama-spec-bench's table"},
    {Kind::trtllm_steps, "tensorrt-llm", "TensorRT-LLM's specDecodingStats"},
    {Kind::trtllm_counters, "tensorrt-llm", "TensorRT-LLM's counters trtllm_spec_decode_*"},
    {Kind::trtllm_bench, "tensorrt-llm", "trtllm-bench's report"},
    {Kind::trtllm_bench_serving, "tensorrt-llm", "TensorRT-LLM's benchmark_serving report"},
    {Kind::lmdeploy_counters, "lmdeploy", "LMDeploy's counters lmdeploy:spec_decode_*"},
    {Kind::tabby_answers, "tabbyapi", "drafts in tabbyAPI's answers"},
    {Kind::aiperf_report, "aiperf", "AIPerf's report"},
    {Kind::aiperf_records, "aiperf", "spec_decode_acceptance in AIPerf's records"},
    {Kind::answer_files, "spec-bench", "answers of Spec-Bench or EAGLE"},
}};

const KindText& text_of(Kind kind) {
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

std::string server_name(Kind kind) { return text_of(kind).server; }

std::string describe(Kind kind) { return text_of(kind).text; }

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
    // The counts before the text begins are unknown; after a restart all counts are new.
    if (!first || !growth_alone || restarts_ > 0) *one.total += one.value - before->second;
    before->second = one.value;
  }
  for (const auto& [name, time] : beginnings_now_) beginnings_[name] = time;
  now_.clear();
  beginnings_now_.clear();
}

}  // namespace specsim::logs
