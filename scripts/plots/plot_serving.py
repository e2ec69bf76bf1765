#!/usr/bin/python3
"""Errors of the measured servers' cells by requests at once: errors.png next to results/serving's table.csv.

usage: scripts/plots/plot_serving.py DIR
"""
from pathlib import Path

from plot_style import main, plt, read, save


def draw(folder):
    folder = Path(folder)
    table = read(folder / "table.csv")
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.4), sharex=True, sharey="row")
    drafts = [draft for draft in dict.fromkeys(row["draft"] for row in table) if draft != "none"]
    for column, (price, title) in enumerate((("roofline", "nothing fitted"), ("fitted", "fitted to rows without speculation"))):
        for line, (name, label) in enumerate((("tpot", "TPOT"), ("ttft", "mean TTFT"))):
            axis = axes[line][column]
            for place, draft in enumerate(drafts):
                rows = [row for row in table if row["price"] == price and row["draft"] == draft]
                shift = 1.06 ** (place - 1)
                axis.plot([row["concurrency"] * shift for row in rows], [100 * row[f"{name}_error"] for row in rows], "o", ms=3, alpha=0.6, label=draft)
            axis.axhline(0, color="black", lw=0.6)
            axis.set_xscale("log", base=2)
            axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
            axis.grid(axis="y", lw=0.3)
            if line == 0:
                axis.set_title(title)
            else:
                axis.set_xlabel("requests at once")
            if column == 0:
                axis.set_ylabel(f"{label}, error in %")
    axes[1][0].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.18), ncol=1, borderaxespad=0.0)
    save(figure, folder / "errors.png")


if __name__ == "__main__":
    main(draw, __doc__)
