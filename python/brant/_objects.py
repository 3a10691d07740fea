"""Objects that are no arrays: pickled, with the arrays inside them beside the pickle.

An object is unpickled only if the seal of this job came with it, which only processes know that were started together:
the extension module looks at it before (src/bindings/python/pickle_seal.h).
"""

from __future__ import annotations

import pickle
from typing import Any

from brant._errors import InvalidArgument


def flatten(thing: Any, subject: str, peer: int) -> tuple[bytes, list[memoryview]]:
    """The pickle, and the buffers that it refers to, which are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    except (pickle.PicklingError, TypeError, ValueError, AttributeError) as error:
        text = f"{subject}: an object of type {type(thing).__name__} cannot be pickled: {error}"
        raise InvalidArgument(text, subject=subject, peer=peer) from error
    return data, [buffer.raw() for buffer in buffers]


def restore(data: bytes, buffers: list[bytearray]) -> Any:
    """The object that was flattened."""
    return pickle.loads(data, buffers=buffers)
