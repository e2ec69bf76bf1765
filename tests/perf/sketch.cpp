#include "tests/perf/sketch.h"

#include <algorithm>
#include <array>

namespace specsim::tests {

namespace {
constexpr int kMaxDrafts = 64;
std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
}  // namespace

Sketch::Sketch(const std::vector<double>& target, const std::vector<double>& draft)
    : draft_(table(draft)), target_(table(target)) {
  std::vector<double> residual(target.size());
  for (std::size_t x = 0; x < target.size(); ++x) {
    residual[x] = std::max(target[x] - draft[x], 0.0);
    ratio_.push_back(target[x] / draft[x]);
  }
  residual_ = table(residual);
}

std::vector<Sketch::Slot> Sketch::table(const std::vector<double>& weights) {
  const std::size_t n = weights.size();
  double total = 0.0;
  for (const double w : weights) total += w;
  std::vector<Slot> slots(n);
  std::vector<double> scaled(n);
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] = weights[i] * static_cast<double>(n) / total;
    (scaled[i] < 1.0 ? small : large).push_back(static_cast<std::uint32_t>(i));
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t poor = small.back();
    const std::uint32_t rich = large.back();
    small.pop_back();
    slots[poor] = {scaled[poor], rich};
    scaled[rich] -= 1.0 - scaled[poor];
    if (scaled[rich] < 1.0) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  for (const std::uint32_t i : small) slots[i] = {1.0, i};
  for (const std::uint32_t i : large) slots[i] = {1.0, i};
  return slots;
}

double Sketch::uniform() {  // xoshiro256++ by Blackman and Vigna, from its published description
  const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return static_cast<double>(result >> 11) * 0x1.0p-53;
}

std::uint32_t Sketch::pick(const std::vector<Slot>& slots) {
  const double x = uniform() * static_cast<double>(slots.size());
  const auto column = static_cast<std::size_t>(x);
  return x - static_cast<double>(column) < slots[column].share ? static_cast<std::uint32_t>(column) : slots[column].alias;
}

std::uint64_t Sketch::run(std::uint64_t rounds, int draft_length) {
  std::array<std::uint32_t, kMaxDrafts> drafts{};
  std::uint64_t emitted = 0;
  std::uint32_t mixed = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (int j = 0; j < draft_length; ++j) drafts[static_cast<std::size_t>(j)] = pick(draft_);
    int accepted = 0;
    while (accepted < draft_length && uniform() < ratio_[drafts[static_cast<std::size_t>(accepted)]]) ++accepted;
    mixed ^= accepted < draft_length ? pick(residual_) : pick(target_);
    emitted += static_cast<std::uint64_t>(accepted) + 1;
  }
  return mixed == 0xFFFFFFFF ? 0 : emitted;  // keeps the final token alive
}

}  // namespace specsim::tests
