#!/usr/bin/python3
"""Bad configs and bad command lines: each is refused with exit code 2, exactly the message on record, and nothing written.

    tests/config/bad_test.py            check the cases of tests/config/bad/*.cases, and the command lines below
    tests/config/bad_test.py --update   write the messages of the cases anew, to be read before they are committed

Runs at the root of the repository; SPECSIM names the program. A table of cases begins with the config that all of them vary:

    base:
      KEY: VALUE              of the config, two columns in

    === NAME
    KEY: VALUE                a section that replaces the base's, or follows it
    without: KEY              a section of the base that is left out
    --- refused
    FILE:9:5: MESSAGE         what standard error says, FILE for the config's path; <names of KIND> for what specsim list prints of it

Instead of sections a case may have "whole:" and a config, or "bytes:" and a file as a Python literal.
"""

import ast
import os
import re
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
BAD = Path("tests/config/bad")
GOOD = Path("tests/config/good")
CONFIG = "tests/config/good/zeros.yaml"

INTEGER_SEED = "an integer in [0, 9.2e+18]"
OPTIONS = "--set, --out, --threads, --seed, --shard, --resume, --force, --dry-run, --quiet, --trace, --format, --help"
COMMANDS = "run, check, audit, plan, compare, serve, theory, pass, kernels, calibrate, validate, import, fit, list, describe, init, cluster, plot, merge, schema, completion, man, reference"
GPUS = "<presets of hardware>, or the path of a .yaml file"
MODELS = "tests/data/models/"
PROMPTS = "tests/data/prompts/held_out.jsonl"
CALIBRATE = ["calibrate", "--target", MODELS + "novels-0.2m-distilled", "--draft", MODELS + "novels-0.2m-distilled", "--out", "OUT"]
PASS = ["pass", "--hardware", "h100-sxm", "--model", "llama-2-7b"]

# Arguments, and what standard error says.
LINES = [
    (["run", "tests/config/bad/no_such_file.yaml"],
     "tests/config/bad/no_such_file.yaml: cannot be read: no such file or directory, allowed: a readable YAML file"),
    (["run", "tests/config/bad"], "tests/config/bad: it is a directory, allowed: a YAML file"),
    (["run", CONFIG + "/x.yaml"], CONFIG + "/x.yaml: cannot be read: not a directory, allowed: a readable YAML file"),
    (["run", ""], "the file name is empty, allowed: a readable YAML file"),
    (["run"], "specsim run needs a config; specsim run --help shows examples"),
    (["check"], "specsim check needs a config; specsim check --help shows examples"),
    (["run", CONFIG, CONFIG], f'{CONFIG}: experiment "zeros" is in {CONFIG} as well, allowed: one name each'),
    # --set
    (["run", CONFIG, "--set", "rounds"], '--set: "rounds" is no path=value, allowed: a path and a value, as rounds=1e5'),
    (["run", CONFIG, "--set", "=5"], '--set: "=5" is no path=value, allowed: a path and a value, as rounds=1e5'),
    (["run", CONFIG, "--set", "rounds="],
     "--set rounds: rounds is null (no value), allowed: an integer in [1, 10000000000000]"),
    (["run", CONFIG, "--set", "rounds=many"],
     '--set rounds:1:1: rounds is "many", allowed: an integer in [1, 10000000000000]'),
    (["run", CONFIG, "--set", "rounds=[1"],
     '--set rounds:1:1: the list opened at 1:1 is not closed, allowed: "]" behind its last value'),
    (["run", CONFIG, "--set", "rounds=1: 2: 3"],
     '--set rounds:1:5: ":" is out of place, allowed: one "key: value" in a line, or quotes around a text that has ": "'),
    (["run", CONFIG, "--set", "rounds.x=5"],
     '--set rounds.x: path "rounds.x" runs through "rounds", which is 20000, allowed: a map or a list'),
    (["run", CONFIG, "--set", "pair.target.probabilities.5=0"],
     '--set pair.target.probabilities.5: path "pair.target.probabilities.5" asks for item "5" of "pair.target.probabilities", '
     "which is a list of 5, allowed: an item from 0 to 4"),
    (["run", CONFIG, "--set", "pair..vocab=5"],
     '--set pair..vocab: path "pair..vocab" has an empty part, allowed: keys joined by "."'),
    (["run", CONFIG, "--set", "pair.vocb=5"],
     '--set pair.vocb: unknown key "vocb" in pair, did you mean "vocab"? '
     "allowed: draft, draft_sampling, target, target_sampling, vocab"),
    (["run", CONFIG, "--set", "decode.drafter.draft_length=65", "--set", "rounds=0"],
     "--set rounds:1:1: rounds is 0, allowed: an integer in [1, 10000000000000]\n"
     "--set decode.drafter.draft_length:1:1: draft_length is 65, allowed: an integer in [0, 64]"),
    (["run", CONFIG, "--set", "sweep.rounds=5"],
     "--set sweep.rounds:1:1: axis rounds is 5, allowed: a list, or a range {from, to, step | count, scale}"),
    (["run", CONFIG, "--set", "sweep.pair.vocb=[4, 5]"],
     '--set sweep.pair.vocb: unknown key "vocb" in pair, did you mean "vocab"? '
     "allowed: draft, draft_sampling, target, target_sampling, vocab"),
    (["run", CONFIG, "--set", "sweep=5", "--set", "sweep.rounds=[5]"],
     "--set sweep.rounds: the sweep of the config is 5, allowed: a map of axes"),
    (["run", CONFIG, "--set"], "--set: given without a value, or with one that it does not take, allowed: path=value: override the configs, e.g. --set rounds=1e5"),
    # --seed, --shard, --threads, --out
    (["run", CONFIG, "--seed", "abc"], f'--seed:1:1: seed is "abc", allowed: {INTEGER_SEED}'),
    (["run", CONFIG, "--seed", "-1"], f"--seed:1:1: seed is -1, allowed: {INTEGER_SEED}"),
    *[(["run", CONFIG, "--shard", shard], f'--shard: "{shard}", allowed: i/n with 1 <= i <= n <= 100000')
      for shard in ("0/3", "4/3", "x", "", "1", "1/", "1/3/5", "1/0", "-1/3", "1/-3", "1/100001", "1.5/3")],
    (["run", CONFIG, "--shard", "1/3"], "--shard: given without --out, allowed: with --out, since specsim merge needs the counts"),
    (["check", CONFIG, "--shard", "1/3", "--out", "OUT"],
     "--shard: given to specsim check, allowed: specsim run for each shard, then specsim merge, which judges the whole"),
    *[(["run", CONFIG, "--threads", threads], f'--threads: "{threads}", allowed: an integer in [0, 1024]')
      for threads in ("-1", "abc", "1.5", "", "2x", " 2", "1025", "99999999999999999999")],
    (["run", CONFIG, "--threads", "2", "--threads", "3"], "--threads: given more than once, allowed: once"),
    (["run", CONFIG, "--out", ""], '--out: "", allowed: a directory'),
    (["run", CONFIG, "--resume"], "--resume: given without --out, allowed: with --out, where the unfinished run is"),
    (["run", CONFIG, "--out", "OUT", "--resume", "--force"], "--resume: given together with --force, allowed: one of them"),
    (["run", CONFIG, "--trace", "OUT/trace.json"],
     "--trace: given with a config that has no placement, allowed: with placement: {kind: NAME, ...}"),
    (["run", CONFIG, "--trace", ""], '--trace: "", allowed: a file'),
    (["run", CONFIG, "--quiet=yes"], "--quiet: given without a value, or with one that it does not take, allowed: no table, no warnings"),
    # unknown words
    (["run", CONFIG, "--thread-count", "2"],
     f'unknown option "--thread-count" allowed: {OPTIONS}'.replace('" allowed', '", allowed')),
    (["run", CONFIG, "--sed", "2"], f'unknown option "--sed", did you mean "--set"? allowed: {OPTIONS}'),
    (["chekc"], f'specsim: unknown command "chekc", did you mean "check"? allowed: {COMMANDS}'),
    (["simulate"], f'specsim: unknown command "simulate", allowed: {COMMANDS}'),
    (["list", "familys"], 'unknown kind "familys", did you mean "family"? '
                          "allowed: family, transform, context, drafter, verifier, policy, cost, hardware, model, engine, acceptance, placement, scheduler, arrivals, lengths, server_policy, routing, theory, closed_form"),
    (["describe"], "specsim describe needs a NAME, or KIND/NAME, as specsim list prints them"),
    (["describe", "verifier/tokn"], 'unknown part "verifier/tokn", did you mean "verifier/token"? '
                                    "allowed: what specsim list prints, as NAME or KIND/NAME"),
    (["reference", "now"], "too many positional options have been specified on the command line"),
    # theory
    (["theory"], "specsim theory: 0 ways of giving acceptance, allowed: one of --alpha, --alphas, --position-rates, --acceptance-rate, "
                 "--mean-acceptance-length, or --requests"),
    (["theory", "--alpha", "x"], '--alpha: "x", allowed: a number in [0, 1], or a percentage'),
    (["theory", "--alpha", "1.1"], '--alpha: "1.1", allowed: a number in [0, 1], or a percentage'),
    (["theory", "--alpha", "nan"], '--alpha: "nan", allowed: a number in [0, 1], or a percentage'),
    (["theory", "--acceptance-rate", "120%"], '--acceptance-rate: "120%", allowed: a number in [0, 1], or a percentage'),
    (["theory", "--alpha", "0.5", "--draft-length", "65"], '--draft-length: "65", allowed: an integer in [0, 64]'),
    (["theory", "--alpha", "0.5", "--draft-length", "1e9"], '--draft-length: "1e9", allowed: an integer in [0, 64]'),
    (["theory", "--mean-acceptance-length", "x"], '--mean-acceptance-length: "x", allowed: a number in [1, 5]'),
    (["theory", "--alpha", "0.5", "--requests", "0.9:1e400"], '--requests: "1e400", allowed: a number in [1e-06, 1000000000]'),
    (["theory", "--requests", "0.9", "--form", "all"], "--form: given with --requests alone, allowed: with --alpha or another acceptance"),
    (["theory", "--alphas", "0.5,"], '--alphas: "0.5,", allowed: values with commas between'),
    (["theory", "--alphas", "0.5,x"], '--alphas: "x", allowed: numbers in [0, 1] or percentages, with commas between'),
    (["theory", "--position-rates", "0.5,0.7"],
     "--position-rates: 0.7 after 0.5, allowed: rates of all rounds, which cannot rise from one position to the next (those of "
     "rounds that reached the position can, and are given as such)"),
    (["theory", "--requests", "0.9:1,"], '--requests: "0.9:1,", allowed: values with commas between'),
    (["theory", "--requests", "0.9:"], '--requests: "", allowed: a number in [1e-06, 1000000000]'),
    (["theory", "--requests", "0.9:0"], '--requests: "0", allowed: a number in [1e-06, 1000000000]'),
    (["theory", "--requests", "0.9:1:2"], '--requests: "1:2", allowed: a number in [1e-06, 1000000000]'),
    # compare
    (["compare", "--alpha", "1"], '--alpha: "1", allowed: a number in [0.01, 0.99]'),
    (["compare", "--alpha", "0.5", "configs/examples/methods/trees.yaml"],
     "--alpha: given with a config, whose distributions say the acceptance; allowed: without one"),
    (["compare", "--temperature", "1.5"], '--temperature: "1.5", allowed: a number in [0, 1]'),
    (["compare", "--temperature", "0", "configs/examples/methods/trees.yaml"],
     "--temperature: given with a config, whose pair says it (target_sampling); allowed: without one"),
    (["compare", "--batches", "1,0"], '--batches: "0", allowed: integers in [1, 1000000] with commas between'),
    (["compare", "--batches", "1,4,"], '--batches: "1,4,", allowed: values with commas between'),
    (["compare", "--rounds", "1.5"], '--rounds: "1.5", allowed: an integer in [1, 10000000000000]'),
    (["compare", "--threads", "all"], '--threads: "all", allowed: an integer in [0, 1024]'),
    (["compare", "--rounds", "1000"],
     "--rounds: rounds is 1000, allowed: at least 1024, a sequence of 64 in each of the 16 draws of distributions that errors come from"),
    (["compare", "--print-config", "configs/examples/methods/trees.yaml"], "--print-config: given with a config, allowed: without one, to print the built-in methods"),
    (["compare", "--batches", "4000", "--context", "8192"],
     "the built-in methods: 12 of 12 cells do not fit the GPU, the smallest: batch 4000 at context 8192 needs more memory than there is (target weights 14.96 GiB, "
     "target KV 4000.49 GiB, draft weights 2.30 GiB, draft KV 1000.12 GiB, look-ahead slots 1.22 GiB: 5019.09 of 71.68 GiB), allowed: fewer sequences, shorter contexts, fewer bits, or more tensor_parallel"),
    (["compare", "configs/examples/methods/trees.yaml", "configs/examples/methods/eagle.yaml", "--rounds", "200000"],
     "configs/examples/methods/eagle.yaml:2:1: distributions, seed or rounds of method_eagle are not those of method_trees, allowed among methods that are compared: one pair, context, seed and "
     "number of rounds"),
    # plan
    (["plan"], "specsim plan needs a config, whose distributions say the acceptance, or one of --alpha, --position-rates, --conditional-rates, "
     "--mean-acceptance-length, --acceptance-rate, --acceptance, --trace, --log; specsim plan --help shows examples"),
    (["plan", "--acceptance", "eagel-maths"], '--acceptance: unknown acceptance "eagel-maths", did you mean "eagle-maths"? allowed: <presets of acceptance>, '
     "or the path of a file with acceptance by depth and rank"),
    (["plan", "--acceptance", "eagle-maths", "--alpha", "0.5"], "--acceptance: given together with --alpha, allowed: one figure of acceptance"),
    (["plan", "--alpha", "1.5"], '--alpha: "1.5", allowed: a number in [0, 1], or a percentage'),
    (["compare", "--acceptance", "tests/config/bad/data/acceptance.yaml"],
     "tests/config/bad/data/acceptance.yaml:3:3: acceptance at depth 2 has 2 ranks that sum to 1.2, allowed: 1 to 64 that sum to at most 1"),
    (["compare", "--acceptance", "tests/config/bad/data/no_ranks.yaml"],
     "tests/config/bad/data/no_ranks.yaml:1:9: acceptance at depth 2 has 0 ranks that sum to 0, allowed: 1 to 64 that sum to at most 1"),
    (["plan", "--acceptance-rate", "0.5"], "--acceptance-rate: given without --at-draft-length, allowed: with the draft length that it was measured at"),
    (["plan", "--alpha", "0.5", "--at-draft-length", "3"],
     "--at-draft-length: given without --mean-acceptance-length, --acceptance-rate or --log, allowed: with one of them, measured at this length"),
    (["plan", "--acceptance-rate", "0.723, 0.455", "--at-draft-length", "3"],
     '--acceptance-rate: "0.723, 0.455", allowed: one figure; rates by position are --position-rates, or --conditional-rates where each is of the rounds that reach it'),
    (["plan", "--alpha", "0.5", "--batch", "1,,2"], '--batch: "1,,2", allowed: values with commas between'),
    (["plan", "--alpha", "0.5", "--draft", "none", "--draft-tensor-parallel", "2"],
     "--draft-tensor-parallel: given without a draft model by name, allowed: with --draft NAME; inside the braces of one in braces"),
    (["plan", "--alpha", "0.5", "--trace", "x"], "--trace: given together with --alpha, allowed: one figure of acceptance"),
    (["plan", "--alpha", "0.5", "--hardware", "h100"],
     '--hardware: unknown hardware "h100", did you mean "h100-pcie"? allowed: ' + GPUS),
    (["plan", "--position-rates", "0.5,0.7"],
     "--position-rates: 0.7 after 0.5, allowed: rates of all rounds, which cannot rise from one position to the next (those of "
     "rounds that reached the position can, and are given as such)"),
    (["plan", "--position-rates", "0.5,,0.4"], '--position-rates: "0.5,,0.4", allowed: values with commas between'),
    (["plan", "--mean-acceptance-length", "3"],
     "--mean-acceptance-length: given without --at-draft-length, allowed: with the draft length that it was measured at"),
    (["plan", "--mean-acceptance-length", "9", "--at-draft-length", "4"],
     "--mean-acceptance-length: 9, allowed at draft length 4: 1 to 5 (the target's own token is counted)"),
    (["plan", "--trace", "no.jsonl"], "no.jsonl: cannot be read: no such file or directory, allowed: a readable JSONL file"),
    (["plan", "--alpha", "0.5", "--longest", "65"], '--longest: "65", allowed: an integer in [1, 64]'),
    (["plan", "--alpha", "0.5", "--longest", "2.7"], '--longest: "2.7", allowed: an integer in [1, 64]'),
    (["plan", "--position-rates", "0.7,"], '--position-rates: "0.7,", allowed: values with commas between'),
    (["plan", "--alpha", "0.5", "--tensor-parallel", "4.9"],
     "--tensor-parallel: tensor_parallel is 4.9, allowed: an integer in [1, 64]"),
    (["plan", "--alpha", "0.5", "--set", "cost.target.weight_bits=8", "--target", "llama-2-7b"],
     '--set cost.target.weight_bits: given together with --target, which sets cost.target, allowed: one of them'),
    (["plan", "--alpha", "0.5", "--set", "cost.target=llama-2-7b", "--tensor-parallel", "2"],
     '--set cost.target: given together with --tensor-parallel, which sets cost.target, allowed: one of them'),
    (["plan", "configs/examples/two_gpus.yaml"], 'configs/examples/two_gpus.yaml:21:14: placement "plain", allowed: serial or none, which is what a '
     "plan prices; specsim run compares placements"),
    (["plan", "--alpha", "0.5", "--batch", "0"], '--batch: "0", allowed: integers in [1, 1000000] with commas between'),
    (["plan", "--alpha", "0.5", "--dtype", "fp9"],
     '--dtype: weights is "fp9", did you mean "fp8"? allowed: bf16, fp16, fp8, fp8_block, int8, int4, nvfp4, mxfp4'),
    (["plan", "--alpha", "0.5", "--dtype", "fp8", "--target", "{preset: llama-2-7b}"],
     "--dtype: given with a --target in braces, allowed: inside the braces"),
    (["plan", "--alpha", "0.5", "--hardware", "v100", "--dtype", "bf16"],
     "--dtype: the target's weights of bf16 are multiplied with activations of bf16, arithmetic that NVIDIA V100 32GB SXM does not have, allowed: "
     "weights of fp16 with fp16, fp8 with fp16, int8 with fp16, int4 with fp16, mxfp4 with fp16"),
    (["plan", "--alpha", "0.5", "--engine", "tgi"], '--engine: unknown engine "tgi", allowed: <names of engine>, or the path of a .yaml file'),
    (["plan", CONFIG, "--tensor-parallel", "2"],
     "--tensor-parallel: given with a config but without --target, allowed: with it, or --set cost.target=\"{preset: NAME, ...}\""),
    (["theory", "--alpha", "0.5", "--cost-ratio", "-1"], '--cost-ratio: "-1", allowed: a number in [0, 1000000]'),
    (["theory", "--alpha", "0.5", "--target-to-draft-ratio", "0"], '--target-to-draft-ratio: "0", allowed: a number in [1e-06, 1000000000]'),
    (["theory", "--alpha", "0.5", "--cost-ratio", "0.1", "--target-to-draft-ratio", "10"],
     "--cost-ratio: given together with --target-to-draft-ratio, allowed: one of them"),
    (["theory", "--alpha", "0.5", "--verify-inflation", "nan"], '--verify-inflation: "nan", allowed: a number in [1e-06, 1000000]'),
    (["theory", "--alpha", "0.5", "--overhead", "-1"], '--overhead: "-1", allowed: a number in [0, 1000000]'),
    # pass
    (["calibrate"], "--target is missing; --help shows examples"),
    (CALIBRATE, "--prompts is missing; --help shows examples"),
    (["validate", *CALIBRATE[1:]], "--prompts is missing; --help shows examples"),
    ([*CALIBRATE, "--prompts", "no.jsonl"], "no.jsonl: cannot be read: no such file or directory, allowed: a readable JSONL file"),
    ([*CALIBRATE, "--device", "tpu"], '--device: "tpu", allowed: cpu; on a GPU, calibrate --device cuda measures, and predicts runs of --held-out'),
    (["validate", *CALIBRATE[1:], "--device", "cuda"],
     '--device: "cuda", allowed: cpu; on a GPU, calibrate --device cuda measures, and predicts runs of --held-out'),
    ([*CALIBRATE, "--clock", "cpu"],
     "--clock: cpu with several threads, allowed: --threads 1 (processor time of several adds up, and counts their waiting)"),
    ([*CALIBRATE, "--precision", "int8"], '--precision: "int8", allowed: file, f32, f16, bf16'),
    ([*CALIBRATE, "--drafter", "lookup"], '--drafter: "lookup", allowed: model, argmax, early-exit:N (N layers of the target), {kind: NAME, ...}'),
    ([*CALIBRATE, "--top-p", "0"], '--top-p: "0", allowed: a number in (0, 1]'),
    ([*CALIBRATE, "--min-p", "2"], '--min-p: "2", allowed: a number in [0, 1]'),
    ([*CALIBRATE, "--longest-context", "10"], '--longest-context: "10", allowed: an integer in [32, 10000000]'),
    ([*CALIBRATE, "--batches", "1,4,"], '--batches: "1,4,", allowed: values with commas between'),
    ([*CALIBRATE, "--longest-context", "32", "--draft-lengths", "16"], MODELS + "novels-0.2m-distilled: a context of 32 tokens, allowed with 16 behind the text in a round: at least 48"),
    ([*CALIBRATE, "--peers"], "--peers: given with --device cpu, allowed: with --device cuda"),
    *[([*CALIBRATE, "--device", "cuda", option, value], f"{option}: given with --device cuda, allowed: with --device cpu")
      for option, value in (("--widen", "128"), ("--precision", "f16"), ("--clock", "wall"), ("--laws", "4"), ("--longest-context", "64"))],
    ([*CALIBRATE, "--device", "cuda", "--drafter", "argmax"], '--drafter: "argmax", allowed with --device cuda: model'),
    (["validate", *CALIBRATE[1:], "--prompts", PROMPTS, "--held-out", PROMPTS], PROMPTS + ": prompt 1 is one of --prompts, allowed: others"),
    (["validate", *CALIBRATE[1:], "--prompts", PROMPTS, "--held-out", PROMPTS, "--batches", "128"],
     PROMPTS + ": 100 prompts, allowed for a batch of 128: at least as many"),
    ([*CALIBRATE, "--draft-lengths", "4,65"], '--draft-lengths: "65", allowed: integers in [1, 64] with commas between'),
    (["calibrate", "--target", MODELS + "novels-0.2m-distilled", "--draft", MODELS + "tiny-qwen", "--out", "OUT"],
     MODELS + "tiny-qwen/config.json: vocab_size is 40 and the target's is 2048, allowed: one vocabulary for both"),
    (["calibrate", "--target", "lama-160m", "--draft", "llama-68m", "--out", "OUT"],
     '--target: "lama-160m" is no directory and no known shape, allowed: a directory with config.json and model.safetensors or its index, '
     "a file that ends in .gguf, or a name of configs/models (random weights, for timing alone)"),
    (["calibrate", "--target", "no.gguf", "--draft", "llama-68m", "--out", "OUT"],
     "no.gguf: cannot be read: No such file or directory, allowed: a readable GGUF file"),
    ([*CALIBRATE, "--prompts", PROMPTS, "--overlong", "some"], '--overlong: "some", allowed: error, skip, cut'),
    (["fit", "tests/data/acceptance/trace_t1.jsonl", "--kind", "none"],
     "tests/data/acceptance/trace_t1.jsonl: no request of kind none, allowed: a kind that it has"),
    (["fit", "tests/data/acceptance/lookup_prefixes.jsonl", "--draft-length", "11"],
     "--draft-length: 11, allowed: 1 to 10 (what tests/data/acceptance/lookup_prefixes.jsonl holds)"),
    (["fit", "tests/data/acceptance/rounds_t1.jsonl", "--draft-length", "3"],
     "--draft-length: 3, allowed: 8 (what tests/data/acceptance/rounds_t1.jsonl holds)"),
    (["fit", "tests/data/acceptance/rounds_t1.jsonl", "--held-out", "nowhere.jsonl"],
     "nowhere.jsonl: cannot be read: no such file or directory, allowed: a readable JSONL file"),
    (["kernels"], "specsim kernels needs a table of measured kernels; specsim kernels --help shows examples"),
    (["kernels", "tests/data/pass_times.csv"], "specsim kernels needs --out; specsim kernels --help shows examples"),
    (["kernels", "no.csv", "--out", "nowhere"], "no.csv: cannot be read: no such file or directory, allowed: a readable table of measured kernels, .csv or .csv.xz"),
    ([*PASS, "--kernels", "vlm"], '--kernels: kernels is "vlm", did you mean "vllm"? allowed: automatic, none, vllm, sglang, trtllm'),
    (["pass"], "specsim pass needs --hardware; specsim pass --help shows examples"),
    (["pass", "--hardware", "h100-sxm"], "specsim pass needs --model; specsim pass --help shows examples"),
    (["pass", "--hardware", "h100-smx", "--model", "llama-2-7b"],
     f'--hardware: unknown hardware "h100-smx", did you mean "h100-sxm"? allowed: {GPUS}'),
    ([*PASS, "--tokens", "1,x"], '--tokens: "x", allowed: integers in [1, 1000000] with commas between'),
    ([*PASS, "--tokens", "1,,2"], '--tokens: "1,,2", allowed: values with commas between'),
    ([*PASS, "--tokens", "0"], '--tokens: "0", allowed: integers in [1, 1000000] with commas between'),
    ([*PASS, "--batch", "1.5"], '--batch: "1.5", allowed: integers in [1, 1000000] with commas between'),
    ([*PASS, "--context", "-1"], '--context: "-1", allowed: integers in [0, 10000000] with commas between'),
    ([*PASS, "--tensor-parallel", "3"], "--tensor-parallel: tensor_parallel is 3, allowed: a divisor of the 32 heads"),
    ([*PASS, "--weight-bits", "fp8"], '--weight-bits: weight_bits is "fp8", allowed: a number in [1, 32]'),
    ([*PASS, "--engine", "vlm"], '--engine: unknown engine "vlm", did you mean "vllm"? allowed: <names of engine>, or the path of a .yaml file'),
    ([*PASS, "--logits", "some"], '--logits: "some", allowed: all, none, or an integer in [0, 1000000]'),
    ([*PASS, "--role", "tutor"], '--role: "tutor", allowed: target, draft'),
    (["pass", "--hardware", "h100-sxm", "--model", "eagle-head-7b"],
     "--model: the target is a head that cannot stand alone, allowed: a whole model, or --role draft"),
    # merge
    (["merge"], "--out: missing, allowed: directory for the joined data.csv, counts.csv and manifest.yaml"),
    (["merge", "--out", "OUT"], "specsim merge needs the directories of the shards"),
    (["merge", "no/such", "--out", "OUT"],
     "no/such/manifest.yaml: cannot be read: no such file or directory, allowed: a readable YAML file"),
]


def run(arguments):
    return subprocess.run([SPECSIM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)


def check(arguments, expected, out):
    """What is wrong with the refusal of `arguments`, as a list of texts; `out` must not be there afterwards."""
    result = run(arguments)
    shown = "specsim " + " ".join(arguments)
    problems = []
    if result.returncode != 2:
        problems.append(f"{shown}: exit code {result.returncode}, expected 2")
    if result.stderr.decode(errors="replace") != expected:
        problems.append(f"{shown}:\n  expected {expected!r}\n  got      {result.stderr.decode(errors='replace')!r}")
    if result.stdout:
        problems.append(f"{shown}: standard output has {result.stdout[:200]!r}")
    if out.exists():
        problems.append(f"{shown}: wrote {sorted(p.name for p in out.iterdir())}")
    return problems


@cache
def names_of(kind):
    """The parts of a kind as messages list them."""
    lines = run(["list", kind]).stdout.decode().splitlines()
    return ", ".join(line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   "))


KINDS = ("family", "transform", "context", "drafter", "verifier", "policy", "cost", "hardware", "model", "engine", "placement", "closed_form")


@cache
def presets_of(folder):
    """The presets of configs/models or configs/hardware as messages list them: each file's name, then its aliases."""
    names = []
    for path in sorted(Path("configs", folder).glob("*.yaml")):
        lines = path.read_text().splitlines()
        names += [line.split(":")[1].strip() for line in lines if line.startswith("name: ")] if folder == "models" else [path.stem]
        names += [alias.strip() for line in lines if line.startswith("aliases: ") for alias in line.split("[")[1].split("]")[0].split(",")]
    return ", ".join(names)


def with_names(text):
    text = re.sub("<presets of ([a-z]+)>", lambda match: presets_of(match.group(1)), text)
    return re.sub("<names of ([a-z_]+)>", lambda match: names_of(match.group(1)), text)


def without_names(text):
    """The other way round, longest lists first; a list of fewer than three names may be there by chance."""
    for folder in ("models", "hardware"):
        text = text.replace(presets_of(folder), f"<presets of {folder}>")
    for kind in sorted(KINDS, key=lambda kind: -len(names_of(kind))):
        if names_of(kind).count(", ") >= 2:
            text = text.replace(names_of(kind), f"<names of {kind}>")
    return text


@dataclass
class Case:
    name: str
    recipe: list  # lines between the name and the message
    refused: str
    base: list  # (key, lines)

    def config(self):
        """The bytes of the config."""
        if self.recipe[0].startswith("bytes: "):
            return ast.literal_eval("b" + self.recipe[0][len("bytes: "):])
        if self.recipe[0] == "whole:":
            return "".join(line + "\n" for line in self.recipe[1:]).encode()
        sections = dict(self.base)
        without = [line[len("without: "):] for line in self.recipe if line.startswith("without: ")]
        for key in without:
            del sections[key]
        for key, lines in top_level([line for line in self.recipe if not line.startswith("without: ")]):
            sections[key] = lines
        return "".join(line + "\n" for lines in sections.values() for line in lines).encode()


def top_level(lines):
    """Lines of a config by top-level key."""
    sections = []
    for line in lines:
        if not line.startswith(" "):
            sections.append((line.split(":")[0], []))
        sections[-1][1].append(line)
    return sections


def read_cases(path):
    head, *parts = path.read_text(encoding="utf-8").split("\n=== ")
    base = top_level([line[2:] for line in head.splitlines() if line.startswith("  ")])
    cases = []
    for part in parts:
        recipe, refused = part.rstrip("\n").split("\n--- refused\n")
        name, *lines = recipe.split("\n")
        cases.append(Case(name, lines, refused, base))
    return head, cases


def write_cases(path, head, cases):
    text = head
    for case in cases:
        text += "\n=== " + "\n".join([case.name, *case.recipe]) + "\n--- refused\n" + case.refused + "\n"
    path.write_text(text, encoding="utf-8")


def place(case, scratch):
    path = scratch / "configs" / f"{case.name}.yaml"
    path.write_bytes(case.config())
    return path


def check_case(case, scratch):
    path = place(case, scratch)
    out = scratch / case.name
    return check(["run", str(path), "--out", str(out)], with_names(case.refused).replace("FILE", str(path)) + "\n", out)


def check_line(number, arguments, expected, scratch):
    out = scratch / f"line{number}"
    arguments = [str(out) if a == "OUT" else a for a in arguments]
    if arguments[:1] in (["run"], ["check"]) and "--out" not in arguments and not any(
            word in expected for word in ("without --out", "missing", "given without a value, or with one that it does not take, allowed: path")):
        arguments += ["--out", str(out)]
    return check(arguments, with_names(expected) + "\n", out)


def check_unreadable(scratch):
    """A config that may not be read. Root may read everything, and skips this."""
    path = scratch / "unreadable.yaml"
    path.write_text("experiment: x\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        return []
    out = scratch / "unreadable"
    return check(["run", str(path), "--out", str(out)],
                 f"{path}: cannot be read: permission denied, allowed: a readable YAML file\n", out)


def check_no_file(scratch):
    """No command, and configs that are no plain file."""
    problems = []
    result = run([])
    if result.returncode != 2 or result.stdout or b"usage: specsim COMMAND" not in result.stderr:
        problems.append(f"specsim alone: exit code {result.returncode}, {result.stderr!r}")
    text = Path(CONFIG).read_bytes()
    result = subprocess.run([SPECSIM, "run", "/dev/stdin", "--set", "rounds=100"], input=text, capture_output=True, timeout=60)
    if result.returncode != 0 or result.stderr:
        problems.append(f"a config from a pipe: exit code {result.returncode}, {result.stderr!r}")
    if stat.S_ISCHR(os.stat("/dev/null").st_mode):
        out = scratch / "null"
        problems += check(["run", "/dev/null", "--out", str(out)], "/dev/null: the file is empty, allowed: one YAML document\n", out)
    return problems


def check_good(path):
    """Unusual but right configs are taken."""
    result = run(["run", str(path), "--set", "rounds=100"])
    refused = result.returncode != 0 or result.stderr
    return [f"{path} was refused: {result.stderr.decode(errors='replace')}"] if refused else []


def check_warnings(scratch):
    """What a cost model warns of is said once for all cells, and not at all with --quiet."""
    path = scratch / "larger.yaml"
    path.write_text(Path(CONFIG).read_text() + "cost: {model: roofline, hardware: rtx-3090, target: llama-3.2-1b, draft: llama-2-7b}\n"
                    "sweep:\n  workload.batch: [1, 2, 4]\n")
    expected = ["warning: NVIDIA GeForce RTX 3090: its figures are from memory, nobody has checked them",
                "warning: the draft (llama-2-7b, 6.74B) is larger than the target (llama-3.2-1b, 1.24B)"]
    problems = []
    for more, lines in (([], expected), (["--quiet"], [])):
        result = run(["run", str(path), "--set", "rounds=100", *more])
        if result.returncode != 0 or result.stderr.decode().splitlines() != lines:
            problems.append(f"a draft larger than its target {more}: exit code {result.returncode}, {result.stderr.decode()!r}")
    return problems


def update(tables, scratch):
    for path in tables:
        head, cases = read_cases(path)
        for case in cases:
            config = place(case, scratch)
            result = run(["run", str(config)])
            if result.returncode != 2:
                print(f"{path}: {case.name}: exit code {result.returncode}, its message stays", file=sys.stderr)
                continue
            case.refused = without_names(result.stderr.decode().rstrip("\n").replace(str(config), "FILE"))
        write_cases(path, head, cases)
    return 0


def main(arguments):
    if arguments not in ([], ["--update"]):
        print(__doc__)
        return 2
    tables = sorted(BAD.glob("*.cases"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        scratch = Path(folder)
        (scratch / "configs").mkdir()
        if arguments:
            return update(tables, scratch)
        cases = [case for path in tables for case in read_cases(path)[1]]
        problems = [f"{case.name} is the name of two cases" for i, case in enumerate(cases) if case.name in {c.name for c in cases[:i]}]
        if len(cases) < 300:
            problems.append(f"only {len(cases)} bad configs")
        jobs = [pool.submit(check_case, case, scratch) for case in cases]
        jobs += [pool.submit(check_line, n, line, text, scratch) for n, (line, text) in enumerate(LINES)]
        jobs += [pool.submit(check_good, path) for path in sorted(GOOD.glob("*.yaml"))]
        jobs += [pool.submit(check_unreadable, scratch), pool.submit(check_no_file, scratch),
                 pool.submit(check_warnings, scratch)]
        for job in jobs:
            problems += job.result()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(cases)} bad configs, {len(LINES)} bad command lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
