"""The Markdown pages: prose is no wider than the code, links and files that they name lead somewhere, and the glossary
names what there is in the code."""

from __future__ import annotations

import pathlib
import re

import pytest
from brant_command import ROOT

WIDTH = 120
FOLDERS = ["apps", "bench", "docs", "examples", "tests", "tools"]
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`]*`")
SOURCE_FOLDERS = ["apps", "bench", "cmake", "docs", "examples", "include", "python", "src", "tests", "tools"]
FILE = re.compile(rf"[\w./-]+\.(?:h|cc|cu|cuh|py|md|toml|jsonl|cmake)|(?:{'|'.join(SOURCE_FOLDERS)})/[\w./-]+")
FOREIGN_FILES = {"cuda.h", "cudaTypedefs.h", "mine.cc"}  # of CUDA, and of a reader


def name_of(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


def blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def too_wide(text: str) -> list[int]:
    """The numbers of lines of prose beyond the width. Tables and code may be wide, and so may a link, which cannot be
    broken."""
    lines = FENCED.sub(blank, text).splitlines()
    return [
        number
        for number, line in enumerate(lines, 1)
        if len(line) > WIDTH and not line.lstrip().startswith("|") and " " in line[:WIDTH].strip()
    ]


def local_links(text: str) -> list[str]:
    links = re.findall(r"\]\(([^)\s]+)\)", CODE_SPAN.sub("", FENCED.sub("", text)))
    return [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prose_is_at_most_120_columns_wide(page: pathlib.Path) -> None:
    assert too_wide(page.read_text()) == []


def files_named(text: str) -> list[str]:
    """What stands between backticks and looks like a file of this repository; a line or a function may follow."""
    words = [word.split(":")[0].rstrip("/") for word in re.findall(r"`([^`\s]+)`", FENCED.sub("", text))]
    return [word for word in words if FILE.fullmatch(word) and word not in FOREIGN_FILES and "NAME" not in word]


@pytest.fixture(scope="module")
def known_files() -> set[str]:
    """Every file and folder, by its path and by each end of it: pages call `src/core/engine.cc` also `engine.cc`."""
    tops = [ROOT / top for top in SOURCE_FOLDERS]
    paths = [path.relative_to(ROOT).parts for top in tops for path in [top, *top.rglob("*")]]
    paths += [(path.name,) for path in ROOT.iterdir()]
    return {"/".join(parts[begin:]) for parts in paths for begin in range(len(parts))}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page: pathlib.Path, known_files: set[str]) -> None:
    """A decision may be named by its number alone: `docs/decisions/0007`."""
    known = known_files | {re.sub(r"(docs/decisions/\d{4}).*", r"\1", file) for file in known_files}
    assert [file for file in files_named(page.read_text()) if file not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_local_links_lead_somewhere(page: pathlib.Path) -> None:
    assert [link for link in local_links(page.read_text()) if not (page.parent / link).exists()] == []


def test_wide_lines_are_found_where_they_count() -> None:
    wide = "word " * 30
    assert too_wide(f"{wide}\n\n| {wide} |\n\n```\n{wide}\n```\n{wide}") == [1, 8]
    assert too_wide(f"- {wide}") == [1] and too_wide("x" * 200) == []


def test_files_are_found() -> None:
    text = "`src/a.cc:run` `b.h` `src/c/` `std::span` `cuda.h` `src/NAME`\n```\n`d.h`\n```\n`e.toml`"
    assert files_named(text) == ["src/a.cc", "b.h", "src/c", "e.toml"]


def test_links_are_found() -> None:
    assert local_links("[a](b.md#c) `[d](e)` [f](https://g) [h](#i) ![j](k.svg)\n```\n[l](m)\n```\n") == [
        "b.md",
        "k.svg",
    ]


def test_the_glossary_names_what_is_in_the_code() -> None:
    protocol = GLOSSARY.read_text().split("## Protocol words of the field")[1]
    cells = [line.split("|")[3] for line in protocol.splitlines() if line.count("|") == 4]
    names = {name for cell in cells for span in re.findall(r"`([^`]+)`", cell) for name in span.split("::")}
    assert len(names) > 20
    files = [file for top in ("src", "include") for file in (ROOT / top).rglob("*") if file.suffix in {".h", ".cc"}]
    words = set(re.findall(r"\w+", "\n".join(file.read_text() for file in files)))
    assert names - words == set()


def test_the_overview_names_every_page_of_guide_and_tutorial() -> None:
    overview = (ROOT / "docs" / "README.md").read_text()
    pages = [page for page in PAGES if page.parent.name in {"guide", "tutorial"}]
    assert [name_of(page) for page in pages if f"({page.parent.name}/{page.name})" not in overview] == []
