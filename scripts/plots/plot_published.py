#!/usr/bin/python3
"""Draws published values over simulated ones: published.png next to DIR/published.csv.

usage: scripts/plots/plot_published.py DIR
"""
from pathlib import Path

from plot_style import COLOURS, main, plt, read, save

# Groups of rows by the beginning and the end of their names: the group's title, and whether they are measurements.
GROUPS = [("leviathan_table1", "speedup", "Leviathan, table 1: speedup, computed", "s"),
          ("leviathan_table2_4", "expected", "Leviathan, table 4: speedup, expected", "D"),
          ("leviathan_table2_4", "measured", "Leviathan, table 2: speedup, measured", "o"),
          ("eagle1_nalpha", "", "EAGLE, table 5: tokens per round, chain of 5", "^"),
          ("block_verification", "", "Sun et al.: tokens per round, token verification", "v"),
          ("chen_table1", "", "Chen, table 1: speedup, circular, not scored", "x")]


def draw(folder):
    folder = Path(folder)
    rows = [row for row in read(folder / "published.csv") if row["published"] is not None and row["quantity"] in ("speedup", "tokens_per_round")]
    figure, axes = plt.subplots(figsize=(8.6, 7.4))
    at, positions, labels = 0, [], []
    for (prefix, ending, label, marker), colour in zip(GROUPS, COLOURS):
        own = [row for row in rows if row["row"].startswith(prefix) and row["row"].endswith(ending)]
        positions.append(at)
        labels.append(label)
        at += 1
        for row in own:
            ratio = row["published"] / row["simulated"]
            spread = [[ratio - row["published"] / row["high"]], [row["published"] / row["low"] - ratio]]
            axes.errorbar([ratio], [at], xerr=spread, fmt=marker, color=colour, markersize=5)
            name = row["row"].removeprefix(prefix).removesuffix(ending).strip()
            if prefix == "leviathan_table1":
                name = "alpha {}, K = {}".format(*name.split("/"))
            axes.text(1.345, at, f"{row['published']:.2f}   {row['simulated']:.2f}", ha="right", va="center", fontsize=8, color="#444444")
            labels.append(name.split(" 100-shot")[0])
            positions.append(at)
            at += 1
        at += 0.5
    axes.text(1.345, -0.1, "publ.  simul.", ha="right", va="center", fontsize=8, color="#444444")
    axes.axvspan(0.9, 1.1, color="#eeeeee", zorder=0)
    axes.axvline(1, color="#888888", linewidth=0.9)
    axes.set_yticks(positions, labels, fontsize=8)
    for text, label in zip(axes.get_yticklabels(), labels):
        if label in [group[2] for group in GROUPS]:
            text.set_fontweight("bold")
    axes.set(xlim=(0.65, 1.35), ylim=(at - 0.6, -0.8), xlabel="published / simulated (grey: within 10 %; half a 95 % interval either way)")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    save(figure, folder / "published.png")


if __name__ == "__main__":
    main(draw, __doc__)
