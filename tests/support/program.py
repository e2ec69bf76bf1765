"""The program under test, for scripts that run it: its path, its statuses, calls of it, a terminal to run on, and expectations."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
SANITIZERS = os.environ.get("SPECSIM_SANITIZE", "")
FINE, DISAGREE, BAD_INPUT, UNTESTED, IO_FAILED, INTERNAL_ERROR, INTERRUPTED = range(7)  # sim/foundation/base/exit_code.h
problems, checks = [], 0


def expect(what, holds):
    global checks
    checks += 1
    if not holds:
        problems.append(what)


def finish():
    """Prints the failed expectation, and ends the test."""
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{checks - len(problems)} passed, {len(problems)} failed")
    sys.exit(bool(problems))


def run(*arguments, **more):
    """Status, standard output and standard error. `more` are arguments of subprocess; standard input is empty by default."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300, **more}
    if more.get("input") is None:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([SPECSIM, *map(str, arguments)], **options)
    return done.returncode, done.stdout or "", done.stderr or ""


def results(folder):
    """The files of a finished command by name, without the manifest, which contains time and machine."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "manifest.yaml"}


def on_terminal(words, columns, kind, interrupt_after=None, **options):
    """The program's output on a terminal with `columns` columns and of this kind (TERM), and its status. SIGINT is sent as soon as `interrupt_after`
    is read. `options` redirect a stream, as for subprocess."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdin": subprocess.DEVNULL, "stdout": follower, "stderr": follower, **options}
    process = subprocess.Popen([SPECSIM, *words], env={**os.environ, "TERM": kind}, **streams)
    os.close(follower)
    text = b""
    while select.select([leader], [], [], 600)[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
        if interrupt_after is not None and interrupt_after in text:
            process.send_signal(signal.SIGINT)
            interrupt_after = None
    os.close(leader)
    return text.decode(), process.wait(timeout=600)
