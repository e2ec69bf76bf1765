#include "sim/hardware/engine/timeline.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace specsim::engine {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

void append_number(std::string& text, std::int64_t value) {
  const fmt::format_int digits(value);
  text.append(digits.data(), digits.size());
}

void append_microseconds(std::string& text, std::int64_t ps) {
  append_number(text, ps / 1'000'000);
  auto rest = static_cast<std::uint32_t>(ps % 1'000'000);
  if (rest == 0) return;
  std::array<char, 7> decimals{'.'};
  for (std::size_t i = 6; i > 0; --i) {
    decimals[i] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  }
  text.append(decimals.data(), decimals.size());
}

void append_text(std::string& text, std::string_view value) {
  text += '"';
  std::size_t plain = 0;  // where the part that needs no escape begins
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20) continue;
    text.append(value, plain, i - plain);
    plain = i + 1;
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else {
      text += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    }
  }
  text.append(value, plain, value.size() - plain);
  text += '"';
}

void append_value(std::string& text, const std::variant<std::int64_t, double, std::string_view>& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    append_number(text, *whole);
  else if (const auto* word = std::get_if<std::string_view>(&value))
    append_text(text, *word);
  else if (const double number = std::get<double>(value); std::isfinite(number))
    text += fmt::format("{}", number);
  else
    text += "null";
}

}  // namespace

Timeline::Timeline(const std::string& path) : file_(path), buffer_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") {
  buffer_.reserve(kBufferBytes + kBufferBytes / 8);
}

void Timeline::begin_event() {
  SPECSIM_CHECK(open_, "a timeline of {} spans is closed", spans_);
  buffer_ += first_ ? "\n" : ",\n";
  first_ = false;
}

void Timeline::append_arguments(std::initializer_list<Argument> arguments) {
  if (arguments.size() == 0) return;
  buffer_ += R"(,"args":)";
  char before = '{';
  for (const Argument& argument : arguments) {
    buffer_ += before;
    before = ',';
    append_text(buffer_, argument.key);
    buffer_ += ':';
    append_value(buffer_, argument.value);
  }
  buffer_ += '}';
}

void Timeline::flush_if_full() {
  if (buffer_.size() < kBufferBytes) return;
  file_.append(buffer_);
  buffer_.clear();
}

Timeline::Lane Timeline::lane(std::string_view name) {
  const std::uint32_t lane = ++lanes_;
  begin_event();
  buffer_ += fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":)", lane);
  append_text(buffer_, name);
  buffer_ += "}}";
  begin_event();
  buffer_ += fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", lane, lane);
  flush_if_full();
  return Lane{lane};
}

void Timeline::span(Lane lane, std::string_view name, SimTime start, Duration duration, std::initializer_list<Argument> arguments,
                    std::string_view colour) {
  const auto number = static_cast<std::uint32_t>(lane);
  SPECSIM_CHECK(number >= 1 && number <= lanes_, "lane {} of {}", number, lanes_);
  begin_event();
  ++spans_;
  buffer_ += R"({"ph":"X","pid":1,"tid":)";
  append_number(buffer_, number);
  buffer_ += R"(,"ts":)";
  append_microseconds(buffer_, start.ps());
  buffer_ += R"(,"dur":)";
  append_microseconds(buffer_, duration.ps());
  buffer_ += R"(,"name":)";
  append_text(buffer_, name);
  if (!colour.empty()) {
    buffer_ += R"(,"cname":)";
    append_text(buffer_, colour);
  }
  append_arguments(arguments);
  buffer_ += '}';
  flush_if_full();
}

void Timeline::counter(std::string_view name, SimTime time, std::initializer_list<Argument> values) {
  begin_event();
  buffer_ += R"({"ph":"C","pid":1,"ts":)";
  append_microseconds(buffer_, time.ps());
  buffer_ += R"(,"name":)";
  append_text(buffer_, name);
  append_arguments(values);
  buffer_ += '}';
  flush_if_full();
}

void Timeline::close() {
  SPECSIM_CHECK(open_, "a timeline of {} spans is closed", spans_);
  open_ = false;
  buffer_ += "\n]}\n";
  file_.append(buffer_);
  buffer_.clear();
  file_.commit();
}

}  // namespace specsim::engine
