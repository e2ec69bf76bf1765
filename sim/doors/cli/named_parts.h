// Everything that has a name in a config, from the registries alone.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/presets/presets.h"

#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

struct NamedPart {
  std::string kind;  // what stands before the slash in `describe KIND/NAME`
  config::PartInfo info;
  std::string mark;                      // "not lossless", "known to be wrong"; "" where there is nothing to say
  const cost::Preset* preset = nullptr;  // its file is read by worked_out() alone
};

// The kinds of parts, such as verifier, in the order in which they are listed, each with the way in which a config names one.
const std::vector<std::pair<std::string, std::string>>& part_kinds();
// All parts; those of one kind in the order of their registry. A preset has only its name yet, since its file is not read.
std::vector<NamedPart> named_parts();
// The part, and of a preset what its file says as well. Throws BadInput where that cannot be read.
NamedPart worked_out(const NamedPart& named);
// Those of `parts` that are called so, as KIND/NAME or, over all kinds, as NAME. Throws BadInput where there is none.
std::vector<const NamedPart*> parts_called(const std::vector<NamedPart>& parts, const std::string& wanted);

// The page of a drafter, a verifier or a policy below docs/: how it works, when it pays, its figures. "" for other parts, and for
// those that say it themselves.
std::string page_of(const NamedPart& part);

// In words: the values that a parameter may have, and the one that it has where a config leaves it out.
std::string type_text(const config::Parameter& parameter);
std::string default_text(const config::Parameter& parameter);

}  // namespace specsim::cli
