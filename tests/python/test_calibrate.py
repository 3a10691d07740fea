"""`brant calibrate` as its users see it. Figures are read, never judged."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import brant_command
import pytest
from brant_command import BRANT

brant = functools.partial(brant_command.brant, limit_s=120, BRANT_GPU="none")
pytestmark = brant_command.needs_brant


def points(file: pathlib.Path) -> dict[tuple[str, str, str], list[tuple[int, float]]]:
    tables: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for line in file.read_text().splitlines():
        if line.startswith("point "):
            _, path, source, target, size, us = line.split()
            tables.setdefault((path, source, target), []).append((int(size), float(us)))
    return tables


def path_of_programs(folder: pathlib.Path, **environment: str) -> str:
    """How messages of 1 KB go. In larger ones brant's memory is mapped, and the receiver copies it whatever is faster
    for memory from elsewhere, which is what calibrations are about."""
    rows = folder / "rows"
    rows.unlink(missing_ok=True)
    few = ["--sizes", "1K", "--iterations", "5", "--warmup", "1", "--json", str(rows)]
    done = brant("bench", "latency", *few, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(rows.read_text())["path"]


def test_it_is_kept_in_the_cache_folder_and_decides_from_then_on(tmp_path: pathlib.Path) -> None:
    # A broken one is what one calibrates again for.
    file = tmp_path / "brant" / f"{os.uname().nodename}.calibration"
    file.parent.mkdir()
    file.write_text("rubbish")
    done = brant("calibrate", "--even-if-busy", XDG_CACHE_HOME=str(tmp_path), BRANT_PATH="staged")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and f"kept in {file}: programs go by it from their next start" in done.stdout
    tables = points(file)
    assert ("ucx", "host", "host") in tables
    for (_, source, _), table in tables.items():
        sizes = [size for size, _ in table]
        assert sizes == sorted(sizes)
        assert (sizes[0], sizes[-1], len(sizes)) == ((8 << 10, 16 << 20, 6) if source == "mapped" else (8, 16 << 20, 8))
        assert all(us > 0 for _, us in table)
    mapped = json.loads(
        brant(
            "explain", "--from", "host", "--to", "host", "--bytes", "64K", "--json", XDG_CACHE_HOME=str(tmp_path)
        ).stdout
    )
    assert mapped["path"] == "shm" and mapped["us"] is not None, "as memory of brant goes"
    asked = ["explain", "--from", "heap", "--to", "host", "--bytes", "1K", "--json"]
    answer = json.loads(brant(*asked, XDG_CACHE_HOME=str(tmp_path)).stdout)
    assert answer["numbers"]["file"] == str(file) and answer["numbers"]["measured"]
    assert answer["us"] == dict(tables[(answer["path"], "host", "host")])[1 << 10]
    assert path_of_programs(tmp_path, XDG_CACHE_HOME=str(tmp_path)) == answer["path"]
    # Whichever path this machine found faster, the other one is taken where it is.
    for fastest in ("shm", "ucx"):
        speedy = tmp_path / f"{fastest}.calibration"
        speedy.write_text(re.sub(rf"(point {fastest} host host \d+) .*", r"\1 0.001", file.read_text()))
        assert json.loads(brant(*asked, BRANT_CALIBRATION=str(speedy)).stdout)["path"] == fastest
        assert path_of_programs(tmp_path, BRANT_CALIBRATION=str(speedy)) == fastest


def test_the_table_is_aligned_and_a_dry_run_keeps_nothing(tmp_path: pathlib.Path) -> None:
    done = brant("calibrate", "--dry-run", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    lines = done.stdout.splitlines()
    assert lines[0] == "host to host, microseconds one way"
    assert [line.split()[0] for line in lines[2:10]] == ["8", "1K", "8K", "32K", "128K", "1M", "4M", "16M"]
    columns = lines[1].index("taken")
    assert {line[columns - 2 : columns] for line in lines[2:10]} == {"  "}, "columns are aligned"
    taken = {line[columns:] for line in lines[2:10]}
    assert taken <= {"shm", "ucx"}
    upto = r"(shm|ucx) up to [0-9.]+[KM]?( \(above [0-9]+M: extrapolated\))?, "
    assert re.match(rf"host to host: ({upto})*(then )?(shm|ucx)$", lines[10]), lines[10]


def test_an_emulated_device_is_measured_and_said(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "mine"
    done = brant("calibrate", "--even-if-busy", "--output", str(file), BRANT_GPU="emulated")
    assert done.returncode == 0, done.stderr
    assert f"with BRANT_CALIBRATION={file}" in done.stdout
    assert "not measured: emulated memory, ucx: " in done.stdout
    assert "gpu emulated" in file.read_text().splitlines()
    assert len(points(file)[("staged", "device", "device")]) == 8
    asked = ["explain", "--from", "emulated", "--to", "emulated", "--bytes", "1M", "--json"]
    assert json.loads(brant(*asked, BRANT_CALIBRATION=str(file)).stdout)["numbers"]["measured"]
    asked = ["explain", "--from", "host", "--to", "host", "--bytes", "1M", "--json"]
    assert json.loads(brant(*asked, BRANT_CALIBRATION=str(file)).stdout)["numbers"]["measured"]


def test_a_place_that_cannot_be_written_is_named() -> None:
    done = brant("calibrate", "--even-if-busy", "--output", "/proc/brant/x")
    assert done.returncode == 1
    assert "/proc/brant/x cannot be written" in done.stderr and "--output" in done.stderr


def test_without_a_cache_folder_it_asks_for_a_file() -> None:
    done = brant("calibrate", HOME="", XDG_CACHE_HOME="")
    assert done.returncode == 2
    assert "--output FILE" in done.stderr


@pytest.mark.parametrize(("ranks", "text"), [("1", "messages need two"), ("4", "takes 2 processes, not 4")])
def test_other_numbers_of_processes_are_refused(ranks: str, text: str) -> None:
    done = brant("run", "-n", ranks, "--", str(BRANT), "calibrate", "--dry-run")
    assert done.returncode == 2
    assert text in done.stderr


def test_what_was_measured_beside_others_is_not_kept(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "mine"
    cores = len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * cores)]
    try:
        done = brant("calibrate", "--output", str(file))
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "this machine is busy" in done.stdout and "not kept" in done.stdout
    assert done.stderr == "", "who typed no `brant run` hears nothing of it"
    assert not file.exists()


def test_a_process_alone_uses_it_without_complaint(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "mine"
    file.write_text("brant-calibration 1\nbrant 0.1.0\nucx 1.22.0\npoint shm host host 8 1\n")
    program = BRANT.parent / "jacobi3d"
    done = brant("run", "-n", "1", "--", str(program), "--size", "4", BRANT_CALIBRATION=str(file), BRANT_LOG="warn")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_parameters_of_models_are_fitted_or_refused(tmp_path: pathlib.Path) -> None:
    """On a machine whose load varies, a path that no line describes is left out; all of them, and it ends with 1."""
    done = brant("calibrate", "--model", "--even-if-busy", XDG_CACHE_HOME=str(tmp_path))
    if done.returncode == 1:
        assert "no path is described by the models" in done.stderr and "miss the times by" in done.stdout
        assert list(tmp_path.iterdir()) == []
        return
    assert done.returncode == 0, done.stderr
    file = tmp_path / "brant" / f"{os.uname().nodename}.model.json"
    assert f"kept in {file}" in done.stdout
    kept = json.loads(file.read_text())
    assert kept["brant_model"] == 1 and kept["machine"]["ucx"] and kept["pairs"] == 1
    for path in kept["paths"]:
        assert path["residual"] <= 0.15 and path["best_gb_s"] > 0
        ends = [segment["up_to"] for segment in path["segments"]]
        assert ends[-1] is None and ends[:-1] == sorted(ends[:-1])
        for segment in path["segments"]:
            for value, low, high in (segment["alpha_us"], segment["us_per_byte"]):
                assert 0 <= low <= value <= high
    assert {"send", "receive", "gap", "latency"} == kept["messages_us"].keys()
    assert [copy["what"] for copy in kept["copies"]] == ["host"]
    assert kept["notify_us"] is None and any("rings" in note for note in kept["notes"])
    assert kept["pack"] is None
    row = halo_row(tmp_path, "--model", XDG_CACHE_HOME=str(tmp_path))
    assert row["model"]["bound_us"] > 0


def halo_row(folder: pathlib.Path, *options: str, **environment: str) -> dict:
    file = folder / "rows"
    small = ["--size", "12_12_12", "--cycles", "5", "--warmup", "1", "--check", "--json", str(file)]
    done = brant("bench", "halo", *small, *options, **environment)
    assert done.returncode == 0, done.stderr
    assert "model: at least" in done.stdout and "binds" in done.stdout
    assert "model: in phases pack " in done.stdout
    return json.loads(file.read_text())


def parameters(**changes: object) -> dict:
    """10 GB/s and 1 us between processes, copies of 20 GB/s."""
    segment = {"up_to": None, "alpha_us": [1, 1, 1], "us_per_byte": [1e-4, 1e-4, 1e-4]}
    path = {"path": "shm", "from": "mapped", "to": "host", "segments": [segment], "r2": 1, "residual": 0}
    return {
        "brant_model": 1,
        "machine": {"brant": "", "ucx": "", "cuda": "", "host": "", "gpus": []},
        "pairs": 1,
        "paths": [{**path, "best_gb_s": 10}],
        "messages_us": {"send": [0.1] * 3, "receive": [0.1] * 3, "gap": [0.2] * 3, "latency": [0.8] * 3},
        "copies": [{"what": "host", "us": 0.05, "best_gb_s": 20, "large_gb_s": 20}],
        "notify_us": None,
        "notes": [],
        **changes,
    }


def test_the_bound_of_an_exchange_stands_beside_it(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "parameters"
    file.write_text(json.dumps(parameters()))
    row = halo_row(tmp_path, "--parameters", str(file), "--vars", "3")
    model = row["model"]
    # 12 x 12 x 12 in two blocks along z, periodic: two faces of 14 x 14 cells with edges and corners.
    sent = 2 * 14 * 14 * 3 * 8
    assert row["bytes"] >= sent and row["messages"] == 1
    assert model["resources_us"]["link"] == pytest.approx(sent / 10e3, abs=1e-3)
    assert model["resources_us"]["progress"] == pytest.approx(0.2)
    assert model["binds"] == max(model["resources_us"], key=model["resources_us"].get)
    pack = sent / 20e3
    assert model["bound_us"] == pytest.approx(max(model["resources_us"].values()) + 0.8 + 2 * pack, abs=1e-2)
    phases = {phase: (part["us"], part["binds"]) for phase, part in model["phases"].items()}
    assert list(phases) == ["pack", "comm", "unpack"]
    assert phases["pack"] == (pytest.approx(pack, abs=1e-3), "memory")
    assert phases["comm"][1] == ("latency" if max(model["resources_us"].values()) < 0.8 else model["binds"])
    assert sum(us for us, _ in phases.values()) == pytest.approx(model["bound_us"], abs=1e-2)
    assert model["efficiency"] == pytest.approx(model["bound_us"] / row["us"]["p50"], abs=1e-3)
    assert model["estimate_us"] >= model["bound_us"] and model["unknown"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist: run `brant calibrate --model"),
        ("rubbish", "holds no parameters of models"),
        (json.dumps(parameters(paths=[])), "no path between host memory was measured: run `brant calibrate --model`"),
        (
            json.dumps(parameters(machine={"brant": "0.0.1", "ucx": "", "cuda": "", "host": "", "gpus": []})),
            "do not hold here: it was measured with brant 0.0.1",
        ),
    ],
)
def test_parameters_of_no_use_are_refused(tmp_path: pathlib.Path, text: str | None, said: str) -> None:
    file = tmp_path / "parameters"
    if text is not None:
        file.write_text(text)
    done = brant("bench", "halo", "--size", "12_12_12", "--cycles", "2", "--parameters", str(file))
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
