#!/usr/bin/python3
"""Every command that runs for long or writes files, interrupted and disturbed at random moments.

    tests/faults/interruptions_test.py

SIGTERM and SIGKILL at any moment, a folder that is removed during the run, two writers, a wall clock that jumps: each ends in a documented
status and a clear error, or in the same bytes as without it. The same command afterwards gives those bytes. Runs at the root of the
repository; SPECSIM names the program. The moments are drawn from a fixed seed. The interrupted operation depends on the machine; the
requirements do not.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import BAD_INPUT, FINE, INTERRUPTED, IO_FAILED, SANITIZERS, SPECSIM, UNTESTED, results  # noqa: E402

CONFIG = """experiment: small
pair: {vocab: 200, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}
decode: {drafter: {kind: chain, draft_length: 3}}
rounds: 400003
context: {process: iid, pool: 100}
cost: {model: ratio, cost_ratio: 0.1}
sweep: {decode.drafter.draft_length: [1, 2, 4]}
"""
SERVER = """serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 64}
  kv: {block: 16, blocks: 900}
  arrivals: {process: poisson, rate: 5, requests: 1200}
  lengths: {prompt: {lognormal: {mean: 200, cv: 1}}, output: {lognormal: {mean: 150, cv: 1}}}
  speculation: {policy: {kind: fixed, draft_length: 2}, acceptance: {alpha: 0.7}}
  slo: {ttft_ms: 400, tpot_ms: 30}
cost: {model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, draft_fixed_ms: 0.5}
"""
MODEL = os.path.abspath("tests/data/models/tiny-llama3")
CLOCK = ["--threads", "1", "--clock", "cpu", "--repetitions", "9"]  # processor time: the machine may be busy with something else
# By name: the command without --out, whether it always writes the same files, and the option with which it writes into a folder again.
COMMANDS = {
    "run": (["run", "small.yaml", "--threads", "2"], True, ["--force"]),
    "check": (["check", "small.yaml", "--threads", "2"], True, ["--force"]),
    "compare": (["compare", "small.yaml", "--set", "sweep={}", "--threads", "2"], True, ["--force"]),
    "plan": (["plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7"], True, ["--force"]),
    "serve": (["serve", "server.yaml", "--sweep", "rate=5:30:4", "--replications", "2", "--threads", "2"], True, ["--force"]),
    "validate": (["validate", "--target", MODEL, "--draft", MODEL, "--prompts", "prompts.jsonl", "--held-out", "held_out.jsonl", "--quick", "--tokens", "8",
                  "--draft-lengths", "1,2", "--batches", "1", *CLOCK], False, ["--force"]),
    "fit": (["fit", "rounds.jsonl"], True, ["--force"]),
    "calibrate": (["calibrate", "--target", MODEL, "--draft", MODEL, "--prompts", "prompts.jsonl", "--quick", *CLOCK], False, ["--force"]),
}


class Interruptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        (cls.folder / "small.yaml").write_text(CONFIG)
        (cls.folder / "server.yaml").write_text(SERVER)
        (cls.folder / "prompts.jsonl").write_text('{"tokens": [1, 2, 3]}\n')
        (cls.folder / "held_out.jsonl").write_text('{"tokens": [2, 5, 7]}\n')
        moves = random.Random(5)
        rounds = [f'{{"draft_length": 3, "rounds": {[min(3, int(moves.expovariate(0.5))) for _ in range(40)]}}}\n' for _ in range(30)]
        (cls.folder / "rounds.jsonl").write_text("".join(rounds))
        cls.whole, cls.seconds = {}, {}
        for name, (words, _, _) in COMMANDS.items():
            started = time.monotonic()
            result = cls.run_whole(words, f"whole_{name}")
            assert result.returncode in (FINE, UNTESTED), result.stderr
            cls.seconds[name] = time.monotonic() - started
            cls.whole[name] = results(cls.folder / f"whole_{name}")
            assert len(cls.whole[name]) > 0, name

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def start(cls, words, out, **more):
        return subprocess.Popen([SPECSIM, *words, "--out", out], cwd=cls.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, **more)

    @classmethod
    def run_whole(cls, words, out, **more):
        process = cls.start(words, out, **more)
        _, stderr = process.communicate(timeout=600)
        return subprocess.CompletedProcess(words, process.returncode, "", stderr)

    def same(self, name, out):
        """The folder holds the results of the undisturbed command."""
        got = results(self.folder / out)
        self.assertEqual(sorted(got), sorted(self.whole[name]), name)
        if COMMANDS[name][1]:
            self.assertEqual(got, self.whole[name], name)

    def finished_after(self, name, out, shown):
        """The same command again, with permission to replace the files that the disturbed one left."""
        words, _, again = COMMANDS[name]
        result = self.run_whole([*words, *again], out)
        self.assertIn(result.returncode, (FINE, UNTESTED), (shown, result.stderr))
        self.same(name, out)

    def test_ended_at_random_moments(self):
        moments = random.Random(15)
        for name, (words, _, _) in COMMANDS.items():
            for number, how in enumerate((signal.SIGTERM, signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)):
                out = f"ended_{name}_{number}"
                after = moments.uniform(0, 1.05) * self.seconds[name]
                process = self.start(words, out)
                try:
                    process.wait(after)
                except subprocess.TimeoutExpired:
                    process.send_signal(how)
                stderr = process.communicate(timeout=600)[1]
                shown = (name, how, after, process.returncode, stderr)
                # A signal before main() has begun, which is late on a busy machine, ends the program by the system's default.
                allowed = (-how,) if how == signal.SIGKILL or after < (2.0 if SANITIZERS else 0.3) else ()
                self.assertIn(process.returncode, (FINE, UNTESTED, INTERRUPTED, *allowed), shown)
                place = self.folder / out
                if process.returncode == INTERRUPTED:
                    self.assertIn("stopped before the end", stderr, shown)
                if process.returncode in (FINE, UNTESTED):
                    self.same(name, out)
                elif how != signal.SIGKILL and place.exists():
                    self.assertEqual([p for p in place.rglob("*.part")], [], shown)
                self.finished_after(name, out, shown)

    def test_a_long_fit_ends_soon(self):
        """Fits of 6,000 requests take most of a minute, and a signal ends them within a step."""
        record = self.folder / "many.jsonl"
        record.write_text(Path("tests/data/acceptance/rounds_t1.jsonl").read_text() * 60)
        for how in (signal.SIGTERM, signal.SIGINT):
            process = self.start(["fit", str(record), "--threads", "1"], f"long_{how}")
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(3)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            process.send_signal(how)
            stderr = process.communicate(timeout=600)[1]
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(process.returncode, INTERRUPTED, stderr)
            # Processor seconds of its single thread: three at most before the signal.
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            self.assertLess(spent, 3 + (3 if not SANITIZERS else 30))

    def test_a_folder_removed_meanwhile(self):
        moments = random.Random(16)
        for name, (words, _, _) in COMMANDS.items():
            for number in range(3):
                out = f"removed_{name}_{number}"
                place = self.folder / out
                process = self.start(words, out)
                time.sleep(moments.uniform(0, 1) * self.seconds[name])
                shutil.rmtree(place, ignore_errors=True)
                stderr = process.communicate(timeout=600)[1]
                shown = (name, process.returncode, stderr)
                self.assertIn(process.returncode, (FINE, UNTESTED, IO_FAILED), shown)
                if process.returncode == IO_FAILED:
                    self.assertIn(out, stderr, shown)
                self.assertNotIn("should not happen", stderr, shown)
                if process.returncode != IO_FAILED and not (place / "manifest.yaml").exists():
                    shutil.rmtree(place, ignore_errors=True)  # the command finished while its folder was being deleted
                self.finished_after(name, out, shown)

    def test_two_writers(self):
        """If two commands write into one folder at once, one is refused or runs later; the final files are complete."""
        for name, (words, _, _) in COMMANDS.items():
            out = f"two_{name}"
            processes = [self.start(words, out) for _ in range(2)]
            ends = [(process.communicate(timeout=600)[1], process.returncode) for process in processes]
            shown = (name, ends)
            for stderr, status in ends:
                self.assertIn(status, (FINE, UNTESTED, BAD_INPUT, IO_FAILED), shown)
                if status in (BAD_INPUT, IO_FAILED):
                    self.assertIn(out, stderr, shown)
            self.assertTrue(any(status in (FINE, UNTESTED) for _, status in ends), shown)
            self.assertEqual([p for p in (self.folder / out).rglob("*.part")], [], shown)
            self.same(name, out)

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_a_clock_that_jumps(self):
        """The wall clock jumps a year back or forth at every reading: the same bytes, and the manifest's seconds are those of the run."""
        shim = self.folder / "jumping_clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), "tests/faults/jumping_clock.c", "-ldl"], check=True)
        for name, (words, _, _) in COMMANDS.items():
            out = f"clock_{name}"
            started = time.monotonic()
            result = self.run_whole(words, out, env={**os.environ, "LD_PRELOAD": str(shim)})
            seconds = time.monotonic() - started
            self.assertIn(result.returncode, (FINE, UNTESTED), (name, result.stderr))
            self.same(name, out)
            self.assertNotRegex(result.stderr, r"-[0-9.]+ ?s|nan|inf", name)
            manifest = self.folder / out / "manifest.yaml"
            if manifest.exists():
                told = next(float(line.split()[1]) for line in manifest.read_text().splitlines() if line.startswith("wall_seconds:"))
                self.assertTrue(0 <= told <= seconds, (name, told, seconds))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
