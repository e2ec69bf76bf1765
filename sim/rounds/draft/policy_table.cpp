#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

namespace {

class Table final : public LengthPolicy {
 public:
  struct Params {
    std::vector<std::vector<double>> table;
  };
  Table(int length, int sequences) : length_(length), sequences_(sequences) {}
  [[nodiscard]] int sequences() const override { return sequences_; }
  [[nodiscard]] bool follows_acceptance() const override { return false; }
  [[nodiscard]] Memory start() const override { return {.length = length_}; }

 private:
  int length_;
  int sequences_;
};

}  // namespace

PolicyEntry table_policy() {
  using P = Table::Params;
  static const config::Fields<P> fields = {
      {"table", &P::table, "[[from, to, draft_length], ...]; a gap, and sizes after the last range, use the range before",
       config::between(0, 1e9), config::required},
  };
  return {
      {"table", "one draft length for the batch, by its size", "vLLM, num_speculative_tokens_per_batch_size", fields, "",
       "table: [[1, 1000000, 1]]"},
      [](const config::Arguments& arguments, const LengthChoice& choice,
         Diagnostics& diagnostics) -> std::unique_ptr<LengthPolicy> {
        const P params = fields.read(arguments);
        const auto wrong = [&](const std::string& what) -> std::unique_ptr<LengthPolicy> {
          diagnostics.add(arguments.where("table"), what);
          return nullptr;
        };
        double last = 0.0;
        double length = -1.0;
        for (const std::vector<double>& row : params.table) {
          if (row.size() != 3)
            return wrong(fmt::format("a row of the table has {} numbers, allowed: [from, to, draft_length]", row.size()));
          if (std::any_of(row.begin(), row.end(), [](double x) { return x != static_cast<double>(static_cast<long long>(x)); }))
            return wrong(fmt::format("the table holds [{:g}, {:g}, {:g}], allowed: whole numbers", row[0], row[1], row[2]));
          if (last == 0.0 && row[0] != 1.0) return wrong(fmt::format("the table starts at {:g}, allowed: 1", row[0]));
          if (row[0] <= last || row[1] < row[0])
            return wrong(fmt::format("the range {:g} to {:g} does not follow {:g}, allowed: ranges in order that do not overlap",
                                     row[0], row[1], last));
          if (row[2] > choice.longest)
            return wrong(
                fmt::format("draft length {:g}, allowed: at most {}, the drafter's draft_length", row[2], choice.longest));
          if (row[0] <= choice.batch) length = row[2];
          last = row[1];
        }
        if (length < 0.0) return wrong("the table is empty, allowed: [[1, 4, 5], [5, 64, 3], ...]");
        return std::make_unique<Table>(static_cast<int>(length), choice.batch);
      }};
}

}  // namespace specsim::draft
