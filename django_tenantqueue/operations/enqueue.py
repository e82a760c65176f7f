"""Enqueue: from a call and its options to rows in the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from django.db import connections, transaction
from django.db.models.base import ModelState

from .. import signals
from ..batch_sizes import BATCH_BYTES
from ..calls import tracing
from ..calls.context import with_trace
from ..calls.options import Options
from ..calls.sources import INTERNAL, RegisteredTask, Source, known_task
from ..exceptions import QueueFull
from ..gate_keys import JobGates
from ..models import Job
from ..queries import enqueue as queries
from ..queries.unique import Placed
from ..states import FINAL
from .follow_ups import encode_follow_ups
from .gates import release_later, wake_later
from .max_waiting import is_limited, take_room
from .new_job import gated_row, gates_of, keyed_call, new_job
from .queues import Target, find_target, queue_id_of
from .unique import KeyedCall, place

BULK_ROWS = 5000
"""Rows of one bulk INSERT, and of one request of the API."""

QUICK_SECONDS = 0.002
"""An INSERT in autocommit mode that took at most this long, and saw no sleeper, wakes no worker."""

NOT_STARTED: dict[str, Any] = {
    **dict.fromkeys(("queued_at", "started_at", "finished_at")),
    "final": False,
    "attempt": 0,
    "crashes": 0,
}
"""Fields of a new job."""
NO_FIELDS = (
    *("args", "context", "follow_ups", "run_at", "delay_seconds", "exclusive_keys"),
    *("held_by", "unseen", "has_room"),
)
"""Columns of a row that a Job lacks or has in another form."""

T = TypeVar("T")


def enqueue(
    source: Source,
    options: Options,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    task: RegisteredTask | None = None,
    context: str | None = None,
    previous_id: int | None = None,
) -> Job:
    """Insert one job in the caller's transaction and return it.

    `context`: the job's context as JSON text, "" for nothing; None: the caller's. `previous_id`:
    the job that it follows.

    Raises InvalidArgument, QueueRetired, QueueFull, and Django's database errors.
    """
    # a task of the package acts on the database where it is enqueued
    target = find_target(options, source.name, stays=source.source_type == INTERNAL)
    if tracing.active is None:
        return _enqueue(source, options, target, args, kwargs, task, context, previous_id)
    with tracing.active.send(target.tenant, target.queue, source.name) as note:
        job = _enqueue(source, options, target, args, kwargs, task, context, previous_id)
        note(job=job.pk, **({"duplicate": True} if job.duplicate else {}))
    return job


def _enqueue(
    source: Source,
    options: Options,
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    task: RegisteredTask | None,
    context: str | None,
    previous_id: int | None,
) -> Job:
    text = source.encode(args, kwargs, follows=previous_id is not None)
    new = new_job(source, options, queue_id_of(target), text)
    if context is not None:
        new["context"] = with_trace(context)
    if not options.is_plain or previous_id is not None:
        call = keyed_call(source, options, target, args, kwargs, text)
        job = _enqueue_gated(new, options, target, call, previous_id)
        if not job.duplicate:
            _call_enqueue_hook(task, job)
            if signals.job_enqueued.receivers:
                _announce(source, target, [job.pk])
        return job
    connection = connections[target.using]
    sent_at = time.monotonic()
    inserted = None
    if not is_limited(target.using, new["queue_id"]):
        inserted = queries.insert_job(connection, new)
    if inserted is None:
        inserted = _insert_one(new, target)
    if inserted.state == "ready" and (
        inserted.sleepers
        or connection.in_atomic_block
        or time.monotonic() - sent_at > QUICK_SECONDS
    ):
        wake_later(target.using, target.tenant, target.queue, 1)
    job = _as_job(new, inserted, target)
    _call_enqueue_hook(task, job)
    if signals.job_enqueued.receivers:
        _announce(source, target, [job.pk])
    return job


def _insert_one(new: queries.NewJob, target: Target) -> queries.InsertedJob:
    """Insert a job that insert_job.sql does not take: see there."""
    row = gated_row(new, Options(), JobGates())
    row["args"] = f"[{new['args']}]"
    made = _insert(row, target, 1)
    new["queue_id"] = row["queue_id"]
    return queries.InsertedJob(made.ids[0], made.state, True)


def _insert(row: queries.GatedJob, target: Target, count: int) -> queries.InsertedJobs:
    """Insert `count` jobs. Raises QueueRetired and QueueFull."""
    connection = connections[target.using]
    if is_limited(target.using, row["queue_id"]):
        _take_room(row, target, count)
    made = queries.insert_jobs(connection, row)
    while made is None:
        # retired, not visible to this snapshot, or with a limit that this process did not know of
        _look_again(target, row, count)
        made = queries.insert_jobs(connection, row)
    return made


def _take_room(new: queries.NewJob, target: Target, count: int) -> None:
    exceeded = take_room(target.using, new["queue_id"], count)
    if exceeded is not None:
        raise QueueFull(target.tenant, target.queue, exceeded, count)
    new["has_room"] = True


def _call_enqueue_hook(task: RegisteredTask | None, job: Job) -> None:
    if task is not None and task.hooks is not None:
        task.hooks.enqueue(job)


def _announce(source: Source, target: Target, job_ids: Iterable[int]) -> None:
    """Send job_enqueued for each of these jobs."""
    task = known_task(source.source_type, source.source_method)
    if not signals.job_enqueued.has_listeners(task):
        return
    said: dict[str, Any] = {"task": source.name, "tenant": target.tenant, "queue": target.queue}
    for job_id in job_ids:
        signals.job_enqueued.announce(task, job_id=job_id, **said)


def _enqueue_gated(
    new: queries.NewJob,
    options: Options,
    target: Target,
    call: KeyedCall,
    previous_id: int | None,
) -> Job:
    gates = gates_of(options, target.tenant, call.key)
    follow_ups = encode_follow_ups(options, target)
    row = gated_row(new, options, gates, previous_id=previous_id, follow_ups=follow_ups)
    (placed,) = _place(row, options, target, [call])
    if not placed.is_new:
        return _as_twin(placed, target)
    job = _as_job(row, queries.InsertedJob(placed.id, placed.state or "", False), target)
    job.held_by = gates.first() if placed.state == "held" else None
    job.exclusive_key = gates.exclusive
    job.final = job.state in FINAL
    return job


def _place(
    row: queries.GatedJob, options: Options, target: Target, calls: list[KeyedCall]
) -> list[Placed]:
    """Insert jobs that have gates or keys; after the commit, release gates and wake workers."""
    unique = options.unique
    if unique is not None and unique.takes_key:
        placed = place(target.using, unique, row, calls, partial(_look_again, target))
    else:
        row["args"] = f"[{','.join(call.args for call in calls)}]"
        if unique is not None:
            row["exclusive_keys"] = [call.key for call in calls]
        made = _insert(row, target, len(calls))
        placed = [Placed(job_id, made.state, True, False) for job_id in made.ids]
    held = {
        gates_of(options, target.tenant, call.key)
        for call, job in zip(calls, placed, strict=True)
        if job.is_new and job.state == "held"
    }
    release_later(target.using, held)
    ready = sum(job.is_new and job.state == "ready" for job in placed)
    if ready:
        wake_later(target.using, target.tenant, target.queue, ready)
    return placed


def _look_again(target: Target, row: queries.NewJob, count: int) -> None:
    """Look the queue up again, and take room for `count` jobs in it."""
    row["queue_id"] = queue_id_of(target, refresh=True)
    row["unseen"] = True
    _take_room(row, target, count)


def _as_twin(placed: Placed, target: Target) -> Job:
    fields: dict[str, Any] = {"id": placed.id, "duplicate": True}
    if placed.state is not None:
        fields |= {"state": placed.state, "final": False}
    return _with_fields(fields, target)


def _as_job(new: queries.NewJob, inserted: queries.InsertedJob, target: Target) -> Job:
    """Return the Job of a new row."""
    fields = {**NOT_STARTED, **new, "id": inserted.id, "state": inserted.state}
    for name in NO_FIELDS:
        fields.pop(name, None)
    return _with_fields(fields, target)


def _with_fields(fields: dict[str, Any], target: Target) -> Job:
    """Return the Job of a row with these known fields. Others are loaded on access.

    Made without Model.__init__, which would cost more than all else that Python does here.
    """
    state = ModelState()
    state.adding = False
    state.db = target.using
    job = Job.__new__(Job)
    fields["_state"] = state
    job.__dict__ = fields
    return job


def batches(calls: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Cut calls, read as they are needed, into what one bulk INSERT takes."""
    batch: list[T] = []
    size = 0
    for call in calls:
        batch.append(call)
        size += size_of(call)
        if len(batch) == BULK_ROWS or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def enqueue_many(
    source: Source, options: Options, calls: Iterable[tuple[tuple[Any, ...], dict[str, Any]]]
) -> list[int]:
    """Insert a job for each call; return their ids, in order.

    One round trip per 5,000, or per about 4 MB of arguments. All or nothing: the batches share one
    transaction. Nothing is stored when one of the calls cannot be encoded, or when there is no room
    for all of them (QueueFull). `calls` may be a generator; it is read lazily.
    """
    target = find_target(options, source.name)
    ids: list[int] = []
    made: list[int] = ids
    with tracing.send_batch(target.tenant, target.queue, source.name) as note:
        new = new_job(source, options, queue_id_of(target), "")
        follow_ups = encode_follow_ups(options, target)
        row = gated_row(new, options, gates_of(options, target.tenant, ""), follow_ups=follow_ups)
        with transaction.atomic(using=target.using):
            if options.is_plain:
                encoded = (source.encode(args, kwargs) for args, kwargs in calls)
                for texts in batches(encoded, len):
                    row["args"] = f"[{','.join(texts)}]"
                    ids += _insert(row, target, len(texts)).ids
                if ids:
                    wake_later(target.using, target.tenant, target.queue, len(ids))
            else:
                made = []
                keyed = (
                    keyed_call(source, options, target, args, kwargs, source.encode(args, kwargs))
                    for args, kwargs in calls
                )
                for batch in batches(keyed, lambda call: len(call.args)):
                    placed = _place(row, options, target, batch)
                    ids += [job.id for job in placed]
                    made += [job.id for job in placed if job.is_new]
        note(count=len(ids))
    if signals.job_enqueued.receivers:
        _announce(source, target, made)
    return ids
