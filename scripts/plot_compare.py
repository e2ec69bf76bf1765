#!/usr/bin/python3
"""What specsim compare --out DIR wrote, as pictures: compare.png (speedup of every method, workload by workload) and tree.png (the
trees that came first).

usage: scripts/plot_compare.py DIR
"""
import csv
import sys
from pathlib import Path

from plot_style import COLOURS, plt, save


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def draw_ranking(rows, out):
    methods = list(dict.fromkeys(row["method"] for row in rows))
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    parts = [workload.split(", ") for workload in workloads]
    common = [part for part in parts[0] if all(part in own for own in parts)] if len(parts) > 1 else []
    labels = [", ".join(part for part in own if part not in common) for own in parts]
    figure, axes = plt.subplots(figsize=(9.2, 0.3 * len(methods) + 1.4))
    for workload, label, colour in zip(workloads, labels, COLOURS * len(workloads)):
        own = {row["method"]: row for row in rows if row["workload"] == workload}
        at = [methods.index(method) for method in own]
        axes.errorbar([float(row["speedup"]) for row in own.values()], at, xerr=[float(row["speedup_half_width"]) for row in own.values()],
                      fmt="o", markersize=4.2, color=colour, label=label)
        first = next(row for row in own.values() if row["rank"] == "1")
        axes.plot(float(first["speedup"]), methods.index(first["method"]), "o", markersize=10, markerfacecolor="none", color=colour)
    axes.axvline(1, color="#888888", linewidth=0.8)
    lossy = {row["method"] for row in rows if row["lossless"] == "0"}
    axes.set_yticks(range(len(methods)), [(name if len(name) < 92 else name[:45] + " ... " + name[-45:]) + (" (not lossless)" if name in lossy else "")
                                          for name in methods], fontsize=7)
    axes.invert_yaxis()
    axes.margins(y=0.03)
    axes.set_xlabel(", ".join(["speedup over plain decoding"] + common) + "; the fastest is ringed", fontsize=8)
    # Names of methods take most of the width: as many columns as the rest has room for, ending where it ends.
    axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=max(1, min(4, 60 // (6 + max(map(len, labels))))))
    save(figure, out / "compare.png")


def draw_trees(rows, out):
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    trees = {}  # a tree that comes first on several workloads is drawn once
    for workload in workloads:
        own = [row for row in rows if row["workload"] == workload]
        shape = tuple(int(row["parent"]) for row in own)
        trees.setdefault(shape, (own, []))[1].append(workload)
    figure, panels = plt.subplots(len(trees), 1, figsize=(9.2, 3.4 * len(trees)), squeeze=False)
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
            node, depth, parent = int(row["node"]), int(row["depth"]), int(row["parent"])
            if parent >= 0:
                panel.plot([places[parent], places[node]], [depth - 1, depth], color="#888888", linewidth=0.8, zorder=1)
            panel.scatter(places[node], depth, s=26, zorder=2, color="#444444" if node == 0 else COLOURS[int(row["rank"]) % len(COLOURS)])
        panel.invert_yaxis()
        panel.set(xticks=[], yticks=range(max(int(row["depth"]) for row in own) + 1), ylabel="depth", title=f"{own[0]['method']}\n{'; '.join(where)}")
        panel.title.set_fontsize(8)
        panel.grid(visible=False)
    panels[-1, 0].set_xlabel("colours: first, second, ... child", fontsize=8)
    save(figure, out / "tree.png")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    draw_ranking(rows_of(out / "ranking.csv"), out)
    trees = rows_of(out / "trees.csv")
    if trees:
        draw_trees(trees, out)


main()
