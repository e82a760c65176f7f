"""Maintenance with a due time of its own. See features.Duty."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from .queries.base import LOCK_MILLISECONDS

LOCKED_SECONDS = LOCK_MILLISECONDS / 1000
"""How often due rows are tried again while they are locked."""


class WhenDue:
    """A step that runs when something is due, and the pause until then."""

    def __init__(
        self, seconds_to_next: Callable[[str], float | None], step: Callable[[str], int]
    ) -> None:
        """`seconds_to_next`: until something is due; None: nothing is waited for."""
        self._seconds_to_next = seconds_to_next
        self._step = step
        self._due_in: float | None = None

    def step(self, alias: str) -> int:
        """Do the step if something is due; return how much it has done."""
        self._due_in = self._seconds_to_next(alias)
        if self._due_in is None or self._due_in > 0.0:
            return 0
        done = self._step(alias)
        self._due_in = self._seconds_to_next(alias)
        return done

    def pause_after(self, done: object) -> float:
        """Return the pause after a step that has done something, or nothing."""
        if self._due_in is None:
            return inf
        if self._due_in > 0.0:
            return self._due_in
        return 0.0 if done else LOCKED_SECONDS  # the other rows that are due are locked
