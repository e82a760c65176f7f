"""How many jobs to claim ahead of free threads."""

from __future__ import annotations

from ...queries.claim import BATCH_SECONDS

AHEAD_SECONDS = BATCH_SECONDS
"""Most expected work, in seconds, that waits in a process."""
MOST_AHEAD_SECONDS = AHEAD_SECONDS * 4
"""The same where the server takes that long to answer and the queues have many free slots."""
MOST_AHEAD = 64
"""Most jobs claimed ahead."""


class ClaimAhead:
    """Follows how long blocking jobs take, and says how many to claim beyond the free threads.

    A slow job counts at once and fast ones gradually, so the buffer empties quickly when the work
    changes.
    """

    AMPLE_SLOTS = 100
    """Free slots of a queue that is not short of them."""
    ENOUGH = 20
    """Runs seen before anything is claimed ahead."""

    def __init__(self, threads: int) -> None:
        self.ahead = 0
        self._threads = threads
        self._seen = 0
        self._expected = 0.0
        self._ahead_seconds = AHEAD_SECONDS

    def answered(self, seconds: float, *, slots_left: int) -> None:
        """Take into account how long a claim took, and the fewest slots left in a queue."""
        ample = slots_left >= self.AMPLE_SLOTS
        most = MOST_AHEAD_SECONDS if ample else AHEAD_SECONDS
        self._ahead_seconds = min(most, max(AHEAD_SECONDS, seconds))

    def observe(self, seconds: float) -> None:
        """Take the duration of a run into account."""
        self._seen += 1
        if seconds > self._expected:
            self._expected = seconds
        else:
            self._expected += 0.05 * (seconds - self._expected)
        if self._seen < self.ENOUGH:
            return
        expected = max(self._expected, 1e-6)
        self.ahead = min(MOST_AHEAD, int(self._threads * self._ahead_seconds / expected))

    def stalled(self) -> None:
        """Claim nothing ahead until another job has ended: jobs claimed ahead got stuck."""
        self.ahead = 0
        self._expected = max(self._expected, AHEAD_SECONDS)
