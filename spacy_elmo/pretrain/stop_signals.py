"""Learn of the signals that ask a program to stop, instead of stopping at once."""

import signal
from collections.abc import Callable
from typing import Any


def call_on_signals(callback: Callable[[], None]) -> Callable[[], None]:
    """Call a function when Ctrl-C or SIGTERM asks the program to stop. Outside the main
    thread, do nothing, because Python allows no handlers there.

    callback (Callable[[], None]): Called instead of stopping the program.
    RETURNS (Callable[[], None]): Restores the handlers that were there before.
    """

    def handle(number: int, frame: Any) -> None:
        callback()

    try:
        old = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread
        return lambda: None

    def restore() -> None:
        for number, handler in old.items():
            signal.signal(number, handler)

    return restore
