"""Tenant queues by their names: made at their first use, their ids remembered."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..calls.options import Options
from ..calls.sources import registered_tasks
from ..calls.tenant import get_tenant
from ..conf import get_settings
from ..exceptions import QueueRetired, UnknownQueue
from ..models import TenantQueue
from ..queries import enqueue as queries
from .room import forget_rooms

MOST_NAMES = 1000
"""A tenant's queues that are looked at for a near name."""

_queue_ids: dict[tuple[str, str, str], int] = {}
"""(alias, tenant, queue) -> id. Rows are never deleted; a stale entry is noticed and replaced."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a job goes."""

    using: str
    tenant: str
    queue: str


def find_target(options: Options) -> Target:
    """Return where jobs with these options go."""
    settings = get_settings()
    tenant = get_tenant() if options.tenant is None else options.tenant
    return Target(settings.database, tenant, options.queue or settings.default_queue)


def queue_id_of(target: Target, *, refresh: bool = False) -> int:
    """Return the id of a tenant queue, making it at its first use.

    Raises UnknownQueue, and QueueRetired (only when looked up: a cached id is checked by the
    INSERT).
    """
    key = (target.using, target.tenant, target.queue)
    known = None if refresh else _queue_ids.get(key)
    if known is not None:
        return known
    found = queries.find_queue(target.using, target.tenant, target.queue)
    if found is None:
        check_declared(target)
        slots = get_settings().default_num_slots
        executor = get_settings().executor_of(target.queue)
        found = queries.create_queue(target.using, target.tenant, target.queue, slots, executor)
    if found.retired:
        raise QueueRetired(
            f"queue {target.queue!r} of tenant {target.tenant!r} is retired and takes no new jobs"
        )
    _queue_ids[key] = found.id
    return found.id


def check_declared(target: Target) -> None:
    """Raise UnknownQueue when the settings are strict and nothing names this queue."""
    settings = get_settings()
    if not settings.strict_queues or settings.executor_of(target.queue) is not None:
        return
    named = [task.options.queue for task in registered_tasks().values() if task.options.queue]
    names = {settings.default_queue, settings.admin_queue, settings.alert_queue, *named}
    if target.queue in names or any(fnmatchcase(target.queue, q) for q in settings.queues):
        return
    rows = TenantQueue.objects.using(target.using).filter(tenant=target.tenant)
    own = rows.order_by("name").values_list("name", flat=True)[:MOST_NAMES]
    near = get_close_matches(target.queue, {*names, *settings.queues, *own}, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UnknownQueue(
        f"tenant {target.tenant!r} has no queue {target.queue!r}, and STRICT_QUEUES makes only "
        f"queues that a task or TENANTQUEUE['QUEUES'] names.{hint} Add the name there, or make the "
        "queue in the admin"
    )


def make_queue(using: str, tenant: str, name: str, *, num_slots: int | None) -> None:
    """Make a tenant queue with these slots unless it exists; one that exists is left as it is."""
    if (using, tenant, name) not in _queue_ids:
        queries.create_queue(using, tenant, name, num_slots)


def lane_of(priority: int) -> int:
    """Return the lane in which jobs of a priority are served: one for all, or one each."""
    return priority if get_settings().priority_scope == "global" else 0


def forget_queues() -> None:
    """Forget what is known of queues, for tests that drop their rows."""
    _queue_ids.clear()
    forget_rooms()
