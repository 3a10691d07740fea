"""Small experiments from a notebook or a script: processes that run one function, and what it returned in each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def launch(
    n: int,
    function: Callable,
    *args: Any,
    timeout: float | None = None,
    environment: dict[str, str] | None = None,
    **keywords: Any,
) -> list:
    """Starts `n` processes on this host that run `function(*args, **keywords)` as the ranks of one job, and waits for
    them: what it returned in each, in the order of the ranks.

        def norm(length):
            ...
            return total

        print(brant.launch(4, norm, 1000))

    For notebooks and small experiments; programs are started with `brant run`, or the launcher of a cluster. The
    function may be `async`. It and its arguments are pickled: a function of a notebook or script, or a lambda, takes
    the package cloudpickle; one of a module is imported there. What the processes print appears here, each line with
    the rank before it. All processes have ended when this returns, or raises. Ctrl-C, and the end of this process, end
    them too. Costs the start of Python and brant, some 0.3 s.

    Args:
        n: how many processes, 1 to 1024.
        timeout: seconds after which all are ended; None: never.
        environment: variables for the processes, beside those of this one.

    Raises:
        InvalidArgument: the function or an argument cannot be pickled; `n` or `timeout` is out of range.
        NotSupported: this process is a rank itself.
        PeerLost: a process was killed by a signal; the text names rank and signal.
        TimedOut: the time was over.
        Exception: the first one that the function raised in a process, with the traceback over there as its cause.
    """
    from brant import _launching  # subprocess and the like take a while to import

    return _launching.run(n, function, args, keywords, timeout, environment or {})
