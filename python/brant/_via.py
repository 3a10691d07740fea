"""Starting through what the processes have already: a communicator of mpi4py, a process group of torch.distributed."""

from __future__ import annotations

import sys
import threading
from typing import Any

from brant._errors import InvalidArgument


class _Communicator:
    """mpi4py's, or whatever has the same four methods."""

    def __init__(self, communicator: Any):
        self._communicator = communicator
        self._request: Any = None

    def rank(self) -> int:
        return self._communicator.Get_rank()

    def size(self) -> int:
        return self._communicator.Get_size()

    def allgather(self, mine: bytes) -> list[bytes]:
        return self._communicator.allgather(mine)

    def start_barrier(self) -> None:
        begin = getattr(self._communicator, "Ibarrier", None)
        self._request = begin() if begin is not None else _Thread(self._communicator.Barrier)

    def barrier_done(self) -> bool:
        return bool(self._request.Test())


class _Thread:
    """A call that blocks, as a request of MPI: the network has to be kept moving meanwhile."""

    def __init__(self, call: Any):
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Any) -> None:
        try:
            call()
        except BaseException as error:
            self._error = error

    def Test(self) -> bool:  # noqa: N802, MPI's name
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True


class _ProcessGroup:
    def __init__(self, distributed: Any, group: Any):
        self._distributed, self._group = distributed, group
        self._work: Any = None

    def rank(self) -> int:
        return self._distributed.get_rank(self._group)

    def size(self) -> int:
        return self._distributed.get_world_size(self._group)

    def allgather(self, mine: bytes) -> list[bytes]:
        every: list[Any] = [None] * self.size()
        self._distributed.all_gather_object(every, mine, group=self._group)
        return every

    def start_barrier(self) -> None:
        self._work = self._distributed.barrier(self._group, async_op=True)

    def barrier_done(self) -> bool:
        return self._work.is_completed()


def exchange_of(via: Any) -> Any:
    """What `via` of brant.init can do, by the five names that brant calls."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and via is distributed:
        if not distributed.is_initialized():
            raise InvalidArgument("via=torch.distributed: call torch.distributed.init_process_group before")
        return _ProcessGroup(distributed, None)
    if distributed is not None and isinstance(via, getattr(distributed, "ProcessGroup", ())):
        return _ProcessGroup(distributed, via)
    missing = [name for name in ("Get_rank", "Get_size", "allgather", "Barrier") if not hasattr(via, name)]
    if not missing:
        return _Communicator(via)
    raise InvalidArgument(
        f"via={via!r}: pass a communicator of mpi4py (MPI.COMM_WORLD), torch.distributed or a process group of it, or "
        f"an object with Get_rank, Get_size, allgather and Barrier; this one lacks {', '.join(missing)}"
    )
