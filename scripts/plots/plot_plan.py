#!/usr/bin/python3
"""Draws the output of specsim plan --out DIR: plan.png (speedup by draft length, and the parts of a round's time) and map.png (where
speculation pays, over batch, context and alpha).

usage: scripts/plots/plot_plan.py DIR
"""
import shlex
from pathlib import Path

from plot_style import BadInput, COLOURS, config_of, cost_in_words, main, manifest_of, plt, read, save  # first: it finds matplotlib
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch

REGIMES = {"low_acceptance": ("draft is wrong too often", "#cc79a7"), "expensive_draft": ("drafting costs too much", "#8c6d00"),
           "compute_bound": ("verification is compute-bound", "#d55e00")}
UNKNOWN = {"does_not_fit": ("does not fit", "#eeeeee"), "not_covered": ("not covered by the table", "#cccccc")}


RATES = {"--alpha": "alpha", "--position-rates": "rates of all rounds by position", "--conditional-rates": "rates by position given that it is reached",
         "--mean-acceptance-length": "mean acceptance length", "--acceptance-rate": "accepted / drafted", "--trace": "trace",
         "--acceptance": "published acceptance", "--log": "acceptance in"}


def setting(folder):
    """The planned setup, and the acceptance of the plan."""
    config = config_of(folder, "cost")
    words = shlex.split(str(manifest_of(folder).get("command", "")))
    given = [f"{RATES[word]} {value.replace(',', ', ')}" for word, value in zip(words, words[1:]) if word in RATES]
    workload = config.get("workload", {})
    load = f"batch {workload.get('batch', 1)}, context {workload.get('context_length', workload.get('context', 512)):,}"
    return cost_in_words(config["cost"]), load, "; ".join(given) or "acceptance simulated from the config's distributions"


def draw_plan(folder):
    rows = read(folder / "plan.csv", numbers=("cell", "draft_length", "tokens_per_round", "verify_ms", "draft_ms", "overhead_ms", "speedup", "best"))
    rows = [row for row in rows if row["cell"] == 0]
    if sum(row["best"] == 1 for row in rows) != 1:
        raise BadInput(folder / "plan.csv", f"{sum(row['best'] == 1 for row in rows)} best rows in cell 0", "one")
    lengths = [row["draft_length"] for row in rows]
    figure, panels = plt.subplots(1, 3, figsize=(11.4, 4.1))
    panels[0].plot(lengths, [row["speedup"] for row in rows], "o-", markersize=3.5, color=COLOURS[0], label="speedup")
    panels[0].plot(lengths, [row["tokens_per_round"] for row in rows], "--", color=COLOURS[1], label="tokens per round (ideal)")
    panels[0].axhline(1, color="#888888", linewidth=0.8)
    best = next(row for row in rows if row["best"] == 1)
    ideal = max(row["tokens_per_round"] for row in rows)
    if best["draft_length"] > 0:
        panels[0].plot([best["draft_length"]], [best["speedup"]], "o", markersize=9, markerfacecolor="none", color=COLOURS[0], markeredgewidth=1.3)
    note = f"best: {best['speedup']:.2f}x at {best['draft_length']:.0f}" if best["draft_length"] > 0 else "do not speculate"
    # The legend is above the curves and contains the note: neither can cover a point.
    panels[0].set_ylim(min(0.95, 0.97 * min(row["speedup"] for row in rows)), 1 + 1.45 * (ideal - 1))
    panels[0].set(xlabel="draft length", title="speedup over plain decoding")
    panels[0].legend(loc="upper left", title=note, title_fontsize=9)._legend_box.align = "left"  # alignment= needs matplotlib 3.6
    bottom = [0.0] * len(rows)
    for name, label, colour in (("verify_ms", "verification", COLOURS[0]), ("draft_ms", "draft passes", COLOURS[3]),
                                ("overhead_ms", "outside passes", COLOURS[4])):
        values = [row[name] for row in rows]
        if any(values):
            panels[1].bar(lengths, values, bottom=bottom, color=colour, label=label, width=0.75)
        bottom = [b + v for b, v in zip(bottom, values)]
    panels[1].set(xlabel="draft length", title="time of a round, ms")
    panels[1].legend(loc="upper left")
    steps = [row for row in read(folder / "waterfall.csv", numbers=("cell", "ms", "speedup_after"), words=("step", )) if row["cell"] == 0]
    if not steps:
        raise BadInput(folder / "waterfall.csv", "no steps of cell 0", "where the time of its best draft length goes")
    total = sum(row["ms"] for row in steps)
    steps = steps[:1] + [row for row in steps[1:] if abs(row["ms"]) >= 5e-4 * total]
    before = steps[0]["speedup_after"]
    labels = ["tokens per round"] + [row["step"] for row in steps[1:]] + ["speedup"]
    panels[2].barh(0, before, color=COLOURS[1])
    panels[2].text(before, 0, f" {before:.2f}", va="center")
    for at, row in enumerate(steps[1:], 1):
        after = row["speedup_after"]
        panels[2].barh(at, before - after, left=after, color=COLOURS[3] if before > after else COLOURS[2])
        panels[2].text(max(before, after), at, f" {after - before:+.3f}", va="center")
        before = after
    panels[2].barh(len(steps), before, color=COLOURS[0])
    panels[2].text(before, len(steps), f" {before:.2f}", va="center")
    panels[2].set(yticks=range(len(labels)), yticklabels=labels, title="from ideal to achieved", xlim=(0, 1.2 * steps[0]["speedup_after"]))
    panels[2].invert_yaxis()
    panels[2].grid(axis="y", visible=False)
    figure.suptitle("{}, {}\n{}".format(*setting(folder)), x=0.005, ha="left", fontsize=9.5)
    save(figure, folder / "plan.png")


def cells_of(path):
    """The cells of a map, each with the values that its regime needs."""
    rows = read(path, numbers=("batch", "context", "alpha"), maybe=("best_draft_length", "speedup"), words=("regime", ), some=True)
    for row in rows:
        if row["regime"] not in ("pays", *REGIMES, *UNKNOWN):
            raise row.bad("regime", ", ".join(("pays", *REGIMES, *UNKNOWN)))
        if row["regime"] not in UNKNOWN:
            row.real("speedup")
            if row.real("best_draft_length") == 0 and row["regime"] == "pays":
                raise row.bad("best_draft_length", "a length that pays")
    return rows


def draw_map(folder):
    rows = cells_of(folder / "map.csv")
    alphas = sorted({row["alpha"] for row in rows})
    batches = sorted({row["batch"] for row in rows})
    contexts = sorted({row["context"] for row in rows})
    shown = [min(alphas, key=lambda a: abs(a - wanted)) for wanted in (0.3, 0.5, 0.7, 0.9)]
    own = cells_of(folder / "own_map.csv") if (folder / "own_map.csv").exists() else []
    cell = {(row["alpha"], row["batch"], row["context"]): row for row in rows} | {("own", row["batch"], row["context"]): row for row in own}
    drawn = ["own"] * bool(own) + shown
    top = max([row["speedup"] for row in rows + own if row["regime"] not in UNKNOWN and (row in own or row["alpha"] in shown)] + [1.2])
    edges = [1 + (top - 1) * i / 9 for i in range(10)]
    greens = plt.get_cmap("YlGnBu")(([0.1 + 0.08 * i for i in range(9)]))
    colours, norm = ListedColormap(greens), BoundaryNorm(edges, 9)
    figure, panels = plt.subplots(1, len(drawn), figsize=(12.6 if len(drawn) == 4 else 14.6, 4.4), sharey=True)
    used = set()
    for axes, alpha in zip(panels, drawn):
        axes.grid(visible=False)
        for x, batch in enumerate(batches):
            for y, context in enumerate(contexts):
                row = cell.get((alpha, batch, context))
                if row is None:
                    raise BadInput(folder / ("own_map.csv" if alpha == "own" else "map.csv"), f"no cell of batch {batch:g}, context {context:g}, alpha {alpha}",
                                   "one for every batch and context")
                text = ""
                used.add(row["regime"])
                if row["regime"] in UNKNOWN:
                    colour = UNKNOWN[row["regime"]][1]
                elif row["best_draft_length"] == 0:
                    colour, text = REGIMES[row["regime"]][1], "x"
                else:
                    colour = colours(norm(row["speedup"]))
                    text = f"{row['best_draft_length']:.0f}"
                axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=colour, linewidth=0))
                light = row["regime"] == "pays" and norm(row["speedup"]) < 5
                axes.text(x, y, text, ha="center", va="center", fontsize=7, color="#222222" if light else "white")
        axes.set(xlim=(-0.5, len(batches) - 0.5), ylim=(-0.5, len(contexts) - 0.5), title="the acceptance that was given" if alpha == "own" else f"alpha {alpha:.2f}", xlabel="batch",
                 xticks=range(len(batches)), xticklabels=[f"{b:.0f}" for b in batches], yticks=range(len(contexts)),
                 yticklabels=[f"{c / 1024:g}k" if c >= 1024 else f"{c:.0f}" for c in contexts])
        axes.tick_params(axis="x", labelsize=7)
    panels[0].set_ylabel("context")
    bar = figure.colorbar(plt.cm.ScalarMappable(norm=norm, cmap=colours), ax=panels, pad=0.01, format="%.2f")
    bar.ax.set_title("speedup", fontsize=8.5, loc="left")
    handles = [Patch(color=colour, label=f"x: {label}") for name, (label, colour) in REGIMES.items() if name in used]
    handles += [Patch(color=colour, label=label) for name, (label, colour) in UNKNOWN.items() if name in used]
    if handles:
        figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0.0), ncol=4)
    figure.suptitle(f"{setting(folder)[0]}; at one alpha, it is the same at every position\nnumber: the best draft length; colour: its speedup over plain decoding", x=0.005, ha="left",
                    fontsize=9.5)
    save(figure, folder / "map.png", bbox_inches="tight")


def draw(folder):
    folder = Path(folder)
    draw_plan(folder)
    if (folder / "map.csv").exists():
        draw_map(folder)


if __name__ == "__main__":
    main(draw, __doc__)
