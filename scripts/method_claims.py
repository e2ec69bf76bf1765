#!/usr/bin/python3
"""Judges what public texts on speculative decoding claim about methods: the variants they name (L8), adaptive lengths and trees (M14).

usage: scripts/method_claims.py SPECSIM OUT    (from the repository's root: scripts/method_claims.py build/specsim results/method_claims)

Runs `specsim compare` on configs/method_claims, and writes to OUT
  variants/, adaptive/, trees/   rankings of each, drawn
  method_claims.md               the verdicts; intervals hold at 99 %
"""
import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

CONFIGS = Path("configs/method_claims")
T99_OF = {31: 2.744, 13: 3.055}  # Student's t, two-sided 99 %, by pieces of a run: 30 and 12 degrees of freedom


def compare(specsim, config, out):
    done = subprocess.run([specsim, "compare", str(config), "--out", str(out)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"method_claims: specsim compare {config}: {done.stdout}{done.stderr}")
    with open(out / "ranking.csv", newline="") as file:
        return list(csv.DictReader(file))


def rank(specsim, name, out):
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    rows = compare(specsim, CONFIGS / f"{name}.yaml", folder)
    subprocess.run([str(Path(__file__).parent / "plot_compare.py"), str(folder)], check=True)
    return rows


def of(rows, batch, wanted=lambda row: True):
    """Rows of one batch that are wanted, fastest first."""
    return [row for row in rows if row["workload"].startswith(f"batch {batch},") and wanted(row)]


def duel(specsim, name, first, second):
    """By how many percent method `first` (a row) is faster than `second`, alone against each other, and half a paired interval."""
    config = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    decodes = config["sweep"]["decode"]
    batches = config["sweep"]["workload.batch"]
    config["sweep"] = {"decode": [decodes[int(row["cell"]) // len(batches)] for row in (first, second)]}
    config["workload"]["batch"] = int(first["workload"].split()[1].rstrip(","))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "duel.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        winner, loser = compare(specsim, path, Path(folder) / "out")
    sign = 1 if winner["method"] == first["method"] else -1
    pieces = -(-config["rounds"] // (64 * 256))
    ratio = 1 - float(loser["behind"])
    gain = 100 * (1 / ratio - 1) if sign > 0 else 100 * (ratio - 1)
    error = 100 * T99_OF[pieces] * float(loser["behind_se"]) * (1 / ratio**2 if sign > 0 else 1)
    return gain, error


def text(gain):
    return f"{gain[0]:+.1f} ± {gain[1]:.1f} %"


def speed(row):
    return f"{float(row['speedup']):.2f} ({float(row['tokens_per_round']):.2f} tokens/round)"


def verdict(pays):
    """Of batch -> whether it pays."""
    good = [str(batch) for batch, yes in pays.items() if yes]
    return "true" if len(good) == len(pays) else f"true at batch {', '.join(good)} of {', '.join(map(str, pays))}" if good else "refuted"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    variants, adaptive, trees = (rank(specsim, name, out) for name in ("variants", "adaptive", "trees"))

    lines = ["| id | the claim | verdict | figures |", "|---|---|---|---|"]
    first, last = of(variants, 1), of(variants, 32)
    losers = ", ".join(row["method"].split()[0] for row in last if float(row["speedup"]) < 1)
    lines.append(f"| L8 | variants: Medusa, EAGLE, Lookahead, trees | each runs as its own algorithm | of {len(first)} methods on one text that repeats itself "
                 f"in part: at batch 1 {speed(first[0])} for {first[0]['method'].split(' | ')[0]}, {speed(first[-1])} for the last, {first[-1]['method'].split(' | ')[0]}; "
                 f"at batch 32 below plain decoding: {losers or 'none'} |")

    figures, pays = [], {}
    for batch in (1, 32):
        fixed = of(adaptive, batch, lambda row: row["method"].count("|") == 1)[0]
        policies = of(adaptive, batch, lambda row: row["method"].count("|") > 1 and "oracle" not in row["method"])
        oracle = of(adaptive, batch, lambda row: "oracle" in row["method"])[0]
        blind = next(row for row in policies if "entropy" not in row["method"] and "confidence" not in row["method"])
        gains = [duel(specsim, "adaptive", row, fixed) for row in (policies[0], blind, oracle)]
        pays[batch] = gains[0][0] > gains[0][1]
        figures.append(f"batch {batch}: {policies[0]['method'].split(' | ')[1]} {text(gains[0])} against the best fixed length "
                       f"({fixed['method'].split(' | ')[0].split()[-1]}), {blind['method'].split(' | ')[1]}, which sees outcomes alone, {text(gains[1])}; "
                       f"to know the outcome would give {text(gains[2])}")
    lines.append(f"| M14 | adaptive length helps | {verdict(pays)} where easy and hard stretches alternate | {'; '.join(figures)} |")

    chain = next(row for row in of(trees, 1) if row["method"] == "chain draft_length 4 | token")
    best = of(trees, 1, lambda row: row["method"].startswith("tree"))[0]
    raised = float(best["tokens_per_round"]) > float(chain["tokens_per_round"])
    figures, pays = [f"as many passes as a chain of 4: {float(chain['tokens_per_round']):.2f} to {float(best['tokens_per_round']):.2f} tokens/round"], {}
    for batch in (1, 8, 32, 128):
        tree = of(trees, batch, lambda row: row["method"].startswith("tree"))[0]
        other = of(trees, batch, lambda row: row["method"].startswith("chain"))[0]
        gain = duel(specsim, "trees", tree, other)
        pays[batch] = gain[0] > gain[1]
        figures.append(f"batch {batch}: best tree {text(gain)} against the best chain")
    lines.append(f"| M14 | trees raise acceptance | {'true' if raised else 'refuted'}; that it pays is {verdict(pays)} | {'; '.join(figures)} |")
    (out / "method_claims.md").write_text("\n".join(lines) + "\n")
    print(f"wrote {out}/method_claims.md")


main()
