#include "sim/lab/calibrate/gpu_passes.h"

#include "sim/foundation/rng/address.h"
#include "sim/lab/calibrate/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::calibrate {

namespace {

using report::csv_real;

// A row of bandwidth.csv.
struct BandwidthRow {
  std::string what;
  std::size_t bytes = 0;  // moved, read and written
  llm::Quartiles seconds;
  double rate = 0.0;
};

const std::vector<report::Column<BandwidthRow>>& bandwidth_columns() {
  using Row = BandwidthRow;
  static const std::vector<report::Column<Row>> list = joined<Row>(
      {{"what", "", "read, copy", report::field(&Row::what)}, {"bytes", "bytes", "read and written", report::field(&Row::bytes)}},
      time_columns(&Row::seconds),
      {{"gb_per_s", "GB/s", "bytes / median", [](const Row& r) { return csv_real(1e-9 * r.rate, 6); }}});
  return list;
}

const std::vector<report::Column<GpuPass>>& gpu_pass_columns() {
  using Row = GpuPass;
  static const std::vector<report::Column<Row>> list =
      joined<Row>({{"model", "", "target, draft", report::field(&Row::model)},
                   {"weights", "", "real, random, enlarged", report::field(&Row::weights)},
                   {"tokens", "tokens", "tokens of each sequence in the pass", report::field(&Row::tokens)},
                   {"batch", "sequences", "sequences in the pass", report::field(&Row::batch)},
                   {"context", "tokens", "tokens that each sequence has cached", report::field(&Row::context)}},
                  time_columns(&Row::seconds),
                  {{"bytes", "bytes", "weights, keys and values that the pass reads", report::field(&Row::bytes)},
                   {"gb_per_s", "GB/s", "bytes / median", [](const Row& r) { return csv_real(1e-9 * r.rate(), 6); }},
                   {"share_of_read_bandwidth", "1", "gb_per_s / that of a kernel that only reads",
                    [](const Row& r) { return fmt::format("{:.4f}", r.read_share); }},
                   {"logits_hash", "", "hash of the last row of logits",
                    [](const Row& r) { return fmt::format("{:016x}", r.logits_hash); }}});
  return list;
}

// A row of terms.csv.
struct TermRow {
  std::string what;
  std::size_t batch = 1;
  int draft_length = 0;
  llm::Quartiles seconds;    // only the median, a sum of medians: no quartiles, no samples
  std::size_t launches = 0;  // 0: not counted
  double share = std::numeric_limits<double>::quiet_NaN();
};

llm::Quartiles sum_of_medians(double seconds) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {seconds, kNone, kNone, 0, 0};
}

const std::vector<report::Column<TermRow>>& term_columns() {
  using Row = TermRow;
  static const std::vector<report::Column<Row>> list = [] {
    std::vector<report::Column<Row>> columns = joined<Row>(
        {{"what", "", "a part of a round", report::field(&Row::what)},
         {"batch", "sequences", "in the round", report::field(&Row::batch)},
         {"draft_length", "tokens", "tokens drafted in the round", report::field(&Row::draft_length)}},
        time_columns(&Row::seconds),
        {{"launches", "1", "kernels launched", [](const Row& r) { return r.launches > 0 ? std::to_string(r.launches) : ""; }},
         {"share_of_round", "1", "share of the time of a round with graphs, the host's time included",
          [](const Row& r) { return std::isnan(r.share) ? "" : fmt::format("{:.4f}", r.share); }}});
    for (report::Column<Row>& column : columns)
      if (column.name == "samples")
        column.text = [](const Row& r) { return r.seconds.samples > 0 ? std::to_string(r.seconds.samples) : ""; };
    return columns;
  }();
  return list;
}

// A row of streams.csv.
struct StreamRow {
  std::string what;
  int target_passes = 0;
  int draft_passes = 0;
  llm::Quartiles seconds;
};

const std::vector<report::Column<StreamRow>>& stream_columns() {
  using Row = StreamRow;
  static const std::vector<report::Column<Row>> list =
      joined<Row>({{"what", "", "target, draft, both at once", report::field(&Row::what)},
                   {"target_passes", "1", "number of target passes, one after the other", report::field(&Row::target_passes)},
                   {"draft_passes", "1", "number of draft passes, one after the other", report::field(&Row::draft_passes)}},
                  time_columns(&Row::seconds));
  return list;
}

}  // namespace

void GpuPasses::measure_bandwidth() {
  const std::size_t bytes = std::min(std::size_t{4} << 30, setup_.device->free_memory() / 4);
  const cuda::Bandwidth bandwidth = cuda::measure_bandwidth(*setup_.device, bytes, setup_.settings.quick ? 5 : 15);
  read_rate_ = bandwidth.read_rate();
  GrowingTable<BandwidthRow> table(observer_, "bandwidth.csv", bandwidth_columns());
  table.add({"read", bandwidth.bytes, bandwidth.read, bandwidth.read_rate()});
  table.add({"copy", 2 * bandwidth.bytes, bandwidth.copy, bandwidth.copy_rate()});
  table.write();
  observer_.bandwidth(bandwidth);
}

std::vector<std::size_t> GpuPasses::table_tokens() const {
  std::vector<std::size_t> tokens = {1};
  for (const int k : setup_.settings.draft_lengths) tokens.push_back(static_cast<std::size_t>(k) + 1);
  return tokens;
}

std::vector<std::size_t> GpuPasses::target_tokens() const {
  std::vector<std::size_t> tokens = table_tokens();
  if (!setup_.trained())
    for (const std::size_t more : {8U, 16U, 32U, 64U, 128U})
      if (more == 8 || !setup_.settings.quick) tokens.push_back(more);
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

void GpuPasses::time_passes_of(const OnDevice& model, std::size_t batch, std::size_t context, bool every_batch_fits,
                               GrowingTable<GpuPass>& passes) {
  const bool target = &model == &setup_.target;
  const std::vector<std::size_t> in_table = table_tokens();
  cuda::PassTimer timer(*model.model, batch, std::min(context + kMargin, setup_.limits.context));
  for (const std::size_t tokens : target ? target_tokens() : std::vector<std::size_t>{1, 2}) {
    if (batch * tokens > setup_.limits.rows || context + tokens > setup_.limits.context ||
        context + tokens > model.config.context)
      continue;
    const auto result = timer.time(tokens, target ? tokens : 1, context, setup_.settings.repetitions, 3);
    GpuPass pass{
        target ? "target" : "draft", to_text(model.weights->origin), tokens, batch, context, result.seconds, result.bytes, 0.0,
        result.logits_hash};
    pass.read_share = pass.rate() / read_rate_;
    observer_.pass(pass);
    ++timed_;
    if (every_batch_fits && (!target || std::count(in_table.begin(), in_table.end(), tokens) > 0))
      cost_table_.push_back({pass.model, static_cast<double>(tokens), static_cast<double>(batch), static_cast<double>(context),
                             1e3 * pass.seconds.median});
    passes.add(std::move(pass));
  }
}

void GpuPasses::time_passes() {
  GrowingTable<GpuPass> passes(observer_, "passes.csv", gpu_pass_columns());
  const auto holds = [&](const OnDevice& m, std::size_t batch, std::size_t context) {
    const std::size_t logits = kMostRows * m.config.vocab * sizeof(float);
    return setup_.fits(cuda::cache_bytes(m.config, batch, context + kMargin) + logits);
  };
  for (const std::size_t batch : setup_.settings.batches)
    for (const std::size_t context : setup_.contexts) {
      // Only contexts that every batch fits make a table without holes. The check runs while no cache is allocated; otherwise the
      // largest context would seem not to fit.
      const bool every_batch = holds(setup_.target, setup_.settings.batches.back(), context);
      for (const OnDevice* const m : {&setup_.target, &setup_.draft}) {
        if (!holds(*m, batch, context)) {
          observer_.no_room(m == &setup_.target ? "target" : "draft", batch, context);
          continue;
        }
        time_passes_of(*m, batch, context, every_batch, passes);
        passes.write();
        observer_.file("cost_table.csv", report::csv(cost_table_columns(), cost_table_));
      }
    }
}

GpuPasses::RoundTime GpuPasses::time_round(std::size_t batch, int draft_length, bool graphs) const {
  // Almost nothing is cached. So rounds are the shortest, and the work outside passes is the largest share of them.
  cuda::Rounds rounds(*setup_.target.model, draft_length > 0 ? setup_.draft.model.get() : nullptr,
                      {.draft_length = draft_length, .batch = batch, .capacity = kMargin, .graphs = graphs},
                      rng::make_key(setup_.settings.seed, 1));
  constexpr int kToWarmUp = 2;
  RoundTime time;
  std::vector<double> outside;
  std::vector<double> inside;
  for (int i = 0; i < setup_.settings.repetitions + kToWarmUp; ++i) {
    rounds.assume_length(2);
    const std::size_t launched = setup_.device->launches();
    const double begin = llm::now(llm::Clock::wall);
    const double on_device = setup_.device->seconds([&] { rounds.enqueue(); });
    rounds.fetch();
    const double wall = llm::now(llm::Clock::wall) - begin;
    time.launches = setup_.device->launches() - launched;
    if (i < kToWarmUp) continue;
    inside.push_back(on_device);
    outside.push_back(wall - on_device);
  }
  time.device = llm::quartiles_of(std::move(inside));
  time.host = llm::quartiles_of(std::move(outside));
  return time;
}

void GpuPasses::time_terms() {
  GrowingTable<TermRow> table(observer_, "terms.csv", term_columns());
  const int repetitions = setup_.settings.repetitions;
  const std::size_t vocab = setup_.target.config.vocab;
  for (const std::size_t batch : setup_.settings.batches)
    for (const int k : setup_.lengths()) {
      const cuda::Terms terms = cuda::measure_terms(*setup_.device, vocab, batch, k, {}, repetitions);
      if (k > 0) {
        table.add({"draw", batch, k, terms.draw});
        table.add({"accept_greedy", batch, k, terms.accept_greedy});
        table.add({"accept_block", batch, k, terms.accept_block});
      }
      table.add({"accept", batch, k, terms.accept});
      terms_[{batch, k}] = k * terms.draw.median + terms.accept.median;
      table.write();
    }
  // With filters: a draw from a distribution that is cut.
  const int longest = setup_.settings.draft_lengths.back();
  const cuda::Terms cut = cuda::measure_terms(*setup_.device, vocab, 1, longest, {.top_k = 50, .top_p = 0.95}, repetitions);
  table.add({"draw_top_k_top_p", 1, longest, cut.draw});
  table.add({"accept_top_k_top_p", 1, longest, cut.accept});
  const llm::Quartiles empty = cuda::time_empty_launch(*setup_.device, repetitions);
  table.add({"empty_launch", 1, 0, empty});
  // The host's time: a round as the host sees it less the device's time; and the same launches without a graph.
  for (const std::size_t batch : setup_.settings.batches)
    for (const int k : {0, longest}) {
      const RoundTime launched = time_round(batch, k, false);
      table.add({"host_without_graph", batch, k, launched.host});
      table.add({"round_without_graph", batch, k, launched.device, launched.launches});
      const RoundTime replayed = time_round(batch, k, true);
      table.add({"host", batch, k, replayed.host});
      table.add({"round", batch, k, replayed.device, launched.launches});
      if (k == 0) host_[batch] = replayed.host.median;
      const double all = replayed.device.median + replayed.host.median;
      const double launching = static_cast<double>(launched.launches) * empty.median + replayed.host.median;
      const double sampling = terms_.at({batch, k});
      table.add({"host_and_launches", batch, k, sum_of_medians(launching), launched.launches, launching / all});
      table.add({"draws_and_acceptance", batch, k, sum_of_medians(sampling), 0, sampling / all});
      observer_.time_outside_passes({batch, k, launched.launches, launching / all, sampling / all});
      table.write();
    }
}

void GpuPasses::time_streams() {
  const std::size_t context = setup_.contexts.front();
  const std::unique_ptr<cuda::Device> other = setup_.device->another_stream();
  if (!setup_.fits(cuda::work_bytes(setup_.draft.config, setup_.limits) +
                   cuda::cache_bytes(setup_.target.config, 1, context + kMargin)))
    return;
  cuda::DeviceModel draft(*other, setup_.draft.weights, setup_.limits);
  cuda::PassTimer target_timer(*setup_.target.model, 1, context + kMargin);
  cuda::PassTimer draft_timer(draft, 1, context + kMargin);
  const auto verify = target_timer.record(static_cast<std::size_t>(setup_.settings.draft_lengths.back()) + 1, 1, context);
  const auto guess = draft_timer.record(1, 1, context);
  const auto wall = [&](int verifies, int guesses) {
    std::vector<double> seconds;
    for (int i = 0; i < setup_.settings.repetitions + 1; ++i) {
      const double begin = llm::now(llm::Clock::wall);
      for (int k = 0; k < std::max(verifies, guesses); ++k) {
        if (k < verifies) setup_.device->replay(*verify);
        if (k < guesses) other->replay(*guess);
      }
      setup_.device->finish();
      other->finish();
      if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
    }
    return llm::quartiles_of(seconds);
  };
  constexpr int kVerifies = 4;
  const llm::Quartiles alone = wall(kVerifies, 0);
  const llm::Quartiles guess_alone = wall(0, kVerifies);
  const int guesses = std::max(1, static_cast<int>(alone.median / guess_alone.median * kVerifies));
  const Streams streams{alone, wall(0, guesses), wall(kVerifies, guesses)};
  GrowingTable<StreamRow> table(observer_, "streams.csv", stream_columns());
  table.add({"target", kVerifies, 0, streams.target});
  table.add({"draft", 0, guesses, streams.draft});
  table.add({"both at once", kVerifies, guesses, streams.both});
  table.write();
  observer_.streams(streams);
}

}  // namespace specsim::calibrate
