"""The changes of one object, for its history page."""

from __future__ import annotations

from django.db.models import Model

from ..models import Change, ConcurrentJobMonitor, Job, Worker
from ..models.change import kind_of
from ..queries.base import fetch
from ..queries.lists import NEWEST, plan_without

AVOIDED = ("enable_seqscan",)


def changes_of(using: str, row: Model, *, before: int = NEWEST, most: int = 100) -> list[Change]:
    """Return the changes of an object with ids below `before`, the newest first.

    Sessions, caps and controls are found by their names, too: they are removed and made again. A
    monitor, a worker or a job may have the name of another one.
    """
    kind = kind_of(row)
    if kind is None:
        return []
    is_found_by_id = isinstance(row, Job | ConcurrentJobMonitor | Worker)
    params = {
        "kind": kind,
        "object_id": row.pk,
        "label": None if is_found_by_id else str(row),
        # the entries of a job are found without its tenant, which would be another query
        "tenant": "" if isinstance(row, Job) else getattr(row, "tenant", ""),
        "before": before,
        "most": most,
    }
    # statistics of a time without changes would have the whole table read
    with plan_without(using, AVOIDED):
        ids = [change_id for (change_id,) in fetch(using, "list_changes_of", params)]
    return list(Change.objects.using(using).filter(pk__in=ids).order_by("-pk"))
