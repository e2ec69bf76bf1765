// Questions about latencies: plans, maps and landscapes.
#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/built_in.h"
#include "sim/answers/plan/planned.h"
#include "sim/answers/plan/stated_acceptance.h"
#include "sim/doors/web/questions.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/json.h"
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace specsim::web {

namespace {

constexpr int kLongestTried = 16;
constexpr double kLargestWhole = 9e15;

std::int64_t whole_at(const Json& question, const char* key, std::int64_t otherwise) {
  const double x = number_at(question, key, static_cast<double>(otherwise));
  if (x != std::floor(x) || std::abs(x) > kLargestWhole)
    throw BadInput({key, 0, 0}, fmt::format("{}, allowed: a whole number", x));
  return static_cast<std::int64_t>(x);
}

// The model at `key` with the question's changes. The draft is split like the target, since engines split both alike.
cost::PresetChoice model_of(const Json& question, const char* key, const std::string& otherwise, bool target) {
  cost::PresetChoice choice{text_at(question, key, otherwise), {key, 0, 0}, {}};
  if (choice.name == "none") return choice;
  const double gpus = number_at(question, "tensor_parallel", 1.0);
  if (gpus != 1.0) choice.changes.push_back({"tensor_parallel", fmt::format("{:g}", gpus), {"tensor_parallel", 0, 0}});
  if (!target) return choice;
  if (const std::string dtype = text_at(question, "dtype", ""); !dtype.empty())
    choice.changes.push_back({"dtype", dtype, {"dtype", 0, 0}});
  if (const double bits = number_at(question, "kv_bits", 0.0); bits != 0.0)
    choice.changes.push_back({"kv_bits", fmt::format("{:g}", bits), {"kv_bits", 0, 0}});
  return choice;
}

std::vector<double> shares_at(const Json& question, const char* key) {
  const auto at = question.find(key);
  if (at == question.end() || !at->is_array() || at->empty())
    throw BadInput({key, 0, 0}, "no list, allowed: rates by position, such as [0.7, 0.45, 0.3]");
  std::vector<double> shares;
  for (const Json& share : *at) {
    if (!share.is_number() || share.get<double>() < 0.0 || share.get<double>() > 1.0)
      throw BadInput({key, 0, 0}, share.dump() + ", allowed: rates in [0, 1]");
    shares.push_back(share.get<double>());
  }
  return shares;
}

double share_at(const Json& question, const char* key) {
  const double share = number_at(question, key, -1.0);
  if (share < 0.0 || share > 1.0) throw BadInput({key, 0, 0}, fmt::format("{}, allowed: a number in [0, 1]", share));
  return share;
}

// The acceptance in a pasted log or metrics page.
plan::AcceptanceCurve logged_acceptance(const std::string& text, int draft_length, int longest) {
  const Location where{"log", 0, 0};
  logs::LogReader reader;
  reader.add_text(text);
  const logs::LogContents contents = reader.finish();
  const std::vector<std::size_t> distinct = logs::distinct(contents.found);
  if (distinct.empty())
    throw BadInput(where, fmt::format("no line reports speculative decoding ({} read), allowed: a log, metrics or "
                                      "answers of a server that specsim import reads",
                                      contents.lines));
  if (distinct.size() > 1)
    throw BadInput(where, fmt::format("{} servers or draft lengths, allowed: lines of one", distinct.size()));
  const logs::ReportedAcceptance& log = contents.found[distinct.front()];
  return plan::logged_acceptance(log.kind, logs::find(log, draft_length), longest, where, "with it");
}

Json time_of(const cost::RoundTime& time) {
  return {{"plain", number(time.plain.total())},
          {"draft", number(time.draft.total())},
          {"verify", number(time.verify.total())},
          {"other", number(time.overhead)},
          {"round", number(time.total())}};
}

Json points_of(const plan::Plan& plan) {
  Json points = Json::array();
  for (const plan::PlanPoint& point : plan.points) {
    Json own = time_of(point.time);
    own["draft_length"] = point.draft_length;
    own["tokens_per_round"] = number(point.tokens_per_round);
    own["speedup"] = number(point.speedup);
    own["tokens_per_second"] = number(point.tokens_per_second);
    points.push_back(std::move(own));
  }
  return points;
}

Json scan_of(const std::vector<plan::ScanPoint>& points) {
  Json list = Json::array();
  for (const plan::ScanPoint& point : points) {
    std::vector<double> speedups;
    for (const plan::PlanPoint& own : point.plan.points) speedups.push_back(own.speedup);
    list.push_back({{"at", point.at},
                    {"best", point.plan.best},
                    {"smooth", point.smooth},
                    {"loss", number(point.loss)},
                    {"speedup", number(point.plan.best_point().speedup)},
                    {"tokens_per_second", number(point.plan.best_point().tokens_per_second)},
                    {"speedups", numbers(speedups)}});
  }
  return list;
}

Json even_of(const std::optional<plan::BreakEvenAlpha>& even) {
  return even ? Json{{"alpha", number(even->alpha)}, {"draft_length", even->draft_length}} : Json();
}

// One cell whose pass latencies have the question's fixed ratio.
spec::Experiment ratio_experiment(const Json& question) {
  spec::ExperimentValues values = plan::planning_experiment();
  values.cost = {"ratio",
                 {{"cost_ratio", number_at(question, "cost_ratio", 0.0)},
                  {"verify_inflation", number_at(question, "verify_inflation", 1.0)},
                  {"overhead", number_at(question, "overhead", 0.0)}}};
  Diagnostics diagnostics;
  spec::Experiment experiment = spec::make_experiment(values, "the explorer", {}, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

Json optional_number(const std::optional<double>& x) { return x ? number(*x) : Json(); }

Json map_of(const std::vector<plan::MapCell>& cells) {
  Json list = Json::array();
  for (const plan::MapCell& cell : cells)
    list.push_back({{"batch", cell.batch},
                    {"context", cell.context},
                    {"alpha", number(cell.alpha)},
                    {"known", cell.known()},
                    {"best", cell.best},
                    {"speedup", number(cell.speedup)},
                    {"break_even_alpha", cell.break_even_alpha <= 1.0 ? number(cell.break_even_alpha) : Json()},
                    {"regime", plan::to_text(cell.regime)}});
  return list;
}

}  // namespace

int longest_of(const Json& question) {
  const std::int64_t longest = whole_at(question, "longest", kLongestTried);
  if (longest < 1 || longest > kMaxDraftLength)
    throw BadInput({"longest", 0, 0}, fmt::format("{}, allowed: a draft length from 1 to {}", longest, kMaxDraftLength));
  return static_cast<int>(longest);
}

// The draft of the acceptance table, or plan's default for other acceptance.
std::string draft_without_choice(const Json& question) {
  const auto at = question.find("acceptance");
  if (at == question.end() || !at->is_object() || text_at(*at, "kind", "") != "table") return plan::kDefaultDraft;
  const std::string recorded = spec::named_acceptance_table(text_at(*at, "value", ""), {"table", 0, 0}).draft;
  return recorded.empty() ? plan::kDefaultDraft : recorded;
}

spec::Experiment experiment_with_cost(const Json& question) {
  Diagnostics diagnostics;
  std::vector<spec::Override> changes;
  spec::ExperimentValues values = plan::planning_experiment();
  changes.push_back(spec::override_setting("workload.batch", whole_at(question, "batch", 1), {"batch", 0, 0}));
  changes.push_back(
      spec::override_setting("workload.context_length", whole_at(question, "context", plan::kDefaultContext), {"context", 0, 0}));
  const auto preset = [&](const char* path, const cost::PresetChoice& choice) {
    if (auto change = spec::override_preset(path, choice, diagnostics)) changes.push_back(*std::move(change));
  };
  preset("cost.hardware", {text_at(question, "hardware", plan::kDefaultHardware), {"hardware", 0, 0}, {}});
  const std::string engine = text_at(question, "engine", "");
  if (const auto tuned = question.find("tuned"); tuned != question.end() && !tuned->is_null()) {  // from answer_tune()
    const Location where{"tuned", 0, 0};
    const config::Value learned = config::parse_json(tuned->dump(), where.file, diagnostics);
    changes.push_back(
        {"cost.engine",
         config::map({{"preset", config::scalar(engine.empty() ? "vllm" : engine, where)}, {"tuned", learned}}, where), where});
  } else if (!engine.empty()) {
    preset("cost.engine", {engine, {"engine", 0, 0}, {}});
  }
  preset("cost.target", model_of(question, "target", plan::kDefaultTarget, true));
  preset("cost.draft", model_of(question, "draft", draft_without_choice(question), false));
  spec::Experiment experiment = spec::make_experiment(values, "the explorer", changes, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

plan::AcceptanceCurve acceptance_of(const Json& question) {
  const auto at = question.find("acceptance");
  if (at == question.end() || !at->is_object()) throw BadInput({"acceptance", 0, 0}, "none is given");
  const int longest = longest_of(question);
  const std::string kind = text_at(*at, "kind", "alpha");
  const Location where{kind, 0, 0};
  const auto measured_at = [&] {
    const std::int64_t length = whole_at(*at, "at", 0);
    if (length < 1 || length > kMaxDraftLength)
      throw BadInput({"at", 0, 0}, fmt::format("{}, allowed: the draft length that it was measured at", length));
    return static_cast<int>(length);
  };
  if (kind == "alpha") return plan::constant_acceptance(share_at(*at, "value"), longest);
  if (kind == "position_rates") return plan::unconditional_acceptance(shares_at(*at, "value"), longest, where);
  if (kind == "conditional_rates") return plan::conditional_acceptance(shares_at(*at, "value"), longest);
  if (kind == "length") return plan::length_acceptance(number_at(*at, "value", 1.0), measured_at(), longest, where);
  if (kind == "rate") return plan::rate_acceptance(share_at(*at, "value"), measured_at(), longest);
  if (kind == "table") return plan::table_acceptance(text_at(*at, "value", ""), where, longest);
  if (kind == "log") return logged_acceptance(text_at(*at, "value", ""), at->contains("at") ? measured_at() : 0, longest);
  throw BadInput({"acceptance", 0, 0},
                 fmt::format("\"{}\", allowed: alpha, position_rates, conditional_rates, length, rate, table, log", kind));
}

Json answer_plan(const Json& question) {
  const spec::Experiment experiment = experiment_with_cost(question);
  const spec::Cell& cell = experiment.cells.front();
  const plan::AcceptanceCurve curve = acceptance_of(question);
  const plan::Advice advice = plan::advise(cell.cost(), cell.workload, curve);
  const plan::Plan& plan = advice.plan;
  Json reply;
  reply["acceptance"] = curve.source;
  reply["measured"] = curve.measured;
  reply["in_seconds"] = cell.cost().in_seconds();
  reply["points"] = points_of(plan);
  reply["best"] = plan.best;
  const plan::PlanPoint* const drafted = plan.best > 0 ? &plan.best_point() : plan::fastest_draft(plan);
  if (drafted != nullptr && drafted->gain.error > 0.0)
    reply["gain"] = {{"draft_length", drafted->draft_length},
                     {"low", number(drafted->gain.low())},
                     {"high", number(drafted->gain.high())},
                     {"verdict", plan::verdict_text(drafted->gain)}};
  reply["ties"] = plan.ties;
  reply["noise"] = number(plan.noise);
  for (const plan::Margin& margin : plan.margins)
    reply["margins"].push_back(
        {{"over", margin.over}, {"margin", number(margin.margin)}, {"half_width", number(margin.half_width)}});
  reply["equivalent_alpha"] = number(curve.equivalent_alpha(std::max(plan.best, 1)));
  reply["break_even"] = even_of(advice.break_even);
  reply["break_even_chosen"] = even_of(advice.break_even_chosen);
  reply["reason"] = plan.best == 0 ? plan::to_text(advice.regime) : "";
  reply["by_batch"] = scan_of(advice.by_batch);
  reply["by_context"] = scan_of(advice.by_context);
  for (const plan::LengthRange& range : plan::ranges_of(advice.by_batch))
    reply["schedule"].push_back({{"from", number(range.from)}, {"to", number(range.to)}, {"draft_length", range.draft_length}});
  if (advice.cliff)
    reply["cliff"] = {{"batch", advice.cliff->batch},
                      {"speedup", number(advice.cliff->speedup)},
                      {"best", advice.cliff->best},
                      {"best_speedup", number(advice.cliff->best_speedup)}};
  const plan::PlanPoint& shown = plan.best > 0 ? plan.best_point() : plan.points[plan.points.size() > 1 ? 1 : 0];
  reply["waterfall_of"] = shown.draft_length;
  for (const cost::WaterfallStep& step : cost::waterfall(shown.time, shown.tokens_per_round))
    reply["waterfall"].push_back({{"name", step.name}, {"seconds", number(step.seconds)}, {"after", number(step.after)}});
  reply["per_alpha"] = number(advice.per_alpha);
  reply["with_more_bandwidth"] = optional_number(advice.with_more_bandwidth);
  reply["with_more_host_time"] = optional_number(advice.with_more_host_time);
  if (advice.memory) {
    Json lines = Json::array();
    for (const cost::MemoryItem& item : advice.memory->lines) lines.push_back({{"what", item.what}, {"bytes", item.bytes}});
    reply["memory"] = {{"text", advice.memory->to_text()},
                       {"lines", lines},
                       {"needed", advice.memory->needed_bytes()},
                       {"available", advice.memory->available_bytes}};
  }
  reply["largest_batch_with_draft"] = advice.largest_batch_with_draft;
  reply["largest_batch_without"] = advice.largest_batch_without;
  reply["commands"] = Json::array();
  for (const plan::EngineCommand& command : advice.commands) {
    std::vector<std::string> notes = command.needs;
    notes.insert(notes.end(), command.notes.begin(), command.notes.end());
    reply["commands"].push_back({{"engine", command.engine}, {"command", command.command}, {"notes", notes}});
  }
  reply["warnings"] = advice.warnings;
  for (const std::string& warning : cell.warnings()) reply["warnings"].push_back(warning);
  return reply;
}

Json answer_map(const Json& question) {
  const spec::Experiment experiment = experiment_with_cost(question);
  const spec::Cell& cell = experiment.cells.front();
  const std::vector<plan::MapCell> cells =
      plan::make_own_map(cell.cost(), plan::doubling(1, 512), plan::doubling(512, 131072), acceptance_of(question), 1);
  return {{"cells", map_of(cells)}};
}

Json answer_landscape(const Json& question) {
  const bool by_ratio = question.contains("cost_ratio");
  const spec::Experiment experiment = by_ratio ? ratio_experiment(question) : experiment_with_cost(question);
  const spec::Cell& cell = experiment.cells.front();
  const int longest = longest_of(question);
  const std::int64_t steps = whole_at(question, "steps", 40);
  if (steps < 1 || steps > 200) throw BadInput({"steps", 0, 0}, fmt::format("{}, allowed: 1 to 200", steps));
  Json reply;
  reply["in_seconds"] = cell.cost().in_seconds();
  for (std::int64_t i = 0; i <= steps; ++i) {
    const double alpha = static_cast<double>(i) / static_cast<double>(steps);
    const plan::Plan plan = plan::make_plan(cell.cost(), cell.workload, plan::constant_acceptance(alpha, longest));
    reply["rows"].push_back({{"alpha", alpha}, {"best", plan.best}, {"points", points_of(plan)}});
  }
  for (int length = 1; length <= longest; ++length)
    reply["break_even"].push_back(even_of(plan::break_even(cell.cost(), cell.workload, longest, length)));
  reply["break_even_any"] = even_of(plan::break_even(cell.cost(), cell.workload, longest));
  return reply;
}

}  // namespace specsim::web
