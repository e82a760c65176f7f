"""What routing adds to the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Model

from ...features import Condition, Feature
from . import models
from .routes import forget_routes, routes_of
from .troubles import CONDITIONS


class Routing(Feature):
    """See features.py for when each method is called."""

    def choose_queue(self, using: str, tenant: str, name: str) -> str | None:
        routes = routes_of(using)
        return routes.queue_of(tenant, name) if routes else None

    def conditions(self) -> Iterable[Condition]:
        """Return that routings send jobs to retired queues."""
        return CONDITIONS

    def lists(self) -> Mapping[str, type[Model]]:
        """Return the list of routings."""
        return {"routings": models.Routing}

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of routings."""
        return {"routing": models.Routing}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the table of routings."""
        return {models.Routing: "tenant"}

    def forget(self) -> None:
        forget_routes()
