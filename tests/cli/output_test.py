#!/usr/bin/python3
"""--format and --quiet of every command, check --junit and --github, and the step of the GitHub action.

Runs at the root of the repository; SPECSIM names the program.
"""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import SPECSIM, expect, finish, run  # noqa: E402

GOOD = "tests/config/good/zeros.yaml"
SMALL = ["--set", "rounds=2000"]
PLAN = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle-head-8b", "--alpha", "0.7"]
COMMANDS = {
    "run": ["run", GOOD, *SMALL], "check": ["check", GOOD, *SMALL], "audit": ["audit", GOOD], "plan": ["plan", *PLAN], "plan --verbose": ["plan", *PLAN, "--verbose"],
    "choose": ["choose", "--target", "llama-3.1-8b", "--hardware", "h100-sxm", "--users", "2", "--requests", "20", "--draft", "none", "--rank-by", "tokens"],
    "serve": ["serve", *PLAN, "--concurrency", "2", "--requests", "20"],
    "theory": ["theory", "--alpha", "0.8", "--draft-length", "4", "--cost-ratio", "0.05"],
    "pass": ["pass", "--hardware", "h100-sxm", "--model", "llama-2-7b"], "import": ["import", "tests/data/logs/vllm.log"],
    "list": ["list", "verifier"], "describe": ["describe", "token"],
    "fit": ["fit", "tests/data/trace_small.jsonl"],
}


def cells(text):
    return set(re.findall(r"[^\s|,]+", text))


# A method that knows the future is in the table but is not recommended.
_, out, _ = run("run", "configs/examples/methods/policies.yaml", "--set", "rounds=20000", "--set",
                "sweep.decode.policy=[{kind: goodput}, {kind: entropy, most: 3}, {kind: oracle}]")
fastest = [line for line in out.splitlines() if line.startswith("fastest: ")]
expect(f"an oracle is recommended: {out}", "oracle" in out and len(fastest) == 1 and "oracle" not in fastest[0])

for name, arguments in COMMANDS.items():
    status, plain, err = run(*arguments)
    if status == 2 and name == "fit":
        continue  # a trace that is too small to fit must print a message
    expect(f"{name}: status {status}, {err}", status in (0, 1, 3))
    as_json, out, err = run(*arguments, "--format", "json")
    expect(f"{name}: status {as_json} as JSON, {status} as a table", as_json == status)
    try:
        read = json.loads(out)
    except ValueError as wrong:
        expect(f"{name}: JSON {wrong}: {out[:200]}", False)
        continue
    expect(f"{name}: fields", list(read) == ["schema", "program", "version", "commit", "command", "exit_status", "tables", "text"])
    expect(f"{name}: schema, command or status", (read["schema"], read["command"], read["exit_status"])
           == ("specsim-output/2", [*arguments, "--format", "json"], status))
    expect(f"{name}: no table", read["tables"] or name in ("describe", "import"))
    for table in read["tables"]:
        expect(f"{name}: a table of nothing", table["rows"] or any(table["columns"]))
        # Mutants: a column is named by its number; two have one name.
        expect(f"{name}: names of columns {table['columns']}", len(set(table["columns"])) == len(table["columns"])
               and not any(re.fullmatch(r"(column \d+)?", column) for column in table["columns"]))
        expect(f"{name}: rows as long as columns", all(len(row) == len(table["columns"]) for row in table["rows"]))
    expect(f"{name}: a mark is left", "\\u001e" not in out)
    # No text of the terminal is lost: every word of it is in the JSON.
    said = cells(" ".join(str(cell) for table in read["tables"] for row in [table["columns"], *table["rows"]] for cell in row if cell is not None)
                 + " " + " ".join(read["text"]))
    numbers = {float(word) for word in said if re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", word)}

    def kept(word):
        try:
            return word in said or float(word.removesuffix("%")) in numbers  # there the column's name has the unit
        except ValueError:
            return word in said or word == "-"
    if name == "theory":  # it prints sentences, and for programs their numbers in rows of their own
        wrong = [row for row in read["tables"][0]["rows"] if not isinstance(row[1], (int, float, type(None)))]
        expect(f"theory: no numbers in {wrong}", not wrong)
        continue
    lost = [word for word in cells(plain) if not kept(word)]
    expect(f"{name}: JSON lacks {lost[:5]}", not lost)
    # CSV holds the same tables.
    status, out, _ = run(*arguments, "--format=csv")
    blocks = [list(csv.reader(block.splitlines())) for block in out.split("\n\n")] if out else []
    full = [table for table in read["tables"]]
    checks = name == "import"  # the log's checks are a table only in CSV, which has no text
    expect(f"{name}: {len(blocks)} blocks of CSV, {len(full)} tables", len(blocks) == len(full) + checks or any(not table["columns"][0] for table in full))
    expect(f"{name}: lines of CSV", all(len({len(row) for row in block}) == 1 for block in blocks))
    status, out, _ = run(*arguments, "--format", "markdown")
    expect(f"{name}: Markdown", status == as_json and (not full or re.search(r"^\|(-+:?\|)+$", out, re.M)))
    if name not in ("run", "check"):
        status, out, err = run(*arguments, "--quiet")
        expect(f"{name}: --quiet prints {out[:80]} {err[:80]}", status == as_json and not out and not err)
        status, out, _ = run(*arguments, "--quiet", "--format", "json")
        expect(f"{name}: text with --quiet", json.loads(out)["text"] == [] and json.loads(out)["tables"] == read["tables"])

status, out, err = run("theory", "--alpha", "0.8", "--draft-length", "4", "--cost-ratio", "0.05", "--format", "xml")
expect(f"unknown format: {status} {err}", status == 2 and err == '--format: "xml", allowed: table, csv, json, markdown\n' and not out)
for word, ours in (("--gpu", "--hardware"), ("--model", "--target"), ("--tp", "--tensor-parallel"), ("--concurrency", "--batch")):
    status, _, err = run("plan", word, "1")
    expect(f"plan {word} names ours: {err}", status == 2 and f'unknown option "{word}", use {ours} instead; allowed: --set, ' in err)
status, _, err = run("compare", "--concurrency", "1")
expect(f"and compare's own: {err}", status == 2 and 'use --batches instead;' in err)
passes = ["pass", "--hardware", "rtx-3090", "--model", "llama-2-7b", "--csv"]  # a GPU that the command warns of
status, out, err = run(*passes, "--quiet")
expect("pass --csv --quiet is its CSV without warnings", (status, out, err) == (0, run(*passes)[1], "") and out.startswith("hardware,model,") and run(*passes)[2])


def ms_of(model, *options):
    status, out, err = run("pass", "--hardware", "h100-sxm", "--model", model, "--tokens", "1", "--format", "json", *options)
    assert status == 0, err
    table = json.loads(out)["tables"][0]
    return table["rows"][0][table["columns"].index("ms")]


split = ms_of("qwen3-30b-a3b", "--tensor-parallel", "2")
expect("pass: a model in braces takes options too", ms_of("{preset: qwen3-30b-a3b}", "--tensor-parallel", "2") == split)
expect("pass: a key in braces holds where no option is given", ms_of("{preset: qwen3-30b-a3b, tensor_parallel: 2}") == split)
expect("pass: an option replaces a key in braces", ms_of("{preset: qwen3-30b-a3b, tensor_parallel: 4}", "--tensor-parallel", "2") == split)
expect("pass: experts without a gate take less time", ms_of("{preset: qwen3-30b-a3b, gated: false}") < ms_of("qwen3-30b-a3b"))
status, out, err = run("run", "nothing.yaml", "--format", "json")
expect("bad input prints nothing", status == 2 and not out and err)
status, out, _ = run("plan", "--format", "json", "--help")
expect("help is text", status == 0 and out.startswith("Finds the best draft length") and "\nusage: specsim plan" in out and "--format" in out)

# ---- check: JUnit and annotations
with tempfile.TemporaryDirectory() as folder:
    xml = Path(folder) / "report.xml"
    agrees = ["check", "configs/quickstart.yaml", "--set", "rounds=2e4", "--junit", xml]
    status, out, _ = run(*agrees)
    suites = ET.parse(xml).getroot()
    expect("JUnit: no failure", suites.tag == "testsuites" and suites.get("failures") == "0" and int(suites.get("tests")) > 0)
    expect("JUnit: wrote", f"wrote {xml}" in out)
    wrong = Path(folder) / "wrong.yaml"
    # A closed form of one alpha, compared with text of two alphas: they must disagree.
    wrong.write_text("experiment: wrong\nrounds: 200000\nseed: 3\npair:\n  vocab: 8\n  target: {family: zipf, exponent: 1}\n"
                     "  draft: {from: target, transform: temperature, value: 0.6}\ntheory: {name: geometric_at_mean_alpha}\ncontext:\n"
                     "  process: regimes\n  states: [{draft: {from: target, transform: overlap, value: 0.95, shape: disjoint_tail}}, "
                     "{draft: {from: target, transform: overlap, value: 0.3, shape: disjoint_tail}}]\n"
                     "  transition: [[0.95, 0.05], [0.05, 0.95]]\ndecode:\n  drafter: {kind: chain, draft_length: 4}\n")
    status, out, err = run("check", wrong, "--junit", xml, "--github")
    expect(f"a cell that disagrees: status {status} {err}", status == 1)
    if status == 1:
        bad = ET.parse(xml).getroot().findall(".//failure")
        expect("JUnit tells it", len(bad) == 1 and bad[0].get("message"))
        expect(f"annotated: {out}", re.search(rf"^::error file={re.escape(str(wrong))}(,line=\d+)?,title=wrong cell 0::", out, re.M))
    status, out, err = run("check", GOOD, "--junit", "")
    expect("--junit without a file", status == 2 and '--junit: "", allowed: a file' in err)
    status, out, err = run("run", GOOD, "--junit", "x.xml")
    expect("--junit of run", status == 2 and "unknown option" in err)

    # The step of the action, as a runner would call it.
    step = ".github/actions/check/check.sh"
    told = Path(folder) / "output"
    environment = {**os.environ, "SPECSIM": SPECSIM, "CONFIGS": "configs/quickstart.y*ml", "ARGUMENTS": "--set rounds=2e4", "JUNIT": str(xml),
                   "UNTESTED": "warning", "GITHUB_OUTPUT": str(told)}
    done = subprocess.run(["bash", step], env=environment, capture_output=True, text=True)
    expect(f"the action's step: {done.returncode} {done.stderr}", done.returncode == 0 and told.read_text().startswith("status="))
    done = subprocess.run(["bash", step], env={**environment, "UNTESTED": "maybe"}, capture_output=True, text=True)
    expect("the action's step refuses", done.returncode == 2 and "allowed: error, warning" in done.stdout)

finish()
