#!/usr/bin/python3
"""The .deb and the .tar.xz of scripts/packages in clean systems: plan, run and a plot work there, and the .deb has its help files.

The .deb is installed by apt in Debian 12, with what it depends on and recommends; the .tar.xz is unpacked in Debian 11, whose C library
(2.31) is the oldest that is promised. Skipped, with the reason, without root, without mmdebstrap, or where a package or Debian's
archive is not to be had.

    tests/slow/packages_test.py [PACKAGES]      (at the root of the repository; PACKAGES: build/packages if not given; made where missing)
"""
import shutil
import subprocess
import sys
import tempfile
from os import geteuid
from pathlib import Path

SKIPPED = 77
PLAN = ["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7", "--longest", "4"]
RUN = ["run", "configs/quickstart.yaml", "--set", "rounds=20000"]
HELP = ["man/man1/specsim.1.gz", "bash-completion/completions/specsim", "zsh/vendor-completions/_specsim",
        "fish/vendor_completions.d/specsim.fish", "doc/specsim/copyright", "specsim/configs/quickstart.yaml"]
LONGEST_SECONDS = 1800  # of a command; a bound on hanging, not on speed


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        print(done.stdout)
        sys.exit(f"packages_test: {' '.join(map(str, command[:6]))} ended with status {done.returncode}")
    return done.stdout


def new_system(folder, suite, *include):
    done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--aptopt=Acquire::Retries 3", *include, suite, folder], text=True,
                          timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        skip(f"mmdebstrap cannot make {suite}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no reason is given'}")


def try_program(system, program):
    """plan, run and a plot, as somebody in a folder of their own."""
    def inside(*words):
        return run("chroot", system, "sh", "-c", 'cd /root && exec "$@"', "sh", program, *words)

    told = inside("--version")
    answer = inside(*PLAN, "--out", "plan")
    assert "recommendation: draft length" in answer, answer
    inside(*RUN, "--out", "out")
    rows = (system / "root/out/data.csv").read_text().splitlines()
    assert len(rows) == 9, f"{len(rows)} lines of data.csv, 8 cells and a head expected"
    for name in ("plan", "out"):
        inside("plot", name)
        pictures = list((system / "root" / name).glob("*.png"))
        assert pictures and all(one.stat().st_size > 5000 for one in pictures), f"no picture of {name}"
    return told.strip(), answer


def main():
    if geteuid() != 0:
        skip("a clean system is made and entered by root alone")
    if shutil.which("mmdebstrap") is None:
        skip("mmdebstrap is missing (Debian: mmdebstrap)")
    packages = Path(sys.argv[1] if len(sys.argv) > 1 else "build/packages").resolve()
    if not list(packages.glob("*.tar.xz")):
        made = subprocess.run(["scripts/packages"], text=True, stdin=subprocess.DEVNULL, capture_output=True)
        if made.returncode:
            print(made.stdout[-3000:], made.stderr[-3000:])
            skip("scripts/packages ends with an error, which it does without Debian's archive")
    deb, = packages.glob("specsim_*.deb")
    tarball, = packages.glob("specsim-*.tar.xz")
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=packages)

    with tempfile.TemporaryDirectory() as folder:
        system = Path(folder) / "debian12"
        new_system(system, "bookworm", f"--customize-hook=cp '{deb}' \"$1/root/specsim.deb\"",
                   '--customize-hook=DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y -o APT::Install-Recommends=true install /root/specsim.deb')
        version, answer = try_program(system, "specsim")
        for name in HELP:
            assert (system / "usr/share" / name).is_file(), f"the .deb has no {name}"
        assert not (system / "usr/include/specsim").exists(), "the .deb has the library's header"
        print(f"{deb.name}: {version}")

        old = Path(folder) / "debian11"
        new_system(old, "bullseye", "--include=python3-matplotlib,python3-yaml")
        run("tar", "--extract", "--file", tarball, "--directory", old / "opt")
        program, = (old / "opt").glob("*/bin/specsim")
        again, same = try_program(old, f"/{program.relative_to(old)}")
        assert again == version, f"the .tar.xz prints {again}, the .deb {version}"
        assert same == answer, "plan prints something else from the .tar.xz than from the .deb"
        print(f"{tarball.name}: {again}")


if __name__ == "__main__":
    main()
