"""Reads the tables and manifests that pictures are drawn from. Errors are reported with file and line, as by specsim."""
import csv
import io
import math
from pathlib import Path

import yaml


class BadInput(Exception):
    """A file that cannot be drawn from or written to: `PLACE: what was found, allowed: what is`."""

    def __init__(self, place, found, allowed):
        super().__init__(f"{place}: {found}, allowed: {allowed}")


class Row(dict):
    """A row of a table by its columns, with its place."""

    def __init__(self, cells, path, line):
        super().__init__(cells)
        self.path, self.line = path, line

    def __missing__(self, column):
        raise BadInput(f"{self.path}:1", f'no column "{column}"', f"a table with it; it has {', '.join(self)}")

    def bad(self, column, allowed):
        """Settings to raise if a cell does not fit."""
        return BadInput(f"{self.path}:{self.line}", f'{column} "{self[column]}"' if self[column] is not None else f"{column} is empty", allowed)

    def real(self, column):
        """The number of a column that other rows may leave empty."""
        if self[column] is None:
            raise self.bad(column, "a number")
        return self[column]

    def whole(self, column, least, most):
        """The whole number of a column, between least and most."""
        value = self[column]
        if not isinstance(value, float) or value != math.floor(value) or not least <= value <= most:
            raise self.bad(column, f"whole numbers from {least} to {most}")
        return int(value)


def text_of(path, what):
    """A regular file's text."""
    if not Path(path).is_file():
        raise BadInput(path, "is a directory or a special file" if Path(path).exists() else "is not there", what)
    data = Path(path).read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise BadInput(f"{path}:{data[:wrong.start].count(10) + 1}", f"byte 0x{data[wrong.start]:02x} that is no UTF-8", what) from None


def known(value):
    """A number to draw; NaN if there is none, which draws nothing."""
    return math.nan if value is None else value


def number(text):
    try:
        return float(text)
    except ValueError:
        return text or None


def lines_of(path):
    """(line, cells) of a CSV; every row is as long as the first."""
    text = text_of(path, "a CSV that specsim wrote")
    if not text.endswith("\n"):
        raise BadInput(f"{path}:{text.count(chr(10)) + 1}", "a last line without its end" if text else "an empty file", "a CSV that is whole")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header, line = None, 1
    try:
        for cells in reader:
            if header is None:
                header = cells
                if "" in header or len(set(header)) < len(header):
                    raise BadInput(f"{path}:1", "columns without a name, or two of one name", "a name of its own for every column")
            if cells and len(cells) != len(header):
                raise BadInput(f"{path}:{line}", f"{len(cells)} cells", f"{len(header)}, as the first line has")
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as wrong:
        raise BadInput(f"{path}:{line}", str(wrong), "lines of CSV") from None
    if not header:
        raise BadInput(f"{path}:1", "a first line without columns", "a CSV that specsim wrote")


def read(path, numbers=(), maybe=(), words=(), where=(), some=False):
    """Rows of a CSV: numbers where possible, None where empty. Required columns: `numbers` in every row, `maybe` a number or empty, `words` unchanged
    text. `where`: like `maybe`, but the column may be missing. `some`: the table must have rows."""
    found = lines_of(path)
    _, names = next(found)
    for name in (*numbers, *maybe, *words):
        if name not in names:
            raise BadInput(f"{path}:1", f'no column "{name}"', f"a table with {', '.join((*numbers, *maybe, *words))}")
    rows = []
    for line, cells in found:
        row = Row({name: (text or None) if name in words else number(text) for name, text in zip(names, cells)}, path, line)
        for name in numbers:
            if not isinstance(row[name], float) or not math.isfinite(row[name]):
                raise row.bad(name, "a number")
        for name in (*maybe, *(name for name in where if name in names)):
            if row[name] is not None and (not isinstance(row[name], float) or not math.isfinite(row[name])):
                raise row.bad(name, "a number, or nothing")
        for name in words:
            if row[name] is None:
                raise row.bad(name, "text")
        rows.append(row)
    if some and not rows:
        raise BadInput(f"{path}:2", "no rows", "a table with at least one")
    return rows


def yaml_of(text, path):
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        raise BadInput(f"{path}:{mark.line + 1}" if mark else path, getattr(wrong, "problem", None) or "no YAML", "a manifest that specsim wrote") from None


def manifest_of(folder):
    """A result's manifest."""
    path = Path(folder) / "manifest.yaml"
    manifest = yaml_of(text_of(path, "the manifest that specsim writes next to its tables"), path)
    if not isinstance(manifest, dict):
        raise BadInput(path, "no fields", "a manifest that specsim wrote")
    return manifest


def config_of(folder, *sections):
    """The first experiment of a result's manifest, as it was run; it must have the sections."""
    path = Path(folder) / "manifest.yaml"
    try:
        text = manifest_of(folder)["experiments"][0]["config"]
    except (KeyError, IndexError, TypeError):
        text = None
    config = yaml_of(text, path) if isinstance(text, str) else None
    if not isinstance(config, dict):
        raise BadInput(path, "no experiments with a config", "a manifest that specsim wrote")
    for section in sections:
        if not isinstance(config.get(section), dict):
            raise BadInput(path, f'an experiment without "{section}"', f"one with {', '.join(sections)}")
    return config
