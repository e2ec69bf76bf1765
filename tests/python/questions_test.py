#!/usr/bin/python3
"""Questions on docs/questions.md that a script answers with the package: the page has what the script prints, after little work.

    PYTHONPATH=build/python tests/python/questions_test.py        (at the root of the repository, with pytest)
"""
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 60.0  # processor seconds: 30 on two cores
SCRIPTS = re.findall(r"<!-- python: (.*?) -->\n\n```console\n\$ python3 \1\n(.*?)```", Path("docs/questions.md").read_text(encoding="utf-8"), re.S)


def test_the_page_has_scripts():
    assert SCRIPTS


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
