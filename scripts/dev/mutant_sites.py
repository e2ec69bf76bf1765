"""Places in a room's sources where one line can be changed: scripts/mutants.py chooses from them.

Clang reads each group of files as the build compiles them together, so that extents and types of expressions are exact. Only what
runs is changed: nothing that the compiler needs to know (constexpr, static_assert, case labels, array sizes, template arguments),
no text of a message, no tolerance below 1e-5, no pointer.
"""

import re
from collections import namedtuple

from clang import cindex
from clang.cindex import CursorKind as Kind
from clang.cindex import TypeKind

# `edits`: (begin, end, text of the mutant), in bytes of the file. `before` and `after`: the changed expression.
Site = namedtuple("Site", "file function line kind before after edits line_text")

FLIPPED = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="]}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
COMPOUND = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
OTHER_FUNCTION = {"std::min": "std::max", "std::max": "std::min", "std::floor": "std::ceil", "std::ceil": "std::floor"}
SYMMETRIC = {"min", "max", "hypot", "near", "swap", "gcd", "lcm"}
NO_EFFECT = {"reserve", "shrink_to_fit"}  # a call that affects nothing but speed

FLOATING = {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE}
INTEGRAL = {TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG, TypeKind.CHAR_S,
            TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR, Kind.FUNCTION_TEMPLATE, Kind.CONVERSION_FUNCTION}
LOOPS = {Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT, Kind.CXX_FOR_RANGE_STMT}
DECLARATIONS = {Kind.VAR_DECL, Kind.FIELD_DECL, Kind.PARM_DECL}


def numeric(cursor):
    kind = cursor.type.get_canonical().kind
    return kind in FLOATING or kind in INTEGRAL


def floating(cursor):
    return cursor.type.get_canonical().kind in FLOATING


class Reader:
    def __init__(self, root, rooms_files):
        self.root = root
        self.files = {str(root / f): f for f in rooms_files}
        self.bytes = {path: open(path, "rb").read() for path in self.files}
        self.sites = []

    def read(self, unit):
        for cursor in unit.cursor.get_children():
            place = cursor.location.file
            if place is not None and place.name in self.files:
                self.path = place.name
                self.source = self.bytes[self.path]
                self.walk(cursor, None, "")
        return self.sites

    # ---- source text ----

    def range(self, cursor):
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None or end.file is None or start.file.name != self.path or end.file.name != self.path:
            return None
        return (start.offset, end.offset) if start.offset < end.offset else None

    def text(self, begin, end):
        return self.source[begin:end].decode()

    def text_of(self, cursor):
        span = self.range(cursor)
        return self.text(*span) if span else ""

    def add(self, kind, edits, before, after):
        begin = edits[0][0]
        line = self.source.count(b"\n", 0, begin) + 1
        text = self.source.split(b"\n")[line - 1].decode().strip()
        tidy = lambda t: re.sub(r"\s+", " ", t)
        self.sites.append(Site(self.files[self.path], self.function, line, kind, tidy(before), tidy(after),
                               [(b, e, tidy(t)) for b, e, t in edits], text))

    # ---- the walk ----

    def walk(self, cursor, parent, function):
        kind = cursor.kind
        if kind in (Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL):
            return
        if kind in FUNCTIONS:
            owner = cursor.semantic_parent
            function = cursor.spelling if owner is None or owner.kind in (Kind.NAMESPACE, Kind.TRANSLATION_UNIT) \
                else f"{owner.spelling}::{cursor.spelling}"
        if kind in FUNCTIONS or kind in DECLARATIONS:
            span = self.range(cursor)
            if span is None or re.search(rb"\b(constexpr|consteval|constinit)\b", self.source[span[0]:cursor.location.offset]):
                return
        self.function = function
        self.site(cursor, parent)
        children = list(cursor.get_children())
        if kind == Kind.CASE_STMT:
            children = children[1:]
        if kind == Kind.IF_STMT and self.text_of(cursor).startswith("if constexpr"):
            children = children[1:]
        if kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR, Kind.TYPE_REF, Kind.TEMPLATE_REF):
            children = [c for c in children if c.kind not in (Kind.INTEGER_LITERAL, Kind.CXX_BOOL_LITERAL_EXPR)]
        if kind in DECLARATIONS:  # array sizes and template arguments of the type come before the name or in brackets
            children = [c for c in children if c.extent.start.offset > cursor.location.offset]
        for child in children:
            self.walk(child, cursor, function)
            self.function = function

    def site(self, cursor, parent):
        span = self.range(cursor)
        if span is None:
            return
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.binary(span, *children, parent)
        elif kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR and len(children) == 2:
            operator = self.between(*children)
            other = COMPOUND.get(operator)
            if other and all(map(numeric, children)) and (operator in ("+=", "-=") or floating(children[0])):
                self.replace_operator("assignment", span, *children, other)
        elif kind == Kind.UNARY_OPERATOR and len(children) == 1:
            operand = self.range(children[0])
            if operand and operand[0] > span[0]:
                operator = self.text(span[0], operand[0]).strip()
                inner = self.text(*operand)
                if operator == "-" and numeric(children[0]):
                    self.add("sign", [(*span, f"+({inner})")], self.text(*span), inner)
                elif operator == "!" and numeric_or_bool(children[0]):
                    self.add("negation", [(*span, f"static_cast<bool>({inner})")], self.text(*span), inner)
        elif kind == Kind.INTEGER_LITERAL:
            self.integer(span, parent)
        elif kind == Kind.FLOATING_LITERAL:
            self.number(span)
        elif kind == Kind.CXX_BOOL_LITERAL_EXPR:
            text = self.text(*span)
            if text in ("true", "false"):
                after = "false" if text == "true" else "true"
                self.add("constant", [(*span, after)], text, after)
        elif kind == Kind.DECL_REF_EXPR and re.fullmatch(r"k[A-Z]\w*", self.text(*span)) and numeric(cursor):
            text = self.text(*span)
            if not re.search("Infinite|Never|Unlimited|Unknown", text) and self.source[span[0] - 1:span[0]] not in (b"[", b"<"):
                after = f"({text} * 1.1)" if floating(cursor) else f"({text} + 1)"
                self.add("constant", [(*span, after)], text, after)
        elif kind == Kind.IF_STMT:
            self.condition(span, children)
        elif kind == Kind.CONDITIONAL_OPERATOR and len(children) == 3:
            condition = self.range(children[0])
            if condition and condition[0] == span[0]:
                self.negate(condition)
        elif kind == Kind.CALL_EXPR:
            self.call(cursor, span)
        elif kind == Kind.INIT_LIST_EXPR and self.text(*span).startswith("{"):
            self.swap(children, "{")
        if parent is not None:
            self.statement(cursor, span, parent)

    # ---- the mutants of a site ----

    def between(self, left, right):
        a, b = self.range(left), self.range(right)
        return self.text(a[1], b[0]).strip() if a and b and a[1] <= b[0] else ""

    def replace_operator(self, kind, span, left, right, other):
        a, b = self.range(left), self.range(right)
        if a[0] != span[0] or b[1] != span[1]:
            return
        after = f"{self.text(*a)} {other} {self.text(*b)}"
        self.add(kind, [(*span, after)], self.text(*span), after)

    def binary(self, span, left, right, parent):
        operator = self.between(left, right)
        if not operator or self.range(left)[0] != span[0]:
            return
        if operator in ("&&", "||"):
            self.replace_operator("logic", span, left, right, "||" if operator == "&&" else "&&")
            return
        if not (numeric_or_bool(left) and numeric_or_bool(right)):
            return
        if operator in FLIPPED:
            in_header = parent is not None and parent.kind in LOOPS
            if in_header and ("size()" in self.text(*span) or "end" in self.text(*span)):
                return  # reading beyond a vector's end is undefined
            for other in FLIPPED[operator]:
                if not (in_header and other in ("<", ">") and operator[0] != other):
                    self.replace_operator("comparison", span, left, right, other)
        elif operator in ARITHMETIC and numeric(left) and numeric(right):
            if operator in "+-" or (floating(left) or floating(right)):
                self.replace_operator("arithmetic", span, left, right, ARITHMETIC[operator])

    def integer(self, span, parent):
        text = self.text(*span)
        before = self.source[max(0, span[0] - 2):span[0]].decode(errors="replace").strip()
        if not re.fullmatch(r"\d+", text) or before.endswith("[") or before.endswith("<"):
            return
        if parent is not None and parent.kind in DECLARATIONS and self.source[span[1]:span[1] + 1] == b"]":
            return
        after = str(int(text) + 1)
        self.add("constant", [(*span, after)], text, after)

    def number(self, span):
        text = self.text(*span)
        try:
            value = float.fromhex(text) if text.lower().startswith("0x") else float(text)
        except ValueError:
            return
        if 0 < abs(value) < 1e-5:
            return
        after = "1.0" if value == 0.0 else repr(value * 1.1)
        self.add("constant", [(*span, after)], text, after)

    def condition(self, span, children):
        for child in children:
            if not child.kind.is_expression():
                if child.kind != Kind.DECL_STMT:
                    return
                continue
            own = self.range(child)
            if own is None:
                return
            head = self.text(span[0], own[0])
            if re.fullmatch(r"if\s*\(\s*", head) or re.fullmatch(r"if\s*\([^;]*;\s*", head):
                if "=" not in re.sub(r"[<>=!]=", "", head.split(";")[-1]):
                    self.negate(own)
            return

    def negate(self, span):
        text = self.text(*span)
        self.add("negation", [(*span, f"!static_cast<bool>({text})")], text, f"!({text})")
        begin, end, after = self.sites[-1].edits[0]
        self.sites[-1] = self.sites[-1]._replace(edits=[(begin, end, after, "static_cast<bool>({})")])

    def call(self, cursor, span):
        text = self.text(*span)
        callee = text.split("(")[0].strip()
        plain = re.sub(r"<.*", "", callee)
        if plain in OTHER_FUNCTION:
            after = OTHER_FUNCTION[plain] + text[len(plain):]
            self.add("function", [(*span, after)], text, after)
        if cursor.spelling.startswith("operator") or cursor.spelling in SYMMETRIC:
            return
        self.swap([a for a in cursor.get_arguments() if a is not None], "(")

    def swap(self, arguments, opening):
        for first, second in zip(arguments, arguments[1:]):
            a, b = self.range(first), self.range(second)
            if a is None or b is None or a[1] > b[0] or self.text(a[1], b[0]).strip() != ",":
                continue
            if not (numeric(first) and numeric(second)):
                continue
            if first.type.get_canonical().kind != second.type.get_canonical().kind:
                continue
            x, y = self.text(*a), self.text(*b)
            if re.sub(r"\s", "", x) == re.sub(r"\s", "", y) or "{" in x + y:
                continue
            if re.fullmatch(r"[\d.]+", x) and re.fullmatch(r"[\d.]+", y):
                continue
            self.add("swap", [(*a, y), (*b, x)], f"{x}, {y}", f"{y}, {x}")

    def statement(self, cursor, span, parent):
        if not cursor.kind.is_expression():
            return
        if parent.kind == Kind.COMPOUND_STMT:
            pass
        elif parent.kind == Kind.IF_STMT or parent.kind in LOOPS:
            own = self.range(parent)
            if own is None or own[1] != span[1]:  # the body comes last, and a header's parts do not
                return
            if self.source[span[1]:span[1] + 1] != b";":
                return
        else:
            return
        if self.source[span[1]:span[1] + 20].lstrip()[:1] != b";":
            return
        text = self.text(*span)
        if text.startswith(("throw", "co_", "SPECSIM_")) or not re.search(r"\(|=|\+\+|--", text):
            return
        if re.search(r"(?:\.|->|^)(\w+)\([^()]*\)$", text) and re.search(r"(\w+)\([^()]*\)$", text).group(1) in NO_EFFECT:
            return
        self.add("left out", [(*span, "void()")], text, "")
        begin, end, after = self.sites[-1].edits[0]
        self.sites[-1] = self.sites[-1]._replace(edits=[(begin, end, after, "static_cast<void>({})")])


def numeric_or_bool(cursor):
    kind = cursor.type.get_canonical().kind
    return kind in FLOATING or kind in INTEGRAL or kind in (TypeKind.BOOL, TypeKind.ENUM)


def sites_of(root, unity_files, arguments):
    """The sites of one group of files that Clang reads together with these arguments."""
    text = "".join(f'#include "{root / f}"\n' for f in unity_files)
    index = cindex.Index.create()
    unit = index.parse("unity.cpp", args=arguments, unsaved_files=[("unity.cpp", text)])
    errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        raise SystemExit("mutants: Clang cannot read the sources: " + "; ".join(str(e) for e in errors[:3]))
    return Reader(root, unity_files).read(unit)


def instrument(source, chosen):
    """`source` (bytes) in which every chosen site asks at run time for the number of the mutant. `chosen`: (number, edits)."""
    edits = []
    for number, own in chosen:
        for edit in own:
            begin, end, after = edit[:3]
            form = edit[3] if len(edit) > 3 else "({})"
            edits.append((begin, -end, "void" not in form, number, after, form))  # a statement without a value encloses expressions
    edits.sort()

    def build(begin, end, own):
        out = b""
        at = begin
        i = 0
        while i < len(own):
            start, minus_end, _, number, after, form = own[i]
            stop = -minus_end
            inner = []
            j = i + 1
            while j < len(own) and own[j][0] < stop:
                inner.append(own[j])
                j += 1
            out += source[at:start]
            original = build(start, stop, inner).decode()
            out += f"(specsim_mutants::at({number}) ? {after} : {form.format(original)})".encode()
            at = stop
            i = j
        return out + source[at:end]

    return build(0, len(source), edits)
