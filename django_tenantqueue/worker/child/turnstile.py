"""Waiting for one's turn to claim, where many workers are after the same queues.

A claim that finds all that is ready in others' hands costs as much as one that takes something. So
a worker that has nothing else to do makes its next claim at a turnstile, which lets one on at a
time: however many workers stand there, they cost what one costs. See docs/explanation/fleets.md.
"""

from __future__ import annotations

from ...conf import get_settings
from ...operations.claim import Verdict

MOST_DETOURS = 16
"""Most claims in a row that wait at the turnstile, without one tried directly."""
MOST_REST_SECONDS = 0.25
"""Longest time that a worker stays away from the turnstile after it stood there in vain."""


class Turnstile:
    """What one worker process remembers of the crowd at the queues."""

    def __init__(self) -> None:
        self.expected = False
        """The next claim waits at the turnstile: the last found all in others' hands."""
        self.rest_seconds = 0.0
        """So long the worker stays away: those before whom it stood look meanwhile."""
        self._detours = 0
        self._longest = 1

    def is_crowded(self) -> bool:
        """Whether to store what has ended without a claim, and to make that at the turnstile.

        Where a claim beside a completion was in vain, the next completions do without, more of them
        each time.
        """
        if self._detours == 0:
            return False
        self._detours -= 1
        self.expected = True
        return True

    def stood(self, verdict: Verdict, seconds: float, *, found: bool) -> None:
        """Note what a claim has shown that waited at the turnstile for so long."""
        self._expect(verdict, found=found)
        self.rest_seconds = min(MOST_REST_SECONDS, seconds) if self.expected else 0.0

    def tried(self, verdict: Verdict, *, found: bool, beside_ends: bool) -> None:
        """Note what a claim has shown that did not wait; `beside_ends`: it stored ends, too."""
        self._expect(verdict, found=found)
        self.rest_seconds = 0.0
        if not beside_ends:
            return
        if self.expected:
            self._detours = self._longest
            self._longest = min(MOST_DETOURS, 2 * self._longest)
        elif found:
            self._longest = max(1, self._longest // 2)

    def _expect(self, verdict: Verdict, *, found: bool) -> None:
        in_vain = verdict is Verdict.CONTENDED and not found
        # a pooler would keep a connection for each who waits
        self.expected = in_vain and not get_settings().pooler
