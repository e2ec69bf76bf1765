#!/usr/bin/python3
"""specsim reference --format json, llms.txt and the tool definition of docs/output.md against the program.

Runs at the root of the repository; SPECSIM names the program. --update rewrites the commands of llms.txt.
"""
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

TYPES = {"flag", "text", "word", "number", "integer", "numbers", "integers"}


def fits(value, schema):
    """Whether a value fits what of JSON Schema the reference uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(isinstance(value, kinds[one]) for one in wanted):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, dict):
        return set(schema.get("required", [])) <= set(value) and all(fits(value[key], below) for key, below in schema.get("properties", {}).items() if key in value)
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {})) for one in value)
    return schema.get("minimum", value) <= value <= schema.get("maximum", value) if isinstance(value, int) and not isinstance(value, bool) else True


status, text, error = run("reference", "--format", "json")
expect(f"reference: {status} {error}", status == 0)
reference = json.loads(text)
expect("schema", reference["schema"] == "specsim-reference/1")
commands = {command["name"]: command for command in reference["commands"]}
usage = dict(re.findall(r"^  (\S+) +(.+)$", run("help")[1].split("\n\n")[2], re.MULTILINE))
expect(f"commands {sorted(set(usage) ^ set(commands))}", {name: one["summary"] for name, one in commands.items()} == usage)
for name, command in commands.items():
    shown = run(name, "--help")[1]
    names = set(re.findall(r"^  (?:-h \[ )?(--[a-z-]+)", shown, re.MULTILINE))
    expect(f"{name}: {names ^ {one['name'] for one in command['options']}}", names == {one["name"] for one in command["options"]})
    for option in command["options"]:
        expect(f"{name} {option}", option["type"] in TYPES and option["help"])
        if option["type"] == "flag":
            expect(f"{name} {option['name']} takes a value", not re.search(rf"^  (-h \[ )?{option['name']}( \])? arg", shown, re.MULTILINE))
        elif option["default"] is not None:
            number = isinstance(option["default"], (int, float))
            found = re.search(rf"^  {option['name']} arg \(=(.*?)\)", shown, re.MULTILINE)
            expect(f"{name} {option['name']}: default {option['default']}",
                   found and (float(found.group(1)) == option["default"] if number else found.group(1) == option["default"]))
            if number and "minimum" in option:
                expect(f"{name} {option['name']}: default below the minimum", option["default"] >= option["minimum"])
plan = {option["name"]: option for option in commands["plan"]["options"]}
expect("types of plan", (plan["--alpha"]["type"], plan["--longest"]["type"], plan["--batch"]["type"], plan["--verbose"]["type"]) == ("number", "integer", "integers", "flag"))
expect("limits of plan", (plan["--longest"]["minimum"], plan["--tensor-parallel"]["minimum"]) == (1, 1))
expect("integers of plan", (plan["--tensor-parallel"]["type"], plan["--draft-tensor-parallel"]["type"]) == ("integer", "integer"))
# Values that plan assumes, as its line ASSUMED prints them.
assumed = dict(re.findall(r"(--\S+) (\S+)", re.search(r"^ASSUMED \(defaults\): (.*)$", run("plan", "--alpha", "0.7")[1], re.MULTILINE).group(1)))
expect(f"defaults of plan {assumed}", len(assumed) == 4 and all(str(plan[name]["default"]) == value for name, value in assumed.items()))
# Options that are marked as required are those that the command asks for, and no others.
for name, needed in (("pass", {"--hardware", "--model"}), ("choose", {"--target", "--hardware"}), ("merge", {"--out"}), ("kernels", {"--out"}), ("plan", set())):
    expect(f"{name}: required", {one["name"] for one in commands[name]["options"] if one.get("required")} == needed)
    if needed:
        expect(f"{name}: {run(name, 'x')[2]}", run(name, *(["x"] if name in ("merge", "kernels") else []))[2].strip().split(" needs ")[1].split(";")[0] in needed)
# Every form that the reference lists for a command is one that it takes.
for name in ("cluster", "plot", "plan"):
    allowed = next(one["allowed"] for one in commands[name]["options"] if one["name"] == "--format")
    expect(f"{name}: json", ("json" in allowed) == ('--format: "json", allowed' not in run(name, "x", "--format", "json")[2]))
expect("names of plan", {"h100-sxm", "rtx-3090"} <= set(plan["--hardware"]["names"]))

# The output of commands fits the schema; an object without its tables must not.
OPTIONS = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7"]
for words in (["theory", "--alpha", "0.8", "--draft-length", "4", "--cost-ratio", "0.05"], ["plan", *OPTIONS, "--longest", "4"], ["list", "verifier"]):
    status, text, error = run(*words, "--format", "json")
    expect(f"{words}: {status} {error}", status == 0)
    answer = json.loads(text)
    expect(f"{words}: does not match the schema", fits(answer, reference["output_schema"]))
    del answer["tables"]
    expect(f"{words}: the schema allows no tables", not fits(answer, reference["output_schema"]))
expect("files", {"name", "unit", "meaning"} == set(next(iter(reference["files"].values()))[0]))

# llms.txt
index = Path("llms.txt")
page = index.read_text(encoding="utf-8")
wanted = "\n".join(f"- `specsim {name}`: {one['summary']}" for name, one in commands.items())
if "--update" in sys.argv:
    page = re.sub(r"(?<=## Commands\n\n).*?(?=\n\n## )", lambda _: wanted, page, flags=re.DOTALL)
    index.write_text(page, encoding="utf-8")
expect("llms.txt: its commands are not the program's; tests/cli/command_reference_test.py --update rewrites them", f"## Commands\n\n{wanted}\n\n" in page)
for path in re.findall(r"\]\(([^)]+)\)", page):
    expect(f"llms.txt: {path} is not there", Path(path).is_file())

# The tool definition: its properties are options of plan, and the command that it stands for runs.
tool = json.loads(re.search(r"```json\n(\{\"name\": \"specsim_plan\".*?)\n```", Path("docs/output.md").read_text(encoding="utf-8"), re.DOTALL).group(1))
for name, prop in tool["input_schema"]["properties"].items():
    expect(f"tool: {name}", prop["type"] == {"text": "string", "number": "number", "integers": "integer"}[plan[f"--{name}"]["type"]])
expect("tool: required", set(tool["input_schema"]["required"]) <= {word[2:] for word in OPTIONS if word.startswith("--")})

finish()
