"""Enqueue a job again, with other arguments: a new job, and the old one stays as it is."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from django.db import transaction
from django.utils import timezone

from ..calls.given_options import merged
from ..calls.options import Options
from ..calls.secret_option import with_mark
from ..calls.serial import session_of
from ..calls.sources import INTERNAL, NOTHING, RegisteredTask, Source, resolve, signature_of
from ..calls.unique import UNTIL_EXPIRED, Mode, Unique
from ..databases import check_enqueue, database_of_row
from ..exceptions import InvalidState, NotAllowed
from ..gate_keys import own_key
from ..models import Change, Job, TenantQueue
from ..status.masking import split
from .changes import Entry
from .enqueue import enqueue


def source_of(job: Job) -> tuple[Source, RegisteredTask | None]:
    """Return the call of a job, ready to be repeated, and its task if it is one.

    Raises UnknownTask (this process does not know it), NotAllowed, Permanent (its object is gone),
    InvalidState (its arguments were removed).
    """
    if job.arguments_removed:
        raise InvalidState(
            f"the arguments of job {job.pk} were removed by a retention rule: enqueue a new one "
            "with .delay()"
        )
    if job.source_type == NOTHING.source_type:
        raise NotAllowed(
            f"job {job.pk} is the end of a monitor and runs nothing: start another monitor"
        )
    if job.source_type == INTERNAL:
        raise NotAllowed(
            f"{job.task!r} is an internal task of django_tenantqueue: its jobs cannot be "
            "enqueued again. Do again what made this one"
        )
    func, task = resolve(job.source_type, job.source_id, job.source_method)
    if task is not None:
        secret = with_mark(task.source.secret, job.args, signature_of(task.func))
        return replace(task.source, func=task.func, name=job.task, secret=secret), task
    is_async = inspect.iscoroutinefunction(func)
    return Source(job.source_type, job.source_id, job.source_method, job.task, is_async, func), None


def enqueue_again(
    job: Job,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    queue: str | None = None,
    priority: int | None = None,
    run_at: datetime | None = None,
) -> Job:
    """Enqueue a new job that runs what `job` runs, with these arguments, and return it.

    It keeps the tenant, session, `limit_user`, limits, labels, `created_by` and context of `job`;
    queue and priority, too, when they are None. It is no detail of a monitor. It follows the job
    that `job` follows, and nothing follows it. `run_at`: None is now. An
    `expires_at` in the future is kept. A unique job gets a key by its task's rule; when another job
    has the key, that one is returned, with `duplicate` True, and nothing is recorded.

    Raises TypeError when the arguments do not fit, and what `.delay()` raises.
    """
    using = database_of_row(job)
    source, task = source_of(job)
    source.check_call(args, kwargs)
    old_queue = TenantQueue.objects.using(using).get(pk=job.queue_id)
    tenant = old_queue.tenant
    options = merged(
        Options(),
        {
            "tenant": tenant,
            "queue": queue or old_queue.name,
            "priority": job.priority if priority is None else priority,
            "run_at": run_at,
            "expires_at": _expires_at(job, task),
            **kept_options(job, tenant),
            "unique": _unique(tenant, job, task),
        },
    )
    context = json.dumps(job.context) if job.context else ""
    check_enqueue(using, tenant, job.task)  # here: it must see the caller's transaction alone
    with transaction.atomic(using=using):
        new = enqueue(
            source,
            options,
            args,
            dict(kwargs),
            task=task,
            context=context,
            previous_id=job.previous_id,
        )
        if not new.duplicate:
            stored = source.encode(args, kwargs, follows=job.previous_id is not None)
            _record(using, job, new, stored, old_queue, options)
    return new


def kept_options(job: Job, tenant: str) -> dict[str, Any]:
    """Return the options of `.using()` that a job stores, by their names; None: not given."""
    return {
        "max_attempts": job.max_attempts,
        "timeout": job.timeout_seconds,
        "hard_timeout": job.hard_timeout_seconds,
        "labels": None if job.labels is None else tuple(job.labels),
        "created_by": job.created_by,
        "session": session_of(
            own_key(tenant, job.session_key), skips=job.session_skip, halts=job.session_halt
        ),
        "limit_user": own_key(tenant, job.limit_user),
    }


def _expires_at(job: Job, task: RegisteredTask | None) -> datetime | timedelta | None:
    if job.expires_at is None:
        return None
    if job.expires_at > timezone.now():
        return job.expires_at
    declared = None if task is None else task.options.expires_at
    return declared if isinstance(declared, timedelta) else None


def _unique(tenant: str, job: Job, task: RegisteredTask | None) -> Unique | None:
    """Return the rule of the task; where the call had one of its own, its mode and its key."""
    key = own_key(tenant, job.exclusive_key or job.unique_key)
    if job.unique_mode is None and key is None:
        return None
    declared = None if task is None else task.options.unique
    if declared is not None and job.unique_mode in (None, declared.mode):
        return declared
    if job.unique_mode is None or key is None or job.unique_mode == UNTIL_EXPIRED:
        return None
    return Unique(cast(Mode, job.unique_mode), key=key)


def _record(
    using: str, job: Job, new: Job, stored: str, old_queue: TenantQueue, options: Options
) -> None:
    """Write the entry: both jobs, and what differs. Of the arguments it has the names alone."""
    before: dict[str, Any] = {"job": job.pk}
    after: dict[str, Any] = {"job": new.pk}
    if options.priority != job.priority:
        before["priority"], after["priority"] = job.priority, options.priority
    if options.queue != old_queue.name:
        before["queue"] = str(old_queue)
        after["queue"] = str(TenantQueue(tenant=old_queue.tenant, name=options.queue or ""))
    if options.run_at is not None:
        after["run_at"] = options.run_at
    if changed := _changed_arguments(job.args, json.loads(stored)):
        after["arguments"] = changed
    entry = Entry(using, Change.Action.ENQUEUE_AGAIN, Change.Kind.JOB, job.task, old_queue.tenant)
    entry.add([job.pk, new.pk], before=before, after=after)


def _changed_arguments(old: Any, new: Any) -> list[str]:
    """Return the positions (from 1) and names of the arguments in which two stored calls differ."""
    was, now = _arguments(old), _arguments(new)
    names = dict.fromkeys((*was, *now))
    missing = object()
    return [name for name in names if was.get(name, missing) != now.get(name, missing)]


def _arguments(call: Any) -> dict[str, Any]:
    args, kwargs = split(call)
    return {f"#{number}": value for number, value in enumerate(args or (), 1)} | (kwargs or {})
