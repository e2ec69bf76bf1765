// Parts that only a browser build needs: the entry point for the page, YAML without a parser, and a fixed memory limit instead
// of asking the system.
#if defined(__EMSCRIPTEN__)

#include "sim/doors/web/explorer.h"
#include "sim/foundation/base/memory.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/json.h"
#include "sim/foundation/config/value.h"

#include <emscripten.h>

#include <string>

namespace specsim {

// Memory that a page can use safely; the heap grows up to twice that.
std::size_t available_memory() { return std::size_t{1} << 30; }

}  // namespace specsim

namespace specsim::config {

namespace {

bool ends_plain(const std::string& text, std::size_t at) {
  const char c = text[at];
  if (c == ',' || c == '[' || c == ']' || c == '{' || c == '}') return true;
  return c == ':' && (at + 1 == text.size() || text[at + 1] == ' ');
}

// Converts flow style, the notation of parameter defaults, to JSON: quotes its plain words.
std::string flow_as_json(const std::string& text) {
  std::string json;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t from = at++;
      while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
      json += text.substr(from, ++at - from);
    } else if (c == ' ' || c == '\n' || ends_plain(text, at)) {
      json += c;
      ++at;
    } else {
      const std::size_t from = at;
      while (at < text.size() && !ends_plain(text, at)) ++at;
      std::string word = text.substr(from, at - from);
      word.erase(word.find_last_not_of(' ') + 1);
      const bool key = at < text.size() && text[at] == ':';
      const bool bare = !key && (as_number(word) || word == "true" || word == "false" || word == "null");
      json += bare ? word : '"' + word + '"';
    }
  }
  return json;
}

}  // namespace

// In the browser, presets are JSON (scripts/web writes them), and defaults of parameters are flow style; a single word is a
// text.
Value parse_text(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  const std::size_t first = text.find_first_not_of(" \n\t");
  if (first == std::string::npos) return {};
  if (text[first] == '{' || text[first] == '[' || text[first] == '"') {
    Diagnostics own;  // most texts are JSON already
    Value value = parse_json(text, name, own);
    return own.empty() ? value : parse_json(flow_as_json(text), name, diagnostics);
  }
  return scalar(text, {name, 1, 1});
}

Value parse_file(const std::string& path, Diagnostics& diagnostics) {
  diagnostics.add({path, 0, 0}, "a file, allowed: only names, since a page reads no files");
  return {};
}

}  // namespace specsim::config

// The answer stays valid until the next question.
extern "C" EMSCRIPTEN_KEEPALIVE const char* specsim_answer(const char* question) {
  static std::string answer;
  answer = specsim::web::answer(question);
  return answer.c_str();
}

#endif
