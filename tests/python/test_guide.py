"""docs/guide: every program compiles, those of at most two ranks run and print what the page says, and the commands
work. A program's first line says how it is started; the block of text behind it is what it prints, in any order."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess

import pytest
from brant_command import BIN, ROOT, brant, needs_brant

PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
TREE = ROOT / "build" / "release"
UCX = BIN.parent / "lib" / "libucx" / "lib"
LIMIT_S = 60

needs_tree = pytest.mark.skipif(
    not (TREE / "programs.txt").exists(), reason="needs build/release and its libraries: run 'make build'"
)
NOT_OF_PROGRAMS = re.compile(r"libbrant_(?:test|app|bench)_|libbrant_wire_faulty")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START = re.compile(r"// brant run -n ([12]) -- (\w+)\n")


@dataclasses.dataclass(frozen=True)
class Program:
    page: str
    place: int  # among the programs of its page
    text: str
    printed: str | None  # what the page says

    @property
    def ranks(self) -> int:
        """0: it is compiled only."""
        start = START.match(self.text)
        return int(start[1]) if start else 0

    def __str__(self) -> str:
        return f"{self.page}:{self.place}"


def blocks_of(page: pathlib.Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def programs_of(page: pathlib.Path) -> list[Program]:
    blocks = [*blocks_of(page), ("", "")]
    found = [
        (text, following[1] if following[0] == "text" else None)
        for (language, text), following in zip(blocks, blocks[1:], strict=False)
        if language == "cpp"
    ]
    return [Program(page.stem, place, text, printed) for place, (text, printed) in enumerate(found, 1)]


def commands_of(page: pathlib.Path) -> list[str]:
    """The lines of shell that need neither a GPU, nor another launcher, nor a program of the page."""
    lines = [line for language, text in blocks_of(page) if language == "sh" for line in text.splitlines()]
    return [line for line in lines if line.startswith("brant ") and "./" not in line]


PROGRAMS = [program for page in PAGES for program in programs_of(page)]
RUN = [program for program in PROGRAMS if program.ranks]


def compile_command(program: Program, source: pathlib.Path, target: pathlib.Path) -> list[str | os.PathLike]:
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source]
    if not program.ranks:
        return [*command, "-fsyntax-only"]
    libraries = sorted(file for file in TREE.rglob("libbrant_*.a") if not NOT_OF_PROGRAMS.match(file.name))
    return [*command, "-o", target, "-Wl,--start-group", *libraries, "-Wl,--end-group", f"-Wl,-rpath,{UCX}", "-ldl"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> dict[Program, tuple[pathlib.Path, subprocess.CompletedProcess[str]]]:
    """All programs, as many at once as there are cores."""
    folder = tmp_path_factory.mktemp("guide")

    def compile_one(program: Program) -> tuple[pathlib.Path, subprocess.CompletedProcess[str]]:
        target = folder / f"{program.page}-{program.place}"
        source = target.with_suffix(".cc")
        source.write_text(program.text)
        command = compile_command(program, source, target)
        return target, subprocess.run(command, text=True, capture_output=True, timeout=5 * LIMIT_S)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(PROGRAMS, pool.map(compile_one, PROGRAMS), strict=True))


@needs_tree
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_compiles(program: Program, compiled) -> None:
    _, done = compiled[program]
    assert done.returncode == 0, done.stderr


@needs_tree
@needs_brant
@pytest.mark.parametrize("program", RUN, ids=str)
def test_a_program_prints_what_the_page_says(program: Program, compiled) -> None:
    target, _ = compiled[program]
    done = brant("run", "-n", str(program.ranks), "--no-prefix", "--timeout", "30", "--", target, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert program.printed is not None, "the page does not say what it prints"
    assert sorted(done.stdout.splitlines()) == sorted(program.printed.splitlines())


@needs_brant
@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch) -> None:
    """One after another, as somebody would who reads the page: a later one may read what an earlier one wrote."""
    monkeypatch.chdir(tmp_path)
    for command in commands_of(page):
        _, *words = shlex.split(command)
        option = "--cycles" if "halo" in words else "--iterations"
        few = [option, "10"] if words[0] == "bench" and option not in words else []
        done = brant(*words, *few, limit_s=LIMIT_S, XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_tested_or_is_no_code(page: pathlib.Path) -> None:
    """A program without a `main` or a block of an unknown language would escape the tests above."""
    for language, text in blocks_of(page):
        assert language in {"cpp", "text", "sh", "cmake", "python"}, language
        assert language != "cpp" or "int main(" in text, text
        # tests/python_api runs those of Python and, on a GPU, those of bells; tests/torch those of PyTorch.
        assert (language == "python") <= (page.stem in {"python", "notify", "pytorch"}), text


def test_the_readme_shows_the_project_of_the_guide() -> None:
    project = [text for language, text in blocks_of(ROOT / "docs/guide/cmake.md") if language == "cmake"]
    assert project == [text for language, text in blocks_of(ROOT / "README.md") if language == "cmake"]
    assert len(project) == 1
