#!/bin/bash
# docs/reference.md equals the program's output, every command has a help text, and every listed part has a description.
# Runs at the root of the repository; SPECSIM names the program.
set -uo pipefail
specsim=${SPECSIM:-build/specsim}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
checks=0
problems=0

problem() { echo "$1" >&2; problems=$((problems + 1)); }

# runs ARGUMENTS...: exit code 0, something on standard output ($scratch/out) and nothing on standard error
runs() {
  checks=$((checks + 1))
  local status=0
  "$specsim" "$@" </dev/null >"$scratch/out" 2>"$scratch/err" || status=$?
  if ((status)); then problem "specsim $*: exit code $status: $(head -3 "$scratch/err")"; return 1; fi
  if [[ -s $scratch/err ]]; then problem "specsim $*: standard error has $(head -3 "$scratch/err")"; return 1; fi
  if [[ ! -s $scratch/out ]]; then problem "specsim $*: nothing printed"; return 1; fi
}

# says WHAT TEXT: the last output contains the line or text
says() {
  checks=$((checks + 1))
  grep -qF -- "$2" "$scratch/out" || problem "$1: nothing says \"$2\""
}

# ---- the reference page
if runs reference; then
  diff -u docs/reference.md "$scratch/out" >&2 || problem "docs/reference.md is out of date: scripts/update_golden.sh writes it anew"
  cp "$scratch/out" "$scratch/reference"
fi

# ---- help
runs --help
commands=$(sed -n 's/^  \([a-z]\{3,\}\) \{2,\}.*/\1/p' "$scratch/out")
[[ $(wc -w <<<"$commands") -ge 8 ]] || problem "specsim --help lists too few commands: $commands"
runs help && runs -h && runs --version && says "specsim --version" "specsim "
for command in $commands; do
  runs "$command" --help || continue
  says "specsim $command --help" "usage: specsim $command"
  says "specsim $command --help" "examples:"
  head -n 1 "$scratch/out" | grep -Eq '^[A-Z][^:]*.*\.$' || problem "specsim $command --help does not begin with a sentence"
  says "specsim $command --help" "  specsim $command"
  grep -E '^  specsim ' "$scratch/out" >>"$scratch/examples"
  cp "$scratch/out" "$scratch/help"
  runs "$command" -h && { cmp -s "$scratch/out" "$scratch/help" || problem "specsim $command -h is not what --help prints"; }
done

# The options and the configs that the examples show exist.
while read -r _ command rest; do
  "$specsim" "$command" --help >"$scratch/out"
  for word in $rest; do
    if [[ $word == --* ]]; then says "specsim $command --help" "$word"; fi
    if [[ $word == configs/*.yaml && ! -f $word ]]; then problem "specsim $command --help: there is no $word"; fi
  done
done <"$scratch/examples"

# ---- list and describe
runs list
kinds=$(sed -n 's/^\([a-z_]*\) (.*/\1/p' "$scratch/out")
[[ $(wc -w <<<"$kinds") -ge 7 ]] || problem "specsim list has too few kinds: $kinds"
cp "$scratch/out" "$scratch/all"
for kind in $kinds; do
  runs list "$kind" || continue
  cat "$scratch/out" >>"$scratch/pieces"
  names=$(sed -n 's/^  \([a-z_0-9.-]*\) .*/\1/p' "$scratch/out")
  [[ -n $names ]] || problem "specsim list $kind lists nothing"
  for name in $names; do
    runs describe "$kind/$name" || continue
    says "specsim describe $kind/$name" "$kind/$name: "
    checks=$((checks + 1))
    grep -qF "### $kind/$name" "$scratch/reference" || problem "the reference page has no $kind/$name"
    parts+=("$kind/$name")
  done
done
cmp -s "$scratch/all" "$scratch/pieces" || problem "specsim list is not all its kinds together"
runs describe "${parts[@]}"

echo "$checks checks of ${#parts[@]} parts, $problems problems"
((problems == 0))
