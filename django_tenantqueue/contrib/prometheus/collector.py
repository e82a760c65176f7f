"""Metrics as families of prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...exceptions import Unsupported
from ...histogram import BOUNDS
from .families import BY_NAME, FAMILIES, Family
from .reads import Metrics, read_metrics
from .totals import OTHERS, Total

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

OTHER = "other"
"""Label of the tasks without counters of their own."""
UPPER_BOUNDS = (*map(str, BOUNDS), "+Inf")
Sample = tuple[tuple[str, ...], float]
"""Labels and value."""


def client() -> ModuleType:
    """Return prometheus_client; raise Unsupported, naming the extra, when it is not installed."""
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError as error:
        raise Unsupported(
            "metrics need prometheus_client: pip install 'django-tenantqueue[prometheus]'"
        ) from error
    found: ModuleType = prometheus_client
    return found


def registry(using: str) -> CollectorRegistry:
    """Return a registry that reads the metrics of the jobs in a database at each scrape."""
    made: CollectorRegistry = client().CollectorRegistry()
    made.register(Collector(using))
    return made


class Collector:
    """Reads the database at each scrape."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._core = client().core

    def describe(self) -> Iterator[Metric]:
        for family in FAMILIES:
            yield self._metric(family)

    def collect(self) -> Iterator[Metric]:
        read = read_metrics(self._using)
        for name, samples in {**gauges(read), **counters(read.totals)}.items():
            metric = self._metric(BY_NAME[name])
            for labels, value in samples:
                metric.add_metric(labels, value)
            yield metric
        for kind in ("wait", "run"):
            metric = self._metric(BY_NAME[f"tenantqueue_{kind}_seconds"])
            for total in read.totals:
                counts, micros = getattr(total, f"{kind}s"), getattr(total, f"{kind}_micros")
                metric.add_metric([_task(total)], buckets(counts), micros / 1e6)
            yield metric

    def _metric(self, family: Family) -> Any:
        made = getattr(self._core, f"{family.kind.capitalize()}MetricFamily")
        return made(family.name, family.text, labels=family.labels)


def gauges(read: Metrics) -> dict[str, Iterable[Sample]]:
    counts, need = read.counts, read.need
    return {
        "tenantqueue_jobs": [
            (("ready",), counts.ready),
            (("scheduled",), counts.scheduled),
            (("running",), counts.running),
        ],
        "tenantqueue_held_jobs": [((gate,), jobs) for gate, jobs in asdict(counts.held).items()],
        "tenantqueue_held_wait_seconds": [
            ((gate,), seconds) for gate, seconds in read.held_wait_seconds.items()
        ],
        "tenantqueue_blocked_jobs": [
            ((reason,), sum(queue.jobs for queue in queues))
            for reason, queues in read.blocked.items()
        ],
        "tenantqueue_blocked_queues": [
            ((reason,), len(queues)) for reason, queues in read.blocked.items()
        ],
        "tenantqueue_condition": [
            ((code,), float(holds)) for code, holds in read.conditions.items()
        ],
        "tenantqueue_startable_jobs": [((), need.startable)],
        "tenantqueue_startable_wait_seconds": [((), need.oldest_wait_seconds or 0.0)],
        "tenantqueue_oldest_wait_seconds": [((), read.oldest_wait_seconds)],
        "tenantqueue_slots": [((), read.slots)],
        "tenantqueue_workers": [((state.value,), n) for state, n in read.workers.items()],
        "tenantqueue_worker_threads": [((), need.threads)],
        "tenantqueue_worker_async_slots": [((), need.async_slots)],
        "tenantqueue_wanted_threads": [((), read.wanted_threads)],
        "tenantqueue_wanted_workers": [((), read.wanted_workers)],
        "tenantqueue_queue_wait_seconds": [
            ((queue.tenant, queue.name), queue.wait_seconds or 0.0) for queue in read.queues
        ],
        "tenantqueue_queue_waiting_jobs": [
            ((queue.tenant, queue.name), read.loads[queue.id].waiting) for queue in read.queues
        ],
        "tenantqueue_queue_active_jobs": [
            ((queue.tenant, queue.name), queue.active) for queue in read.queues
        ],
        "tenantqueue_queue_slots": [
            ((queue.tenant, queue.name), queue.num_slots)
            for queue in read.queues
            if queue.num_slots is not None
        ],
    }


def counters(totals: Sequence[Total]) -> dict[str, Iterable[Sample]]:
    return {
        "tenantqueue_jobs_started": [((_task(one),), one.started) for one in totals],
        "tenantqueue_jobs_finished": [
            ((_task(one), state), count)
            for one in totals
            for state, count in (
                ("success", one.succeeded),
                ("error", one.failed),
                ("cancelled", one.cancelled),
            )
        ],
        "tenantqueue_jobs_failed": [((_task(one),), one.failed) for one in totals],
        "tenantqueue_jobs_retried": [((_task(one),), one.retried) for one in totals],
    }


def buckets(counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound."""
    missing = [0] * (len(UPPER_BOUNDS) - len(counts))
    return list(zip(UPPER_BOUNDS, map(float, accumulate([*counts, *missing])), strict=False))


def _task(total: Total) -> str:
    if total.task == OTHER:
        return repr(OTHER)  # a task of this name: two series of one name would fail the scrape
    return OTHER if total.task == OTHERS else total.task
