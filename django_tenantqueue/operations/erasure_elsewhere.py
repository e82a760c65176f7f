"""Removes a tenant from rows about others: bulk actions, changes, follow-ups, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from ..batch_sizes import BATCH
from ..features import Feature, hooks
from ..models import Change, ConcurrentJobMonitor, Duty, Job, Mute, Worker
from .bulk_actions import ACTIONS, TASK_PREFIX

ERASED = "(erased)"
"""What takes the place of the tenant in the options of a worker that was started for it."""

Ids = Sequence[int]


def find_bulk_jobs(using: str, tenant: str, queues: Ids, *, final: bool) -> list[int]:
    """Return the ids of bulk actions in queues of others whose filters or values concern a tenant.

    Those that name no tenant act on all: the texts that they look for may be of this one.
    """
    names = [f"{TASK_PREFIX}{action}" for action in ACTIONS]
    jobs = Job.objects.using(using).filter(task__in=names, final=final)
    rows = jobs.exclude(queue_id__in=queues).order_by().values_list("pk", "args")
    return sorted(pk for pk, args in rows if _concerns(args, tenant, queues))


def _concerns(args: Any, tenant: str, queues: Ids) -> bool:
    kwargs = args.get("kwargs") or {}
    filters, values = kwargs.get("filters") or {}, kwargs.get("values") or {}
    if values.get("tenant") == tenant:
        return True
    if queue_id := filters.get("queue_id"):
        return queue_id in map(str, queues)
    return bool(filters.get("tenant", tenant) == tenant)


def forget_elsewhere(using: str, tenant: str) -> None:
    """Remove a tenant from rows about several tenants, and from those about the fleet.

    Texts of errors are removed completely, because they may quote a job's values.
    """
    _forget_in_changes(using, tenant)
    Worker.objects.using(using).exclude(last_error="").update(last_error="", last_error_at=None)
    for worker in Worker.objects.using(using):
        if tenant in worker.tenants:
            worker.tenants = [ERASED if name == tenant else name for name in worker.tenants]
            worker.save(using=using, update_fields=["tenants"])
    Duty.objects.using(using).exclude(error="").update(error="")
    Duty.objects.using(using).filter(outcome__contains=tenant).update(outcome="")
    said = Q(reason__contains=tenant) | Q(name__contains=tenant)
    Mute.objects.using(using).filter(said).delete()
    for hook in hooks(Feature.forget_tenant):
        hook(using, tenant)


def _forget_in_changes(using: str, tenant: str) -> None:
    """Take the names and values out of entries about several tenants.

    The user, the time, the action and the number of objects remain.
    """
    changes = Change.objects.using(using).exclude(tenant=tenant)
    bulk = Q(tenant="", object_kind=Change.Kind.JOB, object_label__startswith="job #")
    for change in _pages(changes.filter(bulk, object_label__contains=":")):
        change.object_label = change.object_label.partition(":")[0]
        change.save(using=using, update_fields=["object_label"])
    of_tenant = ConcurrentJobMonitor.objects.using(using).filter(tenant=tenant)
    monitors = set(of_tenant.values_list("pk", flat=True))
    for change in _pages(changes.filter(tenant="", object_kind=Change.Kind.MONITOR)):
        if monitors.intersection(change.object_ids):  # their names are without their tenants
            _empty(using, change)
    as_json = json.dumps(tenant, ensure_ascii=False)[1:-1]
    texts = {f"{name}_text": Cast(name, TextField()) for name in ("before", "after")}
    named = Q(before_text__contains=as_json) | Q(after_text__contains=as_json)
    said = changes.alias(**texts).filter(Q(object_label__contains=tenant) | named)
    for change in _pages(said):
        names = f", {change.object_label}"
        is_named = f", {tenant} / " in names or _names([change.before, change.after], tenant)
        if is_named or change.action == Change.Action.MUTE:  # its reason may say anything
            _empty(using, change)


def _names(value: Any, tenant: str) -> bool:
    """Whether a value is a tenant, or an object of it, or has one among its values."""
    if isinstance(value, Mapping):
        return any(_names(inner, tenant) for inner in value.values())
    if isinstance(value, list):
        return any(_names(inner, tenant) for inner in value)
    return isinstance(value, str) and (value == tenant or value.startswith(f"{tenant} / "))


def _empty(using: str, change: Change) -> None:
    change.object_label = ""
    for side in ("before", "after"):
        values = getattr(change, side)
        setattr(change, side, {name: n for name, n in values.items() if isinstance(n, int)})
    change.save(using=using, update_fields=["object_label", "before", "after"])


def _pages(changes: QuerySet[Change]) -> Iterator[Change]:
    last = 0
    while page := list(changes.filter(pk__gt=last).order_by("pk")[:BATCH]):
        yield from page
        last = page[-1].pk


def forget_follow_ups(using: str, queues: Ids) -> None:
    """Take out of jobs of others what follows them in queues that do not exist any more.

    Locks the jobs in id order, BATCH in each transaction.
    """
    following = Job.objects.using(using).filter(follow_ups__isnull=False)
    is_there = RawSQL(
        "jsonb_path_exists(follow_ups, '$.**.queue_id ? (@ == $ids[*])', %s::jsonb)",
        [json.dumps({"ids": list(queues)})],
        output_field=BooleanField(),
    )
    found = following.filter(is_there).order_by("pk")
    ids = list(found.values_list("pk", flat=True)) if queues else []
    for start in range(0, len(ids), BATCH):
        with transaction.atomic(using=using):
            chosen = following.filter(pk__in=ids[start : start + BATCH])
            for job in chosen.order_by("pk").select_for_update(no_key=True).only("follow_ups"):
                left = _without(job.follow_ups, frozenset(queues))
                following.filter(pk=job.pk).update(follow_ups=left)


def _without(follow_ups: Any, queues: frozenset[int]) -> Any:
    left = [call for call in follow_ups if call.get("queue_id") not in queues]
    for call in left:
        if call.get("follow_ups"):
            call["follow_ups"] = _without(call["follow_ups"], queues)
    return left or None
