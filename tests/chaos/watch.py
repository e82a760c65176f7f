"""When each worker process was seen alive for the last time, and dead for the first.

A handle of the kernel stands for every process, so neither an id that is used again nor a parent
that died before hides a death.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .evidence import Life
from .identity import identity

LOOK_SECONDS = 0.02


@dataclass(slots=True)
class Watched:
    """A process under watch. It was alive at `alive_at`, and dead at `dead_at`."""

    pid: int
    parent: str | None
    """The identity of its supervisor; None for a supervisor."""
    identity: str
    handle: int
    alive_at: datetime
    dead_at: datetime | None = None

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to this process and no other; False when it has died."""
        try:
            signal.pidfd_send_signal(self.handle, number)
        except ProcessLookupError:
            return False
        return True


class Watch:
    """Looks at supervisors and their children in a thread of its own."""

    def __init__(self, supervisors: Callable[[], list[int]]) -> None:
        self._supervisors = supervisors
        self._watched: dict[str, Watched] = {}
        self._poll = select.poll()
        self._by_handle: dict[int, Watched] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def children(self) -> list[Watched]:
        """Return the child processes that were alive a moment ago."""
        watched = list(self._watched.values())
        return [one for one in watched if one.parent is not None and one.dead_at is None]

    def lives(self) -> dict[str, Life]:
        """Return the lives of all processes that were ever seen, by identity."""
        watched = list(self._watched.values())
        return {one.identity: Life(one.alive_at, one.dead_at, one.parent) for one in watched}

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self.look()
        self.look()

    def look(self) -> None:
        """Find new processes, and see who has died."""
        for pid in self._supervisors():
            self._meet(pid, None)
            with suppress(OSError):
                parent = identity(pid)
                for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                    self._meet(int(child), parent)
        before = datetime.now(UTC)
        dead = {self._by_handle[handle].identity for handle, _ in self._poll.poll(0)}
        after = datetime.now(UTC)
        for watched in list(self._by_handle.values()):
            if watched.identity in dead:
                watched.dead_at = after
                self._poll.unregister(watched.handle)
                # the handle stays open: its number must not come to mean another process
                del self._by_handle[watched.handle]
            else:
                watched.alive_at = before

    def _meet(self, pid: int, parent: str | None) -> None:
        with suppress(OSError):
            name = identity(pid)
            if name in self._watched:
                return
            handle = os.pidfd_open(pid)
            if identity(pid) != name:
                os.close(handle)
                return
            watched = Watched(pid, parent, name, handle, datetime.now(UTC))
            self._watched[name] = watched
            self._by_handle[handle] = watched
            self._poll.register(handle, select.POLLIN)
