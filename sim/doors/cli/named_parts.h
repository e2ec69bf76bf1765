// All names that configs can use, from the registries.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/presets/presets.h"

#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

struct NamedPart {
  std::string kind;  // the part before the slash in `describe KIND/NAME`
  config::PartInfo info;
  std::string mark;                      // "not lossless", "known to be wrong"; "" if neither applies
  const cost::Preset* preset = nullptr;  // only worked_out() reads its file
};

// The kinds of parts, such as verifier, in the order in which they are listed, with the way a config names one.
const std::vector<std::pair<std::string, std::string>>& part_kinds();
// All parts, those of one kind in the order of their registry. A preset has only its name, since its file is not read yet.
std::vector<NamedPart> named_parts();
// The part; for a preset with the contents of its file. Throws BadInput if the file cannot be read.
NamedPart worked_out(const NamedPart& named);
// The parts of `parts` with this name, as KIND/NAME or, over all kinds, as NAME. Throws BadInput if there is none.
std::vector<const NamedPart*> parts_called(const std::vector<NamedPart>& parts, const std::string& wanted);

// The page in docs/ of a drafter, a verifier or a policy: how it works, when it pays, its figures. "" for other parts, and for
// those whose text includes all of this.
std::string page_of(const NamedPart& part);

// The allowed values of a parameter and its default, in words.
std::string type_text(const config::Parameter& parameter);
std::string default_text(const config::Parameter& parameter);

}  // namespace specsim::cli
