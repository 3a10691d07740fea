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


@pytest.mark.parametrize("stage", ["format", "layers", "asan", "tsan", "release", "hosts", "pytest"])
def test_ci_has_every_stage(stage):
    assert stage in run_tests.STAGES
