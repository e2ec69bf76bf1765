// Options that change nothing without another one, or beside one: they are refused, never ignored.
#pragma once

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace specsim::cli {

struct Partner {
  std::string option;
  std::vector<std::string> with;     // one of them has to be given; none: it needs no other
  std::vector<std::string> without;  // none of them may be
  std::string why;                   // what such an option does that leaves this one nothing to say: "says the acceptance"
};

// Whether an option was given, and is not at its default. `config`, `table`: words without an option.
bool was_given(const boost::program_options::variables_map& values, const std::string& option);

// Throws BadInput at the first option that was given and has no effect by one of `partners`.
void check_partners(const boost::program_options::variables_map& values, const std::vector<Partner>& partners);

}  // namespace specsim::cli
