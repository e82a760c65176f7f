"""Connects routings to the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from ...features import Condition, Feature, Named, Severity
from ...status.conditions import Look, names
from ...status.display_limits import PAGE
from . import models
from .routes import forget_routes, routes_of
from .services import delete_routings, tune_routing

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand


def _find_retired(look: Look) -> Iterable[Mapping[str, object]]:
    rows = models.Routing.objects.using(look.using).to_retired()
    if look.tenants is not None:
        rows = rows.filter(tenant__in=sorted(look.tenants))
    return names(Named(str(row), row.pattern, tenant=row.tenant) for row in rows[:PAGE])


CONDITIONS = (
    Condition(
        "routing_retired",
        Severity.PEOPLE,
        title=_("routing to a retired queue"),
        fleet=_("routings to retired queues, whose jobs are rejected: %(names)s"),
        where="routings",
        find=_find_retired,
        of_tenants=True,
    ),
)


class Routing(Feature):
    """See features.py for when each method is called."""

    def choose_queue(self, using: str, tenant: str, task: str) -> str | None:
        routes = routes_of(using)
        return routes.queue_of(tenant, task) if routes else None

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.routing import ListRoutings, RemoveRouting, SetRouting

        return {
            "routing list": ListRoutings,
            "routing set": SetRouting,
            "routing remove": RemoveRouting,
        }

    def conditions(self) -> Iterable[Condition]:
        return CONDITIONS

    def lists(self) -> Mapping[str, type[Model]]:
        return {"routings": models.Routing}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        return {models.Routing: {"tune": tune_routing, "delete": delete_routings}}

    def audited(self) -> Mapping[str, type[Model]]:
        return {"routing": models.Routing}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {models.Routing: "tenant"}

    def forget(self) -> None:
        forget_routes()
