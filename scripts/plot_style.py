"""One look for all plots, and the little that they share. A plot_*.py has draw(FOLDER), which writes its pictures beside the tables there."""
import csv
import re
from pathlib import Path

import matplotlib
import yaml

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Dark to light would lose the light end on white: eight hues of similar weight, told apart by colour-blind readers too.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#5a3d99", "#444444"]
TARGET, DRAFT, ACCEPTED, RESIDUAL = "#444444", "#cc79a7", "#0072b2", "#d55e00"
Z95 = 1.959964

plt.rcParams.update({
    "figure.dpi": 150, "savefig.dpi": 150, "figure.figsize": (6.4, 4.2), "figure.constrained_layout.use": True,
    "font.size": 9.5, "axes.titlesize": 10.5, "axes.titlelocation": "left", "legend.fontsize": 8.5, "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6,
    "axes.axisbelow": True, "lines.linewidth": 1.3, "errorbar.capsize": 2, "svg.hashsalt": "specsim", "svg.fonttype": "path",
})


def read(path):
    """Rows of a CSV: numbers where they are numbers, None where empty."""
    def value(text):
        try:
            return float(text)
        except ValueError:
            return text or None
    with open(path, newline="") as file:
        return [{name: value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def config_of(folder):
    """The first experiment of a result's manifest, as it was run."""
    return yaml.safe_load(yaml.safe_load((Path(folder) / "manifest.yaml").read_text())["experiments"][0]["config"])


def model_in_words(model):
    """A model of a cost section: {preset: llama-2-70b, tensor_parallel: 4} is llama-2-70b on 4 GPUs."""
    if not isinstance(model, dict):
        return model
    gpus, window = model.get("tensor_parallel", 1), model.get("kv_window")
    return model.get("preset", "a model") + (f" on {gpus} GPUs" if gpus > 1 else "") + (f" with a window of {window}" if window else "")


def cost_in_words(cost):
    """What passes are priced for, as a title says it."""
    if cost.get("model") != "roofline":
        return f"cost {cost.get('model', 'ratio')}"
    draft = f", drafted by {model_in_words(cost['draft'])}" if cost.get("draft") else ""
    return f"{model_in_words(cost['target'])}{draft}, {cost['hardware']}"


def method_in_words(name):
    """A method of a ranking, short enough for an axis: no lists of acceptance, no keys that say themselves."""
    parts = [re.sub(r" (?:acceptance|accuracies) \[.*\]", "", part) for part in name.split(" | ")]
    parts[0] = re.sub(r"\[([\d, ]+)\]", lambda found: found[1].replace(", ", "-"), parts[0])
    parts[0] = parts[0].replace("draft_length ", "of ").replace("branching ", "")
    if parts[0].endswith(f" siblings {parts[-1]}"):
        parts[0] = parts[0].removesuffix(f" siblings {parts[-1]}")
    return ", ".join(parts)


def points(axes, x, y, se, colour, label=None, size=3.2):
    """Simulated points with their 95 % intervals."""
    return axes.errorbar(x, y, yerr=[Z95 * s for s in se], fmt="o", markersize=size, color=colour, elinewidth=0.9, label=label, linestyle="none")


def save(figure, path, **how):
    """Writes the figure without a word on when and by which version it was made: the same data give the same file."""
    figure.savefig(path, metadata={"Date": None, "Creator": None} if str(path).endswith(".svg") else {"Software": None}, **how)
    plt.close(figure)
    print(f"wrote {Path(path)}")
