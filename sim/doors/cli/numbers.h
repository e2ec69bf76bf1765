// Numbers as the command line gives them, written as a config writes them. Each reader throws BadInput that names `option`.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::cli {

// A number, or an integer, that lies in the interval.
double read_number(const std::string& text, const std::string& option, const config::Interval& interval);
std::int64_t read_integer(const std::string& text, const std::string& option, const config::Interval& interval);
// A share in [0, 1], as a number or in percent ("72.3%"), and a list of such.
double read_share(const std::string& text, const std::string& option);
std::vector<double> read_shares(const std::string& list, const std::string& option);
// Lists with `,` between, and spaces around where somebody likes them, never empty; nor may a part be, not even the last.
std::vector<std::string> read_texts(const std::string& list, const std::string& option);
std::vector<double> read_numbers(const std::string& list, const std::string& option, const config::Interval& interval);
std::vector<std::int64_t> read_integers(const std::string& list, const std::string& option, const config::Interval& interval);
// What names a directory, or a file: not "".
std::string directory_name(const std::string& text, const std::string& option);
std::string file_name(const std::string& text, const std::string& option);
// The place of the text among `words`.
std::size_t read_word(const std::string& text, const std::string& option, const std::vector<std::string>& words);

// What --help says of --force and --threads in every command, and how --threads is read: 0 stands for as many as the machine has
// cores.
constexpr const char* kForceHelp = "replace another run's results or somebody's files in --out";
constexpr const char* kThreadsHelp = "worker threads; 0: all cores. Results do not depend on them";
unsigned read_threads(const std::string& text, const std::string& option);

}  // namespace specsim::cli
