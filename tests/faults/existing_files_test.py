#!/usr/bin/python3
"""Existing files at the place of a command's output: another run's results, a user's files, pipes. None of them is lost without --force.

    tests/faults/existing_files_test.py

Runs at the root of the repository; SPECSIM names the program. The folder's own rules are in tests/unit/output_folder_test.cpp.
"""

import os
import shutil
import sys
import unittest
from pathlib import Path

from faults_test import TIMED, TRACED, WithResults, run

sys.path.insert(0, "tests/support")
from program import DISAGREE, FINE, IO_FAILED, UNTESTED  # noqa: E402

KERNELS = """gpu,engine,version,dtype,kernel,n,k,m,us,set_over_l2
h100-sxm,vllm,1,bfloat16,mine,4096,4096,1,9.5,9
h100-sxm,vllm,1,bfloat16,mine,4096,4096,64,10.5,9
"""


class ExistingFiles(WithResults):
    def test_foreign_files_are_left_alone(self):
        for name in ("data.csv", "counts.csv", "waterfall.csv"):
            out = self.scratch / name
            out.mkdir()
            (out / name).write_text("mine\n")
            for command in ("run", "check"):
                self.refused(run(command, self.config, "--out", out),
                             f"/{name}: is here without a manifest.yaml that shows which command wrote it, allowed: another --out, or --force to replace it\n$")
            self.assertEqual((out / name).read_text(), "mine\n")
            self.assertEqual(run("run", self.config, "--out", out, "--force").returncode, FINE)
            self.same(out)
        for name in ("data.csv.part", "manifest.yaml.part"):
            out = self.scratch / name
            out.mkdir()
            (out / name).write_text("mine\n")
            self.refused(run("run", self.config, "--out", out), f"/{name}: is here without a manifest.yaml that shows which command wrote it, allowed: another --out, or --force to replace it\n$")
            self.assertEqual((out / name).read_text(), "mine\n")
            self.assertEqual(run("run", self.config, "--out", out, "--force").returncode, FINE)
            self.same(out)
        out = self.scratch / "journal"
        out.mkdir()
        (out / "journal.txt").write_text("Dear diary\n")
        self.refused(run("run", self.config, "--out", out, "--resume"), "journal.txt:1: is no journal of a run")
        self.refused(run("run", self.config, "--out", out), "an unfinished run is here")
        self.assertEqual((out / "journal.txt").read_text(), "Dear diary\n")

    def test_foreign_files_of_every_command_that_writes(self):
        """A file that no manifest lists, and another command's results, are replaced only with --force."""
        quick = ["--alpha", "0.7", "--longest", "2"]
        recorded = "tests/data/acceptance/rounds_t1.jsonl"
        commands = [(["plan", *quick], "plan.csv"), (["plan", *quick], "own_map.csv"),
                    (["compare", "--rounds", "1024", "--batches", "1"], "trees.csv"),
                    (["fit", recorded], "regimes.yaml")]
        for i, (command, name) in enumerate(commands):
            out = self.scratch / f"foreign{i}"
            out.mkdir()
            (out / name).write_text("mine\n")
            self.refused(run(*command, "--out", out),
                         f"/{name}: is here without a manifest.yaml that shows which command wrote it, allowed: another --out, or --force to replace it\n$")
            self.assertEqual([(p.name, p.read_text()) for p in out.iterdir()], [(name, "mine\n")])
        out = self.scratch / "foreign0"
        (out / "notes.txt").write_text("mine too\n")
        self.assertEqual(run("plan", *quick, "--out", out, "--force").returncode, FINE)
        files = sorted(p.name for p in out.iterdir())
        self.assertEqual(files, ["manifest.yaml", "map.csv", "notes.txt", "own_map.csv", "plan.csv", "waterfall.csv"])
        self.assertEqual(run("plan", *quick, "--out", out).returncode, FINE)  # identical results may be replaced
        self.refused(run("plan", *quick, "--batch", "1,2", "--out", out), "holds the finished results of another run, allowed: another --out, or --force")
        self.assertEqual(run("plan", *quick, "--batch", "1,2", "--out", out, "--force").returncode, FINE)
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["manifest.yaml", "notes.txt", "plan.csv", "waterfall.csv"])
        for other in (["run", self.config], commands[2][0]):
            self.refused(run(*other, "--out", out), "holds the finished results of another run, allowed: another --out, or --force")
        table = self.scratch / "products.csv"
        table.write_text(KERNELS)
        own = self.scratch / "kernels" / "fitted" / "h100-sxm.yaml"
        own.parent.mkdir(parents=True)
        own.write_text("mine\n")
        self.refused(run("kernels", table, "--fit", "--out", own.parent.parent), "/fitted: is here without a manifest.yaml that shows which command wrote it, allowed: ")
        self.assertEqual(own.read_text(), "mine\n")
        # Next to a manifest, a file in `fitted` is replaced only if a fit wrote it; links and pipes never, and what they lead to stays.
        out = own.parent.parent
        own.parent.rename(self.scratch / "kept")
        self.refused(run("kernels", table, "--fit", "--out", out), "nothing to fit, allowed: ")  # the errors are written
        own.parent.rmdir()
        (self.scratch / "kept").rename(own.parent)
        self.refused(run("kernels", table, "--fit", "--out", out), "/fitted/h100-sxm.yaml: was written by no fit, allowed: another --out, or --force to replace it\n$")
        victim = self.scratch / "victim"
        for name in ("h100-sxm.yaml", "h100-sxm.kernels.yaml"):
            for path in own.parent.iterdir():
                path.unlink()
            victim.write_text("mine\n")
            (own.parent / name).symlink_to(victim)
            for force in ([], ["--force"]):
                self.refused(run("kernels", table, "--fit", "--out", out, *force), f"/fitted/{name}: is no regular file, allowed: ")
            (own.parent / name).unlink()
            os.mkfifo(own.parent / name)
            self.refused(run("kernels", table, "--fit", "--out", out, "--force"), f"/fitted/{name}: is no regular file, allowed: ")
            self.assertEqual(victim.read_text(), "mine\n")
        whole = self.scratch / "whole_again"
        shutil.copytree(self.folder / "whole", whole)
        self.refused(run("plan", *quick, "--out", whole), "holds the finished results of another run")
        self.same(whole)

    def test_init_and_what_is_there(self):
        configs = self.scratch / "configs"
        configs.mkdir()
        first = configs / "quickstart.yaml"
        elsewhere = self.scratch / "elsewhere"
        elsewhere.write_text("mine")

        def refused_whole(message, *more):
            self.refused(run("init", self.scratch, *more), message)
            self.assertEqual([p.name for p in configs.iterdir() if p.is_dir() and p != first], [])  # nothing was begun

        os.mkfifo(first)
        for more in ((), ("--force",)):
            refused_whole("/quickstart.yaml: is no regular file, allowed: another directory, or none of this name there\n$", *more)
        first.unlink()
        first.symlink_to(elsewhere)
        for more in ((), ("--force",)):
            refused_whole("/quickstart.yaml: is no regular file", *more)
        first.unlink()
        first.mkdir()
        refused_whole("/quickstart.yaml: is no regular file", "--force")
        first.rmdir()
        (configs / "quickstart.yaml.part").write_text("mine")
        refused_whole("/quickstart.yaml.part: exists already, allowed: another directory, or --force")
        self.assertEqual((configs / "quickstart.yaml.part").read_text(), "mine")
        (configs / "serve").write_text("mine")
        refused_whole("/serve: is no directory", "--force")
        (configs / "serve").unlink()
        self.assertEqual(elsewhere.read_text(), "mine")
        self.assertEqual(run("init", self.scratch, "--force").returncode, FINE)
        self.assertTrue(first.is_file())
        with open("/dev/zero", "rb") as endless:
            self.refused(run("init", "--ask", cwd=self.scratch, stdin=endless), "an answer is longer than 4096 bytes, allowed: a line\n$")

    def test_pipes_among_the_results(self):
        """They are reported at once, for each command and with --force too: opening one would wait for its other end."""
        serving = ["serve", "configs/serve/chat.yaml", "--requests", "20"]
        shard = self.scratch / "shard"
        self.assertEqual(run("run", self.config, "--shard", "1/1", "--out", shard).returncode, FINE)
        steps = self.scratch / "products.csv"
        steps.write_text(KERNELS)
        recorded = "tests/data/acceptance/rounds_t1.jsonl"
        for i, (command, name) in enumerate([(["run", self.config], "data.csv"), (["run", self.config], "counts.csv"), (["check", self.config], "manifest.yaml"),
                                             (["run", self.config, "--resume"], "data.csv"), (serving, "summary.csv"), (serving, "manifest.yaml"),
                                             (["kernels", steps], "manifest.yaml"), (["kernels", steps], "priced.csv"),
                                             (["plan", "--alpha", "0.7", "--longest", "2"], "plan.csv"), (["merge", shard], "data.csv"),
                                             (["merge", shard], "manifest.yaml"), (["fit", recorded], "manifest.yaml"), (["fit", recorded], "fit.csv")]):
            out = self.scratch / f"piped{i}"
            out.mkdir()
            os.mkfifo(out / name)
            for force in ([], ["--force"]):
                if "--resume" not in command or not force:
                    self.refused(run(*command, "--out", out, *force, "--quiet"), f"/{name}: is no regular file, allowed: ")
            self.assertEqual([p.name for p in out.iterdir()], [name])
        out = self.scratch / "unfinished"  # a refused command leaves an unfinished run unchanged
        out.mkdir()
        (out / "journal.txt").write_text("specsim journal")
        os.mkfifo(out / "data.csv")
        for command in (["run", self.config], ["merge", shard]):
            self.refused(run(*command, "--out", out, "--force"), "/data.csv: is no regular file")
            self.assertTrue((out / "journal.txt").exists())
        (shard / "counts.csv").unlink()
        os.mkfifo(shard / "counts.csv")
        self.refused(run("merge", shard, "--out", self.scratch / "all"), "/counts.csv: is no regular file, allowed: ")

    def test_single_files_that_are_there(self):
        """--trace, --timeline and --junit replace files that they wrote themselves, and other files only with --force."""
        config = self.scratch / "timed.yaml"
        config.write_text(TIMED)
        serving = ["serve", "configs/serve/chat.yaml", "--requests", "20"]
        for i, (command, option) in enumerate([(["run", config], "--trace"), (["check", config], "--trace"), (["check", config], "--junit"),
                                               (serving, "--timeline")]):
            ends = UNTESTED if command[0] == "check" else FINE  # some cells have too few rounds to judge
            file = self.scratch / f"single{i}"
            for text in ("mine\n", '{"displayTimeUnit":"ms"}\n', "<?xml version"):
                file.write_text(text)
                self.refused(run(*command, option, file), f"^{option}: .*single{i} exists already and was not written by {option}, allowed: another file, or --force")
                self.assertEqual(file.read_text(), text)
            self.assertEqual(run(*command, option, file, "--force").returncode, ends)
            self.assertEqual(run(*command, option, file).returncode, ends)  # its own
            written = file.read_bytes()
            file.write_text("")
            self.assertEqual(run(*command, option, file).returncode, ends)  # nothing is lost
            self.assertEqual(file.read_bytes(), written)
            out = self.scratch / f"results{i}"
            (self.scratch / f"link{i}").symlink_to(out.name)
            names = ("data.csv", "counts.csv", "waterfall.csv") if command[0] != "serve" else ("summary.csv", "slo.csv")
            for name in (*names, "manifest.yaml", "journal.txt", f"{names[0]}.part"):
                for folder in (out, f"{out}/../{out.name}"):
                    for force in ([], ["--force"]):
                        self.refused(run(*command, option, f"{folder}/{name}", "--out", out, *force), f"^{option}: .* is a file of --out, allowed: another file\n$")
                self.assertFalse(out.exists())
            self.refused(run(*command, option, out, "--out", out), f"^{option}: .* is a directory, allowed: a file\n$")
            # A missing directory is reported before the run starts, but --out creates its directory.
            result = run(*command, option, self.scratch / "nowhere" / "file", "--out", out)
            self.assertEqual((result.returncode, result.stdout), (IO_FAILED, ""))
            self.assertRegex(result.stderr, "nowhere/file: cannot be written: .*nowhere is no directory")
            self.assertFalse(out.exists())
            self.assertEqual(run(*command, option, out / "own", "--out", out).returncode, ends)
            self.assertEqual((out / "own").read_bytes(), written)
            self.refused(run(*command, option, self.scratch / f"link{i}" / names[0], "--out", out, "--force"), "is a file of --out")
            # Nothing is written through a link, not even over a file of its own.
            victim = self.scratch / f"victim{i}"
            for text in (b"mine\n", written, b"", None):
                link = self.scratch / f"link to a file {i}"
                link.unlink(missing_ok=True)
                victim.unlink(missing_ok=True)
                if text is not None:
                    victim.write_bytes(text)
                link.symlink_to(victim.name)
                for force in ([], ["--force"]):
                    self.refused(run(*command, option, link, *force), f"^{option}: .*link to a file {i} is a symbolic link, allowed: another file, or none of this name there\n$")
                self.assertEqual((link.is_symlink(), victim.read_bytes() if victim.exists() else None), (True, text))
        self.refused(run("check", config, "--trace", self.scratch / "a", "--junit", f"{self.scratch}/./a"), "^--junit: .* is the file of --trace, allowed: another file")

    def test_finished_results_and_inputs_that_change(self):
        """Results are replaced without --force if the same command, options and contents of inputs made them."""
        trace, rounds, table = self.scratch / "trace.jsonl", self.scratch / "rounds.jsonl", self.scratch / "products.csv"
        gpu, config, served = self.scratch / "gpu.yaml", self.scratch / "traced.yaml", self.scratch / "served.yaml"
        lines = Path("tests/data/trace_small.jsonl").read_text().splitlines(keepends=True)
        recorded = Path("tests/data/acceptance/rounds_t1.jsonl").read_text().splitlines(keepends=True)
        shutil.copy("configs/serve/chat.yaml", served)
        config.write_text(TRACED.replace("TRACE", str(trace)))
        compared = self.scratch / "compared.yaml"
        compared.write_text(config.read_text().replace("30000", "1000") + "cost: {model: ratio, draft_seconds: 0.001, target_seconds: 0.01}\n")
        priced = ["--hardware", gpu, "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b"]
        gpu_text = Path("configs/hardware/h100-sxm.yaml").read_text()
        kinds = [(["run", config], trace, "".join(lines), "".join(lines[1:]), ["--set", "rounds=40000"]),
                 (["serve", served, *priced, "--requests", "20"], gpu, gpu_text, gpu_text + "# another\n", ["--alone"]),
                 (["plan", *priced, "--alpha", "0.7", "--longest", "2"], gpu, gpu_text, gpu_text + "# another\n", ["--batch", "2"]),
                 (["plan", "--trace", trace, "--longest", "2"], trace, "".join(lines), "".join(lines[1:]), ["--batch", "2"]),
                 (["compare", compared], trace, "".join(lines), "".join(lines[1:]), ["--seed", "9"]),
                 (["fit", rounds], rounds, "".join(recorded[:30]), "".join(recorded[:29]), ["--seed", "9"]),
                 (["kernels", table], table, KERNELS, KERNELS.replace("9.5", "9.6"), ["--bands"])]
        for i, (command, file, text, other, more) in enumerate(kinds):
            gpu.write_text(gpu_text)
            file.write_text(text)
            out = self.scratch / f"out{i}"
            for _ in range(3):
                result = run(*command, "--out", out, "--threads", "1") if command[0] != "kernels" else run(*command, "--out", out)
                self.assertEqual(result.returncode, FINE, (command, result.stderr))
            before = {p.name: p.read_bytes() for p in out.iterdir()}
            for how in ([], ["--resume"]) if command[0] == "run" else ([],):
                self.refused(run(*command, *more, "--out", out, *how), f"(?m)^{out}: holds the finished results of another run, allowed: another --out, or --force")
                file.write_text(other)
                self.refused(run(*command, "--out", out, *how),
                             f"(?m)^{out}: holds the finished results of another run: {file.name} is not what it read, allowed: another --out, or --force to replace them\n$")
                self.assertEqual({p.name: p.read_bytes() for p in out.iterdir()}, before)
                file.write_text(text)
            file.write_text(other)
            self.assertEqual(run(*command, "--out", out, "--force").returncode, FINE)
            self.assertEqual(run(*command, "--out", out).returncode, FINE)
        # A shard's inputs are those of the whole run, so merged results may also be replaced only by the same merge.
        trace.write_text("".join(lines))
        for folder in ("first", "second"):
            self.assertEqual(run("run", config, "--shard", "1/1", "--out", self.scratch / folder).returncode, FINE)
            self.assertIn(run("merge", self.scratch / folder, "--out", self.scratch / "all").returncode if folder == "first" else FINE, (FINE, DISAGREE))
            trace.write_text("".join(lines[1:]))
        self.refused(run("merge", self.scratch / "second", "--out", self.scratch / "all"), "another run: trace.jsonl is not what it read")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
