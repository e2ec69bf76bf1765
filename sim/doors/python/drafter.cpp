// Drafters in Python.
#include "sim/doors/python/parts.h"
#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/tree_config.h"

#include <fmt/format.h>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace specsim::python {

namespace {

struct Params {
  int draft_length = 4;
  std::optional<int> nodes;
  int ranks = 0;
};

const config::Fields<Params>& drafter_fields() {
  static const config::Fields<Params> fields = {
      {"draft_length", &Params::draft_length, "maximum number of tokens on a path, and of passes of the draft model",
       config::between(1, kMaxDraftLength)},
      {"nodes", &Params::nodes, "maximum number of nodes of its trees; if left out, it drafts chains",
       config::between(1, draft::kMaxNodes)},
      {"ranks", &Params::ranks, "number of likeliest tokens that a pass of the draft model returns; 0: it uses no draft model",
       config::between(0, 256)},
  };
  return fields;
}

// One round's block, as the user's code sees it.
class Block {
 public:
  Block(const Params& params, draft::DrafterInput& input) : params_(&params), input_(&input) {}

  [[nodiscard]] int draft_length() const { return open().params_->draft_length; }
  [[nodiscard]] int max_nodes() const { return open().params_->nodes.value_or(params_->draft_length); }
  [[nodiscard]] std::size_t prompt_tokens() const { return open().input_->prompt_tokens(); }
  [[nodiscard]] py::array_t<std::int64_t> text() const {
    const std::span<const Token> tokens = open().input_->text();
    py::array_t<std::int64_t> array(static_cast<py::ssize_t>(tokens.size()));
    std::copy(tokens.begin(), tokens.end(), array.mutable_data());
    return array;
  }

  // Adds `token` after node `after`, and returns its node. Returns the node that is there if `after` has this child already.
  int add(std::int64_t token, int after) {
    check_node(after);
    if (!(token >= 0 && token < static_cast<std::int64_t>(input_->vocab())))
      refuse(fmt::format("added token {}, allowed: 0 to {}", token, input_->vocab() - 1));
    std::vector<int>& siblings = children_[static_cast<std::size_t>(after)];
    for (const int child : siblings)
      if (candidates_.tokens[static_cast<std::size_t>(child)] == static_cast<Token>(token)) return child;
    if (!siblings.empty() && !params_->nodes)
      refuse("added a second token after a node, allowed: a chain; with the key nodes in the config, a tree");
    const int drafted = candidates_.tree.drafted();
    const int depth = candidates_.tree.nodes[static_cast<std::size_t>(after)].depth + 1;
    if (depth > params_->draft_length)
      refuse(fmt::format("added a token at depth {}, allowed: up to draft_length, which is {}", depth, params_->draft_length));
    if (drafted >= max_nodes())
      refuse(fmt::format("added {} nodes, allowed: up to nodes, which is {}", drafted + 1, max_nodes()));
    const int node = candidates_.add_candidate(after, static_cast<Token>(token), static_cast<int>(siblings.size()));
    siblings.push_back(node);
    children_.emplace_back();
    return node;
  }

  int add_path(const std::vector<std::int64_t>& tokens, int after) {
    for (const std::int64_t token : tokens) after = add(token, after);
    return after;
  }

  using Likeliest = std::pair<py::array_t<std::int64_t>, py::array_t<double>>;
  // The draft model's likeliest tokens after each node, with their probabilities, from one pass.
  std::vector<Likeliest> likeliest(const std::vector<int>& nodes) {
    static_cast<void>(open());
    if (params_->ranks == 0) refuse("asked the draft model, allowed: with the key ranks in the config");
    for (const int node : nodes) check_node(node);
    if (++passes_ > params_->draft_length)
      refuse(fmt::format("took {} passes of the draft model in a round, allowed: up to draft_length, which is {}", passes_,
                         params_->draft_length));
    input_->prepare(candidates_, nodes);
    std::vector<Likeliest> all;
    for (const int node : nodes) {
      const std::span<const draft::Ranked> ranked = input_->likeliest(candidates_, node);
      const auto known = static_cast<std::size_t>(
          std::find_if(ranked.begin(), ranked.end(), [](const draft::Ranked& one) { return !(one.probability > 0.0); }) -
          ranked.begin());
      py::array_t<std::int64_t> tokens(static_cast<py::ssize_t>(known));
      py::array_t<double> probabilities(static_cast<py::ssize_t>(known));
      for (std::size_t i = 0; i < known; ++i) {
        tokens.mutable_data()[i] = ranked[i].token;
        probabilities.mutable_data()[i] = ranked[i].probability;
      }
      all.emplace_back(std::move(tokens), std::move(probabilities));
    }
    return all;
  }

  // Moves the nodes to `block`, breadth first. The user's code can no longer use this object.
  void close(draft::ChosenBlock& block) {
    input_ = nullptr;
    std::deque<std::pair<int, int>> open = {{0, 0}};  // node here, node of `block`
    while (!open.empty()) {
      const auto [own, other] = open.front();
      open.pop_front();
      for (const int child : children_[static_cast<std::size_t>(own)]) {
        const auto at = static_cast<std::size_t>(child);
        open.emplace_back(child, block.add(other, candidates_.tokens[at], candidates_.tree.nodes[at].rank));
      }
    }
  }
  void close() { input_ = nullptr; }

 private:
  [[nodiscard]] const Block& open() const {
    if (input_ == nullptr) refuse("a block is used after its round, allowed: within draft(block)");
    return *this;
  }
  // Raises ValueError in the user's code.
  [[noreturn]] static void refuse(const std::string& what) { throw py::value_error(what); }
  void check_node(int node) const {
    static_cast<void>(open());
    if (!(node >= 0 && node < static_cast<int>(children_.size())))
      refuse(fmt::format("named node {}, allowed: 0 (the end of the text) to {}", node, children_.size() - 1));
  }

  const Params* params_;
  draft::DrafterInput* input_;                     // nullptr: the round is over
  draft::ChosenBlock candidates_;                  // in the order in which they were added
  std::vector<std::vector<int>> children_ = {{}};  // [node]
  int passes_ = 0;
};

class PythonDrafter final : public draft::BlockDrafter {
 public:
  PythonDrafter(UserObject drafter, const Params& params) : drafter_(std::move(drafter)), params_(params) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = params_.draft_length;
    shape_.nodes = params_.nodes.value_or(params_.draft_length);
    shape_.branches = params_.nodes.has_value();
    shape_.reads_text = true;
    shape_.ranks = params_.ranks;
    shape_.ranks_model = params_.ranks > 0;
    shape_.counts_passes = params_.ranks > 0;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(draft::DrafterInput& input, Memory* /*memory*/, draft::ChosenBlock& block) const override {
    const Callback locked;
    const auto chosen = std::make_shared<Block>(params_, input);
    try {
      drafter_.object().attr("draft")(chosen);
    } catch (const py::error_already_set& raised) {
      chosen->close();
      drafter_.refuse_raised("draft", raised);
    }
    chosen->close(block);
  }

  [[nodiscard]] draft::BlockWork work(int nodes) const override {
    draft::BlockWork work{{}, 1.0 + nodes};
    if (params_.ranks == 0) return work;
    // At most one pass per level. The rows that a pass had are counted.
    work.pass_rows.assign(static_cast<std::size_t>(params_.draft_length), static_cast<double>(shape_.nodes));
    work.pass_rows.front() = 1.0;
    return work;
  }

 private:
  UserObject drafter_;
  Params params_;
  Shape shape_;
};

}  // namespace

RegisteredDrafter::RegisteredDrafter(const std::string& name, py::object drafter)
    : RegisteredPart(draft::drafters(), name, std::move(drafter), [&](PyObject* object) {
        return draft::DrafterEntry{
            {name, "a drafter in Python", "", drafter_fields(), ""}, [=](const config::Arguments& arguments, Diagnostics&) {
              return std::make_shared<PythonDrafter>(UserObject("drafter", name, object), drafter_fields().read(arguments));
            }};
      }) {}

void add_block_class(py::module_& module) {
  py::class_<Block, std::shared_ptr<Block>>(module, "Block")
      .def_property_readonly("text", &Block::text)
      .def_property_readonly("prompt_tokens", &Block::prompt_tokens)
      .def_property_readonly("draft_length", &Block::draft_length)
      .def_property_readonly("max_nodes", &Block::max_nodes)
      .def("add", &Block::add, py::arg("token"), py::arg("after") = 0)
      .def("add_path", &Block::add_path, py::arg("tokens"), py::arg("after") = 0)
      .def(
          "likeliest", [](Block& block, int node) { return block.likeliest(std::vector<int>{node}).front(); },
          py::arg("node") = 0)
      .def("likeliest", py::overload_cast<const std::vector<int>&>(&Block::likeliest), py::arg("nodes"));
}

}  // namespace specsim::python
