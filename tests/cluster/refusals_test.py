#!/usr/bin/python3
"""specsim cluster: signals that end it, broken plans, unread output, and files that --force and --dry-run must not touch.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import SPECSIM, expect, finish, run  # noqa: E402

CONFIG = "configs/quickstart.yaml"
SMALL = [CONFIG, "--set", "rounds=30000", "--tasks", "2"]
LONG = [CONFIG, "--set", "rounds=1e10", "--tasks", "2"]


def everything(folder):
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def processes_of(folder):
    """Process ids of processes that have the folder among their arguments."""
    found = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                words = (one / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in words:
                found[int(one.name)] = words
    return found


def at_work(out):
    until = time.monotonic() + 30
    while time.monotonic() < until and not all((out / f"shards/{number}/journal.txt").exists() for number in (1, 2)):
        time.sleep(0.02)


def gone(out):
    until = time.monotonic() + 5
    while time.monotonic() < until and processes_of(out):
        time.sleep(0.05)
    left = processes_of(out)
    for number in left:
        os.kill(number, signal.SIGKILL)
    return not left


def signals(folder):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        out = folder / f"signal {number.name}"
        process = subprocess.Popen([SPECSIM, "cluster", "local:2", *LONG, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        at_work(out)
        for more in ([], ["--force"]):  # a second run on the same folder, which must not overwrite the shards of the first
            ended, _, error = run("cluster", "local:1", *LONG, "--out", out, *more)
            expect(f"two at once: {ended} {error}", ended == 2 and "another specsim cluster is at work here, allowed: " in error)
        sent = time.monotonic()
        process.send_signal(number)
        error = process.communicate()[1]
        expect(f"{number.name}: status {process.returncode}, {error}", process.returncode == 6 and "the same command goes on" in error)
        expect(f"{number.name}: {time.monotonic() - sent:.1f} s", time.monotonic() - sent < 5)
        expect(f"{number.name}: work went on", gone(out))
        expect(f"{number.name}: journals", all((out / f"shards/{one}/journal.txt").exists() for one in (1, 2)))
    # To the script alone.
    out = folder / "script"
    process = subprocess.Popen([SPECSIM, "cluster", "local:2", *LONG, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at_work(out)
    for one, words in processes_of(out).items():
        if "cluster.py" in words:
            os.kill(one, signal.SIGTERM)
    expect(f"script: status {process.wait()}", process.returncode == 6)
    expect("script: work went on", gone(out))
    # An interrupted run resumes and writes the same bytes as an uninterrupted one.
    out = folder / "again"
    some = [CONFIG, "--set", "rounds=3e7", "--tasks", "2", "--out", out]
    process = subprocess.Popen([SPECSIM, "cluster", "local:2", *some], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at_work(out)
    process.terminate()
    expect(f"again: status {process.wait()}", process.returncode in (0, 6))
    ended, _, error = run("cluster", "local:2", *some)
    expect(f"again: {ended} {error}", ended == 0)
    run("run", *some[:3], "--out", folder / "whole")
    expect("again: bytes of one run", (out / "data.csv").read_bytes() == (folder / "whole/data.csv").read_bytes())


def script_of_plot(folder):
    """plot ends together with its script, which waits here."""
    drawn = folder / "drawn"
    drawn.mkdir()
    (drawn / "data.csv").write_text("a\n")
    waits = folder / "python"
    waits.mkdir()
    (waits / "sitecustomize.py").write_text(f"import time\nopen({str(folder / 'begun')!r}, 'w').close()\ntime.sleep(100)\n")
    process = subprocess.Popen([SPECSIM, "plot", drawn], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(waits)})
    until = time.monotonic() + 30
    while time.monotonic() < until and not (folder / "begun").exists():
        time.sleep(0.02)
    process.terminate()
    expect(f"plot: status {process.wait()}", process.returncode == 6)
    expect("plot: its script went on", gone(drawn))


def plans(folder):
    out = folder / "plans"
    ended, _, error = run("cluster", "local:2", *SMALL, "--out", out)
    expect(f"plans: {ended} {error}", ended == 0)
    plan = out / "cluster.json"
    good = json.loads(plan.read_text())
    expect("a plan of its own", run("cluster", "status", out)[0] == 0)
    broken = [(b"", ":1:1: is no JSON"), (b"{", ":1:2: is no JSON"), (b"[]", ": is [], allowed: the cluster.json that specsim cluster wrote"),
              (b"null", ": is null"), (b"{}", ": config is missing"), (b"\xff\xfe", ": byte 1 is no UTF-8"), (b"[" * 100000, ": is no JSON of a plan"),
              (b"9" * 5000, ": is no JSON of a plan")]
    for tasks in ("x", 1e6, -5, True, 9000000000, 0, None):
        broken.append((json.dumps({**good, "tasks": tasks}).encode(), f": tasks is {json.dumps(tasks)}, allowed: an integer in [1, 100000]"))
    broken += [(json.dumps({**good, "set": 3}).encode(), ": set is 3, allowed:"), (json.dumps({**good, "config": []}).encode(), ": config is []")]
    for data, text in broken:
        plan.write_bytes(data)
        for arguments in (["status", out], ["local:2", *SMALL, "--out", out]):
            ended, _, error = run("cluster", *arguments)
            expect(f"plan {data[:60]} {arguments[0]}: {ended} {error[-200:]}", ended == 2 and error.startswith(f"{plan}{text}") and "allowed: " in error)
    plan.unlink()
    os.mkfifo(plan)
    for arguments in (["status", out], ["local:2", *SMALL, "--out", out]):
        ended, _, error = run("cluster", *arguments)
        expect(f"pipe {arguments[0]}: {ended} {error[-200:]}", ended == 2 and f"{plan}: is no regular file, allowed: " in error)
    strange = os.fsdecode(os.fsencode(folder) + b"/strange\xff")
    ended, _, error = run("cluster", "local:2", *SMALL, "--out", strange)
    expect(f"a name that is no UTF-8: {ended} {error}", ended == 2 and "strange\\xff is no UTF-8, allowed: " in error and not os.path.exists(strange))


def output(folder):
    for name, streams in (("full", {}), ("closed", {"stderr": subprocess.STDOUT})):
        out = folder / name
        if name == "full":
            with open("/dev/full", "w") as full:
                ended = run("cluster", "local:2", *SMALL, "--out", out, stdout=full)[0]
        else:
            reads, writes = os.pipe()
            os.close(reads)
            ended = run("cluster", "local:2", *SMALL, "--out", out, stdout=writes, **streams)[0]
            os.close(writes)
        expect(f"{name}: {ended}", ended == (4 if name == "full" else 0) and (out / "data.csv").exists())
    ended, text, error = run("cluster", "status", folder / "full", "--quiet")
    expect(f"quiet: {ended} {text} {error}", (ended, text, error) == (0, "", ""))
    ended, text, error = run("cluster", "status", folder / "full", "--format", "json")
    expect(f"json: {ended} {text} {error}", ended == 2 and text == "" and error == '--format: "json", allowed with cluster: table\n')
    for arguments in (["\x1b[31mslurm", *SMALL], ["local:\x1b]0;x\x07", *SMALL, "--out", folder / "x"], ["status", folder / "\x1b[2J\u202e\x9b"]):
        ended, _, error = run("cluster", *arguments)
        expect(f"escapes: {ended} {error!r}", ended == 2 and "\\x1b" in error and not any(one in error for one in "\x1b\x07\u202e\x9b"))
    ended, _, error = run("cluster", "local:\u0663", *SMALL, "--out", folder / "x")
    expect(f"digits: {ended} {error}", ended == 2 and "allowed: an integer in [1, 4096]" in error and not (folder / "x").exists())


def left_alone(folder):
    out = folder / "mine"
    begin = ["cluster", "local:2", *SMALL, "--out", out]
    run(*begin)
    before = everything(out)
    ended, text, error = run(*begin, "--force", "--dry-run")
    expect(f"force and dry run: {ended} {text} {error}", ended == 0 and "2 of 2 shards are missing: 1-2" in text)
    expect("force and dry run deleted something", everything(out) == before)
    (out / "manifest.yaml").unlink()
    (out / "data.csv").write_text("mine\n")
    shutil.rmtree(out / "shards/2", ignore_errors=True)
    for more in ([], ["--force"]):
        ended, _, error = run(*begin, *more)
        expect(f"somebody's: {ended} {error}", ended == 2 and f"{out}/data.csv: no manifest.yaml in its folder lists it, allowed: another --out, or none of this name there" in error)
        expect("somebody's data.csv", (out / "data.csv").read_text() == "mine\n" and not (out / "shards/2").exists())
    expect("merge.sh forces", "--force" not in (out / "merge.sh").read_text())
    for name in ("data.csv", "counts.csv"):
        (out / name).unlink()
    ended, _, error = run(*begin, "--force")
    expect(f"anew: {ended} {error}", ended == 0 and (out / "data.csv").read_bytes() == before[f"{out}/data.csv"])


def foreign_files(folder):
    """--force removes and replaces only what specsim's own manifest lists; nothing is written through a link, and no pipe is waited for."""
    victim = folder / "victim"
    victim.write_text("mine\n")
    away = folder / "away"
    away.mkdir()
    begin = ["cluster", "local:1", *SMALL]
    ended, _, error = run(*begin, "--out", folder / "finished")
    expect(f"begun: {ended} {error}", ended == 0)
    write, link, pipe = (lambda path: path.write_text("mine\n")), (lambda path: path.symlink_to(victim)), os.mkfifo
    unlisted = "no manifest.yaml in its folder lists it"
    cases = [*((f"a {name} of somebody's", name, write, why, False) for name, why in
               (("data.csv", unlisted), ("counts.csv", unlisted), ("waterfall.csv", unlisted), ("manifest.yaml", "is no manifest of a run or merge"),
                ("journal.txt", "is no file of specsim cluster"), ("task.sh", "is here without a cluster.json"), ("merge.sh", "is here without a cluster.json"),
                ("cluster.json", "is no JSON"), ("logs/1.out", "is here without a cluster.json"))),
             *((f"a {kind} as {name}", name, make, "is no regular file", begun) for kind, make in (("link", link), ("pipe", pipe)) for begun in (False, True)
               for name in ("data.csv", "manifest.yaml", "task.sh", "cluster.json", *(["logs/1.out"] if begun else []))),
             *((f"a link as {name}", name, lambda path: path.symlink_to(away), why, begun) for begun in (False, True)
               for name, why in (("logs", "is no directory of its own"), ("shards", "is no directory of its own"), ("shards/1", "is a symbolic link"))),
             ("a pipe as a shard's manifest", "shards/1/manifest.yaml", pipe, unlisted, False), ("a pipe as a shard's journal", "shards/1/journal.txt", pipe, unlisted, False)]
    for number, (what, name, make, why, begun) in enumerate(cases):
        out = folder / f"foreign{number}"
        out.mkdir()
        if begun:
            shutil.copytree(folder / "finished", out, dirs_exist_ok=True)
        place = out / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        make(place)
        before = sorted(everything(out).items())
        for more in (["--force"], ["--force", "--dry-run"]) + ((["--dry-run"], []) if begun else ()):
            ended, text, error = run(*begin, "--out", out, *more, timeout=60)
            expect(f"{what} {more}: {ended} {text} {error}", ended == 2 and f"{place}: {why}" in error.replace(":1:1: ", ": ") and ", allowed: " in error)
            expect(f"{what} {more}: something was changed", sorted(everything(out).items()) == before and victim.read_text() == "mine\n" and not list(away.iterdir()))
    # An empty journal makes nothing else specsim's; alone it is what a sudden end leaves.
    for begin_of_journal in ("", "specsim", "specsim journ"):
        out = folder / f"journal {len(begin_of_journal)}"
        (out / "shards/1").mkdir(parents=True)
        (out / "shards/1/journal.txt").write_text(begin_of_journal)
        (out / "shards/1/counts.csv").write_text("mine\n")
        before = everything(out)
        ended, _, error = run(*begin, "--out", out, "--force")
        expect(f"journal: {ended} {error}", ended == 2 and f"{out}/shards/1/counts.csv: no manifest.yaml in its folder lists it" in error and everything(out) == before)
        (out / "shards/1/counts.csv").unlink()
        ended, _, error = run(*begin, "--out", out, "--force")
        expect(f"journal alone: {ended} {error}", ended == 0)
    # Results of another command are not results of a shard.
    served = folder / "served"
    ended, _, error = run("serve", "configs/serve/chat.yaml", "--requests", "20", "--out", served / "shards/1")
    expect(f"served: {ended} {error}", ended == 0)
    before = everything(served)
    ended, _, error = run(*begin, "--out", served, "--force")
    expect(f"served: {ended} {error}", ended == 2 and unlisted in error and everything(served) == before)
    # Files that nothing replaces stay, also under the names of unfinished files.
    out = folder / "kept"
    out.mkdir()
    for name in ("letter", "cluster.json.part", "task.sh.part"):
        (out / name).write_text("mine\n")
    ended, _, error = run(*begin, "--out", out, "--force")
    expect(f"kept: {ended} {error}", ended == 0 and all((out / name).read_text() == "mine\n" for name in ("letter", "cluster.json.part", "task.sh.part")))
    # A config is read by every task.
    os.mkfifo(folder / "config.yaml")
    ended, _, error = run("cluster", "local:1", folder / "config.yaml", "--tasks", "1", "--out", folder / "x", timeout=60)
    expect(f"a pipe as config: {ended} {error}", ended == 2 and "config.yaml: is no regular file, allowed: a config that every task can read" in error)


with tempfile.TemporaryDirectory() as folder:
    for part in (left_alone, foreign_files, signals, script_of_plot, plans, output):
        part(Path(folder))

finish()
