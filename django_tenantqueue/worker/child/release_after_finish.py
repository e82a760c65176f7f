"""Releases other jobs at the gates of ended jobs, and frees the unique keys of ended jobs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from ...gate_keys import MONITOR, TASK, JobGates
from ...operations.gates import keys_of, release
from ...operations.unique import keys_to_free
from ...queries.finish import Failed, Finished
from ...queries.follow_ups import FollowUp
from ...queries.gates import Keys, Released
from ...queries.unique import free_keys
from .completions import GROUP_SECONDS

POSTPONE_SECONDS = GROUP_SECONDS * 4
"""How long a monitor that was locked waits for the worker's next completions to feed it."""

Ended = list[tuple[int, JobGates]]
"""Jobs that have ended, with their gates."""


def read_ends(ends: Iterable[Finished | Failed]) -> Ended:
    """Return the jobs that have gates or a unique key."""
    return [(end.id, JobGates.read(end.gates)) for end in ends if end.gates]


class ReleaseAfterFinish:
    """Remembers jobs whose ends are stored until others have been released at their gates."""

    def __init__(self) -> None:
        self._keys: Keys = {}
        self._ready = Released()
        self._unique: list[tuple[str, int]] = []
        self._postponed: set[str] = set()
        self._postponed_until = 0.0
        self._starts: dict[str, float] = {}
        """Tasks with a rate, and when it brings their next starts (monotonic time)."""

    def note(self, ended: Ended, *, but: str = "") -> None:
        """Take jobs whose ends are stored; gates of the kind `but` are handled elsewhere."""
        keys = keys_of(gates for _, gates in ended)
        keys.pop(but, None)
        self.note_keys(keys)
        self._unique += keys_to_free(ended)

    def note_keys(self, keys: Keys) -> None:
        """Take gates at which jobs may be released."""
        for kind, found in keys.items():
            if found:
                self._keys.setdefault(kind, set()).update(found)

    def note_follow_ups(self, follow_ups: Iterable[FollowUp]) -> None:
        """Take jobs that stored ends have enqueued, and that this worker has not claimed yet."""
        for job in follow_ups:
            if not job.waits:
                self._ready.note(job.id, job.place)
            self.note_keys({kind: {key} for kind, key in job.gates.keys().items()})

    @property
    def next_at(self) -> float | None:
        """When the next release is due (monotonic time); None when there is none."""
        due = [*self._starts.values(), *([self._postponed_until] if self._postponed else [])]
        return min(due, default=None)

    @property
    def is_postponed(self) -> bool:
        """Whether a monitor is still to be fed. The sweep releases tasks for a worker that ends."""
        return bool(self._postponed)

    def wait_for_starts(self, due: Mapping[str, float], now: float) -> None:
        """Take tasks and in how many seconds their rates bring the next starts.

        The worker that made the last starts makes the next ones in time; no other one looks.
        """
        for name, seconds in due.items():
            self._starts[name] = now + seconds

    def postpone(self, monitors: Iterable[str], now: float) -> None:
        """Take monitors that another session is feeding, which may not see what has ended here."""
        self._postponed.update(monitors)
        self._postponed_until = now + POSTPONE_SECONDS

    def take_monitors(self, ended: Ended) -> list[str]:
        """Hand out the monitors of jobs whose ends are about to be stored, and postponed ones."""
        found = {gates.monitor for _, gates in ended if gates.monitor is not None}
        found |= self._postponed
        self._postponed.clear()
        return sorted(found)

    def let_through(self, connection: psycopg.Connection[Any]) -> Released:
        """Free the keys and release the gates; return how many jobs became ready, and where.

        Ready follow-ups are among them.
        """
        if self._unique:
            unique, self._unique = self._unique, []
            free_keys(connection, unique)
        now = time.monotonic()
        if self._postponed and self._postponed_until <= now:
            self.note_keys({MONITOR: self._postponed})
            self._postponed = set()
        for name in [name for name, at in self._starts.items() if at <= now]:
            del self._starts[name]
            self.note_keys({TASK: {name}})
        done, self._ready = self._ready, Released()
        if self._keys:
            keys, self._keys = self._keys, {}
            released = release(connection, keys)
            done.add(released)
        return done
