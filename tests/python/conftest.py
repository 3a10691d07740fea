"""What holds for all of these tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    # A shell that starts the tests in the background has SIGINT ignored, and so would every launcher they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
