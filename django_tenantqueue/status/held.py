"""What gates hold: how many jobs, since when, and which of them keeps the first one waiting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import gate_keys
from ..models import Job
from ..queries import fleet as queries
from ..queries.fleet import HeldCounts, HeldJobs
from ..queries.lists import read_in_order
from .display_limits import COUNTED_TO, NAMED, VISITED
from .figures import NOTHING, counted_text, rough_text
from .thresholds import LATE_SECONDS

GATES: dict[str | None, Any] = {
    gate_keys.MONITOR: _("monitor"),
    gate_keys.SESSION: _("session"),
    gate_keys.LIMIT_USER: _("user limit"),
    gate_keys.EXCLUSIVE: _("unique key"),
    gate_keys.TASK: _("task"),
}
"""The gates, in the words of all pages."""


def read_held(using: str) -> list[HeldJobs]:
    """Return what each gate holds for longest, in up to NAMED queues of each gate."""
    return queries.list_held(using, listed=NAMED, visits=VISITED, most=COUNTED_TO)


def read_held_of(using: str, queue_ids: Iterable[int]) -> list[HeldJobs]:
    """Return what gates hold of some queues, the longest wait first."""
    return queries.list_held_of_queues(using, sorted(queue_ids), most=COUNTED_TO)


def users_at_limit(using: str, queue_ids: Sequence[int]) -> list[str]:
    """Return the gate keys of the users whose limits hold the first VISITED jobs of some queues.

    Index: tenantqueue_job_held.
    """
    held = Job.objects.using(using).unfinished().filter(held_by=gate_keys.LIMIT_USER)
    jobs = held.filter(queue_id__in=queue_ids).order_by()
    with read_in_order(using):
        return sorted({str(key) for key in jobs.values_list("limit_user", flat=True)[:VISITED]})


def count_held(held: Iterable[HeldJobs]) -> HeldCounts:
    """Return how many of these jobs each gate holds."""
    jobs = dict.fromkeys(gate_keys.ORDER, 0)
    for one in held:
        jobs[one.gate] += one.jobs
    return HeldCounts(**jobs)


def oldest_of_gates(held: Iterable[HeldJobs]) -> dict[str, float]:
    """Return how long the first job of each gate has waited; 0 where none is held."""
    oldest = dict.fromkeys(gate_keys.ORDER, 0.0)
    for one in held:
        oldest[one.gate] = max(oldest[one.gate], one.wait_seconds)
    return oldest


def is_late(held: HeldJobs) -> bool:
    """Return whether its first job is late. Details wait for others of their monitor: never."""
    return held.gate != gate_keys.MONITOR and held.wait_seconds > LATE_SECONDS


def cause_text(held: HeldJobs) -> str:
    """Return which gate holds the first of the jobs, such as "task app.tasks.report"."""
    key = (
        f"#{held.key}"
        if held.gate == gate_keys.MONITOR
        else gate_keys.own_key(held.tenant, held.key)
    )
    return f"{GATES[held.gate]} {key}"


def held_text(held: Sequence[HeldJobs]) -> str:
    """Return in a sentence what holds jobs of one queue."""
    text = gettext("%(jobs)s by %(cause)s, the first for %(time)s")
    return "; ".join(
        text
        % {
            "jobs": counted_text(one.jobs, COUNTED_TO),
            "cause": cause_text(one),
            "time": rough_text(one.wait_seconds),
        }
        for one in held
    )


def place_text(held: HeldJobs) -> str:
    """Return where the jobs are: "acme / reports"."""
    return f"{held.tenant or NOTHING} / {held.queue}"
