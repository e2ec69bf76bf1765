#!/bin/bash
# `specsim audit` on the committed configs: the known values, losslessness, and a lossy verifier's exact bias.
set -euo pipefail
known=$("$SPECSIM" audit configs/audit/known_pair.yaml)
grep -q '^expected accepted: *1\.111111111111$' <<<"$known"
grep -q '^expected emitted: *2\.111111111111$' <<<"$known"
grep -q '^verdict: lossless to 1e-12$' <<<"$known"
matched=$("$SPECSIM" audit configs/audit/known_pair.yaml --set decode.verifier=sample_match)
grep -q '^alpha: *0\.444444444444$' <<<"$matched"  # claim G5: 4/9 where the token verifier has 2/3
grep -q '^verdict: lossless to 1e-12$' <<<"$matched"
[[ $("$SPECSIM" audit configs/audit/markov.yaml | grep -c '^verdict: lossless to 1e-12$') == 2 ]]
soft=$("$SPECSIM" audit configs/audit/soft_argmax.yaml)
grep -q '^verdict: not lossless' <<<"$soft"
grep -q ' 0  0\.500000000000  0\.833333333333 ' <<<"$soft"  # target(m) / draft(m) = .5 / .6 instead of .5
# Random contexts are skipped without an error; fresh distributions are audited.
"$SPECSIM" audit configs/audit/known_pair.yaml --set context.process=iid | grep -q '^not audited, because its contexts change at random'
fresh=$("$SPECSIM" audit configs/audit/known_pair.yaml --set context.process=iid --set context.fresh=true)
grep -q '^verdict: lossless to 1e-12$' <<<"$fresh"
echo "audits as known"
