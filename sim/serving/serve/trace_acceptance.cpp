#include "sim/foundation/base/text_file.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/families/acceptance_record.h"
#include "sim/serving/serve/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace specsim::serve {

namespace {

using families::AcceptanceRecord;
using families::RecordForm;

// How many drafts a round after each output token accepts, as recorded.
class PrefixAcceptance final : public Acceptance {
 public:
  explicit PrefixAcceptance(const RecordedPrefixes& recorded) : prefixes_(recorded.prefixes), longest_(recorded.longest) {
    // Expected tokens of a round: from a walk through each record at each length.
    tokens_.assign(static_cast<std::size_t>(longest_) + 1, 1.0);
    double count = 0.0;
    for (const std::uint32_t accepted : recorded.rounds) {
      count += 1.0;
      for (std::uint32_t length = 1; length < tokens_.size(); ++length) tokens_[length] += std::min(accepted, length);
    }
    for (std::size_t length = 1; length < tokens_.size(); ++length)
      tokens_[length] = count > 0.0 ? 1.0 + (tokens_[length] - 1.0) / count : 1.0;
  }
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const std::vector<std::uint8_t>& own = prefixes_[request % prefixes_.size()];
    return std::min<std::uint32_t>(own[(emitted - 1) % own.size()], drafted);
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    return tokens_[static_cast<std::size_t>(std::clamp(draft_length, 0, longest_))];
  }
  [[nodiscard]] bool offers(int draft_length) const override { return draft_length <= longest_; }

 private:
  std::vector<std::vector<std::uint8_t>> prefixes_;  // [record][output tokens after the first]
  int longest_;
  std::vector<double> tokens_;  // [draft length]
};

using Overlaps = std::vector<std::vector<double>>;  // [record][output position]

// Rounds whose drafts' probabilities are known: those of a perfect head.
class OverlapRounds final : public Rounds {
 public:
  OverlapRounds(const Acceptance& acceptance, const Overlaps& overlaps) : acceptance_(&acceptance), overlaps_(&overlaps) {}
  std::span<const draft::LengthPolicy::TokenForecast> forecasts(arrivals::RequestId request, std::uint32_t emitted,
                                                                std::uint32_t drafted) override {
    const std::vector<double>& own = (*overlaps_)[request % overlaps_->size()];
    std::vector<draft::LengthPolicy::TokenForecast>& forecasts = forecasts_[request];
    forecasts.resize(drafted);
    for (std::uint32_t place = 0; place < drafted; ++place) forecasts[place].overlap = own[(emitted + place) % own.size()];
    return forecasts;
  }
  std::uint32_t play(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t verified) override {
    return verified > 0 ? acceptance_->accepted(request, emitted, verified) : 0;
  }
  void forget(arrivals::RequestId request) override { forecasts_.erase(request); }

 private:
  const Acceptance* acceptance_;
  const Overlaps* overlaps_;
  std::unordered_map<arrivals::RequestId, std::vector<draft::LengthPolicy::TokenForecast>> forecasts_;
};

// The draft for an output position is accepted, once it is reached, with the probability that was recorded there.
class OverlapAcceptance final : public Acceptance {
 public:
  OverlapAcceptance(Overlaps overlaps, rng::Key key) : overlaps_(std::move(overlaps)), key_(key) {}
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const std::vector<double>& own = overlaps_[request % overlaps_.size()];
    std::uint32_t place = 0;
    for (; place < drafted; ++place) {
      const std::uint32_t position = emitted + place;
      const rng::Block block =
          rng::philox4x32_10({rng::counter_word0(rng::Purpose::draft_accept, 0), position, request, 0}, key_);
      if (!(0x1.0p-32 * block[0] < own[position % own.size()])) break;
    }
    return place;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double tokens = 0.0;
    double count = 0.0;
    for (const std::vector<double>& own : overlaps_)
      for (std::size_t at = 0; at < own.size(); ++at) {
        double reached = 1.0;
        for (int place = 0; place < draft_length; ++place)
          tokens += reached *= own[(at + static_cast<std::size_t>(place)) % own.size()];
        count += 1.0;
      }
    return 1.0 + tokens / count;
  }
  [[nodiscard]] bool knows(draft::Confidence confidence) const override { return confidence != draft::Confidence::estimate; }
  [[nodiscard]] std::unique_ptr<Rounds> rounds() const override { return std::make_unique<OverlapRounds>(*this, overlaps_); }

 private:
  Overlaps overlaps_;
  rng::Key key_;
};

}  // namespace

std::optional<StatedAcceptance> read_recorded_acceptance(const config::Value& file, const std::string& kind,
                                                         Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const std::vector<AcceptanceRecord> records =
      families::read_acceptance_records(file_next_to(file.where, file.text), file.where, kind,
                                        {RecordForm::accepted, RecordForm::rounds, RecordForm::overlap}, diagnostics);
  if (diagnostics.list().size() != before) return std::nullopt;
  if (records.front().form == RecordForm::overlap) {
    std::vector<std::vector<double>> overlaps;
    for (const AcceptanceRecord& one : records)
      if (!one.overlap.empty()) overlaps.push_back(one.overlap);
    if (!overlaps.empty()) return RecordedOverlaps{std::move(overlaps)};
  }
  RecordedPrefixes recorded;
  for (const AcceptanceRecord& one : records) {
    std::vector<std::uint8_t> own;
    if (one.form == RecordForm::accepted) {
      // Only places after the first token count, and none that the record's end could have cut.
      for (std::size_t at = 1; at + static_cast<std::size_t>(one.draft_length) < one.accepted.size(); ++at)
        own.push_back(static_cast<std::uint8_t>(one.accepted[at]));
      for (const int accepted : families::walked_rounds(one, one.draft_length))
        recorded.rounds.push_back(static_cast<std::uint32_t>(accepted));
    } else {
      for (const int accepted : one.accepted) {
        for (int rest = accepted; rest >= 0; --rest) own.push_back(static_cast<std::uint8_t>(rest));
        recorded.rounds.push_back(static_cast<std::uint32_t>(accepted));
      }
    }
    recorded.longest = recorded.longest == 0 ? one.draft_length : std::min(recorded.longest, one.draft_length);
    if (!own.empty()) recorded.prefixes.push_back(std::move(own));
  }
  if (recorded.prefixes.empty()) {
    diagnostics.add(file.where, fmt::format("no record of {} is long enough for a round of {} tokens, allowed: longer records",
                                            file.text, recorded.longest));
    return std::nullopt;
  }
  return recorded;
}

std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedPrefixes& recorded) {
  return std::make_unique<PrefixAcceptance>(recorded);
}

std::unique_ptr<Acceptance> make_recorded_acceptance(const RecordedOverlaps& recorded, rng::Key key) {
  return std::make_unique<OverlapAcceptance>(recorded.overlaps, key);
}

}  // namespace specsim::serve
