// A folder into which a command writes its results. Only one writer at a time, and nothing is replaced by mistake. The manifest
// in it shows later what made the results and whether they are complete.
#pragma once

#include "sim/foundation/report/manifest.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

// How files appear in the folder.
enum class Writing {
  in_place,  // each when it is written; manifest.yaml comes last
  at_once,   // files are staged, and moved in together when all of them exist
  growing,   // each as soon as it has contents, and again whenever it grows: if the work is cut short, its
             // measurements are kept. Earlier results that are replaced stay until the end all the same.
};

// The files that a command is about to write, and what it may replace.
struct OutputClaim {
  std::vector<std::string> names;  // every file that may be written, except manifest.yaml
  // Identifies who would make the same results again: the command and its options; for measurements "specsim COMMAND". Compared
  // with the existing manifest.
  std::string owner;
  bool force = false;  // --force was given
  // Results of the same owner and inputs are replaced without --force, since they would be identical; false for measurements.
  bool repeatable = true;
  Writing writing = Writing::in_place;
  std::vector<FileSum> inputs{};  // files that the results are made from, except those whose text is in the identity
};

class OutputFolder {
 public:
  // Makes the directory and its parents, and locks it. Throws BadInput if `path` is empty or another process has locked it;
  // IoError.
  explicit OutputFolder(std::string path);
  // Without finish(), removes the files that were written. Files that grew stay, with a manifest that marks them as unfinished.
  // Unlocks the directory, and removes it if it was made here and is still empty.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] bool has(const std::string& name) const;  // any kind of file, including a link that leads nowhere

  // Announces the files to be written; nothing is touched yet. Throws BadInput if that would lose something that is not
  // `owner`'s. Without `force` these are results whose manifest names another owner or other contents of the inputs, and a file
  // of one of `names` that the manifest does not list (without a manifest, its pieces NAME.part too). With or without `force` it
  // throws if one of `names` is not a regular file. Measurements never replace such files, nor a file that was changed since it
  // was written; they replace their own kind only with `force`.
  void claim(OutputClaim claim);

  // Writes a file of the claim, whole or not at all. If the directory was removed in the meantime it is made again; if files were
  // lost with it, throws IoError. Throws IoError.
  void write(const std::string& name, std::string_view text);
  // Adds a file of the claim that was written in place by other code to the results. Throws IoError.
  void wrote(const std::string& name);
  // Moves staged files in, removes the rest of the results that they replace, and writes manifest.yaml with their checksums.
  // `manifest` must have no results; identity and inputs are filled from the claim if it has them. Throws IoError.
  void finish(const Manifest& manifest);
  [[nodiscard]] std::vector<std::string> written() const;  // names, in order

  // Removes a file that is not part of the claim, such as a journal; does nothing if it does not exist. Throws IoError.
  void remove(const std::string& name) const;

 private:
  // Checks the existing results; returns whether their manifest lists its files.
  bool check_earlier();
  void check_regular() const;                                 // throws BadInput if something else is in a file's place
  void check_pieces() const;                                  // throws BadInput if a foreign NAME.part would be replaced
  void check_stage() const;                                   // throws BadInput if something else is where files are staged
  [[nodiscard]] bool is_listed(const FileSum& listed) const;  // whether the file has the bytes that the manifest lists
  [[nodiscard]] bool announced(const std::string& name) const;
  void make_and_lock();
  void recreate_if_removed();  // makes the directory again if it was removed
  void write_manifest(Manifest manifest, std::vector<FileSum> results) const;
  [[nodiscard]] const std::string& place() const { return stage_.empty() ? path_ : stage_; }

  std::string path_;
  std::vector<std::string> made_;  // directories, the outermost first
  int lock_ = -1;                  // the directory itself, open
  OutputClaim claim_;
  std::set<std::string> earlier_;  // files of earlier results to be replaced
  std::string stage_;              // folder of staged files; "": files are written in place
  std::vector<FileSum> files_;     // files that were written
  bool finished_ = false;
};

}  // namespace specsim::report
