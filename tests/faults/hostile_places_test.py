#!/usr/bin/python3
"""Links among the results, pipes that nobody reads, an activated environment of Python, an exhausted stack and memory, names that XML does not allow.

    tests/faults/hostile_places_test.py

Runs at the root of the repository; SPECSIM names the program.
"""

import lzma
import os
import re
import resource
import shutil
import struct
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
        # The folder itself may be a link, since the user named it.
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
        (self.scratch / "link").symlink_to(elsewhere)  # a link that the user named is followed
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
            self.assertIn(f"{pipe}: is a pipe without a reader, allowed: a file, or a pipe with a reader", result.stderr)
        shown = self.scratch / "shown"  # a file, because a second pipe would fill and stop the reader
        with shown.open("wb") as file:
            reader = subprocess.Popen(["cat", pipe], stdout=file)
        keeps = os.open(pipe, os.O_RDWR)  # the reader exists, whenever it gets its turn
        result = run(*SERVING, "--timeline", pipe)
        os.close(keeps)
        self.assertEqual(result.returncode, FINE, result.stderr)
        self.assertEqual(reader.wait(timeout=600), 0)
        self.assertTrue(shown.read_bytes().rstrip().endswith((b"}", b"]")))

    def test_pipes_in_the_folder_of_a_model(self):
        """They are refused at once: opening one would wait for its other end. A link to a file is followed, as in caches of Hugging Face."""
        tiny = Path("tests/data/models/tiny-llama3").resolve()
        pass_time = lambda model: ["pass", "--hardware", "h100-sxm", "--model", model, "--tokens", "1"]
        lab = lambda model: ["calibrate", "--target", model, "--draft", model, "--prompts", "tests/data/prompts/calibration.jsonl", "--out", self.scratch / "calibrated"]
        for number, (name, commands, kept) in enumerate([
                ("config.json", (lambda model: ["describe", model], pass_time, lab), ()), ("params.json", (lambda model: ["describe", model], pass_time), ()),
                ("config.json", (lambda model: ["describe", f"{model}/model.safetensors"],), ("model.safetensors",)),
                ("model.gguf", (lambda model: ["describe", model], pass_time), ()), ("tokenizer.json", (lab,), ("config.json", "model.safetensors")),
                ("tokenizer.model", (lab,), ("config.json", "model.safetensors")), ("model.safetensors", (lab,), ("config.json",)), ("model.safetensors.index.json", (lab,), ("config.json",))]):
            model = self.scratch / f"model{number}"
            model.mkdir()
            for file in kept:
                (model / file).symlink_to(tiny / file)
            os.mkfifo(model / name)
            for command in commands:
                result = run(*command(model))
                self.assertEqual(result.returncode, IO_FAILED if name.endswith(".index.json") else BAD_INPUT, result.stderr)
                self.assertRegex(result.stderr, rf"{model}/{re.escape(name)}: (it is no regular file|cannot be read: Invalid argument)")
        linked = self.scratch / "linked"
        linked.mkdir()
        for file in ("config.json", "model.safetensors"):
            (linked / file).symlink_to(tiny / file)
        self.assertEqual(run("describe", linked).returncode, FINE)

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
        # Python needs more stack: it gets the default where only the soft limit is small, and otherwise its signal is reported.
        self.assertEqual(run("run", self.config, "--out", self.scratch / "stacked").returncode, FINE)
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        result = run("plot", self.scratch / "stacked", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, hard)))
        self.assertEqual(result.returncode, FINE, result.stderr)
        result = run("plot", self.scratch / "stacked", "--force", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10)))
        self.assertRegex(result.stderr, r"^$" if result.returncode == FINE else r"ended by signal \d+ \(")

    @unittest.skipIf(SANITIZERS, "preloading goes before the sanitizer's own library")
    def test_memory_that_ends_for_good(self):
        """Wherever the memory or stack ends: a message and status 4, or complete results; never a signal, and no partial file."""
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
        """A log with different labels on each line, and a trace of 400 bytes that asks for 75 million hashes."""
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
        # Sessions: a thousand of a million turns each, of which a thousand turns are sent; and prompts of 12.5 billion blocks.
        sessions = "serve.arrivals={process: sessions, rate: %s, requests: %s, turns: %s, gap_s: %s, prompt: %s, output: 1, most: 1e7}"
        for values, status, limit in (((1e9, 1000, 1000000, 1e6, 1), FINE, 200), ((1, 200000, 1, 1, 1e6), BAD_INPUT, 400)):
            found, mib = most_mib("serve", "configs/serve/chat.yaml", "--dry-run", "--no-capacity", "--set", sessions % values)
            self.assertEqual(found, status)
            self.assertLess(mib, limit)

    @unittest.skipIf(SANITIZERS, "a sanitizer keeps what is freed")
    def test_memory_by_byte_of_input(self):
        """Files with the largest memory per byte in their readers. None takes more than `factor` bytes per byte of the file, above 60 MiB. A log
        takes less than twelve times its size; values (YAML, JSON) and files with a message per row (CSV) take up to 130 times."""
        size = 1 << 20
        log, values = 12, 130
        def each(form, begin="", end=""):
            def text():
                lines, total = [begin], 0
                while total < size:
                    lines.append(form.format(len(lines)))
                    total += len(lines[-1])
                return "".join([*lines, end])
            return text
        def times(text, begin="", end=""):
            return lambda: begin + text * (size // len(text)) + end
        def tensors(*text):
            header = each(*text) if "{}" in text[0] else times(*text)
            return lambda: struct.pack("<Q", len(header())) + header().encode() + bytes(4)
        def tokens(kind, value):  # a GGUF file of one key, a list
            key = b"tokenizer.ggml.tokens"
            count = size // len(value)
            return lambda: b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, kind, count) + value * count
        figures = '"num_draft_tokens": 1, "acceptance_histogram": [1, 2], "draft_n": 3, '
        scrape = 'vllm:spec_decode_num_drafts_total{{engine="{0}",model_name="{0}"}} 5\n'
        series = '{{"metric": {{"__name__": "vllm:spec_decode_num_drafts_total", "engine": "{}"}}, "values": [[1, "2"], [2, "3"]]}},'
        request = '{"timestamp": 0, "input_length": 1, "output_length": 1'
        yaml = [("a list", times("1, ", "a: [", "1]\n")), ("keys", each("k{}: 1\n")), ("flow keys", each("k{}: 1, ", "a: {", "z: 1}\n")), ("levels", times("[")),
                ("texts", times('"x", ', "a: [", "1]\n")), ("a text", times("x", "a: ")), ("aliases", each("b{}: *a\n", "a: &a [1, 1]\n"))]
        json_values = [("a list", times("1, ", '{"a": [', "1]}")), ("keys", each('"k{}": 1, ', "{", '"z": 1}')), ("levels", times('{"a": ')), ("levels of lists", times("[")),
                       ("objects", times('{"b": 1}, ', '{"a": [', "1]}"))]
        rows = [("rows", each("{},1,2,3\n")), ("columns", times("a,")), ("empty lines", times("\n")), ("a line", times("x"))]
        model = self.scratch / "model"
        lab = lambda name: ["calibrate", "--target", name, "--draft", name, "--prompts", "tests/data/prompts/calibration.jsonl", "--out", self.scratch / "calibrated"]
        merge = ["merge", self.scratch / "shards", "--out", self.scratch / "merged"]
        server = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b"]
        no_tables = ["--set", "pair.vocab=100000"]  # they do not fit, so that the dry run does not begin to make them
        chat = ["serve", "configs/serve/chat.yaml", "--no-capacity", "--dry-run", "--set"]
        readers = [  # the file, the command that reads it, bytes of memory per byte, its content
            ("case.jsonl", lambda file: ["import", file], log, [
                ("levels", times('{"a": ')), ("levels of lists", times("[", '{"a": ')), ("figures of one object", times(figures, '{"specDecodingStats": {', '"x": 0}}')),
                ("rounds", times("1, 2, ", '{"choices": [{"accept_lengths": [', "1]}]}")),
                ("answers", each('{{"meta_info": {{"id": "{:040d}", "spec_verify_ct": 3, "completion_tokens": 9}}}}\n')),
                ("values of a query", each(series, '{"data": {"result": [', "{}]}}")), ("labels", each(scrape)),
                ("values with times", each('vllm:spec_decode_num_drafts_total {0} {0}\n')), ("values of one counter", each('[{0}, "5"], ', '{{"data": {{"result": [{{"metric": {{"__name__": "{}{}"}}, "values": ['.format("vllm:spec_decode_num_drafts_total", 900 * "x"), '[0, "1"]]}]}}')),
                ("broken lines", times("SpecDecoding metrics: Mean acceptance length: 2.7\n")),
                ("a string", times("\\n", '{"log": "', '"}')), ("logs in logs", times('{"log": "{\\"log\\": \\"x\\\\n\\"}\\n"}\n')),
                ("drafters", each("statistics d{}: #gen drafts = 1, #gen tokens = 1, #acc tokens = 1\n"))]),
            ("case.jsonl", lambda file: ["serve", "configs/serve/chat.yaml", "--no-capacity", "--dry-run", "--trace", file], values, [
                ("sessions", each('{{"session_id": "{:020d}", "input_length": 1, "output_length": 1}}\n')), ("hashes", times("1, ", request + ', "hash_ids": [', "1]}")),
                ("keys", each('"k{}": 1, ', '{"timestamp": 0, ', '"input_length": 1, "output_length": 0}'))]),
            ("case.csv", lambda file: ["serve", "configs/serve/chat.yaml", "--no-capacity", "--dry-run", "--trace", file], values, [
                *rows, ("requests", each("{},1,1\n", "arrived_us,prompt,output\n")), ("Azure's requests", times("2024-05-10 00:00:00.009930,1,1\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n")),
                ("hashes", times("1 ", "arrived_us,prompt,output,block_hashes\n0,1000000000,1,"))]),
            ("case.jsonl", lambda file: ["fit", file], values, [("rounds", times("1, ", '{"draft_length": 2, "rounds": [', "9]}"))]),
            ("case.jsonl", lambda file: [*chat, f"serve.speculation.acceptance={{trace: {file}}}"], values, [
                ("rounds", times("1, ", '{"draft_length": 2, "rounds": [', "9]}")), ("overlaps", times("1, ", '{"request": 0, "overlap": [', "1]}")),
                ("records", each('{{"request": {}, "overlap": [1, 0.5]}}\n'))]),
            ("case.csv", lambda file: [*chat, f"serve.speculation.acceptance={{replay: {file}}}"], values, [
                *rows, ("uniforms", each("{},1,0.5\n", "request,position,uniform\n"))]),
            ("case.csv", lambda file: [*chat, f"serve.lengths={{prompt: {{file: {{path: {file}, column: prompt}}}}, output: {{fixed: 9}}}}"], values, [
                *rows, ("lengths", times("9\n", "prompt\n"))]),
            ("case.jsonl", lambda file: ["run", "configs/quickstart.yaml", "--dry-run", *no_tables, "--set", f"context={{process: trace, file: {file}}}"], values, [
                ("rounds", times("1, ", '{"draft_length": 2, "rounds": [', "9]}")), ("overlaps", times("1, ", '{"request": 0, "overlap": [', "1]}"))]),
            ("case.yaml", lambda file: ["run", file], values, [("a config", times("1, ", "experiment: a\nrounds: [", "1]\n")), *yaml]),
            ("gpu.yaml", lambda file: ["pass", "--hardware", file, "--model", "llama-2-7b"], values, yaml),
            ("model.yaml", lambda file: ["describe", file], values, yaml),
            ("config.json", lambda file: ["describe", file], values, json_values),
            ("engine.yaml", lambda file: ["pass", "--hardware", "h100-sxm", "--model", "llama-2-7b", "--engine", file], values, yaml),
            ("rates.yaml", lambda file: ["plan", "--acceptance", file], values, yaml),
            ("kernels.csv", lambda file: ["kernels", file], values, rows),
            ("times.csv", lambda file: ["run", "configs/quickstart.yaml", "--set", f"cost={{model: table, file: {file}}}", "--dry-run"], values, rows),
            ("runs.csv", lambda file: ["tune", file, *server], values, rows),
            ("runs.json", lambda file: ["tune", file, *server], values, json_values),
            ("shards/1/manifest.yaml", lambda file: merge, values, yaml),
            ("shards/1/counts.csv", lambda file: merge, values, rows),
            ("shards/1/journal.txt", lambda file: merge, values, [("lines", times("x\n")), ("a line", times("x"))]),
            ("prompts.jsonl", lambda file: ["calibrate", "--target", "tests/data/models/tiny-llama3", "--draft", "tests/data/models/tiny-llama3", "--prompts", file, "--out",
                                            self.scratch / "calibrated"], values, [("tokens", times("1, ", '{"tokens": [', "99999999]}")), ("a text", times("\\q", '{"prompt": "', '"}'))]),
            ("model/config.json", lambda file: lab(model), values, json_values),
            ("model/tokenizer.json", lambda file: lab(model), values, [*json_values, ("tokens", each('"t{0}": {0}, ', '{"model": {"type": "BPE", "vocab": {', '"z": 999999999}, "merges": []}}')),
                                                                      ("merges", times('"a a", ', '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [', '"a a"]}}'))]),
            ("model/model.safetensors", lambda file: lab(model), values, [
                ("tensors", tensors('"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}},', "{", '"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}')),
                ("a shape", tensors("1,", '{"z":{"dtype":"F32","shape":[', '1],"data_offsets":[0,4]}}')), ("metadata", tensors('"k{}":"v",', '{"__metadata__":{', '"z":"v"}}'))]),
            ("model.gguf", lambda file: lab(file), values, [("texts", tokens(8, bytes(8))), ("lists", tokens(9, struct.pack("<IQ", 9, 1)))])]
        for name, arguments, factor, contents in readers:
            for what, text in contents:
                file = self.scratch / name
                if file.parent == model:
                    shutil.copytree("tests/data/models/tiny-llama3", model, dirs_exist_ok=True)
                file.parent.mkdir(parents=True, exist_ok=True)
                held = text()
                file.write_bytes(held if isinstance(held, bytes) else held.encode())
                length = file.stat().st_size
                del held
                # Processor seconds, ten times those of the slowest command.
                enough = lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
                process = subprocess.Popen([SPECSIM, *map(str, arguments(file))], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=enough)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                with self.subTest(command=arguments(file)[0], file=name, what=what):
                    self.assertIn(process.returncode, (FINE, BAD_INPUT, IO_FAILED))
                    self.assertLess(used.ru_maxrss / 1024, 60 + factor * length / (1 << 20))
                file.unlink()

    @unittest.skipIf(SANITIZERS, "a sanitizer makes it slow")
    def test_time_by_byte_of_a_log(self):
        """Many engines and one that is scraped often; many stages. Both took more than six seconds when each line went through all of them."""
        scrape = 'vllm:spec_decode_num_drafts_total{{engine="{}"}} 1\n'
        table = "| task | run | stage | tokens | stop | time(s) | tok/s | rounds | accepted | rate | a.len | pos accept |\n"
        row = "| code | 1 | mtp{} | 759 | eog | 11.068 | 68.58 | 220 | 538/660 | 81 | 3.45 | 90.5% 80.5% 73.6% |\n"
        for text in ("".join(scrape.format(i) for i in range(40000)) + 40000 * scrape.format(0), table + "".join(row.format(i) for i in range(20000))):
            log = self.scratch / "log.txt"
            log.write_text(text)
            enough = lambda: resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
            process = subprocess.run([SPECSIM, "import", log], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=enough)
            self.assertIn(process.returncode, (FINE, BAD_INPUT))  # the first log has no counter of accepted tokens

    def test_a_packed_table_of_many_fields(self):
        """Some kilobytes that unpack to 34 million fields are refused when the limit is reached."""
        table = self.scratch / "table.csv.xz"
        table.write_bytes(lzma.compress((b"," * 999 + b"\n") * 33600, preset=0))
        result = run("kernels", table, "--out", self.scratch / "priced")
        if "without liblzma" in result.stderr:
            self.skipTest("this specsim was built without liblzma")
        self.refused(result, r"with it the table has over 33554432 fields, allowed: smaller tables\n$")

    def test_names_that_no_xml_has(self):
        config = self.scratch / "named.yaml"
        for name in ("x\uffff", "x\ufffey", "\U0010ffff", "a&<>'"):
            config.write_text(CONFIG.replace("experiment: small", f'experiment: "{name}"'), encoding="utf-8")
            file = self.scratch / "junit.xml"
            result = run("check", config, "--junit", file, "--force")
            self.assertIn(result.returncode, (FINE, UNTESTED), result.stderr)
            self.assertEqual(ET.parse(file).getroot().tag, "testsuites")

    def test_a_config_whose_name_is_no_utf8(self):
        """The manifest has U+FFFD for what YAML does not allow. Mutant: the byte itself, which no reader of YAML takes."""
        for name, experiment in ((b"we\xffird.yaml", "small"), (b"plain.yaml", "x\\uFFFFy")):
            config = os.path.join(os.fsencode(self.scratch), name)
            with open(config, "w", encoding="utf-8") as file:
                file.write(CONFIG.replace("experiment: small", f'experiment: "{experiment}"'))
            out = self.scratch / "named"
            for _ in range(2):  # the second time, the results are those of the same run
                result = run("run", os.fsdecode(config), "--out", out, "--force")
                self.assertEqual(result.returncode, FINE, result.stderr)
                manifest = (out / "manifest.yaml").read_text(encoding="utf-8")
                self.assertIn("\ufffd", manifest)
                self.assertNotIn("\uffff", manifest)

    def test_programs_of_unlike_sources_have_unlike_commits(self):
        """Outside git, as in an image, the commit is a hash of the sources: merge and --resume use it to compare programs."""
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
