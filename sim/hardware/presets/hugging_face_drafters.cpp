// Drafters by the architecture that their config.json names: which parts of the target they share, and whether one pass drafts a
// block.
#include "sim/foundation/config/arguments.h"
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;

enum class Form {
  eagle,      // a layer after a product that joins one feature of the target and the token
  eagle3,     // the same with features of several layers, and often a vocabulary of its own
  module,     // layers that are part of the target's checkpoint (MTP)
  block,      // drafts a block in one pass over masks, with features of the target as context
  heads,      // heads on the target's last feature, without layers
  assistant,  // reads the target's cache (Gemma)
  model       // a complete model that drafts a block in one pass (PARD)
};

struct Known {
  std::string_view part;  // part of the architecture's or type's name, in lower case without other signs
  const char* word;
  Form form;
  bool one_pass;
};
// The first row that fits counts. DFlash: z-lab/dflash; DFlash2: vllm-project/vllm pull request 52816; DSpark, Domino, P-EAGLE:
// sgl-project/SpecForge, specforge/modeling/draft; the formats of vllm-project/speculators; EAGLE, MTP, Medusa and MLP
// speculators: vllm/model_executor/models/registry.py.
constexpr std::array<Known, 21> kKnown = {{{"peagle", "p_eagle", Form::eagle3, true},
                                           {"eagle3", "eagle3", Form::eagle3, false},
                                           {"eagle31", "eagle3", Form::eagle3, false},
                                           {"dspark", "dspark", Form::block, true},
                                           {"domino", "domino", Form::block, true},
                                           {"dflare", "dflare", Form::block, true},
                                           {"dflash2", "dflash2", Form::block, true},
                                           {"dflashdraft", "dflash", Form::block, true},
                                           {"dflashmodel", "dflash", Form::block, true},
                                           {"dflashfor", "dflash", Form::block, true},
                                           {"dflashqwen", "dflash", Form::block, true},
                                           {"gemma4assistant", "gemma_assistant", Form::assistant, false},
                                           {"gemma4unifiedassistant", "gemma_assistant", Form::assistant, false},
                                           {"medusa", "medusa", Form::heads, true},
                                           {"mlpspeculator", "mlp_speculator", Form::heads, false},
                                           {"hydra", "hydra", Form::heads, false},
                                           {"eaglemtp", "mtp", Form::module, false},
                                           {"mtp", "mtp", Form::module, false},
                                           {"nextn", "mtp", Form::module, false},
                                           {"pardfor", "pard", Form::model, true},
                                           {"eagle", "eagle", Form::eagle, false}}};
// Parts of names that only drafters have.
constexpr std::array<std::string_view, 6> kDrafterNames = {"draft", "speculator", "dflash", "assistantfor", "lookahead", "dfly"};

std::string plain(std::string_view text) {
  std::string copy;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) copy += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return copy;
}

class DrafterReader {
 public:
  DrafterReader(const Value& root, const Value& text, Diagnostics& diagnostics)
      : root_(root), text_(text), diagnostics_(diagnostics) {}

  std::optional<FileDrafter> read() {
    const Known* known = look_up();
    if (known == nullptr) return std::nullopt;
    FileDrafter own{known->word, {}, false, false, {}, {}};
    fields_ = &own.fields;
    put("drafter", own.word);
    const Value* heads = find({"medusa_num_heads", "hydra_num_heads", "num_heads", "n_predict"});
    if (known->form == Form::heads && heads != nullptr && find({"hidden_size", "emb_dim"}) == nullptr) {
      diagnostics_.add(heads->where,
                       "the file of these heads does not give their width, allowed: hidden_size in the same file; "
                       "medusa-heads-7b, -13b, -33b; or a model's file in YAML with prediction_heads and head_matrices");
      return std::nullopt;
    }
    if (known->one_pass && known->form != Form::heads) put("one_pass", "true");
    read_target();
    switch (known->form) {
      case Form::eagle:
        number("fused_inputs", 2.0);
        put("shares_lm_head", "true");
        break;
      case Form::module:
        number("fused_inputs", 2.0);
        put("shares_lm_head", "true");
        put("in_target_checkpoint", find({"speculators_model_type"}) != nullptr ? "false" : "true");
        break;
      case Form::eagle3:
        read_eagle3();
        break;
      case Form::block:
        read_block(own);
        break;
      case Form::heads:
        read_heads(own);
        break;
      case Form::assistant:
        read_assistant(own);
        break;
      case Form::model:
        own.whole_model = true;
        break;
    }
    fields_ = nullptr;
    own.read = std::move(read_);
    return own;
  }

 private:
  // The row of the table that fits the names; nullptr: no drafter.
  const Known* look_up() {
    std::vector<std::pair<const Value*, std::string>> names;
    if (const Value* type = root_.find("speculators_model_type"); type != nullptr && !type->is_null())
      names.emplace_back(type, type->text == "dflash" ? "dflashdraft" : plain(type->text));
    if (const Value* list = root_.find("architectures"); list != nullptr && list->is_list())
      for (const Value& item : list->items) names.emplace_back(&item, plain(item.text));
    if (const Value* type = root_.find("model_type"); type != nullptr && type->is_scalar())
      names.emplace_back(type, plain(type->text));
    for (const auto& [value, name] : names)
      for (const Known& known : kKnown)
        if (name.find(known.part) != std::string::npos && !name.ends_with("conditionalgeneration")) return &known;
    const auto row = [](const char* word) {
      return std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) { return known.word == std::string_view(word); });
    };
    if (find({"pard_token"}) != nullptr || plain(text("spd_type")) == "pard") return row("pard");
    if (truth("parallel_drafting") || plain(text("speculative_algorithm")) == "peagle") return row("p_eagle");
    if (find({"draft_vocab_size", "truncated_vocab_size"}) != nullptr) return row("eagle3");
    if (find({"medusa_num_heads"}) != nullptr) return row("medusa");
    for (const auto& [value, name] : names)
      if (const bool speculator = value == root_.find("speculators_model_type");
          speculator || std::any_of(kDrafterNames.begin(), kDrafterNames.end(),
                                    [&, known = name](std::string_view part) { return known.find(part) != std::string::npos; })) {
        std::vector<const char*> words;
        for (const Known& known : kKnown)
          if (words.empty() || std::string_view(words.back()) != known.word) words.push_back(known.word);
        diagnostics_.add(value->where, fmt::format("{} is a drafter that is not known, allowed: {}",
                                                   config::quote_for_message(value->text), fmt::join(words, ", ")));
        return nullptr;
      }
    return nullptr;
  }

  // Looks for a key in the file, in its map for drafters, and in the part for a layer.
  [[nodiscard]] const Value* find(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      read_.insert(key);
      for (const Value* map : {&root_, &text_})
        if (const Value* value = map->find(key); value != nullptr && !value->is_null()) return value;
      for (const char* inner : {"dflash_config", "dspark_config", "dflare_config", "eagle_config"})
        if (const Value* map = root_.find(inner); map != nullptr && map->is_map())
          if (const Value* value = map->find(key); value != nullptr && !value->is_null()) return value;
    }
    return nullptr;
  }
  [[nodiscard]] std::string text(const char* key) const {
    const Value* value = find({key});
    return value != nullptr && value->is_scalar() ? value->text : "";
  }
  [[nodiscard]] bool truth(const char* key) const { return text(key) == "true"; }
  std::optional<double> count(std::initializer_list<const char*> keys) {
    const Value* value = find(keys);
    if (value == nullptr) return std::nullopt;
    const auto read = config::read_integer(*value, config::between(0, 1e7), *keys.begin(), diagnostics_);
    return read ? std::optional(static_cast<double>(*read)) : std::nullopt;
  }
  double required(std::initializer_list<const char*> keys) {
    if (const auto own = count(keys); own && *own > 0.0) return *own;
    diagnostics_.add(root_.where, fmt::format("config.json lacks \"{}\", allowed: an integer of at least 1", *keys.begin()));
    return 1.0;
  }
  void put(const char* key, const std::string& value) {
    fields_->push_back({key, root_.where, config::scalar(value, root_.where)});
  }
  void number(const char* key, double value) { put(key, fmt::format("{:.10g}", value)); }

  // The target that it was made for.
  void read_target() {
    if (const Value* speculators = root_.find("speculators_config"); speculators != nullptr && speculators->is_map())
      if (const Value* verifier = speculators->find("verifier"); verifier != nullptr && verifier->is_map())
        if (const Value* name = verifier->find("name_or_path"); name != nullptr && name->is_scalar() && !name->text.empty()) {
          config::Value quoted = config::scalar(name->text, name->where);
          quoted.quoted = true;
          fields_->push_back({"verifier", name->where, std::move(quoted)});
        }
    if (const auto layers = count({"num_target_layers"}); layers && *layers > 0.0) number("target_layers", *layers);
    const auto target = count({"target_hidden_size", "backbone_hidden_size"});
    number("target_hidden", target ? *target : required({"hidden_size", "n_embd", "emb_dim"}));
    if (const auto vocab = count({"vocab_size"}); vocab && *vocab > 0.0) number("target_vocab", *vocab);
  }

  // Number of target features that the first product joins.
  double features(double fallback) {
    const Value* list =
        find({"target_layer_ids", "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids", "target_layers"});
    return list != nullptr && list->is_list() && !list->items.empty() ? static_cast<double>(list->items.size()) : fallback;
  }
  double joined(double features) {
    const double hidden = required({"hidden_size", "n_embd"});
    return features * count({"target_hidden_size"}).value_or(hidden) / hidden;
  }

  // LM head and embeddings; the file may give a vocabulary of its own.
  void read_ends(bool shares) {
    const auto own = count({"draft_vocab_size", "truncated_vocab_size"});
    const double vocab = required({"vocab_size"});
    number("vocab", own.value_or(vocab));
    if (own && *own != vocab) number("embedding_vocab", vocab);
    put(shares ? "shares_lm_head" : "shares_embeddings", "true");
  }

  void read_eagle3() {
    read_ends(truth("reuse_target_lm_head"));
    const double layers = required({"num_hidden_layers", "num_layers"});
    number("attention_inputs", 1.0 + 1.0 / layers);  // only the first layer reads the token in addition to the features
    number("fused_inputs", joined(features(3.0)));
  }

  void read_block(FileDrafter& own) {
    const std::string_view word = own.word;
    const double layers = required({"num_hidden_layers", "num_layers"});
    const double hidden = required({"hidden_size", "n_embd"});
    read_ends(find({"draft_vocab_size"}) == nullptr);
    if (word == "dflare") {  // a weighted sum instead of a product, and separate matrices for keys and values of the context
      const double heads = required({"num_attention_heads"});
      const double own_kv = 2.0 * count({"num_key_value_heads"}).value_or(heads) * count({"head_dim"}).value_or(hidden / heads);
      number("fused_inputs", text("use_heterogeneous_kv") == "false" ? 1.0 / hidden : layers * own_kv / hidden);
    } else {
      number("fused_inputs", joined(features(layers)));
    }
    if (const auto block = count({"block_size"}); block && *block > 0.0) {
      // The token before the drafts is part of DFlash's blocks but not of DSpark's.
      const Value* anchor = find({"sample_from_anchor"});
      const bool whole = anchor != nullptr ? anchor->text == "true" : word == "dspark";
      number("longest_draft", std::max(1.0, *block - (whole ? 0.0 : 1.0)));
    }
    if (word == "dspark") {
      const double rank = count({"markov_rank"}).value_or(256.0);
      if (rank > 0.0) number("markov_rank", rank);
      const std::string kind = text("markov_head_type");
      if (kind == "gated") number("markov_matrices", (hidden + rank) * rank);
      if (kind == "rnn") number("markov_matrices", (2.0 * rank + hidden) * 3.0 * rank);
    }
    if (word == "dflash2") {  // candidates of each position, scored by the token before in tables of this rank
      number("markov_rank", count({"selector_rank"}).value_or(256.0));
      own.assumed.emplace_back("DFlash2's local convolutions, about 5 % of its layers, are left out");
    }
    if (word == "domino") {
      const double width = required({"emb_dim"});
      const double state = required({"gru_hidden_dim"});
      number("markov_rank", width);
      number("markov_matrices", 3.0 * state * (hidden + state) + (hidden + state) * width);
      put("markov_embeds", "false");
    }
  }

  void read_heads(FileDrafter& own) {
    own.heads_alone = true;
    const std::string_view word = own.word;
    const double hidden = required({"hidden_size", "emb_dim"});
    const double heads = required({"num_heads", "medusa_num_heads", "n_predict", "hydra_num_heads"});
    const double layers = count({"num_hidden_layers", "medusa_num_layers", "hydra_num_layers"}).value_or(1.0);
    number("layers", 0.0);
    number("heads", 1.0);
    number("kv_heads", 1.0);
    number("head_dim", hidden);
    number("ffn", 0.0);
    number("vocab", count({"truncated_vocab_size", "vocab_size"}).value_or(required({"vocab_size"})));
    if (word == "medusa") {
      number("hidden", hidden);
      number("prediction_heads", heads);
      number("head_matrices", heads * layers);
      put("shares_embeddings", "true");
      return;
    }
    // One head per token, one after the other: the first reads the target's feature, the others the inner width.
    const double inner = word == "mlp_speculator" ? count({"inner_dim"}).value_or(hidden) : hidden;
    number("hidden", inner > 0.0 ? inner : hidden);
    number("prediction_heads", 1.0);
    number("head_matrices", std::round(layers));
    if (word == "hydra") put("shares_embeddings", "true");
    number("longest_draft", heads);
  }

  void read_assistant(FileDrafter& own) {
    own.whole_model = true;
    const double hidden = required({"hidden_size"});
    const double backbone = required({"backbone_hidden_size"});
    number("fused_inputs", 3.0 * backbone / hidden);  // a product joins feature and token, another leads back
    own.assumed.emplace_back(
        "its layers read the target's cache, which is modelled as a cache of the same width that takes no memory");
  }

  const Value& root_;
  const Value& text_;
  Diagnostics& diagnostics_;
  std::vector<config::Field>* fields_ = nullptr;
  mutable std::set<std::string> read_;
};

}  // namespace

std::optional<FileDrafter> read_drafter(const Value& root, const Value& text, Diagnostics& diagnostics) {
  return DrafterReader(root, text, diagnostics).read();
}

}  // namespace specsim::cost
