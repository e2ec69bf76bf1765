// The reader of a log: finds the reader of each line, joins lines that were broken, and adds up their counts.
#include "sim/serving/logs/json_text.h"
#include "sim/serving/logs/line_scan.h"
#include "sim/serving/logs/readers.h"
#include "sim/serving/logs/server_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostHeld = 8;            // lines that a terminal makes of one
constexpr std::size_t kLongestHeld = 4096;      // bytes
constexpr std::size_t kNarrowestTerminal = 40;  // columns
constexpr std::size_t kMostFound = 1024;        // kinds of lines, with their names and draft lengths

// Whether a line of JSON holds more than one line of a log, as answers of Loki and CloudWatch do.
bool holds_several(std::string_view line) {
  if (line.find('"') == std::string_view::npos) return false;
  return std::any_of(readers().begin(), readers().end(), [&](const Reader& reader) {
    if (reader.form != Form::line || *reader.begins == '\0') return false;
    const std::size_t first = line.find(reader.begins);
    return first != std::string_view::npos && line.find(reader.begins, first + 1) != std::string_view::npos;
  });
}

// The texts between quotes.
std::vector<std::string_view> quoted_texts(std::string_view line) {
  std::vector<std::string_view> texts;
  std::size_t begin = std::string_view::npos;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      if (begin != std::string_view::npos) texts.push_back(line.substr(begin, at - begin));
      begin = begin == std::string_view::npos ? at + 1 : std::string_view::npos;
    }
  }
  return texts;
}

}  // namespace

void LogReader::add_sample(ReportedAcceptance& acceptance, const Sample& sample) {
  constexpr std::size_t kMostSamples = std::size_t{1} << 20U;
  std::vector<Sample>& samples = acceptance.samples;
  if (samples.size() == kMostSamples) {  // adjacent lines are added up: their spread estimates the same variance
    for (std::size_t i = 0; i < samples.size() / 2; ++i) {
      const Sample& a = samples[2 * i];
      const Sample& b = samples[2 * i + 1];
      samples[i] = {a.rounds + b.rounds, a.accepted + b.accepted, a.judged + b.judged};
    }
    samples.resize(samples.size() / 2);
    for (auto& [id, slot] : llama_slots_) slot.request = 0;  // the lines were moved
    pieces_.clear();
  }
  samples.push_back(sample);
}

ReportedAcceptance* LogReader::known(LogKind kind, int draft_length, const std::string& name) {
  const auto found = std::find_if(contents_.found.begin(), contents_.found.end(), [&](const ReportedAcceptance& one) {
    return one.kind == kind && one.draft_length == draft_length && one.name == name;
  });
  return found == contents_.found.end() ? nullptr : &*found;
}

ReportedAcceptance& LogReader::of(LogKind kind, int draft_length, const std::string& name) {
  if (ReportedAcceptance* const one = known(kind, draft_length, name)) return *one;
  ReportedAcceptance fresh;
  fresh.kind = kind;
  fresh.draft_length = draft_length;
  fresh.name = name;
  contents_.found.push_back(std::move(fresh));
  return contents_.found.back();
}

void LogReader::seen(ReportedAcceptance& acceptance) {
  if (acceptance.lines++ == 0) acceptance.first_line = line_;
  acceptance.last_line = line_;
}

void LogReader::contradict(ReportedAcceptance& acceptance, const std::string& what) {
  if (std::exchange(acceptance.last_contradiction, line_) == line_) return;
  if (acceptance.contradictions++ == 0) acceptance.first_contradiction = fmt::format("line {}: {}", line_, what);
}

void LogReader::cannot_read(const std::string& why) {
  if (contents_.unread++ == 0) contents_.first_unread = fmt::format("line {}: {}", line_, why);
}

void LogReader::add_part(std::string_view part) {
  line_ = contents_.lines + 1;
  read_pieces(part);
}

void LogReader::add_line(std::string_view line) {
  line_ = ++contents_.lines;
  read_pieces(line);
}

void LogReader::read_pieces(std::string_view line) {
  // Splits at carriage returns, which a terminal uses to overwrite text: progress before a line, or a whole log without line
  // feeds.
  while (true) {
    const std::size_t end = line.find('\r');
    if (end == std::string_view::npos || end + 1 == line.size()) break;
    if (end > 0) read_line(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  read_line(line);
}

void LogReader::read_line(std::string_view line) {
  if (level_ < json_.size() && (json_[level_]->open() || line.find_first_of("{\"") != std::string_view::npos) &&
      json_[level_]->read(line, *this))
    return;  // it contained lines of a log, which have been read
  if (!go_on(line)) read_text(line);
}

void LogReader::on_log_text(const std::string& text) {
  ++level_;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    read_line(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  --level_;
}

void LogReader::read_text(std::string_view line) {
  if (holds_several(line)) {
    for (const std::string_view text : quoted_texts(line)) on_log_text(without_escapes(text));
    return;
  }
  for (const Reader& reader : readers()) {
    if (reader.form != Form::line) continue;
    auto report = read_line_by(reader, line);
    if (!report) {
      const bool broken = line.find(reader.begins) != std::string_view::npos && *reader.closes != '\0' &&
                          line.find(reader.closes) == std::string_view::npos && line.size() <= kLongestHeld;
      if (!broken) continue;
      held_ = {true, line_, "", std::string(line), {}};
      return;
    }
    before_.clear();
    const bool idle = reader.take == nullptr && report->number(Role::drafted) == 0.0;
    std::string why = idle ? "" : missing_figures(reader, *report);
    if (why.empty() && !idle) {
      Report whole = *report;
      why = complete(whole);
      const std::string_view text = trimmed(line);
      // If a line ends in rates, and there are fewer than its length implies, some rates were cut off.
      const bool may_be_cut = whole.has(Role::shares) && (std::isdigit(static_cast<unsigned char>(text.back())) != 0 ||
                                                          text.back() == ',' || text.back() == '.');
      if (why.empty() && may_be_cut && 1.0 + whole.sum(Role::shares) < whole.number(Role::length) &&
          !contradiction(reader, whole).empty())
        why = "it ends within its rates";
    }
    if (why.empty() || line.size() > kLongestHeld)
      take(reader, *report);
    else
      held_ = {true, line_, why, std::string(line), {}};
    return;
  }
  // A terminal may break the words that identify a line.
  if (before_.size() >= kNarrowestTerminal) {
    const std::string seam =
        without_spaces(before_.substr(before_.size() - kNarrowestTerminal)) + without_spaces(line.substr(0, kNarrowestTerminal));
    if (std::any_of(readers().begin(), readers().end(), [&](const Reader& reader) {
          return reader.form == Form::line && seam.find(without_spaces(reader.begins)) != std::string::npos;
        })) {
      held_ = {true, line_ - 1, "", std::exchange(before_, {}), {}};
      if (go_on(line)) return;
    }
  }
  before_ = line.size() < kLongestHeld ? line : std::string_view();
  if (read_counter(line) || read_sglang_gauge(line)) return;
  read_llama_slot(line);
  read_spec_bench(line);
  if (!read_trtllm_bench(line)) read_blocks(line);
}

// Whether the line continues the one that is held.
bool LogReader::go_on(std::string_view line) {
  if (!held_.open) return false;
  const bool other = std::any_of(readers().begin(), readers().end(), [&](const Reader& reader) {
    return reader.form == Form::line && line.find(reader.begins) != std::string_view::npos;
  });
  if (other) {
    drop_held();
    return false;
  }
  held_.more.emplace_back(line_, line);
  held_.text += line;
  const std::string dense = without_spaces(held_.text);
  for (const Reader& reader : readers()) {
    if (reader.form != Form::line) continue;
    auto report = read_line_by(reader, dense, true);
    if (!report) continue;
    Report whole = *report;
    if (!missing_figures(reader, whole).empty() || !complete(whole).empty() || !contradiction(reader, whole).empty()) break;
    const std::size_t now = std::exchange(line_, held_.line);
    held_ = {};
    take(reader, *report);
    line_ = now;
    return true;
  }
  if (held_.more.size() == kMostHeld || held_.text.size() > kLongestHeld) drop_held();
  return true;
}

void LogReader::drop_held() {
  const Held held = std::exchange(held_, {});
  if (!held.open) return;
  const std::size_t now = std::exchange(line_, held.line);
  if (!held.why.empty()) cannot_read(held.why);
  for (const auto& [number, line] : held.more) {
    line_ = number;
    if (!go_on(line)) read_text(line);
  }
  line_ = now;
}

void LogReader::read_blocks(std::string_view line) {
  blocks_.resize(readers().size());
  for (std::size_t r = 0; r < readers().size(); ++r) {
    const Reader& reader = readers()[r];
    if (reader.form != Form::block) continue;
    std::unique_ptr<Report>& block = blocks_[r];
    if (*reader.begins != '\0' && line.find(reader.begins) != std::string_view::npos) end_block(r);
    Report now;
    if (read_block_line(reader, line, block ? *block : Report(), now)) end_block(r);
    if (now.empty()) continue;
    if (!block) block = std::make_unique<Report>();
    block->merge(now);
  }
}

void LogReader::end_block(std::size_t reader) {
  const std::unique_ptr<Report> block = std::move(blocks_[reader]);
  if (block && block->has(readers()[reader].needs().front())) take(readers()[reader], *block);
}

void LogReader::take(const Reader& reader, Report& report) {
  const bool before_any =
      report.has(Role::rough_length) && report.number(Role::rough_length) == 0.0;  // a server that just started
  if (before_any || (reader.take == nullptr && (report.number(Role::drafted) == 0.0 ||
                                                (report.number(Role::rounds) == 0.0 && !report.has(Role::drafted))))) {
    ++contents_.idle;
    return;
  }
  std::string why = missing_figures(reader, report);
  if (why.empty()) why = complete(report);
  if (!why.empty())
    cannot_read(why);
  else if (reader.take != nullptr)
    (this->*reader.take)(reader, report);
  else
    add_report(reader, report);
}

void LogReader::add_report(const Reader& reader, Report& report) {
  const std::vector<double>& histogram = report.list(Role::histogram);
  const std::vector<double>& shares = report.list(Role::shares);
  const auto said = static_cast<std::size_t>(std::max(0.0, std::min(report.number(Role::draft_length), double{kMostPositions})));
  const bool tree = report.has(Role::verified) && report.number(Role::verified) != static_cast<double>(said) + 1.0;
  const std::size_t length = tree                                     ? 0
                             : report.has(Role::draft_length)         ? said
                             : reader.kind == LogKind::llama_requests ? 0  // its drafts have any length
                                                                      : shares.size();
  if (report.name.size() > kLongestName ||
      (contents_.found.size() >= kMostFound && known(reader.kind, static_cast<int>(length), report.name) == nullptr)) {
    cannot_read(fmt::format("more than {} names and draft lengths in one log, or a name of more than {} bytes", kMostFound,
                            kLongestName));
    return;
  }
  ReportedAcceptance& all = of(reader.kind, static_cast<int>(length), report.name);
  seen(all);
  if (const std::string what = contradiction(reader, report); !what.empty()) contradict(all, what);
  const auto number = [&](Role role) { return report.has(role) ? report.number(role) : 0.0; };
  const double rounds = number(Role::rounds);
  if (!report.counted) all.rounds_counted = false;
  Piece now{{rounds, number(Role::accepted), 0.0}, number(Role::drafted), {}, 0};
  if (!histogram.empty()) {
    double above = report.sum(Role::histogram);
    for (std::size_t i = 0; i + 1 < histogram.size(); ++i) now.accepted_at.push_back(above -= histogram[i]);
    if (length > now.accepted_at.size()) now.accepted_at.resize(length, 0.0);
  } else {
    for (const double share : shares) now.accepted_at.push_back(report.counted ? std::round(share * rounds) : share * rounds);
  }
  if (!now.accepted_at.empty() && now.accepted_at.size() == length)
    now.sample.judged = now.sample.accepted + rounds - now.accepted_at.back();
  Piece before;
  const std::string id = fmt::format("{} {}", static_cast<int>(reader.kind), report.id);
  if (!report.id.empty() && reader.answers) {
    if (const auto known = pieces_.find(id); known != pieces_.end() && now.drafted >= known->second.drafted &&
                                             now.sample.accepted >= known->second.sample.accepted &&
                                             rounds >= known->second.sample.rounds)
      before = known->second;
  }
  all.rounds += rounds - before.sample.rounds;
  all.accepted += now.sample.accepted - before.sample.accepted;
  all.drafted += now.drafted - before.drafted;
  all.some_without_drafted |= !report.has(Role::drafted);
  all.some_without_positions |= now.accepted_at.empty() && reader.kind != LogKind::llama_requests;  // they are on the next line
  if (all.accepted_at.size() < now.accepted_at.size()) all.accepted_at.resize(now.accepted_at.size(), 0.0);
  for (std::size_t i = 0; i < now.accepted_at.size(); ++i)
    all.accepted_at[i] += now.accepted_at[i] - (i < before.accepted_at.size() ? before.accepted_at[i] : 0.0);
  if (before.place == 0) {
    all.answers += report.has(Role::answers) ? report.number(Role::answers) : reader.answers ? 1.0 : 0.0;
    add_sample(all, now.sample);
    before.place = all.samples.size();
  }
  all.samples[before.place - 1] = now.sample;
  now.place = before.place;
  if (!report.id.empty() && reader.answers) {
    if (pieces_.size() > kMostAtOnce) pieces_.clear();
    pieces_[id] = now;
  }
}

void LogReader::add_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    add_line(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

LogReader::LogReader(ReaderOptions options) : options_(options) {
  for (int level = 0; level < 4; ++level) json_.push_back(std::make_unique<JsonText>());
}

LogReader::~LogReader() = default;

LogContents LogReader::finish() {
  drop_held();
  for (const auto& json : json_) json->end(*this);
  for (std::size_t r = 0; r < blocks_.size(); ++r) end_block(r);
  finish_sglang();
  finish_sglang_gauges();
  settle_llama_totals();
  finish_counters();
  end_trtllm_report();
  // Removes lines without any draft, which give no information.
  std::erase_if(contents_.found, [](const ReportedAcceptance& one) { return one.rounds <= 0.0 && one.drafted <= 0.0; });
  for (ReportedAcceptance& one : contents_.found) {
    if (one.some_without_drafted && one.rounds > 0.0) one.drafted = 0.0;
    if (one.some_without_positions) one.accepted_at.clear();
    const auto positions = static_cast<double>(one.accepted_at.size());
    if (positions > 0.0 && one.drafted > 0.0 && one.rounds_counted)
      one.drafts_whole = std::abs(one.rounds * positions - one.drafted) <= 0.5 + one.answers * (positions - 1.0);
  }
  return std::move(contents_);
}

}  // namespace specsim::logs
