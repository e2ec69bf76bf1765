// Errors of the user (BadInput) and of the machine (IoError).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace specsim {

// A place in a file; line and column count from 1, 0 if unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "file:line:col"; without a line, the file alone.
std::string to_string(const Location& where);

// One mistake: its place, and "what was found, what is allowed" in lower case.
struct Diagnostic {
  Location where;
  std::string message;
};

// Collects every mistake of an input, so that the user can fix all of them at once.
class Diagnostics {
 public:
  void add(Location where, std::string message);
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Diagnostic>& list() const { return list_; }
  // Throws BadInput with all collected mistakes; does nothing if there are none.
  void throw_if_any() const;

 private:
  std::vector<Diagnostic> list_;
};

// File by file in the order of their first mistake, each from its first line to its last; mistakes without a line come last.
std::vector<Diagnostic> by_place(std::vector<Diagnostic> list);

class BadInput : public std::runtime_error {
 public:
  explicit BadInput(std::vector<Diagnostic> list);
  BadInput(Location where, std::string message);
  [[nodiscard]] const std::vector<Diagnostic>& list() const { return list_; }

 private:
  std::vector<Diagnostic> list_;
};

class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The candidate nearest to `word` by edit distance (case ignored), or "" if none is close enough to be meant.
std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates);
// The part of a message after an unknown word and before the allowed words: `, did you mean "NEAREST"?`, or "," alone.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
// A message about a word that is none of `allowed`, with the nearest of these and all of them: `FOUND, did you mean "NEAREST"?
// allowed: A, B`.
std::string not_allowed(const std::string& found, const std::string& word, const std::vector<std::string>& allowed);

}  // namespace specsim
