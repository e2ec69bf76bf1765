// A part's parameters and the struct that holds them, declared together: one line per parameter gives its key, the member that
// it fills, its meaning and what it may be. Everything else follows. The member's type decides how the value is written, and the
// member's initial value is the default that `describe`, the schema and the reference page show.
//
//     struct Params {
//       double ratio = 0.15;          // default 0.15
//       int tokens = 0;               // declared as required below
//       std::optional<double> least;  // may be left out
//     };
//     static const config::Fields<Params> fields = {
//         {"ratio", &Params::ratio, "time of a draft pass over that of a target pass", config::between(0, 1)},
//         {"tokens", &Params::tokens, "tokens drafted per round", config::at_least(1), config::required},
//         {"least", &Params::least, "probability below which drafting stops", config::between(0, 1)}};
//
// `fields` converts to the table that PartInfo and read_arguments take, and `fields.read(arguments)` gives a Params.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/config/arguments.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace specsim::config {

// ---- rules: allowed after the meaning, besides an Interval

// The key must be written, whatever the member's initial value is.
struct Required {};
inline constexpr Required required;
// The key may be left out, and the member then keeps its initial value, which is not shown as a default.
struct Optional {};
inline constexpr Optional optional;
// A member of a floating-point type that holds a whole number.
struct Whole {};
inline constexpr Whole whole;
// A Value member that is written as a list.
struct List {};
inline constexpr List as_list;
// The default of a Value member, as YAML text.
struct Default {
  std::string text;
};
// The words for the values of a member: of an enumeration, or of any comparable type.
template <class T>
struct Choices {
  std::vector<std::pair<std::string, T>> list;
};
template <class T>
Choices<T> one_of(std::initializer_list<std::pair<std::string, T>> list) {
  return {list};
}
// The same for a text member.
struct Words {
  std::vector<std::string> list;
};
inline Words one_of(std::vector<std::string> words) { return {std::move(words)}; }

template <class P>
class Fields;

// ---- how a member of type T is written

namespace detail {

template <class T>
struct OptionalOf : std::false_type {
  using Inner = T;
};
template <class T>
struct OptionalOf<std::optional<T>> : std::true_type {
  using Inner = T;
};
template <class T>
struct ItemOf : std::false_type {
  using Item = void;
};
template <class T>
struct ItemOf<std::vector<T>> : std::true_type {
  using Item = T;
};
template <class T>
concept Number = std::integral<T> || std::floating_point<T>;
template <class T>
concept NumberList = ItemOf<T>::value && Number<typename ItemOf<T>::Item>;
template <class T>
concept NumberTable = ItemOf<T>::value && NumberList<typename ItemOf<T>::Item>;

template <class T>
constexpr Type type_of() {
  using Inner = typename OptionalOf<T>::Inner;
  if constexpr (std::same_as<Inner, bool>)
    return Type::boolean;
  else if constexpr (std::integral<Inner>)
    return Type::integer;
  else if constexpr (std::floating_point<Inner>)
    return Type::number;
  else if constexpr (std::same_as<Inner, std::string>)
    return Type::text;
  else if constexpr (NumberList<Inner>)
    return Type::number_list;
  else if constexpr (NumberTable<Inner>)
    return Type::number_table;
  else {
    static_assert(std::same_as<Inner, Value>, "a member of this type needs config::one_of, or Fields of its own");
    return Type::value;
  }
}

// The YAML text of a default; "": none.
std::string text_of(bool value);
std::string text_of(double value);
std::string text_of(const std::vector<double>& values);
std::string text_of(const std::vector<std::vector<double>>& rows);
template <std::integral T>
std::string text_of(const std::vector<T>& values) {
  return text_of(std::vector<double>(values.begin(), values.end()));
}
template <std::integral T>
std::string text_of(const std::vector<std::vector<T>>& rows) {
  std::vector<std::vector<double>> numbers;
  for (const std::vector<T>& row : rows) numbers.emplace_back(row.begin(), row.end());
  return text_of(numbers);
}
inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(const Value& value) { return value.is_null() ? "" : to_flow_text(value); }
template <std::integral T>
std::string text_of(T value) {
  return std::to_string(value);
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}

// A list of integers is converted to the range of T; the part checks and reports numbers that are not whole.
template <Number T>
std::vector<T> list_of(const std::vector<double>& numbers) {
  if constexpr (std::same_as<T, double>) return numbers;
  std::vector<T> cut;
  cut.reserve(numbers.size());
  for (const double x : numbers)
    cut.push_back(static_cast<T>(std::clamp(x, static_cast<double>(std::numeric_limits<T>::lowest()),
                                            static_cast<double>(std::numeric_limits<T>::max()))));
  return cut;
}

template <class T>
void read(const Arguments& arguments, const Parameter& parameter, T& member) {
  using Inner = typename OptionalOf<T>::Inner;
  const std::string& key = parameter.name;
  if constexpr (std::same_as<Inner, bool>)
    member = arguments.boolean(key);
  else if constexpr (std::integral<Inner>)
    member = static_cast<Inner>(arguments.integer(key));
  else if constexpr (std::floating_point<Inner>)
    member =
        static_cast<Inner>(parameter.type == Type::integer ? static_cast<double>(arguments.integer(key)) : arguments.number(key));
  else if constexpr (std::same_as<Inner, std::string>)
    member = arguments.text(key);
  else if constexpr (NumberList<Inner>)
    member = list_of<typename ItemOf<Inner>::Item>(arguments.numbers(key));
  else if constexpr (NumberTable<Inner>) {
    Inner rows;
    for (const std::vector<double>& row : arguments.table(key))
      rows.push_back(list_of<typename ItemOf<typename ItemOf<Inner>::Item>::Item>(row));
    member = std::move(rows);
  } else
    member = arguments.value(key);
}

inline void apply(Parameter& parameter, const Interval& interval) { parameter.interval = interval; }
inline void apply(Parameter& parameter, const Words& words) { parameter.choices = words.list; }
inline void apply(Parameter& parameter, const Default& text) { parameter.fallback = text.text; }
inline void apply(Parameter& parameter, Required /*rule*/) { parameter.fallback.reset(); }
inline void apply(Parameter& parameter, Optional /*rule*/) { parameter.fallback = ""; }
inline void apply(Parameter& parameter, Whole /*rule*/) { parameter.type = Type::integer; }
inline void apply(Parameter& parameter, List /*rule*/) { parameter.type = Type::value_list; }
template <class R>
concept Rule = requires(Parameter& parameter, const R& rule) {
  apply(parameter, rule);
};

}  // namespace detail

// ---- one declaration

// C is P, or a struct that P derives from.
template <class P>
class Declaration {
 public:
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, T C::*member, std::string meaning, const Rules&... rules) {
    declare(std::move(key), detail::type_of<T>(), detail::text_of(P{}.*member), std::move(meaning));
    (detail::apply(parameters_[0], rules), ...);
    read_ = [member, parameter = parameters_[0]](const Arguments& arguments, P& params) {
      if (arguments.has(parameter.name)) detail::read(arguments, parameter, params.*member);
    };
  }

  // A member whose value is given by a word of a list.
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, T C::*member, std::string meaning, const Choices<typename detail::OptionalOf<T>::Inner>& choices,
              const Rules&... rules) {
    declare(std::move(key), Type::text, "", std::move(meaning));
    const T initial = P{}.*member;
    for (const auto& [word, value] : choices.list) {
      parameters_[0].choices.push_back(word);
      if (initial == value) parameters_[0].fallback = word;
    }
    (detail::apply(parameters_[0], rules), ...);
    read_ = [member, name = parameters_[0].name, words = choices.list](const Arguments& arguments, P& params) {
      if (!arguments.has(name)) return;
      const std::string& text = arguments.text(name);
      const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == text; });
      SPECSIM_CHECK(found != words.end(), "{} is {}, which is none of its words", name, text);
      params.*member = found->second;
    };
  }

  // A map with its own keys. If it is left out or empty, the member keeps its initial value.
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, T C::*member, std::string meaning, const Fields<typename detail::OptionalOf<T>::Inner>& inside,
              const Rules&... rules) {
    declare(std::move(key), Type::value, "{}", std::move(meaning));
    parameters_[0].inside = inside.parameters();
    (detail::apply(parameters_[0], rules), ...);
    read_ = [member, name = parameters_[0].name, inside](const Arguments& arguments, P& params) {
      if (arguments.has(name) && !arguments.maps(name).empty()) params.*member = inside.read(arguments.maps(name)[0]);
    };
  }

  // A list of such maps. If it is left out, the member keeps its initial value.
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, std::vector<T> C::*member, std::string meaning, const Fields<T>& inside, const Rules&... rules) {
    declare(std::move(key), Type::value_list, "", std::move(meaning));
    parameters_[0].inside = inside.parameters();
    (detail::apply(parameters_[0], rules), ...);
    read_ = [member, name = parameters_[0].name, inside](const Arguments& arguments, P& params) {
      if (!arguments.has(name)) return;
      (params.*member).clear();
      for (const Arguments& one : arguments.maps(name)) (params.*member).push_back(inside.read(one));
    };
  }

  // Parameters that several parts share: a struct of them, whose keys are among the part's own keys.
  template <class T, class C>
  Declaration(T C::*member, const Fields<T>& shared) : parameters_(shared.parameters()) {
    read_ = [member, shared](const Arguments& arguments, P& params) { params.*member = shared.read(arguments); };
  }

 private:
  friend class Fields<P>;
  void declare(std::string key, Type type, std::string fallback, std::string meaning) {
    parameters_.push_back({std::move(key), type, std::move(fallback), std::move(meaning), {}, {}});
  }
  std::vector<Parameter> parameters_;
  std::function<void(const Arguments&, P&)> read_;
};

// ---- all of a part

// The initial value of each member of P is its default, or its value if the key is left out.
template <class P>
class Fields {
 public:
  Fields(std::initializer_list<Declaration<P>> fields) : fields_(fields) {
    for (const Declaration<P>& field : fields_)
      parameters_.insert(parameters_.end(), field.parameters_.begin(), field.parameters_.end());
  }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  operator const std::vector<Parameter>&() const { return parameters_; }  // NOLINT(google-explicit-constructor)
  // `arguments` were read by parameters(), alone or among others.
  [[nodiscard]] P read(const Arguments& arguments) const {
    P params;
    for (const Declaration<P>& field : fields_) field.read_(arguments, params);
    return params;
  }

 private:
  std::vector<Declaration<P>> fields_;
  std::vector<Parameter> parameters_;
};

}  // namespace specsim::config
