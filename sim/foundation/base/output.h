// Standard output and standard error of the program: the one place where text reaches a terminal.
//
// Text is made printable first: bytes of a user's files (names, values, titles) may hold escape sequences that would move the
// cursor, recolour or retitle the terminal. None of these bytes reaches the terminal. Nothing here throws if a stream takes no
// more: a closed pipe or a full disk must not end the work that is being reported. A failure of standard output is remembered,
// and check_output() reports it at the end.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace specsim {

// The text with every character that a terminal would interpret written as "\xNN" (bytes) or "\u{NNNN}" (code points): control
// characters except line ends and tabs, the second set of controls (U+0080 to U+009F), marks that change the direction of text,
// and bytes that are not UTF-8.
std::string printable(std::string_view text);
// The text with U+FFFD for what neither YAML nor XML may contain: bytes that are not UTF-8, U+FFFE and U+FFFF.
std::string valid_text(std::string_view text);
// As above for JSON, where only texts may contain such characters: written as "\uNNNN", so that it stays JSON.
std::string printable_json(std::string_view json);

// Printable text to standard output and to standard error.
void write_output(std::string_view text);
void write_error(std::string_view text);
// Writes the text unchanged, including escape sequences, to standard error: for code that draws on a terminal.
void write_raw_error(std::string_view text);

template <class... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}
template <class... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  write_error(fmt::format(format, std::forward<Values>(values)...));
}

// Flushes standard output. Failures are left to check_output().
void flush_output();
// Flushes standard output. Returns false if its reader closed the pipe early, as `head` does; there is then nobody to report to.
// Throws IoError if anything printed so far could not be written for another reason.
bool check_output();

// Prevents files that are opened later from getting the numbers of standard streams that the program was started without: printed
// text would be written to them. Called once, before any file is opened.
void guard_standard_streams();

constexpr std::size_t kUnlimitedWidth = std::numeric_limits<std::size_t>::max();
// Characters per line of the terminal to which standard output, or standard error, goes; unlimited if it is not a terminal.
std::size_t output_width();
std::size_t error_width();
// Whether standard error is a terminal that supports escape sequences (not TERM=dumb, and not without TERM).
bool error_draws();

}  // namespace specsim
