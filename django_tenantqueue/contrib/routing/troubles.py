"""Routings whose queue takes no jobs any more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext

from ...features import Problem
from ...models import TenantQueue
from ...status.amounts import PAGE
from ...status.problems import listing
from .models import Routing


def read_retired_routings(using: str, tenants: Collection[str] | None = None) -> list[str]:
    """Return the routings of a tenant whose queue is retired, up to PAGE. `tenants`: None is all.

    Jobs that they route raise QueueRetired.
    """
    retired = TenantQueue.objects.filter(
        tenant=OuterRef("tenant"), name=OuterRef("queue"), retired=True
    )
    rows = Routing.objects.using(using).exclude(tenant="")
    if tenants is not None:
        rows = rows.filter(tenant__in=sorted(tenants))
    return [str(row) for row in rows.filter(Exists(retired))[:PAGE]]


def problem_of_routings(retired: Sequence[str]) -> list[Problem]:
    """Return that routings send jobs to retired queues."""
    text = gettext("routings to retired queues, whose jobs are rejected: %(names)s")
    return listing(text, "names", retired, "routings")
