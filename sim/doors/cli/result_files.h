// The files that specsim run, check and merge write to --out.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/report/output_folder.h"

#include <string>
#include <vector>

namespace specsim::cli {

inline const std::vector<std::string> kResultFiles = {"data.csv", "counts.csv", "waterfall.csv"};  // next to manifest.yaml
inline constexpr const char* kJournal = "journal.txt";                                             // of an unfinished run

// Checks that `names` can be written into the folder. It may contain only replaceable files, or an unfinished run, whose journal
// decides whether it is this run. `force` deletes an unfinished run. Throws BadInput.
void claim_run(report::OutputFolder& folder, const std::vector<std::string>& names, const std::string& identity,
               const std::vector<FileSum>& inputs, bool resume, bool force);

// The claim of a command that writes all files at once, and writes the same files for the same options and inputs.
report::OutputClaim claim_at_once(std::vector<std::string> names, std::string identity, bool force, std::vector<FileSum> inputs);

// Writes the files, and last the manifest with their checksums. Returns their names for a sentence. `whole`: not a shard; a
// shard has only counts. Throws IoError.
std::string write_results(report::OutputFolder& folder, const std::vector<judge::Row>& rows, const report::Manifest& manifest,
                          bool whole);

}  // namespace specsim::cli
