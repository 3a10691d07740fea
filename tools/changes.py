"""What a checkout changes against the main branch, for checks that are too slow for the whole tree.

Compared are the files as they lie there, committed or not, with the commit where the branch left the main branch; on
the main branch itself with the commit before the last.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

MAIN_BRANCHES = ["origin/HEAD", "origin/main", "main"]
HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")

Lines = list[tuple[int, int]]  # first and last, from 1


def git(root: pathlib.Path, *arguments: str) -> str | None:
    """What git says; None where it fails: no git, no repository, no such commit. Trusts a checkout of another user."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    try:
        done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def base(root: pathlib.Path) -> tuple[str, str] | None:
    """The commit to compare with, and in words why that; None where none is known, as in a clone of one commit."""
    head = git(root, "rev-parse", "HEAD")
    found = []
    for branch in MAIN_BRANCHES:
        forked = git(root, "merge-base", branch, "HEAD")
        if head is None or forked is None or forked == head:
            continue
        distance = int(git(root, "rev-list", "--count", f"{forked.strip()}..HEAD") or 0)
        found.append((distance, forked.strip(), f"where this branch left {branch}"))
    if found:
        _, commit, why = min(found)
        return commit, why
    before = git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    return (before.strip(), "the commit before the last") if before else None


def changed_lines(root: pathlib.Path, commit: str) -> dict[str, Lines]:
    """File -> lines added or changed since `commit`. A file that only lost lines has none, and is left out."""
    changed: dict[str, Lines] = {}
    how = ["--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", "--find-renames"]
    diff = git(root, "diff", *how, commit) or ""
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ").rstrip("\t")
        elif (hunk := HUNK.match(line)) and (count := int(hunk[2] or 1)) > 0:
            changed.setdefault(file, []).append((int(hunk[1]), int(hunk[1]) + count - 1))
    for new in (git(root, "ls-files", "--others", "--exclude-standard") or "").splitlines():
        changed[new] = [(1, 1_000_000)]
    return changed
