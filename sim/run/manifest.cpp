#include "sim/run/manifest.h"

#include "sim/base/error.h"
#include "sim/rng/address.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace specsim::run {

namespace {

std::string quoted(const std::string& text) {
  config::Value value;
  value.kind = config::Kind::scalar;
  value.text = text;
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

}  // namespace

std::string identity(const std::vector<spec::Experiment>& experiments) {
  std::uint64_t hash = rng::hash_text("specsim 1");
  for (const spec::Experiment& experiment : experiments)
    hash = rng::hash_text(config::to_canonical_text(experiment.config), hash);
  return fmt::format("{:016x}", hash);
}

std::string manifest_text(const Manifest& manifest) {
  utsname machine{};
  uname(&machine);
  std::string text = fmt::format(
      "command: {}\nidentity: {}\nspecsim: {}\ncommit: {}\ndate: {}\nmachine: {{system: {}, processor: {}, cores: {}}}\nthreads: "
      "{}\nshard: {}\ncells: {}\nwall_seconds: {:.2f}\n",
      quoted(manifest.command), quoted(manifest.identity), quoted(manifest.version), quoted(manifest.commit), quoted(now()),
      quoted(std::string(machine.sysname) + " " + machine.machine), quoted(processor()), sysconf(_SC_NPROCESSORS_ONLN),
      manifest.threads, quoted(fmt::format("{}/{}", manifest.shard.index, manifest.shard.of)), manifest.cells,
      manifest.wall_seconds);
  if (!manifest.verdict.empty()) text += fmt::format("verdict: {}\n", quoted(manifest.verdict));
  text += "experiments:\n";
  for (std::size_t i = 0; i < manifest.files.size(); ++i)
    text += fmt::format("  - file: {}\n    config: {}\n", quoted(manifest.files[i]), quoted(manifest.configs[i]));
  return text;
}

Manifest read_manifest(const std::string& path) {
  Diagnostics diagnostics;
  const config::Value root = config::parse_file(path, diagnostics);
  diagnostics.throw_if_any();
  Manifest manifest;
  const config::Value* shard = root.find("shard");
  const config::Value* experiments = root.find("experiments");
  if (shard == nullptr || experiments == nullptr || !experiments->is_list())
    throw BadInput({path, 1, 1}, "no manifest of a run: shard or experiments are missing");
  unsigned long long index = 0;
  unsigned long long of = 0;
  if (std::sscanf(shard->text.c_str(), "%llu/%llu", &index, &of) != 2 || index < 1 || index > of)
    throw BadInput(shard->where, fmt::format("shard is \"{}\", allowed: i/n", shard->text));
  manifest.shard = {index, of};
  if (const config::Value* identity = root.find("identity")) manifest.identity = identity->text;
  if (const config::Value* commit = root.find("commit")) manifest.commit = commit->text;
  if (const config::Value* seconds = root.find("wall_seconds")) manifest.wall_seconds = config::as_number(*seconds).value_or(0.0);
  if (const config::Value* threads = root.find("threads"))
    manifest.threads = static_cast<unsigned>(config::as_integer(*threads).value_or(1));
  for (const config::Value& item : experiments->items) {
    const config::Value* file = item.find("file");
    const config::Value* config = item.find("config");
    if (file == nullptr || config == nullptr) throw BadInput(item.where, "an experiment lacks file or config");
    manifest.files.push_back(file->text);
    manifest.configs.push_back(config->text);
  }
  return manifest;
}

}  // namespace specsim::run
