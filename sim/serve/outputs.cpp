#include "sim/serve/outputs.h"

#include <fmt/format.h>

#include <iterator>

namespace specsim::serve {

namespace {

constexpr std::size_t kWriteAt = std::size_t{1} << 20;

void append_seconds(std::string& text, Picoseconds time) {
  if (time == kNever) return;
  constexpr Picoseconds kSecond = 1'000'000'000'000;
  text += fmt::format("{}", time / kSecond);
  if (Picoseconds rest = time % kSecond; rest != 0) {
    int digits = 12;
    for (; rest % 10 == 0; rest /= 10) --digits;
    text += fmt::format(".{:0{}}", rest, digits);
  }
}

}  // namespace

std::string seconds_text(Picoseconds time) {
  std::string text;
  append_seconds(text, time);
  return text;
}

std::string requests_csv(const SimulationResult& result) {
  std::string text =
      "replica,request,arrival_s,first_scheduled_s,first_token_s,last_token_s,prompt_tokens,output_tokens,rounds,drafted,"
      "accepted,preemptions,"
      "recomputed_tokens,finished";
  for (const char* const cause : cause_names()) text += fmt::format(",{}_s", cause);
  text += "\n";
  text.reserve(text.size() + result.sent * 160);
  for (std::size_t i = 0; i < result.sent; ++i) {
    const Sequence& sequence = result.sequences[i];
    if (sequence.sent == kNever) continue;
    text += fmt::format("{},{},", result.replica_of.empty() ? 0 : result.replica_of[i], i);
    for (const Picoseconds time : {sequence.sent, sequence.first_scheduled, sequence.first_token, sequence.last_token}) {
      append_seconds(text, time);
      text += ',';
    }
    text +=
        fmt::format("{},{},{},{},{},{},{},{}", sequence.prompt, sequence.emitted, sequence.rounds, sequence.drafted,
                    sequence.accepted, sequence.preemptions, sequence.recomputed, sequence.status == Status::finished ? 1 : 0);
    for (const Picoseconds time : sequence.spent) {
      text += ',';
      append_seconds(text, time);
    }
    text += '\n';
  }
  return text;
}

void StepTimeline::began(const StepRecord& record) {
  const auto at = [](Picoseconds time) { return SimTime::from_ps(time); };
  const auto lasts = [](Picoseconds time) { return Duration::from_ps(time); };
  const Step& step = *record.plan;
  const std::string replica = fmt::format("replica {} ", record.replica);
  timeline_.counter(replica + "batch", at(record.start),
                    {{"prefill", std::int64_t{record.prefill_rows}},
                     {"decode", std::int64_t{record.decode_rows}},
                     {"drafts", std::int64_t{record.draft_rows}}});
  timeline_.counter(replica + "queue", at(record.start), {{"waiting", std::int64_t{step.waiting}}});
  if (!record.pool->unlimited())
    timeline_.counter(replica + "pool", at(record.start),
                      {{"used blocks", std::int64_t{record.pool->usable()} - std::int64_t{step.free_blocks}}});
  for (const Item& item : step.items) {
    if (item.request >= tracks_) continue;
    if (item.request >= of_.size()) of_.resize(item.request + std::size_t{1});
    Track& track = of_[item.request];
    const Sequence& sequence = record.sequences[item.request];
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
    track.last = record.start + record.price.total();
    if (item.prefill)
      timeline_.span(track.lane, "prefill", at(record.start), lasts(record.price.total()),
                     {{"step", static_cast<std::int64_t>(record.step)}, {"tokens", std::int64_t{item.rows}}},
                     "thread_state_runnable");
    else
      timeline_.span(track.lane, item.drafts > 0 ? "round" : "decode", at(record.start), lasts(record.price.total()),
                     {{"step", static_cast<std::int64_t>(record.step)},
                      {"drafts", std::int64_t{item.drafts}},
                      {"accepted", std::int64_t{item.accepted}}},
                     "thread_state_running");
  }
}

StepLog::StepLog(const std::string& path) : file_(path) {
  text_ =
      "replica,step,start_s,duration_s,requests,waiting,prefill_rows,decode_rows,draft_rows,preempted,free_blocks,draft_length\n";
}

void StepLog::began(const StepRecord& record) {
  text_ += fmt::format("{},{},", record.replica, record.step);
  append_seconds(text_, record.start);
  text_ += ',';
  append_seconds(text_, record.price.total());
  const Step& step = *record.plan;
  text_ += fmt::format(",{},{},{},{},{},{},{},{}\n", step.items.size(), step.waiting, record.prefill_rows, record.decode_rows,
                       record.draft_rows, step.preempted, step.free_blocks, step.draft_length);
  if (text_.size() < kWriteAt) return;
  file_.append(text_);
  text_.clear();
}

void StepLog::commit() {
  file_.append(text_);
  file_.commit();
}

}  // namespace specsim::serve
