"""Statements about the audit trail."""

from __future__ import annotations

from dataclasses import dataclass

from .base import fetch
from .lists import plan_without

AVOIDED = ("enable_seqscan",)


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Which object's changes are meant. `label`: None when rows are told apart by id alone."""

    kind: str
    object_id: int
    label: str | None
    tenant: str


def list_changes_of(using: str, key: ObjectKey, *, before: int, most: int) -> list[int]:
    """Return the ids of up to `most` changes of an object below `before`, the newest first."""
    params = {
        "kind": key.kind,
        "object_id": key.object_id,
        "label": key.label,
        "tenant": key.tenant,
        "before": before,
        "most": most,
    }
    # statistics of a time without changes would have the whole table read
    with plan_without(using, AVOIDED):
        return [row[0] for row in fetch(using, "list_changes_of", params)]


def prune_changes(using: str, *, keep_days: int, most: int) -> int:
    """Delete changes older than `keep_days` among the `most` oldest; return how many."""
    params = {"keep_days": keep_days, "most": most}
    return int(fetch(using, "prune_changes", params)[0][0])
