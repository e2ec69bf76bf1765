// specsim completion and specsim man: the commands and their options, from the declarations that --help prints.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/document.h"
#include "sim/serving/logs/server_log.h"
#include "specsim_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace specsim::cli {

namespace {

// Options whose values are names, by the kind of part, so that completion follows the registries.
const std::map<std::string, std::string>& kind_of_option() {
  static const std::map<std::string, std::string> kinds = {
      {"hardware", "hardware"}, {"target", "model"},          {"draft", "model"},       {"model", "model"},
      {"engine", "engine"},     {"acceptance", "acceptance"}, {"verifier", "verifier"}, {"scheduler", "scheduler"}};
  return kinds;
}

// The possible values of an option: names from a registry, or its own words; empty: a file, or anything.
std::vector<std::string> words_of(const OptionInfo& option, const std::vector<NamedPart>& parts) {
  std::vector<std::string> words;
  if (option.name == "format") return report::format_names();
  if (option.name == "server") return logs::server_names();
  const auto kind = kind_of_option().find(option.name);
  if (kind == kind_of_option().end()) return words;
  for (const NamedPart& part : parts)
    if (part.kind == kind->second) words.push_back(part.info.name);
  if (option.name == "draft") words.emplace_back("none");
  return words;
}

// The possible words without a dash, if they are not files.
std::vector<std::string> places_of(const Command& command, const std::vector<NamedPart>& parts) {
  std::set<std::string> words;
  if (command.name == "describe")
    for (const NamedPart& part : parts) words.insert(part.info.name);
  if (command.name == "list")
    for (const auto& [kind, summary] : part_kinds()) words.insert(kind);
  if (command.name == "completion") words = {"bash", "zsh", "fish"};
  if (command.name == "cluster") words = {"slurm", "local:", "status"};
  return {words.begin(), words.end()};
}

// Whether files may follow those words, as the configs of specsim cluster do.
bool files_too(const Command& command) { return command.name == "cluster"; }

constexpr const char* kHelpSummary = "explains a command, with examples";

// Text in single quotes of a shell.
std::string single_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

std::string names_of_commands() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  names.emplace_back("help");
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_script(const std::vector<NamedPart>& parts) {
  std::string text = fmt::format(
      "# Completion of specsim {} for bash: eval \"$(specsim completion bash)\"\n"
      "_specsim() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]-}} options= "
      "places= "
      "valued=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)) || {{ ((COMP_CWORD == 2)) && [[ $command == help ]]; }}; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{} --version --help' -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case $command:$before in\n",
      build_info::version, names_of_commands());
  std::string cases;
  std::string mixed;  // commands that take both words and files
  for (const Command& command : commands()) {
    if (files_too(command)) mixed += (mixed.empty() ? "" : " | ") + std::string(command.name);
    const CommandInfo info = command_info(command);
    std::vector<std::string> names;
    std::vector<std::string> free;
    for (const OptionInfo& option : info.options) {
      names.push_back("--" + option.name);
      if (!option.takes_value) continue;
      const std::vector<std::string> words = words_of(option, parts);
      if (words.empty())
        free.push_back(fmt::format("{}:--{}", command.name, option.name));
      else
        text += fmt::format("    {}:--{}) mapfile -t COMPREPLY < <(compgen -f -W '{}' -- \"$current\"); return ;;\n",
                            command.name, option.name, fmt::join(words, " "));
    }
    if (!free.empty())
      text += fmt::format("    {}) mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); return ;;\n", fmt::join(free, " | "));
    cases += fmt::format("    {}) options='{}' places='{}' ;;\n", command.name, fmt::join(names, " "),
                         fmt::join(places_of(command, parts), " "));
  }
  return text + "  esac\n  case $command in\n" + cases +
         "  esac\n"
         "  if [[ $current == -* ]]; then mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
         "  elif case $command in " +
         mixed +
         ") true ;; *) false ;; esac; then mapfile -t COMPREPLY < <(compgen -f -W \"$places\" -- \"$current\")\n"
         "  elif [[ -n $places ]]; then mapfile -t COMPREPLY < <(compgen -W \"$places\" -- \"$current\")\n"
         "  else mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); fi\n"
         "}\n"
         "complete -o filenames -F _specsim specsim\n";
}

// In a specification of _arguments, colons and brackets are separators.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return single_quoted(escaped);
}

std::string zsh_script(const std::vector<NamedPart>& parts) {
  std::string text = fmt::format(
      "#compdef specsim\n"
      "# Completion of specsim {} for zsh: specsim completion zsh >_specsim, in a folder of $fpath\n"
      "_specsim() {{\n  local -a commands\n  commands=(\n",
      build_info::version);
  for (const Command& command : commands()) text += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
  text += fmt::format("    'help:{}'\n", kHelpSummary);
  text +=
      "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n"
      "    help) ((CURRENT == 2)) && _describe command commands ;;\n";
  for (const Command& command : commands()) {
    const CommandInfo info = command_info(command);
    text += fmt::format("    {}) _arguments", command.name);
    for (const OptionInfo& option : info.options) {
      const std::vector<std::string> words = words_of(option, parts);
      const std::string value = !option.takes_value ? ""
                                : words.empty()     ? ":value:_files"
                                                    : fmt::format(":value:({})", fmt::join(words, " "));
      text += fmt::format(" \\\n      '{}--{}[{}]{}'", option.repeats ? "*" : "", option.name, zsh_text(option.help), value);
    }
    const std::vector<std::string> places = places_of(command, parts);
    std::string words;
    for (const std::string& place : places) words += (words.empty() ? "" : " ") + zsh_text(place);
    if (info.takes_files && !places.empty())
      text += fmt::format(" \\\n      '{}:name:({})'", files_too(command) ? "" : "*", words);
    if (info.takes_files && (places.empty() || files_too(command))) text += " \\\n      '*:file:_files'";
    text += " ;;\n";
  }
  return text + "  esac\n}\nif [[ $funcstack[1] == _specsim ]]; then _specsim \"$@\"; else compdef _specsim specsim; fi\n";
}

std::string fish_script(const std::vector<NamedPart>& parts) {
  std::string text =
      fmt::format("# Completion of specsim {} for fish: specsim completion fish >~/.config/fish/completions/specsim.fish\n",
                  build_info::version);
  for (const Command& command : commands()) {
    text += fmt::format("complete -c specsim -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                        single_quoted(command.summary));
    const std::string seen = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionInfo& option : command_info(command).options) {
      const std::vector<std::string> words = words_of(option, parts);
      text += fmt::format("complete -c specsim {} -l {}{}{} -d '{}'\n", seen, option.name, option.takes_value ? " -r" : "",
                          words.empty() ? "" : fmt::format(" -f -a '{}'", fmt::join(words, " ")), single_quoted(option.help));
    }
    if (const std::vector<std::string> places = places_of(command, parts); !places.empty())
      text += fmt::format("complete -c specsim {}{} -a '{}'\n", seen, files_too(command) ? "" : " -f", fmt::join(places, " "));
  }
  text += fmt::format("complete -c specsim -n __fish_use_subcommand -f -a help -d '{}'\n", kHelpSummary);
  for (const Command& command : commands())
    text += fmt::format("complete -c specsim -n '__fish_seen_subcommand_from help' -f -a {} -d '{}'\n", command.name,
                        single_quoted(command.summary));
  return text;
}

// Text for roff: no line begins with a control character, and no dash becomes a hyphen.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

ExitCode completion_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> shells;
  CommandLine line("specsim completion bash|zsh|fish",
                   "  eval \"$(specsim completion bash)\"\n"
                   "  specsim completion zsh >~/.zfunc/_specsim\n"
                   "  specsim completion fish >~/.config/fish/completions/specsim.fish\n");
  line.add_words("shell", shells);
  if (!line.read(arguments)) return ExitCode::fine;
  const std::vector<std::string> known = {"bash", "zsh", "fish"};
  if (shells.size() != 1)
    throw BadInput({"", 0, 0}, fmt::format("{} shells, allowed: one of {}", shells.size(), fmt::join(known, ", ")));
  if (std::find(known.begin(), known.end(), shells[0]) == known.end())
    throw BadInput({"", 0, 0}, config::unknown_name("unknown shell", shells[0], known));
  const std::vector<NamedPart> parts = named_parts();
  write_output(shells[0] == "bash" ? bash_script(parts) : shells[0] == "zsh" ? zsh_script(parts) : fish_script(parts));
  return ExitCode::fine;
}

ExitCode man_command(const std::vector<std::string>& arguments) {
  CommandLine line("specsim man >specsim.1", "  specsim man >~/.local/share/man/man1/specsim.1\n  specsim man | man -l -\n");
  if (!line.read(arguments)) return ExitCode::fine;
  std::string text = fmt::format(
      ".TH SPECSIM 1 \"\" \"specsim {}\" \"User Commands\"\n.SH NAME\nspecsim \\- speculative decoding, simulated with the exact "
      "algorithm and checked against theory\n.SH SYNOPSIS\n.B specsim\n.I command\n[options]\n.SH DESCRIPTION\n"
      "Configs, parts and their parameters are in the reference (\\fBspecsim reference\\fR); \\fBspecsim describe\\fR explains "
      "one of "
      "them.\n.SH COMMANDS\n",
      build_info::version);
  for (const Command& command : commands()) text += fmt::format(".TP\n.B {}\n{}\n", command.name, roff(command.summary));
  for (const Command& command : commands()) {
    const CommandInfo info = command_info(command);
    text +=
        fmt::format(".SH {}\n{}.\n.PP\n.nf\n{}\n.fi\n", roff("specsim " + command.name), roff(command.summary), roff(info.usage));
    for (const OptionInfo& option : info.options)
      text += fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n", roff("--" + option.name), option.takes_value ? " \\fIvalue\\fR" : "",
                          roff(option.help), option.fallback.empty() ? "" : roff(fmt::format(" (default: {})", option.fallback)));
    if (!info.examples.empty()) text += fmt::format(".PP\nExamples:\n.PP\n.nf\n{}.fi\n", roff(info.examples));
  }
  text +=
      ".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\nsimulation and theory disagree, or a claim does not hold\n.TP\n2\nbad "
      "input\n.TP\n3\nnothing "
      "disagrees, but not every cell was tested as it should be\n.TP\n4\nthe machine refused\n.TP\n5\na defect of the "
      "program\n.TP\n6\n"
      "interrupted\n";
  write_output(text);
  return ExitCode::fine;
}

}  // namespace specsim::cli
