#!/usr/bin/python3
"""No text of the registries of drafters, policies and verifiers contains a measured value, because such values go out of date. They belong to
the pages of docs/methods, which scripts/dev/docs_pages.py fills from results/.

Runs at the root of the repository.
"""
import re
import sys
from pathlib import Path

FOLDERS = ["sim/rounds/draft", "sim/rounds/verify"]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FIGURE = re.compile(r"""
    \d \s? %                                                          # a share or a gain in percent
  | \d* \. \d+ (?: \s (?:to|and|against|or) \s \d* \. \d+ )? \s (?:times|x|tokens|accepted|of\ plain)\b   # 2.4 times, .82 to 1.3 times
  | \d \s (?:times|x) \s (?:plain|as\ fast|faster|the\ (?:tokens|speed|throughput))
  | \b (?:speedup|gains?|gave|gained|faster|slower|fewer) \s (?:of|by)? \s? \d* \. \d
  | \b (?:simulated|measured|reported?s?) \b [^"]* \d
  | \b tokens \s (?:a|per) \s round \b [^"]* \d* \. \d
""", re.X | re.I)

# Texts that registries once had, and texts that are allowed.
STALE = ["It pays where a bounded error is allowed: simulated with .5, 2.87 tokens a round against the token verifier's 2.30",
         "simulated, 4.5 % over the best fixed length at batch 1",
         "1.92 to 2.46 times plain decoding for Chinchilla 70B",
         "vLLM reports 19 % more tokens per second in the mean over five data sets",
         "it gave .89 to 1.82 times plain decoding"]
PARAMETERS = ["factor on the draft's probability; 1: the token verifier",
              "added to the threshold for a shorter draft; default: -0.25, but 0 from batch 8 on if tiers are left out too",
              "stops where the path's share of the matches falls below", "tokens drafted per round; 0: plain decoding",
              "drafts at most factor times the match's length, plus offset",
              "with budget: rows, mean number of draft tokens verified per sequence"]


def literals(text):
    """String literals with their lines; literals that the compiler joins count as one. Comments and includes are left out."""
    text = re.sub(r"^\s*(?://|#include).*$", "", text, flags=re.M)
    found, end = [], None
    for match in LITERAL.finditer(text):
        if end is not None and not text[end:match.start()].strip():
            found[-1][1] += match[1]
        else:
            found.append([text.count("\n", 0, match.start()) + 1, match[1]])
        end = match.end()
    return found


def main():
    problems = [f"the test does not find a figure in \"{text}\"" for text in STALE if not FIGURE.search(text)]
    problems += [f"the test takes \"{text}\" for a measured figure" for text in PARAMETERS if FIGURE.search(text)]
    read = 0
    for folder in FOLDERS:
        for path in sorted(Path(folder).glob("*.cpp")):
            for line, text in literals(path.read_text(encoding="utf-8")):
                read += 1
                figure = FIGURE.search(text)
                if figure:
                    problems.append(f"{path}:{line}: \"{figure[0]}\" is a figure in a registry's text, allowed: on its page in docs/methods, from results/")
    if read < 500:
        problems.append(f"{read} texts were read, allowed: at least 500")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{read} texts of registries, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
