"""Connects the metrics to the core."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Model
from django.urls import URLPattern, path

from ...conf import settings_of
from ...exceptions import Unsupported
from ...features import Feature, Service
from ...management.numbers import whole_number
from .models import FigureTotal
from .serve import WAY_IN, MetricsPort, metrics
from .settings import PrometheusSettings
from .totals import add_to_totals


class Prometheus(Feature):
    """See features.py for when each method is called."""

    settings = PrometheusSettings

    def worker_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--metrics-port",
            type=whole_number(1, 65_535),
            metavar="PORT",
            help="serve metrics for Prometheus at this port (needs the extra `prometheus`)",
        )

    def services(self, using: str, options: Mapping[str, Any]) -> Iterable[Service]:
        port = options["metrics_port"]
        if port is None:
            return
        if settings_of(PrometheusSettings).access is None:
            raise CommandError(f"--metrics-port: metrics are off: {WAY_IN}", returncode=2)
        try:
            served = MetricsPort(using, port)
        except Unsupported as error:
            raise CommandError(str(error), returncode=2) from None
        except OSError as error:
            raise CommandError(
                f"--metrics-port={port} cannot be opened: {error.strerror}. Does another worker of "
                "this machine use it?",
                returncode=2,
            ) from None
        yield served

    def before_thinning(self, using: str, now: datetime | None) -> tuple[datetime, bool]:
        return add_to_totals(using, now)

    def fleet_tables(self) -> Sequence[type[Model]]:
        return (FigureTotal,)

    def urls(self) -> Sequence[URLPattern]:
        return [path("metrics", metrics, name="metrics")]
