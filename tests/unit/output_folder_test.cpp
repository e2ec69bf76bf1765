// The folder of a command's results: a user's files are never touched. Earlier results are replaced only by the same command or
// on request, and only when the new ones are complete.
#include "sim/foundation/report/output_folder.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/whole_file.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace specsim::output_folder_test {

using Catch::Contains;
using report::OutputFolder;
using report::Writing;

namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("specsim_results_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path_);
    write_whole_file(path() + "/" + name, text);
  }
  // The folder's files with their content; the manifest as "".
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      all[entry.path().filename().string()] = entry.is_directory() ? "(folder)"
                                              : entry.path().filename() == "manifest.yaml"
                                                  ? ""
                                                  : read_whole_file(entry.path().string());
    return all;
  }

 private:
  std::filesystem::path path_;
};

using Files = std::map<std::string, std::string>;
const std::vector<std::string> kNames = {"passes.csv", "speed.csv", "trace_t1.jsonl"};

const std::string kMeasuring = "specsim calibrate";
const std::string kComputing = "specsim plan";

report::Manifest manifest_of(const std::string& owner) {
  report::Manifest manifest = report::new_manifest(owner + " --out x");
  manifest.files = {"models"};
  manifest.configs = {"{}"};
  return manifest;
}

// Measurements: only --force replaces them.
void write_results(const Folder& folder, const Files& files, bool force, Writing writing) {
  OutputFolder results(folder.path());
  results.claim({kNames, kMeasuring, force, false, writing});
  for (const auto& [name, text] : files) results.write(name, text);
  results.finish(manifest_of(kMeasuring));
}

}  // namespace

TEST_CASE("results: only what an earlier manifest lists is replaced, and only with force") {
  for (const Writing writing : {Writing::at_once, Writing::growing}) {
    const Folder folder;
    folder.put("summary.txt", "a user's");
    folder.put("trace_that_matters.jsonl", "a user's too");
    const Files users = {{"summary.txt", "a user's"}, {"trace_that_matters.jsonl", "a user's too"}};
    const auto and_users = [&](Files files) {
      files.insert(users.begin(), users.end());
      files["manifest.yaml"] = "";
      return files;
    };
    const Files first = {{"passes.csv", "1"}, {"trace_t1.jsonl", "old"}};
    write_results(folder, first, false, writing);
    CHECK(folder.files() == and_users(first));

    CHECK_THROWS_WITH(write_results(folder, {{"passes.csv", "2"}}, false, writing),
                      Contains("results are here already, allowed: another --out, or --force"));
    CHECK(folder.files() == and_users(first));

    {  // An interrupted command leaves the earlier results as they were.
      OutputFolder broken_off(folder.path());
      broken_off.claim({kNames, kMeasuring, true, false, writing});
      broken_off.write("passes.csv", "half");
    }
    CHECK(folder.files() == and_users(first));

    const Files second = {{"passes.csv", "2"}, {"speed.csv", "new"}};
    write_results(folder, second, true, writing);
    CHECK(folder.files() == and_users(second));
    const report::Manifest manifest = report::read_manifest(folder.path() + "/manifest.yaml");
    REQUIRE(manifest.results.size() == 2);
    CHECK(manifest.results[0].sum == checksum("2"));
    CHECK(manifest.verdict.empty());
  }
}

TEST_CASE(
    "results: a user's file of a result's name, one that was changed, another command's results are refused, force or not") {
  for (const bool force : {false, true}) {
    const Folder folder;
    folder.put("speed.csv", "a user's");
    CHECK_THROWS_WITH(write_results(folder, {{"passes.csv", "1"}}, force, Writing::at_once),
                      Contains("speed.csv: is here already, and no manifest.yaml in its folder lists it"));
    CHECK(folder.files() == Files{{"speed.csv", "a user's"}});
    std::filesystem::remove(folder.path() + "/speed.csv");

    write_results(folder, {{"passes.csv", "1"}}, false, Writing::at_once);
    folder.put("passes.csv", "notes of a user");
    CHECK_THROWS_WITH(write_results(folder, {{"passes.csv", "2"}}, true, Writing::at_once),
                      Contains("was changed since it was written"));
    CHECK(folder.files().at("passes.csv") == "notes of a user");

    report::Manifest other = report::new_manifest("specsim run");
    other.files = {"a.yaml"};
    other.configs = {"{}"};
    folder.put("manifest.yaml", report::manifest_text(other));
    std::filesystem::remove(folder.path() + "/passes.csv");
    CHECK_THROWS_WITH(write_results(folder, {{"passes.csv", "2"}}, force, Writing::at_once),
                      Contains("results of another command are here"));
    CHECK(folder.files() == Files{{"manifest.yaml", ""}});
  }
}

TEST_CASE("results that grow are there before the end, and whoever comes next knows that they are unfinished") {
  const Folder folder;
  {
    OutputFolder growing(folder.path());
    growing.claim({kNames, kMeasuring, false, false, Writing::growing});
    CHECK(folder.files().empty());
    growing.write("passes.csv", "1");
    CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"passes.csv", "1"}});
    growing.write("passes.csv", "1 2");
    CHECK(folder.files().at("passes.csv") == "1 2");
  }
  CHECK_THROWS_WITH(write_results(folder, {{"passes.csv", "3"}}, false, Writing::growing),
                    Contains("unfinished results are here"));
  write_results(folder, {{"speed.csv", "3"}}, true, Writing::growing);
  CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"speed.csv", "3"}});
}

TEST_CASE("results that come out the same again replace their own, and nothing else without force") {
  for (const Writing writing : {Writing::in_place, Writing::at_once}) {
    const auto write = [&](const Folder& folder, const Files& files, const std::string& owner, bool force) {
      OutputFolder results(folder.path());
      results.claim({kNames, owner, force, true, writing});
      for (const auto& [name, text] : files) results.write(name, text);
      results.finish(manifest_of(owner));
    };
    const Folder folder;
    folder.put("speed.csv", "a user's");
    CHECK_THROWS_WITH(write(folder, {{"passes.csv", "1"}}, kComputing, false),
                      Contains("speed.csv: is here without a manifest.yaml that shows which command wrote it"));
    CHECK(folder.files() == Files{{"speed.csv", "a user's"}});
    std::filesystem::remove(folder.path() + "/speed.csv");

    write(folder, {{"passes.csv", "1"}, {"speed.csv", "1"}}, kComputing, false);
    write(folder, {{"passes.csv", "2"}}, kComputing, false);
    CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"passes.csv", "2"}});

    folder.put("speed.csv", "a user's");
    CHECK_THROWS_WITH(write(folder, {{"passes.csv", "3"}}, kComputing, false),
                      Contains("speed.csv: is here and the manifest.yaml in its folder does not list it"));
    std::filesystem::remove(folder.path() + "/speed.csv");
    CHECK_THROWS_WITH(write(folder, {{"passes.csv", "3"}}, "specsim compare", false),
                      Contains("holds the finished results of another run"));
    CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"passes.csv", "2"}});
    folder.put("notes.txt", "a user's");
    write(folder, {{"speed.csv", "3"}}, "specsim compare", true);
    CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"notes.txt", "a user's"}, {"speed.csv", "3"}});
  }
}

TEST_CASE("results are replaced only by those of the same inputs, wherever these are") {
  for (const Writing writing : {Writing::in_place, Writing::at_once}) {
    const auto write = [&](const Folder& folder, const std::vector<FileSum>& inputs, bool force) {
      OutputFolder results(folder.path());
      results.claim({kNames, kComputing, force, true, writing, inputs});
      results.write("passes.csv", "1");
      results.finish(manifest_of(kComputing));
    };
    const Folder folder;
    const std::vector<FileSum> inputs = {{"tr.jsonl", checksum("a")}, {"gpus/mine.yaml", checksum("b")}};
    write(folder, inputs, false);
    CHECK(report::read_manifest(folder.path() + "/manifest.yaml").inputs == inputs);
    CHECK(report::read_manifest(folder.path() + "/manifest.yaml").identity == kComputing);
    write(folder, {{"../gpus/mine.yaml", checksum("b")}, {"/there/tr.jsonl", checksum("a")}}, false);
    CHECK_THROWS_WITH(write(folder, {{"tr.jsonl", checksum("c")}, {"gpus/mine.yaml", checksum("b")}}, false),
                      Contains("holds the finished results of another run: tr.jsonl is not what it read, allowed: another --out, "
                               "or --force to replace them"));
    CHECK_THROWS_WITH(write(folder, {{"tr.jsonl", checksum("a")}}, false), Contains("mine.yaml is not what it read"));
    CHECK_THROWS_AS(write(folder, {}, false), BadInput);
    write(folder, {}, true);
    write(folder, {}, false);
  }
}

TEST_CASE("what is no regular file is in the way of results, and so are somebody's pieces of one, before anything is written") {
  for (const Writing writing : {Writing::in_place, Writing::at_once, Writing::growing})
    for (const bool repeatable : {true, false}) {
      const auto claim = [&](const Folder& folder, bool force) {
        OutputFolder results(folder.path());
        results.claim({kNames, kComputing, force, repeatable, writing});
      };
      for (const char* name : {"speed.csv", "manifest.yaml"}) {
        const Folder folder;
        std::filesystem::create_directories(folder.path());
        REQUIRE(mkfifo((folder.path() + "/" + name).c_str(), 0600) == 0);
        for (const bool force : {false, true})
          CHECK_THROWS_WITH(claim(folder, force), Contains(std::string("/") + name + ": is no regular file"));
      }
      for (const char* name : {"speed.csv.part", "manifest.yaml.part"}) {
        const Folder folder;
        folder.put(name, "a user's");
        const bool touched = writing != Writing::at_once || name == std::string("manifest.yaml.part");
        for (const bool force : {false, true}) {
          if (!touched || (repeatable && force))
            claim(folder, force);
          else
            CHECK_THROWS_WITH(claim(folder, force), Contains(std::string("/") + name + ": is here "));
        }
        CHECK(folder.files() == Files{{name, "a user's"}});
      }
    }
}

TEST_CASE("the leftover of a killed writing of a manifest blocks no later run") {
  for (const bool repeatable : {true, false})
    for (const Writing writing : {Writing::in_place, Writing::at_once, Writing::growing})
      for (const char* text : {"", "comm", "command: \"specsim calibrate\"\nident"}) {
        const Folder folder;
        folder.put("manifest.yaml.part", text);
        if (writing == Writing::at_once) std::filesystem::create_directories(folder.path() + "/.unfinished");
        OutputFolder results(folder.path());
        results.claim({kNames, kComputing, true, repeatable, writing});
        results.write("passes.csv", "1");
        results.finish({});
        CHECK(folder.files() == Files{{"manifest.yaml", ""}, {"passes.csv", "1"}});
      }
}

TEST_CASE("what is kept aside takes no place of somebody's") {
  for (const bool repeatable : {true, false}) {
    const Folder folder;
    const auto claim = [&](bool force) {
      OutputFolder results(folder.path());
      results.claim({kNames, kComputing, force, repeatable, Writing::at_once});
      results.write("passes.csv", "1");
    };
    folder.put(".unfinished", "a user's");
    CHECK_THROWS_WITH(claim(false), Contains(".unfinished: is here and holds other files than this command's"));
    std::filesystem::remove(folder.path() + "/.unfinished");
    std::filesystem::create_directories(folder.path() + "/.unfinished");
    folder.put(".unfinished/notes.txt", "a user's");
    CHECK_THROWS_WITH(claim(false), Contains(".unfinished: is here and holds other files than this command's"));
    CHECK(read_whole_file(folder.path() + "/.unfinished/notes.txt") == "a user's");
    std::filesystem::remove(folder.path() + "/.unfinished/notes.txt");
    folder.put(".unfinished/speed.csv", "half");
    folder.put(".unfinished/passes.csv.part", "half");
    claim(false);  // the leftover of a sudden end is removed
    CHECK(folder.files().empty());
  }
}

TEST_CASE("a folder that is removed while files are written into it is noticed with the next file") {
  for (const Writing writing : {Writing::in_place, Writing::at_once, Writing::growing}) {
    const Folder folder;
    OutputFolder results(folder.path());
    results.claim({kNames, kMeasuring, false, false, writing});
    std::filesystem::remove_all(folder.path());
    results.write("passes.csv", "1");  // no result was lost: it is made again
    std::filesystem::remove_all(folder.path());
    CHECK_THROWS_WITH(results.write("speed.csv", "1"), Contains("was removed while files were being written into it"));
    CHECK_THROWS_AS(results.finish(manifest_of(kMeasuring)), IoError);
  }
}

TEST_CASE("a folder has one writer, and one that nothing was written into goes again") {
  const Folder folder;
  {
    const OutputFolder first(folder.path() + "/a/b");
    CHECK_THROWS_WITH(OutputFolder(folder.path() + "/a/b"), Contains("another process is writing here"));
  }
  CHECK(!std::filesystem::exists(folder.path()));
  CHECK_THROWS_AS(OutputFolder(""), BadInput);
}

TEST_CASE("a folder closes its own lock and nothing else") {
  const Folder folder;
  const std::string path = folder.path() + "/a";
  const auto is_open = [](int descriptor) { return fcntl(descriptor, F_GETFD) != -1; };
  // It was removed, and must be made again: another process has done so, or a file is in its place. Mutants: 1, which is standard
  // output, for a lock that does not exist.
  for (const bool taken : {true, false}) {
    CAPTURE(taken);
    {
      OutputFolder own(path);
      own.claim({kNames, kMeasuring, false, false, Writing::at_once});
      std::filesystem::remove_all(path);
      const std::optional<OutputFolder> other = taken ? std::optional<OutputFolder>(std::in_place, path) : std::nullopt;
      if (!taken) folder.put("a", "a file");
      CHECK_THROWS(own.write("speed.csv", "1"));
    }
    CHECK(is_open(1));
    std::filesystem::remove_all(path);
  }
  // If standard input is closed, the lock may be 0. Mutant: it is left open.
  const int input = dup(0);
  close(0);
  const bool held = [&] {
    const OutputFolder own(path);
    return is_open(0);
  }();
  const bool left = is_open(0);
  if (input >= 0) {
    dup2(input, 0);
    close(input);
  }
  CHECK(held);
  CHECK_FALSE(left);
}

}  // namespace specsim::output_folder_test
