// Distributions of real models from memory, one whole text at a time, and helpers of the tests of decoding.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/lab/llm/distributions.h"
#include "sim/lab/llm/prompts.h"
#include "sim/lab/llm/tokenizer.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"
#include "tests/llm/fixtures.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace specsim::tests {

constexpr const char* kTarget = "novels-5m";
constexpr const char* kDraft = "novels-0.7m-distilled";

struct Pair {
  std::shared_ptr<const llm::Weights> target_weights = weights_of(kTarget);
  std::unique_ptr<llm::Model> target_model = model_of(target_weights);
  std::unique_ptr<llm::Model> draft_model = model_of(weights_of(kDraft));
};

inline std::vector<llm::Prompt> held_out(const llm::ModelConfig& config) {
  const auto tokenizer = llm::read_tokenizer(std::string("tests/data/models/") + kTarget);
  return llm::read_prompts("tests/data/prompts/held_out.jsonl", tokenizer.get(), config, 40).prompts;
}

// A repetitive text, so that drafters that search it find matches.
inline std::vector<Token> repeating(std::vector<Token> text) {
  text.resize(std::min<std::size_t>(text.size(), 24));
  const std::vector<Token> end(text.end() - 12, text.end());
  text.insert(text.end(), end.begin(), end.end());
  return text;
}

// A drafter of the registry and a rule for what it drafts.
struct BlockMethod {
  std::shared_ptr<const draft::BlockDrafter> drafter;
  std::unique_ptr<verify::BlockRule> rule;
};

inline BlockMethod block_method(const std::string& kind, const std::string& parameters, const std::string& verifier) {
  Diagnostics diagnostics;
  const draft::DrafterEntry& entry = *draft::drafters().find(kind);
  const config::Value section = config::parse_text(parameters, "test", diagnostics);
  BlockMethod method;
  method.drafter = std::get<draft::Blocks>(
      entry.make(config::read_arguments(section, entry.info.parameters, {}, kind, diagnostics), diagnostics));
  const verify::VerifierEntry& judge = *verify::verifiers().find(verifier);
  method.rule = judge.make_block(config::read_arguments({}, judge.info.parameters, {}, verifier, diagnostics));
  diagnostics.throw_if_any();
  return method;
}

// The few tokens of a test's texts, numbered in order of appearance: distributions over them are short, and rounds cheap.
class Alphabet {
 public:
  explicit Alphabet(std::size_t most) : most_(most) {}
  [[nodiscard]] std::size_t most() const { return most_; }
  [[nodiscard]] Token token(Token number) const { return tokens_.at(number); }
  Token number(Token token) {
    const auto [found, fresh] = numbers_.try_emplace(token, static_cast<Token>(tokens_.size()));
    if (fresh) tokens_.push_back(token);
    SPECSIM_CHECK(tokens_.size() <= most_, "more than {} tokens", most_);
    return found->second;
  }
  std::vector<Token> numbers(std::span<const Token> text) {
    std::vector<Token> out;
    for (const Token token : text) out.push_back(number(token));
    return out;
  }

 private:
  std::size_t most_;
  std::vector<Token> tokens_;  // [number]
  std::unordered_map<Token, Token> numbers_;
};

// Distributions by text: a model that is asked a million times for the same few texts answers from memory, one text at a time,
// whatever tree contains it.
class Remembered final : public llm::DistributionSource {
 public:
  struct Reading {
    bool afresh =
        false;  // every text is computed from its first token on; otherwise from the prefix that it shares with the one before
    std::size_t deepest = SIZE_MAX;  // a longer text gets the distribution of its first tokens only
    Alphabet* alphabet = nullptr;    // tokens are passed by their numbers; those of probability 0 have none
  };
  explicit Remembered(llm::DistributionSource& source) : Remembered(source, Reading()) {}
  Remembered(llm::DistributionSource& source, const Reading& reading) : source_(source), reading_(reading) {}
  [[nodiscard]] std::size_t vocab() const override {
    return reading_.alphabet != nullptr ? reading_.alphabet->most() : source_.vocab();
  }
  [[nodiscard]] std::size_t capacity() const override { return source_.capacity(); }
  [[nodiscard]] std::size_t length(std::size_t /*sequence*/) const override { return at_.size(); }
  void rewind(std::size_t /*sequence*/, std::size_t length) override { at_.resize(length); }
  void keep_path(std::size_t /*sequence*/, std::size_t length, std::span<const std::uint32_t> path) override {
    for (std::size_t i = 0; i < path.size(); ++i) at_[length + i] = at_[length + path[i]];
    at_.resize(length + path.size());
  }
  void extend(std::span<const llm::Extension> batch, std::span<double> distributions) override {
    const llm::Extension& block = batch[0];
    const std::size_t base = at_.size() - (block.parents.empty() ? 0 : block.parents.size() - block.tokens.size());  // the text
    for (std::size_t i = 0; i < block.tokens.size(); ++i) {
      const int parent = block.parents.empty() ? static_cast<int>(i) - 1 : block.parents[at_.size() - base];
      const std::size_t before = parent < 0 ? base : base + static_cast<std::size_t>(parent) + 1;
      at_.push_back(after(before == 0 ? 0 : at_[before - 1], block.tokens[i]));
      if (i + block.logit_rows < block.tokens.size()) continue;
      const std::vector<double>& distribution = distribution_at(at_.back());
      std::copy(distribution.begin(), distribution.end(), distributions.begin());
      distributions = distributions.subspan(vocab());
    }
  }
  const std::vector<double>& distribution_of(std::span<const Token> text) {
    std::uint32_t place = 0;
    for (const Token token : text) place = after(place, token);
    return distribution_at(place);
  }

 private:
  struct Place {
    std::uint32_t before = 0;
    Token token = 0;
    std::size_t length = 0;            // tokens up to here
    std::vector<double> distribution;  // empty: not computed yet
  };

  std::uint32_t after(std::uint32_t place, Token token) {
    const std::size_t length = places_[place].length;
    if (length == reading_.deepest) return place;
    const auto [found, fresh] =
        places_of_.try_emplace(std::uint64_t{place} << 32 | token, static_cast<std::uint32_t>(places_.size()));
    if (fresh) places_.push_back({place, token, length + 1, {}});
    return found->second;
  }
  const std::vector<double>& distribution_at(std::uint32_t place) {
    std::vector<double>& distribution = places_[place].distribution;
    if (distribution.empty()) {
      std::vector<Token> text;
      Alphabet* const alphabet = reading_.alphabet;
      for (std::uint32_t at = place; at != 0; at = places_[at].before)
        text.push_back(alphabet != nullptr ? alphabet->token(places_[at].token) : places_[at].token);
      std::reverse(text.begin(), text.end());
      std::vector<double> whole(source_.vocab());
      const auto shared =
          static_cast<std::size_t>(std::mismatch(text.begin(), text.end() - 1, read_.begin(), read_.end()).first - text.begin());
      source_.rewind(0, reading_.afresh ? 0 : shared);
      prefill(source_, 0, std::span(text).subspan(source_.length(0), text.size() - 1 - source_.length(0)));
      const llm::Extension last{.sequence = 0, .tokens = std::span(text).last(1)};
      source_.extend({&last, 1}, whole);
      read_ = std::move(text);
      if (alphabet == nullptr) return distribution = std::move(whole);
      distribution.resize(vocab());
      for (Token token = 0; token < whole.size(); ++token)
        if (whole[token] > 0.0) distribution[alphabet->number(token)] = whole[token];
    }
    return distribution;
  }

  llm::DistributionSource& source_;
  Reading reading_;
  std::vector<Token> read_;        // the tokens in the source's cache
  std::vector<std::uint32_t> at_;  // the place after each cached token
  std::deque<Place> places_ = {Place()};
  std::unordered_map<std::uint64_t, std::uint32_t> places_of_;  // by the place before and the token
};

}  // namespace specsim::tests
