#!/usr/bin/python3
"""Checks the documentation's links: README.md, the other pages at the root, docs/, results/notes/.

usage: scripts/dev/check_links.py              relative links, anchors, named paths, lengths of lines
       scripts/dev/check_links.py --site DIR   links and anchors of the pages that scripts/docs made
       scripts/dev/check_links.py --self-test  every kind of fault is found

A link must lead to a file (a folder has no page in the site) and an anchor to a heading, under the name that both GitHub and mkdocs give
it. A path of this repository in `code` must exist. Every page of docs/ can be reached from README.md. README.md stays below 14,000 bytes
and lines outside tables and code below 161 characters.
"""
import html.parser
import re
import sys
import tempfile
from pathlib import Path

TOP = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
README_BYTES = 14000
LINE = 160
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
NAMED = re.compile(r"`((?:sim|scripts|configs|results|tests|docs|cmake)/[\w./-]*[\w/])`")


def pages(root):
    return [root / name for name in TOP if (root / name).exists()] + sorted((root / "docs").rglob("*.md")) + sorted((root / "results" / "notes").glob("*.md"))


def prose(text):
    """The page without code blocks and comments; lines keep their numbers."""
    def blank(found):
        return "\n" * found[0].count("\n")
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", blank, text, flags=re.S | re.M)
    return re.sub(r"<!--.*?-->", blank, text, flags=re.S)


def own(text):
    """The page without the blocks that scripts/dev/docs_pages.py fills."""
    return re.sub(r"^<!-- (?:include|table|output|code):.*?^<!-- end -->$", lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M)


def without_code(text):
    return re.sub(r"`[^`\n]*`", lambda found: "`" + "x" * (len(found[0]) - 2) + "`", text)


def links(root, page):
    """(line, file, anchor) of each link that is not of another site; the file is None for an anchor of the same page."""
    text = without_code(prose(page.read_text()))
    for found in LINK.finditer(text):
        target = found["target"]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        yield 1 + text.count("\n", 0, found.start()), (page.parent / path).resolve() if path else None, anchor


def slugs(page):
    """The anchors of a page's headings, as GitHub names them and as mkdocs does."""
    github, site, seen, numbered = set(), set(), {}, {}
    for title in re.findall(r"^#{1,6} +(.*?)(?: +#+)?$", prose(page.read_text()), re.M):
        title = LINK.sub(lambda found: found["text"], title).replace("`", "").replace("*", "")
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        github.add(f"{name}-{count}" if count else name)
        name = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
        count = numbered.get(name, 0)
        numbered[name] = count + 1
        site.add(f"{name}_{count}" if count else name)
    return github, site


def check(root):
    problems, reached, anchors = [], {root / "README.md"}, {}
    every = pages(root)
    onward = {}
    for page in every:
        name = page.relative_to(root)
        text = page.read_text()
        onward[page] = set()
        for number, target, anchor in links(root, page):
            place = target or page
            if not place.exists():
                problems.append(f"{name}:{number}: a link to {place}, which is not there")
            elif place.is_dir():
                problems.append(f"{name}:{number}: a link to the folder {place}, which has no page in the site")
            elif root not in place.parents:
                problems.append(f"{name}:{number}: a link to {place}, outside the repository")
            elif anchor:
                github, site = anchors.setdefault(place, slugs(place))
                if anchor not in github & site:
                    problems.append(f"{name}:{number}: no heading of {place.relative_to(root)} has the anchor #{anchor} on GitHub and in the site")
            onward[page].add(place)
        table = re.compile(r"^\s*\|")
        for number, line in enumerate((text if page.name == "README.md" else prose(own(text))).splitlines(), 1):
            if line.startswith("<!-- value"):
                problems.append(f"{name}:{number}: a comment at a line's beginning ends the paragraph")
            if page.parent == root / "docs" / "methods" or page.name == "reference.md" or table.match(line):
                continue
            if len(line) > LINE:
                problems.append(f"{name}:{number}: {len(line)} characters, allowed: at most {LINE}")
        for number, line in enumerate(re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.S).splitlines(), 1):
            for path in NAMED.findall(line):
                if not (root / path).exists():
                    problems.append(f"{name}:{number}: names {path}, which is not there")
    readme = root / "README.md"
    if len(readme.read_bytes()) > README_BYTES:
        problems.append(f"README.md has {len(readme.read_bytes())} bytes, allowed: at most {README_BYTES}")
    todo = [readme]
    while todo:
        for page in onward.get(todo.pop(), ()):
            if page not in reached:
                reached.add(page)
                todo.append(page)
    problems += [f"{page.relative_to(root)}: no way leads here from README.md" for page in every if page not in reached]
    return problems


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.targets.append(attributes[name])


def check_site(site):
    problems = []
    made = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in made.items():
        if path.name == "404.html":  # links of the 404 page count from the server's root
            continue
        for target in page.targets:
            if re.match(r"(?:[a-z]+:|//)", target):
                continue
            there, _, anchor = target.partition("#")
            place = (path.parent / there.partition("?")[0]).resolve() if there else path
            if place.is_dir():
                place /= "index.html"
            if not place.exists():
                problems.append(f"{path.relative_to(site)}: a link to {target}, which is not there")
            elif anchor and place in made and anchor not in made[place].ids and anchor != "__skip":
                problems.append(f"{path.relative_to(site)}: {target} names no anchor")
    return problems


def self_test():
    """Each fault in its own page; the page without faults has no problem."""
    faults = {
        "[a](docs/missing.md)": "which is not there", "[a](docs)": "has no page", "[a](docs/a.md#no-such)": "has the anchor", "x" * 161: "characters",
        "`sim/nowhere/file.h`": "names sim/nowhere/file.h", "y " * 7001: "bytes", "[a](../outside.md)": "outside the repository",
    }
    wrong = []
    for fault, words in {"": "", **faults}.items():
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch) / "tree"
            (root / "docs").mkdir(parents=True)
            (root / "docs" / "a.md").write_text("# A\n\n## One `two`: three\n")
            (Path(scratch) / "outside.md").write_text("")
            (root / "README.md").write_text(f"# R\n\n[a](docs/a.md#one-two-three)\n\n{fault}\n")
            problems = check(root)
            if (not fault and problems) or (fault and not any(words in problem for problem in problems)):
                wrong.append(f"{fault[:40]!r}: {problems}")
            (root / "docs" / "b.md").write_text("# B\n")
            if not fault and not any("no way leads" in problem for problem in check(root)):
                wrong.append("a page that nothing leads to is not found")
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "index.html").write_text('<a href="gone.html">a</a><a href="#no">b</a><a href="#yes">c</a><p id="yes">')
        if len(check_site(Path(scratch))) != 2:
            wrong.append(f"site: {check_site(Path(scratch))}")
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems = self_test()
    elif len(sys.argv) == 3 and sys.argv[1] == "--site":
        problems = check_site(Path(sys.argv[2]).resolve())
    elif len(sys.argv) == 1:
        problems = check(Path(__file__).resolve().parents[2])
    else:
        sys.exit(__doc__)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
