"""The test driver lists skipped tests with reasons, and stops at the first stage that fails."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import run_tests  # noqa: E402  (tools/ is no package)


def write_results(build: pathlib.Path, stem: str, *tests: dict, **suite: str) -> None:
    folder = build / "test-results"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"testsuites": [{"name": "Wire", "testsuite": list(tests), **suite}]}
    (folder / f"{stem}.json").write_text(json.dumps(document))


def test_groups_skips_by_reason(tmp_path):
    write_results(tmp_path, "a_test", {"name": "one", "result": "SKIPPED", "skip_reason": "no\n GPU"})
    write_results(tmp_path, "b_test", {"name": "two", "result": "SKIPPED", "skip_reason": "no GPU"})
    write_results(tmp_path, "c_test", {"name": "three", "result": "COMPLETED"})
    assert run_tests.skipped_tests(tmp_path) == {"no GPU": ["a_test: Wire.one", "b_test: Wire.two"]}


def test_counts_a_test_once_though_each_rank_skipped_it(tmp_path):
    for rank in range(2):
        write_results(tmp_path, f"pair_test.{rank}", {"name": "x", "result": "SKIPPED", "skip_reason": "one GPU"})
    assert run_tests.skipped_tests(tmp_path) == {"one GPU": ["pair_test: Wire.x"]}


def test_a_skip_without_reason_is_shown_as_such(tmp_path):
    write_results(tmp_path, "a_test", {"name": "x", "result": "SKIPPED"})
    assert run_tests.skipped_tests(tmp_path) == {"no reason given": ["a_test: Wire.x"]}


def test_a_torn_result_file_is_reported_not_fatal(tmp_path):
    write_results(tmp_path, "a_test")
    (tmp_path / "test-results" / "a_test.json").write_text('{"testsuites": [')
    assert list(run_tests.skipped_tests(tmp_path).values()) == [["a_test"]]


def test_stops_at_the_first_failing_stage_and_names_it(monkeypatch, capsys):
    ran = []

    def failing():
        ran.append("bad")
        run_tests.run("false")

    monkeypatch.setattr(
        run_tests, "STAGES", {"good": lambda: ran.append("good"), "bad": failing, "late": lambda: ran.append("late")}
    )
    monkeypatch.setattr(sys, "argv", ["run_tests.py"])
    assert run_tests.main() == 1
    assert ran == ["good", "bad"]
    assert "=== bad FAILED" in capsys.readouterr().err


def test_refuses_an_unknown_stage():
    done = subprocess.run([sys.executable, ROOT / "tools" / "run_tests.py", "typo"], text=True, capture_output=True)
    assert done.returncode == 2
    assert "unknown stage 'typo'" in done.stderr


STAGES = ["format", "layers", "classes", "asan", "tsan", "release", "python-api", "python-numpy1", "hosts", "pytest"]


@pytest.mark.parametrize("stage", STAGES)
def test_ci_has_every_stage(stage):
    assert stage in run_tests.STAGES


# --- clang-tidy on what changed ----------------------------------------------------------------------------------

CLANG_TIDY = """#!/bin/sh
for file; do :; done
echo "read $file"
grep -q FAULT "$file" && exit 1
exit 0
"""


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """A tree in which these files changed, with a clang-tidy that finds the word FAULT. Returns what declares them."""
    program = tmp_path / "bin" / "clang-tidy"
    program.parent.mkdir()
    program.write_text(CLANG_TIDY)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests.changes, "base", lambda _: ("0123456789", "for this test"))

    def declare(files: dict[str, str]) -> None:
        (tmp_path / "src").mkdir()
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        lines = {name: [(1, len(text.splitlines()))] for name, text in files.items()}
        monkeypatch.setattr(run_tests.changes, "changed_lines", lambda *_: lines)
        monkeypatch.setattr(run_tests, "compiled_sources", lambda: {name for name in files if name.endswith(".cc")})

    return declare


def test_tidy_reads_what_changed_and_says_since_when(changed, capsys):
    changed({"src/a.cc": "1\n", "src/a.h": "1\n", "src/kernel.cu": "FAULT\n", "notes.h": "FAULT\n"})
    run_tests.stage_tidy_changes()
    assert capsys.readouterr().out == "tidy: 2 of 2 C++ files changed since 0123456, for this test\n"


def test_a_finding_of_tidy_fails(changed, capsys):
    changed({"src/a.cc": "1\n", "src/b.h": "FAULT\n"})
    with pytest.raises(run_tests.StageFailed, match="in changed lines of src/b.h"):
        run_tests.stage_tidy_changes()
    out = capsys.readouterr().out
    assert "read src/b.h" in out
    assert "read src/a.cc" not in out


def test_tidy_reads_no_more_than_time_allows_and_names_the_rest(changed, monkeypatch, capsys):
    changed({"src/few.cc": "1\n", "src/most.cc": "1\n2\n3\n", "src/more.cc": "1\n2\n"})
    monkeypatch.setattr(run_tests, "TIDY_FILES", 2)
    run_tests.stage_tidy_changes()
    out = capsys.readouterr().out
    assert "tidy: 2 of 3 C++ files" in out
    assert out.endswith("for the time: src/few.cc\n")
    monkeypatch.setattr(run_tests, "TIDY_SECONDS", -1)
    run_tests.stage_tidy_changes()
    assert "tidy: 0 of 3 C++ files" in capsys.readouterr().out


def test_without_clang_tidy_the_stage_fails_and_says_the_cure(changed, monkeypatch):
    changed({"src/a.cc": "1\n"})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(run_tests.StageFailed, match="make setup-dev"):
        run_tests.stage_tidy_changes()


def test_where_no_earlier_commit_is_known_tidy_says_so(monkeypatch, capsys):
    monkeypatch.setattr(run_tests.changes, "base", lambda _: None)
    run_tests.stage_tidy_changes()
    assert "no earlier commit is known" in capsys.readouterr().out
