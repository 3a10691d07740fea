"""docs/numbers: every row says which program it measured, and that program can be built again."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docs" / "numbers").glob("*.jsonl"))


def versions(file: pathlib.Path) -> collections.Counter[str]:
    return collections.Counter(json.loads(line)["brant"] for line in file.read_text().splitlines() if line)


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=ROOT, text=True, capture_output=True)


def commit_of(version: str) -> str:
    found = re.fullmatch(r"\d+\.\d+\.\d+\+g([0-9a-f]{7,})", version)
    assert found, f"{version}: no commit, or changes that were not committed"
    return found[1]


def in_the_history(commit: str) -> bool:
    return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def test_there_are_rows() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_page_cites_the_rows_and_the_folder_says_what_they_are(file: pathlib.Path) -> None:
    own = ROOT / "docs" / "numbers" / "README.md"
    pages = [page for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if page != own]
    assert any(f"({os.path.relpath(file, page.parent)})" in page.read_text() for page in pages), "delete it, or cite it"
    assert f"`{file.name}`" in own.read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rows_say_a_commit(file: pathlib.Path) -> None:
    for version in versions(file):
        commit_of(version)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_commits_are_in_the_history(file: pathlib.Path) -> None:
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this copy of the repository has no history (git fetch --unshallow)")
    commits = {commit_of(version) for version in versions(file)}
    lost = {commit for commit in commits if not in_the_history(commit)}
    assert lost == set()


@pytest.mark.parametrize("version", ["0.1.0", "0.1.0+gabcdef0.dirty", "0.1.0+dirty"])
def test_a_version_that_names_no_commit_is_none(version: str) -> None:
    with pytest.raises(AssertionError, match="no commit"):
        commit_of(version)
