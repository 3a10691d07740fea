"""How brant.launch starts processes, and what becomes of them.

`brant run` starts and watches them. The call travels in a file of memory that they inherit, and each has one for what
becomes of it; a pipe that never carries anything tells them when this process ends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import pickle
import re
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from typing import Any, NamedTuple

from brant import _brant
from brant._chares import RemoteError, RemoteTraceback
from brant._errors import Error, InvalidArgument, NotFound, NotSupported, PeerLost, TimedOut

PATIENCE_S = 10.0  # for `brant run` to end all processes once it was asked to
SHORTEST_S, LONGEST_S = 0.001, 1e8  # of a timeout, as `brant run` takes them
TIMEOUT_CODE = 124  # of `brant run`, as of timeout(1)
KILLED = re.compile(r"^brant run: (rank \d+) \(pid \d+\) was (killed by signal \d+ \([^)]*\))")


class Outcome(NamedTuple):
    """What a process says of its function."""

    time_ns: int  # of a clock that all processes of a host share: which of several exceptions came first
    value: bytes | None  # what it returned, pickled
    error: bytes | None  # the exception it raised, pickled; None if that is impossible
    kind: str  # the exception's class and text, for people
    trace: str


def _pickler() -> Any:
    """cloudpickle, which takes functions of notebooks and lambdas, where there is one."""
    if importlib.util.find_spec("cloudpickle") is None:
        return pickle
    import cloudpickle

    return cloudpickle


def _pickle_call(function: Callable, args: tuple, keywords: dict[str, Any]) -> bytes:
    pickler = _pickler()
    name = getattr(function, "__qualname__", repr(function))
    cure = "install cloudpickle, or put the function into a module that the processes can import"
    if pickler is pickle and getattr(function, "__module__", None) == "__main__":
        raise InvalidArgument(f"{name} is a function of this notebook or script, which is not a module: {cure}")
    try:
        call = pickler.dumps((function, args, keywords))
    except Exception as error:
        what = f"the call of {name} cannot be pickled for the processes ({type(error).__name__}: {error})"
        raise InvalidArgument(f"{what}; " + (cure if pickler is pickle else "pass names or numbers instead")) from error
    return call


def _find_brant() -> str:
    beside = pathlib.Path(sysconfig.get_path("scripts"), "brant")
    found = os.environ.get("BRANT_BIN") or (str(beside) if beside.exists() else shutil.which("brant"))
    if not found:
        raise NotFound(
            f"the program `brant`, which starts processes, is neither {beside} nor in PATH nor named by BRANT_BIN"
        )
    return found


def _refuse_in_a_rank() -> None:
    if "BRANT_BOOT_FD" in os.environ or (_brant.is_running() and _brant.size() > 1):
        raise NotSupported(
            "brant.launch inside a process that a launcher started: it is a rank already, and has its job's processes "
            "to talk to (`if brant.rank() == 0` does not help); call launch from a plain Python process"
        )


def read_whole(file: int) -> bytes:
    """What is in a file, wherever in it others are reading."""
    pieces = []
    at = 0
    while piece := os.pread(file, 1 << 30, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _memory(name: str, content: bytes = b"") -> int:
    file = os.memfd_create(name, 0)
    written = 0
    while written < len(content):
        written += os.write(file, content[written:])
    return file


class _Launch:
    """One call of launch: the descriptors it opened, and the process `brant run`."""

    def __init__(self, n: int, call: bytes, timeout: float | None, environment: dict[str, str]):
        self.results: list[int] = []
        self.killed: str | None = None
        self.complaints: list[str] = []
        with contextlib.ExitStack() as until_started:
            call_file = _memory("brant-call", call)
            until_started.callback(os.close, call_file)
            lifeline, self.life = os.pipe()
            until_started.callback(os.close, lifeline)
            with contextlib.ExitStack() as unless_started:
                unless_started.callback(self.close)
                for rank in range(n):
                    self.results.append(_memory(f"brant-result-{rank}"))
                inherited = [call_file, lifeline, *self.results]
                limit = [] if timeout is None else ["--timeout", str(timeout)]
                command = [_find_brant(), "run", "-n", str(n), *limit, "--", sys.executable, "-c"]
                command += [_start(), str(call_file), str(lifeline), ",".join(map(str, self.results))]
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=inherited,
                    env={**os.environ, **environment},
                )
                unless_started.pop_all()

    def close(self) -> None:
        for file in (*self.results, self.life):
            os.close(file)

    def follow(self) -> int:
        """Hands on what the processes print until all have ended: the exit code of `brant run`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ, sys.stdout)
            selector.register(self.process.stderr, selectors.EVENT_READ, sys.stderr)
            rest: dict[Any, bytes] = {self.process.stdout: b"", self.process.stderr: b""}
            while selector.get_map():
                for key, _ in selector.select():
                    piece = os.read(key.fd, 1 << 16)
                    *lines, rest[key.fileobj] = (rest[key.fileobj] + piece).split(b"\n")
                    if not piece:
                        selector.unregister(key.fileobj)
                        lines = [rest[key.fileobj]] if rest[key.fileobj] else []
                    for line in lines:
                        self._hand_on(line.decode(errors="replace"), key.data)
        return self.process.wait()

    def _hand_on(self, line: str, stream: Any) -> None:
        if stream is sys.stderr and line.startswith("brant run: "):
            self.complaints.append(line)
            told = KILLED.match(line)
            if told and self.killed is None:
                self.killed = f"{told[1]} was {told[2]}"
            return
        print(line, file=stream, flush=True)

    def end(self) -> None:
        """Ends all processes, in a bounded time."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()  # the kernel ends its ranks with it
                self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()

    def outcomes(self) -> list[Outcome | None]:
        """Of each rank, None where it ended before it could say."""
        found = []
        for file in self.results:
            try:
                found.append(Outcome(*pickle.loads(read_whole(file))))
            except Exception:  # empty, or cut off by the end of the process
                found.append(None)
        return found


def _start() -> str:
    """The program of each process: it finds modules where this one does, brant among them."""
    path = [one for one in sys.path if isinstance(one, str)]
    return f"import sys; sys.path[:] = {path!r}; from brant._launched import main; main()"


def _raise_remote(rank: int, outcome: Outcome) -> None:
    where = RemoteTraceback(f"in rank {rank}:\n{outcome.trace}")
    error: Any = None
    if outcome.error is not None:
        with contextlib.suppress(Exception):  # of a class that exists over there only
            error = pickle.loads(outcome.error)
    if not isinstance(error, Exception):
        error = RemoteError(f"rank {rank} raised {outcome.kind}")
    raise error from where


def run(
    n: int,
    function: Callable,
    args: tuple,
    keywords: dict[str, Any],
    timeout: float | None,
    environment: dict[str, str],
) -> list:
    """See brant.launch."""
    _refuse_in_a_rank()
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 1024:
        raise InvalidArgument(f"brant.launch starts 1 to 1024 processes, not {n!r}")
    if not callable(function):
        raise InvalidArgument(f"brant.launch(n, function, ...) runs a function, not {function!r}")
    if timeout is not None and not (isinstance(timeout, int | float) and SHORTEST_S <= timeout <= LONGEST_S):
        raise InvalidArgument(
            f"brant.launch(timeout={timeout!r}): use {SHORTEST_S} to {LONGEST_S:.0f} seconds, or None for no limit"
        )
    call = _pickle_call(function, args, keywords)
    job = _Launch(n, call, timeout, environment)
    try:
        try:
            code = job.follow()
        finally:
            job.end()
        return _results(job, code)
    finally:
        job.close()


def _results(job: _Launch, code: int) -> list:
    outcomes = job.outcomes()
    if job.killed is not None:
        raise PeerLost(f"brant.launch: {job.killed}")
    failed = [(one.time_ns, rank) for rank, one in enumerate(outcomes) if one is not None and one.value is None]
    if failed:
        rank = min(failed)[1]
        _raise_remote(rank, outcomes[rank])
    said = "; ".join(line.removeprefix("brant run: ") for line in job.complaints)
    if code == TIMEOUT_CODE:
        raise TimedOut(f"brant.launch: {said}")
    if code != 0 or None in outcomes:
        silent = ", ".join(str(rank) for rank, one in enumerate(outcomes) if one is None)
        who = f"rank {silent}" if silent else "a process"
        raise Error(f"brant.launch: {who} ended before it said what its function returned. {said}".rstrip())
    for line in job.complaints:
        print(line, file=sys.stderr)
    return [_load(rank, outcome.value) for rank, outcome in enumerate(outcomes)]


def _load(rank: int, value: bytes) -> Any:
    try:
        return pickle.loads(value)
    except Exception as error:
        raise RemoteError(f"what the function returned in rank {rank} cannot be unpickled here: {error}") from error
