// Reads numbers of the command line, in the notation of configs. Each reader throws BadInput that names `option`.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::cli {

// A number, or an integer, in the interval.
double read_number(const std::string& text, const std::string& option, const config::Interval& interval);
std::int64_t read_integer(const std::string& text, const std::string& option, const config::Interval& interval);
// A share in [0, 1], as a number or in percent ("72.3%"), and a list of shares.
double read_share(const std::string& text, const std::string& option);
std::vector<double> read_shares(const std::string& list, const std::string& option);
// Lists separated by `,` outside brackets, with optional spaces. Neither the list nor any part, including the last, may be empty.
std::vector<std::string> read_texts(const std::string& list, const std::string& option);
std::vector<double> read_numbers(const std::string& list, const std::string& option, const config::Interval& interval);
std::vector<std::int64_t> read_integers(const std::string& list, const std::string& option, const config::Interval& interval);
// A path of a directory, or of a file; not "".
std::string directory_name(const std::string& text, const std::string& option);
std::string file_name(const std::string& text, const std::string& option);
// The index of the text among `words`.
std::size_t read_word(const std::string& text, const std::string& option, const std::vector<std::string>& words);

// The text of --force and --threads in --help of every command, and the reader of --threads: 0 means one per core.
constexpr const char* kForceHelp = "replace another run's results or other files in --out";
constexpr const char* kThreadsHelp = "worker threads; 0: all cores. Results do not depend on them";
unsigned read_threads(const std::string& text, const std::string& option);

}  // namespace specsim::cli
