"""Monitors: start one, add details to it, close it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from django.utils import timezone

from ..calls import tracing
from ..calls.call import Call, check_callback, check_detail, read_call, read_calls
from ..calls.context import capture_context
from ..calls.given_options import merged
from ..calls.options import Options, check_whole
from ..calls.serial import Serial
from ..calls.sources import NOTHING, Source
from ..calls.tenant import get_tenant
from ..calls.unique_key import make_key
from ..conf import get_settings
from ..databases import check_enqueue, database_of_monitor, database_of_tenant
from ..exceptions import InvalidOption, MonitorEnded, Unsupported
from ..execution import eager
from ..execution.job_monitor import EagerSummary
from ..gate_keys import MONITOR, JobGates, gate_key
from ..models import ConcurrentJobMonitor, Job, MonitorAddition
from ..queries.base import fetch
from ..queries.direct import fetch_prepared
from ..queries.locks import LockClass
from ..states import Priority
from ..text import is_storable
from .enqueue import batches
from .follow_ups import encode_follow_ups
from .gate_transaction import READ_COMMITTED, set_up
from .gates import release_later
from .new_job import json_head, new_job
from .queues import Target, chosen_queue, lane_of, queue_id_of

END = Call(NOTHING, Options())


def start(
    name: str,
    details: Any,
    changes: Mapping[str, Any],
    *,
    parallel: int,
    interval: float | timedelta,
    on_end: Any,
    stop_after_failures: int | None,
    keep_open: bool,
) -> ConcurrentJobMonitor:
    """Create a monitor and its details in the current transaction; return it.

    `details` is an iterable of `task.call(…)`, `(instance or class, "method", args, kwargs)` and
    `(queryset, "method", args, kwargs)`, or one of these; it is read lazily. All or nothing: an
    error stores no monitor. `changes`: its `priority`, `tenant`, `queue`, `session` and
    `created_by`. Details go into `queue`, else into the queue of their task. `session`: the next
    member of that session starts after the last detail. `parallel`: details in flight. `interval`:
    seconds between batches, or a timedelta. `stop_after_failures`: failed details. `on_end`: a call
    that is enqueued once, after the last detail, unless the monitor is cancelled. `keep_open`: it
    does not end before close(). Raises InvalidOption, InvalidArgument, NotAllowed, QueueRetired.
    """
    tenant = changes.get("tenant")
    options = merged(Options(), {**changes, "tenant": get_tenant() if tenant is None else tenant})
    assert options.tenant is not None
    session = options.session
    if isinstance(session, Serial):
        raise InvalidOption(
            f"session={session!r}: a monitor takes no on_wait and on_failure: give the key, "
            f"session={session.key!r}, and set both in the row of the session"
        )
    monitor = ConcurrentJobMonitor(
        tenant=options.tenant,
        name=_name(name),
        parallel=check_whole("parallel", parallel, 0, 1_000_000),
        interval_seconds=_interval(interval),
        priority=Priority.DEFAULT if options.priority is None else options.priority,
        stop_after_failures=None
        if stop_after_failures is None
        else check_whole("stop_after_failures", stop_after_failures, 1, 1_000_000),
        keep_open=bool(keep_open),
        session_key=None if session is None else gate_key(options.tenant, session),
        created_by=options.created_by,
        created_at=timezone.now(),
    )
    callback = END if on_end is None else read_call("on_end", on_end)
    check_callback(callback.options, options.tenant)
    if get_settings().eager:
        return _run_now(monitor, details, callback)
    using = database_of_tenant(options.tenant)
    check_enqueue(using, options.tenant, callback.source.name)
    sent = tracing.send_batch(options.tenant, options.queue)
    with sent as note, transaction.atomic(using=using):
        monitor.anchor_id = _next_job_id(using)
        monitor.save(using=using, force_insert=True)
        count, first_queue = _insert(using, monitor, details, options.queue)
        note(count=count, monitor=monitor.pk)
        # in the queue of the details, if it has none of its own: their workers come to it
        queue = _queue_of(using, monitor, callback) or options.queue or first_queue
        _insert_anchor(using, monitor, callback, queue)
        release_later(using, [_gates(monitor)])
    return monitor


def add(monitor: ConcurrentJobMonitor, details: Any, *, queue: str | None = None) -> int:
    """Add details to a monitor in the current transaction; return how many.

    It does not end before this transaction does. Raises MonitorEnded when it has ended, Unsupported
    in a caller's transaction that is not READ COMMITTED, and the errors of start().
    """
    using = database_of_monitor(monitor)
    with tracing.send_batch(monitor.tenant, queue) as note, transaction.atomic(using=using):
        set_up(using, READ_COMMITTED)
        if not _share_addition(using, monitor.pk):
            raise Unsupported(
                "add() needs a READ COMMITTED transaction: the snapshot of this one may be older "
                f"than the end of monitor {monitor.pk} ({monitor.name!r}). Add the details in a "
                "transaction of its own, or set its isolation level to READ COMMITTED"
            )
        # a later statement: it sees the end that the lock has waited for
        if not _takes_details(using, monitor.pk):
            raise MonitorEnded(monitor.pk, monitor.name)
        count, _ = _insert(using, monitor, details, queue)
        note(count=count, monitor=monitor.pk)
        if count:
            release_later(using, [_gates(monitor)])
    return count


def close(monitor: ConcurrentJobMonitor) -> None:
    """Let a monitor that was started with keep_open=True end after its last detail."""
    using = database_of_monitor(monitor)
    monitor.keep_open = False
    ConcurrentJobMonitor.objects.using(using).filter(pk=monitor.pk).update(keep_open=False)
    release_later(using, [_gates(monitor)])


def _share_addition(using: str, monitor_id: int) -> bool:
    """Keep a monitor from ending until the commit; False: the transaction is not READ COMMITTED."""
    params = {"lock_class": LockClass.MONITOR_ADDITION, "key": str(monitor_id)}
    return bool(fetch(using, "share_addition", params)[0][0])


def _takes_details(using: str, monitor_id: int) -> bool:
    found = ConcurrentJobMonitor.objects.using(using).filter(pk=monitor_id, cancelled_at=None)
    anchors = Job.objects.using(using).unfinished().filter(held_by__in=("details", "session"))
    return anchors.filter(pk__in=found.values("anchor_id")).exists()


def _gates(monitor: ConcurrentJobMonitor) -> JobGates:
    return JobGates(monitor=str(monitor.pk), session=monitor.session_key)


# rows


def _next_job_id(using: str) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nextval('tenantqueue_job_id_seq')")
        return int(cursor.fetchone()[0])


def _insert(
    using: str, monitor: ConcurrentJobMonitor, details: Any, queue: str | None
) -> tuple[int, str | None]:
    """Put details into the line of a monitor, with bounded memory.

    Return how many, and the queue of the first.
    """
    encoder = _Encoder(using, monitor.tenant, queue)
    context = capture_context()
    count = 0
    for batch in batches(map(encoder.encode, read_calls(details)), len):
        count += _insert_rows(using, monitor, context, batch)
    if count:
        MonitorAddition(monitor_id=monitor.pk, details=count).save(using=using)
    return count, next(iter(encoder.queue_ids), None)


def _queue_of(using: str, monitor: ConcurrentJobMonitor, callback: Call) -> str | None:
    """Return the queue of a callback; None: it has none of its own."""
    if callback is END:
        return None
    return chosen_queue(using, callback.options, monitor.tenant, callback.source.name)


def _insert_anchor(
    using: str, monitor: ConcurrentJobMonitor, callback: Call, queue: str | None
) -> None:
    target = Target(using, monitor.tenant, queue or get_settings().default_queue)
    anchor = {
        "id": monitor.anchor_id,
        "held_by": "details" if monitor.session_key is None else "session",
        "session_key": monitor.session_key,
    }
    queue_id = queue_id_of(target, refresh=True)
    head = _head(callback.source, callback.options, target, queue_id, anchor)
    args = callback.source.encode(callback.args, callback.kwargs)
    _insert_rows(using, monitor, capture_context(), [f'{head}"args":{args}}}'])


def _insert_rows(
    using: str, monitor: ConcurrentJobMonitor, context: str | None, rows: Sequence[str]
) -> int:
    shared = {
        "monitor_id": monitor.pk,
        "held_by": MONITOR,
        "priority": monitor.priority,
        "lane": lane_of(monitor.priority),
        "is_async": False,
        "session_skip": False,
        "session_halt": False,
    }
    text = f'{json.dumps(shared)[:-1]},"context":{context or "null"}}}'
    params = {"shared": text, "details": f"[{','.join(rows)}]"}
    return len(fetch_prepared(connections[using], "insert_details", params))


def _head(
    source: Source, options: Options, target: Target, queue_id: int, more: dict[str, Any]
) -> str:
    """Return the JSON object of a job, see insert_details.sql, open for its arguments."""
    own = {"follow_ups": encode_follow_ups(options, target), **more}
    shared = dict.fromkeys(("priority", "lane", "context"))
    return json_head(new_job(source, options, queue_id, ""), **shared, **own)


class _Encoder:
    """Makes JSON objects of calls. The columns that calls of one task share are encoded once."""

    def __init__(self, using: str, tenant: str, queue: str | None) -> None:
        self._using = using
        self._tenant = tenant
        self._queue = queue
        self.queue_ids: dict[str, int] = {}
        """Of the queues of the details, by name, in the order of their first details."""
        self._last: tuple[Source, Options, str] | None = None

    def encode(self, call: Call) -> str:
        """Return the JSON object of a detail, see insert_details.sql."""
        last = self._last
        if last is None or last[0] is not call.source or last[1] is not call.options:
            last = self._last = (call.source, call.options, self._head(call.source, call.options))
        args = call.source.encode(call.args, dict(call.kwargs))
        head = last[2]
        if (unique := call.options.unique) is not None:
            key = make_key(unique, call.source, self._tenant, call.args, call.kwargs, args)
            head += f'"exclusive_key":{json.dumps(key)},'
        return f'{head}"args":{args}}}'

    def _head(self, source: Source, options: Options) -> str:
        check_detail(options, self._tenant)
        check_enqueue(self._using, self._tenant, source.name)
        user = None if options.limit_user is None else gate_key(self._tenant, options.limit_user)
        own = self._queue or chosen_queue(self._using, options, self._tenant, source.name)
        name = own or get_settings().default_queue
        target = Target(self._using, self._tenant, name)
        if name not in self.queue_ids:
            self.queue_ids[name] = queue_id_of(target, refresh=True)
        return _head(source, options, target, self.queue_ids[name], {"limit_user": user})


# input


def _name(name: Any) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= 200 or not is_storable(name):
        raise InvalidOption(
            f"name={name!r}: it must be a str of 1 to 200 characters, without NUL and lone "
            "surrogates"
        )
    return name


def _interval(value: Any) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= 86400
    ):
        raise InvalidOption(
            f"interval={value!r}: it must be seconds or a timedelta, from 0 to a day"
        )
    return float(seconds)


# tests and notebooks


def _run_now(monitor: ConcurrentJobMonitor, details: Any, callback: Call) -> ConcurrentJobMonitor:
    """Run all details and the callback here and now: TENANTQUEUE["EAGER"]. Nothing is stored."""
    jobs = []
    for call in read_calls(details):
        check_detail(call.options, monitor.tenant)
        options = merged(call.options, {"tenant": monitor.tenant})
        jobs.append(eager.run_now(call.source, options, call.args, dict(call.kwargs)))
    summary = EagerSummary(
        monitor_id=0,
        total=len(jobs),
        succeeded=len(jobs),
        failed=0,
        cancelled=0,
        started_at=monitor.created_at,
        ended_at=jobs[-1].finished_at if jobs else None,
        jobs=jobs,
    )
    options = merged(callback.options, {"tenant": monitor.tenant})
    kwargs = dict(callback.kwargs)
    eager.run_now(callback.source, options, callback.args, kwargs, summary=summary)
    return monitor
