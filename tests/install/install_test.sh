#!/bin/bash
# The installed files work without the source tree: the program finds its configs from any directory, copies them and draws. A program of ten
# lines is built with the library and computes the same value as the program.
set -euo pipefail
here=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "install_test: $1" >&2; exit 1; }

build=$(dirname "$SPECSIM")
cmake --install "$build" --prefix "$folder/prefix" >/dev/null
program=$folder/prefix/bin/specsim
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"

"$program" run configs/quickstart.yaml --set rounds=20000 --out out >shown || fail "a shipped config is not found from another directory"
"$program" init mine >/dev/null
cmp -s mine/configs/quickstart.yaml "$here/configs/quickstart.yaml" || fail "init does not copy the configs"
if "$program" init mine >/dev/null 2>printed; then fail "init replaces configs that are there"; fi
grep -q -- "--force" printed || fail "init does not print how to replace files: $(cat printed)"
"$program" plot out >/dev/null
[[ -s out/data.png ]] || fail "plot draws nothing"
if "$program" plot mine >/dev/null 2>printed; then fail "plot takes a directory without results"; fi
"$program" help plan >printed
grep -q -- --hardware printed || fail "help plan is not the help of plan"
"$program" describe eagle >printed
grep -q drafter/eagle printed || fail "describe does not look a name up over kinds"

# The examples of --help run as they are printed.
cd mine
"$program" check --help | sed -n 's/^  specsim \(check configs.*--dry-run\)$/\1/p' >examples
[[ -s examples ]] || fail "check --help has no example to try"
while read -r -a words; do "$program" "${words[@]}" >/dev/null || fail "this example does not work: ${words[*]}"; done <examples
cd ..

if [[ -n ${SPECSIM_SANITIZE-} ]]; then exit 0; fi  # a program that is linked with instrumented code wants the same options
cmake -S "$here/tests/install" -B against -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_BUILD_TYPE=Release >log 2>&1 ||
  fail "find_package(specsim) fails: $(cat log)"
cmake --build against >log 2>&1 || fail "a program against the library does not build: $(tail -30 log)"
library=$(./against/against mine/configs/quickstart.yaml)
column=$(head -1 out/data.csv | tr , '\n' | grep -nx tokens_per_round | cut -d: -f1)
expected=$(sed -n 2p out/data.csv | cut -d, -f"$column")
[[ $library == "8 cells, tokens per round $(printf %.6f "$expected")" ]] || fail "the library returns \"$library\", data.csv $expected"
