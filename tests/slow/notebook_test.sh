#!/bin/bash
# The notebook of docs/guides prints the committed outputs, with the installed package. Without the package or Debian's nbconvert the test
# prints a message and passes.
set -euo pipefail
build=$(dirname "$SPECSIM")
if ! compgen -G "$build/python/specsim/_core.*" >/dev/null; then
  echo "skipped: built without -DSPECSIM_PYTHON_PACKAGE=ON"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --component python --prefix "$folder" >/dev/null
status=0
PYTHONPATH=$folder/lib/python3/dist-packages scripts/dev/notebook --check || status=$?
((status == 77)) || exit "$status"
