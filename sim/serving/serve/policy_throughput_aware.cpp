#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

// Captured graph sizes, as in SGLang's list for speculative decoding; a batch is padded up to the next one.
std::uint32_t captured_batch(std::uint32_t batch) {
  const std::uint32_t step = batch <= 8 ? 1 : batch <= 32 ? 2 : batch <= 64 ? 4 : batch <= 256 ? 8 : 16;
  return (batch + step - 1) / step * step;
}

struct ThroughputParams {
  std::vector<std::vector<double>> candidates = {{1, 1, 3, 5, 7}, {8, 1, 3, 5}, {32, 1, 3}, {128, 1}};
  std::optional<int> first;
  std::size_t window = 20;
  int every = 10;
  double context = 2048.0;
  std::uint32_t largest_batch = 128;
};
const config::Fields<ThroughputParams>& throughput_fields() {
  using P = ThroughputParams;
  static const config::Fields<P> fields = {
      {"candidates", &P::candidates,
       "[[smallest batch, draft lengths ...], ...]; SGLang requires them, the default is its example", config::between(0, 1e9)},
      {"first", &P::first,
       "draft length at the start, --speculative-num-steps of SGLang; default, also if it is no candidate: the median "
       "candidate of batch 1",
       config::between(1, kMaxDraftLength)},
      {"window", &P::window, "steps over which a position's rate is averaged", config::between(1, 1e5)},
      {"every", &P::every, "steps between two choices", config::between(1, 1e6)},
      {"context", &P::context, "cached tokens of each request of the timed steps", config::between(0, 1e9)},
      {"largest_batch", &P::largest_batch, "the largest batch that is timed", config::between(1, 1e5)},
  };
  return fields;
}

struct Setting {
  ThroughputParams params;
  std::map<std::uint32_t, std::vector<int>> candidates;  // [smallest batch]: draft lengths, increasing
  int first = 0;
};

class ThroughputAware final : public ServerPolicy {
 public:
  ThroughputAware(Setting own, const PolicySetting& server)
      : own_(std::move(own)), seconds_(server.seconds), length_(own_.first) {
    for (const auto& [from, lengths] : own_.candidates) longest_ = std::max(longest_, lengths.back());
    windows_.resize(static_cast<std::size_t>(longest_));
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    const bool warm = std::all_of(windows_.begin(), windows_.begin() + length_,
                                  [&](const std::deque<double>& window) { return window.size() == own_.params.window; });
    if (steps_ > 0 && steps_ % own_.params.every == 0 && warm) choose(captured_batch(batch.requests));
    return length_;
  }
  [[nodiscard]] int longest() const override { return longest_; }
  [[nodiscard]] std::vector<int> lengths() const override {
    std::vector<int> all;
    for (const auto& [from, lengths] : own_.candidates) all.insert(all.end(), lengths.begin(), lengths.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  void observe(const StepRounds& rounds) override {
    if (rounds.verified.empty()) return;  // the first step of a batch, before which nothing was drafted
    for (std::size_t at = 0; at < std::min(rounds.accepted.size(), static_cast<std::size_t>(length_)); ++at) {
      std::deque<double>& window = windows_[at];
      if (window.size() == own_.params.window) window.pop_front();
      window.push_back(static_cast<double>(rounds.accepted[at]) / rounds.verified[0]);
    }
    ++steps_;
  }

 private:
  void choose(std::uint32_t batch) {
    const std::vector<int>& lengths = std::prev(own_.candidates.upper_bound(batch))->second;
    int best = length_;
    double best_rate = -std::numeric_limits<double>::infinity();
    for (const int length : lengths) {
      const double rate = expected_tokens(length) / step_seconds(batch, length);
      if (rate > best_rate) {
        best = length;
        best_rate = rate;
      }
    }
    for (auto position = static_cast<std::size_t>(best); best < length_ && position < windows_.size(); ++position)
      windows_[position].clear();
    length_ = best;
  }
  // 1 and the shares of sequences that accept each position: the mean of its window. If nothing was drafted there, the rates
  // before it are continued geometrically.
  [[nodiscard]] double expected_tokens(int length) const {
    std::vector<double> rates;
    for (std::size_t at = 0; at < static_cast<std::size_t>(length); ++at) {
      const std::deque<double>& window = windows_[at];
      if (!window.empty()) {
        rates.push_back(std::accumulate(window.begin(), window.end(), 0.0) / static_cast<double>(window.size()));
      } else if (rates.size() == 1 || rates.front() <= 0.0) {
        rates.push_back(rates.size() == 1 ? rates.front() : 0.0);
      } else {
        const double fall = std::pow(rates.back() / rates.front(), 1.0 / static_cast<double>(rates.size() - 1));
        rates.push_back(std::min(rates.back(), rates.back() * fall));
      }
    }
    return std::accumulate(rates.begin(), rates.end(), 1.0);
  }
  // Step times as measured when the server started, at a fixed context; batches beyond the largest timed one take its time.
  double step_seconds(std::uint32_t batch, int length) {
    const std::uint32_t priced = std::min(batch, own_.params.largest_batch);
    const auto [found, is_new] = seconds_of_.try_emplace({priced, length}, 0.0);
    if (is_new) found->second = seconds_({priced, 0, priced * own_.params.context}, length);
    return found->second;
  }

  Setting own_;
  StepSeconds seconds_;
  int longest_ = 0;
  int length_ = 0;
  int steps_ = 0;                                               // with drafts
  std::vector<std::deque<double>> windows_;                     // [position]: shares of the newest steps
  std::map<std::pair<std::uint32_t, int>, double> seconds_of_;  // [batch, draft length]
};

PolicyMaker read_throughput_aware(const config::Arguments& arguments, Diagnostics& diagnostics) {
  Setting own{throughput_fields().read(arguments), {}, 0};
  const auto wrong = [&](const std::string& what) -> PolicyMaker {
    diagnostics.add(arguments.where("candidates"), what);
    return nullptr;
  };
  for (const std::vector<double>& row : own.params.candidates) {
    for (const double x : row)
      if (x != std::floor(x)) return wrong(fmt::format("candidates holds {:g}, allowed: whole numbers", x));
    if (row.size() < 2) return wrong("a row of candidates has no draft length, allowed: [smallest batch, draft lengths]");
    const auto from = static_cast<std::uint32_t>(row.front());
    const std::uint32_t before = own.candidates.empty() ? 0 : own.candidates.rbegin()->first;
    if (own.candidates.empty() ? from != 1 : from <= before)
      return wrong(
          fmt::format("a row of candidates starts at batch {}, allowed: {}", from,
                      own.candidates.empty() ? "1, for the first" : fmt::format("above {}, that of the row before", before)));
    std::vector<int>& lengths = own.candidates[from];
    for (std::size_t i = 1; i < row.size(); ++i) {
      if (row[i] > kMaxDraftLength || row[i] <= (lengths.empty() ? 0 : lengths.back()))
        return wrong(
            fmt::format("candidates has the draft length {:g}, allowed: increasing ones in [1, {}]", row[i], kMaxDraftLength));
      lengths.push_back(static_cast<int>(row[i]));
    }
  }
  if (own.candidates.empty()) return wrong("candidates is empty, allowed: [[1, 1, 3, 5, 7], [8, 1, 3, 5], ...]");
  const std::vector<int>& single = own.candidates.begin()->second;
  own.first = own.params.first.value_or(0);
  const bool listed = std::any_of(own.candidates.begin(), own.candidates.end(), [&](const auto& row) {
    return std::find(row.second.begin(), row.second.end(), own.first) != row.second.end();
  });
  if (!listed) own.first = single[single.size() / 2];
  return [own = std::move(own)](const PolicySetting& server) { return std::make_unique<ThroughputAware>(own, server); };
}

}  // namespace

ServerPolicyEntry throughput_aware_policy() {
  return {
      {"throughput_aware",
       "one draft length for the batch, from a few candidates: the one with the most expected tokens per second, by steps "
       "timed at the start",
       "SGLang, sgl-project/sglang, python/sglang/srt/speculative/throughput_aware_controller.py (strategy throughput_aware), "
       "commit 088c5ab",
       throughput_fields(),
       "A position's rate is the share of a step's sequences that accept it, averaged over a window shared by all batches; "
       "beyond the drafted positions the rates continue geometrically. A choice waits until every drafted position has a full "
       "window, and a shorter length empties the windows after it. It always drafts at least one token. Batches count as the "
       "captured graph that they are padded to.",
       "candidates: [[1, 1, 3], [16, 1]]"},
      read_throughput_aware,
      "first"};
}

}  // namespace specsim::serve
