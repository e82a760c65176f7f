"""Metrics as families of prometheus_client."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...exceptions import Unsupported
from .families import FAMILIES, Family
from .reads import read_metrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric


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
        return map(self._metric, FAMILIES)

    def collect(self) -> Iterator[Metric]:
        now = read_metrics(self._using)
        for family in FAMILIES:
            metric = self._metric(family)
            for sample in family.read(now):
                metric.add_metric(*sample)
            yield metric

    def _metric(self, family: Family) -> Any:
        made = getattr(self._core, f"{family.kind.capitalize()}MetricFamily")
        return made(family.name, family.text, labels=family.labels)
