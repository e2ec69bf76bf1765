#include "sim/cli/workload_options.h"

#include "sim/base/error.h"
#include "sim/cli/numbers.h"
#include "sim/report/manifest.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

void add_workload_options(po::options_description& description) {
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("set", po::value<std::vector<std::string>>()->composing(),
                            "PATH=VALUE replaces a value of the config")("seed", text(), "in place of the config's")(
      "hardware", text(), "the GPU: a name (specsim list hardware) or a file")(
      "target", text(), "the target model: a name (specsim list model) or a file")("draft", text(), "the draft model")(
      "context", text(), "tokens cached by each sequence")("tensor-parallel", text(), "GPUs that share the target")(
      "weight-bits", text(), "of a weight of the target's layers")("kv-bits", text(), "of the target's cached keys and values")(
      "engine", text(), "bare, graphs, vllm or eager");
}

std::vector<std::string> named_sets(const Options& options, bool built_in) {
  std::vector<std::string> sets = options.texts("set");
  const std::vector<std::string> given = sets;
  const auto add = [&](const std::string& option, const std::string& path, const std::string& value) {
    for (const std::string& set : given) {
      const std::string other = set.substr(0, set.find('='));
      const std::string& longer = other.size() > path.size() ? other : path;
      const std::string& shorter = other.size() > path.size() ? path : other;
      if (longer == shorter || longer.compare(0, shorter.size() + 1, shorter + ".") == 0)
        throw BadInput({"--set " + other, 0, 0},
                       fmt::format("given together with --{}, which sets {}, allowed: one of them", option, path));
    }
    sets.push_back(fmt::format("{}={}", path, value));
  };
  for (const char* name : {"hardware", "draft", "engine"})
    if (options.has(name)) add(name, fmt::format("cost.{}", name), options.text(name));
  if (options.has("batch")) add("batch", "workload.batch", options.text("batch"));
  if (options.has("context")) add("context", "workload.context_length", options.text("context"));
  std::string how;
  std::string last;
  for (const auto& [name, key] :
       {std::pair{"tensor-parallel", "tensor_parallel"}, {"weight-bits", "weight_bits"}, {"kv-bits", "kv_bits"}})
    if (options.has(name)) {
      last = name;
      how += fmt::format(", {}: {:g}", key, read_number(options.text(name), fmt::format("--{}", name), config::between(1, 64)));
    }
  if (!how.empty() && !options.has("target") && !built_in)
    throw BadInput({"--" + last, 0, 0},
                   "given with a config but without --target, allowed: with it, or --set cost.target=\"{preset: NAME, ...}\"");
  const std::string target = options.has("target") ? options.text("target") : "llama-3.1-8b";
  if (!how.empty() && target.find('{') != std::string::npos)
    throw BadInput({"--" + last, 0, 0}, "given with a --target in braces, allowed: inside the braces");
  if (!how.empty())
    add(options.has("target") ? "target" : last, "cost.target", fmt::format("{{preset: {}{}}}", target, how));
  else if (options.has("target"))
    add("target", "cost.target", target);
  return sets;
}

void guard_results(const std::string& out) {
  const std::string path = out + "/manifest.yaml";
  std::error_code ignored;
  if (out.empty()) throw BadInput({"--out", 0, 0}, "\"\", allowed: a directory");
  if (std::filesystem::is_regular_file(path, ignored) && !report::read_manifest(path).identity.empty())
    throw BadInput({out, 0, 0}, "holds the results of a run, allowed: another --out");
}

}  // namespace specsim::cli
