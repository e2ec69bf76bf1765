#include "sim/foundation/base/text_file.h"
#include "sim/foundation/base/wide.h"
#include "sim/rounds/families/acceptance_record.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/families/context_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::families {

namespace {

constexpr std::size_t kMostContexts = 1 << 20;

struct Recording {
  std::vector<AcceptanceRecord> requests;
  std::vector<std::uint32_t> starts;  // first position of each request
  std::size_t positions = 0;
  bool acceptance_only = false;  // a line with overlaps was read
};

// Over two tokens: the one that the recorded text has, and one for all others.
class TokenOfText final : public Distribution {
 public:
  explicit TokenOfText(double probability) : probability_(probability) {}
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    std::fill(distribution.begin(), distribution.end(), 0.0);
    distribution[0] = probability_;
    distribution[1] = 1.0 - probability_;
  }

 private:
  double probability_;
};

class RecordedDistribution final : public Distribution {
 public:
  explicit RecordedDistribution(std::vector<double> distribution) : distribution_(std::move(distribution)) {
    math::normalise(distribution_);
  }
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    std::fill(distribution.begin(), distribution.end(), 0.0);
    std::copy(distribution_.begin(), distribution_.end(), distribution.begin());
  }

 private:
  std::vector<double> distribution_;
};

// Plays the requests one after the other, and starts again with the first after the last.
class TraceProcess final : public ContextProcess {
 public:
  TraceProcess(std::size_t positions, std::vector<std::uint32_t> starts, bool acceptance_only) {
    shape_.acceptance_only = acceptance_only;
    shape_.kind = ContextShape::Kind::trace;
    shape_.contexts = static_cast<int>(positions);
    shape_.starts = std::move(starts);
  }
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i)
      context[i] = shape_.starts[scale_bits(first_bits(key, rng::Purpose::start, first_sequence + i), shape_.starts.size())];
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t*, const Token*,
            std::uint32_t* context) const override {
    const auto contexts = static_cast<std::uint32_t>(shape_.contexts);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t& at = context[lanes[i]];
      at = at + 1 == contexts ? 0 : at + 1;
    }
  }

 private:
  ContextShape shape_;
};

Recording read_recording(const std::string& path, const Location& named, const std::string& kind, Diagnostics& diagnostics) {
  Recording recording;
  const std::size_t before = diagnostics.list().size();
  recording.requests = read_acceptance_records(path, named, kind, {RecordForm::overlap, RecordForm::distributions}, diagnostics);
  for (const AcceptanceRecord& request : recording.requests) {
    recording.starts.push_back(static_cast<std::uint32_t>(recording.positions));
    recording.positions += request.overlap.size() + request.positions.size();
    recording.acceptance_only = request.form == RecordForm::overlap;
  }
  if (diagnostics.list().size() == before && recording.positions > kMostContexts)
    diagnostics.add(named, fmt::format("{} has {} positions, allowed: {}", path, recording.positions, kMostContexts));
  return recording;
}

void add_pair(std::unique_ptr<Distribution> target, std::unique_ptr<Distribution> draft, ContextModel& model) {
  std::vector<std::unique_ptr<Distribution>> drafts;
  drafts.push_back(std::move(draft));
  model.pairs.emplace_back(std::move(target), std::move(drafts), math::Sampling(), math::Sampling());
}

}  // namespace

ContextEntry trace_context() {
  struct P {
    std::string file;
    std::string kind;
  };
  static const config::Fields<P> fields = {
      {"file", &P::file,
       "JSONL, one request per line: {\"overlap\": [...]}, or {\"target\": [DISTRIBUTION, ...], \"draft\": [DISTRIBUTION, ...]}",
       config::required},
      {"kind", &P::kind, "use only requests of this kind"},
  };
  return {
      {"trace", "the contexts of real text in order, as recorded by specsim calibrate", "", fields,
       "pair's distributions are not used. An overlap is the probability that a draft for this position is accepted given the "
       "token that the text has there: target and draft are distributions over that token and one other, and acceptance is that "
       "of the drafter and verifier which were recorded. Recorded distributions also serve other verifiers. But the text "
       "continues as recorded, whatever is emitted, so the effect of an easy token on the tokens after it is lost. A sequence is "
       "a request: it "
       "ends before the first round that the request's end could cut short, so tokens per round are the record's own. A request "
       "with fewer tokens than a round may emit gives no round. `rounds` sets the number of requests, each drawn from the "
       "record."},
      [](const config::Arguments& arguments, ContextBuilder& builder) {
        const P params = fields.read(arguments);
        ContextModel model;
        Diagnostics& diagnostics = builder.diagnostics();
        const std::size_t before = diagnostics.list().size();
        builder.refuse_sampling("trace", "the recorded distributions already include their sampling settings");
        Recording recording =
            read_recording(file_next_to(arguments.where("file"), params.file), arguments.where("file"), params.kind, diagnostics);
        std::size_t vocab = recording.acceptance_only ? 2 : 0;
        for (const AcceptanceRecord& request : recording.requests)
          for (const RecordedPair& pair : request.positions) vocab = std::max(vocab, pair.target.size());
        if (vocab > static_cast<std::size_t>(builder.vocab()))
          diagnostics.add(arguments.where("file"), fmt::format("recorded distributions over {} tokens, allowed by pair.vocab: {}",
                                                               vocab, builder.vocab()));
        if (diagnostics.list().size() != before) return model;
        model.pairs.reserve(recording.positions);
        for (AcceptanceRecord& request : recording.requests) {
          // The target is certain of the emitted token, and the draft gives it the recorded acceptance probability.
          for (const double x : request.overlap)
            add_pair(std::make_unique<TokenOfText>(1.0), std::make_unique<TokenOfText>(x), model);
          for (RecordedPair& pair : request.positions)
            add_pair(std::make_unique<RecordedDistribution>(std::move(pair.target)),
                     std::make_unique<RecordedDistribution>(std::move(pair.draft)), model);
        }
        model.process =
            std::make_unique<TraceProcess>(recording.positions, std::move(recording.starts), recording.acceptance_only);
        return model;
      }};
}

}  // namespace specsim::families
