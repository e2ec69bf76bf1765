// Questions about a server under load: its curve, and its steps one by one.
#include "sim/answers/load/capacity.h"
#include "sim/answers/load/curve.h"
#include "sim/answers/load/verdict.h"
#include "sim/doors/web/questions.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace specsim::web {

namespace {

constexpr const char* kSource = "the explorer";
constexpr std::size_t kMostLoads = 64;
constexpr std::int64_t kMostSteps = 2000;
constexpr double kPicosecondsPerSecond = 1e12;

load::ServeExperiment server_of(const Json& question) {
  const auto at = question.find("config");
  if (at == question.end() || !at->is_object()) throw BadInput({"config", 0, 0}, "none is given");
  Diagnostics diagnostics;
  const config::Value config = config::parse_json(at->dump(), kSource, diagnostics);
  diagnostics.throw_if_any();
  load::ServeExperiment experiment = load::read_serve_experiment(config, kSource, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

load::Load load_of(const Json& question) {
  const std::string name = text_at(question, "load", "rate");
  for (const load::Load load : {load::Load::rate, load::Load::concurrency})
    if (name == load_name(load)) return load;
  throw BadInput({"load", 0, 0}, fmt::format("\"{}\", allowed: rate, concurrency", name));
}

void check_load(load::Load load, double value) {
  if (load == load::Load::rate ? !(value > 0.0 && value <= 1e6) : !(value >= 1.0 && value <= 1e6 && value == std::floor(value)))
    throw BadInput({"values", 0, 0}, fmt::format("{}, allowed: {}", value,
                                                 load == load::Load::rate ? "requests per second above 0"
                                                                          : "a whole number of clients, at least 1"));
}

std::vector<double> values_of(const Json& question, load::Load load) {
  const auto at = question.find("values");
  if (at == question.end() || !at->is_array() || at->empty() || at->size() > kMostLoads)
    throw BadInput({"values", 0, 0}, fmt::format("no list of loads, allowed: 1 to {} of them", kMostLoads));
  std::vector<double> values;
  for (const Json& one : *at) {
    if (!one.is_number()) throw BadInput({"values", 0, 0}, one.dump() + ", allowed: numbers");
    check_load(load, one.get<double>());
    values.push_back(one.get<double>());
  }
  return values;
}

// Results for the server of the last question, so that a curve that grows load by load runs each load once.
struct CurveSoFar {
  std::string config;
  std::map<std::pair<double, bool>, serve::Summary> known;
  std::map<bool, report::Estimate> capacity;  // [speculative]
};

// Keeps the steps of a run that begin after a given moment, and stops the run after the last of them.
class StepsKept final : public serve::StepObserver {
 public:
  StepsKept(double from_s, std::int64_t most) : from_s_(from_s), most_(most) {}
  [[nodiscard]] const std::atomic<bool>* stop() const { return &stop_; }
  [[nodiscard]] Json take() { return std::move(steps_); }

  void began(const serve::StepRecord& record) override {
    const double start = static_cast<double>(record.start) / kPicosecondsPerSecond;
    if (start < from_s_ || stop_) return;
    const serve::Step& step = *record.plan;
    Json items = Json::array();
    for (const serve::Item& item : step.items)
      items.push_back({item.request, item.rows, item.drafts, item.accepted, item.prefill ? 1 : 0, item.emits ? 1 : 0});
    Json own = {{"step", record.step},
                {"start", start},
                {"target", static_cast<double>(record.time.target) / kPicosecondsPerSecond},
                {"draft", static_cast<double>(record.time.draft) / kPicosecondsPerSecond},
                {"waiting", step.waiting},
                {"prefill_rows", record.prefill_rows},
                {"decode_rows", record.decode_rows},
                {"draft_rows", record.draft_rows},
                {"preempted", step.preempted},
                {"draft_length", step.draft_length},
                {"free_blocks", record.pool->unlimited() ? Json() : Json(step.free_blocks)},
                {"items", std::move(items)}};
    steps_.push_back(std::move(own));
    stop_ = static_cast<std::int64_t>(steps_.size()) >= most_;
  }

 private:
  double from_s_;
  std::int64_t most_;
  std::atomic<bool> stop_{false};
  Json steps_ = Json::array();
};

}  // namespace

Json answer_serve(const Json& question) {
  static CurveSoFar so_far;
  const load::Load load = load_of(question);
  const std::vector<double> values = values_of(question, load);
  const load::ServeExperiment experiment = server_of(question);
  if (!experiment.counts_requests)
    throw BadInput({"config", 0, 0}, "serve.arrivals does not set the number of requests, allowed: with requests");
  const std::string config = question.at("config").dump();
  if (so_far.config != config) so_far = {config, {}, {}};
  std::vector<load::ServeExperiment> servers;
  std::vector<load::CurvePoint> curve;
  for (const double value : values)
    for (const bool speculative : {false, true}) {  // in the order of load_curve()
      if (speculative && !experiment.speculation) continue;
      const load::ServeExperiment one = load::at_load(experiment, load, value, "values");
      servers.push_back(speculative ? one : load::without_speculation(one));
      curve.push_back({value, speculative, {}, {NAN, NAN, 0.0}, 0});
    }
  const auto name = [&](std::uint64_t point) { return std::pair(curve[point].load, curve[point].speculative); };
  load::SweepRunner::Options setting;
  setting.known = [&](std::uint64_t point, std::uint64_t) -> std::optional<serve::Summary> {
    const auto at = so_far.known.find(name(point));
    return at == so_far.known.end() ? std::nullopt : std::optional(at->second);
  };
  setting.done = [&](std::uint64_t point, std::uint64_t, const serve::Summary& summary) { so_far.known[name(point)] = summary; };
  load::SweepRunner runner(std::move(setting));
  const auto wanted = question.find("capacity");  // takes longer than all loads together
  if (load == load::Load::rate && wanted != question.end() && wanted->is_boolean() && wanted->get<bool>())
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const bool speculative = curve[i].speculative;
      if (!so_far.capacity.contains(speculative)) so_far.capacity[speculative] = load::capacity_of(servers[i], runner);
      curve[i].capacity = so_far.capacity[speculative];
    }
  load::run_points(curve, std::move(servers), runner);
  Json reply = {{"load", load_name(load)}, {"points", Json::array()}, {"verdict", load::verdict(curve, load)}};
  reply["warnings"] = experiment.cost->warnings();
  for (const load::CurvePoint& point : curve) {
    Json figures;
    for (const serve::SummaryFigure& one : serve::summary_figures())
      figures[one.name] = number(one.value(point.replications.front()));
    reply["points"].push_back({{"load", point.load},
                               {"speculative", point.speculative},
                               {"capacity", number(point.capacity.value)},
                               {"overloaded", load::overloaded(point)},
                               {"needed_requests", point.too_short},
                               {"figures", std::move(figures)}});
  }
  return reply;
}

Json answer_replay(const Json& question) {
  const load::Load load = load_of(question);
  const double value = number_at(question, "value", 1.0);
  check_load(load, value);
  const double from_s = number_at(question, "from", 0.0);
  const double most = number_at(question, "steps", 200.0);
  if (!(from_s >= 0.0)) throw BadInput({"from", 0, 0}, fmt::format("{}, allowed: seconds from 0 on", from_s));
  if (!(most >= 1.0 && most <= static_cast<double>(kMostSteps)))
    throw BadInput({"steps", 0, 0}, fmt::format("{}, allowed: 1 to {}", most, kMostSteps));
  load::ServeExperiment experiment = load::at_load(server_of(question), load, value, "value");
  const auto plain = question.find("plain");
  if (plain != question.end() && plain->is_boolean() && plain->get<bool>()) experiment = without_speculation(experiment);
  const arrivals::RequestTrace workload = load::make_requests(experiment);
  StepsKept kept(from_s, static_cast<std::int64_t>(most));
  load::ServeOptions options;
  options.observer = &kept;
  options.stop = kept.stop();
  const load::ServeResult served = load::serve(experiment, workload, options);
  Json reply = {{"steps", kept.take()}, {"requests", Json::array()}};
  for (std::size_t i = 0; i < served.result.sent; ++i) {
    const serve::Sequence& sequence = served.result.sequences[i];
    const auto moment = [](arrivals::Picoseconds time) {
      return time == arrivals::kNever ? Json() : Json(static_cast<double>(time) / kPicosecondsPerSecond);
    };
    reply["requests"].push_back({{"sent", moment(sequence.sent)}, {"prompt", sequence.prompt}, {"output", sequence.output}});
  }
  reply["pool_blocks"] = served.result.pool_blocks;
  return reply;
}

}  // namespace specsim::web
