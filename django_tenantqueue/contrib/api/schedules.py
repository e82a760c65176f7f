"""Schedules of a tenant, if the app of schedules is installed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ..schedules import services
from ..schedules.models import Schedule
from . import schemas
from .access import READ, TUNE, Needs, caller_of
from .exceptions import ApiError
from .openapi import operation
from .shown import shown
from .tuning import After, Limit, RowId, page_of, row_answer, row_of, rows_of, tuning, values_of

router = Router(tags=["schedules"])


def _details(rows: list[Schedule]) -> list[dict[str, Any]]:
    return [shown(schemas.ScheduleDetails, row) for row in rows]


def _schedules(request: HttpRequest) -> QuerySet[Schedule]:
    return rows_of(Schedule, request)


@operation(router.get, "/schedules", Needs(READ), {200: schemas.SchedulePage})
def list_schedules(request: HttpRequest, after: After = 0, limit: Limit = 50) -> HttpResponse:
    """List the tenant's own schedules. Schedules for every tenant are left out."""
    rows = _schedules(request).filter(pk__gt=after).order_by("pk")
    return page_of(rows, limit, _details)


@operation(router.get, "/schedules/{row_id}", Needs(READ), {200: schemas.ScheduleDetails})
def read_schedule(request: HttpRequest, row_id: RowId) -> HttpResponse:
    """Read a schedule."""
    return row_answer(_schedules(request), row_id, _details)


@operation(router.patch, "/schedules/{row_id}", Needs(TUNE), {200: schemas.ScheduleDetails})
def tune_schedule(
    request: HttpRequest, row_id: RowId, changes: schemas.ScheduleChanges
) -> HttpResponse:
    """Tune a schedule.

    Absent members keep their values. Its task and arguments cannot be changed.
    """
    caller = caller_of(request)
    row = row_of(_schedules(request), row_id)
    given = values_of(changes)
    if row.source != Schedule.Source.ADMIN and given.keys() - {"enabled"}:
        raise ApiError(422, f"Schedule {row_id} is declared in code: only enabled can be changed.")
    caller.check(given)
    with tuning(caller):
        services.tune_schedule(row_id, **given)
    return row_answer(_schedules(request), row_id, _details)
