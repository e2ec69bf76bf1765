#!/bin/bash
# `specsim audit` of trees from a block drafter's distributions: lossless, for texts with and without memory.
set -euo pipefail
lossless() {  # config, drafter
  local audited
  audited=$("$SPECSIM" audit "$1" --set "decode={drafter: $2, verifier: tree_point_mass}" --set 'sweep={}')
  grep -q '^verdict: lossless to 1e-12$' <<<"$audited" || { echo "$1, $2: $audited"; exit 1; }
}
lossless configs/audit/known_pair.yaml '{kind: ddtree, block_size: 3, nodes: 2}'
lossless configs/audit/markov.yaml '{kind: ddtree, block_size: 3, nodes: 4}'
lossless configs/audit/markov.yaml '{kind: jetspec, depth: 2, width: 2, nodes: 4}'
lossless configs/audit/markov.yaml '{kind: caddtree, block_size: 3, nodes: 4, row_time: 0.2}'
echo "audited"
