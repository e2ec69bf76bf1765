#include "sim/doors/cli/option_partners.h"

#include "sim/foundation/base/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cli {

namespace {

// "--log or --trace", "a config".
std::string words(const std::vector<std::string>& options) {
  std::string list;
  for (std::size_t i = 0; i < options.size(); ++i)
    list += fmt::format("{}{}",
                        i == 0                   ? ""
                        : i + 1 < options.size() ? ", "
                                                 : " or ",
                        options[i] == "config" ? "a config" : "--" + options[i]);
  return list;
}

}  // namespace

bool was_given(const boost::program_options::variables_map& values, const std::string& option) {
  return values.count(option) > 0 && !values[option].defaulted();
}

void check_partners(const boost::program_options::variables_map& values, const std::vector<Partner>& partners) {
  const auto given = [&](const std::string& option) { return was_given(values, option); };
  for (const Partner& one : partners) {
    if (!given(one.option)) continue;
    if (!one.with.empty() && std::none_of(one.with.begin(), one.with.end(), given))
      throw BadInput({"--" + one.option, 0, 0},
                     fmt::format("given without {0}, and changes nothing so; allowed: with {0}", words(one.with)));
    const auto other = std::find_if(one.without.begin(), one.without.end(), given);
    if (other != one.without.end())
      throw BadInput({"--" + one.option, 0, 0},
                     fmt::format("given with {}, which {}; allowed: one of them", words({*other}), one.why));
  }
}

}  // namespace specsim::cli
