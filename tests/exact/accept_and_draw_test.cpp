// The two basic draws: the comparison that accepts, and the table that picks.
#include "tests/exact/exact_cells.h"
#include "tests/support/mutants.h"

#include "sim/experiments/audit/bit_space.h"
#include "sim/foundation/math/alias_table.h"
#include "sim/rounds/verify/accept.h"

namespace specsim::accept_and_draw_test {

using namespace specsim::tests;

namespace {

// The share of random numbers that draw each of `size` tokens from a table of `size` columns. `pick` is the draw under test.
std::vector<double> implied_distribution(std::size_t size, const std::function<Token(std::uint64_t)>& pick) {
  std::vector<uint128> counts(size, 0);
  std::vector<std::uint64_t> hints;
  for (const audit::Piece& piece : audit::pieces_of(size, pick, hints)) {
    const Token token = pick(piece.first);
    SPECSIM_CHECK(token < size, "token {} of {}", token, size);
    counts[token] += piece.size();
  }
  std::vector<double> distribution;
  for (const uint128 count : counts) distribution.push_back(static_cast<double>(audit::share(count)));
  return distribution;
}

class OneRound final : public decode::BitSource {
 public:
  OneRound(std::uint64_t draft, std::uint64_t accept, std::uint64_t last) : draft_(draft), accept_(accept), last_(last) {}
  rng::BitsPair at(rng::Purpose, std::uint32_t, std::uint32_t, std::uint64_t) override { return {draft_, accept_}; }
  void batch(rng::Purpose purpose, std::uint32_t, std::uint32_t, std::uint64_t, const std::uint32_t*, std::size_t count,
             std::uint64_t* first, std::uint64_t* second) override {
    const bool last = purpose == rng::Purpose::final_token;
    std::fill_n(first, count, last ? last_ : draft_);
    std::fill_n(second, count, last ? last_ : accept_);
  }

 private:
  std::uint64_t draft_;
  std::uint64_t accept_;
  std::uint64_t last_;
};

// One round of the built-in rule with draft length 1 and these random words.
std::vector<Token> scripted(const spec::Cell& cell, std::uint64_t draft, std::uint64_t accept) {
  const decode::PreparationPlan plan{
      cell.vocab, cell.argmax_draft(), {}, cell.contexts.get(), decode::PositionJudging{cell.chain()->verifier.part.get()}};
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, {}, cell.draft_length(), 1);
  decode::Counts counts = simulator.empty_counts();
  OneRound random_bits(draft, accept, 0);
  Recorder recorder;
  simulator.run_scripted(1, random_bits, counts, &recorder);
  return recorder.text(0);
}

}  // namespace

TEST_CASE("accept: strict and multiplied") {
  CHECK_FALSE(verify::accepts(0.5, {0.25, 0.5}));
  CHECK_FALSE(verify::accepts(0.0, {0.0, 0.5}));
  CHECK_FALSE(verify::accepts(0.0, {0.0, 0.0}));
  CHECK(verify::accepts(std::nextafter(0.5, 0.0), {0.25, 0.5}));
  CHECK(verify::accepts(0x1.fffffffffffffp-1, {0.3, 0.3}));  // equal odds: the largest uniform below 1 too
  CHECK(verify::accepts(0.0, {5e-324, 1.0}));
  CHECK(verify::accept_threshold({0.0, 0.5}) == 0);
  CHECK(verify::accept_threshold({0.0, 0.0}) == 0);
  CHECK(verify::accept_threshold({0.25, 0.5}) == std::uint64_t{1} << 52);
  CHECK(verify::accept_threshold({0.3, 0.3}) == verify::kAcceptAlways);
  CHECK(verify::accept_threshold({0.4, 0.3}) == verify::kAcceptAlways);
  // u * 1e-323 is 0 up to u = 1/4, where it is rounded to even.
  CHECK(verify::accept_threshold({5e-324, 1e-323}) == (std::uint64_t{1} << 51) + 1);
}

TEST_CASE("accept, scripted through the hot loop: (t 1/4, d 1/2, u 1/2) and (t 0, u 0) both reject") {
  const std::uint64_t half = std::uint64_t{1} << 63;
  const spec::Cell quarter = cell_of(explicit_pair({0.25, 0.75}, {0.5, 0.5}), "{process: fixed}", chain(1), "token");
  CHECK(scripted(quarter, 0, half) == std::vector<Token>{1});  // the draft token is 0; the residual holds token 1 alone
  CHECK(scripted(quarter, 0, half - 1).size() == 2);
  CHECK(scripted(quarter, 0, half - 1)[0] == 0);
  const spec::Cell never = cell_of(explicit_pair({0.0, 1.0}, {0.5, 0.5}), "{process: fixed}", chain(1), "token");
  CHECK(scripted(never, 0, 0) == std::vector<Token>{1});
  CHECK(scripted(never, half, ~std::uint64_t{0}) == std::vector<Token>{1, 1});  // target above draft: always accepted
  CHECK(AcceptsTies::accepts(half, verify::accept_threshold({0.25, 0.5})));     // the case that these words must reject
  CHECK(AcceptsTies::accepts(0, verify::accept_threshold({0.0, 0.5})));
}

TEST_CASE("accept_threshold decides as accepts() does, at its boundary and everywhere else") {
  InputNumbers numbers(3);
  const auto unit = [](std::uint64_t m) { return static_cast<double>(m) * 0x1.0p-53; };
  std::size_t wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    verify::Odds odds{numbers.next(), numbers.next()};
    switch (i % 7) {
      case 1:
        odds.target *= std::pow(2.0, -60.0 * numbers.next());
        break;
      case 2:
        odds.draft *= std::pow(2.0, -60.0 * numbers.next());
        break;
      case 3:
        odds = {odds.target * 1e-300, odds.draft * 1e-300};
        break;
      case 4:
        odds.target = std::nextafter(odds.draft, 0.0);
        break;
      case 5:
        odds = {std::ldexp(std::floor(odds.target * 16), -4), std::ldexp(std::floor(odds.draft * 16), -4)};
        break;
      case 6:  // subnormal, down to one digit: stepping down from the quotient would take 2^50 steps
        odds = {std::ldexp(odds.target, -1022 - static_cast<int>(numbers.below(53))),
                std::ldexp(odds.draft, -1022 - static_cast<int>(numbers.below(53)))};
        break;
      default:
        break;
    }
    const std::uint64_t threshold = verify::accept_threshold(odds);
    if (threshold > verify::kAcceptAlways) ++wrong;
    if (threshold > 0 && !verify::accepts(unit(threshold - 1), odds)) ++wrong;
    if (threshold < verify::kAcceptAlways && verify::accepts(unit(threshold), odds)) ++wrong;
    const std::uint64_t bits = numbers.bits();
    if (decode::ShippedBehaviour::accepts(bits, threshold) != verify::accepts(rng::to_unit(bits), odds)) ++wrong;
    for (const std::uint64_t edge : {threshold << 11, (threshold << 11) - 1, (threshold << 11) + 2047})
      if (decode::ShippedBehaviour::accepts(edge, threshold) != verify::accepts(rng::to_unit(edge), odds)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("alias tables imply their weights, and never draw a token of weight zero") {
  InputNumbers numbers(4);
  for (int i = 0; i < 400; ++i) {
    const std::size_t size = i < 300 ? 1 + numbers.below(12) : 1 + numbers.below(300);
    Distribution distribution = numbers.distribution(size, i % 3 == 0 ? 0.0 : 0.5);
    if (i % 5 == 0) distribution[numbers.below(size)] += 1e-18 + 1000.0 * numbers.next();  // any positive sum
    if (i % 7 == 0) distribution[0] = 1e-17;
    const math::AliasTable table(distribution);
    const Distribution implied = implied_distribution(size, [&](std::uint64_t bits) { return table.pick(bits); });
    double sum = 0.0;
    for (const double weight : distribution) sum += weight;
    double largest = 0.0;
    bool zero_drawn = false;
    double total = 0.0;
    for (std::size_t x = 0; x < size; ++x) {
      largest = std::max(largest, std::abs(implied[x] - distribution[x] / sum));
      zero_drawn = zero_drawn || (distribution[x] == 0.0 && implied[x] != 0.0);
      total += implied[x];
    }
    INFO("table " << i << " of " << size);
    CHECK(largest < 1e-13);
    CHECK_FALSE(zero_drawn);
    CHECK(total == Approx(1.0).epsilon(0).margin(1e-14));
  }
}

TEST_CASE("distributions that differ only in the last digit: a rejection without residual still emits a token of the target") {
  double rejected = 0.0;
  for (double draft = 0.3; draft < 0.3 + 4e-16; draft = std::nextafter(draft, 1.0)) {
    const audit::AuditReport report =
        audit::audit_cell(listed_cell({{0.0, 0.3, 0.7}}, {{0.0, draft, 0.7}}, {{0, 0, 0}}, 1, "token"));
    CHECK(report.lossless());
    CHECK(report.impossible == 0.0);
    rejected += report.starts[0].accepted_distribution[0];
  }
  CHECK(rejected > 0.0);
}

TEST_CASE("scripted rounds equal real ones: each lane of a chunk, replayed alone with its own words") {
  class Lane final : public decode::BitSource {
   public:
    Lane(rng::Key key, std::uint32_t sequence, std::uint32_t round) : key_(key), sequence_(sequence), round_(round) {}
    rng::BitsPair at(rng::Purpose purpose, std::uint32_t position, std::uint32_t, std::uint64_t) override {
      return rng::philox_bits({rng::counter_word0(purpose, position), round_, sequence_, 0}, key_);
    }
    void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t, std::uint64_t, const std::uint32_t*, std::size_t,
               std::uint64_t* first, std::uint64_t* second) override {
      if (purpose != rng::Purpose::final_token) {
        const rng::BitsPair own = at(purpose, position, 0, 0);
        *first = own.first;
        *second = own.second;
        return;
      }
      const rng::BitsPair pair = rng::philox_bits({rng::counter_word0(purpose, 0), round_, sequence_ / 2, 0}, key_);
      *first = sequence_ % 2 == 0 ? pair.first : pair.second;
    }

   private:
    rng::Key key_;
    std::uint32_t sequence_;
    std::uint32_t round_;
  };
  const std::string pair =
      "{vocab: 9, target: {family: dirichlet, concentration: 1}, draft: {from: target, transform: logit_noise, value: 1}}";
  for (const char* verifier : {"token", "sample_match"}) {
    for (const char* context :
         {"{process: fixed, sequence_rounds: 1}",
          "{process: by_depth, sequence_rounds: 1, drafts: [{family: uniform}, {family: zipf, exponent: 1}]}",
          "{process: markov, sequence_rounds: 1}"}) {
      const spec::Cell cell = cell_of(pair, context, chain(4), verifier);
      Run run;
      run_chunk(cell, 256, run);
      const decode::PreparationPlan plan = spec::plan_of(cell);
      const decode::Prepared prepared = decode::prepare(plan, {});
      const rng::Key key = spec::draw_key(cell);
      const decode::Simulator simulator(plan, prepared, key, 4, 1);
      decode::Counts silent = simulator.empty_counts();
      simulator.run(0, 256, silent);
      CHECK(silent == run.counts);  // a sink changes nothing
      std::size_t different = 0;
      for (std::uint32_t lane = 0; lane < 256; ++lane) {
        Lane random_bits(key, lane, 0);
        decode::Counts counts = simulator.empty_counts();
        Recorder recorder;
        simulator.run_scripted(1, random_bits, counts, &recorder);
        different += recorder.text(0) == run.rounds.text(lane) &&
                             recorder.lanes[0][0].next_context == run.rounds.lanes[lane][0].next_context
                         ? 0
                         : 1;
      }
      INFO(verifier << ", " << context);
      CHECK(different == 0);
    }
  }
}

}  // namespace specsim::accept_and_draw_test
