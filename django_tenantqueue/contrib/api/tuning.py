"""Queues, sessions and monitors of a tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from ...conf import get_settings
from ...models import ConcurrentJobMonitor, Session, TenantQueue
from ...operations import control, monitor_control, session_control
from ...text import is_storable
from . import schemas, shown
from .access import READ, TUNE, Caller, Needs, caller_of, check_queue
from .exceptions import ApiError
from .jobs import answer
from .openapi import operation

M = TypeVar("M", bound=Model)
Show = Callable[[list[M]], list[dict[str, Any]]]

queues = Router(tags=["queues"])
session_router = Router(tags=["sessions"])
monitors = Router(tags=["monitors"])

After = Annotated[int, Query(ge=0, le=schemas.MOST_ID)]
Before = Annotated[int, Query(ge=1, le=schemas.MOST_ID)]
Limit = Annotated[int, Query(ge=1, le=200)]
RowId = Annotated[int, Path(ge=1, le=schemas.MOST_ID)]
QueueName = Annotated[str, Path(min_length=1, max_length=100)]


def rows_of(model: type[M], request: HttpRequest) -> QuerySet[M]:
    """Return the rows of the caller's tenant."""
    rows = model._default_manager.using(get_settings().database)
    return rows.filter(tenant=caller_of(request).tenant)


def row_of(rows: QuerySet[M], row_id: int) -> M:
    """Return one of these rows. Raises ApiError."""
    found = rows.filter(pk=row_id).first()
    if found is None:
        raise ApiError(404, f"There is no {rows.model._meta.verbose_name} {row_id}.")
    return found


def row_answer(rows: QuerySet[M], row_id: int, show: Show[M]) -> HttpResponse:
    """Answer with one of these rows. Raises ApiError."""
    return answer(show([row_of(rows, row_id)])[0])


def page_of(rows: QuerySet[M], limit: int, show: Show[M]) -> HttpResponse:
    """Return a page of rows that are in the order of their ids, or in the opposite one."""
    found = list(rows[: limit + 1])
    following = found[limit - 1].pk if len(found) > limit else None
    return answer({"items": show(found[:limit]), "next": following})


@contextmanager
def tuning(caller: Caller) -> Iterator[None]:
    """Record changes under the name of the caller; answer 422 if values do not fit together."""
    try:
        with caller.acting(), transaction.atomic(using=get_settings().database):
            yield
    except IntegrityError as error:
        raise ApiError(422, f"The values do not fit together: {error}") from None


def values_of(changes: schemas.Input) -> dict[str, Any]:
    return changes.model_dump(exclude_unset=True)


@operation(queues.get, "/queues", Needs(READ), {200: schemas.QueuePage})
def list_queues(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List queues."""
    # the key is an int4
    rows = rows_of(TenantQueue, request).filter(pk__gt=min(after, 2**31 - 1))
    return page_of(rows.order_by("pk"), limit, shown.queue_details)


def _queue(request: HttpRequest, name: str) -> TenantQueue:
    rows = rows_of(TenantQueue, request)
    found = rows.filter(name=name).first() if is_storable(name) else None
    if found is None:
        raise ApiError(404, f"There is no queue {name!r}.")
    return found


@operation(queues.get, "/queues/{path:name}", Needs(READ), {200: schemas.QueueDetails})
def read_queue(request: HttpRequest, name: QueueName) -> HttpResponse:
    """Read a queue."""
    return answer(shown.queue_details([_queue(request, name)])[0])


@operation(queues.patch, "/queues/{path:name}", Needs(TUNE), {200: schemas.QueueDetails})
def tune_queue(
    request: HttpRequest, name: QueueName, changes: schemas.QueueChanges
) -> HttpResponse:
    """Tune a queue.

    Absent members keep their values.
    """
    caller = caller_of(request)
    queue = _queue(request, name)
    check_queue(caller.token, name)
    with tuning(caller):
        control.tune_queue(queue.pk, **values_of(changes))
    return answer(shown.queue_details([_queue(request, name)])[0])


@operation(session_router.get, "/sessions", Needs(READ), {200: schemas.SessionPage})
def list_sessions(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List sessions and user limits."""
    rows = rows_of(Session, request).filter(pk__gt=after).order_by("pk")
    return page_of(rows, limit, shown.session_details)


@operation(session_router.get, "/sessions/{row_id}", Needs(READ), {200: schemas.SessionDetails})
def read_session(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a session or a user limit."""
    return row_answer(rows_of(Session, request), row_id, shown.session_details)


@operation(session_router.patch, "/sessions/{row_id}", Needs(TUNE), {200: schemas.SessionDetails})
def tune_session(
    request: HttpRequest, row_id: RowId, changes: schemas.SessionChanges
) -> HttpResponse:
    """Tune a session or a user limit.

    Absent members keep their values.
    """
    caller = caller_of(request)
    rows = rows_of(Session, request)
    row_of(rows, row_id)
    given = values_of(changes)
    with tuning(caller):
        paused = given.pop("paused", None)
        session_control.tune_session(row_id, **given)
        if paused is not None:
            (session_control.pause_sessions if paused else session_control.resume_sessions)(
                [row_id]
            )
    return row_answer(rows, row_id, shown.session_details)


def _monitors(request: HttpRequest) -> QuerySet[ConcurrentJobMonitor]:
    return rows_of(ConcurrentJobMonitor, request)


@operation(monitors.get, "/monitors", Needs(READ), {200: schemas.MonitorPage})
def list_monitors(
    request: HttpRequest, before: Before = schemas.MOST_ID, limit: Limit = 20
) -> HttpResponse:
    """List monitors, newest first."""
    rows = _monitors(request).filter(pk__lt=before).order_by("-pk")
    return page_of(rows, limit, shown.monitor_details)


@operation(monitors.get, "/monitors/{row_id}", Needs(READ), {200: schemas.MonitorDetails})
def read_monitor(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a monitor, with its progress."""
    return row_answer(_monitors(request), row_id, shown.monitor_details)


@operation(monitors.patch, "/monitors/{row_id}", Needs(TUNE), {200: schemas.MonitorDetails})
def tune_monitor(
    request: HttpRequest, row_id: RowId, changes: schemas.MonitorChanges
) -> HttpResponse:
    """Tune a monitor.

    Absent members keep their values.
    """
    caller = caller_of(request)
    row_of(_monitors(request), row_id)
    given = values_of(changes)
    caller.check(given)
    with tuning(caller):
        monitor_control.tune_monitor(row_id, **given)
    return row_answer(_monitors(request), row_id, shown.monitor_details)


@operation(monitors.post, "/monitors/{row_id}/cancel", Needs(TUNE), {200: schemas.CancelledMonitor})
def cancel_monitor(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Cancel a monitor and all its details.

    Its callback does not run.
    """
    caller = caller_of(request)
    row_of(_monitors(request), row_id)
    with caller.acting():
        ended = monitor_control.cancel_monitor(row_id)
    return answer({"ended": ended})
