"""Queues, sessions, monitors and schedules of a tenant: read and tuned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from ...conf import get_settings
from ...exceptions import RequestRefused
from ...models import ConcurrentJobMonitor, Session, TenantQueue
from ...operations import control, monitor_control, sessions
from ...text import is_storable
from ..schedules import operations as schedules
from ..schedules.models import Schedule
from . import schemas, shown
from .access import READ, TUNE, Caller, Needs, caller_of
from .bearer import check_queue
from .documents import operation
from .jobs import answer

M = TypeVar("M", bound=Model)

queues = Router(tags=["queues"])
session_router = Router(tags=["sessions"])
monitors = Router(tags=["monitors"])
schedule_router = Router(tags=["schedules"])

After = Annotated[int, Query(ge=0, le=schemas.MOST_ID)]
Before = Annotated[int, Query(ge=1, le=schemas.MOST_ID)]
Limit = Annotated[int, Query(ge=1, le=200)]
RowId = Annotated[int, Path(ge=1, le=schemas.MOST_ID)]
QueueName = Annotated[str, Path(min_length=1, max_length=100)]


def _rows(model: type[M], caller: Caller) -> QuerySet[M]:
    """Return the rows of the caller's tenant."""
    rows = model._default_manager.using(get_settings().database)
    return rows.filter(tenant=caller.tenant)


def _row(rows: QuerySet[M], row_id: int) -> M:
    found = rows.filter(pk=row_id).first()
    if found is None:
        raise RequestRefused(404, f"There is no {rows.model._meta.verbose_name} {row_id}.")
    return found


def _page(rows: QuerySet[M], limit: int, show: Callable[[list[M]], Any]) -> HttpResponse:
    """Return a page of rows that are in the order of their ids, or in the opposite one."""
    found = list(rows[: limit + 1])
    following = found[limit - 1].pk if len(found) > limit else None
    return answer({"items": show(found[:limit]), "next": following})


@contextmanager
def _tuning(caller: Caller) -> Iterator[None]:
    """Name the caller in the list of changes; values that do not fit together are refused."""
    try:
        with caller.acting(), transaction.atomic(using=get_settings().database):
            yield
    except IntegrityError as error:
        raise RequestRefused(422, f"The values do not fit together: {error}") from None


def _given(changes: schemas.Input) -> dict[str, Any]:
    return changes.model_dump(exclude_unset=True)


@operation(queues.get, "/queues", Needs(READ), {200: schemas.QueuePage})
def list_queues(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List queues."""
    using = get_settings().database
    # the key is an int4
    rows = _rows(TenantQueue, caller_of(request)).filter(pk__gt=min(after, 2**31 - 1))
    return _page(rows.order_by("pk"), limit, lambda page: shown.queue_details(using, page))


def _queue(caller: Caller, name: str) -> TenantQueue:
    found = _rows(TenantQueue, caller).filter(name=name).first() if is_storable(name) else None
    if found is None:
        raise RequestRefused(404, f"There is no queue {name!r}.")
    return found


def _queue_answer(caller: Caller, name: str) -> HttpResponse:
    (queue,) = shown.queue_details(get_settings().database, [_queue(caller, name)])
    return answer(queue)


@operation(queues.get, "/queues/{path:name}", Needs(READ), {200: schemas.QueueDetails})
def read_queue(request: HttpRequest, name: QueueName) -> HttpResponse:
    """Read a queue."""
    return _queue_answer(caller_of(request), name)


@operation(queues.patch, "/queues/{path:name}", Needs(TUNE), {200: schemas.QueueDetails})
def tune_queue(
    request: HttpRequest, name: QueueName, changes: schemas.QueueChanges
) -> HttpResponse:
    """Tune a queue. What is absent stays."""
    caller = caller_of(request)
    queue = _queue(caller, name)
    check_queue(caller.token, name)
    with _tuning(caller):
        control.tune_queue(queue.pk, **_given(changes))
    return _queue_answer(caller, name)


def _shown_sessions(page: list[Session]) -> list[dict[str, Any]]:
    return shown.session_details(get_settings().database, page)


@operation(session_router.get, "/sessions", Needs(READ), {200: schemas.SessionPage})
def list_sessions(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List sessions and users' caps."""
    rows = _rows(Session, caller_of(request)).filter(pk__gt=after).order_by("pk")
    return _page(rows, limit, _shown_sessions)


@operation(session_router.get, "/sessions/{row_id}", Needs(READ), {200: schemas.SessionDetails})
def read_session(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a session."""
    row = _row(_rows(Session, caller_of(request)), row_id)
    return answer(_shown_sessions([row])[0])


@operation(session_router.patch, "/sessions/{row_id}", Needs(TUNE), {200: schemas.SessionDetails})
def tune_session(
    request: HttpRequest, row_id: RowId, changes: schemas.SessionChanges
) -> HttpResponse:
    """Tune a session. What is absent stays."""
    caller = caller_of(request)
    rows = _rows(Session, caller)
    _row(rows, row_id)
    given = _given(changes)
    with _tuning(caller):
        paused = given.pop("paused", None)
        sessions.tune_session(row_id, **given)
        if paused is not None:
            (sessions.pause_sessions if paused else sessions.resume_sessions)([row_id])
    return answer(_shown_sessions([_row(rows, row_id)])[0])


@operation(monitors.get, "/monitors", Needs(READ), {200: schemas.MonitorPage})
def list_monitors(
    request: HttpRequest, before: Before = schemas.MOST_ID, limit: Limit = 20
) -> HttpResponse:
    """List monitors, the newest first."""
    rows = _rows(ConcurrentJobMonitor, caller_of(request)).filter(pk__lt=before)
    return _page(rows.order_by("-pk"), limit, shown.monitor_details)


def _monitor_answer(caller: Caller, row_id: int) -> HttpResponse:
    row = _row(_rows(ConcurrentJobMonitor, caller), row_id)
    return answer(shown.monitor_details([row])[0])


@operation(monitors.get, "/monitors/{row_id}", Needs(READ), {200: schemas.MonitorDetails})
def read_monitor(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a monitor, and how far it is."""
    return _monitor_answer(caller_of(request), row_id)


@operation(monitors.patch, "/monitors/{row_id}", Needs(TUNE), {200: schemas.MonitorDetails})
def tune_monitor(
    request: HttpRequest, row_id: RowId, changes: schemas.MonitorChanges
) -> HttpResponse:
    """Tune a monitor. What is absent stays."""
    caller = caller_of(request)
    _row(_rows(ConcurrentJobMonitor, caller), row_id)
    given = _given(changes)
    caller.check(given)
    with _tuning(caller):
        monitor_control.tune_monitor(row_id, **given)
    return _monitor_answer(caller, row_id)


@operation(monitors.post, "/monitors/{row_id}/cancel", Needs(TUNE), {200: schemas.CancelledMonitor})
def cancel_monitor(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Cancel a monitor and all its details. Its callback does not run."""
    caller = caller_of(request)
    _row(_rows(ConcurrentJobMonitor, caller), row_id)
    with caller.acting():
        ended = monitor_control.cancel_monitor(row_id)
    return answer({"ended": ended})


def _schedules(caller: Caller) -> QuerySet[Schedule]:
    return _rows(Schedule, caller).filter(all_tenants=False)


@operation(schedule_router.get, "/schedules", Needs(READ), {200: schemas.SchedulePage})
def list_schedules(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List schedules of the tenant; those for all tenants are not among them."""
    rows = _schedules(caller_of(request)).filter(pk__gt=after).order_by("pk")
    return _page(rows, limit, shown.schedule_details)


def _schedule_answer(caller: Caller, row_id: int) -> HttpResponse:
    return answer(shown.schedule_details([_row(_schedules(caller), row_id)])[0])


@operation(schedule_router.get, "/schedules/{row_id}", Needs(READ), {200: schemas.ScheduleDetails})
def read_schedule(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a schedule."""
    return _schedule_answer(caller_of(request), row_id)


@operation(
    schedule_router.patch, "/schedules/{row_id}", Needs(TUNE), {200: schemas.ScheduleDetails}
)
def tune_schedule(
    request: HttpRequest, row_id: RowId, changes: schemas.ScheduleChanges
) -> HttpResponse:
    """Tune a schedule: when it runs, but not what. What is absent stays."""
    caller = caller_of(request)
    row = _row(_schedules(caller), row_id)
    given = _given(changes)
    if row.source != Schedule.Source.ADMIN and given.keys() - {"enabled"}:
        raise RequestRefused(422, f"Code declares schedule {row_id}: enabled alone can be tuned.")
    caller.check(given)
    with _tuning(caller):
        schedules.tune_schedule(row_id, **given)
    return _schedule_answer(caller, row_id)
