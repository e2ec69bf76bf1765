// Rounds made of passes; affine and table models; the waterfall.
#include "sim/foundation/base/check.h"
#include "sim/hardware/latency/table.h"
#include "tests/support/cells.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace specsim::cost_rounds_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

// Every part of a pass has a different value.
class Known final : public CostModel {
 public:
  [[nodiscard]] PassTime pass(Role role, const Pass& pass) const override {
    const double scale = role == Role::target ? 1.0 : 0.1;
    PassTime time;
    time.weights = 7.0 * scale;
    time.compute = 0.3 * scale * pass.batch * pass.tokens;
    time.kv = 0.001 * scale * pass.batch * (pass.context + pass.tokens);
    time.communication = 0.05 * scale * pass.tokens;
    time.launch = 0.11 * scale;
    time.host = role == Role::target ? 1.3 : 0.2;
    time.sampling = 0.017 * scale * pass.batch * pass.logits;
    return time;
  }
  [[nodiscard]] double round_overhead(double batch) const override { return 0.4 + 0.01 * batch; }
};

}  // namespace

TEST_CASE("a round: draft passes one after the other, one verification", "[cost][round]") {
  const Known model;
  const Workload workload{4, 900};
  const RoundTime time = round_time(model, workload, 3, 0.25);
  double draft = 0.0;
  for (int i = 0; i < 3; ++i) draft += model.pass(Role::draft, {4, i == 0 ? 1.25 : 1.0, 900.0 + i, 1}).total();
  CHECK(near(time.draft.total(), draft, 1e-14));
  CHECK(near(time.catch_up, 0.1 * (0.3 * 4 * 0.25 + 0.001 * 4 * 0.25 + 0.05 * 0.25), 1e-12));
  CHECK(time.verify.total() == model.pass(Role::target, {4, 4, 900, 4}).total());
  CHECK(time.plain.total() == model.pass(Role::target, {4, 1, 900, 1}).total());
  CHECK(near(time.overhead, 0.44));
  CHECK(near(time.total(), draft + time.verify.total() + 0.44, 1e-14));
  CHECK(near(speedup(time, 2.7), 2.7 * time.plain.total() / time.total(), 1e-15));
  CHECK(round_time(model, workload, 3, 0.0).catch_up == 0.0);
  CHECK_THROWS_AS(round_time(model, workload, -1, 0.5), InvariantBroken);
  CHECK_THROWS_AS(round_time(model, workload, 1, 1.5), InvariantBroken);
}

TEST_CASE("draft length 0 is plain decoding", "[cost][round]") {
  const Known model;
  const RoundTime time = round_time(model, {4, 900}, 0, 1.0);
  CHECK(time.total() == time.plain.total());
  CHECK(time.draft.total() == 0.0);
  CHECK(time.overhead == 0.0);
  CHECK(speedup(time, 1.0) == 1.0);
  CHECK(near(waterfall(time, 1.0).back().after, 1.0, 1e-15));
}

TEST_CASE("the waterfall: from tokens per round to the speedup, term by term", "[cost][round]") {
  const Known known;
  const auto roofline = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}");
  const auto eagle = make_cost("affine", "{preset: h100-llama-3.1-8b-eagle}");
  for (const CostModel* model : {static_cast<const CostModel*>(&known), static_cast<const CostModel*>(roofline.get()),
                                 static_cast<const CostModel*>(eagle.get())}) {
    for (const int length : {0, 1, 4, 9}) {
      for (const double full : {0.0, 0.3, 1.0}) {
        for (const double batch : {1.0, 37.0}) {
          const RoundTime time = round_time(*model, {batch, 1234}, length, full);
          const auto steps = waterfall(time, 2.9);
          CHECK(steps.front().after == 2.9);
          CHECK(near(steps.back().after, speedup(time, 2.9), 1e-15));
          double seconds = 0.0;
          for (const WaterfallStep& step : steps) {
            seconds += step.seconds;
            CHECK(near(step.after, 2.9 * time.plain.total() / seconds, 4e-15));
          }
          CHECK(near(seconds, time.total(), 1e-15));
        }
      }
    }
  }
}

TEST_CASE("affine: the published line of H100, Llama-3.1-8B and an EAGLE head", "[cost][affine]") {
  const auto model = make_cost("affine", "{preset: h100-llama-3.1-8b-eagle}");
  // 5.886 ms and 1.207 ms of host, .0210 ms per token, 3.926e-5 ms per cached token: 7.114 ms for one token without context.
  CHECK(near(1e3 * model->pass(Role::target, {1, 1, 0, 1}).total(), 7.09274659 + 0.0210103129));
  CHECK(near(1e3 * model->pass(Role::target, {16, 4, 2000, 4}).total(), 7.09274659 + 64 * 0.0210103129 + 32000 * 3.92645679e-5));
  const RoundTime time = round_time(*model, {16, 2000}, 3, 0.0);
  CHECK(near(1e3 * time.draft.total(), 2.13526175 + 48 * 8.41429603e-4 + 16 * (2000 + 2001 + 2002) * 7.92561643e-7));
  // By parts, with single values of the preset replaced.
  const auto own =
      make_cost("affine",
                "{target_fixed_ms: 5, target_ms_per_token: 0.25, target_ms_per_kv_token: 0.001, draft_fixed_ms: 1, "
                "draft_ms_per_token: 0.5, draft_ms_per_kv_token: 0.002, draft_fixed_ms_per_round: 3, overhead_ms: 0.75}");
  CHECK(near(1e3 * own->pass(Role::target, {2, 3, 100, 3}).total(), 5 + 6 * 0.25 + 200 * 0.001));
  CHECK(near(1e3 * own->draft_pass({2, 100}, 0, 0.5).total(), 1 + 3 * 0.5 + 200 * 0.002 + 3));
  CHECK(near(1e3 * own->draft_pass({2, 100}, 1, 0).total(), 1 + 2 * 0.5 + 202 * 0.002));
  CHECK(near(1e3 * own->round_overhead(2), 0.75));
  CHECK(near(1e3 * round_time(*own, {2, 100}, 2, 0.5).catch_up, 2 * 0.5 * 0.5));
  CHECK(near(
      1e3 *
          make_cost("affine", "{preset: h100-llama-3.1-8b-eagle, target_fixed_ms: 1}")->pass(Role::target, {1, 1, 0, 1}).total(),
      1 + 0.0210103129));
  std::string mistakes;
  make_cost("affine", "{}", &mistakes);
  CHECK(mistakes.find("a target pass that takes no time") != std::string::npos);
  make_cost("affine", "{draft_fixed_ms: 1}", &mistakes);
  CHECK(mistakes.find("a target pass that takes no time") != std::string::npos);
}

namespace {

class Table {
 public:
  explicit Table(const std::string& rows, const std::string& header = "model,tokens,batch,context,ms\n")
      : path_((std::filesystem::temp_directory_path() / fmt::format("specsim_table_{}_{}.csv", getpid(), count_++)).string()) {
    std::ofstream(path_, std::ios::binary) << header << rows;
    model_ = make_cost("table", "{file: \"" + path_ + "\"}", &mistakes_);
    for (std::size_t at = 0; (at = mistakes_.find(path_, at)) != std::string::npos;) mistakes_.replace(at, path_.size(), "T");
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { std::remove(path_.c_str()); }
  [[nodiscard]] bool good() const { return model_ != nullptr; }
  [[nodiscard]] const std::string& mistakes() const { return mistakes_; }
  [[nodiscard]] const CostModel& operator*() const { return *model_; }
  [[nodiscard]] double ms(Role role, double tokens, double batch, double context) const {
    return 1e3 * model_->pass(role, {batch, tokens, context, tokens}).total();
  }
  [[nodiscard]] std::string refusal(Role role, double tokens, double batch, double context) const {
    try {
      static_cast<void>(model_->pass(role, {batch, tokens, context, tokens}));
    } catch (const BadInput& bad) {
      std::string text = bad.list().front().message;
      return text;
    }
    return "";
  }

 private:
  static inline int count_ = 0;
  std::string path_;
  std::string mistakes_;
  std::unique_ptr<CostModel> model_;
};

const std::string kDraft = "draft,1,1,0,1\n";

}  // namespace

TEST_CASE("table: linear between points, the points themselves exactly", "[cost][table]") {
  const Table table(
      "target,1,1,0,10\ntarget,1,1,1000,12\ntarget,1,4,0,11\ntarget,1,4,1000,19\n"
      "target,5,1,0,20\ntarget,5,1,1000,22\ntarget,5,4,0,31\ntarget,5,4,1000,43\n"
      "# a remark\n\ndraft,1,1,0,1\ndraft,2,1,0,1.5\n");
  REQUIRE(table.good());
  CHECK(table.ms(Role::target, 1, 1, 0) == Approx(10).epsilon(1e-15));
  CHECK(table.ms(Role::target, 5, 4, 1000) == Approx(43).epsilon(1e-15));
  CHECK(near(table.ms(Role::target, 1, 1, 500), 11));
  CHECK(near(table.ms(Role::target, 3, 1, 0), 15));
  CHECK(near(table.ms(Role::target, 1, 2, 0), 10 + 1.0 / 3));
  CHECK(near(table.ms(Role::target, 2, 3, 250), 0.75 * (0.75 * (10. / 3 + 2 * 11. / 3) + 0.25 * (12. / 3 + 2 * 19. / 3)) +
                                                    0.25 * (0.75 * (20. / 3 + 2 * 31. / 3) + 0.25 * (22. / 3 + 2 * 43. / 3))));
  CHECK(near(table.ms(Role::draft, 1.3, 1, 0), 1.15));
  CHECK((*table).warnings().empty());
  CHECK((*table).round_overhead(3) == 0.0);
}

TEST_CASE("table: nothing beyond its edges", "[cost][table]") {
  const Table table("target,1,1,0,10\ntarget,5,1,0,20\n" + kDraft);
  REQUIRE(table.good());
  CHECK(table.refusal(Role::target, 6, 1, 0) ==
        "a target pass at tokens 6 is asked for, allowed by the table: 1 to 5 (it is not extrapolated)");
  CHECK(table.refusal(Role::target, 1, 2, 0).find("at batch 2 is asked for, allowed by the table: 1 to 1") != std::string::npos);
  CHECK(table.refusal(Role::target, 1, 1, 1).find("at context 1 is asked for") != std::string::npos);
  CHECK(table.refusal(Role::draft, 1.5, 1, 0).find("a draft pass at tokens 1.5") != std::string::npos);
  CHECK(table.refusal(Role::target, 5, 1, 0).empty());
}

TEST_CASE("table: dips up to 20 % are kept and reported, larger ones refused", "[cost][table]") {
  const Table kept("target,1,1,0,10\ntarget,2,1,0,8.1\ntarget,3,1,0,9\n" + kDraft);
  REQUIRE(kept.good());
  REQUIRE((*kept).warnings().size() == 1);
  CHECK((*kept).warnings()[0].find("the target's times dip in 1 place, by up to 19.0 %; kept as measured") != std::string::npos);
  CHECK(near(kept.ms(Role::target, 2, 1, 0), 8.1));
  const Table dip("target,1,1,0,10\ntarget,2,1,0,7.9\n" + kDraft);
  CHECK(dip.mistakes() == "T:3: a target pass takes 10 ms at tokens 1 and 7.9 ms at 2, allowed: a dip of at most 20 %");
  CHECK(Table("target,1,1,0,10\ntarget,1,1,500,7.9\n" + kDraft).mistakes().find("at context 0 and 7.9 ms at 500") !=
        std::string::npos);
  CHECK(Table("target,1,1,0,10\ntarget,1,2,0,7.9\n" + kDraft).mistakes().find("at batch 1 and 7.9 ms at 2") != std::string::npos);
  CHECK(Table("target,1,1,0,10\n"
              "draft,1,1,0,1\ndraft,1,1,50,0.5\n")
            .mistakes()
            .find("a draft pass takes 1 ms") != std::string::npos);
}

TEST_CASE("table: new timings are kept whatever dips", "[cost][table]") {
  const auto cost = cost_of_passes({{"target", 1, 1, 1, 10}, {"target", 1, 1, 85, 4}, {"draft", 1, 1, 1, 1}}, "the passes");
  REQUIRE(cost->warnings().size() == 1);
  CHECK(cost->warnings()[0] == "the passes: the target's times dip in 1 place, by up to 60.0 %; kept as measured");
  CHECK(near(1e3 * cost->pass(Role::target, {1, 1, 85, 1}).total(), 4));
  CHECK_THROWS_AS(cost_of_passes({{"target", 1, 1, 1, 10}}, "the passes"), BadInput);  // no draft pass
}

TEST_CASE("table: holes are named", "[cost][table]") {
  CHECK(Table("target,1,1,0,10\ntarget,5,1,0,12\ntarget,1,2,0,11\n" + kDraft).mistakes() ==
        "T: the target's table has 1 hole: tokens 5 batch 2 context 0; allowed: every combination of the tokens, batches and "
        "contexts that it names");
  // A few rows that define a grid of 1e12 places are refused at once.
  std::string diagonal;
  for (int i = 1; i <= 10000; ++i) diagonal += fmt::format("target,{0},{0},{0},{0}\n", i);
  CHECK(Table(diagonal + kDraft).mistakes().find("has 999999990000 holes: tokens 1 batch 1 context 2,") != std::string::npos);
}

TEST_CASE("table: lines that are no measurement", "[cost][table]") {
  const auto says = [](const std::string& row, const std::string& part) {
    const std::string mistakes = Table("target,1,1,0,10\n" + row + "\n" + kDraft).mistakes();
    INFO(row << " gave: " << mistakes);
    CHECK(mistakes.rfind("T:3: ", 0) == 0);
    CHECK(mistakes.find(part) != std::string::npos);
  };
  says("target,1,1,0,-5", "ms is \"-5\", allowed: a number above 0, up to 1e9");
  says("target,2,1,0,0", "ms is \"0\"");
  says("target,2,1,0,nan", "ms is \"nan\"");
  says("target,2,1,0,inf", "ms is \"inf\"");
  says("target,2,1,0,1e99", "ms is \"1e99\", allowed: a number above 0, up to 1e9");
  says("target,0,1,0,5", "tokens is \"0\", allowed: a number from 1 to 1e9");
  says("target,2,0,0,5", "batch is \"0\"");
  says("target,2,1,-1,5", "context is \"-1\", allowed: a number from 0 to 1e9");
  says("target,two,1,0,5", "tokens is \"two\"");
  says("target,2,1,0", "allowed: model,tokens,batch,context,ms");
  says("target,2,1,0,5,", "allowed: model,tokens,batch,context,ms");
  says("verify,2,1,0,5", "with model target or draft");
  says("target,1,1,0,11", "this point is on line 2 already, allowed: each once");
  CHECK(Table(kDraft).mistakes() == "T: no target pass in the table, allowed: rows of both models");
  CHECK(Table("target,1,1,0,10\n").mistakes() == "T: no draft pass in the table, allowed: rows of both models");
  CHECK(Table("", "tokens,ms\n").mistakes() == "T:1: the header is \"tokens,ms\", allowed: model,tokens,batch,context,ms");
  CHECK(Table("", "").mistakes() != "");
  const Table crlf("target,1,1,0,10\r\n\r\ndraft,1,1,0,1\r\n", "model,tokens,batch,context,ms\r\n");
  REQUIRE(crlf.good());
  CHECK(near(crlf.ms(Role::target, 1, 1, 0), 10));
  std::string mistakes;
  make_cost("table", "{file: no/such/table.csv}", &mistakes);
  CHECK(mistakes.find("no/such/table.csv") != std::string::npos);
  CHECK(mistakes.find("allowed: a readable CSV file") != std::string::npos);
}

TEST_CASE("a policy's own cost is paid in every round, and the policy that depends on times knows it", "[cost][round]") {
  const auto cell_with = [](const std::string& round_cost) {
    return tests::experiment_of(
               fmt::format(
                   "{{experiment: policy_cost, pair: {{vocab: 9, target: {{family: uniform}}, draft: {{from: target, transform: "
                   "overlap, value: .7, shape: disjoint_tail}}}}, cost: {{model: ratio, target_seconds: 0.02, draft_seconds: "
                   "0.003}}, "
                   "decode: {{drafter: {{kind: chain, draft_length: 4}}, policy: {{kind: goodput{}}}}}}}",
                   round_cost))
        .cells.at(0);
  };
  const spec::Cell free = cell_with("");
  const spec::Cell paid = cell_with(", round_cost: 0.25");
  const std::vector<std::uint64_t> drafted = {5, 0, 3, 0, 2};  // rounds by drafted tokens
  // A quarter of a pass without speculation, 20 ms; mutants: nothing, or a quarter of a draft pass.
  CHECK(near(paid.round_time(0.3, drafted).total() - free.round_time(0.3, drafted).total(), 0.25 * 0.02, 1e-12));
  CHECK(near(paid.round_time(0.3).total() - free.round_time(0.3).total(), 0.25 * 0.02, 1e-12));
  REQUIRE(paid.policy()->round_times.size() == 5);
  for (std::size_t length = 0; length < 5; ++length)
    CHECK(near(paid.policy()->round_times[length] - free.policy()->round_times[length], 0.25 * 0.02, 1e-12));
  CHECK(near(speedup(paid.round_time(0.3, drafted), 2.0) / speedup(free.round_time(0.3, drafted), 2.0),
             free.round_time(0.3, drafted).total() / paid.round_time(0.3, drafted).total(), 1e-12));
}

}  // namespace specsim::cost_rounds_test
