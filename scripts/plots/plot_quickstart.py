#!/usr/bin/python3
"""Tokens per round and speedup by draft length: quickstart.png next to DIR/data.csv.

usage: scripts/plots/plot_quickstart.py DIR
"""
from pathlib import Path

from plot_style import COLOURS, main, plt, points, read, save

LENGTH = "decode.drafter.draft_length"


def draw(folder):
    folder = Path(folder)
    rows = sorted(read(folder / "data.csv"), key=lambda row: row[LENGTH])
    lengths = [row[LENGTH] for row in rows]
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.6))
    for axes, column, title, colour in zip(panels, ("tokens_per_round", "speedup"), ("tokens per round", "speedup over plain decoding"), COLOURS):
        if all(row[column + "_theory"] is not None for row in rows):
            axes.plot(lengths, [row[column + "_theory"] for row in rows], color=colour, label="theory")
        points(axes, lengths, [row[column] for row in rows], [row[column + "_se"] for row in rows], colour, "simulated, 95 %", size=4.5)
        axes.set(xlabel="draft length", title=title, xticks=lengths)
        axes.legend(loc="lower right")
    best = max(rows, key=lambda row: row["speedup"])
    panels[1].annotate(f"best: {best['speedup']:.2f}x at {best[LENGTH]:.0f}", (best[LENGTH], best["speedup"]), xytext=(0, -26), textcoords="offset points",
                       ha="center", arrowprops={"arrowstyle": "-", "color": "#888888", "shrinkB": 4})
    figure.suptitle(f"{rows[0]['experiment']}: alpha {rows[0]['alpha_theory']:.3f}, {rows[0]['rounds']:,.0f} rounds per point", x=0.01, ha="left", fontsize=10.5)
    save(figure, folder / "quickstart.png")


if __name__ == "__main__":
    main(draw, __doc__)
