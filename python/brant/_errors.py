"""The exceptions of brant: one class for each outcome that a program may want to treat by itself."""

from __future__ import annotations


class Error(Exception):
    """What brant could not do. The text names the object, the cause and the cure.

    Attributes:
        status: the outcome as C++ names it, for example "peer_lost".
        subject: the object it happened to, for example "channel 7 with rank 1", or None.
        peer: the rank of the other process, or None.
    """

    status = "internal"

    def __init__(self, text: str, *, status: str | None = None, subject: str | None = None, peer: int | None = None):
        super().__init__(text)
        if status is not None:
            self.status = status
        self.subject = subject
        self.peer = peer


class InvalidArgument(Error, ValueError):
    """An argument is outside what the call accepts: a wrong dtype, shape, rank or id."""

    status = "invalid_argument"


class WrongKind(Error, TypeError):
    """The memory is not of the kind that the call takes."""

    status = "wrong_kind"


class Truncated(Error):
    """A message is longer than what was there to receive it."""

    status = "truncated"


class LimitReached(Error):
    """A documented bound is exhausted: wait until some operations have ended, and try again."""

    status = "limit_reached"


class NotSupported(Error):
    """This machine, or this version of brant, cannot do it."""

    status = "not_supported"


class NotFound(Error):
    """A segment that was closed, a file or a key that does not exist."""

    status = "not_found"


class PeerError(Error):
    """The other process is the cause."""


class PeerLost(PeerError):
    """The other process has ended, died or cannot be reached."""

    status = "peer_lost"


class PeerRejected(PeerError):
    """The other process refused what was asked for."""

    status = "peer_rejected"


class VersionMismatch(PeerError):
    """The other process runs a version that cannot talk to this one; or a library of this process, which something else
    loaded first, is one that brant cannot use."""

    status = "version_mismatch"


class OutOfMemory(Error, MemoryError):
    """Host or device memory is exhausted."""

    status = "no_memory"


class DeviceFailed(Error):
    """The GPU or its driver reported an error."""

    status = "device_failed"


class Canceled(Error):
    """The operation was withdrawn, or the object it belongs to was closed."""

    status = "canceled"


class TimedOut(Error, TimeoutError):
    """The time was over first."""

    status = "timed_out"


class ForeignLibraryWarning(UserWarning):
    """brant uses a network library that something else in this process, often MPI, has brought: the text says which one
    and what to do. `warnings.simplefilter("error", brant.ForeignLibraryWarning)` makes it an exception of the start."""


_CLASSES = {
    kind.status: kind
    for kind in (
        InvalidArgument,
        WrongKind,
        Truncated,
        LimitReached,
        NotSupported,
        NotFound,
        PeerLost,
        PeerRejected,
        VersionMismatch,
        OutOfMemory,
        DeviceFailed,
        Canceled,
        TimedOut,
    )
}


def make(status: str, text: str, subject: str | None, peer: int | None) -> Error:
    """The exception for an outcome of C++."""
    return _CLASSES.get(status, Error)(text, status=status, subject=subject, peer=peer)
