"""Waits until the database or another thread has news."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence

FD_SETSIZE = 1024
"""File descriptors from here on are beyond select(). Below, select() is preferred: poll() counts in
milliseconds, and most waits of a busy worker are shorter than five."""


def pipe() -> tuple[int, int]:
    """Return the ends (read, write) of a non-blocking pipe that child programs do not inherit."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def wait_readable(watched: Sequence[int], seconds: float) -> list[int]:
    """Wait up to `seconds` for readable file descriptors; return them."""
    seconds = max(0.0, seconds)
    if max(watched) < FD_SETSIZE or not hasattr(select, "poll"):
        return select.select(watched, [], [], seconds)[0]
    poll = select.poll()
    for descriptor in watched:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(1000.0 * seconds)]


def next_tick(now: float, interval: float) -> float:
    """Return the next multiple of the interval: what is due every second is due with all the rest.

    A process that does several things at once wakes up less often.
    """
    return (now // interval + 1.0) * interval if interval else now


class Waiter:
    """One thread waits; any thread may wake it. A wake-up between two waits is not lost."""

    def __init__(self) -> None:
        self._read, self._write = pipe()
        self._lock = threading.Lock()
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one at once."""
        if self._woken:
            return  # cheap, and usual under load
        with self._lock:
            if not self._woken:
                self._woken = True
                os.write(self._write, b"w")

    def wait(self, seconds: float, socket: int | None = None) -> bool:
        """Wait up to `seconds`; return whether `socket` has become readable."""
        watched = [self._read] if socket is None else [self._read, socket]
        readable = wait_readable(watched, seconds)
        if self._read in readable:
            with self._lock:
                os.read(self._read, 64)
                self._woken = False
        return socket is not None and socket in readable

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)
