#include "sim/rounds/draft/text_match.h"

#include <algorithm>
#include <vector>

namespace specsim::draft {

namespace {

// The tokens (at most `most`) that followed the longest suffix of `text` that occurs earlier, at its first occurrence.
std::vector<Token> max_gram(std::span<const Token> text, std::size_t most) {
  std::size_t longest = 0;
  std::size_t place = 0;
  for (std::size_t end = 1; most > 0 && end < text.size(); ++end) {
    std::size_t length = 0;
    while (length < end && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
    if (length <= longest) continue;
    longest = length;
    place = end;
  }
  if (longest == 0) return {};
  const std::span<const Token> rest = text.subspan(place);
  return {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(most, rest.size()))};
}

// The draft model itself decodes speculatively. Its tokens are drawn as in a chain. A copied token stays if it equals the drawn
// one, which is what sampling and matching keeps; the first that differs ends the pass.
class CsDrafting final : public BlockDrafter {
 public:
  struct Params {
    int draft_length = 0;
    int copied = 10;
  };
  explicit CsDrafting(const Params& params) : params_(params) {
    shape_.siblings = tokens::Siblings::independent;
    shape_.draft_length = params.draft_length;
    shape_.nodes = params.draft_length;
    shape_.reads_text = true;
    shape_.draws = true;
    shape_.counts_passes = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    std::vector<Token> text(input.text().begin(), input.text().end());
    int node = 0;
    for (int drafted = 0; drafted < shape_.draft_length;) {
      // A pass emits one token more than it verifies.
      const std::vector<Token> copy =
          max_gram(text, static_cast<std::size_t>(std::min(params_.copied, shape_.draft_length - drafted - 1)));
      input.prepare(block, std::vector<int>(copy.size() + 1, node));
      bool alike = true;
      for (std::size_t i = 0; i <= copy.size() && alike; ++i) {
        const Token token = input.draw_child(block, node, {}, ++drafted).token;
        node = block.add(node, token);
        text.push_back(token);
        alike = i < copy.size() && token == copy[i];
      }
    }
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    BlockWork work{std::vector<double>(static_cast<std::size_t>(shape_.draft_length), 1.0), 1.0 + nodes};
    for (int pass = 0; pass < shape_.draft_length; ++pass)
      work.pass_rows[static_cast<std::size_t>(pass)] += std::min(params_.copied, shape_.draft_length - pass - 1);
    return work;
  }

 private:
  Shape shape_;
  Params params_;
};

}  // namespace

DrafterEntry cs_drafting_drafter() {
  using P = CsDrafting::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens of the chain", config::between(1, kMaxDraftLength), config::required},
      {"copied", &P::copied,
       "maximum number of tokens that a pass of the draft model verifies (_MAG_GENERATION); 0: drafter chain",
       config::between(0, kMaxDraftLength)},
  };
  return {{"cs_drafting", "cascade drafting: the draft model itself gets a draft, copied from the text",
           "Chen et al. (Cascade Speculative Drafting), arXiv 2312.11462, vertical cascade with Max-Gram; lfsszd/CS-Drafting, "
           "csd.py, mag.py, commit 05b22e1",
           fields, "", "draft_length: 3"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<CsDrafting>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
