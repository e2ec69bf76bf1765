#!/usr/bin/python3
"""README.md shows what results/ holds: the claims table and the quickstart's table. --update puts them in."""
import re
import subprocess
import os
import sys
from pathlib import Path

README = Path("README.md")


def between(text, name, content):
    pattern = re.compile(rf"(<!-- {name}[^>]*-->\n).*?(<!-- end of {name} -->)", re.S)
    if not pattern.search(text):
        sys.exit(f"README.md lacks the marks of {name}")
    return pattern.sub(lambda match: match[1] + content + match[2], text)


def main():
    text = README.read_text()
    claims = Path("results/claims/claims.md").read_text()
    run = subprocess.run([os.environ["SPECSIM"], "check", "configs/quickstart.yaml"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    wanted = between(text, "claims", "\n" + claims + "\n")
    wanted = between(wanted, "quickstart", "```\n$ build/specsim check configs/quickstart.yaml\n" + run.stdout + "```\n")
    if "--update" in sys.argv:
        README.write_text(wanted)
    elif wanted != text:
        sys.exit("README.md does not show what results/claims/claims.md and configs/quickstart.yaml give: scripts/update_golden.sh writes it anew")


main()
