#!/usr/bin/python3
"""The wheel as pip builds it, installed in a fresh virtual environment: the package's tests pass from there, and the program runs.

    tests/python/wheel_test.py [BUILD]        (at the root of the repository; BUILD: folder to compile in, build/wheel if not given)
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def main():
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPECSIM")}
    environment["SPECSIM_WHEEL_BUILD"] = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "wheel").resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "-w", folder, env=environment)
        wheel, = folder.glob("specsim-*.whl")
        run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel, env=environment)
        told = run(python, "-m", "specsim", "--version", capture_output=True, cwd=folder, env=environment).stdout
        assert told.startswith("specsim 0."), told
        program = folder / "venv" / "bin" / "specsim"
        assert run(program, "--version", capture_output=True, cwd=folder, env=environment).stdout == told
        where = run(python, "-c", "import specsim; print(specsim.__file__)", capture_output=True, cwd=folder, env=environment).stdout
        assert str(folder) in where, where
        run(python, "-m", "pytest", "-q", ROOT / "tests" / "python" / "package_test.py", cwd=ROOT,
            env={**environment, "SPECSIM": str(folder / "venv" / "lib" / Path(where.strip()).parts[-4] / "site-packages" / "specsim" / "bin" / "specsim")})
    print("the wheel installs, and its tests pass")


if __name__ == "__main__":
    main()
