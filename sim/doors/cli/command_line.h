// The options of a command as values. Each is declared once, with its name, its variable, the range of a number and its text in
// --help. Parsing, --help, completion, the manual page and the messages about wrong values follow from the declaration.
#pragma once

#include "sim/doors/cli/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace specsim::cli {

// An option of a command. The value of its variable before parsing is the default. --help shows it, except for an empty text, an
// empty list and an absent optional value.
class Option {
 public:
  Option(std::string name, bool& into, std::string help);  // takes no value, and inverts `into`
  Option(std::string name, std::string& into, std::string help);
  Option(std::string name, std::optional<std::string>& into, std::string help);
  Option(std::string name, std::vector<std::string>& into, std::string help);  // may be given several times
  // A number, or a list of numbers separated by commas.
  template <class T>
  Option(std::string name, T& into, config::Interval allowed, std::string help)
      : Option(std::move(name), default_text(into), std::move(help),
               [&into, allowed](const std::string& text, const std::string& option) {
                 into = Numbers<T>::read(text, option, allowed);
               }) {
    type_ = Numbers<T>::kType;
    interval_ = allowed;
  }
  // Any other type: `read` converts the text, given the option's name "--name".
  template <class T, std::invocable<const std::string&, const std::string&> Read>
  Option(std::string name, T& into, Read read, std::string help)
      : Option(std::move(name), default_text(into), std::move(help),
               [&into, read](const std::string& text, const std::string& option) { into = read(text, option); }) {
    type_ = TypeOf<T>::kName;
  }
  // One of several words, each of which represents a value.
  template <class T>
  Option(std::string name, T& into, std::vector<std::pair<std::string, T>> words, std::string help)
      : Option(std::move(name), word_of(words, into), std::move(help),
               [&into, words](const std::string& text, const std::string& option) {
                 into = words[word_index(text, option, words)].second;
               }) {
    type_ = "word";
    for (const auto& [word, meaning] : words) words_.push_back(word);
  }

  // The value that the command assumes where the option is not given; its variable stays empty. --help shows it.
  Option&& assumes(std::string value) && {
    fallback_ = std::move(value);
    assumed_ = true;
    return std::move(*this);
  }

 private:
  using Take = std::function<void(const std::string& text, const std::string& option)>;
  enum class Values { none, one, several };
  Option(std::string name, std::string fallback, std::string help, Take take, Values values = Values::one)
      : name_(std::move(name)), help_(std::move(help)), fallback_(std::move(fallback)), values_(values), take_(std::move(take)) {}

  template <class T>
  struct Numbers {
    static constexpr const char* kType = std::is_floating_point_v<T> ? "number" : "integer";
    static T read(const std::string& text, const std::string& option, const config::Interval& allowed) {
      if constexpr (std::is_floating_point_v<T>)
        return read_number(text, option, allowed);
      else
        return static_cast<T>(read_integer(text, option, allowed));
    }
  };
  template <class T>
  struct Numbers<std::optional<T>> : Numbers<T> {};
  template <class T>
  struct Numbers<std::vector<T>> {
    static constexpr const char* kType = std::is_floating_point_v<T> ? "numbers" : "integers";
    static std::vector<T> read(const std::string& text, const std::string& option, const config::Interval& allowed) {
      if constexpr (std::is_floating_point_v<T>) return read_numbers(text, option, allowed);
      const std::vector<std::int64_t> whole = read_integers(text, option, allowed);
      return std::vector<T>(whole.begin(), whole.end());
    }
  };

  // The kind of value that a reader of its own reads into a T.
  template <class T>
  struct TypeOf {
    static constexpr const char* kName = !std::is_arithmetic_v<T> ? "text" : std::is_floating_point_v<T> ? "number" : "integer";
  };
  template <class T>
  struct TypeOf<std::optional<T>> : TypeOf<T> {};
  template <class T>
  struct TypeOf<std::vector<T>> {
    static constexpr const char* kName = !std::is_arithmetic_v<T> ? "text" : std::is_floating_point_v<T> ? "numbers" : "integers";
  };

  static std::string default_text(const std::string& text) { return text; }
  template <class T>
  static std::string default_text(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      return fmt::format("{:g}", static_cast<double>(value));
    else if constexpr (requires { to_text(value); })
      return to_text(value);
    else
      return "";
  }
  template <class T>
  static std::string default_text(const std::vector<T>& values) {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back(default_text(value));
    return fmt::format("{}", fmt::join(texts, ","));
  }

  template <class T>
  static std::string word_of(const std::vector<std::pair<std::string, T>>& words, const T& value) {
    for (const auto& [word, meaning] : words)
      if (meaning == value) return word;
    return "";
  }
  template <class T>
  static std::size_t word_index(const std::string& text, const std::string& option,
                                const std::vector<std::pair<std::string, T>>& words) {
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) known.push_back(word);
    return read_word(text, option, known);
  }

  std::string name_;
  std::string help_;
  std::string fallback_;
  Values values_;
  bool assumed_ = false;  // fallback_ is for --help only
  Take take_;
  const char* type_ = "text";
  std::optional<config::Interval> interval_;
  std::vector<std::string> words_;
  friend class CommandLine;
};

// An option without effect unless another one is given, or if another one is given. It is rejected, never ignored.
struct Partner {
  std::string option;
  std::vector<std::string> with;     // one of them must be given; none: no condition
  std::vector<std::string> without;  // none of them may be given
  std::string why;                   // why such an option makes this one useless: "states the acceptance"
};

// The options and words of a command, from the same declarations as its --help.
struct OptionInfo {
  std::string name;
  bool takes_value = false;
  bool repeats = false;
  std::string fallback;  // its default; "" for none
  std::string help;
  std::string type;  // flag, text, word, number, integer; numbers and integers: several, with commas between
  std::optional<config::Interval> interval;  // of a number
  std::vector<std::string> words;            // that are allowed
  bool required = false;
};
struct CommandInfo {
  std::string usage;
  std::string examples;
  bool takes_files = false;  // for words without a dash
  std::vector<OptionInfo> options;
};

// The command line of a command: its declaration, and the values of one call.
class CommandLine {
 public:
  CommandLine(std::string usage, std::string examples) : usage_(std::move(usage)), examples_(std::move(examples)) {}
  // Declares words without a dash, and their name in messages and checks. Without this call there may be none.
  void add_words(const std::string& name, std::vector<std::string>& into);
  void add(std::initializer_list<Option> options) { options_.insert(options_.end(), options); }

  // Declares options without which read() rejects the command line.
  void needs(std::vector<std::string> options) { needed_ = std::move(options); }

  // Reads the arguments into the variables of the options. With --help it prints usage, options and examples, and returns false.
  // Throws BadInput.
  bool read(const std::vector<std::string>& arguments);

  // Whether an option was given on the command line. The name of add_words() is valid too.
  [[nodiscard]] bool given(const std::string& option) const { return given_.contains(option); }
  // The given value, or the default; "" for neither.
  [[nodiscard]] std::string text(const std::string& option) const;
  // Throws BadInput unless the option, or words without a dash, were given: "the command needs `what`", by default the option.
  void require(const std::string& option, const std::string& what = "") const;
  // Throws BadInput at the first option that was given and has no effect according to `partners`.
  void check(const std::vector<Partner>& partners) const;
  // The identity of the command's result: equal if the same inputs give the same result. A hash of the command's name and its
  // options, without options that do not change results (--out, --threads and similar), and without words and `inputs`, whose
  // contents are compared instead. `more`: further dependencies, such as the identity of the configs.
  [[nodiscard]] std::string identity(const std::set<std::string>& inputs = {}, const std::string& more = "") const;

 private:
  [[nodiscard]] CommandInfo info() const;
  [[nodiscard]] std::string name() const;  // "specsim plan"

  std::string usage_;
  std::string examples_;
  std::string words_name_;
  std::vector<std::string>* words_ = nullptr;
  std::vector<Option> options_;
  std::vector<std::string> needed_;
  std::set<std::string> given_;
  std::map<std::string, std::vector<std::string>> texts_;  // [option], including defaults
};

// While an object exists, CommandLine::read() records the command's options in it and returns false, so that the command does
// nothing.
class NoteCommandInfo {
 public:
  NoteCommandInfo();
  NoteCommandInfo(const NoteCommandInfo&) = delete;
  NoteCommandInfo& operator=(const NoteCommandInfo&) = delete;
  ~NoteCommandInfo();
  CommandInfo info;
};

}  // namespace specsim::cli
