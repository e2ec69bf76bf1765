// A folder that a command writes its results into: one writer at a time, nothing in it is replaced by mistake, and whoever finds
// it later can tell from its manifest what made it and whether it is whole.
#pragma once

#include "sim/foundation/report/manifest.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

// How files appear in the folder.
enum class Writing {
  in_place,  // each as it is written; manifest.yaml comes last
  at_once,   // they are kept aside and moved in together, when all of them are there
  growing,   // each as soon as it has contents, and again whenever it grows: if the work is cut short, its
             // measurements are kept. Earlier results that are replaced stay until the end all the same.
};

// The files that a command is about to write, and what it may replace.
struct OutputClaim {
  std::vector<std::string> names;  // every file that may be written, manifest.yaml apart
  // Identifies who would make the same results again: the command and its options; for measurements "specsim COMMAND". Compared
  // with the existing manifest.
  std::string owner;
  bool force = false;  // --force was given
  // Results of the same owner and inputs are replaced without --force, since they come out the same; false where they are
  // measurements.
  bool repeatable = true;
  Writing writing = Writing::in_place;
  std::vector<FileSum> inputs{};  // files that the results are made from, but those whose text is in the identity
};

class OutputFolder {
 public:
  // Makes the directory and its parents, and locks it. Throws BadInput where `path` is empty or another process has it locked;
  // IoError.
  explicit OutputFolder(std::string path);
  // Without finish(), removes what was kept aside; files that grew stay, with a manifest that calls them unfinished. Unlocks the
  // directory, and removes it again if it was made here and is still empty.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] bool has(const std::string& name) const;  // whatever it is, a link that leads nowhere too

  // Announces the files to be written; nothing is touched yet. Throws BadInput if that would lose something that is not
  // `owner`'s. Without `force` these are results whose manifest names another owner or other contents of the inputs, and a file
  // of one of `names` that the manifest does not list (without a manifest, its pieces NAME.part too). With or without `force` it
  // throws if one of `names` is not a regular file. Measurements never replace such files, nor a file that was changed since it
  // was written; they replace their own kind only with `force`.
  void claim(OutputClaim claim);

  // Writes a file of the claim, whole or not at all. If the directory was removed in the meantime it is made again; if files were
  // lost with it, throws IoError. Throws IoError.
  void write(const std::string& name, std::string_view text);
  // A file of the claim, written in place by somebody else, is one of the results. Throws IoError.
  void wrote(const std::string& name);
  // Moves files in that were kept aside, removes what is left of the results that they replace, and writes manifest.yaml with
  // their checksums; `manifest` comes without results, and without identity and inputs where they are the claim's. Throws
  // IoError.
  void finish(const Manifest& manifest);
  [[nodiscard]] std::vector<std::string> written() const;  // names, in order

  // Removes a file that is not of the claim, such as a journal; does nothing where there is none. Throws IoError.
  void remove(const std::string& name) const;

 private:
  // Looks at the results that are there; whether their manifest lists its files.
  bool check_earlier();
  void check_regular() const;  // throws BadInput if something else is in a file's place
  void check_pieces() const;   // throws BadInput where somebody's NAME.part would be replaced
  void check_stage() const;    // throws BadInput where something else lies where files are kept aside
  [[nodiscard]] bool is_listed(const FileSum& listed) const;  // whether the file has the bytes that the manifest lists
  [[nodiscard]] bool announced(const std::string& name) const;
  void make_and_lock();
  void check_there();  // makes the directory again where it was removed
  void write_manifest(Manifest manifest, std::vector<FileSum> results) const;
  [[nodiscard]] const std::string& place() const { return stage_.empty() ? path_ : stage_; }

  std::string path_;
  std::vector<std::string> made_;  // directories, the outermost first
  int lock_ = -1;                  // the directory itself, open
  OutputClaim claim_;
  std::set<std::string> earlier_;  // files of earlier results that are to be replaced
  std::string stage_;              // where files are kept aside; "": they are written where they belong
  std::vector<FileSum> files_;     // files that were written
  bool finished_ = false;
};

}  // namespace specsim::report
