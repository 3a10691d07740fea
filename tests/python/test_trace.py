"""The timeline that BRANT_TRACE writes, and its summary."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build" / "bin"))

pytestmark = pytest.mark.skipif(not os.access(BIN / "brant", os.X_OK), reason=f"{BIN / 'brant'} is not built")


def traced(tmp_path: pathlib.Path, *command: str, **variables: str) -> tuple[pathlib.Path, list[dict]]:
    file = tmp_path / "trace.json"
    subprocess.run(
        [BIN / "brant", "run", "-n", "2", "--", *map(str, command)],
        env={**os.environ, "BRANT_TRACE": str(file), **variables},
        check=True,
        timeout=60,
        capture_output=True,
    )
    return file, json.loads(file.read_text())


def summary(file: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / "brant", "trace", "summary", file], capture_output=True, text=True, timeout=30)


def test_entries_and_messages_are_joined_by_arrows(tmp_path: pathlib.Path) -> None:
    sizes = ["--sizes", "8,100K", "--iterations", "20"]
    file, events = traced(tmp_path, BIN / "brant", "bench", "latency", "--model", "message", *sizes)
    entries = [event for event in events if event.get("cat") == "entry"]
    assert {event["name"].split("::")[-1] for event in entries} == {"bounce"}
    assert {event["pid"] for event in entries} == {0, 1}
    begins = {event["id"] for event in events if event["ph"] == "s"}
    ends = {event["id"] for event in events if event["ph"] == "f"}
    assert ends <= begins, "an arrow that comes from nowhere"
    assert len(ends) == len(entries), "every entry has its arrow"
    sends = [event for event in events if event.get("cat") == "send" and event["args"]["peer"] != event["pid"]]
    assert {event["args"]["path"] for event in sends} == {"shm", "ucx"}
    # The time of an arrow runs forward, also between processes.
    left = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
    assert all(event["ts"] >= left[event["id"]] for event in events if event["ph"] == "f")
    text = summary(file).stdout
    assert "Pinger::bounce" in text and "busy" in text and "shm" in text


def test_transfers_say_their_path_and_idle_time_is_seen(tmp_path: pathlib.Path) -> None:
    file, events = traced(tmp_path, BIN / "brant", "bench", "latency", "--sizes", "64K", "--iterations", "20")
    transfers = [event for event in events if event.get("cat") == "transfer" and event["args"]["bytes"] == 65536]
    assert len(transfers) >= 2 * 2 * 20
    assert {event["args"]["path"] for event in transfers} == {"ucx"}
    assert any(event.get("cat") == "idle" for event in events)
    assert summary(file).returncode == 0


def test_the_trace_is_bounded_and_says_what_it_dropped(tmp_path: pathlib.Path) -> None:
    command = [BIN / "brant", "bench", "latency", "--sizes", "8", "--iterations", "500"]
    file, events = traced(tmp_path, *command, BRANT_TRACE_EVENTS="100")
    assert sum(1 for event in events if event["ph"] == "X") == 200
    assert "older events were not kept" in summary(file).stdout


def test_a_file_cut_short_is_read_and_others_are_refused(tmp_path: pathlib.Path) -> None:
    file, events = traced(tmp_path, BIN / "brant", "bench", "latency", "--sizes", "8", "--iterations", "20")
    file.write_text(file.read_text()[:-100])
    assert "PE" in summary(file).stdout
    other = tmp_path / "other"
    other.write_text('{"a": 1}')
    done = summary(other)
    assert done.returncode == 1 and "is no trace" in done.stderr
    done = summary(tmp_path / "nothing")
    assert done.returncode == 1 and "cannot be read" in done.stderr


def test_a_file_that_cannot_be_written_is_an_error_at_the_start() -> None:
    done = subprocess.run(
        [BIN / "brant", "bench", "latency", "--sizes", "8", "--iterations", "2"],
        env={**os.environ, "BRANT_TRACE": "/nonexistent/trace.json"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and "BRANT_TRACE=/nonexistent/trace.json" in done.stderr
