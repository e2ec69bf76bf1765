#include "sim/doors/cli/command_line.h"

#include "sim/doors/cli/command.h"
#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/document.h"
#include "sim/foundation/rng/address.h"

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

// Boost's what() inserts words of the command line into its text as long as it finds its own placeholders there. It never ends
// if such a word contains a placeholder (--alpha=%original_token%). Therefore messages are made from the exception's fields, and
// what() is never called for an error with an option name.
struct Named : po::error_with_option_name {
  static std::string part(const po::error_with_option_name& wrong, const std::string& name) {
    const auto& parts = wrong.*(&Named::m_substitutions);
    const auto found = parts.find(name);
    return found == parts.end() ? "" : found->second;
  }
};

// Option names of servers and benchmarks, and ours with the same meaning. Options that resemble ours are not listed, since they
// are suggested anyway.
constexpr std::array<std::array<const char*, 2>, 6> kOtherWords = {{{"--gpu", "--hardware"},
                                                                    {"--model", "--target"},
                                                                    {"--tp", "--tensor-parallel"},
                                                                    {"--concurrency", "--batch"},
                                                                    {"--concurrency", "--batches"},
                                                                    {"--num-speculative-tokens", "--longest"}}};

// Reports an error that Boost found in a command line, in the program's own form. Throws BadInput.
[[noreturn]] void throw_mistake(const po::error& wrong, const po::options_description& options) {
  const auto* const named = dynamic_cast<const po::error_with_option_name*>(&wrong);
  if (named == nullptr) throw BadInput({"", 0, 0}, wrong.what());
  const std::string name = named->get_option_name();
  if (dynamic_cast<const po::unknown_option*>(&wrong) != nullptr) {
    std::vector<std::string> names;
    for (const auto& option : options.options()) names.push_back("--" + option->long_name());
    for (const auto& [word, ours] : kOtherWords)
      if (name == word && std::find(names.begin(), names.end(), ours) != names.end())
        throw BadInput({"", 0, 0},
                       fmt::format("unknown option \"{}\", use {} instead; allowed: {}", name, ours, fmt::join(names, ", ")));
    throw BadInput({"", 0, 0}, config::unknown_name("unknown option", name, names));
  }
  if (const auto* const ambiguous = dynamic_cast<const po::ambiguous_option*>(&wrong)) {
    std::vector<std::string> names;
    for (const std::string& one : ambiguous->alternatives()) names.push_back("--" + one);
    throw BadInput({"", 0, 0},
                   fmt::format("option {} is ambiguous, allowed: {}", config::quote_for_message(name), fmt::join(names, ", ")));
  }
  std::string meaning = "see --help";
  for (const auto& option : options.options())
    if ("--" + option->long_name() == name) meaning = option->description();
  const Location where{name, 0, 0};
  if (dynamic_cast<const po::multiple_occurrences*>(&wrong) != nullptr)
    throw BadInput(where, "given more than once, allowed: once");
  if (dynamic_cast<const po::invalid_command_line_syntax*>(&wrong) != nullptr)
    throw BadInput(where, "given without a value, or with one that it does not take, allowed: " + meaning);
  const std::string value = Named::part(*named, "value");
  throw BadInput(where, fmt::format("{} is not valid, allowed: {}",
                                    value.empty() ? "this value" : config::quote_for_message(value), meaning));
}

// Rejects an option in the place of another one's value, which Boost would take as that value. Throws BadInput.
void check_values_given(const std::vector<std::string>& arguments, const po::options_description& options) {
  const auto option_of = [&](const std::string& word) {
    return word.size() > 2 && word.starts_with("--") ? options.find_nothrow(word.substr(2), false) : nullptr;
  };
  for (std::size_t i = 0; i + 1 < arguments.size() && arguments[i] != "--"; ++i) {  // after "--" there are no options
    const po::option_description* const option = option_of(arguments[i]);
    if (option == nullptr || option->semantic()->min_tokens() == 0) continue;
    if (option_of(arguments[i + 1]) != nullptr)
      throw BadInput({arguments[i], 0, 0},
                     fmt::format("given without a value before {}, allowed: {}", arguments[i + 1], option->description()));
    ++i;
  }
}

struct CommandRecorder {
  CommandInfo* info = nullptr;
};
CommandInfo*& command_recorder() { return context().of<CommandRecorder>().info; }

// "--log or --trace", "a config".
std::string words_of(const std::vector<std::string>& options) {
  std::string list;
  for (std::size_t i = 0; i < options.size(); ++i)
    list += fmt::format("{}{}",
                        i == 0                   ? ""
                        : i + 1 < options.size() ? ", "
                                                 : " or ",
                        options[i] == "config" ? "a config" : "--" + options[i]);
  return list;
}

}  // namespace

Option::Option(std::string name, bool& into, std::string help)
    : Option(
          std::move(name), "", std::move(help), [&into, other = !into](const std::string&, const std::string&) { into = other; },
          Values::none) {}
Option::Option(std::string name, std::string& into, std::string help)
    : Option(std::move(name), into, std::move(help), [&into](const std::string& text, const std::string&) { into = text; }) {}
Option::Option(std::string name, std::optional<std::string>& into, std::string help)
    : Option(std::move(name), "", std::move(help), [&into](const std::string& text, const std::string&) { into = text; }) {}
Option::Option(std::string name, std::vector<std::string>& into, std::string help)
    : Option(
          std::move(name), "", std::move(help), [&into](const std::string& text, const std::string&) { into.push_back(text); },
          Values::several) {}

void CommandLine::add_words(const std::string& name, std::vector<std::string>& into) {
  words_name_ = name;
  words_ = &into;
}

std::string CommandLine::name() const { return usage_.substr(0, usage_.find(' ', usage_.find(' ') + 1)); }

CommandInfo CommandLine::info() const {
  CommandInfo info{usage_, examples_, words_ != nullptr, {}};
  for (const Option& one : options_)
    info.options.push_back({one.name_, one.values_ != Option::Values::none, one.values_ == Option::Values::several, one.fallback_,
                            one.help_, one.values_ == Option::Values::none ? "flag" : one.type_, one.interval_, one.words_,
                            std::find(needed_.begin(), needed_.end(), one.name_) != needed_.end()});
  return info;
}

bool CommandLine::read(const std::vector<std::string>& arguments) {
  std::string format = "table";  // both are handled by run_in_form()
  bool quiet = false;
  bool help = false;
  options_.emplace_back("format", format, fmt::format("output format: {}", fmt::join(report::format_names(), ", ")));
  if (std::none_of(options_.begin(), options_.end(), [](const Option& one) { return one.name_ == "quiet"; }))
    options_.emplace_back("quiet", quiet, "print no text, no warnings and no progress; only tables with --format");
  options_.emplace_back("help,h", help, "print this");
  if (command_recorder() != nullptr) {
    *command_recorder() = info();
    command_recorder()->options.back().name = "help";
    return false;
  }
  po::options_description shown("options", 110);
  for (const Option& one : options_) {
    const char* const name = one.name_.c_str();
    if (one.values_ == Option::Values::none) {
      shown.add_options()(name, one.help_.c_str());
    } else if (one.values_ == Option::Values::several) {
      shown.add_options()(name, po::value<std::vector<std::string>>()->composing(), one.help_.c_str());
    } else {
      auto* const text = po::value<std::string>();  // owned by the option from the next line on
      if (!one.fallback_.empty()) text->default_value(one.fallback_);
      shown.add_options()(name, text, one.help_.c_str());
    }
  }
  options_.pop_back();
  po::options_description all;
  all.add(shown);
  // Words without an option have a name even if none are allowed, so that the message can show them.
  const std::string words = words_ == nullptr ? "unexpected" : words_name_;
  all.add_options()(words.c_str(), po::value<std::vector<std::string>>(), "");
  po::positional_options_description places;
  places.add(words.c_str(), -1);
  check_values_given(arguments, all);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(places).run(), values);
  } catch (const po::error& wrong) {
    throw_mistake(wrong, shown);
  }
  if (values.count("help") > 0) {
    std::ostringstream text;
    text << shown;
    for (const Command& command : commands())
      if (usage_.starts_with(fmt::format("specsim {} ", command.name))) print_output("{}\n\n", command.summary);
    print_output("usage: {}\n\n{}\nexamples:\n{}", usage_, text.str(), examples_);
    return false;
  }
  for (const auto& [name, value] : values) {
    if (!value.defaulted()) given_.insert(name);
    const auto* const list = boost::any_cast<std::vector<std::string>>(&value.value());
    texts_[name] = list != nullptr ? *list : std::vector<std::string>{value.as<std::string>()};
  }
  if (words_ != nullptr)
    *words_ = texts_[words];
  else if (given(words))
    throw BadInput({"", 0, 0}, fmt::format("{} is given without an option, allowed: {}",
                                           config::quote_for_message(texts_[words].front()), usage_));
  for (const Option& one : options_)
    if (const auto texts = texts_.find(one.name_); texts != texts_.end() && (given(one.name_) || !one.assumed_))
      for (const std::string& text : texts->second) one.take_(text, "--" + one.name_);
  for (const std::string& option : needed_) require(option);
  return true;
}

std::string CommandLine::text(const std::string& option) const {
  const auto found = texts_.find(option);
  return found == texts_.end() ? "" : found->second.front();
}

void CommandLine::require(const std::string& option, const std::string& what) const {
  if (!given(option))
    throw BadInput({"", 0, 0},
                   fmt::format("{0} needs {1}; {0} --help shows examples", name(), what.empty() ? "--" + option : what));
}

void CommandLine::check(const std::vector<Partner>& partners) const {
  const auto is_given = [&](const std::string& option) { return given(option); };
  for (const Partner& one : partners) {
    if (!given(one.option)) continue;
    if (!one.with.empty() && std::none_of(one.with.begin(), one.with.end(), is_given))
      throw BadInput({"--" + one.option, 0, 0},
                     fmt::format("given without {0}, so it has no effect; allowed: with {0}", words_of(one.with)));
    const auto other = std::find_if(one.without.begin(), one.without.end(), is_given);
    if (other != one.without.end())
      throw BadInput({"--" + one.option, 0, 0},
                     fmt::format("given with {}, which {}; allowed: one of them", words_of({*other}), one.why));
  }
}

std::string CommandLine::identity(const std::set<std::string>& inputs, const std::string& more) const {
  static const std::set<std::string> kNothing = {"out", "force", "threads", "quiet", "format"};
  std::uint64_t hash = rng::hash_text(more);
  const auto add = [&hash](const std::string& word) { hash = rng::hash_text(word, rng::hash_text("\n", hash)); };
  for (const auto& [name, texts] : texts_) {
    if (kNothing.contains(name) || inputs.contains(name) || name == words_name_) continue;
    add("--" + name);
    for (const std::string& text : texts) add(text);
  }
  return fmt::format("{} {:016x}", name(), hash);
}

NoteCommandInfo::NoteCommandInfo() { command_recorder() = &info; }
NoteCommandInfo::~NoteCommandInfo() { command_recorder() = nullptr; }

}  // namespace specsim::cli
