// The options of a command as values: each is declared once, with its name, what it is read into, the range of a number and what
// --help says of it. Parsing, --help, completion, the manual page and the messages about wrong values follow from that.
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

// An option of a command. What its value holds before the command line is read is the default; --help shows it, except for an
// empty text, an empty list and an optional value that is not there.
class Option {
 public:
  Option(std::string name, bool& into, std::string help);  // takes no value, and turns `into` over
  Option(std::string name, std::string& into, std::string help);
  Option(std::string name, std::optional<std::string>& into, std::string help);
  Option(std::string name, std::vector<std::string>& into, std::string help);  // may be given several times
  // A number, or a list of numbers with commas between.
  template <class T>
  Option(std::string name, T& into, config::Interval allowed, std::string help)
      : Option(std::move(name), default_text(into), std::move(help),
               [&into, allowed](const std::string& text, const std::string& option) {
                 into = Numbers<T>::read(text, option, allowed);
               }) {
    type_ = Numbers<T>::kType;
    interval_ = allowed;
  }
  // Anything else: what `read` makes of the text and the option's name, "--name".
  template <class T, std::invocable<const std::string&, const std::string&> Read>
  Option(std::string name, T& into, Read read, std::string help)
      : Option(std::move(name), default_text(into), std::move(help),
               [&into, read](const std::string& text, const std::string& option) { into = read(text, option); }) {
    type_ = TypeOf<T>::kName;
  }
  // One of some words, each of which stands for a value.
  template <class T>
  Option(std::string name, T& into, std::vector<std::pair<std::string, T>> words, std::string help)
      : Option(std::move(name), word_of(words, into), std::move(help),
               [&into, words](const std::string& text, const std::string& option) {
                 into = words[word_index(text, option, words)].second;
               }) {
    type_ = "word";
    for (const auto& [word, meaning] : words) words_.push_back(word);
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

  // What kind of value is read into a T by a reader of its own.
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
  Take take_;
  const char* type_ = "text";
  std::optional<config::Interval> interval_;
  std::vector<std::string> words_;
  friend class CommandLine;
};

// An option that changes nothing without another one, or beside one: it is refused, never ignored.
struct Partner {
  std::string option;
  std::vector<std::string> with;     // one of them has to be given; none: it needs no other
  std::vector<std::string> without;  // none of them may be
  std::string why;                   // what such an option does that leaves this one nothing to say: "says the acceptance"
};

// What a command takes, from the same declarations that its --help prints.
struct OptionInfo {
  std::string name;
  bool takes_value = false;
  bool repeats = false;
  std::string fallback;  // its default, "" for none
  std::string help;
  std::string type;  // flag, text, word, number, integer; numbers and integers: several, with commas between
  std::optional<config::Interval> interval;  // of a number
  std::vector<std::string> words;            // that are allowed
};
struct CommandInfo {
  std::string usage;
  std::string examples;
  bool takes_files = false;  // what stands without a dash
  std::vector<OptionInfo> options;
};

// How a command is called, and what one call of it says.
class CommandLine {
 public:
  CommandLine(std::string usage, std::string examples) : usage_(std::move(usage)), examples_(std::move(examples)) {}
  // The words that stand without a dash, and what messages and checks call them; without this there may be none.
  void add_words(const std::string& name, std::vector<std::string>& into);
  void add(std::initializer_list<Option> options) { options_.insert(options_.end(), options); }

  // Reads the arguments into the values of the options. With --help it prints usage, options and examples, and returns false.
  // Throws BadInput.
  bool read(const std::vector<std::string>& arguments);

  // Whether an option was given; of a default it was not. The name of add_words() is one too.
  [[nodiscard]] bool given(const std::string& option) const { return given_.contains(option); }
  // What was given, or its default; "" for neither.
  [[nodiscard]] std::string text(const std::string& option) const;
  // Throws BadInput unless the option, or words without a dash, were given: the command "needs" `what`, the option by default.
  void require(const std::string& option, const std::string& what = "") const;
  // Throws BadInput at the first option that was given and has no effect by one of `partners`.
  void check(const std::vector<Partner>& partners) const;
  // The identity of what the command makes, equal for what comes out the same from the same inputs: its name and a number of its
  // options, except those that change nothing (--out, --threads and the like), and except words without a dash and `inputs`, whose
  // contents are compared. `more`: what else it depends on, such as the identity of its configs.
  [[nodiscard]] std::string identity(const std::set<std::string>& inputs = {}, const std::string& more = "") const;

 private:
  [[nodiscard]] CommandInfo info() const;
  [[nodiscard]] std::string name() const;  // "specsim plan"

  std::string usage_;
  std::string examples_;
  std::string words_name_;
  std::vector<std::string>* words_ = nullptr;
  std::vector<Option> options_;
  std::set<std::string> given_;
  std::map<std::string, std::vector<std::string>> texts_;  // [option], defaults too
};

// While one is alive, CommandLine::read() notes in it what the command takes and returns false, so that the command does nothing.
class NoteCommandInfo {
 public:
  NoteCommandInfo();
  NoteCommandInfo(const NoteCommandInfo&) = delete;
  NoteCommandInfo& operator=(const NoteCommandInfo&) = delete;
  ~NoteCommandInfo();
  CommandInfo info;
};

}  // namespace specsim::cli
