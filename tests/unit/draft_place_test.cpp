// A draft on hardware of its own: its passes are those of that GPU, its memory is there, and its messages cost what they carry.
#include "sim/answers/plan/draft_placings.h"
#include "sim/answers/plan/engines.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/energy.h"
#include "sim/hardware/latency/roofline.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::draft_place_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

const std::string kModels =
    "target: {preset: qwen3-8b, dtype: q4_k_m}, draft: {preset: qwen3-0.6b, dtype: q8_0}, engine: llama_cpp";

std::unique_ptr<CostModel> on(const std::string& hardware, const std::string& more = "", const std::string& models = kModels) {
  return make_cost("roofline", fmt::format("{{hardware: {}, {}{}}}", hardware, models, more.empty() ? "" : ", " + more));
}

const std::string kOther = "NVIDIA GeForce RTX 3060 12GB";

double sum_of(const MemoryBudget& budget, const std::string& model) {
  double sum = 0.0;
  for (const MemoryItem& line : budget.lines)
    if (line.what.starts_with(model)) sum += line.bytes;
  return sum;
}

}  // namespace

TEST_CASE("each model's passes are those of its own GPU", "[draft_place]") {
  const auto own = on("rtx-3090", "draft_hardware: rtx-3060");
  const auto together = on("rtx-3090");
  const auto other = on("rtx-3060");
  bool differs = false;
  for (const double rows : {1.0, 4.0})
    for (const double batch : {1.0, 8.0}) {
      const Pass pass{batch, rows, 1000.0, rows};
      CHECK(own->pass(Role::target, pass).total() == together->pass(Role::target, pass).total());
      CHECK(own->pass(Role::draft, pass).total() == other->pass(Role::draft, pass).total());
      CHECK(own->kernel_error(Role::draft, pass) == other->kernel_error(Role::draft, pass));
      differs = differs || own->pass(Role::draft, pass).total() != together->pass(Role::draft, pass).total();
    }
  CHECK(differs);
  REQUIRE(own->deployed()->draft_with_target() != nullptr);
  const Pass one{1.0, 1.0, 1000.0, 1.0};
  CHECK(own->deployed()->draft_with_target()->pass(Role::draft, one).total() == together->pass(Role::draft, one).total());
  CHECK(together->deployed()->draft_with_target() == nullptr);
  CHECK(own->with_twice_the_gpus() == nullptr);  // unequal GPUs share no target
  CHECK(on("rtx-3090", "draft_hardware: rtx-3090")->with_twice_the_gpus() != nullptr);
}

TEST_CASE("messages of a round, by hand", "[draft_place]") {
  // 4 bytes for each of 5 drafted tokens, the accepted count and the token after it, of 8 sequences, and 100 us each way.
  const auto cost = on("rtx-3090", "draft_hardware: rtx-3060, draft_link_us: 100, draft_link_gb_per_s: 0.001");
  CHECK(near(cost->link_seconds(8.0, 6.0), 2e-4 + 8.0 * 7.0 * 4.0 / 1e6));
  const RoundTime round = round_time(*cost, {8.0, 1000.0}, 5, 0.0);
  CHECK(near(round.link, cost->link_seconds(8.0, 6.0)));
  const RoundTime without = round_time(*on("rtx-3090", "draft_hardware: rtx-3060"), {8.0, 1000.0}, 5, 0.0);
  CHECK(without.link < 1e-6);  // ids of one machine pass through the host in any case
  CHECK(near(round.total() - without.total(), round.link - without.link, 1e-9));
  CHECK(round_time(*cost, {8.0, 1000.0}, 0, 0.0).link == 0.0);
  CHECK(on("rtx-3090")->link_seconds(8.0, 6.0) == 0.0);
}

TEST_CASE("memory is checked on each GPU", "[draft_place]") {
  const Workload workload{4.0, 4000.0};
  const auto both = on("rtx-3090", "draft_hardware: rtx-3060")->memory_budget(workload, 4, Kept::both);
  const auto together = on("rtx-3090")->memory_budget(workload, 4, Kept::both);
  REQUIRE(both);
  REQUIRE(both->elsewhere.size() == 1);
  const MemoryBudget& draft = both->elsewhere.front();
  CHECK(draft.device == kOther);
  CHECK(sum_of(*both, "draft") == 0.0);
  CHECK(near(sum_of(*both, "target"), sum_of(*together, "target")));
  CHECK(near(sum_of(draft, "draft"), sum_of(*together, "draft")));
  CHECK(near(both->needed_bytes() + draft.needed_bytes(), together->needed_bytes()));
  CHECK(both->fits());
  // 12 GB do not hold 16 GB of a draft, whose target fits on 80; and 24 GB do not hold its target.
  const std::string large = "target: llama-3.1-8b, draft: llama-3.1-8b";
  const auto small_place = on("h100-sxm", "draft_hardware: rtx-3060", large)->memory_budget(workload, 4, Kept::both);
  CHECK_FALSE(small_place->fits());
  CHECK(small_place->tightest().device == kOther);
  CHECK(small_place->needed_bytes() <= small_place->available_bytes);
  const auto small_target = on("rtx-3060", "draft_hardware: h100-sxm", large)->memory_budget(workload, 4, Kept::both);
  CHECK_FALSE(small_target->fits());
  CHECK(small_target->tightest().device.empty());
  CHECK(plan::longest_fitting(*on("h100-sxm", "draft_hardware: rtx-3060", large), workload, 3) == 0);
  CHECK(on("h100-sxm", "draft_hardware: rtx-3060", large)->memory_budget(workload, 1, Kept::target)->fits());
}

TEST_CASE("energy and cost of both boards", "[draft_place]") {
  const auto cost = on("rtx-3090", "draft_hardware: rtx-3060");
  const auto together = on("rtx-3090");
  const double idle = *idle_watts(*together, true);
  const double idle_of_draft = *idle_watts(*on("rtx-3060"), false);
  CHECK(near(*idle_watts(*cost, true), idle + idle_of_draft));
  CHECK(near(*idle_watts(*cost, false), idle));
  const RoundTime round = round_time(*cost, {1.0, 1000.0}, 3, 0.0);
  CHECK(near(spent_in(*cost, round)->joules,
             round.verify.work_joules + round.draft.work_joules + (idle + idle_of_draft) * round.total()));
  const RoundTime plain = round_time(*cost, {1.0, 1000.0}, 0, 0.0);
  CHECK(near(spent_in(*cost, plain)->joules, spent_in(*together, plain)->joules));  // the other board is not needed
  Deployment rented = *cost->deployment();
  rented.hardware.price = {0.2, ""};
  rented.draft_place->hardware.price = {0.1, ""};
  const auto with_costs = make_roofline(rented);
  CHECK(near(*dollars(*with_costs, 3600.0, true), 0.3));
  CHECK(near(*dollars(*with_costs, 3600.0, false), 0.2));
}

TEST_CASE("the commands of a draft on its own GPU", "[draft_place]") {
  const auto cost = on("rtx-3090", "draft_hardware: rtx-3060");
  const auto of = [](const CostModel& model, const std::string& engine) {
    return plan::engine_command(engine, *model.deployment(), 4, 1, {}).value();
  };
  CHECK(of(*cost, "llama.cpp").command.find(" --device CUDA0 --device-draft CUDA1 ") != std::string::npos);
  CHECK(of(*on("rtx-3090"), "llama.cpp").command.find("--device") == std::string::npos);
  for (const char* engine : {"vLLM", "SGLang", "TensorRT-LLM"}) {
    CHECK(of(*cost, engine).command.empty());
    CHECK(of(*cost, engine).notes.front() == "it runs the draft on the target's GPUs");
  }
  CHECK(of(*on("rtx-3090", "draft_hardware: rtx-3060, draft_link_us: 50"), "llama.cpp").command.empty());
}

TEST_CASE("three places of a draft, side by side", "[draft_place]") {
  const auto cost = on("rtx-3090", "draft_hardware: rtx-3060");
  const Workload workload{1.0, 1000.0};
  const plan::AcceptanceCurve curve = plan::constant_acceptance(0.7, 8);
  plan::Plan in_turn = plan::make_plan(*cost, workload, curve);
  plan::add_errors(*cost, workload, curve, in_turn);
  const std::vector<plan::DraftPlacing> all = plan::draft_placings(*cost, workload, curve, in_turn);
  REQUIRE(all.size() == 3);
  const plan::Plan together = plan::make_plan(*on("rtx-3090"), workload, curve);
  CHECK(near(all[0].speedup, plan::fastest_draft(together)->speedup));
  CHECK(near(all[1].speedup, plan::fastest_draft(in_turn)->speedup));
  CHECK(near(all[1].over_target_gpu.ratio(), all[1].tokens_per_second / all[0].tokens_per_second));
  CHECK(all[1].over_target_gpu.error > 0.0);
  // No bonus token: (1 - alpha^K) / (1 - alpha) tokens.
  const int length = all[2].draft_length;
  CHECK(near(all[2].tokens_per_round, (1.0 - std::pow(0.7, length)) / 0.3, 1e-9));
  // The same GPU once more, in turn, changes nothing but the messages.
  const auto same = on("rtx-3090", "draft_hardware: rtx-3090");
  const plan::Plan twice = plan::make_plan(*same, workload, curve);
  const auto placings = plan::draft_placings(*same, workload, curve, twice);
  CHECK(near(placings[1].speedup, placings[0].speedup, 1e-4));
  // The fastest overlapped length: no other one is faster, and its speed follows from the round's time.
  double fastest = 0.0;
  for (int k = 1; k <= 8; ++k) {
    const double full = std::pow(0.7, k);
    fastest = std::max(fastest, (1.0 - full) / 0.3 / plan::overlapped_time(*same, workload, k, full).total());
  }
  CHECK(near(placings[2].tokens_per_second, fastest, 1e-9));
  const auto none = on("rtx-3090");
  CHECK(plan::draft_placings(*none, workload, curve, together).empty());
}

}  // namespace specsim::draft_place_test
