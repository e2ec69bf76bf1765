#!/usr/bin/python3
"""Faults around the program: calls that fail, folders that vanish, two writers, files that change.

    tests/faults/faults_test.py

Each fault ends in a clear error and a documented status, or in the same bytes as without it. Runs at the root of the repository;
SPECSIM names the program. Sudden ends (kill -9) are in tests/golden/reproducible_test.py.
"""

import errno
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import BAD_INPUT, DISAGREE, FINE, INTERRUPTED, IO_FAILED, SANITIZERS, SPECSIM, UNTESTED  # noqa: E402

FILES = ("data.csv", "counts.csv")
CONFIG = """experiment: small
pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 3}}
rounds: 4003
context: {process: fixed, sequence_rounds: 3}
sweep: {decode.drafter.draft_length: [1, 2]}
"""
TRACED = """experiment: traced
pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 3}}
rounds: 30000
context: {process: trace, file: TRACE}
"""
TIMED = """experiment: timed
pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 3}}
rounds: 1000
cost: {model: ratio, draft_seconds: 0.001, target_seconds: 0.01}
workload: {batch: 2, output_tokens: 20}
placement: {kind: two_gpus}
"""


def run(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([SPECSIM, *map(str, arguments)], stderr=subprocess.PIPE, text=True, timeout=600, **options)


class WithResults(unittest.TestCase):
    """A small config, the results of an undisturbed run of it, and a folder for each test."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.config = cls.folder / "small.yaml"
        cls.config.write_text(CONFIG)
        result = run("run", cls.config, "--out", cls.folder / "whole")
        assert result.returncode == 0, result.stderr
        cls.whole = [(cls.folder / "whole" / name).read_bytes() for name in FILES]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(dir=self.folder))

    def same(self, out):
        self.assertEqual([(out / name).read_bytes() for name in FILES], self.whole)

    def refused(self, result, message):
        self.assertEqual(result.returncode, BAD_INPUT, result.stderr)
        self.assertRegex(result.stderr, message)


class Faults(WithResults):
    def started(self, *arguments, **options):
        """A run that is stopped by SIGSTOP with most of its work to do, however busy the machine is; go_on() continues it."""
        journal = Path(arguments[arguments.index("--out") + 1]) / "journal.txt"
        lines = lambda: journal.read_bytes().count(b"\n") if journal.exists() else 0
        for _ in range(100):  # it may end before this process gets a turn
            process = subprocess.Popen([SPECSIM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, **options)
            while process.poll() is None and lines() <= 4:
                time.sleep(0.002)
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED and 4 < lines() < 40:
                    return process
                process.send_signal(signal.SIGCONT)
            process.communicate()
        self.fail("it is never seen at work")

    @staticmethod
    def go_on(process, number=signal.SIGCONT):
        """Standard error until the process ends after this signal, without progress lines."""
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        return re.sub(r"(?m)^[0-9.]+% of .* left\n", "", process.communicate(timeout=600)[1])

    # ---- calls that fail

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_calls_that_fail(self):
        """Each system call on a file of the run fails once or from then on: the error names the file, and --resume completes the run."""
        shim = self.folder / "failing_calls.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), "tests/faults/failing_calls.c", "-ldl"], check=True)
        faults = 0
        for call, error in (("open", errno.EMFILE), ("open", errno.ENOMEM), ("read", errno.EIO), ("write", errno.ENOSPC), ("write", errno.EIO),
                            ("fsync", errno.EIO), ("rename", errno.EIO), ("ftruncate", errno.EIO)):
            for number in (1, 2, 3, 5, 9, 40, 133):
                for more in ("", ":always"):
                    out = self.scratch / f"{call}{error}_{number}{more[1:]}"
                    shutil.copy(self.config, self.scratch / "mine.yaml")
                    environment = {**os.environ, "LD_PRELOAD": str(shim), "FAULT": f"{call}:{error}:{number}{more}",
                                   "FAULT_FOLDER": str(self.scratch)}
                    result = run("run", self.scratch / "mine.yaml", "--out", out, "--threads", "1", env=environment)
                    shown = (call, errno.errorcode[error], number, more, result.stderr)
                    self.assertIn(result.returncode, (FINE, IO_FAILED, BAD_INPUT), shown)
                    self.assertEqual([p for p in out.glob("*.part")] if out.exists() else [], [], shown)
                    if result.returncode == FINE:
                        self.same(out)
                        continue
                    faults += 1
                    self.assertIn(str(self.scratch), result.stderr, shown)
                    self.assertNotIn("should not happen", result.stderr)
                    again = run("run", self.scratch / "mine.yaml", "--out", out, "--resume")
                    self.assertEqual(again.returncode, FINE, (shown, again.stderr))
                    self.same(out)
        self.assertGreater(faults, 25)

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_ended_as_a_file_is_made(self):
        """A signal that arrives while the system creates a file, before the program knows that the file exists."""
        shim = self.folder / "ending_calls.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), "tests/faults/failing_calls.c", "-ldl"], check=True)
        plan = ("plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7")
        for words, files in ((("run", self.config), 2), (plan, 3)):
            for number in range(1, files + 1):
                for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    out = self.scratch / f"{words[0]}_{number}_{how}"
                    environment = {**os.environ, "LD_PRELOAD": str(shim), "FAULT": f"end:{int(how)}:{number}", "FAULT_FOLDER": str(self.scratch)}
                    result = run(*words, "--out", out, env=environment)
                    shown = (words[0], number, how, result.returncode, result.stderr)
                    self.assertEqual(result.returncode, INTERRUPTED, shown)
                    self.assertEqual(list(out.glob("*.part")), [], shown)

    @unittest.skipIf(SANITIZERS, "a sanitizer maps more than there is")
    def test_too_little_of_everything(self):
        """No file handles, memory or processor time left: a documented status, no signal from the program itself, and no partial file."""
        for kind, limits in ((resource.RLIMIT_NOFILE, (3, 4, 5, 6, 8)), (resource.RLIMIT_AS, (40 << 20, 60 << 20, 90 << 20, 130 << 20, 300 << 20)),
                             (resource.RLIMIT_NPROC, (0, 1))):
            for limit in limits:
                out = self.scratch / f"limit{kind}_{limit}"
                result = run("run", self.config, "--out", out, "--threads", "4",
                             preexec_fn=lambda k=kind, n=limit: resource.setrlimit(k, (n, n)))
                if result.returncode == 127:  # the loader found no memory for the program's libraries
                    continue
                self.assertIn(result.returncode, (FINE, IO_FAILED, BAD_INPUT), (kind, limit, result.stderr))
                if result.returncode == FINE:
                    self.same(out)
                else:
                    self.assertEqual(run("run", self.config, "--out", out, "--resume").returncode, FINE)
                    self.same(out)

    def test_reading_what_never_ends(self):
        for place, message in (("/dev/zero", "larger than|YAML|memory"), ("tests", "directory")):
            config = self.scratch / "traced.yaml"
            config.write_text(TRACED.replace("TRACE", place))
            result = run("run", config)
            self.refused(result, message)
            self.assertLess(len(result.stderr), 1000)

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_a_log_that_cannot_be_read_to_its_end(self):
        """A read error within a server's log must not pass as the end of the log."""
        shim = self.scratch / "failing_calls.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), "tests/faults/failing_calls.c", "-ldl"], check=True)
        log = self.scratch / "vllm.log"
        log.write_text(400 * Path("tests/data/logs/vllm.log").read_text())
        environment = {**os.environ, "LD_PRELOAD": str(shim), "FAULT": f"read:{errno.EIO}:2:always", "FAULT_FOLDER": str(self.scratch)}
        for command in (["import"], ["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle-head-8b", "--log"]):
            result = run(*command, log, env=environment)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (BAD_INPUT, "", f"{log}: cannot be read: input/output error, allowed: a readable server's log\n"))

    # ---- folders

    def test_a_removed_folder(self):
        """The failure is reported at once, and the results are written nevertheless."""
        out = self.scratch / "out"
        process = self.started("run", self.config, "--set", "rounds=2e6", "--out", str(out), "--threads", "1")
        shutil.rmtree(out)
        errors = self.go_on(process)
        self.assertEqual((process.returncode, errors), (FINE, f"warning: {out}/journal.txt was removed: the run continues, but cannot be resumed\n"))
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["counts.csv", "data.csv", "manifest.yaml"])

    def test_a_moved_folder(self):
        """A run that is stopped names its journal only if the journal is still there, and goes on where it was moved."""
        sweep = ["serve", "configs/serve/chat.yaml", "--requests", "300", "--sweep", "rate=1:40:20", "--replications", "20", "--no-capacity", "--threads", "1"]
        for command in (["run", self.config, "--set", "rounds=2e6", "--threads", "1"], sweep):
            out, moved = self.scratch / f"out {command[0]}", self.scratch / f"moved {command[0]}"
            for what in ("nothing", "a folder", "a journal"):
                process = self.started(*command, "--out", str(out))
                out.rename(moved)
                if what != "nothing":
                    out.mkdir()
                if what == "a journal":
                    (out / "journal.txt").write_text("mine\n")
                errors = self.go_on(process, signal.SIGTERM)
                self.assertEqual((process.returncode, errors), (INTERRUPTED, f"stopped before the end; {out}/journal.txt was moved: continue with the same command, "
                                                                             "--resume, and as --out the folder where it is now\n"))
                if what == "nothing":
                    self.assertIn("specsim journal ", (moved / "journal.txt").read_text())
                    result = run(*command, "--out", moved, "--resume", "--quiet") if command[0] == "run" else run(*command, "--out", moved, "--resume", "--dry-run")
                    self.assertEqual(result.returncode, FINE, result.stderr)
                shutil.rmtree(moved)
                shutil.rmtree(out, ignore_errors=True)

    def test_two_writers(self):
        out = self.scratch / "out"
        process = self.started("run", self.config, "--set", "rounds=2e6", "--out", str(out), "--threads", "1")
        for more in ([], ["--resume"], ["--force"], ["--seed", "3", "--force"]):
            self.refused(run("run", self.config, "--set", "rounds=2e6", "--out", out, *more),
                         f"^{re.escape(str(out))}: another process is writing here, allowed: another --out, or this one when it has ended\n$")
        errors = self.go_on(process)
        self.assertEqual((process.returncode, errors), (FINE, ""))
        self.assertEqual(run("run", self.config, "--set", "rounds=2e6", "--out", self.scratch / "alone").returncode, FINE)
        for name in FILES:
            self.assertEqual((out / name).read_bytes(), (self.scratch / "alone" / name).read_bytes())

    def test_no_empty_folder_is_left(self):
        out = self.scratch / "deep" / "out"
        self.refused(run("compare", "configs/quickstart.yaml", "--set", "rounds=none", "--out", out), "rounds")
        shards = self.scratch / "shards"
        self.assertEqual(run("run", self.config, "--shard", "1/2", "--out", shards).returncode, FINE)
        self.refused(run("merge", shards, "--out", out), "shard 2/2 is missing")
        self.assertFalse(out.parent.exists())

    def test_merge_takes_a_folder_of_shards(self):
        whole, folder = self.scratch / "whole", self.scratch / "shards"
        self.assertEqual(run("run", self.config, "--out", whole).returncode, FINE)
        for i in (1, 2, 3):
            self.assertEqual(run("run", self.config, "--shard", f"{i}/3", "--out", folder / str(i)).returncode, FINE)
        (folder / "logs").mkdir()
        for _ in range(2):  # in the second merge its own results are among the shards
            self.assertIn(run("merge", folder, "--out", folder / "all").returncode, (FINE, DISAGREE))
            for name in ("data.csv", "counts.csv"):
                self.assertEqual((whole / name).read_bytes(), (folder / "all" / name).read_bytes())
        shutil.rmtree(folder / "all")
        (folder / "2" / "manifest.yaml").unlink()
        self.refused(run("merge", folder, "--out", self.scratch / "lacking"), "shard 2/3 is missing: 2 of 3 given")
        self.refused(run("merge", folder / "logs", "--out", self.scratch / "lacking"), "manifest.yaml")

    # ---- pipes, devices and links in the way

    def test_a_pipe_named_journal(self):
        out = self.scratch / "out"
        out.mkdir()
        os.mkfifo(out / "journal.txt")
        self.refused(run("run", self.config, "--out", out), "an unfinished run is here")
        self.refused(run("run", self.config, "--out", out, "--resume"), "journal.txt: is no regular file, allowed: --force to delete it")
        self.assertEqual(run("run", self.config, "--out", out, "--force").returncode, FINE)
        self.same(out)

    def test_a_pipe_named_manifest(self):
        out = self.scratch / "out"
        out.mkdir()
        os.mkfifo(out / "manifest.yaml")
        model = "tests/data/models/tiny-llama3"
        prompts = self.scratch / "prompts.jsonl"
        prompts.write_text('{"tokens": [1, 2, 3]}\n')
        for command in (["run", self.config], ["merge", out], ["calibrate", "--target", model, "--draft", model, "--prompts", prompts, "--quick"]):
            more = ["--out", self.scratch / "all"] if command[0] == "merge" else ["--out", out]
            self.refused(run(*command, *more), "manifest.yaml: is no regular file|holds the finished results of another run")

    def test_traces_through_pipes(self):
        config = self.scratch / "timed.yaml"
        config.write_text(TIMED)
        plain = self.scratch / "plain.json"
        self.assertEqual(run("run", config, "--trace", plain, "--quiet").returncode, FINE)
        text = plain.read_text()
        pipe = self.scratch / "pipe"
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
        reader.start()
        self.assertEqual(run("run", config, "--trace", pipe, "--quiet").returncode, FINE)
        reader.join(timeout=600)
        self.assertEqual(got, [text])
        self.assertTrue(pipe.is_fifo())
        for place in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            result = run("run", config, "--trace", place, "--quiet")
            self.assertEqual((result.returncode, result.stdout), (FINE, f"{text}wrote {place}\n"))
            with open(self.scratch / "redirected", "w") as file:
                self.assertEqual(run("run", config, "--trace", place, "--quiet", stdout=file).returncode, FINE)
            self.assertEqual((self.scratch / "redirected").read_text(), f"{text}wrote {place}\n")
        self.assertEqual(run("run", config, "--trace", "/dev/null").returncode, FINE)
        self.assertTrue(Path("/dev/null").is_char_device())
        self.assertEqual(run("run", config, "--trace", "/dev/full").returncode, IO_FAILED)
        self.refused(run("run", config, "--trace", config), "--trace: .* is an input of this command, allowed: another file")
        self.assertEqual(config.read_text(), TIMED)
        # An existing link under the temporary name is not followed.
        victim = self.scratch / "victim"
        victim.write_text("mine\n")
        Path(f"{plain}.part").symlink_to(victim)
        self.assertEqual(run("run", config, "--trace", plain).returncode, IO_FAILED)
        self.assertEqual(victim.read_text(), "mine\n")
        # A file of that name may be a user's. It stays as it is, and blocks no run.
        Path(f"{plain}.part").unlink()
        Path(f"{plain}.part").write_text("mine")
        for command in (["run", config, "--trace", plain], ["check", config, "--junit", self.scratch / "junit.xml"], ["serve", "configs/serve/chat.yaml", "--requests", "20", "--timeline", self.scratch / "timeline.json"]):
            part = Path(f"{command[-1]}.part")
            part.write_text("mine")
            self.assertIn(run(*command, "--force").returncode, (FINE, UNTESTED))
            self.assertEqual(part.read_text(), "mine")
            self.assertEqual([p.name for p in part.parent.glob("*.part.*")] + [p.name for p in part.parent.glob("*.1.part")], [])

    # ---- inputs that change

    def test_a_trace_that_changes(self):
        trace = self.scratch / "trace.jsonl"
        shutil.copy("tests/data/trace_small.jsonl", trace)
        before = trace.read_text()
        config = self.scratch / "traced.yaml"
        config.write_text(TRACED.replace("TRACE", str(trace)))
        out = self.scratch / "out"
        process = self.started("run", config, "--set", "rounds=2e7", "--out", str(out), "--threads", "1")
        self.assertIn(f"({out}/journal.txt)", self.go_on(process, signal.SIGTERM))
        self.assertEqual(process.returncode, INTERRUPTED)
        a = self.scratch / "a"
        self.assertEqual(run("run", config, "--shard", "1/2", "--out", a).returncode, FINE)
        lines = before.splitlines(keepends=True)
        trace.write_text("".join(lines[1:] + lines[:1]))
        self.refused(run("run", config, "--set", "rounds=2e7", "--out", out, "--resume"),
                     rf"journal.txt:2: {re.escape(str(trace))} has changed: its checksum was [0-9a-f]{{16}}, allowed: ")
        b = self.scratch / "b"
        self.assertEqual(run("run", config, "--shard", "2/2", "--out", b).returncode, FINE)
        self.refused(run("merge", a, b, "--out", self.scratch / "all"), rf"^{re.escape(str(a))}/manifest.yaml: {re.escape(str(trace))} has changed")
        trace.write_text(before)
        self.refused(run("merge", a, b, "--out", self.scratch / "all"), rf"^{re.escape(str(b))}/manifest.yaml: {re.escape(str(trace))} has changed")

    def test_a_program_that_changes(self):
        out = self.scratch / "out"
        process = self.started("run", self.config, "--set", "rounds=2e7", "--out", str(out), "--threads", "1")
        self.go_on(process, signal.SIGTERM)
        # A line as another program would have written it, with a checksum of this run.
        journal = (out / "journal.txt").read_bytes().splitlines(keepends=True)
        title = journal[0].rsplit(b" #", 1)[0]
        body = b"program 0.0.9 (an older one)"
        journal[1] = b"%s #%016x\n" % (body, fnv(body, fnv(title)))
        (out / "journal.txt").write_bytes(b"".join(journal))
        self.refused(run("run", self.config, "--set", "rounds=2e7", "--out", out, "--resume"),
                     r"journal.txt:2: the run was begun by specsim 0\.0\.9 \(an older one\), and this is ")

    def test_forced_and_interrupted(self):
        """A run that replaced other results by --force continues with --resume alone."""
        out = self.scratch / "out"
        self.assertEqual(run("run", self.config, "--seed", "7", "--out", out).returncode, FINE)
        process = self.started("run", self.config, "--set", "rounds=2e6", "--out", str(out), "--threads", "1", "--force")
        process.kill()
        process.communicate()
        self.assertEqual(run("run", self.config, "--set", "rounds=2e6", "--out", out, "--resume").returncode, FINE)
        self.assertEqual(run("run", self.config, "--set", "rounds=2e6", "--out", self.scratch / "alone").returncode, FINE)
        for name in FILES:
            self.assertEqual((out / name).read_bytes(), (self.scratch / "alone" / name).read_bytes())

    # ---- changed journals and shards

    def test_a_journal_with_two_headers(self):
        out = self.scratch / "out"
        process = self.started("run", self.config, "--set", "rounds=2e7", "--out", str(out), "--threads", "1")
        self.go_on(process, signal.SIGTERM)
        lines = (out / "journal.txt").read_bytes().splitlines(keepends=True)
        for extra, message in ((lines[0], r":5: this is no record of finished work"), (self.record(lines, "9 0 0:1"), ":5: cell 9 has no slab 0"),
                               (self.record(lines, "0 63 0:x"), ":5: these are no counts of the cell"),
                               (self.record(lines, "0 63 0:5 2:9"), ":5: the sum of accepted_law is 0, but rounds is 5")):
            (out / "journal.txt").write_bytes(b"".join([*lines[:4], extra]))
            self.refused(run("run", self.config, "--set", "rounds=2e7", "--out", out, "--resume", "--threads", "2"), message)

    @staticmethod
    def record(lines, body):
        title = lines[0].rsplit(b" #", 1)[0]
        return b"%s #%016x\n" % (body.encode(), fnv(body.encode(), fnv(title)))

    def test_shards_that_were_changed(self):
        a, b = self.scratch / "a", self.scratch / "b"
        for i, out in ((1, a), (2, b)):
            self.assertEqual(run("run", self.config, "--shard", f"{i}/2", "--out", out).returncode, FINE)
        counts = (b / "counts.csv").read_text()
        number = re.search(r"small,0,accepted,0,(\d+)", counts)
        (b / "counts.csv").write_text(counts.replace(number[0], f"small,0,accepted,0,{int(number[1]) + 1}"))
        self.refused(run("merge", a, b, "--out", self.scratch / "all"), rf"^{re.escape(str(b))}/counts.csv: does not match the checksum in its manifest")
        # With a corrected checksum, the sums reveal the change.
        manifest = (b / "manifest.yaml").read_text()
        old = re.search(r'file: "?counts.csv"?\n    checksum: "?([0-9a-f]{16})', manifest)[1]
        manifest = manifest.replace(old, crc((b / "counts.csv").read_bytes()))
        sealed, last = manifest.rstrip("\n").rsplit("\n", 1)
        manifest = sealed + "\n" + re.sub("[0-9a-f]{16}", crc((sealed + "\n").encode()), last) + "\n"
        (b / "manifest.yaml").write_text(manifest)
        self.refused(run("merge", a, b, "--out", self.scratch / "all"), r"counts do not add up to the whole: small cell 0: accepted\[0\] is ")
        self.assertFalse((self.scratch / "all").exists())

    def test_merge_is_guarded_and_judges(self):
        config = self.scratch / "wrong.yaml"
        config.write_text(CONFIG.replace("rounds: 4003", "rounds: 400003") + "theory: {name: geometric_plus_one}\n")
        shards = [self.scratch / "a", self.scratch / "b"]
        for i, out in enumerate(shards):
            self.assertEqual(run("run", config, "--shard", f"{i + 1}/2", "--out", out).returncode, FINE)
        out = self.scratch / "all"
        result = run("merge", *shards, "--out", out)
        self.assertEqual(result.returncode, DISAGREE)
        self.assertIn("theory and simulation DISAGREE", result.stdout)
        self.assertRegex((out / "manifest.yaml").read_text(), '\nverdict: "?disagree"?\n')
        self.assertEqual(run("merge", *shards, "--out", out).returncode, DISAGREE)  # it may replace its own results
        other = self.scratch / "other"
        self.assertEqual(run("run", self.config, "--out", other).returncode, FINE)
        self.refused(run("merge", *shards, "--out", other), "holds the finished results of another run")
        self.same(other)
        self.assertEqual(run("merge", *shards, "--out", other, "--force").returncode, DISAGREE)

    def test_no_escape_sequences_of_files(self):
        config = self.scratch / "loud.yaml"
        config.write_text(CONFIG.replace("experiment: small", 'experiment: "a\\eb"') + "sweep2: \x1b[31m\n")
        for arguments in (["run", config], ["run", self.config, "--set", "rounds=\x1b[31mred"], ["run", "\x1b]0;title\x07"], ["describe", "\x1b[2J"]):
            result = run(*arguments)
            self.assertNotIn("\x1b", result.stdout + result.stderr)
            self.assertNotEqual(result.returncode, FINE)


def fnv(data, value=0xCBF29CE484222325):
    """FNV-1a of 64 bits with SplitMix64's final mix, the checksum of a journal's lines (sim/foundation/rng/address.h)."""
    whole = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & whole
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & whole
    value = (value ^ value >> 27) * 0x94D049BB133111EB & whole
    return value ^ value >> 31


def crc(data):
    """CRC-64/XZ, the checksum of files (sim/foundation/base/checksum.h)."""
    value = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0xC96C5795D7870F42 if value & 1 else 0)
    return f"{value ^ 0xFFFFFFFFFFFFFFFF:016x}"


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
