#!/usr/bin/python3
"""The package for Python: the program's results bit for bit, its messages as exceptions, rules in Python.

    SPECSIM=build/specsim PYTHONPATH=build/python tests/python/package_test.py        (at the root of the repository, with pytest)
"""
import ast
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import specsim

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
QUICKSTART = "configs/quickstart.yaml"
PAIR = {"vocab": 5, "target": {"family": "zipf", "exponent": 1}, "draft": {"from": "target", "transform": "temperature", "value": 1.7}}
CONFIG = {"experiment": "mine", "rounds": 20000, "seed": 7, "pair": PAIR, "decode": {"drafter": {"kind": "chain", "draft_length": 2}}}


def program(*arguments):
    done = subprocess.run([SPECSIM, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_run_equals_the_program(tmp_path):
    status, _, error = program("run", QUICKSTART, "--set", "rounds=20000", "--out", tmp_path / "out")
    assert status == 0, error
    wanted = (tmp_path / "out" / "data.csv").read_text()
    one = specsim.run(QUICKSTART, rounds=20000, threads=1)
    assert one.csv == wanted
    assert specsim.run(QUICKSTART, set={"rounds": 20000}, threads=3).csv == wanted
    assert specsim.run(QUICKSTART, rounds=20000, seed=99).csv != wanted


def test_a_dict_is_a_config(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(CONFIG))
    assert specsim.run(CONFIG).csv == specsim.run(file).csv
    built = {**CONFIG, "rounds": np.int64(20000), "pair": {**PAIR, "vocab": np.int32(5)}}
    assert specsim.run(built).csv == specsim.run(CONFIG).csv
    lengths = specsim.run(CONFIG, set={"sweep.decode.drafter.draft_length": [1, 2, 3]})
    assert lengths["decode.drafter.draft_length"].tolist() == [1, 2, 3]
    assert np.array_equal(lengths["tokens_per_round"], [specsim.run(CONFIG, decode__drafter__draft_length=k)["tokens_per_round"][0] for k in (1, 2, 3)])


def test_columns():
    result = specsim.run(CONFIG, set={"sweep.seed": [1, 2]})
    assert len(result) == 2 and list(result) == result.columns
    rows = [line.split(",") for line in result.csv.splitlines()]
    assert rows[0] == result.columns
    at = result.columns.index("tokens_per_round")
    assert result["tokens_per_round"].dtype == float
    assert result["tokens_per_round"].tolist() == [float(row[at]) for row in rows[1:]]
    assert result["experiment"].tolist() == ["mine", "mine"]
    assert result.units["tokens_per_round"] == "tokens" and result.meanings["tokens_per_round"]
    with pytest.raises(KeyError):
        result["no_such"]
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.shape == (2, len(result.columns))


def test_messages_are_the_programs(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("experiment: x\nrounds: -5\npair: {vocab: 4, target: {family: zipff}}\n")
    _, _, said = program("run", wrong)
    with pytest.raises(specsim.InputError) as raised:
        specsim.run(wrong)
    assert sorted(str(raised.value).splitlines()) == sorted(said.splitlines()) and f"{wrong}:2:9: " in said
    with pytest.raises(specsim.InputError, match="no such file"):
        specsim.run("no_such.yaml")
    with pytest.raises(specsim.InputError, match=r"^x: .*verifier|^x:"):
        specsim.check({**CONFIG, "experiment": "x", "decode": {"drafter": {"kind": "chain", "draft_length": 2}, "verifier": "tokn"}})
    with pytest.raises(specsim.InputError, match="--alpha"):
        specsim.theory(alpha=3, draft_length=4)
    with pytest.raises(ValueError):  # like any wrong value in Python
        specsim.plan(hardware="h100", alpha=0.7)
    with pytest.raises(TypeError, match="a config contains a set"):
        specsim.run({**CONFIG, "pair": {1, 2}})


def test_commands_equal_the_program():
    for name, options in [("theory", {"alpha": 0.8, "draft_length": 4, "cost_ratio": 0.05}),
                          ("plan", {"hardware": "h100-sxm", "target": "llama-3.1-8b", "draft": "eagle-head-8b", "alpha": 0.7})]:
        words = [word for option, value in options.items() for word in ("--" + option.replace("_", "-"), str(value))]
        status, said, _ = program(name, *words, "--format", "json")
        read = json.loads(said)
        output = getattr(specsim, name)(**options)
        assert output.status == status == 0
        assert output.text == read["text"]
        assert [[table.title, table.columns, table.rows] for table in output.tables] == [[t["title"], t["columns"], t["rows"]] for t in read["tables"]]
    best = specsim.plan(hardware="h100-sxm", target="llama-3.1-8b", draft="eagle-head-8b", alpha=0.7, batch=8).tables[0]
    assert best["speedup"].dtype == float and best["speedup"][0] == 1
    assert specsim.theory(alpha=0.8, draft_length=4, cost_ratio=0.05)["tokens per round"] == pytest.approx((1 - 0.8 ** 5) / 0.2)
    assert specsim.theory(alpha=0.8, draft_length=4, cost_ratio=0.05)["speedup"] == pytest.approx((1 - 0.8 ** 5) / 0.2 / 1.2, abs=1e-5)
    with pytest.raises(KeyError):
        specsim.theory(alpha=0.8, draft_length=4)["no such row"]
    assert specsim.import_log("tests/data/logs/vllm.log").status == 0
    assert specsim.tune("tests/data/tune_runs.csv", hardware="a100-80gb-sxm", target="llama-3.1-8b", draft="eagle3-llama-3.1-8b").status == 0
    assert specsim.check(CONFIG, set={"rounds": 2e5}).agrees
    assert specsim.audit(CONFIG).agrees
    assert "DISAGREE" not in str(specsim.audit(CONFIG))


class Token:
    """Leviathan et al.: min(1, target / draft); the residual is computed by the program."""

    def accept(self, target, draft, token):
        return min(1.0, target[token] / draft[token])


class Eager(Token):
    """Accepts too often."""

    def accept(self, target, draft, token):
        return min(1.0, 1.3 * target[token] / draft[token])


class Uniform(Token):
    """Accepts correctly, and then ignores the residual."""

    def residual(self, target, draft):
        return np.ones_like(target)


class AtOnce:
    """Token, all tokens in one call."""
    factor = 1.0

    def accept_all(self, target, draft):
        return np.minimum(1.0, self.factor * target / draft)


class EagerAtOnce(AtOnce):
    factor = 1.3


def with_rule(verifier):
    return {**CONFIG, "decode": {"drafter": {"kind": "chain", "draft_length": 2}, "verifier": verifier}}


def test_rules_in_python_are_audited():
    with specsim.rule("mine", Token()):
        assert specsim.audit(with_rule("mine")).agrees
        # The same rule as the program's own, number by number.
        mine, own = specsim.run(with_rule("mine"), threads=1), specsim.run(with_rule("token"), threads=1)
        assert mine["tokens_per_round"][0] == own["tokens_per_round"][0]
    with specsim.rule("mine", AtOnce()):
        assert specsim.audit(with_rule("mine")).agrees
        assert specsim.run(with_rule("mine"), threads=1)["tokens_per_round"][0] == own["tokens_per_round"][0]
    for rule in (Eager(), EagerAtOnce(), Uniform()):
        with specsim.rule("mine", rule):
            assert not specsim.audit(with_rule("mine")).agrees
        with specsim.rule("mine", rule, lossless=False):
            assert specsim.audit(with_rule("mine")).agrees  # the rule declares this itself
    with pytest.raises(specsim.InputError, match='unknown verifier "mine"'):
        specsim.audit(with_rule("mine"))


def test_wrong_rules():
    class Raises:
        def accept(self, target, draft, token):
            raise RuntimeError("oh")

    class Above:
        def accept(self, target, draft, token):
            return 1.5

    class Short(Token):
        def residual(self, target, draft):
            return target[:2]

    class Few:
        def accept_all(self, target, draft):
            return target[:2]

    class OneAbove:
        def accept_all(self, target, draft):
            return np.where(target == max(target), 1.5, 0)

    class Words:
        def accept(self, target, draft, token):
            return "often"

    for rule, said in [(Raises(), "accept raised RuntimeError: oh"), (Above(), "accept gave 1.5 for token .*, allowed: a probability"),
                       (Short(), "residual gave 2 values, allowed: one for each of 5 tokens"), (Words(), "accept gave no number"),
                       (Few(), "accept_all gave 2 values, allowed: one for each of 5 tokens"), (OneAbove(), "accept_all gave 1.5 for token 0, allowed: a probability")]:
        with specsim.rule("mine", rule), pytest.raises(specsim.InputError, match=said):
            specsim.audit(with_rule("mine"))
    with pytest.raises(TypeError, match="accept"):
        specsim.rule("mine", object())
    with pytest.raises(specsim.InputError, match='"token" is a verifier already'):
        specsim.rule("token", Token())


TEXT = {"experiment": "text", "rounds": 4000, "seed": 3, "context": {"process": "copy", "prompt_tokens": 64, "fidelity": 0.9, "entry": 0.5},
        "pair": {"vocab": 40, "target": {"family": "zipf", "exponent": 1.1}, "draft": {"from": "target", "transform": "temperature", "value": 1.25}},
        "decode": {"verifier": "tree_point_mass"}}


class Lookup:
    """prompt_lookup: what followed the longest, earliest occurrence of the last 3 to 1 tokens."""

    def draft(self, block):
        text = block.text.tolist()
        for length in (3, 2, 1):
            for end in range(length, len(text)):
                if text[end - length:end] == text[-length:]:
                    block.add_path(text[end:end + block.draft_length])
                    return


class LookupByOne(Lookup):
    """The mutant: the last token alone is searched for."""

    def draft(self, block):
        text = block.text.tolist()
        if text[-1] in text[:-1]:
            end = text.index(text[-1]) + 1
            block.add_path(text[end:end + block.draft_length])


class Dynamic:
    """tree_dynamic with width 2, all candidates kept: the two likeliest nodes of a level are expanded."""

    def draft(self, block):
        grown = [(1.0, -1, 0)]  # probability of the path, parent, token
        level = [0]
        scratch = {0: 0}  # nodes of the block, which has all candidates here
        for _ in range(block.draft_length):
            level = sorted(sorted(level, key=lambda node: -grown[node][0])[:2])
            after = block.likeliest([scratch[node] for node in level])
            below = []
            for node, (tokens, probabilities) in zip(level, after):
                for token, probability in zip(tokens, probabilities):
                    scratch[len(grown)] = block.add(token, scratch[node])
                    below.append(len(grown))
                    grown.append((grown[node][0] * probability, node, token))
            level = below


def drafted_by(kind, **keys):
    return {**TEXT, "decode": {**TEXT["decode"], "drafter": {"kind": kind, **keys}}}


def test_drafters_in_python_equal_the_programs():
    """The same rounds: acceptance by position and draft passes are equal, number by number."""
    columns = ("drafted", "accepted", "emitted", "draft_passes", "verified_rows", "accepted_pos_1", "accepted_pos_3")

    def figures(config, **options):
        result = specsim.run(config, threads=1, **options)
        return [result[column][0] for column in columns]
    own = figures(drafted_by("prompt_lookup", draft_length=4))
    with specsim.drafter("mine", Lookup()):
        assert figures(drafted_by("mine", draft_length=4)) == own
        assert figures(drafted_by("mine", draft_length=4), set={"context.prompt_tokens": 32}) != own
        lengths = specsim.run(drafted_by("mine"), threads=2, sweep__decode__drafter__draft_length=[1, 4])
        assert lengths["accepted"][1] == own[1] > lengths["accepted"][0] > 0
    with specsim.drafter("mine", LookupByOne()):
        assert figures(drafted_by("mine", draft_length=4)) != own
    # The whole of a tree of 2 + 4 + 4 candidates, from three passes that are counted.
    own = figures(drafted_by("tree_dynamic", depth=3, width=2, nodes=10))
    with specsim.drafter("mine", Dynamic()):
        assert figures(drafted_by("mine", draft_length=3, nodes=10, ranks=2)) == own
        small = {**drafted_by("mine", draft_length=2, nodes=6, ranks=2), "context": {"process": "fixed"}}
        assert specsim.audit(small, set={"pair.vocab": 4}).agrees


def test_wrong_drafters():
    kept = []

    class Does:
        def __init__(self, what):
            self.what = what

        def draft(self, block):
            self.what(block)

    def raises(block):
        raise RuntimeError("oh")

    def branches(block):
        block.add(1)
        block.add(2)

    def passes(block):
        for _ in range(3):
            block.likeliest()

    for what, keys, said in [
            (raises, {}, "drafter mine: draft raised RuntimeError: oh"), (lambda block: block.add(40), {}, "added token 40, allowed: 0 to 39"),
            (lambda block: block.add(-1), {}, "added token -1"), (lambda block: block.add(1, after=1), {}, r"named node 1, allowed: 0 \(the end of the text\) to 0"),
            (branches, {}, "a second token after a node, allowed: a chain"), (lambda block: block.add_path([1, 2, 3]), {}, "at depth 3, allowed: up to draft_length, which is 2"),
            (branches, {"nodes": 1}, "added 2 nodes, allowed: up to nodes, which is 1"), (passes, {"ranks": 1}, "took 3 passes"),
            (lambda block: block.likeliest(), {}, "asked the draft model, allowed: with the key ranks"), (lambda block: block.add("a"), {}, "draft raised TypeError")]:
        with specsim.drafter("mine", Does(what)), pytest.raises(specsim.InputError, match=said):
            specsim.run(drafted_by("mine", draft_length=2, **keys))
    with specsim.drafter("mine", Does(kept.append)):
        assert specsim.run(drafted_by("mine"))["tokens_per_round"][0] == 1  # no draft tokens: plain decoding
    with pytest.raises(ValueError, match="after its round"):
        kept[0].add(1)
    with pytest.raises(TypeError, match="draft"):
        specsim.drafter("mine", object())
    with pytest.raises(specsim.InputError, match='"chain" is a drafter already'):
        specsim.drafter("chain", Lookup())


def test_progress_and_other_threads():
    seen = []
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)
    other = threading.Thread(target=tick)
    other.start()
    specsim.run(CONFIG, rounds=5e6, threads=1, progress=lambda so_far, all: seen.append((so_far, all)))
    done.set()
    other.join()
    assert seen and seen[-1][0] == seen[-1][1]
    assert len(ticks) > 3  # the lock was free

    def stop(so_far, all):
        raise RuntimeError("enough")
    with pytest.raises(RuntimeError, match="enough"):
        specsim.run(CONFIG, rounds=1e10, threads=1, progress=stop)


def test_interrupts():
    program = ("import specsim, json, sys\ntry:\n  specsim.run(json.loads(sys.argv[1]), rounds=1e11, threads=1, progress=lambda d, a: print('on', flush=True))\n"
               "except KeyboardInterrupt:\n  print('interrupted')\n")
    child = subprocess.Popen([sys.executable, "-c", program, json.dumps(CONFIG)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "on\n"
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert rest.endswith("interrupted\n") and child.returncode == 0


def test_stubs_and_docstrings():
    folder = Path("sim/doors/python/specsim")
    source = ast.parse((folder / "__init__.py").read_text())
    for node in ast.walk(source):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and node.name in specsim.__all__:
            assert ast.get_docstring(node), node.name
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, node.name
    stub = (folder / "_core.pyi").read_text()
    for name in dir(specsim._core):
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", stub), name


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
