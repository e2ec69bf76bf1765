#include "sim/lab/llm/prompts.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace specsim::llm {

namespace {

// The mistake in the line, or nothing.
std::optional<std::string> read_prompt(const config::Value& value, const Tokenizer* tokenizer, const ModelConfig& model,
                                       Prompt& prompt) {
  if (const config::Value* kind = value.find("kind")) {
    prompt.kind = kind->text;
    if (!std::all_of(prompt.kind.begin(), prompt.kind.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }))
      return fmt::format("kind is {}, allowed: a name of letters and digits", config::description_of_found(*kind));
  }
  const config::Value* const text = value.find("prompt");
  const config::Value* const tokens = value.find("tokens");
  if ((text == nullptr) == (tokens == nullptr)) return "neither or both of \"prompt\" and \"tokens\", allowed: one of them";
  if (text != nullptr) {
    if (tokenizer == nullptr) return "a text, allowed for a model without a tokenizer: {\"tokens\": [ids]}";
    if (!text->is_scalar() || text->text.empty())
      return fmt::format("prompt is {}, allowed: a text", config::description_of_found(*text));
    prompt.tokens = tokenizer->before_text(model.begin_token);
    const std::vector<Token> tokens_of_text = tokenizer->encode(text->text);
    prompt.tokens.insert(prompt.tokens.end(), tokens_of_text.begin(), tokens_of_text.end());
    if (prompt.tokens.empty()) return "no token, allowed: at least one";
    return std::nullopt;
  }
  for (const config::Value& item : tokens->items) {
    const std::optional<std::int64_t> id = config::as_integer(item);
    if (!id || *id < 0 || static_cast<std::size_t>(*id) >= model.vocab)
      return fmt::format("token {}, allowed: an integer in [0, {}]", config::description_of_found(item), model.vocab - 1);
    prompt.tokens.push_back(static_cast<Token>(*id));
  }
  if (prompt.tokens.empty()) return "no token, allowed: at least one";
  return std::nullopt;
}

}  // namespace

PromptFile read_prompts(const std::string& path, const Tokenizer* tokenizer, const ModelConfig& model, std::size_t room,
                        Overlong overlong) {
  Diagnostics diagnostics;
  PromptFile file;
  const std::size_t most = model.context > room ? model.context - room : 0;
  const auto on_line = [&](const config::Value& object, const Location& where) {
    Prompt prompt;
    std::optional<std::string> mistake = read_prompt(object, tokenizer, model, prompt);
    if (!mistake && prompt.tokens.size() > most) {
      ++file.overlong;
      if (overlong == Overlong::skip) return;
      if (overlong == Overlong::error || most == 0)
        mistake = fmt::format(
            "a prompt of {} tokens, allowed: at most {} (a context of {}, {} of it for the output); --overlong "
            "skip leaves such prompts out, --overlong cut keeps the first tokens of each",
            prompt.tokens.size(), most, model.context, room);
      else
        prompt.tokens.resize(most);
    }
    if (mistake)
      diagnostics.add(where, *mistake);
    else
      file.prompts.push_back(std::move(prompt));
  };
  config::read_json_lines(path, {}, "{\"prompt\": TEXT} or {\"tokens\": [ids]}", diagnostics, on_line);
  if (file.prompts.empty() && diagnostics.empty())
    diagnostics.add({path, 0, 0}, file.overlong > 0
                                      ? fmt::format("{} prompts, each of more than {} tokens, allowed: at least one "
                                                    "that fits the context of {} with {} for the output",
                                                    file.overlong, most, model.context, room)
                                      : "no prompt, allowed: at least one, one per line");
  diagnostics.throw_if_any();
  return file;
}

}  // namespace specsim::llm
