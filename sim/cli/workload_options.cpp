#include "sim/cli/workload_options.h"

#include "sim/base/error.h"
#include "sim/cli/numbers.h"
#include "sim/report/manifest.h"

#include <fmt/format.h>

#include <algorithm>
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
      "target", text(), "the target model: a name (specsim list model) or a file")("draft", text(), "the draft model; none: n-grams, or heads inside the target")(
      "context", text(), "tokens cached by each sequence")("tensor-parallel", text(), "GPUs that share the target")(
      "draft-tensor-parallel", text(), "GPUs that share the draft; as many as share the target, which is what engines demand")(
      "weight-bits", text(), "of a weight of the target's layers")("kv-bits", text(), "of the target's cached keys and values")(
      "engine", text(), "bare, graphs, vllm or eager");
}

namespace {

// Whether --set replaces what the option of that name stands for.
bool sets_path(const Options& options, const std::string& name) {
  const std::string path = name == "context" ? "workload.context_length" : "cost." + name;
  const std::vector<std::string> sets = options.texts("set");
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    return set.starts_with(path) || set.starts_with("sweep." + path);
  });
}

// The draft is cut as the target is, unless something else is asked for: engines cut both alike.
template <class Add>
void add_draft(const Options& options, bool built_in, const std::vector<std::string>& sets, const Add& add) {
  const char* const own = "draft-tensor-parallel";
  const std::string draft = options.has("draft") ? options.text("draft") : kDefaultDraft;
  const bool whole = draft == "none" || draft.find('{') != std::string::npos;
  if (options.has(own) && (whole || (!options.has("draft") && !built_in)))
    throw BadInput({std::string("--") + own, 0, 0},
                   "given without a draft model by name, allowed: with --draft NAME; inside the braces of one in braces");
  const std::string shards = options.has(own)                 ? options.text(own)
                             : options.has("tensor-parallel") ? options.text("tensor-parallel")
                                                              : "";
  const bool replaced = std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("cost.draft"); });
  if (shards.empty() || whole || (!options.has("draft") && (!built_in || replaced))) {
    if (options.has("draft")) add("draft", "cost.draft", draft);
    return;
  }
  add(options.has("draft") ? "draft" : own, "cost.draft",
      fmt::format("{{preset: {}, tensor_parallel: {:g}}}", draft,
                  read_number(shards, options.has(own) ? std::string("--") + own : "--tensor-parallel", config::between(1, 64))));
}

}  // namespace

std::string assumptions(const Options& options) {
  std::string list;
  for (const auto& [name, value] : {std::pair{"hardware", kDefaultHardware}, {"target", kDefaultTarget}, {"draft", kDefaultDraft},
                                    {"context", kDefaultContext}})
    if (!options.has(name) && !sets_path(options, name)) list += fmt::format("{}--{} {}", list.empty() ? "" : " ", name, value);
  return list;
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
  for (const char* name : {"hardware", "engine"})
    if (options.has(name)) add(name, fmt::format("cost.{}", name), options.text(name));
  for (const char* name : {"batch", "context"}) {
    if (!options.has(name)) continue;
    const std::string value = options.text(name);
    const std::string path = name == std::string("context") ? "workload.context_length" : "workload.batch";
    if (value.find(',') == std::string::npos) {
      add(name, path, value);
      continue;
    }
    static_cast<void>(read_texts(value, fmt::format("--{}", name)));
    add(name, "sweep." + path, "[" + value + "]");
  }
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
  const std::string target = options.has("target") ? options.text("target") : kDefaultTarget;
  if (!how.empty() && target.find('{') != std::string::npos)
    throw BadInput({"--" + last, 0, 0}, "given with a --target in braces, allowed: inside the braces");
  if (!how.empty())
    add(options.has("target") ? "target" : last, "cost.target", fmt::format("{{preset: {}{}}}", target, how));
  else if (options.has("target"))
    add("target", "cost.target", target);
  add_draft(options, built_in, given, add);
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
