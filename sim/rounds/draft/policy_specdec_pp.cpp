#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <algorithm>

namespace specsim::draft {

namespace {

class SpecDecPlus final : public LengthPolicy {
 public:
  struct Params {
    double threshold = 0.7;
    int shortest = 2;
    bool by_draft = false;
  };
  SpecDecPlus(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool looks() const override { return true; }
  [[nodiscard]] bool looks_along() const override { return true; }
  [[nodiscard]] bool continues_along(std::span<const Drafted> path) const override {
    if (static_cast<int>(path.size()) < params_.shortest) return true;
    // The last token was produced by the pass that read the earlier ones, so the head has judged only those.
    double all_accepted = 1.0;
    for (const Drafted& token : path.first(path.size() - 1))
      all_accepted *= params_.by_draft ? token.probability : token.acceptance;
    return 1.0 - all_accepted <= params_.threshold;
  }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry specdec_pp_policy() {
  using P = SpecDecPlus::Params;
  static const config::Fields<P> fields = {
      {"threshold", &P::threshold, "P(a token is rejected) above which drafting stops (stop_threshold)", config::between(0, 1)},
      {"shortest", &P::shortest, "minimum number of tokens drafted (bound)", config::between(1, kMaxDraftLength)},
      {"head", &P::by_draft,
       "estimate of a token's acceptance probability: min(1, target / draft), or the draft's probability of it",
       config::one_of<bool>({{"perfect", false}, {"draft", true}})},
  };
  return {{"specdec_pp", "SpecDec++ stops drafting where a rejection among the drafted tokens has become likely",
           "Huang et al. (SpecDec++), arXiv 2405.19715; Kaffaljidhmah2/SpecDec_pp, specdec_pp/hf_generation.py, "
           "specdec_pp/sample.py, commit 9c52edc",
           fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<SpecDecPlus>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
