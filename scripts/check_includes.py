#!/usr/bin/python3
"""Checks that the arrows between the rooms of sim/ point the way the architecture says.

    scripts/check_includes.py              check sim/, tests/ and scripts/ of this repository
    scripts/check_includes.py --self-test  check that every kind of violation is caught

Refused: an include of a room (or file) that the table below does not allow, and an entry of the table that nothing uses; code in sim/ that
includes tests or Catch2; quoted includes that are not rooted at the repository; headers without #pragma once; `using namespace` at file or
namespace scope in a header; two types of one name in one program, of which the linker would silently take one's functions for both's (types
in anonymous namespaces are their file's own); files of sim/, a header and its .cpp as one, that include each other in a circle; files of
more than 500 lines, C++ or Python; comments behind code that begin with "of", in C++ or Python, as in "60 # of processor time", help texts
of scripts that begin so, and texts in sim/ that begin with "of", "the same for", "by which" or "at which": such a fragment says whose a
value is and leaves out what it is.
"""

import io
import re
import sys
import tempfile
import tokenize
from pathlib import Path

# Room -> what it may include besides itself: "room" for all of a room, "room/file.h" for that file alone. Rooms stand in an order
# from the ground up: each may see only rooms above it in this table.
BASIS = ["base", "rng", "math", "config"]
ALLOWED = {
    "base": [],
    "rng": [],
    "math": ["base"],
    "config": ["base"],
    # Token trees: what drafters make and verifiers judge.
    "tokens": ["base"],
    "families": BASIS,
    "draft": ["base", "math", "config", "tokens"],
    # A verifier may use only what a real server has, the distributions at the drafted positions: never families.
    "verify": BASIS + ["tokens"],
    "cost": ["config", "base", "math/quantiles.h"],
    # The event engine knows nothing of tokens.
    "engine": ["base"],
    "decode": ["base", "rng", "math", "draft", "verify", "families"],
    "placement": ["base", "config", "engine", "cost", "decode", "draft"],
    # An oracle that shares code with the suspect agrees with it.
    "theory": ["base", "math/series.h"],
    # Columns, CSV, tables, intervals, manifests: what every command writes, whatever it is of.
    "report": ["base", "math/quantiles.h", "config"],
    # Logs and metrics of servers to counts of acceptance: for the commands and for the explorer, so of the least.
    "logs": ["base", "math/quantiles.h"],
    # Experiments as values: read once, swept, checked.
    "spec": ["base", "rng", "config", "families", "draft", "verify", "cost", "decode", "placement", "theory"],
    # Cells to counts; journal, shards, resumption.
    "run": ["base", "rng", "engine", "decode", "placement", "spec", "report"],
    # What clients ask of a server: when requests are sent, how long they are.
    "arrivals": ["base", "rng", "config"],
    # A server that they meet: schedulers, paged cache, policies, prices of steps, metrics.
    "serve": BASIS + ["families", "draft", "cost", "placement", "arrivals", "spec", "run", "report"],
    # Servers under load as experiments: read once, swept over loads, judged.
    "load": ["base", "rng", "config", "cost", "engine", "arrivals", "serve", "spec", "plan", "report"],
    # Which theory covers which cell, what it says, and the verdict.
    "judge": ["base", "math", "config", "verify", "decode", "theory", "spec", "run", "report"],
    # Exact enumeration of what production runs.
    "audit": ["base", "families", "verify", "decode", "spec", "report"],
    # Best draft length, rankings, break-even.
    "plan": ["base", "tokens", "families", "cost", "theory", "logs", "spec", "run", "judge", "report"],
    # Context processes from measurements.
    "fit": ["base", "rng", "math", "families", "report"],
    # Real models decode with the verifiers that are simulated, and know no synthetic distribution.
    "llm": BASIS + ["draft", "verify", "cost"],
    # The same models on a GPU, behind the same interface.
    "cuda": ["base", "rng", "math", "llm"],
    # Passes, acceptance and validation of real models.
    "calibrate": BASIS + ["draft", "verify", "cost", "llm", "cuda", "plan", "report"],
    # The library for programs of others: one header.
    "api": ["base", "config", "spec", "run", "judge", "report"],
    # Questions of the page in the browser, as JSON.
    "web": ["base", "math", "config", "families", "verify", "cost", "decode", "theory", "logs", "spec", "run", "judge",
            "audit", "plan", "load"],
    # Options in, one call, print.
    "cli": ["base", "rng", "config", "families", "draft", "verify", "cost", "placement", "theory", "spec", "run",
            "judge", "audit", "plan", "fit", "calibrate", "report", "arrivals", "serve", "load", "logs"],
    # The package for Python: the library and the commands, and rules that it registers.
    "python": ["base", "verify", "api", "cli"],
}

# A single file lent to another room must not carry in what that room may not see: not even its own room's other files.
LENT = {
    "math/quantiles.h": [],
    "math/series.h": ["base"],
}

# A second header of a .cpp, for its tests: one unit with it.
SECOND_HEADERS = {"sim/rng/philox_instructions": "sim/rng/philox"}

GENERATED = {"specsim_version.h"}

LONGEST = 500  # lines of a file

FRAGMENT = re.compile(r'"(of|the same (?:as|at|for|in|of|to|with)|by which|at which)\b ')

OF = 'begins with "of", allowed: what the value is, with its unit'

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
    """The room of "sim/ROOM/..."; None elsewhere."""
    parts = path.split("/")
    return parts[1] if parts[0] == "sim" and len(parts) > 2 else None


def check_include(path, target, quoted):
    """What is wrong with an include of `target` in the file `path`; None if nothing."""
    if not path.startswith("sim/"):
        return None
    if target.startswith("tests/") or target.startswith("catch2/"):
        return f"sim code includes \"{target}\", allowed: no tests"
    if target in GENERATED:
        return None
    if not target.startswith("sim/"):
        if quoted:
            return f"includes \"{target}\", allowed: paths rooted at the repository, such as \"sim/base/error.h\""
        return None
    if ".." in target.split("/"):
        return f"includes \"{target}\", allowed: paths without \"..\""
    room, inside, other = room_of(path), path[len("sim/"):], room_of(target)
    if other is None:
        return f"includes \"{target}\", allowed: sim/ROOM/file.h"
    if inside in LENT:
        allowed, who = LENT[inside], f"sim/{inside} is lent to another room and"
        itself = False
    elif room in ALLOWED:
        allowed, who = ALLOWED[room], f"sim/{room}"
        itself = True
    else:
        return None  # check_text has said so
    if (itself and other == room) or other in allowed or target[len("sim/"):] in allowed:
        return None
    names = ([f"{room} (itself)"] if itself else []) + allowed
    return f"includes \"{target}\", but {who} may include only: {', '.join(names) or 'nothing of sim'}"


def check_length(path, text):
    lines = text.count("\n")
    return [f"{path}:{LONGEST + 1}: {lines} lines, allowed: at most {LONGEST}"] if lines > LONGEST else []


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
    string_end = None  # where the last string literal ended
    for token in TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if token.group("include"):
            quoted = token.group("quoted") is not None
            problem = check_include(path, token.group("quoted") if quoted else token.group("angled"), quoted)
            if problem:
                report(token.start(), problem)
        elif kind == "comment":
            before = text[text.rfind("\n", 0, token.start()) + 1:token.start()]
            if value.startswith("// of ") and before.strip():
                report(token.start(), f"a comment {OF}")
        elif kind == "string":
            continued = string_end is not None and not text[string_end:token.start()].strip()
            fragment = FRAGMENT.match(value)
            if room and fragment and not continued:
                report(token.start(), f'a text begins with "{fragment.group(1)}", allowed: what the value is')
            string_end = token.end()
        elif kind == "directive":
            pragma_once = pragma_once or re.fullmatch(r"\s*#\s*pragma\s+once\s*", value) is not None
        elif kind == "word":
            statement.append(value)
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
    return problems + check_length(path, text)


def check_python(path, text):
    """All violations in one Python file, as "path:line: message" strings."""
    problems = []
    code = set()  # lines that hold more than a comment
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError) as error:
        return [f"{path}:1: is no Python ({error}), allowed: Python"]
    helps = [first.string == "help" and second.string == "=" for first, second in zip(tokens, tokens[1:])]
    for index, token in enumerate(tokens):
        line = token.start[0]
        if token.type == tokenize.COMMENT and line in code and token.string.startswith("# of "):
            problems.append(f"{path}:{line}: a comment {OF}")
        elif token.type == tokenize.STRING and index >= 2 and helps[index - 2] and re.match(r"[\"']of ", token.string):
            problems.append(f"{path}:{line}: a help text {OF}")
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            code.add(token.end[0])
    return problems + check_length(path, text)


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
    """Types that two files of one program define, as "path:line: message" strings; `texts`: {path: text}. sim/ is a program, and
    so is each folder of tests/ with the headers of tests/ that it includes."""
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


def unit_of(path):
    """A header and its .cpp are one unit: the path without its ending."""
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
        """The shortest circle from the unit to itself, as a list of units; None where there is none."""
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
            names = [one[len("sim/"):] for one in circle + circle[:1]]
            problems.append(f'{path}:{line}: includes "{target}" in a circle of files: {" -> ".join(names)}, allowed: no circle')
        told.update(circle or [])
    return problems


def check_used(texts):
    """Rooms of the table that a room may include and does not: the table is the map that people read."""
    used = {(room_of(path), room_of(include.group("quoted"))) for path, text in texts.items() if path.startswith("sim/")
            for include in TOKEN.finditer(text) if include.group("quoted")}
    return [f"scripts/check_includes.py:1: sim/{room} may include {entry} and does not, allowed: what it includes"
            for room, allowed in ALLOWED.items() for entry in allowed if (room, entry.split("/")[0]) not in used]


def python_files(root):
    """{path: text} of the Python in sim/, tests/ and scripts/, by its name or by its first line."""
    found = {}
    for top in ("sim", "tests", "scripts"):
        for file in sorted((root / top).rglob("*")):
            named = file.suffix == ".py"
            if file.is_file() and (named or not file.suffix and top == "scripts"):
                text = file.read_text(encoding="utf-8")
                if named or text.startswith("#!") and "python" in text.split("\n", 1)[0]:
                    found[file.relative_to(root).as_posix()] = text
    return found


def self_test():
    once = "#pragma once\n"
    good = [
        ("sim/base/a.h", once + '#include "sim/base/b.h"\n#include <vector>\n'),
        ("sim/families/a.cpp", '#include "sim/rng/a.h"\n#include "sim/base/a.h"\n'),
        ("sim/verify/a.cpp", '#include "sim/tokens/tree.h"\n#include "sim/math/a.h"\n'),
        ("sim/theory/a.cpp", '#include "sim/math/series.h"\n'),
        ("sim/placement/a.cpp", '#include "sim/engine/a.h"\n#include "sim/cost/a.h"\n#include "sim/decode/a.h"\n'),
        ("sim/judge/a.cpp", '#include "sim/theory/a.h"\n#include "specsim_version.h"\n'),
        ("sim/cli/a.cpp", '#include "sim/judge/a.h"\nusing namespace std;\n'),
        ("sim/base/c.cpp", '// #include "sim/cli/a.h"\n/*\n#include "sim/cli/a.h"\n*/\n'
                           'auto s = R"x(\n#include "sim/cli/a.h"\n)x";\n'),
        ("sim/base/d.h", "// why\n" + once + "namespace a {\ninline void f() { using namespace std; }\n}\n"
                         'inline int n = 1\'000; // using namespace std;\ninline auto t = "using namespace std;";\n'),
        ("tests/unit/a.cpp", '#include "sim/families/a.h"\n#include <catch2/catch.hpp>\n#include "tests/support/x.h"\n'),
        ("tests/support/x.h", once),
        ("sim/base/long.cpp", "\n" * LONGEST),
        ("sim/base/e.cpp", "int a = 0;  // length\n// of what follows, and\n// of what was before\nconst char* b = \"// of \";\n"),
        ("sim/base/f.cpp", 'auto a = "the share "\n"of all; the same for both";\nauto b = "the same tokens", c = "offered ";\n'),
    ]
    bad = [  # path, text, line, a part of the message
        ("sim/base/a.cpp", '#include "sim/rng/a.h"\n', 1, "may include only: base (itself)"),
        ("sim/verify/a.cpp", '\n\n#include "sim/families/a.h"\n', 3, "base, rng, math, config, tokens"),
        ("sim/verify/a.cpp", '#include "sim/draft/drafter.h"\n', 1, "sim/verify may include only"),
        ("sim/theory/a.cpp", '#include "sim/math/simplex.h"\n', 1, "base, math/series.h"),
        ("sim/theory/a.cpp", '  #  include <sim/rng/philox.h>\n', 1, "sim/theory may include only"),
        ("sim/llm/a.cpp", '#include "sim/families/a.h"\n', 1, "sim/llm may include only"),
        ("sim/judge/a.cpp", '#include "sim/llm/a.h"\n', 1, "sim/judge may include only"),
        ("sim/judge/a.cpp", '/* x */ int a;\n#include "sim/cli/a.h"\n', 2, "sim/judge may include only"),
        ("sim/engine/a.cpp", '#include "sim/rng/a.h"\n', 1, "sim/engine may include only: engine (itself), base"),
        ("sim/placement/a.cpp", '#include "sim/theory/a.h"\n', 1, "sim/placement may include only"),
        ("sim/engine/a.cpp", '#include "sim/placement/a.h"\n', 1, "sim/engine may include only"),
        ("sim/base/a.cpp", '#include "sim/nowhere/a.h"\n', 1, "sim/base may include only"),
        ("sim/math/series.h", once + '#include "sim/families/a.h"\n', 2, "lent to another room"),
        ("sim/math/series.h", once + '#include "sim/math/simplex.h"\n', 2, "lent to another room"),
        ("sim/math/series.h", once + '#include "sim/rng/a.h"\n', 2, "lent to another room"),
        ("sim/nowhere/a.cpp", "", 1, "is in no room"),
        ("sim/a.cpp", "", 1, "is in no room"),
        ("sim/base/a.cpp", '#include "tests/support/x.h"\n', 1, "allowed: no tests"),
        ("sim/base/a.cpp", '#include <catch2/catch.hpp>\n', 1, "allowed: no tests"),
        ("sim/base/a.cpp", '#include "error.h"\n', 1, "rooted at the repository"),
        ("sim/base/a.cpp", '#include "sim/base/../rng/a.h"\n', 1, 'without ".."'),
        ("sim/base/a.h", "#ifndef A\n#define A\n#endif\n", 1, "without #pragma once"),
        ("sim/base/a.h", "// #pragma once\n", 1, "without #pragma once"),
        ("tests/support/x.h", "\n", 1, "without #pragma once"),
        ("tests/unit/a.cpp", "\n" * (LONGEST + 1), LONGEST + 1, "lines, allowed: at most 500"),
        ("sim/base/a.h", once + "using namespace std;\n", 2, "using namespace"),
        ("sim/base/a.h", once + "// A length.\nint a = 0;  // of the first\n", 3, "begins with \"of\""),
        ("tests/unit/a.cpp", "int a = 0;\nint b = 0;  // of the first\n", 2, "begins with \"of\""),
        ("sim/base/a.cpp", 'auto a = "share",\n b = "of the first";\n', 2, "a text begins with \"of\""),
        ("sim/base/a.cpp", 'auto a = "the same for the draft";\n', 1, "a text begins with \"the same for\""),
        ("sim/base/a.h", once + "namespace a::b {\nstruct S { int x; };\nusing  namespace\nstd;\n}\n", 4, "using namespace"),
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
    line = {"sim/base/a.h": '#include "sim/base/b.h"\n', "sim/base/a.cpp": '#include "sim/base/a.h"\n#include "sim/base/c.h"\n',
            "sim/base/b.h": '#include "sim/base/c.h"\n', "sim/base/c.h": '// #include "sim/base/a.h"\n'}
    if check_circles(line):
        failures.append(f"refused what is allowed: {check_circles(line)}")
    circle = check_circles({**line, "sim/base/c.cpp": '#include "sim/base/c.h"\n#include "sim/base/a.h"\n'})
    if len(circle) != 1 or not circle[0].startswith('sim/base/a.cpp:2: includes "sim/base/c.h" in a circle of files: base/a -> base/c -> base/a'):
        failures.append(f"expected a circle of base/a and base/c, got {circle}")
    every = {f"sim/{room}/{number}.cpp": f'#include "sim/{entry}{"" if "/" in entry else "/a.h"}"\n'
             for room, allowed in ALLOWED.items() for number, entry in enumerate(allowed)}
    unused = check_used({**every, "sim/theory/1.cpp": '// #include "sim/math/series.h"\n'})
    if check_used(every) or len(unused) != 1 or "sim/theory may include math/series.h and does not" not in unused[0]:
        failures.append(f"expected one entry of the table that nothing uses, got {check_used(every)} and {unused}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in (("scripts/a", "#!/usr/bin/python3\n"), ("scripts/b", "#!/bin/bash\n"), ("tests/c.py", "\n" * (LONGEST + 1))):
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        python = python_files(root)
        long = [problem for path, text in python.items() for problem in check_python(path, text)]
        if sorted(python) != ["scripts/a", "tests/c.py"] or len(long) != 1 or not long[0].startswith(f"tests/c.py:{LONGEST + 1}: "):
            failures.append(f"expected tests/c.py alone to be too long, got {long} of {sorted(python)}")
    fine = 'A = 1  # length\n# of what follows\nB = "  # of "\nadd("x", help="share "\n    "of all")\nc = "of all"\n'
    fragments = check_python("scripts/a.py", fine + 'D = (1,  # of processor time\n     2)\nadd("--name", help="of the jobs")\n')
    if check_python("scripts/a.py", fine) or [problem.split(", allowed")[0] for problem in fragments] != [
            'scripts/a.py:7: a comment begins with "of"', 'scripts/a.py:9: a help text begins with "of"']:
        failures.append(f"expected a comment and a help text that begin with \"of\", got {check_python('scripts/a.py', fine)} and {fragments}")
    for failure in failures:
        print(f"self-test: {failure}", file=sys.stderr)
    print(f"{len(good) + len(bad) + 8} cases, {len(failures)} failures")
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
    problems += check_used(texts)
    scripts = python_files(root)
    problems += [problem for path, text in scripts.items() for problem in check_python(path, text)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(files) + len(scripts)} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
