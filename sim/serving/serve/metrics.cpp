#include "sim/serving/serve/metrics.h"

#include "sim/foundation/math/quantile_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace specsim::serve {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kPicosecondsPerMs = 1e9;

double ms(arrivals::Picoseconds time) { return static_cast<double>(time) / kPicosecondsPerMs; }

// Samples with a count for each value.
struct Weighted {
  double value = 0.0;
  double count = 0.0;
};

Statistics weighted_statistics(std::vector<Weighted> samples) {
  Statistics result{0.0, kNone, kNone, kNone, kNone, kNone, kNone};
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double sum = 0.0;
  for (const Weighted& one : samples) {
    result.count += one.count;
    sum += one.count * one.value;
  }
  result.mean = sum / result.count;
  result.max = samples.back().value;
  const auto percentile = [&](double share) {
    const double place = share * (result.count - 1.0);
    const double low = std::floor(place);
    double before = 0.0;
    std::size_t at = 0;
    while (before + samples[at].count <= low) before += samples[at++].count;
    const double next =
        at + 1 < samples.size() && before + samples[at].count <= low + 1.0 ? samples[at + 1].value : samples[at].value;
    return samples[at].value + (place - low) * (next - samples[at].value);
  };
  result.p50 = percentile(0.5);
  result.p90 = percentile(0.9);
  result.p95 = percentile(0.95);
  result.p99 = percentile(0.99);
  return result;
}

// Requests that MSER-5 drops: of the batches of five, at most half of them, such that the mean of the rest has the least standard
// error.
std::size_t mser_cut(const SimulationResult& result) {
  constexpr std::size_t kBatch = 5;
  std::vector<double> means;
  std::vector<std::size_t> sent;  // [batch]: requests that were sent before it
  double sum = 0.0;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < result.sent; ++i) {
    if (result.sequences[i].status != Status::finished) continue;
    if (inside == 0) sent.push_back(i);
    sum += ms(result.sequences[i].last_token - result.sequences[i].sent);
    if (++inside < kBatch) continue;
    means.push_back(sum / kBatch);
    sum = 0.0;
    inside = 0;
  }
  double best = std::numeric_limits<double>::infinity();
  std::size_t cut = 0;
  double mean = 0.0;
  double squares = 0.0;  // sum of squared distances from the mean, by Welford's update: for equal times it is exactly 0
  for (std::size_t dropped = means.size(); dropped-- > 0;) {
    const auto left = static_cast<double>(means.size() - dropped);
    const double distance = means[dropped] - mean;
    mean += distance / left;
    squares += distance * (means[dropped] - mean);
    if (dropped > means.size() / 2) continue;
    const double error = squares / (left * left);
    if (error > best) continue;
    best = error;
    cut = sent[dropped];
  }
  return cut;
}

}  // namespace

Statistics statistics(const std::vector<double>& samples) {
  std::vector<Weighted> weighted;
  weighted.reserve(samples.size());
  for (const double sample : samples) weighted.push_back({sample, 1.0});
  return weighted_statistics(std::move(weighted));
}

const Statistics& latency(const Summary& summary, Latency which) {
  return which == Latency::ttft ? summary.ttft_ms : which == Latency::tpot ? summary.tpot_ms : summary.e2el_ms;
}

double slo_margin(std::span<const Summary> runs, const Slo& slo) {
  constexpr double kRounding = 1e-12;
  const std::array<bool, kLatencies> limited = {slo.ttft_ms.has_value(), slo.tpot_ms.has_value(), slo.e2el_ms.has_value()};
  const double needed = 0.01 * slo.percentile;
  double margin = kNone;
  const auto least = [&](double within, double count) {
    if (count > 0.0) margin = std::fmin(margin, within / count - needed + kRounding);
  };
  double all = 0.0;
  double counted = 0.0;
  for (std::size_t i = 0; i < kLatencies; ++i) {
    double within = 0.0;
    double count = 0.0;
    for (const Summary& run : runs) {
      within += run.within_limit[i];
      count += latency(run, static_cast<Latency>(i)).count;
    }
    if (limited[i]) least(within, count);
  }
  for (const Summary& run : runs) {
    if (!run.stable) return -1.0;
    all += run.within_all;
    counted += run.ttft_ms.count;
  }
  if (slo.jointly) least(all, counted);
  return margin;
}

// Samples of a figure with their sum: all of them in their order, or a sketch.
struct Samples {
  bool sketched = false;
  std::vector<double> all;
  math::QuantileSketch sketch;
  double sum = 0.0;  // of a sketch's samples

  void add(double sample, std::uint64_t count = 1) {
    if (!sketched) {
      all.push_back(sample);
      return;
    }
    add_sketched(sample, math::QuantileSketch::Sample(sample), count);
  }
  void add_sketched(double value, const math::QuantileSketch::Sample& sample, std::uint64_t count) {
    sketch.add(sample, count);
    sum += value * static_cast<double>(count);
  }
  void merge(const Samples& other) {
    sketch.merge(other.sketch);
    sum += other.sum;
  }
  [[nodiscard]] double count() const { return static_cast<double>(sketched ? sketch.count() : all.size()); }
  [[nodiscard]] Statistics figures() const {
    if (!sketched) return statistics(all);
    const double n = count();
    if (n == 0.0) return statistics({});
    return {n, sum / n, sketch.quantile(0.5), sketch.quantile(0.9), sketch.quantile(0.95), sketch.quantile(0.99), sketch.max()};
  }
};

// Waits of the first half and of the last twentieth of a run's requests.
struct Waits {
  double early = 0.0;  // milliseconds in queues and for a link, in sum
  double late = 0.0;
  double early_count = 0.0;
  double late_count = 0.0;
};

// Sums and samples of a run's requests.
struct Tally {
  std::array<Samples, kLatencies> latencies;  // [Latency]: milliseconds, of completed requests after the warm-up
  Samples queue;                              // milliseconds before the first admission, of the same requests
  Samples chunk_gaps;                         // milliseconds between chunks, and their parts per token, of a streamed run
  Samples token_gaps;
  std::vector<double> waits;                       // milliseconds in queues and for a link, of all completed requests
  Waits streamed_waits;                            // the same of a streamed run
  arrivals::Picoseconds first = arrivals::kNever;  // the first and the last sending
  arrivals::Picoseconds last = 0;
  double life = 0.0;  // picoseconds in the server, of all requests together
  double rounds = 0.0;

  explicit Tally(bool sketched) {
    for (Samples* const one : {latencies.data(), latencies.data() + 1, latencies.data() + 2, &queue, &chunk_gaps, &token_gaps})
      one->sketched = sketched;
  }
  [[nodiscard]] Samples& of(Latency which) { return latencies[static_cast<std::size_t>(which)]; }
};

namespace {

arrivals::Picoseconds spent_on(const Sequence& sequence, Cause cause) { return sequence.spent[static_cast<std::size_t>(cause)]; }

// Adds a completed request after the warm-up.
void add_latencies(const Sequence& sequence, const Slo& slo, Summary& summary, Tally& tally) {
  const double ttft = ms(sequence.first_token - sequence.sent);
  const double e2el = ms(sequence.last_token - sequence.sent);
  const bool several = sequence.emitted > 1;
  const double tpot = several ? ms(sequence.last_token - sequence.first_token) / (sequence.emitted - 1.0) : 0.0;
  tally.of(Latency::ttft).add(ttft);
  tally.of(Latency::e2el).add(e2el);
  if (several) tally.of(Latency::tpot).add(tpot);
  // Cause::queue also contains the queue of an engine that only decodes, if prompts are computed by others.
  tally.queue.add(ms(sequence.first_scheduled - sequence.sent - spent_on(sequence, Cause::frontend)));
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    summary.life_ms[cause] += ms(sequence.spent[cause]);
    summary.ttft_by_cause_ms[cause] += ms(sequence.spent_first[cause]);
    if (several)
      summary.tpot_by_cause_ms[cause] += ms(sequence.spent[cause] - sequence.spent_first[cause]) / (sequence.emitted - 1.0);
  }
  const std::array<bool, kLatencies> within = {ttft <= slo.ttft_ms.value_or(ttft), tpot <= slo.tpot_ms.value_or(tpot),
                                               e2el <= slo.e2el_ms.value_or(e2el)};
  for (std::size_t i = 0; i < kLatencies; ++i)
    if (within[i] && (several || static_cast<Latency>(i) != Latency::tpot)) summary.within_limit[i] += 1.0;
  if (ttft <= slo.ttft_ms.value_or(ttft) && tpot <= slo.tpot_ms.value_or(tpot) && e2el <= slo.e2el_ms.value_or(e2el))
    summary.within_all += 1.0;
}

// Adds a request that was sent. `end`: when the run ended; `counted`: it is after the warm-up.
void add_request(const Sequence& sequence, const Slo& slo, arrivals::Picoseconds end, bool counted, Summary& summary,
                 Tally& tally) {
  ++summary.requests;
  tally.first = std::min(tally.first, sequence.sent);
  tally.last = std::max(tally.last, sequence.sent);
  summary.recomputed_tokens += sequence.recomputed;
  summary.preemptions += sequence.preemptions;
  summary.prefix_hit_tokens += sequence.found;
  summary.prefix_lookup_tokens += sequence.looked_up;
  summary.host_hit_tokens += sequence.found_in_host;
  summary.draft_recomputed_tokens += sequence.draft_recomputed;
  summary.drafted += sequence.drafted;
  summary.accepted += sequence.accepted;
  tally.rounds += sequence.rounds;
  if (sequence.status != Status::finished) {  // in flight when the horizon was reached
    tally.life += static_cast<double>(std::max<arrivals::Picoseconds>(end - sequence.sent, 0));
    return;
  }
  summary.completed += 1;
  summary.prompt_tokens += sequence.prompt;
  summary.output_tokens += sequence.emitted;
  tally.life += static_cast<double>(sequence.last_token - sequence.sent);
  if (counted) add_latencies(sequence, slo, summary, tally);
}

double waited(const Sequence& sequence) { return ms(spent_on(sequence, Cause::queue) + spent_on(sequence, Cause::transfer)); }

// Sums over the requests, and the times of each of them.
Tally add_requests(const SimulationResult& result, const Slo& slo, std::size_t cut,
                   const std::function<bool(arrivals::RequestId)>& counts, Summary& summary) {
  Tally tally(false);
  for (std::size_t i = 0; i < result.sent; ++i) {
    const Sequence& sequence = result.sequences[i];
    if (sequence.sent == arrivals::kNever || (counts && !counts(static_cast<arrivals::RequestId>(i)))) continue;
    add_request(sequence, slo, result.end, i >= cut, summary, tally);
    if (sequence.status == Status::finished) tally.waits.push_back(waited(sequence));
  }
  return tally;
}

// Summary::overloaded. If the server completes requests more slowly than clients send them, by some share, the last requests wait
// for that share of the time of sending.
bool is_overloaded(const Waits& waits, const Tally& tally) {
  constexpr double kShort = 0.02;
  if (waits.late_count == 0.0 || tally.last <= tally.first) return false;
  const double late = waits.late / waits.late_count;
  // If the queue grows evenly, the last requests wait four times as long as the first half; if it does not grow, equally long.
  return late > kShort * ms(tally.last - tally.first) && late > 2.0 * (waits.early / waits.early_count);
}

constexpr std::size_t kLast = 20;  // the last twentieth

Waits waits_of(const std::vector<double>& waits) {
  const auto half = static_cast<std::ptrdiff_t>(waits.size() / 2);
  const auto last = static_cast<std::ptrdiff_t>(waits.size() / kLast);
  return {std::accumulate(waits.begin(), waits.begin() + half, 0.0), std::accumulate(waits.end() - last, waits.end(), 0.0),
          static_cast<double>(half), static_cast<double>(last)};
}

double per_second(const Summary& summary, double count) { return summary.duration_s > 0.0 ? count / summary.duration_s : kNone; }

// Times and rates of the whole run, and the shares of counted requests.
void add_rates(const SimulationResult& result, const Slo& slo, Tally& samples, Summary& summary) {
  const bool any = samples.first != arrivals::kNever;
  if (any && result.end > samples.first)
    summary.duration_s = static_cast<double>(result.end - samples.first) / arrivals::kPicosecondsPerSecond;
  if (any) summary.sending_s = static_cast<double>(samples.last - samples.first) / arrivals::kPicosecondsPerSecond;
  const auto completed = static_cast<double>(summary.completed);
  const auto counted = samples.of(Latency::ttft).count();
  summary.request_throughput = per_second(summary, completed);
  summary.output_throughput = per_second(summary, summary.output_tokens);
  summary.total_token_throughput = per_second(summary, summary.output_tokens + summary.prompt_tokens);
  summary.mean_concurrency = per_second(summary, samples.life / arrivals::kPicosecondsPerSecond);
  summary.slo_share = slo.any() && counted > 0.0 ? summary.within_all / counted : kNone;
  summary.request_goodput =
      slo.any() ? per_second(summary, counted > 0.0 ? summary.within_all * (completed / counted) : 0.0) : kNone;
  const auto share_out = [](std::array<double, kCauses>& parts, double count) {
    for (double& part : parts) part = count > 0.0 ? part / count : kNone;
  };
  share_out(summary.life_ms, counted);
  share_out(summary.ttft_by_cause_ms, counted);
  share_out(summary.tpot_by_cause_ms, samples.of(Latency::tpot).count());
}

// Half width of the 95 % interval of output tokens per second, as the ratio of tokens to the time that their requests take, which
// vary together (the delta method): the gaps between requests in an open loop, their lives where clients wait for their answers.
double throughput_half_width(const SimulationResult& result, bool clients_wait, double throughput) {
  struct Sent {
    arrivals::Picoseconds at;
    double tokens;
    double seconds;  // of the request's life, or to the next one
  };
  const auto seconds = [](arrivals::Picoseconds time) { return static_cast<double>(time) / arrivals::kPicosecondsPerSecond; };
  std::vector<Sent> sent;
  for (std::size_t i = 0; i < result.sent; ++i)
    if (const Sequence& one = result.sequences[i]; one.status == Status::finished)
      sent.push_back({one.sent, static_cast<double>(one.emitted), seconds(one.last_token - one.sent)});
  if (sent.size() < 3) return kNone;
  std::stable_sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) { return a.at < b.at; });
  if (!clients_wait) {
    for (std::size_t i = 0; i + 1 < sent.size(); ++i) sent[i].seconds = seconds(sent[i + 1].at - sent[i].at);
    sent.pop_back();
  }
  double tokens = 0.0;
  double time = 0.0;
  for (const Sent& one : sent) {
    tokens += one.tokens;
    time += one.seconds;
  }
  if (!(time > 0.0)) return kNone;
  const double rate = tokens / time;
  const double mean = time / static_cast<double>(sent.size());
  std::vector<double> off;
  double squares = 0.0;
  for (const Sent& one : sent) {
    off.push_back((one.tokens - rate * one.seconds) / mean);
    squares += off.back() * off.back();
  }
  const double by_stretches = batch_intervals(off).mean_half_width;
  constexpr double kIn95 = 1.959963984540054;
  const double half = std::isnan(by_stretches) ? kIn95 * std::sqrt(squares) / static_cast<double>(off.size()) : by_stretches;
  return clients_wait ? half * throughput / rate : half;
}

// Statistics of the latencies; sorts their samples. A sketch has no order, and so no intervals.
void add_statistics(const Slo& slo, Tally& tally, Summary& summary) {
  for (std::size_t i = 0; i < kLatencies; ++i) {
    Samples& own = tally.latencies[i];
    if (own.sketched) {
      summary.spreads[i] = {tail_of(own.sketch), kNone, kNone};
      continue;
    }
    const BatchIntervals intervals = batch_intervals(own.all);  // in the order of sending
    std::sort(own.all.begin(), own.all.end());
    summary.spreads[i] = {tail_of(own.all), intervals.mean_half_width, intervals.p99_half_width};
  }
  summary.ttft_ms = tally.of(Latency::ttft).figures();
  summary.tpot_ms = tally.of(Latency::tpot).figures();
  summary.e2el_ms = tally.of(Latency::e2el).figures();
  summary.queue_ms = tally.queue.figures();
  summary.meets_slo = slo.any() && slo_margin({&summary, 1}, slo) >= 0.0;
}

void add_gaps(const std::vector<Gap>& gaps, Summary& summary) {
  std::vector<Weighted> chunks;
  std::vector<Weighted> tokens;
  for (const Gap& gap : gaps) {
    chunks.push_back({ms(gap.length), static_cast<double>(gap.count)});
    tokens.push_back({ms(gap.length) / gap.tokens, static_cast<double>(gap.count) * gap.tokens});
  }
  summary.itl_ms = weighted_statistics(std::move(chunks));
  summary.itl_token_ms = weighted_statistics(std::move(tokens));
}

// How the end of a job goes, whose requests were all sent at once. `batch`: its integral over the steps of all engines.
void add_job(const SimulationResult& result, std::uint32_t replicas, double batch, Summary& summary) {
  std::vector<arrivals::Picoseconds> ends;
  for (std::size_t i = 0; i < result.sent; ++i)
    if (result.sequences[i].status == Status::finished) ends.push_back(result.sequences[i].last_token);
  const std::size_t early = std::max<std::size_t>(1, ends.size() * 9 / 10);
  std::nth_element(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(early) - 1, ends.end());
  const auto seconds = [](arrivals::Picoseconds time) { return static_cast<double>(time) / arrivals::kPicosecondsPerSecond; };
  summary.last_tenth_s = seconds(result.end - ends[early - 1]);
  const double places = replicas * summary.largest_batch * summary.duration_s * arrivals::kPicosecondsPerSecond;
  if (places > 0.0) summary.idle_places = 1.0 - batch / places;
}

// Totals of the engines; `replicas`: how many share their time.
void add_totals(const SimulationResult& result, std::uint32_t replicas, double rounds, Summary& summary) {
  double batch = 0.0;
  double busy = 0.0;
  double loading = 0.0;
  double verifying = 0.0;
  double verifying_batch = 0.0;
  summary.fewest_free_blocks = result.totals.front().fewest_free_blocks;
  for (const ServerTotals& one : result.totals) {
    summary.steps += static_cast<double>(one.steps);
    summary.uniform_steps += static_cast<double>(one.uniform_steps);
    summary.mixed_steps += static_cast<double>(one.mixed_steps);
    summary.eager_steps += static_cast<double>(one.eager_steps);
    summary.prefill_steps += static_cast<double>(one.prefill_steps);
    summary.largest_batch = std::max(summary.largest_batch, static_cast<double>(one.largest_batch));
    summary.fewest_free_blocks = std::min(summary.fewest_free_blocks, static_cast<double>(one.fewest_free_blocks));
    batch += one.batch_ps;
    busy += static_cast<double>(one.busy);
    verifying += one.verifying_ps;
    verifying_batch += one.verifying_batch_ps;
    summary.host_loaded_bytes += static_cast<double>(one.host.loaded) * one.host_block_bytes;
    summary.host_stored_bytes += static_cast<double>(one.host.stored) * one.host_block_bytes;
    loading += static_cast<double>(one.host.busy);
  }
  summary.host_link_share = per_second(summary, loading / arrivals::kPicosecondsPerSecond / replicas);
  summary.mean_batch = busy > 0.0 ? batch / busy : kNone;
  summary.verifying_share = busy > 0.0 ? verifying / busy : 0.0;
  summary.verifying_batch = verifying > 0.0 ? verifying_batch / verifying : kNone;
  summary.busy_share = per_second(summary, busy / arrivals::kPicosecondsPerSecond / replicas);
  summary.tokens_per_round = rounds > 0.0 ? 1.0 + summary.accepted / rounds : kNone;
  summary.acceptance_rate = summary.drafted > 0.0 ? summary.accepted / summary.drafted : kNone;
  summary.wasted_drafts = summary.drafted - summary.accepted;
  summary.pool_tokens = result.pool_tokens;
  if (summary.completed > 1 && summary.sending_s == 0.0) add_job(result, replicas, batch, summary);
}

}  // namespace

Summary summarise(const arrivals::RequestTrace& workload, const SimulationResult& result, const Slo& slo, std::uint32_t replicas,
                  const WarmUp& warm_up, const std::function<bool(arrivals::RequestId)>& counts) {
  Summary summary;
  summary.warm_up_requests = std::min(warm_up.by_mser ? mser_cut(result) : warm_up.requests, result.sent);
  summary.stable = result.reached_end;
  Tally tally = add_requests(result, slo, summary.warm_up_requests, counts, summary);
  summary.overloaded = workload.concurrency == 0 && is_overloaded(waits_of(tally.waits), tally);
  add_rates(result, slo, tally, summary);
  summary.output_throughput_half_width = throughput_half_width(result, workload.concurrency > 0, summary.output_throughput);
  summary.server_limits = workload.concurrency > 0;
  add_statistics(slo, tally, summary);
  add_gaps(result.gaps, summary);
  add_totals(result, replicas, tally.rounds, summary);
  return summary;
}

struct StreamedFigures::Parts {
  Slo slo;
  std::size_t requests = 0;
  std::size_t warm_up = 0;
  Summary summary;
  Tally tally{true};
};

StreamedFigures::StreamedFigures(const Slo& slo, std::size_t requests, std::size_t warm_up)
    : parts_(std::make_unique<Parts>(Parts{slo, requests, warm_up, {}})) {}
StreamedFigures::StreamedFigures(StreamedFigures&&) noexcept = default;
StreamedFigures::~StreamedFigures() = default;

void StreamedFigures::add(arrivals::RequestId request, const Sequence& sequence, arrivals::Picoseconds end) {
  Parts& own = *parts_;
  add_request(sequence, own.slo, end, request >= own.warm_up, own.summary, own.tally);
  if (sequence.status != Status::finished) return;
  Waits& waits = own.tally.streamed_waits;
  if (request < own.requests / 2) {
    waits.early += waited(sequence);
    waits.early_count += 1.0;
  }
  if (request >= own.requests - own.requests / kLast) {
    waits.late += waited(sequence);
    waits.late_count += 1.0;
  }
}

void StreamedFigures::add_gaps(const std::vector<Gap>& gaps) {
  Samples& chunk_gaps = parts_->tally.chunk_gaps;
  Samples& token_gaps = parts_->tally.token_gaps;
  for (const Gap& gap : gaps) {
    const double length = ms(gap.length);
    const math::QuantileSketch::Sample sample(length);
    chunk_gaps.add_sketched(length, sample, gap.count);
    if (gap.tokens == 1)
      token_gaps.add_sketched(length, sample, gap.count);
    else
      token_gaps.add(length / gap.tokens, std::uint64_t{gap.count} * gap.tokens);
  }
}

void StreamedFigures::merge(const StreamedFigures& other) {
  Summary& sum = parts_->summary;
  const Summary& more = other.parts_->summary;
  sum.requests += more.requests;
  sum.completed += more.completed;
  for (double Summary::*const one :
       {&Summary::recomputed_tokens, &Summary::preemptions, &Summary::prefix_hit_tokens, &Summary::prefix_lookup_tokens,
        &Summary::drafted, &Summary::accepted, &Summary::prompt_tokens, &Summary::output_tokens, &Summary::within_all})
    sum.*one += more.*one;
  for (std::size_t i = 0; i < kLatencies; ++i) sum.within_limit[i] += more.within_limit[i];
  for (auto Summary::*const causes : {&Summary::life_ms, &Summary::ttft_by_cause_ms, &Summary::tpot_by_cause_ms})
    for (std::size_t i = 0; i < kCauses; ++i) (sum.*causes)[i] += (more.*causes)[i];
  Tally& tally = parts_->tally;
  const Tally& others = other.parts_->tally;
  for (std::size_t i = 0; i < kLatencies; ++i) tally.latencies[i].merge(others.latencies[i]);
  tally.queue.merge(others.queue);
  tally.chunk_gaps.merge(others.chunk_gaps);
  tally.token_gaps.merge(others.token_gaps);
  tally.streamed_waits.early += others.streamed_waits.early;
  tally.streamed_waits.late += others.streamed_waits.late;
  tally.streamed_waits.early_count += others.streamed_waits.early_count;
  tally.streamed_waits.late_count += others.streamed_waits.late_count;
  tally.first = std::min(tally.first, others.first);
  tally.last = std::max(tally.last, others.last);
  tally.life += others.life;
  tally.rounds += others.rounds;
}

Summary StreamedFigures::summary(const SimulationResult& result, std::uint32_t replicas) && {
  Parts& own = *parts_;
  Summary& summary = own.summary;
  summary.warm_up_requests = own.warm_up;
  summary.stable = result.reached_end;
  summary.overloaded = is_overloaded(own.tally.streamed_waits, own.tally);
  add_rates(result, own.slo, own.tally, summary);
  add_statistics(own.slo, own.tally, summary);
  summary.itl_ms = own.tally.chunk_gaps.figures();
  summary.itl_token_ms = own.tally.token_gaps.figures();
  add_totals(result, replicas, own.tally.rounds, summary);
  return summary;
}

}  // namespace specsim::serve
