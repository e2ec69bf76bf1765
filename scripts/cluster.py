#!/usr/bin/python3
"""Runs an experiment as many tasks: an array job of Slurm, or processes of this machine. `specsim cluster` calls this script.

    specsim cluster slurm CONFIG... --tasks N --out DIR [options]    submit an array job of shards and a merge that waits for it
    specsim cluster local:N CONFIG... --tasks M --out DIR [options]  the same on this machine, N processes at a time
    specsim cluster status DIR                                       list finished and missing shards

DIR/shards/I holds shard I. `specsim merge` combines the shards in DIR; the files are the same to the byte as those of one run. The same
command again restarts only missing shards. An interrupted task (preemption, time limit, reboot) continues from its journal when it is
queued again.
"""
import argparse
import difflib
import errno
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM_PROGRAM", "build/specsim")
PLAN = "cluster.json"
MOST_TASKS = 100000
MOST_BYTES = 1 << 28  # a plan holds the texts of its configs
SECONDS_TO_STOP = 10  # time that a task gets to keep its finished work
RESULTS = ("data.csv", "counts.csv", "waterfall.csv")  # files that merge writes, besides manifest.yaml
JOURNAL = b"specsim journal "  # beginning of a journal
BAD_INPUT, REFUSED, INTERRUPTED = 2, 4, 6

# Differences between two experiments reach the scripts as arguments, never as text of theirs: no name can be read as a command.
TASK = """#!/bin/bash
# One shard. A finished shard is left alone; an unfinished one continues from its journal. usage: task.sh OUT HERE TASKS THREADS PROGRAM ARGUMENT...,
# with the shard's number in SLURM_ARRAY_TASK_ID or SPECSIM_SHARD
set -u
out=$1 here=$2 tasks=$3 threads=$4
shift 4
shard=${SLURM_ARRAY_TASK_ID:-${SPECSIM_SHARD-}}
folder=$out/shards/$shard
if [[ -e $folder/manifest.yaml && ! -e $folder/journal.txt ]]; then exit 0; fi
# From here on signals are forwarded, so that none of them leaves the program running alone.
child=; stopped=0
trap 'stopped=1; if [[ -n $child ]]; then kill -TERM $child; fi' TERM INT
mkdir -p -- "$out/shards"
cd -- "$here" || exit 4
# The program runs in the background, so that the shell can pass on the signal that comes before a time limit.
"$@" --shard "$shard/$tasks" --out "$folder" --resume --quiet --threads "${SLURM_CPUS_PER_TASK:-$threads}" &
child=$!
if ((stopped)); then kill -TERM $child; fi
wait $child; status=$?
while kill -0 $child 2>/dev/null; do wait $child; status=$?; done
if ((status == 6)) && [[ -n ${SLURM_JOB_ID-} ]]; then
  scontrol requeue "$SLURM_JOB_ID"  # interrupted near its limit: the journal has the finished work
  sleep 30
fi
exit $status
"""

MERGE = """#!/bin/bash
# usage: merge.sh OUT HERE PROGRAM
set -u
cd -- "$2" || exit 4
exec "$3" merge "$1/shards" --out "$1"
"""
SCRIPTS = {"task.sh": TASK, "merge.sh": MERGE}  # the submitted scripts, which users can read and change


class BadInput(Exception):
    pass


class Refused(Exception):
    pass


def foreign(path, found):
    return BadInput(f"{path}: {found}, allowed: another --out, or none of this name there")


class Stop:
    """Signals that would end this process raise an exception at once, or set a flag if child processes must be stopped first."""

    asked, waits, quiet, output_error = False, False, False, 0

    @classmethod
    def heard(cls, *_):
        first, cls.asked = not cls.asked, True
        if first and not cls.waits:
            raise KeyboardInterrupt

    @classmethod
    def listen(cls):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # started by nohup
                signal.signal(number, cls.heard)


def printable(text):
    """Escaped as the program does it: no bytes that control a terminal."""
    def shown(found):
        code = ord(found[0])
        if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
            code -= 0xDC00
            return f"\\x{code:02x}"
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{{{code:04x}}}"
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown, text)


def write(file, text):
    """A closed stream must not stop the work: main() reports it at the end."""
    data = (printable(text) + "\n").encode()
    try:
        while data:
            data = data[os.write(file, data):]
    except OSError as failure:
        if file == 1:
            Stop.output_error = Stop.output_error or failure.errno


def say(text):
    if not Stop.quiet:
        write(1, text)


def tell(text):
    write(2, text)


def ended(command, **streams):
    """A program's status and its piped output; KeyboardInterrupt after a signal, when the program has ended."""
    Stop.waits = True
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace", **streams)
    until = None
    while True:
        try:
            output, error = process.communicate(timeout=0.05)
            break
        except subprocess.TimeoutExpired:
            if Stop.asked and until is None:
                process.terminate()
                until = time.monotonic() + SECONDS_TO_STOP
            elif until is not None and time.monotonic() > until:
                process.kill()
    Stop.waits = False
    if Stop.asked:
        raise KeyboardInterrupt
    return process.returncode, output, error


def write_whole(path, text, mode=0o644):
    """Writes a file in one step, even over an existing one; bytes of names that are not UTF-8 are kept."""
    number, part = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)  # a name of its own, so that no other file is lost
    try:
        with open(number, "wb") as file:
            file.write(os.fsencode(text))
            os.fchmod(number, mode)
            file.flush()
            os.fsync(number)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def open_regular(path, flags):
    """A descriptor, or None if this is no regular file: no link is followed, and no pipe is waited for. OSError."""
    try:
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    except OSError as failure:
        if failure.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            return None
        raise
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def regular_bytes(path, most=MOST_BYTES):
    """The first bytes of a regular file; None for anything else."""
    file = open_regular(path, os.O_RDONLY)
    if file is None:
        return None
    with open(file, "rb") as stream:
        return stream.read(most)


def read_plan(path):
    """The plan in DIR, with every field that this script reads of it."""
    def wrong(found, allowed, where=""):
        return BadInput(f"{path}{where}: {found}, allowed: {allowed}")
    mine = f"the {PLAN} that specsim cluster wrote"
    data = regular_bytes(path, MOST_BYTES + 1)
    if data is None or len(data) > MOST_BYTES:
        raise wrong("is no regular file" if data is None else f"has more than {MOST_BYTES} bytes", mine)
    try:
        plan = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as failure:
        raise wrong(f"byte {failure.start + 1} is no UTF-8", mine)
    except json.JSONDecodeError as failure:
        raise wrong(f"is no JSON: {failure.msg}", mine, f":{failure.lineno}:{failure.colno}")
    except (RecursionError, ValueError):
        raise wrong("is no JSON of a plan", mine)

    def shown(value):
        text = json.dumps(value)
        return text if len(text) <= 60 else text[:57] + "..."

    def texts(value):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if not isinstance(plan, dict):
        raise wrong(f"is {shown(plan)}", mine)
    fields = {"config": (lambda value: texts(value) and value, "a list of configs"), "set": (texts, "a list of PATH=VALUE"),
              "seed": (lambda value: value is None or isinstance(value, str), "a text or null"),
              "tasks": (lambda value: type(value) is int and 1 <= value <= MOST_TASKS, f"an integer in [1, {MOST_TASKS}]"),
              "text": (texts, "a list of the configs' texts")}
    for key, (holds, allowed) in fields.items():
        if key not in plan:
            raise wrong(f"{key} is missing", allowed)
        if not holds(plan[key]):
            raise wrong(f"{key} is {shown(plan[key])}", allowed)
    return plan


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
    # A single listing of the folder: 10,000 shards are fast.
    there = {entry.name for entry in os.scandir(shards)} if shards.is_dir() else set()
    return [number for number in range(1, tasks + 1) if str(number) not in there or not finished(shards, number)]


def ranges(numbers):
    """Numbers in the form of sbatch --array: 1-3,7."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


def checked(options):
    """Runs the program's own check of the config, so that its messages come before anything is submitted."""
    for one in options.config:
        if Path(one).exists() and not Path(one).is_file() and not Path(one).is_dir():
            raise BadInput(f"{one}: is no regular file, allowed: a config that every task can read")
    status, output, error = ended([SPECSIM, "run", *run_arguments(options), "--dry-run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if status:
        tell(error.removesuffix("\n"))
        sys.exit(status)
    return output.strip()


def alone(out):
    """Locks DIR's logs until this process ends; DIR itself is locked by merge."""
    try:
        fcntl.flock(os.open(out / "logs", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(f"{out}: another specsim cluster is at work here, allowed: another --out, or this one when it has ended")
    except OSError:
        pass  # file systems without locks do not protect against a second process


def refuse_controls(name, text):
    """Refuses line breaks in a path: they would end a line of a log, and of a user's script."""
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        raise BadInput(f"{name}: {json.dumps(text)} has a control character, allowed: a text without line breaks and other control characters")


def listed(manifest):
    """The files that the manifest of a run or merge lists as results; an empty set for any other file."""
    try:
        text = (regular_bytes(manifest) or b"").decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return set()
    if not text.startswith("command: ") or "\nshard: " not in text:
        return set()
    names = set(re.findall(r'^  - file: "([^"/\\]+)"$', text.partition("\nresults:\n")[2], re.MULTILINE))
    return names if names <= set(RESULTS) else set()


def shard_files(folder):
    """The files of a shard that specsim wrote: those in its manifest, the manifest, and the journal of an unfinished run."""
    names = listed(folder / "manifest.yaml")
    own = {*names, "manifest.yaml"} if names else set()
    try:
        begin = regular_bytes(folder / "journal.txt", len(JOURNAL))
    except FileNotFoundError:
        begin = None
    if begin is not None and JOURNAL.startswith(begin):
        own.add("journal.txt")  # a sudden end may have cut its first line
        if begin == JOURNAL:  # results too, of a run that was interrupted while it wrote them
            own |= {"manifest.yaml", *RESULTS}
    return own | {name + ".part" for name in own}


def shards_of_specsim(shards):
    """The folders of shards in DIR/shards with their files; BadInput if one of them is not specsim's."""
    found = []
    for folder in sorted(shards.iterdir()) if shards.is_dir() else []:
        if not folder.is_dir() or not re.fullmatch("[1-9][0-9]{0,5}", folder.name):
            raise foreign(folder, "is no shard that specsim wrote")
        own = shard_files(folder)
        files = sorted(folder.iterdir(), key=lambda file: (file.name in ("journal.txt", "manifest.yaml"), file.name))
        for file in files:
            if file.name not in own or (file.is_dir() and not file.is_symlink()):
                raise foreign(file, "no manifest.yaml in its folder lists it")
        found.append((folder, files))
    return found


def check_places(out, begun):
    """BadInput if something in DIR is not specsim's and would be replaced, written through or removed. `begun`: a plan is here."""
    for name in (*SCRIPTS, *RESULTS, "manifest.yaml"):
        if os.path.lexists(out / name) and not stat.S_ISREG((out / name).lstat().st_mode):
            raise foreign(out / name, "is no regular file")
    for name in SCRIPTS:
        if not begun and os.path.lexists(out / name):
            raise foreign(out / name, f"is here without a {PLAN}")
    for name in ("logs", "shards"):
        if (out / name).is_symlink() or (os.path.lexists(out / name) and not (out / name).is_dir()):
            raise foreign(out / name, "is no directory of its own")
    for log in os.scandir(out / "logs") if (out / "logs").is_dir() else []:
        if not begun:
            raise foreign(log.path, f"is here without a {PLAN}")
        if log.name.endswith(".out") and not log.is_file(follow_symlinks=False):
            raise foreign(log.path, "is no regular file")
    for shard in os.scandir(out / "shards") if (out / "shards").is_dir() else []:
        if shard.is_symlink():
            raise foreign(shard.path, "is a symbolic link")
    names = listed(out / "manifest.yaml")
    if not names and os.path.lexists(out / "manifest.yaml"):
        raise foreign(out / "manifest.yaml", "is no manifest of a run or merge")
    for name in RESULTS:
        if name not in names and os.path.lexists(out / name):
            raise foreign(out / name, "no manifest.yaml in its folder lists it")
    if os.path.lexists(out / "journal.txt"):
        raise foreign(out / "journal.txt", "is no file of specsim cluster")  # merge would reject it in the end


def remove_results(out):
    """Removes all shards and merged results, after check_places()."""
    for folder, files in shards_of_specsim(out / "shards"):
        for file in files:
            file.unlink(missing_ok=True)
        folder.rmdir()
    for name in (*RESULTS, "manifest.yaml"):  # the manifest last: until then every file has an owner
        (out / name).unlink(missing_ok=True)


def claimed(options):
    """Assigns DIR to this experiment; refuses a folder of another one."""
    out = Path(options.out).resolve()
    refuse_controls("--out", str(out))
    refuse_controls("the working directory", os.getcwd())
    wanted = {"config": [str(Path(one).resolve()) if Path(one).exists() else one for one in options.config], "set": options.set,
              "seed": options.seed, "tasks": options.tasks,
              "text": [Path(one).read_text(encoding="utf-8", errors="surrogateescape") if Path(one).exists() else "" for one in options.config]}
    for name, paths in (("--out", [str(out)]), ("config", wanted["config"])):
        for path in paths:
            if any("\ud800" <= letter <= "\udfff" for letter in path):  # manifests name these paths and are text
                raise BadInput(f"{name}: {path} is no UTF-8, allowed: a path in UTF-8")
    plan = out / PLAN
    begun = os.path.lexists(plan)
    found = read_plan(plan) if begun else wanted
    if begun and not options.force:
        unlike = [key for key in wanted if found.get(key) != wanted[key]]
        if unlike:
            what = "another text of the config" if unlike == ["text"] else "other " + ", ".join(key for key in unlike if key != "text")
            raise BadInput(f"{out}: holds tasks of {what}, allowed: the same again, another --out, or --force to start again")
    elif out.is_dir() and any(out.iterdir()) and not options.force:
        raise BadInput(f"{out}: holds something else, allowed: an empty or new directory, or --force")
    check_places(out, begun)
    if options.force:
        shards_of_specsim(out / "shards")  # refuses foreign files before any is removed
    if options.dry_run:
        return out
    (out / "logs").mkdir(parents=True, exist_ok=True)
    alone(out)
    if options.force:
        check_places(out, begun)  # another command may have been at work until now
        remove_results(out)
    write_whole(plan, json.dumps(wanted, indent=1) + "\n")
    return out


def write_scripts(out):
    for file, text in SCRIPTS.items():
        write_whole(out / file, text, 0o755)


def open_log(path):
    file = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if file is None:
        raise foreign(path, "is no regular file")
    return open(file, "a")


def task_words(options, out):
    return [str(out / "task.sh"), str(out), os.getcwd(), str(options.tasks), str(options.threads), SPECSIM, "run", *run_arguments(options)]


def sbatch_words(options, out, kind, pattern):
    """Options of sbatch for one kind of job. A percent sign in the log's path must not act as a pattern."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", options.name or Path(options.config[0]).stem)
    log = str(out / "logs").replace("%", "%%") + "/" + pattern
    return [f"--job-name={name}{kind}", f"--output={log}", *(word for one in options.sbatch for word in shlex.split(one))]


def merge(out):
    return ended([SPECSIM, "merge", str(out / "shards"), "--out", str(out), *(["--quiet"] if Stop.quiet else [])])[0]


def submitted(arguments):
    if not shutil.which("sbatch"):
        raise Refused("sbatch is not here: run this where jobs are submitted, or take local:N")
    status, output, error = ended(["sbatch", "--parsable", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if status:
        raise Refused(f"sbatch refused: {error.strip()}")
    return output.strip().split(";")[0]


def slurm(options, out):
    missing = missing_shards(out, options.tasks)
    write_scripts(out)
    if not missing:
        say(f"all {options.tasks} shards are finished")
        return merge(out)
    at_once = f"%{options.at_once}" if options.at_once else ""
    jobs = []
    # An array has at most MaxArraySize - 1 tasks, and some sites set this low: larger experiments use several arrays.
    for first in range(0, len(missing), options.array):
        jobs.append(submitted(["--array", ranges(missing[first:first + options.array]) + at_once, "--requeue", "--open-mode=append",
                               "--signal=B:TERM@60", *sbatch_words(options, out, "", "%A_%a.out"), *task_words(options, out)]))
    last = submitted(["--dependency", "afterok:" + ":".join(jobs), "--kill-on-invalid-dep=yes",
                      *sbatch_words(options, out, "-merge", "merge_%j.out"), str(out / "merge.sh"), str(out), os.getcwd(), SPECSIM])
    say(f"submitted {len(missing)} of {options.tasks} shards as job {', '.join(jobs)}, and the merge as job {last}")
    say(f"specsim cluster status {out} shows their progress; the same command again restarts missing tasks")
    return 0


def stop_tasks(processes):
    """Stops the tasks: each passes SIGTERM on to its program, which keeps finished work. Each task is its own session, so that no process is left."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + SECONDS_TO_STOP
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def local(options, out, processes):
    missing = missing_shards(out, options.tasks)
    write_scripts(out)
    running = {}
    failed = {}
    say(f"{options.tasks - len(missing)} of {options.tasks} shards are finished, {len(missing)} to go")
    waiting = list(missing)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    Stop.waits = True
    try:
        while (waiting or running) and not Stop.asked:
            while waiting and len(running) < processes and not failed:
                number = waiting.pop(0)
                with open_log(out / "logs" / f"{number}.out") as log:
                    running[number] = subprocess.Popen(["bash", *task_words(options, out)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                       env={**environment, "SPECSIM_SHARD": str(number)}, start_new_session=True)
            for number, process in list(running.items()):
                if process.poll() is not None:
                    del running[number]
                    if process.returncode:
                        failed[number] = process.returncode
            if failed and not running:
                break
            time.sleep(0.02)
    finally:
        stop_tasks(running.values())
    Stop.waits = False
    if Stop.asked:
        raise KeyboardInterrupt
    if failed:
        number, status = next(iter(failed.items()))
        tell(f"shard {number} ended with status {status}: {out / 'logs' / f'{number}.out'}; the same command restarts what is missing")
        return status
    return merge(out)


def status(folder):
    out = Path(folder)
    if not os.path.lexists(out / PLAN):
        raise BadInput(f"{folder}: holds no {PLAN}, allowed: the --out of specsim cluster")
    tasks = read_plan(out / PLAN)["tasks"]
    missing = missing_shards(out, tasks)
    begun = [number for number in missing if (out / "shards" / str(number) / "journal.txt").exists()]
    say(f"{tasks - len(missing)} of {tasks} shards are finished, {len(begun)} begun")
    if missing:
        say(f"missing: {ranges(missing)}")
    say("merged" if (out / "data.csv").exists() and not missing else "not merged")
    return 0 if not missing else 3


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"specsim cluster: {message}")


def whole(text, option, least, most):
    if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
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
    parser.add_argument("--force", action="store_true", help="start again if --out holds other tasks")
    parser.add_argument("--dry-run", action="store_true", help="say what it would take and what is missing, and submit nothing")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--format", default="table", choices=["table"], help="what is printed is text")
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
    for name, default in (("sbatch", []), ("array", "1000"), ("at_once", None), ("name", None)):
        if processes and getattr(options, name) != default:
            raise BadInput(f"--{name.replace('_', '-')}: given with {options.launcher}, which makes no jobs of Slurm; allowed: with slurm")
    for one in options.sbatch:
        refuse_controls("--sbatch", one)
        try:
            shlex.split(one)
        except ValueError as wrong:
            raise BadInput(f"--sbatch: {json.dumps(one)}: {str(wrong).lower()}, allowed: words as a shell takes them")
    options.tasks = whole(options.tasks, "--tasks", 1, MOST_TASKS)
    options.array = whole(options.array, "--array", 1, MOST_TASKS)
    options.threads = whole(options.threads, "--threads", 0, 4096)
    if options.at_once is not None:
        options.at_once = whole(options.at_once, "--at-once", 1, MOST_TASKS)
    return options, processes


def answer():
    try:
        options, processes = read(sys.argv[1:])
        Stop.quiet = options.quiet
        if options.launcher == "status":
            return status(options.config[0])
        estimate = checked(options)
        out = claimed(options)
        if options.dry_run:
            say(estimate)
            missing = list(range(1, options.tasks + 1)) if options.force else missing_shards(out, options.tasks)
            say(f"{len(missing)} of {options.tasks} shards are missing" + (f": {ranges(missing)}" if missing else ""))
            return 0
        return local(options, out, processes) if processes else slurm(options, out)
    except BadInput as wrong:
        tell(str(wrong))
        return BAD_INPUT
    except (Refused, OSError) as failure:
        tell(f"specsim: {failure}")
        return REFUSED
    except KeyboardInterrupt:
        tell("stopped before the end; the same command goes on")
        return INTERRUPTED


def main():
    Stop.listen()
    ended_with = answer()
    if ended_with == 0 and Stop.output_error not in (0, errno.EPIPE):
        tell(f"specsim: standard output cannot be written: {os.strerror(Stop.output_error)}")
        return REFUSED
    return ended_with


sys.exit(main())
