#!/usr/bin/python3
"""Scripts in docs/ that use the package: their page has what they print, after little work.

    PYTHONPATH=build/python tests/python/pages_test.py        (at the root of the repository, with pytest)
"""
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 60.0  # processor seconds: 30 on two cores
BLOCK = re.compile(r"<!-- python: (.*?) -->\n\n```console\n\$ python3 \1\n(.*?)```", re.S)
SCRIPTS = [found for page in sorted(Path("docs").rglob("*.md")) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def test_pages_have_scripts():
    assert len(SCRIPTS) == sum(page.read_text(encoding="utf-8").count("<!-- python: ") for page in Path("docs").rglob("*.md")) > 0


@pytest.mark.parametrize("script,answer", SCRIPTS)
def test_answer(script, answer):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < MOST


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
