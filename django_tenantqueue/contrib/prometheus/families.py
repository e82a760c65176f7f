"""The metrics: name, kind, meaning, labels and values of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, Literal

from ...status.display_limits import COUNTED_TO, TOTAL_COUNTED_TO
from .reads import Metrics
from .totals import buckets


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. Counters are given without the suffix `_total` that their samples have."""

    name: str
    text: str
    read: Callable[[Metrics], Iterable[tuple[Any, ...]]]
    """Returns its samples: labels and value; of a histogram labels, buckets and sum."""
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter", "histogram"] = "gauge"

    @property
    def samples(self) -> tuple[str, ...]:
        """The names that queries use."""
        if self.kind == "counter":
            return (f"{self.name}_total",)
        if self.kind == "histogram":
            return tuple(f"{self.name}_{end}" for end in ("bucket", "count", "sum"))
        return (self.name,)


QUEUE = ("tenant", "queue")
ENDS = ("success", "error", "cancelled")
_names = attrgetter("tenant", "name")
FAMILIES = (
    Family(
        "tenantqueue_condition",
        "1 while a condition holds, as `tenantqueue status` reports it, else 0",
        lambda now: [((code,), float(holds)) for code, holds in now.conditions.items()],
        ("condition",),
    ),
    Family(
        "tenantqueue_jobs",
        f"Unfinished jobs, up to {TOTAL_COUNTED_TO:,} of each state",
        lambda now: [
            ((state,), getattr(now.counts, state)) for state in ("ready", "scheduled", "running")
        ],
        ("state",),
    ),
    Family(
        "tenantqueue_held_jobs",
        f"Jobs that a gate holds, up to {TOTAL_COUNTED_TO:,}",
        lambda now: [((gate,), jobs) for gate, jobs in asdict(now.counts.held).items()],
        ("gate",),
    ),
    Family(
        "tenantqueue_held_wait_seconds",
        "Seconds that the first job held by a gate has waited",
        lambda now: [((gate,), wait) for gate, wait in now.held_wait_seconds.items()],
        ("gate",),
    ),
    Family(
        "tenantqueue_blocked_jobs",
        "Ready jobs that cannot start, even with more workers, up to "
        f"{TOTAL_COUNTED_TO:,} of each reason",
        lambda now: [((why,), sum(q.jobs for q in found)) for why, found in now.blocked.items()],
        ("reason",),
    ),
    Family(
        "tenantqueue_blocked_queues",
        "Queues whose ready jobs cannot start, even with more workers",
        lambda now: [((reason,), len(queues)) for reason, queues in now.blocked.items()],
        ("reason",),
    ),
    Family(
        "tenantqueue_startable_jobs",
        f"Ready jobs that would start if more workers were available, up to {COUNTED_TO:,}",
        lambda now: [((), now.need.startable)],
    ),
    Family(
        "tenantqueue_startable_wait_seconds",
        "Longest time for which a job could have started",
        lambda now: [((), now.need.oldest_wait_seconds or 0.0)],
    ),
    Family(
        "tenantqueue_oldest_wait_seconds",
        "Longest wait of any ready job",
        lambda now: [((), now.oldest_wait_seconds)],
    ),
    Family(
        "tenantqueue_slots",
        "Slots of all queues that are not paused and have a limit",
        lambda now: [((), now.slots)],
    ),
    Family(
        "tenantqueue_workers",
        "Worker processes",
        lambda now: [((state.value,), count) for state, count in now.workers.items()],
        ("state",),
    ),
    Family(
        "tenantqueue_worker_threads",
        "Threads of workers that are not draining, stopping or silent",
        lambda now: [((), now.need.threads)],
    ),
    Family(
        "tenantqueue_worker_async_slots",
        "Coroutine slots of workers that are not draining, stopping or silent",
        lambda now: [((), now.need.async_slots)],
    ),
    Family(
        "tenantqueue_wanted_threads",
        "Threads needed for running and startable jobs",
        lambda now: [((), now.wanted_threads)],
    ),
    Family(
        "tenantqueue_wanted_workers",
        "Worker processes needed for running and startable jobs",
        lambda now: [((), now.wanted_workers)],
    ),
    Family(
        "tenantqueue_queue_wait_seconds",
        "Seconds that the first ready job of a queue has waited",
        lambda now: [(_names(queue), queue.wait_seconds or 0.0) for queue in now.queues],
        QUEUE,
    ),
    Family(
        "tenantqueue_queue_waiting_jobs",
        f"Ready jobs of a queue, up to {COUNTED_TO:,}",
        lambda now: [(_names(queue), now.loads[queue.id].waiting) for queue in now.queues],
        QUEUE,
    ),
    Family(
        "tenantqueue_queue_active_jobs",
        "Jobs that occupy slots of a queue",
        lambda now: [(_names(queue), queue.active) for queue in now.queues],
        QUEUE,
    ),
    Family(
        "tenantqueue_queue_slots",
        "Slots of a queue, if it has a limit",
        lambda now: [(_names(q), q.num_slots) for q in now.queues if q.num_slots is not None],
        QUEUE,
    ),
    Family(
        "tenantqueue_jobs_started",
        "Started runs, including retries",
        lambda now: [((one.label,), one.started) for one in now.totals],
        ("task",),
        "counter",
    ),
    Family(
        "tenantqueue_jobs_finished",
        "Finished jobs: success, error or cancelled",
        lambda now: [
            ((one.label, state), count)
            for one in now.totals
            for state, count in zip(ENDS, (one.succeeded, one.failed, one.cancelled), strict=True)
        ],
        ("task", "state"),
        "counter",
    ),
    Family(
        "tenantqueue_jobs_failed",
        "Jobs that ended in error",
        lambda now: [((one.label,), one.failed) for one in now.totals],
        ("task",),
        "counter",
    ),
    Family(
        "tenantqueue_jobs_retried",
        "Failed runs that are retried",
        lambda now: [((one.label,), one.retried) for one in now.totals],
        ("task",),
        "counter",
    ),
    Family(
        "tenantqueue_wait_seconds",
        "Wait of jobs, from the time when they could run to their start",
        lambda now: [((t.label,), buckets(t.waits), t.wait_micros / 1e6) for t in now.totals],
        ("task",),
        "histogram",
    ),
    Family(
        "tenantqueue_run_seconds",
        "Run time of jobs",
        lambda now: [((t.label,), buckets(t.runs), t.run_micros / 1e6) for t in now.totals],
        ("task",),
        "histogram",
    ),
)
