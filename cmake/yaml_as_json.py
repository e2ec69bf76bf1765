"""Presets for the explorer's page, which parses no YAML: yaml_as_json.py ROOT OUT FILE... writes each YAML file below ROOT as JSON, under the
same name below OUT. Numbers keep their digits."""
import json
import re
import sys
from pathlib import Path

import yaml


def as_json(node):
    """A YAML tree as JSON text."""
    if isinstance(node, yaml.MappingNode):
        return "{" + ",".join(f"{json.dumps(key.value)}:{as_json(value)}" for key, value in node.value) + "}"
    if isinstance(node, yaml.SequenceNode):
        return "[" + ",".join(as_json(value) for value in node.value) + "]"
    text = node.value
    if node.style is not None:
        return json.dumps(text)
    if text in ("true", "false") or re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", text):
        return text
    if text in ("", "~", "null"):
        return "null"
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) and not re.match(r"[-+]?0\d", text):
        return repr(float(text))
    return json.dumps(text)


root, out, *files = sys.argv[1:]
for file in map(Path, files):
    target = out / file.relative_to(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(as_json(yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)))
