// From logits to tokens: the kernels compared with the CPU's distributions, draws and verifiers, outcome by outcome.
#include "sim/foundation/math/ratio_table.h"
#include "sim/foundation/math/scan.h"
#include "sim/foundation/math/simplex.h"
#include "sim/lab/cuda/rounds.h"
#include "sim/rounds/verify/verifier.h"
#include "tests/cuda/random_numbers.h"
#include "tests/cuda/twins.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <span>
#include <stdexcept>

namespace specsim::distributions_test {

using namespace specsim::cuda;
using namespace specsim::tests;

namespace {

struct Distributions {
  std::vector<double> distributions;
  std::vector<double> scans;
};

Distributions distributions_of(Device& device, const std::vector<float>& logits, unsigned vocab, const math::Sampling& sampling) {
  const std::size_t rows = logits.size() / vocab;
  const Buffer<float> d_logits(device, logits);
  const Buffer<double> distributions(device, logits.size());
  const Buffer<double> scans(device, rows * scans_of(vocab));
  DistributionMaker(device, vocab, rows, sampling)
      .enqueue(d_logits.data(), static_cast<unsigned>(rows), distributions.data(), scans.data());
  return {distributions.download(), scans.download()};
}

// Whether the distributions of three rows equal the CPU's. The last row has many equal logits: the same tokens must remain.
bool distributions_are_right(Device& device, unsigned vocab, const math::Sampling& sampling) {
  std::vector<float> logits = numbers(3 * std::size_t{vocab}, 21);
  for (float& x : logits) x *= 8.0F;
  for (std::size_t x = 0; x < vocab; ++x) logits[2 * vocab + x] = std::round(logits[2 * vocab + x]);
  const Distributions out = distributions_of(device, logits, vocab, sampling);
  bool right = true;
  for (std::size_t r = 0; r < 3; ++r) {
    std::vector<double> distribution(logits.begin() + static_cast<std::ptrdiff_t>(r * vocab),
                                     logits.begin() + static_cast<std::ptrdiff_t>((r + 1) * vocab));
    math::softmax(distribution);
    math::apply_sampling(distribution, sampling);
    double error = 0.0;
    for (std::size_t x = 0; x < vocab; ++x) {
      error += std::abs(distribution[x] - out.distributions[r * vocab + x]);
      right = right && (distribution[x] > 0.0) == (out.distributions[r * vocab + x] > 0.0);
    }
    math::ScanSums sums;
    sums.sum(std::span(out.distributions).subspan(r * vocab, vocab));
    double total = 0.0;
    for (unsigned b = 0; b < scans_of(vocab); ++b) total += out.scans[r * scans_of(vocab) + b];
    right = right && error < 1e-5 && total == sums.total();
  }
  return right;
}

// State of a sequence: drafted tokens after a text of `length` + 1 tokens.
struct State {
  std::vector<std::uint32_t> text;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> rounds;
  std::vector<std::uint64_t> ids;
  std::uint64_t key = 0;
};
struct OnDevice {
  Buffer<std::uint32_t> text;
  Buffer<std::uint32_t> lengths;
  Buffer<std::uint32_t> rounds;
  Buffer<std::uint64_t> ids;
  Sequences sequences;
  OnDevice(Device& device, const State& s)
      : text(device, s.text), lengths(device, s.lengths), rounds(device, s.rounds), ids(device, s.ids) {
    sequences = {text.data(), s.text.size() / s.lengths.size(), lengths.data(), rounds.data(), ids.data(), s.key};
  }
};

std::uint64_t packed(rng::Key key) { return key.low | std::uint64_t{key.high} << 32; }
rng::BitsPair words(std::uint64_t key, rng::Purpose purpose, std::uint32_t position, std::uint32_t round, std::uint64_t id) {
  return rng::philox_bits(
      {rng::counter_word0(purpose, position), round, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32)},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
}

Token cpu_pick(const std::vector<double>& weights, std::uint64_t word) {
  math::ScanSums sums;
  sums.sum(weights);
  return sums.pick(weights, rng::to_unit(word));
}

// A random distribution with many near-zero tokens; `sharpness` 0 is uniform.
std::vector<double> random_distribution(unsigned vocab, std::uint64_t seed, float sharpness) {
  std::vector<double> distribution;
  for (const float x : numbers(vocab, seed)) distribution.push_back(static_cast<double>(sharpness * x));
  math::softmax(distribution);
  return distribution;
}

// Distributions and uniforms at fixed places, for the CPU's rule of blocks.
class ChainBlock final : public verify::Block {
 public:
  ChainBlock(const std::vector<std::vector<double>>& target, const std::vector<std::vector<double>>& drafted,
             const std::vector<std::uint32_t>& drafts, const State& state) {
    chain_.nodes.clear();
    const auto length = static_cast<int>(drafts.size());
    for (int i = 0; i <= length; ++i) {
      tokens::Tree::Node node;
      node.parent = i - 1;
      node.depth = i;
      node.first_child = i + 1;
      node.children = i < length ? 1 : 0;
      chain_.nodes.push_back(node);
    }
    tree_ = &chain_;
    nodes_.resize(static_cast<std::size_t>(length) + 1);
    for (int i = 0; i <= length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      tables_.emplace_back(target[at], at < drafted.size() ? drafted[at] : target[at], scratch_);  // the last has no draft
      if (i > 0) {
        nodes_[at].token = drafts[at - 1];
        nodes_[at].u = rng::to_unit(
            words(state.key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(i - 1), state.rounds[0], state.ids[0])
                .second);
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].distributions = &tables_[i];
      nodes_[i].children = chain_.nodes[i].children;
    }
  }
  Token choose(int /*node*/, const verify::Pickable& distribution) override { return distribution.pick(0); }
  Token pick(int /*node*/, const verify::Pickable& distribution) override { return distribution.pick(0); }

 protected:
  void draw(int /*node*/, Node& /*own*/) override {}
  void place(int /*node*/, Node& /*own*/) override {}
  bool stops(int /*node*/) override { return false; }
  bool decide(int node, verify::Odds odds) override { return verify::accepts(nodes_[static_cast<std::size_t>(node)].u, odds); }

 private:
  tokens::Tree chain_;
  math::AliasScratch scratch_;
  std::vector<math::RatioTable> tables_;
};

struct Outcome {
  std::uint32_t accepted = 0;
  std::uint32_t final_token = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome on_device(Device& device, const std::vector<std::vector<double>>& target, const std::vector<std::vector<double>>& drafted,
                  const State& state, AcceptanceRule rule) {
  const auto vocab = static_cast<unsigned>(target[0].size());
  const auto join = [](const std::vector<std::vector<double>>& distributions) {
    std::vector<double> all;
    for (const auto& distribution : distributions) all.insert(all.end(), distribution.begin(), distribution.end());
    return all;
  };
  const Buffer<double> d_target(device, join(target));
  const Buffer<double> d_drafted(device, join(drafted));
  const OnDevice own(device, state);
  const Buffer<std::uint32_t> accepted(device, 1);
  const Buffer<double> sums(device, (drafted.size() + 1) * scans_of(vocab));
  const Trial trial{.target = d_target.data(),
                    .drafted = d_drafted.data(),
                    .vocab = vocab,
                    .draft_length = static_cast<unsigned>(drafted.size()),
                    .rule = rule,
                    .sequences = own.sequences,
                    .count = 1};
  device.launch(ResidualSums{.trial = trial, .sums = sums.data()});
  device.launch(Accept{.trial = trial, .sums = sums.data(), .accepted = accepted.data()});
  const std::uint32_t count = accepted.download()[0];
  if (own.lengths.download()[0] != state.lengths[0] + count + 1 || own.rounds.download()[0] != state.rounds[0] + 1)
    throw std::runtime_error("the sequence did not move on");
  return {count, own.text.download()[state.lengths[0] + 1 + count]};
}

std::unique_ptr<verify::PositionRule> position_rule(const std::string& name) {
  Diagnostics diagnostics;
  const verify::VerifierEntry& entry = *verify::verifiers().find(name);
  return entry.make(config::read_arguments({}, entry.info.parameters, {}, name, diagnostics));
}

Outcome on_cpu(const std::vector<std::vector<double>>& target, const std::vector<std::vector<double>>& drafted,
               const std::vector<std::uint32_t>& drafts, const State& state, AcceptanceRule rule) {
  const std::uint64_t id = state.ids[0];
  const std::uint32_t round = state.rounds[0];
  const auto final_bits = [&](std::uint32_t position) {
    return words(state.key, rng::Purpose::final_token, position, round, id).first;
  };
  std::vector<double> weights(target[0].size());
  if (rule == AcceptanceRule::block) {
    ChainBlock block(target, drafted, drafts, state);
    Diagnostics diagnostics;
    const verify::VerifierEntry& entry = *verify::verifiers().find("block");
    const auto accepted = static_cast<std::size_t>(
        entry.make_block(config::read_arguments({}, entry.info.parameters, {}, "block", diagnostics))->verify(block).node);
    double stays = 1.0;
    for (std::size_t i = 0; i < accepted; ++i) stays = std::min(1.0, stays * target[i][drafts[i]] / drafted[i][drafts[i]]);
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = accepted == drafts.size() ? target[accepted][x]
                                             : std::max(target[accepted][x] - 1.0 / stays * drafted[accepted][x], 0.0);
    return {static_cast<std::uint32_t>(accepted), cpu_pick(weights, final_bits(static_cast<std::uint32_t>(accepted)))};
  }
  const auto judge = position_rule(rule == AcceptanceRule::token ? "token" : "greedy");
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const verify::PositionDistributions distributions{target[i], drafted[i], drafted[i]};
    const std::uint64_t word = words(state.key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(i), round, id).second;
    if (verify::accepts(rng::to_unit(word), judge->odds(distributions, drafts[i]))) continue;
    judge->rejected(distributions, weights);
    return {static_cast<std::uint32_t>(i), cpu_pick(weights, final_bits(0))};
  }
  judge->bonus(target.back(), weights);
  return {static_cast<std::uint32_t>(drafts.size()), cpu_pick(weights, final_bits(0))};
}

}  // namespace

TEST_CASE("cuda: distributions with temperature, top-k, top-p and min-p are the CPU's") {
  const auto device = test_device();
  const auto backwards = test_device(Order::descending);
  for (const unsigned vocab : {50U, 5003U})
    for (const math::Sampling& sampling : {math::Sampling{},
                                           {.temperature = 0.6},
                                           {.temperature = 0.0},
                                           {.top_k = 7},
                                           {.top_k = 1},
                                           {.top_p = 0.9},
                                           {.temperature = 0.8, .top_k = 20, .top_p = 0.7},
                                           {.top_k = static_cast<int>(vocab)},
                                           {.top_k = static_cast<int>(vocab) - 3, .top_p = 0.999},
                                           {.top_k = static_cast<int>(vocab) / 2},
                                           {.top_p = 1e-6},
                                           {.min_p = 0.02},
                                           {.temperature = 0.02, .top_k = 40, .top_p = 0.88, .min_p = 0.2},
                                           {.temperature = 2.0, .top_p = 0.6, .min_p = 0.01}}) {
      CAPTURE(vocab, sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
      CHECK(distributions_are_right(*device, vocab, sampling));
      CHECK(distributions_are_right(*backwards, vocab, sampling));
    }
  for (const Order order : {Order::ascending, Order::descending})  // as large as real vocabularies
    CHECK(distributions_are_right(*test_device(order), 128256, {.temperature = 0.1, .top_k = 50, .top_p = 0.92}));
}

TEST_CASE("cuda: top-p keeps the token that reaches the share, and no more") {
  const auto kept = [](Device& device, double top_p) {
    const Distributions out = distributions_of(device, std::vector<float>(8, 3.0F), 8, {.top_p = top_p});
    return std::count_if(out.distributions.begin(), out.distributions.end(), [](double p) { return p > 0.0; });
  };
  const auto device = test_device();
  CHECK(kept(*device, 0.5) == 4);
  CHECK(kept(*device, 0.5 + 1e-9) == 5);
  CHECK(kept(*device, 0.0) == 1);
  CHECK(kept(*device, 1.0 - 1e-12) == 8);
  check_rejects({mutant<NarrowCut>("goes on at the share", [](NarrowCut& k) { k.cut.top_p = k.cut.top_p * (1.0 + 1e-9); }),
                 mutant<DistributionWeights>("masses are counted as tokens", [](DistributionWeights& k) { k.next.top_k = 1; })},
                [&](Device& twin) { return kept(twin, 0.5) == 4; });
}

TEST_CASE("cuda: mutants of distributions and cuts are seen") {
  std::vector<double> others(4096);
  const unsigned vocab = 5003;
  const auto reject = [&](const math::Sampling& sampling, const std::vector<Mutant>& mutants) {
    CAPTURE(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
    check_rejects(mutants, [&](Device& device) { return distributions_are_right(device, vocab, sampling); });
  };
  // Runs kernels of a kind on rows from the last token to the first.
  const auto from_the_end = [](Kernel& kernel, const std::function<void()>& run) {
    CutDistribution* const cut = std::get_if<CutDistribution>(&kernel);
    const auto turn = [&] {
      for (unsigned r = 0; cut != nullptr && r < cut->count; ++r)
        std::reverse(cut->distributions + r * cut->vocab, cut->distributions + (r + 1) * cut->vocab);
    };
    turn();
    run();
    turn();
  };
  // Among equal logits of a slice, the last one.
  const auto last_peak = [](Kernel& kernel, const std::function<void()>& run) {
    run();
    const SlicePeaks* const own = std::get_if<SlicePeaks>(&kernel);
    for (unsigned i = 0; own != nullptr && i < own->count * slices_of(own->vocab); ++i) {
      const float* const row = own->logits + i / slices_of(own->vocab) * own->vocab;
      const unsigned begin = i % slices_of(own->vocab) * kSlice;
      for (unsigned x = begin; x < std::min(begin + kSlice, own->vocab); ++x)
        if (row[x] == own->peaks[i].value) own->peaks[i].token = x;
    }
  };
  reject({.temperature = 0.6},
         {mutant<DistributionWeights>("no temperature", [](DistributionWeights& k) { k.temperature = 1.0F; }),
          mutant<DistributionWeights>("the next row's logits",
                                      [](DistributionWeights& k) {
                                        k.logits += k.count > 1 ? k.vocab : 0;
                                        --k.count;
                                      }),
          mutant<DistributionWeights>("the last token is missing", [](DistributionWeights& k) { --k.vocab; }),
          mutant<NormaliseDistribution>("the sum of a slice is missing", [](NormaliseDistribution& k) { ++k.slice_sums; }),
          mutant<NormaliseDistribution>("sums for draws that lie a block late",
                                        [](NormaliseDistribution& k) {
                                          ++k.scan_sums;
                                          --k.count;
                                        }),
          mutant<NormaliseDistribution>("the last row is missing", [](NormaliseDistribution& k) { --k.count; })});
  reject({.temperature = 0.0},
         {mutant<DistributionWeights>("temperature 1 for 0", [](DistributionWeights& k) { k.temperature = 1.0F; }),
          {"of equals the last", last_peak}});
  reject({.top_k = 2500}, {mutant<NarrowCut>("a token too many", [](NarrowCut& k) { ++k.cut.top_k; }),
                           mutant<NarrowCut>("a token too few", [](NarrowCut& k) { k.cut.top_k -= k.level == 1 ? 1 : 0; }),
                           mutant<NarrowCut>("ten bits twice", [](NarrowCut& k) { k.level = 1; }),
                           mutant<NarrowCut>("counts of the next row",
                                             [](NarrowCut& k) {
                                               k.distributions += k.vocab;
                                               --k.count;
                                             }),
                           mutant<SlicePeaks>("counts of the distribution before stay", [](SlicePeaks& k) { k.zeros_size /= 2; }),
                           mutant<CutDistribution>("masses are counted as tokens", [](CutDistribution& k) { k.cut.top_k = 0; }),
                           mutant<CutDistribution>("the distribution is divided by its sum before the cut",
                                                   [&](CutDistribution& k) { k.slice_sums = others.data(); }),
                           {"of equals the higher tokens stay", from_the_end}});
  reject({.top_p = 0.7},
         {mutant<NarrowCut>("a larger share", [](NarrowCut& k) { k.cut.top_p = 0.701; }),
          mutant<DistributionWeights>("tokens are counted as masses", [](DistributionWeights& k) { k.next.top_k = 1; }),
          {"of equals the higher tokens stay", from_the_end}});
  reject({.temperature = 0.02, .top_k = 40, .top_p = 0.88, .min_p = 0.2},
         {mutant<CutDistribution>("no min-p", [](CutDistribution& k) { k.min_p = 0.0; }),
          mutant<CutDistribution>("min-p before top-p", [](CutDistribution& k) { k.min_p = 0.2; }),
          mutant<CutDistribution>("top-p of the distribution before top-k", [](CutDistribution& k) { k.next = {}; })});
  reject({.min_p = 0.02}, {mutant<DistributionWeights>("min-p of the mass", [](DistributionWeights& k) { k.min_p = 0.03; })});
}

namespace {

bool draws_are_right(Device& device) {
  bool right = true;
  for (const unsigned vocab : {7U, 512U, 1030U, 5003U}) {
    const unsigned batch = 12;
    std::vector<float> logits = numbers(std::size_t{batch} * vocab, 22);
    for (float& x : logits) x *= 6.0F;
    const Distributions distributions =
        distributions_of(device, logits, vocab, {.temperature = 0.7, .top_k = static_cast<int>(vocab / 2)});
    State state;
    state.key = packed(rng::make_key(3, 4));
    const std::size_t stride = 16;
    state.text.assign(batch * stride, 0xFFFFFFFF);
    for (unsigned s = 0; s < batch; ++s) {
      state.lengths.push_back(s);
      state.rounds.push_back(100 + s);
      state.ids.push_back((std::uint64_t{s} << 40) + s);
    }
    const OnDevice own(device, state);
    const Buffer<double> d_distributions(device, distributions.distributions);
    const Buffer<double> d_scans(device, distributions.scans);
    device.launch(DrawDraft{.distributions = d_distributions.data(),
                            .distribution_stride = vocab,
                            .scan_sums = d_scans.data(),
                            .vocab = vocab,
                            .index = 2,
                            .sequences = own.sequences,
                            .count = batch});
    const std::vector<std::uint32_t> text = own.text.download();
    for (unsigned s = 0; s < batch; ++s) {
      const auto own_distribution = std::span(distributions.distributions).subspan(std::size_t{s} * vocab, vocab);
      const std::vector<double> distribution(own_distribution.begin(), own_distribution.end());
      right = right &&
              text[s * stride + state.lengths[s] + 3] ==
                  cpu_pick(distribution, words(state.key, rng::Purpose::draft_accept, 2, state.rounds[s], state.ids[s]).first);
    }
  }
  return right;
}

}  // namespace

TEST_CASE("cuda: draws are those of math::ScanSums at the same addresses") {
  CHECK(draws_are_right(*test_device()));
  CHECK(draws_are_right(*test_device(Order::descending)));
  std::vector<std::uint32_t> zeros(12, 0);
  const std::vector<std::uint64_t> no_ids(12, 0);
  check_rejects({mutant<DrawDraft>("the uniform of another draft", [](DrawDraft& k) { ++k.index; }),
                 mutant<DrawDraft>("the uniform of another round", [&](DrawDraft& k) { k.sequences.rounds = zeros.data(); }),
                 mutant<DrawDraft>("the same uniforms for all sequences", [&](DrawDraft& k) { k.sequences.ids = no_ids.data(); }),
                 mutant<DrawDraft>("half of the key", [](DrawDraft& k) { k.sequences.key &= 0xFFFFFFFFU; }),
                 mutant<DrawDraft>("the distribution of the sequence before", [](DrawDraft& k) { k.distribution_stride = 0; }),
                 mutant<DrawDraft>("the last token is missing", [](DrawDraft& k) { --k.vocab; }),
                 mutant<DrawDraft>("sums of a later block",
                                   [](DrawDraft& k) {
                                     ++k.scan_sums;
                                     --k.count;
                                   }),
                 mutant<DrawDraft>("the last sequence is missing", [](DrawDraft& k) { --k.count; }),
                 mutant<DrawDraft>("texts overlap", [](DrawDraft& k) { --k.sequences.text_stride; })},
                draws_are_right);
}

namespace {

// `seen`: counts by number of accepted tokens.
bool acceptance_is_right(Device& device, AcceptanceRule rule, std::vector<int>& seen) {
  bool right = true;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const unsigned vocab = trial % 12 == 0 ? 2600 : trial % 3 == 0 ? 600 : 9;
    const std::size_t draft_length = trial % 5;
    std::vector<std::vector<double>> target;
    std::vector<std::vector<double>> drafted;
    State state;
    state.key = packed(rng::make_key(trial, 9));
    state.lengths = {3};
    state.rounds = {static_cast<std::uint32_t>(trial)};
    state.ids = {trial * 77};
    state.text.assign(32, 1);
    std::vector<std::uint32_t> drafts;
    for (std::size_t i = 0; i <= draft_length; ++i) {
      target.push_back(random_distribution(vocab, 1000 * trial + 2 * i, 2.0F));
      if (rule == AcceptanceRule::greedy) math::point_mass(target.back(), math::argmax(target.back()));
      if (i == draft_length) break;
      drafted.push_back(random_distribution(vocab, trial % 2 == 0 ? 1000 * trial + 2 * i : 1000 * trial + 2 * i + 1, 1.5F));
      const Token drawn = rule == AcceptanceRule::greedy && trial % 4 != 0
                              ? math::argmax(target.back())
                              : cpu_pick(drafted.back(), words(state.key, rng::Purpose::draft_accept,
                                                               static_cast<std::uint32_t>(i), state.rounds[0], state.ids[0])
                                                             .first);
      drafts.push_back(drawn);
      state.text[4 + i] = drawn;
    }
    const Outcome out = on_device(device, target, drafted, state, rule);
    right = right && out == on_cpu(target, drafted, drafts, state, rule);
    ++seen.at(out.accepted);
  }
  return right;
}

}  // namespace

TEST_CASE("cuda: token, greedy and block acceptance are the CPU's verifiers, outcome for outcome") {
  const std::uint64_t nobody = 0;
  std::vector<double> nothing(std::size_t{5} * 2600, 1e-30);
  for (const AcceptanceRule rule : {AcceptanceRule::token, AcceptanceRule::greedy, AcceptanceRule::block}) {
    CAPTURE(static_cast<unsigned>(rule));
    std::vector<int> seen(6, 0);
    CHECK(acceptance_is_right(*test_device(), rule, seen));
    CHECK(acceptance_is_right(*test_device(Order::descending), rule, seen));
    for (std::size_t accepted = 0; accepted <= 4; ++accepted) CHECK(seen[accepted] > 0);
    std::vector<Mutant> mutants = {mutant<Accept>("the last draft is not judged",
                                                  [](Accept& k) { k.trial.draft_length -= k.trial.draft_length > 0 ? 1 : 0; }),
                                   mutant<Accept>("the last token is missing", [](Accept& k) { --k.trial.vocab; })};
    if (rule != AcceptanceRule::greedy) {  // which ignores uniforms and drafts' distributions
      mutants.push_back(mutant<ResidualSums>("sums of the first slice only",
                                             [](ResidualSums& k) { k.trial.vocab = std::min(k.trial.vocab, kSlice); }));
      mutants.push_back(mutant<Accept>("half of the key", [](Accept& k) { k.trial.sequences.key &= 0xFFFFFFFFU; }));
      mutants.push_back(mutant<Accept>("the uniforms of sequence 0", [&](Accept& k) { k.trial.sequences.ids = &nobody; }));
      mutants.push_back(mutant<Accept>("token for block, block for token", [](Accept& k) {
        k.trial.rule = k.trial.rule == AcceptanceRule::token ? AcceptanceRule::block : AcceptanceRule::token;
      }));
      mutants.push_back(mutant<Accept>("greedy", [](Accept& k) { k.trial.rule = AcceptanceRule::greedy; }));
      mutants.push_back(
          mutant<Accept>("every draft's distribution is the target's", [](Accept& k) { k.trial.drafted = k.trial.target; }));
      mutants.push_back(mutant<Accept>("every draft is accepted", [&](Accept& k) { k.trial.drafted = nothing.data(); }));
      mutants.push_back(
          mutant<ResidualSums>("sums of the target's distribution", [&](ResidualSums& k) { k.trial.drafted = nothing.data(); }));
    }
    check_rejects(mutants, [&](Device& device) { return acceptance_is_right(device, rule, seen); });
  }
}

TEST_CASE("cuda: random weights have the mean and spread that were asked for, and repeat") {
  const auto device = test_device();
  const std::size_t count = 40000;
  const auto fill = [&](std::uint64_t index) {
    const Buffer<Bf16> out(*device, count);
    device->launch(FillRandom{.out = out.data(), .count = count, .deviation = 0.25F, .key = 5, .index = index});
    return as_floats(out.download());
  };
  const std::vector<float> a = fill(0);
  double sum = 0.0;
  double squares = 0.0;
  for (const float x : a) {
    sum += static_cast<double>(x);
    squares += std::pow(static_cast<double>(x), 2);
  }
  const auto n = static_cast<double>(count);
  CHECK(std::abs(sum / n) < 5 * 0.25 / std::sqrt(n));
  CHECK(std::abs(squares / n / 0.0625 - 1.0) < 5 * 0.9 / std::sqrt(n));
  CHECK(fill(0) == a);
  CHECK(fill(1) != a);
}

}  // namespace specsim::distributions_test
