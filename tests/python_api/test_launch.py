"""brant.launch: processes from a script or a notebook that run one function."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import BRANT, START, brant, environment, run_command

if brant is not None:
    import launched
    import numpy


def alone(body) -> subprocess.CompletedProcess[str]:
    """Runs it in a process that nobody started as a rank."""
    done = run_command([sys.executable, str(START), __file__, body.__name__, "none"], BRANT_BIN=str(BRANT))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


def expect(kind, *words: str):
    return pytest.raises(kind, match=".*".join(words))


def results() -> None:
    assert brant.launch(3, launched.place, 10, offset=1) == [(1, 3), (11, 3), (21, 3)]
    assert brant.launch(1, launched.place, 1) == [(0, 1)]
    assert not brant.is_running()


def test_results_come_back_by_rank():
    alone(results)


def coroutines() -> None:
    got = brant.launch(3, launched.round_the_ring, numpy.arange(4.0))
    for rank, array in enumerate(got):
        assert numpy.array_equal(array, numpy.arange(4.0) + (rank - 1) % 3)


def test_a_function_may_be_async_and_use_channels():
    alone(coroutines)


def exceptions() -> None:
    with expect(launched.Unlucky, "unlucky 1") as caught:
        brant.launch(3, launched.fails_in, 1)
    assert caught.value.number == 1
    trace = str(caught.value.__cause__)
    assert "in rank 1:" in trace and "fails_in" in trace and "raise Unlucky(rank)" in trace
    with expect(brant.RemoteError, "rank 0 raised", "ValueError: from over there"):
        brant.launch(1, launched.raises_what_cannot_travel)
    with expect(brant.RemoteError, "rank 0 raised SystemExit: 3"):
        brant.launch(1, launched.asks_to_exit)
    with expect(TypeError, "what the function returned, a generator, cannot be pickled"):
        brant.launch(1, launched.returns_what_cannot_travel)


def test_the_first_exception_comes_back_with_its_traceback_and_rank():
    alone(exceptions)


def deaths() -> None:
    start = time.monotonic()
    with expect(brant.PeerLost, "rank 1 was killed by signal 9"):
        brant.launch(2, launched.dies, 1)
    assert time.monotonic() - start < 20
    with expect(brant.Error, "ended before it said", "exit code 7"):
        brant.launch(1, launched.leaves_with, 7)
    with expect(brant.TimedOut, "took longer than 1"):
        brant.launch(1, time.sleep, 60, timeout=1)


def test_processes_that_die_are_named():
    alone(deaths)


def misuse() -> None:
    with expect(brant.InvalidArgument, "1 to 1024 processes, not 0"):
        brant.launch(0, launched.place)
    with expect(brant.InvalidArgument, "1 to 1024 processes, not True"):
        brant.launch(True, launched.place)
    for seconds in (0, -1, "x", float("nan"), float("inf")):
        with expect(brant.InvalidArgument, "timeout=.*0.001 to 100000000 seconds"):
            brant.launch(1, launched.place, 1, timeout=seconds)
    with expect(brant.Error, "^brant.launch: rank 0, 1 ended before it said"):
        brant.launch(2, launched.leaves_with, 0)
    with expect(brant.InvalidArgument, "runs a function, not 3"):
        brant.launch(2, 3)
    with expect(brant.InvalidArgument, "cannot be pickled"):
        brant.launch(1, launched.megabytes, (number for number in range(3)))
    with expect(brant.NotSupported, "inside a process that a launcher started"):
        brant.launch(1, launched.launches)
    os.environ["BRANT_BIN"] = "/nowhere/brant"
    with expect(OSError, "/nowhere/brant"):
        brant.launch(1, launched.place, 1)


def test_misuse_is_refused_in_words():
    alone(misuse)


def output() -> None:
    brant.launch(2, launched.prints)


def test_what_processes_print_appears_here_with_their_ranks():
    done = alone(output)
    assert sorted(done.stdout.splitlines()) == ["[0] out of 0", "[1] out of 1"]
    assert sorted(done.stderr.splitlines()) == ["[0] error of 0", "[1] error of 1"]


def large() -> None:
    before = len(os.listdir("/proc/self/fd"))
    data = os.urandom(20_000_000)
    for _ in range(2):
        assert brant.launch(2, launched.megabytes, data) == [data[::-1]] * 2
    assert len(os.listdir("/proc/self/fd")) == before


def test_large_arguments_and_results_leave_nothing_open():
    alone(large)


def of_main() -> None:
    """As in a notebook: the function exists in this process only."""
    factor = 5
    sys.modules["__main__"].scaled = scaled = eval("lambda: __import__('brant').rank() * factor", {"factor": factor})
    scaled.__module__, scaled.__qualname__ = "__main__", "scaled"
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        with expect(brant.InvalidArgument, "scaled is a function of this notebook or script", "install cloudpickle"):
            brant.launch(2, scaled)
    else:
        assert brant.launch(2, scaled) == [0, 5]
        print("by value")


def test_a_function_of_a_notebook_goes_by_value_or_says_what_to_install():
    alone(of_main)


def stays() -> None:
    brant.launch(2, launched.sleeps, os.environ["FOLDER"])


def lives(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_caller_ends_all_processes(number: int, tmp_path: pathlib.Path):
    command = [sys.executable, str(START), __file__, "stays", "none"]
    process = subprocess.Popen(
        command, env=environment(FOLDER=str(tmp_path), BRANT_BIN=str(BRANT)), stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 30
        while len(list(tmp_path.glob("[01]"))) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        ranks = [int(file.read_text()) for file in tmp_path.glob("[01]")]
        assert len(ranks) == 2 and all(map(lives, ranks))
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        if number == signal.SIGINT:
            assert "KeyboardInterrupt" in errors
        while any(map(lives, ranks)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(lives, ranks))
    finally:
        process.kill()
