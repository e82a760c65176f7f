"""Eager mode: run a job where it would have been enqueued. Nothing is stored."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from ..calls import tracing
from ..calls.arguments import decode_args, encode_result
from ..calls.context import surroundings
from ..calls.options import Options
from ..calls.sources import Source, resolve
from ..calls.tenant import get_tenant, use_tenant
from ..calls.unique_key import make_key
from ..models import Job
from ..queries.claim import ClaimedJob
from ..states import Priority, State
from .current_job import RunningJob, enter, leave
from .outcome import Outcome

_ids = itertools.count(-1, -1)


def run_now(
    source: Source, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Job:
    """Run a call through the same encoding as a job would and return its finished Job.

    The Job is not stored; its id is negative, so that it is no other job's. An exception of the
    task is raised here.
    """
    tenant = get_tenant() if options.tenant is None else options.tenant
    running = RunningJob(
        _claimed(source, options, tenant, args, kwargs), tenant=tenant, queue=options.queue or ""
    )
    if tracing.active is None:
        return _run(running, source, options)
    with tracing.active.send(tenant, options.queue, source.name) as note:
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
) -> ClaimedJob:
    text = source.encode(args, kwargs)
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
        name=source.name,
        source_type=source.source_type,
        source_id=source.source_id,
        source_method=source.source_method,
        args=text,
        timeout_seconds=None,
        hard_timeout_seconds=None,
        expires_at=None,
        context=None,
        nth_served=1,
        turn=0,
        used=1,
        weight=1,
        slots_left=0,
    )


def _run(running: RunningJob, source: Source, options: Options) -> Job:
    claimed, tenant = running.claimed, running.tenant
    text = claimed.args
    created = timezone.now()
    enter(running)
    try:
        func, _task = resolve(source.source_type, source.source_id, source.source_method)
        loaded, named = decode_args(text, {"attempt": 1, "tenant": tenant, "job_id": claimed.id})
        with use_tenant(tenant), surroundings(None, running):
            value = func(*loaded, **named)
            if asyncio.iscoroutine(value):
                value = _finish_coroutine(value)
    finally:
        leave()
    result = encode_result(value)
    return Job(
        id=claimed.id,
        state=State.SUCCESS,
        final=True,
        name=source.name,
        priority=Priority.DEFAULT if options.priority is None else options.priority,
        created_at=created,
        run_at=created,
        queued_at=created,
        started_at=created,
        finished_at=timezone.now(),
        attempt=1,
        args=json.loads(text),
        stats=running.said().get("stats"),
        result_data=None if result is None else json.loads(result),
    )


def _finish_coroutine(value: Any) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, value).result()
