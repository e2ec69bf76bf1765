#include "sim/foundation/base/output.h"

#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output_taker.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace specsim {

namespace {

std::atomic<int> output_error{0};  // errno of the first failed write to standard output

// The code point at the start of `text` and its length in bytes; a length of 0 for bytes that are not UTF-8.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;
};

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                                                           : 0;
  if (length == 0 || length > text.size()) return {};
  std::uint32_t value = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {
      0, 0, 0x80, 0x800, 0x10000};  // smallest code point by length; overlong forms would hide characters from checks
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kLeast[length] || surrogate || value > 0x10ffff) return {};
  return {value, length};
}

bool acts_on_terminals(std::uint32_t c) {
  const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
  const bool turns_direction = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
  return control || turns_direction;
}

void write_to(std::FILE* stream, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream) == text.size()) return;
  int none = 0;
  if (stream == stdout) output_error.compare_exchange_strong(none, errno);
  std::clearerr(stream);
}

struct OutputTaker {
  std::function<void(std::string_view)> take;
};
std::function<void(std::string_view)>& output_taker() { return context().of<OutputTaker>().take; }

std::size_t width_of(int file) {
  winsize size{};
  if (isatty(file) != 1 || ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnlimitedWidth;
  return size.ws_col;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const std::size_t length = c.length > 0 ? c.length : 1;
    if (c.length == 0 || (acts_on_terminals(c.value) && c.value < 0x80))
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (acts_on_terminals(c.value))
      shown += fmt::format("\\u{{{:04x}}}", c.value);
    else
      shown += text.substr(0, length);
    text.remove_prefix(length);
  }
  return shown;
}

std::string valid_text(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const std::size_t length = c.length > 0 ? c.length : 1;
    if (c.length == 0 || c.value == 0xFFFE || c.value == 0xFFFF)
      valid += "\xef\xbf\xbd";
    else
      valid += text.substr(0, length);
    text.remove_prefix(length);
  }
  return valid;
}

std::string printable_json(std::string_view json) {
  std::string shown;
  shown.reserve(json.size());
  while (!json.empty()) {
    const CodePoint c = first_code_point(json);
    const std::size_t length = c.length > 0 ? c.length : 1;
    if (c.length > 0 && acts_on_terminals(c.value))
      shown += fmt::format("\\u{:04x}", c.value);
    else
      shown += json.substr(0, length);
    json.remove_prefix(length);
  }
  return shown;
}

void divert_output(std::function<void(std::string_view)> taker) { output_taker() = std::move(taker); }

void write_output(std::string_view text) {
  if (output_taker())
    output_taker()(text);
  else
    write_to(stdout, printable(text));
}
void write_error(std::string_view text) { write_to(stderr, printable(text)); }
void write_raw_error(std::string_view text) {
  write_to(stderr, text);
  std::fflush(stderr);
}

void flush_output() {
  if (std::fflush(stdout) == 0) return;
  int none = 0;
  output_error.compare_exchange_strong(none, errno);
  std::clearerr(stdout);
}

bool check_output() {
  flush_output();
  if (output_error == EPIPE) return false;
  if (output_error != 0) throw IoError(std::string("standard output cannot be written: ") + std::strerror(output_error));
  return true;
}

void guard_standard_streams() {
  // Opened for the opposite direction, so that reading and writing still fail as they would.
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF && open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) != file)
      std::abort();
}

std::size_t output_width() { return width_of(STDOUT_FILENO); }
std::size_t error_width() { return width_of(STDERR_FILENO); }

bool error_draws() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" && *term != '\0';
}

}  // namespace specsim
