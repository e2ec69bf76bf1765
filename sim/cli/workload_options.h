// What plan and compare share: options that name a workload, as changes to a config.
#pragma once

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace specsim::cli {

class Options {
 public:
  explicit Options(const boost::program_options::variables_map& values) : values_(&values) {}
  [[nodiscard]] bool has(const char* name) const { return values_->count(name) > 0; }
  [[nodiscard]] std::string text(const char* name) const { return (*values_)[name].as<std::string>(); }
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    return has(name) ? (*values_)[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  }

 private:
  const boost::program_options::variables_map* values_;
};

// What plan and compare stand on where nothing is said.
constexpr const char* kDefaultHardware = "h100-sxm";
constexpr const char* kDefaultTarget = "llama-3.1-8b";
constexpr const char* kDefaultDraft = "llama-3.2-1b";
constexpr const char* kDefaultContext = "2048";
// Those of them that nothing replaces, as options: "--hardware h100-sxm --context 2048"; "" where all is said.
std::string assumptions(const Options& options);

// set, seed, hardware, target, draft, context, tensor-parallel, draft-tensor-parallel, weight-bits,
// kv-bits, engine.
void add_workload_options(boost::program_options::options_description& description);
// They and --batch as overrides, PATH=VALUE (a list of batches or contexts as an axis of the sweep), after what --set says. Throws BadInput where --set touches the same path: one of the
// two would be lost. `built_in`: there is no config of the user's.
std::vector<std::string> named_sets(const Options& options, bool built_in);

// Throws BadInput where `out` is no directory's name, or holds the results of a run, which a report must not replace.
void guard_results(const std::string& out);

}  // namespace specsim::cli
