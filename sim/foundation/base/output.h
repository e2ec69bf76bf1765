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

// The text with every character that a terminal would act upon written as "\xNN" (bytes) or "\u{NNNN}" (code points): control
// characters but line ends and tabs, the second set of controls (U+0080 to U+009F), marks that turn the direction of text, and
// bytes that are no UTF-8.
std::string printable(std::string_view text);
// The same of JSON, whose texts alone may hold such characters: as "\uNNNN", so that it stays JSON.
std::string printable_json(std::string_view json);

// Printable text to standard output and to standard error.
void write_output(std::string_view text);
void write_error(std::string_view text);
// The text as it is, escape sequences and all, to standard error: for what draws on a terminal.
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

// Keeps files that are opened later from taking the numbers of standard streams that the program was started without: what is
// printed would end up in them. Called once, before anything is opened.
void guard_standard_streams();

constexpr std::size_t kUnlimitedWidth = std::numeric_limits<std::size_t>::max();
// Characters in a line of the terminal that standard output, or standard error, goes to; unlimited where it goes elsewhere.
std::size_t output_width();
std::size_t error_width();
// Whether standard error goes to a terminal that knows escape sequences (not TERM=dumb, and not without TERM).
bool error_draws();

}  // namespace specsim
