#!/usr/bin/python3
"""Records prompt lookup over words of text files: for each position, the accepted number of words of a draft of 10.

usage: tests/data/acceptance/make_lookup.py OUT.jsonl FILE...

Each request is one file: the prompt is the file before it in its folder, the output its first 350 words, from a target that is certain of the
text. The draft is the continuation of the latest earlier place of the last three words, or of the last two. lookup_prefixes.jsonl is
every other one of `git ls-files 'configs/*.yaml' 'docs/methods/*.md' 'sim/**/*.h' 'tests/*/*_test.cpp'`, sorted, at 66dee13.
"""
import json
import os
import re
import sys

DRAFT = 10
WRITTEN = 350
BEFORE = 2000
MATCHED = (3, 2)


def accepted_of(before, written):
    text = before + written
    places = {n: {} for n in MATCHED}
    accepted = []
    for at in range(len(text) - DRAFT):
        if at >= len(before):
            found = next((places[n][tuple(text[at - n:at])] for n in MATCHED if tuple(text[at - n:at]) in places[n]), None)
            length = 0
            while found is not None and length < DRAFT and found + length < at and text[found + length] == text[at + length]:
                length += 1
            accepted.append(length)
        for n in MATCHED:
            if at >= n:
                places[n][tuple(text[at - n:at])] = at
    return accepted


def main():
    out, *files = sys.argv[1:]
    last = {}
    requests = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            words = re.findall(r"\w+|\s+|[^\w\s]", file.read())
        before = last.get(os.path.dirname(name))
        last[os.path.dirname(name)] = words
        if before and len(words) >= 250:
            requests.append(accepted_of(before[:BEFORE], words[:WRITTEN]))
    with open(out, "w", encoding="utf-8") as file:
        for i, accepted in enumerate(requests):
            file.write(json.dumps({"request": i, "draft_length": DRAFT, "accepted": accepted}, separators=(",", ":")) + "\n")


main()
