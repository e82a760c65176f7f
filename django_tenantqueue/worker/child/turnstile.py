"""Waiting for one's turn to claim, where many workers are after the same queues.

A claim that finds all ready jobs locked costs as much as one that takes some. So a worker that has
nothing else to do makes its next claim at a turnstile, which admits one worker at a time. However
many wait there, they cost as much as one. See docs/explanation/fleets.md.
"""

from __future__ import annotations

from ...conf import get_settings
from ...operations.claim import Verdict
from ...operations.places import BLOCKED_SECONDS

MOST_DETOURS = 16
"""Most claims in a row made through the turnstile without trying a direct claim. Halved: a crowded
fleet makes more claims that find nothing. Doubled: it notices later that the crowd has gone."""


class Turnstile:
    """What one worker process remembers of the crowd at the queues."""

    def __init__(self) -> None:
        self.expected = False
        """The next claim waits at the turnstile, because the last one found all queues locked."""
        self.rest_seconds = 0.0
        """How long the worker stays away from the turnstile."""
        self._detours = 0
        self._longest = 1

    def is_crowded(self) -> bool:
        """Whether to store completions without a claim, and to claim at the turnstile afterwards.

        A claim beside a completion that found all queues locked makes the next completions do so,
        more of them each time.
        """
        if self._detours == 0:
            return False
        self._detours -= 1
        self.expected = True
        return True

    def waited(self, verdict: Verdict, seconds: float) -> None:
        """Note what a claim has shown that waited at the turnstile for this long."""
        self._expect(verdict)
        self.rest_seconds = min(BLOCKED_SECONDS, seconds) if self.expected else 0.0

    def tried(self, verdict: Verdict, *, found: bool, beside_ends: bool) -> None:
        """Note what a direct claim has shown; `beside_ends`: it stored completions, too."""
        self._expect(verdict)
        self.rest_seconds = 0.0
        if not beside_ends:
            return
        if self.expected:
            self._detours = self._longest
            self._longest = min(MOST_DETOURS, 2 * self._longest)
        elif found:
            self._longest = max(1, self._longest // 2)

    def _expect(self, verdict: Verdict) -> None:
        # behind a pooler, each waiting worker would occupy one of its connections
        self.expected = verdict is Verdict.CONTENDED and not get_settings().pooler
