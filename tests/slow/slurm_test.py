#!/usr/bin/python3
"""specsim cluster slurm on a real Slurm of this machine: munged, slurmctld and slurmd from Debian's packages, in their own folder.

An array job of shards is submitted, one task is killed during its work and continues from its journal, another is requeued, the dependent
merge runs, and the bytes are those of one run. Without the packages (slurmctld, slurmd, slurm-client, munge), or without root, it prints a
message and passes. Runs at the root of the repository; SPECSIM names the program.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
CONFIG = "configs/quickstart.yaml"
ROUNDS = os.environ.get("SLURM_TEST_ROUNDS", "4e7")
TASKS = 6
CONF = """ClusterName=specsim_test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=2
MinJobAge=600
KillWait=5
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
JobRequeue=1
MaxArraySize=1001
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=500 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    """The three daemons, ended by their process ids."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        host = subprocess.run(["hostname", "-s"], capture_output=True, text=True).stdout.strip()
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(folder=folder, host=host, port=free_port(), node_port=free_port(), cpus=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}", f"--log-file={folder}/munged.log",
                   f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munged.seed")
        self.wait("munge", lambda: (folder / "munge.socket").exists())
        self.start("slurmctld", "-D", "-f", str(conf))
        self.start("slurmd", "-D", "-f", str(conf), "-N", host)
        self.wait("an idle node", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def start(self, *command):
        log = open(self.folder / f"{command[0]}.out", "w")
        self.processes.append(subprocess.Popen([shutil.which(command[0]) or f"/usr/sbin/{command[0]}", *command[1:]], stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log, env=self.environment))

    def ask(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL).stdout

    def wait(self, what, holds, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if holds():
                return
            time.sleep(0.2)
        logs = "\n".join((self.folder / name).read_text()[-1500:] for name in ("slurmctld.log", "slurmd.log", "munged.out", "slurmctld.out", "slurmd.out")
                         if (self.folder / name).exists())
        raise SystemExit(f"slurm_test: no {what} after {seconds} s\n{logs}")

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def main():
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name) and not Path("/usr/sbin", name).exists()]
    if lacking or os.geteuid() != 0:
        print(f"not tested: {'without ' + ', '.join(lacking) if lacking else 'without root'} (apt-get install slurmctld slurmd slurm-client munge)")
        return 0
    with tempfile.TemporaryDirectory(prefix="specsim_slurm_") as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        slurm = Slurm(folder)
        try:
            return cluster(slurm, folder)
        finally:
            slurm.stop()


def cluster(slurm, folder):
    whole, out = folder / "whole", folder / "out"

    def specsim(*arguments):
        return subprocess.run([SPECSIM, *map(str, arguments)], capture_output=True, text=True, env=slurm.environment, stdin=subprocess.DEVNULL)
    began = time.monotonic()
    arguments = ["cluster", "slurm", CONFIG, "--set", f"rounds={ROUNDS}", "--tasks", TASKS, "--out", out, "--sbatch=--mem=20"]
    done = specsim(*arguments)
    found = re.search(r"submitted 6 of 6 shards as job (\d+), and the merge as job (\d+)", done.stdout)
    assert done.returncode == 0 and found, done
    array, merge = found.groups()
    shards = out / "shards"

    def begun(number):
        return (shards / str(number) / "journal.txt").exists()

    # Task 1 loses its process during its work: specsim ends with the finished results, and the task asks to be queued again.
    slurm.wait("task 1 at work", lambda: begun(1))
    children = subprocess.run(["pgrep", "-f", f"shard 1/{TASKS} --out {shards}/1 "], capture_output=True, text=True).stdout.split()
    killed = 0
    for child in children:
        command = Path("/proc", child, "cmdline").read_bytes().split(b"\0")
        if os.path.basename(command[0]) == b"specsim" and b"run" in command:
            os.kill(int(child), signal.SIGTERM)
            killed += 1
    assert killed == 1, children
    # Task 2 is pre-empted in the way of a scheduler.
    slurm.wait("task 2 at work", lambda: begun(2) or (shards / "2" / "manifest.yaml").exists())
    requeued = subprocess.run(["scontrol", "requeue", f"{array}_2"], capture_output=True, text=True, env=slurm.environment)
    print(f"killed task 1, requeued task 2 ({requeued.stderr.strip() or 'taken'}); {specsim('cluster', 'status', out).stdout.splitlines()[0]}")
    slurm.ask("scontrol", "release", array)
    # A requeued job has to wait for a while; Slurm's BeginTime is moved forward.
    def finished():
        for line in slurm.ask("squeue", "-h", "-o", "%i %T %r").splitlines():
            if "BeginTime" in line:
                slurm.ask("scontrol", "update", f"JobId={line.split()[0]}", "StartTime=now")
        return (out / "data.csv").exists() and not slurm.ask("squeue", "-h", "-j", merge)
    slurm.wait("merge", finished, 600)
    logs = "".join(path.read_text() for path in (out / "logs").iterdir())
    state = slurm.ask("scontrol", "show", "job", array)
    restarts = sum(int(count) for count in re.findall(r"Restarts=(\d+)", state))
    assert restarts >= 2, state
    done = specsim("cluster", "status", out)
    assert done.returncode == 0 and "6 of 6 shards are finished" in done.stdout, (done, logs)
    done = specsim("run", CONFIG, "--set", f"rounds={ROUNDS}", "--out", whole)
    assert done.returncode == 0, done
    for name in ("data.csv", "counts.csv"):
        assert (whole / name).read_bytes() == (out / name).read_bytes(), name
    # Only missing shards are submitted again.
    shutil.rmtree(shards / "4")
    (out / "data.csv").unlink()
    done = specsim(*arguments)
    assert "submitted 1 of 6 shards" in done.stdout, done
    slurm.wait("second merge", lambda: (out / "data.csv").exists(), 300)
    assert (whole / "data.csv").read_bytes() == (out / "data.csv").read_bytes()
    print(f"{TASKS} tasks, {restarts} restarts, bytes equal to one run, {time.monotonic() - began:.0f} s")
    return 0


sys.exit(main())
