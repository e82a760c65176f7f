"""What was done to the fleet and its server, and when."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was done."""

    at: datetime
    kind: str
    text: str


class Log:
    """Prints each entry with the seconds since the beginning, and counts them by kind."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self.entries: list[Entry] = []

    def note(self, kind: str, text: str) -> None:
        with self._lock:
            self.entries.append(Entry(datetime.now(UTC), kind, text))
            seconds = time.monotonic() - self._begun
            sys.stdout.write(f"{seconds:7.1f} s  {kind:9}  {text}\n")
            sys.stdout.flush()

    def counts(self) -> Counter[str]:
        with self._lock:
            return Counter(entry.kind for entry in self.entries)
