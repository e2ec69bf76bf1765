#include "sim/foundation/base/memory.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include <unistd.h>

namespace specsim {

std::size_t available_memory() {
  std::size_t available = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) available = static_cast<std::size_t>(kib) << 10;
  }
  // A container may be allowed less than the machine has.
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::ifstream used("/sys/fs/cgroup/memory.current");
  std::size_t most = 0;
  std::size_t now = 0;
  const bool limited = limit >> most && used >> now;
  // The page cache counts as free: the kernel drops it when memory is needed.
  std::ifstream parts("/sys/fs/cgroup/memory.stat");
  std::string name;
  for (std::size_t bytes = 0; parts >> name >> bytes;)
    if (name == "inactive_file" || name == "active_file") now -= std::min(now, bytes);
  if (limited) available = std::min(available, most > now ? most - now : 0);
  return available;
}

}  // namespace specsim
