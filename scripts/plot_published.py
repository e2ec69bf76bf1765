#!/usr/bin/python3
"""Published against simulated figures: published.png beside DIR/published.csv.

usage: scripts/plot_published.py DIR
"""
import sys
from pathlib import Path

from plot_style import COLOURS, plt, read, save

GROUPS = [("leviathan_table1", "speedup", "Leviathan table 1 (computed)", "s"), ("leviathan_table2_4", "expected", "Leviathan table 4, expected", "D"),
          ("leviathan_table2_4", "measured", "Leviathan table 2, measured", "o"), ("eagle1_nalpha", "", "EAGLE chain, tokens per round", "^"),
          ("block_verification", "", "token verification, tokens per round", "v"), ("chen_table1", "", "Chen table 1 (circular, not scored)", "x")]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    rows = [row for row in read(folder / "published.csv") if row["published"] is not None and row["quantity"] in ("speedup", "tokens_per_round")]
    figure, (scatter, ratios) = plt.subplots(1, 2, figsize=(10.5, 5.0), width_ratios=[1.25, 1])
    low, high = 1.2, 7.6
    scatter.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="#eeeeee", label="within 10 %")
    scatter.plot([low, high], [low, high], color="#888888", linewidth=0.9)
    labels, positions, at = [], [], 0
    for (prefix, ending, label, marker), colour in zip(GROUPS, COLOURS):
        own = [row for row in rows if row["row"].startswith(prefix) and row["row"].endswith(ending)]
        x = [row["simulated"] for row in own]
        error = [[row["simulated"] - row["low"] for row in own], [row["high"] - row["simulated"] for row in own]]
        scatter.errorbar(x, [row["published"] for row in own], xerr=error, fmt=marker, color=colour, markersize=5, linestyle="none", label=label)
        for row in own:
            ratio = row["published"] / row["simulated"]
            spread = [[ratio - row["published"] / row["high"]], [row["published"] / row["low"] - ratio]]
            ratios.errorbar([ratio], [at], xerr=spread, fmt=marker, color=colour, markersize=4.5)
            name = row["row"].removeprefix(prefix).removesuffix(ending).strip()
            if prefix == "leviathan_table1":
                name = "alpha {}, K = {}".format(*name.split("/"))
            labels.append(name.split(" 100-shot")[0])
            positions.append(at)
            at += 1
        at += 0.7
    scatter.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="simulated", ylabel="published", title="speedup, or tokens per round", aspect="equal")
    ticks = [1.5, 2, 3, 4, 5, 7]
    for axis in (scatter.xaxis, scatter.yaxis):
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_ticks([], minor=True)
    scatter.legend(loc="lower right", fontsize=8)
    ratios.axvspan(0.9, 1.1, color="#eeeeee")
    ratios.axvline(1, color="#888888", linewidth=0.9)
    ratios.set_yticks(positions, labels, fontsize=7.5)
    ratios.invert_yaxis()
    ratios.set(xlabel="published / simulated", title="row by row")
    ratios.grid(axis="y", visible=False)
    save(figure, folder / "published.png")


if __name__ == "__main__":
    main()
