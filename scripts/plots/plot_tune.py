#!/usr/bin/python3
"""Draws errors of predicted runs by the number of runs that were given: error.png next to the cells.csv of results/tune.

usage: scripts/plots/plot_tune.py DIR
"""
import math
from pathlib import Path

from plot_style import main, plt, read, save

METRICS = (("tpot_ms", "TPOT"), ("output_tokens_per_s", "throughput"), ("ttft_ms", "TTFT"))


def draw(folder):
    folder = Path(folder)
    cells = read(folder / "cells.csv")
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
    given = sorted({row["given"] for row in cells})
    kinds = list(dict.fromkeys(row["class"] for row in cells))
    for axis, (metric, title) in zip(axes, METRICS):
        for place, kind in enumerate(kinds):
            for count in given:
                errors = [100 * math.log(row[metric] / row[f"measured_{metric}"]) for row in cells
                          if row["given"] == count and row["class"] == kind and not math.isnan(row[f"measured_{metric}"])]
                x = given.index(count) + 0.18 * (place - (len(kinds) - 1) / 2)
                errors.sort()
                middle, low, high = (errors[int(share * (len(errors) - 1))] for share in (0.5, 0.1, 0.9))
                axis.plot([x, x], [low, high], color=f"C{place}", lw=1.5, alpha=0.6)
                axis.plot([x], [middle], "o", color=f"C{place}", ms=4, label=kind if count == given[0] else None)
        axis.axhline(0, color="black", lw=0.6)
        axis.set_title(title)
        axis.set_xticks(range(len(given)), [str(int(count)) for count in given])
        axis.set_xlabel("runs given")
        axis.grid(axis="y", lw=0.3)
        axis.set_ylim(-60, 60)
    axes[0].set_ylabel("predicted over measured, %\n(median, 10th to 90th percentile)")
    axes[0].legend(frameon=False, fontsize=8, loc="upper right")
    save(figure, folder / "error.png")


if __name__ == "__main__":
    main(draw, __doc__)
