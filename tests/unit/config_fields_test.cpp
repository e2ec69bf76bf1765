#include "sim/foundation/config/fields.h"

#include "sim/foundation/config/registry.h"
#include "tests/support/diagnostics.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::config::config_fields_test {

using specsim::tests::all_messages;

namespace {

enum class Order { first, second };

struct Shared {
  std::uint32_t batch = 4000000000;
  std::uint32_t queue = 7;
};
Fields<Shared> shared_fields() {
  return {{"batch", &Shared::batch, "requests at most", at_least(1)}, {"queue", &Shared::queue, "waiting at most", at_least(0)}};
}

struct Kernel {
  double rows = 0.0;
  double share = 0.25;
};
Fields<Kernel> kernel_fields() {
  return {{"rows", &Kernel::rows, "rows at most", between(1, 1024), whole, required},
          {"share", &Kernel::share, "share of the bandwidth", above(0, 1)}};
}

struct Base {
  int seed = 3;
};

struct Params : Base {
  double ratio = 0.15;
  double large = 1e6;
  double small = 1e-6;
  double counted = 512.0;
  std::int64_t tokens = 0;
  bool graphs = false;
  bool argmax = true;
  std::string name;
  std::string word = "none";
  Order order = Order::second;
  std::optional<Order> tie;
  std::optional<double> least;
  std::optional<int> most = 9;
  std::vector<double> shares = {0.75, 0.85};
  std::vector<double> depths;
  std::vector<std::vector<double>> rows = {{1, 3}, {8}};
  Value policy;
  Value parts;
  Shared disable;
  Kernel kernel;
  std::optional<Kernel> other;
  std::vector<Kernel> list;
};

const Fields<Params>& fields() {
  using P = Params;
  static const Fields<P> all = {
      {"seed", &P::seed, "of a base", any_number()},
      {"ratio", &P::ratio, "a share", between(0, 1)},
      {"large", &P::large, "a large number"},
      {"small", &P::small, "a small number"},
      {"counted", &P::counted, "a whole number in a double", whole},
      {"tokens", &P::tokens, "a count", at_least(1), required},
      {"graphs", &P::graphs, "a switch"},
      {"selection", &P::argmax, "a word for a switch", one_of<bool>({{"sampled", false}, {"argmax", true}})},
      {"name", &P::name, "a text"},
      {"word", &P::word, "a text of some", one_of({"none", "vllm"})},
      {"order", &P::order, "a word for a value", one_of<Order>({{"first", Order::first}, {"second", Order::second}})},
      {"tie", &P::tie, "such a word or none", one_of<Order>({{"first", Order::first}, {"second", Order::second}})},
      {"least", &P::least, "a number or none", between(0, 1)},
      {"most", &P::most, "a number with a default", at_least(0)},
      {"shares", &P::shares, "numbers", between(0, 1)},
      {"depths", &P::depths, "numbers or none", between(0, 1), optional},
      {"rows", &P::rows, "rows of numbers", at_least(1)},
      {"policy", &P::policy, "read by the part", Default{"{kind: fixed}"}},
      {"parts", &P::parts, "a list that the part reads", as_list, required},
      {&P::disable, shared_fields()},
      {"kernel", &P::kernel, "a map of its own", kernel_fields()},
      {"other", &P::other, "a map or none", kernel_fields()},
      {"list", &P::list, "maps", kernel_fields()}};
  return all;
}

Value parsed(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_text(text, "t", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  return value;
}

std::string mistakes(const std::string& text) {
  Diagnostics diagnostics;
  read_arguments(parsed("{tokens: 4, parts: [], " + text + "}"), fields(), {}, "part", diagnostics);
  return all_messages(diagnostics);
}

Params read(const std::string& text) {
  Diagnostics diagnostics;
  const Arguments arguments = read_arguments(parsed(text), fields(), {}, "part", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  return fields().read(arguments);
}

const Parameter& declared(const std::string& name) {
  for (const Parameter& one : fields().parameters())
    if (one.name == name) return one;
  FAIL("no parameter " << name);
  std::abort();
}

}  // namespace

TEST_CASE("a parameter's type and default are those of its member", "[config]") {
  const auto states = [](const char* name, Type type, std::optional<std::string> fallback) {
    INFO(name);
    CHECK(declared(name).type == type);
    CHECK(declared(name).fallback == fallback);
  };
  states("seed", Type::integer, "3");
  states("ratio", Type::number, "0.15");
  states("large", Type::number, "1000000");
  states("small", Type::number, "1e-06");
  states("counted", Type::integer, "512");
  states("tokens", Type::integer, std::nullopt);
  states("graphs", Type::boolean, "false");
  states("selection", Type::text, "argmax");
  states("name", Type::text, "");
  states("word", Type::text, "none");
  states("order", Type::text, "second");
  states("tie", Type::text, "");
  states("least", Type::number, "");
  states("most", Type::integer, "9");
  states("shares", Type::number_list, "[0.75, 0.85]");
  states("depths", Type::number_list, "");
  states("rows", Type::number_table, "[[1, 3], [8]]");
  states("policy", Type::value, "{kind: fixed}");
  states("parts", Type::value_list, std::nullopt);
  states("batch", Type::integer, "4000000000");
  states("kernel", Type::value, "{}");
  states("other", Type::value, "{}");
  states("list", Type::value_list, "");
  CHECK(declared("ratio").interval.to_text() == "in [0, 1]");
  CHECK(declared("ratio").summary == "a share");
  CHECK(declared("word").choices == std::vector<std::string>{"none", "vllm"});
  CHECK(declared("tie").choices == std::vector<std::string>{"first", "second"});
}

TEST_CASE("omitted keys keep their initial values", "[config]") {
  const Params read_params = read("{tokens: 4, parts: []}");
  const Params initial;
  CHECK(read_params.seed == initial.seed);
  CHECK(read_params.ratio == initial.ratio);
  CHECK(read_params.large == initial.large);
  CHECK(read_params.small == initial.small);
  CHECK(read_params.counted == initial.counted);
  CHECK(read_params.argmax);
  CHECK(read_params.order == Order::second);
  CHECK_FALSE(read_params.tie);
  CHECK_FALSE(read_params.least);
  CHECK(read_params.most == 9);
  CHECK(read_params.shares == initial.shares);
  CHECK(read_params.depths.empty());
  CHECK(read_params.rows == initial.rows);
  CHECK(read_params.policy.find("kind")->text == "fixed");
  CHECK(read_params.disable.batch == 4000000000U);
  CHECK(read_params.kernel.share == 0.25);
  CHECK_FALSE(read_params.other);
  CHECK(read_params.list.empty());
}

TEST_CASE("a written value reaches its member", "[config]") {
  const Params p = read(
      "{seed: 5, ratio: 0.5, large: 2, small: 3, counted: 256, tokens: 7, graphs: true, selection: sampled, name: a, word: vllm, "
      "order: first, tie: second, least: 0.25, most: 1, shares: [0.5], depths: [0.1, 0.2], rows: [[4]], policy: {kind: table}, "
      "parts: [x, y], batch: 11, queue: 12, kernel: {rows: 8, share: 0.5}, other: {rows: 16}, list: [{rows: 1}, {rows: 2, share: "
      "1}]}");
  CHECK(p.seed == 5);
  CHECK(p.ratio == 0.5);
  CHECK(p.large == 2.0);
  CHECK(p.small == 3.0);
  CHECK(p.counted == 256.0);
  CHECK(p.tokens == 7);
  CHECK(p.graphs);
  CHECK_FALSE(p.argmax);
  CHECK(p.name == "a");
  CHECK(p.word == "vllm");
  CHECK(p.order == Order::first);
  CHECK(p.tie == Order::second);
  CHECK(p.least == 0.25);
  CHECK(p.most == 1);
  CHECK(p.shares == std::vector<double>{0.5});
  CHECK(p.depths == std::vector<double>{0.1, 0.2});
  CHECK(p.rows == std::vector<std::vector<double>>{{4}});
  CHECK(p.policy.find("kind")->text == "table");
  CHECK(p.parts.items.size() == 2);
  CHECK(p.disable.batch == 11);
  CHECK(p.disable.queue == 12);
  CHECK(p.kernel.rows == 8.0);
  CHECK(p.kernel.share == 0.5);
  REQUIRE(p.other);
  CHECK(p.other->rows == 16.0);
  CHECK(p.other->share == 0.25);
  REQUIRE(p.list.size() == 2);
  CHECK(p.list[0].share == 0.25);
  CHECK(p.list[1].share == 1.0);
}

namespace {

struct Line {
  double fixed = 0.0;
  double per_token = 0.0;
};

struct Board {
  double memory = 0.0;
  double bandwidth = 32e9;
  double latency = 10e-6;
  std::optional<double> peak;
  std::optional<int> mesh;
  std::optional<double> heads = 3.0;
  double threshold = 0.5;
  std::vector<std::string> names;
  std::optional<Line> line;
  Line draft{1.0, 2.0};
};

const Fields<Board>& board_fields() {
  using B = Board;
  static const Fields<B> all = {{"memory_gb", &B::memory, "scaled", at_least(0), times(1e9), required},
                                {"bandwidth_gb", &B::bandwidth, "scaled, with a default", times(1e9)},
                                {"latency_us", &B::latency, "a default that division would round", times(1e-6)},
                                {"peak", &B::peak, "0: none", times(2), zero_is_none, Default{"0"}},
                                {"mesh", &B::mesh, "0: none", zero_is_none},
                                {"heads", &B::heads, "0: none", whole, zero_is_none},
                                {"threshold", &B::threshold, "not the initial value", Default{"0.25"}},
                                {"names", &B::names, "texts"},
                                {"source", elsewhere<std::string>, "no member"},
                                {"share", elsewhere<double>, "no member", between(0, 1), Default{"0.9"}},
                                {&B::line, Fields<Line>{{"fixed", &Line::fixed, "of a part that may be absent"}}},
                                {&B::draft, Fields<Line>{{"draft_fixed", &Line::fixed, "one of two figures", optional}}}};
  return all;
}

Board read_board(const std::string& text, Board board = {}) {
  Diagnostics diagnostics;
  const Arguments arguments = read_arguments(parsed(text), board_fields(), {}, "board", diagnostics);
  INFO(text);
  REQUIRE(all_messages(diagnostics).empty());
  board_fields().read(arguments, board);
  return board;
}

}  // namespace

TEST_CASE("numbers in units, numbers whose 0 means none, and keys without a member", "[config]") {
  std::string texts;
  for (const Parameter& one : board_fields().parameters()) texts += one.name + " " + one.fallback.value_or("required") + ", ";
  CHECK(texts ==
        "memory_gb required, bandwidth_gb 32, latency_us 10, peak 0, mesh , heads 3, threshold 0.25, names , source , share 0.9, "
        "fixed 0, draft_fixed , ");
  const Board left_out = read_board("{memory_gb: 80}");
  CHECK(left_out.memory == 80e9);
  CHECK(left_out.bandwidth == 32e9);
  CHECK_FALSE(left_out.peak);
  CHECK_FALSE(left_out.mesh);
  CHECK(left_out.heads == 3.0);
  CHECK(left_out.threshold == 0.25);
  CHECK(left_out.names.empty());
  CHECK(left_out.line.has_value());
  CHECK(left_out.draft.fixed == 1.0);
  const Board written =
      read_board("{memory_gb: 1, latency_us: 3, peak: 4, mesh: 8, heads: 0, names: [a, b], fixed: 5, draft_fixed: 6}");
  CHECK(written.latency == 1e-6 * 3.0);
  CHECK(written.peak == 8.0);
  CHECK(written.mesh == 8);
  CHECK_FALSE(written.heads);
  CHECK(written.names == std::vector<std::string>{"a", "b"});
  CHECK(written.line->fixed == 5.0);
  CHECK(written.draft.fixed == 6.0);
  CHECK(written.draft.per_token == 2.0);
}

TEST_CASE("members of a given struct keep their values if their keys are left out", "[config]") {
  Board board;
  board.memory = 1.0;
  board.draft = {7.0, 8.0};
  board.line = Line{3.0, 4.0};
  const Board read_into = read_board("{memory_gb: 2}", board);
  CHECK(read_into.memory == 2e9);
  CHECK(read_into.draft.fixed == 7.0);
  CHECK(read_into.line->per_token == 4.0);
}

TEST_CASE("an empty map is as one that was left out", "[config]") {
  CHECK_FALSE(read("{tokens: 4, parts: [], other: {}}").other);
  CHECK(read("{tokens: 4, parts: [], kernel: {}}").kernel.rows == 0.0);
}

TEST_CASE("mistakes inside maps and lists of maps have their own place and name", "[config]") {
  CHECK(mistakes("ratio: 2").find("ratio is 2, allowed: a number in [0, 1]") != std::string::npos);
  CHECK(mistakes("counted: 0.5").find("counted is 0.5, allowed: an integer") != std::string::npos);
  CHECK(mistakes("order: third").find("allowed: first, second") != std::string::npos);
  CHECK(mistakes("kernel: {share: 0}").find("share is 0, allowed: a number in (0, 1]") != std::string::npos);
  CHECK(mistakes("kernel: {share: 1}").find("kernel lacks \"rows\", allowed: an integer in [1, 1024]") != std::string::npos);
  CHECK(mistakes("other: {row: 1}").find("unknown key \"row\" in other, did you mean \"rows\"?") != std::string::npos);
  CHECK(mistakes("list: [{rows: 1}, {share: 1}]").find("list[1] lacks \"rows\"") != std::string::npos);
  CHECK(mistakes("list: {}").find("list is a map, allowed: a list") != std::string::npos);
  CHECK(mistakes("kernel: 3").find("kernel is 3, allowed: a map") != std::string::npos);
}

TEST_CASE("a part's table comes from its fields", "[config]") {
  const PartInfo info{"kernel", "a part", "", kernel_fields(), ""};
  REQUIRE(info.parameters.size() == 2);
  CHECK(info.parameters[0].name == "rows");
  CHECK(info.has_parameter("share"));
}

}  // namespace specsim::config::config_fields_test
