"""The timeline that BRANT_TRACE writes, and its summary."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import subprocess

import brant_command
from brant_command import BRANT

brant = functools.partial(brant_command.brant, BRANT_CALIBRATION="off")  # which path is taken is looked at
pytestmark = brant_command.needs_brant


def traced(tmp_path: pathlib.Path, *options: str, **variables: str) -> tuple[pathlib.Path, list[dict]]:
    """The trace of `brant bench latency` with these options."""
    file = tmp_path / "trace.json"
    done = brant("run", "-n", "2", "--", BRANT, "bench", "latency", *options, BRANT_TRACE=str(file), **variables)
    assert done.returncode == 0, done.stderr
    return file, json.loads(file.read_text())


def summary(file: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return brant("trace", "summary", file)


def test_entries_and_messages_are_joined_by_arrows(tmp_path: pathlib.Path) -> None:
    sizes = ["--sizes", "8,100K", "--iterations", "20"]
    file, events = traced(tmp_path, "--model", "message", *sizes)
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
    file, events = traced(tmp_path, "--sizes", "64K", "--iterations", "20")
    transfers = [event for event in events if event.get("cat") == "transfer" and event["args"]["bytes"] == 65536]
    assert len(transfers) >= 2 * 2 * 20
    assert {event["args"]["path"] for event in transfers} == {"shm"}
    assert any(event.get("cat") == "idle" for event in events)
    done = summary(file)
    assert done.returncode == 0 and "PE" not in done.stdout
    for event, what in (("channel send", "channel sends"), ("channel receive", "channel receives")):
        sizes = [each["args"]["bytes"] for each in events if each["ph"] == "X" and each["name"] == event]
        assert len(sizes) >= 2 * 20
        assert re.search(rf"\n +shm +{len(sizes)} +{sum(sizes)}  {what}\n", done.stdout), done.stdout


def test_the_trace_is_bounded_and_says_what_it_dropped(tmp_path: pathlib.Path) -> None:
    file, events = traced(tmp_path, "--sizes", "8", "--iterations", "500", BRANT_TRACE_EVENTS="100")
    assert sum(1 for event in events if event["ph"] == "X") == 200
    assert "older events were not kept" in summary(file).stdout


def test_a_file_cut_short_is_read_and_others_are_refused(tmp_path: pathlib.Path) -> None:
    file, events = traced(tmp_path, "--sizes", "8", "--iterations", "20")
    file.write_text(file.read_text()[:-100])
    assert "rank" in summary(file).stdout
    other = tmp_path / "other"
    other.write_text('{"a": 1}')
    done = summary(other)
    assert done.returncode == 1 and "is no trace" in done.stderr
    done = summary(tmp_path / "nothing")
    assert done.returncode == 1 and "cannot be read" in done.stderr


def test_a_file_that_cannot_be_written_is_an_error_at_the_start() -> None:
    done = brant("bench", "latency", "--sizes", "8", "--iterations", "2", BRANT_TRACE="/nonexistent/trace.json")
    assert done.returncode != 0 and "BRANT_TRACE=/nonexistent/trace.json" in done.stderr
