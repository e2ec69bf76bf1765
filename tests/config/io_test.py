#!/usr/bin/python3
"""The program on a machine with faults: files in the way, a full disk, a closed pipe, too little memory.

    tests/config/io_test.py

Runs at the root of the repository; SPECSIM names the program.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import IO_FAILED, SPECSIM  # noqa: E402

CONFIG = "tests/config/good/zeros.yaml"


def run(*arguments, file_bytes=None, **options):
    def limit():
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([SPECSIM, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120,
                          preexec_fn=limit, **options)


class Io(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())

    def tearDown(self):
        shutil.rmtree(self.folder)

    def failed(self, result, message):
        self.assertEqual((result.stderr, result.returncode), (message, IO_FAILED))

    def test_a_file_where_the_directory_should_be(self):
        place = self.folder / "file"
        place.write_text("mine\n")
        result = run("run", CONFIG, "--out", str(place))
        self.failed(result, f"specsim: {place}: cannot be made a directory: Not a directory\n")
        self.failed(run("run", CONFIG, "--out", str(place / "below")),
                    f"specsim: {place}/below: cannot be made a directory: Not a directory\n")
        self.assertEqual(place.read_text(), "mine\n")

    def test_a_directory_where_the_files_should_be(self):
        for name, message in (("data.csv", "cannot be replaced: Is a directory"),
                              ("data.csv.part", "cannot be written: Is a directory"),
                              ("counts.csv", "cannot be replaced: Is a directory"),
                              ("manifest.yaml", "cannot be replaced: Is a directory")):
            out = self.folder / name.replace(".", "_")
            (out / name / "mine").mkdir(parents=True)
            result = run("run", CONFIG, "--out", str(out), "--force")
            self.failed(result, f"specsim: {out}/{name}: {message}\n")
            self.assertTrue((out / name / "mine").is_dir())
            # The work is kept: once the place is free, the run continues from the journal.
            self.assertTrue((out / "journal.txt").exists())
            shutil.rmtree(out / name)
            self.assertEqual(run("run", CONFIG, "--out", str(out), "--resume").returncode, 0)
            self.assertEqual(sorted(p.name for p in out.iterdir()), ["counts.csv", "data.csv", "manifest.yaml"])

    def test_a_directory_where_the_journal_should_be(self):
        out = self.folder / "out"
        (out / "journal.txt" / "mine").mkdir(parents=True)
        self.failed(run("run", CONFIG, "--out", str(out), "--force"),
                    f"specsim: {out}/journal.txt: cannot be removed: Directory not empty\n")
        self.failed(run("run", CONFIG, "--out", str(out), "--resume"),
                    f"specsim: {out}/journal.txt: cannot be written: Is a directory\n")

    def test_a_directory_that_may_not_be_written(self):
        out = self.folder / "out"
        out.mkdir(mode=0o555)
        if os.access(out, os.W_OK):
            self.skipTest("root may write everywhere")
        self.failed(run("run", CONFIG, "--out", str(out)), f"specsim: {out}/journal.txt: cannot be written: Permission denied\n")

    def test_a_place_that_cannot_be_made(self):
        if not Path("/proc/self").is_dir():
            self.skipTest("no /proc")
        result = run("run", CONFIG, "--out", "/proc/specsim")
        self.assertEqual(result.returncode, IO_FAILED)
        self.assertRegex(result.stderr, r"^specsim: /proc/specsim: cannot be made a directory: [A-Z][a-z ]+\n$")

    # The thread sanitizer's own start-up, before main, fails under the limit.
    @unittest.skipIf("thread" in os.environ.get("SPECSIM_SANITIZE", ""), "thread sanitizer")
    def test_a_full_disk(self):
        """A limit on the size of files acts as a disk that is full after that many bytes, at every place of the run."""
        whole = self.folder / "whole"
        self.assertEqual(run("run", CONFIG, "--out", str(whole)).returncode, 0)
        sizes = {name: (whole / name).stat().st_size for name in ("data.csv", "counts.csv", "manifest.yaml")}
        refused = set()
        for limit in (0, 1, 40, 100, 200, 400, 600, 800, 1000, 2000, 4000, 16000):
            out = self.folder / f"limit{limit}"
            out.mkdir()
            (out / "data.csv").write_text("old\n")
            result = run("run", CONFIG, "--out", str(out), "--force", file_bytes=limit)
            if result.returncode == 0:
                self.assertEqual(result.stderr, "")
                self.assertEqual((out / "data.csv").read_text(), (whole / "data.csv").read_text())
                continue
            self.assertEqual(result.returncode, IO_FAILED)
            found = re.fullmatch(rf"specsim: {re.escape(str(out))}/([a-z.]+): cannot be written: File too large\n", result.stderr)
            self.assertIsNotNone(found, result.stderr)
            refused.add(found[1])
            if found[1] in ("journal.txt", "data.csv"):
                self.assertEqual((out / "data.csv").read_text(), "old\n")
            else:  # data.csv was written before
                self.assertLessEqual(sizes["data.csv"], limit)
            self.assertEqual([p.name for p in out.iterdir() if p.name.endswith(".part")], [])
            # With room again, the same command goes on.
            result = run("run", CONFIG, "--out", str(out), "--resume")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for name in ("data.csv", "counts.csv"):
                self.assertEqual((out / name).read_text(), (whole / name).read_text())
        self.assertIn("journal.txt", refused)

    def test_a_full_disk_at_the_results(self):
        """The journal is complete and short, data.csv is what does not fit."""
        config = self.folder / "wide.yaml"
        config.write_text(Path(CONFIG).read_text().replace("rounds: 20000", "rounds: 1")
                          + "sweep: {seed: {from: 1, to: 400, step: 1}}\n")
        out = self.folder / "out"
        out.mkdir()
        (out / "data.csv").write_text("old\n")
        self.assertEqual(run("run", str(config), "--out", str(self.folder / "whole"), "--quiet").returncode, 0)
        size = (self.folder / "whole" / "data.csv").stat().st_size
        result = run("run", str(config), "--out", str(out), "--quiet", "--force", file_bytes=size - 1)
        self.failed(result, f"specsim: {out}/data.csv: cannot be written: File too large\n")
        self.assertEqual((out / "data.csv").read_text(), "old\n")
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["data.csv", "journal.txt"])

    def test_a_full_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        out = self.folder / "out"
        for arguments in (["run", CONFIG], ["check", CONFIG], ["run", CONFIG, "--out", str(out)], ["run", CONFIG, "--dry-run"], ["list"],
                          ["describe", "verifier/token"], ["reference"], ["theory", "--alpha", "0.5"], ["--help"], ["run", "--help"], ["--version"]):
            with open("/dev/full", "w") as full:
                result = run(*arguments, stdout=full)
            self.assertEqual(result.returncode, IO_FAILED, arguments)
            self.assertRegex(result.stderr, r"^specsim: .*: No space left on device\n$")
        # The requested files exist although nobody could read the table.
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["counts.csv", "data.csv", "manifest.yaml"])

    def test_a_closed_pipe(self):
        """A closed reader, such as head, causes no message; the status is a failure if the table was the only output."""
        out = self.folder / "out"
        for arguments, status in ((["run", CONFIG, "--out", str(out)], 0), (["reference"], IO_FAILED), (["list"], IO_FAILED),
                                  (["run", CONFIG], IO_FAILED)):
            read, write = os.pipe()
            os.close(read)
            try:
                result = run(*arguments, stdout=write)
            finally:
                os.close(write)
            self.assertEqual((result.returncode, result.stderr), (status, ""), arguments)
        self.assertTrue((out / "data.csv").exists())

    def test_nobody_hears_the_errors(self):
        """A standard error that is closed, full or without a reader changes neither status nor files."""
        bad = ["run", CONFIG, "--set", "rounds=none"]
        for number, stream in enumerate(("2>&-", "2>/dev/full", "2> >(exit 0)", "2>&1 | head -c 1")):
            for arguments, status in ((["list"], 0), (bad, 2), (["nothing"], 2), ([], 2), (["list", "--nothing"], 2)):
                result = subprocess.run(["bash", "-c", f'sleep 0.05 | "$0" "$@" {stream} >/dev/null; exit ${{PIPESTATUS[1]}}', SPECSIM, *arguments],
                                        timeout=60, check=False)
                # The last stream is the output's pipe too: a reader that closes early may not have received the list.
                allowed = (status, IO_FAILED) if arguments == ["list"] and "head" in stream else (status,)
                self.assertIn(result.returncode, allowed, (stream, arguments))
            # Its progress and its warnings are lost; the files are those of a run with an open stream.
            out = self.folder / f"out{number}"
            result = subprocess.run(["bash", "-c", f'"$0" run "$1" --out "$2" {stream}; exit ${{PIPESTATUS[0]}}', SPECSIM, CONFIG, str(out)],
                                    stdout=subprocess.DEVNULL, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, stream)
            self.assertTrue((out / "data.csv").exists())

    def test_nothing_is_open(self):
        """Started without standard streams, the first file that is opened must not become one of them."""
        out = self.folder / "out"
        result = subprocess.run(["bash", "-c", '"$0" run "$1" --out "$2" <&- >&- 2>&-', SPECSIM, CONFIG, str(out)], timeout=60, check=False)
        self.assertEqual(result.returncode, IO_FAILED)  # its table could not be printed
        self.assertEqual(run("run", CONFIG, "--out", str(self.folder / "whole")).returncode, 0)
        for name in ("data.csv", "counts.csv"):
            self.assertEqual((out / name).read_bytes(), (self.folder / "whole" / name).read_bytes())

    def test_a_closed_output(self):
        result = subprocess.run(["bash", "-c", 'exec "$0" run "$1" >&-', SPECSIM, CONFIG], stderr=subprocess.PIPE, text=True, timeout=60)
        self.failed(result, "specsim: standard output cannot be written: Bad file descriptor\n")

    def refused(self, arguments, message):
        """Bad input is reported within seconds and without filling memory."""
        result = run(*arguments)
        self.assertEqual((result.stderr, result.stdout, result.returncode), (message + "\n", "", 2))

    def test_files_that_cannot_be_read_to_their_end(self):
        # Reading a process's own memory from its start is an input/output error, on every Linux.
        broken = "/proc/self/mem"
        directory = str(self.folder)
        trace = lambda file: ["check", CONFIG, "--set", f"context={{process: trace, file: {file}}}"]
        for file, found in ((broken, "cannot be read: input/output error, allowed: a readable {}"), (directory, "it is a directory, allowed: a {}"),
                            ("/dev/zero", "it is larger than {limit} bytes, allowed: at most {limit} bytes")):
            yaml = found.replace("{limit}", "67108864").replace("{}", "YAML file")
            lines = found.replace("{limit}", "536870912").replace("{}", "JSONL file")
            table = found.replace("{limit}", "536870912").replace("{}", "CSV file")
            self.refused(["run", file], f"{file}: {yaml}")
            self.refused(["plan", "--trace", file], f"{file}: {lines}")
            self.refused(["fit", file], f"{file}: {lines}")
            self.refused(trace(file), f"--set context:1:24: {file}: {lines}")
            self.refused(["run", CONFIG, "--set", f"cost={{model: table, file: {file}}}"], f"--set cost:1:22: {file}: {table}")

    @unittest.skipIf("thread" in os.environ.get("SPECSIM_SANITIZE", ""), "thread sanitizer")  # which keeps several times the memory
    def test_a_long_line_takes_little_memory(self):
        trace = self.folder / "long.jsonl"
        line = '{"request": 1, "overlap": [' + ", ".join(["0.5"] * 1_000_000) + "]}\n"
        trace.write_text(line)
        child = subprocess.Popen([SPECSIM, "plan", "--trace", str(trace)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertLess(usage.ru_maxrss * 1024, 100 * len(line))

    def test_tables_larger_than_the_machine(self):
        config = self.folder / "huge.yaml"
        config.write_text("experiment: huge\npair:\n  vocab: 262144\n  target: {family: normal_logits, sigma: 1}\n"
                          "  draft: {from: target, transform: logit_noise, value: 1}\ncontext: {process: iid, pool: 1048576}\n"
                          "decode: {drafter: {kind: chain, draft_length: 4}}\n")
        out = self.folder / "out"
        for arguments in ([], ["--threads", "1"]):
            result = run("run", str(config), "--out", str(out), *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            found = re.fullmatch(rf"{re.escape(str(config))}: needs ([0-9.]+) ([KMGT]iB) for the tables of its contexts, this machine has "
                                 r"[0-9.]+ [KMG]iB available; allowed: a smaller vocabulary or pool, fewer --threads, or context.fresh\n",
                                 result.stderr)
            self.assertIsNotNone(found, result.stderr)
            # An alias entry and an acceptance ratio at the least for each token of each pair.
            gib = float(found[1]) * {"GiB": 1, "TiB": 1024}[found[2]]
            self.assertGreater(gib, 2**20 * 2**18 * 8 / 2**30)
            self.assertFalse(out.exists())
        dry = run("run", str(config), "--dry-run")
        self.assertEqual(dry.returncode, 2)
        self.assertRegex(dry.stdout, r"^1 cell, 1e\+06 rounds, about [0-9.]+ [GT]iB of tables \(largest set [0-9.]+ [GT]iB\)")
        # The same pool over a small vocabulary is accepted.
        self.assertEqual(run("run", str(config), "--set", "pair.vocab=2", "--set", "context.pool=1024", "--set", "rounds=1000").returncode, 0)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
