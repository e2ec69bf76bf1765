// The folder that a calibration or a validation of real models leaves its results in. It replaces nothing but what the manifest
// of an earlier one says that it wrote, and that only when it is asked to; a user's files are never touched.
#pragma once

#include "sim/report/column.h"
#include "sim/report/manifest.h"

#include <set>
#include <string>
#include <vector>

namespace specsim::calibrate {

// The columns of the CSV files that are read by others, for the reference page.
std::vector<report::FileInfo> described_files();

enum class Writing {
  at_once,  // files are kept aside and moved in together, when all of them are there
  growing,  // files appear as soon as there is something in them, and are written anew as they grow: what is measured is not lost
            // where the run is cut short. Where earlier results are replaced, these stay until the end all the same.
};

class ResultFolder {
 public:
  // `names`: every file that may be written. `force`: an earlier calibration or validation may be replaced. Nothing is written or
  // made yet. Throws BadInput where such results are there already (without `force`), where they were changed since, where one of
  // `names` is there and no manifest lists it, and where the manifest is of another command.
  ResultFolder(std::string path, const std::vector<std::string>& names, bool force, Writing writing);
  // Without finish(), removes what was kept aside; files that grew stay, with a manifest that calls them unfinished.
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  void write(const std::string& name, const std::string& text);
  // Moves the files in, removes those of the results that they replace, and writes manifest.yaml. `manifest` without results.
  void finish(const report::Manifest& manifest);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> written() const;  // names, in order

 private:
  void check_earlier(bool force);
  void write_manifest(report::Manifest manifest) const;

  std::string path_;
  std::set<std::string> names_;
  std::set<std::string> earlier_;  // files that the earlier results' manifest lists and that are there
  std::string stage_;              // where files are kept aside; "": they are written where they belong
  std::vector<FileSum> files_;
  bool finished_ = false;
};

// The manifest of results on two models. `description`: the models, in one line of YAML.
report::Manifest manifest_of(const std::string& command, const std::string& description, unsigned threads, std::size_t cells,
                             double seconds);

}  // namespace specsim::calibrate
