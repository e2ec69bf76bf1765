#include "sim/rounds/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::draft {

void add_paths(ChosenBlock& block, const std::vector<std::vector<Token>>& paths) {
  std::vector<std::vector<std::size_t>> through(1);  // paths that pass through each node
  for (std::size_t i = 0; i < paths.size(); ++i) through[0].push_back(i);
  for (std::size_t node = 0; node < block.tree.nodes.size(); ++node) {
    const auto depth = static_cast<std::size_t>(block.tree.nodes[node].depth);
    std::vector<Token> tokens;
    for (const std::size_t i : through[node])
      if (paths[i].size() > depth && std::find(tokens.begin(), tokens.end(), paths[i][depth]) == tokens.end())
        tokens.push_back(paths[i][depth]);
    for (const Token token : tokens) {
      block.add(static_cast<int>(node), token);
      std::vector<std::size_t> on;
      for (const std::size_t i : through[node])
        if (paths[i].size() > depth && paths[i][depth] == token) on.push_back(i);
      through.push_back(std::move(on));
    }
  }
}

void check_tokens(const config::Arguments& arguments, const std::string& key, Diagnostics& diagnostics) {
  if (!arguments.has(key)) return;
  for (const std::vector<double>& list : arguments.table(key))
    for (const double token : list)
      if (token != std::floor(token) || token >= kMaxVocab)
        diagnostics.add(arguments.where(key),
                        fmt::format("{} has token {:g}, allowed: whole numbers below {}", key, token, kMaxVocab));
}

TextDrafter::TextDrafter(int draft_length, int nodes) {
  shape_.siblings = tokens::Siblings::point_mass;
  shape_.draft_length = draft_length;
  shape_.nodes = nodes;
  shape_.reads_text = true;
}

}  // namespace specsim::draft
