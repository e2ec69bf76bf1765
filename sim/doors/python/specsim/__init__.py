"""Simulates speculative decoding with the exact algorithm, estimates its latency on a GPU, and compares results with theory.

    import specsim
    result = specsim.run("configs/quickstart.yaml", rounds=1e5)
    result["tokens_per_round"]           # a NumPy array, one value per cell
    result.to_pandas()

The package contains the program's core: results are those of `specsim run`, bit for bit. Wrong input raises InputError with the
program's message. Ctrl-C stops a run. Other Python threads continue during a run.
"""
from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np

from . import _core
from ._core import Block, FileError, InputError

if TYPE_CHECKING:
    import pandas

__version__: str = _core.version
__commit__: str = _core.commit
__all__ = ["run", "check", "audit", "plan", "choose", "compare", "theory", "serve", "tune", "import_log", "command", "rule", "drafter",
           "Result", "Output", "Table", "Rule", "Drafter", "Block", "InputError", "FileError"]

Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Progress = Callable[[float, float], None]


class Rule(Protocol):
    """A verification rule in Python: an object with a method `accept`, and optionally `residual`.

    `accept(target, draft, token)` is the probability with which the draft token is accepted, given both distributions at its
    position (NumPy arrays). `residual(target, draft)` returns the weights of the final token's distribution after a rejection. The
    default is max(0, target - draft * accept): a rule is then lossless if it accepts no more of any token than the target has.
    `accept_all(target, draft)`, if the rule has it, returns the probabilities of all tokens as an array and is called instead of
    `accept`: large vocabularies need it.
    """

    def accept(self, target: np.ndarray, draft: np.ndarray, token: int) -> float: ...


class Drafter(Protocol):
    """A drafter in Python: an object with a method `draft(block)` that adds the round's draft tokens to `block`.

    `block.text`: prompt and text so far (NumPy array). `block.add(token, after=0)` adds a token after a node and returns its node;
    node 0 is the end of the text. `block.add_path(tokens, after=0)` adds tokens one after the other and returns the last node.
    `block.likeliest(node)` returns the draft model's likeliest tokens after a node and their probabilities, the likeliest first;
    `block.likeliest(nodes)` returns a list of such pairs. Each of these calls is one pass of the draft model. An empty block is
    allowed: the round is then one of plain decoding.
    """

    def draft(self, block: Block) -> None: ...


@dataclass(frozen=True)
class Table:
    """A table that a command prints, with figures as displayed."""

    title: str
    columns: list[str]
    rows: list[list[Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> np.ndarray:
        """A column as an array: numbers if all cells are numbers or empty (NaN), otherwise objects."""
        if column not in self.columns:
            raise KeyError(column)
        at = self.columns.index(column)
        values = [row[at] for row in self.rows]
        if all(value is None or isinstance(value, (int, float)) for value in values):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.array(values, dtype=object)

    def to_pandas(self) -> pandas.DataFrame:
        import pandas as pd
        return pd.DataFrame(self.rows, columns=self.columns)


@dataclass(frozen=True)
class Output:
    """The output of a command: its tables, its text, and the exit status of the program (0: fine)."""

    status: int
    tables: list[Table]
    text: list[str]

    @property
    def table(self) -> Table:
        """The first of the tables, which is the command's main one."""
        if not self.tables:
            raise ValueError("this command printed no table; see .text")
        return self.tables[0]

    def __getitem__(self, name: str) -> Any:
        """A column of the first table that has it, as an array. Otherwise the value of the row of this name, as a number if it
        begins with one: theory(...)["speedup"]."""
        for table in self.tables:
            if name in table.columns:
                return table[name]
        for table in self.tables:
            for row in table.rows:
                if len(row) > 1 and isinstance(row[0], str) and row[0].strip() == name:
                    number = re.match(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?(?![\d.%])", str(row[1]))
                    return float(number[0]) if number else row[1]
        raise KeyError(name)

    @property
    def agrees(self) -> bool:
        """For check and audit: nothing disagrees and everything was tested."""
        return self.status == 0

    def to_pandas(self) -> pandas.DataFrame:
        return self.table.to_pandas()

    def __str__(self) -> str:
        return "\n".join(self.text)


class Result:
    """Rows of an experiment, one row per cell: columns as NumPy arrays by name, as in data.csv."""

    def __init__(self, results: _core.Results) -> None:
        self._results = results

    @property
    def columns(self) -> list[str]:
        return self._results.columns

    @property
    def units(self) -> dict[str, str]:
        """By column: "1" for a plain number, "" for text."""
        return self._results.units

    @property
    def meanings(self) -> dict[str, str]:
        """By column: its meaning or formula."""
        return self._results.meanings

    @property
    def csv(self) -> str:
        """data.csv, byte for byte."""
        return self._results.csv

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, column: str) -> np.ndarray:
        values = self._results.column(column)
        return values if isinstance(values, np.ndarray) else np.array(values, dtype=object)

    def to_pandas(self) -> pandas.DataFrame:
        import pandas as pd
        return pd.DataFrame({column: self[column] for column in self.columns})

    def __repr__(self) -> str:
        return f"<specsim.Result: {len(self)} cells, {len(self.columns)} columns>"


def _plain(value: Any) -> Any:
    """A value that JSON supports, also from types of NumPy or pathlib."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a config contains a {type(value).__name__}; allowed: numbers, texts, lists, dicts")


def _yaml(value: Any) -> str:
    """A value as YAML, of which JSON is a subset."""
    return value if isinstance(value, str) else json.dumps(value, default=_plain)


def _settings(set: Mapping[str, Any] | None, overrides: Mapping[str, Any]) -> list[tuple[str, str]]:  # noqa: A002
    # rounds=1e5, and decode__verifier="token" for decode.verifier
    pairs = [(path.replace("__", "."), value) for path, value in overrides.items()]
    return [(path, _yaml(value)) for path, value in [*(set or {}).items(), *pairs]]


def run(config: Config, *, set: Mapping[str, Any] | None = None, seed: int | None = None, threads: int | None = None,  # noqa: A002
        progress: Progress | None = None, **overrides: Any) -> Result:
    """Simulates every cell of an experiment and compares it with theory, if a theory covers it.

    config: the path of a YAML file, or a dict of the same keys. set: values of the config by path ({"pair.draft.value": 0.6};
    "sweep.PATH" is an axis); keywords are the same, with __ for a dot (decode__drafter__draft_length=4). threads: default: all
    cores; results do not depend on it. progress(done, all): called with numbers of rounds several times per second.
    """
    is_file = not isinstance(config, Mapping)
    text = os.fspath(config) if is_file else json.dumps(config, default=_plain)
    name = "" if is_file else str(config.get("experiment", "config"))
    return Result(_core.run(text, name, is_file, _settings(set, overrides), seed, threads or os.cpu_count() or 1, progress))


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options in the form of the command line: draft_length=4 is --draft-length 4, True a flag, a list is joined by commas."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif name == "set":
            for path, inner in value.items():
                words += [option, f"{path}={_yaml(inner)}"]
        elif isinstance(value, (list, tuple, np.ndarray)):
            words += [option, ",".join(str(one) for one in np.asarray(value).tolist())]
        else:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def command(name: str, *arguments: str | os.PathLike[str], **options: Any) -> Output:
    """Runs a command of the program and returns its output. Options as keywords: draft_length=4 is --draft-length 4."""
    status, text = _core.command([name, *(os.fspath(argument) for argument in arguments), *_words(options)])
    read = json.loads(text)
    return Output(status, [Table(one["title"], one["columns"], one["rows"]) for one in read["tables"]], read["text"])


def _of_config(name: str, config: Config | None, options: Mapping[str, Any]) -> Output:
    if not isinstance(config, Mapping):
        return command(name, *([] if config is None else [config]), **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{re.sub(r'[^A-Za-z0-9_]', '_', str(config.get('experiment', 'config')))}.yaml"
        path.write_text(json.dumps(config, default=_plain))
        try:
            return command(name, path, **options)
        except InputError as wrong:
            raise InputError(str(wrong).replace(str(path), path.stem)) from None


def check(config: Config, **options: Any) -> Output:
    """`specsim check`: compares simulation with theory. .agrees is the verdict; options such as set={"rounds": 1e6}, threads=4."""
    return _of_config("check", config, options)


def audit(config: Config, **options: Any) -> Output:
    """`specsim audit`: exact enumeration of the verifier on a small vocabulary. .agrees: the verifier is as lossless as declared."""
    return _of_config("audit", config, options)


def plan(config: Config | None = None, **options: Any) -> Output:
    """`specsim plan`: plan(hardware="h100-sxm", target="llama-3.1-8b", draft="eagle-head-8b", alpha=0.7, batch=8)."""
    return _of_config("plan", config, options)


def compare(config: Config | None = None, **options: Any) -> Output:
    """`specsim compare`: methods ranked on one workload."""
    return _of_config("compare", config, options)


def choose(**options: Any) -> Output:
    """`specsim choose`: GPUs and settings ranked for a load; choose(target="llama-3.1-8b", hardware="h100-sxm,rtx-4090", users=32, slo="tpot=30")."""
    return command("choose", **options)


def serve(config: Config | None = None, **options: Any) -> Output:
    """`specsim serve`: a server under load."""
    return _of_config("serve", config, options)


def tune(*runs: str | os.PathLike[str], **options: Any) -> Output:
    """`specsim tune`: learns from benchmark runs of a server; tune("plain.json", "k3.json", hardware="h100-sxm", out="build/server")."""
    return command("tune", *runs, **options)


def theory(**options: Any) -> Output:
    """`specsim theory`: closed forms; theory(alpha=0.8, draft_length=4, cost_ratio=0.05)."""
    return command("theory", **options)


def import_log(log: str | os.PathLike[str], **options: Any) -> Output:
    """`specsim import`: acceptance from the log or metrics of a server."""
    return command("import", log, **options)


class _Registered:
    """A part in Python under a name that configs can give, for the length of a with block."""

    _registered: _core.RegisteredRule | _core.RegisteredDrafter

    def __enter__(self) -> _Registered:
        return self

    def __exit__(self, *_: object) -> None:
        self._registered.remove()


class rule(_Registered):  # noqa: N801: it is used as a statement
    """Registers a rule in Python under a name that configs can give, for the length of a with block:

        with specsim.rule("mine", MyRule()):
            specsim.audit({... "decode": {"drafter": {...}, "verifier": "mine"}})

    lossless: whether the rule is declared lossless; audit and check test it. Rules in Python are for prototyping. They are called
    once per pair of distributions, not once per round.
    """

    def __init__(self, name: str, rule: Rule, *, lossless: bool = True) -> None:
        if not callable(getattr(rule, "accept", getattr(rule, "accept_all", None))):
            raise TypeError("a rule has a method accept(target, draft, token) or accept_all(target, draft)")
        self._registered = _core.RegisteredRule(name, rule, lossless)


class drafter(_Registered):  # noqa: N801: it is used as a statement
    """Registers a drafter in Python under a name that configs can give, for the length of a with block:

        with specsim.drafter("mine", MyDrafter()):
            specsim.run({... "decode": {"drafter": {"kind": "mine", "draft_length": 4}, "verifier": "tree_point_mass"}})

    Keys in the config: draft_length (4: tokens on a path, and passes of the draft model), nodes (of its trees; without it, it drafts
    chains) and ranks (0: it uses no draft model; otherwise how many tokens `block.likeliest` returns). The drafter is called
    once per round, from any thread, so the same text must give the same block.
    """

    def __init__(self, name: str, drafter: Drafter) -> None:
        if not callable(getattr(drafter, "draft", None)):
            raise TypeError("a drafter has a method draft(block)")
        self._registered = _core.RegisteredDrafter(name, drafter)
