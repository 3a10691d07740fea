"""tools/gpu_check.py with programs that fail, hang and are missing: it goes on, and says so."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "gpu_check.py"

sys.path.insert(0, str(SCRIPT.parent))

from gpu_checks import figures, nvshmem, steps  # noqa: E402
from gpu_checks.check import Check, Step  # noqa: E402

ROW = {"bytes": 8, "peer": None, "us": {"p50": 2.0}, "gb_s": 1.0, "path": "ucx", "bench": "latency", "memory": "cuda"}
ROW |= {"model": "channel"}


def write_program(folder: pathlib.Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bundle(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "bundle" / "bin"
    folder.mkdir(parents=True)
    write_program(folder, "brant", """case "$*" in
        "info --json") echo '{"cuda": {"gpus": [1]}}' ;;
        info) echo "UCX 1.22.0 from /x" ;;
        doctor) echo "1 ok, 0 warnings, 1 problems"; exit 1 ;;
        *) echo "broken"; exit 3 ;;
    esac""")  # fmt: skip
    return folder


def test_failures_are_told_and_the_rest_goes_on(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    options = ["--bundle", str(bundle.parent), "--out", str(out), "--only", "info,doctor,latency,memory,host"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1
    verdicts = {each["name"]: each for each in json.loads((out / "summary.json").read_text())}
    assert verdicts["info"]["result"] == "ok"
    assert verdicts["doctor"]["result"] == "failed (1)"
    assert verdicts["latency cuda ucx"]["result"] == "skipped"
    assert verdicts["latency cuda ucx"]["figure"] == "needs 2 GPUs, found 1"
    host = verdicts["latency host auto"]
    assert host["result"] == "failed (3)" and host["figure"] == "broken"
    log = (out / "log.txt").read_text()
    assert "=== latency host auto\n$ " in log and "\nbroken\n" in log
    assert "1 ok, 7 failed" in done.stdout.splitlines()[-1]


def test_an_unknown_group_is_refused(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    options = ["--bundle", str(bundle.parent), "--out", str(tmp_path / "out"), "--only", "latency,nonsense"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode != 0 and "nonsense" in done.stderr


def test_a_folder_without_programs_is_refused(tmp_path: pathlib.Path) -> None:
    options = ["--bundle", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode != 0 and "no program 'brant'" in done.stderr


def test_what_hangs_is_ended(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    hanging = write_program(bundle, "hanging", "echo $$ > $1; sleep 60 & wait")
    check.run(Step("hang", "test", [hanging, str(tmp_path / "pid")], timeout_s=1))
    assert check.verdicts[-1].result == "timed out"
    assert check.verdicts[-1].seconds < 20
    assert not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_rows_are_collected(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    program = write_program(bundle, "rows", f"""echo '{json.dumps(ROW)}' > "$2"; echo 'cut of' >> "$2" """)
    check.run(Step("rows", "test", [program], rows=True, figure=figures.latency_figure))
    assert check.verdicts[-1].result == "ok" and check.verdicts[-1].figure == "8 2 us"
    assert check.rows == [ROW]


def test_rows_of_a_check_of_the_bytes_are_no_measurement(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    program = write_program(bundle, "rows", f"""echo '{json.dumps(ROW)}' > "$2" """)
    for name in ("check latency stream", "latency cuda stream"):
        check.run(Step(name, "stream", [program], rows=True))
    assert [each.result for each in check.verdicts] == ["ok", "ok"] and check.rows == [ROW]


def test_a_shared_gpu_serves_what_measures_nothing(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True, share=True)
    program = write_program(bundle, "shares", """echo "shared: ${BRANT_SHARE_GPU:-no}" """)
    check.run(Step("test pair", "channel", [program], gpus=2, figure=lambda log, _: log.splitlines()[-1]))
    check.run(Step("test one", "channel", [program], gpus=1, figure=lambda log, _: log.splitlines()[-1]))
    check.run(Step("check latency", "check", [program], gpus=2, rows=True))
    check.run(Step("latency", "latency", [program], gpus=2, rows=True))
    results = [(each.result, each.figure) for each in check.verdicts]
    assert results[:3] == [("ok", "shared: 1"), ("ok", "shared: no"), ("ok", "")]
    assert results[3] == ("skipped", "needs 2 GPUs, found 1")


def test_packed_tests_keep_their_program_and_settings(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    lines = [
        "channel_test\tchannel_test\t0\t90\tunit\t",
        "pair_ucx_test\tpair_test\t2\t90\tmulti\tBRANT_PATH=ucx",
        "pair_emulated_test\tpair_test\t2\t90\tmulti\tBRANT_GPU=emulated",
        "death_test\tdeath_test\t0\t90\tfault\t",
    ]
    (bundle / "tests.tsv").write_text("\n".join(lines) + "\n")
    for name in ("pair_test", "death_test"):
        write_program(bundle, name, "exit 0")
    found = steps.test_steps(Check(bundle, tmp_path / "out", tmp_path, quick=True))
    assert [(each.name, each.group, each.gpus) for each in found] == [
        ("test pair_ucx_test", "channel", 2),
        ("test death_test", "kill", 1),
    ]
    assert found[0].command[-1] == str(bundle / "pair_test") and found[0].environment["BRANT_PATH"] == "ucx"
    assert found[1].environment["BRANT_SHARE_GPU"] == "1"


# --- Calibration --------------------------------------------------------------------------------------------------

ANSWER = {"path": "courier", "us": 4.5, "numbers": {"measured": True, "file": "$BRANT_CALIBRATION", "refused": None}}


def calibrated(bundle: pathlib.Path, tmp_path: pathlib.Path, answer: dict, calibrate: str) -> Check:
    """Runs the step with a command that answers so."""
    text = json.dumps(answer).replace('"', '\\"')
    write_program(bundle, "brant", f"""case "$*" in
        "info --json") echo '{{"cuda": {{"gpus": [1, 2]}}}}' ;;
        "calibrate --even-if-busy --output "*) {calibrate} ;;
        explain*--json) echo "{text}" ;;
        *) exit 3 ;;
    esac""")  # fmt: skip
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    check.run(steps.calibrate_steps(check)[0])
    return check


def test_a_calibration_is_kept_and_explain_goes_by_it(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = calibrated(bundle, tmp_path, ANSWER, 'echo "point courier device device 8 4.5" > "$4"')
    verdict = check.verdicts[-1]
    assert (verdict.name, verdict.result) == ("calibrate", "ok")
    assert verdict.figure == "8 courier 4.5 us, 64K courier 4.5 us, 1M courier 4.5 us, 16M courier 4.5 us"
    assert (tmp_path / "out" / "calibration.txt").read_text() == "point courier device device 8 4.5\n"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({**ANSWER, "us": None}, "path courier has no measured time"),
        ({**ANSWER, "numbers": {**ANSWER["numbers"], "measured": False, "refused": "other GPUs"}}, "other GPUs"),
        ({**ANSWER, "numbers": {**ANSWER["numbers"], "file": "/elsewhere"}}, "/elsewhere"),
        ({"path": "courier"}, "explain 8: 'numbers'"),
    ],
)
def test_an_explain_that_does_not_go_by_the_calibration_fails(
    answer: dict, text: str, bundle: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    check = calibrated(bundle, tmp_path, answer, 'touch "$4"')
    assert check.verdicts[-1].result == "failed (1)" and text in (tmp_path / "out" / "log.txt").read_text()


def test_a_calibration_that_fails_keeps_nothing(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = calibrated(bundle, tmp_path, ANSWER, "echo no GPU; exit 1")
    assert (check.verdicts[-1].result, check.verdicts[-1].figure) == ("failed (1)", "no GPU")
    assert not (tmp_path / "out" / "calibration.txt").exists()


# --- The sanitizer ------------------------------------------------------------------------------------------------


def sanitized(bundle: pathlib.Path, tmp_path: pathlib.Path, monkeypatch, sanitizer: str | None) -> list:
    """The verdicts of the group with two GPUs and a sanitizer that does this, or none."""
    write_program(bundle, "brant", """[ "$1" = info ] && echo '{"cuda": {"gpus": [1, 2]}}' && exit
        while [ "$1" != -- ]; do shift; done; shift; exec "$@" """)  # fmt: skip
    for name in ("memory_test", "channel_2_ranks_test"):  # jacobi3d is left out
        write_program(bundle, name, "exit 0")
    tools = tmp_path / "tools"
    tools.mkdir()
    if sanitizer is not None:
        write_program(tools, "compute-sanitizer", sanitizer)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    for step in steps.sanitizer_steps(check):
        check.run(step)
    return check.verdicts


def test_without_a_sanitizer_its_group_is_skipped(bundle: pathlib.Path, tmp_path: pathlib.Path, monkeypatch) -> None:
    verdicts = sanitized(bundle, tmp_path, monkeypatch, None)
    assert {(each.result, each.figure) for each in verdicts} == {("skipped", "compute-sanitizer is not on PATH")}


def test_the_sanitizer_gets_the_programs(bundle: pathlib.Path, tmp_path: pathlib.Path, monkeypatch) -> None:
    verdicts = sanitized(bundle, tmp_path, monkeypatch, 'echo "ran $*"; echo "[0] ========= ERROR SUMMARY: 0 errors"')
    results = {each.name: (each.result, each.figure) for each in verdicts}
    assert results.pop("memcheck jacobi3d") == ("skipped", "jacobi3d is not in the bundle")
    assert set(results.values()) == {("ok", "errors: 0")}
    log = (tmp_path / "out" / "log.txt").read_text()
    assert "ran --tool memcheck --error-exitcode 86 " in log and f"{bundle}/memory_test --gtest_filter=*/cuda" in log
    assert "ran --tool racecheck" in log and "--trigger stream" in log


@pytest.mark.parametrize(
    ("sanitizer", "verdict"),
    [
        ('echo "========= ERROR SUMMARY: 3 errors"; exit 86', ("failed (86)", "errors: 3")),
        (
            'for rank in 0 1; do echo "[$rank] = RACECHECK SUMMARY: 1 hazard"; done; exit 86',
            ("failed (86)", "errors: 1 + 1"),
        ),
        ('echo "Device not supported"; exit 1', ("skipped", "compute-sanitizer does not support this device")),
    ],
)
def test_what_the_sanitizer_finds_is_told(
    sanitizer: str, verdict: tuple[str, str], bundle: pathlib.Path, tmp_path: pathlib.Path, monkeypatch
) -> None:
    verdicts = sanitized(bundle, tmp_path, monkeypatch, sanitizer)
    assert {(each.result, each.figure) for each in verdicts if each.name != "memcheck jacobi3d"} == {verdict}


def test_what_takes_long_is_not_begun_shortly_before_the_end(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = Check(bundle, tmp_path / "out", tmp_path, quick=True)
    check.deadline = time.monotonic() + 30
    quick = Step("quick", "sanitizer", [write_program(bundle, "quick", "exit 0")], timeout_s=60)
    check.run(quick)
    check.run(dataclasses.replace(quick, name="whole", whole=True))
    assert [each.result for each in check.verdicts] == ["ok", "skipped"]
    assert check.verdicts[-1].figure == "no time left, it may take 60 s: --only sanitizer"


def test_promised_ratios_come_from_the_rows() -> None:
    staged = {**ROW, "path": "staged", "us": {"p50": 5.0}}
    perftest = {**ROW, "peer": "ucx_perftest", "us": {"p50": 1.6}}
    put = {**ROW, "model": "put", "n": 10**6, "us": {"p50": 0.2}}  # another thing than a message one way
    lines = figures.ratio_lines([ROW, staged, perftest, put])
    assert "latency 8: staged / ucx = 2.50 (wanted 1.3)" in lines
    assert "latency 8: ours / ucx_perftest = 1.25 (wanted at most 1.15)" in lines
    assert figures.ratio_lines([]) == []


def test_interference_is_told_by_its_worst_size() -> None:
    rows = [
        {"bench": f"interference_{what}", "case": "pcb", "grid": grid, "beside": beside, "slowdown": slowdown}
        for what, grid, beside, slowdown in (
            ("send", "one", "sweeps", 9.0),
            ("send", "all", "sweeps", 1.5),
            ("send", "all", "sweeps", 2.5),
            ("sweep", "all", "nothing", 1.0),
            ("sweep", "all", "bells", 1.25),
        )
    ]
    assert figures.interference_figure("", rows) == "pcb send beside sweeps 2.50x, pcb sweep beside bells 1.25x"
    names = {step.name for step in steps.interference_steps(CheckStub())}
    assert {"check interference pinned", "check interference cuda", "interference pinned", "interference cuda"} == names


def test_puts_between_kinds_of_memory_are_told_by_pattern() -> None:
    def row(pattern: str, model: str, sync: str, us: float, gb_s: float | None, **more) -> dict:
        common = {"pattern": pattern, "model": model, "sync": sync, "peer": None, "target": "idle"}
        return common | {"us": {"p50": us}, "gb_s": gb_s} | more

    rows = [
        row("gg", "put", "block", 4.5, 0.001),
        row("gg", "put", "block", 9.0, 7.0),
        row("gg", "put", "flood", 100, 50.0),
        row("gg", "put", "flood", 900, 350.0),
        row("gg", "put", "flood", 100, 990.0, peer="ucx"),
        row("gg", "put", "inject", 0.1, None),
        row("sg", "get", "block", 6.0, 0.001),
    ]
    assert figures.rma_figure("", rows) == "gg put 4.5 us 350 GB/s, sg get 6 us"
    busy = [row("gg", "put", "block", 4.5, 1.0, target="busy", waited=False)]
    assert figures.rma_figure("", busy) == "waited for the target: none"
    busy.append(row("pg", "get", "flood", 1e5, 0.0, target="busy", waited=True))
    assert figures.rma_figure("", busy) == "waited for the target: pg get"


def test_nvshmem_stands_beside_kernels_that_put(tmp_path: pathlib.Path) -> None:
    check = CheckStub()
    check.scratch = tmp_path
    check.rows = [{"bench": "kernel_puts", "brant": "0.1.0+gabc", "gpu": "H100"}]
    said = "a line of its own\nkernel_put_notify 8 1 2000 2.5\nkernel_puts 1048576 32 2000 3.0\n"
    nvshmem.write_rows(check, said)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["peer"], row["brant"], row["gpu"]) for row in rows] == [("nvshmem", "0.1.0+gabc", "H100")] * 2
    assert rows[0]["gb_s"] is None and rows[1]["gb_s"] == 349.5253
    assert figures.kernel_figure("", rows) == "put notify 8 2.5 us, puts 1M 350 GB/s"


def test_every_pair_of_memories_has_its_rate() -> None:
    copy = {"bench": "memspeed_copy", "peer": None, "from": "host", "to": "1:cuda", "gb_s": 25.0}
    rows = [copy, copy | {"peer": "ucx"}, copy | {"to": "cuda", "gb_s": None}, {"bench": "memspeed_access"}]
    assert figures.memspeed_figure("", rows) == "host to 1:cuda 25 GB/s"
    commands = {step.name: step.command for step in steps.memory_kind_steps(CheckStub())}
    checks = {"check rma kinds", "check rma busy target", "check memspeed"}
    assert set(commands) == {*checks, "rma between GPUs", "rma of other kinds", "memspeed"}
    for name, command in commands.items():
        assert command[:2] == ["brant", "bench"] and command[command.index("--device") + 1] == "cuda", name
    for name in ("rma between GPUs", "rma of other kinds"):
        assert commands[name][commands[name].index("--peer") + 1] == "ucx", f"{name}: beside raw UCX"
    assert {"--check"} <= set(commands["check rma kinds"]) & set(commands["check memspeed"])


def test_collectives_stand_beside_nccl_where_it_was_measured() -> None:
    def row(size: int, peer: str | None, us: float) -> dict:
        return {"bytes": size, "peer": peer, "us": {"p50": us}, "bus_gb_s": 2.5}

    ours = [row(8, None, 3.0), row(65536, None, 9.0)]
    assert figures.coll_figure("", ours) == "8 3 us 2.5 GB/s, 64K 9 us 2.5 GB/s"
    beside = figures.coll_figure("", [row(8, "nccl", 6.0), row(65536, "nccl", 8.0), *ours])
    assert beside == "8 3 us 2.5 GB/s (0.50x nccl), 64K 9 us 2.5 GB/s (1.12x nccl)"
    rivals = {step.name: step.command for step in steps.coll_steps(CheckStub()) if "--peer" in step.command}
    assert set(rivals) == {"allreduce cuda nccl stream", "allreduce cuda nccl graph"}
    for command in rivals.values():
        assert command[command.index("--peer") + 1] == "nccl" and {"device", "--check"} <= set(command)
    names = {step.name for step in steps.coll_steps(CheckStub())} - set(rivals)
    benches = ("allreduce", "broadcast", "allgather", "reduce-scatter", "alltoall", "barrier")
    assert names == {f"{bench} cuda {trigger}" for bench in benches for trigger in ("host", "stream", "graph")}


class CheckStub:
    """What steps ask of a check to name their commands."""

    quick = True

    def program(self, name: str) -> str:
        return name
