#!/usr/bin/python3
"""Commands on several threads of Python, commands within rules, and an interpreter that ends while one runs.

    SPECSIM=build/specsim PYTHONPATH=build/python tests/python/threads_test.py        (at the root of the repository, with pytest)
"""
import json
import subprocess
import sys
import threading

import pytest

import specsim

PAIR = {"vocab": 5, "target": {"family": "zipf", "exponent": 1}, "draft": {"from": "target", "transform": "temperature", "value": 1.7}}
CONFIG = {"experiment": "mine", "rounds": 3000, "seed": 7, "pair": PAIR, "decode": {"drafter": {"kind": "chain", "draft_length": 2}}}
CALLS = {"plan": lambda: specsim.plan(alpha=0.7, longest=3), "theory": lambda: specsim.theory(alpha=0.8, draft_length=4),
         "serve": lambda: specsim.serve("configs/serve/chat.yaml", requests=20), "check": lambda: specsim.check(CONFIG, threads=2),
         "import": lambda: specsim.import_log("tests/data/logs/vllm.log"), "wrong": lambda: specsim.command("theory", alpha=3)}


def shown(call):
    try:
        output = call()
    except specsim.InputError as wrong:
        return str(wrong)
    return output.status, output.text, [(table.title, table.columns, table.rows) for table in output.tables]


def child(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300)


def test_threads_print_what_one_prints(capfd):
    alone = {name: shown(call) for name, call in CALLS.items()}
    found, lock = [], threading.Lock()

    def work(number):
        for turn in range(6):
            name = list(CALLS)[(number + turn) % len(CALLS)]
            answer = shown(CALLS[name])
            with lock:
                found.append((name, answer == alone[name], answer))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24
    assert [one for one in found if not one[1]] == []
    assert capfd.readouterr().out == ""  # and none of it on the real standard output


def test_a_rule_that_runs_commands(capfd):
    class Asks:
        def accept(self, target, draft, token):
            assert specsim.theory(alpha=0.8, draft_length=4).tables
            return min(1.0, target[token] / draft[token])
    with specsim.rule("asks", Asks()):
        decode = {"drafter": {"kind": "chain", "draft_length": 1}, "verifier": "asks"}
        output = specsim.check({**CONFIG, "rounds": 500, "decode": decode}, threads=2)
    assert output.tables and capfd.readouterr().out == ""

    class Registers:
        def accept(self, target, draft, token):
            specsim.rule("inner", Asks())
            return 0.5
    with specsim.rule("outer", Registers()), pytest.raises(specsim.InputError, match="within a running part"):
        specsim.check({**CONFIG, "decode": {"drafter": {"kind": "chain", "draft_length": 1}, "verifier": "outer"}})


def test_the_interpreter_ends_while_a_daemon_works():
    """The interpreter ends with its own status, whatever the thread is doing: work in C++, a callback, waiting."""
    begin = "import json, sys, threading, specsim\nconfig = json.loads(sys.argv[1])\nbegun = threading.Event()\n"
    end = "threading.Thread(target=work, daemon=True).start()\nbegun.wait()\nprint('main ends', flush=True)\n"
    works = ["def work():\n  specsim.run(config, rounds=1e12, threads=2, progress=lambda done, all: begun.set())\n",
             "def work():\n  while True:\n    begun.set()\n    specsim.theory(alpha=0.8, draft_length=4)\n",
             ("class Rule:\n  def accept(self, target, draft, token):\n    begun.set()\n    return min(1.0, target[token] / draft[token])\n"
              "def work():\n  with specsim.rule('mine', Rule()):\n    config['decode']['verifier'] = 'mine'\n    while True:\n      specsim.run(config, rounds=2000, threads=2)\n")]
    for work in works:
        done = child(begin + work + end, json.dumps(CONFIG))
        assert (done.returncode, done.stdout, done.stderr) == (0, "main ends\n", "")


def test_signals_stay_the_interpreters():
    program = ("import signal, threading, specsim\nbefore = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]\n"
               "threads = [threading.Thread(target=lambda: specsim.serve('configs/serve/chat.yaml', requests=20)) for _ in range(4)]\n"
               "[one.start() for one in threads]\n[one.join() for one in threads]\n"
               "assert before == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]\n"
               "try:\n  signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n  print('heard')\n")
    done = child(program)
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr


def test_messages_and_names_with_a_nul(tmp_path):
    config = tmp_path / "nul.yaml"
    config.write_text('experiment: x\nrounds: 10\npair: {vocab: 4, target: {family: "zi\\0pff"}}\n')
    with pytest.raises(specsim.InputError) as raised:
        specsim.run(config)
    assert "allowed: " in str(raised.value).split("pff")[1]  # the text after the NUL is printed too
    for call in (lambda: specsim.run("configs/quickstart.yaml\0.yaml"), lambda: specsim.command("check", "configs/quickstart.yaml\0x")):
        with pytest.raises(specsim.InputError, match="has a NUL character"):
            call()


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
