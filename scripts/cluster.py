#!/usr/bin/python3
"""An experiment over many tasks: an array job of Slurm, or processes of this machine. `specsim cluster` runs this.

    specsim cluster slurm CONFIG... --tasks N --out DIR [options]    submit an array job of shards and a merge that waits for it
    specsim cluster local:N CONFIG... --tasks M --out DIR [options]  the same here, N processes at a time
    specsim cluster status DIR                                       what is done, what is missing

DIR/shards/I holds shard I; DIR gets what `specsim merge` makes of them, the same to the byte as one run. The same command again
restarts only what is missing. A task that is cut off (preemption, time limit, reboot) goes on from its journal when it is
queued again.
"""
import argparse
import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM_PROGRAM", "build/specsim")
PLAN = "cluster.json"
MOST_TASKS = 100000
BAD_INPUT, REFUSED, INTERRUPTED = 2, 4, 6

TASK = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --output={out}/logs/%A_%a.out
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@60
{sbatch}# One shard: nothing to do where it is finished; else its journal is gone on from.
set -u
shard=${{SLURM_ARRAY_TASK_ID:-${{1-}}}}
folder={out}/shards/$shard
if [[ -e $folder/manifest.yaml && ! -e $folder/journal.txt ]]; then exit 0; fi
mkdir -p {out}/shards
cd {here} || exit 4
# In the background, so that the shell hears the signal of a limit that comes near, and passes it on.
{command} --shard "$shard/{tasks}" --out "$folder" --resume --quiet --threads "${{SLURM_CPUS_PER_TASK:-{threads}}}" &
child=$!
trap 'kill -TERM $child' TERM INT
wait $child; status=$?
while kill -0 $child 2>/dev/null; do wait $child; status=$?; done
if ((status == 6)) && [[ -n ${{SLURM_JOB_ID-}} ]]; then
  scontrol requeue "$SLURM_JOB_ID"  # cut off near its limit: the journal has what is finished
  sleep 30
fi
exit $status
"""

MERGE = """#!/bin/bash
#SBATCH --job-name={name}-merge
#SBATCH --output={out}/logs/merge_%j.out
{sbatch}set -u
cd {here} || exit 4
exec {specsim} merge {out}/shards --out {out} --force
"""


class BadInput(Exception):
    pass


class Refused(Exception):
    pass


def quoted(words):
    return " ".join(shlex.quote(str(word)) for word in words)


def run_arguments(options):
    words = [*options.config]
    for change in options.set:
        words += ["--set", change]
    if options.seed is not None:
        words += ["--seed", options.seed]
    return words


def finished(shards, number):
    folder = shards / str(number)
    return (folder / "manifest.yaml").exists() and not (folder / "journal.txt").exists()


def missing_shards(out, tasks):
    shards = out / "shards"
    # One look at the folder: 10,000 shards are quick.
    there = {entry.name for entry in os.scandir(shards)} if shards.is_dir() else set()
    return [number for number in range(1, tasks + 1) if str(number) not in there or not finished(shards, number)]


def ranges(numbers):
    """1-3,7 as sbatch --array takes it."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


def checked(options):
    """Whether the program takes the config: its own messages, before anything is submitted."""
    done = subprocess.run([SPECSIM, "run", *run_arguments(options), "--dry-run"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    return done.stdout.strip()


def claimed(options):
    """Makes DIR this experiment's; refuses one that is another's."""
    out = Path(options.out).resolve()
    wanted = {"config": [str(Path(one).resolve()) if Path(one).exists() else one for one in options.config], "set": options.set,
              "seed": options.seed, "tasks": options.tasks,
              "text": [Path(one).read_text() if Path(one).exists() else "" for one in options.config]}
    plan = out / PLAN
    if plan.exists() and not options.force:
        found = json.loads(plan.read_text())
        unlike = [key for key in wanted if found.get(key) != wanted[key]]
        if unlike:
            what = "another text of the config" if unlike == ["text"] else "other " + ", ".join(key for key in unlike if key != "text")
            raise BadInput(f"{out}: holds tasks of {what}, allowed: the same again, another --out, or --force to begin anew")
    elif out.is_dir() and any(out.iterdir()) and not options.force:
        raise BadInput(f"{out}: holds something else, allowed: an empty or new directory, or --force")
    if options.force:
        shutil.rmtree(out / "shards", ignore_errors=True)
    if options.dry_run:
        return out
    (out / "logs").mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(wanted, indent=1) + "\n")
    return out


def scripts(options, out):
    """Writes task.sh and merge.sh, to be read or submitted by hand."""
    sbatch = "".join(f"#SBATCH {word}\n" for word in options.sbatch)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", options.name or Path(options.config[0]).stem)
    fields = {"name": name, "out": shlex.quote(str(out)), "here": shlex.quote(os.getcwd()), "sbatch": sbatch, "tasks": options.tasks,
              "threads": options.threads, "command": quoted([SPECSIM, "run", *run_arguments(options)]), "specsim": shlex.quote(SPECSIM)}
    for file, text in (("task.sh", TASK), ("merge.sh", MERGE)):
        (out / file).write_text(text.format(**fields))
        (out / file).chmod(0o755)


def merge(out):
    done = subprocess.run([SPECSIM, "merge", str(out / "shards"), "--out", str(out), "--force"], stdin=subprocess.DEVNULL)
    return done.returncode


def submitted(arguments):
    if not shutil.which("sbatch"):
        raise Refused("sbatch is not here: run this where jobs are submitted, or take local:N")
    done = subprocess.run(["sbatch", "--parsable", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Refused(f"sbatch refused: {done.stderr.strip()}")
    return done.stdout.strip().split(";")[0]


def slurm(options, out):
    missing = missing_shards(out, options.tasks)
    scripts(options, out)
    if not missing:
        print(f"all {options.tasks} shards are finished")
        return merge(out)
    at_once = f"%{options.at_once}" if options.at_once else ""
    jobs = []
    # Arrays of at most MaxArraySize - 1, which sites set low: larger experiments are several.
    for first in range(0, len(missing), options.array):
        jobs.append(submitted(["--array", ranges(missing[first:first + options.array]) + at_once, str(out / "task.sh")]))
    last = submitted(["--dependency", "afterok:" + ":".join(jobs), "--kill-on-invalid-dep=yes", str(out / "merge.sh")])
    print(f"submitted {len(missing)} of {options.tasks} shards as job {', '.join(jobs)}, and the merge as job {last}")
    print(f"specsim cluster status {out} tells how far they are; the same command again restarts what is missing")
    return 0


def local(options, out, processes):
    missing = missing_shards(out, options.tasks)
    scripts(options, out)
    running = {}
    failed = {}
    print(f"{options.tasks - len(missing)} of {options.tasks} shards are finished, {len(missing)} to go")
    waiting = list(missing)
    try:
        while waiting or running:
            while waiting and len(running) < processes and not failed:
                number = waiting.pop(0)
                log = open(out / "logs" / f"{number}.out", "a")
                environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
                running[number] = subprocess.Popen(["bash", str(out / "task.sh"), str(number)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=environment)
                log.close()
            for number, process in list(running.items()):
                if process.poll() is not None:
                    del running[number]
                    if process.returncode:
                        failed[number] = process.returncode
            if failed and not running:
                break
            time.sleep(0.02)
    except KeyboardInterrupt:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        print("stopped before the end; the same command goes on", file=sys.stderr)
        return INTERRUPTED
    if failed:
        number, status = next(iter(failed.items()))
        print(f"shard {number} ended with status {status}: {out / 'logs' / f'{number}.out'}; the same command restarts what is missing", file=sys.stderr)
        return status
    return merge(out)


def status(folder):
    out = Path(folder)
    if not (out / PLAN).exists():
        raise BadInput(f"{folder}: holds no {PLAN}, allowed: the --out of specsim cluster")
    tasks = json.loads((out / PLAN).read_text())["tasks"]
    missing = missing_shards(out, tasks)
    begun = [number for number in missing if (out / "shards" / str(number) / "journal.txt").exists()]
    print(f"{tasks - len(missing)} of {tasks} shards are finished, {len(begun)} begun")
    if missing:
        print(f"missing: {ranges(missing)}")
    print("merged" if (out / "data.csv").exists() and not missing else "not merged")
    return 0 if not missing else 3


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"specsim cluster: {message}")


def whole(text, option, least, most):
    if not re.fullmatch(r"\d+", text) or not least <= int(text) <= most:
        raise BadInput(f'{option}: "{text}", allowed: an integer in [{least}, {most}]')
    return int(text)


def read(arguments):
    parser = Parser(prog="specsim cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("launcher", help="slurm, local:N, or status")
    parser.add_argument("config", nargs="*", help="experiments, or the directory of status")
    parser.add_argument("--tasks", help="shards, each a share of every cell")
    parser.add_argument("--out", help="directory on a file system that all tasks see")
    parser.add_argument("--set", action="append", default=[], help="PATH=VALUE replaces a value of the configs")
    parser.add_argument("--seed", help="instead of the configs'")
    parser.add_argument("--threads", default="1", help="threads of a task where Slurm does not say (SLURM_CPUS_PER_TASK)")
    parser.add_argument("--sbatch", action="append", default=[], help="an option for every job, such as --sbatch=--partition=short")
    parser.add_argument("--array", default="1000", help="most tasks in one array job (the site's MaxArraySize less 1)")
    parser.add_argument("--at-once", help="most tasks of an array that run together")
    parser.add_argument("--name", help="name of the jobs")
    parser.add_argument("--force", action="store_true", help="begin anew where --out holds other tasks")
    parser.add_argument("--dry-run", action="store_true", help="say what it would take and what is missing, and submit nothing")
    options = parser.parse_args(arguments)
    if options.launcher == "status":
        if len(options.config) != 1:
            raise BadInput(f"specsim cluster status: {len(options.config)} directories, allowed: one")
        return options, 0
    processes = 0
    if options.launcher.startswith("local:"):
        processes = whole(options.launcher[6:], "local", 1, 4096)
    elif options.launcher != "slurm":
        near = difflib.get_close_matches(options.launcher, ["slurm", "local:1", "status"], 1)
        raise BadInput(f'unknown launcher "{options.launcher}",' + (f' did you mean "{near[0]}"?' if near else "") + " allowed: slurm, local:N, status")
    if not options.config:
        raise BadInput("specsim cluster needs a config; specsim cluster --help shows how")
    for name in ("tasks", "out"):
        if getattr(options, name) in (None, ""):
            raise BadInput(f"--{name}: missing, allowed: " + ("a number of shards" if name == "tasks" else "a directory"))
    options.tasks = whole(options.tasks, "--tasks", 1, MOST_TASKS)
    options.array = whole(options.array, "--array", 1, MOST_TASKS)
    options.threads = whole(options.threads, "--threads", 0, 4096)
    if options.at_once is not None:
        options.at_once = whole(options.at_once, "--at-once", 1, MOST_TASKS)
    return options, processes


def main():
    try:
        options, processes = read(sys.argv[1:])
        if options.launcher == "status":
            return status(options.config[0])
        estimate = checked(options)
        out = claimed(options)
        if options.dry_run:
            print(estimate)
            missing = missing_shards(out, options.tasks)
            print(f"{len(missing)} of {options.tasks} shards are missing" + (f": {ranges(missing)}" if missing else ""))
            return 0
        return local(options, out, processes) if processes else slurm(options, out)
    except BadInput as wrong:
        print(wrong, file=sys.stderr)
        return BAD_INPUT
    except (Refused, OSError) as failure:
        print(f"specsim: {failure}", file=sys.stderr)
        return REFUSED


sys.exit(main())
