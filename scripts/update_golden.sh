#!/bin/bash
# Writes again what tests compare the program's output with. Read the difference (git diff) before committing it.
#   scripts/update_golden.sh             docs/, README.md's figures, the map of rooms and tests/config/bad/*, by build/specsim
#   SPECSIM=path scripts/update_golden.sh  by another program
set -euo pipefail
if [[ ${1-} == -h || ${1-} == --help ]]; then sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0; fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export SPECSIM=${SPECSIM:-build/specsim}
python=/usr/bin/python3
[[ -x $python ]] || python=python3
"$python" tests/config/bad_test.py --update
"$python" scripts/dev/docs_pages.py
if command -v dot >/dev/null; then "$python" scripts/dev/plot_rooms.py docs/development; fi
