"""Bulk actions on one batch of jobs, and the reasons why jobs are skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..calls.options import check_priority, check_queue, check_tenant
from ..exceptions import InvalidOption, QueueRetired
from ..models import Change, Job, TenantQueue
from ..states import FINAL, UNFINISHED, WAITING, State
from . import control

TASK_PREFIX = "django_tenantqueue.bulk."
"""The names of the tasks of bulk actions begin with it."""
READ = ("id", "queue_id", "task", "state", "created_at")
"""Columns that decide whether a job is changed, and how."""
Values = Mapping[str, Any]
Left = dict[str, int]
"""How many jobs are skipped, by the reason."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to a batch."""

    changed: Collection[int]
    left: Left


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One kind of bulk action.

    `states`: of the jobs that it can change. `act` changes those of a batch, which have the columns
    READ. `check` returns the values that the action takes, and raises InvalidOption.
    """

    name: str
    change: str
    states: frozenset[State]
    act: Callable[[str, Sequence[Job], Values], Done]
    check: Callable[[Values], dict[str, Any]]


def _done(changed: Collection[int], **left: int) -> Done:
    return Done(changed, {reason: count for reason, count in left.items() if count})


def _retry(using: str, jobs: Sequence[Job], values: Values) -> Done:
    others = {job.id for job in jobs if not job.task.startswith(TASK_PREFIX)}
    changed = control.retry(others, using=using, recorded=False)
    late = others - set(changed)
    empty = len(control.find_without_arguments(late, using=using)) if late else 0
    cancelled = len(late) - empty
    own = len(jobs) - len(others)
    return _done(changed, monitor_cancelled=cancelled, arguments_removed=empty, bulk_action=own)


def _cancel(using: str, jobs: Sequence[Job], values: Values) -> Done:
    cancelled, asked = control.cancel(jobs, using=using, recorded=False)
    changed = [*cancelled, *asked]
    return _done(changed, waits_for_details=len(jobs) - len(changed))


def _run_now(using: str, jobs: Sequence[Job], values: Values) -> Done:
    changed = control.run_now(jobs, using=using, recorded=False)
    return _done(changed, waits_for_no_time=len(jobs) - len(changed))


def _change_priority(using: str, jobs: Sequence[Job], values: Values) -> Done:
    changed = control.change_priority(jobs, values["priority"], using=using, recorded=False)
    return _done(changed, changed_meanwhile=len(jobs) - len(changed))


def _delete(using: str, jobs: Sequence[Job], values: Values) -> Done:
    deleted = control.delete_finished(jobs, using=using, recorded=False)
    return _done(deleted, counted_by_monitor=len(jobs) - len(deleted))


def _move(using: str, jobs: Sequence[Job], values: Values) -> Done:
    """Move jobs to the queue of that name of the given tenant, or each of its own tenant's.

    The tenant "" is none.
    """
    queues = TenantQueue.objects.using(using)
    tenants = dict(queues.filter(pk__in={job.queue_id for job in jobs}).values_list("pk", "tenant"))
    of_tenant: defaultdict[str | None, list[int]] = defaultdict(list)
    for job in jobs:
        own = tenants.get(job.queue_id)
        of_tenant[own if own is None else values.get("tenant", own)].append(job.id)
    targets = queues.filter(name=values["queue"], retired=False)
    wanted = [tenant for tenant in of_tenant if tenant is not None]
    known = set(targets.filter(tenant__in=wanted).values_list("tenant", flat=True))
    changed: list[int] = []
    homeless = 0
    for tenant, ids in of_tenant.items():
        if tenant is None or tenant not in known:
            homeless += len(ids)  # a typing error makes no queue
            continue
        try:
            changed += control.change_queue(
                ids, tenant=tenant, queue=values["queue"], using=using, recorded=False
            )
        except QueueRetired:  # since it was looked at
            homeless += len(ids)
    bound = len(jobs) - homeless - len(changed)
    return _done(changed, no_such_queue=homeless, bound_to_tenant=bound)


def _no_values(values: Values) -> dict[str, Any]:
    if values:
        raise InvalidOption(f"this action takes no values, and was given {sorted(values)!r}")
    return {}


def _priority(values: Values) -> dict[str, Any]:
    if set(values) != {"priority"}:
        raise InvalidOption(
            "this action needs the value 'priority' (--priority on a command line) and takes no "
            f"other: it was given {sorted(values)!r}"
        )
    check_priority("priority", values["priority"])
    return dict(values)


def _target(values: Values) -> dict[str, Any]:
    if not {"queue"} <= set(values) <= {"queue", "tenant"}:
        raise InvalidOption(
            "this action needs the value 'queue' (--to-queue on a command line), and may have "
            f"'tenant' (--to-tenant): it was given {sorted(values)!r}"
        )
    check_queue("queue", values["queue"])
    given = {name: value for name, value in values.items() if value is not None}
    check_tenant("tenant", given.get("tenant", ""))
    return given


_FAILED = frozenset({State.ERROR, State.CANCELLED})
_LATER = frozenset({State.SCHEDULED, State.HELD})
_ACTIONS = (
    BulkAction("retry", Change.Action.RETRY, _FAILED, _retry, _no_values),
    BulkAction("cancel", Change.Action.CANCEL, UNFINISHED, _cancel, _no_values),
    BulkAction("run_now", Change.Action.RUN_NOW, _LATER, _run_now, _no_values),
    BulkAction("change_priority", Change.Action.SET_PRIORITY, WAITING, _change_priority, _priority),
    BulkAction("move", Change.Action.MOVE, WAITING, _move, _target),
    BulkAction("delete", Change.Action.DELETE, FINAL, _delete, _no_values),
)
ACTIONS = {action.name: action for action in _ACTIONS}


def find_action(name: str) -> BulkAction:
    """Return the action of that name; raise InvalidOption."""
    if name not in ACTIONS:
        raise InvalidOption(f"action={name!r}: it must be one of {list(ACTIONS)}")
    return ACTIONS[name]
