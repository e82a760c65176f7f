"""The metrics of each shard: one address and one scrape for each database."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from ...conf import database
from .routes import aliases

PROMETHEUS = "django_tenantqueue.contrib.prometheus"


def urls() -> Sequence[URLPattern]:
    """Return the addresses of the metrics, if contrib.prometheus is installed."""
    if not apps.is_installed(PROMETHEUS):
        return ()
    return [path("shards/<str:alias>/metrics", shard_metrics, name="shard_metrics")]


def shard_metrics(request: HttpRequest, alias: str) -> HttpResponse:
    """Answer a scrape of one database; 404 for an unknown alias, 503 while it is down."""
    from ..prometheus.serve import TEXT, metrics

    if alias not in aliases():
        return HttpResponse("no such shard\n", status=404, content_type=TEXT)
    try:
        with database(alias):
            return metrics(request)
    except (OperationalError, InterfaceError):
        text = f"the database {alias} cannot be read\n"
        return HttpResponse(text, status=503, content_type=TEXT)
