#!/usr/bin/python3
"""Methods on one workload, by batch: methods.png next to DIR/side_by_side.csv.

usage: scripts/plots/plot_methods.py DIR
"""
import sys
from pathlib import Path

from plot_style import COLOURS, Z95, main, plt, read, save

BATCHES = [1, 8, 32]
MARKERS = "osD"
# Methods by their source of drafts, with the words of the legend.
GROUPS = [("a draft model, chain", ("chain", "cs_drafting", "saguaro")),
          ("a draft model, tree", ("tree_static", "tree_sequoia", "tree_ranked", "tree_dynamic", "opt_tree", "spec_exec", "dyspec")),
          ("a draft model that guesses a block at once", ("parallel", "pard", "dflash", "dflash2", "dspark", "domino")),
          ("the target's own layers or heads", ("early_exit", "eagle", "eagle3", "mtp", "medusa", "hydra", "redrafter")),
          ("a draft model if the text has no good match", ("hybrid",)),
          ("no model: the text itself, or discarded tokens", ("prompt_lookup", "suffix", "suffix_decoding", "sam_decoding", "lookahead", "token_recycling", "rest"))]
WORDS = {"draft_length": "of", "branching": "", "siblings": "", "selection": "", "exit_share": "share", "budget": "of", "nodes": "of", "top_k": "likeliest"}


def kind_of(row):
    return row["drafter"].split(" ")[0]


def name_of(row):
    kind, *rest = row["drafter"].split(" ")
    pairs = zip(rest[::2], rest[1::2])
    words = [f"{WORDS.get(key, key)} {WORDS.get(value, value)}".strip() for key, value in pairs]
    return " ".join([kind.replace("_", " "), *words]).replace("[", "").replace("]", "").replace(",", "-").replace("_", " ") + f", {row['verifier'].replace('_', ' ')}"


def draw(folder):
    folder = Path(folder)
    rows = read(folder / "side_by_side.csv")
    left_out = {kind_of(row) for row in rows} - {kind for _, kinds in GROUPS for kind in kinds}
    if left_out:
        sys.exit(f"plot_methods: drafters {', '.join(sorted(left_out))} are in none of GROUPS, and would not be drawn")
    figure, axes = plt.subplots(figsize=(9.2, 0.27 * (len(rows) + len(GROUPS)) + 1.6))
    at, ticks, names = 0, [], []
    for title, kinds in GROUPS:
        own = sorted((row for row in rows if kind_of(row) in kinds), key=lambda row: -row["speedup_batch_1"])
        axes.text(0.005, at, title, transform=axes.get_yaxis_transform(), fontsize=8, color="#666666", va="center")
        for row in own:
            at += 1
            for offset, batch, colour, marker in zip((-0.17, 0.0, 0.17), BATCHES, COLOURS, MARKERS):  # equal figures must not hide each other
                axes.errorbar(row[f"speedup_batch_{batch}"], at + offset, xerr=Z95 * row[f"speedup_se_batch_{batch}"], fmt=marker, markersize=4.4, color=colour,
                              label=None if names else f"batch {batch}")
            ticks.append(at)
            names.append(name_of(row))
        at += 1
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_yticks(ticks, names, fontsize=7.5)
    axes.invert_yaxis()
    axes.margins(y=0.03)
    axes.set(xlabel="speedup over no speculation, with 95 % intervals; left of the line: slower")
    figure.suptitle("One workload: llama-3.1-8b on an H100, context 1,024; a language-like pair of 1,000 tokens,\ntext "
                    "that repeats itself now and then; drafts by llama-3.2-1b, heads with the latency of EAGLE's", x=0.01, ha="left", fontsize=9.5)
    axes.legend(loc="lower right")
    save(figure, folder / "methods.png")


if __name__ == "__main__":
    main(draw, __doc__)
