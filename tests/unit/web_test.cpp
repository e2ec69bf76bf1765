// Questions of the explorer's page, asked natively; tests/web asks the compiled core and compares it with the program.
#include "sim/doors/web/explorer.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace specsim::web_test {

namespace {

using Json = nlohmann::json;
using Catch::Matchers::Contains;

Json ask(const Json& question) { return Json::parse(specsim::web::answer(question.dump())); }

Json chain_config(const std::string& verifier) {
  return Json::parse(R"({"seed": 3, "rounds": 20000, "context": {"process": "fixed"},
    "pair": {"vocab": 4, "target": {"family": "explicit", "probabilities": [0.5, 0.25, 0.125, 0.125]},
             "draft": {"family": "explicit", "probabilities": [0.25, 0.25, 0.5, 0]}},
    "decode": {"drafter": {"kind": "chain", "draft_length": 3}, "verifier": ")" +
                     verifier + "\"}}");
}

Json single(const std::string& verifier) {
  Json config = chain_config(verifier);
  config["decode"]["drafter"]["draft_length"] = 1;
  return config;
}

}  // namespace

TEST_CASE("the explorer knows models, GPUs and parts by name", "[web]") {
  const Json parts = ask({{"ask", "parts"}});
  for (const char* kind : {"hardware", "model", "engine", "acceptance", "verifier", "family"}) CHECK(parts[kind].size() > 3);
}

TEST_CASE("a position taken apart: the token rule's mass adds up to the target, lenience's does not", "[web]") {
  const Json token = ask({{"ask", "mass"}, {"config", single("token")}});
  CHECK(token["alpha"].get<double>() == Approx(0.625));  // .25 + .25 + .125
  CHECK(token["overlap"].get<double>() == Approx(0.625));
  CHECK(token["distance"].get<double>() == Approx(0.375));
  CHECK(token["bias"].get<double>() == Approx(0.0).margin(1e-12));
  for (std::size_t x = 0; x < 4; ++x)
    CHECK(token["emitted"][x].get<double>() == Approx(token["target"][x].get<double>()).margin(1e-12));
  Json config = single("token");
  config["decode"]["verifier"] = {{"kind", "lenience"}, {"lenience", 0.5}};
  const Json lenient = ask({{"ask", "mass"}, {"config", config}});
  CHECK(lenient["alpha"].get<double>() == Approx(0.75));  // .25 + .25 + min(.125 / .5, .5)
  CHECK(lenient["bias"].get<double>() > 0.05);
}

TEST_CASE("a run in pieces gives the counts of a single run, and its verdict comes at the end", "[web]") {
  const Json config = chain_config("token");
  CHECK_FALSE(ask({{"ask", "rounds"}, {"config", config}, {"until", 1}})["done"].get<bool>());
  const Json pieces = ask({{"ask", "rounds"}, {"config", config}});
  Json other = config;
  other["seed"] = 4;
  const Json moved = ask({{"ask", "rounds"}, {"config", other}});
  const Json once = ask({{"ask", "rounds"}, {"config", config}});
  CHECK(pieces["done"].get<bool>());
  CHECK(pieces["rounds"] == 20000);
  CHECK(pieces["counts"] == once["counts"]);
  CHECK(pieces["counts"] != moved["counts"]);
  CHECK(pieces["verdict"] == "agree");
  CHECK(pieces["distance"].get<double>() < 3.0 * pieces["expected_distance"].get<double>());
}

TEST_CASE("rounds shown choice by choice are the rounds that the run plays", "[web]") {
  Json config = chain_config("token");
  config["rounds"] = 192;  // three sequences
  config["decode"]["verifier"] = GENERATE("token", "lenience", "typical", "sample_match", "block");
  const Json run = ask({{"ask", "rounds"}, {"config", config}});
  std::vector<int> emitted(4);
  for (int round = 0; round < 192; ++round) {
    const Json told = ask({{"ask", "step"}, {"config", config}, {"round", round}});
    const auto accepted = told["accepted"].get<std::size_t>();
    REQUIRE(told["emitted"].size() == accepted + 1);
    for (const Json& token : told["emitted"]) ++emitted[token.get<std::size_t>()];
    for (std::size_t i = 0; i < accepted; ++i) CHECK(told["positions"][i]["token"] == told["emitted"][i]);
    for (std::size_t i = 0; i < 3 && i <= accepted && told["positions"][i].contains("odds_draft"); ++i) {
      const Json& position = told["positions"][i];
      if (!told["matches"].get<bool>())
        CHECK((position["u"].get<double>() * position["odds_draft"].get<double>() < position["odds_target"].get<double>()) ==
              position["accepts"].get<bool>());
    }
  }
  for (std::size_t x = 0; x < 4; ++x) CHECK(emitted[x] == run["observed"][x].get<int>());
}

TEST_CASE("a landscape by a cost ratio is that of the closed form", "[web]") {
  const Json answer = ask({{"ask", "landscape"}, {"cost_ratio", 0.1}, {"steps", 10}, {"longest", 5}});
  const double tokens = (1.0 - std::pow(0.7, 4)) / 0.3;
  CHECK(answer["rows"][7]["points"][3]["speedup"].get<double>() == Approx(tokens / 1.3));
  CHECK(answer["rows"][0]["best"] == 0);
  CHECK(answer["break_even"].size() == 5);
}

TEST_CASE("pasted benchmark results narrow a plan", "[web][tune]") {
  const std::string plain =
      "draft_length,concurrency,prompt_tokens,output_tokens,tpot_ms,output_tokens_per_s\n0,8,717,256,11.95,626.9\n";
  const std::string drafted =
      "draft_length,concurrency,prompt_tokens,output_tokens,acceptance_length,tpot_ms,output_tokens_per_s\n5,8,717,256,2.88,6.76,"
      "1099.6\n";
  const Json server = {
      {"hardware", "a100-80gb-sxm"}, {"target", "llama-3.1-8b"}, {"draft", "eagle3-llama-3.1-8b"}, {"engine", "vllm"}};
  Json question = server;
  question.update({{"ask", "tune"}, {"runs", {{{"text", plain}}, {{"text", drafted}}}}});
  const Json learned = ask(question);
  REQUIRE_FALSE(learned.contains("error"));
  REQUIRE(learned["runs"].size() == 2);
  CHECK(learned["runs"][0]["tpot_ms_tuned"].get<double>() == Approx(11.95).epsilon(0.06));
  CHECK_THAT(learned["server_yaml"].get<std::string>(), Contains("preset: vllm"));
  Json plan = server;
  plan.update({{"ask", "plan"}, {"batch", 8}, {"acceptance", {{"kind", "alpha"}, {"value", 0.7}}}});
  const Json before = ask(plan)["gain"];
  plan["tuned"] = learned["tuned"];
  const Json after = ask(plan)["gain"];
  const auto width = [](const Json& gain) { return std::log(gain["high"].get<double>() / gain["low"].get<double>()); };
  CHECK(width(after) < 0.8 * width(before));
  CHECK_THAT(ask({{"ask", "tune"}, {"runs", {{{"text", "hello"}}}}}).value("error", ""),
             Contains("the pasted text:1:1: \"hello\""));
  CHECK_THAT(ask({{"ask", "tune"}}).value("error", ""), Contains("runs: no list"));
  plan["tuned"] = {{"factors", {{"produts", 1}}}, {"covariance", Json::array()}};
  CHECK_THAT(ask(plan).value("error", ""), Contains("produts"));
}

TEST_CASE("unreadable input gets a message with the allowed values", "[web]") {
  const auto error = [](const Json& question) { return ask(question).value("error", ""); };
  CHECK_THAT(error({{"ask", "weather"}}), Contains("\"weather\", allowed: parts, plan"));
  CHECK_THAT(error({{"ask", "plan"}}), Contains("acceptance: none is given"));
  CHECK_THAT(error({{"ask", "plan"}, {"hardware", "h1000"}, {"acceptance", {{"kind", "alpha"}, {"value", 0.7}}}}),
             Contains("unknown hardware \"h1000\", did you mean"));
  CHECK_THAT(error({{"ask", "plan"}, {"batch", 1.5}, {"acceptance", {{"kind", "alpha"}, {"value", 0.7}}}}),
             Contains("batch: 1.5, allowed: a whole number"));
  CHECK_THAT(error({{"ask", "plan"}, {"acceptance", {{"kind", "alpha"}, {"value", 1.5}}}}), Contains("value: 1.5, allowed"));
  CHECK_THAT(error({{"ask", "mass"}, {"config", chain_config("no_such_rule")}}), Contains("unknown verifier \"no_such_rule\""));
  CHECK_THAT(error({{"ask", "mass"}, {"config", chain_config("token")}}), Contains("draft length 3, allowed: 1"));
  CHECK_THAT(error({{"ask", "step"}, {"config", chain_config("token")}, {"round", -1}}), Contains("round: -1, allowed"));
  CHECK(Json::parse(specsim::web::answer("{")).contains("error"));
}

}  // namespace specsim::web_test
