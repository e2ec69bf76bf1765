#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/overlap_by_depth.h"
#include "sim/rounds/draft/tree_drafter.h"

namespace specsim::draft {

namespace {

struct MtpParams {
  int draft_length = 1;
  bool argmax = true;
  std::vector<double> acceptance;  // [depth]; empty: as the draft's distribution has it
};

class Mtp final : public TreeDrafter {
 public:
  Mtp(int draft_length, std::vector<double> acceptance)
      : TreeDrafter(path_of(draft_length), tokens::Siblings::independent), acceptance_(std::move(acceptance)) {
    if (!acceptance_.empty()) shape_.distribution_depths = draft_length;
    shape_.alters = !acceptance_.empty();
  }
  void alter_distribution(int depth, double /*chance*/, std::span<const double> target, std::span<double> draft) const override {
    if (!acceptance_.empty()) set_overlap(at_depth(acceptance_, depth), target, draft);
  }

 private:
  std::vector<double> acceptance_;
};

}  // namespace

DrafterEntry mtp_drafter() {
  using P = MtpParams;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round", config::between(1, kMaxDraftLength)},
      {"selection", &P::argmax,
       "its likeliest token is taken, as servers do (vLLM's draft_sample_method: greedy), or one is drawn (probabilistic)",
       config::one_of<bool>({{"sampled", false}, {"argmax", true}})},
      {"acceptance", &P::acceptance,
       "how likely a drawn token is accepted at depth 1, 2, ..., given that all before it are; the last one holds beyond",
       config::between(0, 1), config::optional}};
  return {{"mtp",
           "multi-token prediction: a small module shipped with the target and trained with it drafts the next token, and is "
           "reused for further ones",
           "DeepSeek-AI (DeepSeek-V3), arXiv 2412.19437; vllm-project/vllm, vllm/model_executor/models/deepseek_mtp.py (one "
           "layer, its step taken modulo the layers that there are)",
           fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            P params = fields.read(arguments);
            if (params.argmax && !params.acceptance.empty())
              diagnostics.add(
                  arguments.where("acceptance"),
                  "acceptance is of drawn tokens, and selection is argmax; allowed: selection: sampled, or published rates "
                  "by context: acceptance_table");
            if (params.argmax) return Draft(Chain{params.draft_length, true});
            return Draft(std::make_shared<Mtp>(params.draft_length, std::move(params.acceptance)));
          }};
}

}  // namespace specsim::draft
