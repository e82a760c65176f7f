"""Eager mode: run a job where it would have been enqueued. Nothing is stored."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from ..calls import tracing
from ..calls.arguments import decode_args, encode_result
from ..calls.call import Call, ending_calls
from ..calls.context import check_coroutine, surroundings
from ..calls.given_options import merged
from ..calls.options import Options
from ..calls.sources import Source, resolve
from ..calls.tenant import get_tenant, use_tenant
from ..calls.unique_key import make_key
from ..models import Job
from ..queries.claim import ClaimedJob
from ..states import Priority, State
from ..stored_error import describe_error
from .current_job import RunningJob, enter, leave
from .job_monitor import MonitorSummary
from .outcome import Outcome

_ids = itertools.count(-1, -1)


def run_now(
    source: Source,
    options: Options,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    previous: Job | None = None,
    summary: MonitorSummary | None = None,
) -> Job:
    """Run a call through the same encoding as a job, and return its finished Job.

    The Job is not stored; its id is negative, so that it is no other job's. Its follow-ups run
    after it. An exception of the task is raised here. `previous`: the job that it follows.
    `summary`: of the details, for the callback of a monitor.
    """
    tenant = get_tenant() if options.tenant is None else options.tenant
    claimed = _claimed(source, options, tenant, args, kwargs, follows=previous is not None)
    running = RunningJob(claimed, tenant=tenant, queue=options.queue or "")
    running._tell(previous, summary)
    try:
        job = _run_traced(running, source, options)
    except Exception as error:
        failed = _as_job(running, options, State.ERROR)
        failed.errors = [describe_error(error, 1)]
        _run_follow_ups(ending_calls(options, tenant), failed, tenant)
        raise
    _run_follow_ups((*(options.on_success or ()), *ending_calls(options, tenant)), job, tenant)
    return job


def _run_follow_ups(calls: Sequence[Call], previous: Job, tenant: str) -> None:
    for call in calls:
        options = call.options
        if options.tenant is None:
            options = merged(options, {"tenant": tenant})
        run_now(call.source, options, call.args, call.kwargs, previous=previous)


def _run_traced(running: RunningJob, source: Source, options: Options) -> Job:
    if tracing.active is None:
        return _run(running, source, options)
    with tracing.active.send(running.tenant, options.queue, source.name) as note:
        note(job=running.id)
        with tracing.active.process(running) as note_outcome:
            job = _run(running, source, options)
            note_outcome(Outcome(stored=True))
    return job


def _claimed(
    source: Source,
    options: Options,
    tenant: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    follows: bool,
) -> ClaimedJob:
    if source.is_async:
        check_coroutine(source.name)
    text = source.encode(args, kwargs, follows=follows)
    if options.unique is not None:  # a key that is none is an error here, too
        make_key(options.unique, source, tenant, args, kwargs, text)
    return ClaimedJob(
        id=next(_ids),
        claim_seq=1,
        queue_id=0,
        lane=0,
        is_async=source.is_async,
        attempt=1,
        max_attempts=1,
        task=source.name,
        source_type=source.source_type,
        source_id=source.source_id,
        source_method=source.source_method,
        args=text,
    )


def _run(running: RunningJob, source: Source, options: Options) -> Job:
    claimed, tenant = running._claimed, running.tenant
    enter(running)
    try:
        func, _task = resolve(source.source_type, source.source_id, source.source_method)
        values = {"attempt": 1, "tenant": tenant, "job_id": claimed.id}
        if running.previous is not None:
            values["result"] = running.previous.result_data
        loaded, named = decode_args(claimed.args, values)
        with use_tenant(tenant), surroundings(None, running):
            value = func(*loaded, **named)
            if asyncio.iscoroutine(value):
                value = _finish_coroutine(value)
    finally:
        leave()
    result = encode_result(value)
    job = _as_job(running, options, State.SUCCESS)
    job.result_data = None if result is None else json.loads(result)
    return job


def _as_job(running: RunningJob, options: Options, state: State) -> Job:
    started = timezone.now() - timedelta(seconds=running.age_seconds)
    previous = running.previous
    return Job(
        id=running.id,
        state=state,
        final=True,
        task=running.task,
        priority=Priority.DEFAULT if options.priority is None else options.priority,
        created_at=started,
        run_at=started,
        queued_at=started,
        started_at=started,
        finished_at=timezone.now(),
        attempt=1,
        args=json.loads(running._claimed.args),
        stats=running._said().get("stats"),
        previous_id=None if previous is None else previous.pk,
    )


def _finish_coroutine(value: Any) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, value).result()
