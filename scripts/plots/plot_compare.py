#!/usr/bin/python3
"""Draws the output of specsim compare --out DIR: compare.png (speedup of every method, workload by workload) and tree.png (the
trees that came first).

usage: scripts/plots/plot_compare.py DIR
"""
import textwrap
from pathlib import Path

from plot_style import COLOURS, config_of, cost_in_words, main, method_in_words, plt, read, save  # first: it finds matplotlib
from matplotlib.lines import Line2D

MARKERS = "osD^vP"
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]


def knows_the_outcome(row):
    """Rows without the oracle, which is drawn but never counts as the fastest, because it is no method."""
    return "| oracle |" in row["method"]


def in_common(workloads):
    """The words that all workloads share, and the remaining words of each."""
    parts = [workload.split(", ") for workload in workloads]
    common = [part for part in parts[0] if all(part in own for own in parts)] if len(parts) > 1 else []
    return common, [", ".join(part for part in own if part not in common) for own in parts]


def draw_ranking(rows, config, out):
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    # In the order of the first workload; methods that it lacks come last.
    methods = list(dict.fromkeys(row["method"] for row in rows))
    common, labels = in_common(workloads)
    figure, axes = plt.subplots(figsize=(9.2, 0.32 * len(methods) + 1.7))
    for at, (workload, label) in enumerate(zip(workloads, labels)):
        colour, marker = COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)]
        shift = 0.14 * (at - (len(workloads) - 1) / 2) if len(workloads) < 5 else 0
        own = [row for row in rows if row["workload"] == workload]
        for hollow in (False, True):
            some = [row for row in own if knows_the_outcome(row) == hollow]
            axes.errorbar([row["speedup"] for row in some], [methods.index(row["method"]) + shift for row in some],
                          xerr=[row["speedup_half_width"] for row in some], fmt=marker, markersize=4.4, color=colour, markerfacecolor="white" if hollow else colour,
                          linestyle="none", elinewidth=1, label=label if not hollow else None)
        first = max((row for row in own if not knows_the_outcome(row)), key=lambda row: row["speedup"], default=None)
        if first is None:
            continue
        axes.plot(first["speedup"], methods.index(first["method"]) + shift, "o", markersize=11, markerfacecolor="none", color=colour, markeredgewidth=1.3)
    axes.axvline(1, color="#888888", linewidth=0.9)
    lossy = {row["method"] for row in rows if row["lossless"] == 0}
    ideal = {row["method"] for row in rows if knows_the_outcome(row)}
    axes.set_yticks(range(len(methods)), [method_in_words(name) + (" (not lossless)" if name in lossy else " (knows the outcome)" if name in ideal else "")
                                          for name in methods], fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.03)
    axes.set_xlabel("speedup over plain decoding, half a 99 % interval either way; the fastest of each batch is ringed", fontsize=8.5)
    setting = ", ".join([cost_in_words(config["cost"]), *common])
    figure.suptitle(f"{setting}\n{pair_in_words(config)}", x=0.01, ha="left", fontsize=9.5)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=6, handletextpad=0.3, columnspacing=1.2)
    save(figure, out / "compare.png")


def pair_in_words(config):
    """Names of the text and the two models."""
    pair, context = config["pair"], config.get("context", {"process": "fixed"})
    target, draft = pair["target"], pair.get("draft", {})
    words = [f"{key} {value}" for key, value in target.items() if key != "family" and not isinstance(value, (dict, list))]
    text = f"target {target.get('family', 'as given')} {' '.join(words)}".strip()
    states = [state.get("draft", {}).get("value") for state in context.get("states", [])]
    if states and None not in states:
        text += f", draft at alpha {' and '.join(map(str, states))} in stretches"
    elif draft.get("transform") == "overlap":
        text += f", draft at alpha {draft['value']}"
    elif draft:
        text += f", draft by {draft.get('transform', draft.get('family', 'a list'))}"
    return f"{text}; {pair['vocab']:,} tokens, context process {context['process']}"


def colour_of(rank):
    return COLOURS[rank % len(COLOURS)]


def draw_trees(rows, config, out):
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    trees = {}  # a tree that comes first on several workloads is drawn once
    for workload in workloads:
        own = [row for row in rows if row["workload"] == workload]
        shape = tuple(int(row["parent"]) for row in own)
        trees.setdefault(shape, (own, []))[1].append(workload)
    figure, panels = plt.subplots(len(trees), 1, figsize=(9.2, 3.2 * len(trees) + 0.5), squeeze=False)
    for panel, (own, where) in zip(panels[:, 0], trees.values()):
        children = {}
        for row in own[1:]:
            children.setdefault(int(row["parent"]), []).append(int(row["node"]))
        places, leaves = {}, 0

        def place(node):
            nonlocal leaves
            below = children.get(node, [])
            for child in below:
                place(child)
            if below:
                places[node] = sum(places[child] for child in below) / len(below)
            else:
                places[node] = leaves
                leaves += 1

        place(0)
        for row in own:
            node, depth, parent, rank = (int(row[name]) for name in ("node", "depth", "parent", "rank"))
            if parent >= 0:
                panel.plot([places[parent], places[node]], [depth - 1, depth], color="#888888", linewidth=0.8, zorder=1)
            panel.scatter(places[node], depth, s=28, zorder=2, color=colour_of(rank) if node else "#444444")
        panel.invert_yaxis()
        title = textwrap.wrap(f"{method_in_words(own[0]['method'])}: {len(own) - 1} tokens, fastest at {'; '.join(where)}", 110)
        panel.set(xticks=[], yticks=range(max(int(row["depth"]) for row in own) + 1), ylabel="depth", title="\n".join(title))
        panel.title.set_fontsize(9)
        panel.grid(visible=False)
        ranks = sorted({int(row["rank"]) for row in own[1:]})
        panel.legend([Line2D([], [], marker="o", linestyle="none", color=colour_of(rank)) for rank in ranks],
                     [f"{ORDINALS[rank] if rank < len(ORDINALS) else rank + 1} child" for rank in ranks], loc="upper left", fontsize=7.5, handletextpad=0.1,
                     ncols=2)
    figure.suptitle(cost_in_words(config["cost"]), x=0.01, ha="left", fontsize=9.5)
    save(figure, out / "tree.png")


def draw(folder):
    out = Path(folder)
    config = config_of(out, "cost", "pair")
    ranking = read(out / "ranking.csv", numbers=("speedup", "speedup_half_width", "lossless"), words=("workload", "method"), some=True)
    for row in ranking:
        if row["speedup_half_width"] < 0:
            raise row.bad("speedup_half_width", "numbers from 0 on")
    trees = read(out / "trees.csv", numbers=("node", "depth", "parent", "rank"), words=("workload", "method"))
    below = {}
    for row in trees:  # a node's parent stands before it, one step less deep
        known_depths = below.setdefault(row["workload"], [])
        parent = row.whole("parent", *((0, len(known_depths) - 1) if known_depths else (-1, -1)))
        row.whole("node", len(known_depths), len(known_depths))
        depth = known_depths[parent] + 1 if known_depths else 0
        known_depths.append(row.whole("depth", depth, depth))
        row.whole("rank", *((0, 10**6) if parent >= 0 else (-1, 10**6)))
    draw_ranking(ranking, config, out)
    if trees:
        draw_trees(trees, config, out)


if __name__ == "__main__":
    main(draw, __doc__)
