#include "sim/base/token.h"
#include "sim/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class ByBatch final : public ServerPolicy {
 public:
  struct Range {
    std::uint32_t from = 1;
    int draft_length = 0;
  };
  explicit ByBatch(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    for (const Range& range : ranges_) longest_ = std::max(longest_, range.draft_length);
  }
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    int length = ranges_.front().draft_length;
    for (const Range& range : ranges_)
      if (range.from <= batch.requests) length = range.draft_length;
    return length;
  }
  [[nodiscard]] int longest() const override { return longest_; }

 private:
  std::vector<Range> ranges_;
  int longest_ = 0;
};

}  // namespace

ServerPolicyEntry table_policy() {
  return {
      {"table",
       "the draft length by the number of requests in the step",
       "vLLM's num_speculative_tokens_per_batch_size",
       {{"table",
         config::Type::number_table,
         {},
         "[[from, to, draft_length], ...]; a gap goes on with the range before it",
         config::between(0, 1e9),
         {}}},
       ""},
      [](const config::Arguments& arguments, const PolicySetting&, Diagnostics& diagnostics) -> std::unique_ptr<ServerPolicy> {
        std::vector<ByBatch::Range> ranges;
        double last = 0.0;
        const auto wrong = [&](const std::string& what) -> std::unique_ptr<ServerPolicy> {
          diagnostics.add(arguments.where("table"), what);
          return nullptr;
        };
        for (const std::vector<double>& row : arguments.table("table")) {
          if (row.size() != 3)
            return wrong(fmt::format("a row of the table has {} numbers, allowed: [from, to, draft_length]", row.size()));
          for (const double x : row)
            if (x != std::floor(x)) return wrong(fmt::format("the table holds {:g}, allowed: whole numbers", x));
          if (ranges.empty() && row[0] != 1.0) return wrong(fmt::format("the table starts at {:g}, allowed: 1", row[0]));
          if (row[0] <= last || row[1] < row[0])
            return wrong(fmt::format("the range {:g} to {:g} does not follow {:g}, allowed: ranges in order that do not overlap",
                                     row[0], row[1], last));
          if (row[2] > kMaxDraftLength)
            return wrong(fmt::format("the draft length {:g}, allowed: at most {}", row[2], kMaxDraftLength));
          ranges.push_back({static_cast<std::uint32_t>(row[0]), static_cast<int>(row[2])});
          last = row[1];
        }
        if (ranges.empty()) return wrong("the table is empty, allowed: [[1, 4, 5], [5, 64, 3], ...]");
        return std::make_unique<ByBatch>(std::move(ranges));
      }};
}

}  // namespace specsim::serve
