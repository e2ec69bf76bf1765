#include "tests/perf/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace specsim::tests {

namespace {

// The value after `name` in a system file: its first line that has the name, or the first line of a file without names. "" if the
// value is not available.
std::string first_line(const std::string& path, const std::string& name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (name.empty()) return line;
    if (line.starts_with(name)) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "";
}

double gigahertz() {
  double best = 0.0;
  for (int repetition = 0; repetition < 5; ++repetition) {
    constexpr std::uint64_t kSteps = 4'000'000;
    constexpr double kAdditions = 4.0;  // additions in a step
    std::uint64_t sum = 0;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < kSteps; ++i) {
      for (int k = 0; k < 4; ++k) {
        sum += i;
        __asm__ volatile("" : "+r"(sum));  // NOLINT(hicpp-no-assembler): keeps the additions apart
      }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, kAdditions * static_cast<double>(kSteps) / seconds * 1e-9);
  }
  return best;
}

}  // namespace

Sketch::Sketch(const std::vector<double>& target, const std::vector<double>& draft)
    : draft_(table(draft)), target_(table(target)) {
  std::vector<double> residual(target.size());
  for (std::size_t x = 0; x < target.size(); ++x) {
    residual[x] = std::max(target[x] - draft[x], 0.0);
    ratio_.push_back(static_cast<float>(target[x] / draft[x]));
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
    slots[poor] = {static_cast<float>(scaled[poor]), rich};
    scaled[rich] -= 1.0 - scaled[poor];
    if (scaled[rich] < 1.0) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  for (const std::uint32_t i : small) slots[i] = {1.0F, i};
  for (const std::uint32_t i : large) slots[i] = {1.0F, i};
  return slots;
}

std::uint32_t Sketch::pick(const std::vector<Slot>& slots) {
  const std::uint64_t bits = random_();
  const auto column = static_cast<std::uint32_t>(((bits >> 32) * slots.size()) >> 32);
  const Slot slot = slots[column];
  return static_cast<float>(bits & 0xFFFFFFFF) * 0x1p-32F < slot.share ? column : slot.alias;
}

std::uint64_t Sketch::run(std::uint64_t rounds, int draft_length) {
  std::uint64_t emitted = 0;
  std::uint32_t mixed = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    int accepted = 0;
    for (; accepted < draft_length; ++accepted) {
      const std::uint32_t token = pick(draft_);
      if (static_cast<float>(random_() >> 40) * 0x1p-24F >= ratio_[token]) break;
      mixed += token;
    }
    mixed ^= pick(accepted < draft_length ? residual_ : target_);
    emitted += static_cast<std::uint64_t>(accepted) + 1;
  }
  return mixed == 0xFFFFFFFF ? 0 : emitted;  // keeps the tokens alive
}

std::uint64_t RandomReads::run(std::uint64_t reads) {
  std::uint64_t sum = 0;
  const std::uint64_t* const words = words_.data();
  const std::uint64_t size = words_.size();
  for (std::uint64_t i = 0; i < reads; i += 2) {  // one number gives two places of 32 bits each
    const std::uint64_t bits = random_();
    sum += words[((bits >> 32) * size) >> 32] + words[((bits & 0xFFFFFFFF) * size) >> 32];
  }
  return sum;
}

void keep_core_full(std::uint64_t steps) {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint64_t d = 0;
  std::uint64_t e = 0;
  std::uint64_t f = 0;
  for (std::uint64_t i = 0; i < steps; ++i) {
    a += i;
    b += i;
    c += i;
    d += i;
    e += i;
    f += i;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));  // otherwise the compiler would compute them
  }
}

std::string machine() {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index";
  std::string text = first_line("/proc/cpuinfo", "model name");
  if (text.empty()) text = "processor unknown";
  for (int index = 0; index < 8; ++index) {
    const std::string own = folder + std::to_string(index) + "/";
    if (first_line(own + "size").empty() || first_line(own + "type") == "Instruction") continue;
    text += fmt::format(", L{} {}", first_line(own + "level"), first_line(own + "size"));
  }
  return text + fmt::format(", {:.2f} GHz", gigahertz());
}

}  // namespace specsim::tests
