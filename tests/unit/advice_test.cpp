// The part of a plan after its table: requirements of engines, and a draft length for every batch.
#include "sim/answers/plan/advice.h"

#include "sim/answers/plan/engine_flags.h"
#include "sim/answers/plan/passes.h"
#include "sim/hardware/latency/roofline.h"
#include "sim/rounds/draft/drafter.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace specsim::advice_test {

using plan::EngineCommand;

namespace {

cost::ModelShape shape(const std::string& yaml) {
  Diagnostics diagnostics;
  const cost::ModelShape model = cost::read_model(config::parse_text(yaml, "test", diagnostics), "model", diagnostics);
  diagnostics.throw_if_any();
  return model;
}

cost::Deployment deployment(const std::string& target, const std::string& draft) {
  Diagnostics diagnostics;
  cost::Deployment d;
  d.hardware = cost::read_hardware(config::scalar("h100-sxm", {"test", 1, 1}), diagnostics);
  d.engine = cost::read_engine(config::scalar("vllm", {"test", 1, 1}), diagnostics);
  diagnostics.throw_if_any();
  d.hardware.memory_bytes = 4e12;  // what does not fit has tests of its own
  d.target = shape(target);
  if (draft != "none") d.draft = shape(draft);
  return d;
}

cost::Deployment on(const char* gpu, cost::Deployment d) {
  Diagnostics diagnostics;
  d.hardware = cost::read_hardware(config::scalar(gpu, {"test", 1, 1}), diagnostics);
  diagnostics.throw_if_any();
  return d;
}

std::string preset(const std::string& name, const std::string& more = "") { return "{preset: " + name + more + "}"; }

// Of vLLM, SGLang, llama.cpp, TensorRT-LLM: the command, or "no: why".
std::vector<std::string> answers(const cost::Deployment& d, int draft_length = 3, double batch = 1.0) {
  std::vector<std::string> list;
  for (const EngineCommand& own : plan::engine_commands(d, draft_length, batch))
    list.push_back(own.command.empty() ? "no: " + own.notes.at(0) : own.command);
  return list;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

// All commands of presets, for tests/serve/server_commands_test.py: JSON, one a line, in the file that SPECSIM_COMMANDS names.
TEST_CASE("engines: every command that is printed", "[.commands]") {
  const char* const path = std::getenv("SPECSIM_COMMANDS");
  REQUIRE(path != nullptr);
  std::ofstream file(path);
  for (const plan::EngineFlags* flags :
       {&plan::vllm_flags(), &plan::sglang_flags(), &plan::llama_cpp_flags(), &plan::tensorrt_flags()})
    for (const plan::EngineFlag& one : flags->flags)
      file << nlohmann::json{{"engine", flags->engine}, {"version", flags->version}, {"flag", one.name}, {"source", one.source}}
           << '\n';
  struct Place {
    const char* gpu;
    const char* sharing;
    double batch;
    double context;
  };
  const std::vector<Place> places = {{"h100-sxm", "", 1, 2000},
                                     {"h100-sxm", ", tensor_parallel: 8", 64, 8000},
                                     {"h200-sxm", ", expert_parallel: 8", 32, 4000},
                                     {"h200-sxm", ", tensor_parallel: 16", 8, 4000},
                                     {"h200-sxm", ", expert_parallel: 16", 8, 4000},
                                     {"rtx-3090", "", 1, 2000},
                                     {"mi300x", "", 300, 4000},
                                     {"apple-m3-max", "", 1, 2000},
                                     {"tpu-v4", "", 1, 2000}};
  std::set<std::string> seen;
  const auto write = [&](const cost::Deployment& d, const Place& place, int draft_length) {
    const std::vector<plan::LengthRange> table = {{1, 8, draft_length}, {9, 300, 1}};
    for (const char* engine : {"vLLM", "SGLang", "llama.cpp", "TensorRT-LLM"})
      for (const bool by_batch : {false, true}) {
        if (by_batch && (draft_length == 0 || !plan::takes_lengths_by_batch(engine, d))) continue;
        const EngineCommand own =
            plan::engine_command(engine, d, draft_length, place.batch, by_batch ? table : decltype(table){}, place.context)
                .value();
        CHECK((!own.command.empty() || !own.notes.empty()));
        if (own.command.empty() || !seen.insert(place.gpu + own.command).second) continue;
        file << nlohmann::json{{"engine", engine},
                               {"gpu", place.gpu},
                               {"gpu_bytes", d.hardware.memory_bytes},
                               {"machine_gpus", d.hardware.machine_gpus},
                               {"target", d.target->name},
                               {"draft", d.draft ? d.draft->name : "none"},
                               {"tensor_parallel", d.target->tensor_parallel},
                               {"expert_parallel", d.target->expert_parallel},
                               {"batch", place.batch},
                               {"context", place.context},
                               {"draft_length", draft_length},
                               {"command", own.command}}
             << '\n';
      }
  };
  const auto read = [](const std::string& name, const std::string& sharing) -> std::optional<cost::ModelShape> {
    Diagnostics diagnostics;
    const cost::ModelShape model =
        cost::read_model(config::parse_text(preset(name, sharing), "test", diagnostics), "model", diagnostics);
    return diagnostics.empty() ? std::optional(model) : std::nullopt;
  };
  std::vector<cost::ModelShape> drafts;
  for (const std::string& name : cost::preset_names(cost::PresetKind::model)) drafts.push_back(read(name, "").value());
  for (const Place& place : places) {
    cost::Deployment d = on(place.gpu, deployment(preset("llama-3.1-8b"), "none"));
    for (const std::string& target : cost::preset_names(cost::PresetKind::model)) {
      const auto shape = read(target, place.sharing);
      if (!shape || shape->on_target()) continue;
      d.target = shape;
      d.draft.reset();
      for (const int draft_length : {0, 4}) write(d, place, draft_length);
      for (const cost::ModelShape& draft : drafts) {
        d.draft = draft;
        if (!cost::made_for_another(*d.target, *d.draft).empty()) continue;
        if (!d.draft->on_target() && (std::abs(d.draft->vocab - d.target->vocab) > 128.0 ||
                                      d.draft->total_parameters() > 0.3 * d.target->total_parameters()))
          continue;
        write(d, place, 4);
      }
    }
  }
}

TEST_CASE("engines: a draft is cut as its target is", "[plan][engines]") {
  const auto list =
      answers(deployment(preset("llama-3.1-70b", ", tensor_parallel: 4"), preset("llama-3.2-1b", ", tensor_parallel: 4")));
  REQUIRE(list.size() == 4);
  CHECK(holds(list[0], "--tensor-parallel-size 4 "));
  CHECK(holds(list[0], "\"method\": \"draft_model\", "));
  CHECK(holds(list[0], "\"draft_tensor_parallel_size\": 4"));
  CHECK(holds(list[1], "--tp 4 --speculative-algorithm STANDALONE"));
  CHECK(holds(list[2], "llama-server --model <path of llama-3.1-70b> --split-mode tensor "));
  // With another draft for the latency, the command must still start, and the output gives the difference. Printing the draft's
  // own 1 is the mutant: vLLM refuses it.
  const auto own =
      plan::engine_commands(deployment(preset("llama-3.1-70b", ", tensor_parallel: 4"), preset("llama-3.2-1b")), 3, 1);
  CHECK(holds(own[0].command, "\"draft_tensor_parallel_size\": 4"));
  REQUIRE(own[0].notes.size() == 1);
  CHECK(holds(own[0].notes[0], "--draft-tensor-parallel 4"));
  CHECK(own[1].notes.size() == 1);
}

TEST_CASE("engines: key and value heads are divided or copied equally", "[plan][engines]") {
  // Mutants: only query heads are checked (40 of phi-4 divide by 4); copies are refused (8 heads on 16 GPUs); the draft is not
  // looked at; latent vectors, which are copied whole, count as heads.
  const std::string four = answers(deployment(preset("phi-4", ", tensor_parallel: 4"), "none"))[0];
  CHECK(holds(four, "no: tensor parallel 4 does not divide the 10 key and value heads of phi-4 equally; allowed: 1, 2, 5"));
  const auto list = answers(deployment(preset("phi-4", ", tensor_parallel: 4"), "none"));
  CHECK(holds(list[1], "no: tensor parallel 4"));
  CHECK(holds(list[3], "no: tensor parallel 4"));
  CHECK_FALSE(holds(answers(deployment(preset("phi-4", ", tensor_parallel: 2"), "none"))[0], "no: "));
  CHECK_FALSE(holds(answers(deployment(preset("llama-3.1-70b", ", tensor_parallel: 16"), "none"))[0], "no: "));
  CHECK(holds(answers(deployment(preset("llama-3.1-70b", ", tensor_parallel: 4"),
                                 "{preset: llama-3.2-1b, heads: 40, kv_heads: 10, tensor_parallel: 4}"))[0],
              "no: tensor parallel 4 does not divide the 10"));
  CHECK_FALSE(holds(answers(deployment(preset("deepseek-v3", ", tensor_parallel: 8"), "none"))[0], "no: "));
}

TEST_CASE("engines: experts whose blocks a slice would cut stay whole", "[plan][engines]") {
  const auto flags = [](const std::string& target) {
    const auto list = answers(deployment(target, "none"));
    return std::vector<bool>{holds(list[0], " --enable-expert-parallel"), holds(list[1], " --ep "),
                             holds(list[3], " --ep_size ")};
  };
  using List = std::vector<bool>;
  CHECK(flags(preset("minimax-m2", ", tensor_parallel: 8")) == List{true, true, true});
  CHECK(flags(preset("minimax-m2", ", tensor_parallel: 4")) == List{false, false, false});
  CHECK(flags(preset("qwen3-30b-a3b", ", tensor_parallel: 4, dtype: fp8_block")) == List{true, true, true});
  CHECK(flags(preset("qwen3-30b-a3b", ", tensor_parallel: 4, dtype: fp8")) == List{false, false, false});  // scales by tensor
  CHECK(flags(preset("qwen3-30b-a3b", ", tensor_parallel: 4")) == List{false, false, false});
}

TEST_CASE("engines: servers on several machines", "[plan][engines]") {
  const auto of = [](const char* gpu, const std::string& target) {
    cost::Deployment d = on(gpu, deployment(preset("llama-3.1-8b"), "none"));
    d.hardware.memory_bytes = 4e12;
    d.target = shape(target);
    return plan::engine_commands(d, 3, 1);
  };
  const auto two = of("h100-sxm", preset("deepseek-v3", ", tensor_parallel: 16"));
  CHECK(holds(two[0].command, " --nnodes 2 --node-rank 0 --master-addr <address of machine 0>"));
  CHECK(holds(two[0].needs.front(), "2 machines with 8 GPUs each"));
  CHECK(holds(two[0].needs.front(), "--node-rank N --headless"));
  CHECK(holds(two[1].command, " --nnodes 2 --node-rank 0 --dist-init-addr <address of machine 0>:5000"));
  CHECK(two[2].command.empty());
  CHECK(holds(two[3].needs.front(), "srun --nodes 2 --ntasks-per-node 8 --mpi pmix trtllm-llmapi-launch"));
  // A rack's links join 72 GPUs, but a tray has four. Mutant: linked_gpus.
  CHECK(holds(of("gb200", preset("llama-3.1-70b", ", tensor_parallel: 8"))[1].command, "--nnodes 2"));
  CHECK_FALSE(holds(of("gb200", preset("llama-3.1-70b", ", tensor_parallel: 4"))[1].command, "--nnodes"));
  const auto sharing = of("h200-sxm", preset("deepseek-v3", ", expert_parallel: 16"))[0];
  CHECK(holds(sharing.command, " --data-parallel-size-local 8 --data-parallel-address <address of machine 0>"));
  CHECK(holds(sharing.needs.front(), "--headless --data-parallel-start-rank 8N"));
}

TEST_CASE("engines: code of a model's repository runs on request only", "[plan][engines]") {
  for (const char* target : {"kimi-k2", "kimi-k2.5", "kimi-k3", "mimo-v2-flash"}) {
    const auto list = answers(deployment(preset(target, ", tensor_parallel: 8"), "none"));
    CHECK(holds(list[0], " --trust-remote-code"));
    CHECK(holds(list[1], " --trust-remote-code"));
  }
  CHECK_FALSE(holds(answers(deployment(preset("deepseek-v3", ", tensor_parallel: 8"), "none"))[0], "--trust-remote-code"));
}

TEST_CASE("engines: SGLang's NGRAM and DSPARK run on NVIDIA's GPUs", "[plan][engines]") {
  for (const char* draft : {"none", "dspark-qwen3-8b"}) {
    const cost::Deployment d = deployment(preset("qwen3-8b"), draft == std::string("none") ? draft : preset(draft));
    CHECK(holds(answers(d)[1], "--speculative-algorithm"));
    for (const char* gpu : {"mi300x", "arc-pro-b60"}) CHECK(holds(answers(on(gpu, d))[1], "runs on NVIDIA's GPUs only"));
    CHECK_FALSE(holds(answers(on("mi300x", d))[0], "no: "));
  }
  CHECK_FALSE(holds(answers(on("mi300x", deployment(preset("qwen3-8b"), preset("dspark-qwen3-8b"))), 0)[1], "no: "));
}

TEST_CASE("engines: as many sequences as vLLM runs by itself ask for no flag", "[plan][engines]") {
  // 1,024 on GPUs of 70 GiB and more, 256 on others. Mutants: 256 everywhere; the flag is printed at the default itself.
  cost::Deployment d = deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b"));
  const auto flagged = [&](double batch) { return holds(answers(d, 3, batch)[0], fmt::format("--max-num-seqs {:g} ", batch)); };
  CHECK_FALSE(flagged(300));
  CHECK_FALSE(flagged(1024));
  CHECK(flagged(1025));
  d = on("l40s", d);
  CHECK_FALSE(flagged(256));
  CHECK(flagged(257));
}

TEST_CASE("engines: a command starts in the memory that there is", "[plan][engines]") {
  // vLLM refuses a context that does not fit; 131,072 tokens of 128 KiB are 16 GiB. Mutant: no flag on 24 GB either.
  const cost::Deployment small = deployment(preset("llama-3.1-8b"), "none");
  CHECK(holds(answers(on("rtx-3090", small))[0], " --max-model-len 32768 "));
  CHECK(holds(answers(on("rtx-3090", small))[3], " --max_seq_len "));
  CHECK_FALSE(holds(answers(on("h100-sxm", small))[0], "--max-model-len"));
  // 16,384 tokens fit llama.cpp's 24 GB with the weights, 32,768 do too, 65,536 do not.
  CHECK(holds(answers(on("rtx-3090", small))[2], " --ctx-size 32768 "));
  CHECK(holds(answers(on("rtx-3090", small), 3, 2)[2], " --ctx-size 32768 --parallel 2 "));
  for (const std::string& answer : answers(on("h100-sxm", deployment(preset("deepseek-v3"), preset("deepseek-v3-mtp")))))
    CHECK(holds(answer, "no: "));  // 672 GB on one card
}

TEST_CASE("engines: GPUs that share the experts", "[plan][engines]") {
  const cost::Deployment d = deployment(preset("deepseek-v3", ", expert_parallel: 8"), preset("deepseek-v3-mtp"));
  const auto list = answers(d, 3, 16);
  CHECK(plan::gpus_of(d) == 8.0);
  CHECK(holds(list[0], " --data-parallel-size 8 --enable-expert-parallel "));
  CHECK(holds(list[1], " --tp 8 --dp 8 --enable-dp-attention --ep 8 --max-running-requests 128 "));  // of all GPUs
  CHECK(holds(list[2], "no: it does not support GPUs that share the experts"));
  CHECK(holds(list[3], "'{enable_attention_dp: true, "));
  CHECK(holds(list[3], " --tp_size 8 --ep_size 8 --max_batch_size 16 "));
  // Mutant: n-grams go to SGLang too, which refuses them with --enable-dp-attention.
  CHECK(holds(answers(deployment(preset("deepseek-v3", ", expert_parallel: 8"), "none"))[1], "no: with --enable-dp-attention"));
}

TEST_CASE("engines: a server without speculation is started as one with it", "[plan][engines]") {
  // Mutants: the flags of n-grams stay, the draft stays, a server gets tensor parallelism alone.
  const auto plain = answers(
      deployment(preset("llama-3.1-70b", ", tensor_parallel: 4, weight_bits: 8, kv_bits: 8"), preset("llama-3.2-1b")), 0, 64);
  CHECK(plain[0] == "vllm serve <path of llama-3.1-70b with 8-bit weights> --tensor-parallel-size 4 --kv-cache-dtype fp8");
  CHECK(
      plain[1] ==
      "python3 -m sglang.launch_server --model-path <path of llama-3.1-70b with 8-bit weights> --tp 4 --kv-cache-dtype fp8_e4m3");
  CHECK(plain[2].starts_with("no: its --split-mode tensor refuses a cache of fewer than 16 bits"));
  CHECK(
      plain[3].starts_with("echo '{kv_cache_config: {dtype: fp8}}' > options.yaml && trtllm-serve <path of llama-3.1-70b with "
                           "8-bit weights> --tp_size 4 "));
  for (const std::string& command : plain) CHECK_FALSE(holds(command, "spec"));
  const auto shared = answers(deployment(preset("deepseek-v3", ", expert_parallel: 8"), "none"), 0, 16);
  CHECK(holds(shared[0], " --data-parallel-size 8 --enable-expert-parallel"));
  CHECK(holds(shared[1], " --tp 8 --dp 8 --enable-dp-attention --ep 8"));
}

TEST_CASE("engines: GPUs that an engine has no server for", "[plan][engines]") {
  // By the maker in the hardware's file, whatever its name. Mutant: names that begin with apple or tpu, which none does.
  const auto refused = [](const char* gpu, const std::string& name = "") {
    cost::Deployment d = on(gpu, deployment(preset("llama-3.2-1b"), "none"));
    d.hardware.memory_bytes = 4e12;
    if (!name.empty()) d.hardware.name = name;
    std::string list;
    for (const std::string& answer : answers(d)) list += holds(answer, "no: it has no server for") ? '-' : '+';
    return list;
  };
  // vLLM, SGLang, llama.cpp, TensorRT-LLM.
  CHECK(refused("apple-m4-max") == "--+-");
  CHECK(refused("apple-m4-max", "own") == "--+-");
  CHECK(refused("tpu-v4") == "----");
  CHECK(refused("mi300x") == "+++-");
  CHECK(refused("arc-b580") == "+++-");
  CHECK(refused("v100-sxm") == "--+-");
  CHECK(refused("t4") == "+++-");
  CHECK(refused("a100-80gb-sxm") == "++++");
  CHECK(refused("a100-80gb-sxm", "Apple") == "++++");
}

TEST_CASE("engines: targets that llama.cpp does not split", "[plan][engines]") {
  const auto split = [](const std::string& target, const std::string& more = "") {
    const std::string own = answers(deployment(preset(target, ", dtype: q8_0, tensor_parallel: 8" + more), "none"))[2];
    CHECK(own.starts_with("llama-server ") != own.starts_with("no: its --split-mode tensor refuses "));
    return holds(own, "> --split-mode tensor ");
  };
  for (const char* target : {"llama-3.1-70b", "qwen3-235b-a22b", "qwen3.6-27b", "gpt-oss-120b", "gemma-4-31b"})
    CHECK(split(target));
  for (const char* target : {"deepseek-v3", "deepseek-v3.2", "kimi-k2", "kimi-k2.5", "glm-5", "minimax-m2"})
    CHECK_FALSE(split(target));
  CHECK_FALSE(split("llama-3.1-70b", ", kv_bits: 8"));
  CHECK_FALSE(split("llama-3.1-70b", ", architecture: olmo2"));
}

TEST_CASE("engines: files of weights", "[plan][engines]") {
  const auto list = answers(deployment(preset("qwen3-14b", ", dtype: q4_k_m"), preset("qwen3-0.6b")));
  CHECK(list[0].starts_with("vllm serve <path of qwen3-14b.gguf with 4.8-bit weights> --tokenizer <path of qwen3-14b> "));
  CHECK(holds(list[1], "--load-format gguf --speculative-draft-load-format auto "));
  CHECK(list[2].starts_with("llama-server --model <path of qwen3-14b.gguf "));
  CHECK(list[3] == "no: it loads no GGUF files");
  CHECK(holds(answers(deployment(preset("qwen3-14b"), preset("qwen3-0.6b", ", dtype: q8_0")))[1],
              "--speculative-draft-load-format gguf "));
  // llama.cpp loads nothing else. ggml has types for mxfp4 and nvfp4.
  for (const char* dtype : {"fp8", "fp8_block", "int8", "int4", "{weights: fp8, activations: bf16}"})
    CHECK(
        holds(answers(deployment(preset("qwen3-14b", std::string(", dtype: ") + dtype), "none"))[2], "no: it loads GGUF files"));
  for (const char* target : {"gpt-oss-20b", "qwen3-14b"})
    CHECK(holds(answers(deployment(preset(target), "none"))[2], "llama-server --model "));
}

TEST_CASE("engines: Gemma 4's assistants are modules with a file", "[plan][engines]") {
  const auto list = answers(deployment(preset("gemma-4-31b"), preset("gemma-4-31b-assistant")));
  CHECK(holds(list[0], "\"method\": \"mtp\", \"model\": \"<path of gemma-4-31b-assistant>\""));
  CHECK(holds(list[1], "--speculative-algorithm NEXTN --speculative-draft-model-path <path of gemma-4-31b-assistant>"));
  CHECK(holds(list[2], "--spec-type draft-mtp --model-draft <path of gemma-4-31b-assistant> "));
  CHECK(holds(list[3], "decoding_type: MTP, speculative_model: <path of gemma-4-31b-assistant>"));
  // It reads the features of its own target.
  for (const std::string& answer : answers(deployment(preset("gemma-4-26b-a4b"), preset("gemma-4-31b-assistant"))))
    CHECK(holds(answer, "no: the head reads features that are 5376 wide"));
}

TEST_CASE("engines: acceptance of other models", "[plan][engines]") {
  const cost::Deployment d = deployment(preset("qwen3-32b"), preset("qwen3-1.7b"));
  const auto warned = [&](const plan::RecordedModels& recorded) { return !plan::pair_warnings(d, recorded).empty(); };
  CHECK_FALSE(warned({}));
  CHECK_FALSE(warned({"qwen3-32b", "qwen3-1.7b"}));
  CHECK_FALSE(warned({"{preset: qwen3-32b, dtype: fp8}", "qwen3-1.7b"}));
  CHECK(warned({"qwen3-14b", "qwen3-1.7b"}));
  CHECK(warned({"qwen3-32b", "qwen3-0.6b"}));
  CHECK(warned({"", "none"}));
  CHECK_FALSE(warned({"", "eagle-head-8b"}));  // a draft for the latency only
  // A user's own file is known by its widths.
  cost::Deployment own = d;
  own.target->name = "our fine-tune";
  CHECK(plan::pair_warnings(own, {"qwen3-32b", "qwen3-1.7b"}).empty());
  CHECK_FALSE(plan::pair_warnings(own, {"qwen3-14b", "qwen3-1.7b"}).empty());
  // A head that names its target.
  cost::Deployment head = deployment(preset("llama-3.1-8b"), preset("eagle-head-8b", ", verifier: meta-llama/Llama-3.1-8B"));
  CHECK(plan::pair_warnings(head).empty());
  head = deployment(preset("qwen3-8b"), preset("eagle3-qwen3-8b", ", name: head, verifier: Qwen/Qwen3-4B"));
  CHECK(plan::pair_warnings(head).size() == 1);
}

TEST_CASE("engines: a context flag only where the cache does not hold the model's own", "[plan][engines]") {
  const cost::Deployment known = deployment(preset("mistral-small-24b"), "none");
  CHECK_FALSE(holds(answers(known)[0], "--max-model-len"));
  CHECK_FALSE(holds(answers(known)[3], "--max_seq_len"));
  CHECK(holds(answers(known)[2], "--ctx-size 32768 "));
  cost::Deployment unknown = known;
  unknown.target->context.reset();
  for (const cost::Deployment& d : {unknown, on("a40", unknown)}) {
    const auto own = plan::engine_command("vLLM", d, 3, 1, {}).value();
    CHECK_FALSE(holds(own.command, "--max-model-len"));
    if (!own.command.empty()) CHECK(holds(own.needs.at(0), "add --max-model-len 2304"));
  }
  const auto own = plan::engine_command("llama.cpp", unknown, 3, 1, {}).value();
  CHECK(holds(own.command, "--ctx-size 2304 "));
  CHECK(std::any_of(own.needs.begin(), own.needs.end(), [](const std::string& note) { return holds(note, "--ctx-size 2304"); }));
  // llama.cpp holds the whole of it where that is no power of two. Mutant: powers of two alone.
  CHECK(holds(answers(deployment(preset("qwen3-8b"), "none"))[2], "--ctx-size 40960 "));
}

TEST_CASE("engines: a cache that no server has", "[plan][engines]") {
  // Mutant: every narrow cache is printed as one of 8 bits.
  for (const std::string& answer : answers(deployment(preset("llama-3.1-8b", ", kv_bits: 3"), "none")))
    CHECK(answer == "no: it has no cache of 3 bits for each key or value");
}

TEST_CASE("engines: the server of an engine, by its preset or its file's name", "[plan][engines]") {
  const auto served = [](const std::string& text) {
    Diagnostics diagnostics;
    return plan::server_of(cost::read_engine(config::parse_text(text, "test", diagnostics), diagnostics));
  };
  for (const char* engine : {"vllm", "vllm_sync", "{preset: vllm_sync, host_us: 1}"}) CHECK(served(engine) == "vLLM");
  for (const char* engine : {"sglang", "sglang_0_4", "{preset: sglang, host_us: 1}"}) CHECK(served(engine) == "SGLang");
  for (const char* engine : {"llama_cpp", "{preset: llama_cpp, host_us: 1}"}) CHECK(served(engine) == "llama.cpp");
  for (const char* engine : {"trtllm", "{preset: trtllm, host_us: 1}"}) CHECK(served(engine) == "TensorRT-LLM");
  CHECK(served("bare").empty());
}

TEST_CASE("engines: draft lengths by batch go to those that take them", "[plan][engines]") {
  const cost::Deployment d = deployment(preset("llama-3.1-8b"), preset("eagle3-llama-3.1-8b"));
  const std::vector<plan::LengthRange> table = {{1, 25, 4}, {26, 96, 2}, {97, 256, 0}};
  const auto command = [&](const std::string& engine) { return plan::engine_command(engine, d, 4, 256, table).value().command; };
  const std::vector<std::string> notes = plan::engine_command("vLLM", d, 4, 256, table).value().needs;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) { return holds(note, "needs vLLM 0.24"); }));
  CHECK(command("vLLM").starts_with("VLLM_USE_V2_MODEL_RUNNER=1 vllm serve "));
  CHECK(holds(command("vLLM"),
              "\"num_speculative_tokens\": 4, \"num_speculative_tokens_per_batch_size\": [[1, 25, 4], [26, 96, 2], "
              "[97, 256, 0]]}'"));
  // Above its last threshold TensorRT-LLM drafts nothing.
  CHECK(holds(command("TensorRT-LLM"), "max_draft_len: 4, draft_len_schedule: {25: 4, 96: 2}}"));
  CHECK(holds(command("SGLang"), "--speculative-num-steps 4 --speculative-eagle-topk 1 --speculative-num-draft-tokens 5"));
  CHECK(holds(command("llama.cpp"), "--spec-draft-n-max 4"));
  // Tables that vLLM drops (data parallelism), or runs without full CUDA graphs (methods that only its first model runner has),
  // and those of Gemma 4's assistants in TensorRT-LLM. Mutant: engine names alone decide.
  const auto takes = [&](const std::string& engine, const cost::Deployment& other) {
    const std::string own = plan::engine_command(engine, other, 4, 256, table).value().command;
    const bool printed = holds(own, "per_batch_size") || holds(own, "draft_len_schedule");
    CHECK(printed == plan::takes_lengths_by_batch(engine, other));
    CHECK(holds(own, "VLLM_USE_V2_MODEL_RUNNER") == (printed && engine == "vLLM"));
    return printed;
  };
  CHECK(takes("vLLM", d));
  CHECK(takes("TensorRT-LLM", d));
  CHECK_FALSE(takes("SGLang", d));
  CHECK_FALSE(takes("vLLM", deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b"))));
  CHECK_FALSE(takes("vLLM", deployment(preset("llama-3.1-8b"), "none")));
  CHECK_FALSE(takes("vLLM", deployment(preset("deepseek-v3", ", expert_parallel: 8"), preset("deepseek-v3-mtp"))));
  const cost::Deployment assistant = deployment(preset("gemma-4-31b"), preset("gemma-4-31b-assistant"));
  CHECK(takes("vLLM", assistant));
  CHECK_FALSE(takes("TensorRT-LLM", assistant));
  CHECK(plan::takes_lengths_that_rise("vLLM"));
  CHECK_FALSE(plan::takes_lengths_that_rise("TensorRT-LLM"));
  CHECK_FALSE(plan::engine_command("static", d, 4, 256, table).has_value());
  CHECK_FALSE(holds(plan::engine_command("vLLM", d, 4, 256, {}).value().command, "per_batch_size"));
  CHECK(
      plan::engine_command("TensorRT-LLM", deployment(preset("llama-2-7b"), preset("llama-3.2-1b")), 4, 1, {}).value().command ==
      "");
}

TEST_CASE("engines: drafts from one pass have their own method", "[plan][engines]") {
  const auto block = answers(deployment(preset("llama-3.1-8b"), preset("eagle-head-8b", ", layers: 5, one_pass: true")), 15);
  CHECK(holds(block[0], "\"method\": \"dflash\", \"model\": "));
  CHECK(holds(block[0], "\"num_speculative_tokens\": 15"));
  CHECK(holds(block[1], "--speculative-algorithm DFLASH --speculative-draft-model-path "));
  CHECK(holds(block[1], "--speculative-num-draft-tokens 16"));  // with the token before them
  CHECK(holds(block[2], "--spec-type draft-dflash "));
  const auto joined = answers(deployment(preset("qwen3-8b"), preset("dspark-qwen3-8b")), 7);
  CHECK(holds(joined[0], "\"method\": \"dspark\", \"model\": "));
  CHECK(holds(joined[1], "--speculative-algorithm DSPARK "));
  CHECK(holds(joined[1], "--speculative-dspark-block-size 7"));
  CHECK(holds(joined[2], "--spec-type draft-dspark "));
  const auto masks = answers(deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b", ", one_pass: true")), 8);
  CHECK(holds(masks[0], "\"method\": \"draft_model\", "));
  CHECK(holds(masks[0], "\"parallel_drafting\": true"));
  CHECK(holds(masks[1], "no: "));
  CHECK(holds(masks[2], "no: "));
}

TEST_CASE("engines: vocabularies must agree, in llama.cpp nearly", "[plan][engines]") {
  // 152,064 and 151,936: 128 apart.
  auto list = answers(deployment(preset("qwen2.5-7b"), preset("qwen2.5-0.5b")));
  CHECK(holds(list[0], "no: the vocabularies differ (152,064 tokens, the draft's 151,936)"));
  CHECK(holds(list[1], "no: the vocabularies differ"));
  CHECK(holds(list[2], "llama-server "));
  list = answers(deployment(preset("llama-2-7b"), preset("llama-3.2-1b")));
  for (const std::string& one : list) CHECK(holds(one, "no: the vocabularies differ (32,000 tokens, the draft's 128,256)"));
  CHECK(plan::pair_warnings(deployment(preset("llama-2-7b"), preset("llama-3.2-1b"))).size() == 1);
  CHECK(plan::pair_warnings(deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b"))).empty());
  // A head may have fewer tokens than its target: EAGLE-3's do.
  list = answers(deployment(preset("llama-3.1-8b"), preset("eagle3-llama-3.1-8b")));
  CHECK(holds(list[0], "\"method\": \"eagle3\""));
  CHECK(holds(list[1], "--speculative-algorithm EAGLE3 "));
  CHECK(holds(list[2], "--spec-type draft-eagle3 "));
}

TEST_CASE("engines: methods, longest drafts, bits, sequences", "[plan][engines]") {
  auto list = answers(deployment(preset("llama-3.1-8b"), preset("eagle-head-8b")));
  CHECK(holds(list[0], "\"method\": \"eagle\", "));
  CHECK(holds(list[1], "--speculative-algorithm EAGLE "));
  CHECK(holds(list[1], "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"));
  CHECK(holds(list[2], "no: it supports EAGLE heads"));
  // A module of the target's own checkpoint needs no path.
  list = answers(deployment(preset("deepseek-v3", ", dtype: q8_0"), preset("deepseek-v3-mtp")));
  CHECK(holds(list[0], "'{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'"));
  CHECK(holds(list[1], "--speculative-algorithm EAGLE --speculative-num-steps 3"));
  CHECK(holds(list[2], "--spec-type draft-mtp --spec-draft-n-max 3 "));  // mutant: draft-eagle3, and a separate file
  // The type follows from the file's content and not from its name.
  list = answers(deployment(preset("qwen3.6-27b"), preset("qwen3.6-27b-mtp")));
  CHECK(holds(list[2], "--spec-type draft-mtp --spec-draft-n-max 3 --spec-draft-p-min 0"));
  CHECK_FALSE(holds(list[2], "--model-draft"));
  list = answers(deployment(preset("deepseek-v3"), preset("deepseek-v3-mtp", ", name: own-module")));
  CHECK(holds(list[0], "'{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'"));
  list = answers(deployment(preset("deepseek-v3"), preset("deepseek-v3-mtp", ", name: own-mtp, in_target_checkpoint: false")));
  CHECK(holds(list[0], "\"method\": \"eagle\", "));
  list = answers(deployment(preset("llama-2-70b", ", offload: {share: 0.5, link_gb_per_s: 26}"), preset("llama-2-7b")));
  CHECK(holds(list[0], " --cpu-offload-gb 64 "));
  CHECK(holds(list[1], " --cpu-offload-gb 64 "));
  CHECK(holds(list[2], "no: layers in host memory"));
  list = answers(deployment(preset("llama-3.1-70b"), preset("eagle-head-8b")));
  for (int i = 0; i < 2; ++i)
    CHECK(holds(list[static_cast<std::size_t>(i)], "no: the head reads features that are 4096 wide, the target's are 8192"));
  list = answers(deployment(preset("llama-3.1-8b"), "none"), 5);
  // The lookup length is the default of drafter prompt_lookup; vLLM would take one of the two for both.
  CHECK(holds(list[0],
              "'{\"method\": \"ngram\", \"prompt_lookup_min\": 1, \"prompt_lookup_max\": 3, \"num_speculative_tokens\": 5}'"));
  for (const config::Parameter& one : draft::drafters().find("prompt_lookup")->info.parameters) {
    if (one.name == "min_ngram") CHECK(one.fallback == "1");
    if (one.name == "max_ngram") CHECK(one.fallback == "3");
  }
  CHECK(holds(list[1], "--speculative-algorithm NGRAM --speculative-num-draft-tokens 6 "));
  CHECK(holds(list[2], "--spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 5"));
  const auto notes = plan::engine_commands(deployment(preset("llama-3.1-8b"), "none"), 5, 1)[2].notes;
  REQUIRE(notes.size() == 1);
  CHECK(holds(notes[0], "--spec-type ngram-map-k --spec-ngram-map-k-size-n 3 --spec-ngram-map-k-size-m 5 "));
  // It makes no draft that is shorter than the n-gram it looks for. Mutant: 3.
  CHECK(holds(answers(deployment(preset("llama-3.1-8b"), "none"), 2)[2],
              "--spec-ngram-simple-size-n 2 --spec-ngram-simple-size-m 2"));
  CHECK(holds(answers(deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b")), 129)[0], "no: draft length 129"));
  list = answers(deployment(preset("llama-3.1-8b", ", weight_bits: 4, kv_bits: 8"), preset("llama-3.2-1b")), 3, 64);
  CHECK(holds(list[0], "<path of llama-3.1-8b with 4-bit weights> --kv-cache-dtype fp8"));
  CHECK(holds(list[1], "--speculative-draft-model-quantization unquant"));
  CHECK(holds(list[1], "--max-running-requests 64"));  // it would hold 48
  CHECK(holds(list[2], "--cache-type-k q8_0 --cache-type-v q8_0 --ctx-size 8388608 --parallel 64 "));
  CHECK(holds(list[2], "--spec-draft-n-max 3 --spec-draft-p-min 0"));
  CHECK_FALSE(holds(list[2], "--draft-max"));  // was removed
}

TEST_CASE("draft lengths along a grid lose least, falling or rising once", "[plan][schedule]") {
  // Lost shares: [place][draft length].
  using Lost = std::vector<std::vector<double>>;
  const auto sum = [](const Lost& lost, const std::vector<int>& lengths) {
    double total = 0.0;
    for (std::size_t i = 0; i < lost.size(); ++i) total -= std::log1p(-lost[i][static_cast<std::size_t>(lengths[i])]);
    return total;
  };
  const auto rises = [](const std::vector<int>& lengths) {
    int count = 0;
    for (std::size_t i = 1; i < lengths.size(); ++i) count += lengths[i] > lengths[i - 1] ? 1 : 0;
    return count;
  };
  // All sequences of four lengths out of four with at most the given number of rises.
  const auto least = [&](const Lost& lost, int most_rises) {
    double found = 1e9;
    for (int code = 0; code < 256; ++code) {
      const std::vector<int> lengths = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
      if (rises(lengths) <= most_rises) found = std::min(found, sum(lost, lengths));
    }
    return found;
  };
  // By hand: best 3, 2, 3, 1; a rise would save 1 %, which is too little.
  const Lost dense = {{0.33, 0.2, 0.07, 0.0}, {0.29, 0.14, 0.0, 0.01}, {0.23, 0.15, 0.08, 0.0}, {0.09, 0.0, 0.18, 0.27}};
  CHECK(plan::choose_lengths(dense, plan::Rise::never) == std::vector<int>{3, 3, 3, 1});
  CHECK(plan::choose_lengths(dense, plan::Rise::once) == std::vector<int>{3, 3, 3, 1});
  CHECK(sum(dense, plan::choose_lengths(dense, plan::Rise::never)) == Approx(least(dense, 0)).epsilon(1e-12));
  // With experts: few sequences draft little. Lengths that never rise lose 25 % at the first. Mutants: two rises, none.
  const Lost experts = {{0.02, 0.0, 0.12, 0.25}, {0.2, 0.15, 0.03, 0.0}, {0.3, 0.2, 0.0, 0.06}, {0.25, 0.2, 0.06, 0.0}};
  const std::vector<int> once = plan::choose_lengths(experts, plan::Rise::once);
  CHECK(rises(once) == 1);
  CHECK(sum(experts, once) == Approx(least(experts, 1)).epsilon(1e-12));
  CHECK(sum(experts, once) > 1.2 * least(experts, 2));
  const std::vector<int> never = plan::choose_lengths(experts, plan::Rise::never);
  CHECK(rises(never) == 0);
  CHECK(sum(experts, never) == Approx(least(experts, 0)).epsilon(1e-12));
  // A length that is not offered is never chosen, however good its neighbours are.
  const Lost sparse = {{0.1, 1.0, 0.0}, {0.1, 1.0, 0.3}, {0.0, 1.0, 0.4}};
  CHECK(plan::choose_lengths(sparse, plan::Rise::once) == std::vector<int>{2, 0, 0});
  CHECK(plan::choose_lengths({}, plan::Rise::once).empty());

  const std::vector<plan::LengthRange> ranges = plan::ranges_of({1, 1, 3, 3, 3, 0});
  CHECK(plan::ranges_text(ranges) == "[[1, 2, 1], [3, 5, 3], [6, 6, 0]]");
}

TEST_CASE("the recommendation over batches is of every batch that fits", "[plan][schedule]") {
  // Its loss and where it rises: plan_smooth_test.cpp.
  const auto model = cost::make_roofline(deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b")));
  const plan::Advice advice = plan::advise(*model, {16, 2048}, plan::constant_acceptance(0.7, 8));
  REQUIRE(advice.by_batch.size() > 20);
  CHECK(plan::rises(advice.by_batch));  // there is something to smooth
  for (const plan::ScanPoint& point : advice.by_batch) CHECK(point.loss < 0.2);
  const auto list = plan::ranges_of(advice.by_batch);
  CHECK(list.front().from == 1);
  CHECK(list.back().to == advice.by_batch.back().at);
  // The planned batch's point is the plan itself.
  for (const plan::ScanPoint& point : advice.by_batch)
    if (point.at == 16.0) CHECK(point.plan.best_point().speedup == advice.plan.best_point().speedup);
  CHECK(advice.commands.size() == 4);
  CHECK(advice.largest_batch_without > advice.largest_batch_with_draft);
}

TEST_CASE("drafts whose slots and states do not fit are not planned for", "[plan]") {
  // A request keeps a state of linear attention for each drafted token: under vLLM's defaults 64 requests of 8,192 tokens have
  // room for those of one token. Mutant: room is computed for draft length 1.
  cost::Deployment d = deployment(preset("qwen3.6-27b"), preset("qwen3.6-27b-mtp"));
  Diagnostics diagnostics;
  d.hardware = cost::read_hardware(config::scalar("h200-sxm", {"test", 1, 1}), diagnostics);
  const auto model = cost::make_roofline(d);
  const plan::AcceptanceCurve curve = plan::constant_acceptance(0.9, 5);
  const int longest = plan::longest_fitting(*model, {64, 8192}, 5).value();
  CHECK(longest == 1);
  for (const int k : {longest, longest + 1})
    CHECK(model->memory_budget({64, 8192}, k + 1, cost::Kept::both)->fits() == (k == longest));
  const plan::Plan own = plan::make_plan(*model, {64, 8192}, curve);
  CHECK(own.points.size() == 2);
  CHECK(own.best == 1);
  const plan::Advice advice = plan::advise(*model, {64, 8192}, curve);
  CHECK(advice.longer_do_not_fit);
  for (const plan::ScanPoint& point : advice.by_batch)
    CHECK(model->memory_budget({point.at, 8192}, point.smooth + 1, cost::Kept::both)->fits());
  CHECK(plan::make_plan(*model, {1, 512}, curve).points.size() == 6);
  CHECK_FALSE(plan::longest_fitting(*model, {4096, 65536}, 5));
}

TEST_CASE("the map at the user's acceptance is the plan at each place", "[plan]") {
  const auto model = cost::make_roofline(deployment(preset("llama-3.1-8b"), preset("llama-3.2-1b")));
  const plan::AcceptanceCurve curve = plan::unconditional_acceptance({0.7, 0.4, 0.2}, 8);
  for (const plan::MapCell& cell : plan::make_own_map(*model, {1, 64}, {512, 4096}, curve, 2)) {
    const plan::Plan own = plan::make_plan(*model, {cell.batch, cell.context}, curve);
    CHECK(cell.best == own.best);
    CHECK(cell.speedup == own.best_point().speedup);
    CHECK(cell.alpha == Approx(curve.equivalent_alpha(own.best)));
  }
}

TEST_CASE("a draft's pass needs no target, and warns of none", "[plan][pass]") {
  plan::PassSetting setting{"h100-sxm", "eagle-head-7b", deployment(preset("llama-3.1-8b"), preset("eagle-head-7b"))};
  setting.deployment.target.reset();
  plan::PassGrid grid{cost::Role::draft, {1}, {0, 4096}, {1, 8}, 1e9, false};
  const plan::EstimatedPasses priced = plan::estimate_passes({setting}, grid);
  CHECK(priced.warnings.empty());
  REQUIRE(priced.passes.size() == 4);
  const auto whole = cost::make_roofline(deployment(preset("llama-2-7b"), preset("eagle-head-7b")));
  CHECK(priced.passes[3].time.total() == whole->pass(cost::Role::draft, {1, 8, 4096, 8}).total());
  CHECK(priced.passes[0].ratio == 1.0);
  CHECK_FALSE(priced.passes[0].fits.has_value());
  // 131,072 tokens of 32 layers' keys and values, 2 x 8 x 128 wide, in two bytes are 17.2 GB, the weights 16.1: of 80 GB one such
  // sequence takes 33.3, four take 84.8.
  grid = {cost::Role::target, {1, 4}, {131072}, {1}, 1e9, false};
  const auto eight = on("h100-sxm", deployment(preset("llama-3.1-8b"), "none"));
  const auto large = plan::estimate_passes({{"h100-sxm", "llama-3.1-8b", eight}}, grid).passes;
  REQUIRE(large.size() == 2);
  CHECK(large[0].fits == true);
  CHECK(large[1].fits == false);
  grid = {cost::Role::draft, {1}, {0, 4096}, {1, 8}, 1e9, false};
  // Weights alone in few bits: measured kernels lose time from a few rows on, so no GPU promises them more speed.
  plan::PassSetting bits{"h100-sxm", "llama-3.1-8b", deployment(preset("llama-3.1-8b", ", weight_bits: 4"), "none")};
  grid.role = cost::Role::target;
  const auto warnings = plan::estimate_passes({bits}, grid).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(holds(warnings[0], "estimated as the median of the measured ones"));
}

}  // namespace specsim::advice_test
