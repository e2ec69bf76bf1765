// A folder that a command writes its results into: one writer at a time, and nothing in it is replaced by mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

class OutputFolder {
 public:
  // Makes the directory and its parents, and locks it. Throws BadInput where another process has it locked; IoError.
  explicit OutputFolder(std::string path);
  // Unlocks it, and removes again what was made and is still empty.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] bool has(const std::string& name) const;  // whatever it is, a link that leads nowhere too

  // Throws BadInput where writing the files of these names would lose something: results of a manifest with another identity, or
  // files of which no manifest says what made them.
  void guard(const std::vector<std::string>& names, const std::string& identity) const;

  // As write_whole_file; a folder that was removed in the meantime is made again. Throws IoError.
  void write(const std::string& name, std::string_view text) const;
  // Does nothing where there is no such file. Throws IoError.
  void remove(const std::string& name) const;

 private:
  std::string path_;
  std::vector<std::string> made_;  // directories, the outermost first
  int lock_ = -1;                  // the directory itself, open
};

}  // namespace specsim::report
