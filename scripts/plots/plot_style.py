"""The common style of all plots, and their helpers. A plot_*.py has draw(FOLDER), which writes its pictures next to the tables."""
import os
import re
import stat
import struct
import sys
import tempfile
from pathlib import Path

try:
    import matplotlib
except ModuleNotFoundError:  # Debian's package depends on Tk and SymPy, so scripts/setup --quickstart unpacks it without them
    sys.path.append(str(Path(__file__).resolve().parents[2] / "build/matplotlib/usr/lib/python3/dist-packages"))
    import matplotlib

from plot_tables import BadInput, config_of, known, manifest_of, read  # noqa: F401: for the scripts that draw

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Dark to light would lose the light end on white: eight hues of similar weight, which colour-blind readers can distinguish too.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#5a3d99", "#444444"]
TARGET, DRAFT, ACCEPTED, RESIDUAL = "#444444", "#cc79a7", "#0072b2", "#d55e00"
Z95 = 1.959964

plt.rcParams.update({
    "figure.dpi": 150, "savefig.dpi": 150, "figure.figsize": (6.4, 4.2), "figure.constrained_layout.use": True,
    "font.size": 9.5, "axes.titlesize": 10.5, "axes.titlelocation": "left", "legend.fontsize": 8.5, "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6,
    "axes.axisbelow": True, "lines.linewidth": 1.3, "errorbar.capsize": 2, "svg.hashsalt": "specsim", "svg.fonttype": "path",
})


def model_in_words(model):
    """A model of a cost section in words: {preset: llama-2-70b, tensor_parallel: 4} is llama-2-70b on 4 GPUs."""
    if not isinstance(model, dict):
        return model
    gpus, window = model.get("tensor_parallel", 1), model.get("kv_window")
    return model.get("preset", "a model") + (f" on {gpus} GPUs" if gpus > 1 else "") + (f" with a window of {window}" if window else "")


def cost_in_words(cost):
    """The setup whose passes are estimated, for a title."""
    if cost.get("model") != "roofline":
        return f"cost {cost.get('model', 'ratio')}"
    draft = f", drafted by {model_in_words(cost['draft'])}" if cost.get("draft") else ""
    return f"{model_in_words(cost['target'])}{draft}, {cost['hardware']}"


def method_in_words(name):
    """A method of a ranking, short enough for an axis: no lists of acceptance, and no keys whose values are clear by themselves."""
    parts = [re.sub(r" (?:acceptance|accuracies) \[.*\]", "", part) for part in name.split(" | ")]
    parts[0] = re.sub(r"\[([\d, ]+)\]", lambda found: found[1].replace(", ", "-"), parts[0])
    parts[0] = parts[0].replace("draft_length ", "of ").replace("branching ", "")
    if parts[0].endswith(f" siblings {parts[-1]}"):
        parts[0] = parts[0].removesuffix(f" siblings {parts[-1]}")
    return ", ".join(parts)


def points(axes, x, y, se, colour, label=None, size=3.2):
    """Simulated points with their 95 % intervals."""
    return axes.errorbar(x, y, yerr=[Z95 * s for s in se], fmt="o", markersize=size, color=colour, elinewidth=0.9, label=label, linestyle="none")


def drawn_here(path):
    """Whether save() or plot_rooms.py wrote a picture: it has no Software field and 150 dots per inch, or is the map of rooms."""
    data = Path(path).read_bytes()
    if path.suffix == ".svg":
        return data.startswith(b"<?xml") and b"<title>rooms</title>" in data
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return False
    at, chunks = 8, []
    while at + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunks += [(kind, data[at + 8:at + 8 + length] if kind == b"pHYs" else None)] if kind != b"IDAT" else []
        at += length + 12
    return at == len(data) and chunks == [(b"IHDR", None), (b"pHYs", struct.pack(">IIB", 5906, 5906, 1)), (b"IEND", None)]


replaces_all = False  # --force


def put(path, write):
    """Gives `write` an open file and puts the result at the path: completely or not at all, never through a link, and only over a picture that was
    drawn before."""
    path = Path(path)
    if os.path.lexists(path):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise BadInput(path, "is no regular file", "a free place, or a picture that specsim drew")
        if not replaces_all and not drawn_here(path):
            raise BadInput(path, "is no picture that specsim drew", "one that it drew, or --force to replace somebody's file")
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with open(handle, "wb") as file:
            write(file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    print(f"wrote {path}")


def save(figure, path, **how):
    """Writes the figure without date and version, so that the same data give the same file."""
    form = Path(path).suffix[1:]
    metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    put(path, lambda file: figure.savefig(file, format=form, metadata=metadata, **how))
    plt.close(figure)


def main(draw, usage):
    """Draws the folder of the command line. Bad input ends with status 2 and a one-line message, a failing disk with status 4."""
    global replaces_all
    arguments = [word for word in sys.argv[1:] if word != "--force"]
    replaces_all = len(arguments) < len(sys.argv) - 1
    if len(arguments) != 1:
        sys.exit(usage + "\n--force: replace somebody's files too")
    try:
        draw(arguments[0])
    except BadInput as bad:
        print(bad, file=sys.stderr)
        sys.exit(2)
    except OSError as failed:
        print(f"{failed.filename or arguments[0]}: {failed.strerror or failed}", file=sys.stderr)
        sys.exit(4)
    except Exception as wrong:  # values that no plot shows: each cell may be valid alone, but not with the others
        print(f"{arguments[0]}: cannot be drawn, {type(wrong).__name__} {wrong}, allowed: tables of one run of specsim".replace("\n", " "), file=sys.stderr)
        sys.exit(2)
