#!/usr/bin/python3
"""Output of every command for programs: JSON and CSV with unique column names and numeric values.

Runs at the root of the repository; SPECSIM names the program.
"""
import csv
import json
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

GOOD = "tests/config/good/zeros.yaml"
PAIR = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle-head-8b"]
PLAN = [*PAIR, "--alpha", "0.7"]
SERVE = [*PAIR, "--alpha", "0.7", "--requests", "300", "--policy", "fixed:3"]
# Arguments for each command with tables, so that all of its tables occur.
COMMANDS = {
    "run": [[GOOD, "--set", "rounds=2000"], ["configs/quickstart.yaml", "--set", "rounds=2e4"],
            ["configs/examples/methods/policies.yaml", "--set", "rounds=8192"]],
    "check": [[GOOD, "--set", "rounds=2000"], ["configs/quickstart.yaml", "--set", "rounds=2e4"]],
    "audit": [["configs/audit/known_pair.yaml"]],
    "plan": [[*PLAN], [*PLAN, "--batch", "1,8"]],
    "choose": [["--target", "llama-3.1-8b", "--hardware", "h100-sxm,l40s", "--users", "4", "--requests", "20", "--simulate", "2"]],
    "compare": [["configs/examples/methods/policies.yaml", "--rounds", "16384"]],
    "serve": [[*SERVE, "--rate", "4"], [*SERVE, "--sweep", "rate=2,4", "--replications", "2"]],
    "tune": [["tests/data/tune_runs.csv", *PAIR], ["tests/data/tune_runs.csv", *PAIR, "--suggest", "2", "--clients", "4", "--longest", "2"]],
    "theory": [["--alpha", "0.8", "--draft-length", "4", "--cost-ratio", "0.05"]],
    "pass": [["--hardware", "h100-sxm", "--model", "llama-2-7b"]],
    "kernels": [["TABLE", "--out", "OUT"]],
    "import": [["tests/data/logs/vllm.log"]],
    "fit": [["tests/data/trace_long.jsonl"]],
    "list": [["verifier"]],
    "describe": [["token"], ["tests/data/models/tiny-llama3"], ["tests/data/models/tiny-llama3.gguf"]],
}
# OUT is a new folder each time, TABLE is this table of measured kernels.
KERNELS = "gpu,engine,version,dtype,kernel,n,k,m,us,set_over_l2\n" + "".join(
    f"h100-sxm,vllm,1,bfloat16,mine,4096,4096,{m},{us},2\n" for m, us in ((1, 14), (8, 14), (64, 15), (512, 30), (4096, 190)))
# Commands without tables, or whose input is too large for a test of the format: models, tasks, results of other commands.
WITHOUT = {"calibrate", "validate", "init", "cluster", "plot", "merge", "schema", "completion", "man", "reference"}

# A value that a program would have to parse: a number with a sign, a percentage, a unit of thousands, or an interval.
FIGURE = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*(%|x|[kMGTB]|(±|\+-)\s*\d.*|[+-]\d+(\.\d+)?\s*%)?$")


def check_table(name, columns, rows, headless):
    expect(f"{name}: columns {columns}", headless or len(set(columns)) == len(columns))
    expect(f"{name}: a column without a name {columns}", all(columns))
    for row in rows:
        expect(f"{name}: {len(row)} cells of {len(columns)} columns", len(row) == len(columns))


def check_json(name, text):
    read = json.loads(text)
    expect(f"{name}: schema {read['schema']}", re.fullmatch(r"specsim-output/\d+", read["schema"]))
    for table in read["tables"]:
        check_table(f"{name} as JSON", table["columns"], table["rows"], False)
        for column, *cells in zip(table["columns"], *table["rows"]):
            for cell in cells:
                expect(f"{name}: {cell!r} of {column} is a number in a text", not isinstance(cell, str) or not FIGURE.match(cell))
                expect(f"{name}: {cell!r} of {column}", cell is None or isinstance(cell, (str, int, float)))
    return read["tables"]


def check_csv(name, text, tables):
    blocks = [list(csv.reader(block.splitlines())) for block in text.split("\n\n")] if text else []
    if name.startswith("import "):  # in CSV the log's lines have their own column, and the checks are a table
        for block in blocks:
            check_table(f"{name} as CSV", block[0], block[1:], False)
        return
    expect(f"{name}: {len(blocks)} tables of CSV, {len(tables)} of JSON", len(blocks) == len(tables))
    for block, table in zip(blocks, tables):
        rows = block[1:] if block[0] == table["columns"] else block  # tables without a header have none
        expect(f"{name}: {len(rows)} rows of CSV, {len(table['rows'])} of JSON", len(rows) == len(table["rows"]))
        for row, same in zip(rows, table["rows"]):
            for cell, value in zip(row, same):
                if isinstance(value, (int, float)):
                    expect(f"{name}: {cell!r} of CSV, {value} of JSON", float(cell) == value)
                else:
                    expect(f"{name}: {cell!r} of CSV, {value!r} of JSON", cell == (value or ""))


def check_markdown(name, text, tables):
    """Each table of the JSON is one of Markdown, whose rows have as many cells as its head. It is for people: two columns may have one head."""
    found = [block for block in (block.split("\n") for block in re.split(r"\n(?!\|)", text)) if len(block) > 1]
    widths = [[len(re.split(r"(?<!\\)\|", line)) for line in block if line.startswith("|")] for block in found]
    expect(f"{name}: {len(found)} tables of Markdown, {len(tables)} of JSON", len(found) == len(tables))
    expect(f"{name}: cells of rows and heads {widths}", all(len(set(own)) == 1 for own in widths))


_, text, _ = run("help")
known = set(re.findall(r"^  (\w+)  +\w", text, re.M))
expect(f"commands that no test knows: {known - set(COMMANDS) - WITHOUT - {'help'}}", not known - set(COMMANDS) - WITHOUT - {"help"})
expect("commands that the program does not have", set(COMMANDS) <= known)
scratch = tempfile.TemporaryDirectory()
table = Path(scratch.name) / "kernels.csv"
table.write_text(KERNELS)
for command, calls in COMMANDS.items():
    for arguments in calls:
        name = " ".join([command, *arguments])

        def formed(form):
            out = tempfile.mkdtemp(dir=scratch.name)
            words = [{"OUT": out, "TABLE": str(table)}.get(word, word) for word in arguments]
            return run(command, *words, "--format", form)
        status, text, err = formed("json")
        expect(f"{name}: status {status}, {err}", status in (0, 1, 3))
        if status not in (0, 1, 3):
            continue
        tables = check_json(name, text)
        expect(f"{name}: no table", tables or command in ("describe",))
        status, text, err = formed("csv")
        check_csv(name, text, tables)
        status, text, err = formed("markdown")
        check_markdown(name, text, tables)

# Values and their errors can be distinguished, and each error belongs to the value before it.
_, text, _ = run("run", "configs/quickstart.yaml", "--set", "rounds=2e4", "--format", "json")
columns = json.loads(text)["tables"][0]["columns"]
expect(f"columns of run: {columns}", ["tokens/round", "tokens/round +-95%", "speedup", "speedup +-95%"] == columns[columns.index("tokens/round"):][:4])

# Files: unique columns, and every field under a name with a unit a number or empty.
with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "out"
    run("run", "configs/quickstart.yaml", "--set", "rounds=2e4", "--out", out)
    with open(out / "data.csv", newline="") as file:
        head, *rows = csv.reader(file)
    check_table("data.csv", head, rows, False)
    for column, *cells in zip(head, *rows):
        if column not in ("experiment", "theory", "verdict"):
            expect(f"data.csv: {column} {cells}", all(cell == "" or float(cell) is not None for cell in cells))

finish()
