"""A process of brant.launch: main(), with the arguments CALL LIFELINE RESULTS, all of them inherited descriptors."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pickle
import sys
import threading
import time
import traceback
from typing import Any

GONE = 1


def _end_with(lifeline: int) -> None:
    """When whoever called launch has ended, however it did."""
    os.read(lifeline, 1)  # nobody writes: it returns at the end
    os._exit(GONE)


def _dumps(value: Any) -> bytes:
    if importlib.util.find_spec("cloudpickle") is None:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    import cloudpickle

    return cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _run(call: bytes) -> Any:
    import brant

    function, args, keywords = pickle.loads(call)
    result = function(*args, **keywords)
    return brant.run(result) if inspect.iscoroutine(result) else result


def _pickled_result(result: Any) -> bytes:
    try:
        return _dumps(result)
    except Exception as error:
        raise TypeError(f"what the function returned, a {type(result).__name__}, cannot be pickled: {error}") from error


def _describe(error: BaseException) -> tuple:
    """The fields of _launching.Outcome."""
    try:
        pickled = _dumps(error)
        pickle.loads(pickled)  # some classes of exceptions can be written only
    except Exception:
        pickled = None
    kind = "".join(traceback.format_exception_only(error)).strip()
    return time.monotonic_ns(), None, pickled, kind, "".join(traceback.format_exception(error))


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def main() -> None:
    from brant._launching import read_whole

    call, lifeline, results = int(sys.argv[1]), int(sys.argv[2]), [int(one) for one in sys.argv[3].split(",")]
    sys.argv[:] = [""]  # as in a notebook: nothing of this is for the function
    result = results.pop(int(os.environ["BRANT_RANK"]))
    # What the function starts need not have these.
    for file in (result, lifeline):
        os.set_inheritable(file, False)
    for file in results:
        os.close(file)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    try:
        content = read_whole(call)
        os.close(call)
        outcome = (time.monotonic_ns(), _pickled_result(_run(content)), None, "", "")
    except BaseException as error:  # SystemExit and Ctrl-C too: nothing that ends a rank must look like a result
        outcome = _describe(error)
    _write(result, pickle.dumps(outcome))
    if outcome[1] is None:
        import brant

        brant._end(True)  # the others learn of it at once
        sys.exit(GONE)
