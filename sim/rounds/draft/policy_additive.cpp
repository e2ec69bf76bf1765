#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <algorithm>

namespace specsim::draft {

namespace {

class Additive final : public LengthPolicy {
 public:
  struct Params {
    int first = 5;
    int up = 2;
    int down = 1;
  };
  Additive(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = std::min(params_.first, longest_)}; }
  void observe(Memory& memory, int drafted, int accepted) const override {
    memory.length =
        accepted == drafted ? std::min(memory.length + params_.up, longest_) : std::max(memory.length - params_.down, 1);
  }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry additive_policy() {
  using P = Additive::Params;
  static const config::Fields<P> fields = {
      {"first", &P::first, "draft length of a sequence's first round", config::between(1, kMaxDraftLength)},
      {"up", &P::up, "tokens added after full acceptance", config::between(1, kMaxDraftLength)},
      {"down", &P::down, "tokens removed otherwise, down to 1", config::between(1, kMaxDraftLength)},
  };
  return {{"additive", "drafts more after a round that accepted everything, and less after any other",
           "Hugging Face transformers, num_assistant_tokens_schedule: heuristic", fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<Additive>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
