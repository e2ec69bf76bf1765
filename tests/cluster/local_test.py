#!/usr/bin/python3
"""specsim cluster local:N and status: the same bytes as one run, restart of missing shards only, refusals. tests/slow/slurm_test.py uses a real Slurm.

Runs at the root of the repository; SPECSIM names the program.
"""
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

CONFIG = "configs/quickstart.yaml"
SMALL = ["--set", "rounds=30000"]


def same(one, other):
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in ("data.csv", "counts.csv"))


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    whole, out = folder / "whole", folder / "out put"
    status, _, error = run("run", CONFIG, *SMALL, "--out", whole)
    expect(f"one run: {error}", status == 0)
    first = ["cluster", "local:2", CONFIG, *SMALL, "--tasks", "3", "--out", out]
    status, stdout, error = run(*first, "--dry-run")
    expect(f"dry run: {status} {stdout} {error}", status == 0 and "3 of 3 shards are missing: 1-3" in stdout and not (out / "cluster.json").exists())
    status, stdout, error = run(*first)
    expect(f"cluster: {status} {stdout} {error}", status == 0)
    expect("bytes of one run", status == 0 and same(whole, out))
    status, stdout, _ = run("cluster", "status", out)
    expect(f"status: {stdout}", status == 0 and "3 of 3 shards are finished" in stdout and "\nmerged" in stdout)
    # Only a lost shard is made again.
    kept = (out / "shards/1/counts.csv").stat().st_mtime_ns
    shutil.rmtree(out / "shards/2")
    status, stdout, _ = run("cluster", "status", out)
    expect(f"status of a lost shard: {status} {stdout}", status == 3 and "2 of 3 shards are finished" in stdout and "missing: 2" in stdout)
    (out / "data.csv").unlink()
    status, stdout, error = run(*first)
    expect(f"again: {status} {error}", status == 0 and "2 of 3 shards are finished, 1 to go" in stdout and same(whole, out))
    expect("a finished shard was made again", (out / "shards/1/counts.csv").stat().st_mtime_ns == kept)

    def refused(text, *arguments, status=2):
        ended, _, error = run("cluster", *arguments)
        expect(f"cluster {arguments}: status {ended}, {error}", ended == status and text in error)
    refused("holds tasks of other tasks, allowed: the same again", "local:2", CONFIG, *SMALL, "--tasks", "4", "--out", out)
    refused("holds tasks of other set", "local:2", CONFIG, "--set", "rounds=40000", "--tasks", "3", "--out", out)
    refused("holds something else, allowed: an empty or new directory", "local:2", CONFIG, "--tasks", "3", "--out", whole)
    refused('unknown launcher "slrum", did you mean "slurm"? allowed: slurm, local:N, status', "slrum", CONFIG, "--tasks", "3", "--out", folder / "x")
    refused('local: "0", allowed: an integer in [1, 4096]', "local:0", CONFIG, "--tasks", "3", "--out", folder / "x")
    refused('--tasks: "many", allowed: an integer in [1, 100000]', "local:1", CONFIG, "--tasks", "many", "--out", folder / "x")
    refused("--out: missing, allowed: a directory", "local:1", CONFIG, "--tasks", "3")
    refused("specsim cluster needs a config", "local:1", "--tasks", "3", "--out", folder / "x")
    refused("holds no cluster.json", "status", folder)
    refused("unknown option", "local:1", CONFIG, "--taks", "3")
    wrong = folder / "wrong.yaml"
    wrong.write_text("experiment: x\nrounds: -5\n")
    refused(f"{wrong}:2:9: rounds is -5", "local:1", wrong, "--tasks", "3", "--out", folder / "x")
    expect("nothing was begun", not (folder / "x").exists())
    # If a cell has fewer chunks than there are shards, its chunks are spread: no shard has more than its share and one chunk of the slowest cell.
    many = ["--set", "rounds=30000", "--set", "sweep.seed=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "--set", "sweep.pair.draft.value=[1.5]"]
    status, _, error = run("run", CONFIG, *many, "--out", folder / "many whole")
    expect(f"many cells: {error}", status == 0)
    status, _, error = run("cluster", "local:2", CONFIG, *many, "--tasks", "7", "--out", folder / "many")
    expect(f"many cells in shards: {status} {error}", status == 0 and same(folder / "many whole", folder / "many"))
    rounds = []
    for number in range(1, 8):
        with open(folder / f"many/shards/{number}/counts.csv") as file:
            rounds.append(sum(int(line.rsplit(",", 1)[1]) for line in file if ",rounds,0," in line))
    expect(f"rounds of shards: {rounds}", min(rounds) > 0 and max(rounds) - min(rounds) <= 2 * 16384 and sum(rounds) > 0)
    # A failed task reports where its log is, and the remaining tasks are not started.
    status, _, error = run("cluster", "local:1", CONFIG, *SMALL, "--tasks", "2", "--out", folder / "full")
    shutil.rmtree(folder / "full/shards/2")
    (folder / "full/shards/2").write_text("in the way")
    status, _, error = run("cluster", "local:1", CONFIG, *SMALL, "--tasks", "2", "--out", folder / "full")
    expect(f"a task that fails: {status} {error}", status == 4 and "shard 2 ended with status" in error)

finish()
