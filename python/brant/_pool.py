"""Functions over many values, in all processes of the job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from brant import _brant
from brant._chares import Chare
from brant._entries import entry
from brant._errors import InvalidArgument
from brant._runtime import gather

AT_A_TIME = 2  # chunks at a worker: while it computes one, the next is on its way


class _Worker(Chare):
    @entry
    async def compute(self, function: Callable[..., Any], calls: list[tuple]) -> list:
        results = []
        for arguments in calls:
            result = function(*arguments)
            results.append(await result if inspect.iscoroutine(result) else result)
        return results


class Pool:
    """All processes of the job as workers, this one included. Used in a program of chares, from any process:

    squares = await brant.pool.map(square, range(100))
    """

    def __init__(self) -> None:
        self._workers: list[Any] = []
        self._program = 0
        self._next = 0

    async def map(self, function: Callable[[Any], Any], *values: Iterable[Any], chunk: int | None = None) -> list:
        """The results of `function` for every value, in their order. Whoever is done gets the next chunk.

        Args:
            function: plain, or `async def`; of a module, since it travels by its name.
            values: what the function takes, one iterable for each of its parameters.
            chunk: how many calls go to a worker at once. None: about four portions for each.

        Raises:
            What the function raises, the first of it, when what others compute at that moment has ended.
        """
        calls = list(zip(*values, strict=True))
        workers = self._all()
        size = max(1, len(calls) // (4 * len(workers))) if chunk is None else chunk
        if size < 1:
            raise InvalidArgument("chunk is a number of calls, 1 or more")
        starts = iter(range(0, len(calls), size))
        results: list[Any] = [None] * len(calls)

        async def feed(worker: Any) -> None:
            for start in starts:
                part = calls[start : start + size]
                try:
                    results[start : start + len(part)] = await worker.compute.reply(function, part)
                except Exception as error:
                    failures.append(error)
                if failures:
                    return

        failures: list[Exception] = []
        await _together([feed(worker) for _ in range(AT_A_TIME) for worker in workers])
        if failures:
            raise failures[0]
        return results

    async def submit(self, function: Callable[..., Any], *args: Any, rank: int | None = None) -> Any:
        """The result of one call, in the process of `rank`; None: in the next one of a round."""
        workers = self._all()
        if rank is None:
            self._next = (self._next + 1) % len(workers)
            rank = self._next
        if not 0 <= rank < len(workers):
            raise InvalidArgument(f"there is no rank {rank}: the job has ranks 0 to {len(workers) - 1}")
        return (await workers[rank].compute.reply(function, [args]))[0]

    def _all(self) -> list[Any]:
        program = _brant.program_number()
        if program != self._program:
            self._workers, self._program, self._next = list(_Worker.group()), program, 0
        return self._workers


async def _together(coroutines: list[Any]) -> None:
    if _brant.loop_runs():
        await gather(*coroutines)
    else:
        import asyncio

        await asyncio.gather(*coroutines)


pool = Pool()
