"""The extension module: what src/bindings/python binds. Programs use the names that `brant` itself has."""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from collections.abc import Awaitable as _Awaitable
from typing import Any, TypeVar

from brant._kernels import DeviceBell, FanIn

_T = TypeVar("_T")

class Awaitable:
    """What is under way: a send, a receive, a put, a get, a pause, a task. It goes on whether or not it is awaited, and
    holds its arrays until it has ended. One coroutine at a time awaits it; once it has an answer, as often as wanted.
    """

    def __await__(self) -> Generator[Any, None, Any]: ...
    def done(self) -> bool:
        """There is an answer, and awaiting it does not wait."""
    def cancel(self) -> None:
        """Whoever waits gets `Canceled`. A receive is withdrawn, so that the next one gets its message, even if it was
        on its way; a send goes on, and holds its arrays until it has ended. An answer that is there stays."""
    def wait(self) -> Any:
        """Waits in plain code, outside coroutines, without the GIL. Returns and raises what awaiting would."""

class Task(Awaitable):
    """A coroutine that brant's own loop runs. `cancel` raises `Canceled` in it, where it waits."""

class Array:
    """An array in memory of brant, contents undefined at first: of a device as a rule, since `brant.empty` gives a
    NumPy array of host memory. The memory goes back when nobody uses the array or a view of it any more."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int:
        """Where it is, as a number, for calls that take pointers. The CPU may not look at memory of a device."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def format(self) -> str:
        """The type of the elements in the language of the module struct: "d" for 64-bit floats."""
    @property
    def memory(self) -> str:
        """ "host", "pinned", "cuda" or "emulated"."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def copy_from(self, source: Any) -> None:
        """Copies a contiguous array of as many bytes, and waits for it.

        Raises:
            InvalidArgument: another number of bytes or order of elements, or strides.
        """
    def copy_to(self, target: Any) -> None:
        """Copies into a contiguous array of as many bytes, and waits for it.

        Raises:
            InvalidArgument: another number of bytes or order of elements, or strides.
        """

class ChannelEnd:
    """One end of an ordered connection between two processes, as `brant.channel` opens it. Message n of one end meets
    receive n of the other. Closed when nobody refers to it any more."""

    def __init__(self, peer: int, id: int, path: str, raw: bool) -> None: ...
    def send(self, *objects: Any, timeout: float | None = None, delivered: bool = False) -> Awaitable:
        """Sends one message: one object or several, arrays of any shape, type and layout or what can be pickled. It
        leaves when the streams of its arrays on a GPU have done what is queued there now, and what is sent later leaves
        behind it; nobody is blocked meanwhile.

        Args:
            timeout: seconds after which the waiter gets `TimedOut`. The message goes on, unless it waits for a stream
                or behind one that does: then it does not leave.
            delivered: end when the receiver has the message, instead of when the arrays may be written again.

        Raises (here, or when awaited):
            InvalidArgument: the channel is closed, an object cannot be pickled.
            NotSupported: memory of a device whose elements lie apart in more than eight dimensions.
            PeerLost: the other process has ended.
            Truncated, PeerRejected: the receiver could not take it.
            LimitReached: 65536 operations of this process are under way, or wait in this channel for streams.
            DeviceFailed: what is queued on the stream of an array failed.
        """
    def recv(self, out: Any = None, *, timeout: float | None = None) -> Awaitable:
        """Receives the next message. Awaited, it gives the object, or a tuple of several; with `out` that.

        Args:
            out: an array, or a list of as many as the message has, of the same shapes and element types, in any order
                of elements. The message lands when their streams have done what is queued there now. None: it comes in
                new memory, of this process's device if it was sent from one.
            timeout: seconds after which the waiter gets `TimedOut`. The message is left for the next receive.

        Raises (here, or when awaited):
            InvalidArgument: the channel is closed; `out` does not fit the message, which is gone then.
            WrongKind: `out` is no array.
            PeerLost: the other process has ended, and sends nothing more.
            Canceled: this end or the other one was closed.
        """
    def close(self) -> None:
        """Ends what waits here with `Canceled`. What was sent still arrives; behind it the other end is told. Waits for
        what the other process reads at the moment, 5 s at most, and as long for arrays that a stream still computes:
        what is not computed then ends with `Canceled` too."""
    def __aiter__(self) -> AsyncIterator[Any]: ...
    def __anext__(self) -> _Awaitable[Any]: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def peer(self) -> int:
        """The rank of the other process."""
    @property
    def id(self) -> int: ...

class Stream:
    """A stream of the device of this process: a queue of work. Streams of PyTorch, CuPy and cuda.core do as well.

    Raises:
        NotSupported: the process has no device.
    """

    def __init__(self) -> None: ...
    def synchronize(self) -> None:
        """Waits until all that was queued is done. Other threads of Python run meanwhile."""
    def __cuda_stream__(self) -> tuple[int, int]: ...
    @property
    def handle(self) -> int:
        """The CUstream, with CUDA."""

class Notifier:
    """Makes bells: keep it as long as they are used. It allocates all memory that they will need, so make it before
    kernels run that end late.

    Args:
        bells: open at once that the device rings and Python sees; half as many of other sorts, 512 at most.

    Raises:
        NotSupported: the process has no device, or one that does not reach memory of the host.
    """

    def __init__(self, bells: int = 1024) -> None: ...
    def fan_in(self, arrivals: int) -> FanIn:
        """For kernels, to make one ring of so many arrivals. Its memory goes with the notifier.

        Raises:
            InvalidArgument: 0, or more than 65535. LimitReached.
        """

class Bell:
    """A counter in one direction between the device and Python. Its value, the epoch, begins at 0 and only grows; what
    was written before a ring is there for whoever sees its epoch.

    Args:
        notifier: it holds the memory.
        rung_by: "device" (kernels and streams) or "host" (Python).
        seen_by: "host" or "device".

    Raises:
        LimitReached: as many bells are open as the notifier has.
        InvalidArgument: that is no such sort.
    """

    def __init__(self, notifier: Notifier, rung_by: str = "device", seen_by: str = "host") -> None: ...
    def ring(self, epoch: int) -> None:
        """Tells the device of an epoch, which is not earlier than the last one. For bells that Python rings."""
    def when(self, epoch: int, timeout: float | None = None) -> Awaitable:
        """To be awaited: the bell has reached the epoch. Gives the epoch that it has.

        Raises:
            TimedOut, Canceled: the bell was closed.
            InvalidArgument: Python does not see it.
        """
    def enqueue_ring(self, stream: Any, epoch: int) -> None:
        """The stream rings when it comes there. It may be captured into a graph."""
    def enqueue_wait(self, stream: Any, epoch: int) -> None:
        """The stream waits there until the bell has reached the epoch."""
    def device(self) -> DeviceBell:
        """For kernels, to ring it or to wait for it: an address and a number, by value. They are good until the bell is
        closed, which letting it go does too: keep it until the kernels that have them have ended, since its word is
        another bell's later. They mean nothing to other processes.

        Raises:
            InvalidArgument: the bell is closed.
        """
    def close(self) -> None:
        """Nobody must be ringing it any more, no kernel either. Who waits gets Canceled."""
    @property
    def epoch(self) -> int:
        """As Python sees it, or has rung it last."""
    @property
    def is_open(self) -> bool: ...

class Team:
    """Processes of the job that act together, in an order: they combine arrays, hand blocks around, wait for each
    other. All of them make it, and make the same calls in the same order; different teams are independent.

    A call is under way from the moment it is made, and holds its arrays until it has ended. Awaited it gives the array
    with the result: `out`, or a new one (of NumPy; of arrays on a device a `brant.Array` there, which CuPy, PyTorch and
    others show without a copy). `await team.allreduce(a)`, or `team.allreduce(a).wait()` in plain code. Arrays in host
    memory have any order and any strides, those on a device are in C order; members may have different kinds. What is
    filled has the element type of what is given. What computes an array on a GPU is waited for.

    With `stream`, a stream of PyTorch, CuPy, Numba, cuda.core or brant, or the number of a CUstream, the call is queued
    there and carried out on the device, behind what the stream has to do already: it returns at once, with `out`, which
    must be given. Calls of streams have an order of their own, on the device one after the other, and
    `prepare_streams` comes first. The stream is put behind those that compute the arrays. It may be captured. Keep the
    arrays until it has passed the call, and look at `fault` then.

    Args:
        ranks: of the job, this process among them, in the order of the team; the same at all of them.
        patience: seconds after which a member that has not come to a call ends the team; None: 600.
        way: "automatic", or "messages": not by memory that the members share.

    Raises:
        InvalidArgument: a list without this process, or with a rank twice or outside the job.
        PeerLost, TimedOut: a member has ended, or did not come.

    The calls raise:
        InvalidArgument: shapes, element types or ops that do not fit; an array on another GPU than this process works
            with; a stream before `prepare_streams`; or members called different things, which ends the team, as the
            last two lines do.
        NotSupported: an array on a device that is not in C order; on a stream: functions, and blocks of different
            sizes.
        WrongKind: no array; an array on a GPU in a process without one; on a stream: memory that kernels do not reach.
        OutOfMemory: pinned memory for arrays on a device.
        PeerLost, TimedOut: a member has ended, or did not come; the text says who, and in which call.
    """

    def __init__(self, ranks: list[int], *, patience: float | None = None, way: str = "automatic") -> None: ...
    def split(self, color: int, key: int = 0) -> Team | None:
        """A team for each colour, its members in the order of `key`, and of rank where keys are equal; None for a
        negative colour. All members call it; it waits for them."""
    def local(self) -> Team:
        """A team of the members on this process's host, in their order here. They alone call it and are waited for."""
    def shrink(self) -> Team:
        """A team of the members that live, in their order here. All that live call it."""
    def close(self) -> None:
        """What is under way ends as Canceled, for all members."""
    def prepare_streams(self) -> None:
        """Makes the team ready for calls with `stream`. All members call it; it waits for them. Once is enough.

        Raises:
            NotSupported: at all members alike, where one of them has no GPU that maps the others' memory, or there are
                more than 8. The log of that one says why.
            OutOfMemory: it takes 25 to 28 MB of the device's memory.
        """
    def journal(self) -> list[dict[str, Any]]:
        """The last 64 calls of the host, the oldest first: number, kind, type, op, root, nbytes, status, begun_ns,
        ended_ns, algorithm."""
    @property
    def rank(self) -> int:
        """Of this process in the team."""
    @property
    def size(self) -> int: ...
    @property
    def ranks(self) -> list[int]:
        """Which processes of the job the members are."""
    @property
    def name(self) -> str:
        """ "0.3": the third team that rank 0 of the job is the lowest member of."""
    @property
    def is_open(self) -> bool: ...
    @property
    def fault(self) -> str:
        """What ended the team; empty as long as it is of use."""
    def barrier(self, *, timeout: float | None = None, stream: Any = None) -> Any:
        """Nobody goes on before all have come."""
    def broadcast(self, array: Any, root: int = 0, *, timeout: float | None = None, stream: Any = None) -> Any:
        """The array of the root, into those of all."""
    def allreduce(
        self,
        array: Any,
        op: str | Callable = "sum",
        *,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """Element by element the combination of what all give, by rank, for all. In place: `out=array`.

        Args:
            op: "sum", "prod", "min", "max", "average", "logical_and", "logical_or", "logical_xor", "bit_and", "bit_or",
                "bit_xor"; or a function of two arrays of one dimension, which gives their combination. It is
                associative, and runs on the host while the network is moved, so that it must not wait for anything.
        """
    def reduce(
        self,
        array: Any,
        op: str | Callable = "sum",
        root: int = 0,
        *,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """The same for the root; None for the others."""
    def reduce_scatter(
        self,
        array: Any,
        op: str | Callable = "sum",
        *,
        counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """Of the combination, whose first dimension is the members, each gets its own part. With `counts`, the same at
        all, its first dimension is their sum, and each gets so many rows."""
    def scan(
        self,
        array: Any,
        op: str | Callable = "sum",
        *,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """The combination of what this member and those of lower ranks give."""
    def exscan(
        self,
        array: Any,
        op: str | Callable = "sum",
        *,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """The same without this member; None at rank 0."""
    def allgather(
        self,
        array: Any,
        *,
        counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """The arrays of all, for all: the first dimension of the result is the members. With `counts`, the rows of each
        member's array, which all know, they lie one behind the other in the first dimension."""
    def alltoall(
        self,
        array: Any,
        *,
        counts: Sequence[int] | None = None,
        out_counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """`array[j]` of member i becomes `result[i]` of member j. With `counts`, so many rows go to each member, and
        `out_counts` come from each."""
    def gather(
        self,
        array: Any,
        root: int = 0,
        *,
        counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """The arrays of all for the root, as of `allgather`; None for the others. Either all members pass `counts` or
        none; those of the root count, the others may pass an empty list."""
    def scatter(
        self,
        array: Any,
        root: int = 0,
        *,
        counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """`array[i]` of the root for member i. The others pass None, and `out`. With `counts`, as of `gather`, member i
        gets so many rows."""
    def neighbour_allgather(
        self,
        array: Any,
        sources: Sequence[int],
        destinations: Sequence[int],
        *,
        counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
    ) -> Awaitable:
        """The array goes to all destinations, and the first dimension of the result is the sources: ranks of the team,
        each edge in the lists of both its ends. Waits for neighbours alone. With `counts`, so many rows come from each
        source; either all members pass it or none."""
    def neighbour_alltoall(
        self,
        array: Any,
        sources: Sequence[int],
        destinations: Sequence[int],
        *,
        counts: Sequence[int] | None = None,
        out_counts: Sequence[int] | None = None,
        out: Any = None,
        timeout: float | None = None,
    ) -> Awaitable:
        """`array[i]` goes to the i-th destination, and `result[j]` comes from the j-th source. With `counts`, so many
        rows go to each destination, and `out_counts` come from each source."""
    def prepare(
        self,
        kind: str,
        array: Any = None,
        *,
        op: str | Callable = "sum",
        root: int = 0,
        out: Any = None,
        counts: Sequence[int] | None = None,
        out_counts: Sequence[int] | None = None,
        sources: Sequence[int] = (),
        destinations: Sequence[int] = (),
    ) -> PreparedCall:
        """A call that is made often, looked at and planned once, with its arrays: `kind` is the name of its method. The
        others may make the same call unprepared."""
    def explain(self, kind: str, array: Any = None, **arguments: Any) -> str:
        """By which algorithm such a call is carried out here; arguments as of `prepare`."""
    def explain_on_stream(self, kind: str, array: Any = None, **arguments: Any) -> str:
        """The same of streams; empty: they do not carry it out."""

class PreparedCall:
    """A collective of `Team.prepare`, made as often as wanted with what its arrays hold then."""

    def start(self, *, timeout: float | None = None, stream: Any = None) -> Any:
        """`await call.start()`, or `call.start(stream=s)`, as of the method. One call at a time is under way; those of
        a stream may follow each other.

        Raises: as the method does.
            InvalidArgument: the last one has not ended; an array lies elsewhere now.
        """

class Segment:
    """An array of this process that others may write into and read from, held while it is exposed.

    Args:
        array: it can be written, and its elements lie together. Memory of `brant.empty`, 16 KiB or more, is mapped by
            the processes of this host; other memory goes over the network.
        read_only: the others only read it, so it need not be one that can be written. brant does not stop them.

    Raises:
        InvalidArgument: it is empty, read-only or has strides.
        WrongKind: it is no array.
    """

    def __init__(self, array: Any, read_only: bool = False) -> None: ...
    def ticket(self) -> bytes:
        """What another process needs to reach it: bytes, which may travel by a channel. At most 1024."""
    def close(self) -> None:
        """Nobody must be using it any more: `await` what the others began, and hear from them that it has ended. One
        that is closed or let go before costs the connection: the others get PeerLost, and where the network reads it
        by software (UCX over TCP) this process may end by SIGSEGV."""
    @property
    def nbytes(self) -> int: ...
    @property
    def is_open(self) -> bool: ...

class RemoteSegment:
    """A segment of another process, or of this one.

    Args:
        peer: the rank of its owner.
        ticket: what `Segment.ticket` gave there.

    Raises:
        InvalidArgument: that is no ticket of this rank.
        NotFound: the segment was closed.
        PeerLost: its owner has ended.
    """

    def __init__(self, peer: int, ticket: bytes) -> None: ...
    def put(
        self,
        array: Any,
        offset: int = 0,
        *,
        timeout: float | None = None,
        steps: tuple[int, list[tuple[int, int]]] | None = None,
        part: tuple[int, int] | None = None,
    ) -> Awaitable:
        """Writes the bytes of an array as they lie, in C order if they do not lie together, at `offset` bytes. When it
        has ended the owner sees it.

        Args:
            timeout: seconds after which the waiter gets `TimedOut`; the put goes on, and its array stays held.
            steps: how they lie in the segment, if not in one run: the bytes of a run, and how many runs there are how
                many bytes apart, innermost first. Where `is_mapped`; an array of the host is in C order.
            part: where the bytes begin in the array, which is in C order, and how many they are. Not with `steps`.

        Raises (here, or when awaited):
            InvalidArgument: it does not fit into the segment.
            NotSupported: `steps` of a segment that is reached over the network.
            PeerLost: the owner has ended.
        """
    def get(
        self,
        out: Any,
        offset: int = 0,
        *,
        timeout: float | None = None,
        steps: tuple[int, list[tuple[int, int]]] | None = None,
        part: tuple[int, int] | None = None,
    ) -> Awaitable:
        """Reads as many bytes as `out` has, from `offset` on. Awaited, it gives `out`. Takes and raises what `put`
        does."""
    @property
    def is_mapped(self) -> bool:
        """This process reaches the memory without a network."""
    def close(self) -> None:
        """Lets go of it here, when what is under way has ended."""
    @property
    def peer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class Halo:
    """What python/brant/_halo.py is made of: `brant.HaloExchange` says what each is for."""

    def __init__(
        self,
        grid: list[int],
        divide: list[int],
        periodic: list[bool],
        ghost: list[int],
        variables: int,
        format: str,
        itemsize: int,
        first_channel: int,
        path: str,
        mode: str,
        messages: str,
        patience: float,
    ) -> None: ...
    def run(self, fields: list[Any], times: int) -> Awaitable: ...
    def bind(self, fields: list[Any]) -> Awaitable: ...
    def array_of(self, i: int) -> tuple[int, int, int, int]: ...
    def phases(self) -> tuple[float, float, float, float]: ...
    def close(self) -> None: ...
    @property
    def first_block(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def message_bytes(self) -> int: ...
    @property
    def is_open(self) -> bool: ...

def init(gpu: str | None = None, joining: str | None = None, via: Any = None) -> None:
    """Starts brant in this process, collectively over the job. Done by whatever needs it first; once in a process.

    Args:
        gpu: "auto", "none", "emulated" or "cuda"; None: what BRANT_GPU says.
        joining: "host" (processes of this host may be joined later), "network" (others too), "off"; None: what
            BRANT_JOIN says.
        via: through what the processes tell each other where they are, where something started them that brant does not
            speak: a communicator of mpi4py (`MPI.COMM_WORLD`), `torch.distributed` or a process group of it, or an
            object with `Get_rank`, `Get_size`, `allgather` (of bytes) and `Barrier`. Its ranks are brant's. It is used
            again when brant ends. None: what the launcher offers.

    Raises:
        Error: what makes a start impossible, in words.
    """

def join(address: str, *, timeout: float | None = 10.0) -> Awaitable:
    """Joins a process that is not of this job, by what `brant.address()` gave there. Awaited, it gives a rank, above
    those of the job, which is good for `brant.channel` and `brant.RemoteSegment`; chares have no part in it. For a
    process of the own job that is its rank.

    Args:
        timeout: seconds for the answer, which takes progress over there.

    Raises (here, or when awaited):
        InvalidArgument: that is no address, or a damaged one.
        TimedOut: no answer: its program makes no progress, or takes nobody with this address any more.
        PeerLost: that process has ended.
        NotSupported: this process was started without joining="host" or "network" (BRANT_JOIN).
        VersionMismatch: of brant, or of the network library.
        LimitReached: 1024 processes are joined.
    """

def accept(*, timeout: float | None = None) -> Awaitable:
    """Awaited, it gives the rank of the next process that has joined this one, in the order in which they came. Who has
    joined may send at once, whether or not this is called.

    Raises (when awaited):
        TimedOut: none came in so many seconds.
    """

def leave(peer: int, *, timeout: float | None = 5.0) -> Awaitable:
    """Parts from a process that has joined, or that was joined; awaited, until it has heard of it, or so many seconds
    are over. What is under way with it ends with `PeerLost` at both ends. No effect on one that has gone already.

    Raises:
        InvalidArgument: a rank of the job.
    """

def stop_accepting() -> None:
    """Nobody joins any more with the addresses and descriptors that were given until now."""

def end(failed: bool) -> None: ...
def is_running() -> bool:
    """It was started, and has not ended."""

def rank() -> int:
    """Of this process, 0 to size - 1."""

def size() -> int:
    """How many processes the job has."""

def local_rank() -> int:
    """Of this process among those of its host."""

def local_size() -> int:
    """How many processes of the job run on this host."""

def network() -> str:
    """The network library, its version and where it was loaded from."""

def device() -> str:
    """What this process works with: "cuda", "emulated", or "host" for none."""

def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine in brant's own loop, which is faster than asyncio and knows only what belongs to brant. Tasks
    that go on when it has ended are closed. Returns and raises what the coroutine does."""

def spawn(coroutine: Coroutine[Any, Any, Any]) -> Task:
    """Starts a coroutine beside the one that calls it, in brant's own loop.

    Raises:
        InvalidArgument: no such loop runs: under asyncio call asyncio.create_task.
    """

def sleep(seconds: float) -> Awaitable:
    """A pause, under either loop. 0 lets others run."""

def join_address() -> str: ...
def layout_of(array: Any) -> tuple[tuple[int, ...], str, int, bool, bool]: ...
def new_array(shape: list[int], format: str, itemsize: int, memory: str) -> Any: ...
def bytes_by_path() -> dict[str, int]:
    """What this process has sent so far, by the names of the paths."""

def turn(spin: float) -> bool: ...
def arm() -> float: ...
def fd() -> int: ...

# What python/brant/_chares.py is made of.

class Place:
    """Where an element of an array of chares is."""

    @property
    def index(self) -> Any: ...

class Address:
    """Whom a call or a value goes to. Its bytes may travel."""

    @staticmethod
    def of(bytes: bytes) -> Address: ...
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

def wait_for(place: Place, condition: Any) -> Awaitable: ...
def loop_runs() -> bool: ...
def has_program() -> bool: ...
def program_number() -> int: ...
def begin_program(deadlock_after: float) -> Awaitable: ...
def end_program() -> None: ...
def exit_program(code: int) -> None: ...
def fail_program(text: str) -> None: ...
def note_woken(woken: bool) -> None: ...

class CppLine:
    @property
    def name(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def entries(self) -> list[str]: ...

def exposed(name: str) -> CppLine | None: ...
def exposed_names() -> list[str]: ...
def programs_begun() -> int: ...
def create_cpp(of: CppLine, shape: tuple[int, ...], placement: str | bytes, args: tuple) -> Address: ...
def call_cpp(of: CppLine, number: int, address: Address, args: tuple, priority: int) -> None: ...
def ask_cpp(of: CppLine, number: int, address: Address, args: tuple, priority: int) -> Awaitable: ...
def create(shape: tuple[int, ...], placement: str | bytes, what: Any) -> Address: ...
def element(array: Address, index: Any, dimensions: int) -> Address: ...
def section(array: Address, indices: list[tuple[int, ...]], dimensions: int) -> Address: ...
def array_of(place: Place) -> Address: ...
def call(
    address: Address, method: int, args: tuple, kwargs: dict[str, Any] | None, priority: int, posted: bool
) -> None: ...
def ask(
    address: Address, method: int, args: tuple, kwargs: dict[str, Any] | None, priority: int, posted: bool
) -> Awaitable: ...
def fulfil(address: Address, value: Any, failed: bool) -> None: ...
def contribute(
    place: Place, section: Address | None, value: Any, operation: Any, to: Address | None, method: int
) -> Awaitable | None: ...
def new_future() -> tuple[Awaitable, Address]: ...
def quiescence() -> Awaitable: ...
def destroy(address: Address) -> None: ...

# What python/brant/_global_memory.py is made of. A place is rank, segment, offset, kind of memory, device; a target
# is a place, a number of elements, their format and their size.

class OwnSegment:
    def __init__(self, *args: Any) -> None: ...
    def begin(self) -> tuple[int, int, int, str, int]: ...
    def allocate(self, nbytes: int) -> tuple[int, int, int, str, int]: ...
    def deallocate(self, place: tuple[int, int, int, str, int]) -> None: ...
    def array(self, target: tuple, shape: tuple[int, ...]) -> Any: ...
    def publish(self, ranks: list[int] | None) -> None: ...
    def retire(self) -> Awaitable: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def nbytes_used(self) -> int: ...
    @property
    def is_open(self) -> bool: ...

def open_space() -> None: ...
def close_space() -> None: ...
def local_array(target: tuple, shape: tuple[int, ...]) -> Any: ...
def put(to: tuple, array: Any, flag: tuple | None, then: Any, timeout: float | None) -> Awaitable: ...
def get(from_: tuple, out: Any, timeout: float | None) -> Awaitable: ...
def copy(from_: tuple, to: tuple, flag: tuple | None, then: Any, timeout: float | None) -> Awaitable: ...
def atomic(at: tuple, name: str, letter: str, operand: int, expected: int, timeout: float | None) -> Awaitable: ...
def fence(rank: int, timeout: float | None) -> Awaitable: ...
def reach(at: tuple, timeout: float | None) -> Awaitable: ...

# What python/brant/_remote_calls.py is made of.

def ask_function(rank: int, args: tuple, kwargs: dict[str, Any] | None, subject: str) -> Awaitable: ...
def tell_function(rank: int, args: tuple, kwargs: dict[str, Any] | None, subject: str) -> None: ...
