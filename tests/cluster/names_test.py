#!/usr/bin/python3
"""specsim cluster and hostile names: no path or option is read as a command, and --force removes only files that specsim wrote.

A program called sbatch replaces Slurm's: it records its arguments and runs the job as Slurm would, without a shell that reads them.
Runs at the root of the repository; SPECSIM names the program.
"""
import json
import os
import random
import shutil
import sys
import tempfile
import unicodedata
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

CONFIG = os.path.abspath("configs/quickstart.yaml")
SMALL = ["--set", "rounds=30000", "--tasks", "2"]
SBATCH = """#!/usr/bin/python3
import json, os, subprocess, sys
words = sys.argv[1:]
with open(os.environ["SBATCH_LOG"], "a") as log:
    log.write(json.dumps(words) + "\\n")
script = next(i for i, word in enumerate(words) if not word.startswith("-") and words[i - 1] not in ("--array", "--dependency"))
array = words[words.index("--array") + 1].partition("%")[0] if "--array" in words else ""
tasks = []
for part in filter(None, array.split(",")):
    first, _, last = part.partition("-")
    tasks += range(int(first), int(last or first) + 1)
for task in tasks or [None]:
    more = {} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)}
    ended = subprocess.run(["bash", *words[script:]], env={**os.environ, **more}).returncode
    if ended:
        sys.exit(ended)
print("7;here")
"""
# Each name would make the file "pwned" if a shell, or the header of a job, read it as text.
NAMES = ["a b", "$(touch pwned)", "`touch pwned`", "a;touch pwned;#", "a'touch pwned'", 'a"; touch pwned; "', "-n", "100%A%j", "a\\b", "{out}", "#SBATCH", "ä"]
SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")  # longest job name, which becomes part of file names
BROKEN = ["nl\ntouch pwned\n#", "cr\rx", "esc\x1b[2J", "del\x7f", "next\u0085line"]


def everything(folder):
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def names(folder):
    status, _, error = run("run", CONFIG, "--set", "rounds=30000", "--out", folder / "whole")
    expect(f"one run: {error}", status == 0)
    whole = (folder / "whole/data.csv").read_bytes()
    log = folder / "sbatch.log"
    tools = folder / "tools"
    tools.mkdir()
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    environment = {**os.environ, "SBATCH_LOG": str(log), "PATH": f"{tools}:{os.environ['PATH']}"}
    for number, name in enumerate(NAMES):
        here = folder / f"here{number}" / name
        here.mkdir(parents=True)
        config = here / f"{name}.yaml"
        shutil.copyfile(CONFIG, config)
        for launcher in ("local:1", "slurm"):
            out = here / launcher / name
            more = [f"--name={name}", f"--sbatch=--comment='{number} x'"] if launcher == "slurm" else []
            log.write_text("")
            status, _, error = run("cluster", launcher, f"./{config.name}", *SMALL, "--out", f"{launcher}/{name}", *more, cwd=here, env=environment)
            expect(f"{launcher} {name!r}: {status} {error}", status == 0 and (out / "data.csv").is_file() and (out / "data.csv").read_bytes() == whole)
            if launcher == "slurm":
                jobs = [json.loads(line) for line in log.read_text().splitlines()]
                expect(f"{name!r}: {jobs}", len(jobs) == 2 and all(f"--comment={number} x" in job and str(out) in job for job in jobs))
                logs = [word for job in jobs for word in job if word.startswith("--output=")]
                expect(f"{name!r}: {logs}", all(word.replace("%%", "").count("%") == (2 if "%A" in word.replace("%%", "") else 1) for word in logs))
            for script in ("task.sh", "merge.sh"):
                text = (out / script).read_text()
                expect(f"{script} has a path: {text}", str(here) not in text and "quickstart" not in text)
        expect(f"{name!r} was read as a command", not list(folder.rglob("pwned")))
    for name in BROKEN:
        here = folder / "broken" / name
        here.mkdir(parents=True)
        for arguments, what, where in ((["--out", here / "x"], "--out", folder), (["--out", folder / f"x{name}"], "--out", folder),
                                       (["--out", folder / "x"], "the working directory", here), (["--out", folder / "x", f"--sbatch=--comment={name}"], "--sbatch", folder)):
            launcher = "slurm" if what == "--sbatch" else "local:1"
            status, _, error = run("cluster", launcher, CONFIG, *SMALL, *arguments, cwd=where, env=environment)
            expect(f"{what} {name!r}: {status} {error}", status == 2 and error.startswith(f"{what}: ") and "has a control character, allowed: " in error)
        expect(f"{name!r}: something was begun", not (folder / "x").exists() and not list(here.iterdir()))
    status, _, error = run("cluster", "slurm", CONFIG, *SMALL, "--out", folder / "x", "--sbatch=--comment='x", env=environment)
    expect(f"a quote without its end: {status} {error}", status == 2 and "allowed: words as a shell takes them" in error)
    expect("pwned", not list(folder.rglob("pwned")) and not Path("pwned").exists())


def drawn(folder):
    """Names of any characters: a refused name contains a control character and starts no job; all others reach Slurm unchanged."""
    draw = random.Random(20261129)
    pieces = [*"ab1 _-.,:;|&<>(){}[]$`'\"\\~*?!#%@=+^", "$(touch pwned)", "`touch pwned`", ";touch pwned;", "&&touch pwned", "--force", "#SBATCH --wrap=", "%A", "${IFS}",
              "ä", "\u202e", "\U0001f680", "\n", "\r", "\t", "\x1b", "\x7f", "\u0085", "\u2028"]
    tools = folder / "tools"
    tools.mkdir()
    log = folder / "sbatch.log"
    (tools / "sbatch").write_text("#!/usr/bin/python3\nimport json, os, sys\nprint(json.dumps(sys.argv[1:]), file=open(os.environ['SBATCH_LOG'], 'a'))\nprint('7;here')\n")
    (tools / "sbatch").chmod(0o755)
    environment = {**os.environ, "SBATCH_LOG": str(log), "PATH": f"{tools}:{os.environ['PATH']}"}
    taken = refused = 0
    for turn in range(60):
        out, name, comment = ("".join(draw.choice(pieces) for _ in range(draw.randrange(1, 9))) for _ in range(3))
        out = out.replace("/", "").strip(".") or "x"
        here = folder / f"turn{turn}"
        here.mkdir()
        log.write_text("")
        status, _, error = run("cluster", "slurm", CONFIG, *SMALL, f"--out=./{out}", f"--name={name}", f"--sbatch=--comment='{comment.replace(chr(39), '')}'", cwd=here, env=environment)
        controls = [any(unicodedata.category(one) == "Cc" for one in text) for text in (out, comment)]
        label = f"out {out!r}, name {name!r}, comment {comment!r}: {status} {error}"
        if status == 0:
            taken += 1
            expect(label, not any(controls))
            jobs = [json.loads(line) for line in log.read_text().splitlines()]
            expect(f"{label}: {jobs}", len(jobs) == 2 and all(f"--comment={comment.replace(chr(39), '')}" in job and str(here / out) in job for job in jobs))
            expect(f"{label}: {jobs}", all(set(word.partition("=")[2]) <= SAFE for job in jobs for word in job if word.startswith("--job-name=")))
            expect(label, (here / out / "task.sh").is_file() and [path.name for path in here.iterdir()] == [out])
        else:
            refused += 1
            expect(label, status == 2 and "allowed: " in error and log.read_text() == "" and not list(here.iterdir()))
        expect(f"{label}: read as a command", not list(folder.rglob("pwned")) and not Path("pwned").exists())
    expect(f"{taken} taken, {refused} refused", taken >= 10 and refused >= 10)


def force(folder):
    out = folder / "out"
    begin = ["cluster", "local:1", CONFIG, *SMALL, "--out", out]
    mine = folder / "mine"
    for what in ("a folder of somebody's", "a file among the shards", "a file in a shard", "a folder in a shard", "a link to a folder", "shards that are a link",
                 "a shard without a manifest", "a journal of somebody's"):
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(mine, ignore_errors=True)
        mine.mkdir()
        (mine / "letter").write_text("mine")
        status, _, error = run(*begin)
        expect(f"{what}: {status} {error}", status == 0)
        shards = out / "shards"
        if what == "a folder of somebody's":
            (shards / "photos").mkdir()
        elif what == "a file among the shards":
            (shards / "letter").write_text("mine")
        elif what == "a file in a shard":
            (shards / "1/letter").write_text("mine")
        elif what == "a folder in a shard":
            (shards / "2/counts.csv").unlink()
            (shards / "2/counts.csv").mkdir()
        elif what == "a link to a folder":
            (shards / "3").symlink_to(mine)
        elif what == "shards that are a link":
            shards.rename(folder / "mine/shards")
            shards.symlink_to(folder / "mine/shards")
        elif what == "a shard without a manifest":
            (shards / "1/manifest.yaml").unlink()
        else:
            (shards / "1/manifest.yaml").unlink()
            (shards / "1/journal.txt").write_text("Dear diary\n")
        before = everything(out), everything(mine)
        for more in ([], ["--dry-run"]):
            status, _, error = run(*begin, "--force", *more)
            expect(f"{what} {more}: {status} {error}", status == 2 and str(shards) in error and "allowed: another --out, or none of this name there" in error)
            expect(f"{what}: something was removed", (everything(out), everything(mine)) == before)
    # Files that specsim wrote are removed: finished shards, a truncated one, and its parts.
    shutil.rmtree(out)
    run(*begin)
    whole = (out / "data.csv").read_bytes()
    (out / "shards/1/manifest.yaml").unlink()
    (out / "shards/1/journal.txt").write_text("specsim journal of another run\n")
    (out / "shards/2/counts.csv.part").write_text("pieces")
    status, _, error = run(*begin, "--force")
    expect(f"anew: {status} {error}", status == 0 and (out / "data.csv").read_bytes() == whole and not (out / "shards/2/counts.csv.part").exists())


with tempfile.TemporaryDirectory() as scratch:
    for part in (names, drawn, force):
        (Path(scratch) / part.__name__).mkdir()
        part(Path(scratch).resolve() / part.__name__)

finish()
