#!/usr/bin/python3
"""Draws the output of scripts/results/timing_claims.py in DIR: knees.png (L1), regimes.png (L9), context_placement_batch.png (M14).

usage: scripts/plots/plot_timing_claims.py DIR
"""
import sys
from pathlib import Path

from plot_style import COLOURS, cost_in_words, main, model_in_words, plt, read, save  # first: it finds matplotlib
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch
import yaml
from plot_plan import REGIMES, UNKNOWN

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results"))
from timing_claims import PAIRS  # noqa: E402

MARKERS = "osD^vP"


def thousands(x):
    return f"{x / 1024:g}k" if x >= 1024 else f"{x:g}"


KINKS = """Why a curve rises: a matrix product takes a step longer when its rows fill a tile (16 rows on L40S and RTX 4090, 64 on the others). A batch just below
the step pays it for the next token; a batch beyond it pays it already for one token, and has room again. A mixture of experts reads more experts with
every token until, at a batch of about 32, all of them are read. At 8k cached tokens and few sequences FlashAttention 2 (RTX 4090, L40S, A100) leaves
most of the GPU idle from the second token on, because it divides the keys among blocks only for a single token."""


def draw_knees(folder):
    rows = read(folder / "knees.csv")
    models = list(dict.fromkeys((row["model"], row["gpus"]) for row in rows))
    gpus = list(dict.fromkeys(row["hardware"] for row in rows))
    contexts = sorted({row["context"] for row in rows})[:2]  # the longest context fits few batches: it is in the table
    batches = sorted({row["batch"] for row in rows})
    figure, panels = plt.subplots(len(contexts), len(models), figsize=(14.4, 6.8), sharex=True, sharey=True)
    for context, line in zip(contexts, panels):
        for (model, shards), axes in zip(models, line):
            axes.axhspan(1, 6, color="#f2e6d9", linewidth=0)
            for gpu, colour, marker in zip(gpus, COLOURS, MARKERS):
                own = [row for row in rows if (row["model"], row["context"], row["hardware"], row["fits"]) == (model, context, gpu, 1) and row["knee_tokens"]]
                axes.plot([row["batch"] for row in own], [row["knee_tokens"] for row in own], marker + "-", color=colour, markersize=3.8, label=gpu)
            axes.set(xscale="log", yscale="log", ylim=(1, 160), xlim=(0.85, 300))
            axes.set_title(f"{model}{f' on {shards:g} GPUs' if shards > 1 else ''}, {thousands(context)} cached tokens", fontsize=9.5)
            axes.set_xticks(batches, [f"{batch:g}" for batch in batches])
            axes.set_yticks([1, 2, 6, 16, 64], ["1", "2", "6", "16", "64"])
            axes.minorticks_off()
        line[0].set_ylabel("tokens per sequence")
    for axes in panels[-1]:
        axes.set_xlabel("batch, sequences")
    handles, labels = panels[0][1].get_legend_handles_labels()
    figure.legend(handles + [Patch(color="#f2e6d9")], labels + ["too few for 5 drafts"], loc="upper left", bbox_to_anchor=(0.0, 0.0), ncol=7)
    figure.text(0.008, -0.075, KINKS, fontsize=8.5, va="top", color="#444444")
    figure.suptitle("Verified tokens per sequence at which a pass takes 1.1 times as long as over one token: fewer in larger batches", x=0.01, ha="left", fontsize=11.5)
    save(figure, folder / "knees.png", bbox_inches="tight")


def draw_regimes(folder):
    rows = read(folder / "regimes.csv")
    pairs = list(dict.fromkeys(row["pair"] for row in rows))
    alphas = (0.3, 0.5, 0.7, 0.9)
    batches = sorted({row["batch"] for row in rows})
    contexts = sorted({row["context"] for row in rows})
    cell = {(row["pair"], row["alpha"], row["batch"], row["context"]): row for row in rows}
    edges = [1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6]
    colours = ListedColormap(plt.get_cmap("YlGnBu")([0.08 + 0.085 * i for i in range(9)]))
    norm = BoundaryNorm(edges, 9)
    figure, panels = plt.subplots(len(pairs), len(alphas), figsize=(11.8, 11.2), sharex=True, sharey=True)
    models = {name: f"{model_in_words(yaml.safe_load(target))}\n+ {model_in_words(yaml.safe_load(draft))}\n{gpu}" for name, gpu, target, draft in PAIRS}
    used = set()
    for pair, line in zip(pairs, panels):
        for alpha, axes in zip(alphas, line):
            axes.grid(visible=False)
            for x, batch in enumerate(batches):
                for y, context in enumerate(contexts):
                    row = cell[pair, alpha, batch, context]
                    used.add(row["regime"])
                    known = {**REGIMES, **UNKNOWN}.get(row["regime"])
                    axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=known[1] if known else colours(norm(row["speedup"])), linewidth=0))
                    if row["regime"] in REGIMES:
                        axes.text(x, y, {"low_acceptance": "a", "expensive_draft": "d", "compute_bound": "c"}[row["regime"]], ha="center", va="center",
                                  fontsize=7, color="white")
            axes.set(xlim=(-0.5, len(batches) - 0.5), ylim=(-0.5, len(contexts) - 0.5), title=f"alpha {alpha:g}" if pair == pairs[0] else "", xticks=range(0, len(batches), 3),
                     xticklabels=[f"{batches[i]:.0f}" for i in range(0, len(batches), 3)], yticks=range(0, len(contexts), 2),
                     yticklabels=[thousands(contexts[i]) for i in range(0, len(contexts), 2)])
        line[0].set_ylabel(f"{pair}\n{models[pair]}\n\ncontext, tokens", fontsize=8.5)
    for axes in panels[-1]:
        axes.set_xlabel("batch, sequences")
    bar = figure.colorbar(plt.cm.ScalarMappable(norm=norm, cmap=colours), ax=panels, pad=0.01, shrink=0.6, format="%.2f")
    bar.ax.set_title("speedup at the\nbest draft length", fontsize=8.5, loc="left")
    letters = {"low_acceptance": "a", "expensive_draft": "d", "compute_bound": "c"}
    handles = [Patch(color=colour, label=f"{letters[name]}: {label}") for name, (label, colour) in REGIMES.items() if name in used]
    handles += [Patch(color=colour, label=label) for name, (label, colour) in UNKNOWN.items() if name in used]
    figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0.0), ncol=4)
    figure.suptitle("When speculation loses, and why: the three regimes change places with batch and context", x=0.01, ha="left", fontsize=11.5)
    save(figure, folder / "regimes.png", bbox_inches="tight")


def short_name(row):
    kind = row["placement"].split("kind: ")[1].split(",")[0].rstrip("}")
    name = {"serial": "in turn", "shared": "sharing", "two_gpus": "draft on its own GPU"}.get(kind)
    if name is None:
        name = f"network, {row['placement'].split('latency_ms: ')[1].split(',')[0]} ms"
    return name + (", target on both" if row["tensor_parallel"] == 2 else "")


def setting(name):
    """The machine and the models of a config."""
    return cost_in_words(yaml.safe_load((Path(__file__).parents[2] / "configs" / "timing_claims" / f"{name}.yaml").read_text())["cost"])


def draw_rest(folder):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14.2, 4.9), width_ratios=[1, 1.15, 1])
    rows = read(folder / "varying_context.csv")
    for stretch, colour, marker in zip(sorted({row["stretch_tokens"] for row in rows}), COLOURS, MARKERS):
        own = [row for row in rows if row["stretch_tokens"] == stretch]
        left.errorbar([row["draft_length"] for row in own], [row["speedup"] for row in own], yerr=[row["half_width"] for row in own], fmt=marker, color=colour,
                      markersize=4, linestyle="-", linewidth=0.8, label="drawn independently per position" if stretch == 2 else f"stretches of {stretch:.0f}")
    own = [row for row in rows if row["stretch_tokens"] == 2]
    left.plot([row["draft_length"] for row in own], [row["formula_at_text_alpha"] for row in own], "k--", linewidth=1, label="formula, alpha .65")
    values = [row["speedup"] for row in rows]
    lengths = sorted({row["draft_length"] for row in rows})
    left.set(xlabel=f"draft length, tokens\n{setting('varying_context')}", ylabel="speedup (95 %)", title="The same mean alpha in stretches:\nthe formula predicts too much",
             xticks=lengths, ylim=(min(values) - 0.04, max(values) + 0.17))
    left.legend(fontsize=8, loc="upper right")

    rows = [row for row in read(folder / "placements.csv")]
    names = []
    for gpus in (1, 2):
        names += [(gpus, "plain")] + list(dict.fromkeys((gpus, short_name(row)) for row in rows if row["gpus"] == gpus))
    for size, colour, shift in ((1, COLOURS[0], -0.19), (16, COLOURS[1], 0.19)):
        for y, (gpus, name) in enumerate(names):
            own = [row for row in rows if row["batch"] == size and row["gpus"] == gpus]
            if name == "plain":
                row = next(row for row in own if row["draft_length"] == 0 and short_name(row).startswith("in turn"))
            else:
                row = max((row for row in own if short_name(row) == name and row["draft_length"] > 0), key=lambda row: row["speedup"])
            middle.barh(y + shift, row["speedup"], 0.36, xerr=row["half_width"], color=colour, label=f"batch {size}" if y == 0 else None,
                        error_kw={"elinewidth": 0.9, "ecolor": "#222222"})
    middle.axvline(1, color="#888888", linewidth=0.8)
    middle.set(yticks=range(len(names)), yticklabels=[f"{name} ({gpus} GPU{'s' if gpus > 1 else ''})" for gpus, name in names],
               xlabel=f"speedup over no speculation on one GPU (95 %)\n{setting('placements')}", title="A second GPU serves the target better\nthan the draft")
    middle.invert_yaxis()
    middle.grid(axis="y", visible=False)
    middle.legend(loc="lower right")

    rows = read(folder / "batch.csv")
    index = 0
    for draft in dict.fromkeys(row["draft"] for row in rows):
        for context in sorted({row["context"] for row in rows}):
            sizes = sorted({row["batch"] for row in rows})
            best = [max((row for row in rows if (row["draft"], row["context"], row["batch"]) == (draft, context, size)), key=lambda row: row["speedup"]) for size in sizes]
            name = "one layer, window of 512" if "kv_window" in draft else "1B, whole cache"
            right.errorbar(sizes, [row["speedup"] for row in best], yerr=[row["half_width"] for row in best], fmt=MARKERS[index], linestyle="-" if context < 1000 else "--",
                           color=COLOURS[index], markersize=4, label=f"{name}; context {thousands(context)}")
            index += 1
    right.axhline(1, color="#888888", linewidth=0.8)
    right.set(xscale="log", xlabel=f"batch, sequences\n{setting('batch').split(',')[0]}, {setting('batch').split(', ')[-1]}", ylabel="speedup at the best draft length (95 %)", title="A batch reduces the gain, except for a draft\nthat reads little of a long cache", ylim=(0.9, 2.75))
    right.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
    right.minorticks_off()
    right.legend(fontsize=8, loc="upper left")
    save(figure, folder / "context_placement_batch.png")


def draw(folder):
    for picture in (draw_knees, draw_regimes, draw_rest):
        picture(Path(folder))


if __name__ == "__main__":
    main(draw, __doc__)
