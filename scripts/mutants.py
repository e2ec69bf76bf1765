#!/usr/bin/python3
"""Plants one-line mistakes in the sources and asks whether the tests notice them.

    scripts/mutants.py                        about 300 mutants of the rooms below
    scripts/mutants.py --room plan --count 50 one room, with more of its mutants
    scripts/mutants.py --list                 print the mutants; nothing is compiled
    scripts/mutants.py --resume               go on after an interruption: judge only mutants without a verdict
    scripts/mutants.py --again survived       the same, and judge survivors again, after new tests
    scripts/mutants.py --results              write results/mutants/ as well

No mutant has a build of its own. Each chosen site is compiled as `(at(17) ? a >= b : (a > b))`, the test programs are linked once with
these files, and SPECSIM_MUTANT=17 selects a mutant. First, every test case runs without a mutant. It must pass, and it records which
sites it reaches and how much processor time it takes. A mutant is then judged by the cases that reach its site, the quickest first, and
after them by the scripts of its room (ROOMS). It is killed if a test fails, or takes more than ten times its processor time.

scripts/dev/mutants_planted.yaml holds mutants that are always among the chosen ones. scripts/dev/mutants_survivors.yaml lists survivors
with the reason; those that are equivalent to the code are not judged and not counted. The exit status is 0 if at least 90 % of the
mutants of each room are killed and every survivor has a reason. The build in build/ must exist (`scripts/test --mutants` makes it
first). All files are written below build/mutants/; build/mutants/results.csv has a line for each mutant.
"""

import argparse
import collections
import concurrent.futures
import csv
import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent / "dev"))

ROOT = Path(__file__).resolve().parent.parent
PLANTED = ROOT / "scripts/dev/mutants_planted.yaml"
SURVIVORS = ROOT / "scripts/dev/mutants_survivors.yaml"
RESULTS = ROOT / "results/mutants"
LEAST_KILLED = 0.9
SEED = 1

# Room: (number of mutants, scripts that judge mutants that survive all cases of the test programs, the fastest first).
ROOMS = {
    "plan": (40, ["tests/golden/plan_flags_test.py", "tests/cli/plan_batches_test.py", "tests/cli/output_test.py"]),
    "load": (40, ["tests/serve/flags_test.py", "tests/serve/sweep_test.py", "tests/serve/summary_test.py", "tests/serve/disaggregated_test.py"]),
    "judge": (40, ["tests/stat/check_grid_test.py"]),
    "fit": (32, ["tests/cli/fit_tables_test.py"]),
    "arrivals": (24, ["tests/serve/sharing_test.py", "tests/serve/sweep_test.py"]),
    "logs": (28, ["tests/logs/import_test.py"]),
    "serve": (44, ["tests/serve/exact_test.py", "tests/serve/llama_cpp_test.py", "tests/serve/prefix_test.py",
                   "tests/serve/sharing_test.py", "tests/serve/summary_test.py", "tests/serve/disaggregated_test.py",
                   "tests/serve/messages_test.py", "tests/serve/trace_acceptance_test.py", "tests/serve/executed_test.py",
                   "tests/serve/adaptive_verification_test.py"]),
    "report": (20, ["tests/cli/output_test.py", "tests/faults/existing_files_test.py"]),
    "latency": (44, ["tests/cli/output_test.py"]),
}
PROGRAMS = ["unit", "serve", "parts"]  # of tests/; most mutants are killed by their cases
LAST_PROGRAMS = ["placement", "engine", "exact", "llm", "stat"]  # run when neither these nor the room's scripts have detected the mutant
TIERS = [0.1, 1.0, 10.0, 1e9]  # processor seconds of a case: all faster ones run before the next
LONGEST_SCRIPT = 120.0  # processor seconds

HEADER = """#pragma once
namespace specsim_mutants {
extern int chosen;
extern unsigned char* reached;
inline bool at(int number) {
  reached[number] = 1;
  return chosen == number;
}
}
"""
SOURCE = """#include "mutants.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>
namespace specsim_mutants {
namespace {
constexpr int kSites = 1 << 16;
unsigned char nowhere[kSites];
}
int chosen = 0;
unsigned char* reached = nowhere;
__attribute__((constructor(101))) void begin() {
  if (const char* number = std::getenv("SPECSIM_MUTANT")) chosen = std::atoi(number);
  if (const char* file = std::getenv("SPECSIM_MUTANTS_REACHED")) {  // shared by all processes that a script starts
    const int opened = open(file, O_RDWR);
    void* shared = opened < 0 ? MAP_FAILED : mmap(nullptr, kSites, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    if (shared != MAP_FAILED) reached = static_cast<unsigned char*>(shared);
    if (opened >= 0) close(opened);
  }
}
}
"""
SITES = 1 << 16
MOST_OF_A_ROOM = 7000


def stop(message):
    sys.exit(f"mutants: {message}")


def digest(*parts):
    own = hashlib.sha256()
    for part in parts:
        own.update(part if isinstance(part, bytes) else str(part).encode())
        own.update(b"\0")
    return own.hexdigest()


# ---- which mutants ----

Unit = collections.namedtuple("Unit", "room source object command files")


def units_of(build, rooms):
    """The groups of files of these rooms as the build compiles them."""
    compiled = build / "compile_commands.json"
    if not compiled.is_file():
        stop(f"{build} is not built: scripts/build {build.name}")
    units = []
    for entry in json.loads(compiled.read_text()):
        match = re.search(r"/specsim_(?:cold|hot|core)\.dir/Unity/unity_([a-z]+)_\d+_cxx\.cxx$", entry["file"])
        if not match or match.group(1) not in rooms:
            continue
        files = re.findall(r'#include "([^"]+)"', Path(entry["file"]).read_text())
        files = [str(Path(f).relative_to(ROOT)) for f in files]
        units.append(Unit(match.group(1), entry["file"], re.search(r" -o (\S+)", entry["command"]).group(1), entry["command"], files))
    missing = set(rooms) - {u.room for u in units}
    if missing:
        stop(f"the build has no joined files of {', '.join(sorted(missing))}: it takes -DSPECSIM_UNITY=ON")
    return units


def clang_arguments(command):
    words = shlex.split(command)
    keep = []
    for i, word in enumerate(words):
        if word.startswith(("-I", "-D", "-std=")):
            keep.append(word)
        elif word == "-isystem":
            keep += [word, words[i + 1]]
    return keep + ["-Wno-everything"]


def sites_of_room(room, units, work):
    """All sites of a room; parsed again only if a source has changed."""
    from mutant_sites import Site, sites_of
    sources = b"".join((ROOT / f).read_bytes() for u in units for f in u.files)
    key = digest(sources, (ROOT / "scripts/dev/mutant_sites.py").read_bytes())
    kept = work / f"sites_{room}.json"
    if kept.is_file():
        known = json.loads(kept.read_text())
        if known["key"] == key:
            return [Site(*s) for s in known["sites"]]
    sites = [s for u in units for s in sites_of(ROOT, u.files, clang_arguments(u.command))]
    kept.write_text(json.dumps({"key": key, "sites": sites}))
    return sites


def name_of(site):
    return f"{site.file}: {site.function}: {site.before} -> {site.after or '(left out)'}"


def choose(sites, count, seed):
    """A share of every kind of mutant, chosen by a hash of the changed expression, so that changes of other code leave the choice as it is."""
    occurrences = collections.Counter()
    by_kind = collections.defaultdict(list)
    for site in sites:
        occurrences[name_of(site)] += 1
        by_kind[site.kind].append((digest(seed, name_of(site), occurrences[name_of(site)]), site))
    for own in by_kind.values():
        own.sort(key=lambda one: one[0])
    chosen, lines, place = [], set(), 0
    while len(chosen) < count and any(len(own) > place for own in by_kind.values()):
        for kind in sorted(by_kind):
            if place < len(by_kind[kind]) and len(chosen) < count:
                site = by_kind[kind][place][1]
                if (site.file, site.line) not in lines:
                    lines.add((site.file, site.line))
                    chosen.append(site)
        place += 1
    return sorted(chosen, key=lambda s: (s.file, s.line))


def planted(files):
    """The sites of mutants_planted.yaml in these files."""
    from mutant_sites import Site
    sites = []
    for entry in yaml.safe_load(PLANTED.read_text()):
        if entry["file"] not in files:
            continue
        source = (ROOT / entry["file"]).read_bytes()
        at = source.find(entry["line"].encode())
        within = entry["line"].find(entry["before"])
        if at < 0 or within < 0:
            stop(f"mutants_planted.yaml: {entry['file']} has no line {entry['line']!r} with {entry['before']!r}")
        begin = at + len(entry["line"][:within].encode())
        edits = [(begin, begin + len(entry["before"].encode()), entry["after"])]
        line = source.count(b"\n", 0, at) + 1
        sites.append(Site(entry["file"], entry["function"], line, "planted", entry["before"], entry["after"], edits, entry["line"]))
    return sites


# ---- one build with all of them ----

def run(command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def write_changed(path, content):
    """Keeps the time stamp of a file with the same content: ccache keeps nothing that is compiled from files of the current second."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def compile_unit(unit, mutants, build, work):
    """Compiles a group with its mutants; returns mutants that do not compile, and leaves them out."""
    from mutant_sites import instrument
    dropped = set()
    target = work / "objects" / (digest(unit.object)[:8] + "_" + Path(unit.object).name)
    while True:
        lines = ['#include "mutants.h"']
        for file in unit.files:
            own = [(n, s.edits) for n, s in mutants.items() if s.file == file and n not in dropped]
            if not own:
                lines.append(f'#include "{ROOT / file}"')
                continue
            copy = work / "sources" / file
            write_changed(copy, instrument((ROOT / file).read_bytes(), own))
            lines.append(f'#include "{copy}"')
        source = work / "sources" / f"{target.name}.cxx"
        write_changed(source, ("\n".join(lines) + "\n").encode())
        command = unit.command.replace(f" -o {unit.object} ", f" -o {target} ").replace(unit.source, str(source))
        result = run(f"{command} -w -Wno-narrowing -fmax-errors=0 -I{work}", shell=True, cwd=build)
        if result.returncode == 0:
            return target, dropped
        wrong = set()
        for file, line in re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?error:", result.stdout, re.M):
            for number, site in mutants.items():
                near = site.line <= int(line) <= site.line + site.before.count("\n") + 3
                if number not in dropped and file.endswith("sources/" + site.file) and near:
                    wrong.add(number)
        if not wrong:
            stop(f"{unit.source} does not compile with its mutants:\n{result.stdout[:4000]}")
        dropped |= wrong


def link(build, work, objects, programs):
    """Links the library and the programs with these objects in place of the build's own. `objects`: the build's -> the mutants'."""
    def last_command(target):
        result = run(["ninja", "-C", str(build), "-t", "commands", target])
        if result.returncode:
            return None
        return result.stdout.strip().splitlines()[-1]
    extra = work / "objects/mutants.o"
    (work / "mutants.cpp").write_text(SOURCE)
    if run(["c++", "-O1", "-fPIC", "-c", str(work / "mutants.cpp"), "-o", str(extra)]).returncode:
        stop("mutants.cpp does not compile")
    archive = work / "libspecsim.a"
    command = last_command("libspecsim.a")
    members = re.search(r"\bar qc libspecsim\.a\s+(.*?)\s+&&", command).group(1).split()
    archive.unlink(missing_ok=True)
    members = [str(objects.get(m, m)) for m in members] + [str(extra)]
    if run(["ar", "qc", str(archive), *members], cwd=build).returncode or run(["ranlib", str(archive)]).returncode:
        stop("the library with mutants was not put together")
    for program in programs:
        command = last_command(program)
        command = re.sub(r"(?<!\S)libspecsim\.a(?!\S)", str(archive), command)
        command = re.sub(rf"-o {program}(?!\S)", f"-o {work / program}", command)
        result = run(command, shell=True, cwd=build)
        if result.returncode:
            stop(f"{program} was not linked:\n{result.stdout[-2000:]}")


# ---- running tests ----

Test = collections.namedtuple("Test", "program name seconds reached")  # program "" for a script


def execute(command, environment, limit, kept=None):
    """(status, processor seconds, output); status is None if one process used more than `limit` processor seconds."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(["prlimit", f"--cpu={int(limit) + 1}", "--core=0", *command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        output.seek(0)
        text = output.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    if code == -24 or (code == -9 and seconds >= limit):  # SIGXCPU
        code = None
    return code, seconds, text


class Bench:
    """The programs with mutants, and the tests of them."""

    def __init__(self, work, jobs):
        self.work, self.jobs = work, jobs
        (work / "scratch").mkdir(exist_ok=True)

    def environment(self, mutant):
        own = {"SPECSIM": str(self.work / "specsim"), "SPECSIM_MUTANT": str(mutant)}
        for target in ("specsim_tests_engine", "specsim_tests_placement"):
            own[target.upper()] = str(self.work / target)
        return own

    def cases(self, program):
        result = run([str(self.work / program), "--list-test-names-only"], cwd=ROOT)
        names = [line for line in result.stdout.splitlines() if line.strip()]
        hidden = run([str(self.work / program), "--list-test-names-only", "[.]"], cwd=ROOT).stdout.splitlines()
        return [n for n in names if n not in set(hidden)]

    def command(self, program, names):
        # Names in Catch2's syntax: quoted, with its special characters escaped.
        escaped = [re.sub(r'([\\,\[\]"])', r"\\\1", name) for name in names]
        text = "\n".join(escaped) + "\n"
        path = self.work / "scratch" / (digest(program, text)[:24] + ".txt")
        if not path.is_file():
            new = path.with_suffix(f".{threading.get_ident()}")
            new.write_text(text)
            new.rename(path)
        return [str(self.work / program), "--input-file", str(path), "--abort"]

    def reach(self, program, name):
        path = self.work / "scratch" / f"reached.{threading.get_ident()}"
        path.write_bytes(bytes(SITES))
        command = self.command(program, [name]) if program else [sys.executable if name.endswith(".py") else "bash", name]
        status, seconds, text = execute(command, {**self.environment(0), "SPECSIM_MUTANTS_REACHED": str(path)}, 3600)
        reached = [i for i, byte in enumerate(path.read_bytes()) if byte]
        return status, Test(program, name, seconds, reached), text

    def baseline(self, rooms, programs):
        """Runs every test alone, without a mutant; results of an unchanged program are kept."""
        kept = self.work / "baseline.json"
        known = json.loads(kept.read_text()) if kept.is_file() else {}
        library = digest((self.work / "libspecsim.a").read_bytes())
        wanted = []
        for program in programs:
            key = digest((self.work / program).read_bytes())
            if known.get(program, {}).get("key") != key:
                known[program] = {"key": key, "tests": []}
                wanted += [(program, name) for name in self.cases(program)]
        for script in sorted({s for room in rooms for s in ROOMS[room][1]}):
            key = digest(library, (ROOT / script).read_bytes())
            if known.get(script, {}).get("key") != key:
                known[script] = {"key": key, "tests": []}
                wanted.append(("", script))
        failed = []
        reached = collections.defaultdict(list)
        waiting = collections.Counter(program or name for program, name in wanted)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            jobs = [pool.submit(self.reach, *one) for one in wanted]
            for i, job in enumerate(concurrent.futures.as_completed(jobs)):
                status, test, text = job.result()
                if status != 0 or (test.program and "No test cases matched" in text):
                    failed.append(f"{test.program} {test.name}: status {status}\n{text[-1500:]}")
                reached[test.program or test.name].append(test)
                if i % 100 == 99:
                    print(f"  {i + 1} of {len(wanted)} tests without a mutant", flush=True)
                name = test.program or test.name
                if len(reached[name]) == waiting[name] and not failed:  # the whole program is known: kept for the next run
                    known[name]["tests"] = reached[name]
                    kept.write_text(json.dumps({n: k for n, k in known.items() if k["tests"] or not waiting[n]}))
        if failed:
            stop("these fail without a mutant:\n" + "\n".join(failed[:20]))
        return [Test(*t) for name, own in known.items() if name in programs or name.endswith((".py", ".sh")) for t in own["tests"]]

    def judge(self, number, room, tests):
        """(verdict, the test that killed it)."""
        mine = sorted((t for t in tests if number in t.reached_set), key=lambda t: t.seconds)
        first = {f"specsim_tests_{p}" for p in PROGRAMS}
        verdict = self.ask_cases(number, [t for t in mine if t.program in first])
        for test in mine:
            if verdict is None and not test.program and test.name in ROOMS[room][1] and test.seconds <= LONGEST_SCRIPT:
                verdict = self.ask([sys.executable if test.name.endswith(".py") else "bash", test.name], number, test.seconds)
        if verdict is None:
            verdict = self.ask_cases(number, [t for t in mine if t.program and t.program not in first])
        return verdict or (("survived", "") if mine else ("not reached", ""))

    def ask_cases(self, number, cases):
        least = 0.0
        for tier in TIERS:
            by_program = collections.defaultdict(list)
            for case in cases:
                if least <= case.seconds < tier:
                    by_program[case.program].append(case)
            least = tier
            for program, own in sorted(by_program.items(), key=lambda item: sum(t.seconds for t in item[1])):
                verdict = self.ask(self.command(program, [t.name for t in own]), number, sum(t.seconds for t in own))
                if verdict is not None:
                    return verdict
        return None

    def ask(self, command, number, seconds):
        status, _, text = execute(command, self.environment(number), 2 + 10 * seconds)
        own = Path(command[0]).name if len(command) > 2 else command[-1]
        if status is None:
            return "timeout", own
        if status == 0:
            return None
        # The case that failed is named between two rules.
        match = re.search(r"^-{20,}\n(.*?)\n(?:  .*\n)*-{20,}$", text, re.M)
        return "killed", f"{own}: {match.group(1)}" if match else own


# ---- results of earlier runs ----

FIELDS = ["room", "file", "function", "line", "kind", "before", "after", "line_text", "verdict", "by", "reason"]


def key_of(row):
    return tuple(row[f] for f in ("file", "function", "before", "after", "line_text"))


def listed_survivors():
    """(equivalent, reason) of each mutant in mutants_survivors.yaml."""
    listed = {}
    for entry in yaml.safe_load(SURVIVORS.read_text()) or []:
        key = (entry["file"], entry["function"], entry["mutant"], entry["line"])
        listed[key] = bool(entry.get("equivalent")), " ".join(entry["reason"].split())
    return listed


def listed_key(site):
    return site.file, site.function, f"{site.before} -> {site.after or '(left out)'}", site.line_text


def write_results(rows, rooms, seed):
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / "rooms.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["room", "mutants", "equivalent", "killed", "survivors", "killed_share"])
        total = [0, 0, 0, 0]
        for room in rooms:
            figures = summary_of([r for r in rows if r["room"] == room])
            total = [a + b for a, b in zip(total, figures)]
            out.writerow([room, *figures, share(figures)])
        out.writerow(["all", *total, share(total)])
    (RESULTS / "rooms.md").write_text(room_table(rows, rooms))
    with open(RESULTS / "survivors.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["room", "file", "function", "mutant", "equivalent", "reason"])
        for row in rows:
            if row["verdict"] in ("survived", "not reached", "equivalent"):
                mutant = f"{row['before']} -> {row['after'] or '(left out)'}"
                out.writerow([row["room"], row["file"], row["function"], mutant, row["verdict"] == "equivalent", row["reason"]])
    git = lambda *words: run(["git", "-C", str(ROOT), *words]).stdout.strip()
    changed = "-dirty" if git("status", "--porcelain", "sim", "tests", "scripts") else ""
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    lines = [
        f"command: {json.dumps(shlex.join(sys.argv))}",
        f"rooms: [{', '.join(rooms)}]",
        f"seed: {seed}",
        f'commit: "{git("rev-parse", "HEAD")}{changed}"',
        f"machine: {{system: {json.dumps(f'{platform.system()} {platform.machine()}')}, processor: {json.dumps(model.group(1) if model else 'unknown')}, "
        f"cores: {os.cpu_count()}}}",
        f'date: "{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"',
    ]
    (RESULTS / "manifest.yaml").write_text("\n".join(lines) + "\n")


def room_table(rows, rooms):
    lines = ["| room | mutants | equivalent | killed | survivors | killed of those that can be |", "|---|---:|---:|---:|---:|---:|"]
    for room in [*rooms, "all"]:
        figures = summary_of([r for r in rows if room in (r["room"], "all")])
        lines.append(f"| `{room}` | " + " | ".join(map(str, figures)) + f" | {100 * float(share(figures)):.0f} % |")
    return "\n".join(lines) + "\n"


def summary_of(rows):
    verdicts = collections.Counter(r["verdict"] for r in rows)
    return [len(rows), verdicts["equivalent"], verdicts["killed"] + verdicts["timeout"], verdicts["survived"] + verdicts["not reached"]]


def share(figures):
    judged = figures[0] - figures[1]
    return f"{figures[2] / judged:.3f}" if judged else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", choices=list(ROOMS), help="this room alone; may be repeated")
    parser.add_argument("--count", type=int, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=SEED, help=f"which mutants are chosen ({SEED})")
    parser.add_argument("--list", action="store_true", help="print the chosen mutants and stop")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of build/mutants/results.csv")
    parser.add_argument("--again", action="append", default=[], choices=["survived", "killed"], help="as --resume, and judge these again")
    parser.add_argument("--quick", action="store_true", help="do not ask the programs that are asked last")
    parser.add_argument("--results", action="store_true", help="write results/mutants/")
    parser.add_argument("--build", default="build", help="the build whose programs are taken (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    rooms = options.room or list(ROOMS)
    build = ROOT / options.build
    work = build / "mutants"
    for folder in ("objects", "sources"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    write_changed(work / "mutants.h", HEADER.encode())
    units = units_of(build, rooms)
    chosen = {}
    for room in rooms:
        sites = sites_of_room(room, [u for u in units if u.room == room], work)
        mine = choose(sites, options.count or ROOMS[room][0], options.seed)
        mine = planted({f for u in units if u.room == room for f in u.files}) + mine
        first = 1 + MOST_OF_A_ROOM * list(ROOMS).index(room)  # the same numbers for any choice of rooms, so that ccache finds the objects
        chosen.update((first + i, (room, site)) for i, site in enumerate(mine[:MOST_OF_A_ROOM]))
        print(f"{room}: {sum(r == room for r, _ in chosen.values())} of {len(sites)} possible mutants", flush=True)
    if options.list:
        for number, (room, site) in chosen.items():
            print(f"{number:4} {room:9}{site.file}:{site.line} {site.function} [{site.kind}] {site.before} -> {site.after or '(left out)'}")
        return

    objects = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def compiled(unit):
            mine = {n: s for n, (room, s) in chosen.items() if room == unit.room and s.file in unit.files}
            return unit, compile_unit(unit, mine, build, work)
        for unit, (target, dropped) in pool.map(compiled, units):
            objects[unit.object] = target
            for number in dropped:
                print(f"does not compile, left out: {name_of(chosen.pop(number)[1])}")
    programs = [f"specsim_tests_{p}" for p in PROGRAMS + ([] if options.quick else LAST_PROGRAMS)]
    programs = [p for p in programs if (build / p).is_file()] + ["specsim"]
    link(build, work, objects, programs)
    bench = Bench(work, options.jobs)
    tests = bench.baseline(rooms, programs[:-1])
    Reaching = collections.namedtuple("Reaching", "program name seconds reached_set")
    tests = [Reaching(t.program, t.name, t.seconds, set(t.reached)) for t in tests]
    print(f"{len(tests)} tests pass without a mutant, in {sum(t.seconds for t in tests):.0f} processor seconds", flush=True)

    listed = listed_survivors()
    stale = [" ".join(key[1:3]) for key in set(listed) - {listed_key(s) for _, s in chosen.values()} if Path(key[0]).parent.name in rooms]
    if stale and not options.count and options.seed == SEED:
        stop("mutants_survivors.yaml lists what is not among the mutants: " + "; ".join(sorted(stale)))
    path = work / "results.csv"
    known = {}
    if path.is_file() and (options.resume or options.again):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                again = {"survived": "survived", "not reached": "survived", "killed": "killed", "timeout": "killed"}.get(row["verdict"])
                if row["verdict"] != "equivalent" and again not in options.again:
                    known[key_of(row)] = row
    rows = {}
    wanted = []
    for number, (room, site) in chosen.items():
        row = {"room": room, **{f: str(getattr(site, f)) for f in FIELDS[1:8]}}
        equivalent, reason = listed.get(listed_key(site), (False, ""))
        row["reason"] = reason
        if equivalent:
            rows[number] = {**row, "verdict": "equivalent", "by": ""}
        elif key_of(row) in known:
            rows[number] = {**row, **{f: known[key_of(row)][f] for f in ("verdict", "by")}}
        else:
            wanted.append((number, room, row))

    others = []
    if path.is_file():
        with open(path, newline="") as file:
            others = [row for row in csv.DictReader(file) if row["room"] not in rooms]

    def keep():
        new = path.with_suffix(".new")
        with open(new, "w", newline="") as file:
            out = csv.DictWriter(file, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows(others)
            out.writerows(rows[number] for number in sorted(rows))
        new.rename(path)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(bench.judge, number, room, tests): (number, row) for number, room, row in wanted}
        for i, job in enumerate(concurrent.futures.as_completed(jobs)):
            number, row = jobs[job]
            verdict, by = job.result()
            rows[number] = {**row, "verdict": verdict, "by": by}
            keep()
            print(f"[{i + 1}/{len(wanted)}] {verdict}: {name_of(chosen[number][1])}" + (f"  ({by})" if by else ""), flush=True)
    keep()

    good = True
    final = [rows[number] for number in sorted(rows)]
    print(f"\n{'room':10}{'mutants':>8}{'equivalent':>11}{'killed':>7}{'survivors':>10}{'share':>7}")
    for room in rooms:
        figures = summary_of([r for r in final if r["room"] == room])
        print(f"{room:10}{figures[0]:8}{figures[1]:11}{figures[2]:7}{figures[3]:10}{share(figures):>7}")
        if figures[2] < LEAST_KILLED * (figures[0] - figures[1]):
            good = False
    survivors = [(n, r) for n, r in sorted(rows.items()) if r["verdict"] in ("survived", "not reached")]
    for number, row in survivors:
        if row["reason"]:
            continue
        print(f"survivor {number}: {row['file']}:{row['line']} {row['function']} [{row['kind']}, {row['verdict']}] "
              f"{row['before']} -> {row['after'] or '(left out)'}")
    if options.results:
        write_results(final, rooms, options.seed)
    sys.exit(0 if good and all(row["reason"] for _, row in survivors) else 1)


if __name__ == "__main__":
    main()
