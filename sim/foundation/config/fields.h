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
// The default as YAML text, of a Value member or in place of the member's initial value.
struct Default {
  std::string text;
};
// The number is written in a unit of this many of the member's: times(1e9) for gigabytes.
struct Times {
  double factor;
};
constexpr Times times(double factor) { return {factor}; }
// 0 leaves a std::optional member empty.
struct ZeroIsNone {};
inline constexpr ZeroIsNone zero_is_none;
// In place of a member: a key that other code reads, or that only informs. T is the type that a member would have.
template <class T>
struct Elsewhere {};
template <class T>
inline constexpr Elsewhere<T> elsewhere;
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
concept TextList = std::same_as<T, std::vector<std::string>>;

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
  else if constexpr (TextList<Inner>)
    return Type::value_list;
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
inline std::string text_of(const std::vector<std::string>& /*list*/) { return ""; }
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

// A key, as the rules after its meaning leave it.
struct Key {
  Parameter parameter;
  double factor = 1.0;
  bool zero_is_none = false;
};

template <class T>
void read(const Arguments& arguments, const Key& key, T& member) {
  using Inner = typename OptionalOf<T>::Inner;
  const std::string& name = key.parameter.name;
  if constexpr (std::same_as<Inner, bool>)
    member = arguments.boolean(name);
  else if constexpr (Number<Inner>) {
    const bool whole = key.parameter.type == Type::integer;
    if constexpr (OptionalOf<T>::value)
      if (key.zero_is_none && (whole ? arguments.integer(name) == 0 : arguments.number(name) == 0.0)) return member.reset();
    if constexpr (std::integral<Inner>)
      member = static_cast<Inner>(arguments.integer(name));
    else
      member = static_cast<Inner>(key.factor * (whole ? static_cast<double>(arguments.integer(name)) : arguments.number(name)));
  } else if constexpr (std::same_as<Inner, std::string>)
    member = arguments.text(name);
  else if constexpr (NumberList<Inner>)
    member = list_of<typename ItemOf<Inner>::Item>(arguments.numbers(name));
  else if constexpr (NumberTable<Inner>) {
    Inner rows;
    for (const std::vector<double>& row : arguments.table(name))
      rows.push_back(list_of<typename ItemOf<typename ItemOf<Inner>::Item>::Item>(row));
    member = std::move(rows);
  } else if constexpr (TextList<Inner>) {
    Inner texts;
    for (const Value& item : arguments.value(name).items) texts.push_back(item.text);
    member = std::move(texts);
  } else
    member = arguments.value(name);
}

inline void apply(Key& key, const Interval& interval) { key.parameter.interval = interval; }
inline void apply(Key& key, const Words& words) { key.parameter.choices = words.list; }
inline void apply(Key& key, const Default& text) { key.parameter.fallback = text.text; }
inline void apply(Key& key, Required /*rule*/) { key.parameter.fallback.reset(); }
inline void apply(Key& key, Optional /*rule*/) { key.parameter.fallback = ""; }
inline void apply(Key& key, Whole /*rule*/) { key.parameter.type = Type::integer; }
inline void apply(Key& key, List /*rule*/) { key.parameter.type = Type::value_list; }
inline void apply(Key& key, ZeroIsNone /*rule*/) { key.zero_is_none = true; }
void apply(Key& key, Times rule);
template <class R>
concept Rule = requires(Key& key, const R& rule) {
  apply(key, rule);
};

}  // namespace detail

// ---- one declaration

// C is P, or a struct that P derives from.
template <class P>
class Declaration {
 public:
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, T C::*member, std::string meaning, const Rules&... rules) {
    const detail::Key own =
        declare(std::move(key), detail::type_of<T>(), detail::text_of(P{}.*member), std::move(meaning), rules...);
    read_ = [member, own](const Arguments& arguments, P& params) {
      if (arguments.has(own.parameter.name)) detail::read(arguments, own, params.*member);
    };
  }

  // A key without a member.
  template <class T, detail::Rule... Rules>
  Declaration(std::string key, Elsewhere<T> /*member*/, std::string meaning, const Rules&... rules) {
    declare(std::move(key), detail::type_of<T>(), "", std::move(meaning), rules...);
  }

  // A member whose value is given by a word of a list.
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, T C::*member, std::string meaning, const Choices<typename detail::OptionalOf<T>::Inner>& choices,
              const Rules&... rules) {
    const T initial = P{}.*member;
    Words words;
    Default fallback;
    for (const auto& [word, value] : choices.list) {
      words.list.push_back(word);
      if (initial == value) fallback.text = word;
    }
    declare(std::move(key), Type::text, "", std::move(meaning), words, fallback, rules...);
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
    declare(std::move(key), Type::value, "{}", std::move(meaning), rules...);
    parameters_[0].inside = inside.parameters();
    read_ = [member, name = parameters_[0].name, inside](const Arguments& arguments, P& params) {
      if (arguments.has(name) && !arguments.maps(name).empty()) params.*member = inside.read(arguments.maps(name)[0]);
    };
  }

  // A list of such maps. If it is left out, the member keeps its initial value.
  template <class T, class C, detail::Rule... Rules>
  Declaration(std::string key, std::vector<T> C::*member, std::string meaning, const Fields<T>& inside, const Rules&... rules) {
    declare(std::move(key), Type::value_list, "", std::move(meaning), rules...);
    parameters_[0].inside = inside.parameters();
    read_ = [member, name = parameters_[0].name, inside](const Arguments& arguments, P& params) {
      if (!arguments.has(name)) return;
      (params.*member).clear();
      for (const Arguments& one : arguments.maps(name)) (params.*member).push_back(inside.read(one));
    };
  }

  // Parameters that several parts share: a struct of them, whose keys are among the part's own keys. A std::optional member is
  // always filled.
  template <class T, class C>
  Declaration(T C::*member, const Fields<typename detail::OptionalOf<T>::Inner>& shared) : parameters_(shared.parameters()) {
    read_ = [member, shared](const Arguments& arguments, P& params) {
      if constexpr (detail::OptionalOf<T>::value) {
        if (!(params.*member)) (params.*member).emplace();
        shared.read(arguments, *(params.*member));
      } else
        shared.read(arguments, params.*member);
    };
  }

 private:
  friend class Fields<P>;
  template <class... Rules>
  detail::Key declare(std::string key, Type type, std::string fallback, std::string meaning, const Rules&... rules) {
    detail::Key own{{std::move(key), type, std::move(fallback), std::move(meaning), {}, {}}};
    (detail::apply(own, rules), ...);
    parameters_.push_back(own.parameter);
    return own;
  }
  std::vector<Parameter> parameters_;
  std::function<void(const Arguments&, P&)> read_;
};

// ---- all of a part

// The initial value of each member of P is its default, or its value if the key is left out.
template <class P>
class Fields {
 public:
  Fields(std::initializer_list<Declaration<P>> fields) : Fields(std::vector<Declaration<P>>(fields)) {}
  explicit Fields(std::vector<Declaration<P>> fields) : fields_(std::move(fields)) {
    for (const Declaration<P>& field : fields_)
      parameters_.insert(parameters_.end(), field.parameters_.begin(), field.parameters_.end());
  }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  operator const std::vector<Parameter>&() const { return parameters_; }  // NOLINT(google-explicit-constructor)
  // `arguments` were read by parameters(), alone or among others.
  [[nodiscard]] P read(const Arguments& arguments) const {
    P params;
    read(arguments, params);
    return params;
  }
  // Members whose keys are left out keep their values.
  void read(const Arguments& arguments, P& params) const {
    for (const Declaration<P>& field : fields_)
      if (field.read_) field.read_(arguments, params);
  }

 private:
  std::vector<Declaration<P>> fields_;
  std::vector<Parameter> parameters_;
};

}  // namespace specsim::config
