"""Builds the wheel of the package for Python with CMake: the backend that pip calls (pyproject.toml, PEP 517).

pip wheel . --no-build-isolation --no-deps    offline, with Debian's cmake, ninja-build, pybind11-dev and the program's libraries
pip install .                                 the same, and installs it

The wheel holds the module, its Python files, and the program, which `python -m specsim` runs. The program's libraries (fmt, yaml-cpp,
liblzma) stay outside: the wheel is for the machine that built it.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def project():
    """Name, version and other fields of pyproject.toml; Python 3.9 has no reader for the format."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return {key: re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE).group(1) for key in ("name", "version", "description", "requires-python")}


def tag():
    """cp311-cp311-linux_x86_64"""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{version}-{version}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def metadata():
    own = project()
    return (f"Metadata-Version: 2.1\nName: {own['name']}\nVersion: {own['version']}\nSummary: {own['description']}\n"
            f"Requires-Python: {own['requires-python']}\nLicense: MIT\nRequires-Dist: numpy\nProvides-Extra: pandas\n"
            "Requires-Dist: pandas; extra == 'pandas'\nDescription-Content-Type: text/markdown\n\n" +
            (ROOT / "README.md").read_text(encoding="utf-8"))


def built_files(build):
    """The files of the wheel by their path in it."""
    own = [f"-DPython_EXECUTABLE={sys.executable}", "-DSPECSIM_PYTHON_PACKAGE=ON", "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release"]
    try:
        import pybind11
        own.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
    except (ImportError, AttributeError):
        pass  # Debian's pybind11-dev needs no path
    jobs = ["--parallel", os.environ["SPECSIM_JOBS"]] if "SPECSIM_JOBS" in os.environ else []
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *own], check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", build, "--target", "specsim_python", "specsim", *jobs], check=True, stdout=sys.stderr)
    files = {f"specsim/{path.name}": path for path in (build / "python" / "specsim").iterdir() if path.is_file()}
    files["specsim/bin/specsim"] = build / "specsim"
    return files


def add(wheel, records, name, data, mode=0o644):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    records.append(f"{name},sha256={digest},{len(data)}")
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes for every build
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, data)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    own = project()
    name = f"{own['name']}-{own['version']}-{tag()}.whl"
    info = f"{own['name']}-{own['version']}.dist-info"
    records = []
    with tempfile.TemporaryDirectory() as temporary:
        files = built_files(Path(os.environ.get("SPECSIM_WHEEL_BUILD", temporary)))
        with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
            for path, source in sorted(files.items()):
                add(wheel, records, path, source.read_bytes(), 0o755 if path.endswith("bin/specsim") else 0o644)
            add(wheel, records, f"{info}/METADATA", metadata().encode())
            add(wheel, records, f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: specsim_backend\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())
            add(wheel, records, f"{info}/entry_points.txt", b"[console_scripts]\nspecsim = specsim.__main__:main\n")
            add(wheel, records, f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
            records.append(f"{info}/RECORD,,")
            wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), "\n".join(records) + "\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    own = project()
    name = f"{own['name']}-{own['version']}"
    subprocess.run(["git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix={name}/", "-o", Path(sdist_directory).resolve() / f"{name}.tar.gz", "HEAD"],
                   check=True)
    return f"{name}.tar.gz"
