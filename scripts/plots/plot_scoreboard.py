#!/usr/bin/python3
"""Draws estimated over measured by class: scoreboard.png next to the rows.csv of results/scoreboard.

usage: scripts/plots/plot_scoreboard.py DIR
"""
from pathlib import Path

from plot_style import COLOURS, main, plt, read, save

LEAST, MOST = 0.33, 3.0


def draw(folder):
    folder = Path(folder)
    groups = {}
    for row in read(folder / "rows.csv"):
        groups.setdefault(row["class"], []).append(row)
    names = sorted(groups, reverse=True)
    figure, axes = plt.subplots(figsize=(8.4, 0.27 * len(names) + 0.9))
    for place, name in enumerate(names):
        ratios = sorted(row["estimated"] / row["measured"] for row in groups[name])
        at = [ratios[round(share * (len(ratios) - 1))] for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
        axes.plot(at[::4], [place, place], color=COLOURS[0], lw=1, alpha=0.6)
        axes.plot(at[1:4:2], [place, place], color=COLOURS[0], lw=4, alpha=0.6, solid_capstyle="butt")
        axes.plot(at[2], place, "o", color=COLOURS[1], ms=4)
        inside = [row["inside"] == "yes" for row in groups[name] if isinstance(row["inside"], str) and row["inside"]]
        share = f", {100 * sum(inside) / len(inside):.0f} % inside" if inside else ""
        axes.text(MOST * 1.04, place, f"{len(ratios)} rows{share}", va="center", fontsize=8)
    axes.axvline(1, color="black", lw=0.6)
    axes.set_xscale("log")
    axes.set_xlim(LEAST, MOST)
    axes.set_xticks([0.4, 0.5, 0.7, 1, 1.4, 2, 2.5], ["0.4", "0.5", "0.7", "1", "1.4", "2", "2.5"])
    axes.minorticks_off()
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("estimated over measured: median, middle half and 90 % of the rows;\ninside: of the stated 95 % interval")
    save(figure, folder / "scoreboard.png")


if __name__ == "__main__":
    main(draw, __doc__)
