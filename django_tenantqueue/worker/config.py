"""The options of a worker's command line."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.worker import THREADS
from ..operations.claim import Filters

ASYNC_SLOTS = 100
"""Coroutine jobs at once of a child unless its command says otherwise."""
KILL_SECONDS = 5.0
"""A child that is still there this long after its shutdown timeout is killed."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Options of `runworker`."""

    database: str
    name: str
    processes: int = 1
    threads: int = THREADS
    async_slots: int = ASYNC_SLOTS
    queues: tuple[str, ...] = ()
    exclude_queues: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    until_empty: bool = False
    """End when nothing is ready to run."""
    shutdown_timeout: float = 30.0
    maintenance: bool = True
    max_jobs: int | None = None
    """Jobs that a child runs before it is replaced."""
    max_rss: int | None = None
    """Bytes of memory beyond which a child ends its jobs and is replaced."""
    kill_rss: int | None = None
    """Bytes of memory beyond which a child is killed."""
    heartbeat_file: str | None = None
    log_jobs: bool = False
    """Log each run that ends."""
    dispatch: str | None = None
    """The executor to which claimed jobs are sent; None: they run here."""

    @property
    def filters(self) -> Filters:
        """The jobs that this worker takes."""
        return Filters(
            queues=list(self.queues) or None,
            exclude_queues=list(self.exclude_queues) or None,
            tenants=list(self.tenants) or None,
            executor=self.dispatch,
        )
