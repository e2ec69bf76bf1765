#!/bin/bash
# `specsim audit` of trees with a budget of nodes: lossless and as their theories predict, for texts with and without memory. A budget
# may be larger than the vocabulary (mutant: more nodes than tokens are refused).
set -euo pipefail
lossless() {  # config, drafter
  local audited
  audited=$("$SPECSIM" audit "$1" --set "decode={drafter: $2, verifier: tree_point_mass}" --set 'sweep={}')
  grep -q '^verdict: lossless to 1e-12$' <<<"$audited" && grep -q '^theory .*: agrees' <<<"$audited" || { echo "$1, $2: $audited"; exit 1; }
}
lossless configs/audit/known_pair.yaml '{kind: ddtree, block_size: 3, nodes: 2}'
lossless configs/audit/markov.yaml '{kind: ddtree, block_size: 3, nodes: 4}'
lossless configs/audit/markov.yaml '{kind: jetspec, depth: 2, width: 2, nodes: 4}'
lossless configs/audit/markov.yaml '{kind: caddtree, block_size: 3, nodes: 4, row_time: 0.2}'
for drafter in 'ddtree, block_size: 4, nodes: 12' 'ddtree, block_size: 4, nodes: 12, width: 2' 'jetspec, depth: 3, width: 2, nodes: 8' \
    'caddtree, block_size: 4, nodes: 8, row_time: 0.02' 'opt_tree, nodes: 8, max_depth: 4' 'spec_exec, budget: 8, beams: 8, width: 8, max_depth: 3' \
    'redrafter, beams: 5, draft_length: 2'; do
  lossless configs/audit/known_pair.yaml "{kind: $drafter}"
  lossless configs/audit/markov.yaml "{kind: $drafter}"
done
for drafter in 'dflash2, block_size: 4, candidates: 3' 'domino, block_size: 4'; do  # candidates up to the vocabulary
  lossless configs/audit/markov.yaml "{kind: $drafter, selection: argmax}"
done
echo "audited"
