#include "sim/answers/load/outputs.h"

#include <fmt/format.h>

#include <array>

namespace specsim::load {

namespace {

constexpr std::size_t kWriteAt = std::size_t{1} << 20;

template <class Integer>
void append_number(std::string& text, Integer n) {
  const fmt::format_int digits(n);
  text.append(digits.data(), digits.size());
}

void append_seconds(std::string& text, arrivals::Picoseconds time) {
  if (time == arrivals::kNever) return;
  constexpr arrivals::Picoseconds kSecond = 1'000'000'000'000;
  append_number(text, time / kSecond);
  arrivals::Picoseconds rest = time % kSecond;
  if (rest == 0) return;
  std::array<char, 13> digits{'.'};
  for (std::size_t i = digits.size() - 1; i > 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  std::size_t length = digits.size();
  while (digits[length - 1] == '0') --length;
  text.append(digits.data(), length);
}

// A request of a run.
struct RequestLine {
  std::uint32_t replica = 0;
  std::size_t request = 0;
  const serve::Sequence* sequence = nullptr;
};

template <class Row>
report::StreamedColumn<Row> number_column(const char* name, const char* unit, const char* meaning, auto value) {
  return {name, unit, meaning, [value](std::string& line, const Row& row) { append_number(line, value(row)); }};
}
template <class Row>
report::StreamedColumn<Row> seconds_column(const std::string& name, const std::string& meaning, auto value) {
  return {name, "s", meaning, [value](std::string& line, const Row& row) { append_seconds(line, value(row)); }};
}

const std::vector<report::StreamedColumn<RequestLine>>& request_columns() {
  using Line = RequestLine;
  static const std::vector<report::StreamedColumn<Line>> list = [] {
    const auto number = [](const char* name, const char* unit, const char* meaning, auto value) {
      return number_column<Line>(name, unit, meaning, value);
    };
    const auto seconds = [](const char* name, const char* meaning, arrivals::Picoseconds serve::Sequence::*time) {
      return seconds_column<Line>(name, meaning, [time](const Line& line) { return line.sequence->*time; });
    };
    const auto count = [](const char* name, const char* unit, const char* meaning, std::uint32_t serve::Sequence::*value) {
      return number_column<Line>(name, unit, meaning, [value](const Line& line) { return line.sequence->*value; });
    };
    std::vector<report::StreamedColumn<Line>> columns = {
        number("replica", "1", "the engine that served it, from 0", [](const Line& line) { return line.replica; }),
        number("request", "1", "its number, from 0, in the order of the workload", [](const Line& line) { return line.request; }),
        seconds("arrival_s", "when its client sent it", &serve::Sequence::sent),
        seconds("first_scheduled_s", "when a step computed its first tokens; empty if none did",
                &serve::Sequence::first_scheduled),
        seconds("first_token_s", "when its first token came; empty if none did", &serve::Sequence::first_token),
        seconds("last_token_s", "when its last token came; empty if none did", &serve::Sequence::last_token),
        count("prompt_tokens", "tokens", "tokens of its prompt", &serve::Sequence::prompt),
        count("output_tokens", "tokens", "its output tokens", &serve::Sequence::emitted),
        count("rounds", "1", "steps that decoded it", &serve::Sequence::rounds),
        count("drafted", "tokens", "its verified drafts", &serve::Sequence::drafted),
        count("accepted", "tokens", "its accepted drafts", &serve::Sequence::accepted),
        count("preemptions", "1", "preemptions: how often it lost its blocks", &serve::Sequence::preemptions),
        count("recomputed_tokens", "tokens", "tokens computed again after preemptions", &serve::Sequence::recomputed),
        count("cached_tokens", "tokens", "tokens found in the prefix cache at its admissions", &serve::Sequence::found),
        number("finished", "0 or 1", "whether it got its whole output",
               [](const Line& line) { return line.sequence->status == serve::Status::finished ? 1 : 0; })};
    for (std::size_t cause = 0; cause < serve::kCauses; ++cause)
      columns.push_back(seconds_column<Line>(fmt::format("{}_s", serve::cause_names()[cause]),
                                             fmt::format("part of its total time that went to {}", serve::cause_names()[cause]),
                                             [cause](const Line& line) { return line.sequence->spent[cause]; }));
    return columns;
  }();
  return list;
}

const std::vector<report::StreamedColumn<serve::StepRecord>>& step_columns() {
  using Row = serve::StepRecord;
  static const std::vector<report::StreamedColumn<Row>> list = [] {
    const auto number = [](const char* name, const char* unit, const char* meaning, auto value) {
      return number_column<Row>(name, unit, meaning, value);
    };
    return std::vector<report::StreamedColumn<Row>>{
        number("replica", "1", "the engine, from 0", [](const Row& row) { return row.replica; }),
        number("step", "1", "its number at that engine, from 0", [](const Row& row) { return row.step; }),
        seconds_column<Row>("start_s", "when it began", [](const Row& row) { return row.start; }),
        seconds_column<Row>("duration_s", "its duration", [](const Row& row) { return row.time.total(); }),
        number("requests", "1", "requests in the step", [](const Row& row) { return row.plan->items.size(); }),
        number("waiting", "requests", "requests left in the queue when it began",
               [](const Row& row) { return row.plan->waiting; }),
        number("prefill_rows", "tokens", "tokens of prompts, and of work lost to preemptions, that it computes",
               [](const Row& row) { return row.prefill_rows; }),
        number("decode_rows", "tokens", "tokens of decoding requests that it computes, drafts included",
               [](const Row& row) { return row.decode_rows; }),
        number("draft_rows", "tokens", "drafts among decode_rows, which it verifies",
               [](const Row& row) { return row.draft_rows; }),
        number("preempted", "requests", "requests that lost their blocks when it was scheduled",
               [](const Row& row) { return row.plan->preempted; }),
        number("free_blocks", "blocks", "blocks left in the pool when it began",
               [](const Row& row) { return row.plan->free_blocks; }),
        number("draft_length", "tokens", "tokens that it drafts per request for the next step",
               [](const Row& row) { return row.plan->draft_length; })};
  }();
  return list;
}

}  // namespace

std::string requests_csv(const serve::SimulationResult& result) {
  std::string text;
  report::append_header(text, request_columns());
  text.reserve(text.size() + result.sent * 160);
  for (std::size_t i = 0; i < result.sent; ++i)
    if (const serve::Sequence& sequence = result.sequences[i]; sequence.sent != arrivals::kNever)
      report::append_line(text, request_columns(), {result.replica_of.empty() ? 0 : result.replica_of[i], i, &sequence});
  return text;
}

std::vector<report::FileInfo> output_infos() {
  return {{"requests.csv and requests_plain.csv of serve", report::column_infos(request_columns())},
          {"steps.csv of serve", report::column_infos(step_columns())}};
}

void StepTimeline::began(const serve::StepRecord& record) {
  const auto at = [](arrivals::Picoseconds time) { return SimTime::from_ps(time); };
  const auto lasts = [](arrivals::Picoseconds time) { return Duration::from_ps(time); };
  const serve::Step& step = *record.plan;
  const std::string replica = fmt::format("replica {} ", record.replica);
  timeline_.counter(replica + "batch", at(record.start),
                    {{"prefill", std::int64_t{record.prefill_rows}},
                     {"decode", std::int64_t{record.decode_rows}},
                     {"drafts", std::int64_t{record.draft_rows}}});
  timeline_.counter(replica + "queue", at(record.start), {{"waiting", std::int64_t{step.waiting}}});
  if (!record.pool->unlimited())
    timeline_.counter(replica + "pool", at(record.start),
                      {{"used blocks", std::int64_t{record.pool->usable()} - std::int64_t{step.free_blocks}}});
  for (const serve::Item& item : step.items) {
    if (item.request >= tracks_) continue;
    if (item.request >= of_.size()) of_.resize(item.request + std::size_t{1});
    Track& track = of_[item.request];
    const serve::Sequence& sequence = record.sequences[item.request];
    if (!track.known) {
      track.known = true;
      track.lane = timeline_.lane(fmt::format("request {}", item.request));
      track.last = sequence.sent;
    }
    if (record.start > track.last)
      timeline_.span(track.lane,
                     sequence.preemptions > track.preemptions ? "preempted"
                     : track.last == sequence.sent            ? "queue"
                                                              : "stalled",
                     at(track.last), lasts(record.start - track.last), {}, "grey");
    track.preemptions = sequence.preemptions;
    track.last = record.start + record.time.total();
    if (item.prefill)
      timeline_.span(track.lane, "prefill", at(record.start), lasts(record.time.total()),
                     {{"step", static_cast<std::int64_t>(record.step)}, {"tokens", std::int64_t{item.rows}}},
                     "thread_state_runnable");
    else
      timeline_.span(track.lane, item.drafts > 0 ? "round" : "decode", at(record.start), lasts(record.time.total()),
                     {{"step", static_cast<std::int64_t>(record.step)},
                      {"drafts", std::int64_t{item.verified}},
                      {"accepted", std::int64_t{item.accepted}}},
                     "thread_state_running");
  }
}

StepLog::StepLog(const std::string& path) : file_(path, Leftover::removed) { report::append_header(text_, step_columns()); }

void StepLog::began(const serve::StepRecord& record) {
  report::append_line(text_, step_columns(), record);
  if (text_.size() < kWriteAt) return;
  file_.append(text_);
  text_.clear();
}

void StepLog::commit() {
  file_.append(text_);
  file_.commit();
}

}  // namespace specsim::load
