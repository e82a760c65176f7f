"""Changes of jobs and queues by operators.

Each function takes ids or rows (any iterable, or one alone) and returns the changed ids, so that
the caller can name the others. `using` is the alias of the jobs' database. None is the configured
one. Each call leaves one entry in the audit log, see acting_as().
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from ..calls.arguments import MARK
from ..calls.options import check_moment, check_priority, check_queue, check_tenant
from ..conf import alias_of, get_settings
from ..exceptions import InvalidOption
from ..features import Feature, hooks
from ..models import Change, Job, TenantQueue
from ..queries import control as queries
from ..queries.base import array, fetch
from ..queries.control import Changed
from .changes import Edit, entry_of_jobs, one_or_list, record_jobs, record_rows
from .gates import cancel_waiting, release_later
from .job_entries import CancelEntry, record_move
from .queues import Target, lane_of, queue_id_of
from .tuning import Ids, ids_of, switch_rows, tune_rows

CLAIM_SECONDS = 1.0
"""For how long cancel() retries jobs whose rows are locked."""
TUNABLE = (
    "num_slots",
    "weight",
    "max_per_second",
    "burst",
    "max_waiting",
    "executor",
    "paused",
    "retired",
)
"""Columns of a tenant queue that operators change."""
OPENING = {"num_slots", "max_per_second", "burst"}
"""Columns whose new value may allow more jobs to start."""


def _ids(ids: Ids) -> list[int]:
    return ids_of(ids, Job)


def _let_through(using: str, edits: queries.Edits, *, ready: bool = True) -> list[int]:
    """Release the gates of these jobs, wake workers if jobs are ready, and return the ids."""
    gates = [edit.gates for edit in edits.values()]
    release_later(using, gates, ready=len(edits) if ready else 0)
    return sorted(edits)


def _record(
    using: str, action: str, column: str, edits: queries.Edits, value: object = None
) -> None:
    """Write the entry of jobs whose column was changed; `value` None: to what each edit says."""
    changes = {
        i: Edit({column: edit.was}, {column: edit.now if value is None else value})
        for i, edit in edits.items()
    }
    record_jobs(using, action, changes)


def cancel(
    ids: Ids, *, using: str | None = None, recorded: bool = True
) -> tuple[list[int], list[int]]:
    """Cancel jobs; return (cancelled at once, asked to stop).

    Waiting jobs end as `cancelled` at once. The workers of running jobs are asked. A task that
    calls `current_job().check()` or `.progress()` stops there. Another one is interrupted after
    TENANTQUEUE["CANCEL_GRACE"] seconds. A job that is being claimed is retried for CLAIM_SECONDS.
    A monitor's callback that waits for details is left: cancel the monitor. `recorded`: False when
    the caller records it as a part of something larger.
    """
    alias, left = alias_of(using), set(_ids(ids))
    entry = CancelEntry(alias, left) if recorded else None
    cancelled: Changed = {}
    asked: set[int] = set()
    end = time.monotonic() + CLAIM_SECONDS
    while True:
        with transaction.atomic(using=alias):
            ended = cancel_waiting(alias, sorted(left))
            if entry:
                entry.add("cancelled", ended)
        cancelled |= ended
        left -= ended.keys()
        if left:
            with transaction.atomic(using=alias):
                reached = queries.request_cancel(alias, sorted(left))
                if entry:
                    entry.add("asked_to_stop", [i for i, is_new in reached.items() if is_new])
            asked |= reached.keys()
            left -= asked
        # the others have ended, or a claim has locked their rows for some milliseconds
        if left:
            left &= set(
                Job.objects.using(alias)
                .unfinished()
                .filter(pk__in=left)
                .exclude(held_by__in=("details", "session"), monitor_id__isnull=False)
                .values_list("pk", flat=True)
            )
        if not left or time.monotonic() > end:
            release_later(alias, cancelled.values())
            return sorted(cancelled), sorted(asked)
        time.sleep(CLAIM_SECONDS / 100)


def retry(ids: Ids, *, using: str | None = None, recorded: bool = True) -> list[int]:
    """Make jobs ready again that ended in error or were cancelled, with fresh attempts.

    They get their unique keys again if those are free, and run without them otherwise. Details and
    the callback of a cancelled monitor are skipped, and so are jobs whose arguments a retention
    rule has removed: see find_without_arguments(). `recorded`: see cancel().
    """
    alias = alias_of(using)
    by_tenant = get_settings().priority_scope == "tenant"
    with transaction.atomic(using=alias):
        edits = queries.edit_jobs(alias, "retry_jobs", _ids(ids), by_tenant=by_tenant)
        if edits:
            fetch(alias, "retake_keys", {"ids": array(edits), "passed_over": "{}"})
        if recorded:
            _record(alias, Change.Action.RETRY, "state", edits)
    return _let_through(alias, edits)


def find_without_arguments(ids: Ids, *, using: str | None = None) -> list[int]:
    """Return those of `ids` whose arguments a retention rule has removed."""
    jobs = Job.objects.using(alias_of(using)).finished()
    rows = jobs.filter(pk__in=_ids(ids), args__has_key=MARK)
    return sorted(rows.values_list("pk", flat=True))


def delete_finished(ids: Ids, *, using: str | None = None, recorded: bool = True) -> list[int]:
    """Delete finished jobs from the history, in one transaction; return the deleted ids.

    Jobs of a monitor are skipped. `recorded`: see cancel().
    """
    alias, chosen = alias_of(using), _ids(ids)
    jobs = Job.objects.using(alias).finished()
    with transaction.atomic(using=alias):
        entry = entry_of_jobs(alias, Change.Action.DELETE, jobs, chosen) if recorded else None
        deleted = dict(fetch(alias, "delete_jobs", {"ids": array(chosen)}))
        if entry:
            entry.add(deleted, before={"state": one_or_list(deleted.values())})
    return sorted(deleted)


def run_now(ids: Ids, *, using: str | None = None, recorded: bool = True) -> list[int]:
    """Make jobs ready that wait for their time. `recorded`: see cancel()."""
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        edits = queries.edit_jobs(alias, "set_run_at", _ids(ids), run_at=None)
        if recorded:
            _record(alias, Change.Action.RUN_NOW, "run_at", edits, timezone.now())
    return _let_through(alias, edits)


def change_priority(
    ids: Ids, priority: int, *, using: str | None = None, recorded: bool = True
) -> list[int]:
    """Change the priority of jobs that wait, and so their places in line.

    `recorded`: see cancel(). Raises InvalidOption.
    """
    check_priority("priority", priority)
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        edits = queries.edit_jobs(
            alias, "set_priority", _ids(ids), priority=priority, lane=lane_of(priority)
        )
        if recorded:
            _record(alias, Change.Action.SET_PRIORITY, "priority", edits, priority)
    return _let_through(alias, edits, ready=False)


def change_run_at(
    ids: Ids, run_at: datetime | timedelta | float, *, using: str | None = None
) -> list[int]:
    """Change when waiting jobs may run: an aware datetime, or a timedelta or seconds from now.

    Raises InvalidOption for a naive datetime.
    """
    moment = check_moment("run_at", run_at)
    run_at = timezone.now() + moment if isinstance(moment, timedelta) else moment
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        edits = queries.edit_jobs(alias, "set_run_at", _ids(ids), run_at=run_at)
        _record(alias, Change.Action.SET_RUN_AT, "run_at", edits, run_at)
    # where nothing has become ready, others of its sessions may
    return _let_through(alias, edits, ready=run_at <= timezone.now())


def change_queue(
    ids: Ids,
    *,
    tenant: str,
    queue: str,
    using: str | None = None,
    recorded: bool = True,
) -> list[int]:
    """Move waiting jobs to another queue, which is created if needed.

    A job with a session, user limit, exclusive or unique key, or a monitor, does not move to a
    queue of another tenant. `recorded`: see cancel(). Raises QueueRetired, InvalidOption.
    """
    alias = alias_of(using)
    target = Target(alias, check_tenant("tenant", tenant), check_queue("queue", queue))
    queue_id = queue_id_of(target, refresh=True)
    with transaction.atomic(using=alias):
        params = {"ids": array(_ids(ids)), "queue_id": queue_id}
        former = dict(fetch(alias, "set_queue", params))
        if recorded:
            record_move(alias, former, queue_id)
    release_later(alias, (), ready=len(former))
    return sorted(former)


def tune_queue(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of tenant queues, see TUNABLE; return the changed ids.

    The columns are those of control.tune(). Only the named ones are written. Raises InvalidOption
    for another column or an unknown executor, and Django's ValidationError for a bad value;
    TenantQueue.DoesNotExist.
    """
    alias = alias_of(using)
    executor, known = changes.get("executor"), get_settings().executors
    if executor is not None and executor not in tuple(known):
        raise InvalidOption(
            f"executor={executor!r}: it must be None or one of TENANTQUEUE['EXECUTORS'], which "
            f"has {', '.join(map(repr, known)) or 'none'}"
        )
    chosen = ids_of(ids, TenantQueue)
    with _noted(alias, chosen, changes):
        tuned = tune_rows(alias, TenantQueue, chosen, changes, TUNABLE)
    if changes.get("paused") is False or changes.keys() & OPENING:
        release_later(alias, (), ready=1)
    return tuned.changed


def make_queue(tenant: str, name: str, *, using: str | None = None, **changes: Any) -> TenantQueue:
    """Return a tenant queue, with columns changed as tune_queue() does. It is created if needed.

    It also creates queues that STRICT_QUEUES would reject. Raises what tune_queue() raises.
    """
    alias, settings = alias_of(using), get_settings()
    key = {"tenant": check_tenant("tenant", tenant), "name": check_queue("name", name)}
    new = {"num_slots": settings.slots_of(key["tenant"]), "executor": settings.executor_of(name)}
    with transaction.atomic(using=alias):
        row, is_new = TenantQueue.objects.using(alias).get_or_create(**key, defaults=new)
        if is_new:
            record_rows(alias, Change.Action.ADD, [row], Edit({}, key))
        tune_queue(row.pk, using=alias, **changes)
    row.refresh_from_db(using=alias)
    return row


def pause(queue_ids: Ids, *, using: str | None = None) -> list[int]:
    """Start no more jobs of these queues; return those that were not paused before."""
    return _switch(queue_ids, alias_of(using), "paused", True)


def resume(queue_ids: Ids, *, using: str | None = None) -> list[int]:
    """Start jobs of these queues again; return those that were paused before."""
    alias = alias_of(using)
    changed = _switch(queue_ids, alias, "paused", False)
    release_later(alias, (), ready=len(changed))
    return changed


def retire(queue_ids: Ids, *, using: str | None = None) -> list[int]:
    """Make these queues reject new jobs; return those that were not retired."""
    return _switch(queue_ids, alias_of(using), "retired", True)


def reopen(queue_ids: Ids, *, using: str | None = None) -> list[int]:
    """Make retired queues accept new jobs again; return those that were retired."""
    return _switch(queue_ids, alias_of(using), "retired", False)


def _switch(queue_ids: Ids, alias: str, column: str, value: bool) -> list[int]:
    ids = ids_of(queue_ids, TenantQueue)
    with _noted(alias, ids, {column: value}):
        rows = switch_rows(alias, TenantQueue.objects.filter(pk__in=ids), {column: value})
    return [queue.pk for queue in rows]


@contextmanager
def _noted(alias: str, ids: Sequence[int], changes: Mapping[str, Any]) -> Iterator[None]:
    """Let features note a change of queues, in the transaction of the change."""
    columns = {
        name: bool(changes[name])
        for name in ("paused", "retired")
        if changes.get(name) in (True, False)
    }
    found = hooks(Feature.switch_queues) if columns else ()
    if not found:
        yield
        return
    with transaction.atomic(using=alias):
        for hook in found:
            hook(alias, ids, columns)
        yield
