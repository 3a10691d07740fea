"""What counts as changed, in repositories of a few commits."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import changes  # noqa: E402  (tools/ is no package)


class Repository:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *arguments], cwd=self.folder, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        self.git("add", name)
        self.git("commit", "--quiet", "--message", name)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_branch_is_compared_with_where_it_left_the_main_branch(repository):
    repository.commit("a.cc", "1\n")
    forked = repository.commit("a.cc", "2\n")
    repository.git("checkout", "--quiet", "-b", "work")
    repository.commit("b.cc", "1\n")
    repository.git("checkout", "--quiet", "main")
    repository.commit("c.cc", "1\n")
    repository.git("checkout", "--quiet", "work")
    assert changes.base(repository.folder) == (forked, "where this branch left main")
    assert changes.changed_lines(repository.folder, forked) == {"b.cc": [(1, 1)]}


def test_the_main_branch_is_compared_with_the_commit_before_the_last(repository):
    first = repository.commit("a.cc", "1\n")
    repository.commit("a.cc", "2\n")
    assert changes.base(repository.folder) == (first, "the commit before the last")


def test_commits_that_the_remote_has_not_are_all_compared(repository, tmp_path_factory):
    first = repository.commit("a.cc", "1\n")
    clone = Repository(tmp_path_factory.mktemp("clone"))
    clone.git("remote", "add", "origin", str(repository.folder))
    clone.git("fetch", "--quiet", "origin")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.commit("b.cc", "1\n")
    clone.commit("c.cc", "1\n")
    assert changes.base(clone.folder) == (first, "where this branch left origin/main")


def test_of_one_commit_and_of_no_repository_nothing_is_known(repository, tmp_path_factory):
    repository.commit("a.cc", "1\n")
    assert changes.base(repository.folder) is None
    assert changes.base(tmp_path_factory.mktemp("bare")) is None


def test_lines_are_those_that_lie_there_now(repository):
    first = repository.commit("a.cc", "1\n2\n3\n4\n5\n")
    repository.commit("b.cc", "1\n2\n")
    repository.commit("a.cc", "1\nnew\n2\n4\n5\n")
    (repository.folder / "b.cc").write_text("1\nnot committed\n")
    (repository.folder / "c d.cc").write_text("not known to git\n")
    lines = changes.changed_lines(repository.folder, first)
    assert lines == {"a.cc": [(2, 2)], "b.cc": [(1, 2)], "c d.cc": [(1, 1_000_000)]}
    assert changes.changed_lines(repository.folder, "HEAD")["b.cc"] == [(2, 2)]


def test_a_file_that_only_lost_lines_has_none(repository):
    first = repository.commit("a.cc", "1\n2\n")
    repository.commit("a.cc", "2\n")
    assert changes.changed_lines(repository.folder, first) == {}
