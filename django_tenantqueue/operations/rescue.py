"""Rescue: take jobs back from worker processes that died."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection

from django.utils import timezone

from ..conf import get_settings
from ..queries import enqueue, rescue
from ..queries.rescue import Rescued

logger = logging.getLogger("django_tenantqueue")

SETTLE_SECONDS = 10.0
"""So long after the server's start nobody is taken for dead: supervisors reconnect meanwhile."""
LEASE_SECONDS = 30.0
"""A worker without a lock (behind a transaction pooler) is dead after so long without heartbeat."""
LOOK_SECONDS = 2.0
"""A worker must look dead twice, so far apart."""


def rescue_worker(
    using: str, worker_id: int, *, reason: str, started: Collection[int] | None = None
) -> Rescued:
    """Take back the jobs of a dead worker process and delete its row.

    Jobs in `started` (None: all it held) count the attempt and keep `reason` as their error; they
    run again while they have attempts, else they end in `error`. The others are ready again as if
    they had never been claimed.
    """
    settings = get_settings()
    error = {
        "at": timezone.now().isoformat(),
        "class": "django_tenantqueue.exceptions.WorkerDied",
        "message": reason,
        "traceback": "",
    }
    rescued = rescue.rescue_worker(
        using, worker_id, started=started, error=json.dumps(error), max_errors=settings.max_errors
    )
    if rescued:
        logger.warning(
            "worker %s died (%s): %d jobs run again, %d were returned unstarted, %d ended",
            worker_id,
            reason,
            len(rescued.retried),
            len(rescued.returned),
            len(rescued.ended),
        )
    if settings.notify and not settings.pooler:
        # one more than there are jobs: an enqueuer may have notified the dead worker in vain
        ready = len(rescued.retried) + len(rescued.returned)
        enqueue.wake_any_workers(using, most=ready + 1)
    return rescued


class Coroner:
    """Finds workers that have looked dead for a while, and rescues their jobs."""

    def __init__(self) -> None:
        self._suspects: dict[int, float] = {}

    def look(self, using: str, now: float) -> int:
        """Look once; return how many dead workers' jobs were rescued. `now` is monotonic."""
        found = rescue.find_dead_workers(
            using, settle_seconds=SETTLE_SECONDS, lease_seconds=LEASE_SECONDS
        )
        self._suspects = {w: self._suspects.get(w, now) for w in found}
        dead = [w for w, since in self._suspects.items() if now - since >= LOOK_SECONDS]
        for worker_id in dead:
            reason = "the worker process and its supervisor are gone"
            if rescue_worker(using, worker_id, reason=reason).complete:
                del self._suspects[worker_id]
        return len(dead)
