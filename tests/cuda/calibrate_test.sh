#!/bin/bash
# calibrate --device cuda from end to end, on the host's twin of a GPU: every table exists and is complete, and failures are reported clearly.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "calibrate_test: $1" >&2; failed=1; }

cat >"$folder/tiny.yaml" <<'Y'
name: tiny
source: "a test"
layers: 2
hidden: 64
heads: 4
kv_heads: 2
head_dim: 16
ffn: 96
gated: true
vocab: 600
tied_embeddings: false
Y
models=tests/data/models
calibrate() { "$SPECSIM_TWIN" calibrate --device cuda --quick --repetitions 2 --batches 1 --draft-lengths 2 "$@"; }
# whole FILE: at least two lines, all with the same number of fields
whole() { awk -F, 'NR == 1 {n = NF} NF != n {exit 1} END {if (NR < 2) exit 1}' "$1" || fail "$1 is not whole"; }

calibrate --target "$folder/tiny.yaml" --draft "$folder/tiny.yaml" --contexts 4,40 --out "$folder/shapes" >"$folder/log" 2>&1 ||
  fail "shapes: $(tail -n 3 "$folder/log")"
for file in bandwidth passes cost_table terms streams rounds; do whole "$folder/shapes/$file.csv"; done
for what in draw accept_greedy accept_block accept empty_launch host round host_and_launches draws_and_acceptance; do
  grep -q "^$what,1," "$folder/shapes/terms.csv" || fail "terms.csv without $what"
done
# With two models of one shape, a round of two drafts has three passes and distributions, and a judgement is one launch more than a draw.
awk -F, '$1 == "empty_launch" {empty = $4} $1 == "host" {host[$3] = $4} $1 == "round" {round[$3] = $4; launches[$3] = $8}
  $1 == "draw" {draw[$3] = $4} $1 == "accept" {accept[$3] = $4}
  function differ(a, b) {return a - b > 1e-3 * b || b - a > 1e-3 * b}
  $1 == "host_and_launches" {all = launches[$3] * empty + host[$3]
                             bad += differ($4, all) || differ($9 + 1, all / (round[$3] + host[$3]) + 1)}
  $1 == "draws_and_acceptance" {all = $3 * draw[$3] + accept[$3]
                                bad += differ($4, all) || differ($9 + 1, all / (round[$3] + host[$3]) + 1)}
  END {exit bad || launches[0] < 20 || launches[2] != 3 * launches[0] - 2}' "$folder/shapes/terms.csv" ||
  fail "time of a round besides its passes: $(<"$folder/shapes/terms.csv")"
grep -qE 'are [0-9.]+ % of a round \(goal: at most 3 %\), draws and acceptance [0-9.]+ % \(goal: at most 2 %\)' "$folder/log" ||
  fail "no shares of a round"
grep -q 'weights: random' "$folder/shapes/manifest.yaml" || fail "the manifest does not say that weights are random"
cut -d, -f13 "$folder/shapes/passes.csv" | grep -qE '^[0-9a-f]{16}$' || fail "passes without a hash of logits"

# Results of a run on a CPU could be mistaken for this run's: they are refused, and replaced with --force; a user's files stay.
mkdir "$folder/enlarged"
echo mine | tee "$folder"/enlarged/{acceptance_notes.csv,trace_that_matters.jsonl} >"$folder/enlarged/notes.txt"
head -n 2 tests/data/prompts/calibration.jsonl >"$folder/fitted.jsonl"
head -n 2 tests/data/prompts/held_out.jsonl >"$folder/held_out.jsonl"
small=$models/novels-0.2m-distilled
"$SPECSIM" calibrate --quick --repetitions 1 --batches 1 --draft-lengths 1 --temperatures 0.6 --tokens 2 --threads 1 --target $small \
  --draft $small --prompts "$folder/fitted.jsonl" --out "$folder/enlarged" >"$folder/log" 2>&1 || fail "before: $(tail -n 3 "$folder/log")"
[[ -e $folder/enlarged/acceptance.csv && -e $folder/enlarged/trace_t0.6.jsonl ]] || fail "no results: $(ls "$folder/enlarged")"
enlarged() {
  calibrate --target $small --draft $small --enlarge 128x256x3 --prompts "$folder/fitted.jsonl" --held-out "$folder/held_out.jsonl" \
    --temperatures 1 --tokens 5 --out "$folder/enlarged" "$@" >"$folder/log" 2>&1
}
enlarged && fail "results are replaced without --force"
grep -q 'results are here already' "$folder/log" || fail "the program printed: $(tail -n 3 "$folder/log")"
[[ -e $folder/enlarged/acceptance.csv ]] || fail "a refused run removed results"
enlarged --force || fail "enlarged: $(tail -n 3 "$folder/log")"
whole "$folder/enlarged/validation.csv"
[[ -e $folder/enlarged/trace_t1.jsonl && ! -e $folder/enlarged/acceptance.csv && ! -e $folder/enlarged/trace_t0.6.jsonl ]] ||
  fail "results of an earlier run: $(ls "$folder/enlarged")"
for file in acceptance_notes.csv trace_that_matters.jsonl notes.txt; do
  [[ $(<"$folder/enlarged/$file") == mine ]] || fail "a user's file was touched: $file"
done
# Distributions of two prompts give no standard error.
grep -q 'prompts: - of 0 points' "$folder/enlarged/summary.txt" || fail "acceptance is judged without an error"
grep -q '^1,1,2,.*,enlarged,' "$folder/enlarged/validation.csv" || fail "no enlarged run of draft length 2"
# The enlarged target computes the same function as the draft: nothing is rejected.
awk -F, '$3 == 2 && ($7 != 3 || $9 != 3) {exit 1}' "$folder/enlarged/validation.csv" || fail "an enlarged model rejects its own drafts"
"$SPECSIM" validate --quick --repetitions 9 --batches 1 --draft-lengths 2 --threads 1 --clock cpu --target $small --draft $small --prompts "$folder/fitted.jsonl" \
  --held-out "$folder/held_out.jsonl" --tokens 5 --out "$folder/on_cpu" >"$folder/log" 2>&1 || fail "on the CPU: $(tail -n 3 "$folder/log")"
columns() { head -n 1 "$folder/$1/validation.csv" | cut -d, -f-17; }
[[ $(columns on_cpu) == "$(columns enlarged)" && $(columns enlarged) == *,speedup_error ]] || fail "validation.csv differs by device: $(columns on_cpu)"

{ /usr/bin/python3 scripts/plots/plot_validation.py "$folder/enlarged" && [[ -s $folder/enlarged/validation.png ]]; } || fail "no plot of the validation"

# refuses PART COMMAND...: status 2, and a message with PART in it
refuses() {
  local part=$1 status=0
  shift
  "$@" >"$folder/log" 2>&1 || status=$?
  if ((status != 2)) || ! grep -q -- "$part" "$folder/log"; then fail "status $status of: $* printed: $(tail -n 2 "$folder/log")"; fi
}
refuses 'GiB are needed (target.s weights 14.96' calibrate --target llama-3.1-8b --draft llama-3.2-1b --out "$folder/large"
refuses 'allowed: HIDDENxFFNxLAYERS, at least 64x192x2, hidden a multiple of 32' calibrate --target $small --draft $small \
  --enlarge 100x256x3 --prompts "$folder/fitted.jsonl" --held-out "$folder/held_out.jsonl" --out "$folder/odd"
refuses 'tiny-qwen/config.json: vocab_size is 40 and the target.s is 2048, allowed: one vocabulary for both' calibrate --target $small \
  --draft $models/tiny-qwen --out "$folder/vocab"
# Another tokenizer with the same number of pieces.
cp -r $small "$folder/pieces"
/usr/bin/python3 - "$folder/pieces/tokenizer.model" <<'P'
import sys
data = open(sys.argv[1], "rb").read()
was = "\N{LOWER ONE EIGHTH BLOCK}was".encode()
assert data.count(was) == 1
open(sys.argv[1], "wb").write(data.replace(was, was[:-1] + b"z"))
P
refuses 'pieces/tokenizer.model: its pieces are not the target.s' calibrate --target $small --draft "$folder/pieces" \
  --prompts "$folder/fitted.jsonl" --held-out "$folder/held_out.jsonl" --out "$folder/other"
refuses 'is neither a directory nor a known shape' calibrate --target lama-160m --draft llama-68m --out "$folder/unknown"
refuses 'held_out.jsonl: prompt 1 is also in --prompts, allowed: prompts that are not' calibrate --target $small --draft $small \
  --prompts "$folder/held_out.jsonl" --held-out "$folder/held_out.jsonl" --out "$folder/same"
refuses 'held_out.jsonl: 2 prompts, allowed for a batch of 3' "$SPECSIM_TWIN" calibrate --device cuda --batches 1,3 --target $small \
  --draft $small --prompts tests/data/prompts/calibration.jsonl --held-out "$folder/held_out.jsonl" --out "$folder/few"
refuses '--contexts: given with models. directories, allowed: with shapes' calibrate --target $small --draft $small --contexts 4 \
  --prompts "$folder/fitted.jsonl" --held-out "$folder/held_out.jsonl" --out "$folder/contexts"
refuses '--enlarge-draft: given with a shape' calibrate --target llama-160m --draft llama-68m --enlarge-draft 128x256x3 --out "$folder/shape"
for made in vocab other unknown same few contexts shape; do
  [[ ! -e $folder/$made ]] || fail "a refused run left $made"
done
echo '{"tokens": [1]}' | cat "$folder/held_out.jsonl" - >"$folder/short.jsonl"
refuses 'short.jsonl: prompt 3 is one token, allowed on a GPU: at least two' calibrate --target $small --draft $small \
  --prompts "$folder/fitted.jsonl" --held-out "$folder/short.jsonl" --out "$folder/short"
[[ ! -e $folder/short ]] || fail "something was done before the prompts were read"
refuses 'allowed: with models. directories as they are' calibrate --peers --target $small --draft $small --enlarge-draft 128x256x3 \
  --held-out "$folder/held_out.jsonl" --out "$folder/peers"
cp -r $small "$folder/broken"
truncate -s 1000 "$folder/broken/model.safetensors"
refuses "$folder/broken/model.safetensors" calibrate --target "$folder/broken" --draft $small --out "$folder/torn"
if ! nvidia-smi >/dev/null 2>&1; then
  refuses 'GPU 0: ' "$SPECSIM" calibrate --device cuda --target llama-3.1-8b --draft llama-3.2-1b --out "$folder/none"
  refuses 'GPU 0: ' scripts/gpu/gpu_calibrate "$folder/none"
fi

# If a build is impossible, it prints which files are needed.
mkdir -p "$folder/bare/scripts/gpu" && cp scripts/gpu/gpu_calibrate "$folder/bare/scripts/gpu/"
status=0
(unset SPECSIM && "$folder/bare/scripts/gpu/gpu_calibrate" "$folder/nothing_built") >"$folder/log" 2>&1 || status=$?
if ((status != 1)) || ! grep -q 'run scripts/gpu/gpu_bundle' "$folder/log" || [[ $(<"$folder/nothing_built/stages.csv") != *build,*,1 ]]; then
  fail "without a program: status $status, $(tail -n 2 "$folder/log")"
fi

# How scripts/gpu/gpu_calibrate handles failures: programs that fail on demand, with a number of assertions or a status, with and without early starts.
mkdir "$folder/fake"
cat >"$folder/fake/specsim_tests_cuda" <<'F'
#!/bin/bash
if [[ ${SPECSIM_GPU_EARLY_START-} == 0 ]]; then exit "$PLAIN_TESTS"; else exit "$TESTS"; fi
F
cat >"$folder/fake/specsim" <<'F'
#!/bin/bash
while (($# > 0)); do
  case $1 in
    --out) out=$2 ;;
    --no-early-start) plain=1 ;;
  esac
  shift
done
if [[ -z ${out-} ]]; then exit; fi
mkdir -p "$out"
echo "${plain-0}" >"$out/plain"
if [[ $out == */llama-8b-1b && -z ${plain-} ]]; then
  if [[ -n $PART ]]; then touch "$out/$PART"; fi
  exit "$SHAPES"
fi
F
chmod +x "$folder"/fake/*
# falls_back NAME TESTS PLAIN_TESTS SHAPES EXPECTED STAGES [PART]: whether the enlarged models run without early starts, and the
# stages before, where shapes' last table was PART
falls_back() {
  local out=$folder/$1 stages
  TESTS=$2 PLAIN_TESTS=$3 SHAPES=$4 PART=${7-} SPECSIM=$folder/fake/specsim scripts/gpu/gpu_calibrate "$out" >"$out.log" 2>&1
  stages=$(sed -n '2,/^enlarged/s/,.*//p' "$out/stages.csv" | xargs)
  if [[ $(<"$out/enlarged/plain") != "$5" || $stages != "$6 enlarged" ]]; then
    fail "after $1: without early starts $(<"$out/enlarged/plain"), stages $stages"
    return 1
  fi
}
runs=()
falls_back nothing 0 0 0 0 "self_test shapes" & runs+=($!)
falls_back assertions_with_early_start 3 0 0 1 "self_test self_test_without_early_start shapes" & runs+=($!)
falls_back assertions_always 3 3 0 0 "self_test self_test_without_early_start shapes" & runs+=($!)
falls_back a_crash_without_early_start 3 134 0 1 "self_test self_test_without_early_start shapes" & runs+=($!)
falls_back a_crash 134 0 0 1 "self_test shapes" & runs+=($!)
falls_back shapes 0 0 1 1 "self_test shapes shapes_without_early_start" & runs+=($!)
falls_back shapes_late 0 0 1 1 "self_test shapes shapes_without_early_start" rounds.csv & runs+=($!)
falls_back shapes_stuck 0 0 124 1 "self_test shapes shapes_without_early_start" passes.csv & runs+=($!)
falls_back shapes_slow 0 0 124 0 "self_test shapes" rounds.csv & runs+=($!)
for run in "${runs[@]}"; do wait "$run" || failed=1; done

# A killed run leaves complete tables.
"$SPECSIM_TWIN" calibrate --device cuda --quick --repetitions 2 --batches 1 --draft-lengths 2 --target "$folder/tiny.yaml" \
  --draft "$folder/tiny.yaml" --contexts 4,40,300,500 --out "$folder/killed" >/dev/null 2>&1 &
while [[ ! -e $folder/killed/passes.csv ]] && kill -0 $! 2>/dev/null; do sleep 0.1; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
[[ -e $folder/killed/passes.csv ]] || fail "a run left nothing"
for file in "$folder"/killed/{bandwidth,passes}.csv; do whole "$file"; done
exit $failed
