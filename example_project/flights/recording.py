"""Records that reports write about their own runs, to compare them with the queue's."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db.models import DateTimeField, Func

from django_tenantqueue import current_job

from .models import ReportRun

P = ParamSpec("P")
R = TypeVar("R")

RECORDS = "records"
"""Alias of another connection, in autocommit: its records survive a rollback of the report."""


class ClockTimestamp(Func):
    """The database's clock at this moment, not at the start of the transaction."""

    function = "clock_timestamp"
    output_field = DateTimeField()


def recorded(report: Callable[P, R]) -> Callable[P, R]:
    """Note each start and end of a report that runs as a job."""

    @wraps(report)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            job = current_job()
        except LookupError:
            return report(*args, **kwargs)
        note = ReportRun.objects.using(RECORDS).create(
            job_id=job.id,
            attempt=job.attempt,
            airline=job.tenant,
            queue=job.queue,
            report=report.__name__,
            started_at=ClockTimestamp(),
        )
        try:
            value = report(*args, **kwargs)
        except BaseException as error:
            _end(note, succeeded=False, error=f"{type(error).__name__}: {error}")
            raise
        _end(note, succeeded=True)
        return value

    return run


def _end(note: ReportRun, *, succeeded: bool, error: str = "") -> None:
    ReportRun.objects.using(RECORDS).filter(pk=note.pk).update(
        finished_at=ClockTimestamp(), succeeded=succeeded, error=error
    )


def step(done: int, total: int, message: str) -> None:
    """Report the progress of the running job; nothing outside one."""
    try:
        job = current_job()
    except LookupError:
        return
    job.progress(done, total, message)


def count(**numbers: Any) -> None:
    """Add to the statistics of the running job; nothing outside one."""
    try:
        stats = current_job().stats
    except LookupError:
        return
    for name, number in numbers.items():
        stats[name] = stats.get(name, 0) + number
