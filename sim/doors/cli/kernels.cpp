// specsim kernels: measured kernel latencies compared with the estimates.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/kernel_files.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/resources.h"
#include "sim/doors/cli/result_files.h"
#include "sim/experiments/spec/engine_names.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/text_file.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/latency/kernel_tables.h"
#include "sim/hardware/latency/step_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef SPECSIM_WITH_LZMA
#include <lzma.h>
#endif

namespace specsim::cli {

namespace {

constexpr const char* kFitted = "fitted";                   // the folder in --out for GPU files
constexpr std::size_t kMostFields = std::size_t{1} << 25U;  // of a table

#ifdef SPECSIM_WITH_LZMA
std::string unpacked(const std::string& packed, const std::string& path) {
  lzma_stream stream = LZMA_STREAM_INIT;
  constexpr std::uint64_t kMemory = std::uint64_t{256} << 20U;
  std::string text;
  std::vector<char> piece(std::size_t{1} << 20U);
  lzma_ret state = lzma_stream_decoder(&stream, kMemory, LZMA_CONCATENATED);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  while (state == LZMA_OK && text.size() <= kMostFileBytes) {
    stream.next_out = reinterpret_cast<std::uint8_t*>(piece.data());
    stream.avail_out = piece.size();
    state = lzma_code(&stream, LZMA_FINISH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  lzma_end(&stream);
  if (state != LZMA_STREAM_END)
    throw BadInput({path, 0, 0}, state == LZMA_OK
                                     ? fmt::format("it unpacks to over {} bytes, allowed: smaller tables", kMostFileBytes)
                                     : std::string("it is not a complete .xz file, allowed: a file that xz wrote"));
  return text;
}
#else
std::string unpacked(const std::string& /*packed*/, const std::string& path) {
  throw BadInput({path, 0, 0}, "this specsim was built without liblzma, allowed: the table unpacked (xz -d)");
}
#endif

std::vector<std::vector<std::string>> read_lines(const std::string& path) {
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const ReadError& error) {
    throw BadInput({path, 0, 0}, error.message("table of measured kernels, .csv or .csv.xz"));
  }
  if (path.ends_with(".xz")) text = without_byte_order_mark(unpacked(text, path));
  std::vector<std::vector<std::string>> lines;
  std::size_t count = 0;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() && rest.empty()) break;
    auto fields = report::csv_fields(line);
    if (!fields) throw BadInput({path, number, 0}, "a quote is out of place, allowed: CSV");
    if ((count += fields->size()) > kMostFields)  // a packed file of some kilobytes may hold a hundred million
      throw BadInput({path, number, 0},
                     fmt::format("with it the table has over {} fields, allowed: smaller tables", kMostFields));
    lines.push_back(std::move(*fields));
  }
  return lines;
}

// Writes the files, and prints a table of errors.
void write_steps(const cost::EstimatedSteps& table, const std::string& path, bool bands, report::OutputFolder& folder) {
  const std::vector<cost::StepErrors> errors = cost::step_errors(table);
  folder.write("priced.csv", estimates_csv(table));
  folder.write("errors.csv", errors_csv(errors));
  report::Table shown({{"GPU", report::Align::left},
                       {"engine", report::Align::left},
                       {"model", report::Align::left},
                       {"phase", report::Align::left},
                       {"batch", report::Align::left},
                       {"count"},
                       {"ratio"},
                       {"error %"},
                       {"90th"},
                       {"worst"}},
                      {.keys = 5});
  for (const cost::StepErrors& e : errors) {
    if (e.batch == "all" || bands)
      shown.add({e.gpu, e.engine, e.model, e.phase, e.batch, std::to_string(e.count), fmt::format("{:.3f}", e.median_ratio),
                 fmt::format("{:.1f}", 100.0 * e.median_error), fmt::format("{:.1f}", 100.0 * e.high_error),
                 fmt::format("{:.1f}", 100.0 * e.worst_error)});
  }
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = {path};
  manifest.configs = {"{}"};
  folder.finish(manifest);
  print_output("{}: {} whole steps\n{}", path, table.rows.size(), shown.text(output_width()));
  for (const std::string& gap : cost::step_gaps(table)) print_output("{}\n", gap);
  print_output("ratio: estimated over measured, median; error: of the estimate, median, 90th percentile and worst\n");
}

void write_kernels(const cost::EstimatedKernels& table, const std::string& path, bool bands, report::OutputFolder& folder) {
  const std::vector<cost::KernelErrors> errors = cost::kernel_errors(table);
  folder.write("priced.csv", estimates_csv(table));
  folder.write("errors.csv", errors_csv(errors));
  report::Table shown({{"GPU", report::Align::left},
                       {"engine", report::Align::left},
                       {"dtype", report::Align::left},
                       {"rows", report::Align::left},
                       {"count"},
                       {"covered"},
                       {"ratio"},
                       {"error %"},
                       {"90th"}},
                      {.keys = 4});
  for (const cost::KernelErrors& e : errors) {
    if (e.rows == "all" || bands)
      shown.add({e.gpu, e.engine, e.dtype, e.rows, std::to_string(e.count), std::to_string(e.covered),
                 fmt::format("{:.3f}", e.median_ratio), fmt::format("{:.1f}", 100.0 * e.median_error),
                 fmt::format("{:.1f}", 100.0 * e.high_error)});
  }
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = {path};
  manifest.configs = {"{}"};
  folder.finish(manifest);
  const auto count = [&](auto what) { return std::count_if(table.rows.begin(), table.rows.end(), what); };
  print_output(
      "{}: {} rows of kind {}, {} estimated, {} of them measured in the second-level cache and not counted below\n{}\n"
      "ratio: estimated over measured, median; error: of the estimate, median and 90th percentile\n",
      path, table.rows.size(), cost::kernel_kind_name(table.kind),
      count([](const cost::EstimatedKernel& row) { return row.priced_us > 0.0; }),
      count([](const cost::EstimatedKernel& row) { return row.warm; }), shown.text(output_width()));
}

// The GPUs of --hardware, by all names that rows may use for them: the path as given, the file name without folder and
// extension, and the name in the file.
std::map<std::string, cost::Hardware> own_hardware(const std::vector<std::string>& files) {
  std::map<std::string, cost::Hardware> own;
  for (const std::string& name : files) {
    Diagnostics diagnostics;
    const cost::Hardware gpu = cost::read_hardware(cost::PresetChoice{name, {"--hardware", 0, 0}, {}}, diagnostics);
    diagnostics.throw_if_any();
    for (const std::string& called : {name, std::filesystem::path(name).stem().string(), gpu.name})
      if (!called.empty()) own.emplace(called, gpu);
  }
  return own;
}

// Throws BadInput if no row is on a GPU of --hardware, since the option would have no effect.
template <class Row>
void check_own_used(const std::map<std::string, cost::Hardware>& own, const std::vector<Row>& rows) {
  if (own.empty() || std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return own.contains(row.gpu); })) return;
  std::vector<std::string> called;
  for (const auto& [name, gpu] : own) called.push_back(name);
  std::set<std::string> gpus;
  for (const Row& row : rows) gpus.insert(row.gpu);
  throw BadInput({"--hardware", 0, 0},
                 fmt::format("no row was measured on this GPU, the rows are of {}; allowed: rows whose gpu is {}",
                             fmt::join(gpus, ", "), fmt::join(called, " or ")));
}

// Fits the table with the script that fitted the shipped GPU files, and writes to the folder `fitted` of `out`.
ExitCode fit_kernels(const std::string& path, const cost::EstimatedKernels& table, const std::string& out) {
  namespace fs = std::filesystem;
  const fs::path fitted = fs::path(out) / kFitted;
  std::error_code error;
  fs::create_directories(fitted, error);
  if (error) throw IoError(fmt::format("{} cannot be created: {}", fitted.string(), error.message()));
  const fs::path configs = fs::path(resources_folder()) / "configs";
  const int status =
      run_script("scripts/kernels/fit_kernels.py",
                 {path, "--only", cost::kernel_kind_name(table.kind), "--source", path, "--existing",
                  (configs / "kernels").string(), "--hardware", (configs / "hardware").string(), "--out", fitted.string()});
  constexpr int kNothingToFit = 3;
  if (status == kNothingToFit)
    throw BadInput({path, 0, 0},
                   "nothing to fit, allowed: three rows or more of one engine and type on a GPU of configs/hardware");
  for (const ExitCode reported : {ExitCode::interrupted, ExitCode::bad_input, ExitCode::io_failed})
    if (status == static_cast<int>(reported)) return reported;
  if (status != 0) throw IoError(fmt::format("scripts/kernels/fit_kernels.py ended with status {}", status));
  std::set<std::string> files;
  for (const cost::EstimatedKernel& row : table.rows)
    if (const fs::path file = fitted / (row.gpu + ".yaml"); fs::exists(file, error)) files.insert(file.string());
  print_output("{} with these latencies: --hardware {}\n", files.size() == 1 ? "the GPU" : "the GPUs", fmt::join(files, ","));
  return ExitCode::fine;
}

// Checks that the GPU files of a fit can be written. Throws BadInput. Files that no fit wrote are replaced only with `force`,
// links and pipes never.
void check_fitted(const report::OutputFolder& folder, const cost::EstimatedKernels& table, bool force) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(folder.file(kFitted), ignored)))
    throw BadInput({folder.file(kFitted), 0, 0}, "is a symbolic link, allowed: another --out, or none of this name there");
  std::set<std::string> gpus;
  for (const cost::EstimatedKernel& row : table.rows) gpus.insert(row.gpu);
  for (const std::string& gpu : gpus)
    for (const auto& [ending, begin] :
         {std::pair{".kernels.yaml", "# Fitted kernel times of "}, {".yaml", " with kernels as "}}) {
      const std::string file = folder.file(std::string(kFitted) + "/" + gpu + ending);
      const fs::file_status found = fs::symlink_status(file, ignored);
      if (!fs::exists(found)) continue;
      if (!fs::is_regular_file(found))
        throw BadInput({file, 0, 0}, "is no regular file, allowed: another --out, or none of this name there");
      const std::string text = force ? "" : read_written_file(file);
      if (!force && text.substr(0, text.find('\n')).find(begin) == std::string::npos)
        throw BadInput({file, 0, 0}, "was written by no fit, allowed: another --out, or --force to replace it");
    }
}

// If no row has an estimate, there is no result, and the exit status lets scripts detect that.
ExitCode estimated_any(const std::string& path, std::size_t rows, bool any) {
  if (any) return ExitCode::fine;
  print_error("{}: none of {} rows has an estimate, so there are no errors to report\n", path, rows);
  return ExitCode::disagree;
}

}  // namespace

ExitCode kernels_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  std::string out;
  bool bands = false;
  bool fits = false;
  bool force = false;
  std::optional<std::string> engine_name;
  std::vector<std::string> hardware;
  CommandLine line(
      "specsim kernels TABLE --out DIRECTORY [--bands] [--fit] [--engine NAME] [--hardware FILE] [--force]\n\nTABLE: "
      "measured kernels or whole "
      "steps, .csv or .csv.xz, recognised by their header.\nus: microseconds; ms: milliseconds; bytes: of one GPU's vector; "
      "context: cached tokens of a sequence;\nn, k, m: outputs, inputs and rows of a product; set_over_l2, kv_over_l2: bytes "
      "over the second-level cache's;\nlatent, "
      "rope_dim: widths of a cached vector that all heads share, and of its rotated part;\ndtype: " +
          fmt::format("{}", fmt::join(cost::dtype_names(), ", ")),
      "  specsim kernels gemm_aic.csv.xz --out out/products\n"
      "  specsim kernels attention_decode_aic.csv --out out/decode --bands\n"
      "  specsim kernels my_products.csv --out out/mine --fit\n"
      "  specsim kernels my_products.csv --out out/mine --hardware my_gpu.yaml\n");
  line.add_words("table", paths);
  line.add(
      {{"out", out, "directory for the CSV files"},
       {"bands", bands, "also print errors by number of rows"},
       {"fit", fits, "write a GPU file with latencies fitted to the table, in DIRECTORY/fitted"},
       {"force", force, kForceHelp},
       {"engine", engine_name, "engine for estimates of whole steps, instead of the table's: a name or a .yaml file"},
       {"hardware", hardware, read_texts,
        "your own GPU files, separated by commas: for rows whose gpu is the file, its name without .yaml, or the name in it"}});
  line.needs({"out"});
  if (!line.read(arguments)) return ExitCode::fine;
  line.require("table", "a table of measured kernels");
  if (paths.size() > 1) throw BadInput({paths[1], 0, 0}, "a second table, allowed: one at a time");
  const std::string& path = paths.front();
  line.check({{"hardware", {}, {"fit"}, "fits GPUs of configs/hardware"}});
  const FilesRead read;
  const std::map<std::string, cost::Hardware> own = own_hardware(hardware);
  const std::vector<std::vector<std::string>> lines = read_lines(path);
  report::OutputFolder folder(out);
  const auto claim = [&] {
    if (fits && !force && folder.has(kFitted) && !folder.has("manifest.yaml"))
      throw BadInput(
          {folder.file(kFitted), 0, 0},
          "is here without a manifest.yaml that shows which command wrote it, allowed: another --out, or --force to replace it");
    folder.claim(claim_at_once({"priced.csv", "errors.csv"}, line.identity(), force, read.sums()));
  };
  if (!lines.empty() && cost::is_step_table(lines.front())) {
    std::optional<cost::PresetChoice> engine;
    if (engine_name) engine = {*engine_name, {"--engine", 0, 0}, {}};
    if (fits) throw BadInput({"--fit", 0, 0}, "given with a table of whole steps, allowed: with a table of kernels");
    if (engine) {
      Diagnostics diagnostics;
      spec::check_engine_names(cost::read_engine(*engine, diagnostics), diagnostics);
      diagnostics.throw_if_any();
    }
    const cost::EstimatedSteps steps = cost::estimate_step_table(path, lines, engine, own);
    check_own_used(own, steps.rows);
    for (const std::string& warning : steps.warnings) print_warning(warning);
    claim();
    write_steps(steps, path, bands, folder);
    return estimated_any(
        path, steps.rows.size(),
        std::any_of(steps.rows.begin(), steps.rows.end(), [](const cost::EstimatedStep& row) { return row.priced_ms > 0.0; }));
  }
  if (engine_name)
    throw BadInput({"--engine", 0, 0}, "given with a table of kernels, whose column engine sets it, allowed: with whole steps");
  const cost::EstimatedKernels table = cost::estimate_kernel_table(path, lines, own);
  check_own_used(own, table.rows);
  for (const std::string& warning : table.warnings) print_warning(warning);
  claim();
  if (fits) check_fitted(folder, table, force);
  write_kernels(table, path, bands, folder);
  if (fits) return fit_kernels(path, table, out);
  return estimated_any(
      path, table.rows.size(),
      std::any_of(table.rows.begin(), table.rows.end(), [](const cost::EstimatedKernel& row) { return row.priced_us > 0.0; }));
}

}  // namespace specsim::cli
