"""What routing adds to the core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db.models import Model

from ...features import Feature, Problem
from . import models
from .routes import forget_routes, routes_of
from .troubles import problem_of_routings, read_retired_routings


class Routing(Feature):
    """See features.py for when each method is called."""

    def choose_queue(self, using: str, tenant: str, name: str) -> str | None:
        routes = routes_of(using)
        return routes.queue_of(tenant, name) if routes else None

    def problems(self, using: str, tenants: Collection[str] | None) -> Iterable[Problem]:
        """Yield that routings send jobs to retired queues."""
        return problem_of_routings(read_retired_routings(using, tenants))

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
