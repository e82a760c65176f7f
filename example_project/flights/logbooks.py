"""A logbook for each plane of an airline: hundreds of small jobs, a few at a time."""

from django_tenantqueue.models import ConcurrentJobMonitor, Job

from . import tasks
from .models import Airline
from .tables import query

NAME = "Logbooks of the fleet"
PARALLEL = 2
SESSION = "logbooks"
"""Two requests run one after the other."""


def write_logbooks(airline: Airline, created_by: str) -> ConcurrentJobMonitor:
    """Start a monitor with a detail for each plane that the airline has flown; return it."""
    planes = query("tail_numbers", airline=airline.pk)
    return ConcurrentJobMonitor.objects.start(
        NAME,
        (tasks.logbook.call(tail_number) for (tail_number,) in planes),
        parallel=PARALLEL,
        priority=tasks.logbook.options.priority,
        tenant=airline.pk,
        session=SESSION,
        on_end=tasks.sum_up_logbooks.call(),
        created_by=created_by,
    )


def newest(airline: Airline, count: int) -> list[ConcurrentJobMonitor]:
    """Return the airline's last monitors, the newest first."""
    return list(ConcurrentJobMonitor.objects.filter(tenant=airline.pk).order_by("-id")[:count])


def are_being_written(airline: str) -> bool:
    """Whether a monitor of the airline has not ended."""
    newest = ConcurrentJobMonitor.objects.filter(tenant=airline).order_by("-id").first()
    return newest is not None and Job.objects.unfinished().filter(pk=newest.anchor_id).exists()
