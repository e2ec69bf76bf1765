// Recorded requests: columns of this project, of Azure's, ServeGen's and BurstGPT's CSV files, or JSON lines of Mooncake,
// Qwen-Bailian, AIPerf and vLLM's custom data sets. A file without times is a list of lengths.
#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/base/text_file.h"
#include "sim/foundation/config/json.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace specsim::arrivals {

namespace {

constexpr std::int64_t kMostSeconds = 4'000'000;  // longest trace: picoseconds end at twice that

constexpr std::uint32_t kMooncakeTokens = 512;  // tokens per hash in Mooncake's traces
constexpr std::uint32_t kBlockTokens =
    // tokens per hash in Qwen-Bailian's traces (alibaba-edu/qwen-bailian-usagetraces-anon), and in this project's
    16;
constexpr double kBytesPerToken = 4.0;  // bytes per token of a prompt that is given as text
constexpr double kMostDays = 1e6;       // largest time in a trace, in seconds

class Recorded final : public ArrivalProcess {
 public:
  // `rate`: for a file without times; 0: all requests are sent at the start.
  Recorded(RequestTrace workload, std::vector<std::string> notes, bool timed, double scale, double rate)
      : workload_(std::move(workload)), notes_(std::move(notes)), timed_(timed), scale_(scale), rate_(rate) {}
  void fill(RequestTrace& workload, rng::Key key) const override {
    workload = workload_;
    if (!timed_ && rate_ > 0.0) {
      RequestTrace times;
      fill_from_gaps(times, gamma_gaps(workload.requests.size(), rate_, 1.0, false, key, workload));
      for (std::size_t i = 0; i < workload.requests.size(); ++i) workload.requests[i].due = times.requests[i].due;
    }
    if (scale_ == 1.0) return;
    for (Request& request : workload.requests)
      request.due = moment(scale_ * static_cast<double>(request.due) / kPicosecondsPerSecond);
  }
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    if (!timed_) return std::make_unique<Recorded>(workload_, notes_, false, 1.0, rate);
    const double seconds = static_cast<double>(workload_.requests.back().due) / kPicosecondsPerSecond;
    const double scale = seconds > 0.0 ? static_cast<double>(workload_.requests.size()) / rate / seconds : 1.0;
    return std::make_unique<Recorded>(workload_, notes_, true, scale, 0.0);
  }

 private:
  RequestTrace workload_;
  std::vector<std::string> notes_;
  bool timed_;
  double scale_;
  double rate_;
};

std::vector<std::string_view> split(std::string_view line, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.find(by, begin);
    parts.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Moment {
  std::int64_t seconds = 0;  // since 1970
  Picoseconds fraction = 0;
};

// "2023-11-16 18:15:46.6805900"
std::optional<Moment> timestamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  const auto year = whole(text.substr(0, 4));
  const auto month = whole(text.substr(5, 2));
  const auto day = whole(text.substr(8, 2));
  const auto hour = whole(text.substr(11, 2));
  const auto minute = whole(text.substr(14, 2));
  const auto second = whole(text.substr(17, 2));
  const auto inside = [](const std::optional<std::int64_t>& x, std::int64_t low, std::int64_t high) {
    return x && *x >= low && *x <= high;
  };
  if (!year || !inside(month, 1, 12) || !inside(day, 1, 31) || !inside(hour, 0, 23) || !inside(minute, 0, 59) ||
      !inside(second, 0, 60))
    return std::nullopt;
  constexpr std::array<std::int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = *year % 4 == 0 && (*year % 100 != 0 || *year % 400 == 0);
  if (*day > kDays[static_cast<std::size_t>(*month - 1)] + (*month == 2 && leap ? 1 : 0)) return std::nullopt;
  // Days of the civil calendar, years counted from March.
  const std::int64_t y = *year - (*month <= 2 ? 1 : 0);
  const std::int64_t era = y / 400;
  const std::int64_t in_era = y - era * 400;
  const std::int64_t in_year = (153 * (*month + (*month > 2 ? -3 : 9)) + 2) / 5 + *day - 1;
  const std::int64_t days = era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
  Moment moment{days * 86400 + *hour * 3600 + *minute * 60 + *second, 0};
  std::string_view rest = text.substr(19);
  if (!rest.empty() && rest[0] == '.') {
    Picoseconds unit = 100'000'000'000;
    for (rest.remove_prefix(1); !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), unit /= 10)
      moment.fraction += unit * (rest[0] - '0');
  }
  if (!rest.empty() && rest != "Z" && rest != "+00:00") return std::nullopt;
  return moment;
}

constexpr std::int64_t kMostHashes = 10'000'000;  // hashes per prompt: more are a mistake, and would only fill memory
// Hashes of a whole trace, 8 bytes each. The limit is needed because a short text can give large ranges; Mooncake's longest trace
// has a million.
constexpr std::size_t kMostHashesInAll = std::size_t{1} << 25U;
// bytes per line; a JSON value takes a hundred times the memory of its text
constexpr std::size_t kLongestJsonLine = std::size_t{8} << 20U;

// "0-146" or "3" or "7-9 12", ranges of hashes.
bool read_hashes(std::string_view text, std::vector<std::uint64_t>& hashes) {
  std::int64_t left = std::min<std::int64_t>(kMostHashes, static_cast<std::int64_t>(kMostHashesInAll - hashes.size()));
  for (std::string_view part : split(text, text.find(';') != std::string_view::npos ? ';' : ' ')) {
    if (part.empty()) continue;
    const std::size_t dash = part.find('-');
    const auto first = whole(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last - *first >= left) return false;
    left -= *last - *first + 1;
    for (std::int64_t hash = *first; hash <= *last; ++hash) hashes.push_back(static_cast<std::uint64_t>(hash));
  }
  return true;
}

class Reader {
 public:
  Reader(std::string file, std::size_t most, Diagnostics& diagnostics)
      : file_(std::move(file)), most_(most), diagnostics_(diagnostics) {}

  bool read(const std::string& text) {
    const bool json = text.find_first_not_of(" \t\r\n") != std::string::npos && text[text.find_first_not_of(" \t\r\n")] == '{';
    for (std::size_t begin = 0; begin < text.size() && workload.requests.size() < most_;) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line(text.data() + begin, end - begin);
      begin = end + 1;
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.empty()) continue;
      const bool good = json ? json_line(std::string(line)) : columns_.empty() ? header(line) : csv_line(line);
      if (!good) return false;
    }
    if (workload.requests.empty()) {
      diagnostics_.add({file_, 0, 0}, "has no request, allowed: at least one");
      return false;
    }
    if (!ignored_.empty()) notes.push_back(fmt::format("ignored in {}: {}", file_, fmt::join(ignored_, ", ")));
    if (fractions_)
      notes.push_back(fmt::format("{} has timestamps with fractions, which are read as milliseconds, not seconds", file_));
    if (texts_) notes.push_back(fmt::format("{} has prompts as text: a token is taken as {:g} bytes", file_, kBytesPerToken));
    return turns_.empty() || order_turns();
  }

  RequestTrace workload;
  std::vector<std::string> notes;
  bool timed = true;

 private:
  enum class Field { skipped, arrived_us, arrived_s, timestamp, prompt, output, hashes, priority };

  bool wrong(std::size_t column, const std::string& what) {
    diagnostics_.add({file_, static_cast<int>(line_), static_cast<int>(column)}, what);
    return false;
  }

  bool header(std::string_view line) {
    static const std::array<std::pair<const char*, Field>, 14> kNames = {{{"arrived_us", Field::arrived_us},
                                                                          {"TIMESTAMP", Field::timestamp},
                                                                          {"Timestamp", Field::arrived_s},
                                                                          {"prompt", Field::prompt},
                                                                          {"Request tokens", Field::prompt},
                                                                          {"Response tokens", Field::output},
                                                                          {"prompt_tokens", Field::prompt},
                                                                          {"ContextTokens", Field::prompt},
                                                                          {"num_prefill_tokens", Field::prompt},
                                                                          {"output", Field::output},
                                                                          {"output_tokens", Field::output},
                                                                          {"GeneratedTokens", Field::output},
                                                                          {"num_decode_tokens", Field::output},
                                                                          {"block_hashes", Field::hashes}}};
    const std::vector<std::string_view> names = split(line, ',');
    const auto is_time = [](Field column) {
      return column == Field::arrived_us || column == Field::arrived_s || column == Field::timestamp;
    };
    for (const std::string_view name : names) {
      Field column = name == "priority" ? Field::priority : Field::skipped;
      for (const auto& [known, meaning] : kNames)
        if (name == known) column = meaning;
      // Columns that follow from the others, or do not affect the load.
      static const std::set<std::string_view> kIdle = {"id",           "request_id",       "Model",   "Log Type",
                                                       "Total tokens", "num_total_tokens", "pd_ratio"};
      if (column == Field::skipped && !kIdle.contains(name)) ignore(name);
      const auto same = column == Field::skipped  // of which there may be very many
                            ? columns_.end()
                            : std::find_if(columns_.begin(), columns_.end(),
                                           [&](Field other) { return other == column || (is_time(other) && is_time(column)); });
      if (same != columns_.end())
        return wrong(static_cast<std::size_t>(name.data() - line.data()) + 1,
                     fmt::format("the columns {} and {} mean the same, allowed: one of them", config::quote_for_message(name),
                                 config::quote_for_message(names[static_cast<std::size_t>(same - columns_.begin())])));
      columns_.push_back(column);
    }
    const auto has = [&](Field column) { return std::find(columns_.begin(), columns_.end(), column) != columns_.end(); };
    timed = has(Field::arrived_us) || has(Field::arrived_s) || has(Field::timestamp);
    if (!has(Field::prompt) || !has(Field::output))
      return wrong(
          1,
          fmt::format("the columns are {}, allowed: arrived_us,prompt,output[,block_hashes][,priority], or Azure's "
                      "TIMESTAMP,ContextTokens,GeneratedTokens, or BurstGPT's Timestamp,Request tokens,Response tokens, or JSON "
                      "lines of timestamp,input_length,output_length[,hash_ids]; without times it is a list of lengths",
                      config::quote_for_message(line)));
    return true;
  }

  bool csv_line(std::string_view line) {
    Request request;
    std::size_t at = 0;
    std::size_t place = 1;
    const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    for (std::size_t begin = 0; at < columns_.size(); ++at) {
      const std::size_t end = line.find(',', begin);
      const std::string_view field = line.substr(begin, end == std::string_view::npos ? end : end - begin);
      place = begin + 1;
      if (!take(columns_[at], field, request, place)) return false;
      if (end == std::string_view::npos) {
        ++at;
        break;
      }
      begin = end + 1;
    }
    if (at < columns_.size())
      return wrong(line.size() + 1, fmt::format("the line has {} fields, allowed: {} as in the first line", at, columns_.size()));
    if (fields > columns_.size())
      return wrong(1, fmt::format("the line has {} fields, allowed: {} as in the first line", fields, columns_.size()));
    // An empty field means that the hashes are not known.
    const std::uint32_t whole_blocks = request.prompt / workload.hash_tokens;
    const std::uint32_t blocks = (request.prompt + workload.hash_tokens - 1) / workload.hash_tokens;
    if (request.hashes > 0 && (request.hashes < whole_blocks || request.hashes > blocks))
      return wrong(1, fmt::format("block_hashes has {} hashes, allowed: at {} {}, one for each {} tokens of its prompt's {}",
                                  request.hashes, request.hashes < whole_blocks ? "least" : "most",
                                  request.hashes < whole_blocks ? whole_blocks : blocks, workload.hash_tokens, request.prompt));
    return add(request);
  }

  bool take(Field column, std::string_view field, Request& request, std::size_t place) {
    const auto count = [&](std::uint32_t& tokens, const char* what) {
      const auto value = whole(field);
      if (!value || *value < 1 || *value > static_cast<std::int64_t>(kMostTokens))
        return wrong(place, fmt::format("{} is {}, allowed: a whole number from 1 to {:g}", what,
                                        config::quote_for_message(field), kMostTokens));
      tokens = static_cast<std::uint32_t>(*value);
      return true;
    };
    switch (column) {
      case Field::prompt:
        return count(request.prompt, "prompt");
      case Field::output:
        return count(request.output, "output");
      case Field::arrived_us:
        return take_time(field, place, "arrived_us", "microseconds", 1e6, request.due);
      case Field::arrived_s:
        return take_time(field, place, "Timestamp", "seconds", kPicosecondsPerSecond, request.due);
      case Field::timestamp: {
        const auto time = timestamp(field);
        if (!time)
          return wrong(place,
                       fmt::format("TIMESTAMP is {}, allowed: as 2023-11-16 18:15:46.6805900", config::quote_for_message(field)));
        if (workload.requests.empty()) start_ = *time;
        if (std::abs(time->seconds - start_.seconds) > kMostSeconds)
          return wrong(place, fmt::format("TIMESTAMP is {} s from the first one, allowed: at most {}",
                                          time->seconds - start_.seconds, kMostSeconds));
        request.due = (time->seconds - start_.seconds) * 1'000'000'000'000 + time->fraction - start_.fraction;
        return true;
      }
      case Field::priority: {
        const auto value = whole(field);
        if (!value || *value < -1000000000 || *value > 1000000000)
          return wrong(
              place, fmt::format("priority is {}, allowed: a whole number, lower goes first", config::quote_for_message(field)));
        request.priority = static_cast<std::int32_t>(*value);
        return true;
      }
      case Field::hashes:
        request.first_hash = static_cast<std::uint32_t>(workload.hashes.size());
        if (const std::size_t before = workload.hashes.size(); !read_hashes(field, workload.hashes))
          return before + kMostHashes > kMostHashesInAll
                     ? too_many_hashes(place)
                     : wrong(place,
                             fmt::format("block_hashes is {}, allowed: whole numbers below 2^63 and ranges, as 0-146 or 3 7-9",
                                         config::quote_for_message(field)));
        request.hashes = static_cast<std::uint32_t>(workload.hashes.size()) - request.first_hash;
        return true;
      case Field::skipped:
        break;
    }
    return true;
  }

  // Reads a time since the start, in units of this many picoseconds.
  bool take_time(std::string_view field, std::size_t place, const char* name, const char* units, double unit, Picoseconds& due) {
    constexpr double kMost = 1e18;  // picoseconds, 11 days
    double time = 0.0;
    const auto [end, error] = from_chars(field.data(), field.data() + field.size(), time);
    if (error != std::errc() || end != field.data() + field.size() || !(time >= 0.0 && time * unit < kMost))
      return wrong(
          place, fmt::format("{} is {}, allowed: {} in [0, {:g})", name, config::quote_for_message(field), units, kMost / unit));
    due = std::llround(time * unit);
    return true;
  }

  // A number of a JSON line; a count of tokens must be above 0. Nothing after reporting.
  std::optional<double> json_number(const config::Value& line, const char* key, const char* kind, double low, double high) {
    const std::string allowed = fmt::format("{} from {:g} to {:g}", kind, low, high);
    const config::Value* const value = line.find(key);
    if (value == nullptr) {
      wrong(1, fmt::format("lacks {}, allowed: {}", key, allowed));
      return std::nullopt;
    }
    const std::optional<double> number = config::as_number(*value);
    if (number && *number >= low && *number <= high && (low == 0.0 || *number == std::floor(*number))) return number;
    wrong(static_cast<std::size_t>(value->where.column),
          fmt::format("{} is {}, allowed: {}", key, value->is_scalar() ? config::quote_for_message(value->text) : "no number",
                      allowed));
    return std::nullopt;
  }

  bool too_many_hashes(std::size_t place) {
    return wrong(place,
                 fmt::format("this line makes over {} hashes of blocks in the trace, or it is no list of hashes, allowed: at "
                             "most this many, whole numbers below 2^63 and ranges, as 0-146 or 3 7-9",
                             kMostHashesInAll));
  }

  bool json_line(const std::string& line) {
    if (line.size() > kLongestJsonLine)
      return wrong(1, fmt::format("has {} bytes, allowed: at most {}", line.size(), kLongestJsonLine));
    Diagnostics own;
    const config::Value value = config::parse_json(line, file_, own, static_cast<int>(line_));
    if (!own.list().empty() || !value.is_map())
      return wrong(1,
                   "is no request, allowed: {\"timestamp\": milliseconds, \"input_length\": tokens, \"output_length\": tokens, "
                   "\"hash_ids\": [...]}");
    const bool first = workload.requests.empty();
    if (first) {
      seconds_ = value.find("chat_id") != nullptr || value.find("parent_chat_id") != nullptr;
      timed = value.find("timestamp") != nullptr || value.find("session_id") != nullptr;
      workload.hash_tokens = seconds_ ? kBlockTokens : kMooncakeTokens;
    }
    for (const config::Field& field : value.fields)
      if (!known_key(field.key)) ignore(field.key);
    if (const config::Value* const type = value.find("type"); type != nullptr && type->text != "text")
      ignore(fmt::format("content of a request of type {} besides text", config::quote_for_message(type->text)));
    Request request;
    if (!json_lengths(value, request)) return false;
    const config::Value* const session = value.find("session_id");
    const bool turn = session != nullptr && value.find("timestamp") == nullptr;
    if (!turn && timed) {
      const auto time =
          json_number(value, "timestamp", seconds_ ? "seconds" : "milliseconds", 0.0, seconds_ ? kMostDays : kMostDays * 1e3);
      if (!time) return false;
      fractions_ = fractions_ || (!seconds_ && *time != std::floor(*time));
      request.due = std::llround(*time * (seconds_ ? kPicosecondsPerSecond : 1e9));
    }
    request.first_hash = static_cast<std::uint32_t>(workload.hashes.size());
    const config::Value* const ids = value.find("hash_ids");
    if (ids != nullptr && !ids->is_list()) return wrong(1, "hash_ids is no list, allowed: [...] of whole numbers from 0");
    if (ids != nullptr)
      for (const config::Value& id : ids->items) {
        const auto hash = config::as_integer(id);
        if (!hash || *hash < 0) return wrong(1, "hash_ids has something else, allowed: whole numbers from 0 to below 2^63");
        if (workload.hashes.size() == kMostHashesInAll) return too_many_hashes(1);
        workload.hashes.push_back(static_cast<std::uint64_t>(*hash));
      }
    request.hashes = static_cast<std::uint32_t>(workload.hashes.size()) - request.first_hash;
    const std::uint32_t blocks = (request.prompt + workload.hash_tokens - 1) / workload.hash_tokens;
    if (request.hashes > 0 && request.hashes != blocks)
      return wrong(
          1, fmt::format("hash_ids has {} numbers, allowed: at {} {}, one for each {} tokens of input_length, {}", request.hashes,
                         request.hashes < blocks ? "least" : "most", blocks, workload.hash_tokens, request.prompt));
    return session != nullptr ? add_turn(value, session->text, turn, request) : add(request);
  }

  static bool known_key(const std::string& key) {
    static const std::set<std::string_view> kKeys = {
        "timestamp", "input_length", "output_length", "hash_ids",   "session_id",    "delay", "chat_id",    "parent_chat_id",
        "turn",      "type",         "prompt",        "text_input", "output_tokens", "model", "request_id", "id"};
    return kKeys.contains(key);
  }

  void ignore(std::string_view what) {
    constexpr std::size_t kMostNamed = 8;
    if (ignored_.size() < kMostNamed) ignored_.emplace(what.substr(0, 64));
  }

  // Prompt and output: tokens, or the prompt's text, as vLLM's custom data sets and AIPerf have it.
  bool json_lengths(const config::Value& value, Request& request) {
    const config::Value* text = value.find("prompt");
    if (text == nullptr) text = value.find("text_input");
    std::optional<double> prompt;
    if (value.find("input_length") == nullptr && text != nullptr && text->is_scalar()) {
      texts_ = true;
      prompt = std::clamp(std::round(static_cast<double>(text->text.size()) / kBytesPerToken), 1.0, kMostTokens);
    } else {
      prompt = json_number(value, "input_length", "a whole number", 1.0, kMostTokens);
    }
    const char* const output_key =
        value.find("output_length") == nullptr && value.find("output_tokens") != nullptr ? "output_tokens" : "output_length";
    const auto output = prompt ? json_number(value, output_key, "a whole number", 1.0, kMostTokens) : std::nullopt;
    if (!output) return false;
    request.prompt = static_cast<std::uint32_t>(*prompt);
    request.output = static_cast<std::uint32_t>(*output);
    return true;
  }

  // A turn of a session, in AIPerf's form of Mooncake's traces (docs/benchmark-modes/trace-replay.md): a turn without a timestamp
  // is sent `delay` ms after the answer before it, and its prompt is the conversation so far plus its own input.
  bool add_turn(const config::Value& value, const std::string& session, bool follows, Request request) {
    constexpr std::size_t kMostSessions = std::size_t{1} << 20U;
    const auto [place, fresh] = sessions_.try_emplace(session.substr(0, 256), Session{sessions_.size()});
    Session& own = place->second;
    if (sessions_.size() > kMostSessions) return wrong(1, fmt::format("more than {} sessions", kMostSessions));
    if (follows && !fresh) {
      std::optional<double> delay = 0.0;
      if (value.find("delay") != nullptr) delay = json_number(value, "delay", "milliseconds", 0.0, kMostDays * 1e3);
      if (!delay) return false;
      const std::uint64_t prompt = std::uint64_t{own.said} + request.prompt;
      if (prompt > static_cast<std::uint64_t>(kMostTokens))
        return wrong(1,
                     fmt::format("this turn makes the session's prompt {} tokens, allowed: at most {:g}", prompt, kMostTokens));
      if (request.hashes > 0) ignore("hash_ids of later turns");
      request.prompt = static_cast<std::uint32_t>(prompt);
      request.due = own.due + std::llround(*delay * 1e9);
      request.follows = own.last;
      request.hashes = 0;
    }
    own.due = request.due;
    own.said = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{request.prompt} + request.output, UINT32_MAX));
    own.last = static_cast<std::uint32_t>(workload.requests.size() + 1);
    request.line = static_cast<std::uint32_t>(line_);
    workload.requests.push_back(request);
    turns_.push_back(own.number);
    return true;
  }

  // Sorts the turns of all sessions by the moments from which they may be sent. If some wait for answers, the prefix cache knows
  // the earlier tokens of a session.
  bool order_turns() {
    std::vector<Request>& requests = workload.requests;
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return requests[a].due < requests[b].due; });
    std::vector<std::uint32_t> place(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i + 1);
    workload.answers_first = std::any_of(requests.begin(), requests.end(), [](const Request& one) { return one.follows > 0; });
    std::vector<Request> sorted;
    std::vector<std::uint64_t> hashes;
    for (const std::size_t from : order) {
      Request request = requests[from];
      if (request.follows > 0) request.follows = place[request.follows - 1];
      if (workload.answers_first) {
        const std::uint32_t per_hash = workload.hash_tokens / kBlockTokens;
        const std::uint64_t shared = std::uint64_t{request.hashes} * per_hash;
        request.hashed = request.prompt + request.output;
        const std::uint64_t blocks = request.hashed / kBlockTokens;
        if (hashes.size() + blocks > kMostHashesInAll) {
          line_ = request.line;
          return too_many_hashes(1);
        }
        const auto first = static_cast<std::uint32_t>(hashes.size());
        for (std::uint64_t block = 0; block < blocks; ++block)
          hashes.push_back(block < shared
                               ? std::uint64_t{1} << 63U |
                                     (workload.hashes[request.first_hash + block / per_hash] * per_hash + block % per_hash)
                               : (turns_[from] + 1) << 24U | block);
        request.first_hash = first;
        request.hashes = static_cast<std::uint32_t>(blocks);
      }
      sorted.push_back(request);
    }
    requests = std::move(sorted);
    if (workload.answers_first) {
      workload.hashes = std::move(hashes);
      workload.hash_tokens = kBlockTokens;
    }
    return true;
  }

  bool add(const Request& request) {
    if (!workload.requests.empty() && request.due < workload.requests.back().due)
      return wrong(1, fmt::format("arrives {:.6g} s before the line above, allowed: requests in order of arrival",
                                  static_cast<double>(workload.requests.back().due - request.due) / kPicosecondsPerSecond));
    workload.requests.push_back(request);
    workload.requests.back().line = static_cast<std::uint32_t>(line_);
    return true;
  }

  std::string file_;
  std::size_t most_;
  Diagnostics& diagnostics_;
  struct Session {
    std::uint64_t number = 0;
    Picoseconds due = 0;
    std::uint32_t said = 0;  // tokens of its prompts and answers
    std::uint32_t last = 0;  // 1 + its last turn
  };

  std::size_t line_ = 0;
  std::vector<Field> columns_;
  Moment start_;
  bool seconds_ = false;           // times of JSON lines are in seconds
  bool texts_ = false;             // some prompts are texts
  std::set<std::string> ignored_;  // columns and keys with information that is ignored
  bool fractions_ = false;         // timestamps in fractions of a millisecond
  std::map<std::string, Session> sessions_;
  std::vector<std::uint64_t> turns_;  // the session of each request, if there are sessions
};

}  // namespace

ArrivalsEntry trace_arrivals() {
  struct P {
    config::Value file;
    std::size_t requests = 100000000;
    double time_scale = 1.0;
    double rate = 0.0;
  };
  static const config::Fields<P> fields = {
      {"file", &P::file, "CSV or JSON lines, path relative to the config or the working directory", config::required},
      {"requests", &P::requests, "use only this many of the first requests", config::between(1, 1e8)},
      {"time_scale", &P::time_scale, "factor on the times between requests: 0.5 is twice the load", config::between(1e-6, 1e6)},
      {"rate", &P::rate, "requests per second for a file without times, a Poisson process; 0: all are sent at the start",
       config::between(0, 1e9)},
  };
  return {
      {"trace", "recorded requests, with their lengths", "", fields,
       "CSV: arrived_us,prompt,output, and optional block_hashes (hashes of the prompt's blocks of 16 tokens: 0-146) and "
       "priority. Azure's TIMESTAMP,ContextTokens,GeneratedTokens; ServeGen's columns; BurstGPT's Timestamp (seconds), Request "
       "tokens, Response tokens; Mooncake's JSON lines (milliseconds), with 512 tokens per hash in hash_ids; Qwen-Bailian's, "
       "with chat_id (seconds, 16 tokens); AIPerf's sessions, whose turns come `delay` milliseconds after the answer before; "
       "vLLM's custom data sets, a prompt's text and output_tokens. Without times the file is a list of lengths."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<ArrivalProcess> {
        const P params = fields.read(arguments);
        const config::Value& file = params.file;
        const std::string path = file_next_to(file.where, file.text);
        std::string text;
        try {
          text = read_text_file(path);
        } catch (const ReadError& error) {
          diagnostics.add(file.where, path + ": " + error.message("trace of requests") + looked_for(file.where, file.text));
          return nullptr;
        }
        Reader reader(path, params.requests, diagnostics);
        if (!reader.read(text)) return nullptr;
        reader.workload.file = path;
        if (reader.timed && params.rate > 0.0) {
          diagnostics.add(arguments.where("rate"), fmt::format("rate is given with {}, which has times of its own, allowed: "
                                                               "time_scale, or a file without times",
                                                               path));
          return nullptr;
        }
        if (!reader.timed && params.rate == 0.0)
          reader.notes.push_back(
              fmt::format("{} has no times: all requests are sent at the start, as vllm bench serve does "
                          "without a rate (arrivals.rate)",
                          path));
        return std::make_unique<Recorded>(std::move(reader.workload), std::move(reader.notes), reader.timed, params.time_scale,
                                          params.rate);
      },
      true};
}

}  // namespace specsim::arrivals
