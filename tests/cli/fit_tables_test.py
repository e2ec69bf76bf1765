#!/usr/bin/env python3
"""specsim fit of tables of acceptance. The fit recovers a known draft from the simulator's own acceptance. run and compare accept spread.yaml and
reproduce the table's acceptance. Bad tables are refused with their place.
"""
import csv
import itertools
import os
import subprocess
import tempfile
from pathlib import Path

SPECSIM = os.environ["SPECSIM"]
SEEDS = 8
TRUTH = {"value": 1.2, "spread": 1.1, "drift": 0.6}
PAIR = "{vocab: 1000, target: {family: normal_logits, sigma: 8, spread: 0.4}, draft: {from: target, transform: logit_noise, value: %(value)s, spread: %(spread)s}, target_sampling: {temperature: 0}}"


def call(*arguments):
    return subprocess.run([SPECSIM, *map(str, arguments)], capture_output=True, text=True)


def chain(length):
    return f"{{drafter: {{kind: chain, draft_length: {length}, selection: argmax}}, verifier: token}}"


def siblings(count):
    return f"{{drafter: {{kind: tree_static, branching: [{count}], siblings: top_k}}, verifier: tree_point_mass}}"


def tokens_per_round(folder, head, methods, seeds):
    config = folder / "made.yaml"
    config.write_text(f"experiment: made\nrounds: 20000\n{head}\ndecode: {methods[0]}\nsweep:\n  seed: {list(range(1, seeds + 1))}\n  decode:\n"
                      + "".join(f"    - {method}\n" for method in methods))
    done = call("run", config, "--out", folder / "made", "--force", "--quiet")
    assert done.returncode == 0, done.stderr
    with open(folder / "made/data.csv", newline="") as file:
        found = [float(row["tokens_per_round"]) for row in csv.DictReader(file)]
    return [found[i::len(methods)] for i in range(len(methods))]


def mean(values):
    return sum(values) / len(values)


def error(values):
    return (sum((x - mean(values)) ** 2 for x in values) / (len(values) - 1) / len(values)) ** 0.5


def parameter(output, name):
    """A parameter's value, the error from the fit's own contexts, and its change per .01 of the table's value."""
    words = next(line for line in output.splitlines() if line.startswith(name)).removeprefix(name).split()
    return [float(word) if word != "-" else None for word in words[:3]]


def pair_of(folder):
    """Returns the part of spread.yaml before its methods."""
    text = (folder / "spread.yaml").read_text()
    return text[text.index("pair:"):text.index("decode:")]


def by_depth(tokens):
    gains = [1.0] + [b - a for a, b in itertools.pairwise([1.0] + tokens)]
    return [b / a for a, b in itertools.pairwise(gains)]


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    # The simulator's own acceptance: chains of 1 to 4 by depth, 1 to 3 siblings by rank.
    columns = tokens_per_round(folder, f"pair: {PAIR % TRUTH}\ncontext: {{process: text, drift: {TRUTH['drift']}, depths: 4}}",
                               [chain(1), chain(2), chain(3), chain(4), siblings(2), siblings(3)], SEEDS)
    rates = by_depth([mean(column) for column in columns[:4]])
    ladder = [mean(columns[i]) - 1 for i in (0, 4, 5)]
    ranks = [ladder[0], ladder[1] - ladder[0], ladder[2] - ladder[1]]
    table = folder / "table.yaml"
    table.write_text(f"temperature: 0\nacceptance:\n  - {[round(x, 6) for x in ranks]}\n" + "".join(f"  - {rate:.6f}\n" for rate in rates[1:]))
    done = call("fit", table, "--out", folder / "fit")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    noise = {"value": error(columns[0]), "spread": error(columns[5]), "drift": error(columns[3]) / 2}
    for what, label in (("value", "draft: value"), ("spread", "draft: spread"), ("drift", "text: drift")):
        value, own, per_point = parameter(done.stdout, label)
        of_table = abs(per_point) * noise[what] / 0.01
        assert abs(value - TRUTH[what]) < 4 * (own ** 2 + of_table ** 2) ** 0.5 + 0.02, (what, value, own, of_table, done.stdout)
        assert own < 0.1, (what, own)
    assert "target: sigma" in done.stdout and done.stdout.count("default, not determined by the table") == 4, done.stdout
    assert "worst miss: " in done.stdout, done.stdout

    # `run` accepts the experiment that `fit` writes, without changes.
    text = (folder / "fit/spread.yaml").read_text()
    assert "tree_dynamic" in text and "Omitted" not in text, text
    for arguments in (("run", folder / "fit/spread.yaml", "--dry-run"), ("compare", folder / "fit/spread.yaml", "--quiet")):
        done = call(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)

    # EAGLE's table by its name: the fit reproduces its depths.
    done = call("fit", "eagle-vicuna-7b-chat", "--out", folder / "eagle")
    assert done.returncode == 0, done.stderr
    assert "warning: the table does not determine the acceptance of the draft's later ranks" in done.stderr, done.stderr
    text = (folder / "eagle/spread.yaml").read_text()
    assert "tree_dynamic, depth" not in text and "# Omitted: trees of likeliest tokens" in text, text
    start = text.index("pair:")
    found = tokens_per_round(folder, text[start:text.index("decode:")], [chain(k) for k in range(1, 6)], SEEDS)
    for rate, one in zip((0.79, 0.74, 0.72, 0.73, 0.67), by_depth([mean(column) for column in found])):
        assert abs(rate - one) < 0.05, (rate, one)

    # If no table gives a temperature, the output reports an assumed one.
    done = call("fit", "medusa-vicuna-7b")
    assert done.returncode == 0 and "temperature 0, assumed, since the table does not state it" in done.stdout, (done.stdout, done.stderr)
    # Mutant: ranks that the fit ignores.
    alone = folder / "alone.yaml"
    alone.write_text("[0.56, 0.316]\n")
    one = call("fit", alone)
    assert parameter(done.stdout, "draft: spread")[0] > parameter(one.stdout, "draft: spread")[0] + 0.3, (done.stdout, one.stdout)

    # A vLLM log at temperature 1: its drafts are the argmax, and a chain of them emits 2.83 tokens per round.
    log = folder / "log.yaml"
    log.write_text("temperature: 1\nrates: [0.78, 0.60, 0.45]\n")
    done = call("fit", log, "--out", folder / "log")
    assert done.returncode == 0, done.stderr
    assert "selection argmax, assumed, as vLLM, SGLang and llama.cpp draft by default" in done.stdout, done.stdout
    columns = tokens_per_round(folder, pair_of(folder / "log"), [chain(3), "{drafter: {kind: chain, draft_length: 3}, verifier: token}"], SEEDS)
    assert abs(mean(columns[0]) - 2.83) < 0.03 and 3.0 < mean(columns[1]) < 3.5, (mean(columns[0]), mean(columns[1]))  # mutant: 2.22 and 2.81
    assert call("compare", folder / "log/spread.yaml", "--rounds", "2000", "--quiet").returncode == 0
    # The same table with the draft's likeliest tokens named explicitly, above the rates that sigma 8 allows for any draft.
    log.write_text("temperature: 1\ntop_k: [[0.84], [0.81], [0.60]]\n")
    done = call("fit", log, "--out", folder / "sure")
    assert done.returncode == 0 and parameter(done.stdout, "draft: value")[0] == 0.8 and parameter(done.stdout, "target: sigma")[0] > 15, done.stdout
    columns = tokens_per_round(folder, pair_of(folder / "sure"), [chain(1), chain(3), "{drafter: {kind: chain, draft_length: 3}, verifier: token}"], SEEDS)
    assert abs(mean(columns[0]) - 1.84) < 0.02 and abs(mean(columns[1]) - 2.929) < 0.03 and mean(columns[2]) < 3.5, columns  # mutant: 3.97
    # Only its mean length, as SGLang prints it, or its mean lengths at several draft lengths, which determine the rates.
    log.write_text("temperature: 1\nmean_acceptance_length: 2.83\ndraft_length: 3\n")
    done = call("fit", log)
    assert done.returncode == 0 and "rates by depth are derived from mean tokens per round, with the target's own token counted: 2.83 at draft length 3" in done.stdout, done
    assert "chain of 3, tokens per round 2.8300 2.8300" in " ".join(done.stdout.split()), done.stdout
    for command in (("plan", "--acceptance"), ("compare", "--batches", "1", "--rounds", "2000", "--acceptance")):
        done = call(*command, log)
        assert done.returncode == 0 and "2.83" in done.stdout, done
    log.write_text("temperature: 1\nmean_acceptance_length: [1.78, 2.38, 2.83]\ndraft_length: [1, 2, 3]\n")
    assert "depth 2, rank 1 0.7692" in " ".join(call("fit", log).stdout.split())
    # If rates rise with depth, `fit` also fits the persistence, reports this, and the simulator reproduces the rates.
    log.write_text("temperature: 0\nrates: [0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365]\n")
    done = call("fit", log, "--out", folder / "mtp")
    assert done.returncode == 0 and "fitted too: persistence and the draft's spread, since rates rise with depth" in done.stdout, done
    columns = tokens_per_round(folder, pair_of(folder / "mtp"), [chain(1), chain(8)], 2 * SEEDS)
    assert abs(mean(columns[1]) - 4.496) < 4 * error(columns[1]), (mean(columns[1]), error(columns[1]))
    assert mean(columns[1]) > 4.2 and abs(mean(columns[0]) - 1.834) < 0.04, columns  # mutants: 3.83; 1.76, the first of the rates
    # If the target is missed by less than a tenth, `fit` reports the gap and still writes the fit.
    log.write_text("temperature: 1\nselection: sampled\nacceptance: [0.70, 0.74, 0.76]\n")
    done = call("fit", log, "--out", folder / "missed")
    missed = "chain of 3, tokens per round is 2.6117 in the table, and at most 2.59"
    assert done.returncode == 0 and f"warning: not matched: {missed}" in done.stderr and "spread.yaml for specsim run" in done.stdout, done
    assert f"# Not matched: {missed}" in (folder / "missed/spread.yaml").read_text()
    # A target that cannot be reached ends with status 2 like other bad input: the message gives what can be reached, and no file is written.
    log.write_text("temperature: 1\nrates: [0.9995]\n")
    done = call("fit", log, "--out", folder / "unmet")
    assert done.returncode == 2 and f"{log}:2:8: not matched: rank 1 at depth 1 is 0.9995 in the table, and at most 0.99" in done.stderr, done
    assert "worst miss" in done.stdout and not (folder / "unmet/spread.yaml").exists(), done
    # A table by depth alone, as in papers, may be of either selection.
    log.write_text("temperature: 1\nacceptance: [0.7, 0.65]\n")
    done = call("fit", log)
    assert done.returncode == 2 and done.stderr.startswith(f"{log}:2:13: acceptance at temperature 1 of chosen drafts, or of drawn"), done
    for word in ("argmax", "sampled"):
        log.write_text(f"temperature: 1\nselection: {word}\nacceptance: [0.62, 0.55]\n")
        done = call("fit", log)
        assert done.returncode == 0 and f"selection {word}, as the table states" in done.stdout, done
    done = call("compare", "--acceptance", "eagle-vicuna-7b-chat-t1", "--batches", "1", "--rounds", "2000")
    assert done.returncode == 0 and "chain draft_length 3 | token" in done.stdout and "selection argmax |" not in done.stdout, done.stdout

    bad = folder / "bad.yaml"
    for text, message in (("acceptance:\n  - 0.5\n  - 1.5\n", ":3:5: acceptance is 1.5, allowed: a number in [0, 1], or a percentage"),
                          ("temperature: warm\nacceptance: [0.5]\n", ':1:14: temperature is "warm", allowed for a fit: a number in [0, 10], or unknown'),
                          ("depth: [0.5]\n", ':1:1: unknown key "depth"'), ("acceptance: [[]]\n", ":1:14: acceptance at depth 1 is an empty list")):
        bad.write_text(text)
        done = call("fit", bad)
        assert done.returncode == 2 and done.stderr.startswith(str(bad) + message) and done.stdout == "", (text, done)

    # Overlaps alone do not determine the target's sigma: the fit reports this and omits results that depend on sigma.
    done = call("fit", "tests/data/acceptance/trace_t1.jsonl", "--out", folder / "overlaps")
    assert done.returncode == 0 and "warning: the target's sigma was not recorded" in done.stderr, (done.stdout, done.stderr)
    text = (folder / "overlaps/spread.yaml").read_text()
    assert "# Omitted: trees of likeliest tokens" in text and "tree_dynamic, depth" not in text and "without_replacement" in text, text
print("tables of acceptance come back as distributions")
