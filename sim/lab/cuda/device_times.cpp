#include "sim/lab/cuda/device_times.h"

#include "sim/foundation/rng/address.h"

#include <algorithm>
#include <cstring>

namespace specsim::cuda {

namespace {

std::uint64_t hash_of(std::span<const float> values) {
  std::string bytes(values.size_bytes(), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return rng::hash_text(bytes);
}

}  // namespace

llm::Quartiles time_work(Device& device, int repetitions, int at_once, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i <= repetitions; ++i) {
    const double all = device.seconds([&] {
      for (int k = 0; k < at_once; ++k) work();
    });
    if (i > 0) seconds.push_back(all / at_once);
  }
  return llm::quartiles_of(std::move(seconds));
}

Bandwidth measure_bandwidth(Device& device, std::size_t bytes, int repetitions) {
  constexpr std::size_t kLine = 4096;
  Bandwidth result;
  result.bytes = bytes / kLine * kLine;
  const Buffer<std::byte> a(device, result.bytes);
  const Buffer<std::byte> b(device, result.bytes);
  const Buffer<std::uint32_t> out(device, 1);
  device.launch(FillRandom{
      .out = reinterpret_cast<Bf16*>(a.data()), .count = result.bytes / sizeof(Bf16), .deviation = 1.0F, .key = 1, .index = 0});
  const auto multiprocessors = static_cast<unsigned>(std::max(device.info().multiprocessors, 1));
  for (const unsigned blocks : {2U, 4U, 8U, 16U, 32U}) {
    const ReadAll read{.memory = reinterpret_cast<const Words*>(a.data()),
                       .count = result.bytes / sizeof(Words),
                       .out = out.data(),
                       .blocks = blocks * multiprocessors};
    const llm::Quartiles seconds = time_work(device, repetitions, 1, [&] { device.launch(read); });
    if (result.read.samples == 0 || seconds.median < result.read.median) result.read = seconds;
  }
  result.copy = time_work(device, repetitions, 1, [&] { device.copy(b.data(), a.data(), result.bytes); });
  return result;
}

std::size_t kv_bytes(const llm::ModelConfig& config, std::size_t batch, std::size_t places) {
  return 2 * config.layers * batch * config.kv_heads * places * config.head_dim * sizeof(Bf16);
}

PassTimer::PassTimer(DeviceModel& model, std::size_t batch, std::size_t capacity)
    : model_(model),
      batch_(batch),
      cache_(model.device(), model.config(), batch, capacity),
      stride_(capacity),
      text_(model.device(), batch * capacity),
      lengths_(model.device(), batch) {
  cache_.fill_random(batch);
  text_.upload(llm::filler_text(batch * capacity, model.config().vocab));
}

std::unique_ptr<Graph> PassTimer::record(std::size_t tokens, std::size_t logit_rows, std::size_t context) {
  Device& device = model_.device();
  lengths_.upload(std::vector<std::uint32_t>(batch_, static_cast<std::uint32_t>(context)));
  rows_.push_back(std::make_unique<PassRows>(device, batch_, tokens, logit_rows));
  const PassRows& pass = *rows_.back();
  const std::size_t size = pass.logits * model_.config().vocab;
  if (logits_.size() < size) logits_ = Buffer<float>(device, size);
  const auto ask = [&] {
    model_.enqueue(pass, cache_, {text_.data(), stride_, lengths_.data(), 0}, context + tokens, logits_.data());
  };
  ask();  // libraries choose their kernels outside of a recording
  device.finish();
  return device.record(ask);
}

PassTimer::Result PassTimer::time(std::size_t tokens, std::size_t logit_rows, std::size_t context, int repetitions, int at_once) {
  Device& device = model_.device();
  const std::unique_ptr<Graph> graph = record(tokens, logit_rows, context);
  Result result;
  result.seconds = time_work(device, repetitions, at_once, [&] { device.replay(*graph); });
  result.bytes = model_.pass_bytes() + kv_bytes(model_.config(), batch_, context + tokens);
  std::vector<float> last(model_.config().vocab);
  device.download(last.data(), logits_.data() + (batch_ * logit_rows - 1) * last.size(), last.size() * sizeof(float));
  result.logits_hash = hash_of(last);
  return result;
}

Terms measure_terms(Device& device, std::size_t vocab, std::size_t batch, int draft_length, const math::Sampling& sampling,
                    int repetitions) {
  const auto drafts = static_cast<std::size_t>(draft_length);
  const std::size_t rows = batch * (drafts + 1);
  const std::size_t scans = scans_of(static_cast<unsigned>(vocab));
  std::vector<float> numbers(rows * vocab);
  for (std::size_t i = 0; i < numbers.size(); ++i)  // 0 to 16, never the same twice in a row
    numbers[i] = static_cast<float>((i * 2654435761U) % (1U << 22)) / 262144.0F;
  const Buffer<float> logits(device, numbers);
  const Buffer<double> target(device, rows * vocab);
  const Buffer<double> drafted(device, batch * drafts * vocab);
  const Buffer<double> sums(device, rows * scans);
  const std::size_t stride = drafts + 8;
  const Buffer<std::uint32_t> text(device, batch * stride, true);
  Buffer<std::uint32_t> lengths(device, batch, true);
  const Buffer<std::uint32_t> rounds(device, batch, true);
  const Buffer<std::uint32_t> zeros(device, batch, true);
  const Buffer<std::uint64_t> ids(device, batch, true);
  const Buffer<std::uint32_t> accepted(device, batch);
  const Sequences sequences{text.data(), stride, lengths.data(), rounds.data(), ids.data(), 1};
  DistributionMaker maker(device, vocab, rows, sampling);
  const auto count = static_cast<unsigned>(batch);
  const auto ask_draws = [&] {
    for (std::size_t i = 0; i < drafts; ++i) {
      double* const distributions = drafted.data() + i * batch * vocab;
      maker.enqueue(logits.data(), count, distributions, sums.data());
      device.launch(DrawDraft{.distributions = distributions,
                              .distribution_stride = vocab,
                              .scan_sums = sums.data(),
                              .vocab = static_cast<unsigned>(vocab),
                              .index = static_cast<unsigned>(i),
                              .sequences = sequences,
                              .count = count});
    }
  };
  const auto draw = drafts > 0 ? device.record(ask_draws) : nullptr;  // some libraries cannot make an empty graph
  const auto time_acceptance = [&](AcceptanceRule rule) {
    const auto accept = device.record([&] {
      maker.enqueue(logits.data(), static_cast<unsigned>(rows), target.data(), sums.data());
      const Trial trial{.target = target.data(),
                        .drafted = drafted.data(),
                        .vocab = static_cast<unsigned>(vocab),
                        .draft_length = static_cast<unsigned>(draft_length),
                        .rule = rule,
                        .sequences = sequences,
                        .count = count};
      device.launch(ResidualSums{.trial = trial, .sums = sums.data()});
      device.launch(Accept{.trial = trial, .sums = sums.data(), .accepted = accepted.data()});
      device.copy(lengths.data(), zeros.data(), batch * sizeof(std::uint32_t));  // the same place every time
    });
    return time_work(device, repetitions, 4, [&] { device.replay(*accept); });
  };
  Terms terms;
  if (drafts > 0) {
    terms.draw = time_work(device, repetitions, 4, [&] { device.replay(*draw); });
    for (double* const seconds : {&terms.draw.median, &terms.draw.low, &terms.draw.high}) *seconds /= static_cast<double>(drafts);
    terms.accept_greedy = time_acceptance(AcceptanceRule::greedy);
    terms.accept_block = time_acceptance(AcceptanceRule::block);
  }
  terms.accept = time_acceptance(AcceptanceRule::token);
  return terms;
}

llm::Quartiles time_empty_launch(Device& device, int repetitions) {
  constexpr int kLaunches = 1000;
  const auto graph = device.record([&] {
    for (int i = 0; i < kLaunches; ++i) device.launch(ReadAll{.blocks = 1});
  });
  llm::Quartiles spread = time_work(device, repetitions, 1, [&] { device.replay(*graph); });
  for (double* const seconds : {&spread.median, &spread.low, &spread.high}) *seconds /= kLaunches;
  return spread;
}

}  // namespace specsim::cuda
