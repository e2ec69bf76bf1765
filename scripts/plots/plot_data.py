#!/usr/bin/python3
"""Draws the output of specsim run or check --out DIR: data.png, tokens per round and speedup over the axis of the sweep that has
the most points, a line for each point of the others.

usage: scripts/plots/plot_data.py DIR
"""
import math
from pathlib import Path

from plot_style import BadInput, COLOURS, config_of, cost_in_words, main, plt, points, read, save

MOST_LINES = len(COLOURS)
FIGURES = ("tokens_per_round", "tokens_per_round_se", "tokens_per_round_theory", "speedup", "speedup_se")


def axes_of(rows):
    """Columns that are axes of the sweep: those between cell and the first measured one, and those of these that change."""
    names = list(rows[0])
    names = names[names.index("seed") + 1:names.index("rounds")]
    return [name for name in names if len({row[name] for row in rows}) > 1]


def label(row, names):
    return ", ".join(f"{name.split('.')[-1].replace('_', ' ')} {row[name]:g}" if isinstance(row[name], float)
                     else f"{name.split('.')[-1].replace('_', ' ')} {row[name]}" for name in names)


def draw(folder):
    folder = Path(folder)
    rows = read(folder / "data.csv", maybe=("seed", "rounds", *FIGURES), words=("experiment", ), some=True)
    rows = [row for row in rows if row["tokens_per_round"] is not None]
    if not rows:
        raise BadInput(folder / "data.csv", "no simulated row", "what specsim run or check wrote of rounds")
    swept = axes_of(rows)
    for row in rows:
        for name in swept:
            if isinstance(row[name], float) and not math.isfinite(row[name]):
                raise row.bad(name, "a number that is finite, or text")
    numbers = [name for name in swept if all(isinstance(row[name], float) for row in rows)]
    across = max(numbers, key=lambda name: len({row[name] for row in rows})) if numbers else None
    others = [name for name in swept if name != across]
    lines = {}
    for place, row in enumerate(rows):
        row["place"] = float(place + 1) if across is None else row[across]
        lines.setdefault("" if across is None else label(row, others), []).append(row)
    columns = [("tokens_per_round", "tokens per round")]
    if any(row.get("speedup") is not None for row in rows):
        columns.append(("speedup", "speedup over plain decoding"))
    figure, panels = plt.subplots(1, len(columns), figsize=(4.2 * len(columns), 3.8), squeeze=False)
    for axes, (column, title) in zip(panels[0], columns):
        for (name, line), colour in zip(lines.items(), COLOURS):
            line = sorted((row for row in line if row[column] is not None), key=lambda row: row["place"])
            x, error = [row["place"] for row in line], [row[column + "_se"] or 0.0 for row in line]
            points(axes, x, [row[column] for row in line], error, colour, name or "simulated, 95 %")
            if across is not None:
                axes.plot(x, [row[column] for row in line], color=colour, linewidth=0.8, alpha=0.6)
            if column == "tokens_per_round" and all(row[column + "_theory"] is not None for row in line):
                axes.plot(x, [row[column + "_theory"] for row in line], color=colour, linestyle=":")
        places = sorted({row["place"] for row in rows})
        if across is not None and len(places) > 4 and places[0] > 0 and places[-1] / places[0] >= 64:
            axes.set_xscale("log", base=2)
        axes.set(title=title, xlabel="cell" if across is None else across.split(".")[-1].replace("_", " "))
    if across is None:
        for axes in panels[0]:
            axes.set_xticks([row["place"] for row in rows], [label(row, others) or row["experiment"] for row in rows], rotation=30, ha="right")
    elif len(lines) > 1:
        panels[0][0].legend(title=None if len(lines) <= MOST_LINES else f"the first {MOST_LINES} of {len(lines)}", fontsize=7.5)
    config = config_of(folder)
    cost = f"; {cost_in_words(config['cost'])}" if isinstance(config.get("cost"), dict) else ""
    figure.suptitle(f"{rows[0]['experiment']}{cost}; dotted: theory", x=0.01, ha="left", fontsize=10)
    save(figure, folder / "data.png")


if __name__ == "__main__":
    main(draw, __doc__)
