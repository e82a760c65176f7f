"""Tenant queues by their names: made at their first use, their ids remembered."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from django.db.models import QuerySet

from ..batches import BATCH
from ..calls.options import Options
from ..calls.sources import registered_tasks
from ..calls.tenant import get_tenant
from ..conf import get_settings
from ..exceptions import QueueRetired, UnknownQueue
from ..models import TenantQueue
from ..queries import enqueue as queries
from .room import forget_rooms
from .routes import chosen_queue, forget_routes

_queue_ids: dict[tuple[str, str, str], int] = {}
"""(alias, tenant, queue) -> id. Rows are never deleted; a stale entry is noticed and replaced."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a job goes."""

    using: str
    tenant: str
    queue: str


def find_target(options: Options, name: str) -> Target:
    """Return where jobs with these options go. `name`: theirs, by which they are routed."""
    settings = get_settings()
    tenant = get_tenant() if options.tenant is None else options.tenant
    queue = chosen_queue(settings.database, options, tenant, name)
    return Target(settings.database, tenant, queue or settings.default_queue)


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
        if get_settings().strict_queues:
            check_declared(target, "STRICT_QUEUES")
        slots = get_settings().default_num_slots
        executor = get_settings().executor_of(target.queue)
        found = queries.create_queue(target.using, target.tenant, target.queue, slots, executor)
    if found.retired:
        raise QueueRetired(
            f"queue {target.queue!r} of tenant {target.tenant!r} is retired and takes no new jobs"
        )
    _queue_ids[key] = found.id
    return found.id


def check_declared(target: Target, by: str) -> None:
    """Raise UnknownQueue unless a task or the settings name this queue, which does not exist."""
    if is_declared(target.queue):
        return
    own = TenantQueue.objects.using(target.using).filter(tenant=target.tenant)
    raise UnknownQueue(
        f"tenant {target.tenant!r} has no queue {target.queue!r}, and {by} makes only queues that "
        "a task or TENANTQUEUE['QUEUES'] names."
        f"{near_names(target.queue, own)} Add the name there, or make the queue in the admin"
    )


def check_known(target: Target, by: str) -> None:
    """Raise UnknownQueue unless a queue exists, or a task or the settings name it."""
    if (target.using, target.tenant, target.queue) in _queue_ids:
        return
    if queries.find_queue(target.using, target.tenant, target.queue) is None:
        check_declared(target, by)


def is_declared(queue: str) -> bool:
    """Return whether a task or the settings name this queue."""
    settings = get_settings()
    return (
        queue in _declared_names()
        or settings.executor_of(queue) is not None
        or any(fnmatchcase(queue, name) for name in settings.queues)
    )


def _declared_names() -> set[str]:
    settings = get_settings()
    named = [task.options.queue for task in registered_tasks().values() if task.options.queue]
    return {settings.default_queue, settings.admin_queue, settings.alert_queue, *named}


def near_names(queue: str, rows: QuerySet[TenantQueue]) -> str:
    """Return a sentence that suggests names near to this one; "" when none is near."""
    own = rows.order_by("name").values_list("name", flat=True).distinct()[:BATCH]
    near = get_close_matches(queue, {*_declared_names(), *get_settings().queues, *own}, n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


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
    forget_routes()
