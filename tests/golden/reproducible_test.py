#!/usr/bin/python3
"""The same config gives the same bytes: over threads, over shards, and over any number of interruptions.

    tests/golden/reproducible_test.py

Runs at the root of the repository; SPECSIM names the program. Delays are random, from a fixed seed.
"""

import itertools
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import INTERRUPTED, IO_FAILED, SPECSIM, on_terminal  # noqa: E402

RESULTS = ("data.csv", "counts.csv", "waterfall.csv")  # the last one with costs in seconds

# One config for each context process. No number of rounds is a multiple of the size of a thread's or shard's work.
PAIR = """
pair:
  vocab: 50
  target: {family: zipf, exponent: 1.1}
  draft: {from: target, transform: temperature, value: 0.7}
"""
RANDOM_PAIR = """
pair:
  vocab: 40
  target: {family: normal_logits, sigma: 2}
  draft: {from: target, transform: logit_noise, value: 1}
"""
CHAIN = "decode: {drafter: {kind: chain, draft_length: 4}}\n"
PROCESSES = {
    "fixed": PAIR + CHAIN + "rounds: 100003\nsweep: {decode.drafter.draft_length: [0, 1, 5], decode.verifier: [token, sample_match]}\n",
    "short_sequences": PAIR + CHAIN + "rounds: 30011\ncontext: {process: fixed, sequence_rounds: 7}\n",
    "iid": RANDOM_PAIR + CHAIN + "rounds: 50021\ncontext: {process: iid, pool: 33}\nsweep: {decode.drafter.selection: [sampled, argmax]}\n",
    "fresh": RANDOM_PAIR + CHAIN + "rounds: 997\ncontext: {process: iid, fresh: true, sequence_rounds: 5}\n",
    "markov": RANDOM_PAIR.replace("40", "6") + CHAIN + "rounds: 60013\ncontext: {process: markov, order: 2}\n",
    "hashed": RANDOM_PAIR + CHAIN + "rounds: 60013\ncontext: {process: markov, states: 9}\n",
    "joined": RANDOM_PAIR + "decode: {drafter: {kind: dspark, block_size: 4, markov_head: 1}}\nrounds: 60013\ncontext: {process: markov, states: 9}\nsweep: {decode.verifier: [token, block]}\n",
    "regimes": PAIR + CHAIN + """rounds: 70001
context:
  process: regimes
  states: [{}, {draft: {family: uniform}}, {target: {family: zipf, exponent: 0.5}}]
  transition: [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.5, 0.5]]
""",
    "text": RANDOM_PAIR + CHAIN + "rounds: 60013\ncontext: {process: text, persistence: 0.5, between_requests: 0.2, drift: 0.3, depths: 3, request_tokens: 50}\n",
    "copy": PAIR + """decode: {drafter: {kind: prompt_lookup, draft_length: 4}, verifier: tree_point_mass}
rounds: 20011
context: {process: copy, prompt_tokens: 20}
""",
    "trees": PAIR + """decode: {drafter: {kind: tree_static, branching: [3, 2]}, verifier: multi_draft_recursive}
rounds: 20011
""",
    "by_depth": PAIR + CHAIN + """rounds: 50021
context:
  process: by_depth
  drafts:
  - {from: target, transform: temperature, value: 0.9}
  - {family: uniform}
""",
    "acceptance_table": PAIR + """decode: {drafter: {kind: tree_static, branching: [2, 2], siblings: top_k}, verifier: tree_point_mass}
rounds: 20011
context: {process: acceptance_table, acceptance: [[0.6, 0.15], [0.5, 0.12]], sequence_rounds: 8}
""",
    "trace": PAIR + CHAIN + "rounds: 30011\ncontext: {process: trace, file: tests/data/trace_long.jsonl}\n",
    "requests": PAIR + CHAIN + """rounds: 40009
context:
  process: requests
  types: [{weight: 2}, {weight: 1, draft: {family: uniform}}]
  request_tokens: 37
cost: {model: ratio, draft_seconds: 0.001, target_seconds: 0.01}
workload: {batch: 4, output_tokens: 37}
placement: {kind: two_gpus}
""",
}


def without_progress(errors):
    """The program's standard error if it is no terminal, without the progress line every ten seconds, whose number depends on the machine."""
    return re.sub(r"(?m)^[0-9.]+% of [0-9.e+]+ rounds, [0-9.e+]+ rounds/s, \S+ left\r?\n", "", errors)


def run(*arguments, **options):
    result = subprocess.run([SPECSIM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=600, **options)
    result.stderr = without_progress(result.stderr)
    return result


def wall_seconds(folder):
    return float(re.search(r"^wall_seconds: (.*)$", (Path(folder) / "manifest.yaml").read_text(), re.MULTILINE)[1])


def results(folder):
    return tuple((folder / name).read_bytes() if (folder / name).exists() else b"" for name in RESULTS)


class Reproducible(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.configs = []
        for name, text in PROCESSES.items():
            path = cls.folder / f"{name}.yaml"
            path.write_text(f"experiment: {name}\n{text}")
            cls.configs.append(str(path))
        cls.out = cls.folder / "whole"
        started = time.monotonic()
        result = run("run", *cls.configs, "--out", str(cls.out), "--threads", "2")
        cls.seconds = time.monotonic() - started
        assert result.returncode == 0, result.stderr
        cls.whole = results(cls.out)
        assert all(cls.whole), "one of the configs should make each file"
        # A small run of many cells and a journal line for each piece of work.
        cls.small = str(cls.folder / "small.yaml")
        Path(cls.small).write_text("experiment: small\n" + PAIR + CHAIN + "rounds: 20011\ncontext: {process: fixed, sequence_rounds: 3}\n"
                                   + "sweep: {decode.drafter.draft_length: [1, 2, 3]}\n")
        result = run("run", cls.small, "--out", str(cls.folder / "small"))
        assert result.returncode == 0, result.stderr
        cls.small_results = results(cls.folder / "small")
        # Its complete journal, as left by a sudden end just before the last step.
        stuck = cls.folder / "stuck"
        (stuck / "data.csv" / "in_the_way").mkdir(parents=True)
        result = run("run", cls.small, "--out", str(stuck), "--force")
        assert result.returncode == IO_FAILED, result.stderr
        cls.journal = (stuck / "journal.txt").read_bytes()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(dir=self.folder))

    def tearDown(self):
        shutil.rmtree(self.scratch)

    def passed(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def refused(self, result, message, code=2):
        self.assertEqual((result.returncode, result.stderr, result.stdout), (code, message, ""))

    # ---- threads and shards

    def test_every_process_is_covered(self):
        listed = set(re.findall(r"^  (\w+)", run("list", "context").stdout, re.MULTILINE))
        used = {re.search(r"process: (\w+)", text)[1] if "process:" in text else "fixed" for text in PROCESSES.values()}
        self.assertEqual(listed, used)

    def test_threads(self):
        for threads in (0, 1, 3, 7):  # 0: all cores
            out = self.scratch / f"threads{threads}"
            self.passed(run("run", *self.configs, "--out", str(out), "--threads", str(threads), "--quiet"))
            self.assertEqual(results(out), self.whole, f"{threads} threads")

    def test_one_by_one(self):
        """Other cells on the same command line change nothing."""
        for name in ("iid", "requests"):
            out = self.scratch / name
            self.passed(run("run", str(self.folder / f"{name}.yaml"), "--out", str(out)))
            mine = [line for line in self.whole[1].decode().splitlines() if line.startswith(name + ",")]
            self.assertEqual((out / "counts.csv").read_text().splitlines()[1:], mine)

    def test_seed_matters(self):
        self.passed(run("run", self.small, "--out", str(self.scratch / "a"), "--seed", "5"))
        self.passed(run("run", self.small, "--out", str(self.scratch / "b"), "--set", "seed=5"))
        self.assertEqual(results(self.scratch / "a"), results(self.scratch / "b"))
        self.assertNotEqual(results(self.scratch / "a"), self.small_results)

    def test_shards(self):
        shards = []
        for i in (1, 2, 3):
            shards.append(str(self.scratch / f"shard{i}"))
            self.passed(run("run", *self.configs, "--shard", f"{i}/3", "--out", shards[-1], "--threads", str(i)))
            self.assertFalse((Path(shards[-1]) / "data.csv").exists())
        for order in itertools.permutations(shards):
            out = self.scratch / "merged"
            self.passed(run("merge", *order, "--out", str(out)))
            self.assertEqual(results(out), self.whole)
            self.assertIn('shard: "1/1"', (out / "manifest.yaml").read_text())
            self.assertIn("\nthreads: 3\n", (out / "manifest.yaml").read_text())  # the most of a shard
            self.assertAlmostEqual(wall_seconds(out), sum(map(wall_seconds, shards)), delta=1e-6)
        # More shards than some cells have work for.
        many = []
        for i in range(1, 41):
            many.append(str(self.scratch / f"many{i}"))
            self.passed(run("run", self.small, "--shard", f"{i}/40", "--out", many[-1]))
        self.passed(run("merge", *many, "--out", str(self.scratch / "merged_many")))
        self.assertEqual(results(self.scratch / "merged_many"), self.small_results)

    def test_a_plan_says_how_long_it_took(self):
        out = self.scratch / "plan"
        self.passed(run("plan", "configs/quickstart.yaml", "--rounds", "2e5", "--out", str(out)))
        self.assertGreater(wall_seconds(out), 0.0)

    def test_merge_refuses(self):
        def shard(name, which, *more):
            out = self.scratch / name
            self.passed(run("run", self.small, "--shard", which, "--out", str(out), *more))
            return str(out)

        def merged(*parts):
            result = run("merge", *parts, "--out", str(self.scratch / "merged"))
            self.assertFalse((self.scratch / "merged").exists())
            return result

        a, b, c = shard("a", "1/3"), shard("b", "2/3"), shard("c", "3/3")
        self.refused(merged(a, c), f"{a}: shard 2/3 is missing: 2 of 3 given, allowed: all of them\n")
        self.refused(merged(c), f"{c}: shard 1/3 is missing: 1 of 3 given, allowed: all of them\n")
        self.refused(merged(a, b, b, c), f"{b}/manifest.yaml: is shard 2/3, and so is {b}: shards overlap, allowed: each shard once\n")
        other_parts = shard("d", "2/4")
        self.refused(merged(a, other_parts, c), f"{other_parts}/manifest.yaml: is shard 2/4, allowed: one of 3\n")
        other_seed = shard("e", "2/3", "--seed", "9")
        self.refused(merged(a, other_seed, c), f"{other_seed}/manifest.yaml: belongs to another run than {a}: their configs differ, allowed: shards of one run\n")
        other_rounds = shard("f", "3/3", "--set", "rounds=20012")
        self.refused(merged(a, b, other_rounds), f"{other_rounds}/manifest.yaml: belongs to another run than {a}: their configs differ, allowed: shards of one run\n")
        unfinished = shard("g", "2/3")
        (Path(unfinished) / "journal.txt").write_text("")
        self.refused(merged(a, unfinished, c), f"{unfinished}/journal.txt: the run of this shard is unfinished, "
                                               "allowed: finish it with --resume, or run it again with --force\n")
        no_manifest = Path(shard("h", "2/3"))
        for text, message in (("just: text\n", ":1:1: not the manifest of a run: shard or experiments are missing"),
                              ("", ": the file is empty, allowed: one YAML document"),
                              ('shard: "3/2"\nexperiments: []\n', ':1:8: shard is "3/2", allowed: i/n'),
                              ('shard: "1/3"\nexperiments: [{file: x}]\n', ":2:15: an experiment lacks file or config")):
            (no_manifest / "manifest.yaml").write_text(text)
            self.refused(merged(a, str(no_manifest), c), f"{no_manifest}/manifest.yaml{message}\n")
        # merge never writes over its inputs, or over an unfinished run.
        self.refused(run("merge", a, b, c, "--out", b), f"--out: is {b}, a directory to read from, allowed: another one\n")
        busy = self.scratch / "busy"
        busy.mkdir()
        (busy / "journal.txt").write_text("")
        self.refused(run("merge", a, b, c, "--out", str(busy)), f"{busy}/journal.txt: an unfinished run is here, "
                     "allowed: another --out, or --force to delete it\n")
        # Counts that do not belong to this run, each reported with its line.
        foreign = Path(shard("i", "2/3"))
        lines = (foreign / "counts.csv").read_text().splitlines()
        for wrong in ("other,0,rounds,0,5", "small,3,rounds,0,5", "small,0,horses,0,5", "small,0,rounds,99,5", "small,0,rounds,0,-5",
                      "small,0,rounds,0,x", "small,x,rounds,0,5", "small,0,rounds,0", "small,0,rounds,0,1,2", "small,0,rounds,0,99999999999999999999"):
            (foreign / "counts.csv").write_text("\n".join([*lines[:4], wrong, *lines[4:]]) + "\n")
            result = merged(a, str(foreign), c)
            self.assertEqual(result.returncode, 2, wrong)
            self.assertRegex(result.stderr, rf"^{re.escape(str(foreign))}/counts\.csv:5: .+\n$", wrong)
        (foreign / "counts.csv").unlink()
        result = merged(a, str(foreign), c)
        self.refused(result, f"specsim: {foreign}/counts.csv: cannot be read: no such file or directory\n", code=IO_FAILED)

    # ---- sudden ends

    def kill_after(self, arguments, delay, number):
        """Starts the program, sends it signal `number` after `delay` seconds; returns its exit code."""
        process = subprocess.Popen([SPECSIM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            process.wait(timeout=600)
        return process.returncode

    def test_killed_at_random_moments(self):
        rng = random.Random(7)
        kills = 0
        for attempt in range(40):
            out = self.scratch / f"kill{attempt}"
            resume = []
            for _ in range(5):
                code = self.kill_after(["run", *self.configs, "--out", str(out), "--threads", str(rng.choice((1, 2, 3))), *resume],
                                       rng.uniform(0.02, 0.9) * self.seconds, signal.SIGKILL)
                self.assertIn(code, (0, -signal.SIGKILL))
                if code == 0:
                    break
                kills += 1
                resume = ["--resume"]
            else:
                result = run("run", *self.configs, "--out", str(out), "--resume")
                self.assertEqual(result.returncode, 0)
                # The last kill may have come after the last file.
                self.assertIn(result.stderr, ("", f"{out} is finished already; running it again\n"))
            self.assertEqual(results(out), self.whole)
            self.assertEqual(sorted(p.name for p in out.iterdir() if not p.name.endswith(".part")),
                             ["counts.csv", "data.csv", "manifest.yaml", "waterfall.csv"])
            if kills >= 10 and attempt >= 2:
                break
        self.assertGreaterEqual(kills, 8)

    def test_killed_while_finishing(self):
        """Killed as soon as one of the result files exists, before the last of them."""
        for attempt in range(6):
            out = self.scratch / f"end{attempt}"
            sign = out / ("data.csv", "data.csv.part", "counts.csv")[attempt % 3]
            process = subprocess.Popen([SPECSIM, "run", self.small, "--out", str(out)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while process.poll() is None and not sign.exists():
                pass
            process.kill()
            process.wait()
            if (out / "journal.txt").exists():
                # Without --resume the unfinished run is not touched.
                before = (out / "journal.txt").read_bytes()
                self.refused(run("run", self.small, "--out", str(out)),
                             f"{out}/journal.txt: an unfinished run is here, allowed: --resume to continue it, or --force to delete it\n")
                self.assertEqual((out / "journal.txt").read_bytes(), before)
                self.passed(run("run", self.small, "--out", str(out), "--resume"))
            self.assertEqual(results(out), self.small_results)
            self.assertFalse((out / "journal.txt").exists())

    def test_interrupted_politely(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.scratch / f"signal{int(number)}"
            out.mkdir()
            journal = out / "journal.txt"
            for _ in range(50):  # it may end before this process gets a turn
                (out / "data.csv").write_text("old\n")
                process = subprocess.Popen([SPECSIM, "run", *self.configs, "--out", str(out), "--threads", "1", "--force"],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 5):
                    time.sleep(0.002)
                process.send_signal(number)
                output, errors = process.communicate(timeout=600)
                if process.returncode != 0:
                    break
            self.assertEqual((process.returncode, output), (INTERRUPTED, ""))
            self.assertEqual(without_progress(errors), f"stopped before the end; continue with the same command and --resume ({out}/journal.txt)\n")
            self.assertEqual((out / "data.csv").read_text(), "old\n")
            self.passed(run("run", *self.configs, "--out", str(out), "--resume"))
            self.assertEqual(results(out), self.whole)

    def resumed(self, journal):
        out = Path(tempfile.mkdtemp(dir=self.scratch))
        (out / "journal.txt").write_bytes(journal)
        return out, run("run", self.small, "--out", str(out), "--resume", "--quiet")

    def test_torn_journal(self):
        rng = random.Random(8)
        lines = self.journal.splitlines(keepends=True)
        self.assertGreater(len(lines), 3 * 20)
        tail = len(lines[-1]) + len(lines[-2])
        lengths = {0, 1, 10, len(lines[0]) - 1, len(lines[0]), len(lines[0]) + 1, len(self.journal)}
        lengths |= {len(self.journal) - k for k in range(1, tail, max(1, tail // 25))}
        lengths |= {rng.randrange(len(self.journal)) for _ in range(15)}
        for length in sorted(lengths):
            out, result = self.resumed(self.journal[:length])
            self.passed(result)
            self.assertEqual(results(out), self.small_results, f"{length} bytes of the journal")

    def test_corrupt_journal(self):
        rng = random.Random(9)
        for _ in range(40):
            at = rng.randrange(len(self.journal))
            broken = bytearray(self.journal)
            broken[at] ^= 1 << rng.randrange(8)
            out, result = self.resumed(bytes(broken))
            line = self.journal[:at].count(b"\n") + 1
            if line == 1:
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, "journal.txt:1: (this journal belongs to another run|is no journal of a run)")
            elif line == 2:
                self.assertEqual(result.returncode, 2)
                self.assertIn("journal.txt:2: it does not name the program that began it", result.stderr)
            else:  # reported, unless it may be the rest of a sudden end; and computed again
                last = line == self.journal.count(b"\n")
                self.assertEqual(result.returncode, 0)
                told = f"warning: {out}/journal.txt:{line}: damaged, like "
                self.assertTrue(result.stderr.startswith(told) or last and result.stderr == "", (line, result.stderr))
                self.assertEqual(results(out), self.small_results, f"byte {at} of the journal")
        # Lines in another order, or twice, count once.
        lines = self.journal.splitlines(keepends=True)
        rest = lines[2:] + lines[5:25]
        rng.shuffle(rest)
        out, result = self.resumed(b"".join(lines[:2] + rest))
        self.passed(result)
        self.assertEqual(results(out), self.small_results)

    def test_resume_of_another_run(self):
        out = self.scratch / "out"
        out.mkdir()
        half = self.journal[:len(self.journal) // 2]
        (out / "journal.txt").write_bytes(half)
        other = (f"{out}/journal.txt:1: this journal belongs to another run (config, seed or shard differ), "
                 "allowed: the same run, or --force to delete it\n")
        for more in (["--seed", "5"], ["--set", "rounds=20012"], ["--shard", "1/2"], ["--set", "decode.verifier=sample_match"]):
            self.refused(run("run", self.small, "--out", str(out), "--resume", *more), other)
        self.refused(run("run", self.configs[0], "--out", str(out), "--resume"), other)
        self.refused(run("run", self.small, "--out", str(out)),
                     f"{out}/journal.txt: an unfinished run is here, allowed: --resume to continue it, or --force to delete it\n")
        self.assertEqual((out / "journal.txt").read_bytes(), half)
        # Another way to write the same config is the same run.
        self.passed(run("run", self.small, "--out", str(out), "--resume", "--set", "rounds=2.0011e4", "--threads", "1"))
        self.assertEqual(results(out), self.small_results)
        # --force drops it.
        (out / "journal.txt").write_bytes(half)
        self.passed(run("run", self.small, "--out", str(out), "--force", "--seed", "5"))
        self.assertNotEqual(results(out), self.small_results)
        self.assertFalse((out / "journal.txt").exists())
        # Another run's finished results are not replaced without --force; the run's own are.
        self.refused(run("run", self.small, "--out", str(out)),
                     f"{out}: holds the finished results of another run, allowed: another --out, or --force to replace them\n")
        self.passed(run("run", self.small, "--out", str(out), "--force"))
        self.assertEqual(results(out), self.small_results)
        result = run("run", self.small, "--out", str(out), "--resume")
        self.assertEqual((result.returncode, result.stderr), (0, f"{out} is finished already; running it again\n"))
        self.assertEqual(results(out), self.small_results)

    def test_failure_leaves_no_journal(self):
        """A distribution that cannot be drawn in a late context is an error in the config, not an unfinished run."""
        config = self.scratch / "late.yaml"
        config.write_text("experiment: late\nrounds: 5000\npair:\n  vocab: 16\n  target: {family: dirichlet, concentration: 1}\n"
                          "  draft: {from: target, transform: overlap, value: 0.8, shape: uniform_mix}\n"
                          "context: {process: iid, fresh: true}\n" + CHAIN)
        out = self.scratch / "out"
        result = run("run", str(config), "--out", str(out))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, rf"^{re.escape(str(config))}:6:\d+: value is 0\.8, allowed: in \[0\.\d+, 1\]")
        self.assertFalse((out / "journal.txt").exists())

    # ---- progress

    def progress(self, arguments, interrupt_after=None, kind="xterm", columns=100):
        """The program's output to a terminal as its standard error, and its exit code."""
        return on_terminal(arguments, columns, kind, interrupt_after, stdout=subprocess.DEVNULL)

    def test_progress_on_a_terminal(self):
        for rounds in ("3e6", "3e7", "3e8"):
            text, code = self.progress(["run", self.small, "--set", f"rounds={rounds}", "--set", "context.sequence_rounds=64"])
            self.assertEqual(code, 0)
            if text.count("%") > 1:
                break
        bars = re.findall(r"\r\[#*\.*\] +(\d+\.\d)%  \S+ rounds/s  \S+ left\x1b\[K", text)
        self.assertGreater(len(bars), 1, text)
        shares = [float(bar) for bar in bars]
        self.assertEqual(shares, sorted(shares))
        self.assertTrue(0.0 <= shares[0] and shares[-1] <= 100.0, shares)
        self.assertTrue(text.endswith("\r\x1b[K"), "the bar is cleared at the end")
        self.assertEqual(re.sub(r"\r\[[^\r]*", "", text), "\r\x1b[K", "and there is nothing else")
        # After an interruption the bar is cleared as well, and the message is on its own line.
        text, code = self.progress(["run", self.small, "--set", "rounds=1e9", "--set", "context.sequence_rounds=64", "--threads", "1"], b"%")
        self.assertEqual(code, INTERRUPTED)
        self.assertTrue(text.endswith("\r\x1b[Kstopped before the end; nothing was kept (no --out)\r\n"), text)

    def test_progress_on_a_narrow_terminal(self):
        for columns, form in ((50, r"\[[#.]{5,}\] +\d+\.\d%  "), (30, r"(\[[#.]+\])? *\d+\.\d%  \S+ left"), (12, r" *\d+\.\d%")):
            text, code = self.progress(["run", self.small, "--set", "rounds=1e9", "--set", "context.sequence_rounds=64"], b"%", columns=columns)
            self.assertEqual(code, INTERRUPTED)
            lines = [line for line in re.findall(r"\r([^\r\x1b]*)\x1b\[K", text) if line]
            self.assertTrue(lines, text)
            for line in lines:
                self.assertLess(len(line), columns)
                self.assertRegex(line, "^" + form)

    def test_a_terminal_without_escape_sequences(self):
        for kind in ("dumb", ""):
            text, code = self.progress(["run", self.small, "--set", "rounds=3e7", "--set", "context.sequence_rounds=64"], kind=kind)
            self.assertEqual((without_progress(text), code), ("", 0))

    def test_no_progress_elsewhere(self):
        for _ in range(50):
            started = time.monotonic()
            text, code = self.progress(["run", self.small, "--set", "rounds=100"])
            self.assertEqual((re.sub(r"\r\[[^\r]*", "", text) in ("", "\r\x1b[K"), code), (True, 0), text)
            if time.monotonic() - started < 0.1:  # too short for a bar; on a busy machine it may take longer
                self.assertEqual(text, "")
                break
        self.passed(run("run", *self.configs))  # no terminal


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
