"""The metrics by their names: kind, labels and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. Counters are given without the suffix `_total` that their samples have."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    text: str
    labels: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[str, ...]:
        """The names that queries use."""
        if self.kind == "counter":
            return (f"{self.name}_total",)
        if self.kind == "histogram":
            return tuple(f"{self.name}_{end}" for end in ("bucket", "count", "sum"))
        return (self.name,)


QUEUE = ("tenant", "queue")
FAMILIES = (
    Family(
        "tenantqueue_condition",
        "gauge",
        "1 while a condition holds, as `tenantqueue status` reports it, else 0",
        ("condition",),
    ),
    Family("tenantqueue_jobs", "gauge", "Unfinished jobs, up to 10,000 of each state", ("state",)),
    Family("tenantqueue_held_jobs", "gauge", "Jobs that a gate holds, up to 10,000", ("gate",)),
    Family(
        "tenantqueue_held_wait_seconds",
        "gauge",
        "Seconds that the first job held by a gate has waited",
        ("gate",),
    ),
    Family(
        "tenantqueue_blocked_jobs",
        "gauge",
        "Ready jobs that cannot start, even with more workers, up to 10,000 of each reason",
        ("reason",),
    ),
    Family(
        "tenantqueue_blocked_queues",
        "gauge",
        "Queues whose ready jobs cannot start, even with more workers",
        ("reason",),
    ),
    Family(
        "tenantqueue_startable_jobs",
        "gauge",
        "Ready jobs that would start if more workers were available, up to 1,000",
    ),
    Family(
        "tenantqueue_startable_wait_seconds",
        "gauge",
        "Longest wait of a startable job",
    ),
    Family(
        "tenantqueue_oldest_wait_seconds",
        "gauge",
        "Longest wait of any ready job",
    ),
    Family(
        "tenantqueue_slots", "gauge", "Slots of all queues that are not paused and have a limit"
    ),
    Family("tenantqueue_workers", "gauge", "Worker processes", ("state",)),
    Family(
        "tenantqueue_worker_threads",
        "gauge",
        "Threads of workers that are not draining, stopping or silent",
    ),
    Family(
        "tenantqueue_worker_async_slots",
        "gauge",
        "Coroutine slots of workers that are not draining, stopping or silent",
    ),
    Family("tenantqueue_wanted_threads", "gauge", "Threads needed for running and startable jobs"),
    Family(
        "tenantqueue_wanted_workers",
        "gauge",
        "Worker processes needed for running and startable jobs",
    ),
    Family(
        "tenantqueue_queue_wait_seconds",
        "gauge",
        "Seconds that the first ready job of a queue has waited",
        QUEUE,
    ),
    Family("tenantqueue_queue_waiting_jobs", "gauge", "Ready jobs of a queue, up to 1,000", QUEUE),
    Family("tenantqueue_queue_active_jobs", "gauge", "Jobs that occupy slots of a queue", QUEUE),
    Family("tenantqueue_queue_slots", "gauge", "Slots of a queue, if it has a limit", QUEUE),
    Family("tenantqueue_jobs_started", "counter", "Started runs, including retries", ("task",)),
    Family(
        "tenantqueue_jobs_finished",
        "counter",
        "Finished jobs: success, error or cancelled",
        ("task", "state"),
    ),
    Family("tenantqueue_jobs_failed", "counter", "Jobs that ended in error", ("task",)),
    Family(
        "tenantqueue_jobs_retried",
        "counter",
        "Failed runs that are retried",
        ("task",),
    ),
    Family(
        "tenantqueue_wait_seconds",
        "histogram",
        "Wait of jobs, from the time when they could run to their start",
        ("task",),
    ),
    Family("tenantqueue_run_seconds", "histogram", "Run time of jobs", ("task",)),
)
BY_NAME = {family.name: family for family in FAMILIES}
