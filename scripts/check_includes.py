#!/usr/bin/python3
"""Checks that the includes between the rooms of sim/ follow the architecture.

    scripts/check_includes.py              check sim/ and tests/ of this repository
    scripts/check_includes.py --self-test  check that every kind of violation is caught

Violations:
  - an include of a room (or file) that the table below does not allow, and an entry of the table that no file uses
  - code in sim/ that includes tests or Catch2
  - quoted includes that are not rooted at the repository
  - headers without #pragma once, and `using namespace` at file or namespace scope in a header
  - two types of the same name in one program: the linker would silently use the functions of one for both. Types in anonymous namespaces
    belong to their file
  - files of sim/ that include each other in a circle; a header and its .cpp count as one file
  - parts of the standard library that the compiler for browsers lacks, outside sim/lab, which browsers do not run
"""

import re
import sys
from pathlib import Path

# Group -> room -> what that room may include besides itself: "room" for all of a room, "room/file.h" for that file alone. Groups and rooms are
# ordered from the ground up: a room may only include rooms above it in this table.
BASIS = ["base", "rng", "math", "config"]
GROUPS = {
    # Errors, random numbers, distributions as tables, YAML, tables and CSV.
    "foundation": {
        "base": [],
        "rng": [],
        "math": ["base"],
        "config": ["base"],
        # Columns, CSV, tables, intervals, manifests: the output of every command.
        "report": ["base", "math/quantiles.h", "config"],
    },
    # One round of speculative decoding, and theory that shares no code with it.
    "rounds": {
        # Token trees: what drafters make and verifiers judge.
        "tokens": ["base"],
        "families": BASIS,
        "draft": ["base", "math", "config", "tokens"],
        # A verifier may use only what a real server has, the distributions at the drafted positions: never families.
        "verify": BASIS + ["tokens"],
        "decode": ["base", "rng", "math", "draft", "verify", "families"],
        # An oracle that shares code with the code under test would agree with its mistakes.
        "theory": ["base", "math/series.h"],
    },
    # The time of a pass, placements, the event queue.
    "hardware": {
        # GPUs, models and engines by name, built into the program; models from a config.json.
        "presets": ["config"],
        # A GPU: its data sheet, and fits of its measured kernels.
        "gpu": ["base", "config", "presets"],
        # Reads and computations of a model's passes.
        "model": ["config", "presets", "gpu"],
        # A pass as operations, the kernels that compute them, the host; time, error and memory.
        "latency": ["base", "config", "math/quantiles.h", "presets", "gpu", "model"],
        # The event engine knows nothing of tokens.
        "engine": ["base"],
        "placement": ["base", "config", "engine", "latency", "decode", "draft"],
    },
    # Experiments as values: run, judged against theory, audited, fitted.
    "experiments": {
        # Experiments as values: read once, swept, checked.
        "spec": ["base", "rng", "config", "families", "draft", "verify", "presets", "model", "latency", "decode", "placement", "theory"],
        # Cells to counts; journal, shards, resumption.
        "run": ["base", "rng", "engine", "decode", "placement", "spec", "report"],
        # Choice of the theory for each cell, its predictions, and the verdict.
        "judge": ["base", "math", "config", "verify", "decode", "theory", "spec", "run", "report"],
        # Exact enumeration of what production runs.
        "audit": ["base", "families", "verify", "decode", "spec", "report"],
        # Context processes from measurements.
        "fit": ["base", "rng", "math", "families", "report"],
    },
    # Servers under load, and what real servers log.
    "serving": {
        # Requests of clients: when they are sent, how long they are.
        "arrivals": ["base", "rng", "config"],
        # Logs and metrics of servers to counts of acceptance: used by the commands and by the explorer, so with few dependencies.
        "logs": ["base", "math/quantiles.h"],
        # The simulated server: schedulers, paged cache, policies, times of steps, metrics.
        "serve": BASIS + ["families", "draft", "latency", "placement", "arrivals", "spec", "run", "report"],
    },
    # Decisions.
    "answers": {
        # Best draft length, rankings, break-even.
        "plan": ["base", "tokens", "families", "presets", "latency", "theory", "logs", "spec", "run", "judge", "report"],
        # Servers under load as experiments: read once, swept over loads, judged.
        "load": ["base", "rng", "config", "latency", "engine", "arrivals", "serve", "spec", "plan", "report"],
        # Which GPUs and settings to take for a load.
        "choose": ["base", "config", "presets", "model", "latency", "spec", "plan", "load", "report"],
        # From runs of a server to its parameters, and the next measurement.
        "tune": ["base", "config", "latency", "logs", "load", "report"],
    },
    # Real small models on a CPU and on a GPU.
    "lab": {
        # Real models decode with the same verifiers as the simulator, and use no synthetic distribution.
        "llm": BASIS + ["draft", "verify", "model"],
        # The same models on a GPU, with the same interface.
        "cuda": ["base", "rng", "math", "llm"],
        # Passes, acceptance and validation of real models.
        "calibrate": BASIS + ["draft", "verify", "model", "latency", "llm", "cuda", "plan", "report"],
    },
    # The ways in.
    "doors": {
        # The library for other programs: one header.
        "api": ["base", "config", "spec", "run", "judge", "report"],
        # Questions of the explorer's page, as JSON.
        "web": ["base", "math", "config", "families", "verify", "presets", "decode", "theory", "logs", "spec", "run", "judge", "tune",
                "audit", "plan", "load"],
        # The commands: options, one call, output.
        "cli": ["base", "rng", "config", "families", "draft", "verify", "presets", "gpu", "model", "latency", "placement", "theory", "spec", "run",
                "judge", "audit", "plan", "fit", "calibrate", "report", "arrivals", "serve", "load", "choose", "tune", "logs"],
        # The package for Python: the library and the commands, and rules that it registers.
        "python": ["base", "config", "draft", "verify", "api", "cli"],
    },
}
ALLOWED = {room: allowed for rooms in GROUPS.values() for room, allowed in rooms.items()}
GROUP = {room: group for group, rooms in GROUPS.items() for room in rooms}

# A single file that another room may include must not bring in files that this room may not see, not even others of its own room.
LENT = {
    "math/quantiles.h": [],
    "math/series.h": ["base"],
}

# Second headers of a .cpp, used by its tests. The .cpp and both headers form one unit.
SECOND_HEADERS = {"sim/foundation/rng/philox_instructions": "sim/foundation/rng/philox"}

GENERATED = {"specsim_version.h"}

# Lacking in libc++ 14, by the word after "std::": what takes their place.
LACKING = {"bit_cast": "bit_cast of sim/foundation/base/standard_library.h", "jthread": "JoiningThread of sim/foundation/base/standard_library.h",
           "ranges": "the algorithms of <algorithm>", "views": "loops", "format": "fmt::format", "source_location": "__FILE__"}

TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<raw> (?:u8|[uUL])?R"(?P<fence>[^()\\\s"]{0,16})\(.*?\)(?P=fence)" )
    | (?P<include> ^[ \t]*\#[ \t]*include[ \t]*(?:"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>) )
    | (?P<string> "(?:\\.|[^"\\\n])*" )
    | (?P<number> \.?\d(?:'?[\w.])* )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<char> '(?:\\.|[^'\\\n])+' )
    | (?P<directive> ^[ \t]*\#[^\n/]* )
    | (?P<mark> [{};] )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def room_of(path):
    """The room of "sim/GROUP/ROOM/..."; None for other paths, and if the room belongs to another group."""
    parts = path.split("/")
    return parts[2] if parts[0] == "sim" and len(parts) > 3 and GROUP.get(parts[2], parts[1]) == parts[1] else None


def inside_group(path):
    """"ROOM/file.h" of "sim/GROUP/ROOM/file.h"."""
    return path.split("/", 2)[2]


def check_include(path, target, quoted):
    """The problem with an include of `target` in the file `path`; None if it is allowed."""
    if not path.startswith("sim/"):
        return None
    if target.startswith("tests/") or target.startswith("catch2/"):
        return f"sim code includes \"{target}\", allowed: no tests"
    if target in GENERATED:
        return None
    if not target.startswith("sim/"):
        if quoted:
            return f"includes \"{target}\", allowed: paths rooted at the repository, such as \"sim/foundation/base/error.h\""
        return None
    if ".." in target.split("/"):
        return f"includes \"{target}\", allowed: paths without \"..\""
    room, other = room_of(path), room_of(target)
    if room is None:
        return None  # check_text has reported it
    inside = inside_group(path)
    if other is None:
        return f"includes \"{target}\", allowed: sim/GROUP/ROOM/file.h"
    if inside in LENT:
        allowed, who = LENT[inside], f"{path} is lent to another room and"
        itself = False
    elif room in ALLOWED:
        allowed, who = ALLOWED[room], f"sim/{GROUP[room]}/{room}"
        itself = True
    else:
        return None  # check_text has reported it
    if (itself and other == room) or other in allowed or inside_group(target) in allowed:
        return None
    names = ([f"{room} (itself)"] if itself else []) + allowed
    return f"includes \"{target}\", but {who} may include only: {', '.join(names) or 'nothing of sim'}"


def check_text(path, text):
    """All violations in one file, as "path:line: message" strings."""
    problems = []

    def report(offset, message):
        problems.append(f"{path}:{text.count(chr(10), 0, offset) + 1}: {message}")

    header = path.endswith(".h")
    room = room_of(path)
    if path.startswith("sim/") and room not in ALLOWED:
        report(0, f"is in no room that scripts/check_includes.py knows, known: {', '.join(ALLOWED)}")

    pragma_once = False
    scopes = []  # True for a namespace's brace, False for any other
    statement = []  # the words since the last brace or semicolon
    for token in TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if token.group("include"):
            quoted = token.group("quoted") is not None
            problem = check_include(path, token.group("quoted") if quoted else token.group("angled"), quoted)
            if problem:
                report(token.start(), problem)
        elif kind == "directive":
            pragma_once = pragma_once or re.fullmatch(r"\s*#\s*pragma\s+once\s*", value) is not None
        elif kind == "word":
            statement.append(value)
            if value in LACKING and text[:token.start()].endswith("std::") and path.startswith("sim/") and GROUP.get(room) != "lab" and room != "base":
                report(token.start(), f"std::{value}, which the compiler for browsers lacks, allowed: {LACKING[value]}")
            if header and value == "namespace" and statement[-2:-1] == ["using"] and all(scopes):
                report(token.start(), "using namespace at file scope in a header, allowed: inside a function, or in a .cpp")
        elif kind == "mark":
            if value == "{":
                scopes.append("namespace" in statement[:2] or statement == ["extern"])
            elif value == "}" and scopes:
                scopes.pop()
            statement = []
    if header and not pragma_once:
        report(0, "header without #pragma once")
    return problems


def types_of(text):
    """Classes, structs and enumerations that other files of a program can see: [(qualified name, line)]."""
    found = []
    scopes = []  # a namespace's name, "" for an anonymous one, None for any other brace
    statement = []
    for token in TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if kind == "word" and statement and text[token.start() - 2:token.start()] == "::":
            statement[-1] += "::" + value
        elif kind == "word":
            statement.append(value)
        elif kind == "mark":
            if value == "{":
                if statement[:1] == ["namespace"] or statement[:2] == ["inline", "namespace"]:
                    scopes.append("".join(statement[statement.index("namespace") + 1:]))
                else:
                    words = statement[1:] if statement[:1] == ["enum"] else statement
                    if words[:1] in (["class"], ["struct"]) and len(words) > 1 and all(scopes):
                        found.append(("::".join(scopes + [words[1]]), text.count("\n", 0, token.start()) + 1))
                    scopes.append(None)
            elif value == "}" and scopes:
                scopes.pop()
            statement = []
    return found


def check_types(texts):
    """Types that two files of one program define, as "path:line: message" strings; `texts`: {path: text}. sim/ is a program, and so is each folder of
    tests/ with the headers of tests/ that it includes."""
    programs = {}
    for path in texts:
        folder = path.split("/")[1]
        if path.startswith("sim/"):
            programs.setdefault("sim", set()).add(path)
        elif path.endswith(".cpp"):
            programs.setdefault(folder, set()).add(path)
    for paths in programs.values():
        todo = list(paths)
        while todo:
            for include in TOKEN.finditer(texts[todo.pop()]):
                target = include.group("quoted")
                if target and target.startswith("tests/") and target in texts and target not in paths:
                    paths.add(target)
                    todo.append(target)
    problems = []
    for paths in programs.values():
        first = {}
        for path in sorted(paths):
            for name, line in types_of(texts[path]):
                other = first.setdefault(name, path)
                if other != path:
                    problems.append(f"{path}:{line}: {name} is defined in {other} as well, allowed: one type of a name in a program")
    return sorted(set(problems))


def check_order(groups):
    """Rooms of the table that may include a room below them."""
    order = [room for rooms in groups.values() for room in rooms]
    return [f"scripts/check_includes.py:1: {room} may include {entry}, which is below it, allowed: rooms above it"
            for rooms in groups.values() for room, allowed in rooms.items() for entry in allowed
            if order.index(entry.split("/")[0]) >= order.index(room)]


def unit_of(path):
    """The path without its ending: a header and its .cpp are one unit."""
    stem = path.rsplit(".", 1)[0]
    return SECOND_HEADERS.get(stem, stem)


def check_circles(texts):
    """Units of sim/ that include each other in a circle, as "path:line: message" strings; `texts`: {path: text}."""
    includes = {}  # unit -> {unit that it includes: (path, line, target) of the first such include}
    for path in sorted(texts):
        if not path.startswith("sim/"):
            continue
        own = includes.setdefault(unit_of(path), {})
        for include in TOKEN.finditer(texts[path]):
            target = include.group("quoted")
            if target and target.startswith("sim/") and unit_of(target) != unit_of(path):
                own.setdefault(unit_of(target), (path, texts[path].count("\n", 0, include.start()) + 1, target))

    def way_back(start):
        """The shortest circle from the unit to itself, as a list of units; None if there is none."""
        before, todo = {}, [start]
        while todo:
            unit = todo.pop(0)
            for other in includes.get(unit, {}):
                if other == start:
                    way = [unit]
                    while way[-1] != start:
                        way.append(before[way[-1]])
                    return way[::-1]
                if other not in before:
                    before[other] = unit
                    todo.append(other)
        return None

    problems, told = [], set()
    for unit in includes:
        if unit in told:
            continue
        circle = way_back(unit)
        if circle and not told.intersection(circle):
            path, line, target = includes[circle[0]][circle[1 % len(circle)]]
            names = [inside_group(one) for one in circle + circle[:1]]
            problems.append(f'{path}:{line}: includes "{target}" in a circle of files: {" -> ".join(names)}, allowed: no circle')
        told.update(circle or [])
    return problems


def check_used(texts):
    """Rooms of the table that a room may include and does not include. They are refused because the table is also the map for readers."""
    used = {(room_of(path), room_of(include.group("quoted"))) for path, text in texts.items() if path.startswith("sim/")
            for include in TOKEN.finditer(text) if include.group("quoted")}
    return [f"scripts/check_includes.py:1: sim/{GROUP[room]}/{room} may include {entry} and does not, allowed: what it includes"
            for room, allowed in ALLOWED.items() for entry in allowed if (room, entry.split("/")[0]) not in used]


def self_test():
    once = "#pragma once\n"
    good = [
        ("sim/foundation/base/a.h", once + '#include "sim/foundation/base/b.h"\n#include <vector>\n'),
        ("sim/rounds/families/a.cpp", '#include "sim/foundation/rng/a.h"\n#include "sim/foundation/base/a.h"\n'),
        ("sim/rounds/verify/a.cpp", '#include "sim/rounds/tokens/tree.h"\n#include "sim/foundation/math/a.h"\n'),
        ("sim/rounds/theory/a.cpp", '#include "sim/foundation/math/series.h"\n'),
        ("sim/hardware/placement/a.cpp", '#include "sim/hardware/engine/a.h"\n#include "sim/hardware/latency/a.h"\n#include "sim/rounds/decode/a.h"\n'),
        ("sim/experiments/judge/a.cpp", '#include "sim/rounds/theory/a.h"\n#include "specsim_version.h"\n'),
        ("sim/doors/cli/a.cpp", '#include "sim/experiments/judge/a.h"\nusing namespace std;\n'),
        ("sim/foundation/base/c.cpp", '// #include "sim/doors/cli/a.h"\n/*\n#include "sim/doors/cli/a.h"\n*/\n'
                           'auto s = R"x(\n#include "sim/doors/cli/a.h"\n)x";\n'),
        ("sim/foundation/base/d.h", "// why\n" + once + "namespace a {\ninline void f() { using namespace std; }\n}\n"
                         'inline int n = 1\'000; // using namespace std;\ninline auto t = "using namespace std;";\n'),
        ("tests/unit/a.cpp", '#include "sim/rounds/families/a.h"\n#include <catch2/catch.hpp>\n#include "tests/support/x.h"\n'),
        ("tests/support/x.h", once),
        ("sim/lab/llm/b.cpp", "int x = std::bit_cast<int>(1.0F);\n"),
    ]
    bad = [  # path, text, line, a part of the message
        ("sim/foundation/base/a.cpp", '#include "sim/foundation/rng/a.h"\n', 1, "may include only: base (itself)"),
        ("sim/rounds/verify/a.cpp", '\n\n#include "sim/rounds/families/a.h"\n', 3, "base, rng, math, config, tokens"),
        ("sim/rounds/verify/a.cpp", '#include "sim/rounds/draft/drafter.h"\n', 1, "sim/rounds/verify may include only"),
        ("sim/rounds/theory/a.cpp", '#include "sim/foundation/math/simplex.h"\n', 1, "base, math/series.h"),
        ("sim/rounds/theory/a.cpp", '  #  include <sim/foundation/rng/philox.h>\n', 1, "sim/rounds/theory may include only"),
        ("sim/lab/llm/a.cpp", '#include "sim/rounds/families/a.h"\n', 1, "sim/lab/llm may include only"),
        ("sim/experiments/judge/a.cpp", '#include "sim/lab/llm/a.h"\n', 1, "sim/experiments/judge may include only"),
        ("sim/experiments/judge/a.cpp", '/* x */ int a;\n#include "sim/doors/cli/a.h"\n', 2, "sim/experiments/judge may include only"),
        ("sim/hardware/engine/a.cpp", '#include "sim/foundation/rng/a.h"\n', 1, "sim/hardware/engine may include only: engine (itself), base"),
        ("sim/hardware/placement/a.cpp", '#include "sim/rounds/theory/a.h"\n', 1, "sim/hardware/placement may include only"),
        ("sim/hardware/engine/a.cpp", '#include "sim/hardware/placement/a.h"\n', 1, "sim/hardware/engine may include only"),
        ("sim/foundation/base/a.cpp", '#include "sim/foundation/nowhere/a.h"\n', 1, "sim/foundation/base may include only"),
        ("sim/foundation/base/a.cpp", '#include "sim/rounds/base/a.h"\n', 1, "allowed: sim/GROUP/ROOM/file.h"),
        ("sim/foundation/math/series.h", once + '#include "sim/rounds/families/a.h"\n', 2, "lent to another room"),
        ("sim/foundation/math/series.h", once + '#include "sim/foundation/math/simplex.h"\n', 2, "lent to another room"),
        ("sim/foundation/math/series.h", once + '#include "sim/foundation/rng/a.h"\n', 2, "lent to another room"),
        ("sim/nowhere/base/a.cpp", "", 1, "is in no room"),
        ("sim/foundation/nowhere/a.cpp", "", 1, "is in no room"),
        ("sim/rounds/cost/a.cpp", '#include "sim/doors/cli/a.h"\n', 1, "is in no room"),
        ("sim/foundation/a.cpp", "", 1, "is in no room"),
        ("sim/a.cpp", "", 1, "is in no room"),
        ("sim/foundation/base/a.cpp", '#include "tests/support/x.h"\n', 1, "allowed: no tests"),
        ("sim/foundation/base/a.cpp", '#include <catch2/catch.hpp>\n', 1, "allowed: no tests"),
        ("sim/foundation/base/a.cpp", '#include "error.h"\n', 1, "rooted at the repository"),
        ("sim/foundation/base/a.cpp", '#include "sim/foundation/base/../rng/a.h"\n', 1, 'without ".."'),
        ("sim/foundation/base/a.h", "#ifndef A\n#define A\n#endif\n", 1, "without #pragma once"),
        ("sim/foundation/base/a.h", "// #pragma once\n", 1, "without #pragma once"),
        ("sim/foundation/math/a.cpp", "int x = std::bit_cast<int>(1.0F);\n", 1, "which the compiler for browsers lacks"),
        ("tests/support/x.h", "\n", 1, "without #pragma once"),
        ("sim/foundation/base/a.h", once + "using namespace std;\n", 2, "using namespace"),
        ("sim/foundation/base/a.h", once + "namespace a::b {\nstruct S { int x; };\nusing  namespace\nstd;\n}\n", 4, "using namespace"),
    ]
    failures = []
    for path, text in good:
        for problem in check_text(path, text):
            failures.append(f"refused what is allowed: {problem}")
    for path, text, line, part in bad:
        problems = check_text(path, text)
        if len(problems) != 1 or not problems[0].startswith(f"{path}:{line}: ") or part not in problems[0]:
            failures.append(f"expected {path}:{line}: ...{part}..., got {problems}\n{text}")
    numbers = once + "namespace a::b {\nclass Numbers { int x; };\n}\n"
    one_program = {"tests/support/n.h": numbers, "tests/unit/n.h": numbers, "tests/exact/n.h": numbers}
    apart = {"tests/unit/a.cpp": '#include "tests/unit/n.h"\n', "tests/exact/a.cpp": '#include "tests/exact/n.h"\n',
             "tests/exact/b.cpp": "namespace a::b {\nnamespace {\nclass Numbers {};\n}\nclass Numbers;\n}\n"}
    if check_types({**one_program, **apart}):
        failures.append(f"refused what is allowed: {check_types({**one_program, **apart})}")
    clash = check_types({**one_program, "tests/unit/a.cpp": '#include "tests/unit/n.h"\n',
                         "tests/unit/b.cpp": '#include "tests/support/n.h"\n'})
    if len(clash) != 1 or not clash[0].startswith("tests/unit/n.h:3: a::b::Numbers is defined in tests/support/n.h as well"):
        failures.append(f"expected two types called a::b::Numbers, got {clash}")
    line = {"sim/foundation/base/a.h": '#include "sim/foundation/base/b.h"\n', "sim/foundation/base/a.cpp": '#include "sim/foundation/base/a.h"\n#include "sim/foundation/base/c.h"\n',
            "sim/foundation/base/b.h": '#include "sim/foundation/base/c.h"\n', "sim/foundation/base/c.h": '// #include "sim/foundation/base/a.h"\n'}
    if check_circles(line):
        failures.append(f"refused what is allowed: {check_circles(line)}")
    circle = check_circles({**line, "sim/foundation/base/c.cpp": '#include "sim/foundation/base/c.h"\n#include "sim/foundation/base/a.h"\n'})
    if len(circle) != 1 or not circle[0].startswith('sim/foundation/base/a.cpp:2: includes "sim/foundation/base/c.h" in a circle of files: base/a -> base/c -> base/a'):
        failures.append(f"expected a circle of base/a and base/c, got {circle}")
    every = {f"sim/{GROUP[room]}/{room}/{number}.cpp": f'#include "sim/{GROUP[entry.split("/")[0]]}/{entry}{"" if "/" in entry else "/a.h"}"\n'
             for room, allowed in ALLOWED.items() for number, entry in enumerate(allowed)}
    unused = check_used({**every, "sim/rounds/theory/1.cpp": '// #include "sim/foundation/math/series.h"\n'})
    if check_used(every) or len(unused) != 1 or "sim/rounds/theory may include math/series.h and does not" not in unused[0]:
        failures.append(f"expected one entry of the table that nothing uses, got {check_used(every)} and {unused}")
    upward = check_order({"foundation": {"base": [], "rng": ["math"]}, "rounds": {"math": ["base"]}})
    if check_order(GROUPS) or len(upward) != 1 or "rng may include math, which is below it" not in upward[0]:
        failures.append(f"expected one room that looks up, got {check_order(GROUPS)} and {upward}")
    for failure in failures:
        print(f"self-test: {failure}", file=sys.stderr)
    print(f"{len(good) + len(bad) + 7} cases, {len(failures)} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments:
        print(__doc__, end="")
        return 0 if arguments in (["-h"], ["--help"]) else 2
    root = Path(__file__).resolve().parent.parent
    files = sorted(f for top in ("sim", "tests") for kind in ("*.h", "*.cpp", "*.cu") for f in (root / top).rglob(kind))
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    problems = [problem for path, text in texts.items() for problem in check_text(path, text)] + check_types(texts) + check_circles(texts)
    problems += check_used(texts) + check_order(GROUPS)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
