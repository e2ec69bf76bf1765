#!/usr/bin/python3
"""Measures what context process `text` reproduces: acceptance by depth of EAGLE's heads, and every method on a record of real models.

    scripts/results/along_texts.py SPECSIM OUT    writes OUT/along_texts.csv, OUT/along_texts.md, OUT/along_texts.manifest.yaml

Heads: for each pair, the draft's `value` is fitted to the acceptance at depth 0 at temperature 0, and `drift` to a chain of five. The rest is
predicted.

Record: `specsim calibrate` keeps the distributions of two small models along 100 texts. `specsim fit` derives scales, spreads, persistence and
the share between requests from them. The tokens of methods on the recorded distributions are compared with those of the fit, and with the
same pair without memory.

Values are means over seeds, since 256 contexts leave a random error of .02 in acceptance.
"""
import itertools
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from calls import called, version_of
from language import EAGLE_TREE, argmaxes, chain, chains, tree
from tables import rows_of, write_lines

SEEDS = 8
ROUNDS = 100000
MODELS = "tests/data/models"
RECORD = ["--target", f"{MODELS}/novels-5m", "--draft", f"{MODELS}/novels-0.7m-distilled", "--drafter", "model", "--laws", "200", "--draft-lengths",
          "4", "--batches", "1", "--prompts", "tests/data/prompts/held_out.jsonl", "--temperatures", "1", "--tokens", "48", "--repetitions", "1",
          "--threads", "1"]
# `flat head` of language.py, which differs from `head` only at temperature 1.
HEAD = ("vocab: 1000, target: {family: normal_logits, sigma: 12, spread: 0.4}, "
        "draft: {from: {from: target, transform: logit_noise, value: %r, spread: 1}, transform: temperature, value: 1.7}")
# Li et al. (EAGLE), arXiv 2401.15077, Tables 2 and 5, MT-bench: n-alpha and the tree at temperatures 0 and 1; the measured chain of five.
HEADS = {
    "Vicuna-7B": {0: ((0.79, 0.74, 0.72, 0.73, 0.67), 3.94), 1: ((0.71, 0.68, 0.66, 0.66, 0.65), 3.17), "chain": 3.20},
    "LLaMA2-Chat-7B": {0: ((0.76, 0.69, 0.67, 0.68, 0.68), 3.62), 1: ((0.71, 0.66, 0.66, 0.66, 0.64), 3.30), "chain": 3.00},
    "LLaMA2-Chat-70B": {0: ((0.75, 0.69, 0.65, 0.64, 0.64), 3.81), 1: ((0.73, 0.67, 0.64, 0.66, 0.65), 3.46), "chain": 3.12},
}


def tokens_per_round(specsim, pair, context, methods, beside=None):
    """The mean of each method over seeds, and its standard error. `beside`: the folder of a file that the context names."""
    seeds = SEEDS
    text = (f"experiment: along_texts\nrounds: {ROUNDS}\npair: {{{pair}}}\ncontext: {context}\ndecode: {methods[0]}\n"
            f"sweep:\n  seed: {list(range(1, seeds + 1))}\n  decode:\n" + "".join(f"    - {method}\n" for method in methods))
    with tempfile.TemporaryDirectory() as folder:
        config = Path(beside or folder) / "config.yaml"
        config.write_text(text)
        # Runs in that folder, since random numbers depend on the file's name as it is given.
        done = subprocess.run([Path(specsim).resolve(), "run", "config.yaml", "--out", f"{folder}/out", "--quiet"], capture_output=True, text=True,
                              cwd=config.parent)
        if done.returncode != 0:
            raise RuntimeError(f"{done.stderr}\n{text}")
        found = [float(row["tokens_per_round"]) for row in rows_of(f"{folder}/out/data.csv")]
    columns = [found[i::len(methods)] for i in range(len(methods))]
    means = [sum(column) / seeds for column in columns]
    return [(mean, math.sqrt(sum((x - mean) ** 2 for x in column) / max(seeds * (seeds - 1), 1))) for mean, column in zip(means, columns)]


def crossing(off, low, high):
    """Root of off, which falls: false position, with the weight of an unchanged end halved each time."""
    ends, values = [low, high], [off(low), off(high)]
    for _ in range(12):
        middle = ends[0] + (ends[1] - ends[0]) * values[0] / (values[0] - values[1])
        gap = off(middle)
        if abs(gap) < 0.002:
            break
        side = 0 if gap > 0 else 1
        ends[side], values[side], values[1 - side] = middle, gap, values[1 - side] / 2
    return middle


def cold(pair, temperature):
    return pair + (", target_sampling: {temperature: 0}" if temperature == 0 else "")


def by_depth(specsim, pair, context, temperature):
    """Acceptance at depths 0 to 4, given that the depth is reached, and tokens per round of the chain of five."""
    one = argmaxes if temperature == 0 else chain
    tokens = [1.0] + [mean for mean, _ in tokens_per_round(specsim, cold(pair, temperature), context, [one(k) for k in range(1, 6)])]
    gains = [1.0] + [b - a for a, b in itertools.pairwise(tokens)]
    return [b / a for a, b in itertools.pairwise(gains)], tokens[-1]


def heads(specsim):
    rows = []
    for name, published in HEADS.items():
        alphas, _ = published[0]
        wanted = 1 + sum(math.prod(alphas[:k]) for k in range(1, 6))
        value = crossing(lambda x: tokens_per_round(specsim, cold(HEAD % x, 0), "{process: text}", [argmaxes(1)])[0][0] - 1 - alphas[0], 0.2, 5.0)
        pair = HEAD % round(value, 4)
        tiring = "{process: text, drift: %r, depths: 5}"
        drift = crossing(lambda x: tokens_per_round(specsim, cold(pair, 0), tiring % x, [argmaxes(5)])[0][0] - wanted, 0.01, 4.0)
        for temperature in (0, 1):
            recorded, of_tree = published[temperature]
            found, _ = by_depth(specsim, pair, tiring % round(drift, 4), temperature)
            for depth, (one, other) in enumerate(zip(recorded, found)):
                rows.append((name, temperature, f"{depth}-alpha", one, other, "fitted" if temperature == 0 and depth == 0 else "predicted"))
            siblings = "top_k" if temperature == 0 else "without_replacement"
            method = tree(f"paths: {EAGLE_TREE}", siblings)
            (of_text, _), = tokens_per_round(specsim, cold(pair, temperature), tiring % round(drift, 4), [method])
            rows.append((name, temperature, "chain of 5 by its n-alpha", 1 + sum(math.prod(recorded[:k]) for k in range(1, 6)),
                         1 + sum(math.prod(found[:k]) for k in range(1, 6)), "predicted" if temperature else "fitted"))
            if temperature == 0:
                rows.append((name, 0, "chain of 5, measured", published["chain"], 1 + sum(math.prod(found[:k]) for k in range(1, 6)), "predicted"))
            rows.append((name, temperature, "EAGLE's tree of 25", of_tree, of_text, "predicted"))
        rows.append((name, "", "value", "", round(value, 3), "fitted"))
        rows.append((name, "", "drift", "", round(drift, 3), "fitted"))
    return rows


def methods_on_record():
    lenient = [(f"chain of 4, lenience {share}", chain(4, f"{{kind: lenience, lenience: {share}}}")) for share in (0.5, 0.3, 0.1)]
    drawn = [(f"tree 3 2 1 1, {how.replace('_', ' ')}", tree("branching: [3, 2, 1, 1]", how)) for how in ("sampled", "without_replacement", "top_k")]
    return [*((f"chain of {k}", chain(k)) for k in (1, 2, 4, 8)), *((f"chain of {k}, block", chain(k, "block")) for k in (4, 8)), *lenient, *drawn,
            *((f"{n} siblings", chains(n, 1, "without_replacement")) for n in (2, 4, 8))]


def record(specsim):
    """The fitted parameters, and for each method: on the recorded distributions, on those fitted to them, and on these without memory."""
    with tempfile.TemporaryDirectory() as folder:
        called(specsim, "calibrate", *RECORD, "--out", f"{folder}/made")
        distributions = f"{folder}/made/distributions_t1.jsonl"
        called(specsim, "fit", distributions, "--out", f"{folder}/fit")
        lines = Path(f"{folder}/fit/spread.yaml").read_text().splitlines()
        pair = ", ".join(line.strip() for line in lines if line.startswith(("  vocab:", "  target:", "  draft:")))
        context = next(line for line in lines if line.startswith("context: ")).removeprefix("context: ")
        vocab = pair.split(",")[0]
        names, methods = zip(*methods_on_record())
        recorded = tokens_per_round(specsim, f"{vocab}, target: {{family: uniform}}, draft: {{family: uniform}}",
                                    "{process: trace, file: distributions_t1.jsonl}", methods, f"{folder}/made")
        rows = []
        for kind, of in (("text as fitted", context), ("the same pair, iid", "{process: iid, pool: 1024}")):
            for name, (truth, _), (mean, error) in zip(names, recorded, tokens_per_round(specsim, pair, of, methods)):
                rows.append((kind, 1, name, truth, mean, f"+- {error:.4f}"))
    return f"{pair}; context: {context}", rows


def main():
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    fitted, on_record = record(specsim)
    rows = heads(specsim) + on_record
    write_lines(out / "along_texts.csv", ["of", "temperature", "figure", "recorded", "simulated", "role"],
                ((*row[:3], *(f"{x:.4f}" if isinstance(x, float) else x for x in row[3:5]), row[5]) for row in rows))
    with open(out / "along_texts.md", "w") as file:
        file.write(f"Fitted to the record: {fitted}.\n\n| of | temperature | figure | recorded | simulated | |\n" + "|---" * 6 + "|\n")
        for name, temperature, figure, recorded, simulated, role in rows:
            off = f" ({100 * (simulated / recorded - 1):+.1f} %)" if recorded and role != "fitted" else ""
            file.write(f"| {name} | {temperature} | {figure} | {f'{recorded:.3f}' if recorded else ''} | {simulated:.3f}{off} | {role} |\n")
    (out / "along_texts.manifest.yaml").write_text(
        f"program: {version_of(specsim)}\ncommand: scripts/results/along_texts.py SPECSIM results/language\nrecord: specsim calibrate {' '.join(RECORD)}\nseeds: 1 to {SEEDS}\nrounds: {ROUNDS}\n")


if __name__ == "__main__":
    main()
