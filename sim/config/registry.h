// A visible list of parts of one kind (family, context process, drafter, verifier, cost model). No self-registration: a
// static library would drop it.
#pragma once

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/config/arguments.h"

#include <string>
#include <utility>
#include <vector>

namespace specsim::config {

// What `specsim list`, `specsim describe` and the reference page print of any part.
struct PartInfo {
  std::string name;
  std::string summary;  // one line
  std::string paper;    // where it comes from; "" when it is common knowledge
  std::vector<Parameter> parameters;
  std::string notes;  // its distribution, domain, closed forms: one paragraph, "" when the summary says it all
};

// Entry is a struct with a PartInfo member called `info` and whatever makes the part.
template <class Entry>
class Registry {
 public:
  // `kind` as in `describe KIND/NAME` and in messages. A duplicate name breaks an invariant.
  Registry(std::string kind, std::vector<Entry> entries) : kind_(std::move(kind)), entries_(std::move(entries)) {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        SPECSIM_CHECK(entries_[i].info.name != entries_[j].info.name, "{} {} twice", kind_, entries_[i].info.name);
  }
  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const Entry* find(const std::string& name) const {
    for (const Entry& entry : entries_)
      if (entry.info.name == name) return &entry;
    return nullptr;
  }
  // "fixed, iid, markov"
  [[nodiscard]] std::string names() const {
    std::string all;
    for (const Entry& entry : entries_) all += (all.empty() ? "" : ", ") + entry.info.name;
    return all;
  }
  // The entry, or nullptr after reporting the unknown name with the nearest and all the registered ones.
  [[nodiscard]] const Entry* find(const std::string& name, const Location& where, Diagnostics& diagnostics) const {
    if (const Entry* entry = find(name)) return entry;
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.info.name);
    diagnostics.add(where, unknown_name(kind_, name, names, this->names()));
    return nullptr;
  }

 private:
  static std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names,
                                  const std::string& all) {
    const std::string near = nearest_name(name, names);
    return "unknown " + kind + " \"" + name + "\"" + (near.empty() ? "," : ", did you mean \"" + near + "\"?") +
           " allowed: " + all;
  }
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace specsim::config
