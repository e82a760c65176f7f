"""How many jobs to claim ahead of free threads."""

from __future__ import annotations

AHEAD_SECONDS = 0.05
"""At most so much expected work waits in a process."""
MOST_AHEAD_SECONDS = 0.2
"""So much where the server takes that long to answer and slots are ample: else the threads would
wait for their next jobs. Less than the age at which a claim that was not begun is given back."""
AMPLE_SLOTS = 100
"""A queue with so many slots left is short of none."""
MOST_AHEAD = 64
ENOUGH = 20
"""Runs seen before anything is claimed ahead."""


class ClaimAhead:
    """Follows how long blocking jobs take, and says how many more than there are threads to claim.

    A slow job weighs at once, fast ones only by and by, so that the buffer empties quickly when
    the work changes.
    """

    def __init__(self, threads: int) -> None:
        self.ahead = 0
        self._threads = threads
        self._seen = 0
        self._expected = 0.0
        self._ahead_seconds = AHEAD_SECONDS

    def answered(self, seconds: float, *, slots_left: int) -> None:
        """Take into account how long a claim took, and the fewest slots that it left to a queue."""
        ample = slots_left >= AMPLE_SLOTS
        most = MOST_AHEAD_SECONDS if ample else AHEAD_SECONDS
        self._ahead_seconds = min(most, max(AHEAD_SECONDS, seconds))

    def observe(self, seconds: float) -> None:
        """Take the duration of a run into account."""
        self._seen += 1
        if seconds > self._expected:
            self._expected = seconds
        else:
            self._expected += 0.05 * (seconds - self._expected)
        if self._seen < ENOUGH:
            return
        expected = max(self._expected, 1e-6)
        self.ahead = min(MOST_AHEAD, int(self._threads * self._ahead_seconds / expected))

    def stalled(self) -> None:
        """Claim nothing ahead until another job has ended: what was claimed ahead got stuck."""
        self.ahead = 0
        self._expected = max(self._expected, AHEAD_SECONDS)
