#include "sim/foundation/report/manifest.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "specsim_version.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <optional>

namespace specsim::report {

namespace {

constexpr const char* kSeal = "checksum: ";  // begins the last line

std::string quoted(const std::string& text) {
  config::Value value;
  value.kind = config::Kind::scalar;
  value.text = valid_text(text);  // a file's name may be no UTF-8
  value.quoted = true;
  return config::to_flow_text(value);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

std::string sums_text(const char* name, const std::vector<FileSum>& sums) {
  if (sums.empty()) return "";
  std::string text = fmt::format("{}:\n", name);
  for (const FileSum& one : sums) text += fmt::format("  - file: {}\n    checksum: {}\n", quoted(one.name), quoted(one.sum));
  return text;
}

// The texts of two keys in each item of the list at `key`; nothing if there is no such list.
std::vector<std::pair<std::string, std::string>> read_pairs(const config::Value& root, const char* key, const char* first,
                                                            const char* second, const std::string& missing) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const config::Value* list = root.find(key);
  if (list == nullptr) return pairs;
  for (const config::Value& item : list->items) {
    const config::Value* a = item.find(first);
    const config::Value* b = item.find(second);
    if (a == nullptr || b == nullptr) throw BadInput(item.where, missing);
    pairs.emplace_back(a->text, b->text);
  }
  return pairs;
}

std::vector<FileSum> read_sums(const config::Value& root, const char* key) {
  std::vector<FileSum> sums;
  for (auto& [name, sum] : read_pairs(root, key, "file", "checksum", "a file lacks its name or its checksum"))
    sums.push_back({name, sum});
  return sums;
}

std::string text_of(const config::Value& root, const char* key) {
  const config::Value* value = root.find(key);
  return value == nullptr ? "" : value->text;
}

void read_shard(const config::Value& shard, Manifest& manifest) {
  unsigned long long index = 0;
  unsigned long long of = 0;
  if (std::sscanf(shard.text.c_str(), "%llu/%llu", &index, &of) != 2 || index < 1 || index > of)
    throw BadInput(shard.where, fmt::format("shard is {}, allowed: i/n", config::quote_for_message(shard.text)));
  manifest.shard = index;
  manifest.shards = of;
}

// The checksum in the last line must match all lines before it.
bool is_sealed(const std::string& text) {
  const std::size_t at = text.rfind(std::string("\n") + kSeal);
  return at != std::string::npos && text.substr(at + 1) == fmt::format("{}{}\n", kSeal, quoted(checksum(text.substr(0, at + 1))));
}

}  // namespace

Manifest new_manifest(const std::string& command) {
  Manifest manifest;
  manifest.command = command;
  manifest.version = build_info::version;
  manifest.commit = build_info::commit;
  return manifest;
}

std::string manifest_text(const Manifest& manifest) {
  utsname machine{};
  uname(&machine);
  std::string text = fmt::format(
      "command: {}\nidentity: {}\nspecsim: {}\ncommit: {}\ndate: {}\nmachine: {{system: {}, processor: {}, cores: {}}}\nthreads: "
      "{}\nshard: {}\ncells: {}\nwall_seconds: {:.2f}\n",
      quoted(manifest.command), quoted(manifest.identity), quoted(manifest.version), quoted(manifest.commit), quoted(now()),
      quoted(std::string(machine.sysname) + " " + machine.machine), quoted(processor()), sysconf(_SC_NPROCESSORS_ONLN),
      manifest.threads, quoted(fmt::format("{}/{}", manifest.shard, manifest.shards)), manifest.cells, manifest.wall_seconds);
  if (!manifest.verdict.empty()) text += fmt::format("verdict: {}\n", quoted(manifest.verdict));
  text += "experiments:\n";
  for (std::size_t i = 0; i < manifest.files.size(); ++i)
    text += fmt::format("  - file: {}\n    config: {}\n", quoted(manifest.files[i]), quoted(manifest.configs[i]));
  text += sums_text("inputs", manifest.inputs) + sums_text("results", manifest.results);
  return text + kSeal + quoted(checksum(text)) + "\n";
}

Manifest read_manifest(const std::string& path) {
  std::string text;
  try {
    text = read_written_file(path);
  } catch (const ReadError& error) {
    throw BadInput({path, 0, 0}, error.message("YAML file"));
  }
  if (text.empty()) throw BadInput({path, 0, 0}, "the file is empty, allowed: one YAML document");
  Diagnostics diagnostics;
  const config::Value root = config::parse_text(text, path, diagnostics);
  diagnostics.throw_if_any();
  const config::Value* shard = root.find("shard");
  const config::Value* experiments = root.find("experiments");
  if (shard == nullptr || experiments == nullptr || !experiments->is_list())
    throw BadInput({path, 1, 1}, "not the manifest of a run: shard or experiments are missing");
  Manifest manifest;
  read_shard(*shard, manifest);
  for (auto& [file, config] : read_pairs(root, "experiments", "file", "config", "an experiment lacks file or config")) {
    manifest.files.push_back(file);
    manifest.configs.push_back(config);
  }
  if (!is_sealed(text))
    throw BadInput({path, 0, 0},
                   "its last line is not the checksum of the lines before it, allowed: a manifest as it was written");
  manifest.command = text_of(root, "command");
  manifest.identity = text_of(root, "identity");
  manifest.version = text_of(root, "specsim");
  manifest.commit = text_of(root, "commit");
  manifest.verdict = text_of(root, "verdict");
  manifest.inputs = read_sums(root, "inputs");
  manifest.results = read_sums(root, "results");
  if (const config::Value* seconds = root.find("wall_seconds")) manifest.wall_seconds = config::as_number(*seconds).value_or(0.0);
  if (const config::Value* threads = root.find("threads"))
    manifest.threads = static_cast<unsigned>(config::as_integer(*threads).value_or(1));
  if (const config::Value* cells = root.find("cells"))
    manifest.cells = static_cast<std::size_t>(config::as_integer(*cells).value_or(0));
  return manifest;
}

}  // namespace specsim::report
