// The files that specsim run, check and merge leave in --out.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/report/output_folder.h"

#include <string>
#include <vector>

namespace specsim::cli {

inline const std::vector<std::string> kResultFiles = {"data.csv", "counts.csv", "waterfall.csv"};  // beside manifest.yaml
inline constexpr const char* kJournal = "journal.txt";                                             // what an unfinished run keeps

// Makes the folder safe to write `names` into: nothing is in it but what may be replaced, or an unfinished run whose journal says
// itself whether it is this one. `force` drops that one. Throws BadInput.
void claim_run(report::OutputFolder& folder, const std::vector<std::string>& names, const std::string& identity,
               const std::vector<FileSum>& inputs, bool resume, bool force);

// What a command claims whose files appear at once, and come out the same again from the same options and inputs.
report::OutputClaim claim_at_once(std::vector<std::string> names, std::string identity, bool force, std::vector<FileSum> inputs);

// Writes them, the manifest with the checksums of the others as the last, and returns their names as a sentence has them.
// `whole`: not only a shard, of which there are counts and nothing else. Throws IoError.
std::string write_results(report::OutputFolder& folder, const std::vector<judge::Row>& rows, const report::Manifest& manifest,
                          bool whole);

}  // namespace specsim::cli
