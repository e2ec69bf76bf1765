#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class ByBatch final : public ServerPolicy {
 public:
  struct Range {
    std::uint32_t from = 1;
    std::uint32_t to = 1;
    double from_context = 0.0;  // cached tokens per request, mean of the step
    double to_context = 0.0;
    int draft_length = 0;
  };
  ByBatch(std::vector<Range> ranges, bool by_context, DisableAbove disable)
      : ranges_(std::move(ranges)), by_context_(by_context), disable_(disable) {
    for (const Range& range : ranges_) longest_ = std::max(longest_, range.draft_length);
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    if (disable_.holds(batch)) return 0;
    if (by_context_) {
      const double context = batch.cached / batch.requests;
      for (const Range& range : ranges_)
        if (range.from <= batch.requests && batch.requests <= range.to && range.from_context <= context &&
            context <= range.to_context)
          return range.draft_length;
      return 0;
    }
    int length = ranges_.front().draft_length;
    for (const Range& range : ranges_)
      if (range.from <= batch.requests) length = range.draft_length;
    return length;
  }
  [[nodiscard]] int longest() const override { return longest_; }
  [[nodiscard]] bool by_requests_alone() const override { return !by_context_; }
  [[nodiscard]] std::vector<int> lengths() const override {
    std::vector<int> all;
    for (const Range& range : ranges_)
      if (range.draft_length > 0 && std::find(all.begin(), all.end(), range.draft_length) == all.end())
        all.push_back(range.draft_length);
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::vector<Range> ranges_;
  bool by_context_;
  DisableAbove disable_;
  int longest_ = 0;
};

struct TableParams {
  std::vector<std::vector<double>> table;
  DisableAbove disable;
};
const config::Fields<TableParams>& table_fields() {
  using P = TableParams;
  static const config::Fields<P> fields = {
      {"table", &P::table,
       "[[from, to, draft_length], ...], where a gap continues the range before it; or [[from, to, context from, context to, "
       "draft_length], ...], where the first row that fits both counts, and nothing is drafted if none fits",
       config::between(0, 1e9), config::required},
      {&P::disable, disable_fields()},
  };
  return fields;
}

PolicyMaker read_table(const config::Arguments& arguments, Diagnostics& diagnostics) {
  std::vector<ByBatch::Range> ranges;
  double last = 0.0;
  const auto wrong = [&](const std::string& what) -> PolicyMaker {
    diagnostics.add(arguments.where("table"), what);
    return nullptr;
  };
  const auto [table, disable_above] = table_fields().read(arguments);
  const bool by_context = !table.empty() && table.front().size() == 5;
  for (const std::vector<double>& row : table) {
    if (row.size() != (by_context ? 5U : 3U))
      return wrong(fmt::format("a row of the table has {} numbers, allowed: {}", row.size(),
                               by_context ? "like the first, [from, to, context from, context to, draft_length]"
                                          : "[from, to, draft_length], or in all rows [from, to, context from, context to, "
                                            "draft_length]"));
    for (const double x : row)
      if (x != std::floor(x)) return wrong(fmt::format("the table holds {:g}, allowed: whole numbers", x));
    if (ranges.empty() && !by_context && row[0] != 1.0) return wrong(fmt::format("the table starts at {:g}, allowed: 1", row[0]));
    if (!by_context && (row[0] <= last || row[1] < row[0]))
      return wrong(fmt::format("the range {:g} to {:g} does not follow {:g}, allowed: ranges in order that do not overlap",
                               row[0], row[1], last));
    if (by_context && (row[0] < 1.0 || row[1] < row[0] || row[3] < row[2]))
      return wrong(fmt::format("the ranges {:g} to {:g} and {:g} to {:g}, allowed: from 1 up, and from contexts up", row[0],
                               row[1], row[2], row[3]));
    if (row.back() > kMaxDraftLength)
      return wrong(fmt::format("the draft length {:g}, allowed: at most {}", row.back(), kMaxDraftLength));
    ranges.push_back({static_cast<std::uint32_t>(row[0]), static_cast<std::uint32_t>(row[1]), by_context ? row[2] : 0.0,
                      by_context ? row[3] : 0.0, static_cast<int>(row.back())});
    last = row[1];
  }
  if (ranges.empty()) return wrong("the table is empty, allowed: [[1, 4, 5], [5, 64, 3], ...]");
  return [ranges = std::move(ranges), by_context, disable = disable_above](const PolicySetting&) {
    return std::make_unique<ByBatch>(ranges, by_context, disable);
  };
}

// 1-4=5,5-64=3; or the list of ranges, as verdicts print it and vLLM takes it.
config::Value read_word(const std::string& word, const Location& where, Diagnostics& diagnostics) {
  if (word.starts_with("[")) return config::parse_text(word, where.file, diagnostics);
  std::string table;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    const std::string range = word.substr(begin, end - begin);
    begin = end + 1;
    long long from = 0;
    long long to = 0;
    long long length = 0;
    char more = 0;
    if (std::sscanf(range.c_str(), "%lld-%lld=%lld%c", &from, &to, &length, &more) != 3)
      throw BadInput(where, fmt::format("{} in the table, allowed: FROM-TO=DRAFT_LENGTH, as table:1-4=5,5-64=3",
                                        config::quote_for_message(range)));
    table += fmt::format("{}[{}, {}, {}]", table.empty() ? "" : ", ", from, to, length);
  }
  return config::parse_text("[" + table + "]", where.file, diagnostics);
}

}  // namespace

ServerPolicyEntry table_policy() {
  return {{"table", "the draft length by the number of requests in the step, and by their context",
           "vLLM's num_speculative_tokens_per_batch_size", table_fields(),
           "The context is the mean of the cached tokens of the step's requests."},
          read_table,
          "table",
          read_word};
}

}  // namespace specsim::serve
