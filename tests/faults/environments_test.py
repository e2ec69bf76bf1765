#!/usr/bin/python3
"""Every command in unusual environments: no HOME, other languages, narrow terminals, closed streams, full disks.

    tests/faults/environments_test.py

Variables change no byte of files and output. A stream that fails changes no file, and changes the status only if the printed text is the only
result. If a file cannot be written, the message names it, no partial file remains, and earlier files stay.
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
from program import BAD_INPUT, FINE, IO_FAILED, SANITIZERS, SPECSIM, UNTESTED, on_terminal, results  # noqa: E402

NOBODY = 65534
CONFIG = """experiment: small
pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 3}}
rounds: 4003
context: {process: fixed, sequence_rounds: 3}
cost: {model: ratio, cost_ratio: 0.1}
"""
SERVER = """serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 64}
  kv: {block: 16, blocks: 900}
  arrivals: {process: poisson, rate: 5, requests: 60}
  lengths: {prompt: {fixed: 100}, output: {fixed: 30}}
  speculation: {policy: {kind: fixed, draft_length: 2}, acceptance: {alpha: 0.7}}
  slo: {ttft_ms: 400, tpot_ms: 30}
cost: {model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, draft_fixed_ms: 0.5}
"""
KERNELS = """gpu,engine,version,dtype,kernel,n,k,m,us,set_over_l2
a100-80gb-sxm,sglang,0.5.10,bfloat16,sglang,4096,4096,1,20.1,6
h100-sxm,vllm,0.19,bfloat16,vllm,4096,14336,128,61.5,9
h100-sxm,vllm,0.19,fp8,vllm,28672,4096,16,40,4
"""
MODEL = os.path.abspath("tests/data/models/tiny-llama3")
MODELS = ["--target", MODEL, "--draft", MODEL, "--prompts", "prompts.jsonl", "--quick", "--tokens", "4", "--draft-lengths", "1", "--batches", "1", "--repetitions", "9", "--clock", "cpu",
          "--temperatures", "1", "--threads", "1"]
# By name: the command without --out, and whether it measures this machine, so that its results always differ. These commands, and slow ones, run in a
# part of the environments only.
COMMANDS = {
    "run": (["run", "small.yaml", "--threads", "2"], False),
    "check": (["check", "small.yaml", "--threads", "2"], False),
    "merge": (["merge", "shard1", "shard2"], False),
    "compare": (["compare", "small.yaml", "--threads", "2"], False),
    "plan": (["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7"], False),
    "serve": (["serve", "server.yaml"], False),
    "kernels": (["kernels", "kernels.csv"], False),
    "fit": (["fit", "rounds.jsonl"], False),
    "calibrate": (["calibrate", *MODELS], True),
    "validate": (["validate", *MODELS, "--held-out", "held_out.jsonl"], True),
}
SELDOM = {"calibrate", "validate", "fit"}
PRINTED = {  # commands that write no files
    "audit": ["audit", "small.yaml", "--set", "pair.vocab=3"],
    "pass": ["pass", "--hardware", "h100-sxm", "--model", "llama-3.1-8b"],
    "theory": ["theory", "--alpha", "0.7", "--draft-length", "4"],
    "list": ["list"],
    "describe": ["describe", "verifier/token"],
}


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        os.chmod(cls.folder, 0o755)
        for name, text in (("small.yaml", CONFIG), ("server.yaml", SERVER), ("kernels.csv", KERNELS), ("prompts.jsonl", '{"tokens": [1, 2, 3]}\n'),
                           ("held_out.jsonl", '{"tokens": [2, 5, 7]}\n'),
                           ("rounds.jsonl", "".join(f'{{"draft_length": 3, "rounds": {[(7 * i + j * j) % 4 for j in range(30)]}}}\n' for i in range(20)))):
            (cls.folder / name).write_text(text)
        for i in (1, 2):
            done = subprocess.run([SPECSIM, "run", "small.yaml", "--shard", f"{i}/2", "--out", f"shard{i}"], cwd=cls.folder, capture_output=True, text=True)
            assert done.returncode == FINE, done.stderr
        cls.whole, cls.printed, cls.status = {}, {}, {}
        for name, (words, _) in COMMANDS.items():
            done = cls.run_here([*words, "--out", "out"], f"whole_{name}")
            assert done.returncode in (FINE, UNTESTED), (name, done.stderr)
            cls.whole[name], cls.printed[name], cls.status[name] = results(cls.folder / f"whole_{name}"), done.stdout, done.returncode
            assert len(cls.whole[name]) > 0, name
        for name, words in PRINTED.items():
            done = cls.run_here(words, f"printed_{name}")
            assert done.returncode == FINE, (name, done.stderr)
            cls.printed[name] = done.stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def run_here(cls, words, out, prefix=(), **options):
        """Renames the command's folder `out` in its arguments and in its output."""
        options.setdefault("stdout", subprocess.PIPE)
        words = [out if word == "out" else word for word in words]
        done = subprocess.run([*prefix, SPECSIM, *words], cwd=cls.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=600, **options)
        done.stdout = (done.stdout or "").replace(out, "OUT")
        return done

    def same(self, name, done, out, shown):
        words, timed = COMMANDS[name]
        self.assertEqual(done.returncode, self.status[name], (shown, done.stderr))
        got = results(self.folder / out)
        self.assertEqual(sorted(got), sorted(self.whole[name]), shown)
        if not timed:
            self.assertEqual(got, self.whole[name], shown)

    # ---- variables

    def test_variables(self):
        """Settings that a shell, a batch system or a container makes or lacks: files and standard output have the same bytes."""
        plain = dict(os.environ)
        without = lambda *names: {key: value for key, value in plain.items() if key not in names}
        sanitizers = {key: value for key, value in plain.items() if key.endswith("SAN_OPTIONS")}
        environments = {"no HOME, nothing at all": sanitizers, "no TERM": without("TERM"), "dumb": {**plain, "TERM": "dumb", "COLUMNS": "5", "LINES": "2"},
                        "another temporary folder": {**plain, "TMPDIR": "/nowhere", "HOME": "/nowhere", "PWD": "/nowhere", "TZ": "Nowhere/Here"}}
        for number, language in enumerate(("C", "POSIX", "de_DE.UTF-8", "tr_TR.UTF-8", "ja_JP.eucJP", "nonsense", "\udcff")):
            environments[f"language {number}"] = {**without("LANGUAGE"), "LANG": language, "LC_ALL": language, "LC_NUMERIC": language}
        for number, (what, environment) in enumerate(environments.items()):
            for name, (words, timed) in COMMANDS.items():
                if name in SELDOM and number % 4 != 0:
                    continue
                out = f"variables_{name}_{number}"
                done = self.run_here([*words, "--out", "out"], out, env=environment)
                self.same(name, done, out, (name, what))
                if not timed:
                    self.assertEqual(done.stdout, self.printed[name], (name, what))
            for name, words in PRINTED.items():
                done = self.run_here(words, "none", env=environment)
                self.assertEqual((done.returncode, done.stdout), (FINE, self.printed[name]), (name, what))

    # ---- streams

    def test_streams(self):
        """Closed, full or unread standard output: the files are complete; the status reports that nobody could read the table."""
        for name, (words, _) in COMMANDS.items():
            for number, streams in enumerate((">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", ">/dev/full 2>&1")):
                out = f"streams_{name}_{number}"
                line = f'exec "$0" "$@" {streams}'
                done = self.run_here([*words, "--out", "out"], out, prefix=["bash", "-c", line])
                failing = ">&-" in streams.replace("2>&-", "") or streams.startswith(">/dev/full")
                self.assertEqual(done.returncode, IO_FAILED if failing else self.status[name], (name, streams, done.stderr))
                done.returncode = self.status[name]
                self.same(name, done, out, (name, streams))
        for name, words in PRINTED.items():
            for streams, status in ((">&-", IO_FAILED), (">/dev/full", IO_FAILED), ("2>&-", FINE), ("2>/dev/full", FINE)):
                done = self.run_here(words, "none", prefix=["bash", "-c", f'exec "$0" "$@" {streams}'])
                self.assertEqual(done.returncode, status, (name, streams, done.stderr))

    def test_terminals(self):
        """In terminals of any width: the same files and status; escape sequences only if the terminal knows them, and no other control bytes."""
        for columns, kind in ((1, "xterm"), (20, "xterm"), (0, "dumb"), (65535, "")):
            for name, (words, timed) in COMMANDS.items():
                if name in SELDOM and columns != 20:
                    continue
                out = f"terminal_{name}_{columns}"
                text, status = on_terminal([*words, "--out", out], columns, kind, cwd=self.folder)
                self.same(name, subprocess.CompletedProcess(words, status, "", text), out, (name, columns))
                bare = re.sub(r"\x1b\[K", "", text) if kind == "xterm" else text
                self.assertNotRegex(bare, r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", (name, columns))

    # ---- places

    @unittest.skipIf("thread" in SANITIZERS, "the thread sanitizer's own start-up does not survive the limit")
    def test_full_disks(self):
        """A limit on the size of files acts as a disk that is full after that many bytes."""
        for name, (words, timed) in COMMANDS.items():
            largest = max(map(len, self.whole[name].values()))
            for number, limit in enumerate((0, largest // 2) if name in SELDOM else (0, 1, 100, largest // 2, largest - 1)):
                out = f"full_{name}_{number}"
                done = self.run_here([*words, "--out", "out"], out, preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
                shown = (name, limit, done.returncode, done.stderr)
                self.assertIn(out, done.stderr, shown)
                self.assertEqual(done.returncode, IO_FAILED, shown)
                self.assertEqual(list((self.folder / out).rglob("*.part")), [], shown)
                # Nothing is left that would be in the way of the next run.
                left = {p.name for p in (self.folder / out).rglob("*") if p.is_file()} - {"small.yaml", "server.yaml", "kernels.csv", "prompts.jsonl"}
                self.assertTrue(not left & set(self.whole[name]) or left & {"manifest.yaml", "journal.txt"}, (*shown, left))
                # With enough room and --force, the same command writes everything.
                done = self.run_here([*words, "--force", "--out", "out"], out)
                self.same(name, done, out, shown)

    def test_places_that_cannot_be_written(self):
        for name, (words, _) in COMMANDS.items():
            for place in ("/proc/specsim", "/dev/null", "/dev/null/below", "small.yaml", "\udcff" * 300, "x" * 5000):
                done = self.run_here([*words, "--out", place], "none")
                self.assertIn(done.returncode, (IO_FAILED, BAD_INPUT), (name, place, done.stderr))
                self.assertRegex(done.stderr, r"cannot be |is no |allowed: ", (name, place))
                self.assertNotIn("should not happen", done.stderr)
        self.assertEqual((self.folder / "small.yaml").read_text(), CONFIG)

    def test_folders_without_leave(self):
        """Read-only folders, as a non-root user: the error names the place, and no file is created."""
        user = {} if os.geteuid() != 0 else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        if subprocess.run(["test", "-x", SPECSIM, "-a", "-r", MODEL], **user).returncode != 0:
            self.skipTest("the program is out of that user's reach")
        locked = self.folder / "locked"
        locked.mkdir(mode=0o755)
        (locked / "data.csv").write_text("mine\n")
        os.chmod(locked, 0o555)
        for name, (words, _) in COMMANDS.items():
            for place in (locked, locked / "below"):
                done = self.run_here([*words, "--force", "--out", str(place)], "none", **user)
                self.assertEqual(done.returncode, IO_FAILED, (name, done.stderr))
                self.assertIn(f"{place}", done.stderr, name)
                self.assertIn("Permission denied", done.stderr, name)
        self.assertEqual([(p.name, p.read_text()) for p in locked.iterdir()], [("data.csv", "mine\n")])
        secret = self.folder / "secret.yaml"
        secret.write_text(CONFIG)
        os.chmod(secret, 0)
        done = self.run_here(["run", "secret.yaml"], "none", **user)
        self.assertIn(done.returncode, (BAD_INPUT, IO_FAILED), done.stderr)
        self.assertRegex(done.stderr, "secret.yaml: cannot be read: [Pp]ermission denied")

    def test_a_working_folder_that_is_gone(self):
        """Relative names cannot be found, absolute ones are."""
        for name, (words, timed) in COMMANDS.items():
            for absolute in (False, True):
                out = f"gone_{name}"
                given = [str(self.folder / word) if absolute and (self.folder / word).exists() else word for word in words]
                place = str(self.folder / out) if absolute else out
                line = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'
                done = self.run_here([*given, "--out", place], "none", prefix=["bash", "-c", line])
                if absolute:
                    self.assertEqual(sorted(results(self.folder / out)), sorted(self.whole[name]), (name, done.stderr))
                    self.assertEqual(done.returncode, self.status[name], (name, done.stderr))
                else:
                    self.assertIn(done.returncode, (BAD_INPUT, IO_FAILED), (name, done.stderr))
                    self.assertRegex(done.stderr, r": ", name)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
