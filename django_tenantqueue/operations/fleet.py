"""What operators do to worker processes."""

from __future__ import annotations

from collections.abc import Iterable

from ..conf import get_settings
from ..models import Worker


def drain(worker_ids: Iterable[int], *, using: str | None = None) -> list[int]:
    """Let workers end what they run, claim nothing more and stop; return those that did not yet.

    Each reads it with its next heartbeat. Only this column is written.
    """
    alias = using or get_settings().database
    found = Worker.objects.using(alias).filter(pk__in=list(worker_ids), draining=False)
    changed = sorted(found.values_list("pk", flat=True))
    found.filter(pk__in=changed).update(draining=True)
    return changed
