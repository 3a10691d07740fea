"""Ghost cells of a grid that is cut into blocks: docs/guide/halo.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from brant import _brant
from brant._arrays import elements_of, empty
from brant._errors import InvalidArgument

MAPPED_BYTES = 16 << 10  # of host memory from which on other processes map it


class HaloPhases(NamedTuple):
    """Where the time of an exchange went, in microseconds, as this process's CPU saw it: 0 but in mode "fused"."""

    pack: float
    sync: float
    comm: float
    unpack: float


def _three(value: Any, name: str, kind: type) -> list:
    """Of x, y and z: one value stands for all of them."""
    values = list(value) if isinstance(value, Sequence) else [value] * 3
    if len(values) != 3 or not all(isinstance(one, kind) or hasattr(one, "__index__") for one in values):
        raise InvalidArgument(f"halo: {name}={value!r}: give one for each of x, y and z, or the same for all")
    return [kind(one) for one in values]


class HaloExchange:
    """Fills the ghost cells of the blocks of a grid from the blocks that own them: across faces, edges and corners.

    Blocks are numbered with z the fastest; each process has as many of them as the others, in order. A *field* is the
    array of a block: of shape (variables, z, y, x), in C order, with its ghost cells around; with one variable also
    (z, y, x). It is of NumPy, CuPy, PyTorch or `brant.empty`, all fields of one kind of memory. Ghosts beyond an edge
    of the grid that is not periodic are never written by others.

        exchange = brant.HaloExchange(grid=(200, 200, 200), divide=(4, 4, 4), periodic=True)
        fields = exchange.empty()
        await exchange.run(fields)

    Every process makes one, with the same options; the first `run` or `bind` compares them with those of the two
    processes beside this one. It belongs to the thread that started brant.

    Args:
        grid: cells along x, y, z; in two dimensions 1 along z, without ghosts there.
        divide: parts along each; their product is a multiple of the number of processes.
        periodic: whether the grid goes on at its other side, for each of x, y, z or for all.
        ghost: cells on either side, likewise; not wider than the narrowest block.
        variables: of a cell.
        dtype: of a variable, what NumPy takes for one.
        mode: how the cells travel: "fused", "direct", "graph", "resident", "stream", "stacked" or "shapes"
            (docs/guide/halo.md).
        messages: what is one message, in mode "fused": "per_process", "per_block" or "all".
        first_channel: its ids are those from this one on: twice as many as there are processes.
        path: forces the path of all messages, for measuring.
        patience: seconds that a kernel of mode "direct" waits for a neighbour; None: for ever.

    Raises:
        InvalidArgument: options that do not fit one another or the number of processes; ids in use.
        PeerLost: a process has ended.
    """

    def __init__(
        self,
        grid: Sequence[int],
        divide: Sequence[int],
        *,
        periodic: bool | Sequence[bool] = False,
        ghost: int | Sequence[int] = 1,
        variables: int = 1,
        dtype: Any = float,
        mode: str = "fused",
        messages: str = "per_process",
        first_channel: int = 0,
        path: str | None = None,
        patience: float | None = 30.0,
    ):
        if variables < 1 or first_channel < 0:
            raise InvalidArgument(
                f"halo: variables={variables} first_channel={first_channel}: give 1 variable or more, and an id from 0"
            )
        self._dtype = dtype
        self._halo = _brant.Halo(
            _three(grid, "grid", int),
            _three(divide, "divide", int),
            _three(periodic, "periodic", bool),
            _three(ghost, "ghost", int),
            variables,
            *elements_of(dtype),
            first_channel,
            path or "",
            mode,
            messages,
            -1.0 if patience is None else patience,
        )

    def run(self, fields: Any, times: int = 1) -> _brant.Awaitable:
        """One exchange, under way from here on. Awaited it ends when the ghosts of this process's blocks are there, and
        their cells may be written again. Every process runs as many as the others, one at a time.

        Args:
            fields: one for each block of this process, in a list, or the one array. It holds them until it has ended,
                in modes "direct", "graph" and "resident" until the exchange is closed or bound to others. What produces
                them on a device is waited for, as the array names it. They may be others in each run, but in these
                modes.
            times: so many exchanges after each other, the same in every process.

        Raises (here, or when awaited):
            InvalidArgument: fields that are missing, of another shape or element type, not contiguous, read-only, or
                not those that the exchange is bound to; an exchange under way; it is closed; another process made its
                exchange with other options.
            WrongKind: what is no array; fields in host memory and on a device.
            NotSupported: in modes "direct", "graph" and "resident": memory that other processes cannot map, another
                host.
            PeerLost, TimedOut: a neighbour has ended, or not come in time.
            Canceled: the exchange was closed, or the wait for it cancelled.

        After a failure of the exchange itself the ghosts are undefined, and further runs raise it again.
        """
        return self._halo.run(self._listed(fields), times)

    def bind(self, fields: Any) -> _brant.Awaitable:
        """Tells the other processes of these fields, into which those of modes "direct", "graph" and "resident" write.
        The first `run` does so by itself; for others later all processes call this. In other modes it does nothing.
        Raises as `run` does."""
        return self._halo.bind(self._listed(fields))

    def _listed(self, fields: Any) -> list:
        return list(fields) if isinstance(fields, (list, tuple)) else [fields]

    def empty(self, memory: str = "host") -> list:
        """Fields for the blocks of this process, contents undefined, that every mode takes.

        Args:
            memory: as of `brant.empty`, which makes them.
        """
        shapes = [self.array_of(i) for i in range(self.blocks)]
        if memory != "host":
            return [empty(shape, self._dtype, memory) for shape in shapes]
        items = MAPPED_BYTES // elements_of(self._dtype)[1] + 1
        counts = [shape[0] * shape[1] * shape[2] * shape[3] for shape in shapes]
        return [
            empty(max(count, items), self._dtype)[:count].reshape(shape)
            for count, shape in zip(counts, shapes, strict=True)
        ]

    def array_of(self, i: int) -> tuple[int, int, int, int]:
        """The shape of the field of this process's i-th block: (variables, z, y, x), ghosts included.

        Raises:
            InvalidArgument: it has no such block; the exchange is closed.
        """
        return self._halo.array_of(i)

    @property
    def first_block(self) -> int:
        """The number of this process's first block."""
        return self._halo.first_block

    @property
    def blocks(self) -> int:
        """How many blocks this process has."""
        return self._halo.blocks

    @property
    def messages(self) -> int:
        """That one exchange sends from this process's blocks."""
        return self._halo.messages

    @property
    def message_bytes(self) -> int:
        """Of these messages together."""
        return self._halo.message_bytes

    @property
    def is_open(self) -> bool:
        return self._halo.is_open

    def phases(self) -> HaloPhases:
        """Of the last `run` that ended well."""
        return HaloPhases(*self._halo.phases())

    def close(self) -> None:
        """Ends it, and lets go of the fields. A run under way ends with `Canceled`. In mode "resident" a kernel stays
        on the device until then."""
        self._halo.close()

    def __enter__(self) -> HaloExchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
