// specsim calibrate --device cuda: bandwidth, passes, rounds and whole decoding runs on a GPU, and what the simulator says of the
// runs from the passes. Every table is written as soon as it has grown, so that a run that is cut short leaves what it has
// measured.
#include "sim/cli/calibrate_gpu.h"

#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/validation.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/round_time.h"
#include "sim/cuda/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr double kGiB = 0x1.0p30;
constexpr double kKeptFree = 0.04;      // of a device's memory, for libraries and graphs
constexpr std::size_t kMostRows = 640;  // of a timed pass
constexpr std::size_t kMargin = 160;    // positions beyond the longest timed context

// Rows of a table that is written anew whenever it grows.
class Table {
 public:
  Table(std::string path, const std::string& header) : path_(std::move(path)), text_(header + "\n") {}
  void add(const std::string& line) { text_ += line + "\n"; }
  void write() const { write_whole_file(path_, text_); }

 private:
  std::string path_;
  std::string text_;
};

std::vector<std::size_t> whole_numbers(const std::string& option, const std::string& text, char separator, double least,
                                       double most) {
  std::vector<std::size_t> list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, separator);) {
    config::Value value;
    value.kind = config::Kind::scalar;
    value.text = part;
    const std::optional<double> x = config::as_number(value);
    if (!x || *x < least || *x > most || *x != std::floor(*x))
      throw BadInput({"--" + option, 0, 0},
                     fmt::format("{}, allowed: integers from {:.0f} to {:.0f}", config::quote_for_message(part), least, most));
    list.push_back(static_cast<std::size_t>(*x));
  }
  if (list.empty()) throw BadInput({"--" + option, 0, 0}, "it is empty, allowed: at least one number");
  return list;
}

// One of the two models: what it is, before and after it is on the device.
struct Loaded {
  std::string name;
  llm::ModelConfig config;
  std::shared_ptr<const llm::Weights> small;  // none for random weights
  bool enlarged = false;
  std::shared_ptr<const cuda::DeviceWeights> weights;
  std::unique_ptr<cuda::DeviceModel> model;
};

Loaded describe(const po::variables_map& values, const std::string& option, const std::string& enlarge, std::size_t context) {
  Loaded loaded;
  loaded.name = values[option].as<std::string>();
  const auto& text = values[enlarge].as<std::string>();
  if (std::filesystem::is_directory(loaded.name)) {
    loaded.small = std::make_shared<const llm::Weights>(llm::load_weights(loaded.name, llm::Precision::bf16));
    loaded.config = loaded.small->config;
    if (text.empty()) return loaded;
    const std::vector<std::size_t> size = whole_numbers(enlarge, text, 'x', 1, 1e6);
    const llm::ModelConfig& small = loaded.config;
    if (size.size() != 3 || size[0] < small.hidden || size[1] < small.ffn || size[2] < small.layers ||
        size[0] % (small.heads / small.kv_heads * small.head_dim) != 0)
      throw BadInput({"--" + enlarge, 0, 0},
                     fmt::format("{}, allowed: HIDDENxFFNxLAYERS, at least {}x{}x{}, hidden a multiple of {}",
                                 config::quote_for_message(text), small.hidden, small.ffn, small.layers,
                                 small.heads / small.kv_heads * small.head_dim));
    loaded.config = cuda::enlarged_shape(small, size[0], size[1], size[2]);
    loaded.enlarged = true;
    return loaded;
  }
  const cost::ModelShape shape = read_shape(loaded.name, ("--" + option).c_str());
  if (!text.empty()) throw BadInput({"--" + enlarge, 0, 0}, "given with a shape, allowed: with a model's directory");
  loaded.config = llm::config_of_shape(shape, context + kMargin);
  return loaded;
}

void place(cuda::Device& device, Loaded& loaded, const cuda::Limits& limits, std::uint64_t seed) {
  if (loaded.small == nullptr)
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::random_weights(device, loaded.config, seed));
  else if (loaded.enlarged)
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::enlarged_weights(device, *loaded.small, loaded.config, seed));
  else
    loaded.weights = std::make_shared<cuda::DeviceWeights>(cuda::real_weights(device, *loaded.small));
  loaded.model = std::make_unique<cuda::DeviceModel>(device, loaded.weights, limits);
  loaded.model->tune();
}

// What the devices must hold is added up before any of it is taken.
void check_memory(const cuda::Device& device, const std::vector<std::pair<std::string, std::size_t>>& parts) {
  double sum = 0.0;
  std::string list;
  for (const auto& [name, bytes] : parts) {
    sum += static_cast<double>(bytes);
    fmt::format_to(std::back_inserter(list), "{}{} {:.2f}", list.empty() ? "" : ", ", name, static_cast<double>(bytes) / kGiB);
  }
  const double free = static_cast<double>(device.free_memory()) - kKeptFree * static_cast<double>(device.info().memory);
  if (sum > free)
    throw BadInput({device.info().name, 0, 0}, fmt::format("{:.2f} GiB are needed ({}), allowed: the {:.2f} GiB that are free",
                                                           sum / kGiB, list, free / kGiB));
}

bool fits(const cuda::Device& device, std::size_t bytes) {
  return static_cast<double>(bytes) <
         static_cast<double>(device.free_memory()) - kKeptFree * static_cast<double>(device.info().memory);
}

std::string spread_text(const llm::Spread& s) {
  return fmt::format("{:.6g},{:.6g},{:.6g},{}", 1e3 * s.median, 1e3 * s.low, 1e3 * s.high, s.samples);
}

struct Run : ValidationRow {
  const char* weights = "";
  std::size_t sequences = 0;
  std::size_t rounds = 0;
  std::size_t emitted = 0;
  double bound = 0.0;  // seconds of passes alone
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(emitted) / measured; }
};

const std::vector<Column<Run>>& run_columns() {
  static const std::vector<Column<Run>> list = validation_columns_and<Run>({
      {"weights", "", "real, enlarged", [](const Run& r) { return std::string(r.weights); }},
      {"sequences", "1", "runs of a prompt", [](const Run& r) { return std::to_string(r.sequences); }},
      {"rounds", "1", "timed, of the whole batch", [](const Run& r) { return std::to_string(r.rounds); }},
      {"emitted", "tokens", "of all sequences in timed rounds", [](const Run& r) { return std::to_string(r.emitted); }},
      {"tokens_per_second", "tokens/s", "emitted / measured_s", [](const Run& r) { return csv_number(r.tokens_per_second()); }},
      {"share_of_bound", "1", "time of the passes alone, by the cost table / measured_s",
       [](const Run& r) { return csv_number(r.bound / r.measured, 4); }},
  });
  return list;
}

class Calibration {
 public:
  explicit Calibration(const po::variables_map& values)
      : values_(values),
        options_(read_model_options(values)),
        device_(std::make_unique<cuda::LaunchCounter>(
            cuda::open_gpu(static_cast<int>(whole_numbers("gpu", values["gpu"].as<std::string>(), ',', 0, 1024).front()),
                           values.count("no-overlap") == 0))) {}

  int run() {
    const double begin = wall_clock();
    if (values_.count("only-device") > 0) {
      make_directories(options_.out);
      describe_device();
      return 0;
    }
    std::vector<std::size_t> contexts = whole_numbers("contexts", values_["contexts"].as<std::string>(), ',', 1, 1e6);
    std::sort(contexts.begin(), contexts.end());
    target_ = describe(values_, "target", "enlarge", contexts.back());
    draft_ = describe(values_, "draft", "enlarge-draft", contexts.back());
    const std::unique_ptr<llm::Tokenizer> tokenizer =
        shared_tokenizer(target_.name, target_.config.vocab, draft_.name, draft_.config.vocab);
    if ((target_.small == nullptr) != (draft_.small == nullptr))
      throw BadInput({draft_.name, 0, 0}, "a shape beside a model, allowed: two shapes or two models");
    if (target_.small != nullptr) {
      if (!values_["contexts"].defaulted())
        throw BadInput({"--contexts", 0, 0}, "given with models' directories, allowed: with shapes");
      // Positions beyond the trained context have no angle: runs end early enough for the longest timed pass.
      const std::size_t context = std::min(target_.config.context, draft_.config.context);
      const auto longest = static_cast<std::size_t>(options_.draft_lengths.back());
      if (context < 4 * longest + 16)
        throw BadInput({target_.name, 0, 0}, fmt::format("a context of {} tokens, allowed for draft length {}: at least {}",
                                                         context, longest, 4 * longest + 16));
      capacity_ = context - longest - 2;
      contexts = {1, capacity_ / 3, capacity_ - 1};
    } else {
      capacity_ = contexts.back();
    }
    const bool for_peers = values_.count("peers") > 0;
    if (for_peers && (target_.small == nullptr || target_.enlarged || draft_.enlarged))
      throw BadInput({"--peers", 0, 0}, "given with random or enlarged weights, allowed: with models' directories as they are");
    if (target_.small != nullptr) {
      const auto prompts = [&](const char* option) {
        return load_prompts(values_, option, options_, tokenizer.get(), target_.config,
                            target_.config.context - capacity_ + static_cast<std::size_t>(options_.draft_lengths.back()) + 1);
      };
      held_out_ = prompts("held-out");
      for (std::size_t i = 0; i < held_out_.size(); ++i)
        if (held_out_[i].tokens.size() < 2)
          throw BadInput({values_["held-out"].as<std::string>(), 0, 0},
                         fmt::format("prompt {} is one token, allowed on a GPU: at least two", i + 1));
      if (!for_peers) {
        fitted_ = prompts("prompts");
        check_held_out(values_, fitted_, held_out_);
      }
    }
    make_directories(options_.out);
    remove_calibration(options_.out);
    describe_device();
    if (!for_peers) measure_bandwidth();
    prepare(contexts);
    if (for_peers) {
      write_for_peers();
    } else {
      time_passes(contexts);
      time_terms();
      time_streams(contexts.front());
      if (target_.small != nullptr)
        decode();
      else
        time_rounds(contexts);
    }
    write_model_manifest(options_.out, description(), 1, timed_, wall_clock() - begin);
    return 0;
  }

 private:
  [[nodiscard]] std::string description() const {
    const auto shape = [](const Loaded& m) {
      return fmt::format(
          "{{name: {}, weights: {}, layers: {}, hidden: {}, ffn: {}, heads: {}, kv_heads: {}, vocab: {}, weight_bytes: {}}}",
          config::quote_for_message(m.name), to_text(m.weights->origin), m.config.layers, m.config.hidden, m.config.ffn,
          m.config.heads, m.config.kv_heads, m.config.vocab, m.weights->pass_bytes());
    };
    return fmt::format("{{device: {}, target: {}, draft: {}}}", config::quote_for_message(device_->info().name), shape(target_),
                       shape(draft_));
  }

  // Draft lengths of rounds: plain decoding and what was asked for.
  [[nodiscard]] std::vector<int> lengths() const {
    std::vector<int> all = {0};
    all.insert(all.end(), options_.draft_lengths.begin(), options_.draft_lengths.end());
    return all;
  }

  void describe_device() {
    const cuda::DeviceInfo& info = device_->info();
    write_whole_file(
        options_.out + "/device.yaml",
        fmt::format("name: {}\ndriver: {}\ncompute_capability: {}.{}\nmultiprocessors: {}\nmemory_bytes: {}\nl2_bytes: "
                    "{}\nlibrary: {}\noverlapped_launches: {}\n",
                    config::quote_for_message(info.name), config::quote_for_message(info.driver), info.compute_capability / 10,
                    info.compute_capability % 10, info.multiprocessors, info.memory, info.l2,
                    config::quote_for_message(info.library), info.overlap));
    fmt::print("{}, {}, {:.1f} GiB, products of many rows: {}\n", info.name, info.driver, static_cast<double>(info.memory) / kGiB,
               info.library.empty() ? "own kernels (no cuBLASLt was found)" : info.library);
    flush_output();
  }

  void measure_bandwidth() {
    const std::size_t bytes = std::min(std::size_t{4} << 30, device_->free_memory() / 4);
    const cuda::Bandwidth bandwidth = cuda::measure_bandwidth(*device_, bytes, options_.quick ? 5 : 15);
    read_rate_ = bandwidth.read_rate();
    Table table(options_.out + "/bandwidth.csv", "what,bytes,ms,ms_quartile_1,ms_quartile_3,samples,gb_per_s");
    table.add(fmt::format("read,{},{},{:.6g}", bandwidth.bytes, spread_text(bandwidth.read), 1e-9 * bandwidth.read_rate()));
    table.add(fmt::format("copy,{},{},{:.6g}", 2 * bandwidth.bytes, spread_text(bandwidth.copy), 1e-9 * bandwidth.copy_rate()));
    table.write();
    fmt::print("reads {:.1f} GB/s, copies {:.1f} GB/s (read and written)\n", 1e-9 * bandwidth.read_rate(),
               1e-9 * bandwidth.copy_rate());
    flush_output();
  }

  void prepare(const std::vector<std::size_t>& contexts) {
    const std::size_t longest = contexts.back() + kMargin;
    const std::size_t rows =
        target_.small != nullptr || options_.quick
            ? std::max<std::size_t>(kMostRows / 4,
                                    options_.batches.back() * (static_cast<std::size_t>(options_.draft_lengths.back()) + 1))
            : kMostRows;
    limits_ = {.rows = rows, .logit_rows = rows, .context = longest};
    check_memory(*device_, {{"target's weights", cuda::weight_bytes(target_.config)},
                            {"target's work", cuda::work_bytes(target_.config, limits_)},
                            {"draft's weights", cuda::weight_bytes(draft_.config)},
                            {"draft's work", cuda::work_bytes(draft_.config, limits_)},
                            {"one sequence's cache", cuda::cache_bytes(target_.config, 1, longest)}});
    const double begin = wall_clock();
    place(*device_, target_, limits_, options_.seed);
    place(*device_, draft_, limits_, options_.seed + 1);
    device_->finish();
    fmt::print("target {} ({} weights, {:.2f} GB a pass), draft {} ({}, {:.2f} GB), there after {:.1f} s\n", target_.name,
               to_text(target_.weights->origin), 1e-9 * static_cast<double>(target_.weights->pass_bytes()), draft_.name,
               to_text(draft_.weights->origin), 1e-9 * static_cast<double>(draft_.weights->pass_bytes()), wall_clock() - begin);
    flush_output();
  }

  void time_passes(const std::vector<std::size_t>& contexts) {
    Table passes(options_.out + "/passes.csv",
                 "model,weights,tokens,batch,context,ms,ms_quartile_1,ms_quartile_3,samples,bytes,gb_per_s,share_of_read_"
                 "bandwidth,logits_hash");
    Table costs(options_.out + "/cost_table.csv", "model,tokens,batch,context,ms");
    std::vector<std::size_t> table_tokens = {1};
    for (const int k : options_.draft_lengths) table_tokens.push_back(static_cast<std::size_t>(k) + 1);
    std::vector<std::size_t> target_tokens = table_tokens;
    if (target_.small == nullptr)
      for (const std::size_t more : {8U, 16U, 32U, 64U, 128U})
        if (more == 8 || !options_.quick) target_tokens.push_back(more);
    std::sort(target_tokens.begin(), target_tokens.end());
    target_tokens.erase(std::unique(target_tokens.begin(), target_tokens.end()), target_tokens.end());
    fmt::print("{:<7}{:>7}{:>6}{:>9}{:>11}{:>10}{:>8}\n", "model", "tokens", "batch", "context", "ms", "GB/s", "share");
    // Only contexts that every batch fits make a table without holes.
    const auto holds = [&](const Loaded& m, std::size_t batch, std::size_t context) {
      const std::size_t logits = kMostRows * m.config.vocab * sizeof(float);
      return fits(*device_, cuda::cache_bytes(m.config, batch, context + kMargin) + logits);
    };
    for (const std::size_t batch : options_.batches)
      for (const std::size_t context : contexts) {
        // Asked while no cache is there: beside one, the largest would seem not to fit.
        const bool every_batch = holds(target_, options_.batches.back(), context);
        for (Loaded* const m : {&target_, &draft_}) {
          if (!holds(*m, batch, context)) {
            fmt::print("{:<7}{:>7}{:>6}{:>9}  left out: its cache does not fit\n", m == &target_ ? "target" : "draft", "all",
                       batch, context);
            continue;
          }
          cuda::PassTimer timer(*m->model, batch, std::min(context + kMargin, limits_.context));
          for (const std::size_t tokens : m == &target_ ? target_tokens : std::vector<std::size_t>{1, 2}) {
            if (batch * tokens > limits_.rows || context + tokens > limits_.context || context + tokens > m->config.context)
              continue;
            const int repetitions = options_.quick ? 3 : options_.repetitions;
            const auto result = timer.time(tokens, m == &target_ ? tokens : 1, context, repetitions, 3);
            const char* const name = m == &target_ ? "target" : "draft";
            const double rate = static_cast<double>(result.bytes) / result.seconds.median;
            passes.add(fmt::format("{},{},{},{},{},{},{},{:.6g},{:.4f},{:016x}", name, to_text(m->weights->origin), tokens, batch,
                                   context, spread_text(result.seconds), result.bytes, 1e-9 * rate, rate / read_rate_,
                                   result.logits_hash));
            fmt::print("{:<7}{:>7}{:>6}{:>9}{:>11.4f}{:>10.1f}{:>8.3f}\n", name, tokens, batch, context,
                       1e3 * result.seconds.median, 1e-9 * rate, rate / read_rate_);
            ++timed_;
            const bool in_table = m == &draft_ || std::count(table_tokens.begin(), table_tokens.end(), tokens) > 0;
            if (in_table && every_batch)
              costs.add(fmt::format("{},{},{},{},{:.6g}", name, tokens, batch, context, 1e3 * result.seconds.median));
          }
          passes.write();
          costs.write();
          flush_output();
        }
      }
  }

  void time_terms() {
    Table table(options_.out + "/terms.csv",
                "what,batch,draft_length,ms,ms_quartile_1,ms_quartile_3,samples,launches,share_of_round");
    const int repetitions = options_.quick ? 3 : options_.repetitions;
    const auto add = [&](const std::string& what, std::size_t batch, int k, const llm::Spread& spread) {
      table.add(fmt::format("{},{},{},{},,", what, batch, k, spread_text(spread)));
    };
    for (const std::size_t batch : options_.batches)
      for (const int k : lengths()) {
        const cuda::Terms terms = cuda::measure_terms(*device_, target_.config.vocab, batch, k, {}, repetitions);
        if (k > 0) {
          add("draw", batch, k, terms.draw);
          add("accept_greedy", batch, k, terms.accept_greedy);
          add("accept_block", batch, k, terms.accept_block);
        }
        add("accept", batch, k, terms.accept);
        terms_[{batch, k}] = k * terms.draw.median + terms.accept.median;
        table.write();
      }
    // With filters: a draw of a law that is cut.
    const int longest = options_.draft_lengths.back();
    const cuda::Terms cut =
        cuda::measure_terms(*device_, target_.config.vocab, 1, longest, {.top_k = 50, .top_p = 0.95}, repetitions);
    add("draw_top_k_top_p", 1, longest, cut.draw);
    add("accept_top_k_top_p", 1, longest, cut.accept);
    const llm::Spread empty = cuda::time_empty_launch(*device_, repetitions);
    add("empty_launch", 1, 0, empty);
    // The host: a round as the host sees it less what the device takes, and the same launches without a graph. Next to nothing is
    // cached, so that rounds are the shortest, and what is not passes is the largest share of them.
    for (const std::size_t batch : options_.batches) {
      for (const int k : {0, longest}) {
        std::size_t launches = 0;
        for (const bool graphs : {false, true}) {
          cuda::Rounds rounds(*target_.model, k > 0 ? draft_.model.get() : nullptr,
                              {.draft_length = k, .batch = batch, .capacity = kMargin, .graphs = graphs},
                              rng::make_key(options_.seed, 1));
          std::vector<double> outside;
          std::vector<double> inside;
          for (int i = 0; i < options_.repetitions + 2; ++i) {
            rounds.pretend(2);
            const std::size_t launched = device_->launches();
            const double wall_begin = llm::now(llm::Clock::wall);
            const double on_device = device_->seconds([&] { rounds.enqueue(); });
            rounds.fetch();
            const double wall = llm::now(llm::Clock::wall) - wall_begin;
            if (!graphs) launches = device_->launches() - launched;
            if (i < 2) continue;
            inside.push_back(on_device);
            outside.push_back(wall - on_device);
          }
          const llm::Spread host = llm::spread(outside);
          const llm::Spread round = llm::spread(inside);
          add(graphs ? "host" : "host_without_graph", batch, k, host);
          table.add(
              fmt::format("{},{},{},{},{},", graphs ? "round" : "round_without_graph", batch, k, spread_text(round), launches));
          if (!graphs) continue;
          if (k == 0) host_[batch] = host.median;
          const double all = round.median + host.median;
          const double launching = static_cast<double>(launches) * empty.median + host.median;
          const double sampling = terms_.at({batch, k});
          table.add(
              fmt::format("host_and_launches,{},{},{:.6g},,,,{},{:.4f}", batch, k, 1e3 * launching, launches, launching / all));
          table.add(fmt::format("draws_and_acceptance,{},{},{:.6g},,,,,{:.4f}", batch, k, 1e3 * sampling, sampling / all));
          fmt::print(
              "batch {}, draft length {}: the host, {} launches and the gaps between them are {:.2f} % of a round (goal: "
              "at most 3 %), draws and acceptance {:.2f} % (goal: at most 2 %)\n",
              batch, k, launches, 100.0 * launching / all, 100.0 * sampling / all);
        }
        table.write();
      }
    }
    flush_output();
  }

  // Target and draft at once, on two streams: how much of the shorter one is hidden.
  void time_streams(std::size_t context) {
    const std::unique_ptr<cuda::Device> other = device_->another_stream();
    if (!fits(*other, cuda::work_bytes(draft_.config, limits_) + cuda::cache_bytes(target_.config, 1, context + kMargin))) return;
    cuda::DeviceModel draft(*other, draft_.weights, limits_);
    cuda::PassTimer target_timer(*target_.model, 1, context + kMargin);
    cuda::PassTimer draft_timer(draft, 1, context + kMargin);
    const auto verify = target_timer.record(static_cast<std::size_t>(options_.draft_lengths.back()) + 1, 1, context);
    const auto guess = draft_timer.record(1, 1, context);
    const auto wall = [&](int verifies, int guesses) {
      std::vector<double> seconds;
      for (int i = 0; i < options_.repetitions + 1; ++i) {
        const double begin = llm::now(llm::Clock::wall);
        for (int k = 0; k < std::max(verifies, guesses); ++k) {
          if (k < verifies) device_->replay(*verify);
          if (k < guesses) other->replay(*guess);
        }
        device_->finish();
        other->finish();
        if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
      }
      return llm::spread(seconds);
    };
    constexpr int kVerifies = 4;
    const llm::Spread alone = wall(kVerifies, 0);
    const llm::Spread guess_alone = wall(0, kVerifies);
    const int guesses = std::max(1, static_cast<int>(alone.median / guess_alone.median * kVerifies));
    const llm::Spread guesses_alone = wall(0, guesses);
    const llm::Spread both = wall(kVerifies, guesses);
    Table table(options_.out + "/streams.csv", "what,target_passes,draft_passes,ms,ms_quartile_1,ms_quartile_3,samples");
    table.add(fmt::format("target,{},0,{}", kVerifies, spread_text(alone)));
    table.add(fmt::format("draft,0,{},{}", guesses, spread_text(guesses_alone)));
    table.add(fmt::format("both at once,{},{},{}", kVerifies, guesses, spread_text(both)));
    table.write();
    fmt::print("two streams: target {:.3f} ms, draft {:.3f} ms, both {:.3f} ms\n", 1e3 * alone.median, 1e3 * guesses_alone.median,
               1e3 * both.median);
    flush_output();
  }

  // nullptr, and a word on why, where what was measured makes no table: what comes after is measured all the same.
  [[nodiscard]] std::unique_ptr<cost::CostModel> own_table_cost() const try {
    return table_cost(options_.out + "/cost_table.csv");
  } catch (const BadInput& bad) {
    fmt::print(stderr, "no predictions: {}\n", bad.what());
    return nullptr;
  }

  // Seconds of a round from what was timed apart. Its first draft pass always reads two tokens: a graph has one shape.
  // NaN without a table, and at a context that it leaves out.
  [[nodiscard]] double predicted(const cost::CostModel* cost, std::size_t batch, int draft_length, double context) const {
    return predicted_passes(cost, batch, draft_length, context) + terms_.at({batch, draft_length}) + host_.at(batch);
  }
  [[nodiscard]] static double predicted_passes(const cost::CostModel* cost, std::size_t batch, int draft_length, double context) {
    if (cost == nullptr) return NAN;
    try {
      return cost::round_time(*cost, {static_cast<double>(batch), context}, draft_length, 1.0).total();
    } catch (const BadInput&) {
      return NAN;
    }
  }

  // Rounds of random weights: whatever they accept, they take as long.
  void time_rounds(const std::vector<std::size_t>& contexts) {
    const auto cost = own_table_cost();
    Table table(options_.out + "/rounds.csv",
                "batch,draft_length,context,ms,ms_quartile_1,ms_quartile_3,samples,predicted_ms,error");
    std::vector<double> errors;
    for (const std::size_t batch : options_.batches)
      for (std::size_t c = 0; c < contexts.size(); ++c) {
        // Between the knots of the table; behind the last one there is none, just before it a round still fits.
        const auto longest = static_cast<std::size_t>(options_.draft_lengths.back());
        if (c + 1 == contexts.size() && contexts[c] < longest + 2) continue;
        const std::size_t context = c + 1 < contexts.size() ? (contexts[c] + contexts[c + 1]) / 2 : contexts[c] - longest - 1;
        for (const int k : lengths()) {
          const cuda::RoundSettings settings{.draft_length = k, .batch = batch, .capacity = context + kMargin};
          if (!fits(*device_, cuda::round_bytes(target_.config, &draft_.config, settings))) continue;
          const double guess = predicted(cost.get(), batch, k, static_cast<double>(context));
          cuda::Rounds rounds(*target_.model, draft_.model.get(), settings, rng::make_key(options_.seed, 2));
          std::vector<double> seconds;
          for (int i = 0; i < options_.repetitions + 2; ++i) {
            rounds.pretend(context + 1);
            const double begin = llm::now(llm::Clock::wall);
            rounds.round();
            if (i > 1) seconds.push_back(llm::now(llm::Clock::wall) - begin);
          }
          const llm::Spread s = llm::spread(seconds);
          if (std::isfinite(guess)) errors.push_back(std::abs(guess / s.median - 1.0));
          table.add(
              fmt::format("{},{},{},{},{:.6g},{:+.5f}", batch, k, context, spread_text(s), 1e3 * guess, guess / s.median - 1.0));
        }
        table.write();
      }
    if (!errors.empty()) fmt::print("rounds against their parts, {} points: {}\n", errors.size(), errors_text(errors));
  }

  // What other prompts' laws say, from the small models on the CPU.
  Forecast forecast_of(const llm::Method& method, double temperature) const {
    const auto team = std::make_shared<llm::ThreadTeam>(static_cast<unsigned>(read_count(values_, "threads", 1024)));
    const auto target = llm::make_cpu_model(target_.small, target_.small->config.layers, team);
    const auto draft = llm::make_cpu_model(draft_.small, draft_.small->config.layers, team);
    return forecast(*target, draft.get(), method, options_, fitted_, temperature);
  }

  // Held-out prompts decoded at one temperature, batch and draft length, every round timed; no rounds where none fits.
  Run run_held_out(const cost::CostModel* cost, const llm::Method& method, double temperature, std::size_t batch, int k) {
    Run run;
    run.temperature = temperature;
    run.batch = batch;
    run.draft_length = k;
    run.weights = to_text(target_.weights->origin);
    const cuda::RoundSettings settings{
        .draft_length = k, .batch = batch, .capacity = capacity_, .sampling = method.sampling(temperature)};
    cuda::Rounds rounds(*target_.model, k > 0 ? draft_.model.get() : nullptr, settings,
                        rng::make_key(options_.seed, rng::hash_text("runs on a GPU")));
    llm::Acceptance counts;
    // Groups of as many prompts as the batch; few of them where rounds take long, so that all of the grid is measured.
    const std::size_t groups =
        std::min(held_out_.size() / batch, k == 0 ? std::size_t{2} : std::max<std::size_t>(2, groups_wanted() / batch));
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<std::vector<Token>> texts;
      std::vector<std::uint64_t> ids;
      std::size_t given = 0;
      for (std::size_t i = g * batch; i < (g + 1) * batch; ++i) {
        texts.push_back(held_out_[i].tokens);
        ids.push_back(i);
        given += held_out_[i].tokens.size();
      }
      rounds.start(texts, ids);
      rounds.round();  // the first prepares its graph
      const auto size = [&] {
        std::size_t all = 0;
        for (const std::size_t length : rounds.lengths()) all += length;
        return all;
      };
      const std::vector<std::size_t> start = rounds.lengths();
      std::size_t before = size();
      std::size_t own_rounds = 0;
      while (before < given + batch * options_.tokens && rounds.fits()) {
        const double context = static_cast<double>(before) / static_cast<double>(batch) - 1.0;
        const double begin = llm::now(llm::Clock::wall);
        rounds.round();
        run.measured += llm::now(llm::Clock::wall) - begin;
        run.predicted += predicted(cost, batch, k, context);
        run.bound += predicted_passes(cost, batch, k, context);
        before = size();
        ++own_rounds;
      }
      rounds.check_laws();
      if (own_rounds == 0) continue;
      run.rounds += own_rounds;
      for (std::size_t i = 0; i < batch; ++i) {
        llm::RequestAcceptance& sequence = counts.requests.emplace_back();
        sequence.rounds = own_rounds;
        sequence.emitted = rounds.lengths()[i] - start[i];
        run.emitted += sequence.emitted;
      }
    }
    run.sequences = counts.requests.size();
    if (run.rounds > 0) run.tokens_per_round = tokens_per_round(counts);
    return run;
  }

  void decode() {
    const auto cost = own_table_cost();
    const Rule rule("token", nullptr);
    const llm::Method method{llm::Method::Draft::sampled, rule.get(), nullptr, options_.cuts};
    Table table(options_.out + "/validation.csv", csv_header(run_columns()));
    fmt::print("{:>5}{:>6}{:>6}{:>9}{:>11}{:>9}{:>11}{:>11}{:>7}{:>10}{:>9}{:>9}\n", "temp", "batch", "draft", "rounds",
               "measured s", "error", "tok/round", "predicted", "t", "tokens/s", "speedup", "bound");
    ValidationSummary summary;
    std::string text;
    // From the highest, which says the most: a run that is cut short has it.
    for (auto at = options_.temperatures.rbegin(); at != options_.temperatures.rend(); ++at) {
      const Forecast expected = forecast_of(method, *at);
      for (const std::size_t batch : options_.batches) {
        double plain = 0.0;  // seconds a token of each sequence
        double plain_predicted = 0.0;
        for (const int k : lengths()) {
          Run run = run_held_out(cost.get(), method, *at, batch, k);
          if (run.rounds == 0) continue;
          run.set_forecast(expected);
          const auto rounds = static_cast<double>(run.rounds);
          const double per_token = run.measured / rounds / run.tokens_per_round.value;
          const double predicted_per_token = run.predicted / rounds / run.predicted_tokens_per_round.value;
          if (k == 0) {
            plain = per_token;
            plain_predicted = predicted_per_token;
          }
          run.speedup = plain / per_token;
          run.predicted_speedup = plain_predicted / predicted_per_token;
          summary.add(run, true);
          table.add(csv_line(run_columns(), run));
          table.write();
          fmt::print("{:>5g}{:>6}{:>6}{:>9}{:>11.4f}{:>+8.2f}%{:>11.4f}{:>11.4f}{:>7}{:>10.1f}{:>9.4f}{:>9.4f}\n", *at, batch, k,
                     run.rounds, run.measured, 100.0 * run.timing_error(), run.tokens_per_round.value,
                     run.predicted_tokens_per_round.value, error_text(run.acceptance().t, 2), run.tokens_per_second(),
                     run.speedup, run.bound / run.measured);
          flush_output();
        }
      }
      // After every temperature: a run that is cut short has said something too.
      text = fmt::format("weights: {} (target), {} (draft)\ntemperatures: {:g} to {:g}\n{}", to_text(target_.weights->origin),
                         to_text(draft_.weights->origin), *at, options_.temperatures.back(), summary.text());
      write_whole_file(options_.out + "/summary.txt", text);
    }
    fmt::print("{}", text);
  }

  // What other programs are held against on the same weights (scripts/gpu_peers.py): the target's logits all along a prompt, as
  // little-endian floats in rows, and how long decoding it takes at temperature 0, its prompt included.
  void write_for_peers() {
    const std::vector<Token> prompt = held_out_.front().tokens;
    std::string tokens;
    for (const Token token : prompt) fmt::format_to(std::back_inserter(tokens), "{}{}", tokens.empty() ? "" : " ", token);
    write_whole_file(options_.out + "/prompt.txt", tokens + "\n");
    // As in verification: eight rows at a time.
    const auto cache = target_.model->make_cache(1, capacity_);
    std::string bytes;
    for (std::size_t at = 0; at < prompt.size(); at += 8) {
      const std::size_t size = std::min<std::size_t>(8, prompt.size() - at);
      std::vector<float> logits(size * target_.config.vocab);
      const llm::Extension extension{.sequence = 0, .tokens = std::span(prompt).subspan(at, size), .logit_rows = size};
      target_.model->forward({&extension, 1}, *cache, logits);
      bytes.append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
    }
    write_whole_file(options_.out + "/logits.f32", bytes);

    Table table(options_.out + "/generation.csv",
                "draft_length,tokens,rounds,ms,ms_quartile_1,ms_quartile_3,samples,ms_per_token");
    for (const int k : lengths()) {
      cuda::Rounds rounds(*target_.model, k > 0 ? draft_.model.get() : nullptr,
                          {.draft_length = k, .batch = 1, .capacity = capacity_, .sampling = {.temperature = 0.0}},
                          rng::make_key(options_.seed, 3));
      const std::vector<std::uint64_t> ids = {0};
      std::vector<double> seconds;
      std::size_t emitted = 0;
      std::size_t count = 0;
      for (int i = 0; i <= options_.repetitions; ++i) {
        const double begin = llm::now(llm::Clock::wall);
        rounds.start({prompt}, ids);
        for (count = 0; rounds.lengths()[0] < prompt.size() + options_.tokens && rounds.fits(); ++count) rounds.round();
        emitted = rounds.lengths()[0] - prompt.size();
        if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
      }
      const llm::Spread s = llm::spread(seconds);
      table.add(
          fmt::format("{},{},{},{},{:.6g}", k, emitted, count, spread_text(s), 1e3 * s.median / static_cast<double>(emitted)));
      ++timed_;
      table.write();
    }
    fmt::print("{} rows of logits, decoding at draft lengths 0 to {}\n", prompt.size(), options_.draft_lengths.back());
  }

  [[nodiscard]] std::size_t groups_wanted() const { return options_.quick ? 2 : 16; }

  const po::variables_map& values_;
  ModelOptions options_;
  std::unique_ptr<cuda::LaunchCounter> device_;
  Loaded target_;
  Loaded draft_;
  cuda::Limits limits_;
  std::size_t capacity_ = 0;  // of a sequence in a round
  double read_rate_ = 1.0;
  std::vector<llm::Prompt> fitted_;
  std::vector<llm::Prompt> held_out_;
  std::size_t timed_ = 0;                                // lines of passes.csv or generation.csv
  std::map<std::pair<std::size_t, int>, double> terms_;  // seconds by batch and draft length
  std::map<std::size_t, double> host_;                   // seconds by batch
};

}  // namespace

void add_gpu_options(po::options_description& options) {
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("gpu", text("0"), "with --device cuda: its number")(
      "contexts", text("128,2048,8192,16384"), "with --device cuda: cached tokens of timed passes, of shapes")(
      "enlarge", text(""), "with --device cuda: HIDDENxFFNxLAYERS around the target that compute the same function")(
      "enlarge-draft", text(""), "the same of the draft")(
      "held-out", po::value<std::string>(),
      "with --device cuda: the prompts that are decoded; --prompts: those that acceptance is "
      "fitted on")("only-device", "with --device cuda: say what it is, and end")(
      "no-overlap", "with --device cuda: kernels start when those before them have ended")(
      "peers", "with --device cuda: logits and decoding of the first of --held-out, for scripts/gpu_peers.py, and nothing else");
}

int calibrate_on_gpu(const po::variables_map& values) {
  for (const auto& [option, allowed] : {std::pair{"drafter", "model"}, {"verifier", "token"}})
    if (values.count(option) > 0 && values[option].as<std::string>() != allowed)
      throw BadInput({fmt::format("--{}", option), 0, 0},
                     fmt::format("{}, allowed with --device cuda: {}",
                                 config::quote_for_message(values[option].as<std::string>()), allowed));
  return Calibration(values).run();
}

}  // namespace specsim::cli
