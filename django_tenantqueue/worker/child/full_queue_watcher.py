"""One looks for all: who watches the queues that are full while many workers have nothing to do.

A slot that becomes free is used at once by the worker whose job has ended. What nobody hears of, an
operator's edit, say, or the end of a worker that had no more room, has to be looked for. One worker
does, several times a second; the others sleep, and look themselves only now and then. The one is
whoever holds an advisory lock, so that its death makes room for another.
"""

from __future__ import annotations

import random
from typing import Any
from zlib import crc32

import psycopg

from ...operations.claim import Filters
from ...queries import workers as queries

STANDBY_SECONDS = 4.0
"""How often a worker looks at full queues while another one watches them, about."""


class FullQueueWatcher:
    """One worker's part in watching; workers with the same filters watch for each other."""

    def __init__(self, filters: Filters) -> None:
        self.is_held = False
        self._key = crc32(repr(filters).encode()) - 2**31

    def seconds(self, connection: psycopg.Connection[Any], interval: float) -> float:
        """Return when to look again: after `interval` when this worker watches, else later."""
        self.is_held = self.is_held or queries.take_full_queue_watch(connection, self._key)
        return interval if self.is_held else STANDBY_SECONDS * random.uniform(0.75, 1.25)

    def leave(self, connection: psycopg.Connection[Any]) -> bool:
        """Let another worker watch; return whether this one did."""
        if not self.is_held:
            return False
        self.is_held = False
        queries.leave_full_queue_watch(connection, self._key)
        return True

    def reconnected(self) -> None:
        """Start anew on another connection."""
        self.is_held = False
