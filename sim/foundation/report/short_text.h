#pragma once

// Parts of a config in few letters, for tables and lines: whole entries are left out, none is cut.

#include <string>
#include <vector>

namespace specsim::report {

// A value of an axis, as configs write it in one line: short ones as they are; of a long map or list the first entry and the
// entries that set it apart from `others`, the values of the same axis, with ".." for what is left out; of a long word its
// beginning and what sets it apart.
std::string short_value(const std::string& value, const std::vector<std::string>& others);

// A method, "drafter key value key value | verifier", in at most `most` letters if possible: the longest lists and maps among its
// values are shortened to [..] and {..}, the longest first.
std::string short_method(const std::string& method, std::size_t most);

}  // namespace specsim::report
