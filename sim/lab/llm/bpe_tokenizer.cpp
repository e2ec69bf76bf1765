#include "sim/lab/llm/bpe_tokenizer.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace specsim::llm {

namespace {

// A stretch of text, or an added token in its place.
struct TextPiece {
  std::string text;
  std::optional<Token> token;
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts) : parts_(std::move(parts)) {
    for (const auto& entry : parts_.vocab) add_piece(entry.second, entry.first);
    for (const AddedToken& token : parts_.added) add_piece(token.id, token.text);
    const auto id_of = [&](const std::string& piece) {
      const auto found = parts_.vocab.find(piece);
      if (found == parts_.vocab.end())
        throw BadInput({parts_.path, 0, 0},
                       fmt::format("a merge has {}, which is not in the vocabulary, allowed: merges of tokens",
                                   config::quote_for_message(piece)));
      return found->second;
    };
    for (std::size_t rank = 0; rank < parts_.merges.size(); ++rank) {
      const auto& [left, right] = parts_.merges[rank];
      const Token merged = id_of(left + right);
      ranks_.insert_or_assign(pair_key(id_of(left), id_of(right)), Merge{static_cast<std::uint32_t>(rank), merged});
    }
    // The longest first: the longest of the added tokens that begin at a place is used.
    std::sort(parts_.added.begin(), parts_.added.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  }

  [[nodiscard]] const std::string& path() const override { return parts_.path; }
  [[nodiscard]] std::size_t vocab() const override { return pieces_.size(); }
  [[nodiscard]] std::vector<Token> before_text(Token begin_token) const override {
    return parts_.before_text.value_or(std::vector<Token>{begin_token});
  }
  [[nodiscard]] std::string piece(Token token) const override { return token < pieces_.size() ? pieces_[token] : ""; }

  [[nodiscard]] std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    bool first = true;
    for (const TextPiece& raw : cut_at_added(std::string(text), false)) {
      if (raw.token) {
        tokens.push_back(*raw.token);
      } else {
        for (const TextPiece& stretch : cut_at_added(normalised(raw.text), true)) {
          if (stretch.token)
            tokens.push_back(*stretch.token);
          else
            for (const std::string& piece : pieces_of(stretch.text, first)) merge(piece, tokens);
          first = false;
        }
      }
      first = false;
    }
    return tokens;
  }

 private:
  struct Merge {
    std::uint32_t rank;
    Token merged;
  };
  struct Symbol {
    Token token;
    std::size_t next;
    std::size_t before;
    bool there = true;
  };
  static std::uint64_t pair_key(Token a, Token b) { return std::uint64_t{a} << 32 | b; }

  void add_piece(Token token, const std::string& text) {
    if (pieces_.size() <= token) pieces_.resize(std::size_t{token} + 1);
    pieces_[token] = text;
  }

  [[nodiscard]] std::vector<TextPiece> cut_at_added(const std::string& text, bool normalised_ones) const {
    std::vector<TextPiece> stretches;
    std::size_t begin = 0;  // start of the text since the last token
    const auto end_text = [&](std::size_t end) {
      if (end > begin) stretches.push_back({text.substr(begin, end - begin), std::nullopt});
    };
    for (std::size_t at = 0; at < text.size();) {
      const auto found = std::find_if(parts_.added.begin(), parts_.added.end(), [&](const AddedToken& token) {
        return token.normalised == normalised_ones && !token.text.empty() && text.compare(at, token.text.size(), token.text) == 0;
      });
      if (found == parts_.added.end()) {
        ++at;
        continue;
      }
      std::size_t end = at + found->text.size();
      std::size_t from = at;
      if (found->strip_left)
        for (const auto before = characters(std::string_view(text).substr(begin, at - begin));
             const auto character : reversed(before)) {
          if (!is_space(character)) break;
          from -= character.size();
        }
      if (found->strip_right)
        for (const auto character : characters(std::string_view(text).substr(end))) {
          if (!is_space(character)) break;
          end += character.size();
        }
      end_text(from);
      stretches.push_back({"", found->id});
      at = begin = end;
    }
    end_text(text.size());
    return stretches;
  }
  static std::vector<std::string_view> reversed(std::vector<std::string_view> list) {
    std::reverse(list.begin(), list.end());
    return list;
  }

  [[nodiscard]] std::string normalised(std::string text) const {
    for (const Normaliser& one : parts_.normalisers)
      std::visit(Overloaded{[&](const Compose&) { text = compose(text); },
                            [&](const Prepend& prefix) {
                              if (!text.empty()) text.insert(0, prefix.text);
                            },
                            [&](const Replace& r) { replace_all(text, r.from, r.to); }},
                 one);
    return text;
  }

  // `first`: the stretch is the beginning of the text.
  [[nodiscard]] std::vector<std::string> pieces_of(const std::string& stretch, bool first) const {
    std::vector<std::string> pieces = {stretch};
    for (const PieceStep& step : parts_.steps) {
      std::vector<std::string> finer;
      for (std::size_t i = 0; i < pieces.size(); ++i)
        for (std::string& piece : apply(step, pieces[i], first && i == 0)) finer.push_back(std::move(piece));
      pieces = std::move(finer);
    }
    return pieces;
  }
  static std::vector<std::string> apply(const PieceStep& step, const std::string& piece, bool first) {
    return std::visit(Overloaded{[&](SplitPattern pattern) { return split(piece, pattern); },
                                 [&](const SplitDigits& digits) { return split_digits(piece, digits.each); },
                                 [&](const SplitBytes& bytes) {
                                   const std::string text = bytes.prefix_space && !piece.starts_with(' ') ? " " + piece : piece;
                                   std::vector<std::string> parts =
                                       bytes.by_expression ? split(text, SplitPattern::gpt2) : std::vector<std::string>{text};
                                   for (std::string& part : parts) part = bytes_as_text(part);
                                   return parts;
                                 },
                                 [&](const SplitAfter& at) { return cut(piece, at.text, false); },
                                 [&](const Metaspace& space) {
                                   std::string text = piece;
                                   replace_all(text, " ", space.replacement);
                                   const bool prefixed = space.prefix == Metaspace::Prefix::always ||
                                                         (space.prefix == Metaspace::Prefix::first && first);
                                   if (prefixed && !text.starts_with(space.replacement)) text.insert(0, space.replacement);
                                   return space.cut ? cut(text, space.replacement, true) : std::vector<std::string>{text};
                                 }},
                      step);
  }
  // Cuts before each occurrence of `mark`, or after it.
  static std::vector<std::string> cut(const std::string& text, const std::string& mark, bool before) {
    std::vector<std::string> pieces;
    std::size_t begin = 0;
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += mark.size()) {
      const std::size_t end = before ? at : at + mark.size();
      if (end > begin) pieces.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    if (begin < text.size()) pieces.push_back(text.substr(begin));
    return pieces;
  }

  // The piece's characters as tokens, before any merge.
  [[nodiscard]] std::vector<Token> symbols_of(const std::string& piece) const {
    std::vector<Token> symbols;
    bool after_unknown = false;
    for (const std::string_view character : characters(piece)) {
      const auto found = parts_.vocab.find(std::string(character));
      if (found != parts_.vocab.end()) {
        symbols.push_back(found->second);
        after_unknown = false;
        continue;
      }
      const std::vector<Token> bytes = parts_.byte_fallback ? byte_tokens(character) : std::vector<Token>();
      symbols.insert(symbols.end(), bytes.begin(), bytes.end());
      const bool unknown = bytes.empty() && parts_.unknown.has_value();
      if (unknown && !(after_unknown && parts_.fuse_unknown)) symbols.push_back(*parts_.unknown);
      after_unknown = unknown;
    }
    return symbols;
  }
  [[nodiscard]] std::vector<Token> byte_tokens(std::string_view character) const {
    std::vector<Token> tokens;
    for (const char byte : character) {
      const auto found = parts_.vocab.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      if (found == parts_.vocab.end()) return {};
      tokens.push_back(found->second);
    }
    return tokens;
  }

  void merge(const std::string& piece, std::vector<Token>& tokens) const {
    if (const auto whole = parts_.vocab.find(piece); parts_.whole_words && whole != parts_.vocab.end()) {
      tokens.push_back(whole->second);
      return;
    }
    std::vector<Symbol> symbols;
    for (const Token token : symbols_of(piece)) symbols.push_back({token, symbols.size() + 1, symbols.size() - 1});
    // Pairs by rank, then by place; a pair whose symbols have changed since is skipped.
    using Candidate = std::tuple<std::uint32_t, std::size_t, Token, Token>;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto consider = [&](std::size_t at) {
      if (at >= symbols.size() || symbols[at].next >= symbols.size()) return;
      const Token left = symbols[at].token;
      const Token right = symbols[symbols[at].next].token;
      if (const auto found = ranks_.find(pair_key(left, right)); found != ranks_.end())
        queue.emplace(found->second.rank, at, left, right);
    };
    for (std::size_t at = 0; at < symbols.size(); ++at) consider(at);
    while (!queue.empty()) {
      const auto [rank, at, left, right] = queue.top();
      queue.pop();
      Symbol& here = symbols[at];
      if (!here.there || here.token != left || here.next >= symbols.size() || symbols[here.next].token != right) continue;
      Symbol& gone = symbols[here.next];
      here.token = ranks_.at(pair_key(left, right)).merged;
      here.next = gone.next;
      gone.there = false;
      if (here.next < symbols.size()) symbols[here.next].before = at;
      consider(at);
      consider(here.before);
    }
    for (const Symbol& symbol : symbols)
      if (symbol.there) tokens.push_back(symbol.token);
  }

  BpeParts parts_;
  std::vector<std::string> pieces_;  // [token]
  std::unordered_map<std::uint64_t, Merge> ranks_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts) { return std::make_unique<BpeTokenizer>(std::move(parts)); }

}  // namespace specsim::llm
