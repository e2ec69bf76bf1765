#!/usr/bin/python3
"""Measures tokens per round of methods on real models and held-out text.

    scripts/results/real_methods.py SPECSIM OUT    writes OUT/methods.csv, OUT/methods.md, and a folder for each method
"""
import json
import math
import subprocess
import sys
from pathlib import Path

from tables import write_lines

MODELS = "tests/data/models"
DRAFT = ["--draft", f"{MODELS}/novels-0.7m-distilled"]
METHODS = [  # name, drafter, its draft model, most rows per target pass
    ("chain of 4", ["--drafter", "model", "--draft-lengths", "4", "--batches", "1"], DRAFT, 5),
    ("chain of 4, block", ["--drafter", "model", "--verifier", "block", "--draft-lengths", "4", "--batches", "1"], DRAFT, 5),
    ("chain of 4 argmaxes", ["--drafter", "argmax", "--draft-lengths", "4", "--batches", "1"], DRAFT, 5),
    ("tree 3 2 1 1, with replacement", ["--drafter", "{kind: tree_static, branching: [3, 2, 1, 1]}"], DRAFT, 22),
    ("tree 3 2 1 1, without", ["--drafter", "{kind: tree_static, branching: [3, 2, 1, 1], siblings: without_replacement}"], DRAFT, 22),
    ("tree 3 2 1 1, likeliest", ["--drafter", "{kind: tree_static, branching: [3, 2, 1, 1], siblings: top_k}"], DRAFT, 22),
    ("EAGLE-2's tree", ["--drafter", "{kind: tree_dynamic, depth: 4, width: 5, nodes: 21}"], DRAFT, 22),
    ("early exit after layer 2, 4 tokens", ["--drafter", "early-exit:2", "--draft-lengths", "4", "--batches", "1"], [], 5),
    ("prompt lookup", ["--drafter", "{kind: prompt_lookup, draft_length: 4}"], [], 5),
    ("suffix", ["--drafter", "{kind: suffix, draft_length: 4}"], [], 5),
    ("Lookahead's pool from the text", ["--drafter", "{kind: lookahead, window: 0, ngram: 5, guesses: 5}"], [], 21),
    ("Lookahead, window 15", ["--drafter", "{kind: lookahead, window: 15, ngram: 5, guesses: 5}"], [], 21 + 60),
]


def folder_of(name):
    return name.replace(",", "").replace("'", "").replace(" ", "_").lower()


def run(specsim, drafter, draft, folder, prompts="tests/data/prompts/held_out.jsonl", seed=()):
    subprocess.run([specsim, "calibrate", "--target", f"{MODELS}/novels-5m", *draft, *drafter, "--prompts", prompts, *seed,
                    "--temperatures", "0,1", "--tokens", "48", "--repetitions", "1", "--threads", "1", "--out", str(folder)],
                   check=True, stdout=subprocess.DEVNULL)


def tokens_per_round(path):
    """Ratio of sums over requests, with its standard error (the delta method)."""
    requests = [json.loads(line)["rounds"] for line in open(path)]
    rounds = sum(len(one) for one in requests)
    mean = sum(sum(one) + len(one) for one in requests) / rounds
    squares = sum((sum(one) + len(one) - mean * len(one)) ** 2 for one in requests)
    return mean, math.sqrt(squares * len(requests) / (len(requests) - 1)) / rounds


def main():
    specsim, out = sys.argv[1], Path(sys.argv[2])
    rows = []
    for name, drafter, draft, target_rows in METHODS:
        folder = out / folder_of(name)
        run(specsim, drafter, draft, folder)
        row = {"method": name, "target_rows": target_rows}
        for temperature in (0, 1):
            row[f"tokens_per_round_t{temperature}"], row[f"se_t{temperature}"] = tokens_per_round(folder / f"rounds_t{temperature}.jsonl")
        rows.append(row)
        for file in folder.iterdir():  # the time of a single repetition is not reliable
            if file.name not in ("manifest.yaml", "rounds_t0.jsonl", "rounds_t1.jsonl"):
                file.unlink()
    write_lines(out / "methods.csv", rows[0], ([value if isinstance(value, (str, int)) else f"{value:.5g}" for value in row.values()] for row in rows))
    lines = ["| method | rows of the target a round, at most | tokens per round, temperature 0 | temperature 1 |", "|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['method']} | {row['target_rows']} | " + " | ".join(
            f"{row[f'tokens_per_round_t{t}']:.2f} ± {1.96 * row[f'se_t{t}']:.2f}" for t in (0, 1)) + " |")
    (out / "methods.md").write_text("\n".join(lines) + "\n")
    print(f"wrote {out}/methods.md")


if __name__ == "__main__":
    main()
