#include "sim/lab/cuda/rounds.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/lab/llm/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specsim::cuda {

namespace {

// Size of the histogram that a row's cuts count in.
constexpr std::size_t kHistogram = std::size_t{Cut::kLevels} * Cut::kBins;

std::size_t drafts_of(const RoundSettings& settings) { return static_cast<std::size_t>(settings.draft_length); }
std::size_t rows_of(const RoundSettings& settings) { return settings.batch * (drafts_of(settings) + 1); }

}  // namespace

DistributionMaker::DistributionMaker(Device& device, std::size_t vocab, std::size_t rows, const math::Sampling& sampling)
    : device_(device),
      vocab_(static_cast<unsigned>(vocab)),
      sampling_(sampling),
      peaks_(device, rows * slices_of(vocab_)),
      slice_sums_(device, rows * slices_of(vocab_)) {
  SPECSIM_CHECK(vocab <= kMostVocab, "{} tokens", vocab);
  if (sampling.top_k > 0 && sampling.top_k < static_cast<int>(vocab))
    cuts_.push_back({.top_k = static_cast<unsigned>(sampling.top_k)});
  if (sampling.top_p < 1.0) cuts_.push_back({.top_p = sampling.top_p});
  histograms_ = Buffer<std::uint64_t>(device, rows * cuts_.size() * kHistogram);
  found_ = Buffer<Cut::Found>(device, rows * cuts_.size() * Cut::kLevels);
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    cuts_[i].histograms = histograms_.data() + i * rows * kHistogram;
    cuts_[i].found = found_.data() + i * rows * Cut::kLevels;
  }
}

void DistributionMaker::enqueue(const float* logits, unsigned rows, double* distributions, double* scan_sums) {
  // The kernel that makes the distribution last applies min-p, which depends on each weight alone.
  const auto min_p_after = [&](std::size_t cuts) { return cuts == cuts_.size() ? sampling_.min_p : 0.0; };
  const auto next_after = [&](std::size_t cuts) { return cuts < cuts_.size() ? cuts_[cuts] : Cut(); };
  device_.launch(SlicePeaks{.logits = logits,
                            .vocab = vocab_,
                            .peaks = peaks_.data(),
                            .count = rows,
                            .zeros = histograms_.data(),
                            .zeros_size = histograms_.size()});
  device_.launch(DistributionWeights{.logits = logits,
                                     .vocab = vocab_,
                                     .peaks = peaks_.data(),
                                     .temperature = static_cast<float>(sampling_.temperature),
                                     .min_p = min_p_after(0),
                                     .distributions = distributions,
                                     .slice_sums = slice_sums_.data(),
                                     .count = rows,
                                     .next = next_after(0)});
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    for (unsigned level = 1; level < Cut::kLevels; ++level)
      device_.launch(NarrowCut{.distributions = distributions, .vocab = vocab_, .cut = cuts_[i], .level = level, .count = rows});
    device_.launch(CutDistribution{.distributions = distributions,
                                   .vocab = vocab_,
                                   .cut = cuts_[i],
                                   .min_p = min_p_after(i + 1),
                                   .slice_sums = slice_sums_.data(),
                                   .count = rows,
                                   .next = next_after(i + 1)});
  }
  device_.launch(NormaliseDistribution{
      .distributions = distributions, .vocab = vocab_, .slice_sums = slice_sums_.data(), .scan_sums = scan_sums, .count = rows});
}

std::vector<bool> DistributionMaker::are_distributions() const {
  const std::vector<double> sums = slice_sums_.download();
  const auto slices = static_cast<std::ptrdiff_t>(slices_of(vocab_));
  std::vector<bool> are;
  for (auto row = sums.begin(); row != sums.end(); row += slices) {
    const double sum = std::accumulate(row, row + slices, 0.0);
    are.push_back(std::isfinite(sum) && sum > 0.0);
  }
  return are;
}

Rounds::Rounds(DeviceModel& target, DeviceModel* draft, const RoundSettings& settings, rng::Key key)
    : target_(target),
      draft_(draft),
      settings_(settings),
      device_(target.device()),
      vocab_(target.config().vocab),
      target_cache_(std::make_unique<DeviceCache>(device_, target.config(), settings.batch, settings.capacity)),
      draft_cache_(draft != nullptr ? std::make_unique<DeviceCache>(device_, draft->config(), settings.batch, settings.capacity)
                                    : nullptr),
      verify_(device_, settings.batch, drafts_of(settings) + 1, drafts_of(settings) + 1),
      first_draft_(device_, settings.batch, 2, 1),
      next_draft_(device_, settings.batch, 1, 1),
      target_maker_(device_, vocab_, rows_of(settings), settings.sampling),
      draft_maker_(device_, vocab_, settings.batch, settings.sampling),
      stride_(settings.capacity + drafts_of(settings) + 2),
      text_(device_, settings.batch * stride_, true),
      device_lengths_(device_, settings.batch),
      rounds_(device_, settings.batch),
      ids_(device_, settings.batch),
      device_accepted_(device_, settings.batch),
      logits_(device_, rows_of(settings) * vocab_),
      target_distributions_(device_, rows_of(settings) * vocab_),
      draft_distributions_(device_, settings.batch * drafts_of(settings) * vocab_),
      scans_(device_, rows_of(settings) * scans_of(static_cast<unsigned>(vocab_))),
      accepted_(settings.batch) {
  SPECSIM_CHECK(draft != nullptr || settings.draft_length == 0, "draft length {} without a draft", settings.draft_length);
  SPECSIM_CHECK(settings.draft_length >= 0 && drafts_of(settings) <= Trial::kMostDrafts, "draft length {}",
                settings.draft_length);
  sequences_ = {.text = text_.data(),
                .text_stride = stride_,
                .lengths = device_lengths_.data(),
                .rounds = rounds_.data(),
                .ids = ids_.data(),
                .key = key.low | std::uint64_t{key.high} << 32};
}

void Rounds::start(const std::vector<std::vector<Token>>& prompts, std::span<const std::uint64_t> ids) {
  SPECSIM_CHECK(prompts.size() == settings_.batch && ids.size() == settings_.batch, "{} prompts for a batch of {}",
                prompts.size(), settings_.batch);
  std::vector<std::uint32_t> text(settings_.batch * stride_, 0);
  std::vector<std::uint32_t> cached;
  lengths_.clear();
  for (std::size_t s = 0; s < prompts.size(); ++s) {
    const std::vector<Token>& prompt = prompts[s];
    SPECSIM_CHECK(prompt.size() >= 2 && prompt.size() <= settings_.capacity, "a prompt of {} tokens, {} places", prompt.size(),
                  settings_.capacity);
    std::copy(prompt.begin(), prompt.end(), text.begin() + static_cast<std::ptrdiff_t>(s * stride_));
    lengths_.push_back(prompt.size());
    cached.push_back(static_cast<std::uint32_t>(prompt.size() - 1));
    for (DeviceModel* const model : {&target_, draft_}) {
      if (model == nullptr) continue;
      DeviceCache& cache = model == &target_ ? *target_cache_ : *draft_cache_;
      cache.rewind(s, 0);
      constexpr std::size_t kStretch = 64;
      for (std::size_t at = 0; at + 1 < prompt.size(); at += kStretch) {
        const llm::Extension extension{
            .sequence = s, .tokens = std::span(prompt).subspan(at, std::min(kStretch, prompt.size() - 1 - at)), .logit_rows = 0};
        model->forward({&extension, 1}, cache, {});
      }
      cache.assume_length(s, 0);  // from here on the device counts
    }
  }
  text_.upload(text);
  device_lengths_.upload(cached);
  rounds_.upload(std::vector<std::uint32_t>(settings_.batch, 0));
  ids_.upload(ids);
}

void Rounds::assume_length(std::size_t length) {
  SPECSIM_CHECK(length >= 2 && length <= settings_.capacity, "{} tokens, {} places", length, settings_.capacity);
  std::vector<std::uint64_t> ids(settings_.batch);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  if (lengths_.empty()) {  // the first time: times of zeros would differ
    target_cache_->fill_random(1);
    if (draft_ != nullptr) draft_cache_->fill_random(2);
  }
  lengths_.assign(settings_.batch, length);
  text_.upload(llm::filler_text(settings_.batch * stride_, vocab_));
  device_lengths_.upload(std::vector<std::uint32_t>(settings_.batch, static_cast<std::uint32_t>(length - 1)));
  rounds_.upload(std::vector<std::uint32_t>(settings_.batch, 0));
  ids_.upload(ids);
}

void Rounds::prepare() {
  if (!settings_.graphs) return;
  assume_length(2);  // length for which the shortest graph has room
  SPECSIM_CHECK(fits(), "{} places, too few for a round", settings_.capacity);
  for (std::size_t longest = kChunk; longest < settings_.capacity; longest *= 2) graph_for(longest);
  graph_for(settings_.capacity);
}

bool Rounds::fits() const {
  return std::all_of(lengths_.begin(), lengths_.end(),
                     [&](std::size_t length) { return length + drafts_of(settings_) <= settings_.capacity; });
}

void Rounds::ask(std::size_t longest) {
  const Texts texts{text_.data(), stride_, device_lengths_.data(), 0};
  const auto batch = static_cast<unsigned>(settings_.batch);
  for (int i = 0; i < settings_.draft_length; ++i) {
    Texts own = texts;
    own.shift = i == 0 ? -1 : i;
    double* const distributions = draft_distributions_.data() + static_cast<std::size_t>(i) * settings_.batch * vocab_;
    draft_->enqueue(i == 0 ? first_draft_ : next_draft_, *draft_cache_, own, longest, logits_.data());
    draft_maker_.enqueue(logits_.data(), batch, distributions, scans_.data());
    device_.launch(DrawDraft{.distributions = distributions,
                             .distribution_stride = vocab_,
                             .scan_sums = scans_.data(),
                             .vocab = static_cast<unsigned>(vocab_),
                             .index = static_cast<unsigned>(i),
                             .sequences = sequences_,
                             .count = batch});
  }
  target_.enqueue(verify_, *target_cache_, texts, longest, logits_.data());
  target_maker_.enqueue(logits_.data(), verify_.logits, target_distributions_.data(), scans_.data());
  const Trial trial{.target = target_distributions_.data(),
                    .drafted = draft_distributions_.data(),
                    .vocab = static_cast<unsigned>(vocab_),
                    .draft_length = static_cast<unsigned>(settings_.draft_length),
                    .rule = settings_.rule,
                    .sequences = sequences_,
                    .count = batch};
  device_.launch(ResidualSums{.trial = trial, .sums = scans_.data()});
  device_.launch(Accept{.trial = trial, .sums = scans_.data(), .accepted = device_accepted_.data()});
}

void Rounds::enqueue() {
  SPECSIM_CHECK(fits(), "a round beyond {} places", settings_.capacity);
  // A graph serves all texts up to a power of two of chunks: chunks beyond a text's end only check its length.
  const std::size_t needed = *std::max_element(lengths_.begin(), lengths_.end()) + drafts_of(settings_);
  std::size_t longest = kChunk;
  while (longest < needed) longest *= 2;
  longest = std::min(longest, settings_.capacity);
  if (!settings_.graphs) return ask(longest);
  device_.replay(graph_for(longest));
}

const Graph& Rounds::graph_for(std::size_t longest) {
  std::unique_ptr<Graph>& graph = graphs_[longest];
  if (graph == nullptr) {
    // Runs the passes once outside the recording, since libraries choose and load their kernels then. The results are overwritten
    // later.
    const Texts texts{text_.data(), stride_, device_lengths_.data(), 0};
    if (settings_.draft_length > 0) {
      draft_->enqueue(first_draft_, *draft_cache_, {texts.text, texts.stride, texts.lengths, -1}, longest, logits_.data());
      draft_->enqueue(next_draft_, *draft_cache_, texts, longest, logits_.data());
    }
    target_.enqueue(verify_, *target_cache_, texts, longest, logits_.data());
    device_.finish();
    graph = device_.record([&] { ask(longest); });
  }
  return *graph;
}

void Rounds::fetch() {
  accepted_ = device_accepted_.download();
  for (std::size_t s = 0; s < lengths_.size(); ++s) lengths_[s] += accepted_[s] + 1;
}

void Rounds::check_distributions() const {
  const auto check = [&](const DistributionMaker& maker, const char* model) {
    const std::vector<bool> are =
        maker.are_distributions();  // [sequence][row]; for a draft only the last token's row, since a NaN stays in the cache
    const auto wrong = static_cast<std::size_t>(std::find(are.begin(), are.end(), false) - are.begin());
    if (wrong < are.size())
      throw BadInput(
          {device_.info().name, 0, 0},
          fmt::format("logits of the {} for sequence {} of the batch are not finite, allowed: weights with finite logits", model,
                      wrong * settings_.batch / are.size()));
  };
  check(target_maker_, "target");
  if (settings_.draft_length > 0) check(draft_maker_, "draft");
}

void Rounds::round() {
  enqueue();
  fetch();
}

std::vector<std::vector<Token>> Rounds::texts() const {
  const std::vector<std::uint32_t> all = text_.download();
  std::vector<std::vector<Token>> texts;
  for (std::size_t s = 0; s < lengths_.size(); ++s) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(s * stride_);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths_[s]));
  }
  return texts;
}

std::size_t round_bytes(const llm::ModelConfig& target, const llm::ModelConfig* draft, const RoundSettings& settings) {
  std::size_t bytes = cache_bytes(target, settings.batch, settings.capacity);
  if (draft != nullptr) bytes += cache_bytes(*draft, settings.batch, settings.capacity);
  bytes += 2 * kHistogram * sizeof(std::uint64_t) * (rows_of(settings) + settings.batch);  // two cuts' histograms
  return bytes + target.vocab * (rows_of(settings) * (sizeof(float) + sizeof(double)) +
                                 settings.batch * drafts_of(settings) * sizeof(double));
}

}  // namespace specsim::cuda
