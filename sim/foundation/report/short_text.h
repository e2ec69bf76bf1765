#pragma once

// Short forms of parts of a config, for tables and lines: whole entries are left out, none is cut.

#include <string>
#include <vector>

namespace specsim::report {

// A value of an axis in one line, as in a config. Short values are unchanged. A long map or list shows its first entry and the
// entries that distinguish it from `others` (the values of the same axis), with ".." for the rest. A long word shows its
// beginning and the part that distinguishes it.
std::string short_value(const std::string& value, const std::vector<std::string>& others);

// A method, "drafter key value key value | verifier", in at most `most` letters if possible: the longest lists and maps among its
// values are shortened to [..] and {..}, the longest first.
std::string short_method(const std::string& method, std::size_t most);

}  // namespace specsim::report
