#include "sim/doors/cli/server_log.h"

#include "sim/doors/cli/options.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20U;  // longer ones are cut
// Logs and pipes of logs are far larger than other files. Devices may never end, so they have the other files' limit.
constexpr std::uint64_t kMostLogBytes = std::uint64_t{1} << 40U;

constexpr const char* kKnownLines =
    "lines, metrics or answers of vLLM (\"SpecDecoding metrics:\", vllm:spec_decode_*, speculative_decoding), SGLang (\"accept "
    "len:\", sglang:spec_*, meta_info, server info), llama.cpp (\"draft acceptance\", \"statistics\", \"timings\"), TensorRT-LLM "
    "(specDecodingStats, trtllm_spec_decode_*), LMDeploy or tabbyAPI, reports of vllm bench serve, bench_serving, trtllm-bench, "
    "llama-spec-bench or AIPerf, or answers of Spec-Bench or EAGLE";

// Bytes that no text begins with, and the command that converts such a file to text.
struct Packing {
  std::string_view begins;
  const char* what;
  const char* unpack;
};
constexpr std::array<Packing, 6> kPackings = {{{"\x1f\x8b", "packed by gzip", "zcat"},
                                               {"\x28\xb5\x2f\xfd", "packed by zstd", "zstdcat"},
                                               {"\xfd"
                                                "7zXZ",
                                                "packed by xz", "xzcat"},
                                               {"BZh", "packed by bzip2", "bzcat"},
                                               {"\xff\xfe", "UTF-16, as PowerShell writes it", "iconv -f UTF-16 -t UTF-8"},
                                               {"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8"}}};

// The input's name in messages.
std::string name_of_file(const std::string& path) { return path == "-" ? "standard input" : path; }

void refuse_packed(std::string_view text, const std::string& path) {
  for (const Packing& one : kPackings)
    if (text.starts_with(one.begins))
      throw BadInput({name_of_file(path), 0, 0}, fmt::format("it is {}, allowed: text, as by {} {} | specsim import -", one.what,
                                                             one.unpack, path == "-" ? "FILE" : path));
}

[[noreturn]] void refuse_unreadable(const std::string& path, int error) {
  std::string words = std::strerror(error);
  words.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(words.front())));
  throw BadInput({name_of_file(path), 0, 0},
                 ReadError(path, "cannot be read: " + words, "a readable {}").message("server's log"));
}

// Reads piece by piece, since a log may be larger than memory.
void read_lines(int file, const std::string& path, logs::LogReader& reader) {
  struct stat status {};
  if (fstat(file, &status) != 0) refuse_unreadable(path, errno);
  const std::uint64_t limit = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) ? kMostFileBytes : kMostLogBytes;
  const auto refuse_above_limit = [&](std::uint64_t size) {
    if (size > limit)
      throw BadInput({name_of_file(path), 0, 0}, fmt::format("it is larger than {0} bytes, allowed: at most {0} bytes", limit));
  };
  if (S_ISREG(status.st_mode)) refuse_above_limit(static_cast<std::uint64_t>(status.st_size));
  std::uint64_t size = 0;
  std::string line;
  std::array<char, 1 << 16> buffer;
  bool first = true;
  bool cut = false;
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_unreadable(path, errno);
    if (count == 0) break;
    size += static_cast<std::uint64_t>(count);
    refuse_above_limit(size);
    std::string_view text(buffer.data(), static_cast<std::size_t>(count));
    if (std::exchange(first, false)) refuse_packed(text, path);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool full = line.size() >= kLongestLine;
      if (!full)
        line += text.substr(0, end);
      else if (end != 0)
        cut = true;
      // A text without line feeds, as an old Mac's: what ends in a carriage return is complete.
      const std::size_t whole = full || line.size() < kLongestLine ? std::string::npos : line.rfind('\r');
      if (whole != std::string::npos && whole > 0) {
        reader.add_part(std::string_view(line).substr(0, whole));
        line.erase(0, whole + 1);
      }
      if (end == std::string_view::npos) break;
      reader.add_line(line);
      line.clear();
      text.remove_prefix(end + 1);
    }
  }
  if (!line.empty()) reader.add_line(line);
  if (cut) print_warning(fmt::format("{}: lines of more than {} bytes were cut", name_of_file(path), kLongestLine));
}

// A file that can be read in pieces, closed at the end; -1 if it cannot.
class PlainFile {
 public:
  explicit PlainFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC)) {}
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  ~PlainFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int descriptor() const {
    struct stat status {};
    return descriptor_ >= 0 && fstat(descriptor_, &status) == 0 && !S_ISDIR(status.st_mode) ? descriptor_ : -1;
  }

 private:
  int descriptor_;
};

std::string name_of(const logs::ReportedAcceptance& one) {
  std::string text = describe(one.kind);
  if (!one.name.empty()) text += " of " + one.name;
  if (one.draft_length > 0) text += fmt::format(" at draft length {}", one.draft_length);
  return text;
}

}  // namespace

logs::LogContents read_server_log(const std::string& path, const logs::ReaderOptions& options) {
  logs::LogReader reader(options);
  if (path == "-") {
    read_lines(STDIN_FILENO, path, reader);
  } else if (const PlainFile file(path); file.descriptor() >= 0) {
    read_lines(file.descriptor(), path, reader);
  } else {  // reports why it cannot be read
    try {
      reader.add_text(read_whole_file(path));
    } catch (const ReadError& failure) {
      throw BadInput({path, 0, 0}, failure.message("server's log"));
    }
  }
  logs::LogContents contents = reader.finish();
  if (contents.found.empty() && contents.unread == 0 && contents.idle > 0)
    throw BadInput({name_of_file(path), 0, 0},
                   fmt::format("nothing was drafted yet: {} of {} contains no draft, allowed: a log or metrics with drafts",
                               plural(contents.idle, "line"), contents.lines));
  if (contents.found.empty())
    throw BadInput(
        {name_of_file(path), 0, 0},
        fmt::format("no speculative decoding in {}{}{}, allowed: {}", plural(contents.lines, "line"),
                    contents.idle > 0 ? fmt::format(" ({} of them report that nothing was drafted)", contents.idle) : "",
                    contents.unread > 0 ? fmt::format(" ({} could not be read; {})", contents.unread, contents.first_unread) : "",
                    kKnownLines));
  if (contents.unread > 0)
    print_warning(fmt::format("{} could not be read; {}", plural(contents.unread, "line"), contents.first_unread));
  return contents;
}

logs::ReportedAcceptance one_acceptance(const logs::LogContents& contents, const std::string& server, int draft_length,
                                        const Location& option) {
  std::vector<const logs::ReportedAcceptance*> fitting;
  std::vector<std::string> names;
  for (const std::size_t i : logs::distinct(contents.found)) {
    const logs::ReportedAcceptance& one = contents.found[i];
    names.push_back(name_of(one));
    if (!server.empty() && logs::server_name(one.kind) != server) continue;
    if (draft_length > 0 && one.draft_length > 0 && one.draft_length != draft_length) continue;
    fitting.push_back(&one);
  }
  if (fitting.size() == 1) return *fitting[0];
  if (fitting.empty())
    throw BadInput(option, fmt::format("the log has {}, allowed: their server and draft length", fmt::join(names, " and ")));
  names.clear();
  for (const logs::ReportedAcceptance* one : fitting) names.push_back(name_of(*one));
  throw BadInput(option,
                 fmt::format("the log has {}, allowed: one of them, named by --server or --at-draft-length, or a log of one",
                             fmt::join(names, " and ")));
}

std::string read_server(const std::string& text, const std::string& option) {
  const std::vector<std::string>& known = logs::server_names();
  if (std::find(known.begin(), known.end(), text) == known.end())
    throw BadInput({option, 0, 0}, config::unknown_name("unknown server", text, known));
  return text;
}

}  // namespace specsim::cli
