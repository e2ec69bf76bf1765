#!/usr/bin/python3
"""Links among the results, pipes that nobody reads, an activated environment of Python, a stack and a memory that end, names that no XML has.

    tests/faults/hostile_places_test.py

Runs at the root of the repository; SPECSIM names the program.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

from faults_test import CONFIG, TIMED, WithResults, run

sys.path.insert(0, "tests/support")
from program import BAD_INPUT, DISAGREE, FINE, IO_FAILED, SANITIZERS, SPECSIM, UNTESTED  # noqa: E402

SERVING = ["serve", "configs/serve/chat.yaml", "--requests", "20"]


class HostilePlaces(WithResults):
    def test_links_among_the_results(self):
        """A result is never written through a link, --force or not: it would replace a file of another folder."""
        victim = self.scratch / "victim"
        for command, names in ((["run", self.config], ("data.csv", "counts.csv", "manifest.yaml")), (["check", self.config], ("data.csv",)),
                               (SERVING, ("summary.csv", "requests.csv")), (["plan", "--alpha", "0.7", "--longest", "2"], ("plan.csv",)),
                               (["merge", self.folder / "whole"], ("data.csv",))):
            for name in names:
                for target in (victim, self.scratch / "nothing there"):
                    victim.write_text("mine\n")
                    out = self.scratch / f"linked {command[0]} {name} {target.name}"
                    out.mkdir()
                    (out / name).symlink_to(target)
                    for force in ([], ["--force"]):
                        self.refused(run(*command, "--out", out, *force), rf"/{re.escape(name)}: is a symbolic link, allowed: another --out, or none of this name there\n$")
                    self.assertEqual(victim.read_text(), "mine\n")
                    self.assertFalse((self.scratch / "nothing there").exists())
                    self.assertEqual([p.name for p in out.iterdir()], [name])
        # The folder itself may be one: it is what was named.
        (self.scratch / "real").mkdir()
        (self.scratch / "named").symlink_to("real")
        self.assertEqual(run("run", self.config, "--out", self.scratch / "named").returncode, FINE)
        self.same(self.scratch / "real")

    def test_init_follows_no_link_below_the_folder(self):
        elsewhere = self.scratch / "elsewhere"
        for place in ("configs", "configs/hardware"):
            shutil.rmtree(elsewhere, ignore_errors=True)
            elsewhere.mkdir()
            base = self.scratch / place.replace("/", "_")
            (base / place).parent.mkdir(parents=True, exist_ok=True)
            (base / place).symlink_to(elsewhere)
            for force in ([], ["--force"]):
                self.refused(run("init", base, *force), rf"/{place}: is a symbolic link, allowed: another directory, or none of this name there\n$")
            self.assertEqual(list(elsewhere.iterdir()), [])
        (self.scratch / "link").symlink_to(elsewhere)  # what is named itself is followed
        self.assertEqual(run("init", self.scratch / "link").returncode, FINE)
        self.assertTrue((elsewhere / "configs/quickstart.yaml").is_file())

    def test_pipes_that_nobody_reads(self):
        pipe = self.scratch / "pipe"
        os.mkfifo(pipe)
        timed = self.scratch / "timed.yaml"
        timed.write_text(TIMED)
        for command, option in ((SERVING, "--timeline"), (["run", timed], "--trace"), (["check", timed], "--junit")):
            result = run(*command, option, pipe)
            self.assertEqual(result.returncode, IO_FAILED, result.stderr)
            self.assertIn(f"{pipe}: is a pipe that nobody reads, allowed: a file, or a pipe with a reader", result.stderr)
        shown = self.scratch / "shown"  # a file: another pipe would fill, and stop the reader
        with shown.open("wb") as file:
            reader = subprocess.Popen(["cat", pipe], stdout=file)
        keeps = os.open(pipe, os.O_RDWR)  # the reader is there, whenever it gets its turn
        result = run(*SERVING, "--timeline", pipe)
        os.close(keeps)
        self.assertEqual(result.returncode, FINE, result.stderr)
        self.assertEqual(reader.wait(timeout=600), 0)
        self.assertTrue(shown.read_bytes().rstrip().endswith((b"}", b"]")))

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "the packages are Debian's")
    def test_an_activated_environment(self):
        """plot finds matplotlib whichever python3 comes first on PATH."""
        environment = self.scratch / "venv"
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", environment], check=True)
        self.assertEqual(run("run", self.config, "--set", "sweep.decode.drafter.draft_length=[1,2]", "--out", self.scratch / "out").returncode, FINE)
        active = {**os.environ, "VIRTUAL_ENV": str(environment), "PATH": f"{environment}/bin:{os.environ['PATH']}"}
        active.pop("PYTHONPATH", None)
        for more in (None, active):
            result = run("plot", self.scratch / "out", env=more)
            self.assertEqual((result.returncode, result.stderr), (FINE, ""))

    @unittest.skipIf(SANITIZERS, "a sanitizer's frames are larger")
    def test_a_small_stack(self):
        for limit in (64, 128, 512):
            small = lambda: resource.setrlimit(resource.RLIMIT_STACK, (limit << 10, limit << 10))
            for command in (["run", self.config, "--threads", "3"], ["check", self.config], SERVING, ["plan", "--alpha", "0.7", "--longest", "2"], ["import", "tests/data/logs/vllm.log"],
                            ["init", self.scratch / f"configs{limit}"]):
                result = run(*command, preexec_fn=small)
                self.assertIn(result.returncode, (FINE, UNTESTED, DISAGREE), (limit, command, result.stderr))

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_memory_that_ends_for_good(self):
        """Wherever it ends: a message and status 4, or the work was done; never a signal, and nothing half-written."""
        shim = self.folder / "no_memory.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), "tests/faults/no_memory.c", "-ldl"], check=True)
        ended = 0
        for i, command in enumerate((["theory", "--alpha", "0.7", "--draft-length", "3"], ["run", self.config, "--threads", "2"],
                                     ["import", "tests/data/logs/vllm.log"], ["run", self.scratch / "missing.yaml"])):
            number = 1
            while True:
                out = self.scratch / f"out{i} {number}"
                more = ["--out", out] if command[0] == "run" else []
                result = run(*command, *more, env={**os.environ, "LD_PRELOAD": str(shim), "NO_MEMORY": str(number)})
                self.assertGreaterEqual(result.returncode, 0, (command, number, result.stderr))
                if result.returncode != IO_FAILED:
                    break
                ended += 1
                self.assertRegex(result.stderr, "out of memory|annot allocate memory", (command, number))
                self.assertEqual([p.name for p in out.rglob("*.part")] if out.exists() else [], [])
                number = 3 * number
        self.assertGreater(ended, 12)

    @unittest.skipIf(SANITIZERS, "a sanitizer keeps what is freed")
    def test_memory_does_not_follow_what_a_file_asks_for(self):
        """A log with labels of its own on each line, and a trace of 400 bytes that asks for 75 million hashes."""
        def most_mib(*arguments):
            process = subprocess.Popen([SPECSIM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used.ru_maxrss / 1024
        log = self.scratch / "labels.txt"
        drafts = 'vllm:spec_decode_num_drafts_total{{engine="{}",instance="{}",model_name="{}"}} 5.0\n'
        for label in range(3):  # each in its turn: servers, models, engines
            with open(log, "w") as file:
                for i in range(200000):
                    file.write(drafts.format(*(f"x{i:050d}" if at == label else "x" for at in range(3))))
            status, mib = most_mib("import", log)
            self.assertIn(status, (FINE, BAD_INPUT))
            self.assertLess(mib, 120)
        trace = self.scratch / "trace.csv"
        trace.write_text("arrived_us,prompt,output,block_hashes\n" + "0,100000000,1,0-6249999\n" * 12)
        status, mib = most_mib("serve", "configs/serve/chat.yaml", "--trace", trace)
        self.assertEqual(status, BAD_INPUT)
        self.assertLess(mib, 600)

    @unittest.skipIf(SANITIZERS, "a sanitizer keeps what is freed")
    def test_memory_by_byte_of_input(self):
        """Files that hold as much as they can of what their readers keep: none takes more than `factor` bytes for each of its own, over 60 MiB. What is
        read line by line as values (JSON lines) takes a hundred times its text, a log not even its own size."""
        size = 3 << 20
        log, values = 12, 130
        figures = '"num_draft_tokens": 1, "acceptance_histogram": [1, 2], "draft_n": 3, '
        scrape = 'vllm:spec_decode_num_drafts_total{{engine="{0}",model_name="{0}"}} 5\n'
        series = '{{"metric": {{"__name__": "vllm:spec_decode_num_drafts_total", "engine": "{}"}}, "values": [[1, "2"], [2, "3"]]}},'
        def each(form):
            lines, total = [], 0
            while total < size:
                lines.append(form.format(len(lines)))
                total += len(lines[-1])
            return "".join(lines)
        inputs = [
            ("import", log, "levels", '{"a": ' * (size // 6)), ("import", log, "levels of lists", '{"a": ' + "[" * size),
            ("import", log, "figures of one object", '{"specDecodingStats": {' + figures * (size // len(figures)) + '"x": 0}}'),
            ("import", log, "rounds", '{"choices": [{"accept_lengths": [' + "1, 2, " * (size // 6) + "1]}]}"),
            ("import", log, "answers", each('{{"meta_info": {{"id": "{:040d}", "spec_verify_ct": 3, "completion_tokens": 9}}}}\n')),
            ("import", log, "values of a query", '{"data": {"result": [' + each(series) + "{}]}}"), ("import", log, "labels", each(scrape)),
            ("import", log, "broken lines", "SpecDecoding metrics: Mean acceptance length: 2.7\n" * (size // 50)),
            ("import", log, "a string", '{"log": "' + "\\n" * (size // 2) + '"}'), ("import", log, "logs in logs", '{"log": "{\\"log\\": \\"x\\\\n\\"}\\n"}\n' * (size // 36)),
            ("import", log, "drafters", each("statistics d{}: #gen drafts = 1, #gen tokens = 1, #acc tokens = 1\n")),
            ("serve", values, "sessions", each('{{"session_id": "{:020d}", "input_length": 1, "output_length": 1}}\n')),
            ("serve", values, "hashes", '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [' + "1, " * (size // 3) + "1]}"),
            ("serve", values, "keys", '{"timestamp": 0, ' + each('"k{}": 1, ') + '"input_length": 1, "output_length": 0}'),
            ("fit", values, "rounds", '{"draft_length": 2, "rounds": [' + "1, " * (size // 3) + "9]}"),
            ("run", values, "a config", "experiment: a\nrounds: [" + "1, " * (size // 3) + "1]\n")]
        for command, factor, name, text in inputs:
            file = self.scratch / ("case.yaml" if command == "run" else "case.jsonl")
            file.write_text(text)
            arguments = {"serve": ["serve", "configs/serve/chat.yaml", "--no-capacity", "--dry-run", "--trace", file]}.get(command, [command, file])
            process = subprocess.Popen([SPECSIM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            with self.subTest(command=command, file=name):
                self.assertIn(process.returncode, (FINE, BAD_INPUT))
                self.assertLess(used.ru_maxrss / 1024, 60 + factor * len(text) / (1 << 20))

    def test_names_that_no_xml_has(self):
        config = self.scratch / "named.yaml"
        for name in ("x\uffff", "x\ufffey", "\U0010ffff", "a&<>'"):
            config.write_text(CONFIG.replace("experiment: small", f'experiment: "{name}"'), encoding="utf-8")
            file = self.scratch / "junit.xml"
            result = run("check", config, "--junit", file, "--force")
            self.assertIn(result.returncode, (FINE, UNTESTED), result.stderr)
            self.assertEqual(ET.parse(file).getroot().tag, "testsuites")

    def test_programs_of_unlike_sources_have_unlike_commits(self):
        """Outside git, as in an image, the commit is the sources': merge and --resume tell programs apart by it."""
        def commit(folder):
            header = self.scratch / "version.h"
            subprocess.run(["cmake", "-D", f"SOURCE={folder}", "-D", f"HEADER={header}", "-D", "VERSION=1", "-P", os.path.abspath("cmake/version.cmake")], check=True,
                           capture_output=True)
            return re.search(r'commit = "(.*)"', header.read_text())[1]
        source = self.scratch / "source"
        (source / "sim/room").mkdir(parents=True)
        (source / "CMakeLists.txt").write_text("project(x)\n")
        (source / "sim/room/a.cpp").write_text("int a;\n")
        first = commit(source)
        self.assertRegex(first, "^sources-[0-9a-f]{40}$")
        self.assertEqual(commit(source), first)
        copied = self.scratch / "copied"
        shutil.copytree(source, copied)
        self.assertEqual(commit(copied), first)
        (copied / "sim/room/a.cpp").write_text("int b;\n")
        second = commit(copied)
        (copied / "sim/room/a.cpp").rename(copied / "sim/room/b.cpp")
        self.assertEqual(len({first, second, commit(copied)}), 3)


if __name__ == "__main__":
    unittest.main()
