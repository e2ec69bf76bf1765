// Drafters that draw tokens while they choose a block: their drafts depend on their own draws, and the output must not.
#include "tests/exact/exact_cells.h"

#include <array>

namespace specsim::drawn_drafters_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;

namespace {

constexpr double kExact = 1e-12;

const std::vector<std::string> kPairs = {
    "{vocab: 3, target: {family: dirichlet, concentration: 0.6}, draft: {from: target, transform: logit_noise, value: 1}}",
    "{vocab: 3, target: {family: geometric, ratio: 0.4}, draft: {from: target, transform: reduced_vocab, value: 2}}",
    "{vocab: 2, target: {family: one_hot}, draft: {family: zipf, exponent: 1}}"};
const std::vector<std::string> kContexts = {"{process: fixed}", "{process: markov, order: 1}"};

// Unverified copies: the first token is drawn, and determines the ones after it as well.
class Careless final : public draft::BlockDrafter {
 public:
  Careless() {
    shape_.siblings = tokens::Siblings::independent;
    shape_.draft_length = 3;
    shape_.nodes = 3;
    shape_.draws = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  void choose(draft::DrafterInput& input, Memory* /*memory*/, draft::ChosenBlock& block) const override {
    input.prepare(block, std::array{0});
    const Token token = input.draw_child(block, 0, {}, 1).token;
    for (int node = 0; node < 3; ++node) static_cast<void>(block.add(node, token));
  }
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return {{1.0}, 1.0 + nodes}; }

 private:
  Shape shape_;
};

}  // namespace

TEST_CASE("a drafter that draws its block leaves the output the target's") {
  const std::vector<std::pair<std::string, std::string>> methods = {
      {"{kind: dyspec, nodes: 3, max_depth: 2}", "without_replacement"},
      {"{kind: dyspec, nodes: 4, max_depth: 2, threshold: 0.2}", "without_replacement"},
      {"{kind: cs_drafting, draft_length: 3}", "token"},
      {"{kind: cs_drafting, draft_length: 3, copied: 1}", "multi_draft_recursive"},
      {"{kind: cs_drafting, draft_length: 3}", "block"},
      {"{kind: cs_drafting, draft_length: 3}", "sample_match"}};
  for (const std::string& pair : kPairs)
    for (const std::string& context : kContexts)
      for (const auto& [drafter, verifier] : methods) {
        INFO(pair << ", " << context << ", " << drafter << ", " << verifier);
        const AuditReport report = audit_cell(cell_of(pair, context, drafter, verifier));
        CHECK(report.largest_difference <= kExact);
        CHECK(report.impossible == 0.0);
      }

  // Mutant: copies that remain without having been drawn.
  spec::Cell careless = cell_of(kPairs[0], kContexts[0], "{kind: cs_drafting, draft_length: 3}", "token");
  std::get<spec::BlockMethod>(careless.method).drafter.part = std::make_shared<Careless>();
  CHECK_FALSE(audit_cell(careless).lossless());
}

TEST_CASE("a draft of the draft's own changes passes and no token: rounds accept as the chain's do") {
  for (const std::string& pair : kPairs)
    for (const std::string& context : kContexts)
      for (const char* verifier : {"token", "block", "sample_match"}) {
        INFO(pair << ", " << context << ", " << verifier);
        const AuditReport cascade = audit_cell(cell_of(pair, context, "{kind: cs_drafting, draft_length: 3}", verifier));
        const AuditReport alone = audit_cell(cell_of(pair, context, chain(3), verifier));
        REQUIRE(cascade.starts.size() == alone.starts.size());
        for (std::size_t i = 0; i < alone.starts.size(); ++i)
          CHECK(largest_difference(cascade.starts[i].accepted_distribution, alone.starts[i].accepted_distribution) <= kExact);
      }
}

}  // namespace specsim::drawn_drafters_test
