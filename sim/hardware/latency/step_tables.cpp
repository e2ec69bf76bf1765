#include "sim/hardware/latency/step_tables.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/config/csv_line.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/latency/roofline.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace specsim::cost {

namespace {

// Prompts and outputs of the served benchmarks are drawn uniformly between 80 % of the stated length and the full length.
constexpr double kMeanLength = 0.9;
constexpr double kMostGpus = 8.0;        // the most GPUs of one server
constexpr double kPromptChunk = 8192.0;  // tokens of prompts in a step

// The median estimate must be within this factor of the measurement, or the unit is wrong (1000 times). No single step of the
// public tables is off by more than 10 times.
constexpr double kMostStepRatio = 30.0;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The preset that a table names in its own way: "meta-llama/Llama-3.1-8B-Instruct", "h200_sxm".
std::optional<std::string> preset_called(PresetKind kind, const std::string& text) {
  std::string name = lower(text.substr(text.find('/') == std::string::npos ? 0 : text.find('/') + 1));
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<std::string> spellings = {name, name + "-sxm"};
  for (const char* ending : {"-instruct", "-nvfp4", "-sxm", "-fp8"})
    if (name.ends_with(ending)) spellings.push_back(name.substr(0, name.size() - std::string_view(ending).size()));
  for (const std::string& spelling : spellings)
    for (const std::string& known : preset_names(kind))
      if (known == spelling) return known;
  return std::nullopt;
}

constexpr const char* kOtherEngine = "vllm";  // estimates steps of unknown engines, as it does kernels

// The profile of an engine that a table calls "vllm 0.20.1".
std::optional<std::string> engine_called(const std::string& text) {
  const std::string name = text.substr(0, text.find(' '));
  const std::vector<std::string> names = engine_names();
  for (const std::string& wanted : {name + "_async", name})
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
  return std::nullopt;
}

// The types of a served checkpoint: those of its weights, unless the model names a checkpoint of that kind, and of the cache.
// Empty: the model's own.
struct Precision {
  std::string word;
  std::string weights;
  std::string cache;
};

std::optional<Precision> precision_of(const std::string& precision, const std::string& products) {
  // Servers of checkpoints of 8 bits and nvfp4 keep keys and values in fp8 as well; servers of int4 checkpoints do not
  // (InferenceX's scripts).
  if (products == "fp8_block") return Precision{"fp8", "fp8_block", "fp8"};
  for (const Precision& one :
       {Precision{"", "", ""}, {"bf16", "", ""}, {"fp8", "fp8", "fp8"}, {"fp4", "nvfp4", "fp8"}, {"int4", "int4", ""}})
    if (precision == one.word) return one;
  return std::nullopt;
}

// Whether the server keeps keys, values and states of linear attention in fewer bits. SGLang's on Hopper does not, by
// InferenceX's scripts.
bool narrow_cache(const Precision& precision, const std::string& engine, const Hardware& hardware) {
  constexpr double kBlackwell = 10.0;
  return !precision.cache.empty() &&
         (engine != "sglang" || hardware.compute_capability >= kBlackwell || precision.weights == "fp8_block");
}

using config::CsvLine;

// A figure of at least `least`.
double figure(const CsvLine& line, const char* name, double least) {
  const std::optional<double> x = config::as_number(line.text(name));
  if (!x || *x < least || *x > 1e12) line.refuse(name, fmt::format("a number from {:g} on", least));
  return *x;
}

// Whether the column exists and has a value above 1.
bool several(const CsvLine& line, const char* name) {
  const std::string& text = line.text(name);
  return !text.empty() && text != "1" && text != "1.0";
}

// How many GPUs share a model: each layer, and the experts of engines that each have their own attention and sequences.
struct Sharing {
  double tensor = 1.0;
  double experts = 1.0;
  bool whole = false;  // the GPUs of a layer hold whole experts each
};

// The sharing that a line states. `why`: the reason if the line is not estimated.
Sharing sharing_of(const CsvLine& line, const char* shards, std::string& why) {
  Sharing sharing{figure(line, shards, 1.0), 1.0};
  const double engines = several(line, "attention_dp_size") ? figure(line, "attention_dp_size", 1.0) : 1.0;
  const double spread = several(line, "moe_ep_size") ? figure(line, "moe_ep_size", 1.0) : 1.0;
  const double cut = several(line, "moe_tp_size") ? figure(line, "moe_tp_size", 1.0) : 1.0;
  const bool fewer = !line.text("batch_size").empty() && !line.text("concurrency").empty() &&
                     figure(line, "batch_size", 0.0) < figure(line, "concurrency", 0.0);
  if (spread > 1.0 && fewer && line.text("attention_dp_size").empty())
    why = "how many engines share the clients is not given";
  else if (engines == 1.0 && spread > 1.0 && spread * cut != sharing.tensor)
    why = "experts on another number of GPUs than a layer are not estimated";
  if (engines == 1.0) {
    sharing.whole = spread > 1.0 && cut == 1.0;
    return sharing;
  }
  if (sharing.tensor > 1.0 || cut > 1.0 || spread != engines)
    why = "attention on several GPUs by sequence is estimated with one GPU for each, and the experts on as many";
  else
    sharing.experts = engines;
  return sharing;
}

// Cost models by GPU, model and engine; a table has few.
class StepModels {
 public:
  StepModels(const std::optional<PresetChoice>& engine, const std::map<std::string, Hardware>& own)
      : engine_(engine), own_(own) {}

  // `where`: the GPU's field of the table. nullptr: `why` is the reason.
  const CostModel* find(const std::string& gpu, const std::string& engine, const std::string& model, const Sharing& sharing,
                        const Precision& precision, const Location& where, std::string& why) {
    const auto [at, fresh] =
        known_.try_emplace({gpu, engine, model, sharing.tensor, sharing.experts, sharing.whole, precision.weights});
    if (fresh) at->second = make(gpu, engine, model, sharing, precision, where);
    why = at->second.second;
    return at->second.first.get();
  }

 private:
  using Made = std::pair<std::unique_ptr<CostModel>, std::string>;

  [[nodiscard]] Made make(const std::string& gpu, const std::string& engine, const std::string& model, const Sharing& sharing,
                          const Precision& precision, const Location& where) const {
    const auto hardware_name = preset_called(PresetKind::hardware, gpu);
    const auto model_name = preset_called(PresetKind::model, model);
    const auto engine_name = engine_called(engine);
    const auto own = own_.find(gpu);
    const bool is_file = gpu.ends_with(".yaml");
    if (!hardware_name && own == own_.end() && !is_file) return {nullptr, fmt::format("no GPU {}", gpu)};
    if (!model_name) return {nullptr, fmt::format("no model {}", model)};
    Diagnostics diagnostics;
    Deployment d;
    d.hardware =
        own != own_.end() ? own->second : read_hardware(PresetChoice{is_file ? gpu : *hardware_name, where, {}}, diagnostics);
    d.engine = read_engine(engine_ ? *engine_ : PresetChoice{engine_name.value_or(kOtherEngine), {}, {}}, diagnostics);
    diagnostics.throw_if_any();
    PresetChoice served{*model_name, {}, {{"tensor_parallel", fmt::format("{:g}", sharing.tensor), {}}}};
    if (sharing.experts > 1.0) served.changes.push_back({"expert_parallel", fmt::format("{:g}", sharing.experts), {}});
    if (sharing.whole) served.changes.push_back({"whole_experts", "true", {}});
    // A checkpoint that was published with this many bits is served unchanged.
    const ModelShape published = read_model(PresetChoice{*model_name, {}, {}}, "model", diagnostics);
    const auto checkpoint = published.checkpoints.find(precision.word);
    const bool as_published = (precision.word == "fp8" && published.weight_bits == 8.0) ||
                              (precision.word == "int4" && published.experts > 0.0 && published.expert_bits < 8.0);
    if (checkpoint != published.checkpoints.end())
      served.changes.push_back({"dtype", checkpoint->second, {}});
    else if (!precision.weights.empty() && !as_published)
      served.changes.push_back({"dtype", precision.weights, {}});
    if (narrow_cache(precision, engine_name.value_or(""), d.hardware)) {
      served.changes.push_back({"kv_bits", "8", {}});
      if (published.state) served.changes.push_back({"state_bits", "16", {}});
    }
    ModelShape shape = read_model(served, "model", diagnostics);
    if (!diagnostics.empty()) return {nullptr, fmt::format("{} cannot be cut in {:g}", *model_name, sharing.tensor)};
    if (d.hardware.kernels == nullptr) return {nullptr, fmt::format("no kernels of {} were measured", gpu)};
    if (d.engine.kernels.empty()) return {nullptr, fmt::format("no kernels of engine {}", d.engine.name)};
    d.target = std::move(shape);
    d.kernels = d.engine.kernels;
    return {make_roofline(std::move(d)), ""};
  }

  const std::optional<PresetChoice>& engine_;
  const std::map<std::string, Hardware>& own_;
  std::map<std::tuple<std::string, std::string, std::string, double, double, bool, std::string>, Made> known_;
};

// A server's clients, each of which sends the next prompt when the output of the last one has arrived.
struct Clients {
  double count;
  double prompt;  // tokens, as the table states them
  double output;
  double wait;  // mean seconds to the first token; 0: not stated
};

double prompt_of(const Clients& clients) { return std::max(1.0, kMeanLength * clients.prompt); }
double steps_of(const Clients& clients) { return std::max(1.0, kMeanLength * clients.output); }

// The decode step of clients that decode for `share` of their time, halfway through their outputs.
Pass decode_step(const Clients& clients, double share) {
  return {std::max(1.0, clients.count * share), 1.0, prompt_of(clients) + 0.5 * steps_of(clients), 1.0};
}

// Seconds from one output token to the next if clients decode for `share` of their time: steps over those that decode, plus the
// extra time of each prompt of the others that is computed meanwhile.
double served_step(const CostModel& model, const Clients& clients, double share) {
  const Pass own = decode_step(clients, share);
  const double prompt_tokens = prompt_of(clients);
  const double steps = steps_of(clients);
  const double sequences = own.batch;
  const double context = own.context;
  const double decode = model.pass(Role::target, own).total();
  double beside = 0.0;  // extra time of a prompt in the steps that it shares
  for (double before = 0.0; before < prompt_tokens; before += kPromptChunk) {
    const double tokens = std::min(kPromptChunk, prompt_tokens - before);
    if (model.deployment()->engine.kernels == "sglang") {  // batches of prompts run alone
      beside += model.pass(Role::target, {1.0, tokens, before, std::min(1.0, tokens - 1.0)}).total();
      continue;
    }
    const Segment chunk{1.0, tokens, before, tokens * (before + 0.5 * (tokens + 1.0))};
    const Segment decoding{sequences, sequences, sequences * context, sequences * (context + 1.0)};
    beside += model.mixed_pass(Role::target, chunk, decoding, sequences + 1.0, {}).total() - decode;
  }
  return decode + share * (clients.count - 1.0) / steps * beside;
}

// The same with the share that the wait leaves: while a client waits for its first token it does not decode (Little's law). The
// wait is taken from the table, because queues depend on the benchmark: clients that start at once, and outputs that end
// together.
struct Served {
  double seconds;
  double share;  // share of their time in which clients decode
};
Served served_seconds(const CostModel& model, const Clients& clients) {
  constexpr int kRounds = 12;  // the share is then within .1 % of its limit
  const double steps = steps_of(clients);
  double share = 1.0;
  double step = served_step(model, clients, share);
  for (int i = 0; i < kRounds && clients.wait > 0.0; ++i) {
    share = 0.5 * (share + steps * step / (clients.wait + steps * step));
    step = served_step(model, clients, share);
  }
  return {step, share};
}

void state_error(EstimatedStep& row, const CostModel& model, const Pass& pass) {
  row.error = model.relative_error(Role::target, pass);
  row.kernel_error = model.kernel_error(Role::target, pass);
}

void estimate_pass(EstimatedStep& row, const CostModel& model, const Pass& pass) {
  row.priced_ms = 1e3 * model.pass(Role::target, pass).total();
  state_error(row, model, pass);
}

void estimate_server_step(const CsvLine& line, const CostModel* model, EstimatedStep& row) {
  row.phase = "decode";
  row.batch = figure(line, "batch", 1.0);
  const double context = figure(line, "mean_context", 0.0);
  if (figure(line, "ep", 1.0) > 1.0) row.why = "experts on several GPUs in parallel are not estimated";
  if (row.why.empty()) estimate_pass(row, *model, {row.batch, 1.0, context, 1.0});
}

void estimate_layerwise_step(const CsvLine& line, const CostModel* model, EstimatedStep& row) {
  const std::string& phase = line.text("phase");
  if (phase != "gen" && phase != "ctx") line.refuse("phase", "gen, ctx");
  row.phase = phase == "gen" ? "decode" : "prompt";
  row.batch = figure(line, "batch", 1.0);
  const double tokens = figure(line, "new_tokens", 1.0);
  const double context = figure(line, "context", 0.0);
  if (row.why.empty()) estimate_pass(row, *model, {row.batch, tokens, context, 1.0, false});
}

void estimate_served_step(const CsvLine& line, const CostModel* model, EstimatedStep& row) {
  row.phase = "served";
  const bool unknown_load = line.text("concurrency").empty();
  if (!unknown_load) row.batch = figure(line, "concurrency", 1.0);
  // Several engines or servers share the clients equally.
  if (!unknown_load && !line.text("batch_size").empty() && figure(line, "batch_size", 0.0) >= 1.0)
    row.batch = std::min(row.batch, figure(line, "batch_size", 0.0));
  const double wait = line.text("silicon_ttft_ms").empty() ? 0.0 : 1e-3 * figure(line, "silicon_ttft_ms", 0.0);
  const Clients clients{row.batch, figure(line, "isl", 1.0), figure(line, "osl", 1.0), wait};
  if (figure(line, "tp_size", 1.0) > kMostGpus) row.why = "more than eight GPUs are not estimated";
  if (unknown_load) row.why = "no concurrency is given";
  if (!row.why.empty()) return;
  const Served served = served_seconds(*model, clients);
  const Pass step = decode_step(clients, served.share);
  if (const auto memory = model->memory_budget({step.batch, step.context}, 1, Kept::target); memory && !memory->fits()) {
    row.why = "more sequences at once than fit the GPU's memory";
    return;
  }
  row.priced_ms = 1e3 * served.seconds;
  state_error(row, *model, decode_step(clients, 1.0));
}

// A format of tables: the columns that identify it, its names of the columns that every format has, and the function that
// estimates a line.
struct StepFormat {
  std::vector<const char*> columns;
  const char* gpu;
  const char* engine;
  const char* model;
  const char* shards;
  const char* precision;  // nullptr: the model's own
  const char* time;
  // Reads the rest of the line into the row, with its estimated time. `model` is nullptr, and row.why gives the reason, if no
  // model can estimate it.
  void (*price)(const CsvLine& line, const CostModel* model, EstimatedStep& row);
};

const std::vector<StepFormat>& step_formats() {
  static const std::vector<StepFormat> formats = {
      {{"gpu", "engine", "model", "tp", "ep", "batch", "mean_context", "median_ms"},
       "gpu",
       "engine",
       "model",
       "tp",
       nullptr,
       "median_ms",
       estimate_server_step},
      {{"gpu", "engine", "model", "tp", "phase", "batch", "new_tokens", "context", "ms"},
       "gpu",
       "engine",
       "model",
       "tp",
       nullptr,
       "ms",
       estimate_layerwise_step},
      {{"backend", "model_path", "system", "precision", "isl", "osl", "tp_size", "concurrency", "silicon_tpot_ms"},
       "system",
       "backend",
       "model_path",
       "tp_size",
       "precision",
       "silicon_tpot_ms",
       estimate_served_step}};
  return formats;
}

// nullptr: no format has these columns.
const StepFormat* format_of(const std::vector<std::string>& header) {
  for (const StepFormat& one : step_formats())
    if (std::all_of(one.columns.begin(), one.columns.end(),
                    [&](const char* name) { return std::find(header.begin(), header.end(), name) != header.end(); }))
      return &one;
  return nullptr;
}

struct Band {
  double most;
  const char* name;
};

constexpr std::array<Band, 6> kBatchBands = {
    {{1, "1"}, {8, "2-8"}, {32, "9-32"}, {64, "33-64"}, {128, "65-128"}, {1e15, "over 128"}}};

}  // namespace

bool is_step_table(const std::vector<std::string>& header) { return format_of(header) != nullptr; }

std::vector<std::string> step_table_columns() {
  std::vector<std::string> list;
  for (const StepFormat& one : step_formats()) list.push_back(fmt::format("{}", fmt::join(one.columns, ",")));
  return list;
}

EstimatedSteps estimate_step_table(const std::string& file, const std::vector<std::vector<std::string>>& fields,
                                   const std::optional<PresetChoice>& engine, const std::map<std::string, Hardware>& own) {
  EstimatedSteps table;
  table.header = fields.at(0);
  const StepFormat* const found = format_of(table.header);
  SPECSIM_CHECK(found != nullptr, "{} is no table of steps", file);
  const StepFormat& format = *found;
  StepModels models(engine, own);
  const auto warn = [&](std::string text) {
    if (std::find(table.warnings.begin(), table.warnings.end(), text) == table.warnings.end())
      table.warnings.push_back(std::move(text));
  };
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const CsvLine line(file, table.header, fields[i], i + 1);
    table.lines.push_back(fields[i]);
    EstimatedStep& row = table.rows.emplace_back();
    row.gpu = line.text(format.gpu);
    row.engine = line.text(format.engine);
    row.model = line.text(format.model);
    row.ms = figure(line, format.time, 1e-6);
    std::string unshared;
    const Sharing sharing = sharing_of(line, format.shards, unshared);
    const std::optional<Precision> precision =
        format.precision == nullptr ? Precision() : precision_of(line.text(format.precision), line.text("gemm_quant_mode"));
    if (!precision) line.refuse(format.precision, "bf16, fp8, fp4, int4");
    const CostModel* model = models.find(row.gpu, row.engine, row.model, sharing, *precision, line.where(format.gpu), row.why);
    if (!unshared.empty()) row.why = unshared;
    if (engine)
      row.engine = engine->name;
    else if (const auto name = engine_called(row.engine))
      row.engine = *name;
    else if (model != nullptr)
      warn(fmt::format("engine {} is not known: its steps are estimated as {}'s; --engine names another",
                       config::quote_for_message(row.engine), kOtherEngine));
    format.price(line, model, row);
  }
  std::vector<double> ratios;
  for (const EstimatedStep& row : table.rows)
    if (row.priced_ms > 0.0) ratios.push_back(row.priced_ms / row.ms);
  if (!ratios.empty()) {
    const double middle = median_of(ratios);
    if (middle > kMostStepRatio || middle < 1.0 / kMostStepRatio)
      throw BadInput({file, 1, 0}, fmt::format("the median estimated time is {:.3g} times the column {}, allowed: times in "
                                               "milliseconds",
                                               middle, format.time));
  }
  return table;
}

std::vector<StepErrors> step_errors(const EstimatedSteps& table) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::map<std::size_t, std::vector<double>>> groups;
  std::vector<double> all;
  for (const EstimatedStep& row : table.rows) {
    if (row.priced_ms <= 0.0) continue;
    std::size_t band = 0;
    while (row.batch > kBatchBands[band].most) ++band;
    auto& own = groups[{row.gpu, row.engine, row.model, row.phase}];
    const double ratio = row.priced_ms / row.ms;
    own[0].push_back(ratio);
    own[band + 1].push_back(ratio);
    all.push_back(ratio);
  }
  std::vector<StepErrors> list;
  for (const auto& [key, bands] : groups)
    for (const auto& [band, ratios] : bands)
      list.push_back({estimate_errors(ratios), std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                      band == 0 ? "all" : kBatchBands[band - 1].name});
  if (!all.empty()) list.push_back({estimate_errors(all), "all", "all", "all", "all", "all"});
  return list;
}

std::vector<std::string> step_gaps(const EstimatedSteps& table) {
  std::map<std::string, std::size_t> counts;
  for (const EstimatedStep& row : table.rows)
    if (row.priced_ms <= 0.0) ++counts[row.why];
  std::vector<std::string> list;
  for (const auto& [why, count] : counts) list.push_back(fmt::format("{} rows are not estimated: {}", count, why));
  return list;
}

}  // namespace specsim::cost
