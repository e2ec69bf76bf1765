// llama.cpp's map of n-grams, which both --spec-type ngram-map-k and ngram-map-k4v draft from.
#pragma once

#include "sim/rounds/draft/text_match.h"

#include <memory>
#include <span>

namespace specsim::draft {

struct NgramMapRule {
  int draft_length = 0;  // tokens of a value, m
  int size_n = 0;        // tokens of a key
  int min_hits = 0;      // rounds that must end with a key before it drafts; only counted with values
  bool values = false;   // values after a key are counted separately
};

// The rule of common/ngram-map.cpp, llama.cpp b10256. The caller has checked the parameters.
class NgramMap final : public TextDrafter {
 public:
  explicit NgramMap(const NgramMapRule& rule);
  [[nodiscard]] std::unique_ptr<Memory> start() const override;
  void update_memory(const DrafterInput& input, Memory* memory) const override;
  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override;

 private:
  struct Value;
  struct Key;
  struct MapMemory;
  [[nodiscard]] bool occurs_at(std::span<const Token> text, std::size_t place, std::span<const Token> key) const;
  [[nodiscard]] std::size_t place_of(const MapMemory& kept, std::span<const Token> text, std::size_t last) const;
  void index(MapMemory& kept, std::span<const Token> text, std::size_t last) const;
  void count_values(Key& key, std::span<const Token> text, std::size_t place) const;

  NgramMapRule rule_;
  std::size_t n_;
  std::size_t m_;
};

}  // namespace specsim::draft
