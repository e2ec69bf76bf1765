#!/usr/bin/python3
"""README.md shows what results/ holds: the claims tables; and what the quickstart and the worked plan print. --update puts them in."""
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
    wanted = between(wanted, "quickstart", "```\n$ build/specsim check configs/quickstart.yaml\n" + printed("check", "configs/quickstart.yaml") + "```\n")
    wanted = between(wanted, "plan", "```\n$ build/specsim " + " ".join(PLAN) + "\n" + printed(*PLAN) + "```\n")
    if "--update" in sys.argv:
        README.write_text(wanted)
    elif wanted != text:
        sys.exit("README.md does not show what results/ and configs/quickstart.yaml give: scripts/update_golden.sh writes it anew")


main()
