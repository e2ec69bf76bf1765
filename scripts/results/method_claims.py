#!/usr/bin/python3
"""Judges the claims of public texts on methods of speculative decoding: the variants they name (L8), adaptive lengths and trees (M14).

usage: scripts/results/method_claims.py SPECSIM OUT    (from the repository's root: scripts/results/method_claims.py build/specsim results/method_claims)

Runs `specsim compare` on configs/method_claims, and writes to OUT
  variants/, adaptive/, trees/   rankings of each, with pictures
  duels/                         rankings of two methods, batch by batch, for each pair that a verdict compares
  method_claims.md               the verdicts; intervals hold at 99 %, over draws of the distributions
"""
import math
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from calls import called
from tables import rows_of

CONFIGS = Path("configs/method_claims")
SEED_OF_DUELS = 1  # not the draws that chose the compared methods
# Rules of draft length in programs. SGLang's and SmartSpec's choose one for the batch. transformers decodes one sequence, by default with the
# threshold that confidence_roc uses at the start of a request. additive is its schedule before 4.45, without a threshold.
SHIPPED = {1: ("ema_tiers", "goodput", "additive", "confidence_roc"), 32: ("ema_tiers", "goodput")}
T99_OF_16 = 2.947  # Student's, for the draws of distributions that the errors are computed from


def compare(specsim, config, out, *options):
    called(specsim, "compare", config, "--out", out, *options)
    return rows_of(out / "ranking.csv")


def rank(specsim, name, out):
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    rows = compare(specsim, CONFIGS / f"{name}.yaml", folder)
    subprocess.run([str(Path(__file__).parents[1] / "plots" / "plot_compare.py"), str(folder)], check=True)
    return rows


def of(rows, batch, wanted=lambda row: True):
    """Requested rows of one batch, fastest first."""
    return [row for row in rows if row["workload"].startswith(f"batch {batch},") and wanted(row)]


def duel(specsim, out, name, first, second):
    """By how many percent method `first` (a row) is faster than `second` in a direct comparison, and half a paired interval."""
    config = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    decodes = config["sweep"]["decode"]
    batches = config["sweep"]["workload.batch"]
    cells = [int(row["cell"]) // len(batches) for row in (first, second)]
    batch = first["workload"].split()[1].rstrip(",")
    pair = yaml.safe_dump([decodes[cell] for cell in cells], default_flow_style=True, sort_keys=False, width=10000).strip()
    folder = out / "duels" / f"{name}_batch_{batch}_{cells[0]}_{cells[1]}"
    winner, loser = compare(specsim, CONFIGS / f"{name}.yaml", folder, "--set", f"sweep.decode={pair}", "--batches", batch, "--seed", str(SEED_OF_DUELS))
    ratio, error = 1 - float(loser["behind"]), float(loser["behind_half_width"])
    if winner["cell"] == "0":
        return 100 * (1 / ratio - 1), 100 * error / ratio**2
    return 100 * (ratio - 1), 100 * error


def more_tokens(first, second):
    """By how many percent `first` emits more tokens per round than `second`, and half an interval at 99 %: not paired."""
    a, b = float(first["tokens_per_round"]), float(second["tokens_per_round"])
    error = T99_OF_16 * a / b * math.hypot(float(first["tokens_per_round_se"]) / a, float(second["tokens_per_round_se"]) / b)
    return 100 * (a / b - 1), 100 * error


def text(gain):
    return f"{gain[0]:+.1f} ± {gain[1]:.1f} %"


def speed(row):
    return f"{float(row['speedup']):.2f} ± {float(row['speedup_half_width']):.2f} ({float(row['tokens_per_round']):.2f} tokens/round)"


def verdict(gains):
    """The words for {batch: (gain, half an interval)}."""
    parts = {"true": [], "refuted": [], "undecided": []}
    for batch, (gain, error) in gains.items():
        parts["true" if gain > error else "refuted" if gain < -error else "undecided"].append(str(batch))
    known = [(name, batches) for name, batches in parts.items() if batches]
    return known[0][0] if len(known) == 1 else ", ".join(f"{name} at batch {' and '.join(batches)}" for name, batches in known)


def by_rule(gains):
    """A verdict for each rule from {batch: {rule: (gain, half an interval)}}. A gain or loss below 1 % does not count, since a server would not
    notice it."""
    parts = []
    for batch, rules in gains.items():
        verdicts = {"true": [], "even": [], "refuted": [], "undecided": []}
        for rule, (gain, error) in rules.items():
            verdicts["even" if abs(gain) + error < 1 else "true" if gain > error else "refuted" if gain < -error else "undecided"].append(rule)
        parts.append(f"batch {batch}: " + ", ".join(f"{name} of {' and '.join(rules)}" for name, rules in verdicts.items() if rules))
    return "; ".join(parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "duels", ignore_errors=True)
    variants, adaptive, trees = (rank(specsim, name, out) for name in ("variants", "adaptive", "trees"))

    lines = ["| id | the claim | verdict | figures |", "|---|---|---|---|"]
    figures, ahead = [], []
    for batch in (1, 32):
        rows = of(variants, batch)
        chain = next(row for row in rows if row["method"] == "chain draft_length 3 | token")
        others = [row for row in rows if row["method"].split()[0] in ("medusa", "eagle", "lookahead", "tree_static", "tree_sequoia")]
        def gain(row):  # difference to the chain, in half intervals as if the two were independent: more than 1 is significant
            widths = math.hypot(float(row["speedup_half_width"]), float(chain["speedup_half_width"]))
            return (float(row["speedup"]) - float(chain["speedup"])) / widths
        better = sum(gain(row) > 1 for row in others)
        unsure = sum(abs(gain(row)) <= 1 for row in others)
        losers = sorted({row["method"].split()[0] for row in rows if float(row["speedup"]) + float(row["speedup_half_width"]) < 1})
        ahead.append(f"{better} of {len(others)} at batch {batch}" + (f" ({unsure} undecided)" if unsure else ""))
        last = "" if rows[-1] is chain else f", {speed(rows[-1])} for {rows[-1]['method'].split(' | ')[0]}"
        figures.append(f"batch {batch}: {speed(rows[0])} for {rows[0]['method'].split(' | ')[0]}, {speed(chain)} for the chain{last}; "
                       f"below plain decoding: {', '.join(losers) or 'none'}")
    lines.append(f"| L8 | variants: Medusa, EAGLE, Lookahead, trees | faster than a chain of 3: {', '.join(ahead)} | on one text that repeats itself in part, "
                 f"each draft at alpha .7 but EAGLE's head, which is taken to close half of the rest, "
                 f"256 rounds per sequence: {'; '.join(figures)} |")

    figures, gains = [], {}
    for batch in (1, 32):
        fixed = of(adaptive, batch, lambda row: row["method"].count("|") == 1)[0]
        policies = of(adaptive, batch, lambda row: row["method"].count("|") > 1 and "oracle" not in row["method"] and "next_round" not in row["method"])
        meant = of(adaptive, batch, lambda row: "next_round" in row["method"])[0]
        oracle = of(adaptive, batch, lambda row: "oracle" in row["method"])[0]
        def best(kinds):
            return next(row for row in policies if row["method"].split(" | ")[1].split()[0] in kinds)
        def named(row, gain):
            return f"{row['method'].split(' | ')[1]} {text(gain)}"
        shipped = [best([kind]) for kind in SHIPPED[batch]]
        others = {"each sequence for itself, the batch waiting for the longest": best(["goodput_per_sequence", "additive", "ratio_tiers"]),
                  "as transformers' rule was meant, a new threshold for each round": meant,
                  "by the draft's distribution, with a threshold tuned to this text": best(["entropy", "confidence"])}
        duels = [(row, duel(specsim, out, "adaptive", row, fixed)) for row in shipped]
        gains[batch] = {row["method"].split(" | ")[1].split()[0]: gain for row, gain in duels}
        figures.append(f"batch {batch}, against the best fixed length ({fixed['method'].split(' | ')[0].split()[-1]}), as shipped: "
                       + ", ".join(named(row, gain) for row, gain in duels)
                       + "".join(f"; {what}: {named(row, duel(specsim, out, 'adaptive', row, fixed))}" for what, row in others.items())
                       + f"; to know the outcome would give {text(duel(specsim, out, 'adaptive', oracle, fixed))}")
    lines.append(f"| M14 | adaptive length helps | {by_rule(gains)}, where easy and hard stretches alternate | {'; '.join(figures)} |")

    chain = next(row for row in of(trees, 1) if row["method"] == "chain draft_length 4 | token")
    best = of(trees, 1, lambda row: row["method"].startswith("tree"))[0]
    raised = more_tokens(best, chain)
    figures = [f"in four passes {float(chain['tokens_per_round']):.2f} tokens/round as a chain, {float(best['tokens_per_round']):.2f} as the tree that is fastest at "
               "batch 1"]
    gains = {}
    for batch in (1, 8, 32, 128):
        tree = of(trees, batch, lambda row: row["method"].startswith("tree"))[0]
        other = of(trees, batch, lambda row: row["method"].startswith("chain"))[0]
        gains[batch] = duel(specsim, out, "trees", tree, other)
        figures.append(f"batch {batch}: best tree {text(gains[batch])} against the best chain ({other['method'].split(' | ')[0].split()[-1]})")
    lines.append(f"| M14 | trees raise acceptance | {verdict({1: raised})}; that it pays: {verdict(gains)} | {'; '.join(figures)} |")
    (out / "method_claims.md").write_text("\n".join(lines) + "\n")
    print(f"wrote {out}/method_claims.md")


main()
