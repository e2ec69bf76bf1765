#!/bin/bash
# The step of action.yml: CONFIGS, ARGUMENTS, JUNIT, UNTESTED (error or warning) and SPECSIM in the environment.
set -uo pipefail
case "$UNTESTED" in
  error | warning) ;;
  *) echo "::error title=specsim check::untested is \"$UNTESTED\", allowed: error, warning"; exit 2 ;;
esac
# Both are lists of words, as a shell splits and expands them.
# shellcheck disable=SC2086
"$SPECSIM" check $CONFIGS --junit "$JUNIT" --github $ARGUMENTS
status=$?
if [[ -n ${GITHUB_OUTPUT-} ]]; then echo "status=$status" >>"$GITHUB_OUTPUT"; fi
if ((status == 3)) && [[ $UNTESTED == warning ]]; then status=0; fi
exit "$status"
