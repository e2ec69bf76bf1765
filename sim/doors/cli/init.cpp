// specsim init: five questions and a new config, or the configs that come with the program.
#include "sim/answers/plan/engines.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/resources.h"
#include "sim/doors/cli/workload_options.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/deployment_memory.h"
#include "sim/hardware/model/element_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <vector>

namespace specsim::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOwnConfig = "experiment.yaml";

std::vector<std::string> names_of(const std::string& kind) {
  std::vector<std::string> names;
  for (const NamedPart& part : named_parts())
    if (part.kind == kind) names.push_back(part.info.name);
  return names;
}

// Reads a line of standard input without its end; false at the end of input. Throws BadInput if the line is too long.
bool read_line(std::string& line) {
  constexpr std::size_t kLongest = 4096;
  line.clear();
  for (int letter = std::cin.get(); letter != std::char_traits<char>::eof(); letter = std::cin.get()) {
    if (letter == '\n') return true;
    if (line.size() == kLongest)
      throw BadInput({"standard input", 0, 0}, fmt::format("an answer is longer than {} bytes, allowed: a line", kLongest));
    line += static_cast<char>(letter);
  }
  return !line.empty();
}

// Asks until the answer is one of `allowed`; an empty answer means `usual`. At a terminal a wrong answer leads to another
// question; otherwise it is rejected. Throws BadInput.
std::string ask(const std::string& question, const std::string& usual, const std::vector<std::string>& allowed) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  while (true) {
    print_output("{} [{}] ", question, usual);
    flush_output();
    std::string answer;
    if (!read_line(answer)) {
      print_output("\n");
      throw BadInput({"standard input", 0, 0},
                     fmt::format("it ended before an answer to \"{}\", allowed: five answers", question));
    }
    if (!terminal) print_output("{}\n", answer);
    answer.erase(answer.find_last_not_of(" \t\r") + 1);
    answer.erase(0, answer.find_first_not_of(" \t"));
    if (answer.empty()) return usual;
    if (std::find(allowed.begin(), allowed.end(), answer) != allowed.end()) return answer;
    const std::string wrong = not_allowed(config::quote_for_message(answer) + " is none of them", answer, allowed);
    if (!terminal) throw BadInput({"standard input", 0, 0}, wrong);
    print_output("{}\n", wrong);
  }
}

struct Answers {
  std::string hardware;
  std::string engine;
  std::string target;
  std::string dtype;  // kPublished: as in the model's file
  std::string draft;  // "none": n-grams, or heads inside the target
};
constexpr const char* kPublished = "published";

// A workload that fits into the memory of so many GPUs.
struct Setting {
  double batch = 8.0;
  double context = 2048.0;
  int gpus = 1;
  cost::MemoryBudget memory;
};
constexpr int kDraftLength = 3;

// A model as the config describes it.
std::string described(const std::string& name, const std::string& dtype, int gpus) {
  std::string more = dtype == kPublished ? "" : fmt::format(", dtype: {}", dtype);
  if (gpus > 1) more += fmt::format(", tensor_parallel: {}", gpus);
  return more.empty() ? name : fmt::format("{{preset: {}{}}}", name, more);
}
std::string described_target(const Answers& answers, int gpus) { return described(answers.target, answers.dtype, gpus); }
std::string described_draft(const Answers& answers, int gpus) {
  return answers.draft == "none" ? answers.draft : described(answers.draft, kPublished, gpus);
}

cost::Deployment deployment_of(const Answers& answers, int gpus, Diagnostics& diagnostics) {
  const Location place{"standard input", 0, 0};
  const auto model = [&](const std::string& text, const char* what) {
    return cost::read_model(config::parse_text(text, "standard input", diagnostics), what, diagnostics);
  };
  cost::Deployment deployment;
  deployment.hardware = cost::read_hardware(config::scalar(answers.hardware, place), diagnostics);
  deployment.engine = cost::read_engine(config::scalar(answers.engine, place), diagnostics);
  deployment.target = model(described_target(answers, gpus), "target");
  if (answers.draft != "none") deployment.draft = model(described_draft(answers, gpus), "draft");
  if (diagnostics.empty()) cost::check_element_types(*deployment.target, "target", deployment.hardware, diagnostics);
  return deployment;
}

// The largest workload of a few that fits, on as few GPUs as hold it; nothing where eight do not. Throws BadInput where the
// answers cannot go together.
std::optional<Setting> fitting(const Answers& answers) {
  for (const int gpus : {1, 2, 4, 8}) {
    Diagnostics diagnostics;
    const cost::Deployment deployment = deployment_of(answers, gpus, diagnostics);
    if (gpus == 1) diagnostics.throw_if_any();
    if (!diagnostics.empty()) continue;  // more GPUs than heads
    for (const auto& [batch, context] :
         {std::pair{8.0, 2048.0}, {4.0, 2048.0}, {2.0, 2048.0}, {1.0, 2048.0}, {1.0, 1024.0}, {1.0, 512.0}}) {
      const cost::MemoryBudget memory = cost::memory_of(deployment, {batch, context}, kDraftLength + 1,
                                                        deployment.draft ? cost::Kept::both : cost::Kept::target);
      if (memory.fits()) return Setting{batch, context, gpus, memory};
    }
  }
  return std::nullopt;
}

// The published table that the config takes; "" for none. One of conversations goes first, since most servers' text is that.
std::string own_table(const Answers& answers) {
  const std::vector<std::string> tables = published_tables(answers.target, answers.draft);
  if (tables.empty()) return "";
  const auto chat = std::find_if(tables.begin(), tables.end(), [](const std::string& name) { return name.ends_with("-chat"); });
  return chat != tables.end() ? *chat : tables.front();
}

// Whether the published table is about the draft's likeliest tokens, as most are.
bool chosen_likeliest(const Answers& answers) {
  const std::string name = own_table(answers);
  return !name.empty() && spec::named_acceptance_table(name, {"specsim init", 0, 0}, spec::Contexts::several).selection !=
                              spec::Selection::sampled;
}

// How often drafts are accepted: as published for the pair, or distributions that are marked as assumed.
std::string acceptance_lines(const Answers& answers) {
  const std::string name = own_table(answers);
  if (name.empty())
    return "pair:\n"
           "  assumed: true                  # remove this line when the rate below is your server's\n"
           "  # Contexts as in natural language: entropy and the draft's accuracy differ between contexts.\n"
           "  vocab: 1000\n"
           "  target: {family: normal_logits, sigma: 8, spread: 0.4}\n"
           "  # How often drafts are accepted: value 0.6 is .86, 1 .77, 1.3 .72, 1.7 .65, 2.3 .57, 3 .49. Put your own figure "
           "here: "
           "specsim\n"
           "  # import reads the rate from a server's log.\n"
           "  draft: {from: target, transform: logit_noise, value: 1.3, spread: 0.7}\n"
           "context: {process: iid, pool: 1024}\n";
  const spec::AcceptanceTable table = spec::named_acceptance_table(name, {"specsim init", 0, 0}, spec::Contexts::several);
  std::vector<std::string> rates;
  for (const double rate : table.of_chain()) rates.push_back(fmt::format("[{:.4g}]", rate));
  return fmt::format(
      "pair:\n"
      "  vocab: 2\n"
      "  target: {{family: uniform}}      # not used: the rates below decide\n"
      "context:\n"
      "  # How often the draft at each position is accepted if it is reached: table {} ({}).\n"
      "  # Put your own rates here: specsim import reads them from a server's log.\n"
      "  process: acceptance_table\n"
      "  acceptance: [{}]\n"
      "{}",
      name, table.origin(), fmt::join(rates, ", "), table.selection == spec::Selection::sampled ? "  selection: sampled\n" : "");
}

std::string own_config(const Answers& answers, const Setting& setting) {
  const bool heads = answers.draft == "none";
  return fmt::format(
      "# Written by specsim init: {} on {}{}.\n"
      "#   specsim check {}      simulation against theory\n"
      "#   specsim plan {}       the best draft length, and the server's flags\n"
      "# Every key is explained by specsim reference; names by specsim list and specsim describe.\n"
      "experiment: mine\n"
      "seed: 1                          # seed of all random numbers\n"
      "rounds: {}                  # per cell; more rounds narrow the intervals\n"
      "{}"
      "decode:\n"
      "  drafter: {{kind: chain, draft_length: {}{}}}\n"
      "  verifier: token                # specsim list verifier\n"
      "cost:\n"
      "  model: roofline\n"
      "  hardware: {}\n"
      "  engine: {}\n"
      "  target: {}\n"
      "  draft: {}{}\n"
      "workload: {{batch: {:g}, context_length: {:g}}}  # the target's GPU holds this: {}\n"
      "# One cell for each value, or each pair of values:\n"
      "# sweep:\n"
      "#   decode.drafter.draft_length: [1, 2, 3, 4, 5, 6]\n"
      "#   workload.batch: [1, 8, 32]\n",
      answers.target, answers.hardware, heads ? ", drafted without a model" : fmt::format(", drafted by {}", answers.draft),
      kOwnConfig, kOwnConfig, own_table(answers).empty() ? " 200000" : "2000000", acceptance_lines(answers), kDraftLength,
      chosen_likeliest(answers) ? ", selection: argmax" : "", answers.hardware, answers.engine,
      described_target(answers, setting.gpus), described_draft(answers, setting.gpus),
      heads ? "                    # n-grams, or heads inside the target" : "", setting.batch, setting.context,
      setting.memory.to_text());
}

// Checks that the config can be written. An existing file is replaced only on request, a link or a pipe never. Throws BadInput.
// `base`: the named directory; a link below it leads elsewhere, and is not followed.
void check_place(const fs::path& base, const fs::path& file, bool force) {
  std::error_code ignored;
  for (fs::path folder = file.parent_path(); folder != base && folder.has_relative_path(); folder = folder.parent_path())
    if (fs::is_symlink(fs::symlink_status(folder, ignored)))
      throw BadInput({folder.string(), 0, 0}, "is a symbolic link, allowed: another directory, or none of this name there");
  const fs::file_status found = fs::symlink_status(file, ignored);
  if (fs::exists(found) && !fs::is_regular_file(found))
    throw BadInput({file.string(), 0, 0}, "is no regular file, allowed: another directory, or none of this name there");
  for (const std::string& name : {file.string(), file.string() + ".part"})
    if (!force && fs::exists(fs::symlink_status(name, ignored)))
      throw BadInput({name, 0, 0}, "exists already, allowed: another directory, or --force to replace it");
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    const fs::file_status above = fs::status(folder, ignored);
    if (fs::exists(above) && !fs::is_directory(above))
      throw BadInput({folder.string(), 0, 0}, "is no directory, allowed: another directory, or none of this name there");
    if (folder == folder.parent_path()) break;
  }
}

// Models that can stand alone, and all of them.
std::vector<std::string> names_of_targets(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  for (const std::string& name : models) {
    Diagnostics ignored;
    const cost::ModelShape shape = cost::read_model(config::scalar(name, {"", 0, 0}), "target", ignored);
    if (ignored.empty() && !shape.on_target()) names.push_back(name);
  }
  return names;
}

// The draft that is offered: what was trained for the target, if a preset describes it.
std::string usual_draft(const std::string& target, const std::vector<std::string>& models) {
  for (const std::string& name : {"eagle3-" + target, target + "-mtp", "dflash-" + target, "dspark-" + target})
    if (std::find(models.begin(), models.end(), name) != models.end()) return name;
  return target == "llama-3.1-70b" ? "llama-3.2-1b" : "none";
}

// Warns where the engine cannot serve the pair, or the draft was made for another target.
void warn_of_pair(const cost::Deployment& deployment, const Setting& setting) {
  for (const std::string& warning : plan::pair_warnings(deployment)) print_warning(warning);
  const auto own =
      plan::engine_command(plan::server_of(deployment.engine), deployment, kDraftLength, setting.batch, {}, setting.context);
  if (own && own->command.empty()) print_warning(fmt::format("{} cannot run this pair: {}", own->engine, own->notes.front()));
}

ExitCode write_own(bool force) {
  check_place("", kOwnConfig, force);
  const std::vector<std::string> models = names_of("model");
  std::vector<std::string> drafts = models;
  drafts.emplace_back("none");
  Answers answers;
  answers.hardware = ask("GPU (specsim list hardware)?", "h100-sxm", names_of("hardware"));
  answers.engine = ask("Engine (specsim list engine)?", "vllm", names_of("engine"));
  answers.target = ask("Target model (specsim list model)?", "llama-3.1-8b", names_of_targets(models));
  std::vector<std::string> types = {kPublished, "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"};
  if (answers.engine == "llama_cpp") types = {kPublished, "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0"};
  // Types that the GPU cannot multiply are not offered.
  std::erase_if(types, [&](const std::string& type) {
    Diagnostics refused;
    Answers one = answers;
    one.dtype = type;
    one.draft = "none";
    deployment_of(one, 1, refused);
    return type != kPublished && !refused.empty();
  });
  answers.dtype = ask(fmt::format("Quantisation of the target ({})?", fmt::join(types, ", ")), kPublished, types);
  answers.draft = ask("Draft model, or none for n-grams and heads?", usual_draft(answers.target, models), drafts);
  const std::optional<Setting> setting = fitting(answers);
  if (!setting)
    throw BadInput(
        {"standard input", 0, 0},
        fmt::format(
            "{} does not fit into the memory of 8 {} with a sequence of 512 tokens, allowed: narrower weights or another GPU",
            answers.target, answers.hardware));
  if (setting->gpus > 1) print_output("it needs {} GPUs (tensor_parallel)\n", setting->gpus);
  if (const Setting usual; setting->batch < usual.batch || setting->context < usual.context)
    print_output("reduced to batch {:g} and context {:g}, so that it fits\n", setting->batch, setting->context);
  print_output("memory: {}\n", setting->memory.to_text());
  Diagnostics ignored;  // none: the setting was found with the same deployment
  warn_of_pair(deployment_of(answers, setting->gpus, ignored), *setting);
  if (const std::string table = own_table(answers); !table.empty())
    print_output("acceptance: published table {}\n", table);
  else
    print_output("acceptance: assumed, because no table is published for this pair\n");
  write_whole_file(kOwnConfig, own_config(answers, *setting));
  print_output("wrote {0}; try: specsim check {0}, specsim plan {0}\n", kOwnConfig);
  return ExitCode::fine;
}

}  // namespace

ExitCode init_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> directories;
  bool force = false;
  bool asks = false;
  CommandLine line("specsim init [DIRECTORY] [--ask] [--force]",
                   "  specsim init                   # at a terminal: five questions, and experiment.yaml; else configs/ in this "
                   "directory\n"
                   "  specsim init mine && specsim check mine/configs/quickstart.yaml\n");
  line.add_words("directory", directories);
  line.add({{"force", force, "replace existing configs of the same name"},
            {"ask", asks,
             "ask for GPU, engine, target, quantisation and draft and write experiment.yaml; the default at a terminal without a "
             "directory"}});
  if (!line.read(arguments)) return ExitCode::fine;
  const bool named = !directories.empty();
  if (!named) directories = {"."};
  if (directories.size() != 1) throw BadInput({"", 0, 0}, fmt::format("{} directories, allowed: one", directories.size()));
  if (asks && named) throw BadInput({"--ask", 0, 0}, "given together with a directory, allowed: one of them");
  if (asks || (!named && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)) return write_own(force);
  const fs::path base = directories.front();
  const fs::path to = base / "configs";
  const std::string resources = resources_folder();
  if (resources.empty()) throw IoError("the configs that come with specsim are neither installed nor next to the program");
  const fs::path from = fs::path(resources) / "configs";

  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), from));
  for (const fs::path& file : files) check_place(base, to / file, force);
  for (const fs::path& file : files) {
    make_directories((to / file).parent_path().string());
    write_whole_file((to / file).string(), read_whole_file((from / file).string()));
  }
  print_output("wrote {} files to {}; try: specsim check {}\n", files.size(), to.string(), (to / "quickstart.yaml").string());
  return ExitCode::fine;
}

}  // namespace specsim::cli
