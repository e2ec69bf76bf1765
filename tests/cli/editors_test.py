#!/usr/bin/python3
"""specsim schema with every good and bad config; completion in a real bash; the manual page; specsim init --ask.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, "tests/support")
from program import SPECSIM, expect, finish, run  # noqa: E402

PRESETS = ("hardware", "models", "engines", "acceptance", "kernels")


# ---- the schema

class Loader(yaml.SafeLoader):
    """YAML 1.2's numbers, as the program and editors read them: 1e6 is one."""


Loader.yaml_implicit_resolvers = {key: [pair for pair in pairs if pair[0] not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float")]
                                  for key, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$|^[-+]?\.(inf|nan)$"), list("-+0123456789."))


def is_type(value, name):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"object": isinstance(value, dict), "array": isinstance(value, list), "string": isinstance(value, str), "boolean": isinstance(value, bool),
            "number": number, "integer": number and float(value) == int(value) if number and abs(value) < float("inf") and value == value else False}[name]


def faults(value, schema, path=""):
    """Lists the JSON Schema draft 7 features that `specsim schema` uses wrongly; an empty list means none."""
    known = {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "properties", "required", "additionalProperties",
             "propertyNames", "items", "anyOf", "allOf", "if", "then", "else", "description", "default", "$schema", "$id", "title", "$comment"}
    if set(schema) - known:
        return [f"{path}: the schema has {set(schema) - known}"]
    found = []
    types = schema.get("type")
    if types and not any(is_type(value, one) for one in (types if isinstance(types, list) else [types])):
        found.append(f"{path}: {value!r} is no {types}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum'][:3]}...")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r}")
    if is_type(value, "number"):
        for key, holds in (("minimum", lambda x: value >= x), ("maximum", lambda x: value <= x), ("exclusiveMinimum", lambda x: value > x),
                           ("exclusiveMaximum", lambda x: value < x)):
            if key in schema and not holds(schema[key]):
                found.append(f"{path}: {value} against {key} {schema[key]}")
    if isinstance(value, dict):
        found += [f"{path}: no {key}" for key in schema.get("required", []) if key not in value]
        for key, inner in value.items():
            if key in schema.get("properties", {}):
                found += faults(inner, schema["properties"][key], f"{path}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{path}: unknown key {key}")
            if "propertyNames" in schema:
                found += faults(key, schema["propertyNames"], path)
    if isinstance(value, list) and "items" in schema:
        for i, inner in enumerate(value):
            found += faults(inner, schema["items"], f"{path}[{i}]")
    if "anyOf" in schema:
        tried = [faults(value, one, path) for one in schema["anyOf"]]
        if all(tried):
            found += min(tried, key=len)
    for one in schema.get("allOf", []):
        found += faults(value, one, path)
    if "if" in schema:
        found += faults(value, schema.get("else" if faults(value, schema["if"], path) else "then", {}), path)
    return found


status, text, error = run("schema")
expect(f"schema: {status} {error}", status == 0)
SCHEMA = json.loads(text)
configs = [path for path in [*Path("configs").rglob("*.yaml"), *Path("tests/config/good").rglob("*.yaml")]
           if not (path.parts[0] == "configs" and path.parts[1] in PRESETS)]
expect("there are configs", len(configs) > 50)
taken = 0
for path in configs:
    config = yaml.load(path.read_text(), Loader)
    if not isinstance(config, dict) or "experiment" not in config:
        continue
    taken += 1
    found = faults(config, SCHEMA)
    expect(f"{path}: {found[:3]}", not found)
expect(f"{taken} configs validated with the schema", taken > 50)

# A schema must also refuse bad configs with mistakes that it can see: unknown keys and names, wrong types, numbers outside the range.
sys.path.insert(0, "tests/config")
import bad_test  # noqa: E402

seen, missed, cases = 0, [], 0
SAYS = re.compile(r"unknown (key|family|transform|context process|verifier|drafter|cost model|placement|policy) |, allowed: (an integer|a number) in \[|is a (map|list), allowed|is no number")
for file in sorted(Path("tests/config/bad").glob("*.cases")):
    for case in bad_test.read_cases(file)[1]:
        try:
            config = yaml.load(case.config().decode(), Loader)
        except (yaml.YAMLError, UnicodeDecodeError):
            continue
        if not isinstance(config, dict):
            continue
        cases += 1
        if faults(config, SCHEMA):
            seen += 1
        elif SAYS.search(case.refused) and "sweep" not in config:
            missed.append((file.stem, case.name, case.refused[:100]))
share = seen / max(cases, 1)
print(f"schema: {taken} configs taken, {seen} of {cases} bad ones refused ({share:.0%}), {len(missed)} missed of those that a schema could see")
# The remaining ones are inside sections that a part reads on its own (states, nested distributions, values of a GPU), or spellings of a number that
# only YAML distinguishes.
expect(f"bad configs that the schema takes: {missed[:5]}", len(missed) <= 25)
expect("the schema refuses what it refused", seen >= 100)
for mistake in ({"rounds": -5}, {"rouns": 5}, {"seed": "x"}, {"decode": {"drafter": {"kind": "chian", "draft_length": 3}}},
                {"decode": {"drafter": {"kind": "chain", "draft_length": -1}}}, {"decode": {"drafter": {"kind": "chain", "draft_length": 3}, "verifier": "tokn"}},
                {"pair": {"vocab": 4, "target": {"family": "zipf", "exponet": 1}}}, {"cost": {"model": "ratio", "cost_ratio": -1}}):
    config = {**yaml.load(Path("configs/quickstart.yaml").read_text(), Loader), **mistake}
    expect(f"the schema takes {mistake}", faults(config, SCHEMA))
try:
    import jsonschema
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    expect("jsonschema agrees", not list(jsonschema.Draft7Validator(SCHEMA).iter_errors(yaml.load(Path("configs/quickstart.yaml").read_text(), Loader))))
except ImportError:
    pass

# ---- completion, by bash itself
status, script, error = run("completion", "bash")
expect(f"completion bash: {status} {error}", status == 0)


def completed(*words):
    driver = script + f"\nCOMP_WORDS=(specsim {' '.join(repr(word) for word in words)}); COMP_CWORD={len(words)}; _specsim; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", driver], capture_output=True, text=True)
    expect(f"bash: {done.stderr}", not done.stderr)
    return done.stdout.split()


expect("commands", completed("pl") == ["plan", "plot"])
expect("options", "--hardware" in completed("plan", "--ha"))
expect("names of the registry", "h100-sxm" in completed("plan", "--hardware", "h1") and "none" in completed("plan", "--draft", "no"))
expect("formats", completed("theory", "--format", "j") == ["json"])
expect("parts", "token" in completed("describe", "tok"))
expect("files", "configs/quickstart.yaml" in completed("run", "configs/quick"))
expect("cluster's launchers", completed("cluster", "sl") == ["slurm"])
expect("cluster's configs", completed("cluster", "local:2", "configs/quick") == ["configs/quickstart.yaml"])
expect("help's commands", completed("help", "pl") == ["plan", "plot"])
usage = run("help")[1]
for command in re.findall(r"^  (\w+) +\S", usage.split("\n\n")[2], re.M):
    expect(f"completion of {command}", command in completed(command))
    options = set(re.findall(r"^ +(?:-\w \[ )?--([\w-]+)", run("help", command)[1], re.M))
    offered = {word[2:] for word in completed(command, "--")}
    expect(f"{command}: completion offers {sorted(offered ^ options)} more or less than --help", offered == options)
for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
    status, script_text, error = run("completion", shell)
    expect(f"completion {shell}: {status} {error}", status == 0 and "hardware" in script_text)
    if shutil.which(shell):
        done = subprocess.run(check, input=script_text, capture_output=True, text=True)
        expect(f"{shell}: {done.stderr[:200]}", done.returncode == 0)
if shutil.which("fish"):
    def fish(line):
        driver = 'specsim completion fish | source; complete -C "' + line + '"'
        done = subprocess.run(["fish", "--no-config", "-c", driver], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": f"{Path(SPECSIM).parent}:{os.environ['PATH']}", "HOME": "/nonexistent"})
        return [answer.partition("\t")[0] for answer in done.stdout.splitlines()]
    for line, wanted in (("specsim pl", ["plan", "plot"]), ("specsim help pl", ["plan", "plot"]), ("specsim theory --format j", ["json"]),
                         ("specsim cluster local:2 configs/quicks", ["configs/quickstart.yaml"]), ("specsim cluster sl", ["slurm"])):
        expect(f"fish: {line}: {fish(line)}", Path(SPECSIM).name != "specsim" or fish(line) == wanted)
if shutil.which("zsh"):
    # A separate zsh in a pseudo-terminal, in which Tab is pressed.
    typed = ("specsim help plo", "specsim cluster sl", "specsim cluster local:2 configs/quicks", "specsim theory --format js", "specsim describe top_k_m")
    # Each line waits for the prompt, because before it the terminal takes a Tab for text.
    waits = "zpty -r z seen '*GO>*'; print -r -- $seen\n"
    keys = "".join(f"{waits}zpty -w -n z '{line}'$'\\t'; zpty -w -n z $' #\\n'\n" for line in typed)
    driver = ("zmodload zsh/zpty; zpty z zsh -f -i\nzpty -w z 'autoload -Uz compinit; compinit -D -u; eval \"$(specsim completion zsh)\"; "
              "setopt interactivecomments; PS1=G; PS1+=O\\>'\n" + keys + waits)
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(["zsh", "-f", "-c", driver], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              env={**os.environ, "PATH": f"{Path(SPECSIM).parent}:{os.environ['PATH']}", "HOME": home})
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout)
    for wanted in ("help plot", "cluster slurm", "cluster local:2 configs/quickstart.yaml", "--format json", "describe top_k_match"):
        expect(f"zsh: no {wanted!r} in {shown[-1500:]!r}", Path(SPECSIM).name != "specsim" or wanted in shown)
status, _, error = run("completion", "fihs")
expect(f"unknown shell: {error}", status == 2 and error == 'unknown shell "fihs", did you mean "fish"? allowed: bash, zsh, fish\n')
expect("no shell", run("completion")[0] == 2)

# ---- the manual page
status, page, error = run("man")
expect(f"man: {status} {error}", status == 0 and page.startswith(".TH SPECSIM 1"))
for word in ("specsim plan", "\\-\\-hardware", "EXIT STATUS"):
    expect(f"man lacks {word}", word.replace(" ", " ") in page or word.replace("-", "\\-") in page)
if shutil.which("groff"):
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    expect(f"groff: {done.stderr[:300]}", done.returncode == 0 and not done.stderr and "--hardware" in done.stdout)

# ---- init
with tempfile.TemporaryDirectory() as folder:
    status, said, error = run("init", "--ask", cwd=folder, input="rtx-4090\n\nnone\n")
    expect(f"init --ask: {status} {error}", status == 0 and "wrote experiment.yaml" in said)
    config = Path(folder) / "experiment.yaml"
    read = yaml.load(config.read_text(), Loader)
    expect("init's answers", read["cost"]["hardware"] == "rtx-4090" and read["cost"]["target"] == "llama-3.1-8b" and read["cost"]["draft"] == "none")
    expect("init's comments", config.read_text().count("#") > 6)
    expect("init's schema", not faults(read, SCHEMA))
    status, _, error = run("check", config, "--set", "rounds=20000")
    expect(f"check of init's config: {status} {error}", status in (0, 3))
    status, _, error = run("plan", config)
    expect(f"plan of init's config: {status} {error}", status == 0)
    status, _, error = run("init", "--ask", cwd=folder, input="\n\n\n")
    expect("init over a config", status == 2 and "experiment.yaml: exists already" in error)
    status, _, error = run("init", "--ask", "--force", cwd=folder, input="h100\n\n\n")
    expect(f"init with an unknown GPU: {error}", status == 2 and 'standard input: "h100" is none of them' in error)
    status, _, error = run("init", "--ask", "--force", cwd=folder, input="\n")
    expect(f"init without answers: {error}", status == 2 and "it ended before an answer" in error)

finish()
