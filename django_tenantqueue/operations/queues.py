"""Tenant queues by their names: made at their first use, their ids remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from django.db.models import QuerySet

from ..batch_sizes import BATCH
from ..calls.options import Options
from ..calls.sources import registered_tasks
from ..calls.tenant import get_tenant
from ..conf import get_settings
from ..databases import check_enqueue, check_queue, database_of_tenant
from ..exceptions import QueueRetired, UnknownQueue
from ..features import Feature, hooks
from ..models import TenantQueue
from ..queries import enqueue as queries
from .max_waiting import forget_rooms

_queue_ids: dict[tuple[str, str, str], int] = {}
"""(alias, tenant, queue) -> id. Rows are never deleted; a stale entry is noticed and replaced."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a job goes."""

    using: str
    tenant: str
    queue: str


def find_target(options: Options, task: str, *, stays: bool = False) -> Target:
    """Return where jobs with these options go. `task`: theirs, by which they are routed.

    `stays`: they stay in the current database. Raises TenantQueueError.
    """
    settings = get_settings()
    tenant = get_tenant() if options.tenant is None else options.tenant
    using = settings.database
    if not stays:
        using = database_of_tenant(tenant)
        check_enqueue(using, tenant, task)
    queue = chosen_queue(using, options, tenant, task)
    return Target(using, tenant, queue or settings.default_queue)


def chosen_queue(using: str, options: Options, tenant: str, task: str) -> str | None:
    """Return the queue of a new job: that of its call, of a feature, or of its task; None: none.

    `task`: the name of its task, see Source.name.
    """
    if not options.queue_is_fixed:
        for choose in hooks(Feature.choose_queue):
            queue: str | None = choose(using, tenant, task)
            if queue:
                return queue
    return options.queue


def queue_id_of(target: Target, *, refresh: bool = False) -> int:
    """Return the id of a tenant queue, making it at its first use.

    Raises UnknownQueue, and QueueRetired (only when looked up: a cached id is checked by the
    INSERT).
    """
    key = _key(target)
    known = None if refresh else _queue_ids.get(key)
    if known is not None:
        return known
    name = target.tenant, target.queue
    found = _find_or_make(target)
    if found[name].retired and hooks(Feature.check_queue):
        check_queue(target.using, target.tenant)
        found = _find_or_make(target)  # a move had retired it, and has ended since
    if found[name].retired:
        raise QueueRetired(target.tenant, target.queue)
    return found[name].id


def _find_or_make(target: Target) -> dict[queries.QueueName, queries.FoundQueue]:
    name = target.tenant, target.queue
    found = queries.find_queues(target.using, [name]) or make_queues([target])
    _remember(target.using, found)
    return found


def missing_queues(using: str, targets: Iterable[Target]) -> list[Target]:
    """Return which tenant queues do not exist, with one statement at most.

    The ids of the others are remembered then, unless they are retired.
    """
    asked = {(t.tenant, t.queue): t for t in targets if _key(t) not in _queue_ids}
    if not asked:
        return []
    found = queries.find_queues(using, list(asked))
    _remember(using, found)
    return [target for name, target in asked.items() if name not in found]


def make_queues(targets: Sequence[Target]) -> dict[queries.QueueName, queries.FoundQueue]:
    """Make tenant queues of one database with one statement, which is committed at once.

    Return them. Raises UnknownQueue for one that STRICT_QUEUES does not make.
    """
    if not targets:
        return {}
    for target in targets:
        check_queue(target.using, target.tenant)
    settings = get_settings()
    if settings.strict_queues:
        for target in targets:
            check_declared(target, "STRICT_QUEUES")
    slots_of, executor_of = settings.slots_of, settings.executor_of
    new = [
        queries.NewQueue(t.tenant, t.queue, slots_of(t.tenant), executor_of(t.queue))
        for t in targets
    ]
    made = queries.create_queues(targets[0].using, new)
    _remember(targets[0].using, made)
    return made


def _key(target: Target) -> tuple[str, str, str]:
    return target.using, target.tenant, target.queue


def _remember(using: str, found: Mapping[queries.QueueName, queries.FoundQueue]) -> None:
    for name, queue in found.items():
        if not queue.retired:
            _queue_ids[using, *name] = queue.id


def check_declared(target: Target, by: str) -> None:
    """Raise UnknownQueue unless a task or the settings name this queue. It must not exist yet."""
    if is_declared(target.queue):
        return
    own = TenantQueue.objects.using(target.using).filter(tenant=target.tenant)
    raise UnknownQueue(
        f"tenant {target.tenant!r} has no queue {target.queue!r}, and {by} creates only queues "
        "that a task or TENANTQUEUE['DECLARED_QUEUES'] names."
        f"{near_names(target.queue, own)} Add the name there, or create the queue in the admin",
        tenant=target.tenant,
        queue=target.queue,
    )


def check_known(target: Target, by: str) -> None:
    """Raise UnknownQueue unless a queue exists, or a task or the settings name it."""
    if not is_declared(target.queue) and missing_queues(target.using, [target]):
        check_declared(target, by)


def is_declared(queue: str) -> bool:
    """Return whether a task or the settings name this queue."""
    settings = get_settings()
    return (
        queue in _declared_names()
        or settings.executor_of(queue) is not None
        or any(fnmatchcase(queue, name) for name in settings.declared_queues)
    )


def _declared_names() -> set[str]:
    settings = get_settings()
    named = [task.options.queue for task in registered_tasks().values() if task.options.queue]
    of_apps = [name for names in hooks(Feature.queue_names) for name in names()]
    return {settings.default_queue, settings.admin_queue, *named, *of_apps}


def near_names(queue: str, rows: QuerySet[TenantQueue]) -> str:
    """Return a sentence that suggests names near to this one; "" when none is near."""
    own = rows.order_by("name").values_list("name", flat=True).distinct()[:BATCH]
    known = {*_declared_names(), *get_settings().declared_queues, *own} - {queue}
    near = get_close_matches(queue, known, n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def make_queue(using: str, tenant: str, name: str, *, num_slots: int | None) -> None:
    """Make a tenant queue with these slots unless it exists; one that exists is left as it is."""
    if (using, tenant, name) not in _queue_ids:
        queries.create_queues(using, [queries.NewQueue(tenant, name, num_slots, None)])


def lane_of(priority: int) -> int:
    """Return the lane in which jobs of a priority are served: one for all, or one each."""
    return priority if get_settings().priority_scope == "global" else 0


def forget_queues() -> None:
    """Forget what is known of queues, for tests that drop their rows."""
    _queue_ids.clear()
    forget_rooms()
    for forget in hooks(Feature.forget):
        forget()
