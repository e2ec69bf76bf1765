"""One look for all plots, and the little that they share."""
import csv
from pathlib import Path

import matplotlib

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
    "axes.axisbelow": True, "lines.linewidth": 1.3, "errorbar.capsize": 2,
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


def points(axes, x, y, se, colour, label=None, size=3.2):
    """Simulated points with their 95 % intervals."""
    return axes.errorbar(x, y, yerr=[Z95 * s for s in se], fmt="o", markersize=size, color=colour, elinewidth=0.9, label=label, linestyle="none")


def save(figure, path, **how):
    figure.savefig(path, metadata={"Software": None}, **how)
    plt.close(figure)
    print(f"wrote {Path(path)}")
