#!/usr/bin/python3
"""Draws the output of specsim run or check --out DIR: data.png, tokens per round and speedup over the axis of the sweep that has
the most points, a line for each point of the others.

usage: scripts/plots/plot_data.py DIR
"""
import math
from pathlib import Path

from plot_style import BadInput, COLOURS, config_of, cost_in_words, main, plt, points, read, save  # first: it finds matplotlib
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize

MOST_LINES = len(COLOURS)
MOST_FACETS = 6
FIGURES = ("tokens_per_round", "tokens_per_round_se", "tokens_per_round_theory", "speedup", "speedup_se")


def axes_of(rows):
    """Columns that are axes of the sweep: those between cell and the first measured one, and those of these that change."""
    names = list(rows[0])
    names = names[names.index("seed") + 1:names.index("rounds")]
    return [name for name in names if len({row[name] for row in rows}) > 1]


def label(row, names):
    return ", ".join(f"{name.split('.')[-1].replace('_', ' ')} {row[name]:g}" if isinstance(row[name], float)
                     else f"{name.split('.')[-1].replace('_', ' ')} {row[name]}" for name in names)


def draw_many(folder, rows, across, others, numbers):
    """More lines than there are colours: their colour is the value of another axis, by a scale beside the panels; a row of panels for
    each point of the remaining axes."""
    shade = max((name for name in others if name in numbers), key=lambda name: len({row[name] for row in rows}))
    rest = [name for name in others if name != shade]
    facets = {}
    for row in rows:
        facets.setdefault(label(row, rest), {}).setdefault(row[shade], []).append(row)
    shown = dict(list(facets.items())[:MOST_FACETS])
    columns = [("tokens_per_round", "tokens per round")]
    if any(row.get("speedup") is not None for row in rows):
        columns.append(("speedup", "speedup over plain decoding"))
    values = sorted({row[shade] for row in rows})
    logarithmic = values[0] > 0 and values[-1] / values[0] >= 16
    norm = (LogNorm if logarithmic else Normalize)(values[0], values[-1])
    shades = plt.get_cmap("viridis")
    figure, panels = plt.subplots(len(shown), len(columns), figsize=(4.2 * len(columns) + 0.8, 2.9 * len(shown) + 0.6), squeeze=False, sharex=True)
    places = sorted({row[across] for row in rows})
    for (name, lines), line_of_panels in zip(shown.items(), panels):
        for axes, (column, title) in zip(line_of_panels, columns):
            for value, line in lines.items():
                line = sorted((row for row in line if row[column] is not None), key=lambda row: row[across])
                axes.plot([row[across] for row in line], [row[column] for row in line], color=shades(norm(value)), linewidth=1.2)
            if len(places) > 4 and places[0] > 0 and places[-1] / places[0] >= 64:
                axes.set_xscale("log", base=2)
            axes.set_title(title if axes in panels[0] else "")
        line_of_panels[0].set_ylabel(name)
    for axes in panels[-1]:
        axes.set_xlabel(across.split(".")[-1].replace("_", " "))
    figure.colorbar(ScalarMappable(norm, shades), ax=panels, label=shade.split(".")[-1].replace("_", " "))
    more = f"; {len(shown)} of {len(facets)} values of {' and '.join(rest)}" if len(shown) < len(facets) else ""
    figure.suptitle(f"{rows[0]['experiment']}: {len(rows)} cells{more}", x=0.01, ha="left", fontsize=10)
    save(figure, folder / "data.png")


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
    if len({label(row, others) for row in rows}) > MOST_LINES and across is not None:
        if any(name in numbers for name in others):
            return draw_many(folder, rows, across, others, numbers)
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
    elif len(lines) > 1:  # below the panels, where no data is
        title = None if len(lines) <= MOST_LINES else f"the first {MOST_LINES} of {len(lines)}"
        panels[0][0].legend(title=title, fontsize=7.5, loc="upper left", bbox_to_anchor=(0.0, -0.18), ncol=2, borderaxespad=0.0)
    config = config_of(folder)
    cost = f"; {cost_in_words(config['cost'])}" if isinstance(config.get("cost"), dict) else ""
    figure.suptitle(f"{rows[0]['experiment']}{cost}; dotted: theory", x=0.01, ha="left", fontsize=10)
    save(figure, folder / "data.png")


if __name__ == "__main__":
    main(draw, __doc__)
