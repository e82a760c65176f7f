"""Sleep until the database or another thread has something to say."""

from __future__ import annotations

import os
import select
import threading


class Waiter:
    """One thread waits; any thread may wake it. A wake-up between two waits is not lost."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
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
        readable, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._read in readable:
            with self._lock:
                os.read(self._read, 64)
                self._woken = False
        return socket is not None and socket in readable

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)
