// The contexts of process `text`: their kinds of requests and stretches, and how they follow one another.
#pragma once

#include "sim/rounds/families/distribution.h"

#include <cstddef>
#include <vector>

namespace specsim::families {

// Contexts are kinds of requests (the target more or less certain, times the draft better or worse), times stretches (halves by
// openness times halves by difficulty), times places in each stretch. Places are contexts with independent logits; fewer than 16
// would leave too much of a stretch's character to chance. All contexts are equally likely.
class TextLayout {
 public:
  static constexpr std::size_t kContexts = 256;

  // between_requests: the share of the scales' variance that lies between requests, in [0, 1); at 0 there is only one kind of
  // request.
  explicit TextLayout(double between_requests);
  [[nodiscard]] std::size_t kinds() const { return kinds_; }
  [[nodiscard]] static std::size_t stretches() { return kParts * kParts; }  // in a kind
  [[nodiscard]] std::size_t kind(std::size_t context) const { return context / (stretches() * places_); }
  [[nodiscard]] std::size_t stretch(std::size_t context) const { return context / places_ % stretches(); }
  // [context]. Each side's scales have mean 0 and variance 1; the correlation of the two sides is below .02.
  [[nodiscard]] std::vector<ContextScales> scales() const;
  // [context][context]: a request keeps its kind. Within it the next position belongs to the same stretch with probability
  // `persistence`, otherwise to any stretch.
  [[nodiscard]] std::vector<std::vector<double>> transition(double persistence) const;

 private:
  static constexpr std::size_t kParts = 2;  // halves by openness, and halves by difficulty
  double between_requests_;
  std::size_t kinds_;
  std::size_t places_;  // in a stretch
};

}  // namespace specsim::families
