#!/usr/bin/env python3
"""Counts the methods of the classes in our headers. Exit status 1 and one line per fault when a class has too many.

    tools/check_classes.py [ROOT]           the check
    tools/check_classes.py --count [ROOT]   every class with its number of methods, largest first

A class of many methods does many things: it is to fall into parts that each own their state. What counts is what a
reader must know: every member function, static or not, private or not, each overload of its own. Constructors,
destructors, functions that are defaulted or deleted, friends, and the methods of nested classes (which are classes of
their own) do not count.
"""

from __future__ import annotations

import pathlib
import re
import sys

BOUND = 40
FOLDERS = ["include", "src"]
SUFFIXES = {".h", ".hpp", ".cuh"}

# Comments and literals in one pass: either may hold what looks like the other. Those of many lines keep them.
NO_CODE = re.compile(
    r'//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/|R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->\*?|\[\[|\]\]|\.\.\.|&&|\|\||<=>|[0-9][\w.']*|\S")
NAME = re.compile(r"[A-Za-z_]\w*$")
MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}$")
CLOSING = {"(": ")", "{": "}", "[": "]", "[[": "]]"}
CLASS_KEYS = {"class", "struct", "union"}
# A parenthesis behind one of these holds no parameters.
WITH_ARGUMENT = {"alignas", "decltype", "explicit", "noexcept", "__attribute__", "requires", "sizeof"}


class Unreadable(Exception):
    """A header whose brackets do not match."""


def tokens_of(text: str) -> list[str]:
    # A literal becomes a number: `extern "C"`, `operator""_km` and initialisers read the same.
    text = NO_CODE.sub(lambda found: " 0 " if found.group()[0] not in "/" else " ", text)
    return TOKEN.findall(DIRECTIVE.sub(" ", text))


class Reader:
    """Walks over the tokens of one header. It knows as much of C++ as the bodies of classes take."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0
        self.found: dict[str, int] = {}

    # --- single tokens and groups

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def skip_group(self) -> None:
        """From an opening bracket past the one that closes it."""
        open_brackets: list[str] = []
        while True:
            token = self.peek()
            if not token:
                raise Unreadable(f"a '{open_brackets[-1]}' is never closed")
            self.at += 1
            if token in CLOSING:
                open_brackets.append(token)
            elif token == "]]" and open_brackets[-1] == "[":  # of two subscripts: a[b[0]]
                del open_brackets[-2:]
            elif token in CLOSING.values() and CLOSING[open_brackets.pop()] != token:
                raise Unreadable(f"a '{token}' closes nothing")
            if not open_brackets:
                return

    def skip_angles(self) -> None:
        """From a '<' that begins template arguments or parameters past its '>'."""
        depth = 0
        while True:
            token = self.peek()
            if not token:
                raise Unreadable("a '<' is never closed")
            if token in CLOSING:
                self.skip_group()
                continue
            self.at += 1
            depth += {"<": 1, ">": -1}.get(token, 0)
            if depth == 0:
                return

    def skip_statement(self) -> None:
        """Past the next ';' of this depth."""
        while self.peek() not in ("", ";"):
            self.skip_group() if self.peek() in CLOSING else self.step()
        self.step()

    def step(self) -> None:
        self.at += 1

    def skip_constraint(self) -> None:
        """Behind `requires`: operands between && and ||."""
        while True:
            while self.peek() == "!":
                self.step()
            if self.peek() == "requires":  # an expression, with or without parameters
                self.step()
                if self.peek() == "(":
                    self.skip_group()
                self.skip_group()
            elif self.peek() == "(":
                self.skip_group()
            else:
                self.step()
                while self.peek() in ("::", "<") or self.peek(-1) == "::":
                    self.skip_angles() if self.peek() == "<" else self.step()
            if self.peek() not in ("&&", "||"):
                return
            self.step()

    # --- scopes

    def read_namespace(self, inner: bool = False) -> None:
        """What stands outside classes, up to the '}' of a namespace or the end."""
        while (token := self.peek()) != "":
            if token == "}":
                if not inner:
                    raise Unreadable("a '}' closes nothing")
                self.step()
                return
            if token == "namespace" or (token == "extern" and self.peek(1) == "0"):
                while self.peek() not in ("", "{", ";"):
                    self.skip_group() if self.peek() in CLOSING else self.step()
                begins = self.peek() == "{"
                self.step()
                if begins:
                    self.read_namespace(inner=True)
            elif token == "template":
                self.skip_template()
            elif token == "enum":
                self.skip_statement()
            elif token in CLASS_KEYS:
                self.read_class("")
            elif token in CLOSING:
                self.skip_group()
            else:
                self.step()
        if inner:
            raise Unreadable("a namespace is never closed")

    def skip_template(self) -> None:
        self.step()
        if self.peek() == "<":  # else an explicit instantiation
            self.skip_angles()
        if self.peek() == "requires":
            self.step()
            self.skip_constraint()

    def read_class(self, outer: str) -> bool:
        """From `class` past its body. False: it only names a type, and nothing past the name was read."""
        self.step()
        name = ""
        while (token := self.peek()) != "":
            if token in ("alignas", "__attribute__") or (MACRO.match(token) and self.peek(1) == "("):
                self.step()
                self.skip_group()
            elif token == "[[":
                self.skip_group()
            elif token == "<" and name:
                first = self.at
                self.skip_angles()
                name += "".join(self.tokens[first : self.at])
            elif token == "::":
                name += token
                self.step()
            elif token == "final":
                self.step()
            elif NAME.match(token):
                if name and not name.endswith("::") and not MACRO.match(name):
                    break  # `struct Point origin` declares a variable
                name = name + token if name.endswith("::") else token
                self.step()
            else:
                break
        if self.peek() == ":":
            while self.peek() not in ("", "{", ";"):
                self.skip_angles() if self.peek() == "<" else self.step()
        if self.peek() != "{":
            return False
        self.step()
        self.read_body(outer + (name or "unnamed"))
        return True

    def read_body(self, name: str) -> None:
        """The members of a class, past its '}'."""
        own = name.split("<")[0].split("::")[-1]
        self.found.setdefault(name, 0)
        while (token := self.peek()) != "}":
            if not token:
                raise Unreadable(f"the body of {name} is never closed")
            if token in ("public", "protected", "private") and self.peek(1) == ":":
                self.at += 2
            elif token == "template":
                self.skip_template()
            elif token in ("using", "typedef", "static_assert", "enum"):
                self.skip_statement()
            elif token == "friend":
                self.read_member(own)
            elif token in CLASS_KEYS and self.read_class(f"{name}::"):
                self.skip_statement()  # what is declared of it, or only the ';'
            else:
                self.found[name] += self.read_member(own)
        self.step()

    # --- members

    def read_member(self, own: str) -> int:
        """One declaration: 1 if it is a method that counts."""
        begin = self.at
        if MACRO.match(self.peek()) and self.peek(1) == "(":  # a macro that stands alone
            self.step()
            self.skip_group()
            if self.peek() == ";":
                self.step()
            return 0
        while (token := self.peek()) not in ("", ";", "=", "{", "}"):
            if token == "operator":
                return self.read_operator()
            if token == "requires":
                self.step()
                self.skip_constraint()
            elif token == "(":
                before = self.peek(-1) if self.at > begin else ""
                if before in WITH_ARGUMENT or MACRO.match(before):
                    self.skip_group()
                elif self.declares_pointer():
                    return self.read_pointer()
                else:
                    counts = before != own or self.peek(-2) == "::"
                    return int(self.skip_function() and counts)
            elif token == "<":
                self.skip_angles()
            elif token in CLOSING:
                self.skip_group()
            else:
                self.step()
        if self.peek() != "}":
            self.skip_statement()  # data, with or without an initialiser
        return 0

    def declares_pointer(self) -> bool:
        """`void (*name)(int)`, `void (&name)()`, `void (Class::*name)()`."""
        ahead = 1
        while NAME.match(self.peek(ahead)) and self.peek(ahead + 1) == "::":
            ahead += 2
        return self.peek(ahead) in ("*", "&", "&&")

    def read_pointer(self) -> int:
        """A variable that points to a function, or a function that returns such a pointer: its name has parameters."""
        first = self.at
        self.skip_group()
        inside = self.tokens[first + 1 : self.at - 1]
        self.skip_statement()
        return int("(" in inside)

    def read_operator(self) -> int:
        self.step()
        if self.peek() == "(":  # operator()
            self.skip_group()
        else:
            while self.peek() not in ("", "("):
                conversion = NAME.match(self.peek()) and self.peek(1) == "<"
                self.step()
                if conversion:
                    self.skip_angles()
        return int(self.skip_function())

    def skip_function(self) -> bool:
        """From the parameters past the ';' or the body. False: it is defaulted or deleted."""
        self.skip_group()
        real = True
        while (token := self.peek()) not in ("", ";", "{", ":"):
            if token == "=" and self.peek(1) in ("default", "delete"):
                real = False
            self.skip_group() if token in CLOSING else self.step()
        if self.peek() == ":":
            self.skip_initialisers()
        if self.peek() == "{":
            self.skip_group()
            if self.peek() == ";":
                self.step()
        else:
            self.step()
        return real

    def skip_initialisers(self) -> None:
        """Of a constructor: a name and a group each."""
        while self.peek() in (":", ","):
            self.step()
            while self.peek() not in ("", "(", "{"):
                self.skip_angles() if self.peek() == "<" else self.step()
            self.skip_group()
            if self.peek() == "...":
                self.step()


def methods_in(text: str) -> dict[str, int]:
    """Class -> number of methods. Nested ones are `Outer::Inner`; namespaces are left out."""
    reader = Reader(text)
    reader.read_namespace()
    return reader.found


def count(root: pathlib.Path) -> tuple[dict[str, int], list[str], int]:
    """'path: Class' -> number of methods; the headers that could not be read; how many headers there are."""
    counts: dict[str, int] = {}
    faults = []
    headers = sorted(
        path for top in FOLDERS for path in (root / top).rglob("*") if path.suffix in SUFFIXES and path.is_file()
    )
    for path in headers:
        name = str(path.relative_to(root))
        try:
            counts |= {f"{name}: {one}": methods for one, methods in methods_in(path.read_text()).items()}
        except Unreadable as why:
            faults.append(f"{name}: could not be read as C++: {why}")
    return counts, faults, len(headers)


def faults_of(counts: dict[str, int]) -> list[str]:
    return [
        f"{name} has {methods} methods: a class has fewer than {BOUND}. Let it fall into parts that each own their "
        "state"
        for name, methods in counts.items()
        if methods >= BOUND
    ]


def main(arguments: list[str]) -> int:
    counting = "--count" in arguments
    rest = [argument for argument in arguments if argument != "--count"]
    root = pathlib.Path(rest[0] if rest else pathlib.Path(__file__).resolve().parent.parent)
    counts, faults, headers = count(root)
    if counting:
        for name, methods in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
            print(f"{methods:4} {name}")
    faults += faults_of(counts)
    for fault in faults:
        print(fault)
    print(f"check_classes: {len(counts)} classes in {headers} headers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
