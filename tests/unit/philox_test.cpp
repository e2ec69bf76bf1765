// Philox4x32-10, its batches and the addresses of uniforms.
#include "sim/foundation/rng/philox.h"
#include "sim/foundation/rng/address.h"
#include "sim/foundation/rng/philox_instructions.h"
#include "sim/rounds/decode/random_bits.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <boost/random/bernoulli_distribution.hpp>
#include <boost/random/exponential_distribution.hpp>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::philox_test {

using namespace specsim::rng;

namespace {

// Every statistical check below has a fixed seed and the bound 1e-6 on its p-value; |z| < 4.8916 is the same, two-sided.
constexpr double kLevel = 1e-6;
constexpr double kZ = 4.8916;

// z of the mean of n values against a known mean and variance.
template <class Draw>
double z_of_mean(int n, double mean, double variance, Draw&& draw) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += draw();
  return (sum / n - mean) / std::sqrt(variance / n);
}

// A plain generator of test inputs, unrelated to the one under test.
struct Lcg {
  std::uint64_t state;
  std::uint32_t operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state >> 32);
  }
};

// Both words of a block: equal pairs under one key mean equal counters, because Philox is a bijection of counters.
using Words = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

TEST_CASE("Philox4x32-10 gives its published known answers", "[rng]") {
  // kat_vectors of Random123: philox4x32, 10 rounds.
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32_10({ones, ones, ones, ones}, {ones, ones}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a block's two words are its halves, low word first", "[rng]") {
  const BitsPair random_bits = philox_bits({0, 0, 0, 0}, {0, 0});
  CHECK(random_bits.first == 0xe169c58d6627e8d5ULL);
  CHECK(random_bits.second == 0x9b00dbd8bc57ac4cULL);
}

TEST_CASE("a batch equals blocks one at a time, at every size, with and without lanes and rounds", "[rng]") {
  Lcg lcg{1};
  std::vector<std::size_t> sizes(41);
  std::iota(sizes.begin(), sizes.end(), std::size_t{0});
  sizes.insert(sizes.end(), {64, 100, 255, 256, 257});
  constexpr std::uint64_t kUntouched = 0x1234567890abcdefULL;
  for (const std::size_t size : sizes) {
    for (int kind = 0; kind < 8; ++kind) {
      std::vector<std::uint32_t> c1(size);
      std::vector<std::uint32_t> lanes(size);
      std::vector<std::uint32_t> positions(size);
      for (std::uint32_t& x : positions) x = lcg() % 3 == 0 ? lcg() : lcg() % 64;
      for (std::uint32_t& x : c1) x = lcg();
      for (std::uint32_t& x : lanes) x = lcg() % 4 == 0 ? lcg() : lcg() % 256;
      // c2 is near 2^32 in half of the cases: word 2 wraps and must not carry.
      const std::uint32_t c2 = lcg() % 2 == 0 ? 0xffffffffU - lcg() % 64 : lcg();
      CounterBatch batch{
          .c0 = lcg(), .positions = nullptr, .c1_common = lcg(), .c1 = nullptr, .c2 = c2, .lanes = nullptr, .c3 = lcg()};
      if ((kind & 1) != 0) batch.c1 = c1.data();
      if ((kind & 2) != 0) batch.lanes = lanes.data();
      if ((kind & 4) != 0) batch.positions = positions.data();
      const Key key{lcg(), lcg()};
      std::vector<std::uint64_t> first(size + 8, kUntouched);
      std::vector<std::uint64_t> second(size + 8, kUntouched);
      philox_batch(batch, key, size, first.data(), second.data());
      bool equal = true;
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t lane = (kind & 2) != 0 ? lanes[i] : static_cast<std::uint32_t>(i);
        const std::uint32_t c0 = batch.c0 + ((kind & 4) != 0 ? positions[i] : 0);
        const BitsPair one = philox_bits({c0, (kind & 1) != 0 ? c1[i] : batch.c1_common, c2 + lane, batch.c3}, key);
        equal = equal && first[i] == one.first && second[i] == one.second;
      }
      for (std::size_t i = size; i < size + 8; ++i) equal = equal && first[i] == kUntouched && second[i] == kUntouched;
      INFO("size " << size << ", kind " << kind);
      REQUIRE(equal);
    }
  }
}

TEST_CASE("a unit uniform lies in [0, 1) on the grid of 2^-53", "[rng]") {
  CHECK(to_unit(0) == 0.0);
  CHECK(to_unit((1ULL << 11) - 1) == 0.0);
  CHECK(to_unit(1ULL << 11) == 0x1.0p-53);
  CHECK(to_unit(1ULL << 63) == 0.5);
  CHECK(to_unit(~0ULL) == 1.0 - 0x1.0p-53);
  CHECK(to_unit(~0ULL) < 1.0);
  Lcg lcg{2};
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t bits = std::uint64_t{lcg()} << 32 | lcg();
    const double u = to_unit(bits);
    REQUIRE((u >= 0.0 && u < 1.0));
    REQUIRE(static_cast<std::uint64_t>(u * 0x1.0p53) == bits >> 11);
  }
}

TEST_CASE("keys differ over seeds and groups, and neighbours share nothing", "[rng]") {
  // Detects a key that drops half of the seed or of the group, or adds them up: seed + 1 with group - 1 would then collide.
  std::set<std::pair<std::uint32_t, std::uint32_t>> keys;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < 128; ++i) seeds.insert(seeds.end(), {i, i << 32, ~i});
  for (const std::uint64_t seed : seeds) {
    for (std::uint64_t i = 0; i < 128; ++i) {
      for (const std::uint64_t group : {i, i << 32, ~i}) {
        const Key key = make_key(seed, group);
        keys.emplace(key.low, key.high);
      }
    }
  }
  // 0 and 0 << 32 are one value, so 383 different numbers on each side.
  CHECK(keys.size() == 383 * 383);
  // Bits that flip between neighbours are binomial(64, 1/2) each: mean 32, variance 16.
  std::uint64_t at = 0;
  const auto flipped = [&](std::uint64_t seed_step, std::uint64_t group_step) {
    return z_of_mean(4000, 32.0, 16.0, [&] {
      ++at;
      const Key a = make_key(at, at * 7);
      const Key b = make_key(at + seed_step, at * 7 + group_step);
      return static_cast<double>(std::popcount(a.low ^ b.low) + std::popcount(a.high ^ b.high));
    });
  };
  CHECK(std::abs(flipped(1, 0)) < kZ);
  CHECK(std::abs(flipped(0, 1)) < kZ);
  CHECK(std::abs(flipped(1, ~0ULL)) < kZ);
}

TEST_CASE("a text's name is stable and depends on every character", "[rng]") {
  // FNV-1a of "a" is published: af63dc4c8601ec8c; then the finaliser of SplitMix64.
  std::uint64_t h = 0xaf63dc4c8601ec8cULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  CHECK(hash_text("a") == (h ^ (h >> 31)));
  static_assert(hash_text("law") != hash_text("Distribution"));
  std::set<std::uint64_t> names;
  const std::string text = "{vocab: 8, target: {family: zipf, exponent: 1.1}}";
  names.insert(hash_text(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    names.insert(hash_text(other));
    names.insert(hash_text(text.substr(0, i)));
    names.insert(hash_text(text + std::string(i + 1, ' ')));
  }
  CHECK(names.size() == 1 + 3 * text.size());
  CHECK(hash_text(std::string(1, '\0')) != hash_text(""));
  CHECK(hash_text("\xff") != hash_text("\x7f"));
}

TEST_CASE("a stream reads the words of successive blocks at its own address", "[rng]") {
  const Key key = make_key(7, 8);
  const std::uint64_t sequence = 5ULL << 40 | 3;
  Stream stream(key, Purpose::distribution, 65537, sequence);
  for (std::uint32_t index = 0; index < 50; ++index) {
    const BitsPair random_bits = philox_bits({counter_word0(Purpose::distribution, 65537), index, 3, 5U << 8}, key);
    REQUIRE(stream() == random_bits.first);
    REQUIRE(stream() == random_bits.second);
  }
  static_assert(Stream::min() == 0 && Stream::max() == ~0ULL);
  Stream again(key, Purpose::distribution, 65537, sequence);
  Stream other_position(key, Purpose::distribution, 65536, sequence);
  Stream other_sequence(key, Purpose::distribution, 65537, sequence + (1ULL << 32));
  Stream other_purpose(key, Purpose::context, 65537, sequence);
  const std::uint64_t first = again();
  CHECK(first == Stream(key, Purpose::distribution, 65537, sequence)());
  CHECK(first != other_position());
  CHECK(first != other_sequence());
  CHECK(first != other_purpose());
}

TEST_CASE("Boost's distributions on a stream have their means and variances", "[rng][stat]") {
  // Detects words used twice, a wrong range of the generator, and a distribution that takes the low bits for the high ones.
  constexpr int n = 200000;
  const Key key = make_key(20260401, 1);
  Stream stream(key, Purpose::distribution, 0, 0);
  boost::random::uniform_01<double> uniform;
  CHECK(std::abs(z_of_mean(n, 0.5, 1.0 / 12.0, [&] { return uniform(stream); })) < kZ);
  CHECK(std::abs(z_of_mean(n, 1.0 / 12.0, 1.0 / 180.0, [&] { return std::pow(uniform(stream) - 0.5, 2); })) < kZ);
  // Neighbours are independent: E[(U - 1/2)(U' - 1/2)] = 0, variance 1/144.
  CHECK(std::abs(z_of_mean(n, 0.0, 1.0 / 144.0, [&] {
          const double u = uniform(stream) - 0.5;
          return u * (uniform(stream) - 0.5);
        })) < kZ);
  boost::random::normal_distribution<double> normal(1.0, 2.0);
  CHECK(std::abs(z_of_mean(n, 1.0, 4.0, [&] { return normal(stream); })) < kZ);
  CHECK(std::abs(z_of_mean(n, 4.0, 32.0, [&] { return std::pow(normal(stream) - 1.0, 2); })) < kZ);
  for (const double shape : {0.3, 1.0, 2.5, 100.0}) {
    INFO("shape " << shape);
    boost::random::gamma_distribution<double> gamma(shape);
    CHECK(std::abs(z_of_mean(n, shape, shape, [&] { return gamma(stream); })) < kZ);
    // The fourth central moment of a gamma variate is 3 a^2 + 6 a.
    CHECK(std::abs(z_of_mean(n, shape, 2.0 * shape * shape + 6.0 * shape, [&] { return std::pow(gamma(stream) - shape, 2); })) <
          kZ);
  }
  boost::random::exponential_distribution<double> exponential(0.5);
  CHECK(std::abs(z_of_mean(n, 2.0, 4.0, [&] { return exponential(stream); })) < kZ);
  boost::random::bernoulli_distribution<double> coin(0.3);
  CHECK(std::abs(z_of_mean(n, 0.3, 0.21, [&] { return coin(stream) ? 1.0 : 0.0; })) < kZ);
  boost::random::uniform_int_distribution<int> die(0, 6);
  std::vector<double> faces(7, 0.0);
  for (int i = 0; i < 7 * 20000; ++i) faces[static_cast<std::size_t>(die(stream))] += 1.0;
  CHECK(tests::chi_square_p(faces, 20000.0) > kLevel);
}

TEST_CASE("no two purposes, positions, rounds or sequences share an address", "[rng]") {
  // More than a million blocks, read through the same code as in a simulation. Detects a position that runs into the purpose's
  // bits, a sequence that loses its high half, and final tokens that take the block of another sequence.
  const Key key = make_key(20260402, 2);
  std::vector<Words> blocks;
  decode::PhiloxBits random_bits(key);
  std::vector<std::uint32_t> rounds(60);
  std::iota(rounds.begin(), rounds.end(), 0U);
  rounds.insert(rounds.end(), {255, 256, 65535, 65536, 1U << 24, 0xffffffffU});
  const std::vector<std::uint64_t> firsts = {0, 256, 512, 1ULL << 24, (1ULL << 32) - 256, 1ULL << 32, 1ULL << 33, 1ULL << 56};
  std::vector<std::uint32_t> lanes(256);
  std::iota(lanes.begin(), lanes.end(), 0U);
  std::vector<std::uint64_t> a(lanes.size());
  std::vector<std::uint64_t> b(lanes.size());
  for (const std::uint64_t first : firsts) {
    for (const std::uint32_t round : rounds) {
      for (const std::uint32_t position : {0U, 1U, 2U, 3U, 4U, 16U, 32U, 63U}) {
        random_bits.draft_accept(round, position, first, lanes.data(), lanes.size(), a.data(), b.data());
        for (std::size_t i = 0; i < lanes.size(); ++i) blocks.emplace_back(a[i], b[i]);
      }
      random_bits.final_token(round, first, lanes.size(), a.data());
      for (std::size_t i = 0; i < lanes.size(); i += 2) blocks.emplace_back(a[i], a[i + 1]);
    }
  }
  for (const Purpose purpose : {Purpose::context, Purpose::start, Purpose::distribution, Purpose::judge}) {
    for (const std::uint32_t position : {0U, 1U, 2U, 255U, 65536U, 65537U, (1U << 24) - 1}) {
      for (const std::uint64_t sequence : {0ULL, 1ULL, 2ULL, 256ULL, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 63}) {
        Stream stream(key, purpose, position, sequence);
        for (int i = 0; i < 300; ++i) {
          const std::uint64_t first = stream();
          blocks.emplace_back(first, stream());
        }
      }
    }
  }
  REQUIRE(blocks.size() > 1'000'000);
  std::sort(blocks.begin(), blocks.end());
  CHECK(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
}

TEST_CASE("a sequence's words do not depend on the chunk that it is run in", "[rng]") {
  const Key key = make_key(1, 2);
  decode::PhiloxBits random_bits(key);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{256}, (std::uint64_t{1} << 32) - 256}) {
    std::array<std::uint64_t, 256> finals{};
    random_bits.final_token(9, first, 256, finals.data());
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::array<std::uint64_t, 2> two{};
      random_bits.final_token(9, first + i - i % 2, 2, two.data());
      REQUIRE(two[i % 2] == finals[i]);
      const std::uint32_t zero = 0;
      std::uint64_t draft[2];
      std::uint64_t accept[2];
      random_bits.draft_accept(9, 3, first, &i, 1, &draft[0], &accept[0]);
      random_bits.draft_accept(9, 3, first + i, &zero, 1, &draft[1], &accept[1]);
      REQUIRE((draft[0] == draft[1] && accept[0] == accept[1]));
    }
  }
}

TEST_CASE("batches by all instructions: the blocks one at a time", "[rng]") {
  const Key key = make_key(7, 11);
  std::vector<std::uint32_t> lanes;
  std::vector<std::uint32_t> rounds;
  for (std::uint32_t i = 0; i < 64; ++i) {
    lanes.push_back(i * i % 251);
    rounds.push_back(0xFFFFFFF0U + i);
  }
  for (const Instructions instructions : {Instructions::plain, Instructions::avx2, Instructions::avx512}) {
    for (std::size_t count = 0; count <= 40; ++count) {
      for (const bool chosen : {false, true}) {
        // The last sequences before the low half of their number overflows.
        const CounterBatch counters{.c0 = counter_word0(Purpose::draft_accept, 4),
                                    .positions = chosen ? lanes.data() : nullptr,
                                    .c1_common = 9,
                                    .c1 = chosen ? rounds.data() : nullptr,
                                    .c2 = 0xFFFFFF00U,
                                    .lanes = chosen ? lanes.data() : nullptr,
                                    .c3 = 3};
        constexpr std::uint64_t kUntouched = 0xABCDEF;
        std::vector<std::uint64_t> first(48, kUntouched);
        std::vector<std::uint64_t> second(48, kUntouched);
        if (!philox_batch_by(instructions, counters, key, count, first.data(), second.data())) continue;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
          const BitsPair own = philox_bits({counters.c0 + (chosen ? lanes[i] : 0), chosen ? rounds[i] : 9,
                                            counters.c2 + (chosen ? lanes[i] : static_cast<std::uint32_t>(i)), counters.c3},
                                           key);
          const bool as_wanted =
              i < count ? first[i] == own.first && second[i] == own.second : first[i] == kUntouched && second[i] == kUntouched;
          wrong += as_wanted ? 0 : 1;
        }
        INFO("instructions " << static_cast<int>(instructions) << ", count " << count);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("words are uniform: bytes, and pairs of neighbouring addresses", "[rng][stat]") {
  // Detects a missing round in a vectorised path that the known answers do not reach, and lanes that share a word.
  const Key key = make_key(20260403, 3);
  constexpr std::size_t kBatch = 256;
  constexpr std::uint32_t kRounds = 2048;
  std::vector<std::vector<double>> bytes(16, std::vector<double>(256, 0.0));
  std::vector<double> across_lanes(65536, 0.0);
  std::vector<double> across_rounds(65536, 0.0);
  std::vector<std::uint64_t> first(kBatch);
  std::vector<std::uint64_t> second(kBatch);
  std::vector<std::uint64_t> before(kBatch, 0);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    philox_batch({.c0 = counter_word0(Purpose::draft_accept, 0),
                  .positions = nullptr,
                  .c1_common = round,
                  .c1 = nullptr,
                  .c2 = 0,
                  .lanes = nullptr,
                  .c3 = 0},
                 key, kBatch, first.data(), second.data());
    for (std::size_t i = 0; i < kBatch; ++i) {
      for (std::size_t byte = 0; byte < 8; ++byte) {
        bytes[byte][first[i] >> (8 * byte) & 255] += 1.0;
        bytes[8 + byte][second[i] >> (8 * byte) & 255] += 1.0;
      }
      if (i % 2 == 1) across_lanes[(first[i - 1] >> 56) << 8 | first[i] >> 56] += 1.0;
      if (round % 2 == 1) across_rounds[(before[i] >> 56) << 8 | first[i] >> 56] += 1.0;
    }
    before = first;
  }
  for (const std::vector<double>& counts : bytes) CHECK(tests::chi_square_p(counts, kRounds * kBatch / 256.0) > kLevel);
  // Expectation 4 per cell: with 65,535 degrees of freedom the chi-square distribution still holds.
  CHECK(tests::chi_square_p(across_lanes, kRounds * kBatch / 2.0 / 65536.0) > kLevel);
  CHECK(tests::chi_square_p(across_rounds, kRounds * kBatch / 2.0 / 65536.0) > kLevel);
}

}  // namespace specsim::philox_test
