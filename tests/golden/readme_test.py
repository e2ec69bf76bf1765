#!/usr/bin/python3
"""README.md shows what results/ holds: the claims tables, the methods; and what the quickstart and the worked plan print. --update puts them in."""
import csv
import re
import subprocess
import os
import sys
from pathlib import Path

README = Path("README.md")


PLAN = ["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-70b", "--tensor-parallel", "4", "--draft", "llama-3.2-1b", "--position-rates",
        "0.723,0.455,0.291,0.16", "--batch", "16", "--context", "4096", "--longest", "8"]


def printed(*arguments):
    run = subprocess.run([os.environ["SPECSIM"], *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    return run.stdout


def methods():
    """Verifiers and drafters as the program lists them, each with the first cell of results/methods that uses it."""
    with open("results/methods/methods.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    lines = ["| | paper | lossless | tokens per round | draft passes | verified rows | in `configs/examples/methods` |", "|---|---|---|---|---|---|---|"]
    kind = ""
    for line in printed("list").splitlines():
        if not line.startswith(" "):
            kind = line.split()[0]
        elif kind in ("verifier", "drafter"):
            name = line.split()[0]
            source = re.search(r"^  source: (.*)$", printed("describe", f"{kind}/{name}"), re.M)
            lossless = "by its verifier" if kind == "drafter" else "no" if line.endswith("[not lossless]") else "yes"
            cell = next((cell for cell in cells if cell[kind].split()[0] == name), None)
            figures = ["", "", "", ""]
            if cell:
                other = cell["drafter" if kind == "verifier" else "verifier"]
                figures = [f"{float(cell['tokens_per_round']):.2f}", f"{float(cell['draft_passes']):.3g}", f"{float(cell['verified_rows']):.3g}", f"{cell['config']}: {other}"]
            lines.append("| " + " | ".join([f"{kind} `{name}`", source[1] if source else "", lossless, *figures]) + " |")
    return "\n".join(lines) + "\n"


def between(text, name, content):
    pattern = re.compile(rf"(<!-- {name}[^>]*-->\n).*?(<!-- end of {name} -->)", re.S)
    if not pattern.search(text):
        sys.exit(f"README.md lacks the marks of {name}")
    return pattern.sub(lambda match: match[1] + content + match[2], text)


def main():
    text = README.read_text()
    claims = Path("results/claims/claims.md").read_text()
    wanted = between(text, "claims", "\n" + claims + "\n")
    timing = Path("results/timing_claims/timing_claims.md").read_text().split("\n\n")[0]
    wanted = between(wanted, "timing claims", "\n" + timing + "\n\n")
    wanted = between(wanted, "method claims", "\n" + Path("results/method_claims/method_claims.md").read_text() + "\n")
    wanted = between(wanted, "real methods", "\n" + Path("results/real_methods/methods.md").read_text() + "\n")
    wanted = between(wanted, "quickstart", "```\n$ build/specsim check configs/quickstart.yaml\n" + printed("check", "configs/quickstart.yaml") + "```\n")
    wanted = between(wanted, "plan", "```\n$ build/specsim " + " ".join(PLAN) + "\n" + printed(*PLAN) + "```\n")
    wanted = between(wanted, "methods", "\n" + methods() + "\n")
    if "--update" in sys.argv:
        README.write_text(wanted)
    elif wanted != text:
        sys.exit("README.md does not show what results/ and configs/quickstart.yaml give: scripts/update_golden.sh writes it anew")


main()
