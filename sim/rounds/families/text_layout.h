// The contexts of process `text`: which belong to one kind of request and to one stretch, and how they follow one another.
#pragma once

#include "sim/rounds/families/distribution.h"

#include <cstddef>
#include <vector>

namespace specsim::families {

// Kinds of requests (the target surer or less sure, by the draft better or worse), by stretches (halves of what is open by halves
// of what is hard), by the places in each: contexts whose logits have nothing in common, of which fewer than 16 would leave much
// of what a stretch is like to chance. All contexts are equally likely.
class TextLayout {
 public:
  static constexpr std::size_t kContexts = 256;

  // between_requests: the share of the scales' variance that lies between requests, in [0, 1); at 0 there is one kind of them.
  explicit TextLayout(double between_requests);
  [[nodiscard]] std::size_t kinds() const { return kinds_; }
  [[nodiscard]] static std::size_t stretches() { return kParts * kParts; }  // in a kind
  [[nodiscard]] std::size_t kind(std::size_t context) const { return context / (stretches() * places_); }
  [[nodiscard]] std::size_t stretch(std::size_t context) const { return context / places_ % stretches(); }
  // [context]. Each side's scales have mean 0 and variance 1; the correlation of the two sides is below .02.
  [[nodiscard]] std::vector<ContextScales> scales() const;
  // [context][context]: a request keeps its kind; within it the next position belongs to the same stretch with probability
  // `persistence`, else to any.
  [[nodiscard]] std::vector<std::vector<double>> transition(double persistence) const;

 private:
  static constexpr std::size_t kParts = 2;  // halves of what is open, and of what is hard
  double between_requests_;
  std::size_t kinds_;
  std::size_t places_;  // in a stretch
};

}  // namespace specsim::families
