"""`brant explain` as its users see it: which path, why, and by which numbers."""

from __future__ import annotations

import functools
import json
import os
import pathlib

import brant_command
import pytest

explain = functools.partial(brant_command.brant, "explain", BRANT_CALIBRATION="off")
pytestmark = brant_command.needs_brant


def answer(source: str, target: str, size: str, *more: str, **environment: str) -> dict:
    done = explain("--from", source, "--to", target, "--bytes", size, "--json", *more, **environment)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["serves"]
    return report


@pytest.mark.parametrize(
    ("source", "target", "size", "more", "path"),
    [
        ("host", "host", "8K", [], "shm"),
        ("host", "pinned", "64K", [], "shm"),
        ("host", "host", "64K", [], "shm"),
        ("heap", "host", "64K", [], "ucx"),
        ("heap", "heap", "4M", [], "shm"),
        ("host", "host", "64K", ["--other-host"], "ucx"),
        ("host", "host", "64K", ["--path", "staged"], "shm"),
        ("host", "host", "4M", [], "shm"),
        ("host", "host", "8", ["--other-host"], "ucx"),
        ("cuda:0", "cuda:1", "64K", [], "courier"),
        ("cuda:0", "cuda:1", "1M", [], "courier"),
        ("cuda:0", "cuda:1", "16M", [], "copy_engine"),
        ("cuda:0", "cuda:1", "1M", ["--other-host"], "ucx"),
        ("cuda:0", "host", "1M", [], "copy_engine"),
        ("cuda:0", "host", "1M", ["--other-host"], "ucx"),
        ("emulated", "emulated", "64K", [], "copy_engine"),
        ("emulated", "emulated", "64K", ["--other-host"], "staged"),
        ("cuda", "cuda", "8", ["--path", "staged"], "staged"),
        ("cuda", "cuda", "16M", ["--path", "courier"], "courier"),
    ],
)
def test_the_built_in_choice(source: str, target: str, size: str, more: list[str], path: str) -> None:
    if source == "cuda:0" and target == "cuda:1" and pathlib.Path("/dev/nvidia0").exists():
        pytest.skip("what cuda:1 is depends on the GPUs here")
    report = answer(source, target, size, *more)
    assert (report["path"], report["serves"], report["numbers"]["measured"]) == (path, True, False)
    assert {each["path"] for each in report["paths"]} == {"ucx", "shm", "staged", "copy_engine", "courier", "kernel"}
    serving = [each for each in report["paths"] if each["refusal"] is None]
    assert path in [each["path"] for each in serving]
    if "--path" not in more:
        assert serving[0]["path"] == path and report["paths"][: len(serving)] == serving, "best first"
    if "--other-host" in more:
        assert all(each["us"] is None for each in report["paths"])


def test_a_forced_path_that_cannot_serve_ends_with_1_and_a_reason() -> None:
    report = answer("host", "host", "8", BRANT_PATH="courier")
    assert (report["forced"], report["serves"]) == ("courier", False)
    assert "device memory" in report["reason"]


def write(file: pathlib.Path, *lines: str) -> str:
    file.write_text("\n".join(["brant-calibration 1", *lines, ""]))
    return str(file)


def test_a_calibration_decides_and_is_named(tmp_path: pathlib.Path) -> None:
    lines = ["host elsewhere", "point shm host host 8 50", "point ucx host host 8 1", "point ucx host host 800 10"]
    file = write(tmp_path / "mine", *lines)
    report = answer("host", "host", "8", BRANT_CALIBRATION=file)
    assert (report["path"], report["us"]) == ("ucx", 1.0)
    assert (report["numbers"]["file"], report["numbers"]["host"]) == (file, "elsewhere")
    assert answer("host", "host", "80", BRANT_CALIBRATION=file)["us"] == pytest.approx(3.162, rel=1e-3)
    text = explain("--from", "host", "--to", "host", "--bytes", "8", BRANT_CALIBRATION=file).stdout
    assert file in text and "50.00x the time" in text


def test_the_file_in_the_cache_folder_is_found(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "brant"
    folder.mkdir()
    write(folder / f"{os.uname().nodename}.calibration", "point ucx host host 8 0.001")
    for environment in ({"XDG_CACHE_HOME": str(tmp_path)}, {"XDG_CACHE_HOME": "", "HOME": str(tmp_path)}):
        if "HOME" in environment:
            (tmp_path / ".cache").symlink_to(tmp_path)
        report = answer("host", "host", "8", BRANT_CALIBRATION="auto", **environment)
        assert (report["path"], report["numbers"]["measured"]) == ("ucx", True), environment
    assert answer("host", "host", "8", XDG_CACHE_HOME=str(tmp_path))["path"] == "shm", "off is off"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["point shm host host 8"], ":2: '' is no time"),
        (["ucx 0.0.1", "point ucx host host 8 0.001"], "measured with UCX 0.0.1"),
        (["brant 9.0.0", "point ucx host host 8 0.001"], "measured with brant 9.0.0"),
    ],
)
def test_a_file_that_is_not_used_is_said(lines: list[str], said: str, tmp_path: pathlib.Path) -> None:
    file = write(tmp_path / "mine", *lines)
    report = answer("host", "host", "8", BRANT_CALIBRATION=file)
    assert (report["path"], report["numbers"]["measured"]) == ("shm", False)
    assert said in report["numbers"]["refused"] and "brant calibrate" in report["numbers"]["refused"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--from", "hst", "--to", "host", "--bytes", "8"], "'hst' is no place"),
        (["--from", "host:0", "--to", "host", "--bytes", "8"], "'host:0' is no place"),
        (["--from", "cuda:", "--to", "host", "--bytes", "8"], "'cuda:' is no place"),
        (["--from", "cuda:-1", "--to", "host", "--bytes", "8"], "'cuda:-1' is no place"),
        (["--from", "detect", "--to", "host", "--bytes", "8"], "'detect' is no place"),
        (["--from", "host", "--to", "host", "--bytes", "8x"], "'8x' is not a size"),
        (["--from", "host", "--to", "host"], "--from, --to and --bytes say which transfer"),
        (["--from", "host", "--to", "host", "--bytes", "8", "--path", "rdma"], "--path"),
    ],
)
def test_wrong_questions_are_named(arguments: list[str], text: str) -> None:
    done = explain(*arguments)
    assert done.returncode == 2
    assert text in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("collective", "size", "more", "algorithm"),
    [
        ("allreduce", "8", [], "lines"),
        ("allreduce", "1M", ["--ranks", "4"], "reads"),
        ("reduce-scatter", "64K", [], "reads"),
        ("allgather", "1K", ["--ranks", "4"], "slots"),
        ("allreduce", "8", ["--ranks", "4", "--hosts", "2"], "hosts"),
        ("allreduce", "1M", ["--ranks", "4", "--hosts", "2"], "pairwise"),
        ("broadcast", "8", ["--ranks", "2", "--hosts", "2"], "binomial"),
        ("neighbour_alltoall", "8", [], "direct"),
    ],
)
def test_the_plan_of_a_collective(collective: str, size: str, more: list[str], algorithm: str) -> None:
    asked = ["--collective", collective, "--bytes", size, *more]
    told = json.loads(explain(*asked, "--json").stdout)
    assert told["plan"]["algorithm"] == algorithm
    assert ("plan_of_private_memory" in told) == (algorithm == "reads")
    assert f"  {algorithm}: " in explain(*asked).stdout


@pytest.mark.parametrize(
    ("asked", "algorithm"),
    [
        ("allreduce --bytes 1M --ranks 4 --memory heap", "slices"),
        ("allreduce --bytes 1M --memory device", "slices"),
        ("allreduce --bytes 8 --memory device --trigger stream", "kernel lines"),
        ("allgather --bytes 16M --memory device --trigger graph", "kernel slots"),
        ("allreduce --bytes 1M --ranks 4 --memory device --trigger graph", "kernel slices"),
        ("allreduce --bytes 8 --memory device --trigger stream --way slots", "kernel slots"),
        ("allreduce --bytes 8 --way reads", "reads"),
        ("allreduce --bytes 8 --way messages", "direct"),
        ("barrier --way slots", "lines"),
    ],
)
def test_the_plan_of_a_collective_by_memory_trigger_and_way(asked: str, algorithm: str) -> None:
    told = json.loads(explain("--collective", *asked.split(), "--json").stdout)
    assert told["plan"]["algorithm"] == algorithm
    assert told.get("staged", False) == (told["memory"] == "device" and told["trigger"] == "host")
    said = explain("--collective", *asked.split()).stdout
    assert f"  {algorithm}: " in said
    assert ("forced" in said) == ("--way" in asked)


@pytest.mark.parametrize(
    ("asked", "why", "code"),
    [
        ("allreduce --bytes 1K --way lines", "does not fit into a line of 48 bytes", 1),
        ("scan --bytes 1K --memory device --trigger stream --way slices", "only allreduce and reduce", 1),
        ("allreduce --bytes 8 --way pigeons", "automatic, messages, lines", 2),
        ("allreduce --bytes 8 --trigger stream", "--memory device", 2),
        ("allreduce --bytes 8 --ranks 9 --memory device --trigger graph", "at most 8 members", 2),
    ],
)
def test_a_way_that_cannot_serve_is_refused_with_the_reason(asked: str, why: str, code: int) -> None:
    done = explain("--collective", *asked.split())
    assert why in done.stdout + done.stderr
    assert done.returncode == code


def test_bands_of_collectives_are_measured_or_built_in(tmp_path: pathlib.Path) -> None:
    asked = ["--collective", "allreduce", "--bytes", "2K", "--memory", "heap", "--json"]
    told = json.loads(explain(*asked, BRANT_CALIBRATION="off").stdout)
    assert told["plan"]["algorithm"] == "slots" and not told["bands"]["slices"]["measured"]
    file = tmp_path / "mine"
    file.write_text("brant-calibration 1\npoint shm host host 8 1\nband slices 2 1024\n")
    told = json.loads(explain(*asked, BRANT_CALIBRATION=str(file)).stdout)
    assert told["plan"]["algorithm"] == "slices"
    assert told["bands"]["slices"] == {"bytes": 1024, "measured": True}
    assert not told["bands"]["reads"]["measured"]


def test_an_unknown_collective_is_refused_with_those_there_are() -> None:
    done = explain("--collective", "allsum", "--bytes", "8")
    assert done.returncode == 2
    assert "allreduce" in done.stderr
    assert "--collective" in explain("--from", "host").stderr
