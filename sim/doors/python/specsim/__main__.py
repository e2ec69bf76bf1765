"""python -m specsim ARGUMENTS: the program, with these arguments."""
import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).resolve().parent / "bin" / "specsim"
    found = str(program) if program.is_file() else shutil.which("specsim")
    if found is None or Path(found).resolve() == Path(sys.argv[0]).resolve():
        sys.exit("specsim: the program is not installed next to the package, allowed: a wheel of scripts/wheel, or specsim on PATH")
    os.execv(found, ["specsim", *sys.argv[1:]])


if __name__ == "__main__":
    main()
