"""The changes of one object, for its history page."""

from __future__ import annotations

from django.db.models import Model

from ..models import Change, ConcurrentJobMonitor, Job, Worker
from ..models.change import kind_of
from ..queries import changes as queries
from ..queries.changes import ObjectKey
from ..queries.lists import NEWEST


def key_of(row: Model) -> ObjectKey | None:
    """Return by what the changes of a row are found; None when it has none.

    Sessions, caps and controls also by their names: they are removed and made again. A monitor, a
    worker or a job may have the name of another one.
    """
    is_found_by_id = isinstance(row, Job | ConcurrentJobMonitor | Worker)
    label = None if is_found_by_id else str(row)
    kind = kind_of(row)
    # the entries of a job are found without its tenant, which would be another query
    tenant = "" if isinstance(row, Job) else getattr(row, "tenant", "")
    return None if kind is None else ObjectKey(kind, row.pk, label, tenant)


def changes_of(using: str, row: Model, *, before: int = NEWEST, most: int = 100) -> list[Change]:
    """Return the changes of an object with ids below `before`, the newest first."""
    key = key_of(row)
    if key is None:
        return []
    ids = queries.list_changes_of(using, key, before=before, most=most)
    return list(Change.objects.using(using).filter(pk__in=ids).order_by("-pk"))
