#!/usr/bin/python3
"""specsim plot: it draws the output of every command that has pictures, reports damaged tables with file and line, and replaces only its own
pictures.

Runs at the root of the repository; SPECSIM names the program.
"""
import contextlib
import csv
import importlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path[:0] = ["scripts/plots", "tests/support"]
from plot_style import plt  # noqa: E402
from plot_tables import BadInput  # noqa: E402
from program import expect, finish, run  # noqa: E402



def refused(what, answer, *parts):
    """Expects status 2 and one line that states what is allowed."""
    status, _, stderr = answer
    expect(f"{what}: status {status}, {stderr}", status == 2 and stderr.count("\n") == 1 and "allowed: " in stderr and all(part in stderr for part in parts))


def line_of(cells):
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def mutants(text):
    """(description, text) of damage to a table, and whether the message must name a line of it."""
    lines = text.splitlines()
    header, cells = csv.reader(lines[:2])
    yield "empty", b""
    yield "10 bytes", text.encode()[:10]
    yield "cut in the last row", text.rstrip("\n").encode()[:-3]
    yield "undecodable", "\n".join([lines[0], "\xff" + lines[1], ""]).encode("latin-1")
    yield "a row too short", "\n".join([lines[0], line_of(cells[:-1]), ""]).encode()
    yield "a column of no name", ("," + text).encode()
    yield "an open quote", (text + '"').encode() + b"\n"
    yield "the header alone", (lines[0] + "\n").encode()
    for at, name in enumerate(header):
        yield f"no column {name}", ("\n".join([",".join([*header[:at], "other", *header[at + 1:]]), *lines[1:]]) + "\n").encode()
    for at, name in enumerate(header):
        for other in ("", "-inf", "nan", "banana"):
            yield f'{name} "{other}"', ("\n".join([lines[0], line_of([*cells[:at], other, *cells[at + 1:]]), *lines[2:]]) + "\n").encode()


def damage(folder, script, table, needed, numbers):
    """Every damaged table is either drawn, if no drawn value is damaged, or refused with its place; `needed` columns always cause a refusal."""
    module = importlib.import_module(script)
    (module if hasattr(module, "save") else module.style).save = lambda figure, path, **how: plt.close(figure)  # tables are refused before a picture is written
    draw = module.draw
    path = folder / table
    whole = path.read_text()
    for what, data in mutants(whole):
        must = not re.match(r'no column|.* "', what) or any(what == f"no column {name}" for name in needed) or any(
            what == f'{name} "{other}"' for name in numbers for other in ("-inf", "nan", "banana"))
        if what == "the header alone" and table in ("trees.csv", "slo.csv", "requests.csv"):  # they may be empty
            continue
        if not must and what not in [f'{name} ""' for name in needed]:
            continue
        path.write_bytes(data)
        stderr = "drawn"
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                draw(folder)
        except BadInput as bad:
            stderr = str(bad)
        except Exception as wrong:
            stderr = f"{type(wrong).__name__} {wrong}"
        plt.close("all")
        expect(f"{folder.name}/{table}, {what}: {stderr}", (stderr == "drawn" and not must) or (stderr.startswith(str(path)) and ", allowed: " in stderr))
    path.write_text(whole)


with tempfile.TemporaryDirectory() as scratch:
    scratch = Path(scratch)
    for name, arguments in {
        "compare": ["compare", "configs/quickstart.yaml", "--rounds", "2000"],
        "run": ["run", "configs/quickstart.yaml", "--set", "rounds=2000"],
        "check": ["check", "tests/config/good/zeros.yaml", "--set", "rounds=2000"],
        "plan": ["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle-head-8b", "--alpha", "0.7"],
        "choose": ["choose", "--hardware", "h100-sxm,l40s", "--target", "llama-3.1-8b", "--users", "4", "--requests", "20", "--simulate", "3"],
    }.items():
        status, _, stderr = run(*arguments, "--out", scratch / name)
        expect(f"{name}: status {status}, {stderr}", status in (0, 3))
    for shard in ("1/2", "2/2"):
        run("run", "configs/quickstart.yaml", "--set", "rounds=2000", "--shard", shard, "--out", scratch / f"shard{shard[0]}")
    run("merge", scratch / "shard1", scratch / "shard2", "--out", scratch / "merge")
    for name, source in {"curve": "results/chat/curve", "trees": "results/method_claims/trees", "serve": "results/chat/run", "validate": "results/validation/novels",
                         "calibrate": "results/gpu/h200-sxm/enlarged"}.items():
        shutil.copytree(source, scratch / name, ignore=shutil.ignore_patterns("*.png", "*.jsonl"))
    for name, pictures in {"compare": ["compare"], "trees": ["compare", "tree"], "run": ["data"], "check": ["data"], "merge": ["data"], "plan": ["plan", "map"], "choose": ["choices"],
                           "curve": ["curve"], "serve": ["requests", "steps"], "validate": ["validation"], "calibrate": ["validation"]}.items():
        status, _, stderr = run("plot", scratch / name)
        expect(f"plot {name}: status {status}, {stderr}", status == 0 and {path.stem for path in (scratch / name).glob("*.png")} == set(pictures))
        expect(f"plot {name}: something is left", not list((scratch / name).glob(".*")))

    # A file already exists where the picture is to be written.
    folder = scratch / "run"
    picture = folder / "data.png"
    mine = picture.read_bytes()
    expect("a picture of its own is drawn again", run("plot", folder)[0] == 0 and picture.read_bytes() == mine)
    # One object, with the script's text in it. Mutant: the script prints before it.
    status, text, _ = run("plot", folder, "--format", "json")
    expect(f"plot --format json: {text}", status == 0 and text.startswith("{") and any(f"wrote {picture}" in line for line in json.loads(text)["text"]))
    picture.write_text("mine")
    refused("somebody's text", run("plot", folder), f"{picture}: is no picture that specsim drew", "--force")
    expect("somebody's text is lost", picture.read_text() == "mine")
    figure = plt.figure()
    figure.savefig(picture)
    foreign = picture.read_bytes()
    refused("somebody's picture", run("plot", folder), f"{picture}: is no picture that specsim drew")
    expect("somebody's picture is lost", picture.read_bytes() == foreign)
    expect("--force replaces", run("plot", folder, "--force")[0] == 0 and picture.read_bytes() == mine)
    elsewhere = scratch / "elsewhere.png"
    for there in (mine, None):
        if there is None:
            elsewhere.unlink()
        else:
            elsewhere.write_bytes(there)
        picture.unlink()
        picture.symlink_to(elsewhere)
        for more in ((), ("--force", )):
            refused("a link", run("plot", folder, *more), f"{picture}: is no regular file, allowed: ")
        expect("it is written through a link", (elsewhere.read_bytes() if elsewhere.exists() else None) == there and picture.is_symlink())
    picture.unlink()
    os.mkfifo(picture)
    refused("a pipe", run("plot", folder), f"{picture}: is no regular file, allowed: ")
    picture.unlink()
    picture.mkdir()
    refused("a folder", run("plot", folder, "--force"), f"{picture}: is no regular file, allowed: ")
    picture.rmdir()

    # Damaged tables and manifests.
    table = folder / "data.csv"
    whole = table.read_text()
    table.write_text(whole[:200])
    refused("a cut table", run("plot", folder), f"{table}:")
    table.write_text(whole)
    manifest = folder / "manifest.yaml"
    stderr = manifest.read_text()
    for text in ("", "- 1\n", "experiments: []\n", "a: [\n", "experiments: [{config: 3}]\n"):
        manifest.write_text(text)
        refused(f"manifest {text!r}", run("plot", folder), str(manifest))
    manifest.unlink()
    refused("no manifest", run("plot", folder), f"{manifest}: is not there, allowed: ")
    manifest.write_text(stderr)
    refused("nothing to draw", run("plot", scratch), "contains nothing to draw", "ranking.csv")
    tokens = ["tokens_per_round", "speedup"]
    damage(folder, "plot_data", "data.csv", ["experiment", "seed", "rounds", *tokens], tokens)
    damage(scratch / "trees", "plot_compare", "ranking.csv", ["workload", "method", "lossless", "speedup", "speedup_half_width"], ["lossless", "speedup", "speedup_half_width"])
    damage(scratch / "trees", "plot_compare", "trees.csv", ["workload", "method", "node", "parent", "depth", "rank"], ["node", "parent", "depth", "rank"])
    lengths = ["cell", "draft_length", "verify_ms", "draft_ms", "overhead_ms", *tokens]
    damage(scratch / "plan", "plot_plan", "plan.csv", [*lengths, "best"], lengths)
    damage(scratch / "plan", "plot_plan", "waterfall.csv", ["cell", "step", "ms", "speedup_after"], ["cell", "ms", "speedup_after"])
    damage(scratch / "plan", "plot_plan", "map.csv", ["batch", "context", "alpha", "best_draft_length", "speedup", "regime"], ["batch", "context", "alpha", "speedup"])
    latencies = ["mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "output_throughput"]
    damage(scratch / "curve", "plot_serve", "curve.csv", ["rate", "speculative", "overloaded", *latencies], ["rate", "speculative", *latencies])
    damage(scratch / "curve", "plot_serve", "slo.csv", ["draft_length", "largest_rate_that_keeps"], ["draft_length", "half_width"])
    times = ["arrival_s", "first_token_s", "last_token_s", "output_tokens"]
    damage(scratch / "serve", "plot_serve", "requests.csv", ["finished", *times], ["finished", *times])
    damage(scratch / "serve", "plot_serve", "steps.csv", ["replica", "start_s", "requests"], ["replica", "start_s", "requests"])
    measured = ["temperature", "batch", "draft_length", "timing_error", *tokens]
    damage(scratch / "validate", "plot_validation", "validation.csv", measured, measured)

finish()
