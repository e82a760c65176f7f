"""Which tenants a user may see: all, or those that a callable of the project names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.utils.module_loading import import_string

from ..conf import get_settings
from ..exceptions import InvalidOption
from ..models import Job
from ..models.job_query import JobQuerySet


def tenants_of(user: Any) -> frozenset[str] | None:
    """Return the tenants that a user may see; None: all.

    Raises InvalidOption when VISIBLE_TENANTS returns something else than strings or None.
    """
    path = get_settings().visible_tenants
    if path is None:
        return None
    found = import_string(path)(user)
    if found is None:
        return None
    # a str is an iterable of str, too: read as one, "ab" would show the tenants "a" and "b"
    if not isinstance(found, str | bytes) and isinstance(found, Iterable):
        tenants = frozenset(found)
        if all(isinstance(tenant, str) for tenant in tenants):
            return tenants
    raise InvalidOption(
        f"VISIBLE_TENANTS {path!r} returned {found!r}: it must be a list of tenants, or None for "
        "all of them"
    )


def visible_jobs(using: str, tenants: Collection[str] | None) -> JobQuerySet:
    """Return the jobs of these tenants; None: all jobs."""
    jobs = Job.objects.using(using)
    return jobs if tenants is None else jobs.filter(queue__tenant__in=sorted(tenants))
