// A visible list of parts of one kind (family, context process, drafter, verifier, cost model). Parts do not register themselves,
// because a linker would drop them from a static library. A program that uses the library adds its own parts with Registered.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/fields.h"

#include <algorithm>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::config {

// The texts that `specsim list`, `specsim describe` and the reference page print about any part.
struct PartInfo {
  std::string name;
  std::string summary;  // one line
  std::string paper;    // source; "" if it is common knowledge
  std::vector<Parameter> parameters;
  // Its distribution, domain and closed forms in one paragraph. "" if the summary is enough, or if docs/methods has a page about
  // the part.
  std::string notes = {};
  // Values for parameters, "weights: [3, 1], exponent: 2", if a value chosen for each parameter alone would not work. Tests that
  // know a part only by its entry build it from these, over a vocabulary of 3 tokens.
  std::string example = {};

  [[nodiscard]] bool has_parameter(std::string_view parameter) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& one) { return one.name == parameter; });
  }
};

template <class Entry>
class Registered;

// Entry is a struct with a PartInfo member called `info` and a function that makes the part. Entries keep their address as long
// as they are registered.
template <class Entry>
class Registry {
 public:
  // `kind` as in `describe KIND/NAME` and in messages. A duplicate name breaks an invariant.
  Registry(std::string kind, std::vector<Entry> entries) : kind_(std::move(kind)) {
    for (Entry& entry : entries) add(std::move(entry));
  }
  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const std::list<Entry>& entries() const { return entries_; }
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
  // The entry; or nullptr after reporting the unknown name together with the nearest and all registered ones.
  [[nodiscard]] const Entry* find(const std::string& name, const Location& where, Diagnostics& diagnostics) const {
    if (const Entry* entry = find(name)) return entry;
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.info.name);
    diagnostics.add(where, unknown_name("unknown " + kind_, name, names));
    return nullptr;
  }

 private:
  friend class Registered<Entry>;
  using Place = typename std::list<Entry>::iterator;
  Place add(Entry entry) {
    SPECSIM_CHECK(find(entry.info.name) == nullptr, "{} {} twice", kind_, entry.info.name);
    return entries_.insert(entries_.end(), std::move(entry));
  }
  std::string kind_;
  std::list<Entry> entries_;
};

// Adds an entry to a registry, after those of the library, as long as this object lives. Tests and programs that use the library
// add parts with it. It must outlive whatever was read while it lived, and no other thread may use the registry while it comes or
// goes. A name that the registry already has breaks an invariant.
template <class Entry>
class Registered {
 public:
  Registered(Registry<Entry>& registry, Entry entry) : registry_(&registry), place_(registry.add(std::move(entry))) {}
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() { registry_->entries_.erase(place_); }

 private:
  Registry<Entry>* registry_;
  typename Registry<Entry>::Place place_;
};

}  // namespace specsim::config
